"""Times in everyday words: the moment or the schedule that they mean, or an honest question.

Never a wrong time in silence: words that look like time and were not used make it ask, and
whatever was assumed is said in `Understood.note`. The rules:

- An hour from 1 to 12 without a.m. or p.m. is its earliest reading that is still to come, so that
  a wrong guess is early, not late: "at 9" said at 10:00 is 21:00 today. With another day than
  today it is read as on a 24-hour clock ("tomorrow at 9" is 09:00), and 12 is noon. A leading
  zero, an hour above 12, seconds and an ISO date are 24-hour clock.
- A clock time without a day is the next one; a date without a year, and "the 15th", likewise.
- A day without a time is 09:00; morning 09:00, afternoon 15:00, evening 19:00, night 21:00.
- "friday" is the nearest one (asked back when that may be today), "next friday" the one of the
  next week from Monday to Sunday, said as a date.
- A weekday that may be part of a name ("watch Saturday Night Live", "Mr Friday") is asked back.
- 5/12 is asked back, 24/12 is not: only one reading is a day. With dots the day comes first,
  said in the note. Christmas and New Year (eve and day) are dates, other feasts are asked back.
- "half five", "midnight" with a day, limits ("by friday"), spans ("next week") and "a few
  minutes" are asked back.
- "in 20 minutes" counts from `now` with its seconds; "in 2 days" keeps the local time of day.
- A time that the clocks jump over is the first instant after; one that comes twice is the first.
- More than 60 s ago is refused with the present local time, more than 5 years ahead too.

What repeats (`Understood.schedule`, with `at` its first slot after `now`):

- An hour is read as on a 24-hour clock ("every day at 8" is 08:00, at 5 is 05:00, said in the
  note) unless a part of the day says more ("every evening at 8"). No time is 09:00, or the part.
- "every 2 hours" counts from `now` by the real clock, or from "starting at 9". With "between 9 and
  5" or on some days it is counted inside each day, and the end of the window is included.
- "every other tuesday" counts from the nearest one. A weekday, day or month that is not named is
  that of `now`, said in the note. "every second friday" is every 2 weeks, "every third friday" is
  asked back; "of the month" makes both a day of each month.
- A month without the 29th, 30th or 31st, or without a fifth monday, is left out, said in the note.
- "until friday" includes that day, "until june" that month, "until 6pm" is today's. "for 2 weeks"
  counts from the first day. Ends are said in the note.
- "starting 1 january" holds back what has a day or an instant to count from; for other rhythms
  (several times a day, months, years) it is asked back where they would begin earlier.
- "every day at 8 and 20:30" is asked back (one reminder has one minute), like "twice a day" without
  times, what repeats beside a single moment, two rhythms, and conditions ("until I call").
- A series follows the zone of the chat; another one beside it is refused. A period is from 1 minute
  to 366 days.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Final
from zoneinfo import ZoneInfo

from gateway.domain.when.pieces import FORMS, Fault, Unclear, UnclearReason, Understood, When
from gateway.domain.when.plan import Plan, make_plan
from gateway.domain.when.resolve import passed, resolve
from gateway.domain.when.scan import Scan, scan, unused_time_words
from gateway.domain.when.series import Series, conflict, make_series
from gateway.domain.when.slots import resolve_series
from gateway.domain.when.suspects import left_over
from gateway.domain.when.tidy import remaining_text
from gateway.domain.when.tokens import read_words
from gateway.domain.when.translate import translate

__all__ = ["Found", "Unclear", "UnclearReason", "Understood", "When", "find_when", "parse_when"]

_MAX_EXPRESSION: Final = 200
_MAX_SENTENCE: Final = 4000
# Ordinary words are longer than three letters; this bounds the time for what is made of one.
_MAX_WORDS: Final = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """The time in a sentence, the sentence without the words that name it, and those words."""

    when: When
    rest: str
    said: str = ""


def parse_when(words: str, *, now: datetime, zone: ZoneInfo) -> When:
    """Read a string that is a time expression and nothing else; `now` is aware.

    Never raises, and takes bounded time whatever the string is.
    """
    if len(words) > _MAX_EXPRESSION:
        question = f"That is too long for a time. {FORMS}"
        return Unclear(reason=UnclearReason.TOO_LONG, question=question)
    result = scan(translate(read_words(words)))
    unused = [index for index in range(len(result.words)) if index not in result.used]
    plan = _plan(result)
    if isinstance(plan, Unclear) and plan.reason is not UnclearReason.LEFT_OVER:
        return _dated(plan, result, now=now, zone=zone)
    if not result.found and not unused:
        return Unclear(reason=UnclearReason.NO_TIME, question=f"At what time? {FORMS}")
    if unused or isinstance(plan, Unclear):
        is_unknown = not isinstance(plan, Unclear)
        start, end = (unused[0], unused[-1] + 1) if is_unknown else (0, len(result.words))
        said = result.words.said(start, end)
        question = f'I do not understand "{said}" as a time. {FORMS}'
        return Unclear(reason=UnclearReason.NOT_UNDERSTOOD, question=question)
    return _resolve(plan, now=now, zone=zone)


def find_when(sentence: str, *, now: datetime, zone: ZoneInfo) -> Found | None:
    """Take the time words out of a sentence, wherever they stand; None if there are none.

    `rest` is the text without them, tidied; quoted spans are text, whatever they say. Never
    raises, and takes bounded time whatever the sentence is.
    """
    words = read_words(sentence[: _MAX_SENTENCE + 1])
    if len(sentence) > _MAX_SENTENCE or len(words) > _MAX_WORDS:
        question = (
            f"That is too long for me to find the time in. Send at most {_MAX_SENTENCE} characters "
            f"and {_MAX_WORDS} words."
        )
        return Found(when=Unclear(reason=UnclearReason.TOO_LONG, question=question), rest=sentence)
    result = scan(translate(words))
    if not result.found:
        return None
    tokens = result.words.tokens
    spans = [(tokens[placed.start].start, tokens[placed.end - 1].end) for placed in result.found]
    return Found(
        when=_resolve_found(result, now=now, zone=zone),
        rest=remaining_text(sentence, result),
        said=" ".join(sentence[start:end] for start, end in spans if end > start),
    )


def _plan(result: Scan) -> Plan | Series | Unclear:
    pieces = result.pieces()
    if not result.is_series:
        return make_plan(pieces)
    return conflict("two rhythms") if result.is_split() else make_series(pieces)


def _resolve(plan: Plan | Series, *, now: datetime, zone: ZoneInfo) -> When:
    if isinstance(plan, Series):
        return resolve_series(plan, now=now, zone=zone)
    return resolve(plan, now=now, zone=zone)


def _resolve_found(result: Scan, *, now: datetime, zone: ZoneInfo) -> When:
    plan = _plan(result)
    if isinstance(plan, Unclear):
        return _dated(plan, result, now=now, zone=zone)
    unused = unused_time_words(result)
    if unused is not None:
        return left_over(result.words.said(*unused)).unclear
    return _resolve(plan, now=now, zone=zone)


def _dated(unclear: Unclear, result: Scan, *, now: datetime, zone: ZoneInfo) -> Unclear:
    """A refusal of something past, with the present local time in it.

    Beside a moment that is not past, the words about the past may belong to the text.
    """
    if unclear.reason is not UnclearReason.PAST:
        return unclear
    is_beside = any(not isinstance(piece, Fault) for piece in result.pieces())
    if is_beside:
        return Unclear(reason=UnclearReason.LEFT_OVER, question=unclear.question)
    return passed(now=now, zone=zone)
