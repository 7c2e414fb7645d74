"""Admits what channels bring into the store, before the platform is told that it arrived."""

import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import assert_never

from sqlalchemy import Connection

from gateway.domain.chunking import sanitize
from gateway.domain.delivery import DeliveryKind
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
from gateway.engine.answers import Asking, Done, store_answer
from gateway.engine.background import Background
from gateway.engine.clock import Clock
from gateway.engine.commands import parse_command, run_command
from gateway.engine.loops import LoopBreaker, is_at_once
from gateway.engine.owner import Episode, OwnerNotices
from gateway.engine.presses import press, read_reply
from gateway.engine.strangers import Strangers
from gateway.errors import CorruptDatabaseError, StoreBusyError
from gateway.log_context import bind
from gateway.store.chats import (
    chat_addresses,
    ensure_chat,
    list_paired,
    load_chat,
    move_chat,
    resolve_chat,
    set_reachable,
)
from gateway.store.database import Database, Transaction
from gateway.store.deliveries import Cut, store_text
from gateway.store.heartbeats import note_activity
from gateway.store.messages import (
    admit_message,
    edit_message,
    is_continued,
    is_held,
    record_message,
)
from gateway.store.notices import last_sent_at, note_too_old, was_answered_lately
from gateway.store.stopping import cancel_heartbeat

log = logging.getLogger(__name__)

_MEDIA_QUIET = timedelta(seconds=10)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Stored:
    """A message that was stored just now: how, and what a command asks for after the commit."""

    chat: ChatKey
    is_talk: bool = False
    done: Done | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class IntakeRules:
    """What intake needs besides its partners.

    `heartbeat` is the silence after which a chat is checked in on; None = never. `follow` does what
    a command asks of running sessions, and `say` writes to a stranger. Both may take long, so
    nobody waits for them.
    """

    timezone: str
    host: str
    max_age: timedelta
    heartbeat: timedelta | None
    cuts: Mapping[ChannelName, Cut]
    follow: Callable[[Done, ChatKey], Awaitable[None]]
    say: Callable[[ChatKey, str], Awaitable[None]]


