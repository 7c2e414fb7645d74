"""The stored text of a job goes out when no model answered in time."""

from collections.abc import Callable, Collection
from datetime import datetime, timedelta

from sqlalchemy import Connection, bindparam, func, or_, select

from gateway.domain.message import ChannelName, ChatKey
from gateway.domain.schedule import to_millis
from gateway.domain.turn import GIVE_UP_AFTER, Trigger, TurnId, TurnState
from gateway.store.database import Topic, Transaction
from gateway.store.deliveries import Cut
from gateway.store.events import moment, save_transition
from gateway.store.reminders import join_reminder, write_reminders
from gateway.store.schema import TURN_IS_QUEUED, chats, turns

FELL_BACK = "fell_back"
"""Reason of a job's turn that ended with the stored text instead of an answer."""

_AHEAD = timedelta(minutes=1)
_CHAT = select(turns.c.chat_key).where(turns.c.id == bindparam("turn"))
_IS_WAITING = TURN_IS_QUEUED & (turns.c.trigger == Trigger.JOB)


def fall_back(tx: Transaction, turn: TurnId, before: TurnState, cut: Cut, *, now: datetime) -> None:
    """End a job's turn (queued, or running with its run ended) as failed; its text goes out."""
    chat = ChatKey.parse(tx.connection.execute(_CHAT, {"turn": turn}).scalar_one())
    values = {"reason": FELL_BACK, "ended_at": to_millis(now)}
    save_transition(tx.connection, turns, turn, (before, TurnState.FAILED), values, now=now)
    delivery = join_reminder(tx, chat, turn, now=now)
    write_reminders(tx, [(chat, delivery)], lambda chat: cut, now=now)
    tx.touch(Topic.ENDED, chat)


def fall_back_overdue(
    tx: Transaction,
    channels: Collection[ChannelName],
    cut: Callable[[ChatKey], Cut],
    *,
    now: datetime,
) -> int:
    """Send the texts of the jobs whose turns waited too long for a run, behind a long one of
    their chat for instance, or nobody knows how long, since the clock was set back meanwhile.

    Returns how many there were.
    """
    rows = tx.connection.execute(
        select(turns.c.id, turns.c.chat_key)
        .join(chats, chats.c.chat_key == turns.c.chat_key)
        .where(
            _IS_WAITING,
            or_(
                turns.c.created_at <= to_millis(now - GIVE_UP_AFTER),
                turns.c.created_at > to_millis(now + _AHEAD),
            ),
            chats.c.channel.in_(channels),
        )
        .order_by(turns.c.chat_key, turns.c.id)
    ).all()
    for row in rows:
        chat = ChatKey.parse(row.chat_key)
        fall_back(tx, TurnId(row.id), TurnState.QUEUED, cut(chat), now=now)
    return len(rows)


def earliest_fallback(connection: Connection, channels: Collection[ChannelName]) -> datetime | None:
    """When the first waiting turn of a job will have waited too long; None = none waits."""
    began_at = moment(
        connection.execute(
            select(func.min(turns.c.created_at))
            .join(chats, chats.c.chat_key == turns.c.chat_key)
            .where(_IS_WAITING, chats.c.channel.in_(channels))
        ).scalar_one()
    )
    return None if began_at is None else began_at + GIVE_UP_AFTER
