"""T0: a due job moves past its slot, and the slot's turn is stored, in one commit."""

import logging
from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Row,
    Select,
    and_,
    bindparam,
    or_,
    select,
    update,
)

from gateway.domain.delivery import DeliveryId, DeliveryKind, DeliveryState
from gateway.domain.heartbeat import HeartbeatRules
from gateway.domain.job import Job, JobAction, JobState, one_line
from gateway.domain.message import ChannelName, ChatKey
from gateway.domain.missed import Coming, coming_slot
from gateway.domain.reminder import LATE_AFTER
from gateway.domain.schedule import LAST_MILLIS, At, to_millis
from gateway.domain.turn import TurnState
from gateway.store.chats import Admits
from gateway.store.database import Topic, Transaction
from gateway.store.deliveries import Cut, store_text
from gateway.store.events import millis, moment, save_transition
from gateway.store.job_changes import Refusal
from gateway.store.jobs import OPEN_JOB_STATES, load_job
from gateway.store.missed import MISSED, NOT_ALLOWED, UNREACHABLE, cancel_slots, end_unrun
from gateway.store.reminders import join_reminder, write_reminders
from gateway.store.schema import JOB_IS_ACTIVE, chats, deliveries, jobs, turns
from gateway.store.slots import Slot, insert_turn, planned_slot, settle_jobs

log = logging.getLogger(__name__)

_FIRE_BATCH = 50
_NAMED_TEXT = 120

_MOVE_JOB = update(jobs).where(
    jobs.c.id == bindparam("job"),
    jobs.c.state == JobState.ACTIVE,
    jobs.c.next_slot_at == bindparam("first"),
)
_JOB = select(jobs).where(jobs.c.chat_key == bindparam("chat"), jobs.c.id == bindparam("job"))
_COUNT_RUN = update(jobs).where(jobs.c.id == bindparam("job"))
_SERVED = (
    select(
        turns.c.id, deliveries.c.id.label("delivery"), deliveries.c.state, deliveries.c.settled_at
    )
    .outerjoin(deliveries, deliveries.c.id == turns.c.delivery_id)
    .where(turns.c.source_key == bindparam("key"))
)

_Written = tuple[ChatKey, DeliveryId]


@dataclass(frozen=True, slots=True, kw_only=True)
class FireRules:
    """What firing needs from outside the store; without `heartbeat` nobody is checked on."""

    channels: Collection[ChannelName]
    cut: Callable[[ChatKey], Cut]
    admits: Admits
    heartbeat: HeartbeatRules | None = None


def fire_due(tx: Transaction, rules: FireRules, *, now: datetime) -> int:
    """T0: move each due job past its slot and store the slot's turn and text, in one commit.

    A damaged row disables itself. Returns how many rows were due; call again until none is. Turns
    for a model that are late already are left to `fire_late_prompts`.
    """
    is_on_time = or_(
        jobs.c.action != JobAction.PROMPT, jobs.c.next_slot_at >= to_millis(now - LATE_AFTER)
    )
    return _fire_all(tx, _due(rules, is_on_time, now=now).limit(_FIRE_BATCH), rules, now=now)


def fire_late_prompts(tx: Transaction, rules: FireRules, *, most: int, now: datetime) -> int:
    """T0 of the late turns for a model, the oldest first; returns how many were taken."""
    is_late = and_(
        jobs.c.action == JobAction.PROMPT, jobs.c.next_slot_at < to_millis(now - LATE_AFTER)
    )
    return _fire_all(tx, _due(rules, is_late, now=now).limit(most), rules, now=now)


