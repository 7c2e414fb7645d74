"""Deliveries and their chunks: stored whole, taken back, cut again."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Protocol

from sqlalchemy import (
    ColumnElement,
    Connection,
    and_,
    bindparam,
    delete,
    insert,
    or_,
    select,
    update,
)

from gateway.domain.chunking import RichText
from gateway.domain.delivery import (
    ChunkState,
    DeliveryId,
    DeliveryKind,
    DeliveryState,
    NotSentReason,
)
from gateway.domain.job import JobId
from gateway.domain.message import ChannelName, ChatKey
from gateway.domain.schedule import to_millis
from gateway.store.database import Topic, Transaction
from gateway.store.events import record_event, save_transition
from gateway.store.schema import (
    DELIVERY_IS_OPEN,
    DELIVERY_IS_PENDING,
    chats,
    chunks,
    deliveries,
)
from gateway.store.slots import settle_jobs

_INSERT_DELIVERY = insert(deliveries).returning(deliveries.c.id)
_INSERT_CHUNK = insert(chunks)
_MAY_HAVE_GONE_OUT = (chunks.c.state != ChunkState.PENDING) | (
    chunks.c.unknowns + chunks.c.unanswered > 0
)
_TOUCHED = (
    select(chunks.c.id)
    .where(chunks.c.delivery_id == bindparam("delivery"), _MAY_HAVE_GONE_OUT)
    .limit(1)
)
DELIVERY_IS_TOUCHED = (
    select(chunks.c.id).where(chunks.c.delivery_id == deliveries.c.id, _MAY_HAVE_GONE_OUT).exists()
)
"""Anything of the delivery is on the wire, or may have arrived: its text stays as it is. What the
platform certainly did not take can still be cut again."""

_HELD = select(chunks.c.attempts, chunks.c.not_sent, chunks.c.reason, chunks.c.not_before).where(
    chunks.c.delivery_id == bindparam("delivery"), chunks.c.number == 1
)

BLANK = "blank"
"""Reason of a delivery whose text has nothing to show."""


class EndReason(StrEnum):
    """Why the rest of a delivery is taken back."""

    STOPPED = "stopped"
    CANCELLED = "cancelled"
    NOT_ALLOWED = "not_allowed"
    EXPIRED = "expired"


class Cut(Protocol):
    """Cuts a text into pieces that a chat's channel takes in one send."""

    def __call__(self, text: str, *, is_markdown: bool) -> tuple[RichText, ...]:
        """Blank text gives no piece."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class NewDelivery:
    """A text to be sent; without chunks it is stored as suppressed, with the reason.

    `edits` is the platform's id of the message of ours that its one chunk replaces. `offers_job`
    is the job that a button under it allows to do what it asks for.
    """

    chat: ChatKey
    kind: DeliveryKind
    text: str
    chunks: tuple[RichText, ...]
    reason: str | None = None
    edits: str | None = None
    offers_job: JobId | None = None


def store_delivery(tx: Transaction, new: NewDelivery, *, now: datetime) -> DeliveryId:
    """Store a delivery with all its chunks."""
    state = DeliveryState.PENDING if new.chunks else DeliveryState.SUPPRESSED
    delivery = tx.connection.execute(
        _INSERT_DELIVERY,
        {
            "chat_key": str(new.chat),
            "kind": new.kind,
            "state": state,
            "reason": new.reason,
            "text": new.text,
            "edits": new.edits,
            "offers_job_id": new.offers_job,
            "created_at": to_millis(now),
            "settled_at": None if new.chunks else to_millis(now),
        },
    ).scalar_one()
    _store_chunks(tx.connection, DeliveryId(delivery), new.chunks)
    record_event(tx.connection, deliveries, delivery, (None, state), now=now, reason=new.reason)
    if new.chunks:
        tx.touch(Topic.DELIVERIES, new.chat)
    return DeliveryId(delivery)


def store_text(
    tx: Transaction, chat: ChatKey, kind: DeliveryKind, text: str, cut: Cut, *, now: datetime
) -> DeliveryId:
    """Store a text that is sent as it stands, without Markdown."""
    pieces = cut(text, is_markdown=False)
    reason = None if pieces else BLANK
    new = NewDelivery(chat=chat, kind=kind, text=text, chunks=pieces, reason=reason)
    return store_delivery(tx, new, now=now)


def store_silence(tx: Transaction, chat: ChatKey, *, reason: str, now: datetime) -> DeliveryId:
    """The delivery row of a turn's end that has nothing to send."""
    nothing = NewDelivery(chat=chat, kind=DeliveryKind.REPLY, text="", chunks=(), reason=reason)
    return store_delivery(tx, nothing, now=now)


