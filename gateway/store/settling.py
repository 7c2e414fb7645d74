"""What the end of a send means for its delivery, its jobs, and what the chat is told."""

from collections.abc import Mapping
from datetime import datetime

from sqlalchemy import bindparam, select, update

from gateway.domain.delivery import (
    ChunkState,
    DeliveryId,
    DeliveryKind,
    DeliveryState,
    settled_state,
)
from gateway.domain.job import one_line
from gateway.domain.message import ChatKey
from gateway.domain.schedule import to_millis
from gateway.store.database import Topic, Transaction
from gateway.store.deliveries import Cut, EndReason, is_open_chunk, store_text
from gateway.store.events import save_transition
from gateway.store.schema import DELIVERY_OWES_NOTICE, chunks, deliveries
from gateway.store.slots import MAX_FAILED_SLOTS, SwitchedOff, settle_jobs

_NAMED_TEXT = 120
_TAKEN_BACK = frozenset(EndReason) - {EndReason.EXPIRED}

_CHUNKS = (
    select(chunks.c.state, chunks.c.reason, is_open_chunk().label("is_open"))
    .where(chunks.c.delivery_id == bindparam("delivery"))
    .order_by(chunks.c.number)
)
_LOST = (
    select(deliveries.c.id, deliveries.c.text)
    .where(deliveries.c.chat_key == bindparam("chat"), DELIVERY_OWES_NOTICE)
    .order_by(deliveries.c.id)
)


def move_on(
    tx: Transaction,
    delivery: DeliveryId,
    chat: ChatKey,
    progress: Mapping[str, object],
    cut: Cut,
    *,
    now: datetime,
) -> None:
    """Move a delivery whose chunk came back: on to the next chunk, or to its end.

    `progress` is what the delivery's row takes over from the send: its attempts, and the reason
    while it stays open or is dropped. What was taken back is not told of as lost, however its
    chunks ended.
    """
    rows = tx.connection.execute(_CHUNKS, {"delivery": delivery}).all()
    tx.touch(Topic.ENDED, chat)
    if any(row.is_open for row in rows):
        back = (DeliveryState.SENDING, DeliveryState.PENDING)
        save_transition(tx.connection, deliveries, delivery, back, progress, now=now)
        return
    end = settled_state([ChunkState(row.state) for row in rows])
    reason = progress["reason"]
    if end is DeliveryState.SENT:
        reason = None
    elif end is not DeliveryState.DROPPED:
        reason = next(row.reason or row.state for row in rows if row.state != ChunkState.SENT)
    is_lost = end is not DeliveryState.SENT and progress["reason"] not in _TAKEN_BACK
    ended = {"reason": reason, "settled_at": to_millis(now), "owes_notice": is_lost}
    move = (DeliveryState.SENDING, end)
    save_transition(tx.connection, deliveries, delivery, move, {**progress, **ended}, now=now)
    for off in settle_jobs(tx, delivery, end, now=now):
        _tell_switched_off(tx, chat, off, cut, now=now)
    if end is DeliveryState.SENT:
        _name_lost(tx, chat, cut, now=now)


def _name_lost(tx: Transaction, chat: ChatKey, cut: Cut, *, now: datetime) -> None:
    """Something got through: tell the chat what did not, before."""
    rows = tx.connection.execute(_LOST, {"chat": str(chat)}).all()
    if not rows:
        return
    named = [row.id for row in rows]
    tx.connection.execute(
        update(deliveries).where(deliveries.c.id.in_(named)).values(owes_notice=False)
    )
    lines = "\n".join(f"• {one_line(row.text, limit=_NAMED_TEXT)}" for row in rows)
    text = f"Earlier, this may not have reached you, or not all of it:\n{lines}"
    store_text(tx, chat, DeliveryKind.NOTICE, text, cut, now=now)


def _tell_switched_off(
    tx: Transaction, chat: ChatKey, off: SwitchedOff, cut: Cut, *, now: datetime
) -> None:
    text = (
        f"Reminder #{off.job_id} failed {MAX_FAILED_SLOTS} times in a row and was switched off: "
        f'"{one_line(off.text, limit=_NAMED_TEXT)}". /resume {off.job_id} switches it on again.'
    )
    store_text(tx, chat, DeliveryKind.NOTICE, text, cut, now=now)
