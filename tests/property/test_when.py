"""What must hold for every time expression and every sentence."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from hypothesis import given
from hypothesis import strategies as st

from gateway.domain.schedule import At, next_slot
from gateway.domain.schedule_forms import schedule_from_json, schedule_to_json
from gateway.domain.when import Found, Unclear, Understood, When, find_when, parse_when
from gateway.domain.when.words import MONTH_NAMES, WEEKDAY_NAMES
from gateway.hosts.builtin.grammar import understand, understand_all
from gateway.hosts.builtin.intents import Remind
from tests.unit.when_phrasings import RECURRING

BERLIN = ZoneInfo("Europe/Berlin")
MONDAY = datetime(2026, 11, 30, 10, 0, tzinfo=BERLIN)
LATENESS = timedelta(seconds=60)

zones = st.sampled_from(
    ["Europe/Berlin", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe", "UTC"]
).map(ZoneInfo)
presents = st.datetimes(datetime(2024, 1, 1), datetime(2035, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001 - aware through timezones

# Pieces of time expressions, so that random sentences reach every rule.
_SPOKEN = (
    "in at on the a an of to past and or for by next this last every each today tomorrow tonight "
    "monday friday sun sat morning evening night noon midnight am pm half quarter five ten twenty "
    "minutes hour hours days weeks month second may december later early week day after before "
    "from ago couple zone time o'clock x call remind me cancel christmas eve "
    "tommorow now yesterday rmind remindme again twice bob soon "
    "every each other daily weekly monthly weekdays mondays until till starting between times "
    "month year first except once for hourly quarter weekend"
)
_SIGNS = (
    "5 9 12 17 30 31 2027 5pm 17:30 9:75 5/12 24/12 24.12. 2026-12-24 2026-12-24T18:00 15th 1st "
    "1h30 90min -5 5-6 utc PST Europe/Berlin 17.30 24.12.2026 @9 99999999 ٥ ½ ( ) , . : ; - \" '"
)
TIME_WORDS = [*_SPOKEN.split(), *_SIGNS.split(), '"quoted at 5"', "\0", "\u200f", "\n"]
sentences = st.one_of(
    st.text(max_size=200),
    st.lists(st.sampled_from(TIME_WORDS), max_size=12).map(" ".join),
    st.lists(st.sampled_from(TIME_WORDS), max_size=6).map("".join),
)

# Words that say nothing about time, also beside a time.
PLAIN_WORDS = [
    *("call", "mum", "Anna", "buy", "bread", "milk", "water", "plants", "feed", "cat", "wash"),
    *("car", "visit", "doctor", "fix", "bike", "pay", "rent", "send", "parcel", "fetch", "kids"),
]
texts = st.lists(st.sampled_from(PLAIN_WORDS), min_size=1, max_size=6).map(" ".join)
RECURRING_PHRASES = tuple(words for words, *_ in RECURRING)
PHRASES = (
    "tomorrow at 17:30",
    "at 5pm",
    "in 20 minutes",
    "on friday at noon",
    "in 2 days at 9am",
    "on 5 december at 10:00",
    "next friday at 18:00",
    "tomorrow evening at 8",
    "in an hour and a half",
    "the day after tomorrow at half past six pm",
    "on the 15th at 9am",
    "2026-12-24 18:00",
)
SECOND_TIMES = (
    "at 6",
    "6pm",
    "17:45",
    "18h15",
    "noon",
    "midnight",
    "on sunday",
    "saturday",
    "by sunday",
    "in 2 hours",
    "2 hours",
    "3 days",
    "45 minutes",
    "every day",
    "daily",
    "mondays",
    "christmas",
    "next week",
    "yesterday",
    "the 16th",
    "on 6 december",
    "6 january",
    "24/12",
    "3/4",
    "2027-01-05",
    "in january",
    "half past seven",
    "at 6 or 7",
    "a fortnight",
    "on new year's eve",
    "tommorow",
    "mon-fri",
    "19:15-20:00",
    "UTC+3:30",
)


def written(wall: datetime) -> list[str]:
    """The same local time in many forms."""
    day, month, year = wall.day, MONTH_NAMES[wall.month - 1], wall.year
    weekday = WEEKDAY_NAMES[wall.weekday()]
    clock, twelve = f"{wall:%H:%M}", f"{wall.hour % 12 or 12}:{wall:%M}"
    meridiem = "am" if wall.hour < 12 else "pm"
    return [
        f"{wall:%Y-%m-%d}T{clock}",
        f"{wall:%Y-%m-%d} {clock}",
        f"on {day} {month} {year} at {twelve} {meridiem}",
        f"{month} {day}, {year} {twelve}{meridiem}",
        f"at {twelve}{meridiem} on the {day}. of {month} {year}".replace(".", "th"),
        f"{weekday} {day} {month[:3]} {year}, {wall.hour}h{wall:%M}",
        f"{day:02}.{wall.month:02}.{year} at {twelve} {meridiem.upper()}",
        f"{weekday[:3]} {day} {month[:3]} {year} {wall:%H:%M:%S}",
    ]


@given(now=presents, zone=zones, ahead=st.integers(2, 4 * 365 * 24 * 60), form=st.integers(0, 7))
def test_a_future_minute_written_in_any_form_is_read_back(
    now: datetime, zone: ZoneInfo, ahead: int, form: int
) -> None:
    expected = (now + timedelta(minutes=ahead)).replace(second=0, microsecond=0)
    wall = expected.astimezone(zone)
    words = written(wall)[form]
    when = parse_when(words, now=now, zone=zone)
    assert isinstance(when, Understood), (words, when)
    if wall.fold:
        # It comes twice; the first time may be over already.
        assert when.at in (expected, wall.replace(fold=0).astimezone(UTC))
    else:
        assert when.at == expected


@given(now=presents, zone=zones, at=st.integers(0, 4 * 365 * 86_400_000))
def test_an_instant_with_its_offset_is_read_back_exactly(
    now: datetime, zone: ZoneInfo, at: int
) -> None:
    moment = now.replace(microsecond=0) + timedelta(milliseconds=at)
    for shown in (moment, moment.astimezone(zone)):
        when = parse_when(shown.isoformat(timespec="milliseconds"), now=now, zone=zone)
        assert isinstance(when, Understood)
        assert when.at == moment


@given(sentence=sentences, now=presents, zone=zones)
def test_no_text_makes_it_fail_or_lie_in_the_past(
    sentence: str, now: datetime, zone: ZoneInfo
) -> None:
    found = find_when(sentence, now=now, zone=zone)
    results: list[When] = [parse_when(sentence, now=now, zone=zone)]
    if isinstance(found, Found):
        results.append(found.when)
    for intent in understand_all(sentence, now=now, zone=zone):
        if isinstance(intent, Remind):
            assert intent.text
            results.append(intent.when)
    for when in results:
        if isinstance(when, Understood):
            assert now - LATENESS <= when.at <= now + timedelta(days=5 * 365 + 3)
            if not isinstance(when.schedule, At):
                assert when.at == next_slot(when.schedule, after=now, zone=zone)
                assert schedule_from_json(schedule_to_json(when.schedule)) == when.schedule
        else:
            assert when.question


@given(text=texts, phrase=st.sampled_from(PHRASES), place=st.sampled_from(["front", "end"]))
def test_the_text_comes_back_and_the_time_is_right(text: str, phrase: str, place: str) -> None:
    sentence = f"{phrase} to {text}" if place == "front" else f"{text} {phrase}"
    found = find_when(sentence, now=MONDAY, zone=BERLIN)
    assert found is not None
    assert (found.rest, found.when) == (text, parse_when(phrase, now=MONDAY, zone=BERLIN))
    assert isinstance(found.when, Understood)


@given(text=texts, phrase=st.sampled_from(PHRASES), front=st.booleans())
def test_a_reminder_keeps_text_and_time(text: str, phrase: str, front: bool) -> None:
    order = f"remind me {phrase} to {text}" if front else f"remind me to {text} {phrase}"
    intent = understand(order, now=MONDAY, zone=BERLIN)
    assert isinstance(intent, Remind)
    assert (intent.text, intent.when) == (text, parse_when(phrase, now=MONDAY, zone=BERLIN))


@given(
    text=texts,
    phrase=st.sampled_from([phrase for phrase in PHRASES if phrase != "next friday at 18:00"]),
    second=st.sampled_from(SECOND_TIMES),
    order=st.permutations([0, 1, 2]),
)
def test_a_second_time_is_never_dropped_in_silence(
    text: str, phrase: str, second: str, order: list[int]
) -> None:
    parts = [text, phrase, second]
    sentence = " ".join(parts[index] for index in order)
    found = find_when(sentence, now=MONDAY, zone=BERLIN)
    assert found is not None
    if isinstance(found.when, Unclear):
        return
    # It may only be understood where both say the same moment or complete each other.
    both = parse_when(f"{phrase} {second}", now=MONDAY, zone=BERLIN)
    other = parse_when(f"{second} {phrase}", now=MONDAY, zone=BERLIN)
    assert found.when in (both, other), sentence


@given(words=st.sampled_from(RECURRING_PHRASES), now=presents, zone=zones)
def test_the_first_slot_of_a_series_is_the_next_one(
    words: str, now: datetime, zone: ZoneInfo
) -> None:
    when = parse_when(words, now=now, zone=zone)
    if isinstance(when, Unclear):  # its end, or the part of the day it names, may be over
        assert when.question
        return
    assert now < when.at
    assert when.at == next_slot(when.schedule, after=now, zone=zone)
    assert schedule_from_json(schedule_to_json(when.schedule)) == when.schedule


@given(text=texts, words=st.sampled_from(RECURRING_PHRASES), place=st.sampled_from([0, 1, 2]))
def test_a_series_means_the_same_in_a_sentence(text: str, words: str, place: int) -> None:
    sentence = (f"{words} to {text}", f"{words}: {text}", f"{text}, {words}")[place]
    found = find_when(sentence, now=MONDAY, zone=BERLIN)
    assert found is not None
    assert (found.rest, found.when) == (text, parse_when(words, now=MONDAY, zone=BERLIN))
    assert isinstance(found.when, Understood)


@given(
    text=texts,
    words=st.sampled_from(RECURRING_PHRASES),
    second=st.sampled_from(SECOND_TIMES),
    order=st.permutations([0, 1, 2]),
)
def test_a_moment_beside_a_series_is_never_dropped_in_silence(
    text: str, words: str, second: str, order: list[int]
) -> None:
    parts = [text, words, second]
    sentence = " ".join(parts[index] for index in order)
    found = find_when(sentence, now=MONDAY, zone=BERLIN)
    assert found is not None
    if isinstance(found.when, Unclear):
        return
    both = parse_when(f"{words} {second}", now=MONDAY, zone=BERLIN)
    other = parse_when(f"{second} {words}", now=MONDAY, zone=BERLIN)
    assert found.when in (both, other), sentence
