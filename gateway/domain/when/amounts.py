"""Reading numbers and delays: "20 minutes", "an hour and a half", "1h30"."""

import re
from dataclasses import dataclass
from typing import Final

from gateway.domain.when.pieces import Delay
from gateway.domain.when.tokens import Words
from gateway.domain.when.words import (
    DAY,
    HOUR,
    LETTER_UNITS,
    MINUTE,
    MONTH,
    NUMBERS,
    ROUGHLY,
    SECOND,
    TENS,
    UNITS,
)

_DIGITS: Final = re.compile(r"[0-9]{1,6}")
_DECIMAL: Final = re.compile(r"([0-9]{1,6})[.]([0-9]{1,2})")
_COMPACT: Final = re.compile(r"([0-9]{1,6})([a-z]+)(?:(?P<minutes>[0-9]{1,2})(?:m|min|mins)?)?")
_HYPHENATED: Final = re.compile(r"([a-z0-9]+)-([a-z]+)")
_SECONDS: Final = {SECOND: 1, MINUTE: 60, HOUR: 3600, DAY: 86400}
_HALVES: Final = {"half": 50, "quarter": 25}
# "1 year 2 months 3 weeks 4 days 5 hours 6 minutes 7 seconds" has no more.
_MOST_TERMS: Final = 7


@dataclass(frozen=True, slots=True, kw_only=True)
class Amount:
    """A delay as read. `is_counted` is false for "a day", which is often plain text."""

    delay: Delay
    is_counted: bool
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Count:
    hundredths: int
    end: int
    is_counted: bool = True
    note: str | None = None


def read_number(words: Words, index: int) -> tuple[int, int] | None:
    """Read "20", "twenty" or "twenty-five" at `index`: the number and where it ends."""
    word = words.at(index)
    if _DIGITS.fullmatch(word):
        return int(word), index + 1
    if word in NUMBERS:
        return NUMBERS[word], index + 1
    if word not in TENS:
        return None
    following = NUMBERS.get(words.joined(index + 1), 10)
    if following < 10:
        return TENS[word] + following, index + 2
    return TENS[word], index + 1


def read_amount(
    words: Words, index: int, *, expects_delay: bool, may_be_bare: bool = False
) -> Amount | None:
    """Read a delay at `index`, or None.

    `expects_delay` ("in ..." stood before) allows one-letter units, `may_be_bare` a unit alone
    ("every hour"). None also where a delay begins but goes on in a way that is not understood:
    half a delay is a wrong delay.
    """
    is_more = words.at(index) == "another" and read_number(words, index + 1) is not None
    start = index + 1 if expects_delay and (is_more or words.at(index) in ROUGHLY) else index
    amount = _read_term(words, start, expects_delay=expects_delay, may_be_bare=may_be_bare)
    for _ in range(_MOST_TERMS):
        if amount is None:
            return None
        end = amount.end
        skip = 1 if words.joined(end) == "and" or words.at(end) == "and" else 0
        further = _read_term(words, end + skip, expects_delay=expects_delay)
        if further is None:
            return amount if not _goes_on(words, end) else None
        amount = _add(amount, further)
    return None


def _goes_on(words: Words, end: int) -> bool:
    """Whether "and a half", "and 5" follows that no rule could add."""
    if words.joined(end) != "and":
        return False
    place = end + 2 if words.joined(end + 1) in {"a", "an"} else end + 1
    is_part = words.joined(place) in {"half", "quarter", "third", "few", "bit", "couple", "some"}
    return is_part or read_number(words, place) is not None


def _add(first: Amount, further: Amount) -> Amount:
    notes = [note for note in (first.delay.note, further.delay.note) if note]
    return Amount(
        delay=Delay(
            months=first.delay.months + further.delay.months,
            days=first.delay.days + further.delay.days,
            seconds=first.delay.seconds + further.delay.seconds,
            note=", ".join(notes) or None,
        ),
        is_counted=first.is_counted or further.is_counted,
        end=further.end,
    )


