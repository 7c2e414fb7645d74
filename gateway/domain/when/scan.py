"""Finding the time words of a sentence, and the words that look like time and were not used."""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from gateway.domain.when.amounts import read_number
from gateway.domain.when.bounds import read_bound, read_duration
from gateway.domain.when.clocks import read_bare_hour
from gateway.domain.when.lists import read_clocks, read_weekdays
from gateway.domain.when.moments import read_delay, read_moment, read_part
from gateway.domain.when.monthly import read_month_day
from gateway.domain.when.pieces import (
    CalendarDate,
    Clock,
    Clocks,
    DayOfMonth,
    Delay,
    Match,
    MonthEnd,
    Now,
    OnDays,
    PartOfDay,
    Period,
    Piece,
    Placed,
    RelativeDay,
    Rhythm,
    Starting,
    UnclearReason,
    Until,
    Weekday,
    fault,
)
from gateway.domain.when.repeats import read_rhythm
from gateway.domain.when.suspects import read_suspect, vague
from gateway.domain.when.tokens import Words
from gateway.domain.when.words import (
    CONNECTORS,
    COURTESIES,
    DETERMINERS,
    LIMITS,
    NUMBERED_NOUNS,
    PARTS,
    TITLES,
    TONIGHT,
    VAGUE_BEFORE,
    VAGUE_NOUNS,
    VAGUE_TIMES,
    WEEKDAYS,
)

