"""Admits what channels bring into the store, before the platform is told that it arrived."""

import logging
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import assert_never

from sqlalchemy import Connection

from gateway.domain.chunking import sanitize
from gateway.domain.delivery import DeliveryKind
from gateway.domain.job import one_line
from gateway.domain.message import (
    ChannelName,
    ChatKey,
    Edit,
    Inbound,
    MessageKind,
    Move,
    NewMessage,
    Reachability,
)
from gateway.engine import texts
from gateway.engine.access import Access
from gateway.engine.clock import Clock
from gateway.engine.commands import Command, Done, asking_of, parse_command, run_command
from gateway.engine.owner import Episode, OwnerNotices
from gateway.store.chats import (
    chat_addresses,
    ensure_chat,
    list_paired,
    move_chat,
    request_pairing,
    resolve_chat,
    set_reachable,
)
from gateway.store.database import Database, Transaction
from gateway.store.deliveries import Cut, NewDelivery, store_delivery
from gateway.store.messages import (
    admit_message,
    edit_message,
    is_continued,
    is_held,
    record_message,
)
from gateway.store.notices import last_sent_at, note_too_old, was_answered_lately

log = logging.getLogger(__name__)

_STRANGER_LOG_EVERY = timedelta(hours=1)
_REMEMBERED = 1000
_LOOP_WINDOW = timedelta(seconds=90)
_LOOP_MESSAGES = 6
_LOOP_ANSWER = timedelta(seconds=2)
_WHOLE_SECOND = timedelta(seconds=1)
_MEDIA_QUIET = timedelta(seconds=10)

