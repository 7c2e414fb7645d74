"""Time zones by the names that people give them."""

from collections.abc import Mapping
from functools import cache
from zoneinfo import available_timezones

from gateway.domain.letters import plain_letters

# Files of the zone database that name no place.
_NO_PLACES = frozenset({"Factory", "localtime", "posixrules"})
_UNIVERSAL = frozenset({"UTC", "GMT"})


def find_zones(words: str) -> tuple[str, ...]:
    """The IANA names that the words may mean, sorted; none = there is no such zone.

    A whole name in any case, with spaces for underscores, or the city alone.
    """
    wanted = plain_letters(words).replace(" ", "_").strip("/_")
    named = _by_name().get(wanted)
    return (named,) if named is not None else _by_city().get(wanted, ())


@cache
def _by_name() -> Mapping[str, str]:
    return {plain_letters(name): name for name in available_timezones() if _is_place(name)}


@cache
def _by_city() -> Mapping[str, tuple[str, ...]]:
    cities: dict[str, list[str]] = {}
    for name in sorted(_by_name().values()):
        region, _, city = name.rpartition("/")
        if region and region != "Etc":
            cities.setdefault(plain_letters(city), []).append(name)
    return {city: tuple(names) for city, names in cities.items()}


def _is_place(name: str) -> bool:
    """Not an abbreviation: `EST` is an hour off all summer for those who would write it."""
    if name in _NO_PLACES:
        return False
    return "/" in name or name in _UNIVERSAL or not name.isupper()
