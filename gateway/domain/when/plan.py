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


def _conflict(what: str) -> Unclear:
    return Unclear(
        reason=UnclearReason.CONFLICT,
        question=f"I read {what}. Which one do you mean? Say one day and one time; if one of them "
        "belongs to the text, put the text in quotes.",
    )


def make_plan(pieces: Sequence[Piece]) -> Plan | Unclear:
    """Join the pieces; a fault among them, a second moment or a contradiction is Unclear."""
    faults = [piece.unclear for piece in pieces if isinstance(piece, Fault)]
    if faults:
        repeating = (fault for fault in faults if fault.reason is UnclearReason.REPEATING)
        return next(repeating, faults[0])
    clocks = {(piece.hour, piece.minute, piece.second) for piece in _only(pieces, Clock)}
    parts = {piece.part for piece in _only(pieces, PartOfDay)}
    delays, zones = _only(pieces, Delay), {str(piece.zone) for piece in _only(pieces, Zone)}
    if len(clocks) > 1 or len(_only(pieces, Clock)) > 1:
        said = " and ".join(f'"{clock.said}"' for clock in _only(pieces, Clock)[:2])
        return _conflict(f"two times, {said}")
    if len(parts) > 1:
        return _conflict("two parts of the day")
    if len(delays) > 1 or len(zones) > 1:
        return _conflict("two delays" if len(delays) > 1 else "two time zones")
    days = _join_days(pieces)
    if isinstance(days, Unclear):
        return days
    plan = Plan(
        day=days[0],
        weekday=days[1],
        clock=next(iter(_only(pieces, Clock)), None),
        part=next(iter(parts), None),
        delay=next(iter(delays), None),
        zone=next((piece.zone for piece in _only(pieces, Zone)), None),
        is_now=bool(_only(pieces, Now)),
    )
    return _check(plan)


def _only(pieces: Sequence[Piece], kind: type[T]) -> list[T]:
    return [piece for piece in pieces if isinstance(piece, kind)]


def _join_days(pieces: Sequence[Piece]) -> tuple[Day | None, Weekday | None] | Unclear:
    """One day, and a weekday to check it with: "friday 4 december"."""
    weekdays = _only(pieces, Weekday)
    others: list[Day] = [
        piece
        for piece in pieces
        if isinstance(piece, RelativeDay | CalendarDate | DayOfMonth | MonthEnd)
    ]
    if len(weekdays) > 1 or len(others) > 1:
        return _conflict("two days")
    if not others:
        return (weekdays[0] if weekdays else None), None
    return others[0], (weekdays[0] if weekdays else None)


def _check(plan: Plan) -> Plan | Unclear:
    """Refuse parts that contradict each other, and let a part of the day settle the clock."""
    has_time = plan.clock is not None or plan.part is not None
    if plan.is_now and plan != Plan(is_now=True):
        return _conflict('"now" and another time')
    if plan.delay is not None and plan.day is not None:
        return _conflict("a delay and a day")
    if plan.delay is not None and has_time and (plan.delay.seconds or plan.weekday is not None):
        return _conflict("a delay and a time of day")
    if plan.zone is not None and plan.clock is None:
        return _conflict("a time zone and no time of day")
    if plan.clock is None or plan.part is None:
        return plan
    return _settle(plan, plan.clock, plan.part)


def _settle(plan: Plan, clock: Clock, part: Part) -> Plan | Unclear:
    hours = _HOURS[part]
    if clock.is_midnight and part is Part.NIGHT:
        return replace(plan, part=None)
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
    return replace(plan, part=None, clock=replace(clock, hour=hour, is_exact=True))
