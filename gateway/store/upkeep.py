"""Taking away what ended long ago."""

from datetime import datetime

from sqlalchemy import ColumnElement, Connection, Table, delete, select

from gateway.domain.schedule import to_millis
from gateway.store.database import Transaction
from gateway.store.schema import chunks, deliveries, events, jobs, messages, runs, tool_calls, turns

_BATCH = 200

_IS_UNSETTLED = (
    select(deliveries.c.id)
    .where(deliveries.c.id == turns.c.delivery_id, deliveries.c.settled_at.is_(None))
    .exists()
)
_IS_NAMED = select(turns.c.id).where(turns.c.delivery_id == deliveries.c.id).exists()
_HAS_TURN = select(turns.c.id).where(turns.c.job_id == jobs.c.id).exists()


def purge(tx: Transaction, *, before: datetime) -> int:
    """Delete up to 200 rows a table that ended before then; call again until it returns 0.

    What is still open, or belongs to something open, stays.
    """
    at = to_millis(before)
    connection = tx.connection
    # A turn goes with its delivery at the earliest, so that each can still name the other.
    old_turns = _ids(connection, turns, turns.c.ended_at < at, ~_IS_UNSETTLED)
    removed = _delete(connection, tool_calls, tool_calls.c.turn_id, old_turns)
    removed += _delete(connection, runs, runs.c.turn_id, old_turns)
    removed += _delete(connection, messages, messages.c.turn_id, old_turns)
    removed += _delete(connection, turns, turns.c.id, old_turns)
    loose = _ids(connection, messages, messages.c.received_at < at, messages.c.turn_id.is_(None))
    removed += _delete(connection, messages, messages.c.id, loose)
    old_deliveries = _ids(connection, deliveries, deliveries.c.settled_at < at, ~_IS_NAMED)
    removed += _delete(connection, chunks, chunks.c.delivery_id, old_deliveries)
    removed += _delete(connection, deliveries, deliveries.c.id, old_deliveries)
    old_jobs = _ids(connection, jobs, jobs.c.ended_at < at, ~_HAS_TURN)
    removed += _delete(connection, jobs, jobs.c.id, old_jobs)
    old_events = _ids(connection, events, events.c.at < at)
    return removed + _delete(connection, events, events.c.id, old_events)


def _ids(connection: Connection, table: Table, *conditions: ColumnElement[bool]) -> list[int]:
    query = select(table.c.id).where(*conditions).limit(_BATCH)
    return list(connection.execute(query).scalars())


def _delete(
    connection: Connection, table: Table, column: ColumnElement[int], ids: list[int]
) -> int:
    if not ids:
        return 0
    return connection.execute(delete(table).where(column.in_(ids))).rowcount
