"""Jobs: admitted, listed and cancelled, each in one commit."""

import logging
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from sqlalchemy import Connection, Row, func, insert, select

from gateway.domain.delivery import (
    DeliveryId,
    DeliveryState,
)
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
    schedule_from_json,
    schedule_to_json,
    to_millis,
)
from gateway.domain.turn import TurnId, TurnState
from gateway.store.database import Topic, Transaction
from gateway.store.deliveries import (
    OPEN_STATES,
    EndReason,
    drop_delivery,
)
from gateway.store.events import moment, record_event, save_move
from gateway.store.reminders import due_reminders
from gateway.store.schema import chats, deliveries, jobs, turns
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


def load_job(row: Row[Any]) -> Job:
    """A job from its row; raises ValueError when the row is damaged."""
    try:
        ZoneInfo(row.timezone)
    except ZoneInfoNotFoundError as error:
        raise ValueError(f"unknown time zone: {row.timezone!r}") from error
    return Job(
        id=JobId(row.id),
        chat=ChatKey.parse(row.chat_key),
        state=JobState(row.state),
        action=JobAction(row.action),
        text=row.text,
        schedule=schedule_from_json(row.schedule),
        timezone=row.timezone,
        next_slot_at=moment(row.next_slot_at),
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
    found = []
    for row in rows:
        try:
            found.append(load_job(row))
        except ValueError:
            log.warning("job_damaged", extra={"job": row.id})
    return tuple(found)


def cancel_job(tx: Transaction, chat: ChatKey, job_id: int, *, now: datetime) -> Cancelled | None:
    """Close a job with its open turns and unsent deliveries; None = the chat has no such job."""
    connection = tx.connection
    row = connection.execute(
        select(jobs).where(jobs.c.chat_key == str(chat), jobs.c.id == job_id)
    ).one_or_none()
    if row is None or row.state not in (*OPEN_JOB_STATES, JobState.FAILED):
        return None
    before = load_job(row)
    values = {"next_slot_at": None, "reason": "cancelled", "ended_at": to_millis(now)}
    save_move(connection, jobs, row.id, (before.state, JobState.CANCELLED), values, now=now)
    is_on_its_way = False
    fired = connection.execute(
        select(turns.c.id, turns.c.state, turns.c.delivery_id).where(turns.c.job_id == row.id)
    ).all()
    for turn in fired:
        if turn.state == TurnState.QUEUED:
            cancel_turn(tx, chat, TurnId(turn.id), TurnState.QUEUED, reason="cancelled", now=now)
        elif turn.delivery_id is not None:
            is_on_its_way |= _take_back(tx, DeliveryId(turn.delivery_id), now=now)
    tx.touch(Topic.JOBS, chat)
    return Cancelled(job=before, is_on_its_way=is_on_its_way)


def earliest_slot(connection: Connection, channels: Collection[ChannelName]) -> datetime | None:
    """When the next active job is due; None = none is."""
    stored = connection.execute(
        select(jobs.c.next_slot_at)
        .join(chats, chats.c.chat_key == jobs.c.chat_key)
        .where(
            jobs.c.state == JobState.ACTIVE,
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
        select(func.count()).select_from(jobs).where(in_chat, jobs.c.created_at > since)
    ).scalar_one()
    return JobLimit.TOO_FAST if lately >= MAX_CREATES_PER_MINUTE else None


def _take_back(tx: Transaction, delivery: DeliveryId, *, now: datetime) -> bool:
    """Drop a cancelled job's delivery if no other line is left; true = it went out or is going."""
    row = tx.connection.execute(
        select(deliveries.c.state, deliveries.c.attempts).where(deliveries.c.id == delivery)
    ).one()
    if row.state not in OPEN_STATES or row.state == DeliveryState.SENDING or row.attempts:
        return row.state not in (DeliveryState.DROPPED, DeliveryState.SUPPRESSED)
    if not due_reminders(tx.connection, delivery):
        drop_delivery(tx, delivery, DeliveryState.PENDING, reason=EndReason.CANCELLED, now=now)
    return False
