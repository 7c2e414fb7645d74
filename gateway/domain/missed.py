"""Which of a job's slots that have come is given, and which were missed."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final
from zoneinfo import ZoneInfo

from gateway.domain.job import Job, MissedWindow
from gateway.domain.schedule import Schedule, grace, latest_slot, next_slot

MOST_RECORDED: Final = 20
"""So many missed slots of a job, the newest, are recorded one by one."""

MOST_COUNTED: Final = 200
"""The missed slots before those are counted up to here."""

_LOOK_BACK: Final = tuple(timedelta(days=days) for days in (1 / 24, 1, 8, 40, 400, 8000))


@dataclass(frozen=True, slots=True, kw_only=True)
class Coming:
    """The latest slot of a job that has come, and what is around it.

    `is_missed` says that even this one is too late to be given. `missed` are the slots before it,
    oldest first; `more_missed` counts those before them. `following` is the next one to come.
    """

    slot: datetime
    is_missed: bool
    missed: tuple[datetime, ...]
    more_missed: int
    following: datetime | None


def coming_slot(job: Job, first: datetime, *, now: datetime) -> Coming:
    """What becomes of the slots from `first`, which has come, up to now.

    Raises ValueError or OverflowError when the job's times are beyond the calendar.
    """
    zone = ZoneInfo(job.timezone)
    schedule = job.schedule
    slot, following = first, next_slot(schedule, after=first, zone=zone)
    missed: tuple[datetime, ...] = ()
    more = 0
    if following is not None and following <= now:
        slot = latest_slot(schedule, since=first, until=now, zone=zone)
        following = next_slot(schedule, after=slot, zone=zone)
        missed = _newest_before(schedule, first, slot, zone)
        more = _count_before(schedule, first, missed[0], zone)
    is_late = job.missed is MissedWindow.SKIP and now - slot > grace(schedule, slot=slot, zone=zone)
    return Coming(
        slot=slot, is_missed=is_late, missed=missed, more_missed=more, following=following
    )


def _newest_before(
    schedule: Schedule, first: datetime, end: datetime, zone: ZoneInfo
) -> tuple[datetime, ...]:
    """The last slots from `first` (always one) up to `end`, without it, oldest first."""
    found: list[datetime] = []
    for window in _LOOK_BACK:
        start = max(first, end - window)
        found = [first] if start == first else []
        slot = next_slot(schedule, after=start, zone=zone)
        while slot is not None and slot < end:
            found.append(slot)
            slot = next_slot(schedule, after=slot, zone=zone)
        if start == first or len(found) >= MOST_RECORDED:
            break
    return tuple(found[-MOST_RECORDED:]) or (first,)


def _count_before(schedule: Schedule, first: datetime, end: datetime, zone: ZoneInfo) -> int:
    """How many slots there are from `first` up to `end`, without it; at most MOST_COUNTED."""
    count = 0
    slot: datetime | None = first
    while slot is not None and slot < end and count < MOST_COUNTED:
        count += 1
        slot = next_slot(schedule, after=slot, zone=zone)
    return count
