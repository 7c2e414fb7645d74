"""The worker that makes due things happen; the store says what is due, clocks only wake it."""

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Protocol

from sqlalchemy import Connection

from gateway.engine.clock import Clock
from gateway.store.database import Change, Database, Topic
from gateway.store.fallback import earliest_fallback, fall_back_overdue
from gateway.store.firing import FireRules, earliest_slot, fire_due, fire_late_prompts
from gateway.store.heartbeats import earliest_heartbeat, queue_heartbeats
from gateway.store.missed import realign

log = logging.getLogger(__name__)

SWEEP = timedelta(seconds=30)
"""The longest time between two looks at the store, whatever the alarm clock does."""

LATE_PROMPTS_AT_START = 5
LATE_PROMPTS_A_SWEEP = 3
"""So many turns for a model that are late already are begun; the others wait for a later sweep."""

_JUMP = timedelta(seconds=5)
_ERROR_PAUSE = 1.0


class Alarm(Protocol):
    """Rings at one moment, by the wall clock."""

    def set(self, moment: datetime | None, ring: Callable[[], None]) -> None:
        """Replace the moment; None = silence."""
        ...


class Scheduler:
    """Fires due jobs, sends the texts of those that no model answered, and queues check-ins.

    It looks when a job changed, when the alarm rings, and each `sweep` on the monotonic clock, so
    that a wall clock that jumps makes nothing late for longer.
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
        self._clocks: tuple[datetime, float] | None = None
        # Also at the start: the clock may have been set back while nobody looked.
        self._is_set_back = True
        self._late_prompts = LATE_PROMPTS_AT_START
        self._more_late_at: float | None = None
        self.last_look_at: datetime | None = None
        """When the last look was completed; None = none was yet."""
        database.subscribe(self._on_commit)

    def _on_commit(self, changes: frozenset[Change]) -> None:
        if any(change.topic is Topic.JOBS for change in changes):
            self._wakeup.set()

    async def run(self) -> None:
        """Make happen what is due, for ever."""
        while True:
            try:
                await self.tick()
            except Exception:
                log.exception("scheduler_failed")
                await asyncio.sleep(_ERROR_PAUSE)
                continue
            await self._wait()

    async def tick(self) -> int:
        """Look once, and set the alarm to what comes next; returns how many jobs fired."""
        self._wakeup.clear()
        self._compare_clocks()
        if self._is_set_back:
            await self._realign()
        fired, now = await self._fire()
        await self._fall_back(now)
        await self._check_in(now)
        self._alarm.set(await self._database.read(_next_look, self._rules, now), self._wakeup.set)
        self.last_look_at = self._clock.now()
        return fired

    async def _fire(self) -> tuple[int, datetime]:
        """Returns how many fired, and the moment up to which all did."""
        fired = 0
        now = self._clock.now()
        while count := await self._database.insist(fire_due, self._rules, now=now):
            fired += count
            now = self._clock.now()
        if most := self._may_begin_late():
            late = await self._database.insist(fire_late_prompts, self._rules, most=most, now=now)
            self._late_prompts -= late
            fired += late
        if fired:
            log.info("jobs_fired", extra={"count": fired})
        return fired, now

    def _may_begin_late(self) -> int:
        """How many late turns for a model may be begun now."""
        now = asyncio.get_running_loop().time()
        if self._more_late_at is not None and now >= self._more_late_at:
            self._late_prompts = LATE_PROMPTS_A_SWEEP
        if self._more_late_at is None or now >= self._more_late_at:
            self._more_late_at = now + self._sweep.total_seconds()
        return self._late_prompts

    async def _fall_back(self, now: datetime) -> None:
        channels, cut = self._rules.channels, self._rules.cut
        count = await self._database.insist(fall_back_overdue, channels, cut, now=now)
        if count:
            log.warning("jobs_fell_back", extra={"count": count})

    async def _check_in(self, now: datetime) -> None:
        rules = self._rules
        if rules.heartbeat is None:
            return
        count = await self._database.insist(
            queue_heartbeats, rules.channels, rules.admits, rules.heartbeat, now=now
        )
        if count:
            log.info("heartbeats_queued", extra={"count": count})

    def _compare_clocks(self) -> None:
        """Notice a wall clock that went another way than the monotonic one since the last look."""
        wall, monotonic = self._clock.now(), asyncio.get_running_loop().time()
        if self._clocks is not None:
            before, began = self._clocks
            jump = wall - before - timedelta(seconds=monotonic - began)
            if abs(jump) > _JUMP:
                log.warning("clock_jumped", extra={"seconds": round(jump.total_seconds(), 1)})
            self._is_set_back |= jump < -_JUMP
        self._clocks = wall, monotonic

    async def _realign(self) -> None:
        now = self._clock.now()
        moved = await self._database.insist(realign, self._rules.channels, now=now)
        self._is_set_back = False
        if moved:
            log.warning("jobs_realigned", extra={"count": moved})

    async def _wait(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(self._sweep.total_seconds()):
                await self._wakeup.wait()


def _next_look(connection: Connection, rules: FireRules, after: datetime) -> datetime | None:
    """When the next thing is due. What is due already and was held back waits for a sweep."""
    moments = [
        earliest_slot(connection, rules.channels, after=after),
        earliest_fallback(connection, rules.channels),
    ]
    if rules.heartbeat is not None:
        moments.append(earliest_heartbeat(connection, rules.channels, after=after))
    return min((moment for moment in moments if moment is not None), default=None)
