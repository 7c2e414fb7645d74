"""Requests for a new reminder: "remind me every day at 8 to take my pills"."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from zoneinfo import ZoneInfo

from gateway.domain.schedule import At
from gateway.domain.when import Found, Unclear, UnclearReason, Understood, find_when
from gateway.domain.when.tidy import tidy
from gateway.hosts.builtin import phrases, questions
from gateway.hosts.builtin.intents import (
    AskBack,
    Intent,
    Latest,
    ListReminders,
    Remind,
    Snooze,
)
from gateway.hosts.builtin.tongues import REPEATING, TONGUES, Tongue, named


@dataclass(frozen=True, slots=True, kw_only=True)
class _Request:
    """What stands before and after the words that ask for a reminder, and what these say.

    `default` is the text where the request itself says it; `repeats` a word that speaks of a
    rhythm and names none. `is_that`: it points at something said before, "remind me of it".
    `is_lead_closed`: a comma or full stop, or "so", parts what stands before from the request.
    """

    lead: str
    rest: str
    default: str = ""
    is_wake: bool = False
    repeats: str = ""
    is_that: bool = False
    is_lead_closed: bool = False
    tongue: Tongue | None = None


def read_reminder(message: str, *, now: datetime, zone: ZoneInfo) -> Intent | None:
    """Read a message that asks for a reminder; None = it does not."""
    beginning = message[: phrases.BARE_LENGTH]
    head = phrases.HEAD.search(beginning)
    if head is None:
        foreign = _foreign(message, now=now, zone=zone)
        if foreign is not None:
            return _read_request(foreign, now=now, zone=zone)
        return _other_person(message, now=now, zone=zone)
    before, after = message[: head.start()], message[head.end() :]
    if phrases.LIST_PREFIX.match(before):
        return ListReminders()
    if phrases.AGAIN.search(after):
        return AskBack(question=questions.ONE_BY_ONE, says_whole=True)
    anew = phrases.ANEW.match(after)
    if anew is not None and without_time(after[anew.end() :], now=now, zone=zone):
        after = after[anew.end() :]
    lead = phrases.POLITE.sub(" ", before).strip(" ,;:")
    if without_time(lead, now=now, zone=zone):
        lead = phrases.LINK.sub("", before, count=1).strip(" ,;:")
    if phrases.ASKING.search(before) and ":" not in after:
        after = after.rstrip(" ?")
    after = phrases.FOR_ME.sub("", after, count=1)
    is_closed = phrases.CLOSED.search(before) is not None
    request = _english(head.group(), lead, after, is_lead_closed=is_closed)
    return _read_request(request, now=now, zone=zone)


def read_rest(said: str, *, now: datetime, zone: ZoneInfo) -> Intent:
    """Read what is known to be a request without the words that ask for it."""
    return _read_request(_Request(lead="", rest=said), now=now, zone=zone)


def _english(head: str, lead: str, after: str, *, is_lead_closed: bool) -> _Request:
    is_wake = phrases.WAKE.fullmatch(head) is not None
    nouns = (noun for noun in ("timer", "alarm") if head.lower().endswith(noun))
    rhythm = phrases.RHYTHM.search(head)
    rest, repeats = _as_delay(head, after), ""
    if rhythm is not None and phrases.REPEATING.fullmatch(rhythm.group()):
        repeats = rhythm.group()
    elif rhythm is not None:
        how_often = _RHYTHMS.get(rhythm.group().lower(), rhythm.group())
        rest = f"{how_often} {phrases.FOR_CLOCK.sub('at ', rest).lstrip(' ,:')}"
    always = phrases.ALWAYS.match(lead) or phrases.ALWAYS.match(after)
    return _Request(
        lead=lead,
        rest=rest,
        default="wake up" if is_wake else next(nouns, ""),
        is_wake=is_wake,
        repeats=repeats if always is None else always.group().strip(),
        is_that=phrases.OF_THAT.search(after) is not None,
        is_lead_closed=is_lead_closed,
    )


_RHYTHMS: Final = {
    "weekday": "every weekday",
    "weekend": "every weekend",
    "annual": "every year",
    "nightly": "every night",
}


def _foreign(message: str, *, now: datetime, zone: ZoneInfo) -> _Request | None:
    beginning = message[: phrases.BARE_LENGTH]
    found = ((tongue, tongue.head.search(beginning)) for tongue in TONGUES)
    tongue, head = next((pair for pair in found if pair[1] is not None), (None, None))
    if tongue is None or head is None:
        return None
    before, after = message[: head.start()], message[head.end() :]
    rhythm, inner = named(head, "rhythm"), named(head, "inner").strip(" ,")
    is_wake = bool(named(head, "wake"))
    if named(head, "timer"):
        after = tongue.as_delay(after)
    parts = [tongue.rhythms[rhythm[0].lower()] if rhythm else "", inner, after.strip(" ?")]
    lead = tongue.before.sub(" ", before).strip(" ,;:¿¡")
    if without_time(lead, now=now, zone=zone):
        lead = before.strip(" ,;:¿¡")
    always = phrases.ALWAYS.match(lead) or phrases.ALWAYS.match(after)
    return _Request(
        lead=lead,
        rest=" ".join(filter(None, parts)).replace(" ,", ","),
        default=tongue.wake_text if is_wake else named(head, "noun") or named(head, "timer"),
        is_wake=is_wake,
        repeats="" if always is None else always.group().strip(),
        is_that=bool(named(head, "that")) or phrases.OF_THAT.search(after) is not None,
        is_lead_closed=phrases.CLOSED.search(before) is not None,
        tongue=tongue,
    )


def _read_request(request: _Request, *, now: datetime, zone: ZoneInfo) -> Intent:
    sentence = f"{request.lead}, {request.rest}" if request.lead else request.rest
    found = find_when(sentence, now=now, zone=zone)
    texts = _texts(request, found, now=now, zone=zone)
    if request.is_wake:
        found = _in_the_morning(request, sentence, found, now=now, zone=zone)
    doubt = _no_request(request, texts) or _doubt(request, sentence, found, texts[0])
    if doubt is not None:
        return AskBack(question=doubt)
    return _assemble(request, found, [text for text in texts if text])


def _texts(
    request: _Request, found: Found | None, *, now: datetime, zone: ZoneInfo
) -> tuple[str, str]:
    """What stands before and after the request besides the time; `found` is for both."""
    lead, rest, tongue = request.lead, request.rest, request.tongue
    if lead or phrases.COURTESY_AFTER.search(rest):
        before, after = (without_time(part, tongue, now=now, zone=zone) for part in (lead, rest))
        return before, after
    return "", _own_text(rest, found, tongue)


def _no_request(request: _Request, texts: Sequence[str]) -> str | None:
    """Why words around "remind me" may ask for none: "I don't want to be reminded at 5"."""
    in_lead, in_rest = texts
    is_told = phrases.TOLD.match(in_lead) is not None and not request.is_lead_closed
    is_refused = phrases.REFUSED.search(in_lead) or phrases.REFUSED_AFTER.match(in_rest)
    return questions.NOT_ASKED if is_refused or (is_told and not in_rest) else None


def _doubt(request: _Request, sentence: str, found: Found | None, lead_text: str) -> str | None:
    """Why a request is asked about although its time and text may have been found."""
    when = None if found is None else found.when
    if not isinstance(when, Understood) and phrases.EARLIER.search(sentence):
        return questions.earlier(lead_text)
    if isinstance(when, Unclear):
        return None
    unquoted = phrases.QUOTED.sub("", sentence)
    rest = unquoted if found is None else found.rest
    often = phrases.OFTEN.search(unquoted)
    if often is not None and often.group() in rest:
        return questions.how_often(often.group())
    if when is not None and not isinstance(when.schedule, At):
        return None
    repeats = request.repeats or _rhythm_left(unquoted, rest)
    return questions.how_often(repeats) if repeats else None


def _rhythm_left(unquoted: str, rest: str) -> str:
    """Words of a rhythm that were not read as time, outside of quotes; "" if there are none."""
    left = phrases.ALWAYS.match(rest) or REPEATING.search(unquoted)
    said = "" if left is None else left.group().strip()
    return said if said in unquoted and said in rest else ""


def _in_the_morning(
    request: _Request, sentence: str, found: Found | None, *, now: datetime, zone: ZoneInfo
) -> Found | None:
    """Read "wake me at 7" as the morning, where the words leave that open."""
    if found is None:
        return None
    said = f"{sentence}, in the morning"
    if request.tongue is not None:
        said = sentence.replace(found.said, f"{found.said} {request.tongue.morning}", 1)
    early = find_when(said, now=now, zone=zone)
    return found if early is None or isinstance(early.when, Unclear) else early


def _as_delay(head: str, after: str) -> str:
    """Turn "timer for 10 minutes" and "10 minute timer" into "in 10 minutes"."""
    timer = phrases.TIMER.search(head)
    if timer is None:
        return after
    if timer[1]:
        return f"in {timer[1].replace('-', ' ')}, {after}"
    return phrases.LENGTH.sub("in ", after, count=1)


def without_time(part: str, tongue: Tongue | None = None, *, now: datetime, zone: ZoneInfo) -> str:
    """What a part of the message says besides the time."""
    said = phrases.COURTESY_AFTER.sub("", part, count=1)
    return _own_text(said, find_when(said, now=now, zone=zone), tongue)


def _own_text(said: str, found: Found | None, tongue: Tongue | None) -> str:
    text = tidy(said) if found is None else found.rest
    text = phrases.COURTESY_AFTER.sub("", text, count=1)
    text = tidy(phrases.NAMED.sub("", text, count=1) if tongue is None else tongue.own(text))
    return text if text.strip(" .!?") else ""


def _assemble(request: _Request, found: Found | None, texts: Sequence[str]) -> Intent:
    if found is not None and isinstance(found.when, Unclear):
        return _unclear(found.when, texts)
    if len(texts) > 1:
        return AskBack(question=questions.WHICH_TEXT)
    text = texts[0] if texts else request.default
    if phrases.AGAIN_ONLY.match(text) or (request.is_that and not texts):
        return _again(found)
    if text and found is not None and isinstance(found.when, Understood):
        return Remind(text=text, when=found.when)
    said = "" if found is None else found.said
    if request.tongue is not None:
        return AskBack(question=questions.missing(request.tongue.example(said, text), text, said))
    if text:
        return AskBack(question=questions.when(text))
    return AskBack(question=questions.what(said) if said else questions.WHAT_AND_WHEN)


def _unclear(unclear: Unclear, texts: Sequence[str]) -> Intent:
    if unclear.reason is UnclearReason.PAST and texts:
        return AskBack(question=questions.perhaps_text(unclear.question))
    return AskBack(question=unclear.question)


def _again(found: Found | None) -> Intent:
    """The reminder that went off last, once more."""
    if found is None or isinstance(found.when, Unclear):
        return AskBack(question=questions.AGAIN_WHEN)
    if not isinstance(found.when.schedule, At):
        return AskBack(question=questions.SNOOZE_ONCE)
    return Snooze(target=Latest(), until=found.when.at)


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
        f"{questions.shown(task)}"
    )
    return AskBack(question=question)