def _read_term(
    words: Words, index: int, *, expects_delay: bool, may_be_bare: bool = False
) -> Amount | None:
    compact = _read_compact(words, index, expects_delay=expects_delay)
    if compact is not None:
        return compact
    count = _read_count(words, index)
    if count is None and may_be_bare and words.at(index) in UNITS:
        count = _Count(hundredths=100, end=index)
    if count is None:
        return None
    unit = words.joined(count.end).removesuffix("'s").removesuffix("'")
    kind = UNITS.get(unit) or (LETTER_UNITS.get(unit) if expects_delay else None)
    if kind is None:
        return None
    hundredths, end = count.hundredths, count.end + 1
    is_counted = count.is_counted
    for fraction, size in _HALVES.items():
        if [words.joined(end + step) for step in range(3)] == ["and", "a", fraction]:
            hundredths, end, is_counted = hundredths + size, end + 3, True
            break
    delay = _delay(hundredths, kind, note=count.note)
    return None if delay is None else Amount(delay=delay, is_counted=is_counted, end=end)


def _read_compact(words: Words, index: int, *, expects_delay: bool) -> Amount | None:
    """Read "90min", "2h", "1h30", "1h30m", "5-minute"."""
    found = _COMPACT.fullmatch(words.at(index)) or _HYPHENATED.fullmatch(words.at(index))
    if found is None:
        return None
    text, unit, minutes = found.group(1), found.group(2), found.groupdict().get("minutes")
    value = int(text) if _DIGITS.fullmatch(text) else NUMBERS.get(text)
    kind = UNITS.get(unit) or (LETTER_UNITS.get(unit) if expects_delay else None)
    if kind is None or value is None or (minutes is not None and kind[0] != HOUR):
        return None
    delay = _delay(value * 100, kind, note=None)
    if delay is None:
        return None
    seconds = delay.seconds + 60 * int(minutes or 0)
    return Amount(
        delay=Delay(months=delay.months, days=delay.days, seconds=seconds),
        is_counted=True,
        end=index + 1,
    )


def _read_count(words: Words, index: int) -> _Count | None:
    """Read what stands before a unit: "20", "1.5", "a", "half an", "a couple of"."""
    word = words.at(index)
    decimal = _DECIMAL.fullmatch(word)
    if decimal is not None:
        whole, part = decimal.groups()
        return _Count(hundredths=int(whole) * 100 + int(part.ljust(2, "0")), end=index + 1)
    part_of = _read_fraction(words, index)
    if part_of is not None:
        return part_of
    start = index + 1 if word == "a" else index
    if words.at(start) == "couple":
        end = start + 2 if words.joined(start + 1) == "of" else start + 1
        return _Count(hundredths=200, end=end, note="I read a couple as 2")
    number = read_number(words, index)
    if number is None:
        is_one = word in ("a", "an", "another")
        return _Count(hundredths=100, end=index + 1, is_counted=False) if is_one else None
    value, end = number
    if [words.joined(end + step) for step in range(3)] == ["and", "a", "half"]:
        return _Count(hundredths=value * 100 + 50, end=end + 3)
    return _Count(hundredths=value * 100, end=end)


def _read_fraction(words: Words, index: int) -> _Count | None:
    """Read "half an", "a half", "a quarter of an", "three quarters of an"."""
    start, times = index, 1
    if words.at(index) in ("a", "an"):
        start = index + 1
    elif words.at(index) == "three" and words.joined(index + 1) == "quarters":
        start, times = index + 1, 3
    size = _HALVES.get(words.at(start).removesuffix("s"))
    if size is None:
        return None
    end = start + 1
    if words.joined(end) == "of":
        end += 1
    if words.joined(end) in ("a", "an"):
        end += 1
    return _Count(hundredths=size * times, end=end)


def _delay(hundredths: int, unit: tuple[str, int], *, note: str | None) -> Delay | None:
    """Turn a count of units into a delay; None for a part of a week, month or year."""
    kind, factor = unit
    if kind in (MONTH, DAY) and hundredths % 100 and (kind == MONTH or factor > 1):
        return None
    if kind == MONTH:
        return Delay(months=factor * hundredths // 100, note=note)
    if kind == DAY and not hundredths % 100:
        return Delay(days=factor * hundredths // 100, note=note)
    return Delay(seconds=_SECONDS[kind] * hundredths * factor // 100, note=note)
