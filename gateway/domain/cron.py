"""Five-field cron expressions: read by cronsim, walked along the clock of a zone here.

cronsim's own walk loses slots where clocks move by half an hour, and invents them on a day that a
zone left out.
"""

from bisect import bisect_right
from datetime import UTC, date, datetime, time, timedelta
from functools import lru_cache
from typing import Final
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

from gateway.domain.wallclock import first_instant, instants
from gateway.errors import BadScheduleError

_SIZES: Final = (60, 24, 31, 12, 7)
"""How many values each field has: minute, hour, day of month, month, day of week."""

_YEARS: Final = 50
"""An expression that names no day in so many years names none."""

_DAY: Final = timedelta(days=1)
_MINUTE: Final = timedelta(minutes=1)
_SOON: Final = timedelta(hours=3)  # further than that no clock was put back


@lru_cache(maxsize=512)
def read_cron(expression: str) -> CronSim:
    """The parsed fields, of which nothing may be changed; raises BadScheduleError."""
    fields = expression.split()
    if len(fields) != len(_SIZES):
        raise BadScheduleError(
            f"a cron expression has 5 fields (minute hour day month weekday), not {len(fields)}"
        )
    shown = repr(expression[:60])
    try:
        cron = CronSim(expression, datetime(2000, 1, 1, tzinfo=UTC))
    except (CronSimError, AssertionError, ValueError) as error:
        reason = str(error).lower() or "bad field"
        raise BadScheduleError(f"{reason} in the cron expression {shown}") from error
    for field, size in zip(fields, _SIZES, strict=True):
        steps = [int(term.split("/")[1]) for term in field.split(",") if "/" in term]
        # `*/90` would be each full hour, and never every 90 minutes.
        if steps and max(steps) > size:
            raise BadScheduleError(
                f"a step of {max(steps)} does not fit into its field in the cron expression {shown}"
            )
    return cron


def next_match(expression: str, *, after: datetime, zone: ZoneInfo) -> datetime | None:
    """The first slot later than `after`; None = there is none. Raises BadScheduleError.

    Hours that are named are times of the day: one that is jumped over is the first instant after,
    one that comes twice is the first of the two. Where the field of hours begins with `*`, it is
    each time that the clock shows it.
    """
    cron = read_cron(expression)
    if expression.split()[1].startswith("*"):
        return _next_shown(cron, after, zone)
    return _next_of_days(cron, after, zone)


def _next_of_days(cron: CronSim, after: datetime, zone: ZoneInfo) -> datetime | None:
    clocks = [time(hour, minute) for hour in sorted(cron.hours) for minute in sorted(cron.minutes)]
    end = after.year + _YEARS
    day = _day_from(cron, after.astimezone(zone).date(), end)
    while day is not None:
        slot = _first_after(clocks, after, day, zone)
        if slot is not None:
            return slot
        day = _day_from(cron, day + _DAY, end)
    return None


def _first_after(clocks: list[time], after: datetime, day: date, zone: ZoneInfo) -> datetime | None:
    """The first instant later than `after` at which the day has reached one of the times."""

    def reached(clock: time) -> datetime:
        return first_instant(day, clock, zone) or after  # a day that was left out has none

    found = bisect_right(clocks, after, key=reached)
    return None if found == len(clocks) else reached(clocks[found])


def _next_shown(cron: CronSim, after: datetime, zone: ZoneInfo) -> datetime | None:
    moment = after.astimezone(UTC).replace(microsecond=0) + timedelta(seconds=1)
    end = after.year + _YEARS
    while True:
        shown = moment.astimezone(zone)
        if shown.second:
            moment += timedelta(seconds=60 - shown.second)
            continue
        day = _day_from(cron, shown.date(), end)
        if day is None:
            return None
        if day != shown.date():
            # Clocks that are put back soon may show a day again that is named.
            is_put_back = _offset(moment + _SOON, zone) < _offset(moment, zone)
            midnight = moment if is_put_back else instants(day, time(0), zone)[0].at
            moment = max(moment + _MINUTE, midnight)
        elif shown.hour not in cron.hours:
            moment += _to_next_hour(moment, shown.minute, zone)
        elif shown.minute not in cron.minutes:
            moment += _MINUTE
        else:
            return moment


def _to_next_hour(moment: datetime, minute: int, zone: ZoneInfo) -> timedelta:
    """To the full hour, or no further than a minute where the clocks are changed before it."""
    step = timedelta(minutes=60 - minute)
    return step if _offset(moment + step, zone) == _offset(moment, zone) else _MINUTE


def _offset(moment: datetime, zone: ZoneInfo) -> timedelta:
    return moment.astimezone(zone).utcoffset() or timedelta(0)


def _day_from(cron: CronSim, day: date, end: int) -> date | None:
    """The first day from `day` that the expression names; None = none until the year `end`."""
    while day.year <= end:
        if day.month not in cron.months:
            day = (day.replace(day=1) + timedelta(days=32)).replace(day=1)
        elif cron.match_day(day):
            return day
        else:
            day += _DAY
    return None
