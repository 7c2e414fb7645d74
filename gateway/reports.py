"""What the reading commands show, from the store alone: no lock is taken, nothing is made."""

import json
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import TypeVar
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from sqlalchemy import Connection
from sqlalchemy.exc import SQLAlchemyError

from gateway.domain.job import one_line
from gateway.domain.message import ChannelName
from gateway.domain.schedule import from_millis
from gateway.domain.schedule_forms import describe, schedule_from_json
from gateway.front import layout_of
from gateway.live import status_record
from gateway.settings import Settings
from gateway.store.database import classify, open_engine
from gateway.store.listings import Counts, load_counts
from gateway.store.opening import check_database

T = TypeVar("T")

Record = Mapping[str, object]

_SHOWN_TEXT = 100

_EMPTY = Counts(
    queued=0,
    running=0,
    active=0,
    paused=0,
    failed_jobs=0,
    overdue=0,
    next_slot_at=None,
    pending=0,
    unknown=0,
    failed_deliveries=0,
)


def read_store(settings: Settings, query: Callable[[Connection], list[T]]) -> list[T]:
    """Run a query on the store as it is now; no database yet = nothing.

    Raises NewerDatabaseError or CorruptDatabaseError.
    """
    path = layout_of(settings).database
    if not path.exists() or check_database(path) is None:
        return []
    engine = open_engine(path, is_read_only=True)
    try:
        with engine.connect() as connection, connection.begin():
            return query(connection)
    except (SQLAlchemyError, sqlite3.Error) as error:
        raise classify(error) from error
    finally:
        engine.dispose()


def stopped_status(settings: Settings) -> dict[str, object]:
    """The status of a gateway that does not run, from its settings and its store."""
    now = datetime.now(UTC)
    counts = read_store(settings, lambda connection: [load_counts(connection, now=now)])
    configured = []
    if settings.telegram_bot_token is not None:
        configured.append(ChannelName.TELEGRAM)
    if settings.whatsapp_enabled:
        configured.append(ChannelName.WHATSAPP)
    kind = settings.resolved_host_kind
    return status_record(
        counts[0] if counts else _EMPTY,
        pid=None,
        since=None,
        channels=[
            {"name": name, "state": "stopped", "reason": None, "last_ok_at": None}
            for name in configured
        ],
        host={
            "kind": kind,
            "model": settings.model_name,
            "state": "stopped",
            "sessions": 0,
            "busy": 0,
        },
        last_look_at=None,
    )


def write_status(record: Record) -> str:
    """The status for people."""
    lines = []
    if record["running"]:
        lines.append(f"Running since {_when(record['since'])} (process {record['pid']}).")
    else:
        lines.append("Not running. Start it with: gateway")
    channels = record["channels"]
    for channel in channels if isinstance(channels, list) else []:
        reason = f" ({channel['reason']})" if channel["reason"] else ""
        lines.append(f"{channel['name']}: {channel['state']}{reason}")
    sections = ("host", "queue", "jobs", "scheduler", "deliveries")
    told = ((name, _fields(record[name])) for name in sections)
    return "\n".join([*lines, *(f"{name}: {fields}" for name, fields in told if fields)])


def write_reminders(records: Sequence[Record], timezone: str) -> str:
    """The reminders for people, one line each, in their own zones."""
    lines = []
    for record in records:
        zone = str(record["timezone"])
        slot = record["next_slot_at"] or record["last_slot_at"] or _planned(record["schedule"])
        text = one_line(str(record["text"]), limit=_SHOWN_TEXT)
        when = _when(slot, zone)
        lines.append(
            f"#{record['id']} {when} ({zone}){_rhythm(record['schedule'], zone)}: {text}"
            f" [{record['state']}] {record['chat_key']}"
        )
    return _listed(lines)


def _rhythm(schedule: object, zone: str) -> str:
    """How often, as a person is told in the chat; "" also for what cannot be read."""
    try:
        read = schedule_from_json(json.dumps(schedule))
        told = describe(read, ZoneInfo(zone), now=datetime.now(UTC))
    except (ValueError, OSError, ZoneInfoNotFoundError):
        return ""
    return f", {told}" if told else ""


def write_turns(records: Sequence[Record], timezone: str) -> str:
    """The turns for people: what became of each, its runs and its delivery."""
    lines = []
    for record in records:
        runs = record["runs"]
        tries = "; ".join(_run_words(run) for run in runs) if isinstance(runs, list) else ""
        delivery = f"; delivery {record['delivery_id']} {record['delivery_state']}"
        job = f" for #{record['job_id']}" if record["job_id"] else ""
        lines.append(
            f"{record['id']} {record['chat_key']} {record['trigger']}{job}: "
            f"{record['state']}{_because(record['reason'])}"
            f"{f'; {tries}' if tries else ''}{delivery if record['delivery_id'] else ''}"
        )
    return _listed(lines)


def write_deliveries(records: Sequence[Record], timezone: str) -> str:
    """The deliveries for people: when, where, what kind, and what became of it."""
    lines = []
    for record in records:
        chunks = record["chunks"]
        count = len(chunks) if isinstance(chunks, list) else 0
        parts = f", {count} parts" if count > 1 else ""
        lines.append(
            f"{record['id']} {_when(record['created_at'], timezone)} {record['chat_key']} "
            f"{record['kind']}: {record['state']}{_because(record['reason'])}"
            f" ({record['attempts']} sends{parts})"
        )
    return _listed(lines)


def _listed(lines: list[str]) -> str:
    return "\n".join(lines) if lines else "There is nothing."


def _run_words(run: Record) -> str:
    model = f" on {run['model']}" if run["model"] else ""
    error = f": {one_line(str(run['error']), limit=_SHOWN_TEXT)}" if run["error"] else ""
    return f"run {run['id']}{model} {run['state']}{_because(run['reason'])}{error}"


def _because(reason: object) -> str:
    return f" ({reason})" if reason else ""


def _planned(schedule: object) -> object:
    return schedule.get("at") if isinstance(schedule, Mapping) else None


def _fields(record: object) -> str:
    if not isinstance(record, Mapping):
        return str(record)
    shown = {
        key: _when(value) if key.endswith("_at") and value is not None else value
        for key, value in record.items()
        if value is not None and value != []
    }
    return ", ".join(f"{key} {value}" for key, value in shown.items())


def _when(millis: object, timezone: str | None = None) -> str:
    if not isinstance(millis, int):
        return "-"
    moment = from_millis(millis)
    zone = ZoneInfo(timezone) if timezone else None
    return moment.astimezone(zone).strftime("%a %d %b %Y %H:%M:%S")
