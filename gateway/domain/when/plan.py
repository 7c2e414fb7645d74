"""Putting the pieces of one time expression together, or saying why they do not fit."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import tzinfo
from typing import Final, TypeVar

from gateway.domain.when.pieces import (
    CalendarDate,
    Clock,
    Day,
    DayOfMonth,
    Delay,
    Fault,
    MonthEnd,
    Now,
    Part,
    PartOfDay,
    Piece,
    RelativeDay,
    Unclear,
    UnclearReason,
    Weekday,
    Zone,
)

# Hours that each part of the day holds, on the 24-hour clock.
_HOURS: Final = {
    Part.MORNING: range(12),
    Part.AFTERNOON: range(12, 19),
    Part.EVENING: range(16, 24),
    Part.NIGHT: range(18, 24),
}
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """At most one of each: what a time expression fixes. A weekday beside a day only checks it."""

    day: Day | None = None
    weekday: Weekday | None = None
    clock: Clock | None = None
    part: Part | None = None
    delay: Delay | None = None
    zone: tzinfo | None = None
    is_now: bool = False


def conflict(what: str) -> Unclear:
    return Unclear(
        reason=UnclearReason.CONFLICT,
        question=f"I read {what}. Which one do you mean? Say one day and one time; if one of them "
        "belongs to the text, put the text in quotes.",
    )


def make_plan(pieces: Sequence[Piece]) -> Plan | Unclear:
    """Join the pieces; a fault among them, a second moment or a contradiction is Unclear."""
    faults = [piece.unclear for piece in pieces if isinstance(piece, Fault)]
    if faults:
        return faults[0]
    clocks = {(piece.hour, piece.minute, piece.second) for piece in only(pieces, Clock)}
    parts = {piece.part for piece in only(pieces, PartOfDay)}
    delays, zones = only(pieces, Delay), {str(piece.zone) for piece in only(pieces, Zone)}
    if len(clocks) > 1 or len(only(pieces, Clock)) > 1:
        said = " and ".join(f'"{clock.said}"' for clock in only(pieces, Clock)[:2])
        return conflict(f"two times, {said}")
    if len(parts) > 1:
        return conflict("two parts of the day")
    if len(delays) > 1 or len(zones) > 1:
        return conflict("two delays" if len(delays) > 1 else "two time zones")
    days = _join_days(pieces)
    if isinstance(days, Unclear):
        return days
    plan = Plan(
        day=days[0],
        weekday=days[1],
        clock=next(iter(only(pieces, Clock)), None),
        part=next(iter(parts), None),
        delay=next(iter(delays), None),
        zone=next((piece.zone for piece in only(pieces, Zone)), None),
        is_now=bool(only(pieces, Now)),
    )
    return _check(plan)


def only(pieces: Sequence[Piece], kind: type[T]) -> list[T]:
    return [piece for piece in pieces if isinstance(piece, kind)]


def _join_days(pieces: Sequence[Piece]) -> tuple[Day | None, Weekday | None] | Unclear:
    """One day, and a weekday to check it with: "friday 4 december"."""
    weekdays = only(pieces, Weekday)
    others: list[Day] = [
        piece
        for piece in pieces
        if isinstance(piece, RelativeDay | CalendarDate | DayOfMonth | MonthEnd)
    ]
    if len(weekdays) > 1 or len(others) > 1:
        return conflict("two days")
    if not others:
        return (weekdays[0] if weekdays else None), None
    return others[0], (weekdays[0] if weekdays else None)


def _check(plan: Plan) -> Plan | Unclear:
    """Refuse parts that contradict each other, and let a part of the day settle the clock."""
    has_time = plan.clock is not None or plan.part is not None
    if plan.is_now and plan != Plan(is_now=True):
        return conflict('"now" and another time')
    if plan.delay is not None and plan.day is not None:
        return conflict("a delay and a day")
    if plan.delay is not None and has_time and (plan.delay.seconds or plan.weekday is not None):
        return conflict("a delay and a time of day")
    if plan.zone is not None and plan.clock is None:
        return conflict("a time zone and no time of day")
    if plan.clock is None or plan.part is None:
        return plan
    clock = settle(plan.clock, plan.part)
    return clock if isinstance(clock, Unclear) else replace(plan, part=None, clock=clock)


def settle(clock: Clock, part: Part) -> Clock | Unclear:
    """The clock time that is meant in that part of the day, or that they do not go together."""
    hours = _HOURS[part]
    if clock.is_midnight and part is Part.NIGHT:
        return clock
    hour = clock.hour
    if not clock.is_exact:
        hour = clock.hour % 12 + (0 if part is Part.MORNING else 12)
    is_twelve = clock.hour == 12 and not clock.is_exact and part is not Part.AFTERNOON
    if hour not in hours or is_twelve:
        return Unclear(
            reason=UnclearReason.CONFLICT,
            question=f'"{clock.said}" and "{part}" do not go together for me. Write the time like '
            "17:30 or 5:30pm.",
        )
    return replace(clock, hour=hour, is_exact=True)
