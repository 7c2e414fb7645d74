"""A clock that stands still until a test moves it."""

import asyncio
from datetime import UTC, datetime, timedelta

START = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)


class ManualClock:
    """Implements `gateway.engine.clock.Clock`; moving it wakes whoever waits for a moment."""

    def __init__(self, now: datetime = START) -> None:
        self._now = now
        self._moved = asyncio.Event()
        self._waiting = 0

    def now(self) -> datetime:
        return self._now

    @property
    def waiting(self) -> int:
        """How many are waiting."""
        return self._waiting

    def advance(self, step: timedelta) -> datetime:
        """Move on (or back, for a clock that was set) and wake the waiters; returns the time."""
        return self.set(self._now + step)

    def set(self, now: datetime) -> datetime:
        """Move to a moment and wake the waiters."""
        self._now = now
        self._moved.set()
        self._moved = asyncio.Event()
        return now

    async def wait(self, wakeup: asyncio.Event, until: datetime | None) -> None:
        """Return when `wakeup` is set (and clear it), or when `until` has come."""
        self._waiting += 1
        try:
            while not wakeup.is_set():
                if until is not None and until <= self._now:
                    return
                await self._first_of(wakeup, self._moved)
            wakeup.clear()
        finally:
            self._waiting -= 1

    async def _first_of(self, *events: asyncio.Event) -> None:
        tasks = [asyncio.create_task(event.wait()) for event in events]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
