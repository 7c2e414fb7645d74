"""Reading times of day: "17:30", "5 p.m.", "half past five", "noon"."""

import re
from datetime import UTC, timedelta, timezone, tzinfo
from typing import Final
from zoneinfo import ZoneInfo

from gateway.domain.when.amounts import read_number
from gateway.domain.when.pieces import Clock, Fault, Match, Piece, UnclearReason, Zone, fault
from gateway.domain.when.tokens import Words
from gateway.domain.when.words import (
    CLOCK_PREPOSITIONS,
    CLOCK_WORDS,
    CONNECTORS,
    MERIDIEM,
    NUMBERED_NOUNS,
    NUMBERS,
    PARTS,
    ROUGHLY,
    UTC_NAMES,
    ZONE_ABBREVIATIONS,
    ZONE_REGIONS,
)

_COLON: Final = re.compile(
    r"([0-9]{1,2})[:h]([0-9]{2})(?::([0-9]{2})(?:[.]([0-9]{1,6}))?)?(am|pm|a[.]m|p[.]m)?"
    r"(z|[+-][0-9]{2}:?[0-9]{2})?"
)
_DOTTED: Final = re.compile(r"([0-9]{1,2})[.]([0-9]{2})(am|pm)?")
_HOUR: Final = re.compile(r"([0-9]{1,2})(am|pm|a[.]m|p[.]m|h)")
_MILITARY: Final = re.compile(r"([0-9]{2})([0-9]{2})")
_OFFSET: Final = re.compile(r"(?:utc|gmt)?([+-])([0-9]{1,2})(?::?([0-9]{2}))?")
_AMERICAN_ZONES: Final = frozenset({"eastern", "central", "pacific"})
_HOUR_WORDS: Final = frozenset({"hours", "hrs", "hr"})
_MINUTE_WORDS: Final = frozenset({"five", "ten", "twenty", "twenty-five"})
_LONGEST_OFFSET_MINUTES: Final = 14 * 60


def no_such_time(said: str) -> Fault:
    """There is no such hour or minute."""
    return fault(
        UnclearReason.IMPOSSIBLE,
        f'"{said}" is not a time of day that I know. Write it like 17:30 or 5:30pm.',
    )


def _end_of_day(said: str) -> Fault:
    return fault(
        UnclearReason.IMPOSSIBLE,
        f'"{said}" is the end of a day, which I do not take. Write 23:59, or 00:00 with the day '
        "that begins then.",
    )


def _clock(hour: int, minute: int, *, meridiem: str, said: str, is_sure: bool) -> Clock | Fault:
    """Check and build a clock time; `meridiem` is "am", "pm", "24" or ""."""
    if (hour, minute) == (24, 0):
        return _end_of_day(said)
    if minute > 59 or hour > 23 or (meridiem in ("am", "pm") and not 1 <= hour <= 12):
        return no_such_time(said)
    if meridiem in ("am", "pm"):
        hour = hour % 12 + (12 if meridiem == "pm" else 0)
    is_exact = bool(meridiem) or not 1 <= hour <= 12
    return Clock(hour=hour, minute=minute, is_exact=is_exact, is_sure=is_sure, said=said)


def read_clock(words: Words, index: int) -> Match | None:
    """Read a time of day at `index`, with the preposition before it and the zone after it."""
    start = index
    has_at = words.at(start) in CLOCK_PREPOSITIONS
    start += has_at or (words.at(start) == "for" and words.is_parted(start))
    # "about 5pm" alone may be what it is about; "at about 5pm" is not.
    is_rough = words.at(start) in ROUGHLY and (has_at or words.at(start) != "about")
    if is_rough and not words.is_parted(start + 1):
        start += 1
    if start > index and words.is_parted(start):
        return None
    found = _read_written(words, start, has_at=has_at) or _read_spoken(words, start, has_at=has_at)
    if found is None and has_at:
        found = _read_bare(words, start)
    if found is None and index < start and words.at(index) == "for":
        found = _read_bare(words, start) if _ends_or_connects(words, start + 1) else None
    if found is None:
        return None
    clock, *others = found.pieces
    if isinstance(clock, Fault) or others:
        return found
    place = words.after_filler(found.end)
    is_marked = isinstance(clock, Clock) and clock.said.endswith(("m", "M", "."))
    if isinstance(clock, Clock) and not is_marked and words.joined(place) in _HOUR_WORDS:
        if not clock.is_exact:  # "at 5 hours"
            return Match(pieces=(no_such_time(words.said(index, place + 1)),), end=place + 1)
        place += 1
    zone, end = read_zone_after(words, place)
    return Match(pieces=(clock, *zone), end=end)


