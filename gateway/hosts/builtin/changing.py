"""Requests about reminders that exist: cancel 2, move 2 to 5pm, snooze that."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from zoneinfo import ZoneInfo

from gateway.domain import quick
from gateway.domain.when import Unclear, UnclearReason, Understood, parse_when
from gateway.domain.when.tidy import tidy
from gateway.hosts.builtin import change_phrases as phrases
from gateway.hosts.builtin import questions
from gateway.hosts.builtin.intents import (
    Act,
    AskBack,
    Deed,
    Done,
    Intent,
    Latest,
    Move,
    Numbers,
    Rename,
    Snooze,
    Target,
    WhichOne,
)
from gateway.hosts.builtin.sentence import Sentence, read_sentence

_MAX_NUMBERS: Final = 20
_BEGINNING: Final = 100
# "forget it" and "get it" are said of other things too.
_DONE_TO_THAT: Final = frozenset({Deed.PAUSE, Deed.RESUME, Deed.RUN_NOW, Deed.HISTORY})
_STATES: Final = frozenset({Deed.CANCEL, Deed.PAUSE, Deed.RESUME})
_NOT_A_TIME: Final = frozenset({UnclearReason.NO_TIME, UnclearReason.NOT_UNDERSTOOD})


def read_change(
    message: str, sentence: Sentence, *, now: datetime, zone: ZoneInfo
) -> Intent | None:
    """Tell what is to be done to which reminder; None = the message is about something else.

    `sentence` is the message without polite words.
    """
    return (
        _by_number(sentence.plain)
        or _short_answer(sentence, now=now, zone=zone)
        or _rename(message)
        or _snooze(sentence, now=now, zone=zone)
        or _move(sentence, now=now, zone=zone)
        or _number_and_time(sentence, now=now, zone=zone)
        or _unnumbered(sentence.plain)
    )


def _by_number(plain: str) -> Intent | None:
    found = _numbered(plain)
    if found is None:
        return None
    meant = (deed for deed, said in phrases.DEEDS.items() if said.fullmatch(found.said))
    deed = next(meant, None)
    if deed is not None and len(found.target.numbers) > _MAX_NUMBERS:
        return WhichOne(question=questions.WHICH[deed])
    return None if deed is None else Act(deed=deed, target=found.target)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Numbered:
    """A sentence in which N or #N stands for the numbers of reminders."""

    said: str
    target: Numbers


def _numbered(plain: str) -> _Numbered | None:
    found = phrases.NUMBERED.fullmatch(plain)
    if found is None:
        return None
    is_sure = "#" in found["numbers"] or phrases.NOUN.search(found["named"]) is not None
    said = f"{found['before'] or ''} {'#N' if is_sure else 'N'}{found['after']}".strip()
    return _Numbered(said=said, target=_numbers(found["numbers"]))


def _numbers(said: str) -> Numbers:
    words = phrases.NUMBER.findall(said)
    return Numbers(numbers=tuple(dict.fromkeys(phrases.number_of(word) for word in words)))


def _short_answer(sentence: Sentence, *, now: datetime, zone: ZoneInfo) -> Intent | None:
    """What would also be understood as a reply to a reminder: "done", "stop that"."""
    match quick.read_quick(sentence.typed, now=now, zone=zone):
        case quick.Done():
            return Done()
        case quick.StopIt() if not sentence.plain.isalpha() or sentence.plain.endswith("lo"):
            return Act(deed=Deed.CANCEL, target=Latest())
        case _:
            return None


def _rename(message: str) -> Intent | None:
    beginning = read_sentence(message[:_BEGINNING])
    found = phrases.RENAME.match(beginning.plain)
    if found is None:
        return None
    text = tidy(message[beginning.start(found.end()) :])
    number = phrases.number_of(found["first"] or found["second"])
    return Rename(number=number, text=text) if text else AskBack(question=questions.CHANGE_HOW)


def _snooze(sentence: Sentence, *, now: datetime, zone: ZoneInfo) -> Intent | None:
    plain = sentence.plain
    snooze = phrases.SNOOZE.match(plain)
    verb = snooze or phrases.AGAIN.match(plain)
    if verb is None:
        return None
    until = _delay(sentence, verb.end(), now=now, zone=zone)
    if isinstance(until, Understood):
        return Snooze(target=Latest(), until=until.at)
    if snooze is None:
        return None
    named = phrases.SNOOZED.match(plain, verb.end())
    if named is None:
        return AskBack(question=questions.SNOOZE_HOW_LONG)
    target: Target = Latest() if named["that"] else _numbers(named["numbers"])
    until = _delay(sentence, named.end(), now=now, zone=zone)
    if isinstance(until, Unclear):
        return AskBack(question=_told(until) or questions.SNOOZE_HOW_LONG)
    is_bare = named.end() == len(plain) and not named["that"] and not named["named"]
    return Snooze(
        target=target, until=until.at, is_doubtful=is_bare and "#" not in named["numbers"]
    )


def _delay(
    sentence: Sentence, position: int, *, now: datetime, zone: ZoneInfo
) -> Understood | Unclear:
    """The end of a snooze, said from `position` on: "for 10 minutes", "until 5", or nothing."""
    link = phrases.SNOOZE_LINK.match(sentence.plain, position)
    words = sentence.since(position if link is None else link.end()) or quick.SNOOZE
    tries = [f"at {words}", words] if link is not None and link["until"] else [words]
    return _first(quick.read_delay(said, now=now, zone=zone) for said in tries)