def fire_now(
    tx: Transaction,
    chat: ChatKey,
    job_id: int,
    call_key: str,
    rules: FireRules,
    *,
    now: datetime,
) -> Job | Refusal:
    """Run a job of the chat out of turn, once for each `call_key`; its next slot stays.

    The run counts for `max_runs`.
    """
    row = tx.connection.execute(_JOB, {"chat": str(chat), "job": job_id}).one_or_none()
    if row is None:
        return Refusal.NOT_FOUND
    try:
        job = load_job(row)
    except ValueError:
        return Refusal.DAMAGED
    slot = Slot(at=now, key=f"job:{job.id}:now:{call_key}")
    if tx.connection.execute(_SERVED, {"key": slot.key}).one_or_none() is not None:
        return job
    if job.state not in OPEN_JOB_STATES or _runs_left(job) == 0:
        return Refusal.ENDED
    values: dict[str, int | None] = {"job": job.id, "fired": job.fired + 1}
    if _runs_left(job) == 1:
        values["next_slot_at"] = None
    tx.connection.execute(_COUNT_RUN, values)
    written = _give_slot(tx, job, slot, now=now)
    write_reminders(tx, [] if written is None else [written], rules.cut, now=now)
    tx.touch(Topic.JOBS, chat)
    return load_job(tx.connection.execute(_JOB, {"chat": str(chat), "job": job_id}).one())


def earliest_slot(
    connection: Connection, channels: Collection[ChannelName], *, after: datetime
) -> datetime | None:
    """The first slot of an active job later than `after`; None = there is none."""
    stored = connection.execute(
        select(jobs.c.next_slot_at)
        .join(chats, chats.c.chat_key == jobs.c.chat_key)
        .where(
            JOB_IS_ACTIVE,
            jobs.c.next_slot_at > to_millis(after),
            # A text in place of a moment sorts behind every number.
            jobs.c.next_slot_at <= LAST_MILLIS,
            chats.c.channel.in_(channels),
        )
        .order_by(jobs.c.next_slot_at)
        .limit(1)
    ).scalar_one_or_none()
    return moment(stored)


def _due(rules: FireRules, which: ColumnElement[bool], *, now: datetime) -> Select[Any]:
    return (
        select(jobs, chats.c.unreachable_since)
        .join(chats, chats.c.chat_key == jobs.c.chat_key)
        .where(
            JOB_IS_ACTIVE,
            jobs.c.next_slot_at <= to_millis(now),
            which,
            chats.c.channel.in_(rules.channels),
        )
        .order_by(jobs.c.next_slot_at, jobs.c.id)
    )


def _fire_all(tx: Transaction, due: Select[Any], rules: FireRules, *, now: datetime) -> int:
    rows = tx.connection.execute(due).all()
    joined: dict[_Written, None] = {}
    for row in rows:
        try:
            job = load_job(row)
            coming = _coming(job, now=now)
        except (ValueError, OverflowError):
            log.exception("job_damaged", extra={"job": row.id})
            _disable(tx, row, rules.cut, now=now)
            continue
        reason = _why_not(tx, row, job, coming, rules)
        written = _move(tx, job, coming, reason, rules, now=now)
        if written is not None:
            joined[written] = None
    write_reminders(tx, joined, rules.cut, now=now)
    return len(rows)


def _coming(job: Job, *, now: datetime) -> Coming:
    if job.next_slot_at is None:
        raise ValueError("due without a slot")
    return coming_slot(job, job.next_slot_at, now=now)


def _why_not(
    tx: Transaction, row: Row[Any], job: Job, coming: Coming, rules: FireRules
) -> str | None:
    """Why the slot is not run; None = it is."""
    if not rules.admits(tx.connection, job.chat):
        return NOT_ALLOWED
    if coming.is_missed:
        return MISSED
    if job.action is JobAction.PROMPT and row.unreachable_since is not None:
        return UNREACHABLE
    return None


