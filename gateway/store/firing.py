"""T0: a due job moves past its slot and its text is stored for delivery, in one commit."""

import logging
from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, bindparam, insert, select, update

from gateway.domain.delivery import DeliveryId, DeliveryKind, DeliveryState
from gateway.domain.job import Job, JobState, one_line, reminder_text
from gateway.domain.message import ChannelName, ChatKey
from gateway.domain.schedule import next_slot, to_millis
from gateway.domain.turn import Trigger, TurnId, TurnState
from gateway.store.chats import Admits
from gateway.store.database import Topic, Transaction, upsert
from gateway.store.deliveries import DELIVERY_IS_TOUCHED, Cut, recut, store_silence, store_text
from gateway.store.events import millis, record_event, save_transition
from gateway.store.jobs import load_job
from gateway.store.reminders import due_reminders, settle_jobs
from gateway.store.schema import (
    DELIVERY_IS_PENDING,
    JOB_IS_ACTIVE,
    chats,
    deliveries,
    jobs,
    turns,
)

log = logging.getLogger(__name__)

_FIRE_BATCH = 200
_NAMED_TEXT = 120

_MOVE_JOB = (
    update(jobs)
    .where(
        jobs.c.id == bindparam("job"),
        jobs.c.state == JobState.ACTIVE,
        jobs.c.next_slot_at == bindparam("slot"),
    )
    .values(
        next_slot_at=bindparam("following"), last_slot_at=bindparam("slot"), fired=jobs.c.fired + 1
    )
)
_INSERT_SLOT = upsert(turns).on_conflict_do_nothing().returning(turns.c.id)
_PUT_IN_DELIVERY = update(turns).where(turns.c.id == bindparam("turn"))
_WAITING_REMINDER = (
    select(deliveries.c.id)
    .where(
        deliveries.c.chat_key == bindparam("chat"),
        deliveries.c.kind == DeliveryKind.REMINDER,
        DELIVERY_IS_PENDING,
        ~DELIVERY_IS_TOUCHED,
    )
    .order_by(deliveries.c.id.desc())
    .limit(1)
)
_INSERT_DELIVERY = insert(deliveries).returning(deliveries.c.id)


@dataclass(frozen=True, slots=True, kw_only=True)
class FireRules:
    """What firing needs from outside the store."""

    channels: Collection[ChannelName]
    cut: Callable[[ChatKey], Cut]
    admits: Admits


def fire_due(tx: Transaction, rules: FireRules, *, now: datetime) -> int:
    """T0: move each due job past its slot and store the slot's turn and text, in one commit.

    A damaged row disables itself. Returns how many rows were due; call again until none is.
    """
    rows = tx.connection.execute(
        select(jobs)
        .join(chats, chats.c.chat_key == jobs.c.chat_key)
        .where(
            JOB_IS_ACTIVE,
            jobs.c.next_slot_at <= to_millis(now),
            chats.c.channel.in_(rules.channels),
        )
        .order_by(jobs.c.next_slot_at, jobs.c.id)
        .limit(_FIRE_BATCH)
    ).all()
    touched: set[tuple[ChatKey, DeliveryId]] = set()
    for row in rows:
        try:
            job = load_job(row)
        except ValueError:
            log.exception("job_damaged", extra={"job": row.id})
            _disable(tx, row, rules.cut, now=now)
            continue
        delivery = _fire(tx, job, rules, now=now)
        if delivery is not None:
            touched.add((job.chat, delivery))
    for chat, delivery in touched:
        text = reminder_text(due_reminders(tx.connection, delivery), now=now)
        recut(tx, delivery, text, rules.cut(chat)(text, is_markdown=False), now=now)
        tx.touch(Topic.DELIVERIES, chat)
    return len(rows)


