"""What a cron expression says, in words, as far as there are plain ones for it."""

import calendar
import re
from typing import Final

from cronsim import CronSim

from gateway.domain.cron import read_cron
from gateway.domain.schedule import DAY_NAMES

_ORDINALS: Final = ("first", "second", "third", "fourth", "fifth")
_PLAIN: Final = re.compile(r"\d+(?:,\d+)*")
_MOST_CLOCKS: Final = 6
_LAST_DAYS: Final = {"l": "last day", "lw": "last weekday"}


def describe_cron(expression: str) -> str:
    """`daily at 08:00, 14:00`, `monthly on the 1st`, `Mon-Fri`; else the fields as they stand,
    with the days of the week, since numbers are misread easily.
    """
    clocks = _clocks(expression)
    days = _days(expression)
    if clocks is None or days is None:
        named = _week(expression)
        return f"cron {expression}" + (f" ({named})" if named else "")
    return f"{days} at {', '.join(clocks)}" if len(clocks) > 1 else days


def day_list(days: list[int]) -> str:
    """`Mon, Wed`, and a run of three or more as `Mon-Fri`."""
    is_run = len(days) > 2 and days == list(range(days[0], days[-1] + 1))
    if is_run:
        return f"{DAY_NAMES[days[0]]}-{DAY_NAMES[days[-1]]}"
    return ", ".join(DAY_NAMES[day] for day in days)


def _clocks(expression: str) -> list[str] | None:
    """The times of the day, if they are few and written out."""
    minutes, hours = expression.split()[:2]
    if not (_PLAIN.fullmatch(minutes) and _PLAIN.fullmatch(hours)):
        return None
    parsed = read_cron(expression)
    clocks = [f"{h:02}:{m:02}" for h in sorted(parsed.hours) for m in sorted(parsed.minutes)]
    return clocks if len(clocks) <= _MOST_CLOCKS else None


def _days(expression: str) -> str | None:
    """On which days, if only one of the fields tells."""
    _, _, of_month, months, of_week = expression.split()
    match of_month, months, of_week:
        case "*", "*", "*":
            return "daily"
        case "*", "*", _:
            named = _week(expression)
            return f"monthly on the {named}" if "#" in of_week or "l" in of_week else named
        case _, "*", "*":
            dates = _LAST_DAYS.get(of_month) or _numbers(of_month)
            return None if dates is None else f"monthly on the {dates}"
        case _, _, "*" if of_month.isdecimal() and _PLAIN.fullmatch(months):
            names = [calendar.month_abbr[month] for month in sorted(read_cron(expression).months)]
            if len(names) == 1:
                return f"yearly on {int(of_month)} {names[0]}"
            return f"on the {_numbers(of_month)} of {', '.join(names)}"
        case _:
            return None


def _numbers(of_month: str) -> str | None:
    """`1st, 15th`."""
    if not _PLAIN.fullmatch(of_month):
        return None
    return ", ".join(f"{day}{_suffix(day)}" for day in sorted(set(map(int, of_month.split(",")))))


def _suffix(day: int) -> str:
    if day in (11, 12, 13):
        return "th"
    return {1: "st", 2: "nd", 3: "rd"}.get(day % 10, "th")


def _week(expression: str) -> str:
    """The days of the week that an expression names; "" if it leaves them open."""
    if expression.split()[4] == "*":
        return ""
    parsed = read_cron(expression)
    plain = sorted({(item - 1) % 7 for item in parsed.weekdays if isinstance(item, int)})
    names = [day_list(plain)] if plain else []
    for item in sorted(parsed.weekdays, key=str):
        if isinstance(item, tuple):
            day, nth = item
            which = "last" if nth == CronSim.LAST else _ORDINALS[nth - 1]
            names.append(f"{which} {DAY_NAMES[(day - 1) % 7]}")
    return ", ".join(names)
