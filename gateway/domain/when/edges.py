"""Where a series begins and ends: from the words to a local day or an instant."""

from dataclasses import dataclass, replace
from datetime import date, datetime, time, timedelta
from typing import Final
from zoneinfo import ZoneInfo

from gateway.domain.wallclock import instants
from gateway.domain.when.local import add_months, show_day
from gateway.domain.when.pieces import (
    Clock,
    Delay,
    Edge,
    Lasting,
    Part,
    RelativeDay,
    Stretch,
    Unclear,
    UnclearReason,
)
from gateway.domain.when.plan import Plan, make_plan
from gateway.domain.when.resolve import is_too_far, later, resolve, too_far

_LAST_MINUTE: Final = time(23, 59, 59)
_LAST_CLOCK: Final = Clock(hour=23, minute=59, second=59, is_exact=True, said="23:59:59")


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """The first or last moment of a series: its local day, the instant if one was named.

    `note` tells which, for the person.
    """

    day: date
    at: datetime | None = None
    note: str


def end_of(day: date, zone: ZoneInfo) -> datetime:
    """The last second of a local day."""
    return instants(day, _LAST_MINUTE, zone)[-1].at


def show_date(day: date, today: date) -> str:
    """A day for the note, with its year where that is another than today's."""
    return show_day(day) if day.year == today.year else f"{show_day(day)} {day.year}"


def find_end(edge: Edge, *, now: datetime, zone: ZoneInfo) -> Limit | Unclear:
    """The last moment that "until ..." allows: a day, week, month or year counts to its end."""
    today = now.astimezone(zone).date()
    if edge.stretch is not None:
        day = _span(edge.stretch, today)[1]
        return Limit(day=day, note=f"until {show_date(day, today)}")
    plan = make_plan(edge.pieces)
    if isinstance(plan, Unclear):
        return plan
    if plan.part in (Part.MORNING, Part.AFTERNOON):
        question = f'Until what time is "{edge.said}"? Write for example "until tomorrow at 12:00".'
        return Unclear(reason=UnclearReason.VAGUE, question=question)
    if plan.clock is not None and plan.day is None and not plan.clock.is_midnight:
        plan = replace(plan, day=RelativeDay(days=0))
    return _limit(plan, "until", now=now, zone=zone)


def find_start(edge: Edge, *, now: datetime, zone: ZoneInfo) -> Limit | Unclear:
    """The first moment that "starting ..." allows; an hour is read as on a 24-hour clock."""
    today = now.astimezone(zone).date()
    if edge.stretch is not None:
        day = max(_span(edge.stretch, today)[0], today)
        return Limit(day=day, note=f"starting {show_date(day, today)}")
    plan = make_plan(edge.pieces)
    if isinstance(plan, Unclear):
        return plan
    if plan.clock is not None:
        plan = replace(plan, clock=replace(plan.clock, is_exact=True))
    if plan.part is not None:
        return _moment(plan, "starting", now=now, zone=zone)
    return _limit(plan, "starting", now=now, zone=zone)


def _limit(plan: Plan, word: str, *, now: datetime, zone: ZoneInfo) -> Limit | Unclear:
    if plan.clock is not None or plan.is_now or _is_short(plan.delay):
        return _moment(plan, word, now=now, zone=zone)
    plan = replace(plan, part=None, clock=_LAST_CLOCK)
    limit = _moment(plan, word, now=now, zone=zone)
    if isinstance(limit, Unclear):
        return limit
    shown = show_date(limit.day, now.astimezone(zone).date())
    return Limit(day=limit.day, note=f"{word} {shown}")


def _moment(plan: Plan, word: str, *, now: datetime, zone: ZoneInfo) -> Limit | Unclear:
    when = resolve(plan, now=now, zone=zone)
    if isinstance(when, Unclear):
        return when
    here = when.at.astimezone(zone)
    shown = show_date(here.date(), now.astimezone(zone).date())
    return Limit(day=here.date(), at=when.at, note=f"{word} {shown} {here:%H:%M}")


def _is_short(delay: Delay | None) -> bool:
    return delay is not None and delay.seconds > 0


def _span(stretch: Stretch, today: date) -> tuple[date, date]:
    """The first and the last day of a week, month or year."""
    if stretch.unit == "week":
        monday = today - timedelta(days=today.weekday()) + timedelta(weeks=stretch.ahead)
        return monday, monday + timedelta(days=6)
    if stretch.unit == "year":
        year = today.year + stretch.ahead
        return date(year, 1, 1), date(year, 12, 31)
    first = add_months(today.replace(day=1), stretch.ahead)
    if stretch.month is not None:
        year = stretch.year or today.year + (stretch.month < today.month)
        first = date(year, stretch.month, 1)
    return first, add_months(first, 1) - timedelta(days=1)


def lasting_end(lasting: Lasting, *, first: datetime, zone: ZoneInfo) -> Limit | Unclear:
    """The last day of so many days, weeks or months that begin with the day of `first`."""
    delay = lasting.delay
    if is_too_far(delay):
        return too_far()
    if delay.seconds:
        question = f'I do not know when "{lasting.said}" ends. Say for example "for 5 days".'
        return Unclear(reason=UnclearReason.VAGUE, question=question)
    begin = first.astimezone(zone).date()
    day = add_months(begin, delay.months) + timedelta(days=delay.days - 1)
    return Limit(day=day, note=f"until {show_date(day, begin)}")


def lasting_moment(lasting: Lasting, *, start: datetime, zone: ZoneInfo) -> Limit | Unclear:
    """The instant at which so much time from `start` is over."""
    if is_too_far(lasting.delay):
        return too_far()
    at = later(lasting.delay, now=start, zone=zone)
    end, begin = at.astimezone(zone), start.astimezone(zone).date()
    return Limit(day=end.date(), at=at, note=f"until {show_date(end.date(), begin)} {end:%H:%M}")
