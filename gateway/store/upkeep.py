"""Taking away what ended long ago."""

from datetime import datetime

from sqlalchemy import ColumnElement, Connection, Table, delete, or_, select

from gateway.domain.schedule import to_millis
from gateway.store.database import Transaction
from gateway.store.schema import chunks, deliveries, events, jobs, messages, runs, tool_calls, turns

_BATCH = 500


def purge(tx: Transaction, *, before: datetime) -> int:
    """Delete up to 500 rows a table that ended before then; call again until it returns 0.

    What is still open, or belongs to something open, stays.
    """
    at = to_millis(before)
    connection = tx.connection
    old_turns = _ids(connection, turns, turns.c.ended_at < at)
    # A turn goes with its delivery at the earliest, so that each can still name the other.
    unsettled = select(deliveries.c.id).where(deliveries.c.settled_at.is_(None))
    old_turns = _ids(
        connection,
        turns,
        turns.c.id.in_(old_turns),
        or_(turns.c.delivery_id.is_(None), turns.c.delivery_id.not_in(unsettled)),
    )
    removed = _delete(connection, tool_calls, tool_calls.c.turn_id, old_turns)
    removed += _delete(connection, runs, runs.c.turn_id, old_turns)
    removed += _delete(connection, messages, messages.c.turn_id, old_turns)
    removed += _delete(connection, turns, turns.c.id, old_turns)
    loose = _ids(connection, messages, messages.c.received_at < at, messages.c.turn_id.is_(None))
    removed += _delete(connection, messages, messages.c.id, loose)
    still_named = select(turns.c.delivery_id).where(turns.c.delivery_id.is_not(None))
    old_deliveries = _ids(
        connection,
        deliveries,
        deliveries.c.settled_at < at,
        deliveries.c.id.not_in(still_named),
    )
    removed += _delete(connection, chunks, chunks.c.delivery_id, old_deliveries)
    removed += _delete(connection, deliveries, deliveries.c.id, old_deliveries)
    with_turns = select(turns.c.job_id).where(turns.c.job_id.is_not(None))
    old_jobs = _ids(connection, jobs, jobs.c.ended_at < at, jobs.c.id.not_in(with_turns))
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
