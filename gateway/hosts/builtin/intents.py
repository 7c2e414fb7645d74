"""What a message can ask of the offline host."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from gateway.domain.when import Understood


@dataclass(frozen=True, slots=True, kw_only=True)
class Numbers:
    """The reminders with these numbers, in the order given, each once; never empty."""

    numbers: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Latest:
    """The one reminder that was sent last: "that", "it"."""


Target = Numbers | Latest


@dataclass(frozen=True, slots=True, kw_only=True)
class Remind:
    """Remind of `text` (never empty) at the moment, or in the rhythm, that was understood."""

    text: str
    when: Understood


class Deed(StrEnum):
    """What is done to a reminder by its number alone; the value is the tool's action."""

    CANCEL = "cancel"
    PAUSE = "pause"
    RESUME = "resume"
    RUN_NOW = "run_now"
    GET = "get"
    HISTORY = "history"


@dataclass(frozen=True, slots=True, kw_only=True)
class Act:
    """Cancel 2, pause 2, show 2."""

    deed: Deed
    target: Target


@dataclass(frozen=True, slots=True, kw_only=True)
class Snooze:
    """Remind again of what went off, once, at `until` (aware).

    `is_doubtful`: the number stood alone, so it may be minutes and mean the latest reminder.
    """

    target: Target
    until: datetime
    is_doubtful: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """Give a reminder another moment or rhythm.

    `clock` is a bare time of day as it was said: then the reminder's day or days stay.
    """

    target: Target
    when: Understood
    clock: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rename:
    """Give a reminder another text (never empty)."""

    number: int
    text: str


@dataclass(frozen=True, slots=True)
class Done:
    """The person did what they were reminded of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AskBack:
    """Something is missing or unclear; `question` says what, with a form that is accepted.

    `says_whole`: the question itself tells to send a whole request.
    """

    question: str
    says_whole: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class WhichOne:
    """The number of a reminder is missing; `question` asks for it."""

    question: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Fragment:
    """A piece of a request: a moment in the person's words (`time`), or only a text ("")."""

    time: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ListReminders:
    """What is set?"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClockQuestion:
    """What time, what day is it?"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Help:
    """What can you do?"""


class Talk(StrEnum):
    """Small talk that deserves an answer of its own."""

    GREETING = "greeting"
    WELL_BEING = "well_being"
    THANKS = "thanks"
    AFFECTION = "affection"
    FAREWELL = "farewell"
    IDENTITY = "identity"
    NOD = "nod"  # ok, yes, no: an answer to something that is not remembered


@dataclass(frozen=True, slots=True, kw_only=True)
class SmallTalk:
    """A greeting, thanks, a question about what answers here."""

    kind: Talk


class Feature(StrEnum):
    """What people ask for and this host cannot do; the value completes a sentence."""

    NOTES = "keep notes or recall them"
    TIME_ZONE = "change the time zone in plain words"


@dataclass(frozen=True, slots=True, kw_only=True)
class NotYet:
    """Understood, and honestly not available."""

    feature: Feature


@dataclass(frozen=True, slots=True, kw_only=True)
class Unknown:
    """Nothing that is understood here."""


Intent = (
    Remind
    | Act
    | Snooze
    | Move
    | Rename
    | Done
    | AskBack
    | WhichOne
    | Fragment
    | ListReminders
    | ClockQuestion
    | Help
    | SmallTalk
    | NotYet
    | Unknown
)
