"""Reading how often: "every other tuesday", "daily", "mondays", "the 1st of every month"."""

import re
from typing import Final

from gateway.domain.when.amounts import Amount, read_amount, read_number
from gateway.domain.when.days import read_calendar_day, read_ordinal
from gateway.domain.when.lists import read_weekdays
from gateway.domain.when.moments import read_moment
from gateway.domain.when.monthly import each_last, each_ordinal, read_monthly
from gateway.domain.when.pieces import (
    Assumed,
    CalendarDate,
    Counted,
    Days,
    Match,
    Months,
    Part,
    PartOfDay,
    Period,
    Piece,
    Rhythm,
    UnclearReason,
    Weeks,
    Years,
    fault,
)
from gateway.domain.when.suspects import left_over, read_misspelt
from gateway.domain.when.tokens import Words
from gateway.domain.when.words import (
    ADVERBS,
    CLOCK_WORDS,
    CONNECTORS,
    COUNTS,
    DAY_GROUPS,
    DETERMINERS,
    EVERY,
    LIMITS,
    PART_PLURALS,
    PARTS,
    UNITS,
)

_WEEK_WORDS: Final = frozenset({"week", "weeks", "wk", "wks", "fortnight", "fortnights"})
_DAY_ADJECTIVES: Final = frozenset({"working", "work", "business"})
_TIMES: Final = re.compile(r"([0-9]{1,4})x")
_PER: Final = frozenset({"a", "an", "per", "each", "every"})
_OTHER: Final = frozenset({"other", "alternate"})
_EDGES: Final = frozenset({"end", "start", "beginning"})
_HOUR: Final = 3600
_DAY: Final = 86400
_UNSURE_ADVERBS: Final = {
    "biweekly": "week",
    "bi-weekly": "week",
    "bimonthly": "month",
    "bi-monthly": "month",
}
_ADVERBS: Final[dict[str, tuple[Piece, ...]]] = {
    "daily": (Days(),),
    "everyday": (Days(),),
    "nightly": (Days(), PartOfDay(part=Part.NIGHT)),
    "hourly": (Period(seconds=_HOUR),),
    "weekly": (Weeks(),),
    "fortnightly": (Weeks(every=2),),
    "monthly": (Months(),),
    "quarterly": (Months(every=3, is_quarter=True),),
    "yearly": (Years(),),
    "annually": (Years(),),
}
_UNIT_RHYTHMS: Final[dict[str, Rhythm]] = {
    "minute": Period(seconds=60),
    "hour": Period(seconds=_HOUR),
    "day": Days(),
    "week": Weeks(),
    "month": Months(),
    "quarter": Months(every=3, is_quarter=True),
    "year": Years(),
}


def read_rhythm(words: Words, index: int) -> Match | None:
    """Read what makes a series at `index`; words that may mean one and are not read: a fault."""
    return (
        _read_every(words, index)
        or _read_rate(words, index)
        or read_monthly(words, index)
        or _read_adverb(words, index)
        or _read_plural(words, index)
    )


def _read_every(words: Words, index: int) -> Match | None:
    start = index + 1 if words.at(index) in ("on", "once", "at") else index
    if words.at(start) not in EVERY or (start > index and words.is_parted(start)):
        return None
    place = start + 1
    if words.joined(place) in _OTHER and words.at(start) == "each" and not _is_beat(words, place):
        return None  # "call each other"
    if words.joined(place) == "and" and words.joined(place + 1) in EVERY:
        place += 2
    place += words.joined(place) == "single"
    found = None if words.is_parted(place) else _read_beat(words, place)
    if found is not None and not _counts_from(words, found):
        return found
    slip = None if words.is_parted(place) else read_misspelt(words, place)
    if slip is not None:
        return slip
    said = words.said(start, place + 1)
    return Match(pieces=(left_over(said),), end=min(place + 1, len(words)))


def _counts_from(words: Words, found: Match) -> bool:
    """Whether more is said: "every 5 minutes past the hour", "every other monday of the month",
    "every month end".
    """
    following = words.joined(found.end)
    if any(isinstance(piece, Period) for piece in found.pieces):
        return following in ("past", "before", "after")
    return following == "of" or following in _EDGES


def _is_beat(words: Words, other: int) -> bool:
    following = words.joined(other + 1)
    return (
        following in UNITS or following in DAY_GROUPS or read_weekdays(words, other + 1) is not None
    )


def _read_beat(words: Words, index: int) -> Match | None:
    """Read what stands after "every"."""
    return (
        _read_date(words, index)
        or _read_nth(words, index)
        or each_last(words, index)
        or _read_days(words, index)
        or _read_period(words, index)
    )


