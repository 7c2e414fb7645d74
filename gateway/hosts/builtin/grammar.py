"""Everyday English for the offline host: from a message to what it asks for."""

import re
from datetime import datetime
from difflib import SequenceMatcher
from typing import Final
from zoneinfo import ZoneInfo

from gateway.domain.when import Found, Unclear, Understood, find_when
from gateway.domain.when.tidy import tidy
from gateway.hosts.builtin import phrases
from gateway.hosts.builtin.intents import (
    AskBack,
    Cancel,
    Feature,
    Fragment,
    Intent,
    ListReminders,
    NotYet,
    Remind,
    Unknown,
    WhichToCancel,
)

_WHICH: Final = 'Which reminder shall I cancel? Say its number, like "cancel 2".'
_NOT_ALL: Final = "I cancel reminders by number, so that none goes by mistake: cancel 2 and 3."
_WHAT_AND_WHEN: Final = (
    "When shall I remind you, and of what? For example: remind me tomorrow at 9:00 to pay the rent"
)
_ONE_BY_ONE: Final = "I take one reminder a message. Please send each in a message of its own."
_WHICH_TEXT: Final = (
    'I am not sure what the reminder is. Begin with "remind me", for example: remind me tomorrow '
    "at 9:00 to call mum"
)
_ONCE: Final = (
    'I set one reminder at one moment. If "{}" belongs to the text, put the text in quotes; else '
    "ask for each moment by itself."
)
_EARLIER: Final = (
    "I do not count back from another time. Say the time of the reminder itself, for example: "
    "remind me tomorrow at 9:30{}"
)
_HALF_NUMBER: Final = (
    "I keep no half-finished requests: send it whole, like: cancel {0}, or: remind me at {0} to "
    "pay the rent"
)
_MAX_SHOWN: Final = 60
_MAX_CANCELS: Final = 20
_MAX_LINES: Final = 20
_MAX_TASK_WORDS: Final = 8
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
        case Cancel():
            return True
        case ListReminders():
            return " " in line.strip()
        case _:
            return False


