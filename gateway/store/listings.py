"""What `--json` and `status` show: read only, newest first."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, func, select

from gateway.domain.delivery import DeliveryKind, DeliveryState
from gateway.domain.job import JobState
from gateway.domain.message import ChatKey
from gateway.domain.schedule import from_millis, to_millis
from gateway.domain.schedule_forms import schedule_from_json
from gateway.domain.turn import TurnState
from gateway.store.schema import (
    CHUNK_IS_UNKNOWN,
    DELIVERY_HAS_FAILED,
    DELIVERY_IS_OPEN,
    JOB_IS_ACTIVE,
    JOB_IS_LISTED,
    TURN_IS_OPEN,
    chunks,
    deliveries,
    jobs,
    runs,
    turns,
)

Record = dict[str, object]
"""One JSON object as scripts read it; its keys are a contract."""


def reminder_records(connection: Connection, *, limit: int) -> list[Record]:
    """The jobs, all states within retention."""
    rows = connection.execute(select(jobs).order_by(jobs.c.id.desc()).limit(limit)).all()
    return [
        {
            "id": row.id,
            "chat_key": row.chat_key,
            "state": row.state,
            "action": row.action,
            "text": row.text if isinstance(row.text, str) else "",
            "schedule": _schedule(row.schedule),
            "timezone": row.timezone,
            "next_slot_at": row.next_slot_at,
            "tier": row.tier,
            "last_slot_at": row.last_slot_at,
            **_last_outcome(connection, row.id),
        }
        for row in rows
    ]


def turn_records(connection: Connection, *, limit: int) -> list[Record]:
    """The turns, each with its runs."""
    rows = connection.execute(
        select(turns, deliveries.c.state.label("delivery_state"))
        .join(deliveries, deliveries.c.id == turns.c.delivery_id, isouter=True)
        .order_by(turns.c.id.desc())
        .limit(limit)
    ).all()
    of_turn = _grouped(
        connection.execute(
            select(runs).where(runs.c.turn_id.in_([row.id for row in rows])).order_by(runs.c.id)
        ).all(),
        "turn_id",
    )
    return [
        {
            "id": row.id,
            "chat_key": row.chat_key,
            "trigger": row.trigger,
            "job_id": row.job_id,
            "slot_at": row.slot_at,
            "state": row.state,
            "reason": row.reason,
            "delivery_id": row.delivery_id,
            "delivery_state": row.delivery_state,
            "runs": [
                {
                    "id": run.id,
                    "state": run.state,
                    "reason": run.reason,
                    "error": run.error,
                    "model": run.model,
                    "started_at": run.started_at,
                    "ended_at": run.ended_at,
                }
                for run in of_turn.get(row.id, [])
            ],
        }
        for row in rows
    ]


def delivery_records(connection: Connection, *, limit: int) -> list[Record]:
    """The deliveries, each with its chunks."""
    rows = connection.execute(
        select(deliveries).order_by(deliveries.c.id.desc()).limit(limit)
    ).all()
    ids = [row.id for row in rows]
    of_delivery = _grouped(
        connection.execute(
            select(chunks).where(chunks.c.delivery_id.in_(ids)).order_by(chunks.c.number)
        ).all(),
        "delivery_id",
    )
    carried = _grouped(
        connection.execute(
            select(turns.c.id, turns.c.job_id, turns.c.delivery_id)
            .where(turns.c.delivery_id.in_(ids))
            .order_by(turns.c.id)
        ).all(),
        "delivery_id",
    )
    return [
        {
            "id": row.id,
            "chat_key": row.chat_key,
            "kind": row.kind,
            "state": row.state,
            "reason": row.reason,
            "attempts": row.attempts,
            "turn_ids": [turn.id for turn in carried.get(row.id, [])],
            "job_ids": [turn.job_id for turn in carried.get(row.id, []) if turn.job_id is not None],
            "created_at": row.created_at,
            "settled_at": row.settled_at,
            "chunks": [
                {
                    "number": chunk.number,
                    "state": chunk.state,
                    "external_id": chunk.external_id,
                    "sent_at": chunk.sent_at,
                }
                for chunk in of_delivery.get(row.id, [])
            ],
        }
        for row in rows
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryNote:
    """One delivery as its chat may see it."""

    kind: DeliveryKind
    state: DeliveryState
    reason: str | None
    text: str
    created_at: datetime


def chat_deliveries(
    connection: Connection, chat: ChatKey, *, limit: int
) -> tuple[DeliveryNote, ...]:
    """The newest deliveries of a chat, newest first."""
    rows = connection.execute(
        select(deliveries)
        .where(deliveries.c.chat_key == str(chat))
        .order_by(deliveries.c.id.desc())
        .limit(limit)
    ).all()
    return tuple(
        DeliveryNote(
            kind=DeliveryKind(row.kind),
            state=DeliveryState(row.state),
            reason=row.reason,
            text=row.text,
            created_at=from_millis(row.created_at),
        )
        for row in rows
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """How much of everything there is, as `status` shows it."""

    queued: int
    running: int
    active: int
    paused: int
    failed_jobs: int
    overdue: int
    next_slot_at: int | None
    pending: int
    unknown: int
    failed_deliveries: int


def load_counts(connection: Connection, *, now: datetime) -> Counts:
    """Count what is open, waiting or failed."""
    of_turns = _by_state(connection, turns.c.state, TURN_IS_OPEN)
    of_jobs = _by_state(connection, jobs.c.state, JOB_IS_LISTED)
    open_deliveries = _by_state(connection, deliveries.c.state, DELIVERY_IS_OPEN)
    failed = _by_state(connection, deliveries.c.state, DELIVERY_HAS_FAILED)
    unknown = _by_state(connection, chunks.c.state, CHUNK_IS_UNKNOWN)
    is_overdue = JOB_IS_ACTIVE & (jobs.c.next_slot_at <= to_millis(now))
    first = connection.execute(
        select(func.min(jobs.c.next_slot_at)).where(JOB_IS_ACTIVE)
    ).scalar_one()
    return Counts(
        queued=of_turns.get(TurnState.QUEUED, 0),
        running=of_turns.get(TurnState.RUNNING, 0),
        active=of_jobs.get(JobState.ACTIVE, 0),
        paused=of_jobs.get(JobState.PAUSED, 0),
        failed_jobs=of_jobs.get(JobState.FAILED, 0),
        overdue=sum(_by_state(connection, jobs.c.state, is_overdue).values()),
        next_slot_at=first,
        pending=sum(open_deliveries.values()),
        unknown=sum(unknown.values()),
        failed_deliveries=sum(failed.values()),
    )


def is_chat_settled(connection: Connection, chat: ChatKey) -> bool:
    """Whether the chat has no open turn and no open delivery."""
    open_turn = connection.execute(
        select(turns.c.id).where(turns.c.chat_key == str(chat), TURN_IS_OPEN).limit(1)
    ).first()
    open_delivery = connection.execute(
        select(deliveries.c.id).where(deliveries.c.chat_key == str(chat), DELIVERY_IS_OPEN).limit(1)
    ).first()
    return open_turn is None and open_delivery is None


def _last_outcome(connection: Connection, job: int) -> Record:
    row = connection.execute(
        select(turns.c.id, deliveries.c.state)
        .join(deliveries, deliveries.c.id == turns.c.delivery_id, isouter=True)
        .where(turns.c.job_id == job)
        .order_by(turns.c.id.desc())
        .limit(1)
    ).one_or_none()
    if row is None:
        return {"last_run_state": None, "last_delivery_state": None}
    run = connection.execute(
        select(runs.c.state).where(runs.c.turn_id == row.id).order_by(runs.c.id.desc()).limit(1)
    ).scalar_one_or_none()
    return {"last_run_state": run, "last_delivery_state": row.state}


def _schedule(stored: str) -> object:
    """The object as it is stored; null where the row is damaged."""
    try:
        schedule_from_json(stored)
    except ValueError:
        return None
    parsed: object = json.loads(stored)
    return parsed


def _grouped(rows: Sequence[Any], column: str) -> dict[int, list[Any]]:
    groups: dict[int, list[Any]] = {}
    for row in rows:
        groups.setdefault(getattr(row, column), []).append(row)
    return groups


def _by_state(
    connection: Connection, state: ColumnElement[str], condition: ColumnElement[bool]
) -> dict[str, int]:
    rows = connection.execute(select(state, func.count()).where(condition).group_by(state)).all()
    return {row[0]: row[1] for row in rows}
