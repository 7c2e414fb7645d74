"""Jobs: read from their rows, admitted, listed and cancelled, each in one commit."""

import logging
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from sqlalchemy import Connection, Row, bindparam, func, insert, select

from gateway.domain.delivery import DeliveryId, DeliveryState
from gateway.domain.job import (
    LARGEST_ID,
    MAX_CREATES_PER_MINUTE,
    MAX_OPEN_JOBS,
    Job,
    JobAction,
    JobId,
    JobState,
    MissedWindow,
    NewJob,
    Origin,
    Tier,
)
from gateway.domain.message import ChatKey
from gateway.domain.schedule import At, from_millis, is_same, to_millis
from gateway.domain.schedule_forms import schedule_from_json, schedule_to_json
from gateway.domain.turn import RunId, TurnId, TurnState
from gateway.store.database import Topic, Transaction
from gateway.store.deliveries import EndReason, drop_delivery, is_touched
from gateway.store.events import read_moment, record_event, save_transition
from gateway.store.reminders import due_reminders
from gateway.store.schema import DELIVERY_IS_OPEN, TURN_IS_OPEN, deliveries, jobs, turns
from gateway.store.stopping import cancel_turn

log = logging.getLogger(__name__)

OPEN_JOB_STATES = (JobState.ACTIVE, JobState.PAUSED)


class JobLimit(StrEnum):
    """Why a job was not taken."""

    TOO_MANY = "too_many"
    TOO_FAST = "too_fast"


@dataclass(frozen=True, slots=True, kw_only=True)
class Created:
    """A stored job; `is_new` is false when the same one was there already."""

    job: Job
    is_new: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Cancelled:
    """A cancelled job; `is_on_its_way` says that a text of it went out or is on the wire.

    The result of `runs` is void now; they may be aborted.
    """

    job: Job
    is_on_its_way: bool
    runs: tuple[RunId, ...] = ()

    def told(self, now: datetime) -> str:
        """What the person is told of it."""
        text = f"Cancelled: {self.job.line(now=now)}"
        if self.is_on_its_way:
            text += "\nIts text was on its way already, so it may still arrive."
        return text


JOB_OF_CHAT = select(jobs).where(
    jobs.c.chat_key == bindparam("chat"), jobs.c.id == bindparam("job")
)


def is_id(number: int) -> bool:
    """Whether a number that somebody gave can be the id of a row at all."""
    return 0 < number <= LARGEST_ID


def load_job(row: Row[Any]) -> Job:
    """A job from its row; raises ValueError when the row is damaged."""
    if not isinstance(row.text, str) or not isinstance(row.timezone, str):
        raise ValueError("not a text")
    try:
        ZoneInfo(row.timezone)
        return Job(
            id=JobId(row.id),
            chat=ChatKey.parse(row.chat_key),
            state=JobState(row.state),
            action=JobAction(row.action),
            text=row.text,
            schedule=schedule_from_json(row.schedule),
            timezone=row.timezone,
            next_slot_at=_moment(row.next_slot_at),
            last_slot_at=_moment(row.last_slot_at),
            created_at=from_millis(_count(row.created_at)),
            tier=Tier(row.tier),
            asked_tier=Tier(row.asked_tier),
            missed=MissedWindow(row.missed),
            fired=_count(row.fired),
            failed_slots=_count(row.failed_slots),
            origin=_origin(row),
            snoozed_from=None if row.snoozed_from is None else TurnId(_count(row.snoozed_from)),
        )
    except (ZoneInfoNotFoundError, OSError, OverflowError, TypeError) as error:
        raise ValueError(f"job {row.id} is damaged") from error


