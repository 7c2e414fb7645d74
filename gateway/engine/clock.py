"""The wall clock as the workers see it, and waiting for a moment or a wake-up."""

import asyncio
from contextlib import suppress
from datetime import UTC, datetime
from typing import Protocol

_LONGEST_NAP = 30.0


class Clock(Protocol):
    """Tells the time, and waits."""

    def now(self) -> datetime:
        """The present moment, aware UTC."""
        ...

    async def wait(self, wakeup: asyncio.Event, until: datetime | None) -> None:
        """Return when `wakeup` is set (and clear it), or when `until` has come."""
        ...


class SystemClock:
    """The machine's clock. A wait is cut into naps, so that a clock that jumps is noticed."""

    def now(self) -> datetime:
        """The present moment, aware UTC."""
        return datetime.now(UTC)

    async def wait(self, wakeup: asyncio.Event, until: datetime | None) -> None:
        """Return when `wakeup` is set (and clear it), or when `until` has come."""
        while not wakeup.is_set():
            nap = None if until is None else (until - self.now()).total_seconds()
            if nap is not None and nap <= 0:
                return
            with suppress(TimeoutError):
                async with asyncio.timeout(None if nap is None else min(nap, _LONGEST_NAP)):
                    await wakeup.wait()
        wakeup.clear()
