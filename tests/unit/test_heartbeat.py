"""When a silent chat is checked on: quiet hours of its own zone, a cap a day, never when busy."""

from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

import pytest

from gateway.domain.heartbeat import (
    CheckIn,
    HeartbeatRules,
    PutOff,
    Silence,
    decide,
    quiet_until,
)

BERLIN = ZoneInfo("Europe/Berlin")
NIGHT = (time(22), time(8))
RULES = HeartbeatRules(
    interval=timedelta(minutes=30), quiet_hours=NIGHT, daily_cap=3, timezone="Europe/Berlin"
)
NOON = datetime(2026, 3, 2, 11, tzinfo=UTC)


def silence(
    *, is_busy: bool = False, day: date | None = None, count: int = 0, zone: ZoneInfo = BERLIN
) -> Silence:
    return Silence(zone=zone, is_busy=is_busy, day=day, count=count)


def berlin(text: str, *, fold: int = 0) -> datetime:
    local = datetime.fromisoformat(text).replace(tzinfo=BERLIN, fold=fold)
    return local.astimezone(UTC)


@pytest.mark.parametrize(
    ("now", "until"),
    [
        ("2026-03-02 21:59:59", None),
        ("2026-03-02 22:00", "2026-03-03 08:00"),
        ("2026-03-03 03:00", "2026-03-03 08:00"),
        ("2026-03-03 07:59:59", "2026-03-03 08:00"),
        ("2026-03-03 08:00", None),
        # The nights in which the clocks change.
        ("2026-03-28 23:00", "2026-03-29 08:00"),
        ("2026-03-29 03:00", "2026-03-29 08:00"),
        ("2026-10-24 23:00", "2026-10-25 08:00"),
    ],
)
def test_m22_quiet_hours_are_those_of_the_chats_zone(now: str, until: str | None) -> None:
    found = quiet_until(NIGHT, BERLIN, now=berlin(now))
    assert found == (None if until is None else berlin(until))


def test_m22_the_zone_of_the_machine_decides_nothing() -> None:
    now = datetime(2026, 3, 2, 21, 30, tzinfo=UTC)
    assert quiet_until(NIGHT, ZoneInfo("UTC"), now=now) is None
    assert quiet_until(NIGHT, BERLIN, now=now) == datetime(2026, 3, 3, 7, tzinfo=UTC)


def test_hours_within_a_day_are_quiet_between_their_ends() -> None:
    lunch = (time(12), time(14))
    assert quiet_until(lunch, BERLIN, now=berlin("2026-03-02 11:59")) is None
    assert quiet_until(lunch, BERLIN, now=berlin("2026-03-02 12:00")) == berlin("2026-03-02 14:00")
    assert quiet_until(lunch, BERLIN, now=berlin("2026-03-02 14:00")) is None


def test_equal_ends_are_never_quiet() -> None:
    for hour in range(24):
        now = NOON + timedelta(hours=hour)
        assert quiet_until((time(8), time(8)), BERLIN, now=now) is None


def test_an_end_that_comes_twice_or_is_jumped_over_lies_ahead() -> None:
    again = quiet_until((time(22), time(2, 45)), BERLIN, now=berlin("2026-10-25 02:30", fold=1))
    assert again == berlin("2026-10-25 02:45", fold=1)
    jumped = quiet_until((time(22), time(2, 30)), BERLIN, now=berlin("2026-03-29 01:00"))
    assert jumped == datetime(2026, 3, 29, 1, tzinfo=UTC)


def test_a_check_in_counts_for_the_local_day() -> None:
    late = berlin("2026-03-03 00:30")
    rules = HeartbeatRules(
        interval=RULES.interval, quiet_hours=(time(4), time(5)), daily_cap=3, timezone="UTC"
    )
    today = date(2026, 3, 3)
    assert decide(rules, silence(), now=late) == CheckIn(day=today, count=1)
    yesterday = silence(day=date(2026, 3, 2), count=3)
    assert decide(rules, yesterday, now=late) == CheckIn(day=today, count=1)
    assert decide(rules, silence(day=today, count=2), now=late) == CheckIn(day=today, count=3)


def test_after_the_cap_it_waits_for_the_next_local_day() -> None:
    spent = silence(day=date(2026, 3, 2), count=3)
    assert decide(RULES, spent, now=NOON) == PutOff(until=berlin("2026-03-03 00:00"))


def test_m20_a_busy_chat_is_put_off_by_the_interval() -> None:
    put_off = PutOff(until=NOON + timedelta(minutes=30))
    assert decide(RULES, silence(is_busy=True), now=NOON) == put_off


def test_at_night_a_check_in_waits_for_the_morning_even_when_busy() -> None:
    now = berlin("2026-03-02 23:00")
    morning = PutOff(until=berlin("2026-03-03 08:00"))
    assert decide(RULES, silence(is_busy=True), now=now) == morning