class Intake:
    """The one door. What it returns from is dealt with; what it raises on is handed over again."""

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
        self._loops = LoopBreaker()
        self._background = Background()
        self._strangers = Strangers(database, access, clock, self._background, rules.say)

    async def receive(self, inbound: Inbound) -> bool:
        """Store one inbound thing.

        False = it is from somebody who is not let in, and nothing may go out to them. Raises
        StoreBusyError or CorruptDatabaseError when it is not stored and has to be handed over
        again. Whatever else goes wrong would do so again: it is logged, and its sender told.
        """
        chat = None if isinstance(inbound, Move) else inbound.chat
        with bind(chat=chat):
            try:
                return await self._receive(inbound)
            except (StoreBusyError, CorruptDatabaseError):
                raise
            except Exception:
                log.exception("inbound_failed", extra=_naming(inbound))
            return not isinstance(inbound, NewMessage) or await self._receive_failed(inbound)

    async def close(self) -> None:
        """Give up what goes on after messages that were stored."""
        await self._background.close()

    async def _receive(self, inbound: Inbound) -> bool:
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
        message = _sanitized(message)
        if not await self._is_admitted(message):
            await self._strangers.refuse(message)
            return False
        if message.is_group and not message.is_addressed and not await self._continues(message):
            return True
        at_once = await self._is_at_once(message)
        sender = (message.chat, message.sender_id)
        is_loop = at_once and self._loops.is_one_too_many(sender, now=self._clock.now())
        stored = await self._database.write(self._store, message, is_loop=is_loop)
        if stored is None:
            return True
        log.info("message_received", extra={"characters": len(message.text)})
        self._follow(stored)
        if stored.is_talk:
            now = self._clock.now()
            self._loops.note(sender, at_once=at_once, is_loop=is_loop, now=now)
            await self._tell_of_loops(message.chat, is_loop=is_loop, now=now)
        return True

    def _follow(self, stored: _Stored) -> None:
        chat, done = stored.chat, stored.done
        if done is not None and (done.abort or done.begins_session):
            self._background.start(f"follow:{chat}", lambda: self._rules.follow(done, chat))

    async def _receive_failed(self, message: NewMessage) -> bool:
        """Keep a message that nothing can be made of, so that it does not stop all others."""
        is_admitted = False
        try:
            message = _sanitized(message)
            is_admitted = await self._is_admitted(message)
            if is_admitted and (message.is_addressed or not message.is_group):
                await self._database.write(self._set_aside_failed, message)
        except (StoreBusyError, CorruptDatabaseError):
            raise
        except Exception:
            log.exception("message_lost", extra=_naming(message))
        return is_admitted

    def _set_aside_failed(self, tx: Transaction, message: NewMessage) -> None:
        now = self._clock.now()
        recorded = record_message(tx, message, now=now, reason="failed")
        if recorded is None:
            return
        cut = self._rules.cuts[recorded.chat.channel]
        store_text(tx, recorded.chat, DeliveryKind.NOTICE, texts.NOT_TAKEN, cut, now=now)

    async def _is_at_once(self, message: NewMessage) -> bool:
        """Whether it follows our last message at once, where machines may talk to us."""
        if not message.is_group and message.chat.channel is not ChannelName.WHATSAPP:
            return False
        return is_at_once(message.sent_at, await self._database.read(_last_sent, message.chat))

    async def _tell_of_loops(self, chat: ChatKey, *, is_loop: bool, now: datetime) -> None:
        if is_loop:
            await self._owner.tell(Episode.LOOP, texts.LOOP_STOPPED.format(chat))
        elif not self._loops.is_any_looping(now=now):
            await self._owner.over(Episode.LOOP)

    async def _continues(self, message: NewMessage) -> bool:
        """Whether it is a further part of a long text that began with the bot's name."""
        return await self._database.read(
            is_continued, message.chat, message.sender_id, now=self._clock.now()
        )

    def _store(self, tx: Transaction, message: NewMessage, *, is_loop: bool) -> _Stored | None:
        """T1 or T1c, whichever the message asks for; None = it was stored before.

        Runs whole in the writer.
        """
        now = self._clock.now()
        is_press = message.kind is MessageKind.BUTTON
        if not is_press and now - message.sent_at > self._rules.max_age:
            return self._set_aside(tx, message, now=now)
        stored = self._take(tx, message, is_loop=is_loop, now=now)
        return None if stored is None else self._note_activity(tx, stored, now=now)

    def _take(
        self, tx: Transaction, message: NewMessage, *, is_loop: bool, now: datetime
    ) -> _Stored | None:
        if message.kind is MessageKind.BUTTON:
            return self._answer(tx, message, "command", lambda a: press(tx, message, a), now=now)
        command = parse_command(message.text)
        if command is not None:
            return self._answer(
                tx, message, "command", lambda a: run_command(tx, command, a), now=now
            )
        if is_loop:
            return self._record(tx, message, "loop", now=now)
        if message.quoted_external_id is not None:
            chat = resolve_chat(tx.connection, message.chat)
            asking = self._asking(tx.connection, chat, message, now=now)
            reply = read_reply(tx.connection, message, asking)
            if reply is not None:
                return self._answer(tx, message, "command", lambda _: reply(tx), now=now)
        if not message.text.strip():
            return self._take_textless(tx, message, now=now)
        return self._admit(tx, message, now=now)

    def _note_activity(self, tx: Transaction, stored: _Stored, *, now: datetime) -> _Stored:
        """A person did something: their silence begins anew, and a check-in is not needed.

        Where there are no check-ins, none can be open: those of an earlier start are recovered.
        """
        if self._rules.heartbeat is None:
            return stored
        chat = resolve_chat(tx.connection, stored.chat)
        note_activity(tx, chat, interval=self._rules.heartbeat, now=now)
        run = cancel_heartbeat(tx, chat, now=now)
        if run is None:
            return stored
        done = stored.done or Done(text="")
        return replace(stored, done=replace(done, abort=(*done.abort, run)))

    def _admit(self, tx: Transaction, message: NewMessage, *, now: datetime) -> _Stored | None:
        turn = admit_message(tx, message, now=now)
        return None if turn is None else _Stored(chat=message.chat, is_talk=True)

    def _record(
        self, tx: Transaction, message: NewMessage, reason: str, *, now: datetime
    ) -> _Stored | None:
        """Store a message that is not answered."""
        recorded = record_message(tx, message, now=now, reason=reason)
        return None if recorded is None else _Stored(chat=recorded.chat, is_talk=True)

    def _asking(
        self, connection: Connection, chat: ChatKey, message: NewMessage, *, now: datetime
    ) -> Asking:
        zone = self._zone(connection, chat)
        # A clock ahead of ours must not put off a reminder for longer.
        said_at = min(message.sent_at, now)
        return Asking(chat=chat, now=now, said_at=said_at, timezone=zone, host=self._rules.host)

    def _zone(self, connection: Connection, chat: ChatKey) -> str:
        """The chat's own zone counts before the configured one."""
        known = load_chat(connection, chat)
        return known.timezone if known is not None and known.timezone else self._rules.timezone

    def _answer(
        self,
        tx: Transaction,
        message: NewMessage,
        reason: str,
        effect: Callable[[Asking], Done],
        *,
        now: datetime,
    ) -> _Stored | None:
        """T1c: the message, its effect and its answer in one commit; a repeat does nothing."""
        recorded = record_message(tx, message, now=now, reason=reason)
        if recorded is None:
            return None
        chat = recorded.chat
        done = effect(self._asking(tx.connection, chat, message, now=now))
        store_answer(tx, chat, done, self._rules.cuts[chat.channel], now=now)
        return _Stored(chat=chat, is_talk=reason == "unsupported", done=done)

    def _take_textless(
        self, tx: Transaction, message: NewMessage, *, now: datetime
    ) -> _Stored | None:
        """Media alone joins the message that it belongs to, or gets one line; never silence."""
        if message.hold is not None and is_held(tx.connection, message.chat, now=now):
            return self._admit(tx, message, now=now)
        chat = resolve_chat(tx.connection, message.chat)
        if was_answered_lately(tx.connection, chat, "unsupported", since=now - _MEDIA_QUIET):
            return self._record(tx, message, "unsupported", now=now)
        only_text = Done(text=texts.ONLY_TEXT)
        return self._answer(tx, message, "unsupported", lambda _: only_text, now=now)

    def _set_aside(self, tx: Transaction, message: NewMessage, *, now: datetime) -> _Stored | None:
        """A message that waited too long is named, not answered."""
        recorded = record_message(tx, message, now=now, reason="too_old")
        if recorded is None:
            return None
        chat = recorded.chat
        zone = self._zone(tx.connection, chat)
        note_too_old(tx, chat, self._rules.cuts[chat.channel], timezone=zone, now=now)
        return _Stored(chat=chat)

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


def _sanitized(message: NewMessage) -> NewMessage:
    """The message without what cannot be stored."""
    return replace(
        message,
        text=sanitize(message.text),
        sender_name=sanitize(message.sender_name),
        quoted=None if message.quoted is None else sanitize(message.quoted),
    )


def _last_sent(connection: Connection, chat: ChatKey) -> datetime | None:
    return last_sent_at(connection, resolve_chat(connection, chat))


def _naming(inbound: Inbound) -> dict[str, str]:
    """What the log says of a thing that could not be taken; never its words."""
    named = {"kind": type(inbound).__name__}
    if isinstance(inbound, NewMessage | Edit):
        named["external_id"] = inbound.external_id
    return named
