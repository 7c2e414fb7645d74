"""Check-ins of silent chats: their moment is stored, so that no restart repeats or loses one."""

from collections.abc import Collection
from datetime import date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from sqlalchemy import Connection, Row, bindparam, select, update

from gateway.domain.heartbeat import CheckIn, HeartbeatRules, PutOff, Silence, decide
from gateway.domain.message import ChannelName, ChatKey
from gateway.domain.schedule import LAST_MILLIS, to_millis
from gateway.domain.turn import Trigger, TurnState
from gateway.domain.wallclock import zone_or_none
from gateway.store.chats import Admits
from gateway.store.database import Topic, Transaction, upsert
from gateway.store.events import moment, record_event
from gateway.store.schema import TURN_IS_OPEN, chats, turns

_NOTE = update(chats).where(chats.c.chat_key == bindparam("chat"), chats.c.is_group.is_(False))
_MOVE = update(chats).where(chats.c.chat_key == bindparam("chat"))
_IS_BUSY = select(turns.c.id).where(turns.c.chat_key == bindparam("chat"), TURN_IS_OPEN).limit(1)
_INSERT_TURN = upsert(turns).on_conflict_do_nothing().returning(turns.c.id)

MOST_AT_ONCE = 5
"""So many chats are looked at in one go; the others wait for the next sweep."""


def note_activity(
    tx: Transaction, chat: ChatKey, *, interval: timedelta | None, now: datetime
) -> None:
    """A person wrote in a private chat: the silence before its next check-in begins anew.

    Groups get none. Without an interval there are none at all.
    """
    if interval is not None:
        at = to_millis(now + interval)
        tx.connection.execute(_NOTE, {"chat": str(chat), "next_heartbeat_at": at})


def queue_heartbeats(
    tx: Transaction,
    channels: Collection[ChannelName],
    admits: Admits,
    rules: HeartbeatRules,
    *,
    now: datetime,
) -> int:
    """Queue the check-ins that are due, or put them off; returns how many were queued.

    Takes a few at once, so that a night's silence is no storm of model turns in the morning.
    One a silence: the next comes only after the person wrote again.
    """
    rows = tx.connection.execute(
        select(chats)
        .where(
            chats.c.next_heartbeat_at <= to_millis(now),
            chats.c.channel.in_(channels),
            chats.c.unreachable_since.is_(None),
        )
        .order_by(chats.c.next_heartbeat_at)
        .limit(MOST_AT_ONCE)
    ).all()
    queued = 0
    for row in rows:
        try:
            chat = ChatKey.parse(row.chat_key)
        except ValueError:
            continue  # a damaged chat harms no other
        if not admits(tx.connection, chat):
            _move(tx, chat, next_heartbeat_at=None)
            continue
        match decide(rules, _silence(tx.connection, row, rules), now=now):
            case PutOff(until=until):
                _move(tx, chat, next_heartbeat_at=to_millis(until))
            case CheckIn(day=day, count=count):
                _move(tx, chat, next_heartbeat_at=None, heartbeat_day=str(day), heartbeats=count)
                queued += _queue(tx, chat, row.next_heartbeat_at, now=now)
    return queued


def earliest_heartbeat(
    connection: Connection, channels: Collection[ChannelName], *, after: datetime
) -> datetime | None:
    """When the first check-in later than `after` is due; None = none is."""
    stored = connection.execute(
        select(chats.c.next_heartbeat_at)
        .where(
            chats.c.next_heartbeat_at > to_millis(after),
            chats.c.next_heartbeat_at <= LAST_MILLIS,
            chats.c.channel.in_(channels),
        )
        .order_by(chats.c.next_heartbeat_at)
        .limit(1)
    ).scalar_one_or_none()
    return moment(stored)


def _silence(connection: Connection, row: Row[Any], rules: HeartbeatRules) -> Silence:
    return Silence(
        zone=zone_or_none(row.timezone) or ZoneInfo(rules.timezone),
        is_busy=connection.execute(_IS_BUSY, {"chat": row.chat_key}).first() is not None,
        day=_day(row.heartbeat_day),
        count=row.heartbeats if isinstance(row.heartbeats, int) else 0,
    )


def _day(stored: object) -> date | None:
    try:
        return date.fromisoformat(stored) if isinstance(stored, str) else None
    except ValueError:
        return None


def _move(tx: Transaction, chat: ChatKey, **values: int | str | None) -> None:
    tx.connection.execute(_MOVE, {"chat": str(chat), **values})


def _queue(tx: Transaction, chat: ChatKey, due: int, *, now: datetime) -> int:
    turn = tx.connection.execute(
        _INSERT_TURN,
        {
            "chat_key": str(chat),
            "trigger": Trigger.HEARTBEAT,
            "source_key": f"heartbeat:{chat}:{due}",
            "state": TurnState.QUEUED,
            "created_at": to_millis(now),
        },
    ).scalar_one_or_none()
    if turn is None:
        return 0
    record_event(tx.connection, turns, turn, (None, TurnState.QUEUED), now=now)
    tx.touch(Topic.TURNS, chat)
    return 1
