"""Words that look like time and that no rule turned into a moment: each makes the parser ask."""

import re
from typing import Final

from gateway.domain.when.amounts import read_amount, read_number
from gateway.domain.when.clocks import read_clock
from gateway.domain.when.days import is_plain_text
from gateway.domain.when.pieces import Fault, Match, UnclearReason, fault
from gateway.domain.when.tokens import Words, resembled
from gateway.domain.when.words import (
    CLOCK_WORDS,
    CONNECTORS,
    DAY_GROUPS,
    DETERMINERS,
    HOLIDAYS,
    LETTER_UNITS,
    MONTHS,
    NUMBERS,
    OTHER_TIME_WORDS,
    PARTS,
    SEASONS,
    SHY_MONTHS,
    SHY_WEEKDAYS,
    TODAY_SHIFTS,
    TONIGHT,
    UNITS,
    VAGUE_DELAYS,
    WEEKDAYS,
)

_LOOKS_LIKE_CLOCK: Final = re.compile(
    r".*[0-9](?::|/[0-9]|-[0-9]{1,2}(?![0-9])|h[0-9]|(?:am|pm)(?![a-z])).*|[0-9]{4}-[0-9]{2}.*|"
    r"[0-9]{1,2}[.][0-9]{1,2}[.](?:[0-9]{2}){1,2}|"
    r"20[0-9]{2}(?:0[1-9]|1[0-2])(?:0[1-9]|[12][0-9]|3[01])"
)
_DAY_AND_MONTH: Final = re.compile(r"([0-9]{1,2})[.]([0-9]{1,2})")
_PARTING: Final = re.compile(r"[-/–&+|]")
_JOINED_DATE: Final = re.compile(
    r"[0-9]{1,2}(?:jan|feb|mar|apr|may|jun|jul|aug|sept?|oct|nov|dec)(?:20[0-9]{2})?"
)
_NEGATIVE: Final = re.compile(r"[-−][0-9]{1,6}[a-z]{0,7}")
DAYS_TOLD: Final = frozenset({"day", "week", "month", *WEEKDAYS, *DAY_GROUPS})
_DAY: Final = re.compile("[1-9]|[12][0-9]|3[01]")
_SOME_OF: Final = frozenset({"odd", "even", "most", "some", "no", "any", "certain", "random"})
_INITIALS: Final = re.compile(r"m-f|m-th|m/w/f|mwf|t/th|tth")
_NTH: Final = re.compile(r"[0-9]+(?:st|nd|rd|th)")


def vague(said: str) -> Fault:
    """The words speak of time without naming a moment."""
    return fault(
        UnclearReason.VAGUE,
        f'"{said}" does not tell me the exact moment. Say a day and a time, like tomorrow at 9:00. '
        "If it belongs to the text, put the text in quotes.",
    )


def left_over(said: str) -> Fault:
    """The words look like a time beside, or instead of, the one that was understood."""
    return fault(
        UnclearReason.LEFT_OVER,
        f'I am not sure what "{said}" says about the time. Say one day and one time, like tomorrow '
        "at 9:00 or in 20 minutes. If it belongs to the text, put the text in quotes.",
    )


def read_suspect(words: Words, index: int) -> Match | None:
    """Recognise a word or phrase at `index` that looks like time."""
    gone = _read_gone(words, index)
    if gone is not None:
        return gone
    for reader in _READERS:
        end = reader(words, index)
        if end is not None:
            question = vague if reader is _read_span else left_over
            return Match(pieces=(question(words.said(index, end)),), end=end)
    return read_misspelt(words, index) or _read_word(words, index)


def _read_gone(words: Words, index: int) -> Match | None:
    """Recognise "yesterday", with the time behind it, and "in -5 minutes"."""
    end = index + 1
    if words.at(index) == "yesterday":
        clock = None if words.is_parted(end) else read_clock(words, end)
        end = end + (words.joined(end) in PARTS) if clock is None else clock.end
    elif words.at(index) == "in" and _NEGATIVE.fullmatch(words.joined(end)):
        amount = words.joined(end + 1)
        if amount not in UNITS and amount not in LETTER_UNITS and words.joined(end)[-1].isdigit():
            return None
        end += 2 if words.joined(end)[-1].isdigit() else 1
    else:
        return None
    question = left_over(words.said(index, end)).unclear.question
    return Match(pieces=(fault(UnclearReason.PAST, question),), end=end)


