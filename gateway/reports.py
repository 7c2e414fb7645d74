"""What the reading commands show, from the store alone: no lock is taken, nothing is made."""

import sqlite3
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import TypeVar

from sqlalchemy import Connection
from sqlalchemy.exc import SQLAlchemyError

from gateway.domain.message import ChannelName
from gateway.front import layout_of
from gateway.live import status_record
from gateway.settings import Settings
from gateway.store.database import classify, open_engine
from gateway.store.listings import Counts, load_counts
from gateway.store.opening import check_database

T = TypeVar("T")

Record = Mapping[str, object]

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
    sections = ("host", "queue", "jobs", "deliveries")
    return "\n".join([*lines, *(f"{name}: {_fields(record[name])}" for name in sections)])


def write_records(records: list[dict[str, object]]) -> str:
    """A list for people, one line each."""
    return "\n".join(_fields(record) for record in records) if records else "There is nothing."


def _fields(record: object) -> str:
    if not isinstance(record, Mapping):
        return str(record)
    shown = {
        key: _when(value) if key.endswith("_at") and value is not None else value
        for key, value in record.items()
        if value is not None and value != []
    }
    return ", ".join(f"{key} {value}" for key, value in shown.items())


def _when(millis: object) -> str:
    if not isinstance(millis, int):
        return str(millis)
    return datetime.fromtimestamp(millis / 1000).astimezone().strftime("%Y-%m-%d %H:%M:%S")
