"""Times in everyday English: understood exactly, or asked about."""

import sys
from datetime import UTC, datetime, timedelta
from types import FrameType
from typing import assert_never
from zoneinfo import ZoneInfo

import pytest

from gateway.domain.schedule import (
    DAY_NAMES,
    At,
    Cron,
    Daily,
    Every,
    Schedule,
    Weekly,
    next_slot,
)
from gateway.domain.schedule_forms import schedule_from_json, schedule_to_json
from gateway.domain.when import Unclear, UnclearReason, Understood, When, find_when, parse_when
from tests.unit.when_phrasings import (
    ASKED,
    IN_SENTENCES,
    RECURRING,
    RECURRING_SENTENCES,
    REFUSED,
    UNDERSTOOD,
)

BERLIN = ZoneInfo("Europe/Berlin")
MONDAY = datetime(2026, 11, 30, 10, 0, tzinfo=BERLIN)


def parse(words: str, now: datetime = MONDAY, zone: ZoneInfo = BERLIN) -> When:
    return parse_when(words, now=now, zone=zone)


def local(when: When, zone: ZoneInfo = BERLIN) -> str:
    assert isinstance(when, Understood), when
    assert when.at.utcoffset() == timedelta(0)
    return when.at.astimezone(zone).strftime("%Y-%m-%d %H:%M:%S")


def at(text: str, zone: ZoneInfo = BERLIN) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=zone)


def shape(schedule: Schedule, zone: ZoneInfo = BERLIN) -> str:
    """A schedule as one line: "weekly mon 09:00 /2 since 2026-12-07 until 2026-12-31 23:59 x5"."""
    match schedule:
        case At():
            return f"at {schedule.at.astimezone(zone):%Y-%m-%d %H:%M}"
        case Every():
            text = f"every {schedule.period} from {schedule.anchor.astimezone(zone):%Y-%m-%d %H:%M}"
        case Daily():
            text = f"daily {schedule.time.isoformat('auto').removesuffix(':00')}{stride(schedule)}"
        case Weekly():
            days = ",".join(DAY_NAMES[day].lower() for day in sorted(schedule.days))
            text = f"weekly {days} {schedule.time:%H:%M}{stride(schedule)}"
        case Cron():
            text = f"cron {schedule.expression}"
        case _:
            assert_never(schedule)
    if schedule.until is not None:
        text += f" until {schedule.until.astimezone(zone):%Y-%m-%d %H:%M}"
    return text if schedule.max_runs is None else f"{text} x{schedule.max_runs}"


def stride(schedule: Daily | Weekly) -> str:
    every = f" /{schedule.every}" if schedule.every > 1 else ""
    return every if schedule.since is None else f"{every} since {schedule.since}"


def understood(words: str, now: datetime = MONDAY, zone: ZoneInfo = BERLIN) -> Understood:
    when = parse(words, now, zone)
    assert isinstance(when, Understood), (words, when)
    return when


def reason(when: When) -> UnclearReason:
    assert isinstance(when, Unclear), when
    return when.reason


def test_the_tables_are_as_large_as_promised() -> None:
    phrases = [{row[0] for row in table} for table in (UNDERSTOOD, RECURRING, REFUSED)]
    assert len(set().union(*phrases)) >= 480
    assert len(phrases[1]) >= 150
    assert len(phrases[2]) >= 150


@pytest.mark.parametrize(("words", "expected", "note"), UNDERSTOOD)
def test_a_phrase_means_one_moment(words: str, expected: str, note: str) -> None:
    when = parse(words)
    assert local(when) == expected
    assert isinstance(when, Understood)
    assert note in (when.note or "")
    assert bool(when.note) == bool(note)
    assert when.schedule == At(at=when.at)


@pytest.mark.parametrize(("words", "expected", "first", "note"), RECURRING)
def test_a_phrase_means_one_schedule(words: str, expected: str, first: str, note: str) -> None:
    when = understood(words)
    assert shape(when.schedule) == expected
    assert local(when)[:16] == first
    assert when.at == next_slot(when.schedule, after=MONDAY, zone=BERLIN)
    assert note in (when.note or "")
    assert bool(when.note) == bool(note)


@pytest.mark.parametrize("words", [row[0] for row in RECURRING])
def test_a_schedule_is_stored_whole(words: str) -> None:
    schedule = understood(words).schedule
    assert schedule_from_json(schedule_to_json(schedule)) == schedule


@pytest.mark.parametrize(("words", "expected"), REFUSED)
def test_a_phrase_is_asked_about(words: str, expected: UnclearReason) -> None:
    when = parse(words)
    assert reason(when) is expected
    assert isinstance(when, Unclear)
    assert when.question.endswith((".", "?"))
    assert len(when.question) < 300


