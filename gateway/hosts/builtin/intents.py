"""What a message can ask of the offline host."""

from dataclasses import dataclass
from enum import StrEnum

from gateway.domain.when import Understood


@dataclass(frozen=True, slots=True, kw_only=True)
class Remind:
    """Remind of `text` (never empty) at the moment that was understood."""

    text: str
    when: Understood


@dataclass(frozen=True, slots=True, kw_only=True)
class AskBack:
    """Something is missing or unclear; `question` says what, with a form that is accepted.

    `says_whole`: the question itself tells to send a whole request.
    """

    question: str
    says_whole: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class WhichToCancel:
    """Something is to be cancelled and the number is missing; `question` asks for it."""

    question: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Fragment:
    """A piece of a request: a moment in the person's words (`time`), or only a text ("")."""

    time: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ListReminders:
    """What is set?"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cancel:
    """Cancel the reminders with these numbers, in the order given, each once."""

    numbers: tuple[int, ...]


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
    """What people ask for and this host cannot do yet; the value completes a sentence."""

    SNOOZE = "snooze reminders"
    CHANGE = "change a reminder"
    PAUSE = "pause or resume a reminder"
    NOTES = "keep notes or recall them"
    TIME_ZONE = "change the time zone from here"


@dataclass(frozen=True, slots=True, kw_only=True)
class NotYet:
    """Understood, and honestly not available."""

    feature: Feature


@dataclass(frozen=True, slots=True, kw_only=True)
class Unknown:
    """Nothing that is understood here."""


Intent = (
    Remind
    | AskBack
    | WhichToCancel
    | Fragment
    | ListReminders
    | Cancel
    | ClockQuestion
    | Help
    | SmallTalk
    | NotYet
    | Unknown
)
