"""Schedules: their slots on every day on which clocks are changed, and their stored form.

What is expected comes from looking at each minute of a zone's clock.
"""

import itertools
import json
from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta
from functools import cache
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.domain import schedule as schedules
from gateway.domain.schedule import (
    MAX_EVERY,
    MAX_PERIOD,
    MIN_PERIOD,
    At,
    Cron,
    Daily,
    Every,
    Recurring,
    Schedule,
    Weekly,
    grace,
    is_same,
    latest_slot,
    local_time,
    next_slot,
    parse_cron,
)
from gateway.domain.schedule_forms import (
    describe,
    describe_period,
    schedule_from_json,
    schedule_to_json,
)
from gateway.errors import BadScheduleError

BERLIN = ZoneInfo("Europe/Berlin")
NEW_YORK = ZoneInfo("America/New_York")
KOLKATA = ZoneInfo("Asia/Kolkata")
MINUTE = timedelta(minutes=1)
DAY = timedelta(days=1)


def at(text: str) -> datetime:
    """An instant, written with its offset."""
    return datetime.fromisoformat(text).astimezone(UTC)


def slots(
    schedule: Schedule, zone: ZoneInfo, *, after: datetime, until: datetime
) -> list[datetime]:
    """All slots later than `after` up to `until`, each found from the one before it."""
    found: list[datetime] = []
    slot = next_slot(schedule, after=after, zone=zone)
    while slot is not None and slot <= until:
        found.append(slot)
        slot = next_slot(schedule, after=slot, zone=zone)
    return found


def shown(schedule: Schedule, zone: str, begin: str, *, days: int) -> list[str]:
    """The slots from the start of a local day on, as the clock there shows them."""
    here = ZoneInfo(zone)
    start = datetime.combine(date.fromisoformat(begin), time(0), here).astimezone(UTC)
    end = datetime.combine(date.fromisoformat(begin) + days * DAY, time(0), here).astimezone(UTC)
    found = slots(schedule, here, after=start - MINUTE, until=end - MINUTE)
    return [slot.astimezone(here).strftime("%d %H:%M %z") for slot in found]


# ---- where clocks are changed ----------------------------------------------------------------

CHANGES = [
    # zone, first day, local time, the slots of three days
    (
        "Europe/Berlin",
        "2026-03-28",
        "02:30",
        ["28 02:30 +0100", "29 03:00 +0200", "30 02:30 +0200"],
    ),
    (
        "Europe/Berlin",
        "2026-03-28",
        "02:00",
        ["28 02:00 +0100", "29 03:00 +0200", "30 02:00 +0200"],
    ),
    (
        "Europe/Berlin",
        "2026-10-24",
        "02:30",
        ["24 02:30 +0200", "25 02:30 +0200", "26 02:30 +0100"],
    ),
    (
        "Europe/Berlin",
        "2026-10-24",
        "03:00",
        ["24 03:00 +0200", "25 03:00 +0100", "26 03:00 +0100"],
    ),
    (
        "America/New_York",
        "2026-03-07",
        "02:15",
        ["07 02:15 -0500", "08 03:00 -0400", "09 02:15 -0400"],
    ),
    (
        "America/New_York",
        "2026-10-31",
        "01:30",
        ["31 01:30 -0400", "01 01:30 -0400", "02 01:30 -0500"],
    ),
    # Half an hour: 02:00 becomes 02:30, and 02:00 becomes 01:30.
    (
        "Australia/Lord_Howe",
        "2026-10-03",
        "02:15",
        ["03 02:15 +1030", "04 02:30 +1100", "05 02:15 +1100"],
    ),
    (
        "Australia/Lord_Howe",
        "2026-10-03",
        "03:10",
        ["03 03:10 +1030", "04 03:10 +1100", "05 03:10 +1100"],
    ),
    (
        "Australia/Lord_Howe",
        "2026-04-04",
        "01:45",
        ["04 01:45 +1100", "05 01:45 +1100", "06 01:45 +1030"],
    ),
    (
        "Australia/Lord_Howe",
        "2026-04-04",
        "03:10",
        ["04 03:10 +1100", "05 03:10 +1030", "06 03:10 +1030"],
    ),
    ("Asia/Kolkata", "2026-03-28", "02:30", ["28 02:30 +0530", "29 02:30 +0530", "30 02:30 +0530"]),
    # Over the date line: there was no 30 December.
    ("Pacific/Apia", "2011-12-29", "02:30", ["29 02:30 -1000", "31 02:30 +1400"]),
    ("Pacific/Apia", "2011-12-29", "00:00", ["29 00:00 -1000", "31 00:00 +1400"]),
    # Half an hour back at midnight in 2015, and half an hour on before midnight in 2018.
    (
        "Asia/Pyongyang",
        "2015-08-13",
        "23:45",
        ["13 23:45 +0900", "14 23:45 +0900", "15 23:45 +0830"],
    ),
    (
        "Asia/Pyongyang",
        "2018-05-03",
        "23:45",
        ["03 23:45 +0830", "05 00:00 +0900", "05 23:45 +0900"],
    ),
    (
        "Europe/Volgograd",
        "2020-12-26",
        "01:30",
        ["26 01:30 +0400", "27 01:30 +0400", "28 01:30 +0300"],
    ),
]