_SPANNING: Final = frozenset({"and", "to", "-", "–", "till", "until"})
_SAME: Final = frozenset({"same", "this", "usual", "that"})
_JOINING: Final = frozenset({":", ".", ";", "-", "–", "—"})
_DATED: Final = re.compile(r"([0-9]{1,2})(?:[.]([0-9]{1,2}))?")
_DOTTED: Final = re.compile(r"[0-9]{1,2}[.][0-9]{2}|[0-9]{1,2}[ap]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Scan:
    """The time words of one sentence, in order; `used` are the indices of their words.

    `is_series`: something in the sentence says that it repeats.
    """

    words: Words
    found: tuple[Placed, ...]
    used: frozenset[int]
    is_series: bool

    def pieces(self) -> tuple[Piece, ...]:
        """All pieces in the order of the sentence."""
        return tuple(piece for placed in self.found for piece in placed.pieces)

    def is_split(self) -> bool:
        """Whether text stands between two rhythms: "pills every day, running on weekdays"."""
        places = [
            place
            for place in self.found
            if any(isinstance(piece, Rhythm) for piece in place.pieces)
        ]
        between = range(places[0].end, places[-1].start) if places else range(0)
        return any(index not in self.used for index in between)


def scan(words: Words) -> Scan:
    """Read every time expression of the sentence, each word at most once.

    Only where something says that it repeats, "for 2 weeks" and "at 8 and 20:00" have a meaning.
    """
    once = _scan(words, _read_once)
    if not any(isinstance(piece, Rhythm) for piece in once.pieces()):
        return once
    is_by_period = any(isinstance(piece, Period) for piece in once.pieces())
    series = _scan(words, partial(_read_in_series, is_by_period=is_by_period))
    return replace(series, is_series=True)


def _scan(words: Words, read: "_Read") -> Scan:
    found: list[Placed] = []
    used: set[int] = set()
    index = 0
    while index < len(words):
        match = None
        if not words.tokens[index].is_quoted:
            match = read(words, index, index - 1 in used)
        if match is None:
            index += 1
            continue
        if match.pieces:
            found.append(Placed(pieces=match.pieces, start=index, end=match.end))
            used.update(range(index, match.end))
        index = match.end
    return Scan(words=words, found=tuple(found), used=frozenset(used), is_series=False)


_Read = Callable[[Words, int, bool], Match | None]
"""Reads one expression; the last argument tells that another one ends right before it."""


def _read_once(words: Words, index: int, follows: bool) -> Match | None:
    return (
        read_rhythm(words, index)
        or _read_limit(words, index)
        or _read_vague(words, index)
        or read_moment(words, index)
        or _read_after(words, index, follows)
        or read_suspect(words, index)
    )


def _read_in_series(words: Words, index: int, follows: bool, *, is_by_period: bool) -> Match | None:
    return (
        read_rhythm(words, index)
        or (None if is_by_period or follows else read_duration(words, index))
        or read_bound(words, index, follows=follows)
        or _read_limit(words, index)
        or _read_vague(words, index)
        or read_month_day(words, index)
        or _read_several(words, index)
        or read_moment(words, index)
        or _read_after(words, index, follows)
        or read_suspect(words, index)
    )


def _read_several(words: Words, index: int) -> Match | None:
    """Read several weekdays or times of day: "on monday and thursday", "at 8 and 20:00"."""
    clocks = read_clocks(words, index)
    if clocks is not None and len(clocks[0]) > 1:
        return Match(pieces=(Clocks(clocks=clocks[0]),), end=clocks[1])
    days = read_weekdays(words, index)
    if days is not None and len(days[0]) > 1:
        return Match(pieces=(OnDays(days=days[0]),), end=days[1])
    return None


def _read_after(words: Words, index: int, follows: bool) -> Match | None:
    """Read what has a meaning only right after another expression."""
    if not follows:
        return None
    return (
        read_part(words, index) or read_bare_hour(words, index) or _read_vague_after(words, index)
    )


def _read_limit(words: Words, index: int) -> Match | None:
    """Recognise "by friday", "until 5pm", "lunch for tomorrow": no moment, or another one."""
    is_purpose = words.at(index) == "for" and not words.is_parted(index)
    if not (words.at(index) in LIMITS or is_purpose) or words.is_parted(index + 1):
        return None
    if words.at(index) == "after" and read_delay(words, index) is not None:
        return None
    match = read_moment(words, index + 1)
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
    match = None if words.is_parted(end) else read_moment(words, end) or read_part(words, end)
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
        beside = None if placed.end in result.used else _number_beside(result, placed)
        beside = beside or _end_of_list(result, placed)
        if beside is not None:
            return beside
    pieces = result.pieces()
    clock = next((piece for piece in pieces if isinstance(piece, Clock)), None)
    has_clock = clock is not None or any(_has_clock(piece) for piece in pieces)
    has_part = any(isinstance(piece, PartOfDay) for piece in pieces)
    for index in range(len(words)):
        if index in result.used or not words.at(index):
            continue
        if _may_be_date(result, index):
            return index, index + 1
        is_before_time = index + 1 in result.used
        is_choice = words.joined(index) != "" and words.at(index - 1) == "or"
        is_asked = is_choice or not has_clock
        if is_asked and _may_be_clock(words, index, is_before_time=is_before_time):
            return index, index + 1
        is_exact = has_part or (has_clock and (clock is None or clock.is_exact))
        if not is_exact and _may_be_part(words, index):
            return index, index + 1
    return None


def _has_clock(piece: Piece) -> bool:
    """Whether the piece says, or needs, no time of day beside it."""
    match piece:
        case Delay() | Now() | Clocks() | Period():
            return True
        case Starting(edge=edge) | Until(edge=edge):
            return bool(edge.clocks)
        case _:
            return False


def _is_doubtful(result: Scan, placed: Placed) -> bool:
    """Whether an unsure clock form stands in the middle of running text."""
    words, (first, *_) = result.words, placed.pieces
    if isinstance(first, Weekday | RelativeDay):
        return _is_named(result, placed)
    if not isinstance(first, Clock) or first.is_sure:
        return False
    before, after = placed.start - 1, placed.end
    if words.at(before) in ("the", "a", "an", "my", "our") and not words.is_parted(placed.start):
        return True
    is_head = words.at(before - 1) == "remind"
    if before in result.used or words.is_parted(placed.start) or is_head:
        return False
    is_number = after - placed.start == 1 and read_number(words, placed.start) is not None
    if is_number and words.at(before) not in CONNECTORS:  # "take 2 in the morning"
        return True
    return not (after in result.used or _ends_or_connects(words, after))


def _is_named(result: Scan, placed: Placed) -> bool:
    """Whether the day may be a name or part of one: "watch Saturday Night Live", "Mr Friday"."""
    words, before = result.words, placed.start - 1
    lead = words.tokens[before] if before >= 0 else None
    if lead is not None and lead.word.lstrip("~") in TITLES and lead.gap.strip() in ("", "."):
        return True
    is_weekday = words.at(placed.start) in WEEKDAYS
    if not (is_weekday or words.at(placed.start) in TONIGHT) or words.is_parted(placed.start):
        return False
    if words.at(before) in DETERMINERS:
        return not _ends_or_connects(words, placed.end) and placed.end not in result.used
    is_led = before in result.used or words.at(before) in CONNECTORS or not is_weekday
    if is_led or words.at(before - 1) == "remind":
        return False
    end = placed.end
    while end in result.used and words.at(end) in PARTS:
        end += 1
    is_last = words.at(end) in COURTESIES or not any(map(str.isalnum, words.at(end)))
    return not (end in result.used or is_last or _ends_or_connects(words, end))


def _end_of_list(result: Scan, placed: Placed) -> tuple[int, int] | None:
    """ "at 8, 14 and 20 take 3 drops": a number behind several times may be one of them."""
    words, end = result.words, placed.end
    if end in result.used or not any(isinstance(piece, Clocks) for piece in placed.pieces):
        return None
    is_linked = words.joined(end) in ("and", "&")
    number = read_number(words, end + 1 if is_linked else end)
    gap = words.tokens[end - 1].gap.strip(" ")
    return (placed.start, number[1]) if number and (is_linked or gap in (*_JOINING, ",")) else None


def _number_beside(result: Scan, placed: Placed) -> tuple[int, int] | None:
    """A number right after a time, or joined to it by "or", "and", "to" or a dash."""
    words, used, end = result.words, result.used, placed.end
    clock = next((piece for piece in placed.pieces if isinstance(piece, Clock)), None)
    is_clock = clock is not None
    is_date = any(isinstance(piece, CalendarDate | DayOfMonth) for piece in placed.pieces)
    if words.joined(end) == "or" or (is_clock and words.joined(end) in _SPANNING):
        number = None if words.is_parted(end + 1) else read_number(words, end + 1)
        return None if number is None else (placed.start, number[1])
    if is_date and words.joined(end) in _SPANNING:
        number = None if words.is_parted(end + 1) else read_number(words, end + 1)
        is_day = number is not None and (_ends_or_connects(words, number[1]) or number[1] in used)
        return (placed.start, end + 2) if is_day else None
    if is_clock and words.joined(end) == "past":
        return placed.start, end + 1
    if read_number(words, end) is None:
        return None
    # Also "9: 30", "9 - 10" and "9, 10 and 11", but not "9, 2 eggs".
    gap = words.tokens[end - 1].gap.strip(" ")
    is_listed = "," in gap and _ends_or_connects(words, end + 1)
    if gap == ":" and clock is not None and _is_title(clock, words, end):
        return None
    is_joined = not words.is_parted(end) or (is_clock and gap in _JOINING)
    is_joined = is_joined or (is_listed and (is_clock or is_date))
    return (end, end + 1) if is_joined else None


def _is_title(clock: Clock, words: Words, end: int) -> bool:
    """Whether a colon after a whole clock time leads to text: "5pm: 2 eggs", not "9: 30"."""
    is_whole = clock.is_exact and not clock.said.isdigit()
    return is_whole and not _ends_or_connects(words, end + 1)


def _may_be_date(result: Scan, index: int) -> bool:
    """Whether "26.6" or "26." beside a time is the day of it: no other day was named."""
    words = result.words
    found = _DATED.fullmatch(words.at(index))
    is_behind = index - 1 in result.used and not words.is_parted(index)
    is_beside = is_behind or index + 1 in result.used
    if found is None or not is_beside or words.at(index - 1) in NUMBERED_NOUNS:
        return False
    if found[2] is None and (index or not words.tokens[index].gap.startswith(".")):
        return False
    days = (Delay, Weekday, RelativeDay, CalendarDate, DayOfMonth, MonthEnd, Rhythm)
    is_dated = any(isinstance(piece, days) for piece in result.pieces())
    return not is_dated and 1 <= int(found[1]) <= 31 and 1 <= int(found[2] or 1) <= 12


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
    if before == "the" and words.at(index - 2) in ("in", "on"):
        return True
    return before not in {"good", "a", "the", "my", "our", "his", "her", "their", "your"}
