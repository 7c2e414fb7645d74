"""What fired slots and their deliveries mean for each other."""

from datetime import datetime

from sqlalchemy import Connection, bindparam, select, update

from gateway.domain.delivery import DeliveryId, DeliveryState
from gateway.domain.job import DueReminder, JobId, JobState
from gateway.domain.message import ChatKey
from gateway.domain.schedule import from_millis, to_millis
from gateway.store.database import Topic, Transaction
from gateway.store.events import record_event
from gateway.store.schema import jobs, turns

_DUE_REMINDERS = (
    select(turns.c.text, turns.c.slot_at, jobs.c.id, jobs.c.timezone)
    .join(jobs, jobs.c.id == turns.c.job_id)
    .where(turns.c.delivery_id == bindparam("delivery"), jobs.c.state != JobState.CANCELLED)
    .order_by(turns.c.slot_at, turns.c.id)
)
_ENDING_JOBS = (
    select(jobs.c.id, jobs.c.state, jobs.c.chat_key)
    .join(turns, turns.c.job_id == jobs.c.id)
    .where(
        turns.c.delivery_id == bindparam("delivery"),
        jobs.c.next_slot_at.is_(None),
        jobs.c.state.in_((JobState.ACTIVE, JobState.PAUSED)),
    )
)


def due_reminders(connection: Connection, delivery: DeliveryId) -> list[DueReminder]:
    """The slots whose text a delivery carries, oldest first, without those of cancelled jobs."""
    rows = connection.execute(_DUE_REMINDERS, {"delivery": delivery}).all()
    return [
        DueReminder(
            job_id=JobId(row.id),
            text=row.text,
            slot_at=from_millis(row.slot_at),
            timezone=row.timezone,
        )
        for row in rows
    ]


def settle_jobs(
    tx: Transaction, delivery: DeliveryId, end: DeliveryState, *, now: datetime
) -> None:
    """End the one-shots whose slot a settled delivery carried: done if it arrived, else failed.

    A job that was given another slot meanwhile is left alone.
    """
    arrived = end in (DeliveryState.SENT, DeliveryState.PARTIAL)
    after = JobState.DONE if arrived else JobState.FAILED
    rows = tx.connection.execute(_ENDING_JOBS, {"delivery": delivery}).all()
    for row in rows:
        reason = None if arrived else "not_delivered"
        moved = tx.connection.execute(
            update(jobs)
            .where(jobs.c.id == row.id, jobs.c.state == row.state, jobs.c.next_slot_at.is_(None))
            .values(state=after, reason=reason, ended_at=to_millis(now))
        )
        if moved.rowcount:
            move = (JobState(row.state), after)
            record_event(tx.connection, jobs, row.id, move, now=now, reason=reason)
            tx.touch(Topic.JOBS, ChatKey.parse(row.chat_key))
