"""From a plan and the present to one instant: the earliest honest reading that is still to come."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from itertools import islice
from typing import Final, assert_never
from zoneinfo import ZoneInfo

from gateway.domain.schedule import At
from gateway.domain.wallclock import Instant, instants
from gateway.domain.when.local import add_months, date_or_none, show_day, show_now
from gateway.domain.when.pieces import (
    CalendarDate,
    Clock,
    Day,
    DayOfMonth,
    Delay,
    MonthEnd,
    Part,
    RelativeDay,
    Unclear,
    UnclearReason,
    Understood,
    Weekday,
    When,
    Which,
)
from gateway.domain.when.plan import Plan
from gateway.domain.when.words import WEEKDAY_NAMES

LATENESS: Final = timedelta(seconds=60)
FAR: Final = timedelta(days=5 * 365 + 2)
_YEARS: Final = 5
MORNING: Final = time(9)
_MORNING_BEGINS: Final = 7
PART_TIMES: Final = {
    Part.MORNING: MORNING,
    Part.AFTERNOON: time(15),
    Part.EVENING: time(19),
    Part.NIGHT: time(21),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Candidate:
    """A day that may be meant, with what was assumed to get there."""

    day: date
    note: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reading:
    """A time of day that may be meant, with what was assumed to get there."""

    clock: time
    note: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Present:
    """Now, the person's zone, and the zone that the words are read in."""

    now: datetime
    home: tzinfo
    zone: tzinfo

    @property
    def today(self) -> date:
        return self.now.astimezone(self.zone).date()


def resolve(plan: Plan, *, now: datetime, zone: ZoneInfo) -> When:
    """Find the instant of `plan`, or say why there is none."""
    present = _Present(now=now.astimezone(UTC), home=zone, zone=plan.zone or zone)
    if plan.is_now:
        return _moment(present.now)
    delay = plan.delay
    if delay is not None:
        if is_too_far(delay):
            return too_far()
        if plan.clock is None and plan.part is None:
            return _limited(_add(delay, present), delay.note, present)
        day = add_months(present.today, delay.months) + timedelta(days=delay.days)
        date_of = CalendarDate(day=day.day, month=day.month, year=day.year)
        plan = replace(plan, delay=None, day=date_of)
        return _with_note(_resolve_day(plan, present), delay.note)
    return _resolve_day(plan, present)


def is_too_far(delay: Delay) -> bool:
    """Whether a delay leads further ahead than anything is planned."""
    return delay.months * 30 + delay.days + delay.seconds // 86400 > FAR.days


def later(delay: Delay, *, now: datetime, zone: ZoneInfo) -> datetime:
    """The instant `delay` after `now`; aware UTC."""
    return _add(delay, _Present(now=now.astimezone(UTC), home=zone, zone=zone)).at


def _add(delay: Delay, present: _Present) -> Instant:
    """Add calendar months and days on the local clock, then seconds on the real one."""
    if not (delay.months or delay.days):
        return Instant(at=present.now + timedelta(seconds=delay.seconds))
    here = present.now.astimezone(present.zone)
    day = add_months(here.date(), delay.months) + timedelta(days=delay.days)
    first = instants(day, here.time(), present.zone)[0]
    return Instant(at=first.at + timedelta(seconds=delay.seconds), note=first.note)


def _resolve_day(plan: Plan, present: _Present) -> When:
    refusal = _check_year(plan, present) or _check_midnight(plan)
    if refusal is not None:
        return refusal
    if plan.clock is not None and plan.clock.is_midnight:
        plan = replace(plan, day=None)  # "midnight tonight" is the coming one
    for candidate in _candidates(plan.day, present.today, plan.clock):
        if plan.weekday is not None and candidate.day.weekday() != plan.weekday.day:
            return _wrong_weekday(candidate.day, plan.weekday)
        for reading in _readings(plan, candidate, present):
            for instant in instants(candidate.day, reading.clock, present.zone):
                if instant.at < present.now - LATENESS:
                    continue
                if isinstance(plan.day, Weekday) and candidate.day == present.today:
                    return _today_or_next(candidate.day)
                notes = "; ".join(filter(None, (candidate.note, reading.note)))
                if notes and present.zone is not present.home:
                    notes += f" ({present.zone})"
                return _limited(instant, notes, present)
    return _past(plan, present)


