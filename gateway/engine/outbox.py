"""The worker that settles deliveries: per chat, one chunk at a time."""

import asyncio
import contextlib
import logging
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta

from gateway.channels.base import Channel, Target
from gateway.domain.delivery import DeliveryKind, SendOutcome, Unknown, Verdict
from gateway.domain.message import ChannelName, ChatKey
from gateway.engine.access import Access
from gateway.engine.clock import Clock
from gateway.engine.lanes import Lanes, Patience
from gateway.engine.typing import Typing
from gateway.errors import GatewayError
from gateway.log_context import bind
from gateway.store.database import Change, Database, Topic, Transaction
from gateway.store.deliveries import release_channel
from gateway.store.sending import (
    SendRules,
    Wait,
    begin_send,
    finish_send,
    mark_channel_down,
    open_delivery_chats,
)
from gateway.store.wire import ToSend

log = logging.getLogger(__name__)

SEND_DEADLINE = 300.0
"""Seconds after which a channel that does not return from a send is not waited for."""


class Outbox:
    """Sends what the store holds. Every chunk is written down before and after the network."""

    def __init__(
        self,
        database: Database,
        channels: Mapping[ChannelName, Channel],
        access: Access,
        clock: Clock,
        typing: Typing,
        *,
        expiry: timedelta,
    ) -> None:
        self._database = database
        self._channels = channels
        self._clock = clock
        self._typing = typing
        self._rules = {
            name: SendRules(
                account=channel.account,
                cut=channel.cut,
                admits=access.admits_chat,
                expiry=expiry,
            )
            for name, channel in channels.items()
        }
        self._lanes = Lanes("outbox", self._work, clock)
        self._is_looking = False

    def _on_commit(self, changes: frozenset[Change]) -> None:
        self._lanes.hint(c.chat for c in changes if c.topic is Topic.DELIVERIES)

    async def look(self, served: Iterable[ChannelName]) -> None:
        """Look at every chat of these channels that has something to send; before, nothing is."""
        if not self._is_looking:
            self._is_looking = True
            self._database.subscribe(self._on_commit)
        self._lanes.hint(await self._database.read(open_delivery_chats, tuple(served)))

    async def channel_is_up(self, name: ChannelName) -> None:
        """Send at once what waited for the channel."""
        if await self._database.insist(release_channel, name):
            await self.look((name,))

    async def close(self, patience: Patience, *, grace: float) -> None:
        """Start no send any more; those on the wire have `grace` seconds to come back."""
        await self._lanes.close(patience, grace=grace)

    async def _work(self, chat: ChatKey) -> datetime | None:
        channel = self._channels.get(chat.channel)
        if channel is None:
            await self._database.insist(mark_channel_down, chat)
            return None
        rules = self._rules[chat.channel]
        if not self._lanes.is_open:
            return None
        with bind(chat=chat):
            return await self._send_all(channel, chat, rules)

    async def _send_all(self, channel: Channel, chat: ChatKey, rules: SendRules) -> datetime | None:
        """Send the chat's chunks until none may go out; returns when the next one may."""
        step = await self._database.insist(begin_send, chat, rules, now=self._clock.now())
        while isinstance(step, ToSend):
            with bind(delivery=step.delivery):
                step = await self._send(channel, chat, step, rules)
        return step.until

    async def _send(
        self, channel: Channel, chat: ChatKey, step: ToSend, rules: SendRules
    ) -> ToSend | Wait:
        """Send a chunk and note what became of it; returns what comes next, on the wire already."""
        is_reply = step.kind is DeliveryKind.REPLY
        with self._typing.hold(chat) if is_reply else contextlib.nullcontext():
            outcome = await self._outcome(channel, step)
        verdict, following = await self._settle(chat, step, outcome, rules)
        log.info(
            "chunk_settled",
            extra={
                "number": step.chunk.number,
                "state": verdict.state,
                "reason": verdict.reason,
            },
        )
        return following

    async def _settle(
        self, chat: ChatKey, step: ToSend, outcome: SendOutcome, rules: SendRules
    ) -> tuple[Verdict, ToSend | Wait]:
        """T5, in one commit with the T4 of what comes next, unless nothing may begin any more."""
        if self._lanes.is_open:
            try:
                return await self._database.insist(
                    _finish_and_begin, chat, step, outcome, rules, now=self._clock.now()
                )
            except GatewayError:
                # What became of this chunk must not hang on the state of the next one.
                log.exception("next_send_failed")
        now = self._clock.now()
        verdict = await self._database.insist(finish_send, step, outcome, rules, now=now)
        return verdict, Wait(until=now)

    async def _outcome(self, channel: Channel, step: ToSend) -> SendOutcome:
        try:
            async with asyncio.timeout(SEND_DEADLINE):
                target = Target(address=step.address, edits=step.edits)
                return await channel.send(target, step.body, buttons=step.buttons)
        except TimeoutError:
            return Unknown(reason="no answer", answered=False)
        except Exception as error:
            log.exception("send_failed")
            return Unknown(reason=type(error).__name__, answered=False)


def _finish_and_begin(
    tx: Transaction,
    chat: ChatKey,
    step: ToSend,
    outcome: SendOutcome,
    rules: SendRules,
    *,
    now: datetime,
) -> tuple[Verdict, ToSend | Wait]:
    verdict = finish_send(tx, step, outcome, rules, now=now)
    return verdict, begin_send(tx, chat, rules, now=now)
