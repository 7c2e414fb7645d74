"""Everyday English for the offline host: from a message to what it asks for."""

import re
from datetime import datetime
from typing import Final
from zoneinfo import ZoneInfo

from gateway.domain.when import Found, Unclear, Understood, find_when
from gateway.domain.when.tidy import tidy
from gateway.hosts.builtin import phrases
from gateway.hosts.builtin.intents import (
    AskBack,
    Cancel,
    Intent,
    ListReminders,
    NotYet,
    Remind,
    Unknown,
)

_WHICH: Final = (
    'Which reminder shall I cancel? Say its number, like "cancel 2". "What are my reminders?" '
    "shows the numbers."
)
_NOT_ALL: Final = (
    "I cancel reminders by number, so that none goes by mistake: cancel 2 and 3. "
    '"What are my reminders?" shows the numbers.'
)
_WHAT: Final = (
    "What shall I remind you of? Send it all in one message, for example: remind me at 5pm to "
    "call mum."
)
_ONE_BY_ONE: Final = "I take one reminder a message. Please send each in a message of its own."
_WHICH_TEXT: Final = (
    'I am not sure what the reminder is. Begin with "remind me", for example: remind me tomorrow '
    "at 9:00 to call mum."
)
_MAX_SHOWN: Final = 60
_MAX_CANCELS: Final = 20


def understand(text: str, *, now: datetime, zone: ZoneInfo) -> Intent:
    """Tell what a message asks for. `now` (aware) is when it was sent, for "in 5 minutes".

    A reminder is only understood whole: text and moment in one message. Never raises.
    """
    message = text.strip()
    whole = _whole(_plain(message))
    if whole is not None:
        return whole
    message = phrases.GREETING.sub("", message, count=1).strip()
    plain = _plain(message)
    return (
        _whole(plain)
        or _cancel(plain)
        or _remind(message, now=now, zone=zone)
        or _not_yet(plain)
        or _without_head(message, now=now, zone=zone)
        or Unknown()
    )


def _plain(message: str) -> str:
    """The message in small letters, single spaces and without closing marks; "" if it is long."""
    if len(message) > phrases.BARE_LENGTH:
        return ""
    words = " ".join(message.lower().replace("’", "'").split())
    bare = phrases.POLITE_BEFORE.sub("", words, count=1)
    bare = phrases.POLITE_AFTER.sub("", bare.rstrip(" .!…"), count=1)
    return bare.rstrip(" .!?…,") or words.rstrip(" .!…,")


def _whole(plain: str) -> Intent | None:
    """Messages that are one known phrase."""
    matching = (intent for pattern, intent in phrases.WHOLE if pattern.fullmatch(plain))
    return next(matching, None)


def _cancel(plain: str) -> Intent | None:
    if phrases.NEGATIVE.search(plain):
        return AskBack(question=_WHICH)
    found = phrases.CANCEL_NUMBERS.fullmatch(plain)
    if found is not None:
        words = phrases.NUMBER.findall(found[1])
        numbers = tuple(dict.fromkeys(phrases.number_of(word) for word in words))
        return Cancel(numbers=numbers) if len(numbers) <= _MAX_CANCELS else AskBack(question=_WHICH)
    if phrases.ALL_REMINDERS.fullmatch(plain):
        return AskBack(question=_NOT_ALL)
    return AskBack(question=_WHICH) if phrases.CANCEL.match(plain) else None


def _not_yet(plain: str) -> Intent | None:
    """What this host understands and cannot do yet."""
    matching = (feature for pattern, feature in phrases.UNFINISHED if pattern.match(plain))
    feature = next(matching, None)
    return None if feature is None else NotYet(feature=feature)


