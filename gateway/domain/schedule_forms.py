"""How a schedule is written: as stored, and in the words that people read."""

import json
from collections.abc import Callable, Mapping
from datetime import date, datetime, time, timedelta
from typing import Final, assert_never
from zoneinfo import ZoneInfo

from gateway.domain.cron_words import day_list, describe_cron
from gateway.domain.schedule import (
    DAY_NAMES,
    MAX_EVERY,
    MAX_PERIOD,
    MIN_PERIOD,
    WORKDAYS,
    At,
    Cron,
    Daily,
    Every,
    Schedule,
    Weekly,
    from_millis,
    local_time,
    parse_cron,
    to_millis,
)
from gateway.errors import BadScheduleError

_STORED_DAYS: Final = tuple(name.lower() for name in DAY_NAMES)
_UNITS: Final = (
    (timedelta(weeks=1), "week"),
    (timedelta(days=1), "day"),
    (timedelta(hours=1), "hour"),
    (timedelta(minutes=1), "minute"),
    (timedelta(seconds=1), "second"),
)
_WEEKEND: Final = frozenset({5, 6})
_MAX_RUNS: Final = 1_000_000

_Fields = Mapping[str, object]


def schedule_to_json(schedule: Schedule) -> str:
    """The stored form, which `--json` shows as well: times in ms UTC, local clocks as HH:MM."""
    return json.dumps(_fields(schedule), separators=(",", ":"))


def _fields(schedule: Schedule) -> dict[str, object]:
    fields: dict[str, object]
    match schedule:
        case At():
            return {"kind": "at", "at": to_millis(schedule.at)}
        case Every():
            seconds = round(schedule.period.total_seconds())
            fields = {"kind": "every", "seconds": seconds, "anchor": to_millis(schedule.anchor)}
        case Daily():
            fields = {"kind": "daily", "time": _clock(schedule.time), **_stride(schedule)}
        case Weekly():
            days = [_STORED_DAYS[day] for day in sorted(schedule.days)]
            clock = _clock(schedule.time)
            fields = {"kind": "weekly", "days": days, "time": clock, **_stride(schedule)}
        case Cron():
            fields = {"kind": "cron", "expression": schedule.expression}
        case _:
            assert_never(schedule)
    if schedule.until is not None:
        fields["until"] = to_millis(schedule.until)
    if schedule.max_runs is not None:
        fields["max_runs"] = schedule.max_runs
    return fields


def _clock(clock: time) -> str:
    return clock.isoformat("seconds" if clock.second else "minutes")


def _stride(schedule: Daily | Weekly) -> dict[str, object]:
    fields: dict[str, object] = {} if schedule.every == 1 else {"every": schedule.every}
    if schedule.every > 1 or schedule.since is not None:
        fields["since"] = (schedule.since or date.min).isoformat()
    return fields


def schedule_from_json(text: str) -> Schedule:
    """Read the stored form; raises ValueError when the row is damaged."""
    try:
        fields = json.loads(text)
    except (RecursionError, TypeError) as error:
        raise ValueError("not a schedule") from error
    if not isinstance(fields, dict):
        raise ValueError("not a schedule")
    kind = fields.get("kind")
    read = _READERS.get(kind) if isinstance(kind, str) else None
    if read is None:
        raise ValueError("not a schedule")
    try:
        return read(fields)
    except (OverflowError, OSError, TypeError, BadScheduleError) as error:
        raise ValueError("not a schedule") from error


def _read_at(fields: _Fields) -> Schedule:
    return At(at=_moment(fields.get("at")))


def _read_every(fields: _Fields) -> Schedule:
    period = timedelta(seconds=_whole(fields.get("seconds")))
    if not MIN_PERIOD <= period <= MAX_PERIOD:
        raise ValueError("not a period")
    anchor = _moment(fields.get("anchor"))
    return Every(period=period, anchor=anchor, until=_until(fields), max_runs=_max_runs(fields))


