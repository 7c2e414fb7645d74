"""Local calendar and clock: from a wall-clock time to the instants that show it."""

from calendar import monthrange
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo

from gateway.domain.when.words import MONTH_NAMES, WEEKDAY_NAMES

_SECOND = timedelta(seconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Instant:
    """An aware UTC time, and what the clocks' change made of the wall-clock time."""

    at: datetime
    note: str | None = None


def instants(day: date, clock: time, zone: tzinfo) -> list[Instant]:
    """The instants at which the clock in `zone` shows `clock` on `day`, earliest first.

    Two when the clocks go back over it; where they jump over it, the first instant after.
    """
    wall = datetime.combine(day, clock)
    first = wall.replace(tzinfo=zone, fold=0).astimezone(UTC)
    second = wall.replace(tzinfo=zone, fold=1).astimezone(UTC)
    shown = f"{clock:%H:%M}"
    if first == second:
        return [Instant(at=first)]
    if first < second:
        note = f"{shown} comes twice that day because the clocks go back; I took the first"
        again = f"{shown} comes twice that day because the clocks go back; I took the second"
        return [Instant(at=first, note=note), Instant(at=second, note=again)]
    jump = _transition(second, first, zone)
    note = (
        f"{shown} does not exist that day because the clocks go forward, so "
        f"{jump.astimezone(zone):%H:%M}"
    )
    return [Instant(at=jump, note=note)]


def _transition(before: datetime, after: datetime, zone: tzinfo) -> datetime:
    """The first whole second in (before, after] with the later UTC offset."""
    offset = after.astimezone(zone).utcoffset()
    low, high = before.replace(microsecond=0), after.replace(microsecond=0)
    while high - low > _SECOND:
        middle = low + (high - low) // 2
        middle = middle.replace(microsecond=0)
        if middle.astimezone(zone).utcoffset() == offset:
            high = middle
        else:
            low = middle
    return high


def add_months(day: date, months: int) -> date:
    """The same day `months` later, or the last one of a month that is too short."""
    total = day.year * 12 + day.month - 1 + months
    year, month = divmod(total, 12)
    return date(year, month + 1, min(day.day, monthrange(year, month + 1)[1]))


def date_or_none(year: int, month: int, day: int) -> date | None:
    """The date, or None if that year has no such day."""
    return date(year, month, day) if day <= monthrange(year, month)[1] else None


def show_day(day: date) -> str:
    """A day for a sentence: "Friday 4 December"."""
    return f"{WEEKDAY_NAMES[day.weekday()]} {day.day} {MONTH_NAMES[day.month - 1]}"


def show_now(now: datetime, zone: tzinfo) -> str:
    """The present local time for a sentence: "Mon 30 Nov 2026 10:00 (Europe/Berlin)"."""
    here = now.astimezone(zone)
    weekday, month = WEEKDAY_NAMES[here.weekday()][:3], MONTH_NAMES[here.month - 1][:3]
    return f"{weekday} {here.day} {month} {here.year} {here:%H:%M} ({zone})"