def _read_date(words: Words, index: int) -> Match | None:
    date = read_calendar_day(words, index)
    if date is None:
        return None
    pieces = (
        Years(date=piece) if isinstance(piece, CalendarDate) else piece for piece in date.pieces
    )
    return Match(pieces=tuple(pieces), end=date.end)


def _read_nth(words: Words, index: int) -> Match | None:
    """Read "other tuesday", "second day", "3rd week", "first monday of the month", "15th"."""
    is_other = words.at(index) in _OTHER
    found = (2, index + 1) if is_other else read_ordinal(words, index)
    if found is None:
        return None
    count, end = found
    unit = words.joined(end)
    if not is_other:
        monthly = each_ordinal(words, index)
        if monthly is not None:
            return monthly
    if unit in _UNIT_RHYTHMS or unit in UNITS:
        return _stride(words, index, count, end)
    group = _read_group(words, end)
    days = group if group is not None else read_weekdays(words, end)
    if words.is_parted(end) or days is None or unit in ("weekday", "workday"):
        return None
    if count == 2:
        return _with_part(words, (Weeks(every=2, days=days[0]),), days[1])
    return None


def _stride(words: Words, index: int, count: int, end: int) -> Match | None:
    """ "second day", "other hour", "third month": the unit `count` times."""
    amount = read_amount(words, end, expects_delay=False, may_be_bare=True)
    if amount is None or count < 2:
        return None
    delay = amount.delay
    return _rhythm_of(
        words,
        months=delay.months * count,
        days=delay.days * count,
        seconds=delay.seconds * count,
        end=amount.end,
    )


def _read_days(words: Words, index: int) -> Match | None:
    """Read "monday and thursday", "weekday", "weekend", "morning", "noon" after "every"."""
    days = _read_group(words, index) or read_weekdays(words, index)
    if days is not None:
        return _with_part(words, (Weeks(days=days[0]),), days[1])
    word = words.at(index)
    if word in PARTS:
        return Match(pieces=(Days(), PartOfDay(part=Part(word))), end=index + 1)
    if word in CLOCK_WORDS:
        clock = read_moment(words, index)
        return None if clock is None else Match(pieces=(Days(), *clock.pieces), end=clock.end)
    return None


def _read_group(words: Words, index: int) -> tuple[frozenset[int], int, bool] | None:
    """Read "weekday", "working day", "weekend"."""
    word = words.at(index)
    if word in _DAY_ADJECTIVES and words.joined(index + 1) in ("day", "days"):
        return DAY_GROUPS["weekday"], index + 2, words.at(index + 1) == "days"
    if word not in DAY_GROUPS:
        return None
    return DAY_GROUPS[word], index + 1, False


def _with_part(words: Words, pieces: tuple[Piece, ...], end: int) -> Match:
    """The pieces, with the part of the day that may follow: "every monday morning"."""
    word = words.joined(end)
    part = PART_PLURALS.get(word, word)
    if part not in PARTS:
        return Match(pieces=pieces, end=end)
    return Match(pieces=(*pieces, PartOfDay(part=Part(part))), end=end + 1)


def _read_period(words: Words, index: int) -> Match | None:
    """Read "2 hours", "hour and a half", "week", "quarter" after "every"."""
    amount = read_amount(words, index, expects_delay=True, may_be_bare=True)
    if amount is not None:
        return _of_amount(words, amount)
    if words.at(index) == "quarter":
        return Match(pieces=(_UNIT_RHYTHMS["quarter"],), end=index + 1)
    return None


def _of_amount(words: Words, amount: Amount) -> Match:
    delay, end = amount.delay, amount.end
    if delay.days == 1 and words.joined(end) in ("of", "in") and words.joined(end + 1) == "the":
        end += 3 if words.joined(end + 2) in ("week", "year", "month") else 0
    match = _rhythm_of(
        words, months=delay.months, days=delay.days, seconds=delay.seconds, end=amount.end
    )
    remarks = () if delay.note is None else (Assumed(note=delay.note),)
    return Match(pieces=(*match.pieces, *remarks), end=end)


