"""From a series and the present to its schedule and its first slot."""

from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from typing import Final, assert_never
from zoneinfo import ZoneInfo

from gateway.domain.schedule import (
    MAX_PERIOD,
    MIN_PERIOD,
    Daily,
    Every,
    Recurring,
    Weekly,
    next_slot,
    parse_cron,
)
from gateway.domain.wallclock import instants
from gateway.domain.when.clocktimes import Times, read_times
from gateway.domain.when.crontab import at_times, in_window, on_days
from gateway.domain.when.edges import (
    Limit,
    end_of,
    find_end,
    find_start,
    lasting_end,
    lasting_moment,
    show_date,
)
from gateway.domain.when.local import show_now
from gateway.domain.when.pieces import (
    Days,
    Months,
    Period,
    Unclear,
    UnclearReason,
    Understood,
    Weeks,
    When,
    Years,
)
from gateway.domain.when.resolve import FAR, MORNING, too_far
from gateway.domain.when.series import Series, conflict
from gateway.domain.when.words import MONTH_NAMES, WEEKDAY_NAMES

_SECOND: Final = timedelta(seconds=1)
_YEAR_MONTHS: Final = 12
_SHORTEST_MONTH: Final = 28


@dataclass(frozen=True, slots=True, kw_only=True)
class _Present:
    """Now and the zone of the chat; where the series begins, if that was said."""

    now: datetime
    zone: ZoneInfo
    start: Limit | None

    @property
    def today(self) -> date:
        return self.now.astimezone(self.zone).date()

    @property
    def first_day(self) -> date:
        return self.today if self.start is None else max(self.start.day, self.today)

    @property
    def before_first(self) -> datetime:
        """The moment after which the first slot is looked for."""
        if self.first_day == self.today:
            return self.now
        return instants(self.first_day, time(0), self.zone)[0].at - _SECOND


@dataclass(frozen=True, slots=True, kw_only=True)
class _Draft:
    """A schedule without its end, and what was assumed."""

    schedule: Recurring
    notes: tuple[str | None, ...] = ()


