"""Times in everyday English: understood exactly, or asked about."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from gateway.domain.when import Unclear, UnclearReason, Understood, When, find_when, parse_when
from tests.unit.when_phrasings import ASKED, IN_SENTENCES, REFUSED, UNDERSTOOD

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


def reason(when: When) -> UnclearReason:
    assert isinstance(when, Unclear), when
    return when.reason


def test_the_tables_are_as_large_as_promised() -> None:
    assert len({words for words, _, _ in UNDERSTOOD}) + len({words for words, _ in REFUSED}) >= 150
    assert len({words for words, _ in REFUSED}) >= 30


@pytest.mark.parametrize(("words", "expected", "note"), UNDERSTOOD)
def test_a_phrase_means_one_moment(words: str, expected: str, note: str) -> None:
    when = parse(words)
    assert local(when) == expected
    assert isinstance(when, Understood)
    assert note in (when.note or "")
    assert bool(when.note) == bool(note)


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
