"""From a wall-clock time to the instants that show it, where clocks are put forward and back."""

from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

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


def zone_or_none(stored: object) -> ZoneInfo | None:
    """The time zone of a stored name; None = there is none, or it is damaged."""
    try:
        return ZoneInfo(stored) if isinstance(stored, str) else None
    except (ZoneInfoNotFoundError, OSError, ValueError):
        return None


def first_instant(day: date, clock: time, zone: tzinfo) -> datetime | None:
    """The first instant (UTC) at which a day has reached a time; None = the zone left it out."""
    instant = instants(day, clock, zone)[0].at
    if instant.astimezone(zone).date() != day:
        noon = instants(day, time(12), zone)[0].at
        if noon.astimezone(zone).date() != day:
            return None
    return instant


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