def of_clock(clock: str) -> list[Recurring]:
    """The three ways to ask for a time of each day."""
    moment = time.fromisoformat(clock)
    return [
        Daily(time=moment),
        Weekly(days=frozenset(range(7)), time=moment),
        parse_cron(f"{moment.minute} {moment.hour} * * *"),
    ]


@pytest.mark.parametrize(("zone", "begin", "clock", "expected"), CHANGES)
def test_r09_a_time_of_day_comes_once_a_day_where_clocks_are_changed(
    zone: str, begin: str, clock: str, expected: list[str]
) -> None:
    for schedule in of_clock(clock):
        assert shown(schedule, zone, begin, days=3) == expected, schedule


def test_r09_each_quarter_of_the_doubled_hour_comes_eight_times() -> None:
    found = shown(parse_cron("*/15 * * * *"), "Europe/Berlin", "2026-10-25", days=1)
    assert len([slot for slot in found if slot[3:5] == "02"]) == 8
    assert len(found) == 25 * 4
    spring = shown(parse_cron("*/15 * * * *"), "Europe/Berlin", "2026-03-29", days=1)
    assert len(spring) == 23 * 4
    assert not [slot for slot in spring if slot[3:5] == "02"]


def test_every_minute_of_a_named_hour_comes_once_where_clocks_are_changed() -> None:
    expression = parse_cron("*/20 2 * * *")
    assert shown(expression, "Europe/Berlin", "2026-03-29", days=1) == ["29 03:00 +0200"]
    assert shown(expression, "Europe/Berlin", "2026-10-25", days=1) == [
        "25 02:00 +0200",
        "25 02:20 +0200",
        "25 02:40 +0200",
    ]


@pytest.mark.parametrize(
    ("expression", "begin", "expected"),
    [
        ("*/30 3 * * *", "2026-10-04", ["04 03:00 +1100", "04 03:30 +1100"]),
        ("*/30 3 * * *", "2026-04-05", ["05 03:00 +1030", "05 03:30 +1030"]),
        ("30 */1 5 4 *", "2026-04-05", ["05 00:30 +1100", "05 01:30 +1100", "05 01:30 +1030"]),
    ],
)
def test_no_slot_is_lost_where_clocks_move_by_half_an_hour(
    expression: str, begin: str, expected: list[str]
) -> None:
    found = shown(parse_cron(expression), "Australia/Lord_Howe", begin, days=1)
    assert found[: len(expected)] == expected


def test_no_slot_is_lost_where_clocks_go_back_over_midnight() -> None:
    found = shown(parse_cron("15 */23 28 10 *"), "America/St_Johns", "2006-10-28", days=2)
    assert found == ["28 00:15 -0230", "28 23:15 -0230", "28 23:15 -0330"]


def test_no_slot_is_lost_behind_a_day_that_was_left_out() -> None:
    after = at("2011-12-29T12:00:30-10:00")
    for days in ("30,31", "31"):
        slot = next_slot(
            parse_cron(f"0 */5 {days} 12 *"), after=after, zone=ZoneInfo("Pacific/Apia")
        )
        assert slot == at("2011-12-31T00:00+14:00")


def test_no_slot_is_lost_where_clocks_jump_in_the_middle_of_an_hour() -> None:
    found = shown(parse_cron("0 */2 4,5 5 *"), "Asia/Pyongyang", "2018-05-04", days=2)
    assert found[11:14] == ["04 22:00 +0830", "05 00:00 +0900", "05 02:00 +0900"]


@pytest.mark.parametrize("year", [2026, 2027])
@pytest.mark.parametrize("period", [MIN_PERIOD, timedelta(hours=7), timedelta(days=1), MAX_PERIOD])
def test_an_interval_keeps_its_phase_over_months_and_both_changes(
    year: int, period: timedelta
) -> None:
    anchor = datetime(year, 1, 3, 4, 5, 6, 789_000, tzinfo=UTC)
    schedule = Every(period=period, anchor=anchor)
    for zone in (BERLIN, NEW_YORK, KOLKATA):
        for days in (0, 86, 87, 88, 180, 296, 297, 298, 360):
            after = anchor + days * DAY + timedelta(hours=2, minutes=13)
            slot = next_slot(schedule, after=after, zone=zone)
            assert slot is not None
            assert timedelta(0) < slot - after <= period
            assert not (slot - anchor) % period


def test_an_interval_begins_with_its_anchor() -> None:
    anchor = at("2026-03-02T09:00+00:00")
    schedule = Every(period=timedelta(hours=2), anchor=anchor)
    assert next_slot(schedule, after=anchor - 40 * DAY, zone=BERLIN) == anchor
    assert next_slot(schedule, after=anchor - MINUTE, zone=BERLIN) == anchor
    assert next_slot(schedule, after=anchor, zone=BERLIN) == anchor + timedelta(hours=2)


def test_r07_a_time_of_day_is_one_of_the_zone_of_the_job() -> None:
    after = at("2026-11-30T12:00+00:00")
    for schedule in of_clock("09:00"):
        slot = next_slot(schedule, after=after, zone=KOLKATA)
        assert slot == at("2026-12-01T03:30+00:00")
        assert local_time(slot, KOLKATA, now=after) == "Tue 1 Dec 09:00"