def _read_passed(words: Words, index: int) -> int | None:
    """ "last week", "last night"."""
    following = words.joined(index + 1)
    is_time = following in UNITS or following in WEEKDAYS or following in PARTS
    return index + 2 if words.at(index) == "last" and is_time else None


def _read_span(words: Words, index: int) -> int | None:
    """ "next week", "this month", "next december", "in december", "end of the week"."""
    word, following = words.at(index), words.joined(index + 1)
    is_span = any(following in table for table in (UNITS, MONTHS, PARTS, SEASONS))
    if word in ("next", "this", "coming", "following") and (
        is_span or following in ("weekend", "year")
    ):
        return index + 2
    if word in ("in", "of", "since", "by", "until", "during"):
        end = index + 2 if following == "the" else index + 1
        is_season = words.joined(end) in SEASONS
        return end + 1 if is_season or following in MONTHS else _read_while(words, index)
    if (word in UNITS or word == "weekend") and following in ("after", "before"):
        return index + 2
    if word in ("end", "start", "beginning", "middle") and following == "of":
        place = index + 3 if words.joined(index + 2) in ("the", "this", "next") else index + 2
        place += words.joined(place) == "next"
        return place + 1 if words.joined(place) in UNITS or words.at(place) in MONTHS else None
    return None


def _read_choice(words: Words, index: int) -> int | None:
    """ "odd mondays", "any monday", "next 3 mondays", "workday", "at least at 8"."""
    word, following = words.at(index), words.joined(index + 1)
    if word in _SOME_OF and (_is_days(following) or (word == "any" and following in WEEKDAYS)):
        return index + 2
    is_number = following.isdigit() or following in NUMBERS
    if word in ("next", "last") and is_number and _is_days(words.joined(index + 2)):
        return index + 3
    if word in ("business", "working") and following in ("day", "days"):
        return index + 2
    if word in ("workday", "workdays"):
        return index + 1
    is_limit = word == "at" and following in ("least", "most")
    return index + 2 if is_limit and read_clock(words, index + 2) else None


def _is_days(word: str) -> bool:
    return word.endswith("s") and word[:-1] in DAYS_TOLD


def _read_group(words: Words, index: int) -> int | None:
    """ "all days", "odd mondays", "m-f", "on the hour", "on the 22": what was not read."""
    word, following = words.at(index), words.joined(index + 1)
    if word in ("all", "alternate"):
        is_day = following.removesuffix("s") in DAYS_TOLD and (
            word == "alternate" or following.endswith("s")
        )
        return index + 2 if is_day else None
    if _INITIALS.fullmatch(word):
        return index + 1
    if (word, following) == ("on", "the") and _DAY.fullmatch(words.joined(index + 2)):
        place = index + 3  # "on the 22 at 3pm"
        is_closed = words.is_parted(place) or words.at(place) in CONNECTORS
        return place if is_closed or read_clock(words, place) else None
    end = index + 2 + (word == "top")
    is_mark = (word, following) in (("on", "the"), ("top", "of"))
    return end + 1 if is_mark and words.joined(end) == "hour" else None


def _read_while(words: Words, index: int) -> int | None:
    """ "in a bit", "in a while"."""
    phrase = (words.at(index), words.joined(index + 1))
    is_while = phrase in (("in", "a"), ("in", "the")) and words.joined(index + 2) in VAGUE_DELAYS
    return index + 3 if is_while else None


def _read_feast(words: Words, index: int) -> int | None:
    """ "on labor day", "mother's day", "on school days"."""
    if words.at(index).endswith("'s") and words.joined(index + 1) == "day":
        return index + 2
    if words.at(index) != "on":
        return None
    for place in range(index + 1, index + 4):
        word = words.joined(place)
        if not word or word in CONNECTORS - DETERMINERS:
            break
        if word in ("day", "days", "birthday", "anniversary"):
            return place + 1
    return None


def _read_dotted_day(words: Words, index: int) -> int | None:
    """ "5.12." with a dot behind it, where days.py does not take it: a day, or a price."""
    found = _DAY_AND_MONTH.fullmatch(words.at(index))
    if found is None or not words.tokens[index].gap.startswith("."):
        return None
    return index + 1 if 1 <= int(found[1]) <= 31 and 1 <= int(found[2]) <= 12 else None


