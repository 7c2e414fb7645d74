"""When a job is due: schedules, the next slot, and how both are written for people."""

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from zoneinfo import ZoneInfo


@dataclass(frozen=True, slots=True, kw_only=True)
class At:
    """Once, at an instant (aware UTC)."""

    at: datetime


Schedule = At
"""All kinds of schedule; each is stored with an IANA zone beside it."""


def to_millis(moment: datetime) -> int:
    """An aware moment as the integer milliseconds that tables and JSON hold."""
    return round(moment.timestamp() * 1000)


def from_millis(millis: int) -> datetime:
    """The aware UTC moment of stored milliseconds."""
    return datetime.fromtimestamp(millis / 1000, UTC)


def schedule_to_json(schedule: Schedule) -> str:
    """The stored form."""
    return json.dumps({"kind": "at", "at": to_millis(schedule.at)}, separators=(",", ":"))


def schedule_from_json(text: str) -> Schedule:
    """Read the stored form; raises ValueError when the row is damaged."""
    try:
        fields = json.loads(text)
    except RecursionError as error:
        raise ValueError("not a schedule") from error
    if not isinstance(fields, dict) or fields.get("kind") != "at":
        raise ValueError("not a schedule")
    at = fields.get("at")
    if not isinstance(at, int) or isinstance(at, bool):
        raise ValueError("not a schedule")
    try:
        return At(at=from_millis(at))
    except (OverflowError, OSError) as error:
        raise ValueError("not a moment") from error


def next_slot(schedule: Schedule, *, after: datetime) -> datetime | None:
    """The first slot later than `after`; None = there is none any more."""
    return schedule.at if schedule.at > after else None


def local_time(moment: datetime, zone: ZoneInfo, *, now: datetime) -> str:
    """`Tue 1 Dec 09:00`, with the seconds if not zero and the year if another than today's."""
    local = moment.astimezone(zone)
    year = f" {local.year}" if local.year != now.astimezone(zone).year else ""
    clock = local.strftime("%H:%M:%S") if local.second else local.strftime("%H:%M")
    return f"{local:%a} {local.day} {local:%b}{year} {clock}"
