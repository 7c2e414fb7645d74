"""Reading days: "tomorrow", "next friday", "5 December", "the 15th", "24/12"."""

import re
from dataclasses import replace
from datetime import date
from typing import Final

from gateway.domain.when.amounts import read_number
from gateway.domain.when.clocks import read_clock, read_zone_after
from gateway.domain.when.pieces import (
    CalendarDate,
    Clock,
    DayOfMonth,
    Fault,
    Match,
    MonthEnd,
    Part,
    PartOfDay,
    Piece,
    RelativeDay,
    UnclearReason,
    Weekday,
    Which,
    fault,
)
from gateway.domain.when.tokens import Words
from gateway.domain.when.words import (
    CONNECTORS,
    DETERMINERS,
    FEAST_PREFIXES,
    FIXED_FEASTS,
    MONTH_NAMES,
    MONTHS,
    ORDINAL_NOUNS,
    ORDINALS,
    PARTS,
    SHY_WEEKDAY_AFTER,
    SHY_WEEKDAY_BEFORE,
    SHY_WEEKDAYS,
    TENS,
    TODAY_SHIFTS,
    TONIGHT,
    UNITS,
    WEEKDAYS,
)

_ISO: Final = re.compile(r"([0-9]{4})[-./]([0-9]{1,2})[-./]([0-9]{1,2})(?:t(.+))?")
_DOTTED: Final = re.compile(r"([0-9]{1,2})[.]([0-9]{1,2})[.]([0-9]{4})")
_SLASHED: Final = re.compile(r"([0-9]{1,2})/([0-9]{1,2})(?:/([0-9]{4}))?")
_DAY_AND_MONTH: Final = re.compile(r"([0-9]{1,2})[.]([0-9]{1,2})")
_NTH: Final = re.compile(r"([0-9]{1,2})(?:st|nd|rd|th)")
_YEAR: Final = re.compile(r"[0-9]{4}")
_LEAP_YEAR: Final = 2000
_PREPOSITIONS: Final = frozenset({"on", "for"})
_FEAST_WORDS: Final = {"xmas": "christmas", "years": "year's", "year": "year's"}


def read_day(words: Words, index: int) -> Match | None:
    """Read a day at `index`, with "on" or "for" before it."""
    start = index
    if words.at(index) in _PREPOSITIONS and not words.is_parted(index + 1):
        start = index + 1
    feast = _read_feast(words, index)
    if feast is not None:
        return feast
    found = (
        _read_relative(words, start)
        or _read_weekday(words, start)
        or _read_date(words, start)
        or _read_month_end(words, start + (words.at(start) == "at"))
        or _read_day_of_month(words, start, has_on=start > index)
    )
    if found is None or words.joined(found.end) not in ("week", "fortnight"):
        return found
    # "tomorrow week" is a week after tomorrow, in some places.
    end = found.end + 1
    return Match(pieces=(_which_day(words.said(start, end)),), end=end)


def read_dated(words: Words, index: int) -> Match | None:
    """Read a date with digits at `index`: ISO (also with its time), 24.12.2026, 24.12., 24/12."""
    start = index
    if words.at(index) in _PREPOSITIONS | {"at", "@"} and not words.is_parted(index + 1):
        start = index + 1
    iso = _ISO.fullmatch(words.at(start))
    if iso is not None:
        return _read_iso(words, start, iso)
    said = words.said(start, start + 1)
    dotted = _DOTTED.fullmatch(words.at(start))
    if dotted is not None:
        day, month, year = (int(text) for text in dotted.groups())
        return Match(pieces=(_day_first(day, month, year, said=said),), end=start + 1)
    if words.at(index) not in ("at", "@"):
        # "book for 24.12." says what the text is for.
        has_on = start > index and (words.at(index) == "on" or words.is_parted(index))
        short = _read_day_and_month(words, start, has_on=has_on)
        if short is not None:
            return short
    slashed = _SLASHED.fullmatch(words.at(start))
    if slashed is not None and slashed.group() != "24/7":
        return Match(pieces=(_slashed(slashed, said=said),), end=start + 1)
    return None


