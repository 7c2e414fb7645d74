"""Small facts about what a chat was told, and the one line about messages that came too late."""

from datetime import datetime
from zoneinfo import ZoneInfo

from sqlalchemy import Connection, func, select

from gateway.domain.delivery import DeliveryId, DeliveryKind, DeliveryState
from gateway.domain.job import one_line
from gateway.domain.message import ChatKey
from gateway.domain.schedule import from_millis, local_time, to_millis
from gateway.store.chats import Pairing, ensure_chat
from gateway.store.database import Transaction
from gateway.store.deliveries import Cut, NewDelivery, recut, store_delivery, store_text
from gateway.store.events import moment
from gateway.store.schema import DELIVERY_IS_PENDING, deliveries, messages

TOO_OLD = "too_old"
_NAMED = 5
_NAMED_TEXT = 60


def was_answered_lately(
    connection: Connection, chat: ChatKey, reason: str, *, since: datetime
) -> bool:
    """Whether a message of the chat was set aside for that reason since then."""
    found = connection.execute(
        select(messages.c.id)
        .where(
            messages.c.received_at >= to_millis(since),
            messages.c.chat_key == str(chat),
            messages.c.reason == reason,
        )
        .limit(1)
    ).first()
    return found is not None


def last_sent_at(connection: Connection, chat: ChatKey) -> datetime | None:
    """When something last went out to the chat."""
    stored = connection.execute(
        select(deliveries.c.settled_at)
        .where(
            deliveries.c.chat_key == str(chat),
            deliveries.c.state.in_((DeliveryState.SENT, DeliveryState.PARTIAL)),
        )
        .order_by(deliveries.c.id.desc())
        .limit(1)
    ).scalar_one_or_none()
    return moment(stored)


def last_reminder(connection: Connection, chat: ChatKey) -> DeliveryId | None:
    """The newest reminder that reached the chat, or some of it."""
    found = connection.execute(
        select(deliveries.c.id)
        .where(
            deliveries.c.chat_key == str(chat),
            deliveries.c.kind == DeliveryKind.REMINDER,
            deliveries.c.state.in_((DeliveryState.SENT, DeliveryState.PARTIAL)),
        )
        .order_by(deliveries.c.id.desc())
        .limit(1)
    ).scalar_one_or_none()
    return None if found is None else DeliveryId(found)


def note_too_old(tx: Transaction, chat: ChatKey, cut: Cut, *, timezone: str, now: datetime) -> None:
    """Name the messages that came too late, in one notice while it waits to be sent."""
    connection = tx.connection
    waiting = connection.execute(
        select(deliveries.c.id, deliveries.c.created_at).where(
            deliveries.c.chat_key == str(chat),
            deliveries.c.kind == DeliveryKind.NOTICE,
            DELIVERY_IS_PENDING,
            deliveries.c.reason == TOO_OLD,
            deliveries.c.attempts == 0,
        )
    ).first()
    since = to_millis(now) if waiting is None else waiting.created_at
    late = (
        messages.c.chat_key == str(chat),
        messages.c.reason == TOO_OLD,
        messages.c.received_at >= since,
    )
    count = connection.execute(select(func.count()).select_from(messages).where(*late)).scalar_one()
    rows = connection.execute(
        select(messages.c.text, messages.c.sent_at)
        .where(*late)
        .order_by(messages.c.received_at, messages.c.id)
        .limit(_NAMED)
    ).all()
    zone = ZoneInfo(timezone)
    named = "; ".join(
        f"{local_time(from_millis(row.sent_at), zone, now=now)}: "
        f'"{one_line(row.text, limit=_NAMED_TEXT)}"'
        for row in rows
    )
    more = f"; and {count - len(rows)} more" if count > len(rows) else ""
    text = (
        f"I was away, and this is too old to answer now ({named}{more}). "
        "Please send it again if it still matters."
    )
    pieces = cut(text, is_markdown=False)
    if waiting is not None:
        recut(tx, DeliveryId(waiting.id), text, pieces, now=now)
        return
    notice = NewDelivery(
        chat=chat, kind=DeliveryKind.NOTICE, text=text, chunks=pieces, reason=TOO_OLD
    )
    store_delivery(tx, notice, now=now)


def welcome(tx: Transaction, pairing: Pairing, cut: Cut, *, now: datetime) -> None:
    """Tell somebody that they were let in."""
    person = ChatKey(pairing.channel, pairing.address)
    chat = ensure_chat(tx, person, is_group=False, now=now)
    text = "You are let in now. Write /help to see what I can do."
    store_text(tx, chat, DeliveryKind.NOTICE, text, cut, now=now)
