"""The times of day of a series, on the 24-hour clock."""

from dataclasses import dataclass
from datetime import time

from gateway.domain.when.pieces import Clock, Days, Unclear, UnclearReason
from gateway.domain.when.resolve import MORNING, PART_TIMES
from gateway.domain.when.series import Series


@dataclass(frozen=True, slots=True, kw_only=True)
class Times:
    """At least one time of day, and what was assumed."""

    clocks: tuple[time, ...]
    notes: tuple[str | None, ...] = ()


def read_times(series: Series) -> Times | Unclear:
    """The times of day; without any it is the part of the day, or 09:00."""
    if not series.clocks:
        if series.part is None:
            return Times(clocks=(MORNING,), notes=(f"no time given, so {MORNING:%H:%M}",))
        clock = PART_TIMES[series.part]
        return Times(clocks=(clock,), notes=(f"I read {series.part} as {clock:%H:%M}",))
    is_daily = isinstance(series.rhythm, Days)
    refusal = _check(series.clocks, is_daily=is_daily)
    if refusal is not None:
        return refusal
    times = sorted({time(clock.hour, clock.minute, clock.second) for clock in series.clocks})
    return Times(clocks=tuple(times), notes=tuple(_note(clock) for clock in series.clocks))


def _check(clocks: tuple[Clock, ...], *, is_daily: bool) -> Unclear | None:
    if any(clock.microsecond for clock in clocks):
        question = "I repeat at whole seconds at most. Write the time like 17:30."
        return Unclear(reason=UnclearReason.IMPOSSIBLE, question=question)
    if any(clock.is_midnight for clock in clocks) and not is_daily:
        question = "Midnight at the start of that day, or at its end? Write 00:00 or 23:59."
        return Unclear(reason=UnclearReason.AMBIGUOUS, question=question)
    has_meridiem = any(clock.said.lower().rstrip(".").endswith("m") for clock in clocks)
    open_ones = [clock.said for clock in clocks if not clock.is_exact]
    if has_meridiem and open_ones:
        question = (
            f'Is "{open_ones[0]}" in the morning or after noon? Write each time with am or pm.'
        )
        return Unclear(reason=UnclearReason.AMBIGUOUS, question=question)
    return None


def _note(clock: Clock) -> str | None:
    """What was assumed of the half of the day, where people may mean the other one."""
    if clock.is_midnight:
        return "midnight is 00:00, the start of the day"
    if clock.is_exact or 7 <= clock.hour <= 11:
        return None
    shown = f"{clock.hour:02}:{clock.minute:02}"
    if clock.hour == 12:
        return None if ":" in clock.said else f"I read {clock.said} as {shown}"
    later = f"{clock.hour + 12}:{clock.minute:02}"
    return f"I read {clock.said} as {shown}; write {later} for the afternoon"