def _rhythm_of(words: Words, *, months: int, days: int, seconds: int, end: int) -> Match:
    """The rhythm of so many months, days and seconds, whose last word is before `end`."""
    piece: Piece
    if months and (days or seconds):
        piece = _bad_period("Say months, or days and hours, not both.")
    elif months % 12 == 0 and months:
        years = months // 12
        piece = Years() if years == 1 else _bad_period("A year is the longest that I repeat after.")
    elif months:
        piece = Months(every=months)
    elif seconds:
        piece = Period(seconds=days * _DAY + seconds)
    elif days % 7 == 0 and days and words.at(end - 1) in _WEEK_WORDS:
        piece = Weeks(every=days // 7)
    else:
        piece = Days(every=days)
    return Match(pieces=(piece,), end=end)


def _bad_period(question: str) -> Piece:
    return fault(UnclearReason.PERIOD, f'{question} For example "every 2 hours" or "every month".')


def _read_rate(words: Words, index: int) -> Match | None:
    """Read "once a day", "twice a day", "3 times a week", "1x per month"."""
    count = _read_count(words, index)
    if count is None:
        is_per = words.at(index) == "per" and words.joined(index + 1) in _UNIT_RHYTHMS
        return (
            Match(pieces=(left_over(words.said(index, index + 2)),), end=index + 2)
            if is_per
            else None
        )
    times, end = count
    adverb = _ADVERBS.get(words.joined(end), ())
    if len(adverb) == 1:
        said = words.said(index, end + 1)
        return _counted(times, adverb[0], said=said, end=end + 1)
    rhythm = _UNIT_RHYTHMS.get(words.joined(end + 1))
    if words.joined(end) not in _PER:
        return None
    if rhythm is None:
        return Match(pieces=(left_over(words.said(index, end + 1)),), end=end + 1)
    return _counted(times, rhythm, said=words.said(index, end + 2), end=end + 2)


def _counted(times: int, rhythm: Piece, *, said: str, end: int) -> Match:
    counts = () if times == 1 else (Counted(count=times, said=said),)
    return Match(pieces=(rhythm, *counts), end=end)


def _read_count(words: Words, index: int) -> tuple[int, int] | None:
    """Read "twice", "3 times", "3x": how many, and where that ends."""
    word = words.at(index)
    found = _TIMES.fullmatch(word)
    if found is not None:
        return int(found[1]), index + 1
    if word in COUNTS:
        return COUNTS[word], index + 1
    number = read_number(words, index)
    if number is None or words.joined(number[1]) not in ("times", "time"):
        return None
    return number[0], number[1] + 1


def _read_adverb(words: Words, index: int) -> Match | None:
    """Read "daily", where it is not said of a thing: "the daily report"."""
    said = words.at(index)
    word = said.removeprefix("@")
    if word not in ADVERBS:
        return None
    end = index + 1
    if not _stands_alone(words, index, end):
        return Match(pieces=(left_over(words.said(index, end)),), end=end)
    unit = _UNSURE_ADVERBS.get(word)
    if unit is not None:
        question = (
            f'Does "{said}" mean twice a {unit} or every 2 {unit}s? Write for example '
            f'"every 2 {unit}s".'
        )
        return Match(pieces=(fault(UnclearReason.AMBIGUOUS, question),), end=end)
    return Match(pieces=_ADVERBS[word], end=end)


def _stands_alone(words: Words, index: int, end: int) -> bool:
    """Whether the words [index, end) are no part of a thing's name."""
    is_led = not words.is_parted(index) and words.at(index - 1) in DETERMINERS
    following = words.at(end)
    is_closed = words.is_parted(end) or following in CONNECTORS | LIMITS | EVERY | PARTS
    return not is_led and (
        is_closed
        or following[:1].isdigit()
        or following in DAY_GROUPS
        or read_moment(words, end) is not None
        or read_weekdays(words, end) is not None
        or _read_plural(words, end) is not None
    )


def _read_plural(words: Words, index: int) -> Match | None:
    """Read "mondays", "on weekdays", "weekday mornings", "in the evenings"."""
    start = index + 1 if words.at(index) in ("on", "in", "at") else index
    start += words.at(start) == "the" and start > index and not words.is_parted(start)
    if start > index and words.is_parted(start):
        return None
    days = _read_group(words, start) or read_weekdays(words, start)
    if days is not None:
        is_plural = days[2] or words.joined(days[1]) in PART_PLURALS
        found = _with_part(words, (Weeks(days=days[0]),), days[1])
        if is_plural and words.joined(found.end) == "from":  # "two mondays from now"
            return Match(pieces=(left_over(words.said(index, found.end + 2)),), end=found.end)
        if not is_plural or start > index or _is_aside(words, index, found.end):
            return found if is_plural else None
        return Match(pieces=(left_over(words.said(index, found.end)),), end=found.end)
    word = words.at(start)
    if word not in PART_PLURALS:
        return None
    if start == index and not words.is_parted(index):
        return Match(pieces=(left_over(words.said(index, index + 1)),), end=index + 1)
    return Match(pieces=(Days(), PartOfDay(part=Part(PART_PLURALS[word]))), end=start + 1)


def _is_aside(words: Words, index: int, end: int) -> bool:
    """Whether "mondays" is no part of a name, like in "the manic mondays playlist"."""
    if words.is_parted(index):
        return True
    before, following = words.at(index - 1), words.at(end)
    is_closed = words.is_parted(end) or following in CONNECTORS | LIMITS | EVERY
    is_timed = following[:1].isdigit() or read_moment(words, end) is not None
    return before not in DETERMINERS and (is_closed or is_timed)