def _read_written(words: Words, index: int, *, has_at: bool) -> Match | None:
    """Read a form with digits that only a clock has: 17:30, 5pm, 17h30."""
    found = _COLON.fullmatch(words.at(index))
    if found is not None:
        return _read_colon(words, index, found, has_at=has_at)
    found = _HOUR.fullmatch(words.at(index))
    if found is not None:
        hour, mark = int(found[1]), found[2].replace(".", "")
        meridiem = "24" if mark == "h" else mark
        said = words.said(index, index + 1)
        if mark == "h" and not has_at:
            return None
        clock = _clock(hour, 0, meridiem=meridiem, said=said, is_sure=has_at)
        return Match(pieces=(clock,), end=index + 1)
    return _read_dotted(words, index, has_at=has_at)


def _read_colon(words: Words, index: int, found: "re.Match[str]", *, has_at: bool) -> Match | None:
    hour, minute, second, fraction, mark, offset = found.groups()
    meridiem, end = (MERIDIEM[mark], index + 1) if mark else _read_meridiem(words, index + 1)
    # 09:30, 17:30 and anything with seconds or an offset come from a 24-hour clock.
    if not meridiem and (hour.startswith("0") or second or offset or "h" in words.at(index)):
        meridiem = "24"
    said = words.said(index, end)
    if int(second or 0) > 59:
        return Match(pieces=(no_such_time(said),), end=end)
    clock = _clock(int(hour), int(minute), meridiem=meridiem, said=said, is_sure=has_at)
    if isinstance(clock, Clock):
        clock = Clock(
            hour=clock.hour,
            minute=clock.minute,
            second=int(second or 0),
            microsecond=int((fraction or "").ljust(6, "0")),
            is_exact=clock.is_exact,
            is_sure=has_at,
            said=said,
        )
    pieces: tuple[Piece, ...] = (clock, _zone_of_offset(offset, said)) if offset else (clock,)
    return Match(pieces=pieces, end=end)


def _read_dotted(words: Words, index: int, *, has_at: bool) -> Match | None:
    """Read 17.30: a clock at the front, after "at" or before am or pm; else it may be a price."""
    found = _DOTTED.fullmatch(words.at(index))
    if found is None:
        return None
    meridiem, end = (found[3], index + 1) if found[3] else _read_meridiem(words, index + 1)
    is_first = index == 0 and _ends_or_connects(words, end)
    if is_first and not (has_at or meridiem) and 1 <= int(found[2]) <= 12:
        return None  # 9.10 may be a day as well
    if not (has_at or meridiem or is_first):
        return None
    meridiem = meridiem or ("24" if found[1].startswith("0") else "")
    said = words.said(index, end)
    clock = _clock(int(found[1]), int(found[2]), meridiem=meridiem, said=said, is_sure=has_at)
    return Match(pieces=(clock,), end=end)


def _read_spoken(words: Words, index: int, *, has_at: bool) -> Match | None:
    """Read a form with words: noon, half past five, five o'clock, 5 pm, five thirty pm."""
    return (
        _read_named(words, index, has_at=has_at)
        or _read_past_or_to(words, index, has_at=has_at)
        or _read_marked(words, index, has_at=has_at)
        or _read_hour_and_minutes(words, index, has_at=has_at)
    )


def _read_named(words: Words, index: int, *, has_at: bool) -> Match | None:
    start = index + 1 if words.at(index) in ("12", "twelve") else index
    if start > index and words.is_parted(start):
        return None
    known = CLOCK_WORDS.get(words.at(start))
    if known is None:
        return None
    said = words.said(index, start + 1)
    is_midnight = words.at(start) == "midnight"
    hour, minute = known
    clock = Clock(hour=hour, minute=minute, is_sure=has_at, is_midnight=is_midnight, said=said)
    return Match(pieces=(clock,), end=start + 1)


