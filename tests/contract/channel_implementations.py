"""Every channel that the contract suite runs over: one entry each."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Protocol

from gateway.channels.base import Channel, Target
from gateway.channels.console import CHAT, ConsoleChannel, ConsoleRules, plain_text
from gateway.channels.telegram import Pacer, TelegramChannel, Timing
from gateway.domain.chunking import RichText
from tests.fakes import bot_api_updates as updates
from tests.fakes.bot_api import BotApi


class Stage(Protocol):
    """A channel with somebody at its other end."""

    @property
    def channel(self) -> Channel:
        """The channel, not running yet."""
        ...

    @property
    def target(self) -> Target:
        """Where that somebody reads."""
        ...

    async def say(self, text: str) -> None:
        """Somebody writes to the bot."""
        ...

    def shown(self) -> list[str]:
        """The texts that somebody was shown, in order."""
        ...

    async def break_off(self) -> None:
        """The platform cannot be reached from now on."""
        ...

    async def mend(self) -> None:
        """It can be reached again."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Implementation:
    """One channel; `hands_over_again` says that its platform keeps what was not confirmed."""

    name: str
    open: Callable[[], AbstractAsyncContextManager[Stage]]
    hands_over_again: bool


class _TelegramStage:
    def __init__(self, api: BotApi) -> None:
        self._api = api
        self.target = Target(address="7")
        self.channel = TelegramChannel(
            api.token,
            base_url=api.base_url,
            timing=Timing(poll_timeout=1, poll_slack=0.3, first_wait=0.01, longest_wait=0.05),
            pacer=Pacer(sleep=lambda _: asyncio.sleep(0)),
        )

    async def say(self, text: str) -> None:
        self._api.push(updates.text(text))

    def shown(self) -> list[str]:
        return self._api.texts(7)

    async def break_off(self) -> None:
        await self._api.stop()

    async def mend(self) -> None:
        await self._api.start()


@asynccontextmanager
async def _telegram() -> AsyncIterator[Stage]:
    async with BotApi() as api:
        stage = _TelegramStage(api)
        yield stage
        await stage.channel.close()


class _Desk:
    """A surface whose reader sits in the test."""

    is_script = True

    def __init__(self) -> None:
        self.lines: asyncio.Queue[str | None] = asyncio.Queue()
        self.texts: list[str] = []
        self.is_broken = False

    async def read_line(self) -> str | None:
        return await self.lines.get()

    async def show(self, body: RichText) -> None:
        if self.is_broken:
            raise BrokenPipeError("nobody reads")
        self.texts.append(plain_text(body))

    def show_typing(self) -> None:
        pass


class _ConsoleStage:
    def __init__(self) -> None:
        self._desk = _Desk()
        self.target = Target(address=CHAT.address)
        rules = ConsoleRules(settled=lambda: asyncio.sleep(0), retry_after=0)
        self.channel = ConsoleChannel(self._desk, rules)

    async def say(self, text: str) -> None:
        await self._desk.lines.put(text)

    def shown(self) -> list[str]:
        return self._desk.texts

    async def break_off(self) -> None:
        self._desk.is_broken = True

    async def mend(self) -> None:
        self._desk.is_broken = False


@asynccontextmanager
async def _console() -> AsyncIterator[Stage]:
    yield _ConsoleStage()


IMPLEMENTATIONS = (
    Implementation(name="telegram", open=_telegram, hands_over_again=True),
    Implementation(name="console", open=_console, hands_over_again=True),
)
