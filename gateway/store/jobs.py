"""Jobs: admitted, listed and cancelled, each in one commit."""

import logging
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from sqlalchemy import Connection, Row, func, insert, select

from gateway.domain.delivery import DeliveryId, DeliveryState
from gateway.domain.job import (
    MAX_CREATES_PER_MINUTE,
    MAX_OPEN_JOBS,
    Job,
    JobAction,
    JobId,
    JobState,
    NewJob,
    Tier,
)
from gateway.domain.message import ChannelName, ChatKey
from gateway.domain.schedule import (
    At,
    Schedule,
    from_millis,
    schedule_from_json,
    schedule_to_json,
    to_millis,
)
from gateway.domain.turn import TurnId, TurnState
from gateway.store.database import Topic, Transaction
from gateway.store.deliveries import EndReason, drop_delivery, is_touched
from gateway.store.events import moment, record_event, save_transition
from gateway.store.reminders import due_reminders
from gateway.store.schema import (
    DELIVERY_IS_OPEN,
    JOB_IS_ACTIVE,
    TURN_IS_OPEN,
    chats,
    deliveries,
    jobs,
    turns,
)
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
    """A cancelled job; `is_on_its_way` says that a text of it went out or is on the wire."""

    job: Job
    is_on_its_way: bool

    def told(self, now: datetime) -> str:
        """What the person is told of it."""
        text = f"Cancelled: {self.job.line(now=now)}"
        if self.is_on_its_way:
            text += "\nIts text was on its way already, so it may still arrive."
        return text


def load_job(row: Row[Any]) -> Job:
    """A job from its row; raises ValueError when the row is damaged."""
    if not isinstance(row.text, str) or not isinstance(row.timezone, str):
        raise ValueError("not a text")
    try:
        ZoneInfo(row.timezone)
    except (ZoneInfoNotFoundError, OSError) as error:
        raise ValueError(f"unknown time zone: {row.timezone!r}") from error
    try:
        slot = moment(row.next_slot_at)
    except (OverflowError, OSError, TypeError) as error:
        raise ValueError("not a moment") from error
    return _job(row, row.text, schedule_from_json(row.schedule), row.timezone, slot)


def _salvage_job(row: Row[Any]) -> Job:
    """What can still be shown of a job, so that a person can name and cancel a damaged one."""
    try:
        return load_job(row)
    except ValueError:
        log.warning("job_damaged", extra={"job": row.id})
    created = from_millis(row.created_at)
    return _job(row, f"{row.text} (damaged)", At(at=created), "UTC", None)


def _job(row: Row[Any], text: str, schedule: Schedule, timezone: str, slot: datetime | None) -> Job:
    return Job(
        id=JobId(row.id),
        chat=ChatKey.parse(row.chat_key),
        state=JobState(row.state),
        action=JobAction(row.action),
        text=text,
        schedule=schedule,
        timezone=timezone,
        next_slot_at=slot,
        tier=Tier(row.tier),
    )


def create_job(tx: Transaction, new: NewJob, *, now: datetime) -> Created | JobLimit:
    """Store a job, or return the open one with the same text and schedule."""
    connection = tx.connection
    schedule = schedule_to_json(new.schedule)
    same = connection.execute(
        select(jobs).where(
            jobs.c.chat_key == str(new.chat),
            jobs.c.state.in_(OPEN_JOB_STATES),
            jobs.c.text == new.text,
            jobs.c.schedule == schedule,
            jobs.c.next_slot_at.is_not(None),
        )
    ).first()
    if same is not None:
        return Created(job=load_job(same), is_new=False)
    limit = _limit(connection, new.chat, now=now)
    if limit is not None:
        return limit
    row = connection.execute(
        insert(jobs)
        .values(
            chat_key=str(new.chat),
            state=JobState.ACTIVE,
            action=new.action,
            text=new.text,
            schedule=schedule,
            timezone=new.timezone,
            tier=new.tier,
            created_by_turn=new.created_by,
            origin_message_id=new.origin_message,
            next_slot_at=to_millis(new.next_slot_at),
            created_at=to_millis(now),
        )
        .returning(jobs)
    ).one()
    record_event(connection, jobs, row.id, (None, JobState.ACTIVE), now=now)
    tx.touch(Topic.JOBS, new.chat)
    return Created(job=load_job(row), is_new=True)


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
    return tuple(_salvage_job(row) for row in rows)


def cancel_job(tx: Transaction, chat: ChatKey, job_id: int, *, now: datetime) -> Cancelled | None:
    """Close a job with its open turns and unsent deliveries; None = the chat has no such job."""
    connection = tx.connection
    row = connection.execute(
        select(jobs).where(jobs.c.chat_key == str(chat), jobs.c.id == job_id)
    ).one_or_none()
    if row is None or row.state not in (*OPEN_JOB_STATES, JobState.FAILED):
        return None
    before = _salvage_job(row)
    values = {"next_slot_at": None, "reason": "cancelled", "ended_at": to_millis(now)}
    save_transition(connection, jobs, row.id, (before.state, JobState.CANCELLED), values, now=now)
    waiting = connection.execute(
        select(turns.c.id, turns.c.state).where(turns.c.job_id == row.id, TURN_IS_OPEN)
    ).all()
    for turn in waiting:
        cancel_turn(tx, chat, TurnId(turn.id), TurnState(turn.state), reason="cancelled", now=now)
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
    return Cancelled(job=before, is_on_its_way=is_on_its_way)


def earliest_slot(connection: Connection, channels: Collection[ChannelName]) -> datetime | None:
    """When the next active job is due; None = none is."""
    stored = connection.execute(
        select(jobs.c.next_slot_at)
        .join(chats, chats.c.chat_key == jobs.c.chat_key)
        .where(
            JOB_IS_ACTIVE,
            jobs.c.next_slot_at.is_not(None),
            chats.c.channel.in_(channels),
        )
        .order_by(jobs.c.next_slot_at)
        .limit(1)
    ).scalar_one_or_none()
    return moment(stored)


def _limit(connection: Connection, chat: ChatKey, *, now: datetime) -> JobLimit | None:
    in_chat = jobs.c.chat_key == str(chat)
    still_open = connection.execute(
        select(func.count()).select_from(jobs).where(in_chat, jobs.c.state.in_(OPEN_JOB_STATES))
    ).scalar_one()
    if still_open >= MAX_OPEN_JOBS:
        return JobLimit.TOO_MANY
    since = to_millis(now - timedelta(minutes=1))
    lately = connection.execute(
        select(func.count())
        .select_from(jobs)
        .where(in_chat, jobs.c.created_at > since, jobs.c.created_at <= to_millis(now))
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
