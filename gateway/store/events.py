"""The journal of state changes, and the guarded update that every transition goes through."""

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from functools import cache
from typing import Any

from sqlalchemy import Connection, Table, Update, bindparam, insert, update

from gateway.domain.delivery import CHUNK_MOVES, DELIVERY_MOVES
from gateway.domain.job import JOB_MOVES
from gateway.domain.schedule import from_millis, to_millis
from gateway.domain.state import check_move
from gateway.domain.turn import RUN_MOVES, TURN_MOVES
from gateway.errors import StaleStateError
from gateway.store.schema import events

MOVES: Mapping[str, Mapping[Any, frozenset[Any]]] = {
    "turns": TURN_MOVES,
    "runs": RUN_MOVES,
    "jobs": JOB_MOVES,
    "deliveries": DELIVERY_MOVES,
    "chunks": CHUNK_MOVES,
}
"""What each table's state machine draws; nothing else can be written."""

_INSERT_EVENT = insert(events)
_NEVER = from_millis(0)


def record_event(
    connection: Connection,
    subject: Table,
    subject_id: int,
    move: tuple[StrEnum | None, StrEnum],
    *,
    now: datetime,
    reason: str | None = None,
) -> None:
    """Append one state change (`move` = before, after) to the journal."""
    before, after = move
    connection.execute(
        _INSERT_EVENT,
        {
            "at": to_millis(now),
            "subject": subject.name,
            "subject_id": subject_id,
            "before": before,
            "after": after,
            "reason": reason,
        },
    )


@cache
def _guarded_update(table: Table) -> Update:
    return update(table).where(
        table.c.id == bindparam("row_id"), table.c.state == bindparam("before")
    )


def save_transition(
    connection: Connection,
    table: Table,
    row_id: int,
    move: tuple[StrEnum, StrEnum],
    values: Mapping[str, object],
    *,
    now: datetime,
) -> None:
    """Write a state change and its event if the row still stands where it was read.

    Raises IllegalTransitionError for a move that is not drawn, and StaleStateError unless exactly
    that row moved.
    """
    before, after = move
    check_move(MOVES[table.name], before, after)
    parameters = {"row_id": row_id, "before": before, "state": after, **values}
    if connection.execute(_guarded_update(table), parameters).rowcount != 1:
        raise StaleStateError(f"{table.name} {row_id} is not {before} any more")
    reason = values.get("reason")
    record_event(
        connection,
        table,
        row_id,
        move,
        now=now,
        reason=reason if isinstance(reason, str) else None,
    )


def millis(moment: datetime | None) -> int | None:
    """The stored form of a moment that may be absent."""
    return None if moment is None else to_millis(moment)


def read_moment(stored: object) -> datetime:
    """The moment of a stored form that may be damaged: then the beginning of time counting."""
    try:
        return from_millis(stored) if isinstance(stored, int) else _NEVER
    except (OverflowError, OSError, ValueError):
        return _NEVER


def moment(stored: int | None) -> datetime | None:
    """The moment of a stored form that may be absent."""
    return None if stored is None else from_millis(stored)