def _read_daily(fields: _Fields) -> Schedule:
    every, since = _read_stride(fields)
    return Daily(
        time=_read_clock(fields.get("time")),
        every=every,
        since=since,
        until=_until(fields),
        max_runs=_max_runs(fields),
    )


def _read_weekly(fields: _Fields) -> Schedule:
    days = fields.get("days")
    if not isinstance(days, list) or not days:
        raise ValueError("not days")
    every, since = _read_stride(fields)
    return Weekly(
        days=frozenset(_STORED_DAYS.index(day) for day in days),
        time=_read_clock(fields.get("time")),
        every=every,
        since=since,
        until=_until(fields),
        max_runs=_max_runs(fields),
    )


def _read_cron(fields: _Fields) -> Schedule:
    expression = fields.get("expression")
    if not isinstance(expression, str):
        raise TypeError("not an expression")
    return parse_cron(expression, until=_until(fields), max_runs=_max_runs(fields))


_READERS: Final[Mapping[str, Callable[[_Fields], Schedule]]] = {
    "at": _read_at,
    "every": _read_every,
    "daily": _read_daily,
    "weekly": _read_weekly,
    "cron": _read_cron,
}


def _whole(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError("not a whole number")
    return value


def _moment(value: object) -> datetime:
    return from_millis(_whole(value))


def _read_clock(value: object) -> time:
    if not isinstance(value, str):
        raise TypeError("not a clock time")
    clock = time.fromisoformat(value)
    if clock.tzinfo is not None or clock.microsecond:
        raise ValueError("not a local clock time")
    return clock


def _read_stride(fields: _Fields) -> tuple[int, date | None]:
    if "every" not in fields and "since" not in fields:
        return 1, None
    every, since = _whole(fields.get("every", 1)), fields.get("since")
    if not 1 <= every <= MAX_EVERY or not isinstance(since, str):
        raise ValueError("not a stride")
    return every, date.fromisoformat(since)


def _until(fields: _Fields) -> datetime | None:
    value = fields.get("until")
    return None if value is None else _moment(value)


def _max_runs(fields: _Fields) -> int | None:
    value = fields.get("max_runs")
    if value is None:
        return None
    runs = _whole(value)
    if not 1 <= runs <= _MAX_RUNS:
        raise ValueError("not a number of runs")
    return runs


def describe(schedule: Schedule, zone: ZoneInfo, *, now: datetime) -> str:
    """How often, for a line: `weekly`, `every 2 hours until Tue 1 Dec 18:00`; "" for once."""
    if isinstance(schedule, At):
        return ""
    text = _rhythm(schedule)
    if schedule.until is not None:
        text += f" until {local_time(schedule.until, zone, now=now)}"
    if schedule.max_runs is not None:
        text += ", once" if schedule.max_runs == 1 else f", {schedule.max_runs} times"
    return text


def _rhythm(schedule: Every | Daily | Weekly | Cron) -> str:
    match schedule:
        case Every():
            return describe_period(schedule.period)
        case Daily():
            return "daily" if schedule.every == 1 else f"every {schedule.every} days"
        case Weekly():
            return _weekly(schedule)
        case Cron():
            return describe_cron(schedule.expression)
        case _:
            assert_never(schedule)


def describe_period(period: timedelta) -> str:
    """`every 2 hours`, `every hour`, `every 90 minutes`."""
    size, name = next(unit for unit in _UNITS if not period % unit[0])
    count = period // size
    return f"every {name}" if count == 1 else f"every {count} {name}s"


def _weekly(schedule: Weekly) -> str:
    named = day_list(sorted(schedule.days))
    if schedule.every > 1:
        return f"every {schedule.every} weeks" + (f" on {named}" if len(schedule.days) > 1 else "")
    if len(schedule.days) == 1:
        return "weekly"
    if schedule.days == WORKDAYS:
        return "weekdays"
    return "weekends" if schedule.days == _WEEKEND else named