def _move(
    tx: Transaction,
    job: Job,
    coming: Coming,
    reason: str | None,
    rules: FireRules,
    *,
    now: datetime,
) -> _Written | None:
    """Move a job past the slots that have come and store their turns.

    Returns the delivery that carries its text now, if one does.
    """
    slot = planned_slot(job, coming.slot)
    served = tx.connection.execute(_SERVED, {"key": slot.key}).one_or_none()
    is_given = served is None and reason is None
    following = None if is_given and _runs_left(job) == 1 else coming.following
    if not _move_row(tx.connection, job, coming, following, is_given=is_given):
        return None
    tx.touch(Topic.JOBS, job.chat)
    _record_missed(tx, job, coming, now=now)
    if reason == NOT_ALLOWED:
        _hold(tx, job, coming, now=now)
    elif served is not None:
        if following is None and served.settled_at is not None:
            settle_jobs(tx, DeliveryId(served.delivery), DeliveryState(served.state), now=now)
    elif reason is not None:
        cancel_slots(tx, job, [coming.slot], reason, now=now)
        if following is None:
            end_unrun(tx, job, coming.slot, reason, rules.cut, now=now)
    else:
        return _give_slot(tx, job, slot, now=now)
    return None


def _move_row(
    connection: Connection,
    job: Job,
    coming: Coming,
    following: datetime | None,
    *,
    is_given: bool,
) -> bool:
    """False = the job was changed meanwhile."""
    values = {
        "job": job.id,
        "first": millis(job.next_slot_at),
        "next_slot_at": millis(following),
        "last_slot_at": to_millis(coming.slot),
        "fired": job.fired + is_given,
    }
    return connection.execute(_MOVE_JOB, values).rowcount == 1


def _record_missed(tx: Transaction, job: Job, coming: Coming, *, now: datetime) -> None:
    if coming.missed:
        counts = {"count": len(coming.missed), "more": coming.more_missed}
        log.warning("slots_missed", extra={"job": job.id, **counts})
        cancel_slots(tx, job, coming.missed, MISSED, now=now)


def _hold(tx: Transaction, job: Job, coming: Coming, *, now: datetime) -> None:
    """Pause the job of a chat that is not allowed any more."""
    cancel_slots(tx, job, [coming.slot], NOT_ALLOWED, now=now)
    # The slot stays with the paused job, so that a person let in again can see what it was.
    held = {"next_slot_at": to_millis(coming.following or coming.slot), "reason": NOT_ALLOWED}
    move = (JobState.ACTIVE, JobState.PAUSED)
    save_transition(tx.connection, jobs, job.id, move, held, now=now)


def _runs_left(job: Job) -> int | None:
    """None = there is no limit."""
    if isinstance(job.schedule, At) or job.schedule.max_runs is None:
        return None
    return max(0, job.schedule.max_runs - job.fired)


def _give_slot(tx: Transaction, job: Job, slot: Slot, *, now: datetime) -> _Written | None:
    """Store the turn of a slot that is run: answered with its text, or queued for a model.

    Returns the delivery to be written, if its text goes out at once.
    """
    is_prompt = job.action is JobAction.PROMPT
    state = TurnState.QUEUED if is_prompt else TurnState.ANSWERED
    turn = insert_turn(tx.connection, job, slot, state, now=now)
    if turn is None:
        return None
    if is_prompt:
        tx.touch(Topic.TURNS, job.chat)
        return None
    return job.chat, join_reminder(tx, job.chat, turn, now=now)


def _quoted(text: object) -> str:
    return f'"{one_line(text, limit=_NAMED_TEXT)}"' if isinstance(text, str) else "no text"


def _disable(
    tx: Transaction, row: Row[Any], cut: Callable[[ChatKey], Cut], *, now: datetime
) -> None:
    """Switch off a damaged job and tell its chat, so that it harms no other."""
    chat = ChatKey.parse(row.chat_key)
    values = {"next_slot_at": None, "reason": "damaged", "ended_at": to_millis(now)}
    move = (JobState.ACTIVE, JobState.FAILED)
    save_transition(tx.connection, jobs, row.id, move, values, now=now)
    text = f"Reminder #{row.id} is damaged and was switched off: {_quoted(row.text)}"
    store_text(tx, chat, DeliveryKind.NOTICE, text, cut(chat), now=now)