@pytest.mark.parametrize(("sentence", "text", "expected"), IN_SENTENCES)
def test_a_time_is_taken_out_of_a_sentence(sentence: str, text: str, expected: str) -> None:
    found = find_when(sentence, now=MONDAY, zone=BERLIN)
    assert found is not None
    assert (found.rest, local(found.when)) == (text, expected)


@pytest.mark.parametrize(("sentence", "text", "expected"), RECURRING_SENTENCES)
def test_a_schedule_is_taken_out_of_a_sentence(sentence: str, text: str, expected: str) -> None:
    found = find_when(sentence, now=MONDAY, zone=BERLIN)
    assert found is not None
    assert isinstance(found.when, Understood), found.when
    assert (found.rest, shape(found.when.schedule)) == (text, expected)


@pytest.mark.parametrize("sentence", ASKED)
def test_a_sentence_with_unused_time_words_is_asked_about(sentence: str) -> None:
    found = find_when(sentence, now=MONDAY, zone=BERLIN)
    assert found is not None
    assert isinstance(found.when, Unclear)


@pytest.mark.parametrize(
    "sentence",
    [
        "",
        "at",
        "take pills",
        "read chapter 9",
        '"tomorrow at 9" to call',
        "later to call",
        "🎂",
        "\0",
    ],
)
def test_a_sentence_without_time_words_has_none(sentence: str) -> None:
    assert find_when(sentence, now=MONDAY, zone=BERLIN) is None


def test_r07_wall_clock_times_are_read_in_the_persons_zone() -> None:
    kolkata = ZoneInfo("Asia/Kolkata")
    for words in ("2026-12-01T09:00", "tomorrow at 9am", "1 december at 09:00"):
        when = parse(words, zone=kolkata)
        assert isinstance(when, Understood)
        assert when.at == datetime(2026, 12, 1, 3, 30, tzinfo=UTC)


def test_r12_a_past_moment_is_refused_with_the_present_local_time() -> None:
    for words in ("2026-11-30T09:55", "2020-01-01T00:00Z", "today at 09:55"):
        when = parse(words)
        assert isinstance(when, Unclear)
        assert when.reason is UnclearReason.PAST
        assert "Mon 30 Nov 2026 10:00 (Europe/Berlin)" in when.question


def test_r12_a_moment_just_gone_is_kept() -> None:
    now = at("2026-11-30 10:00:30")
    assert local(parse("2026-11-30T10:00:27", now)) == "2026-11-30 10:00:27"
    assert local(parse("at 10:00", now)) == "2026-11-30 10:00:00"
    assert local(parse("2026-11-30T09:59:30", now)) == "2026-11-30 09:59:30"
    assert reason(parse("2026-11-30T09:59:29", now)) is UnclearReason.PAST


def test_r13_a_delay_counts_from_now_with_its_seconds() -> None:
    now = at("2026-11-30 14:02:30")
    assert local(parse("in 5 minutes", now)) == "2026-11-30 14:07:30"
    assert local(parse("in an hour", at("2026-11-30 14:22:30"))) == "2026-11-30 15:22:30"


def test_clock_times_have_no_seconds() -> None:
    assert local(parse("at 17:30", at("2026-11-30 10:00:42"))) == "2026-11-30 17:30:00"


@pytest.mark.parametrize(
    ("now", "words", "expected"),
    [
        # the earliest reading still to come
        ("2026-11-30 08:00:00", "at 9", "2026-11-30 09:00:00"),
        ("2026-11-30 22:00:00", "at 9", "2026-12-01 09:00:00"),
        ("2026-11-30 13:00:00", "at 12", "2026-12-01 00:00:00"),
        ("2026-11-30 23:59:00", "at midnight", "2026-12-01 00:00:00"),
        ("2026-11-30 23:59:00", "in 2 minutes", "2026-12-01 00:01:00"),
        ("2026-11-30 23:59:00", "tomorrow", "2026-12-01 09:00:00"),
        ("2026-11-30 00:30:00", "tomorrow at 9am", "2026-12-01 09:00:00"),
        # ends of months and leap days
        ("2027-01-31 10:00:00", "in a month", "2027-02-28 10:00:00"),
        ("2028-01-31 10:00:00", "in a month", "2028-02-29 10:00:00"),
        ("2028-02-29 10:00:00", "in a year", "2029-02-28 10:00:00"),
        ("2027-01-31 10:00:00", "the 31st at 9am", "2027-03-31 09:00:00"),
        ("2027-02-01 10:00:00", "the 30th", "2027-03-30 09:00:00"),
        ("2028-02-28 10:00:00", "tomorrow", "2028-02-29 09:00:00"),
        ("2027-02-28 10:00:00", "tomorrow", "2027-03-01 09:00:00"),
        ("2026-12-31 10:00:00", "end of the month", "2027-01-31 09:00:00"),
        ("2026-12-31 10:00:00", "1 january at 8am", "2027-01-01 08:00:00"),
        # weekdays
        ("2026-11-29 10:00:00", "next monday", "2026-11-30 09:00:00"),
        ("2026-12-04 10:00:00", "next friday", "2026-12-11 09:00:00"),
        ("2026-12-05 10:00:00", "friday", "2026-12-11 09:00:00"),
    ],
)  # fmt: skip
def test_a_phrase_follows_the_present(now: str, words: str, expected: str) -> None:
    assert local(parse(words, at(now))) == expected


