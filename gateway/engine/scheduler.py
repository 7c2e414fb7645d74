"""The worker that fires due jobs; the store says what is due, clocks only wake it."""

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Protocol

from gateway.engine.clock import Clock
from gateway.store.database import Change, Database, Topic
from gateway.store.firing import FireRules, fire_due
from gateway.store.jobs import earliest_slot

log = logging.getLogger(__name__)

SWEEP = timedelta(seconds=30)
"""The longest time between two looks at the store, whatever the alarm clock does."""

_JUMP = timedelta(seconds=5)
_ERROR_PAUSE = 1.0


class Alarm(Protocol):
    """Rings at one moment, by the wall clock."""

    def set(self, moment: datetime | None, ring: Callable[[], None]) -> None:
        """Replace the moment; None = silence."""
        ...


class Scheduler:
    """Looks when a job changed, when the alarm rings, and each `sweep` on the monotonic clock,
    so that a wall clock that jumps makes nothing late for longer.
    """

    def __init__(
        self,
        database: Database,
        rules: FireRules,
        clock: Clock,
        alarm: Alarm,
        *,
        sweep: timedelta = SWEEP,
    ) -> None:
        self._database = database
        self._rules = rules
        self._clock = clock
        self._alarm = alarm
        self._sweep = sweep
        self._wakeup = asyncio.Event()
        database.subscribe(self._on_commit)

    def _on_commit(self, changes: frozenset[Change]) -> None:
        if any(change.topic is Topic.JOBS for change in changes):
            self._wakeup.set()

    async def run(self) -> None:
        """Fire what is due, for ever."""
        while True:
            try:
                await self.tick()
            except Exception:
                log.exception("scheduler_failed")
                await asyncio.sleep(_ERROR_PAUSE)
                continue
            await self._wait()

    async def tick(self) -> int:
        """Fire what is due now and set the alarm to the next slot; returns how many fired."""
        self._wakeup.clear()
        fired = 0
        while count := await self._database.insist(fire_due, self._rules, now=self._clock.now()):
            fired += count
        earliest = await self._database.read(earliest_slot, self._rules.channels)
        self._alarm.set(earliest, self._wakeup.set)
        if fired:
            log.info("jobs_fired", extra={"count": fired})
        return fired

    async def _wait(self) -> None:
        loop = asyncio.get_running_loop()
        wall, began = self._clock.now(), loop.time()
        with suppress(TimeoutError):
            async with asyncio.timeout(self._sweep.total_seconds()):
                await self._wakeup.wait()
        elapsed = timedelta(seconds=loop.time() - began)
        jump = self._clock.now() - wall - elapsed
        if abs(jump) > _JUMP:
            log.warning("clock_jumped", extra={"seconds": round(jump.total_seconds(), 1)})