def _read_past_or_to(words: Words, index: int, *, has_at: bool) -> Match | None:
    """Read "half past five", "a quarter to 6", "ten past 5", "20 minutes to six"."""
    start = index + 1 if words.at(index) == "a" else index
    minutes: int | None
    if words.at(start) in ("half", "quarter"):
        minutes, end = (30 if words.at(start) == "half" else 15), start + 1
        is_word = True
    else:
        number = read_number(words, start)
        if number is None:
            return None
        minutes, end = number
        is_word = words.at(start) in _MINUTE_WORDS or words.joined(end) in ("minutes", "min")
        end += words.joined(end) in ("minutes", "min")
    side = words.joined(end)
    hour = read_number(words, end + 1) if words.joined(end + 1) else None
    if words.at(start) == "half" and side != "past":
        return _half_hour(words, index, end, has_at=has_at)
    if hour is None or side not in ("past", "to") or not 1 <= hour[0] <= 12 or minutes > 59:
        return None
    said = words.said(index, hour[1])
    if side == "to" and not is_word:
        return Match(pieces=(_minutes_or_span(said),), end=hour[1])
    return _finish(words, index, hour, minutes if side == "past" else -minutes, has_at=has_at)


def _half_hour(words: Words, index: int, end: int, *, has_at: bool) -> Match | None:
    """Refuse "half five": half past five in London, half past four in Berlin."""
    hour = read_number(words, end)
    if hour is None or words.is_parted(end) or not has_at or not 1 <= hour[0] <= 12:
        return None
    question = (
        f'Does "{words.said(index, hour[1])}" mean {(hour[0] - 2) % 12 + 1}:30 or {hour[0]}:30? '
        "Write the time like 17:30 or 5:30pm."
    )
    return Match(pieces=(fault(UnclearReason.AMBIGUOUS, question),), end=hour[1])


def _minutes_or_span(said: str) -> Fault:
    return fault(
        UnclearReason.AMBIGUOUS,
        f'I am not sure what "{said}" means. Write the time like 16:50 or 4:50pm.',
    )


def _finish(
    words: Words, index: int, hour: tuple[int, int], minutes: int, *, has_at: bool
) -> Match:
    value, end = hour
    meridiem, end = _read_meridiem(words, end)
    said = words.said(index, end)
    if minutes < 0:
        minutes += 60
        # "quarter to one pm" is 12:45 pm; "quarter to twelve pm" is 11:45 in the morning.
        if value == 12 and meridiem:
            meridiem = "am" if meridiem == "pm" else "pm"
        value = 12 if value == 1 else value - 1
    clock = _clock(value, minutes, meridiem=meridiem, said=said, is_sure=has_at)
    return Match(pieces=(clock,), end=end)


def _read_marked(words: Words, index: int, *, has_at: bool) -> Match | None:
    """Read an hour with "o'clock", "am" or "pm" after it."""
    number = read_number(words, index)
    if number is None:
        return None
    hour, end = number
    is_oclock = words.joined(end) in ("o'clock", "oclock")
    if not is_oclock and words.joined(end) == "o" and words.joined(end + 1) == "clock":
        is_oclock, end = True, end + 1
    end += is_oclock
    meridiem, end = _read_meridiem(words, end)
    if not (is_oclock or meridiem or (1 <= hour <= 12 and _is_before_part(words, end))):
        return None
    clock = _clock(hour, 0, meridiem=meridiem, said=words.said(index, end), is_sure=has_at)
    return Match(pieces=(clock,), end=end)


def _read_meridiem(words: Words, index: int) -> tuple[str, int]:
    """Read "pm", "p.m." or "p m" at `index`, if it is there."""
    word = words.joined(index)
    if word in ("a", "p") and words.joined(index + 1) == "m":
        return f"{word}m", index + 2
    meridiem = MERIDIEM.get(word, "")
    return meridiem, index + bool(meridiem)


def _is_before_part(words: Words, index: int) -> bool:
    """Whether "in the evening" or "at night" follows, which only an hour has behind it."""
    first, second, third = (words.joined(index + step) for step in range(3))
    return (first, second) == ("at", "night") or (
        first == "in" and second == "the" and third in PARTS
    )


def _read_hour_and_minutes(words: Words, index: int, *, has_at: bool) -> Match | None:
    """Read "five thirty", "nine fifteen pm": only after "at" or before am or pm."""
    hour = NUMBERS.get(words.at(index), 0)
    minutes = read_number(words, index + 1) if words.joined(index + 1).isalpha() else None
    if minutes is None or not 1 <= hour <= 12 or not 10 <= minutes[0] <= 59:
        return None
    meridiem, end = _read_meridiem(words, minutes[1])
    if not (has_at or meridiem):
        return None
    said = words.said(index, end)
    clock = _clock(hour, minutes[0], meridiem=meridiem, said=said, is_sure=has_at)
    return Match(pieces=(clock,), end=end)


