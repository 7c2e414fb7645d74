"""Local calendar, and how days and the present are written in questions."""

from calendar import monthrange
from datetime import date, datetime, tzinfo

from gateway.domain.when.words import MONTH_NAMES, WEEKDAY_NAMES


def add_months(day: date, months: int) -> date:
    """The same day `months` later, or the last one of a month that is too short."""
    total = day.year * 12 + day.month - 1 + months
    year, month = divmod(total, 12)
    return date(year, month + 1, min(day.day, monthrange(year, month + 1)[1]))


def date_or_none(year: int, month: int, day: int) -> date | None:
    """The date, or None if that year has no such day."""
    return date(year, month, day) if day <= monthrange(year, month)[1] else None


def show_day(day: date) -> str:
    """A day for a sentence: "Friday 4 December"."""
    return f"{WEEKDAY_NAMES[day.weekday()]} {day.day} {MONTH_NAMES[day.month - 1]}"


def show_now(now: datetime, zone: tzinfo) -> str:
    """The present local time for a sentence: "Mon 30 Nov 2026 10:00 (Europe/Berlin)"."""
    here = now.astimezone(zone)
    weekday, month = WEEKDAY_NAMES[here.weekday()][:3], MONTH_NAMES[here.month - 1][:3]
    return f"{weekday} {here.day} {month} {here.year} {here:%H:%M} ({zone})"