def test_r08_the_clock_on_the_wall_counts_after_a_change() -> None:
    for schedule in of_clock("08:00"):
        spring = slots(
            schedule,
            NEW_YORK,
            after=at("2026-03-07T12:00-05:00"),
            until=at("2026-03-10T00:00-04:00"),
        )
        assert spring == [at("2026-03-08T12:00+00:00"), at("2026-03-09T12:00+00:00")]
        autumn = slots(
            schedule,
            NEW_YORK,
            after=at("2026-10-31T12:00-04:00"),
            until=at("2026-11-03T00:00-05:00"),
        )
        assert autumn == [at("2026-11-01T13:00+00:00"), at("2026-11-02T13:00+00:00")]


# ---- days and weeks --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("begin", "days"), [("2026-03-20", "27 29 31 02"), ("2026-03-28", "29 31 02 04 06 08 10")]
)
def test_every_other_day_counts_from_its_first_day(begin: str, days: str) -> None:
    schedule = Daily(time=time(9), every=2, since=date(2026, 3, 27))
    found = [slot[:2] for slot in shown(schedule, "Europe/Berlin", begin, days=14)]
    assert " ".join(found) == days


def test_every_other_week_counts_from_the_week_of_its_first_day() -> None:
    # Thursday: its week counts, but not the Tuesday before it.
    schedule = Weekly(days=frozenset({1, 3}), time=time(9), every=2, since=date(2026, 3, 5))
    found = [slot[:2] for slot in shown(schedule, "Europe/Berlin", "2026-03-01", days=31)]
    assert found == ["05", "17", "19", "31"]


def test_every_day_may_begin_later() -> None:
    schedule = Daily(time=time(9), since=date(2026, 3, 5))
    assert shown(schedule, "Europe/Berlin", "2026-03-03", days=3) == ["05 09:00 +0100"]


def test_a_first_day_far_away_is_found_without_a_walk() -> None:
    schedule = Daily(time=time(9), since=date(9000, 1, 1))
    assert next_slot(schedule, after=at("2026-03-02T00:00+00:00"), zone=BERLIN) == at(
        "9000-01-01T09:00+01:00"
    )


@pytest.mark.parametrize(
    "schedule",
    [
        Daily(time=time(9)),
        Every(period=timedelta(hours=1), anchor=at("2026-01-01T00:00+00:00")),
        parse_cron("0 9 * * *"),
    ],
)
def test_nothing_comes_after_the_end(schedule: Recurring) -> None:
    last = at("2026-03-02T09:00+01:00")
    ending = replace(schedule, until=last)
    assert next_slot(ending, after=last - MINUTE, zone=BERLIN) == last
    assert next_slot(ending, after=last, zone=BERLIN) is None


@pytest.mark.parametrize(
    "schedule",
    [
        Daily(time=time(9)),
        Weekly(days=frozenset({2}), time=time(9), every=MAX_EVERY, since=date(2026, 1, 1)),
        Every(period=MAX_PERIOD, anchor=at("2026-01-01T00:00+00:00")),
        parse_cron("0 9 * * *"),
        parse_cron("* * * * *"),
    ],
)
@pytest.mark.parametrize("zone", [BERLIN, ZoneInfo("Pacific/Kiritimati"), ZoneInfo("Etc/GMT+12")])
def test_the_end_of_the_calendar_is_the_end(schedule: Recurring, zone: ZoneInfo) -> None:
    slot = next_slot(schedule, after=datetime(9999, 12, 31, 23, 59, 30, tzinfo=UTC), zone=zone)
    assert slot is None or slot.year == 9999


def test_a_one_shot_has_no_slot_after_its_own() -> None:
    moment = at("2026-03-02T09:00+01:00")
    assert next_slot(At(at=moment), after=moment - MINUTE, zone=BERLIN) == moment
    assert next_slot(At(at=moment), after=moment, zone=BERLIN) is None


# ---- cron ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "days"),
    [
        ("0", "Sun"),
        ("7", "Sun"),
        ("sun", "Sun"),
        ("SUN", "Sun"),
        ("1-5", "Mon Tue Wed Thu Fri"),
        ("mon-fri", "Mon Tue Wed Thu Fri"),
        ("1,3", "Mon Wed"),
        ("5-7", "Fri Sat Sun"),
        ("*/2", "Tue Thu Sat Sun"),
        ("0-6/3", "Wed Sat Sun"),
    ],
)
def test_r10_sunday_is_sunday_as_0_and_as_7(fields: str, days: str) -> None:
    found = slots(
        parse_cron(f"0 9 * * {fields}"),
        BERLIN,
        after=at("2026-11-02T00:00+01:00"),  # a Monday
        until=at("2026-11-08T23:59+01:00"),
    )
    assert " ".join(slot.strftime("%a") for slot in found) == days