def _read_day_and_month(words: Words, index: int, *, has_on: bool) -> Match | None:
    """Read "24.12." with its second dot, where it cannot be a price: after "on" or a mark.

    A weekday before it will do too: it checks the date.
    """
    found = _DAY_AND_MONTH.fullmatch(words.at(index))
    if found is None or not words.tokens[index].gap.startswith("."):
        return None
    day, month = int(found[1]), int(found[2])
    is_day = 1 <= day <= 31 and 1 <= month <= 12
    if not is_day or not (has_on or words.is_parted(index) or words.at(index - 1) in WEEKDAYS):
        return None
    piece = _day_first(day, month, None, said=f"{found.group()}.")
    return Match(pieces=(piece,), end=index + 1)


def _day_first(day: int, month: int, year: int | None, *, said: str) -> CalendarDate | Fault:
    """A date with dots, which has the day in front; said where another order is a day too."""
    piece = _calendar(day, month, year, said=said)
    if isinstance(piece, Fault) or (year is not None and (day > 12 or day == month)):
        return piece
    return replace(piece, note=f"I read {said} as {day} {MONTH_NAMES[month - 1]}")


def _read_feast(words: Words, index: int) -> Match | None:
    """Read "on christmas eve", "new year's day" where the words around show that it is the day."""
    has_on = words.at(index) in _PREPOSITIONS | {"at"} and not words.is_parted(index + 1)
    start = index + 1 if has_on else index
    if not words.is_parted(index) and (not has_on or words.at(index) == "for"):
        return None
    found = _read_feast_name(words, start)
    if found is None:
        return None
    feast, end = found
    is_whole = words.is_parted(end) or words.at(end) in CONNECTORS | PARTS
    if not (is_whole or read_clock(words, end) is not None):
        return None
    return Match(pieces=(feast,), end=end)


def _read_feast_name(words: Words, start: int) -> tuple[CalendarDate, int] | None:
    for length in (3, 2, 1):
        said = [words.at(start), *(words.joined(start + step) for step in range(1, length))]
        end = start + length
        name = " ".join(_FEAST_WORDS.get(word, word) for word in said)
        if name in FIXED_FEASTS:
            day, month = FIXED_FEASTS[name]
            note = f"I read {words.said(start, end)} as {day} {MONTH_NAMES[month - 1]}"
            return CalendarDate(day=day, month=month, note=note), end
    return None


def read_calendar_day(words: Words, index: int) -> Match | None:
    """Read a day of the year, as after "every": "24 december", "christmas eve"."""
    feast = _read_feast_name(words, index)
    if feast is not None:
        return Match(pieces=(feast[0],), end=feast[1])
    return _read_date(words, index)


def _read_iso(words: Words, index: int, iso: "re.Match[str]") -> Match:
    """Read an ISO date with the clock time behind it, which is then a 24-hour one."""
    said = words.said(index, index + 1)
    calendar = _calendar(int(iso[3]), int(iso[2]), int(iso[1]), said=said)
    if iso[4] is None:
        clock = read_clock(words, index + 1) if ":" in words.joined(index + 1) else None
        if clock is None:
            return Match(pieces=(calendar,), end=index + 1)
        return Match(pieces=(calendar, *_exact(clock.pieces)), end=clock.end)
    clock = read_clock(words.only(index, iso[4]), 0)
    if clock is None or ":" not in iso[4]:
        question = f'I do not understand the time in "{said}". Write it like 2026-12-24T18:00.'
        return Match(pieces=(fault(UnclearReason.NOT_UNDERSTOOD, question),), end=index + 1)
    zone, end = read_zone_after(words, index + 1)
    return Match(pieces=(calendar, *_exact(clock.pieces), *zone), end=end)


def _exact(pieces: tuple[Piece, ...]) -> tuple[Piece, ...]:
    return tuple(
        replace(piece, is_exact=True, is_sure=True) if isinstance(piece, Clock) else piece
        for piece in pieces
    )


