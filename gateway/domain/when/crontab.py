"""Writing cron expressions: which minutes, hours, days and months a series has."""

from collections.abc import Iterable, Sequence
from datetime import time, timedelta
from typing import Final

from gateway.domain.schedule import WORKDAYS
from gateway.domain.when.pieces import Clock, Unclear, UnclearReason, Window
from gateway.domain.when.words import WEEKDAY_NAMES

_DAY_MINUTES: Final = 24 * 60


def on_days(days: Iterable[int]) -> str:
    """The field for these weekdays (0 = Monday)."""
    chosen = frozenset(days)
    if len(chosen) == 7:
        return "*"
    if chosen == WORKDAYS:
        return "mon-fri"
    return ",".join(WEEKDAY_NAMES[day][:3].lower() for day in sorted(chosen))


def at_times(
    times: Sequence[time], *, days: str = "*", months: str = "*", weekdays: str = "*"
) -> str | Unclear:
    """The expression for these times of day; they must have the same minute."""
    minutes = {clock.minute for clock in times}
    if any(clock.second for clock in times):
        return _refused("I repeat at whole minutes. Leave the seconds out.")
    if len(minutes) > 1:
        shown = " and ".join(f"{clock:%H:%M}" for clock in times[:3])
        return _refused(
            f"I cannot put {shown} into one reminder because their minutes differ. Ask for each "
            "time by itself."
        )
    hours = ",".join(str(hour) for hour in sorted({clock.hour for clock in times}))
    return f"{min(minutes)} {hours} {days} {months} {weekdays}"


def _refused(question: str) -> Unclear:
    return Unclear(reason=UnclearReason.AMBIGUOUS, question=question)


def in_window(
    period: timedelta, window: Window | None, weekdays: frozenset[int]
) -> tuple[str, str | None] | Unclear:
    """The expression for a period inside each day, with what was assumed."""
    read = _read_window(window)
    if isinstance(read, Unclear):
        return read
    first, last, note = read
    step = int(period.total_seconds()) // 60
    is_whole_day = window is None
    divides = 60 % step == 0 if step < 60 else step % 60 == 0
    is_odd = period.total_seconds() % 60 or not divides or step > _DAY_MINUTES // 2
    is_uneven = is_whole_day and _DAY_MINUTES % step
    if is_odd or is_uneven or first % 60 >= step:
        return _refused(
            "I can repeat on some days or between two hours only with a period that fits, like "
            '"every 30 minutes between 9:00 and 17:00" or "every 2 hours between 8:00 and 20:00".'
        )
    if last < first:
        if weekdays:
            return _refused(
                "That goes past midnight, and I cannot tell which day that is then. Say two hours "
                "of the same day."
            )
        last += _DAY_MINUTES
    slots = [minute % _DAY_MINUTES for minute in range(first, last + 1, step)]
    kept = _whole_hours(slots, step)
    if not kept:
        return _refused("That window holds no whole hour. Say two hours further apart.")
    if kept[-1] != slots[-1]:
        note = "; ".join(filter(None, (note, f"the last one at {_shown(kept[-1])}")))
    minutes = sorted({minute % 60 for minute in kept})
    hours = list(dict.fromkeys(minute // 60 for minute in kept))
    days = on_days(weekdays) if weekdays else "*"
    return f"{_list(minutes, 60)} {_list(hours, 24)} * * {days}", note


def _whole_hours(slots: list[int], step: int) -> list[int]:
    """The slots less those of a last hour that is not full: cron repeats every minute it names."""
    if step >= 60:
        return slots
    full = 60 // step
    rest = len(slots) % full
    return slots[: len(slots) - rest] if rest else slots


def _shown(minute: int) -> str:
    return f"{minute // 60:02}:{minute % 60:02}"


def _list(values: list[int], whole: int) -> str:
    """A field: "9-17", "9-17/2", "*/15", or the values one by one."""
    if len(values) == 1:
        return str(values[0])
    step = values[1] - values[0]
    is_run = step > 0 and values == list(range(values[0], values[-1] + 1, step))
    if not is_run:
        return ",".join(str(value) for value in values)
    if values[0] == 0 and values[-1] + step >= whole:
        return "*" if step == 1 else f"*/{step}"
    return f"{values[0]}-{values[-1]}" + ("" if step == 1 else f"/{step}")


def _read_window(window: Window | None) -> tuple[int, int, str | None] | Unclear:
    """The first and last minute of the day; an afternoon is taken where only that can be."""
    if window is None:
        return 0, _DAY_MINUTES - 1, "counted from midnight"
    first, last = _minute(window.first), _minute(window.last)
    noon = _DAY_MINUTES // 2
    if window.last.is_exact and not window.first.is_exact and first + noon < last:
        return _refused(f'"{window.said}" has two readings. Write both like 14:00 or 2pm.')
    notes = []
    if not window.last.is_exact and last <= first < last + noon:
        last += noon
        notes.append(f"I read {window.last.said} as {_shown(last)}")
    elif not window.first.is_exact and first < 7 * 60:
        notes.append(f"I read {window.said} as {_shown(first)} to {_shown(last)}")
    if first == last:
        return _refused(f'"{window.said}" is no time at all. Say two different hours.')
    return first, last, "; ".join(notes) or None


def _minute(clock: Clock) -> int:
    return clock.hour * 60 + clock.minute