def test_r10_day_of_month_or_day_of_week_where_both_are_given() -> None:
    found = slots(
        parse_cron("0 9 13 * 5"),
        BERLIN,
        after=at("2026-11-30T00:00+01:00"),
        until=at("2026-12-31T00:00+01:00"),
    )
    assert [slot.day for slot in found] == [4, 11, 13, 18, 25]


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("0 9 * * mon#1", ["2026-12-07", "2027-01-04", "2027-02-01"]),
        ("0 9 * * 5L", ["2026-12-25", "2027-01-29", "2027-02-26"]),
        ("0 9 L * *", ["2026-12-31", "2027-01-31", "2027-02-28"]),
        ("0 9 LW * *", ["2026-12-31", "2027-01-29", "2027-02-26"]),
        ("0 9 1 jan,mar *", ["2027-01-01", "2027-03-01", "2028-01-01"]),
        ("0 9 29 2 *", ["2028-02-29", "2032-02-29", "2036-02-29"]),
        ("0 9 31 * *", ["2026-12-31", "2027-01-31", "2027-03-31"]),
    ],
)
def test_r11_what_cron_has_besides_numbers_is_read_as_meant(
    expression: str, expected: list[str]
) -> None:
    schedule = parse_cron(expression)
    slot: datetime | None = at("2026-12-01T00:00+01:00")
    found: list[str] = []
    while slot is not None and len(found) < len(expected):
        slot = next_slot(schedule, after=slot, zone=BERLIN)
        found.append(str(slot)[:10])
    assert found == expected


@pytest.mark.parametrize(
    ("expression", "named"),
    [
        ("5 minutes", "5 fields"),
        ("@daily", "5 fields"),
        ("0 9 * *", "5 fields"),
        ("0 0 9 * * *", "5 fields"),
        ("", "5 fields"),
        ("60 9 * * *", "minute"),
        ("*/0 * * * *", "minute"),
        ("*/90 * * * *", "step of 90"),
        ("0 */25 * * *", "step of 25"),
        ("0 24 * * *", "hour"),
        ("0 9 0 * *", "day-of-month"),
        ("0 0 31 2 *", "day-of-month"),
        ("0 0 30,31 2 *", "day-of-month"),
        ("0 9 * 13 *", "month"),
        ("0 9 * * 8", "day-of-week"),
        ("0 9 * * mon#6", "day-of-week"),
        ("0 9 * * fri-mon", "day-of-week"),
        ("0 9 * * ,", "day-of-week"),
        ("-1 9 * * *", "minute"),
        ("²⁰ 9 * * *", "minute"),
    ],
)
def test_r11_an_expression_that_is_none_is_refused_by_its_field(
    expression: str, named: str
) -> None:
    with pytest.raises(BadScheduleError, match=named):
        parse_cron(expression)


def test_an_expression_that_names_no_day_has_no_slot() -> None:
    never = parse_cron("0 0 */28 2 mon#4")
    assert next_slot(never, after=at("2026-03-02T00:00+00:00"), zone=BERLIN) is None


def test_cron_is_stored_in_one_spelling() -> None:
    assert parse_cron("  0   9 * *  MON ").expression == "0 9 * * mon"


# ---- every minute of every clock -------------------------------------------------------------

WHERE = [
    ("Europe/Berlin", at("2026-03-29T01:00+00:00")),
    ("Europe/Berlin", at("2026-10-25T01:00+00:00")),
    ("America/New_York", at("2026-03-08T07:00+00:00")),
    ("America/New_York", at("2026-11-01T06:00+00:00")),
    ("America/Havana", at("2026-11-01T05:00+00:00")),
    ("Australia/Lord_Howe", at("2026-04-04T15:00+00:00")),
    ("Australia/Lord_Howe", at("2026-10-03T15:30+00:00")),
    ("Asia/Kolkata", at("2026-03-02T00:00+00:00")),
    ("Pacific/Apia", at("2011-12-30T10:00+00:00")),
    ("Asia/Pyongyang", at("2015-08-14T15:00+00:00")),
    ("Asia/Pyongyang", at("2018-05-04T15:00+00:00")),
    ("Europe/Volgograd", at("2020-12-26T22:00+00:00")),
    ("America/Sao_Paulo", at("2018-11-04T03:00+00:00")),
    ("America/Sao_Paulo", at("2018-02-18T02:00+00:00")),
    ("America/Nuuk", at("2023-03-26T01:00+00:00")),
    ("America/St_Johns", at("2006-10-29T02:31+00:00")),
]
SPAN = timedelta(days=3)


@cache
def clock_of(zone: ZoneInfo, day: date) -> tuple[tuple[datetime, datetime], ...]:
    """Each minute of a day by UTC with what the clock shows at it."""
    start = datetime.combine(day, time(0), UTC)
    moments = (start + number * MINUTE for number in range(24 * 60))
    return tuple((moment, moment.astimezone(zone).replace(tzinfo=None)) for moment in moments)


def minutes(zone: ZoneInfo, start: datetime, end: datetime) -> Iterator[tuple[datetime, datetime]]:
    """Each minute from `start` to `end` with what the clock shows at it."""
    for number in range((end.date() - start.date()).days + 1):
        for moment, local in clock_of(zone, start.date() + number * DAY):
            if start <= moment <= end:
                yield moment, local


