"""What the when-parser finds in a sentence, before and after it is put together."""

from dataclasses import dataclass
from datetime import datetime, tzinfo
from enum import StrEnum

FORMS = (
    'Write for example "tomorrow at 9:00", "at 5pm", "on 5 December at 10:00" or "in 20 minutes".'
)


class UnclearReason(StrEnum):
    """Why words are not taken for a moment."""

    NO_TIME = "no_time"  # nothing that speaks of time
    NOT_UNDERSTOOD = "not_understood"  # words that no rule knows
    LEFT_OVER = "left_over"  # a moment was found, and words that look like another one
    CONFLICT = "conflict"  # two moments, or parts that contradict each other
    AMBIGUOUS = "ambiguous"  # more than one honest reading
    VAGUE = "vague"  # a span, a limit or a mood instead of a moment
    REPEATING = "repeating"  # a series: not available yet
    IMPOSSIBLE = "impossible"  # no such hour or day
    PAST = "past"  # more than a minute ago
    TOO_FAR = "too_far"  # more than five years ahead
    TOO_LONG = "too_long"  # more text than is searched


@dataclass(frozen=True, slots=True, kw_only=True)
class Understood:
    """One moment, aware UTC. `note` says in a short clause what was assumed, for the person."""

    at: datetime
    note: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Unclear:
    """No moment. `question` is one or two plain sentences for the person."""

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


Piece = Clock | PartOfDay | Day | Delay | Zone | Now | Fault


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """Pieces read from the words up to `end` (exclusive)."""

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
