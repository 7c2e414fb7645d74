"""Time zones by the names that people give them."""

from zoneinfo import ZoneInfo, available_timezones

import pytest

from gateway.domain.zones import find_zones


@pytest.mark.parametrize(
    ("words", "name"),
    [
        ("Europe/Berlin", "Europe/Berlin"),
        ("europe/BERLIN", "Europe/Berlin"),
        ("  berlin ", "Europe/Berlin"),
        ("new york", "America/New_York"),
        ("America/New York", "America/New_York"),
        ("Zürich", "Europe/Zurich"),
        ("são paulo", "America/Sao_Paulo"),
        ("Lord Howe", "Australia/Lord_Howe"),
        ("port-au-prince", "America/Port-au-Prince"),
        ("utc", "UTC"),
    ],
)
def test_a_zone_is_found_by_its_name_or_its_city(words: str, name: str) -> None:
    assert find_zones(words) == (name,)


def test_of_several_zones_with_the_same_city_each_is_named() -> None:
    assert find_zones("Louisville") == ("America/Kentucky/Louisville", "America/Louisville")


@pytest.mark.parametrize(
    "words",
    ["", " ", "/", "_", "Atlantis", "Europe", "Europe/", "+2", "../../etc/passwd", "a" * 5000],
)
def test_what_is_no_zone_is_not_found(words: str) -> None:
    assert find_zones(words) == ()


@pytest.mark.parametrize("words", ["EST", "est", "MST", "CET", "EST5EDT", "Factory", "localtime"])
def test_an_abbreviation_is_not_taken_since_it_would_ignore_the_summer(words: str) -> None:
    assert find_zones(words) == ()


def test_every_name_that_has_a_region_is_found_as_it_stands() -> None:
    named = [name for name in available_timezones() if "/" in name]
    assert [name for name in named if find_zones(name) != (name,)] == []


def test_what_is_found_can_be_used() -> None:
    for words in ("berlin", "utc", "samoa"):
        for name in find_zones(words):
            assert ZoneInfo(name).key == name