def _read_half_clock(words: Words, index: int) -> int | None:
    """ "half past", "quarter to", "nineish": a clock time without its hour, or nearly one."""
    word, following = words.at(index), words.joined(index + 1)
    if word in ("half", "quarter") and following in ("past", "to"):
        return index + 2
    base = word.removesuffix("ish")
    is_nearly = base != word and (base in NUMBERS or base in CLOCK_WORDS or base in PARTS)
    return index + 1 if is_nearly else None


def _read_delay(words: Words, index: int) -> int | None:
    """ "in fve minutes", "in a few hours", "in 5": a delay that was not read."""
    if words.at(index) not in ("in", "after", "within"):
        return None
    for place in range(index + 1, index + 5):
        word = words.joined(place).removesuffix("'s")
        if not word or word in CONNECTORS - {"a", "an"}:
            break
        if word in UNITS and word not in ("second", "sec") and place > index + 1:
            return place + 1
    number = None if words.is_parted(index + 1) else read_number(words, index + 1)
    if number is not None and (words.is_parted(number[1]) or words.at(number[1]) in CONNECTORS):
        return number[1]
    following = words.joined(index + 1)
    is_mark = following[:1].isdigit() and not following.isdigit() and not _NTH.fullmatch(following)
    return index + 2 if is_mark else None


def _read_amount(words: Words, index: int) -> int | None:
    """ "2 hours", "half an hour" without "in": how long something takes, or a delay."""
    amount = read_amount(words, index, expects_delay=False)
    return amount.end if amount is not None and amount.is_counted else None


def _read_unknown_number(words: Words, index: int) -> int | None:
    """ "at 9,30", "on 5", "1/2 hours", "5 hours and more": digits where a time is expected."""
    word, following = words.at(index), words.joined(index + 1).lstrip("-+~≈<>")
    if word in ("at", "@", "on") and following[:1].isnumeric():
        end = index + 2
        if word == "on" and not (words.is_parted(end) or words.at(end) in CONNECTORS):
            return None
        is_far = (following.isdigit() and len(following) > 2) or not following[:1].isascii()
        return end if not is_far or words.is_parted(end) or words.at(end) in CONNECTORS else None
    if word[:1].isnumeric() and following in UNITS:
        return index + 2
    is_odd_digit = any(letter.isnumeric() and not letter.isascii() for letter in word)
    return index + 1 if is_odd_digit and len(word) <= 8 else None


_READERS: Final = (
    _read_passed,
    _read_choice,
    _read_group,
    _read_span,
    _read_feast,
    _read_delay,
    _read_amount,
    _read_half_clock,
    _read_dotted_day,
    _read_unknown_number,
)


def read_misspelt(words: Words, index: int) -> Match | None:
    """Recognise a slip for a time word, and ask whether it is one."""
    word = words.at(index)
    near = resembled(word.removesuffix("'s"))
    if near is None:
        return None
    question = (
        f'I do not know "{words.said(index, index + 1)}". Did you mean "{near}"? If it '
        "belongs to the text, put the text in quotes."
    )
    return Match(pieces=(fault(UnclearReason.NOT_UNDERSTOOD, question),), end=index + 1)


def _read_word(words: Words, index: int) -> Match | None:
    word = words.at(index)
    if not _is_time_word(words, index, word) and not _has_time_part(word):
        return None
    end = index + 2 if word == "new" else index + 1
    return Match(pieces=(left_over(words.said(index, end)),), end=end)


def _is_time_word(words: Words, index: int, word: str) -> bool:
    base = word.removesuffix("'s")
    if base in SHY_WEEKDAYS:
        return not is_plain_text(words, index)
    if base in SHY_MONTHS:
        return words.at(index - 1) in ("next", "this", "mid")
    if word == "new":
        return words.joined(index + 1) in ("year's", "years", "year")
    known = (MONTHS, WEEKDAYS, TODAY_SHIFTS, TONIGHT, HOLIDAYS, OTHER_TIME_WORDS)
    is_known = any(base in table or word in table for table in known)
    is_mark = _LOOKS_LIKE_CLOCK.fullmatch(word) or _JOINED_DATE.fullmatch(word)
    return is_known or base in CLOCK_WORDS or is_mark is not None


def _has_time_part(word: str) -> bool:
    """Whether one side of a hyphen or slash is a time word: "tomorrow/friday", "mon-fri"."""
    parts = _PARTING.split(word) if len(word) <= 40 else []
    known = (WEEKDAYS, TODAY_SHIFTS, TONIGHT, HOLIDAYS, MONTHS)
    return len(parts) > 1 and any(
        part in table and part not in SHY_MONTHS for part in parts for table in known
    )
