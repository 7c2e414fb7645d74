"""Short answers and delays: whatever is typed, nothing is put off to a time that is not to come."""

from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from hypothesis import given
from hypothesis import strategies as st

from gateway.domain.quick import MIN_DELAY, SnoozeUntil, read_delay, read_quick
from gateway.domain.when import Understood
from gateway.domain.zones import find_zones
from tests.fakes.clock import START

ZONES = st.sampled_from(["UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe"])
NOWS = st.integers(0, 9 * 366 * 86400).map(lambda s: START + timedelta(seconds=s))
_TYPED = (
    "ok please snooze stop done this for until in at 10 10m 1h30 9 tomorrow friday later hour "
    "minutes bis morgen um dans une heure mañana a las every day now ago 31 february ✅ { }"
)
WORDS = st.lists(st.sampled_from(_TYPED.split()), max_size=7).map(" ".join)
MOST = timedelta(days=5 * 366 + 1)


@given(text=WORDS | st.text(max_size=60), now=NOWS, zone=ZONES)
def test_what_is_put_off_is_to_come(text: str, now: datetime, zone: str) -> None:
    wish = read_quick(text, now=now, zone=ZoneInfo(zone))
    if isinstance(wish, SnoozeUntil):
        assert MIN_DELAY <= wish.at - now <= MOST
        again = read_delay(wish.said, now=now, zone=ZoneInfo(zone))
        assert isinstance(again, Understood)
        assert again.at == wish.at


@given(words=WORDS | st.text(max_size=60), now=NOWS, zone=ZONES)
def test_a_delay_is_to_come_or_is_asked_back(words: str, now: datetime, zone: str) -> None:
    when = read_delay(words, now=now, zone=ZoneInfo(zone))
    if isinstance(when, Understood):
        assert MIN_DELAY <= when.at - now <= MOST
    else:
        assert when.question


@given(words=st.text(max_size=40))
def test_a_zone_that_is_found_exists(words: str) -> None:
    for name in find_zones(words):
        assert ZoneInfo(name).key == name
