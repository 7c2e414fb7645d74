"""The turns of a job's slots: one for each, and what its end means for the job."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, bindparam, or_, select, update

from gateway.domain.delivery import DeliveryId, DeliveryState
from gateway.domain.job import Job, JobId, JobState
from gateway.domain.message import ChatKey
from gateway.domain.schedule import to_millis
from gateway.domain.turn import Trigger, TurnId, TurnState
from gateway.store.database import Topic, Transaction, upsert
from gateway.store.events import record_event, save_transition
from gateway.store.schema import deliveries, jobs, turns

MAX_FAILED_SLOTS = 10
"""A job of which so many slots in a row failed is switched off."""

FAILING = "failing"
"""Reason of a job that was switched off because its slots kept failing."""

NOT_DELIVERED = "not_delivered"
"""Reason of a job whose last slot did not reach the person."""

_OPEN = (TurnState.QUEUED, TurnState.RUNNING)
_UNSETTLED = (DeliveryState.PENDING, DeliveryState.SENDING)

_SLOTS = (
    select(jobs, turns.c.state.label("turn_state"))
    .join(turns, turns.c.job_id == jobs.c.id)
    .where(
        turns.c.delivery_id == bindparam("delivery"),
        jobs.c.state.in_((JobState.ACTIVE, JobState.PAUSED)),
    )
    .order_by(turns.c.slot_at, turns.c.id)
)
_OTHER_SLOT = (
    select(turns.c.id)
    .outerjoin(deliveries, deliveries.c.id == turns.c.delivery_id)
    .where(
        turns.c.job_id == bindparam("job"),
        or_(turns.c.state.in_(_OPEN), deliveries.c.state.in_(_UNSETTLED)),
    )
    .limit(1)
)
_COUNT_FAILED = update(jobs).where(jobs.c.id == bindparam("job"))
_INSERT_TURN = upsert(turns).on_conflict_do_nothing().returning(turns.c.id)


@dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    """A time of a job, and the key under which it has one turn at most."""

    at: datetime
    key: str


def planned_slot(job: Job, at: datetime) -> Slot:
    """A slot of the job's own schedule."""
    return Slot(at=at, key=f"job:{job.id}:{to_millis(at)}")


def insert_turn(
    connection: Connection,
    job: Job,
    slot: Slot,
    state: TurnState,
    *,
    reason: str | None = None,
    now: datetime,
) -> TurnId | None:
    """Store the turn of a slot, with the job's text as it is now; None = it is there already."""
    turn = connection.execute(
        _INSERT_TURN,
        {
            "chat_key": str(job.chat),
            "trigger": Trigger.JOB,
            "source_key": slot.key,
            "state": state,
            "reason": reason,
            "text": job.text,
            "job_id": job.id,
            "slot_at": to_millis(slot.at),
            "created_at": to_millis(now),
            "ended_at": None if state in _OPEN else to_millis(now),
        },
    ).scalar_one_or_none()
    if turn is None:
        return None
    record_event(connection, turns, turn, (None, state), now=now, reason=reason)
    return TurnId(turn)


@dataclass(frozen=True, slots=True, kw_only=True)
class SwitchedOff:
    """A job that was switched off after too many failed slots, for the notice that says so."""

    job_id: JobId
    text: str


def settle_jobs(
    tx: Transaction, delivery: DeliveryId, end: DeliveryState, *, now: datetime
) -> tuple[SwitchedOff, ...]:
    """Note for each job whose slot a settled delivery carried how that slot ended.

    A slot that failed is counted, one that arrived ends the count; after ten in a row the job is
    failed, and returned. A job of which nothing is to come any more, and nothing else is on its
    way, is over: done if the slot arrived, else failed.
    """
    rows = tx.connection.execute(_SLOTS, {"delivery": delivery}).all()
    by_job: dict[int, list[Row[Any]]] = {}
    for row in rows:
        by_job.setdefault(row.id, []).append(row)
    switched = [_settle(tx, slots, end, now=now) for slots in by_job.values()]
    return tuple(off for off in switched if off is not None)


def _settle(
    tx: Transaction, slots: list[Row[Any]], end: DeliveryState, *, now: datetime
) -> SwitchedOff | None:
    job = slots[0]
    failed = _failed_in_a_row(slots, end)
    if failed != job.failed_slots:
        tx.connection.execute(_COUNT_FAILED, {"job": job.id, "failed_slots": failed})
    if job.next_slot_at is not None:
        if failed < MAX_FAILED_SLOTS:
            return None
        _end(tx, job, JobState.FAILED, reason=FAILING, now=now)
        text = job.text if isinstance(job.text, str) else ""
        return SwitchedOff(job_id=JobId(job.id), text=text)
    if not _has_other_slot(tx.connection, JobId(job.id)):
        arrived = end in (DeliveryState.SENT, DeliveryState.PARTIAL)
        after = JobState.DONE if arrived else JobState.FAILED
        _end(tx, job, after, reason=None if arrived else NOT_DELIVERED, now=now)
    return None


def _failed_in_a_row(slots: list[Row[Any]], end: DeliveryState) -> int:
    """The count of failed slots, these included. What was taken back unsent counts as neither."""
    failed: int = slots[0].failed_slots
    for slot in slots:
        if end is DeliveryState.FAILED or slot.turn_state == TurnState.FAILED:
            failed += 1
        elif end in (DeliveryState.SENT, DeliveryState.PARTIAL):
            failed = 0
    return failed


def _has_other_slot(connection: Connection, job: JobId) -> bool:
    """Whether a turn of the job is open, or its text still on its way."""
    return connection.execute(_OTHER_SLOT, {"job": job}).first() is not None


def _end(
    tx: Transaction, job: Row[Any], after: JobState, *, reason: str | None, now: datetime
) -> None:
    values = {"next_slot_at": None, "reason": reason, "ended_at": to_millis(now)}
    move = (JobState(job.state), after)
    save_transition(tx.connection, jobs, job.id, move, values, now=now)
    tx.touch(Topic.JOBS, ChatKey.parse(job.chat_key))
