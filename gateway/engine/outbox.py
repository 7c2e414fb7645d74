"""The worker that settles deliveries: per chat, one chunk at a time."""

import asyncio
import contextlib
import logging
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta

from gateway.channels.base import Channel, Target
from gateway.domain.delivery import DeliveryKind, SendOutcome, Unknown
from gateway.domain.message import ChannelName, ChatKey
from gateway.engine.access import Access
from gateway.engine.clock import Clock
from gateway.engine.lanes import Lanes, Patience
from gateway.engine.typing import Typing
from gateway.store.database import Change, Database, Topic
from gateway.store.deliveries import release_channel
from gateway.store.sending import (
    SendRules,
    ToSend,
    Wait,
    begin_send,
    finish_send,
    mark_channel_down,
    open_delivery_chats,
)

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
        database.subscribe(self._on_commit)

    def _on_commit(self, changes: frozenset[Change]) -> None:
        self._lanes.hint(c.chat for c in changes if c.topic is Topic.DELIVERIES)

    async def look(self, served: Iterable[ChannelName]) -> None:
        """Look at every chat of these channels that has something to send."""
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
        while self._lanes.is_open:
            step = await self._database.insist(begin_send, chat, rules, now=self._clock.now())
            if isinstance(step, Wait):
                return step.until
            await self._send(channel, chat, step, rules)
        return None

    async def _send(self, channel: Channel, chat: ChatKey, step: ToSend, rules: SendRules) -> None:
        is_reply = step.kind is DeliveryKind.REPLY
        with self._typing.hold(chat) if is_reply else contextlib.nullcontext():
            outcome = await self._outcome(channel, step)
        verdict = await self._database.insist(
            finish_send, step, outcome, rules, now=self._clock.now()
        )
        log.info(
            "chunk_settled",
            extra={
                "chat": str(chat),
                "delivery": step.delivery,
                "number": step.chunk.number,
                "state": verdict.state,
                "reason": verdict.reason,
            },
        )

    async def _outcome(self, channel: Channel, step: ToSend) -> SendOutcome:
        try:
            async with asyncio.timeout(SEND_DEADLINE):
                return await channel.send(Target(address=step.address), step.chunk.to_send())
        except TimeoutError:
            return Unknown(reason="no answer", answered=False)
        except Exception as error:
            log.exception("send_failed", extra={"delivery": step.delivery})
            return Unknown(reason=type(error).__name__, answered=False)