def reached(
    wanted: Iterable[datetime], zone: ZoneInfo, start: datetime, end: datetime
) -> list[datetime]:
    """When the clock first showed these times, or a later one of a day that there was."""
    clock = list(minutes(zone, start - 2 * DAY, end))
    there = {local.date() for _, local in clock}
    waiting = sorted(time for time in wanted if time.date() in there)
    found: list[datetime] = []
    for moment, local in clock:
        while waiting and waiting[0] <= local:
            waiting.pop(0)
            if start < moment <= end:
                found.append(moment)
    return sorted(set(found))


def days_around(start: datetime, end: datetime) -> list[date]:
    first = start.date() - 2 * DAY
    return [first + n * DAY for n in range((end.date() - first).days + 2)]


@st.composite
def places(draw: st.DrawFn) -> tuple[ZoneInfo, datetime]:
    """A zone, and a moment shortly before its clocks are changed, or after."""
    zone, change = draw(st.sampled_from(WHERE))
    return ZoneInfo(zone), change + draw(st.integers(-36 * 60, 6 * 60)) * MINUTE


CLOCKS = st.builds(
    time, st.one_of(st.integers(0, 3), st.integers(0, 23)), st.sampled_from([0, 1, 15, 30, 45, 59])
)


@given(places(), CLOCKS, st.integers(1, 3), st.integers(0, 9))
def test_a_daily_time_comes_when_the_clock_first_shows_it(
    place: tuple[ZoneInfo, datetime], clock: time, every: int, ago: int
) -> None:
    zone, after = place
    since = after.date() - ago * DAY
    wanted = [
        datetime.combine(day, clock)
        for day in days_around(after, after + SPAN)
        if day >= since and not (day - since).days % every
    ]
    schedule = Daily(time=clock, every=every, since=since)
    expected = reached(wanted, zone, after, after + SPAN)
    assert slots(schedule, zone, after=after, until=after + SPAN) == expected


@given(places(), CLOCKS, st.frozensets(st.integers(0, 6), min_size=1))
def test_a_weekly_time_comes_when_the_clock_first_shows_it(
    place: tuple[ZoneInfo, datetime], clock: time, days: frozenset[int]
) -> None:
    zone, after = place
    wanted = [
        datetime.combine(day, clock)
        for day in days_around(after, after + SPAN)
        if day.weekday() in days
    ]
    expected = reached(wanted, zone, after, after + SPAN)
    schedule = Weekly(days=days, time=clock)
    assert slots(schedule, zone, after=after, until=after + SPAN) == expected


MINUTES = st.frozensets(st.sampled_from([0, 1, 15, 29, 30, 45, 59]), min_size=1)
HOURS = st.frozensets(st.one_of(st.integers(0, 3), st.integers(0, 23)), min_size=1, max_size=4)


def listed(values: Iterable[int]) -> str:
    return ",".join(map(str, sorted(values)))


@given(places(), MINUTES, HOURS, st.frozensets(st.integers(0, 6), min_size=1))
def test_named_hours_come_when_the_clock_first_shows_them(
    place: tuple[ZoneInfo, datetime],
    of_hour: frozenset[int],
    hours: frozenset[int],
    days: frozenset[int],
) -> None:
    zone, after = place
    wanted = [
        datetime.combine(day, time(hour, minute))
        for day in days_around(after, after + SPAN)
        if day.isoweekday() % 7 in days
        for hour, minute in itertools.product(hours, of_hour)
    ]
    expected = reached(wanted, zone, after, after + SPAN)
    schedule = parse_cron(f"{listed(of_hour)} {listed(hours)} * * {listed(days)}")
    assert slots(schedule, zone, after=after, until=after + SPAN) == expected


@given(places(), MINUTES, st.integers(1, 5), st.frozensets(st.integers(1, 31), min_size=12))
def test_each_hour_comes_whenever_the_clock_shows_it(
    place: tuple[ZoneInfo, datetime], of_hour: frozenset[int], step: int, days: frozenset[int]
) -> None:
    zone, after = place
    expected = [
        moment
        for moment, local in minutes(zone, after, after + SPAN)
        if moment > after
        and local.minute in of_hour
        and not local.hour % step
        and local.day in days
    ]
    schedule = parse_cron(f"{listed(of_hour)} */{step} {listed(days)} * *")
    assert slots(schedule, zone, after=after, until=after + SPAN) == expected


@given(places(), st.integers(60, 10**6), st.integers(-(10**7), 10**7))
def test_an_interval_is_one_by_the_real_clock(
    place: tuple[ZoneInfo, datetime], seconds: int, ahead: int
) -> None:
    zone, after = place
    anchor = after + timedelta(seconds=ahead)
    schedule = Every(period=timedelta(seconds=seconds), anchor=anchor)
    found = slots(schedule, zone, after=after, until=after + timedelta(days=1))
    assert all((slot - anchor) % schedule.period == timedelta(0) for slot in found)
    assert all(slot >= max(anchor, after) for slot in found)
    steps = [later - earlier for earlier, later in itertools.pairwise(found)]
    assert set(steps) <= {schedule.period}


# ---- the latest slot -------------------------------------------------------------------------