def _slashed(found: "re.Match[str]", *, said: str) -> Piece:
    """Take 24/12 only where one reading is a day: 5/12 means two days in two countries."""
    first, second = int(found[1]), int(found[2])
    year = int(found[3]) if found[3] else None
    day_first = _calendar(first, second, year, said=said)
    month_first = _calendar(second, first, year, said=said)
    if isinstance(day_first, Fault):
        return month_first if isinstance(month_first, CalendarDate) else day_first
    if isinstance(month_first, Fault) or first == second:
        return day_first
    question = (
        f'Does "{said}" mean {first} {MONTH_NAMES[second - 1]} or {second} '
        f"{MONTH_NAMES[first - 1]}? Write the month as a word."
    )
    return fault(UnclearReason.AMBIGUOUS, question)


def _calendar(day: int, month: int, year: int | None, *, said: str) -> CalendarDate | Fault:
    """Check and build a date; without a year any year may have it (29 February)."""
    try:
        date(_LEAP_YEAR if year is None else year, month, day)
    except ValueError:
        question = f'There is no day "{said}" in the calendar. Write a date like 5 December.'
        return fault(UnclearReason.IMPOSSIBLE, question)
    return CalendarDate(day=day, month=month, year=year)


def _read_relative(words: Words, index: int) -> Match | None:
    """Read today, tomorrow, the day after tomorrow, tonight, this morning."""
    word = words.at(index)
    if word in TODAY_SHIFTS:
        return Match(pieces=(RelativeDay(days=TODAY_SHIFTS[word]),), end=index + 1)
    if word in TONIGHT:
        pieces = (RelativeDay(days=0), PartOfDay(part=Part.NIGHT))
        return Match(pieces=pieces, end=index + 1)
    following = words.joined(index + 1)
    if word == "this" and following in PARTS - {"night"}:
        return Match(pieces=(RelativeDay(days=0), PartOfDay(part=Part(following))), end=index + 2)
    start = index + 1 if word == "the" else index
    if words.at(start) != "day" or words.joined(start + 1) != "after":
        return None
    is_tomorrow = TODAY_SHIFTS.get(words.joined(start + 2)) == 1
    return Match(pieces=(RelativeDay(days=2),), end=start + 3) if is_tomorrow else None


def _read_weekday(words: Words, index: int) -> Match | None:
    """Read "friday", "this friday", "next friday", "friday next week"."""
    start, which = index, Which.NEAREST
    if words.at(start) in ("this", "coming", "upcoming"):
        which = Which.THIS
        start += 2 if words.joined(start + 1) == "coming" else 1
    elif words.at(start) == "next":
        which = Which.NEXT
        start += 1
        if words.at(start) == "week" and not words.is_parted(start):
            start += 2 if words.joined(start + 1) == "on" else 1
    day = WEEKDAYS.get(words.at(start))
    if day is None or (start > index and words.is_parted(start)):
        return None
    if start == index and is_plain_text(words, index):
        return None
    end = start + 1
    if _goes_on(words, end):
        return Match(pieces=(_which_day(words.said(index, end + 1)),), end=end + 1)
    if _is_described(words, index):
        return Match(pieces=(_which_day(words.said(index, end)),), end=end)
    if which is Which.NEAREST and words.joined(end) == "next" and words.joined(end + 1) == "week":
        which, end = Which.NEXT, end + 2
    return Match(pieces=(Weekday(day=day, which=which),), end=end)


def is_plain_text(words: Words, index: int) -> bool:
    """Whether "sun" or "sat" is the star or the verb here."""
    if words.at(index) not in SHY_WEEKDAYS:
        return False
    before, after = words.at(index - 1), words.joined(index + 1)
    is_inside = not words.is_parted(index) and before not in _PREPOSITIONS
    goes_on = bool(after) and after not in CONNECTORS | PARTS | {"@"} and not after[0].isdigit()
    return before in SHY_WEEKDAY_BEFORE or after in SHY_WEEKDAY_AFTER or (is_inside and goes_on)


def _is_described(words: Words, index: int) -> bool:
    """Whether the word before makes it another day: "good friday", "the friday", "last friday"."""
    before = "" if words.is_parted(index) else words.at(index - 1)
    return before in FEAST_PREFIXES | DETERMINERS | set(ORDINALS) | {"last", "other", "following"}


