"""Putting the pieces of a series together, or saying why they do not fit."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from gateway.domain.when.pieces import (
    Assumed,
    CalendarDate,
    Clock,
    Clocks,
    Counted,
    DayOfMonth,
    Days,
    Delay,
    Edge,
    Except,
    Fault,
    Lasting,
    MonthEnd,
    Months,
    Now,
    OnDays,
    Part,
    PartOfDay,
    Period,
    Piece,
    RelativeDay,
    Rhythm,
    Starting,
    Times,
    Unclear,
    UnclearReason,
    Until,
    Weekday,
    Weeks,
    Which,
    Window,
    Years,
    Zone,
)
from gateway.domain.when.plan import only, settle
from gateway.domain.when.words import DAY_GROUPS

_WEEK: Final = frozenset(range(7))
_GROUPS: Final = frozenset(DAY_GROUPS.values())
_EARLY: Final = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """What repeating words fix: how often, at which times of day, and the bounds."""

    rhythm: Rhythm
    clocks: tuple[Clock, ...] = ()
    part: Part | None = None
    start: Edge | None = None
    until: Edge | None = None
    lasting: Lasting | None = None
    times: Times | None = None
    window: Window | None = None
    zones: tuple[Zone, ...] = ()
    notes: tuple[str, ...] = ()


def conflict(what: str) -> Unclear:
    """Two parts of a series contradict each other."""
    return Unclear(
        reason=UnclearReason.CONFLICT,
        question=f'I read {what}. Say one rhythm, like "every monday at 9:00" or "every 2 hours", '
        "or one moment; if part of it belongs to the text, put the text in quotes.",
    )


def make_series(pieces: Sequence[Piece]) -> Series | Unclear:
    """Join the pieces; a fault among them or a contradiction is Unclear."""
    faults = only(pieces, Fault)
    if faults:
        return faults[0].unclear
    rhythm = _join_rhythms(pieces)
    if isinstance(rhythm, Unclear):
        return rhythm
    if any(isinstance(piece, Delay | Now | RelativeDay) for piece in pieces):
        return conflict("what repeats and a single moment")
    bounds = _join_bounds(pieces)
    if isinstance(bounds, Unclear):
        return bounds
    clocks = _join_clocks(pieces)
    if isinstance(clocks, Unclear):
        return clocks
    parts = {piece.part for piece in only(pieces, PartOfDay)}
    if len(parts) > 1:
        return conflict("two parts of the day")
    series = replace(
        bounds,
        rhythm=rhythm,
        clocks=clocks,
        part=next(iter(parts), None),
        zones=tuple(only(pieces, Zone)),
        notes=tuple(piece.note for piece in only(pieces, Assumed)),
    )
    placed = _place_clocks(series)
    return _check_times(placed) or _check_counts(_settle(placed), only(pieces, Counted))


def _join_rhythms(pieces: Sequence[Piece]) -> Rhythm | Unclear:
    rhythms: list[Rhythm] = [
        piece for piece in pieces if isinstance(piece, Period | Days | Weeks | Months | Years)
    ]
    if not rhythms:  # "not on sundays" says only when it does not
        return conflict("when not, but not how often")
    joined: Rhythm | None = rhythms[0]
    for rhythm in rhythms[1:]:
        joined = _join_two(joined, rhythm)
    if joined is None:
        return conflict("two rhythms")
    for piece in pieces:
        if isinstance(piece, Weekday | OnDays | DayOfMonth | CalendarDate | MonthEnd):
            joined = _with_day(joined, piece)
            if joined is None:
                return conflict("what repeats and a day that does not fit it")
    for piece in only(pieces, Except):
        joined = _without(joined, piece.days)
        if joined is None:
            return conflict("what repeats and an exception that does not fit it")
    return joined


def _join_two(one: Rhythm | None, other: Rhythm) -> Rhythm | None:
    """The rhythm that both say, one of them less exactly; None if they say two."""
    match one, other:
        case None, _:
            return None
        case Days(every=1), Weeks() if other.days in _GROUPS:
            return other
        case Weeks(), Days(every=1) if one.days in _GROUPS:
            return one
        case Weeks(), Weeks():
            return _join_weeks(one, other)
        case Months(), Months():
            return _join_months(one, other)
        case Period(), Weeks(every=1) if other.days and not one.days:
            return replace(one, days=other.days)
        case Weeks(every=1), Period() if one.days:
            return replace(other, days=one.days)
        case Years(date=None), Years():
            return other
        case _:
            return one if one == other else None


def _join_weeks(one: Weeks, other: Weeks) -> Weeks | None:
    if one.every > 1 and other.every > 1 and one.every != other.every:
        return None
    every = max(one.every, other.every)
    if one.days and other.days and one.days != other.days:
        return None
    return Weeks(every=every, days=one.days or other.days)


def _join_months(one: Months, other: Months) -> Months | None:
    has_day = [bool(months.days or months.weekdays) for months in (one, other)]
    if all(has_day) and (one.days, one.weekdays) != (other.days, other.weekdays):
        return None
    if one.every > 1 and other.every > 1 and one != other:
        return None
    spot, stride = (one if has_day[0] else other), (one if one.every > 1 else other)
    return replace(stride, days=spot.days, weekdays=spot.weekdays)


def _with_day(
    rhythm: Rhythm | None, day: Weekday | OnDays | DayOfMonth | CalendarDate | MonthEnd
) -> Rhythm | None:
    """The rhythm on a day that was named beside it."""
    match rhythm, day:
        case Weeks(), Weekday(which=Which.NEAREST) if not rhythm.days:
            return replace(rhythm, days=frozenset({day.day}))
        case Weeks(), OnDays() if not rhythm.days:
            return replace(rhythm, days=day.days)
        case Months(days="", weekdays=""), DayOfMonth():
            return replace(rhythm, days=str(day.day))
        case Months(days="", weekdays=""), MonthEnd():
            return replace(rhythm, days="L")
        case Years(date=None), CalendarDate():
            return Years(date=day)
        case _:
            return None


def _without(rhythm: Rhythm | None, days: frozenset[int]) -> Rhythm | None:
    match rhythm:
        case Days(every=1):
            return Weeks(days=_WEEK - days)
        case Weeks() if rhythm.days - days:
            return replace(rhythm, days=rhythm.days - days)
        case Period():
            return replace(rhythm, days=(rhythm.days or _WEEK) - days)
        case _:
            return None


def _join_bounds(pieces: Sequence[Piece]) -> Series | Unclear:
    """The bounds, each at most once, in a series that has nothing else yet."""
    starts, untils = only(pieces, Starting), only(pieces, Until)
    lasting, times, windows = only(pieces, Lasting), only(pieces, Times), only(pieces, Window)
    if any(len(bounds) > 1 for bounds in (starts, untils, times, windows)):
        return conflict("two limits")
    if len(lasting) + len(untils) > 1:
        return conflict("two ends")
    return Series(
        rhythm=Days(),
        start=starts[0].edge if starts else None,
        until=untils[0].edge if untils else None,
        lasting=lasting[0] if lasting else None,
        times=times[0] if times else None,
        window=windows[0] if windows else None,
    )


def _join_clocks(pieces: Sequence[Piece]) -> tuple[Clock, ...] | Unclear:
    """The times of day: one, or several that were named together."""
    lists = [
        (piece,) if isinstance(piece, Clock) else piece.clocks
        for piece in pieces
        if isinstance(piece, Clock | Clocks)
    ]
    if len(lists) > 1:
        said = " and ".join(f'"{clocks[0].said}"' for clocks in lists[:2])
        return conflict(f"two times, {said}")
    return lists[0] if lists else ()


def _place_clocks(series: Series) -> Series:
    """Give a time of day that follows "until friday" to the series where it has none."""
    start = series.start
    if start is not None and not isinstance(series.rhythm, Period) and not series.clocks:
        parts = [piece for piece in start.pieces if isinstance(piece, PartOfDay)]
        if parts and series.part is None:  # "starting tomorrow evening"
            days = tuple(piece for piece in start.pieces if piece not in parts)
            series = replace(series, part=parts[0].part, start=replace(start, pieces=days))
        only_clock = start.pieces[0] if len(start.pieces) == 1 else None
        if isinstance(only_clock, Clock):  # "every day from 9:00"
            return replace(series, clocks=(only_clock,), start=None)
    edges = [edge for edge in (series.start, series.until) if edge is not None and edge.clocks]
    if len(edges) == 1 and not series.clocks and not isinstance(series.rhythm, Period):
        return replace(
            series,
            clocks=edges[0].clocks,
            start=_without_clocks(series.start),
            until=_without_clocks(series.until),
        )
    return replace(series, start=_with_clocks(series.start), until=_with_clocks(series.until))


def _without_clocks(edge: Edge | None) -> Edge | None:
    return None if edge is None else replace(edge, clocks=())


def _with_clocks(edge: Edge | None) -> Edge | None:
    return None if edge is None else replace(edge, pieces=(*edge.pieces, *edge.clocks), clocks=())


def _settle(series: Series) -> Series | Unclear:
    """Let a part of the day settle the clock times: "every evening at 8"."""
    if series.part is None or not series.clocks:
        return series
    settled = []
    for clock in series.clocks:
        # "every night at 2am" can only be the small hours.
        is_small = clock.is_exact and clock.hour < _EARLY and isinstance(series.rhythm, Days)
        if series.part is Part.NIGHT and is_small:
            settled.append(clock)
            continue
        found = settle(clock, series.part)
        if isinstance(found, Unclear):
            return found
        settled.append(found)
    return replace(series, clocks=tuple(settled), part=None)


def _check_times(series: Series) -> Unclear | None:
    """Ask about "every day 3 times", which may say how often each day."""
    times = series.times
    is_open = times is not None and not times.is_sure and not series.clocks
    if times is None or not is_open or isinstance(series.rhythm, Period):
        return None
    return Unclear(
        reason=UnclearReason.AMBIGUOUS,
        question=f'Does "{times.said}" mean in all, or each time? Write "for {times.count} times", '
        'or the times of day, like "every day at 8:00 and 20:00".',
    )


def _check_counts(series: Series | Unclear, counts: list[Counted]) -> Series | Unclear:
    """ "twice a day" needs two times, "twice a week" two days."""
    if isinstance(series, Unclear) or not counts:
        return series
    counted, rhythm = counts[0], series.rhythm
    has_days = isinstance(rhythm, Weeks) and len(rhythm.days) == counted.count
    if len(counts) == 1 and (has_days or len(series.clocks) == counted.count):
        return series
    example = "every day at 8:00 and 20:00"
    if isinstance(rhythm, Weeks):
        example = "every monday and thursday at 9:00"
    return Unclear(
        reason=UnclearReason.VAGUE,
        question=f'When exactly is "{counted.said}"? Write for example "{example}".',
    )