def understand(text: str, *, now: datetime, zone: ZoneInfo) -> Intent:
    """Tell what a message asks for. `now` (aware) is when it was sent, for "in 5 minutes".

    A reminder is only understood whole: text and moment in one message. Never raises.
    """
    message = text.strip()
    whole = _whole(_plain(message))
    if whole is not None:
        return whole
    message = _spelt(phrases.GREETING.sub("", message, count=1).strip())
    plain = _plain(message)
    return (
        _whole(plain)
        or _cancel(plain)
        or _remind(message, now=now, zone=zone)
        or _not_yet(plain)
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
        return WhichToCancel(question=_WHICH)
    found = phrases.CANCEL_NUMBERS.fullmatch(plain)
    if found is not None:
        words = phrases.NUMBER.findall(found[1])
        numbers = tuple(dict.fromkeys(phrases.number_of(word) for word in words))
        return (
            Cancel(numbers=numbers)
            if len(numbers) <= _MAX_CANCELS
            else WhichToCancel(question=_WHICH)
        )
    if phrases.ALL_REMINDERS.fullmatch(plain):
        return WhichToCancel(question=_NOT_ALL)
    return WhichToCancel(question=_WHICH) if phrases.CANCEL.match(plain) else None


def _not_yet(plain: str) -> Intent | None:
    """What this host understands and cannot do yet."""
    matching = (feature for pattern, feature in phrases.UNFINISHED if pattern.match(plain))
    feature = next(matching, None)
    return None if feature is None else NotYet(feature=feature)


def _remind(message: str, *, now: datetime, zone: ZoneInfo) -> Intent | None:
    beginning = message[: phrases.BARE_LENGTH]
    head = phrases.HEAD.search(beginning)
    if head is None:
        return _other_person(message, now=now, zone=zone)
    before, after = message[: head.start()], message[head.end() :]
    if phrases.LIST_PREFIX.match(before):
        return ListReminders()
    if phrases.AGAIN.search(after):
        return AskBack(question=_ONE_BY_ONE, says_whole=True)
    anew = phrases.ANEW.match(after)
    if anew is not None:
        after = after[anew.end() :]
        if not _own_text(_without_time(after, now=now, zone=zone)):
            return NotYet(feature=Feature.SNOOZE)
    lead = phrases.POLITE.sub(" ", before).strip(" ,;:")
    if _without_time(lead, now=now, zone=zone):
        lead = before.strip(" ,;:")
    return _read_request(head.group(), lead, after, now=now, zone=zone)


def _read_request(head: str, lead: str, after: str, *, now: datetime, zone: ZoneInfo) -> Intent:
    """Read what stands before and after "remind me"."""
    rest = _as_delay(head, after)
    sentence = f"{lead}, {rest}" if lead else rest
    found = find_when(sentence, now=now, zone=zone)
    if phrases.WAKE.fullmatch(head):
        found = _in_the_morning(sentence, found, now=now, zone=zone)
    texts = [_without_time(part, now=now, zone=zone) for part in (lead, rest)]
    is_understood = found is not None and isinstance(found.when, Understood)
    if not is_understood and phrases.EARLIER.search(sentence):
        return AskBack(question=_EARLIER.format(f": {_shown(texts[0])}" if texts[0] else ""))
    often = phrases.OFTEN.search(phrases.QUOTED.sub("", sentence))
    if often is not None and (found is None or is_understood):
        return AskBack(question=_ONCE.format(often.group()))
    return _assemble(found, [text for text in texts if text], default=_default_text(head))


def _other_person(message: str, *, now: datetime, zone: ZoneInfo) -> Intent | None:
    """Answer "remind bob to call me at 5pm" with a form that keeps all of it."""
    other = phrases.OTHER_PERSON.search(message[: phrases.BARE_LENGTH])
    if other is None:
        return None
    who, after = other[1], message[other.end() :]
    found = find_when(after, now=now, zone=zone)
    if found is not None and isinstance(found.when, Unclear):
        return AskBack(question=found.when.question)
    time = "tomorrow at 9:00" if found is None else found.said
    text = tidy(after) if found is None else found.rest
    link = re.search(r"\b(?:to|that|about)\b", after, re.IGNORECASE)
    task = f"{who} {link.group() if link else 'to'} {text}" if text else who
    question = (
        f"I can only remind this chat, not {who}. You could write: remind me {time} to tell "
        f"{_shown(task)}"
    )
    return AskBack(question=question)


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
        return AskBack(question=_WHAT_AND_WHEN if found is None else _what(found.said))
    if found is None or isinstance(found.when, Unclear):
        return AskBack(question=_when(text))
    return Remind(text=text, when=found.when)


def _what(time: str) -> str:
    return f"What shall I remind you of? For example: remind me {time} to call mum"


def _when(text: str) -> str:
    own = _own_text(text)
    if not own:
        return _WHAT_AND_WHEN
    return f"When shall I remind you? For example: remind me tomorrow at 9:00 to {_shown(own)}"


def _own_text(text: str) -> str:
    """The text without "soon" or "when I get home"; "" if it is nothing but that."""
    own = phrases.CIRCUMSTANCE.sub("", phrases.SOON.sub("", text, count=1), count=1)
    own = tidy(own)
    # What begins like a time that was not understood would make a garbled example.
    return "" if phrases.NO_EXAMPLE.match(own) else own


def _shown(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _MAX_SHOWN else line[: _MAX_SHOWN - 1] + "…"


def _without_head(message: str, *, now: datetime, zone: ZoneInfo) -> Intent | None:
    """A time and a text without "remind me": taken after "and ... to", else offered."""
    if len(message) > phrases.BARE_LENGTH or message.endswith("?"):
        return None
    ellipsis = phrases.ELLIPSIS.match(message)
    said = message[ellipsis.end() :] if ellipsis else message
    found = find_when(said, now=now, zone=zone)
    if found is None:
        return None
    if not _without_time(phrases.POLITE.sub(" ", said), now=now, zone=zone):
        return _bare_time(found)
    if isinstance(found.when, Understood) and ellipsis and re.search(r"\sto\s", message):
        return Remind(text=found.rest, when=found.when)
    is_statement = phrases.STATEMENT.match(said) is not None
    if isinstance(found.when, Unclear) or len(said) > _MAX_SHOWN or is_statement:
        return None
    return _offer(said, found)


def _offer(said: str, found: Found) -> Intent:
    """Show how to ask for what may be a reminder."""
    if "remind" in said.lower():
        return AskBack(question=_WHICH_TEXT)
    is_time_first = said.startswith(found.said)
    if not is_time_first and phrases.NO_TASK.match(said):
        return Fragment(time=found.said)
    link = "" if is_time_first or said.lower().startswith("to ") else "to "
    offered = f"If that is to be a reminder, write: remind me {link}{_shown(said)}"
    return AskBack(question=offered, says_whole=True)


def _bare_time(found: Found) -> Intent:
    if isinstance(found.when, Unclear):
        return AskBack(question=found.when.question)
    return Fragment(time=found.said)


def _bare_text(message: str) -> Intent | None:
    """A few words that may be the text of a reminder, or its number, sent alone."""
    number = phrases.BARE_NUMBER.fullmatch(message)
    if number is not None:
        return AskBack(question=_HALF_NUMBER.format(number[1]), says_whole=True)
    if message.lower().startswith("remind "):
        return AskBack(question=_WHICH_TEXT)
    words = message.split(maxsplit=_MAX_TASK_WORDS)
    is_task = 2 <= len(words) <= _MAX_TASK_WORDS and not message.endswith("?")
    return Fragment(time="") if is_task and not phrases.NO_TASK.match(message) else None
