"""The console channel: a terminal with a prompt, or a script on standard input."""

import asyncio
import logging
import os
import sys
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

from gateway.channels.base import ChannelHealth, ChannelState, Receive, Target
from gateway.channels.markup import from_markdown
from gateway.domain.button import Button
from gateway.domain.chunking import CONSOLE, EntityKind, RichText, split
from gateway.domain.delivery import NotSent, NotSentReason, SendOutcome, Sent
from gateway.domain.message import ChannelName, ChatKey, NewMessage
from gateway.errors import StoreError

log = logging.getLogger(__name__)

CHAT = ChatKey(ChannelName.CONSOLE, "local")
ACCOUNT = "local"

WELCOME = """\
Chat gateway: a bot that keeps your reminders, in this terminal or on Telegram.
Chat here: run `gateway chat` in a terminal (make run ARGS=chat), or pipe lines into it.
Try: remind me in 20 minutes to call mum
Telegram: get a token from @BotFather, put TELEGRAM_BOT_TOKEN and TELEGRAM_ALLOWLIST into .env,
then run `gateway` (make run). README.md shows how to find your id and how to connect a model."""

_READ_SIZE = 65536


class Surface(Protocol):
    """Where lines come from and texts go to."""

    @property
    def is_script(self) -> bool:
        """Whether lines wait for the answers to those above them."""
        ...

    async def read_line(self) -> str | None:
        """The next line without its end; None = there is no more."""
        ...

    async def show(self, body: RichText) -> None:
        """Show one text; raises OSError when nobody can see it any more."""
        ...

    def show_typing(self) -> None:
        """Show that an answer is being prepared."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsoleRules:
    """How the console session goes.

    `settled` returns when all that was said is answered; `linger` is how many seconds to stay
    after the end of input, `retry_after` how many to wait for a store that could not take a line.
    """

    settled: Callable[[], Awaitable[None]]
    linger: float = 0.0
    retry_after: float = 1.0


class ConsoleChannel:
    """One chat, `console:local`, with whoever sits at the terminal."""

    name = ChannelName.CONSOLE
    account = ACCOUNT

    def __init__(self, surface: Surface, rules: ConsoleRules) -> None:
        self._surface = surface
        self._rules = rules
        self._health = ChannelHealth(state=ChannelState.STOPPED)
        self._session = f"{datetime.now(UTC):%Y%m%dT%H%M%S%f}-{os.getpid()}"
        self._said = 0
        self._sent = 0
        self._is_unseen = asyncio.Event()

    @property
    def health(self) -> ChannelHealth:
        """Where it stands now."""
        return self._health

    def cut(self, text: str, *, is_markdown: bool) -> tuple[RichText, ...]:
        """One piece, whatever its length."""
        rich = from_markdown(text) if is_markdown else RichText.literal(text)
        return split(rich, CONSOLE)

    async def run(self, receive: Receive) -> None:
        """Take lines until there are no more, stay for the linger, and return.

        Returns early when nobody can see the answers any more; what was not shown waits for the
        next start.
        """
        self._mark(ChannelState.CONNECTED)
        talking = asyncio.create_task(self._talk(receive), name="console-talk")
        unseen = asyncio.create_task(self._is_unseen.wait(), name="console-unseen")
        try:
            await asyncio.wait({talking, unseen}, return_when=asyncio.FIRST_COMPLETED)
            if talking.done():
                talking.result()
        finally:
            talking.cancel()
            unseen.cancel()
            await asyncio.gather(talking, unseen, return_exceptions=True)
            self._mark(ChannelState.STOPPED)

    async def _talk(self, receive: Receive) -> None:
        await self._take_lines(receive)
        await asyncio.sleep(self._rules.linger)
        await self._settle()

    async def _take_lines(self, receive: Receive) -> None:
        await self._settle()
        while (line := await self._surface.read_line()) is not None:
            self._mark(ChannelState.CONNECTED)
            if line.strip():
                self._said += 1
                await self._hand_over(self._message(line, self._said), receive)
                await self._settle()
        if not self._said and self._surface.is_script:
            await self._show(RichText.literal(WELCOME))

    async def _hand_over(self, message: NewMessage, receive: Receive) -> None:
        """Nobody hands a line over again but we: try until it is stored."""
        while True:
            try:
                await receive(message)
            except StoreError:
                log.exception("line_not_stored")
                await asyncio.sleep(self._rules.retry_after)
            else:
                return

    async def _settle(self) -> None:
        if self._surface.is_script:
            await self._rules.settled()

    async def send(
        self, target: Target, body: RichText, *, buttons: tuple[Button, ...] = ()
    ) -> SendOutcome:
        """Show one text, which may take the place of one shown before; there are no buttons."""
        if not await self._show(body):
            return NotSent(reason=NotSentReason.CHANNEL_DOWN)
        self._sent += 1
        return Sent(external_id=f"{self._session}:{self._sent}")

    async def show_typing(self, target: Target) -> None:
        """Show that an answer is being prepared."""
        self._surface.show_typing()

    async def close(self) -> None:
        """Nothing is held."""

    async def _show(self, body: RichText) -> bool:
        try:
            await self._surface.show(body)
        except OSError as error:
            self._mark(ChannelState.DISCONNECTED, reason=str(error))
            self._is_unseen.set()
            return False
        return True

    def _mark(self, state: ChannelState, *, reason: str | None = None) -> None:
        is_ok = state is ChannelState.CONNECTED
        last_ok_at = datetime.now(UTC) if is_ok else self._health.last_ok_at
        self._health = ChannelHealth(state=state, reason=reason, last_ok_at=last_ok_at)

    def _message(self, line: str, number: int) -> NewMessage:
        return NewMessage(
            chat=CHAT,
            account=ACCOUNT,
            address=CHAT.address,
            external_id=f"{self._session}:{number}",
            sender_id=ACCOUNT,
            sender_name="you",
            chat_addresses=(CHAT.address,),
            sender_addresses=(ACCOUNT,),
            text=line,
            sent_at=datetime.now(UTC),
        )


class ScriptSurface:
    """Standard input and output as a script sees them: plain text, a blank line between texts."""

    is_script = True

    def __init__(self) -> None:
        self._lines = _LineReader(sys.stdin.fileno())
        self._has_shown = False

    async def read_line(self) -> str | None:
        """The next line; it is read only when it is asked for."""
        return await self._lines.next()

    async def show(self, body: RichText) -> None:
        """Write a text; what was shown before is set off by a blank line."""
        text = plain_text(body) + "\n"
        if self._has_shown:
            text = "\n" + text
        self._has_shown = True
        await asyncio.to_thread(_write_all, text.encode("utf-8", "replace"))

    def show_typing(self) -> None:
        """A script does not look."""


def plain_text(body: RichText) -> str:
    """A text without marks; links show where they lead."""
    encoded = body.text.encode("utf-16-le")
    for entity in sorted(body.entities, key=lambda e: -(e.offset + e.length)):
        if entity.kind is EntityKind.TEXT_LINK and entity.url:
            end = (entity.offset + entity.length) * 2
            shown = encoded[entity.offset * 2 : end].decode("utf-16-le")
            if shown != entity.url:
                encoded = encoded[:end] + f" ({entity.url})".encode("utf-16-le") + encoded[end:]
    return encoded.decode("utf-16-le")


class _LineReader:
    """Lines of a file descriptor, read on demand in a thread that the exit does not wait for.

    It reads the descriptor itself: a thread that blocks in `sys.stdin` holds a lock which the
    interpreter needs at its end.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._buffer = b""
        self._is_ended = False

    async def next(self) -> str | None:
        while b"\n" not in self._buffer and not self._is_ended:
            data = await self._read()
            self._is_ended = not data
            self._buffer += data
        if not self._buffer:
            return None
        line, _, self._buffer = self._buffer.partition(b"\n")
        return line.decode("utf-8", "replace").rstrip("\r")

    async def _read(self) -> bytes:
        loop = asyncio.get_running_loop()
        future: asyncio.Future[bytes] = loop.create_future()

        def read() -> None:
            try:
                data = os.read(self._descriptor, _READ_SIZE)
            except OSError:
                data = b""
            # The loop may be gone by the time that somebody types.
            if not loop.is_closed():
                loop.call_soon_threadsafe(resolve, data)

        def resolve(data: bytes) -> None:
            if not future.done():
                future.set_result(data)

        threading.Thread(target=read, name="console-read", daemon=True).start()
        return await future


def _write_all(data: bytes) -> None:
    descriptor = sys.stdout.fileno()
    while data:
        data = data[os.write(descriptor, data) :]


def open_surface(history: Path) -> Surface:
    """The surface that fits standard input: a terminal's prompt, or a script."""
    if sys.stdin.isatty() and sys.stdout.isatty():
        from gateway.channels.terminal import TerminalSurface

        return TerminalSurface(history)
    return ScriptSurface()