def _remind(message: str, *, now: datetime, zone: ZoneInfo) -> Intent | None:
    beginning = message[: phrases.BARE_LENGTH]
    head = phrases.HEAD.search(beginning)
    if head is None:
        other = phrases.OTHER_PERSON.search(beginning)
        return None if other is None else AskBack(question=_only_here(other[1]))
    before, after = message[: head.start()], message[head.end() :]
    if phrases.LIST_PREFIX.match(before):
        return ListReminders()
    if phrases.AGAIN.search(after):
        return AskBack(question=_ONE_BY_ONE)
    lead = phrases.POLITE.sub(" ", before).strip(" ,;:")
    if _without_time(lead, now=now, zone=zone):
        lead = before.strip(" ,;:")
    rest = _as_delay(head.group(), after)
    sentence = f"{lead}, {rest}" if lead else rest
    found = find_when(sentence, now=now, zone=zone)
    if phrases.WAKE.fullmatch(head.group()):
        found = _in_the_morning(sentence, found, now=now, zone=zone)
    texts = [_without_time(part, now=now, zone=zone) for part in (lead, rest)]
    return _assemble(found, [text for text in texts if text], default=_default_text(head.group()))


def _only_here(who: str) -> str:
    return (
        f"I can only remind this chat, not {who}. You could write: remind me at 5pm to tell {who}."
    )


def _in_the_morning(
    sentence: str, found: Found | None, *, now: datetime, zone: ZoneInfo
) -> Found | None:
    """Read "wake me at 7" as the morning, where the words leave that open."""
    morning = find_when(f"{sentence}, in the morning", now=now, zone=zone)
    if found is None or morning is None or isinstance(morning.when, Unclear):
        return found
    return morning


def _as_delay(head: str, after: str) -> str:
    """Turn "timer for 10 minutes" and "10 minute timer" into "in 10 minutes"."""
    timer = phrases.TIMER.search(head)
    if timer is None:
        return after
    if timer[1]:
        return f"in {timer[1].replace('-', ' ')}, {after}"
    return re.sub(r"^\s*(?:(?:for|of)\s+)?(?=[\w]+\s*[a-z])", "in ", after, count=1)


def _default_text(head: str) -> str:
    """What to remind of where the request itself says it."""
    if phrases.WAKE.fullmatch(head):
        return "wake up"
    return next((noun for noun in ("timer", "alarm") if head.lower().endswith(noun)), "")


def _without_time(part: str, *, now: datetime, zone: ZoneInfo) -> str:
    """What a part of the message says besides the time."""
    found = find_when(part, now=now, zone=zone)
    text = tidy(part) if found is None else found.rest
    text = tidy(phrases.NAMED.sub("", phrases.POLITE_AFTER.sub("", text, count=1), count=1))
    return text if text.strip(" .!?") else ""


def _assemble(found: Found | None, texts: list[str], *, default: str) -> Intent:
    if found is not None and isinstance(found.when, Unclear):
        return AskBack(question=found.when.question)
    if len(texts) > 1:
        return AskBack(question=_WHICH_TEXT)
    text = texts[0] if texts else default
    if not text:
        return AskBack(question=_WHAT)
    if found is None or isinstance(found.when, Unclear):
        return AskBack(question=_when(text))
    return Remind(text=text, when=found.when)


def _when(text: str) -> str:
    # What begins like a time that was not understood would make a garbled example.
    shown = "call mum" if phrases.NO_EXAMPLE.match(text) else _shown(text)
    return (
        "When shall I remind you? Send it all in one message, for example: remind me tomorrow at "
        f"9:00 to {shown}"
    )


def _shown(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _MAX_SHOWN else line[: _MAX_SHOWN - 1] + "…"


def _without_head(message: str, *, now: datetime, zone: ZoneInfo) -> Intent | None:
    """A time and a text without "remind me": taken after "and ... to", else offered."""
    if len(message) > phrases.BARE_LENGTH or message.endswith("?"):
        return None
    ellipsis = phrases.ELLIPSIS.match(message)
    found = find_when(message[ellipsis.end() :] if ellipsis else message, now=now, zone=zone)
    if found is None or not found.rest:
        return None
    if isinstance(found.when, Understood) and ellipsis and re.search(r"\sto\s", message):
        return Remind(text=found.rest, when=found.when)
    is_statement = phrases.STATEMENT.match(message) is not None
    if isinstance(found.when, Unclear) or len(message) > _MAX_SHOWN or is_statement:
        return None
    return AskBack(question=f"If that is to be a reminder, write: remind me to {_shown(message)}")
