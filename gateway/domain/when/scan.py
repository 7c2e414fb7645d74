"""Finding the time words of a sentence, and the words that look like time and were not used."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from gateway.domain.when.amounts import read_amount, read_number
from gateway.domain.when.clocks import read_bare_hour, read_clock, read_zone
from gateway.domain.when.days import read_dated, read_day
from gateway.domain.when.pieces import (
    Clock,
    Delay,
    Match,
    Now,
    Part,
    PartOfDay,
    Piece,
    Placed,
    RelativeDay,
    UnclearReason,
    fault,
)
from gateway.domain.when.suspects import read_suspect, vague
from gateway.domain.when.tokens import Words
from gateway.domain.when.words import (
    CONNECTORS,
    DETERMINERS,
    LIMITS,
    NUMBERED_NOUNS,
    ONCE_A,
    PARTS,
    REPEATING,
    TODAY_SHIFTS,
    UNITS,
    VAGUE_BEFORE,
    VAGUE_NOUNS,
    VAGUE_TIMES,
)

_SPANNING: Final = frozenset({"and", "to", "-", "–", "till", "until"})
_SAME: Final = frozenset({"same", "this", "usual", "that"})
Reader = Callable[[Words, int], Match | None]
_TIMES: Final = re.compile(r"[0-9]+x")
_JOINING: Final = frozenset({":", ".", ";", "-", "–", "—"})
_DOTTED: Final = re.compile(r"[0-9]{1,2}[.][0-9]{2}|[0-9]{1,2}[ap]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Scan:
    """The time words of one sentence, in order; `used` are the indices of their words."""

    words: Words
    found: tuple[Placed, ...]
    used: frozenset[int]

    def pieces(self) -> tuple[Piece, ...]:
        """All pieces in the order of the sentence."""
        return tuple(piece for placed in self.found for piece in placed.pieces)


def scan(words: Words) -> Scan:
    """Read every time expression of the sentence, each word at most once."""
    found: list[Placed] = []
    used: set[int] = set()
    index = 0
    while index < len(words):
        match = None
        if not words.tokens[index].is_quoted:
            match = _read(words, index, follows=index - 1 in used)
        if match is None:
            index += 1
            continue
        found.append(Placed(pieces=match.pieces, start=index, end=match.end))
        used.update(range(index, match.end))
        index = match.end
    return Scan(words=words, found=tuple(found), used=frozenset(used))


def _read(words: Words, index: int, *, follows: bool) -> Match | None:
    """Read one expression at `index`; `follows` tells that another one ends right before it."""
    for reader in (_read_repeating, _read_limit, _read_vague, *_MOMENTS):
        match = reader(words, index)
        if match is not None:
            return match
    if follows:
        match = (
            _read_part(words, index)
            or read_bare_hour(words, index)
            or _read_vague_after(words, index)
        )
        if match is not None:
            return match
    return read_suspect(words, index)


def _read_moment(words: Words, index: int) -> Match | None:
    for reader in _MOMENTS:
        match = reader(words, index)
        if match is not None:
            return match
    return None


def _read_delay(words: Words, index: int) -> Match | None:
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


def _read_part_phrase(words: Words, index: int) -> Match | None:
    """Read "in the morning", "at night"."""
    phrase = (words.at(index), words.joined(index + 1))
    if phrase == ("at", "night"):
        return Match(pieces=(PartOfDay(part=Part.NIGHT),), end=index + 2)
    part = words.joined(index + 2)
    if phrase == ("in", "the") and part in PARTS:
        return Match(pieces=(PartOfDay(part=Part(part)),), end=index + 3)
    return None


def _read_part(words: Words, index: int) -> Match | None:
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
    _read_delay,
    read_dated,
    read_day,
    _read_part_phrase,
    read_clock,
    read_zone,
    _read_now,
)


def _read_repeating(words: Words, index: int) -> Match | None:
    """Recognise a series, which is not available yet: it must never become a single reminder."""
    word = words.at(index)
    is_a = words.joined(index + 1) in ("a", "an", "per")
    is_times_a = is_a and (word in ONCE_A or _TIMES.fullmatch(word) is not None)
    is_per = word == "per" and words.joined(index + 1) in UNITS
    if not (word in REPEATING or is_times_a or is_per):
        return None
    question = (
        f'Repeating reminders are not available yet, and I read "{word}" as repeating. I can set '
        'a single one, like "tomorrow at 9:00". If it belongs to the text, put the text in quotes.'
    )
    end = index + 1 if word in REPEATING else index + 2
    return Match(pieces=(fault(UnclearReason.REPEATING, question),), end=end)


def _read_limit(words: Words, index: int) -> Match | None:
    """Recognise "by friday", "until 5pm", "lunch for tomorrow": no moment, or another one."""
    is_purpose = words.at(index) == "for" and not words.is_parted(index)
    if not (words.at(index) in LIMITS or is_purpose) or words.is_parted(index + 1):
        return None
    if words.at(index) == "after" and _read_delay(words, index) is not None:
        return None
    match = _read_moment(words, index + 1)
    end = index + 2 if match is None else match.end
    if match is None:
        number = None if is_purpose else read_number(words, index + 1)
        if number is None or number[0] > 24 or not _ends_or_connects(words, number[1]):
            return None
    said = words.said(index, end)
    question = (
        f'"{said}" may say when something else is. When exactly shall I remind you? Say it without '
        f'"{words.at(index)}". If it belongs to the text, put the text in quotes.'
    )
    return Match(pieces=(fault(UnclearReason.VAGUE, question),), end=end)


def _read_vague(words: Words, index: int) -> Match | None:
    """Recognise "early tomorrow", "later today", "first thing"."""
    end = index + 1
    if words.at(index) == "first" and words.joined(end) == "thing":
        return Match(pieces=(vague(words.said(index, end + 1)),), end=end + 1)
    if words.at(index) not in VAGUE_BEFORE:
        return None
    end += words.joined(end) == "on"
    end += words.joined(end) == "in"
    match = None if words.is_parted(end) else _read_moment(words, end) or _read_part(words, end)
    if match is None or isinstance(match.pieces[0], Clock):
        return None
    return Match(pieces=(vague(words.said(index, match.end)),), end=match.end)


def _read_vague_after(words: Words, index: int) -> Match | None:
    """Recognise "tomorrow early", "friday late"."""
    if words.joined(index) not in VAGUE_BEFORE or not _ends_or_connects(words, index + 1):
        return None
    return Match(pieces=(vague(words.said(index - 1, index + 1)),), end=index + 1)


def _ends_or_connects(words: Words, index: int) -> bool:
    return words.is_parted(index) or words.at(index) in CONNECTORS


def unused_time_words(result: Scan) -> tuple[int, int] | None:
    """The first words [start, end) that may be time and were not used, given what was.

    A clock form inside running text may belong to the text ("take the 5pm train"); a number
    beside a time may be another time ("at 5 or 6"); and where no clock time was given, also a
    price, a lone number or "at lunch" may have been meant as one.
    """
    words = result.words
    for placed in result.found:
        if _is_doubtful(result, placed):
            return placed.start, placed.end
        beside = None if placed.end in result.used else _number_beside(words, placed)
        if beside is not None:
            return beside
    pieces = result.pieces()
    clock = next((piece for piece in pieces if isinstance(piece, Clock)), None)
    has_clock = clock is not None or any(isinstance(piece, Delay | Now) for piece in pieces)
    has_part = any(isinstance(piece, PartOfDay) for piece in pieces)
    for index in range(len(words)):
        if index in result.used or not words.at(index):
            continue
        is_before_time = index + 1 in result.used
        is_choice = words.joined(index) != "" and words.at(index - 1) == "or"
        is_asked = is_choice or not has_clock
        if is_asked and _may_be_clock(words, index, is_before_time=is_before_time):
            return index, index + 1
        is_exact = has_part or (has_clock and (clock is None or clock.is_exact))
        if not is_exact and _may_be_part(words, index):
            return index, index + 1
    return None


def _is_doubtful(result: Scan, placed: Placed) -> bool:
    """Whether an unsure clock form stands in the middle of running text."""
    words, (first, *_) = result.words, placed.pieces
    if not isinstance(first, Clock) or first.is_sure:
        return False
    before, after = placed.start - 1, placed.end
    if words.at(before) in ("the", "a", "an", "my", "our") and not words.is_parted(placed.start):
        return True
    is_head = words.at(before - 1) == "remind"
    if before in result.used or words.is_parted(placed.start) or is_head:
        return False
    return not (after in result.used or _ends_or_connects(words, after))


def _number_beside(words: Words, placed: Placed) -> tuple[int, int] | None:
    """A number right after a time, or joined to it by "or", "and", "to" or a dash."""
    end = placed.end
    is_clock = any(isinstance(piece, Clock) for piece in placed.pieces)
    if words.joined(end) == "or" or (is_clock and words.joined(end) in _SPANNING):
        number = None if words.is_parted(end + 1) else read_number(words, end + 1)
        return None if number is None else (placed.start, number[1])
    if is_clock and words.joined(end) == "past":
        return placed.start, end + 1
    if read_number(words, end) is None:
        return None
    # Also "9: 30", "9 - 10" and "9, 10 and 11", but not "9, 2 eggs".
    gap = words.tokens[end - 1].gap.strip(" ")
    is_listed = "," in gap and _ends_or_connects(words, end + 1)
    is_joined = not words.is_parted(end) or (is_clock and (gap in _JOINING or is_listed))
    return (end, end + 1) if is_joined else None


def _may_be_clock(words: Words, index: int, *, is_before_time: bool) -> bool:
    word = words.at(index)
    if _DOTTED.fullmatch(word):
        return True
    if word in VAGUE_TIMES and words.at(index - 1) not in DETERMINERS:
        return True
    if word == "time" and words.at(index - 1) in _SAME:
        return True
    if word in VAGUE_NOUNS:
        before = words.at(index - 1)
        return not words.is_parted(index) and before in {"at", "before", "after", "by"}
    number = read_number(words, index)
    if number is None or not 0 < number[0] <= 24 or words.at(index - 1) in NUMBERED_NOUNS:
        return False
    is_edge = _ends_or_connects(words, number[1]) or is_before_time
    return is_edge and words.at(number[1]) != "of"


def _may_be_part(words: Words, index: int) -> bool:
    """Whether "evening" may say which half of the day was meant; "the evening class" does not."""
    if words.at(index) not in PARTS:
        return False
    before = "" if words.is_parted(index) else words.at(index - 1)
    if before == "the" and words.at(index - 2) == "in":
        return True
    return before not in {"good", "a", "the", "my", "our", "his", "her", "their", "your"}
