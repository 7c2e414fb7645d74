"""Reading the bounds of a series: "until friday", "for 2 weeks", "5 times", "starting tomorrow"."""

import re
from dataclasses import replace
from typing import Final

from gateway.domain.when.amounts import read_amount, read_number
from gateway.domain.when.days import read_calendar_day
from gateway.domain.when.lists import is_after_comma, read_clocks, read_weekdays
from gateway.domain.when.moments import read_moment
from gateway.domain.when.pieces import (
    Clock,
    Delay,
    Edge,
    Except,
    Lasting,
    Match,
    Now,
    Piece,
    Starting,
    Stretch,
    Times,
    UnclearReason,
    Until,
    Weekday,
    Window,
    fault,
)
from gateway.domain.when.repeats import read_rhythm
from gateway.domain.when.suspects import vague
from gateway.domain.when.tokens import Words
from gateway.domain.when.words import CONNECTORS, COUNTS, DAY_GROUPS, MONTHS, STARTING, UNTIL

_YEAR: Final = re.compile(r"20[0-9]{2}")
_TIMES: Final = re.compile(r"([0-9]{1,6})x")
_TO: Final = UNTIL | {"to", "-", "–"}
_STRETCHES: Final = frozenset({"week", "month", "year"})
_EXCEPT: Final = frozenset({"except", "excluding"})
_DAY: Final = 86400
_RATE_WORDS: Final = frozenset({"a", "an", "per", "each", "every", "the", "as", "more"})
_CONDITIONS: Final = _EXCEPT | frozenset(
    {"until", "till", "til", "unless", "while", "during", "when", "whenever"}
)
_MOST_TIMES: Final = 100_000


def read_bound(words: Words, index: int, *, follows: bool) -> Match | None:
    """Read a bound of a series at `index`; `follows` tells that time words end right before it.

    Right after time words, "until I call" is a fault; elsewhere it is text.
    """
    for reader in (_read_until, _read_from, _read_between, _read_except):
        match = reader(words, index)
        if match is not None:
            return match
    lasting = _read_lasting(words, index, follows=follows)
    if lasting is not None:
        return lasting
    times = _read_times(words, index)
    if times is not None and (follows or words.at(index) in ("for", "only")):
        return times
    return _read_only(words, index) or _read_condition(words, index, times, follows=follows)


def _read_only(words: Words, index: int) -> Match | None:
    """Read "only on fridays": how often, like without "only"."""
    if words.at(index) != "only" or words.is_parted(index + 1):
        return None
    return read_rhythm(words, index + 1)


def _read_condition(
    words: Words, index: int, times: Match | None, *, follows: bool
) -> Match | None:
    """Recognise a bound that cannot be kept or is not clear: "until I call", "twice on mondays"."""
    is_beside = follows and (not words.is_parted(index) or is_after_comma(words, index))
    is_first = index == 0 and words.at(index) in UNTIL | _EXCEPT | {"unless"}
    if times is not None and index == 0 and read_rhythm(words, times.end) is not None:
        return Match(pieces=(vague(words.said(index, times.end)),), end=times.end)
    if words.at(index) not in _CONDITIONS or not (is_beside or is_first):
        return None
    end = min(index + 2, len(words))
    return Match(pieces=(vague(words.said(index, end)),), end=end)


def _read_until(words: Words, index: int) -> Match | None:
    start = index + 2 if (words.at(index), words.joined(index + 1)) == ("up", "to") else index + 1
    if start == index + 1 and words.at(index) not in UNTIL:
        return None
    found = _read_edge(words, index, start)
    if found is None:
        return None
    edge, end = found
    stretch = edge.stretch
    if stretch is not None and stretch.ahead and words.at(end - 2) == "next":
        is_end = any(words.at(place) == "end" for place in range(start, end))
        if not is_end:
            return Match(pieces=(vague(words.said(index, end)),), end=end)
    return Match(pieces=(Until(edge=edge),), end=end)


def _read_from(words: Words, index: int) -> Match | None:
    """Read "starting tomorrow", "from 1 january until 31 march", "from 9 to 5"."""
    word = words.at(index)
    is_as_of = (word, words.joined(index + 1)) == ("as", "of")
    if word not in STARTING and not is_as_of:
        return None
    start = index + 2 if is_as_of or words.joined(index + 1) in ("from", "with") else index + 1
    found = _read_edge(words, index, start)
    if found is None:
        return None
    edge, end = found
    if words.joined(end) in _TO and word in ("from", "starting"):
        other = _read_edge(words, index, end + 1)
        if other is not None:
            return _between(words, index, edge, other)
    end += words.joined(end) in ("on", "onwards", "onward") and _is_closed(words, end + 1)
    return Match(pieces=(Starting(edge=edge),), end=end)