def _goes_on(words: Words, end: int) -> bool:
    """Whether the words after make it another day: "friday after next"."""
    return words.joined(end) == "after" and words.joined(end + 1) in ("next", "that", "this")


def _which_day(said: str) -> Fault:
    return fault(
        UnclearReason.AMBIGUOUS,
        f'Which day does "{said}" mean? Write the date, like 5 December, or just the weekday. '
        "If it belongs to the text, put the text in quotes.",
    )


def _read_date(words: Words, index: int) -> Match | None:
    """Read "5 december", "the 5th of december 2027", "december 5th", "dec 5, 2027"."""
    start = index + 1 if words.at(index) == "the" else index
    month = MONTHS.get(words.at(start))
    is_dotted = start < len(words) and words.tokens[start].gap.strip() == "."  # "Dec. 24"
    if month is not None and (is_dotted or not words.is_parted(start + 1)):
        day = read_ordinal(words, start + 1) or _read_digits(words, start + 1)
        return None if day is None else _finish(words, index, day[0], month, day[1])
    day = read_ordinal(words, start) or _read_digits(words, start)
    if day is None:
        return None
    end = day[1] + (words.joined(day[1]) == "of")
    month = MONTHS.get(words.joined(end))
    return None if month is None else _finish(words, index, day[0], month, end + 1)


def _finish(words: Words, index: int, day: int, month: int, end: int) -> Match:
    year = None
    if _YEAR.fullmatch(words.at(end)) and int(words.at(end)) >= 1900:
        year, end = int(words.at(end)), end + 1
    return Match(pieces=(_calendar(day, month, year, said=words.said(index, end)),), end=end)


def read_ordinal(words: Words, index: int) -> tuple[int, int] | None:
    """Read "15th", "fifth", "twenty first": the number and where it ends."""
    word, following = words.at(index), ORDINALS.get(words.joined(index + 1), 10)
    if word in TENS and following < 10:
        return TENS[word] + following, index + 2
    found = _NTH.fullmatch(word)
    day = int(found[1]) if found is not None else ORDINALS.get(word)
    return None if day is None else (day, index + 1)


def _read_digits(words: Words, index: int) -> tuple[int, int] | None:
    number = read_number(words, index)
    return number if number is not None and number[0] <= 99 else None


def _read_month_end(words: Words, index: int) -> Match | None:
    """Read "the end of the month", "the last day of this month"."""
    start = index + 1 if words.at(index) == "the" else index
    for phrase in (("end", "of"), ("last", "day", "of")):
        place = start + len(phrase)
        if tuple(words.at(start + step) for step in range(len(phrase))) != phrase:
            continue
        if words.at(place) in ("the", "this") and words.joined(place + 1) == "month":
            return Match(pieces=(MonthEnd(),), end=place + 2)
    return None


def _read_day_of_month(words: Words, index: int, *, has_on: bool) -> Match | None:
    """Read "the 15th", "on the second": a number alone is a day only with "on" or "the"."""
    has_the = words.at(index) == "the"
    start = index + has_the
    found = read_ordinal(words, start)
    if found is None or (has_the and words.is_parted(start)):
        return None
    day, end = found
    is_word = words.at(start) in ORDINALS
    if words.joined(end) in ORDINAL_NOUNS or (is_word and not has_on):
        return None
    said = words.said(index, end)
    if not (words.is_parted(end) or words.at(end) in CONNECTORS or has_on or _starts(words, end)):
        return Match(pieces=(_which_day(said),), end=end)
    if words.joined(end) in WEEKDAYS or words.joined(end) in UNITS or not 1 <= day <= 31:
        return Match(pieces=(_which_day(said),), end=end)
    if words.joined(end) == "of" and words.joined(end + 2) == "month":
        end += 3 if words.at(end + 1) in ("the", "this") else 0
    return Match(pieces=(DayOfMonth(day=day),), end=end)


def _starts(words: Words, index: int) -> bool:
    return read_clock(words, index) is not None