def _limited(instant: Instant, note: str | None, present: _Present) -> When:
    if instant.at - present.now > FAR:
        return too_far()
    notes = "; ".join(filter(None, (note, instant.note)))
    return _moment(instant.at, notes or None)


def _moment(at: datetime, note: str | None = None) -> Understood:
    return Understood(at=at, schedule=At(at=at), note=note)


def _with_note(when: When, note: str | None) -> When:
    if isinstance(when, Unclear) or note is None:
        return when
    return replace(when, note="; ".join(filter(None, (note, when.note))))


def _candidates(day: Day | None, today: date, clock: Clock | None) -> Iterator[_Candidate]:
    """The days that may be meant, nearest first."""
    match day:
        case None:
            yield from _any_day(today, clock)
        case RelativeDay():
            yield _Candidate(day=today + timedelta(days=day.days))
        case Weekday():
            yield from _weekdays(day, today)
        case CalendarDate():
            yield from _dates(day, today)
        case DayOfMonth():
            yield from _days_of_month(day.day, today)
        case MonthEnd():
            end = add_months(today.replace(day=1), 1) - timedelta(days=1)
            yield _Candidate(day=end)
            later = add_months(end.replace(day=1), 2) - timedelta(days=1)
            yield _Candidate(day=later, note=f"today's has passed, so {show_day(later)}")
        case _:
            assert_never(day)


def _any_day(today: date, clock: Clock | None) -> Iterator[_Candidate]:
    yield _Candidate(day=today)
    shown = "" if clock is None else f"{clock.hour:02}:{clock.minute:02}"
    is_plain = clock is None or not clock.is_exact or clock.is_midnight
    note = None if is_plain else f"{shown} has passed today, so tomorrow"
    yield _Candidate(day=today + timedelta(days=1), note=note)


def _weekdays(weekday: Weekday, today: date) -> Iterator[_Candidate]:
    ahead = (weekday.day - today.weekday()) % 7
    if weekday.which is Which.NEXT:
        day = today + timedelta(days=7 - today.weekday() + weekday.day)
        yield _Candidate(day=day, note=f"I took next week's, {show_day(day)}")
        return
    yield _Candidate(day=today + timedelta(days=ahead))
    if ahead == 0:
        day = today + timedelta(days=7)
        yield _Candidate(day=day, note=f"today's has passed, so {show_day(day)}")


def _dates(day: CalendarDate, today: date) -> Iterator[_Candidate]:
    if day.year is not None:
        exact = date_or_none(day.year, day.month, day.day)
        if exact is not None:
            yield _Candidate(day=exact, note=day.note)
        return
    for year in range(today.year, today.year + _YEARS + 4):
        found = date_or_none(year, day.month, day.day)
        if found is not None and found >= today:
            later = None if year == today.year else f"the next one is in {year}"
            notes = "; ".join(filter(None, (day.note, later)))
            yield _Candidate(day=found, note=notes or None)
            return


def _days_of_month(number: int, today: date) -> Iterator[_Candidate]:
    month = today.replace(day=1)
    months = (add_months(month, ahead) for ahead in range(4))
    dates = (date_or_none(first.year, first.month, number) for first in months)
    coming = (found for found in dates if found is not None and found >= today)
    for found in islice(coming, 2):
        is_soon = (found - today).days < 28 or found.month == today.month
        note = None if is_soon else f"the next one is {show_day(found)}"
        yield _Candidate(day=found, note=note)


