"""From the arguments of a call to a schedule and its first slot, or to why there is none."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from extensions.schedule_arguments import ScheduleArguments
from gateway.domain.job import Job
from gateway.domain.schedule import (
    MAX_PERIOD,
    MIN_PERIOD,
    At,
    Daily,
    Schedule,
    Weekly,
    next_slot,
    parse_cron,
    to_millis,
)
from gateway.domain.schedule_forms import schedule_from_json
from gateway.domain.tool import ToolContext
from gateway.domain.wallclock import instants
from gateway.domain.when import UnclearReason, Understood, parse_when
from gateway.errors import BadScheduleError

FORMS = (
    'give exactly one of when (like "tomorrow at 9" or "every weekday at 8"), in (like "20 '
    'minutes"), at (ISO 8601, like 2026-12-01T09:00), cron (like "0 9 * * mon-fri") or schedule.'
)
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_CLOCK = re.compile(
    r"\s*(?:at |to )?(\d{1,2}(?:[:.]\d{2})?(?:\s*[ap]\.?m\.?)?|noon|midnight)\s*", re.IGNORECASE
)
_FAR = timedelta(days=10 * 366)
_NICKNAME = re.compile(r"\s*@[a-z]", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """A schedule with its first slot; `note` is what was assumed."""

    schedule: Schedule
    first: datetime
    note: str | None = None


def has_new_time(arguments: ScheduleArguments) -> bool:
    """Whether a call says when, and not only until when or how often."""
    return bool(_given(arguments))


def names_time(arguments: ScheduleArguments) -> bool:
    """Whether a call says anything of when."""
    return has_new_time(arguments) or arguments.until is not None or arguments.max_runs is not None


def resolve(context: ToolContext, arguments: ScheduleArguments) -> Timing | str:
    """The schedule that the arguments name, or why there is none, as a sentence."""
    if len(_given(arguments)) != 1:
        return FORMS
    try:
        timing = _read(context, arguments)
        return timing if isinstance(timing, str) else _bounded(context, arguments, timing)
    except BadScheduleError as error:
        return f"{error}."


def resolve_change(context: ToolContext, arguments: ScheduleArguments, job: Job) -> Timing | str:
    """As `resolve`, for a job that may keep its times and get another end only."""
    if _given(arguments):
        is_alone = arguments.when is not None and len(_given(arguments)) == 1
        clock = _CLOCK.fullmatch(arguments.when or "") if is_alone else None
        kept = None if clock is None else _at_clock(context, clock[1], job)
        return _bounded(context, arguments, kept) if kept else resolve(context, arguments)
    schedule = job.schedule
    if arguments.until is not None and not isinstance(schedule, At):
        schedule = replace(schedule, until=None)
    first = next_slot(schedule, after=context.now, zone=ZoneInfo(job.timezone))
    if first is None:
        return f"its time has passed; {FORMS}"
    return _bounded(context, arguments, Timing(schedule=schedule, first=first))


def _at_clock(context: ToolContext, clock: str, job: Job) -> Timing | None:
    """The job at another time of its own day or days; None = that cannot be."""
    zone = ZoneInfo(context.timezone)
    match job.schedule:
        case At(at=at):
            day = at.astimezone(zone).date()
            timing = _from_words(context, f"{day} at {clock}", since=context.now)
            return None if isinstance(timing, str) else timing
        case Daily() | Weekly():
            asked = parse_when(f"every day at {clock}", now=context.now, zone=zone)
            if not isinstance(asked, Understood) or not isinstance(asked.schedule, Daily):
                return None
            moved = _first_of(context, replace(job.schedule, time=asked.schedule.time))
            return None if isinstance(moved, str) else replace(moved, note=asked.note)
        case _:
            return None


def resolve_delay(context: ToolContext, arguments: ScheduleArguments) -> datetime | str:
    """The moment to which a snooze puts off."""
    if (arguments.for_ is None) == (arguments.when is None):
        return 'say for how long (for: "10 minutes") or until when (when: "tomorrow at 9").'
    words = arguments.when if arguments.for_ is None else _as_delay(arguments.for_)
    timing = _from_words(context, words or "", since=_said_at(context, words or ""))
    if isinstance(timing, str):
        return timing
    return timing.first if isinstance(timing.schedule, At) else "that is more than one moment."


def _given(arguments: ScheduleArguments) -> list[object]:
    given = (arguments.when, arguments.in_, arguments.at, arguments.cron, arguments.schedule)
    return [value for value in given if value is not None]


def _read(context: ToolContext, arguments: ScheduleArguments) -> Timing | str:
    if arguments.schedule is not None:
        return _first_of(context, _spelled_out(context, arguments.schedule))
    if arguments.cron is not None:
        return _first_of(context, parse_cron(arguments.cron))
    if arguments.at is not None:
        # A moment that was named in full is checked against now, whatever the turn waited.
        timing = _from_words(context, arguments.at, since=context.now)
        if isinstance(timing, str) or ":" not in arguments.at:
            return timing
        return replace(timing, note=None)
    if arguments.in_ is not None:
        words = _as_delay(arguments.in_)
        return _from_words(context, words, since=_said_at(context, arguments.in_))
    words = arguments.when or ""
    return _from_words(context, words, since=_said_at(context, words))


def _first_of(context: ToolContext, schedule: Schedule) -> Timing | str:
    first = next_slot(schedule, after=context.now, zone=ZoneInfo(context.timezone))
    if first is None or first - context.now > _FAR:
        return "that never comes, is over already, or is too many years ahead."
    return Timing(schedule=schedule, first=first)


def _from_words(context: ToolContext, words: str, *, since: datetime) -> Timing | str:
    if _NICKNAME.match(words):
        return 'cron\'s short names are not taken; write it out, like "every day at 9".'
    understood = parse_when(words, now=since, zone=ZoneInfo(context.timezone))
    if isinstance(understood, Understood):
        timing = Timing(schedule=understood.schedule, first=understood.at, note=understood.note)
        return timing if isinstance(timing.schedule, At) else _from_now_on(context, timing)
    if understood.reason is UnclearReason.PAST:
        return "that time has passed already."
    return understood.question


def _from_now_on(context: ToolContext, timing: Timing) -> Timing | str:
    """A series without the slots that passed while the turn waited."""
    coming = _first_of(context, timing.schedule)
    return coming if isinstance(coming, str) else replace(coming, note=timing.note)


def _spelled_out(context: ToolContext, given: Mapping[str, object]) -> Schedule:
    """The schedule of an object; raises BadScheduleError."""
    fields = dict(given)
    kind = fields.get("kind")
    if kind == "every":
        fields.setdefault("anchor", to_millis(context.now))
    elif "every" in fields:
        here = context.now.astimezone(ZoneInfo(context.timezone))
        fields.setdefault("since", here.date().isoformat())
    if kind == "cron":
        parse_cron(str(fields.get("expression", "")))
    try:
        return schedule_from_json(json.dumps(fields))
    except ValueError as error:
        raise BadScheduleError(_NEEDS.get(str(kind), _KINDS)) from error


_NEEDS = {
    "every": f"a schedule of kind every needs seconds, from {MIN_PERIOD.total_seconds():.0f} up to "
    f"{MAX_PERIOD.total_seconds():.0f}",
    "daily": 'a schedule of kind daily needs time, like {"kind": "daily", "time": "08:00"}',
    "weekly": "a schedule of kind weekly needs days and time, like "
    '{"kind": "weekly", "days": ["mon"], "time": "08:00"}',
    "cron": "a schedule of kind cron needs expression, until as ms UTC, max_runs from 1 on",
}
_KINDS = "the kinds of schedule are every, daily, weekly and cron; for one moment give at"


def _bounded(context: ToolContext, arguments: ScheduleArguments, timing: Timing) -> Timing | str:
    """The timing with the end that was asked for."""
    if arguments.until is None and arguments.max_runs is None:
        return timing
    schedule = timing.schedule
    if isinstance(schedule, At):
        return "until and max_runs are for what repeats, and this is one moment."
    if arguments.max_runs is not None:
        schedule = replace(schedule, max_runs=arguments.max_runs)
    if arguments.until is not None:
        until = _until(context, arguments.until)
        if isinstance(until, str):
            return until
        schedule = replace(schedule, until=until)
        if timing.first > until:
            return "it would end before its first time."
    return replace(timing, schedule=schedule)


def _until(context: ToolContext, words: str) -> datetime | str:
    """The last moment of "until friday" or of an ISO date or time; a day counts to its end."""
    zone = ZoneInfo(context.timezone)
    try:
        if _DATE.fullmatch(words.strip()):
            return instants(date.fromisoformat(words.strip()), time(23, 59, 59), zone)[-1].at
        moment = datetime.fromisoformat(words.strip())
        return moment.replace(tzinfo=moment.tzinfo or zone).astimezone(UTC)
    except (ValueError, OverflowError):
        pass
    understood = parse_when(f"every hour until {words}", now=context.now, zone=zone)
    if isinstance(understood, Understood):
        schedule = understood.schedule
        if not isinstance(schedule, At) and schedule.until is not None:
            return schedule.until
    return "I do not understand until; write it like 2026-12-31 or 2026-12-31T18:00."


def _as_delay(words: str) -> str:
    return words if words.strip().lower().startswith("in ") else f"in {words}"


def _said_at(context: ToolContext, words: str) -> datetime:
    """From when words count: the newest message that holds them, else the newest."""
    if not context.spoken:
        return context.now
    wanted = re.compile(rf"(?<!\w){re.escape(_flat(words))}(?!\w)")
    holding = (one for one in reversed(context.spoken) if wanted.search(_flat(one.text)))
    return next(holding, context.spoken[-1]).sent_at


def _flat(text: str) -> str:
    return " ".join(text.split()).casefold()
