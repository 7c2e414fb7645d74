"""Shows in a chat that an answer is being prepared, from the first queued moment to the last."""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Iterator

from gateway.domain.message import ChatKey
from gateway.log_context import bind

log = logging.getLogger(__name__)

INTERVAL = 4.0
"""Seconds between two signals; Telegram's lasts five."""

DELAY = 0.05
"""Seconds before the first signal: an answer that is there at once needs none, and is not held up
by it.
"""

Show = Callable[[ChatKey], Awaitable[None]]


class Typing:
    """Repeats the signal for each chat that somebody holds it for, `limit` seconds at most."""

    def __init__(
        self, show: Show, *, limit: float, interval: float = INTERVAL, delay: float = DELAY
    ) -> None:
        self._show = show
        self._limit = limit
        self._interval = interval
        self._delay = delay
        self._holders: dict[ChatKey, int] = {}
        self._tasks: dict[ChatKey, asyncio.Task[None]] = {}

    @contextlib.contextmanager
    def hold(self, chat: ChatKey) -> Iterator[None]:
        """Show it while inside."""
        self._holders[chat] = self._holders.get(chat, 0) + 1
        if chat not in self._tasks:
            self._tasks[chat] = asyncio.create_task(self._repeat(chat), name=f"typing:{chat}")
        try:
            yield
        finally:
            self._holders[chat] -= 1
            if not self._holders[chat]:
                del self._holders[chat]
                self._tasks.pop(chat).cancel()

    async def _repeat(self, chat: ChatKey) -> None:
        with bind(chat=chat), contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._limit):
                await asyncio.sleep(self._delay)
                while True:
                    await self._show_once(chat)
                    await asyncio.sleep(self._interval)

    async def _show_once(self, chat: ChatKey) -> None:
        try:
            await self._show(chat)
        except Exception:
            log.exception("typing_failed")