def _read_bare(words: Words, index: int) -> Match | None:
    """Read the number after "at": an hour, or 1730. More than a clock shows is no hour."""
    military = _MILITARY.fullmatch(words.at(index))
    said = words.said(index, index + 1)
    if military is not None:
        hour, minute = int(military[1]), int(military[2])
        clock = _clock(hour, minute, meridiem="24", said=said, is_sure=False)
        return Match(pieces=(clock,), end=index + 1)
    number = read_number(words, index)
    if number is None or number[0] > 99:
        return None
    said = words.said(index, number[1])
    if 1 <= number[0] <= 23:
        clock = _clock(number[0], 0, meridiem="", said=said, is_sure=False)
        return Match(pieces=(clock,), end=number[1])
    # "at 45 degrees" is text; "at 45" was meant as a time, and "at 0" as some midnight.
    if _ends_or_connects(words, number[1]):
        return Match(pieces=(no_such_time(said),), end=number[1])
    return None


def _ends_or_connects(words: Words, index: int) -> bool:
    return words.is_parted(index) or words.at(index) in CONNECTORS


def read_bare_hour(words: Words, index: int) -> Match | None:
    """Read a lone number that directly follows a day, as in "tomorrow 9" or "tomorrow 17.30"."""
    dotted = None if words.is_parted(index) else _read_dotted(words, index, has_at=True)
    if dotted is not None and _ends_or_connects(words, dotted.end):
        return dotted
    number = read_number(words, index)
    if number is None or words.is_parted(index) or not _ends_or_connects(words, number[1]):
        return None
    if words.at(index - 1) in NUMBERED_NOUNS or not 1 <= number[0] <= 23:
        return None
    said = words.said(index, number[1])
    clock = _clock(number[0], 0, meridiem="", said=said, is_sure=True)
    return Match(pieces=(clock,), end=number[1])


def _zone_of_offset(text: str, said: str) -> Piece:
    if text == "z":
        return Zone(zone=UTC)
    found = _OFFSET.fullmatch(text)
    minutes = int(found[2]) * 60 + int(found[3] or 0) if found is not None else 9999
    if found is None or minutes > _LONGEST_OFFSET_MINUTES or int(found[3] or 0) > 59:
        return no_such_time(said)
    return Zone(zone=timezone(timedelta(minutes=-minutes if found[1] == "-" else minutes)))


def _unknown_zone(said: str) -> Fault:
    return fault(
        UnclearReason.NOT_UNDERSTOOD,
        f'I do not know the time zone "{said}". Leave it out for your own zone, or write it like '
        "Europe/Berlin or UTC.",
    )


def read_zone_after(words: Words, index: int) -> tuple[tuple[Piece, ...], int]:
    """Read a zone right after a clock time: utc, UTC+2, PST, Europe/Berlin, "london time"."""
    word = words.joined(index)
    if word in UTC_NAMES or word == "z":
        return (Zone(zone=UTC),), index + 1
    if _OFFSET.fullmatch(word):
        return (_zone_of_offset(word.removeprefix("utc").removeprefix("gmt"), word),), index + 1
    if word in ZONE_ABBREVIATIONS:
        return (_unknown_zone(words.said(index, index + 1)),), index + 1
    if words.joined(index + 1) == "time" and word in ("local", "my"):
        return (), index + 2
    if words.joined(index + 1) == "time" and word not in CONNECTORS:
        return (_unknown_zone(words.said(index, index + 2)),), index + 2
    said = words.said(index, index + 1)
    is_city = said[:1].isupper() and words.joined(index + 1) and words.joined(index + 2) == "time"
    if word and (word in _AMERICAN_ZONES or is_city):
        end = index + (3 if is_city else 1)
        return (_unknown_zone(words.said(index, end)),), end
    return (), index


def read_zone(words: Words, index: int) -> Match | None:
    """Read a zone that stands on its own: an IANA name, UTC, or a capital abbreviation."""
    word = words.at(index)
    region, slash, _ = word.partition("/")
    said = words.said(index, index + 1)
    if slash and region in ZONE_REGIONS:
        return Match(pieces=(_named_zone(said),), end=index + 1)
    if word in UTC_NAMES:
        return Match(pieces=(Zone(zone=UTC),), end=index + 1)
    if word in ZONE_ABBREVIATIONS and said.isupper() and len(said) > 2:
        return Match(pieces=(_unknown_zone(said),), end=index + 1)
    return None


def _named_zone(name: str) -> Piece:
    zone: tzinfo
    try:
        zone = ZoneInfo(name)
    except (ValueError, OSError, KeyError):
        # ZoneInfoNotFoundError is a KeyError; a directory's name gives an OSError.
        return _unknown_zone(name)
    return Zone(zone=zone)