RARE = [
    Daily(time=time(2, 30)),
    Daily(time=time(9), every=MAX_EVERY, since=date(2011, 1, 1)),
    Weekly(days=frozenset({0}), time=time(9), every=53, since=date(2011, 1, 3)),
    Every(period=timedelta(minutes=61), anchor=at("2011-01-01T00:00+00:00")),
    Every(period=MAX_PERIOD, anchor=at("2011-01-01T00:00+00:00")),
    parse_cron("0 9 29 2 *"),
    parse_cron("* 9 1 1 *"),
    parse_cron("15,45 2 * * 0"),
    parse_cron("0 */5 * * *"),
]


@given(places(), st.sampled_from(RARE), st.integers(0, 10**8))
def test_the_latest_slot_is_the_last_of_all(
    place: tuple[ZoneInfo, datetime], schedule: Recurring, seconds: int
) -> None:
    zone, after = place
    first = next_slot(schedule, after=after, zone=zone)
    assert first is not None
    until = first + timedelta(seconds=seconds)
    latest = latest_slot(schedule, since=first, until=until, zone=zone)
    assert first <= latest <= until
    # Nothing lies between it and the end, and it is a slot itself.
    following = next_slot(schedule, after=latest, zone=zone)
    assert following is None or following > until
    if latest != first:
        assert next_slot(schedule, after=latest - timedelta(milliseconds=1), zone=zone) == latest


@given(places(), CLOCKS, st.integers(0, 9 * 24 * 60))
def test_the_latest_slot_is_that_of_a_walk(
    place: tuple[ZoneInfo, datetime], clock: time, ahead: int
) -> None:
    zone, after = place
    for schedule in (Daily(time=clock), parse_cron(f"{clock.minute} * * * *")):
        first = next_slot(schedule, after=after, zone=zone)
        assert first is not None
        until = first + ahead * MINUTE
        walked = [first, *slots(schedule, zone, after=first, until=until)]
        assert latest_slot(schedule, since=first, until=until, zone=zone) == walked[-1]


@pytest.mark.parametrize("years", [1, 40])
@pytest.mark.parametrize(
    "schedule", [parse_cron("* * * * *"), parse_cron("* 9 1 1 *"), *RARE], ids=str
)
def test_a_long_time_away_takes_a_few_looks(
    schedule: Recurring, years: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = 0

    def counted(schedule: Schedule, *, after: datetime, zone: ZoneInfo) -> datetime | None:
        nonlocal looks
        looks += 1
        return next_slot(schedule, after=after, zone=zone)

    first = next_slot(schedule, after=at("2026-03-02T00:00+00:00"), zone=BERLIN)
    assert first is not None
    monkeypatch.setattr(schedules, "next_slot", counted)
    latest_slot(schedule, since=first, until=first + years * 365 * DAY, zone=BERLIN)
    assert looks <= 60


def test_the_latest_slot_of_one_that_is_alone_is_itself() -> None:
    moment = at("2026-03-02T09:00+01:00")
    for until in (moment, moment + 400 * DAY):
        assert latest_slot(At(at=moment), since=moment, until=until, zone=BERLIN) == moment


# ---- grace, sameness -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("schedule", "allowed"),
    [
        (Every(period=timedelta(minutes=1), anchor=at("2026-03-02T09:00+01:00")), 60),
        (Every(period=timedelta(minutes=4), anchor=at("2026-03-02T09:00+01:00")), 60),
        (Every(period=timedelta(minutes=20), anchor=at("2026-03-02T09:00+01:00")), 300),
        (Every(period=timedelta(hours=1), anchor=at("2026-03-02T09:00+01:00")), 900),
        (Every(period=timedelta(hours=12), anchor=at("2026-03-02T09:00+01:00")), 900),
        (Daily(time=time(9)), 3600),
        (Daily(time=time(9), until=at("2026-03-02T10:00+01:00")), 3600),
        (Weekly(days=frozenset({0}), time=time(9)), 3600),
        (parse_cron("0 9 * * 1-5"), 3600),
        (parse_cron("0,20 9 * * *"), 300),
        (At(at=at("2026-03-02T09:00+01:00")), 900),
    ],
)
def test_how_late_a_slot_may_be(schedule: Schedule, allowed: int) -> None:
    slot = at("2026-03-02T09:00+01:00")
    assert grace(schedule, slot=slot, zone=BERLIN) == timedelta(seconds=allowed)


def test_a_day_of_23_hours_is_a_day() -> None:
    slot = at("2026-03-28T09:00+01:00")
    assert grace(Daily(time=time(9)), slot=slot, zone=BERLIN) == timedelta(hours=1)


def test_an_interval_is_the_same_whenever_it_was_asked_for() -> None:
    one = Every(period=timedelta(hours=2), anchor=at("2026-03-02T09:00+00:00"))
    assert is_same(one, replace(one, anchor=one.anchor + MINUTE))
    assert not is_same(one, replace(one, period=timedelta(hours=3)))
    assert not is_same(one, replace(one, max_runs=3))
    assert is_same(Daily(time=time(9)), Daily(time=time(9)))
    assert not is_same(Daily(time=time(9)), parse_cron("0 9 * * *"))


# ---- the stored form -------------------------------------------------------------------------