def _readings(plan: Plan, candidate: _Candidate, present: _Present) -> Iterator[_Reading]:
    """The times of day that may be meant on that day, the earliest first.

    Only today can the first half of the day be over, and then the other half is meant.
    """
    clock = plan.clock
    if clock is None:
        yield _default_reading(plan.part)
        return
    shown = time(clock.hour, clock.minute, clock.second, clock.microsecond)
    if clock.is_exact:
        is_start = shown == time(0) and plan.day is not None and not clock.is_midnight
        yield _Reading(clock=shown, note="00:00 is the start of that day" if is_start else None)
        return
    is_today, is_free = candidate.day == present.today, plan.day is None
    hours = [clock.hour]
    if is_free and clock.hour == 12:
        hours = [12] if is_today else [0, 12]
    elif is_today and not isinstance(plan.day, Weekday):
        hours = [clock.hour, clock.hour % 12 + 12]
    for hour in dict.fromkeys(hours):
        reading = shown.replace(hour=hour)
        yield _Reading(clock=reading, note=_reading_note(clock, reading, is_today, is_free))


def _reading_note(clock: Clock, reading: time, is_today: bool, is_free: bool) -> str | None:
    """What was assumed of the half of the day, unless it was written as on a 24-hour clock."""
    is_as_written = reading.hour == clock.hour and clock.hour >= 10 and ":" in clock.said
    if is_as_written and (is_today or not is_free):
        return None
    day = "" if not is_free else " today" if is_today else " tomorrow"
    is_night = not is_free and reading.hour < _MORNING_BEGINS and reading.hour == clock.hour
    other = f"; write {clock.hour + 12}:{clock.minute:02} for the afternoon" if is_night else ""
    return f"I read {clock.said} as {reading:%H:%M}{day}{other}"


def _default_reading(part: Part | None) -> _Reading:
    if part is None:
        return _Reading(clock=MORNING, note=f"no time given, so {MORNING:%H:%M}")
    clock = PART_TIMES[part]
    return _Reading(clock=clock, note=f"I read {part} as {clock:%H:%M}")


def _check_year(plan: Plan, present: _Present) -> Unclear | None:
    if not isinstance(plan.day, CalendarDate) or plan.day.year is None:
        return None
    if plan.day.year > present.today.year + _YEARS:
        return too_far()
    return _past(plan, present) if plan.day.year < present.today.year else None


def _check_midnight(plan: Plan) -> Unclear | None:
    is_today = plan.day is None or plan.day == RelativeDay(days=0)
    if plan.clock is None or not plan.clock.is_midnight or is_today:
        return None
    return Unclear(
        reason=UnclearReason.AMBIGUOUS,
        question="Midnight at the start of that day, or at its end? Write 00:00 or 23:59.",
    )


def _wrong_weekday(day: date, weekday: Weekday) -> Unclear:
    named = WEEKDAY_NAMES[weekday.day]
    return Unclear(
        reason=UnclearReason.CONFLICT,
        question=f"I read two days, {named} and {show_day(day)}. Which one do you mean? Say only "
        "that one; if the other belongs to the text, put the text in quotes.",
    )


def _today_or_next(today: date) -> Unclear:
    later = today + timedelta(days=7)
    return Unclear(
        reason=UnclearReason.AMBIGUOUS,
        question=f"Today is {show_day(today)}. Do you mean today or {show_day(later)}? Say "
        f'"today" or the date.',
    )


def too_far() -> Unclear:
    """The moment lies further ahead than anything is planned."""
    return Unclear(
        reason=UnclearReason.TOO_FAR,
        question=f"That is more than {_YEARS} years ahead; I go no further. Say a nearer date.",
    )


def _past(plan: Plan, present: _Present) -> Unclear:
    if plan.day != RelativeDay(days=0) or plan.clock is not None:
        return passed(now=present.now, zone=present.home)
    now = show_now(present.now, present.home)
    question = f"At what time today? It is now {now}. Say for example today at 23:00."
    return Unclear(reason=UnclearReason.PAST, question=question)


def passed(*, now: datetime, zone: tzinfo) -> Unclear:
    """The moment lies in the past; the question gives the present local time."""
    return Unclear(
        reason=UnclearReason.PAST,
        question=f"That has already passed: it is now {show_now(now, zone)}. Say a time to come, "
        "like tomorrow at 9:00 or in 20 minutes.",
    )