def _read_between(words: Words, index: int) -> Match | None:
    if words.at(index) != "between":
        return None
    first = _read_edge(words, index, index + 1, has_list=False)
    if first is None or words.joined(first[1]) != "and":
        return None
    other = _read_edge(words, index, first[1] + 1)
    return None if other is None else _between(words, index, first[0], other)


def _between(words: Words, index: int, first: Edge, other: tuple[Edge, int]) -> Match:
    last, end = other
    said = words.said(index, end)
    clocks = _only_clock(first), _only_clock(last)
    piece: Piece
    if clocks[0] is not None and clocks[1] is not None:
        piece = Window(first=clocks[0], last=clocks[1], said=said)
    elif clocks[0] is not None or clocks[1] is not None:
        piece = vague(said)
    elif isinstance(first.pieces[:1] and first.pieces[0], Weekday):
        question = (
            f'Does "{said}" mean one week, or every week? Write "every monday to friday", or '
            '"every day until friday".'
        )
        piece = fault(UnclearReason.AMBIGUOUS, question)
    else:
        return Match(pieces=(Starting(edge=first), Until(edge=last)), end=end)
    return Match(pieces=(piece,), end=end)


def _only_clock(edge: Edge) -> Clock | None:
    piece = edge.pieces[0] if len(edge.pieces) == 1 else None
    return piece if isinstance(piece, Clock) and not edge.clocks else None


def _read_edge(
    words: Words, index: int, start: int, *, has_list: bool = True
) -> tuple[Edge, int] | None:
    """Read the moment, week, month or year at `start`, and the times of day behind it."""
    if words.is_parted(start):
        return None
    stretch = _read_stretch(words, start)
    if stretch is not None:
        edge, end = Edge(stretch=stretch[0], said=""), stretch[1]
    else:
        # "from 9 to 5" is no time that is 9 minutes to 5.
        if words.at(start) == "now":
            return Edge(pieces=(Now(),), said=words.said(index, start + 1)), start + 1
        hour = _read_bare_hour(words, start)
        is_span = hour is not None and words.at(hour.end) in _TO
        match = hour if is_span else read_calendar_day(words, start) or read_moment(words, start)
        match = match or hour
        if match is None:
            return None
        edge, end = Edge(pieces=match.pieces, said=""), match.end
    edge = replace(edge, said=words.said(index, end))
    has_clock = any(isinstance(piece, Clock) for piece in edge.pieces)
    clocks = None if has_clock or words.is_parted(end) or not has_list else read_clocks(words, end)
    if clocks is None:
        return edge, end
    return replace(edge, clocks=clocks[0]), clocks[1]


def _read_bare_hour(words: Words, index: int) -> Match | None:
    """Read "6" in "until 6" and "from 9 to 5"."""
    number = read_number(words, index)
    if number is None or not 0 < number[0] <= 23:
        return None
    hour, end = number
    if not (_is_closed(words, end) or words.at(end) in _TO):
        return None
    clock = Clock(hour=hour, is_exact=hour > 12, is_sure=True, said=words.said(index, end))
    return Match(pieces=(clock,), end=end)


def _is_closed(words: Words, index: int) -> bool:
    return words.is_parted(index) or words.at(index) in CONNECTORS | UNTIL | {"every", "each"}


def _read_stretch(words: Words, index: int) -> tuple[Stretch, int] | None:
    """Read "june", "the end of the year", "next week", "the end of june 2027"."""
    if words.at(index) == "in" and words.joined(index + 1) in MONTHS:
        index += 1
    start = index + 1 if words.at(index) == "the" else index
    is_edge = words.at(start) in ("end", "beginning", "start") and words.joined(start + 1) == "of"
    start = start + 2 if is_edge else index
    if words.at(start) in MONTHS:
        if not (words.is_parted(start + 1) or not words.at(start + 1)[:1].isdigit()):
            year = words.at(start + 1)
            if not _YEAR.fullmatch(year):
                return None
            return Stretch(unit="month", month=MONTHS[words.at(start)], year=int(year)), start + 2
        return Stretch(unit="month", month=MONTHS[words.at(start)]), start + 1
    which, unit = words.at(start), words.joined(start + 1)
    if unit not in _STRETCHES:
        return None
    if which == "next":
        return Stretch(unit=unit, ahead=1), start + 2
    is_here = which == "this" or (which == "the" and is_edge)
    return (Stretch(unit=unit), start + 2) if is_here else None