MOMENTS = st.integers(-(10**12), 7 * 10**12).map(schedules.from_millis)
TIMES = st.builds(time, st.integers(0, 23), st.integers(0, 59), st.integers(0, 59))
STRIDES = st.one_of(
    st.just((1, None)), st.tuples(st.integers(1, MAX_EVERY), st.dates(min_value=date(1990, 1, 1)))
)
EXPRESSIONS = ["0 9 * * *", "*/15 8-18 * * 1-5", "0 9 l * *", "0 9 * * mon#1", "0 9 13 * 5"]


@st.composite
def recurring(draw: st.DrawFn) -> Recurring:
    every, since = draw(STRIDES)
    schedule: Recurring = draw(
        st.one_of(
            st.builds(
                Every,
                period=st.integers(60, 366 * 86400).map(lambda n: timedelta(seconds=n)),
                anchor=MOMENTS,
            ),
            st.builds(Daily, time=TIMES, every=st.just(every), since=st.just(since)),
            st.builds(
                Weekly,
                days=st.frozensets(st.integers(0, 6), min_size=1),
                time=TIMES,
                every=st.just(every),
                since=st.just(since),
            ),
            st.sampled_from(EXPRESSIONS).map(parse_cron),
        )
    )
    until = draw(st.one_of(st.none(), MOMENTS))
    return replace(schedule, until=until, max_runs=draw(st.one_of(st.none(), st.integers(1, 99))))


@given(st.one_of(MOMENTS.map(lambda moment: At(at=moment)), recurring()))
def test_a_schedule_is_read_back_as_it_was_stored(schedule: Schedule) -> None:
    assert schedule_from_json(schedule_to_json(schedule)) == schedule


@pytest.mark.parametrize(
    ("schedule", "stored"),
    [
        (At(at=at("1970-01-01T00:00:01.5+00:00")), '{"kind":"at","at":1500}'),
        (
            Every(period=timedelta(hours=2), anchor=at("1970-01-01T00:00:01+00:00")),
            '{"kind":"every","seconds":7200,"anchor":1000}',
        ),
        (Daily(time=time(8)), '{"kind":"daily","time":"08:00"}'),
        (
            Daily(time=time(8, 0, 5), every=2, since=date(2026, 3, 2)),
            '{"kind":"daily","time":"08:00:05","every":2,"since":"2026-03-02"}',
        ),
        (
            Weekly(days=frozenset({0, 6}), time=time(9, 30)),
            '{"kind":"weekly","days":["mon","sun"],"time":"09:30"}',
        ),
        (
            replace(parse_cron("0 9 * * 1-5"), until=at("1970-01-01T00:00:02+00:00"), max_runs=3),
            '{"kind":"cron","expression":"0 9 * * 1-5","until":2000,"max_runs":3}',
        ),
    ],
)
def test_the_stored_form_is_what_scripts_read(schedule: Schedule, stored: str) -> None:
    assert schedule_to_json(schedule) == stored
    assert schedule_from_json(stored) == schedule


def test_a_stride_without_a_first_day_keeps_the_phase_it_is_stored_with() -> None:
    schedule = Daily(time=time(9), every=2)
    stored = schedule_from_json(schedule_to_json(schedule))
    after = at("2026-03-02T12:00+00:00")
    assert next_slot(stored, after=after, zone=BERLIN) == next_slot(
        schedule, after=after, zone=BERLIN
    )
    assert len(slots(schedule, BERLIN, after=after, until=after + 10 * DAY)) == 5


@pytest.mark.parametrize(
    "stored",
    [
        "",
        "{",
        "null",
        '"abc"',
        "[]",
        "{}",
        '{"kind":["at"]}',
        '{"kind":"at"}',
        '{"kind":"at","at":"abc"}',
        '{"kind":"at","at":true}',
        '{"kind":"at","at":1.5}',
        '{"kind":"at","at":99999999999999999999}',
        '{"kind":"at","at":-99999999999999999}',
        '{"kind":"at","at":253402300799000}',
        '{"kind":"sometimes","at":1}',
        "[" * 100_000,
        '{"kind":"every","seconds":59,"anchor":0}',
        '{"kind":"every","seconds":31622401,"anchor":0}',
        '{"kind":"every","seconds":1e999,"anchor":0}',
        '{"kind":"every","seconds":10000000000000000000000,"anchor":0}',
        '{"kind":"every","seconds":7200}',
        '{"kind":"daily"}',
        '{"kind":"daily","time":"25:00"}',
        '{"kind":"daily","time":"08:00:00.5"}',
        '{"kind":"daily","time":"08:00+01:00"}',
        '{"kind":"daily","time":8}',
        '{"kind":"daily","time":"08:00","every":2}',
        '{"kind":"daily","time":"08:00","every":0,"since":"2026-03-02"}',
        '{"kind":"daily","time":"08:00","every":367,"since":"2026-03-02"}',
        '{"kind":"daily","time":"08:00","every":2,"since":20260302}',
        '{"kind":"daily","time":"08:00","every":2,"since":"2026-02-30"}',
        '{"kind":"daily","time":"08:00","until":"tomorrow"}',
        '{"kind":"daily","time":"08:00","max_runs":0}',
        '{"kind":"daily","time":"08:00","max_runs":1000001}',
        '{"kind":"daily","time":"08:00","max_runs":true}',
        '{"kind":"weekly","time":"08:00"}',
        '{"kind":"weekly","days":[],"time":"08:00"}',
        '{"kind":"weekly","days":["someday"],"time":"08:00"}',
        '{"kind":"weekly","days":[["mon"]],"time":"08:00"}',
        '{"kind":"weekly","days":"mon","time":"08:00"}',
        '{"kind":"cron"}',
        '{"kind":"cron","expression":5}',
        '{"kind":"cron","expression":"60 9 * * *"}',
    ],
)
def test_a_damaged_schedule_is_a_value_error(stored: str) -> None:
    with pytest.raises(ValueError):
        schedule_from_json(stored)


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(["08:00", "mon", "2026-03-02", "0 9 * * *", *EXPRESSIONS]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=4,
)
KEYS = ["at", "seconds", "anchor", "time", "days", "expression", "every", "since", "until"]


