"""What fired slots and their deliveries mean for each other."""

from datetime import datetime
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from sqlalchemy import Connection, bindparam, select

from gateway.domain.delivery import DeliveryId, DeliveryState
from gateway.domain.job import DueReminder, JobId, JobState
from gateway.domain.message import ChatKey
from gateway.domain.schedule import to_millis
from gateway.store.database import Topic, Transaction
from gateway.store.events import read_moment, save_transition
from gateway.store.schema import jobs, turns

_DAMAGED_TEXT = "(its text is damaged)"

_DUE_REMINDERS = (
    select(turns.c.text, turns.c.slot_at, jobs.c.id, jobs.c.timezone)
    .join(jobs, jobs.c.id == turns.c.job_id)
    .where(turns.c.delivery_id == bindparam("delivery"), jobs.c.state != JobState.CANCELLED)
    .order_by(turns.c.slot_at, turns.c.id)
)
_ENDING_JOBS = (
    select(jobs.c.id, jobs.c.state, jobs.c.chat_key)
    .distinct()
    .join(turns, turns.c.job_id == jobs.c.id)
    .where(
        turns.c.delivery_id == bindparam("delivery"),
        jobs.c.next_slot_at.is_(None),
        jobs.c.state.in_((JobState.ACTIVE, JobState.PAUSED)),
    )
)


def due_reminders(connection: Connection, delivery: DeliveryId) -> list[DueReminder]:
    """The slots whose text a delivery carries, oldest first, without those of cancelled jobs.

    A job that was damaged since it fired is told as well as it can be, and harms no other.
    """
    rows = connection.execute(_DUE_REMINDERS, {"delivery": delivery}).all()
    return [
        DueReminder(
            job_id=JobId(row.id),
            text=row.text if isinstance(row.text, str) else _DAMAGED_TEXT,
            slot_at=read_moment(row.slot_at),
            timezone=row.timezone if _is_zone(row.timezone) else "UTC",
        )
        for row in rows
    ]


def _is_zone(stored: object) -> bool:
    try:
        return isinstance(stored, str) and ZoneInfo(stored) is not None
    except (ZoneInfoNotFoundError, OSError, ValueError):
        return False


def settle_jobs(
    tx: Transaction, delivery: DeliveryId, end: DeliveryState, *, now: datetime
) -> None:
    """End the one-shots whose slot a settled delivery carried: done if it arrived, else failed.

    A job that was given another slot meanwhile is left alone.
    """
    arrived = end in (DeliveryState.SENT, DeliveryState.PARTIAL)
    after = JobState.DONE if arrived else JobState.FAILED
    rows = tx.connection.execute(_ENDING_JOBS, {"delivery": delivery}).all()
    values = {"reason": None if arrived else "not_delivered", "ended_at": to_millis(now)}
    for row in rows:
        move = (JobState(row.state), after)
        save_transition(tx.connection, jobs, row.id, move, values, now=now)
        tx.touch(Topic.JOBS, ChatKey.parse(row.chat_key))
