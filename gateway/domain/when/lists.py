"""Reading lists: "mon, wed and fri", "8:00, 12:00 and 20:00", "the 1st and 15th"."""

import re
from collections.abc import Callable
from typing import Final, TypeVar

from gateway.domain.when.amounts import read_number
from gateway.domain.when.clocks import read_clock
from gateway.domain.when.days import read_ordinal
from gateway.domain.when.moments import read_part_phrase
from gateway.domain.when.pieces import Clock, PartOfDay, Unclear
from gateway.domain.when.plan import settle
from gateway.domain.when.tokens import Words
from gateway.domain.when.words import CONNECTORS, DAY_GROUPS, EVERY, WEEKDAYS

_MOST: Final = 14
_AND: Final = frozenset({"and", "&", "plus"})
_TO: Final = frozenset({"to", "through", "thru", "-", "–"})
_PARTS: Final = re.compile(r"[/+&]")
_RANGE: Final = re.compile(r"[-–]")

T = TypeVar("T")
Listed = tuple[T, int]
"""An item, and where the words go on after it."""


def read_list(
    words: Words, index: int, read_item: Callable[[Words, int], Listed[T] | None]
) -> tuple[list[T], int]:
    """Read items with commas or "and" between them; the last one ends where no more follow."""
    items: list[T] = []
    end = place = index
    while len(items) < _MOST:
        item = read_item(words, place)
        if item is None:
            break
        items.append(item[0])
        end = item[1]
        following = _after_joint(words, end)
        if following is None:
            break
        place = following
    return items, end


def _after_joint(words: Words, end: int) -> int | None:
    is_comma = is_after_comma(words, end)
    if words.is_parted(end) and not is_comma:
        return None
    if words.at(end) in _AND:
        return end + 1
    return end if is_comma else None


def is_after_comma(words: Words, index: int) -> bool:
    """Whether a comma alone stands before the word at `index`."""
    return 0 < index < len(words) and words.tokens[index - 1].gap.strip() == ","


def read_weekdays(words: Words, index: int) -> tuple[frozenset[int], int, bool] | None:
    """Read weekdays by name, and whether one of them is plural: "mondays and thursdays"."""
    items, end = read_list(words, index, _read_weekday)
    if not items:
        return None
    days = frozenset(day for found, _ in items for day in found)
    return days, end, any(is_plural for _, is_plural in items)


def _read_weekday(words: Words, index: int) -> Listed[tuple[frozenset[int], bool]] | None:
    start = index
    if words.at(start) == "on":
        start += 1
    if words.at(start) in EVERY:
        start += 1
    if start > index and words.is_parted(start):
        return None
    found = _days_of(words.at(start))
    if found is None:
        return None
    last = None
    if words.joined(start + 1) in _TO and len(found[0]) == 1 and words.joined(start + 2):
        last = _days_of(words.at(start + 2))
    if last is None or len(last[0]) != 1:
        return found, start + 1
    return (_run(min(found[0]), min(last[0])), found[1] or last[1]), start + 3


def _days_of(word: str) -> tuple[frozenset[int], bool] | None:
    """The days that one word names, and whether in the plural: "mondays", "mon/wed", "mon-fri"."""
    single = word.removesuffix("s") if word not in WEEKDAYS else word
    is_plural = single != word
    if single in DAY_GROUPS and is_plural:
        return DAY_GROUPS[single], True
    ends = [WEEKDAYS.get(name) for name in _RANGE.split(single[:40])]
    if len(ends) == 2 and ends[0] is not None and ends[1] is not None:
        return _run(ends[0], ends[1]), is_plural
    days = [WEEKDAYS.get(name) for name in _PARTS.split(single[:80])]
    if None in days:
        return None
    return frozenset(day for day in days if day is not None), is_plural


def _run(first: int, last: int) -> frozenset[int]:
    return frozenset((first + step) % 7 for step in range((last - first) % 7 + 1))


def read_clocks(words: Words, index: int) -> tuple[tuple[Clock, ...], int] | None:
    """Read one or more times of day: "at 8 and 20:00", "at 8am, noon and 6pm"."""
    first = _read_clock(words, index)
    if first is None:
        return None

    def read_item(words: Words, place: int) -> Listed[Clock] | None:
        return first if place == index else _read_clock(words, place) or _read_hour(words, place)

    clocks, end = read_list(words, index, read_item)
    return tuple(clocks), end


def _read_clock(words: Words, index: int) -> Listed[Clock] | None:
    found = read_clock(words, index)
    if found is None or len(found.pieces) > 1 or not isinstance(found.pieces[0], Clock):
        return None
    clock = found.pieces[0]
    part = None if words.is_parted(found.end) else read_part_phrase(words, found.end)
    if part is not None and isinstance(part.pieces[0], PartOfDay):
        settled = settle(clock, part.pieces[0].part)
        return None if isinstance(settled, Unclear) else (settled, part.end)
    return clock, found.end


def _read_hour(words: Words, index: int) -> Listed[Clock] | None:
    """Read a number further on in a list of times: "at 8, 12 and 18"."""
    number = read_number(words, index)
    if number is None or not 0 < number[0] <= 23:
        return None
    hour, end = number
    goes_on = words.at(end) in (CONNECTORS | _AND) - {"of"}
    if not (words.is_parted(end) or goes_on):
        return None
    said = words.said(index, end)
    return Clock(hour=hour, is_exact=hour > 12, is_sure=True, said=said), end


def read_ordinals(words: Words, index: int) -> tuple[list[int], int]:
    """Read "1st and 15th", "first, tenth and the twentieth"."""
    return read_list(words, index, _read_ordinal)


def _read_ordinal(words: Words, index: int) -> Listed[int] | None:
    start = index
    if words.at(start) == "the" and not words.is_parted(start + 1):
        start += 1
    return read_ordinal(words, start)
