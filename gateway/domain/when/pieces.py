"""What the when-parser finds in a sentence, before and after it is put together."""

from dataclasses import dataclass
from datetime import datetime, tzinfo
from enum import StrEnum

from gateway.domain.schedule import Schedule

FORMS = (
    'Write for example "tomorrow at 9:00", "on 5 December at 10:00", "in 20 minutes" or "every '
    'weekday at 8:00".'
)


class UnclearReason(StrEnum):
    """Why words are not taken for a moment."""

    NO_TIME = "no_time"  # nothing that speaks of time
    NOT_UNDERSTOOD = "not_understood"  # words that no rule knows
    LEFT_OVER = "left_over"  # a moment was found, and words that look like another one
    CONFLICT = "conflict"  # two moments, or parts that contradict each other
    AMBIGUOUS = "ambiguous"  # more than one honest reading
    VAGUE = "vague"  # a span, a limit or a mood instead of a moment
    PERIOD = "period"  # more often than each minute, or rarer than each year
    IMPOSSIBLE = "impossible"  # no such hour or day
    PAST = "past"  # more than a minute ago
    TOO_FAR = "too_far"  # more than five years ahead
    TOO_LONG = "too_long"  # more text than is searched


@dataclass(frozen=True, slots=True, kw_only=True)
class Understood:
    """When: `at` is the moment, or the first one of what repeats; aware UTC.

    `note` says in a short clause what was assumed, for the person.
    """

    at: datetime
    schedule: Schedule
    note: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Unclear:
    """No time. `question` is one or two plain sentences for the person."""

    reason: UnclearReason
    question: str


When = Understood | Unclear


class Part(StrEnum):
    """A part of the day."""

    MORNING = "morning"
    AFTERNOON = "afternoon"
    EVENING = "evening"
    NIGHT = "night"


@dataclass(frozen=True, slots=True, kw_only=True)
class Clock:
    """A time of day. Not exact: 1 to 12 without a.m. or p.m.

    `is_sure` is false for a form that also occurs inside ordinary text ("at 5", "5pm train").
    `is_midnight` marks the word: the end of a day to some people, its start to others.
    """

    hour: int
    minute: int = 0
    second: int = 0
    microsecond: int = 0
    is_exact: bool = True
    is_sure: bool = True
    is_midnight: bool = False
    said: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PartOfDay:
    """A part of the day, alone or beside a clock time."""

    part: Part


@dataclass(frozen=True, slots=True, kw_only=True)
class RelativeDay:
    """Today plus `days`."""

    days: int


class Which(StrEnum):
    """Which of the coming weekdays of one name."""

    NEAREST = "nearest"  # "friday", "on friday"
    THIS = "this"  # "this friday"
    NEXT = "next"  # "next friday": the one of the next Monday-to-Sunday week


@dataclass(frozen=True, slots=True, kw_only=True)
class Weekday:
    """A day by its name; Monday is 0."""

    day: int
    which: Which = Which.NEAREST


@dataclass(frozen=True, slots=True, kw_only=True)
class CalendarDate:
    """A day of a month, in a given year or in the next one that has it.

    `note` says how it was read, where that is worth saying.
    """

    day: int
    month: int
    year: int | None = None
    note: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DayOfMonth:
    """ "the 15th": the next day with that number."""

    day: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MonthEnd:
    """The last day of the present month."""


Day = RelativeDay | Weekday | CalendarDate | DayOfMonth | MonthEnd


@dataclass(frozen=True, slots=True, kw_only=True)
class Delay:
    """A distance from now: calendar months and days at the same local time, then seconds."""

    months: int = 0
    days: int = 0
    seconds: int = 0
    note: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Zone:
    """The time zone that the person named."""

    zone: tzinfo


@dataclass(frozen=True, slots=True, kw_only=True)
class Now:
    """ "now", "right now"."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """Words that speak of time and cannot be taken for a moment."""

    unclear: Unclear


Moment = Clock | PartOfDay | Day | Delay | Zone | Now


@dataclass(frozen=True, slots=True, kw_only=True)
class Clocks:
    """Several times of each day: "at 8 and 20:00"."""

    clocks: tuple[Clock, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class OnDays:
    """Several weekdays beside a rhythm: "on monday and thursday"."""

    days: frozenset[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Period:
    """ "every 2 hours", by the real clock; on these weekdays only, where there are any."""

    seconds: int
    days: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Days:
    """ "every day", "every other day"."""

    every: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Weeks:
    """ "every monday and thursday", "every 2 weeks"; no days = to be named yet. Monday is 0."""

    every: int = 1
    days: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Months:
    """ "every month on the 15th": the days as a cron field has them ("1,15", "L").

    `weekdays` likewise ("mon#1", "5L"); both empty = to be named yet. `is_quarter`: of January,
    April, July and October.
    """

    every: int = 1
    days: str = ""
    weekdays: str = ""
    is_quarter: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Years:
    """ "every 24 december"; no date = to be named yet."""

    date: CalendarDate | None = None


Rhythm = Period | Days | Weeks | Months | Years


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """ "twice a day": as many times, or days, must be named."""

    count: int
    said: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Assumed:
    """What was assumed in reading a rhythm, for the note."""

    note: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """A week, month or year of which the first or the last day is meant.

    `month` is one by its name, in `year` or the next that is not over.
    """

    unit: str
    ahead: int = 0
    month: int | None = None
    year: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Edge:
    """Where a series begins or ends. `clocks` follow it, and may be the times of the series."""

    pieces: tuple["Piece", ...] = ()
    stretch: Stretch | None = None
    clocks: tuple[Clock, ...] = ()
    said: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Starting:
    """ "starting tomorrow"."""

    edge: Edge


@dataclass(frozen=True, slots=True, kw_only=True)
class Until:
    """ "until friday": that day included."""

    edge: Edge


@dataclass(frozen=True, slots=True, kw_only=True)
class Lasting:
    """ "for 2 weeks"."""

    delay: Delay
    said: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Times:
    """ "5 times" in all. `is_sure`: "for 5 times", which cannot mean each day."""

    count: int
    is_sure: bool
    said: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """ "between 9 and 5" of each day, both included."""

    first: Clock
    last: Clock
    said: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Except:
    """ "except on sundays"."""

    days: frozenset[int]


Bound = Starting | Until | Lasting | Times | Window | Except
Piece = Moment | Clocks | OnDays | Rhythm | Counted | Assumed | Bound | Fault


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """Pieces read from the words up to `end` (exclusive); without any, these words are text."""

    pieces: tuple[Piece, ...]
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """Pieces with the words [start, end) that they were read from."""

    pieces: tuple[Piece, ...]
    start: int
    end: int


def fault(reason: UnclearReason, question: str) -> Fault:
    """A fault with its question."""
    return Fault(unclear=Unclear(reason=reason, question=question))
