"""What the offline host asks back, each with a form that it accepts."""

from collections.abc import Mapping
from typing import Final

from gateway.domain.when.tidy import tidy
from gateway.hosts.builtin import phrases
from gateway.hosts.builtin.intents import Deed

_MAX_SHOWN: Final = 60


def _which(verb: str, example: str) -> str:
    return f'Which reminder shall I {verb}? Say its number, like "{example}".'


WHICH: Final[Mapping[Deed, str]] = {
    Deed.CANCEL: _which("cancel", "cancel 2"),
    Deed.PAUSE: _which("pause", "pause 2"),
    Deed.RESUME: _which("resume", "resume 2"),
    Deed.RUN_NOW: _which("send now", "run 2 now"),
    Deed.GET: _which("show", "show 2"),
    Deed.HISTORY: _which("tell of", "history of 2"),
}
WHICH_TO_SNOOZE: Final = _which("remind you of again", "snooze 2 for 10 minutes")
WHICH_TO_CHANGE: Final = _which("change", "move 2 to tomorrow at 9:00")
CHANGE_HOW: Final = (
    "I change one thing at a time, by number. The time: move 2 to tomorrow at 9:00. The text: "
    "rename 2 to call dad"
)
NEW_TIME: Final = (
    "Say the new time itself, like: move 2 to tomorrow at 9:00. To be reminded again of one that "
    "went off: snooze 2 for 10 minutes"
)
NO_END_OF_PAUSE: Final = "A pause lasts until you end it: pause 2, and later resume 2."
SNOOZE_ONCE: Final = (
    "A snooze is for one moment. Say for how long, like: snooze 2 for 10 minutes. What repeats "
    "gets another rhythm with: move 2 to every day at 8:00"
)
SNOOZE_HOW_LONG: Final = (
    "Until when shall I put it off? For example: snooze 2 for 10 minutes, or: snooze 2 until "
    "tomorrow at 9:00"
)
AGAIN_WHEN: Final = (
    "When shall I remind you again? For example: remind me again in 10 minutes, or: snooze 2 for "
    "10 minutes"
)
WHAT_AND_WHEN: Final = (
    "When shall I remind you, and of what? For example: remind me tomorrow at 9:00 to pay the rent"
)
NOT_ASKED: Final = (
    'I am not sure whether you want a reminder. For a new one begin with "remind me", like: remind '
    "me tomorrow at 9:00 to call mum. To cancel one say its number, like: cancel 2"
)
ONE_BY_ONE: Final = "I take one reminder a message. Please send each in a message of its own."
WHICH_TEXT: Final = (
    'I am not sure what the reminder is. Begin with "remind me", for example: remind me tomorrow '
    "at 9:00 to call mum"
)
_TIMES: Final = (
    'I am not sure how often "{0}" is. For what repeats say the rhythm, like: remind me every day '
    'at 8:00 to stretch. If "{0}" belongs to the text, put the text in quotes.'
)
_EARLIER: Final = (
    "I do not count back from another time. Say the time of the reminder itself, for example: "
    "remind me tomorrow at 9:30{}"
)
_HALF_NUMBER: Final = (
    "I keep no half-finished requests: send it whole, like: cancel {0}, or: remind me at {0} to "
    "pay the rent"
)
_MAYBE_CHANGE: Final = (
    "Is that a new time for reminder {0}? Then write: move {0} to {1}. For a new reminder begin "
    'with "remind me".'
)


def not_all(deed: Deed) -> str:
    """Why "cancel all" is not done, with the form that is."""
    verb = "cancel" if deed is Deed.CANCEL else deed.replace("_", " ")
    return f"I {verb} reminders by number, so that none goes by mistake: {verb} 2 and 3."


def how_often(said: str) -> str:
    """Words on how often that name no rhythm."""
    return _TIMES.format(said)


def half_number(number: str) -> str:
    """A number sent alone."""
    return _HALF_NUMBER.format(number)


def maybe_change(number: int, time: str) -> str:
    """A reminder's number and a time."""
    return _MAYBE_CHANGE.format(number, time)


def earlier(text: str) -> str:
    """A time counted back from another one."""
    return _EARLIER.format(f": {shown(text)}" if text else "")


def missing(example: str, text: str, time: str) -> str:
    """The time, the text or both are missing, with an example in the person's language."""
    if not text and not time:
        return f"When shall I remind you, and of what? For example: {example}"
    asked = "When shall I remind you?" if text else "What shall I remind you of?"
    return f"{asked} For example: {example}"


def what(time: str) -> str:
    """The time is known, in the person's words, and the text is not."""
    return f"What shall I remind you of? For example: remind me {time} to call mum"


def when(text: str) -> str:
    """The text is known, and the time is not."""
    own = own_text(text)
    if not own:
        return WHAT_AND_WHEN
    return f"When shall I remind you? For example: remind me tomorrow at 9:00 to {shown(own)}"


def perhaps_text(question: str) -> str:
    """A time that cannot be meant, beside words that may hold it as part of the text."""
    return f"{question} If it belongs to the text, put the text in quotes, and say when besides."


def own_text(text: str) -> str:
    """The text without "soon" or "when I get home"; "" if it is nothing but that."""
    own = phrases.CIRCUMSTANCE.sub("", phrases.SOON.sub("", text, count=1), count=1)
    own = tidy(own)
    # What begins like a time that was not understood would make a garbled example.
    return "" if phrases.NO_EXAMPLE.match(own) else own


def shown(text: str) -> str:
    """The text on one line, cut where it is long."""
    line = " ".join(text.split())
    return line if len(line) <= _MAX_SHOWN else line[: _MAX_SHOWN - 1] + "…"