def salvage_job(row: Row[Any]) -> Job:
    """A job, or what can still be shown of one that is damaged, so that a person can name and
    cancel it: a one-shot that may do nothing.
    """
    try:
        return load_job(row)
    except ValueError:
        log.warning("job_damaged", extra={"job": row.id})
    text = row.text if isinstance(row.text, str) else ""
    created = read_moment(row.created_at)
    is_due = isinstance(row.next_slot_at, int)
    return Job(
        id=JobId(row.id),
        chat=ChatKey.parse(row.chat_key),
        state=JobState(row.state) if row.state in set(JobState) else JobState.FAILED,
        action=JobAction.MESSAGE,
        text=f"{text} (damaged)",
        schedule=At(at=created),
        timezone="UTC",
        next_slot_at=read_moment(row.next_slot_at) if is_due else None,
        last_slot_at=None,
        created_at=created,
        tier=Tier.READ_ONLY,
        asked_tier=Tier.READ_ONLY,
        missed=MissedWindow.CATCH_UP_ONE,
        fired=0,
        failed_slots=0,
        origin=None,
        snoozed_from=None,
    )


def _count(stored: object) -> int:
    """A whole number to which one more can be added."""
    if not isinstance(stored, int) or abs(stored) >= LARGEST_ID:
        raise TypeError("not a whole number")
    return stored


def _moment(stored: object) -> datetime | None:
    """A moment; a fraction would never be found again by the row that it stands in."""
    return None if stored is None else from_millis(_count(stored))


def _origin(row: Row[Any]) -> Origin | None:
    if row.origin_text is None or row.origin_at is None:
        return None
    if not isinstance(row.origin_text, str):
        raise TypeError("not a text")
    return Origin(text=row.origin_text, sent_at=from_millis(row.origin_at))


def find_job(connection: Connection, chat: ChatKey, job_id: int) -> Row[Any] | None:
    """The row of a chat's own job; None = it has no such job."""
    if not is_id(job_id):
        return None
    return connection.execute(JOB_OF_CHAT, {"chat": str(chat), "job": job_id}).one_or_none()


def get_job(connection: Connection, chat: ChatKey, job_id: int) -> Job | None:
    """A chat's own job in any state, a damaged one as far as it can be shown."""
    row = find_job(connection, chat, job_id)
    return None if row is None else salvage_job(row)


def create_job(tx: Transaction, new: NewJob, *, now: datetime) -> Created | JobLimit:
    """Store a job, or return the open one with the same text and schedule."""
    connection = tx.connection
    same = _same_job(connection, new)
    if same is not None:
        return Created(job=same, is_new=False)
    limit = _limit(connection, new.chat, now=now)
    if limit is not None:
        return limit
    return Created(job=insert_job(tx, new, now=now), is_new=True)


def insert_job(tx: Transaction, new: NewJob, *, now: datetime) -> Job:
    """Store a job, whatever else there is."""
    origin = new.origin
    row = tx.connection.execute(
        insert(jobs)
        .values(
            chat_key=str(new.chat),
            state=JobState.ACTIVE,
            action=new.action,
            text=new.text,
            schedule=schedule_to_json(new.schedule),
            timezone=new.timezone,
            missed=new.missed,
            tier=new.tier,
            asked_tier=new.asked_tier,
            created_by_turn=new.created_by,
            origin_text=None if origin is None else origin.text,
            origin_at=None if origin is None else to_millis(origin.sent_at),
            snoozed_from=new.snoozed_from,
            next_slot_at=to_millis(new.next_slot_at),
            created_at=to_millis(now),
        )
        .returning(jobs)
    ).one()
    record_event(tx.connection, jobs, row.id, (None, JobState.ACTIVE), now=now)
    tx.touch(Topic.JOBS, new.chat)
    return load_job(row)


def _same_job(connection: Connection, new: NewJob) -> Job | None:
    """The open job of the chat with the same text, action, schedule and zone."""
    rows = connection.execute(
        select(jobs).where(
            jobs.c.chat_key == str(new.chat),
            jobs.c.state.in_(OPEN_JOB_STATES),
            jobs.c.text == new.text,
            jobs.c.action == new.action,
            jobs.c.timezone == new.timezone,
            jobs.c.next_slot_at.is_not(None),
        )
    ).all()
    for row in rows:
        try:
            job = load_job(row)
        except ValueError:
            continue  # a damaged one sets nothing
        if is_same(job.schedule, new.schedule):
            return job
    return None