def _read_lasting(words: Words, index: int, *, follows: bool) -> Match | None:
    """Read "for 2 weeks", "for the next 5 days", "over the next month"."""
    word = words.at(index)
    if word not in ("for", "over", "during") or words.is_parted(index + 1):
        return None
    start = index + 1
    if words.at(start) == "the" and words.joined(start + 1) in ("rest", "remainder"):
        place = start + 3 if words.joined(start + 2) == "of" else start
        unit = words.joined(place + 1)
        if words.joined(place) in ("the", "this") and unit in _STRETCHES:
            edge = Edge(stretch=Stretch(unit=unit), said=words.said(index, place + 2))
            return Match(pieces=(Until(edge=edge),), end=place + 2)
        return None
    start += words.at(start) == "the"
    is_next = words.at(start) in ("next", "coming", "following")
    start += is_next
    amount = read_amount(words, start, expects_delay=False, may_be_bare=is_next)
    if amount is None or amount.delay == Delay(note=amount.delay.note):
        return None
    end = amount.end
    is_closed = (
        _is_closed(words, end)
        or read_moment(words, end) is not None
        or read_rhythm(words, end) is not None
    )
    # "every day for 2 weeks call mum", and not "pay for 2 weeks rent".
    if not is_closed and (amount.delay.seconds or not (follows or is_next)):
        return None
    said = words.said(index, amount.end)
    return Match(pieces=(Lasting(delay=amount.delay, said=said),), end=amount.end)


def read_duration(words: Words, index: int) -> Match | None:
    """Recognise "walk for 30 minutes" as text beside "every day": no series ends in that time."""
    lasting = _read_lasting(words, index, follows=False)
    if lasting is None or not isinstance(lasting.pieces[0], Lasting):
        return None
    delay = lasting.pieces[0].delay
    is_short = not (delay.days or delay.months) and 0 < delay.seconds < _DAY
    return Match(pieces=(), end=lasting.end) if is_short and words.at(index) == "for" else None


def _read_times(words: Words, index: int) -> Match | None:
    """Read "5 times", "for 10 times", "only twice", "5x in total"."""
    start = index + 1 if words.at(index) in ("for", "only", "just") else index
    start += words.at(start) == "only"
    if start > index and words.is_parted(start):
        return None
    found = _TIMES.fullmatch(words.at(start))
    number = read_number(words, start)
    if found is not None:
        count, end = int(found[1]), start + 1
    elif words.at(start) in COUNTS:
        count, end = COUNTS[words.at(start)], start + 1
    elif number is not None and words.joined(number[1]) in ("times", "time"):
        count, end = number[0], number[1] + 1
    else:
        return None
    closing = (words.joined(end), words.joined(end + 1))
    end += 2 if closing in (("in", "total"), ("in", "all")) else closing[0] == "altogether"
    if words.joined(end) in _RATE_WORDS:
        return None
    if not 1 <= count <= _MOST_TIMES:
        question = f"Say a number of times from 1 to {_MOST_TIMES}."
        return Match(pieces=(fault(UnclearReason.IMPOSSIBLE, question),), end=end)
    # "once" and "twice" alone say how often each day.
    if start == index and words.at(start) in COUNTS:
        return Match(pieces=(vague(words.said(index, end)),), end=end)
    times = Times(count=count, is_sure=start > index, said=words.said(start, end))
    return Match(pieces=(times,), end=end)


def _read_except(words: Words, index: int) -> Match | None:
    """Read "except on sundays", "but not on weekends"."""
    is_but_not = (words.at(index), words.joined(index + 1)) == ("but", "not")
    if words.at(index) not in _EXCEPT | {"not", "never"} and not is_but_not:
        return None
    start = index + 1 + is_but_not
    start += words.joined(start) in ("on", "for", "at")
    start += words.joined(start) == "the"
    if words.is_parted(start):
        return None
    if words.at(start).removesuffix("s") in DAY_GROUPS:
        return Match(
            pieces=(Except(days=DAY_GROUPS[words.at(start).removesuffix("s")]),), end=start + 1
        )
    found = read_weekdays(words, start)
    return None if found is None else Match(pieces=(Except(days=found[0]),), end=found[1])