_Followed = tuple[Done, ChatKey]
"""What is to be done after a commit, and the stored key of the chat that it is about."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IntakeRules:
    """What intake needs besides its partners."""

    timezone: str
    host: str
    max_age: timedelta
    cuts: Mapping[ChannelName, Cut]
    follow: Callable[[Done, ChatKey], Awaitable[None]]
    say: Callable[[ChatKey, str], Awaitable[None]]


class Intake:
    """The one door. What it returns from is stored; what it raises on is not acknowledged."""

    def __init__(
        self,
        database: Database,
        access: Access,
        clock: Clock,
        owner: OwnerNotices,
        rules: IntakeRules,
    ) -> None:
        self._database = database
        self._access = access
        self._clock = clock
        self._owner = owner
        self._rules = rules
        self._strangers: OrderedDict[str, datetime] = OrderedDict()
        self._quick: OrderedDict[tuple[ChatKey, str], deque[datetime]] = OrderedDict()
        self._looping: set[ChatKey] = set()

    async def receive(self, inbound: Inbound) -> bool:
        """Store one inbound thing; raises StoreError when that failed.

        False = it is from somebody who is not let in, and nothing may go out to them.
        """
        match inbound:
            case NewMessage():
                return await self._receive_message(inbound)
            case Edit():
                return await self._receive_edit(inbound)
            case Move():
                await self._database.write(self._move, inbound)
            case Reachability():
                await self._database.write(
                    set_reachable,
                    inbound.chat,
                    is_reachable=inbound.is_reachable,
                    now=self._clock.now(),
                )
            case _:
                assert_never(inbound)
        return True

    async def reload_paired(self) -> None:
        """Take over who was let in, or put out, by pairing."""
        self._access.set_paired(await self._database.read(list_paired))

    async def _receive_edit(self, edit: Edit) -> bool:
        if not await self._is_admitted(edit):
            return False
        await self._database.write(edit_message, replace(edit, text=sanitize(edit.text)))
        return True

    def _move(self, tx: Transaction, move: Move) -> None:
        """Note a chat's new address; one that is listed and never wrote is noted as well."""
        now = self._clock.now()
        old = ChatKey(move.channel, move.old_address)
        if self._access.admits_chat(tx.connection, old):
            ensure_chat(tx, old, is_group=True, now=now)
        move_chat(tx, move.channel, move.old_address, move.new_address, now=now)

    async def _receive_message(self, message: NewMessage) -> bool:
        message = replace(
            message,
            text=sanitize(message.text),
            sender_name=sanitize(message.sender_name),
            quoted=None if message.quoted is None else sanitize(message.quoted),
        )
        if not await self._is_admitted(message):
            await self._refuse(message)
            return False
        if message.is_group and not message.is_addressed and not await self._continues(message):
            return True
        command = await self._database.write(self._store, message)
        if command is not None:
            await self._rules.follow(*command)
        if message.chat in self._looping:
            await self._owner.tell(Episode.LOOP, texts.LOOP_STOPPED.format(message.chat))
        elif not self._looping:
            await self._owner.over(Episode.LOOP)
        log.info(
            "message_received",
            extra={"chat": str(message.chat), "characters": len(message.text)},
        )
        return True

    async def _continues(self, message: NewMessage) -> bool:
        """Whether it is a further part of a long text that began with the bot's name."""
        return await self._database.read(
            is_continued, message.chat, message.sender_id, now=self._clock.now()
        )

    def _store(self, tx: Transaction, message: NewMessage) -> _Followed | None:
        """T1 or T1c, whichever the message asks for. Runs whole in the writer."""
        now = self._clock.now()
        if message.kind is MessageKind.BUTTON:
            return self._answer(tx, message, "command", lambda chat: Done(text=texts.STALE_BUTTON))
        if now - message.sent_at > self._rules.max_age:
            self._set_aside(tx, message, now=now)
            return None
        command = parse_command(message.text)
        if command is not None:
            return self._answer(tx, message, "command", self._command(tx, command, now=now))
        if self._is_looping(tx.connection, message, now=now):
            record_message(tx, message, now=now, reason="loop")
            self._looping.add(message.chat)
            return None
        self._looping.discard(message.chat)
        if not message.text.strip():
            return self._take_textless(tx, message, now=now)
        admit_message(tx, message, now=now)
        return None

    def _command(
        self, tx: Transaction, command: Command, *, now: datetime
    ) -> Callable[[ChatKey], Done]:
        def run(chat: ChatKey) -> Done:
            asking = asking_of(
                tx, chat, timezone=self._rules.timezone, host=self._rules.host, now=now
            )
            return run_command(tx, command, asking)

        return run

    def _answer(
        self,
        tx: Transaction,
        message: NewMessage,
        reason: str,
        effect: Callable[[ChatKey], Done],
    ) -> _Followed | None:
        """T1c: the message, its effect and its answer in one commit; a repeat does nothing."""
        now = self._clock.now()
        recorded = record_message(tx, message, now=now, reason=reason)
        if recorded is None:
            return None
        done = effect(recorded.chat)
        cut = self._rules.cuts[recorded.chat.channel]
        answer = NewDelivery(
            chat=recorded.chat,
            kind=DeliveryKind.COMMAND,
            text=done.text,
            chunks=cut(done.text, is_markdown=False),
        )
        store_delivery(tx, answer, now=now)
        return done, recorded.chat

    def _take_textless(
        self, tx: Transaction, message: NewMessage, *, now: datetime
    ) -> _Followed | None:
        """Media alone joins the message that it belongs to, or gets one line; never silence."""
        if message.hold is not None and is_held(tx.connection, message.chat, now=now):
            admit_message(tx, message, now=now)
            return None
        chat = resolve_chat(tx.connection, message.chat)
        if was_answered_lately(tx.connection, chat, "unsupported", since=now - _MEDIA_QUIET):
            record_message(tx, message, now=now, reason="unsupported")
            return None
        return self._answer(tx, message, "unsupported", lambda chat: Done(text=texts.ONLY_TEXT))

    def _set_aside(self, tx: Transaction, message: NewMessage, *, now: datetime) -> None:
        """A message that waited too long is named, not answered."""
        recorded = record_message(tx, message, now=now, reason="too_old")
        if recorded is not None:
            note_too_old(
                tx,
                recorded.chat,
                self._rules.cuts[recorded.chat.channel],
                timezone=self._rules.timezone,
                now=now,
            )

    def _is_looping(self, connection: Connection, message: NewMessage, *, now: datetime) -> bool:
        """Whether a sender answers us faster than people do, over and over."""
        if not message.is_group and message.chat.channel is not ChannelName.WHATSAPP:
            return False
        sent = last_sent_at(connection, resolve_chat(connection, message.chat))
        key = (message.chat, message.sender_id)
        times = self._quick.setdefault(key, deque(maxlen=_LOOP_MESSAGES + 1))
        self._quick.move_to_end(key)
        while len(self._quick) > _REMEMBERED:
            self._quick.popitem(last=False)
        # Telegram cuts its times to whole seconds, so an answer may look older than its question.
        if sent is None or not -_WHOLE_SECOND < message.sent_at - sent <= _LOOP_ANSWER:
            times.clear()
            return False
        times.append(now)
        return len(times) > _LOOP_MESSAGES and now - times[0] <= _LOOP_WINDOW

    async def _is_admitted(self, message: NewMessage | Edit) -> bool:
        def ask(chat: tuple[str, ...]) -> bool:
            return self._access.admits(
                message.chat.channel,
                chat=chat,
                sender=message.sender_addresses,
                is_group=message.is_group,
            )

        if ask(message.chat_addresses):
            return True
        # A chat that the platform moved is listed under its old address, perhaps.
        older = await self._database.read(self._known_addresses, message.chat)
        return bool(older) and ask(older)

    def _known_addresses(self, connection: Connection, chat: ChatKey) -> tuple[str, ...]:
        """Its addresses, and those of the group that it is a topic of."""
        group = ChatKey(chat.channel, chat.address.partition(":")[0])
        return tuple(
            address
            for key in {chat, group}
            for address in chat_addresses(connection, resolve_chat(connection, key))
        )

    async def _refuse(self, message: NewMessage) -> None:
        """A stranger gets nothing; the operator gets one line an hour."""
        now = self._clock.now()
        key = f"{message.chat}/{message.sender_id}"
        last = self._strangers.get(key)
        if last is None or now - last >= _STRANGER_LOG_EVERY:
            self._strangers[key] = now
            self._strangers.move_to_end(key)
            while len(self._strangers) > _REMEMBERED:
                self._strangers.popitem(last=False)
            log.warning(
                "stranger_refused",
                extra={"chat": str(message.chat), "sender": message.sender_id},
            )
        if message.chat.channel in self._access.pairing and not message.is_group:
            await self._offer_pairing(message, now=now)

    async def _offer_pairing(self, message: NewMessage, *, now: datetime) -> None:
        code = await self._database.write(
            request_pairing,
            message.chat.channel,
            message.sender_id,
            one_line(message.sender_name, limit=64),
            now=now,
        )
        if code is not None:
            await self._rules.say(
                replace(message.chat, address=message.address),
                f"Your pairing code is {code}. It is valid for one hour. "
                f"Give it to the operator of this bot, who lets you in with: gateway pair {code}",
            )