@pytest.mark.parametrize(
    ("zone", "now", "words", "expected", "note"),
    [
        ("Europe/Berlin", "2027-03-27 10:00", "tomorrow at 02:30", "2027-03-28 03:00", "forward"),
        ("America/New_York", "2027-03-13 10:00", "tomorrow 02:30", "2027-03-14 03:00", "forward"),
        ("Australia/Lord_Howe", "2026-10-03 10:00", "tomorrow 02:10", "2026-10-04 02:30", "clocks"),
        ("Europe/Berlin", "2027-10-30 10:00", "tomorrow at 02:30", "2027-10-31 02:30", "the first"),
        ("Europe/Berlin", "2027-03-27 02:30", "in a day", "2027-03-28 03:00", "forward"),
        ("Europe/Berlin", "2027-03-27 10:00", "in 24 hours", "2027-03-28 11:00", ""),
        ("Europe/Berlin", "2027-03-27 10:00", "in a day", "2027-03-28 10:00", ""),
        ("Asia/Kolkata", "2027-03-27 10:00", "tomorrow at 02:30", "2027-03-28 02:30", ""),
    ],
)  # fmt: skip
def test_r09_clock_changes_give_one_valid_instant(
    zone: str, now: str, words: str, expected: str, note: str
) -> None:
    place = ZoneInfo(zone)
    when = parse(words, at(now, place), place)
    assert local(when, place) == f"{expected}:00"
    assert isinstance(when, Understood)
    assert note in (when.note or "")
    assert bool(when.note) == bool(note)


def test_a_time_that_comes_twice_is_the_first_of_those_to_come() -> None:
    evening = at("2027-10-30 20:00:00")
    first = parse("tomorrow at 02:30", evening)
    assert isinstance(first, Understood)
    assert first.at == datetime(2027, 10, 31, 0, 30, tzinfo=UTC)
    between = datetime(2027, 10, 31, 0, 45, tzinfo=UTC)
    second = parse("at 02:30", between)
    assert isinstance(second, Understood)
    assert second.at == datetime(2027, 10, 31, 1, 30, tzinfo=UTC)


def test_huge_input_is_refused_at_once() -> None:
    for text in ("9" * 100_000, "tomorrow at 9 " * 8000, '"' * 100_000, "\0" * 100_000):
        assert reason(parse(text)) is UnclearReason.TOO_LONG
        found = find_when(text, now=MONDAY, zone=BERLIN)
        assert found is not None
        assert reason(found.when) is UnclearReason.TOO_LONG


def test_the_question_names_what_was_not_understood() -> None:
    when = parse("tomorow at 9")
    assert isinstance(when, Unclear)
    assert '"tomorow"' in when.question
    assert '"tomorrow"' in when.question


def test_a_long_unknown_word_is_not_repeated_whole() -> None:
    when = parse("x" * 190)
    assert isinstance(when, Unclear)
    assert len(when.question) < 250


@pytest.mark.parametrize(
    ("now", "words", "expected", "first"),
    [
        # the weekday, day and month that are not named are those of now
        ("2026-12-03 10:00", "weekly at 9", "weekly thu 09:00", "2026-12-10 09:00"),
        ("2026-12-03 08:00", "weekly at 9", "weekly thu 09:00", "2026-12-03 09:00"),
        ("2026-12-05 10:00", "every month at 9", "cron 0 9 5 * *", "2027-01-05 09:00"),
        ("2026-12-05 10:00", "every year at 11", "cron 0 11 5 12 *", "2026-12-05 11:00"),
        # the stride is counted from the first slot
        ("2026-12-03 08:00", "every other day at 9", "daily 09:00 /2 since 2026-12-03",
         "2026-12-03 09:00"),
        ("2026-12-03 10:00", "every other day at 9", "daily 09:00 /2 since 2026-12-04",
         "2026-12-04 09:00"),
        ("2026-12-01 20:00", "every other tuesday at 19:00",
         "weekly tue 19:00 /2 since 2026-12-08", "2026-12-08 19:00"),
        ("2026-12-20 10:00", "every 3 months on the 15th", "cron 0 9 15 1,4,7,10 *",
         "2027-01-15 09:00"),
        ("2026-11-30 09:00", "every day at 9", "daily 09:00", "2026-12-01 09:00"),
        # a month that is not over is this one
        ("2026-06-10 10:00", "every day at 9 until june", "daily 09:00 until 2026-06-30 23:59",
         "2026-06-11 09:00"),
        ("2026-06-10 10:00", "every day at 9 until may", "daily 09:00 until 2027-05-31 23:59",
         "2026-06-11 09:00"),
        ("2026-12-03 10:00", "every day from monday at 9", "daily 09:00 since 2026-12-07",
         "2026-12-07 09:00"),
        ("2026-12-03 23:30", "every 2 hours until 1am", "every 2:00:00 from 2026-12-03 23:30", ""),
    ],
)  # fmt: skip
def test_a_series_follows_the_present(now: str, words: str, expected: str, first: str) -> None:
    if not first:
        assert reason(parse(words, at(now))) is UnclearReason.PAST
        return
    when = understood(words, at(now))
    assert shape(when.schedule) == expected
    assert local(when) == f"{first}:00"