def list_jobs(connection: Connection, chat: ChatKey) -> tuple[Job, ...]:
    """The chat's open jobs, and those that failed to reach it, by their next time."""
    rows = connection.execute(
        select(jobs)
        .where(
            jobs.c.chat_key == str(chat),
            jobs.c.state.in_((*OPEN_JOB_STATES, JobState.FAILED)),
        )
        .order_by(func.coalesce(jobs.c.next_slot_at, jobs.c.last_slot_at), jobs.c.id)
    ).all()
    return tuple(salvage_job(row) for row in rows)


def cancel_job(tx: Transaction, chat: ChatKey, job_id: int, *, now: datetime) -> Cancelled | None:
    """Close a job with its open turns and unsent deliveries; None = the chat has no such job."""
    connection = tx.connection
    row = find_job(connection, chat, job_id)
    if row is None or row.state not in (*OPEN_JOB_STATES, JobState.FAILED):
        return None
    before = salvage_job(row)
    values = {"next_slot_at": None, "reason": "cancelled", "ended_at": to_millis(now)}
    save_transition(connection, jobs, row.id, (before.state, JobState.CANCELLED), values, now=now)
    waiting = connection.execute(
        select(turns.c.id, turns.c.state).where(turns.c.job_id == row.id, TURN_IS_OPEN)
    ).all()
    aborted: list[RunId] = []
    for turn in waiting:
        state = TurnState(turn.state)
        aborted += cancel_turn(tx, chat, TurnId(turn.id), state, reason="cancelled", now=now)
    unsent = connection.execute(
        select(deliveries.c.id)
        .join(turns, turns.c.delivery_id == deliveries.c.id)
        .where(turns.c.job_id == row.id, DELIVERY_IS_OPEN)
        .distinct()
    ).scalars()
    is_on_its_way = False
    for delivery in list(unsent):
        is_on_its_way |= _take_back(tx, DeliveryId(delivery), now=now)
    tx.touch(Topic.JOBS, chat)
    return Cancelled(job=before, is_on_its_way=is_on_its_way, runs=tuple(aborted))


def has_room(connection: Connection, chat: ChatKey) -> bool:
    """Whether the chat may have one more open job. What was put off takes none of the room."""
    still_open = connection.execute(
        select(func.count())
        .select_from(jobs)
        .where(
            jobs.c.chat_key == str(chat),
            jobs.c.state.in_(OPEN_JOB_STATES),
            jobs.c.snoozed_from.is_(None),
        )
    ).scalar_one()
    return still_open < MAX_OPEN_JOBS


def _limit(connection: Connection, chat: ChatKey, *, now: datetime) -> JobLimit | None:
    if not has_room(connection, chat):
        return JobLimit.TOO_MANY
    lately = connection.execute(
        select(func.count())
        .select_from(jobs)
        .where(
            jobs.c.chat_key == str(chat),
            jobs.c.created_at > to_millis(now - timedelta(minutes=1)),
            jobs.c.created_at <= to_millis(now),
            jobs.c.snoozed_from.is_(None),
        )
    ).scalar_one()
    return JobLimit.TOO_FAST if lately >= MAX_CREATES_PER_MINUTE else None


def _take_back(tx: Transaction, delivery: DeliveryId, *, now: datetime) -> bool:
    """Drop a cancelled job's open delivery if no other line is left; true = it went out or is
    going, and stays.
    """
    if is_touched(tx.connection, delivery):
        return True
    if not due_reminders(tx.connection, delivery):
        drop_delivery(tx, delivery, DeliveryState.PENDING, reason=EndReason.CANCELLED, now=now)
    return False
