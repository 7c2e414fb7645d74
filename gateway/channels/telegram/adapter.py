"""The Telegram channel: what the engine sees of it."""

import sys
from datetime import UTC, datetime
from types import ModuleType
from typing import TYPE_CHECKING, cast

from gateway.channels.base import (
    ChannelHealth,
    ChannelState,
    HealthChanged,
    Receive,
    Target,
)
from gateway.channels.markup import from_markdown
from gateway.channels.telegram.pacing import Pacer, Timing
from gateway.channels.telegram.place import Place
from gateway.domain.button import Button
from gateway.domain.chunking import TELEGRAM, RichText, split
from gateway.domain.delivery import Rejected, SendOutcome
from gateway.domain.message import ChannelName
from gateway.errors import ChannelSetupError

if TYPE_CHECKING:
    from gateway.channels.telegram.connection import Connection


class TelegramChannel:
    """One bot on Telegram. `health_changed` is told when state or reason changes."""

    name = ChannelName.TELEGRAM

    def __init__(
        self,
        token: str,
        *,
        base_url: str,
        health_changed: HealthChanged | None = None,
        timing: Timing | None = None,
        pacer: Pacer | None = None,
    ) -> None:
        self._token = token
        self._base_url = base_url
        self._health_changed = health_changed
        self._timing = timing or Timing()
        self._pacer = pacer or Pacer()
        self._health = ChannelHealth(state=ChannelState.STOPPED)
        self._opened: Connection | None = None

    @property
    def account(self) -> str:
        """The bot's id, which is the first part of its token."""
        return self._token.partition(":")[0]

    @property
    def health(self) -> ChannelHealth:
        return self._health

    def cut(self, text: str, *, is_markdown: bool) -> tuple[RichText, ...]:
        rich = from_markdown(text) if is_markdown else RichText.literal(text)
        return split(rich, TELEGRAM)

    async def run(self, receive: Receive) -> None:
        self._report(ChannelState.CONNECTING, None)
        try:
            await self._connection().poller.run(receive)
        except ChannelSetupError as error:
            self._report(ChannelState.FAILED, str(error))
            raise
        except BaseException:
            self._report(ChannelState.STOPPED, None)
            raise

    async def send(
        self, target: Target, body: RichText, *, buttons: tuple[Button, ...] = ()
    ) -> SendOutcome:
        try:
            place = Place.parse(target.address)
        except ValueError:
            return Rejected(reason="not an address on Telegram", chat_gone=True)
        return await self._connection().sender.send(
            place, body, edits=target.edits, buttons=buttons
        )

    async def show_typing(self, target: Target) -> None:
        await self._connection().client.show_typing(Place.parse(target.address))

    async def close(self) -> None:
        if self._opened is not None:
            await self._opened.client.close()

    def _connection(self) -> "Connection":
        if self._opened is None:
            # Not at the top: importing the library takes longer than all else at start, and a
            # third of that is httpx's command line unless it seems not to be installed.
            sys.modules.setdefault("httpx._main", cast(ModuleType, None))
            from gateway.channels.telegram.connection import connect

            self._opened = connect(
                self._token,
                base_url=self._base_url,
                timing=self._timing,
                pacer=self._pacer,
                report=self._report,
            )
        return self._opened

    def _report(self, state: ChannelState, reason: str | None) -> None:
        before = self._health
        last_ok_at = datetime.now(UTC) if state is ChannelState.CONNECTED else before.last_ok_at
        self._health = ChannelHealth(state=state, reason=reason, last_ok_at=last_ok_at)
        if self._health_changed and (before.state, before.reason) != (state, reason):
            self._health_changed(self)