def _first(readings: Iterable[Understood | Unclear]) -> Understood | Unclear:
    """The first that is a time, else the one that says most about why it is none."""
    unclear: list[Unclear] = []
    for reading in readings:
        if isinstance(reading, Understood):
            return reading
        unclear.append(reading)
    telling = (one for one in unclear if one.reason not in _NOT_A_TIME)
    return next(telling, unclear[0])


def _told(unclear: Unclear) -> str:
    return "" if unclear.reason in _NOT_A_TIME else unclear.question


_BARE_CLOCK: Final = re.compile(
    r"(?:at |to )?(\d{1,2}(?:[:.]\d{2})?(?: ?[ap]\.?m\.?)?|noon|midnight)", re.IGNORECASE
)
_SHIFT: Final = re.compile(r"\b(?:later|earlier)\W*$", re.IGNORECASE)  # counted from its own time


def _move(sentence: Sentence, *, now: datetime, zone: ZoneInfo) -> Intent | None:
    found = phrases.MOVE.fullmatch(sentence.plain)
    if found is None or (found["that"] and found["moving"] and not found["linked"]):
        return None  # "change it tomorrow" is rather something to do
    target = Latest() if found["that"] else _numbers(found["number"])
    words = phrases.INSTEAD.sub("", sentence.since(found.start("time")))
    linked = "" if found["link"] is None else sentence.since(found.start("link"))
    linked = phrases.INSTEAD.sub("", linked)
    when = _new_time(words, linked, now=now, zone=zone)
    is_shift = found["by"] is not None and not found["linked"]
    if isinstance(when, Understood) and not (is_shift or _SHIFT.search(words)):
        clock = _BARE_CLOCK.fullmatch(words.strip(" .!"))
        return Move(target=target, when=when, clock=None if clock is None else clock[1])
    if isinstance(when, Understood) or _is_length(words, now=now, zone=zone):
        return AskBack(question=questions.NEW_TIME)
    told = _told(when)
    if told and (found["that"] or found["moving"] or found["link"]):
        return AskBack(question=told)
    is_sure = found["that"] is None and found["moving"] is not None and found["link"] is not None
    return AskBack(question=questions.CHANGE_HOW) if is_sure else None


def _new_time(words: str, linked: str, *, now: datetime, zone: ZoneInfo) -> Understood | Unclear:
    """Read "at 5", "5pm" or "tomorrow"; a mere length of time is no new time."""
    if linked:
        with_link = parse_when(linked, now=now, zone=zone)
        if isinstance(with_link, Understood):
            return with_link
    if _is_length(words, now=now, zone=zone):
        return Unclear(reason=UnclearReason.NOT_UNDERSTOOD, question=questions.NEW_TIME)
    return _first(parse_when(said, now=now, zone=zone) for said in (words, f"at {words}"))


def _is_length(words: str, *, now: datetime, zone: ZoneInfo) -> bool:
    """Whether the words are a length of time, like "10 minutes"."""
    return isinstance(parse_when(f"in {words}", now=now, zone=zone), Understood)


def _number_and_time(sentence: Sentence, *, now: datetime, zone: ZoneInfo) -> Intent | None:
    found = phrases.NUMBER_AND_TIME.fullmatch(sentence.plain)
    if found is None:
        return None
    words = sentence.since(found.start("time"))
    said = words.removeprefix("to ").removeprefix("for ")
    if not isinstance(parse_when(said, now=now, zone=zone), Understood):
        return None
    question = questions.maybe_change(phrases.number_of(found["number"]), said.removeprefix("at "))
    return AskBack(question=question, says_whole=True)


def _unnumbered(plain: str) -> Intent | None:
    """What names a deed and no number, or a number and no whole change."""
    if phrases.NEGATIVE.search(plain):
        return WhichOne(question=questions.WHICH[Deed.CANCEL])
    for deed, verb in phrases.VERBS.items():
        said = verb.match(plain)
        rest = "" if said is None else plain[said.end() :]
        if deed is not Deed.GET and phrases.ALL_OF_THEM.fullmatch(rest):
            return WhichOne(question=questions.not_all(deed))
        if deed in _DONE_TO_THAT and phrases.THAT_NOW.fullmatch(rest):
            return Act(deed=deed, target=Latest())
        if said is not None and deed in _STATES and phrases.A_REMINDER.match(rest):
            return WhichOne(question=questions.WHICH[deed])
    return _incomplete(plain)


def _incomplete(plain: str) -> Intent | None:
    numbered = _numbered(plain)
    said = "" if numbered is None else numbered.said
    if phrases.PAUSE_UNTIL.fullmatch(said):
        return AskBack(question=questions.NO_END_OF_PAUSE)
    if phrases.CHANGE_NUMBERED.fullmatch(said):
        return AskBack(question=questions.CHANGE_HOW)
    if phrases.AGAIN_SOMETIME.fullmatch(plain):
        return AskBack(question=questions.AGAIN_WHEN)
    if phrases.ALL_AWAY.fullmatch(plain):
        return WhichOne(question=questions.not_all(Deed.CANCEL))
    if phrases.NO_WHOLE_CANCEL.fullmatch(said) or phrases.CANCEL.match(plain):
        return WhichOne(question=questions.WHICH[Deed.CANCEL])
    is_change = phrases.CHANGE.match(plain) or phrases.RENAME_THAT.match(plain)
    return WhichOne(question=questions.WHICH_TO_CHANGE) if is_change else None
