"""Reading days of each month: "the first monday of the month", "the 1st of every month"."""

from typing import Final

from gateway.domain.when.days import read_ordinal
from gateway.domain.when.lists import read_ordinals, read_weekdays
from gateway.domain.when.pieces import (
    Assumed,
    DayOfMonth,
    Match,
    Months,
    Piece,
    UnclearReason,
    fault,
)
from gateway.domain.when.tokens import Words
from gateway.domain.when.words import CONNECTORS, EVERY, UNITS, WEEKDAY_NAMES

_OF: Final = frozenset({"of", "in"})
_WHICH: Final = EVERY | {"the", "a"}
_LAST: Final = "last"
_WORKING: Final = frozenset({"working", "work", "business"})


def _of_month(words: Words, index: int) -> tuple[int, bool] | None:
    """Read "of the month", "of every month": where it ends, and whether it says that it repeats."""
    if words.joined(index) not in _OF or words.joined(index + 1) not in _WHICH:
        return None
    if words.joined(index + 2) != "month":
        return None
    return index + 3, words.at(index + 1) != "the"


def _each_month() -> Piece:
    return Assumed(note="I took every month; for one time only, say the date")


def read_monthly(words: Words, index: int) -> Match | None:
    """Read a day of each month, where the words say that it is of each: "1st of every month"."""
    start = _after_opening(words, index)
    weekdays = _read_nth_weekdays(words, start)
    if weekdays is not None:
        months, end = weekdays
        of_month = _of_month(words, end)
        return None if of_month is None else _of_each(months, of_month)
    last = _read_last(words, start)
    if last is not None:
        months, end = last
        of_month = _of_month(words, end)
        is_end = words.at(start) == "end"
        if of_month is None or (is_end and not of_month[1]):
            return None
        return _of_each(months, of_month)
    numbers, end = read_ordinals(words, start)
    of_month = _of_month(words, end) if numbers else None
    if of_month is None or not (of_month[1] or len(numbers) > 1):
        return None
    return _of_each(_on_days(numbers), of_month)


def read_month_day(words: Words, index: int) -> Match | None:
    """Read a day of the month inside a series: "every month on the first monday", "on the 15th"."""
    start = _after_opening(words, index)
    if start == index:
        return None
    found = _read_nth_weekdays(words, start) or _read_last(words, start)
    if found is None:
        numbers, end = read_ordinals(words, start)
        if not numbers or words.joined(end) in UNITS:
            return None
        found = (_on_days(numbers), end)
        if len(numbers) == 1 and isinstance(found[0], Months):
            found = (DayOfMonth(day=numbers[0]), end)
    piece, end = found
    following = words.at(end)
    is_closed = words.is_parted(end) or following in (CONNECTORS | {"@"}) - {"of"}
    if not (is_closed or following[:1].isdigit()):
        return None
    return Match(pieces=(piece,), end=end)


def each_ordinal(words: Words, index: int) -> Match | None:
    """Read, after "every", "first monday", "3rd friday of the month", "15th", "1st and 15th"."""
    weekdays = _read_nth_weekdays(words, index)
    if weekdays is not None:
        return _each_nth_weekday(words, index, weekdays)
    numbers, end = read_ordinals(words, index)
    is_day = words.joined(end) == "day"
    of_month = _of_month(words, end + is_day)
    if of_month is not None:
        return Match(pieces=(_on_days(numbers),), end=of_month[0])
    is_closed = words.is_parted(end) or words.at(end) in CONNECTORS | {"@"}
    # "every second" is a unit, and "every 2nd" half a sentence.
    is_date = len(numbers) > 1 or (words.at(index)[:1].isdigit() and numbers[0] > 4)
    if not is_closed or not is_date:
        return None
    said = words.said(index, end)
    return Match(
        pieces=(_on_days(numbers), Assumed(note=f"I read {said} as of each month")), end=end
    )


def _each_nth_weekday(words: Words, index: int, found: tuple[Piece, int]) -> Match | None:
    piece, end = found
    of_month = _of_month(words, end)
    if of_month is not None:
        return Match(pieces=(piece,), end=of_month[0])
    ordinal = read_ordinal(words, index)
    count = 0 if ordinal is None else ordinal[0]
    if count == 2:
        return None  # every 2 weeks
    said = words.said(index, end)
    if count == 1:
        return Match(pieces=(piece, Assumed(note=f"I read {said} as of each month")), end=end)
    question = (
        f'Does "{said}" mean of each month, or every {count} weeks? Write "every {said} of the '
        f'month", or "every {count} weeks on" the day.'
    )
    return Match(pieces=(fault(UnclearReason.AMBIGUOUS, question),), end=end)


def each_last(words: Words, index: int) -> Match | None:
    """Read, after "every", "last friday of the month", "last day"."""
    found = _read_last(words, index)
    if found is None or words.at(index) != _LAST:
        return None
    piece, end = found
    of_month = _of_month(words, end)
    return Match(pieces=(piece,), end=end if of_month is None else of_month[0])


def _of_each(piece: Piece, of_month: tuple[int, bool]) -> Match:
    end, is_each = of_month
    return Match(pieces=(piece,) if is_each else (piece, _each_month()), end=end)


def _after_opening(words: Words, index: int) -> int:
    start = index + 1 if words.at(index) in ("on", "at", "by") else index
    if words.at(start) == "the" and (start == index or not words.is_parted(start)):
        start += 1
    return index if start > index and words.is_parted(start) else start


def _read_nth_weekdays(words: Words, index: int) -> tuple[Piece, int] | None:
    """Read "first monday", "1st and 3rd tuesday", "last friday" as days of a month."""
    if words.at(index) == _LAST:
        numbers, end = [0], index + 1
    else:
        numbers, end = read_ordinals(words, index)
    days = read_weekdays(words, end) if numbers and not words.is_parted(end) else None
    if days is None or len(days[0]) > 2 or (len(days[0]) > 1 and len(numbers) > 1):
        return None
    if any(number > 5 for number in numbers):
        return None
    names = [WEEKDAY_NAMES[day][:3].lower() for day in sorted(days[0])]
    spots = [
        f"{_CRON_DAYS[name]}L" if number == 0 else f"{name}#{number}"
        for number in numbers
        for name in names
    ]
    return Months(weekdays=",".join(spots)), days[1]


_CRON_DAYS: Final = {
    name[:3].lower(): (number + 1) % 7 for number, name in enumerate(WEEKDAY_NAMES)
}


def _read_last(words: Words, index: int) -> tuple[Piece, int] | None:
    """Read "last day", "last working day", "end", "last friday"."""
    word, following = words.at(index), words.joined(index + 1)
    if word == "end":
        return Months(days="L"), index + 1
    if word != _LAST:
        return None
    if following == "day":
        return Months(days="L"), index + 2
    if following in ("weekday", "workday"):
        return Months(days="LW"), index + 2
    if following in _WORKING and words.joined(index + 2) == "day":
        return Months(days="LW"), index + 3
    return _read_nth_weekdays(words, index)


def _on_days(numbers: list[int]) -> Piece:
    if any(not 1 <= number <= 31 for number in numbers):
        question = "A month has no such day. Write a day from 1st to 31st."
        return fault(UnclearReason.IMPOSSIBLE, question)
    return Months(days=",".join(str(number) for number in sorted(set(numbers))))
