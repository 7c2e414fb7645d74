"""Everyday language for the offline host: from a message to what it asks for.

English in full; German, French and Spanish in the common forms.
"""

import re
import unicodedata
from datetime import datetime
from difflib import SequenceMatcher
from typing import Final
from zoneinfo import ZoneInfo

from gateway.domain.when import Found, Unclear, Understood, find_when
from gateway.hosts.builtin import phrases, questions
from gateway.hosts.builtin.changing import read_change
from gateway.hosts.builtin.intents import (
    Act,
    AskBack,
    Fragment,
    Intent,
    ListReminders,
    Move,
    NotYet,
    Remind,
    Rename,
    Snooze,
    Unknown,
)
from gateway.hosts.builtin.reminding import read_reminder, read_rest, without_time
from gateway.hosts.builtin.sentence import Sentence, read_sentence
from gateway.hosts.builtin.small_talk import WHOLE

_MAX_LINES: Final = 20
_MAX_TASK_WORDS: Final = 8
_MAX_OFFERED: Final = 60
_ALIKE: Final = 0.8
_NEARLY_EQUAL: Final = 0.85
# As near to "remind" or "reminder" as a slip, and words of their own.
_OWN_WORDS: Final = frozenset({"remind", "reminds", "reminded", "reminder", "reminders"})


def understand_all(text: str, *, now: datetime, zone: ZoneInfo) -> tuple[Intent, ...]:
    """Tell what a message asks for, line by line where every line is a request on its own.

    As `understand` otherwise; never empty.
    """
    lines = [line for line in text.split("\n") if line.strip()]
    if 1 < len(lines) <= _MAX_LINES:
        intents = tuple(understand(line, now=now, zone=zone) for line in lines)
        if all(_is_request(*pair) for pair in zip(lines, intents, strict=True)):
            return intents
    return (understand(text, now=now, zone=zone),)


def _is_request(line: str, intent: Intent) -> bool:
    """Whether a line cannot be the rest of the line above it."""
    match intent:
        case Remind():
            return phrases.LINE_LEAD.search(line) is not None and not line.rstrip().endswith(":")
        case Act() | Snooze() | Move() | Rename():
            return True
        case ListReminders():
            return " " in line.strip()
        case _:
            return False


def understand(text: str, *, now: datetime, zone: ZoneInfo) -> Intent:
    """Tell what a message asks for. `now` (aware) is when it was sent, for "in 5 minutes".

    A reminder is only understood whole: text and moment in one message. Never raises.
    """
    message = unicodedata.normalize("NFC", text).strip()
    whole = _whole(read_sentence(message[: phrases.BARE_LENGTH]).plain) or _whole(
        _bare(message).plain
    )
    if whole is not None:
        return whole
    message = _spelt(phrases.GREETING.sub("", message, count=1).strip())
    bare = _bare(message)
    return (
        _whole(bare.plain)
        or read_change(message, bare, now=now, zone=zone)
        or read_reminder(message, now=now, zone=zone)
        or _not_yet(bare.plain)
        or _without_head(message, now=now, zone=zone)
        or _bare_text(message)
        or Unknown()
    )


def _spelt(message: str) -> str:
    """The message with an obvious slip for "remind me" or "reminder" at its start put right."""
    me = phrases.LIKE_REMIND_ME.match(message)
    if me is not None and _is_like(me[2], "remind", least=_ALIKE):
        return f"{me[1]}remind {me[3]}{message[me.end() :]}"
    noun = phrases.LIKE_REMINDER.match(message)
    if noun is not None and _is_like(noun[2], "reminder", least=_NEARLY_EQUAL):
        return f"{noun[1]}reminder{message[noun.end() :]}"
    return phrases.BARE_REMIND.sub(r"\1remind me ", message, count=1)


def _is_like(word: str, model: str, *, least: float) -> bool:
    said = word.lower()
    if said in _OWN_WORDS - {"remind", "reminder"} or not said.startswith(("r", "e")):
        return False
    return SequenceMatcher(None, said, model).ratio() >= least


def _bare(message: str) -> Sentence:
    """The message without polite words; empty if it is long."""
    if len(message) > phrases.BARE_LENGTH:
        return read_sentence("")
    words = message.lstrip("¿¡ ")
    bare = phrases.POLITE_BEFORE.sub("", words, count=1)
    bare = phrases.POLITE_AFTER.sub("", bare.rstrip(" .!…"), count=1)
    return read_sentence(bare if bare.strip(" .!?…,") else words)


def _whole(plain: str) -> Intent | None:
    """Messages that are one known phrase."""
    matching = (intent for pattern, intent in WHOLE if pattern.fullmatch(plain))
    return next(matching, None)


def _not_yet(plain: str) -> Intent | None:
    """What this host understands and cannot do."""
    matching = (feature for pattern, feature in phrases.UNFINISHED if pattern.match(plain))
    feature = next(matching, None)
    return None if feature is None else NotYet(feature=feature)


def _without_head(message: str, *, now: datetime, zone: ZoneInfo) -> Intent | None:
    """A time and a text without "remind me": taken after "and ... to", else offered."""
    if len(message) > phrases.BARE_LENGTH or message.endswith("?"):
        return None
    ellipsis = phrases.ELLIPSIS.match(message)
    said = message[ellipsis.end() :] if ellipsis else message
    found = find_when(said, now=now, zone=zone)
    if found is None:
        return None
    if not without_time(phrases.POLITE.sub(" ", said), now=now, zone=zone):
        return _bare_time(found)
    is_rest = ellipsis is not None and re.search(r"\sto\s", message) is not None
    if isinstance(found.when, Understood) and is_rest:
        return read_rest(said, now=now, zone=zone)
    is_statement = phrases.STATEMENT.match(said) is not None
    if isinstance(found.when, Unclear) or len(said) > _MAX_OFFERED or is_statement:
        return None
    return _offer(said, found)


def _offer(said: str, found: Found) -> Intent:
    """Show how to ask for what may be a reminder."""
    if "remind" in said.lower():
        return AskBack(question=questions.WHICH_TEXT)
    is_time_first = said.startswith(found.said)
    if not is_time_first and phrases.NO_TASK.match(said):
        return Fragment(time=found.said)
    link = "" if is_time_first or said.lower().startswith("to ") else "to "
    offered = f"If that is to be a reminder, write: remind me {link}{questions.shown(said)}"
    return AskBack(question=offered, says_whole=True)


def _bare_time(found: Found) -> Intent:
    if isinstance(found.when, Unclear):
        return AskBack(question=found.when.question)
    return Fragment(time=found.said)


def _bare_text(message: str) -> Intent | None:
    """A few words that may be the text of a reminder, or its number, sent alone."""
    number = phrases.BARE_NUMBER.fullmatch(message)
    if number is not None:
        return AskBack(question=questions.half_number(number[1]), says_whole=True)
    if message.lower().startswith("remind "):
        return AskBack(question=questions.WHICH_TEXT)
    words = message.split(maxsplit=_MAX_TASK_WORDS)
    is_task = 2 <= len(words) <= _MAX_TASK_WORDS and not message.endswith("?")
    return Fragment(time="") if is_task and not phrases.NO_TASK.match(message) else None