@given(
    st.sampled_from(["at", "every", "daily", "weekly", "cron"]),
    st.dictionaries(st.sampled_from([*KEYS, "max_runs"]), JSON),
)
def test_whatever_is_stored_is_a_schedule_or_a_value_error(
    kind: str, fields: dict[str, object]
) -> None:
    try:
        schedule = schedule_from_json(json.dumps({"kind": kind, **fields}))
    except ValueError:
        return
    now = at("2026-03-02T09:00+00:00")
    describe(schedule, BERLIN, now=now)
    next_slot(schedule, after=now, zone=BERLIN)


# ---- in words --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("schedule", "words"),
    [
        (At(at=at("2026-12-01T09:00+01:00")), ""),
        (Every(period=timedelta(hours=1), anchor=at("2026-12-01T09:00+01:00")), "every hour"),
        (
            Every(period=timedelta(minutes=90), anchor=at("2026-12-01T09:00+01:00")),
            "every 90 minutes",
        ),
        (Daily(time=time(9)), "daily"),
        (Daily(time=time(9), every=2, since=date(2026, 12, 1)), "every 2 days"),
        (Weekly(days=frozenset({1}), time=time(9)), "weekly"),
        (Weekly(days=frozenset({1, 4}), time=time(9)), "Tue, Fri"),
        (Weekly(days=frozenset(range(5)), time=time(9)), "weekdays"),
        (Weekly(days=frozenset({5, 6}), time=time(9)), "weekends"),
        (Weekly(days=frozenset({1, 2, 3}), time=time(9)), "Tue-Thu"),
        (
            Weekly(days=frozenset({1}), time=time(9), every=2, since=date(2026, 12, 1)),
            "every 2 weeks",
        ),
        (
            Weekly(days=frozenset({1, 3}), time=time(9), every=2, since=date(2026, 12, 1)),
            "every 2 weeks on Tue, Thu",
        ),
        (parse_cron("0 9 1 * *"), "monthly on the 1st"),
        (parse_cron("0 9 * * 7"), "Sun"),
        (parse_cron("0 9 * * 0,7"), "Sun"),
        (parse_cron("0 9 * * mon#1,5l"), "monthly on the first Mon, last Fri"),
        (parse_cron("0 8,14 * * *"), "daily at 08:00, 14:00"),
        (parse_cron("30 8,20 * * mon-fri"), "Mon-Fri at 08:30, 20:30"),
        (parse_cron("0 9 1,15,22,23 * *"), "monthly on the 1st, 15th, 22nd, 23rd"),
        (parse_cron("0 9 l * *"), "monthly on the last day"),
        (parse_cron("0 9 lw * *"), "monthly on the last weekday"),
        (parse_cron("0 9 24 12 *"), "yearly on 24 Dec"),
        (parse_cron("0 9 15 1,7 *"), "on the 15th of Jan, Jul"),
        (parse_cron("0 9 13 * 5"), "cron 0 9 13 * 5 (Fri)"),
        (parse_cron("*/15 * * * *"), "cron */15 * * * *"),
        (parse_cron("0 9 1 12 mon"), "cron 0 9 1 12 mon (Mon)"),
        (Daily(time=time(9), max_runs=1), "daily, once"),
        (Daily(time=time(9), max_runs=3), "daily, 3 times"),
        (
            Daily(time=time(9), until=at("2026-12-01T18:00+01:00"), max_runs=3),
            "daily until Tue 1 Dec 18:00, 3 times",
        ),
        (
            Daily(time=time(9), until=at("2027-01-02T18:00+01:00")),
            "daily until Sat 2 Jan 2027 18:00",
        ),
    ],
)
def test_how_often_in_words(schedule: Schedule, words: str) -> None:
    assert describe(schedule, BERLIN, now=at("2026-12-01T08:00+01:00")) == words


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (60, "every minute"),
        (61, "every 61 seconds"),
        (5400, "every 90 minutes"),
        (86400, "every day"),
        (14 * 86400, "every 2 weeks"),
        (10 * 86400, "every 10 days"),
    ],
)
def test_a_period_in_words(seconds: int, words: str) -> None:
    assert describe_period(timedelta(seconds=seconds)) == words


def test_only_what_was_read_is_a_cron_schedule() -> None:
    assert parse_cron("0 9 * * *") == Cron(expression="0 9 * * *")