def test_a_period_counts_from_now_with_its_seconds() -> None:
    now = at("2026-11-30 14:02:30").replace(microsecond=123_456)
    when = understood("every 2 hours", now)
    assert local(when) == "2026-11-30 16:02:30"
    assert schedule_from_json(schedule_to_json(when.schedule)) == when.schedule


def test_an_end_counts_to_the_last_second_of_its_day() -> None:
    schedule = understood("every hour until friday").schedule
    assert isinstance(schedule, Every)
    assert schedule.until == at("2026-12-04 23:59:59").astimezone(UTC)
    last = understood("every day at 8 for 2 weeks").schedule
    assert next_slot(last, after=at("2026-12-14 07:59:00"), zone=BERLIN) == at(
        "2026-12-14 08:00:00"
    )
    assert next_slot(last, after=at("2026-12-14 08:00:00"), zone=BERLIN) is None


def test_a_series_follows_the_clock_of_its_zone() -> None:
    kolkata = ZoneInfo("Asia/Kolkata")
    when = understood("every day at 9 until 31 december", zone=kolkata)
    assert when.at == datetime(2026, 12, 1, 3, 30, tzinfo=UTC)
    assert isinstance(when.schedule, Daily)
    assert when.schedule.until == at("2026-12-31 23:59:59", kolkata).astimezone(UTC)


def test_another_zone_in_a_series_is_refused_with_the_one_of_the_chat() -> None:
    when = parse("every day at 9 Europe/London")
    assert isinstance(when, Unclear)
    assert "Europe/Berlin" in when.question
    assert "Europe/London" in when.question


def test_a_series_that_would_end_before_it_begins_is_refused_with_the_present() -> None:
    when = parse("every day at 9 for the rest of the month")
    assert reason(when) is UnclearReason.PAST
    assert isinstance(when, Unclear)
    assert "Mon 30 Nov 2026 10:00 (Europe/Berlin)" in when.question


def test_a_question_about_a_series_names_a_form_that_works() -> None:
    for words, form in (
        ("twice a day", "every day at 8:00 and 20:00"),
        ("twice a week", "every monday and thursday at 9:00"),
        ("biweekly", "every 2 weeks"),
        ("every 30 seconds", "every 5 minutes"),
        ("every 2 hours at 9", "every 2 hours starting at 9:00"),
        ("every third thursday", "every third thursday of the month"),
        ("every day between 9 and 5", "every hour between 9:00 and 17:00"),
        ("every 5 months", "every 2 months"),
    ):
        when = parse(words)
        assert isinstance(when, Unclear), words
        assert form in when.question
        assert shape(understood(form).schedule)


def calls(text: str) -> int:
    """How many function calls it takes to search `text`: work that no machine makes slower."""
    count = 0

    def tick(_frame: FrameType, event: str, _argument: object) -> None:
        nonlocal count
        count += event == "call"

    before = sys.getprofile()
    sys.setprofile(tick)
    try:
        find_when(text, now=MONDAY, zone=BERLIN)
    finally:
        sys.setprofile(before)
    return count


@pytest.mark.parametrize(
    ("start", "piece", "end"),
    [
        ("", "1h ", "and a few"),
        ("", "every mon, ", ""),
        ("", "mon, ", "daily"),
        ("every day at ", "9, ", ""),
        ("every day at 8", " and 9", ""),
        ("every 1st, ", "2nd, ", "and so on"),
        ("every hour ", "until ", ""),
        ("every day ", "from ", ""),
        ("", "first and ", "monday of the month"),
        ("", "twice a ", "day"),
        ("", "each and every ", ""),
        ("", "a ", ""),
    ],
)
def test_the_work_grows_with_the_length_only(start: str, piece: str, end: str) -> None:
    calls(start + piece * 40 + end)  # fills what is remembered of single words
    short, long = (calls(start + piece * times + end) for times in (40, 80))
    assert 500 < long < 3 * short