def resolve_series(series: Series, *, now: datetime, zone: ZoneInfo) -> When:
    """Find the schedule of `series` and its first slot after `now`, or say why there is none."""
    now = now.astimezone(UTC).replace(microsecond=now.microsecond // 1000 * 1000)
    for named in series.zones:
        if str(named.zone) != str(zone):
            return _other_zone(str(named.zone), zone)
    start = None if series.start is None else find_start(series.start, now=now, zone=zone)
    if isinstance(start, Unclear):
        return start
    present = _Present(now=now, zone=zone, start=start)
    draft = _draft(series, present)
    if isinstance(draft, Unclear):
        return draft
    end = _end(series, draft.schedule, present)
    if isinstance(end, Unclear):
        return end
    return _finish(series, draft, end, present)


def _draft(series: Series, present: _Present) -> _Draft | Unclear:
    rhythm = series.rhythm
    if isinstance(rhythm, Period):
        return _by_period(series, rhythm, present)
    if series.window is not None:
        return _vague(series.window.said)
    if present.start is not None and present.start.at not in (None, present.now):
        return conflict("two times of day")
    times = read_times(series)
    if isinstance(times, Unclear):
        return times
    match rhythm:
        case Days():
            return _by_days(rhythm, times, present)
        case Weeks():
            return _by_weeks(rhythm, times, present)
        case Months():
            return _by_months(rhythm, times, present)
        case Years():
            return _by_years(rhythm, times, present)
        case _:
            assert_never(rhythm)


def _by_period(series: Series, rhythm: Period, present: _Present) -> _Draft | Unclear:
    period = timedelta(seconds=rhythm.seconds)
    if not MIN_PERIOD <= period <= MAX_PERIOD:
        return _bad_period()
    if series.clocks or series.part is not None:
        question = 'From which time on? Write for example "every 2 hours starting at 9:00".'
        return Unclear(reason=UnclearReason.AMBIGUOUS, question=question)
    start = present.start
    if series.window is not None or rhythm.days:
        found = in_window(period, series.window, rhythm.days)
        if isinstance(found, Unclear):
            return found
        return _checked(_Draft(schedule=parse_cron(found[0]), notes=(found[1],)), present)
    anchor, note = present.now, None
    if start is not None and start.at is not None:
        anchor = start.at
    elif start is not None and start.day > present.today:
        anchor = instants(start.day, MORNING, present.zone)[0].at
        note = f"no time given, so from {MORNING:%H:%M}"
    return _Draft(schedule=Every(period=period, anchor=anchor), notes=(note,))


def _by_days(rhythm: Days, times: Times, present: _Present) -> _Draft | Unclear:
    if not 1 <= rhythm.every <= MAX_PERIOD.days:
        return _bad_period()
    if len(times.clocks) > 1:
        if rhythm.every > 1:
            return _one_time()
        return _cron(at_times(times.clocks), times.notes, present)
    return _counted(Daily(time=times.clocks[0], every=rhythm.every), times.notes, present)


def _by_weeks(rhythm: Weeks, times: Times, present: _Present) -> _Draft | Unclear:
    if not 1 <= rhythm.every * 7 <= MAX_PERIOD.days:
        return _bad_period()
    days, notes = rhythm.days, times.notes
    if not days:
        weekday = present.first_day.weekday()
        days, notes = frozenset({weekday}), (f"on {WEEKDAY_NAMES[weekday]}s", *notes)
    if len(times.clocks) > 1:
        if rhythm.every > 1:
            return _one_time()
        return _cron(at_times(times.clocks, weekdays=on_days(days)), notes, present)
    return _counted(Weekly(days=days, time=times.clocks[0], every=rhythm.every), notes, present)


def _counted(
    schedule: Daily | Weekly, notes: tuple[str | None, ...], present: _Present
) -> _Draft | Unclear:
    """The schedule counted from its first slot, where that matters."""
    plain = replace(schedule, every=1)
    first = next_slot(plain, after=present.before_first, zone=present.zone)
    if first is None:
        return too_far()
    day = first.astimezone(present.zone).date()
    if schedule.every > 1:
        shown = f"the first on {show_date(day, present.today)}"
        return _Draft(schedule=replace(schedule, since=day), notes=(shown, *notes))
    earliest = next_slot(plain, after=present.now, zone=present.zone)
    if earliest is not None and earliest < first:
        schedule = replace(schedule, since=present.first_day)
    return _Draft(schedule=schedule, notes=notes)


def _by_months(rhythm: Months, times: Times, present: _Present) -> _Draft | Unclear:
    notes: tuple[str | None, ...] = times.notes
    if not rhythm.days and not rhythm.weekdays:
        number = 1 if rhythm.is_quarter else present.first_day.day
        rhythm = replace(rhythm, days=str(number))
        notes = (f"on day {number}", *notes)
    numbers = [int(day) for day in rhythm.days.split(",") if day.isdigit()]
    if max(numbers, default=0) > _SHORTEST_MONTH:
        notes = (*notes, "shorter months are left out")
    if "#5" in rhythm.weekdays:
        notes = (*notes, "months without a fifth one are left out")
    days, weekdays = rhythm.days or "*", rhythm.weekdays or "*"
    expression = at_times(times.clocks, days=days, weekdays=weekdays)
    if isinstance(expression, Unclear) or rhythm.every == 1:
        return _cron(expression, notes, present)
    if rhythm.every < 1 or _YEAR_MONTHS % rhythm.every:
        question = (
            "I can repeat after 1, 2, 3, 4, 6 or 12 months. Write for example every 2 months."
        )
        return Unclear(reason=UnclearReason.PERIOD, question=question)
    first = next_slot(parse_cron(expression), after=present.before_first, zone=present.zone)
    month = 1 if rhythm.is_quarter or first is None else first.astimezone(present.zone).month
    months = sorted(
        (month - 1 + step) % _YEAR_MONTHS + 1 for step in range(0, _YEAR_MONTHS, rhythm.every)
    )
    names = [MONTH_NAMES[number - 1] for number in months]
    notes = (f"in {', '.join(names[:-1])} and {names[-1]}", *notes)
    listed = ",".join(str(number) for number in months)
    return _cron(
        at_times(times.clocks, days=days, months=listed, weekdays=weekdays), notes, present
    )


def _by_years(rhythm: Years, times: Times, present: _Present) -> _Draft | Unclear:
    named = rhythm.date
    if named is not None and named.year is not None:
        return conflict("every year and a single year")
    notes: tuple[str | None, ...] = times.notes
    if named is None:
        day, month = present.first_day.day, present.first_day.month
        notes = (f"on {day} {MONTH_NAMES[month - 1]}", *notes)
    else:
        day, month = named.day, named.month
        notes = (named.note, *notes)
    if (day, month) == (29, 2):
        notes = (*notes, "in leap years only")
    return _cron(at_times(times.clocks, days=str(day), months=str(month)), notes, present)


def _cron(
    expression: str | Unclear, notes: tuple[str | None, ...], present: _Present
) -> _Draft | Unclear:
    if isinstance(expression, Unclear):
        return expression
    return _checked(_Draft(schedule=parse_cron(expression), notes=notes), present)


def _checked(draft: _Draft, present: _Present) -> _Draft | Unclear:
    """The draft if nothing comes before its start: a cron expression cannot hold one."""
    if present.start is None:
        return draft
    zone, start = present.zone, present.start
    first = next_slot(draft.schedule, after=present.now, zone=zone)
    is_early = first is not None and (
        first < start.at if start.at is not None else first.astimezone(zone).date() < start.day
    )
    if not is_early:
        return draft
    question = (
        f"That would begin before {show_date(start.day, present.today)}, and I cannot hold this "
        'rhythm back. Ask for it again when it is to begin, or leave "starting" out.'
    )
    return Unclear(reason=UnclearReason.CONFLICT, question=question)


def _end(series: Series, schedule: Recurring, present: _Present) -> Limit | Unclear | None:
    """The end that was named, if one was."""
    now, zone, lasting = present.now, present.zone, series.lasting
    is_by_period = isinstance(series.rhythm, Period)
    if series.until is not None:
        end = find_end(series.until, now=now, zone=zone)
        is_hour = not isinstance(end, Unclear) and end.at is not None and end.day == present.today
        if is_hour and not is_by_period:
            return _vague(series.until.said)
        return end
    if lasting is None:
        return None
    if is_by_period:
        start = schedule.anchor if isinstance(schedule, Every) else present.before_first
        return lasting_moment(lasting, start=start, zone=zone)
    first = next_slot(schedule, after=now, zone=zone)
    return too_far() if first is None else lasting_end(lasting, first=first, zone=zone)


def _finish(series: Series, draft: _Draft, end: Limit | None, present: _Present) -> When:
    zone = present.zone
    schedule = replace(
        draft.schedule, max_runs=None if series.times is None else series.times.count
    )
    if end is not None:
        until = end_of(end.day, zone) if end.at is None else end.at
        schedule = replace(schedule, until=until)
    at = next_slot(schedule, after=present.now, zone=zone)
    if at is None:
        question = (
            f"That would end before its first time: it is now {show_now(present.now, zone)}. Say a "
            "later end."
        )
        return Unclear(reason=UnclearReason.PAST, question=question)
    if at - present.now > FAR:
        return too_far()
    start = present.start
    is_later = present.first_day > present.today
    if start is not None and start.at is not None:
        is_later = start.at > present.now
    # Where the first day is counted from, its note stands already.
    is_said = isinstance(schedule, Daily | Weekly) and schedule.every > 1
    begins = start.note if start is not None and is_later and not is_said else None
    ends = None if end is None else end.note
    notes = "; ".join(filter(None, (*series.notes, *draft.notes, begins, ends)))
    return Understood(at=at, schedule=schedule, note=notes or None)


def _vague(said: str) -> Unclear:
    return Unclear(
        reason=UnclearReason.VAGUE,
        question=f'What does "{said}" say about the time? Write for example "every day at 9:00 '
        'until 31 December" or "every hour between 9:00 and 17:00".',
    )


def _one_time() -> Unclear:
    return Unclear(
        reason=UnclearReason.AMBIGUOUS,
        question="With days or weeks between I take one time of day. Ask for each time by itself.",
    )


def _bad_period() -> Unclear:
    return Unclear(
        reason=UnclearReason.PERIOD,
        question="I repeat once a minute at most, and once in 366 days at least. Write for example "
        '"every 5 minutes" or "every month".',
    )


def _other_zone(name: str, zone: ZoneInfo) -> Unclear:
    return Unclear(
        reason=UnclearReason.NOT_UNDERSTOOD,
        question=f"What repeats follows the clock of this chat, {zone}. Say the time in it, "
        f'without "{name}".',
    )
