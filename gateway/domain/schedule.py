"""When a job is due: schedules, their slots, and how a moment is written for people.

Wall-clock schedules follow the clock of their zone. A time that the clocks jump over is the first
instant after the jump; one that comes twice is the first of the two, once a day.
"""

import calendar
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from typing import Final, assert_never
from zoneinfo import ZoneInfo

from gateway.domain.cron import next_match, read_cron
from gateway.domain.wallclock import first_instant

MIN_PERIOD: Final = timedelta(minutes=1)
MAX_PERIOD: Final = timedelta(days=366)
MAX_EVERY: Final = 366
"""The longest stride of a daily or weekly schedule, in its own days or weeks."""

DAY_NAMES: Final = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
"""By `date.weekday()`."""

WORKDAYS: Final = frozenset(range(5))

_FIRST_MILLIS: Final = -62_000_000_000_000  # in the year 5
LAST_MILLIS: Final = 253_370_000_000_000  # in the year 9998
_GRACE_LEAST: Final = timedelta(seconds=60)
_GRACE_MOST: Final = timedelta(minutes=15)
_GRACE_DAILY: Final = timedelta(hours=1)
_TICK: Final = timedelta(milliseconds=1)  # no two slots are closer


@dataclass(frozen=True, slots=True, kw_only=True)
class At:
    """Once, at an instant (aware UTC)."""

    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """What repeats: its last possible moment (aware UTC, itself included) and number of runs."""

    until: datetime | None = None
    max_runs: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Every(Series):
    """At `anchor` and each whole `period` after it, by the real clock: the phase never drifts."""

    period: timedelta
    anchor: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Daily(Series):
    """At a local time, each `every`-th day counted from `since`."""

    time: time
    every: int = 1
    since: date | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Weekly(Series):
    """At a local time on these days (0 = Monday), each `every`-th week from that of `since`."""

    days: frozenset[int]
    time: time
    every: int = 1
    since: date | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Cron(Series):
    """Five fields as crontab(5) reads them; day of month OR day of week where both are given.

    `L`, `LW` as day of month, `mon#1` and `5L` as day of week. Built by `parse_cron` alone.
    """

    expression: str


Recurring = Every | Daily | Weekly | Cron
Schedule = At | Recurring
"""All kinds of schedule; each is stored with an IANA zone beside it."""


def to_millis(moment: datetime) -> int:
    """An aware moment as the integer milliseconds that tables and JSON hold."""
    return round(moment.timestamp() * 1000)


def from_millis(millis: int) -> datetime:
    """The aware UTC moment of stored milliseconds.

    Raises ValueError at the ends of the calendar, where a moment has no local time in each zone.
    """
    if not _FIRST_MILLIS <= millis <= LAST_MILLIS:
        raise ValueError("beyond the calendar")
    return datetime.fromtimestamp(millis / 1000, UTC)


def parse_cron(
    expression: str, *, until: datetime | None = None, max_runs: int | None = None
) -> Cron:
    """Read five cron fields; raises BadScheduleError saying which one is wrong."""
    cleaned = " ".join(expression.split()).lower()
    read_cron(cleaned)
    return Cron(expression=cleaned, until=until, max_runs=max_runs)


def next_slot(schedule: Schedule, *, after: datetime, zone: ZoneInfo) -> datetime | None:
    """The first slot later than `after`; None = there is none any more.

    Counts no runs: `max_runs` is for whoever knows how often the job fired.
    """
    if isinstance(schedule, At):
        return schedule.at if schedule.at > after else None
    try:
        slot = _next(schedule, after=after, zone=zone)
    except (OverflowError, ValueError):
        return None  # beyond the calendar
    if slot is None or (schedule.until is not None and slot > schedule.until):
        return None
    return slot


def latest_slot(
    schedule: Schedule, *, since: datetime, until: datetime, zone: ZoneInfo
) -> datetime:
    """The last slot from `since` (a slot itself) up to and with `until`.

    Takes no longer the more slots there are between the two.
    """
    latest, middle, end = since, since, until
    while True:
        slot = next_slot(schedule, after=middle, zone=zone)
        if slot is not None and slot <= until:
            latest = slot
        else:
            end = middle
        if end - latest < _TICK:
            return latest
        middle = latest + (end - latest) / 2


def grace(schedule: Schedule, *, slot: datetime, zone: ZoneInfo) -> timedelta:
    """How late a slot of a job that skips missed windows may still fire.

    A quarter of the period, between one and 15 minutes; an hour where it is a day or longer.
    """
    if isinstance(schedule, At):
        return _GRACE_MOST
    # The last slot of a series is as late as the ones before it.
    following = next_slot(replace(schedule, until=None), after=slot, zone=zone)
    if following is None:
        return _GRACE_MOST
    period = following - slot
    if period >= timedelta(hours=23):
        return _GRACE_DAILY
    return max(_GRACE_LEAST, min(_GRACE_MOST, period / 4))


def is_same(one: Schedule, other: Schedule) -> bool:
    """Whether two schedules ask for the same, whenever they were asked for."""
    match one, other:
        case Every(), Every():
            return one == replace(other, anchor=one.anchor)
        case _:
            return one == other


def _next(schedule: Recurring, *, after: datetime, zone: ZoneInfo) -> datetime | None:
    match schedule:
        case Every():
            passed = (after - schedule.anchor) // schedule.period
            return schedule.anchor + max(0, passed + 1) * schedule.period
        case Daily() | Weekly():
            return _next_on_days(schedule, after=after, zone=zone)
        case Cron():
            return next_match(schedule.expression, after=after, zone=zone)
        case _:
            assert_never(schedule)


def _next_on_days(schedule: Daily | Weekly, *, after: datetime, zone: ZoneInfo) -> datetime:
    day = after.astimezone(zone).date()
    if schedule.since is not None:
        day = max(day, schedule.since)
    while True:
        if _is_on(schedule, day):
            slot = first_instant(day, schedule.time, zone)
            if slot is not None and slot > after:
                return slot
        day += timedelta(days=1)


def _is_on(schedule: Daily | Weekly, day: date) -> bool:
    since = schedule.since or date.min
    match schedule:
        case Daily():
            return (day - since).days % schedule.every == 0
        case Weekly():
            weeks = (_monday(day) - _monday(since)).days // 7
            return day.weekday() in schedule.days and weeks % schedule.every == 0
        case _:
            assert_never(schedule)


def _monday(day: date) -> date:
    return day - timedelta(days=day.weekday())


def local_time(moment: datetime, zone: ZoneInfo, *, now: datetime) -> str:
    """`Tue 1 Dec 09:00`, with the seconds if not zero and the year if another than today's."""
    local = moment.astimezone(zone)
    year = f" {local.year}" if local.year != now.astimezone(zone).year else ""
    clock = local.strftime("%H:%M:%S") if local.second else local.strftime("%H:%M")
    return (
        f"{DAY_NAMES[local.weekday()]} {local.day} {calendar.month_abbr[local.month]}{year} {clock}"
    )
