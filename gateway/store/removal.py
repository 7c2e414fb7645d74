"""What it means for a chat that it is not allowed any more."""

from collections.abc import Collection
from datetime import datetime

from sqlalchemy import select

from gateway.domain.delivery import DeliveryKind
from gateway.domain.job import JobState
from gateway.domain.message import ChannelName, ChatKey
from gateway.domain.turn import TurnId, TurnState
from gateway.store.chats import Admits
from gateway.store.database import Topic, Transaction
from gateway.store.deliveries import EndReason, drop_open
from gateway.store.events import save_transition
from gateway.store.schema import (
    DELIVERY_IS_OPEN,
    JOB_IS_ACTIVE,
    TURN_IS_QUEUED,
    chats,
    deliveries,
    jobs,
    turns,
)
from gateway.store.stopping import cancel_turn

NOT_ALLOWED = EndReason.NOT_ALLOWED.value


def pause_not_allowed(
    tx: Transaction, channels: Collection[ChannelName], admits: Admits, *, now: datetime
) -> int:
    """Pause the active jobs and drop the open deliveries of these channels' chats that are not
    allowed any more. Returns how many chats that changed.
    """
    working = (
        select(jobs.c.chat_key)
        .where(JOB_IS_ACTIVE)
        .union(select(deliveries.c.chat_key).where(DELIVERY_IS_OPEN))
        .subquery()
    )
    keys = tx.connection.execute(
        select(chats.c.chat_key)
        .join(working, working.c.chat_key == chats.c.chat_key)
        .where(chats.c.channel.in_(channels))
    ).scalars()
    known = [ChatKey.parse(key) for key in keys]
    removed = [chat for chat in known if not admits(tx.connection, chat)]
    for chat in removed:
        _pause_jobs(tx, chat, now=now)
        drop_open(tx, chat, kinds=tuple(DeliveryKind), reason=EndReason.NOT_ALLOWED, now=now)
    return len(removed)


def _pause_jobs(tx: Transaction, chat: ChatKey, *, now: datetime) -> None:
    rows = tx.connection.execute(
        select(jobs.c.id).where(
            jobs.c.chat_key == str(chat), JOB_IS_ACTIVE, jobs.c.next_slot_at.is_not(None)
        )
    ).scalars()
    for job in list(rows):
        # Its slot stays with it, so that a person let in again can see what it was.
        move = (JobState.ACTIVE, JobState.PAUSED)
        save_transition(tx.connection, jobs, job, move, {"reason": NOT_ALLOWED}, now=now)
    tx.touch(Topic.JOBS, chat)


def cancel_queued(tx: Transaction, chat: ChatKey, *, now: datetime) -> None:
    """End every queued turn of a chat that is not allowed any more, with nothing to send."""
    rows = tx.connection.execute(
        select(turns.c.id).where(turns.c.chat_key == str(chat), TURN_IS_QUEUED)
    ).scalars()
    for turn in list(rows):
        cancel_turn(tx, chat, TurnId(turn), TurnState.QUEUED, reason=NOT_ALLOWED, now=now)