def is_touched(connection: Connection, delivery: DeliveryId) -> bool:
    """What DELIVERY_IS_TOUCHED says, of one delivery."""
    return connection.execute(_TOUCHED, {"delivery": delivery}).first() is not None


def recut(
    tx: Transaction,
    delivery: DeliveryId,
    text: str,
    pieces: tuple[RichText, ...],
    *,
    now: datetime,
) -> None:
    """Replace the text of an untouched pending delivery; a blank one ends as suppressed.

    What holds it back (a rate limit, a back-off) holds the new text back as well.
    """
    held = tx.connection.execute(_HELD, {"delivery": delivery}).one_or_none()
    tx.connection.execute(delete(chunks).where(chunks.c.delivery_id == delivery))
    tx.connection.execute(update(deliveries).where(deliveries.c.id == delivery).values(text=text))
    _store_chunks(tx.connection, delivery, pieces)
    if held is not None:
        first = (chunks.c.delivery_id == delivery) & (chunks.c.number == 1)
        tx.connection.execute(update(chunks).where(first).values(held._asdict()))
    if not pieces:
        move = (DeliveryState.PENDING, DeliveryState.SUPPRESSED)
        values = {"reason": BLANK, "settled_at": to_millis(now)}
        save_transition(tx.connection, deliveries, delivery, move, values, now=now)
        settle_jobs(tx, delivery, DeliveryState.SUPPRESSED, now=now)


def drop_open(
    tx: Transaction,
    chat: ChatKey,
    *,
    kinds: Collection[DeliveryKind],
    reason: EndReason,
    now: datetime,
) -> int:
    """Take back the chat's unsent chunks of these kinds; returns how many deliveries.

    What is on the wire ends as it ends, and nothing of it is sent again.
    """
    rows = tx.connection.execute(
        select(deliveries.c.id, deliveries.c.state).where(
            deliveries.c.chat_key == str(chat),
            DELIVERY_IS_OPEN,
            deliveries.c.kind.in_(kinds),
        )
    ).all()
    for row in rows:
        drop_delivery(tx, DeliveryId(row.id), DeliveryState(row.state), reason=reason, now=now)
    return len(rows)


def drop_delivery(
    tx: Transaction, delivery: DeliveryId, state: DeliveryState, *, reason: EndReason, now: datetime
) -> None:
    """Take back one open delivery."""
    drop_chunks(tx.connection, delivery, now=now)
    if state is DeliveryState.SENDING:
        tx.connection.execute(
            update(deliveries).where(deliveries.c.id == delivery).values(reason=reason)
        )
        return
    move = (DeliveryState.PENDING, DeliveryState.DROPPED)
    values = {"reason": reason, "settled_at": to_millis(now)}
    save_transition(tx.connection, deliveries, delivery, move, values, now=now)
    settle_jobs(tx, delivery, DeliveryState.DROPPED, now=now)


def release_channel(tx: Transaction, channel: ChannelName) -> int:
    """A channel is up again: what waited for it may go out at once."""
    waiting = (
        select(deliveries.c.id)
        .join(chats, chats.c.chat_key == deliveries.c.chat_key)
        .where(DELIVERY_IS_PENDING, chats.c.channel == channel)
    )
    result = tx.connection.execute(
        update(chunks)
        .where(
            chunks.c.delivery_id.in_(waiting),
            chunks.c.reason == NotSentReason.CHANNEL_DOWN,
            chunks.c.state == ChunkState.PENDING,
        )
        .values(not_before=None)
    )
    return result.rowcount


def _store_chunks(
    connection: Connection, delivery: DeliveryId, pieces: tuple[RichText, ...]
) -> None:
    if not pieces:
        return
    connection.execute(
        _INSERT_CHUNK,
        [
            {
                "delivery_id": delivery,
                "number": number,
                "state": ChunkState.PENDING,
                "body": piece.to_json(),
            }
            for number, piece in enumerate(pieces, start=1)
        ],
    )


def is_open_chunk() -> ColumnElement[bool]:
    """Chunks that are on the wire or will be sent (again)."""
    return or_(
        chunks.c.state.in_((ChunkState.PENDING, ChunkState.SENDING)),
        and_(chunks.c.state == ChunkState.UNKNOWN, chunks.c.not_before.is_not(None)),
    )


def drop_chunks(connection: Connection, delivery: DeliveryId, *, now: datetime) -> None:
    """Take back the chunks of a delivery that would be sent (again)."""
    rows = connection.execute(
        select(chunks.c.id, chunks.c.state).where(
            chunks.c.delivery_id == delivery,
            is_open_chunk(),
            chunks.c.state != ChunkState.SENDING,
        )
    ).all()
    for row in rows:
        move = (ChunkState(row.state), ChunkState.DROPPED)
        save_transition(connection, chunks, row.id, move, {"not_before": None}, now=now)