def _fire(tx: Transaction, job: Job, rules: FireRules, *, now: datetime) -> DeliveryId | None:
    """Fire one slot; returns the delivery that carries its text, if one does."""
    slot = job.next_slot_at
    if slot is None:
        return None
    is_allowed = rules.admits(tx.connection, job.chat)
    following = next_slot(job.schedule, after=slot)
    moved = tx.connection.execute(
        _MOVE_JOB,
        {
            "job": job.id,
            "slot": to_millis(slot),
            "following": millis(following),
        },
    )
    if not moved.rowcount:
        return None
    tx.touch(Topic.JOBS, job.chat)
    if not is_allowed:
        _insert_slot(tx, job, slot, TurnState.CANCELLED, reason="not_allowed", now=now)
        # The slot stays with the paused job, so that a person let in again can see what it was.
        held = {"next_slot_at": millis(following) or to_millis(slot), "reason": "not_allowed"}
        move = (JobState.ACTIVE, JobState.PAUSED)
        save_transition(tx.connection, jobs, job.id, move, held, now=now)
        return None
    turn = _insert_slot(tx, job, slot, TurnState.ANSWERED, reason=None, now=now)
    if turn is None:
        _settle_served(tx, job, slot, now=now)
        return None
    delivery = _waiting_reminder(tx.connection, job.chat) or _new_reminder(tx, job, now=now)
    tx.connection.execute(_PUT_IN_DELIVERY, {"turn": turn, "delivery_id": delivery})
    return delivery


def _settle_served(tx: Transaction, job: Job, slot: datetime, *, now: datetime) -> None:
    """End a one-shot that was given again a slot whose delivery is settled already."""
    row = tx.connection.execute(
        select(deliveries.c.id, deliveries.c.state)
        .join(turns, turns.c.delivery_id == deliveries.c.id)
        .where(turns.c.source_key == _source_key(job, slot), deliveries.c.settled_at.is_not(None))
    ).one_or_none()
    if row is not None:
        settle_jobs(tx, DeliveryId(row.id), DeliveryState(row.state), now=now)


def _source_key(job: Job, slot: datetime) -> str:
    return f"job:{job.id}:{to_millis(slot)}"


def _insert_slot(
    tx: Transaction,
    job: Job,
    slot: datetime,
    state: TurnState,
    *,
    reason: str | None,
    now: datetime,
) -> TurnId | None:
    """The one turn of a slot; None = it is there already."""
    turn = tx.connection.execute(
        _INSERT_SLOT,
        {
            "chat_key": str(job.chat),
            "trigger": Trigger.JOB,
            "source_key": _source_key(job, slot),
            "state": state,
            "reason": reason,
            "text": job.text,
            "job_id": job.id,
            "slot_at": to_millis(slot),
            "created_at": to_millis(now),
            "ended_at": to_millis(now),
        },
    ).scalar_one_or_none()
    if turn is None:
        return None
    record_event(tx.connection, turns, turn, (None, state), now=now, reason=reason)
    if state is TurnState.CANCELLED:
        silence = store_silence(tx, job.chat, reason=reason or state, now=now)
        tx.connection.execute(_PUT_IN_DELIVERY, {"turn": turn, "delivery_id": silence})
    return TurnId(turn)


def _waiting_reminder(connection: Connection, chat: ChatKey) -> DeliveryId | None:
    """A reminder of the chat that can still be cut: what is due meanwhile goes out with it."""
    found = connection.execute(_WAITING_REMINDER, {"chat": str(chat)}).scalar_one_or_none()
    return None if found is None else DeliveryId(found)


def _new_reminder(tx: Transaction, job: Job, *, now: datetime) -> DeliveryId:
    """A reminder's delivery, its text to be cut once all that is due with it is known."""
    delivery = tx.connection.execute(
        _INSERT_DELIVERY,
        {
            "chat_key": str(job.chat),
            "kind": DeliveryKind.REMINDER,
            "state": DeliveryState.PENDING,
            "text": "",
            "created_at": to_millis(now),
        },
    ).scalar_one()
    record_event(tx.connection, deliveries, delivery, (None, DeliveryState.PENDING), now=now)
    return DeliveryId(delivery)


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
