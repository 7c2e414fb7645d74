"""Reading what names one moment, or a part of it: a delay, a day, a time of day, "now"."""

from collections.abc import Callable
from typing import Final

from gateway.domain.when.amounts import read_amount
from gateway.domain.when.clocks import read_bare_hour, read_clock, read_zone
from gateway.domain.when.days import read_dated, read_day
from gateway.domain.when.pieces import (
    Delay,
    Match,
    Now,
    Part,
    PartOfDay,
    RelativeDay,
    UnclearReason,
    fault,
)
from gateway.domain.when.suspects import vague
from gateway.domain.when.tokens import Words
from gateway.domain.when.words import PARTS, TODAY_SHIFTS

Reader = Callable[[Words, int], Match | None]


def read_moment(words: Words, index: int) -> Match | None:
    """Read one expression that names a moment or a part of it."""
    for reader in _MOMENTS:
        match = reader(words, index)
        if match is not None:
            return match
    return None


def read_delay(words: Words, index: int) -> Match | None:
    """Read "in 20 minutes", "after 2 hours", "20 minutes from now", "a week from today"."""
    if words.at(index) in ("in", "after") and not words.is_parted(index + 1):
        return _read_delay_after_in(words, index)
    start = index + 1 if words.at(index) == "for" else index
    amount = read_amount(words, start, expects_delay=False)
    if amount is None:
        return None
    end, delay = words.after_filler(amount.end), amount.delay
    following = words.joined(end)
    if following in ("later", "hence"):
        return Match(pieces=(delay,), end=end + 1)
    if following == "from" and words.joined(end + 1) == "now":
        return Match(pieces=(delay,), end=end + 2)
    shift = TODAY_SHIFTS.get(words.joined(end + 1)) if following == "from" else None
    if shift is not None and delay.days and not (delay.months or delay.seconds):
        return Match(pieces=(RelativeDay(days=delay.days + shift),), end=end + 2)
    if following == "ago":
        question = "That lies in the past. Say a time to come, like in 20 minutes."
        return Match(pieces=(fault(UnclearReason.PAST, question),), end=end + 1)
    if following in ("from", "before", "after", "past", "until", "till"):
        return Match(pieces=(vague(words.said(index, end + 1)),), end=end + 1)
    # "a week tomorrow", "a week on friday" count from that day.
    day = None if words.is_parted(end) or not delay.days else read_day(words, end)
    if day is not None:
        return Match(pieces=(vague(words.said(index, day.end)),), end=day.end)
    return None


def _read_delay_after_in(words: Words, index: int) -> Match | None:
    amount = read_amount(words, index + 1, expects_delay=True)
    if amount is None:
        return None
    end, delay = words.after_filler(amount.end), amount.delay
    following = words.joined(end)
    if following in ("before", "after", "from", "ago"):
        if following == "from" and words.joined(end + 1) == "now":
            return Match(pieces=(delay,), end=end + 2)
        return Match(pieces=(vague(words.said(index, end + 1)),), end=end + 1)
    if following == "time" and words.at(index) == "in":
        end += 1
    if delay == Delay(note=delay.note):
        question = "That is no time at all. Say for example in 1 minute."
        return Match(pieces=(fault(UnclearReason.IMPOSSIBLE, question),), end=end)
    return Match(pieces=(delay,), end=end)


def read_part_phrase(words: Words, index: int) -> Match | None:
    """Read "in the morning", "at night", and "morning 6am" where the sentence begins."""
    phrase = (words.at(index), words.joined(index + 1))
    if phrase == ("at", "night"):
        return Match(pieces=(PartOfDay(part=Part.NIGHT),), end=index + 2)
    part = words.joined(index + 2)
    if phrase == ("in", "the") and part in PARTS:
        return Match(pieces=(PartOfDay(part=Part(part)),), end=index + 3)
    return None if index else _read_part_in_front(words)


def _read_part_in_front(words: Words) -> Match | None:
    word = words.at(0)
    if word not in PARTS or words.is_parted(1):
        return None
    clock = read_clock(words, 1) or read_bare_hour(words, 1)
    return None if clock is None else Match(pieces=(PartOfDay(part=Part(word)),), end=1)


def read_part(words: Words, index: int) -> Match | None:
    """Read a part of the day right after another expression: "tomorrow morning", "9 evening"."""
    word = words.joined(index)
    return Match(pieces=(PartOfDay(part=Part(word)),), end=index + 1) if word in PARTS else None


def _read_now(words: Words, index: int) -> Match | None:
    """Read "now" or "right now", at either end of the sentence only."""
    end = index + 2 if words.at(index) == "right" else index + 1
    is_edge = index == 0 or end == len(words)
    if words.at(end - 1) != "now" or not is_edge or words.joined(end) in ("that", "and"):
        return None
    return Match(pieces=(Now(),), end=end)


_MOMENTS: Final[tuple[Reader, ...]] = (
    read_delay,
    read_dated,
    read_day,
    read_part_phrase,
    read_clock,
    read_zone,
    _read_now,
)
