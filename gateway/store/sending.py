"""T4 and T5: one chunk at a time goes on the wire, and what became of it is written down."""

import logging
from collections.abc import Collection
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection, Row, bindparam, func, select, update

from gateway.domain.delivery import (
    Chunk,
    ChunkState,
    DeliveryId,
    DeliveryKind,
    DeliveryState,
    Moved,
    NotSentReason,
    Rejected,
    SendOutcome,
    Unknown,
    Verdict,
    is_expired,
    judge,
)
from gateway.domain.message import ChannelName, ChatKey
from gateway.domain.schedule import to_millis
from gateway.store.chats import Admits, move_chat, set_reachable
from gateway.store.database import Transaction
from gateway.store.deliveries import (
    Cut,
    EndReason,
    drop_chunks,
    drop_delivery,
    drop_open,
    is_open_chunk,
    is_touched,
    recut,
)
from gateway.store.events import moment, read_moment, save_transition
from gateway.store.reminders import reminder_saying
from gateway.store.schema import (
    CHUNK_IS_SENDING,
    DELIVERY_IS_OPEN,
    DELIVERY_IS_PENDING,
    chats,
    chunks,
    deliveries,
)
from gateway.store.settling import move_on
from gateway.store.wire import ToSend, buttons_under, load_step

log = logging.getLogger(__name__)

DAMAGED = "damaged"
"""Reason of a chunk whose stored form cannot be read."""

MAX_LOOKAHEAD = 50
"""How many open deliveries of a chat are looked at for one that may go out now."""

_STOPPING = frozenset(EndReason)

_PLACE = select(chats.c.address, chats.c.unreachable_since).where(
    chats.c.chat_key == bindparam("chat")
)
_HEADS = (
    select(deliveries.c.id, func.min(chunks.c.number).label("number"))
    .join(chunks, chunks.c.delivery_id == deliveries.c.id)
    .where(deliveries.c.chat_key == bindparam("chat"), DELIVERY_IS_OPEN, is_open_chunk())
    .group_by(deliveries.c.id)
    .order_by(deliveries.c.id)
    .limit(MAX_LOOKAHEAD)
    .subquery()
)
_CANDIDATES = (
    select(
        chunks,
        deliveries.c.kind,
        deliveries.c.edits,
        deliveries.c.offers_job_id,
        deliveries.c.state.label("delivery_state"),
        deliveries.c.text.label("delivery_text"),
    )
    .join(_HEADS, (_HEADS.c.id == chunks.c.delivery_id) & (_HEADS.c.number == chunks.c.number))
    .join(deliveries, deliveries.c.id == chunks.c.delivery_id)
    .order_by(chunks.c.delivery_id)
)
_ON_THE_WIRE = select(
    deliveries.c.chat_key, deliveries.c.reason, deliveries.c.attempts, deliveries.c.answered_at
).where(deliveries.c.id == bindparam("delivery"))


@dataclass(frozen=True, slots=True, kw_only=True)
class SendRules:
    """What sending needs from outside the store, for one channel."""

    account: str
    cut: Cut
    admits: Admits
    expiry: timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """Nothing of the chat may go out before `until`; None = until something changes."""

    until: datetime | None


def begin_send(tx: Transaction, chat: ChatKey, rules: SendRules, *, now: datetime) -> ToSend | Wait:
    """T4: put the chat's next chunk on the wire, or say how long there is nothing to do."""
    connection = tx.connection
    if not rules.admits(connection, chat):
        drop_open(tx, chat, kinds=tuple(DeliveryKind), reason=EndReason.NOT_ALLOWED, now=now)
        return Wait(until=None)
    row = connection.execute(_PLACE, {"chat": str(chat)}).one()
    if row.unreachable_since is not None:
        return Wait(until=None)
    while True:
        candidate = _next_candidate(connection, chat, now=now)
        if isinstance(candidate, Wait):
            return candidate
        if _bring_up_to_date(tx, candidate, rules.cut, now=now):
            continue
        _put_on_wire(tx, candidate, account=rules.account, now=now)
        step = load_step(candidate, chat, address=row.address)
        if step is not None:
            return replace(step, buttons=buttons_under(connection, candidate, chat))
        _reject_damaged(tx, candidate, chat, rules.cut, now=now)


def finish_send(
    tx: Transaction, sent: ToSend, outcome: SendOutcome, rules: SendRules, *, now: datetime
) -> Verdict:
    """T5: note what became of a chunk on the wire, and settle its delivery with the last one."""
    connection = tx.connection
    row = connection.execute(_ON_THE_WIRE, {"delivery": sent.delivery}).one()
    chat = ChatKey.parse(row.chat_key)
    if isinstance(outcome, Moved):
        move_chat(tx, chat.channel, _base_address(sent.address), outcome.to, now=now)
        # The ids of messages begin anew there: an edit would hit another one.
        unedited = update(deliveries).where(deliveries.c.id == sent.delivery)
        connection.execute(unedited.values(edits=None))
    verdict = judge(sent.chunk, outcome, now=now)
    if verdict.reason == NotSentReason.CHAT_UNREACHABLE:
        set_reachable(tx, chat, is_reachable=False, now=now)
    _save_verdict(connection, sent.chunk, verdict, now=now)
    if isinstance(outcome, Rejected) and outcome.chat_gone:
        _reject_rest(connection, sent.delivery, outcome.reason, now=now)
    answered_at = row.answered_at
    if answered_at is None and verdict.was_answered:
        answered_at = to_millis(now)
    end = row.reason if row.reason in _STOPPING else None
    has_failed = verdict.is_open and verdict.was_answered and verdict.reason is not None
    if has_failed and is_expired(answered_at=moment(answered_at), now=now, expiry=rules.expiry):
        end = end or EndReason.EXPIRED
    if end is not None:
        drop_chunks(connection, sent.delivery, now=now)
    progress = {
        "attempts": row.attempts + (verdict.attempts - sent.chunk.attempts),
        "answered_at": answered_at,
        "reason": end or verdict.reason,
    }
    move_on(tx, sent.delivery, chat, progress, rules.cut, now=now)
    return verdict


def _save_verdict(connection: Connection, chunk: Chunk, verdict: Verdict, *, now: datetime) -> None:
    """Write what a send made of its chunk."""
    is_sent = verdict.state is ChunkState.SENT
    save_transition(
        connection,
        chunks,
        chunk.id,
        (ChunkState.SENDING, verdict.state),
        {
            "body": verdict.body.to_json(),
            "attempts": verdict.attempts,
            "unknowns": verdict.unknowns,
            "unanswered": verdict.unanswered,
            "not_sent": verdict.not_sent,
            "reason": verdict.reason,
            "external_id": verdict.external_id,
            "not_before": None if verdict.not_before is None else to_millis(verdict.not_before),
            "sent_at": to_millis(now) if is_sent else None,
        },
        now=now,
    )


def _next_candidate(connection: Connection, chat: ChatKey, *, now: datetime) -> Row[Any] | Wait:
    """The first chunk that may go out: chunks never overtake within a delivery, a delivery that
    waits lets later ones pass, and a rate limit holds the whole chat.
    """
    rows = connection.execute(_CANDIDATES, {"chat": str(chat)}).all()
    if any(row.state == ChunkState.SENDING for row in rows):
        return Wait(until=None)
    at = {row.id: _ready_at(row) for row in rows}
    waiting = [row for row in rows if at[row.id] > now]
    held = [at[row.id] for row in waiting if row.reason == NotSentReason.RATE_LIMITED]
    if held:
        return Wait(until=max(held))
    ready = next((row for row in rows if at[row.id] <= now), None)
    if ready is not None:
        return ready
    return Wait(until=min((at[row.id] for row in waiting), default=None))


def _ready_at(row: Row[Any]) -> datetime:
    """When a chunk may go out; a damaged moment holds nothing back."""
    return read_moment(row.not_before or 0)


def recover_sends(
    tx: Transaction, channels: Collection[ChannelName], rules: SendRules, *, now: datetime
) -> int:
    """After a crash between T4 and T5 nobody knows what became of the chunk on the wire.

    Returns how many there were.
    """
    rows = tx.connection.execute(
        select(
            chunks,
            deliveries.c.kind,
            deliveries.c.edits,
            deliveries.c.chat_key,
            deliveries.c.reason.label("delivery_reason"),
            chats.c.address,
        )
        .join(deliveries, deliveries.c.id == chunks.c.delivery_id)
        .join(chats, chats.c.chat_key == deliveries.c.chat_key)
        .where(
            DELIVERY_IS_OPEN,
            CHUNK_IS_SENDING,
            chats.c.channel.in_(channels),
        )
    ).all()
    for row in rows:
        chat = ChatKey.parse(row.chat_key)
        sent = load_step(row, chat, address=row.address)
        if sent is None:
            _reject_damaged(tx, row, chat, rules.cut, now=now, end=row.delivery_reason)
            continue
        lost = Unknown(reason="interrupted", answered=False)
        finish_send(tx, sent, lost, rules, now=now)
    return len(rows)


def mark_channel_down(tx: Transaction, chat: ChatKey) -> None:
    """Note on what waits that the chat's channel is not running here."""
    tx.connection.execute(
        update(deliveries)
        .where(
            deliveries.c.chat_key == str(chat),
            DELIVERY_IS_PENDING,
            deliveries.c.reason.is_(None),
        )
        .values(reason=NotSentReason.CHANNEL_DOWN)
    )


def open_delivery_chats(
    connection: Connection, channels: Collection[ChannelName]
) -> tuple[ChatKey, ...]:
    """The chats that have something to send."""
    rows = connection.execute(
        select(deliveries.c.chat_key)
        .distinct()
        .join(chats, chats.c.chat_key == deliveries.c.chat_key)
        .where(DELIVERY_IS_OPEN, chats.c.channel.in_(channels))
    ).scalars()
    return tuple(ChatKey.parse(key) for key in rows)


def _bring_up_to_date(tx: Transaction, row: Row[Any], cut: Cut, *, now: datetime) -> bool:
    """Write a reminder as it is true now: late lines say so, cancelled ones are gone.

    True = it was cut again, or ended since nothing of it is left; look for the next chunk again.
    """
    delivery = DeliveryId(row.delivery_id)
    if row.kind != DeliveryKind.REMINDER or is_touched(tx.connection, delivery):
        return False
    saying = reminder_saying(tx.connection, delivery, now=now)
    if saying is None:
        drop_delivery(tx, delivery, DeliveryState.PENDING, reason=EndReason.CANCELLED, now=now)
        return True
    if saying.text == row.delivery_text:
        return False
    recut(tx, delivery, saying.text, saying.pieces(cut), now=now)
    return True


def _put_on_wire(tx: Transaction, row: Row[Any], *, account: str, now: datetime) -> None:
    move = (ChunkState(row.state), ChunkState.SENDING)
    save_transition(tx.connection, chunks, row.id, move, {"account": account}, now=now)
    if row.delivery_state == DeliveryState.PENDING:
        forth = (DeliveryState.PENDING, DeliveryState.SENDING)
        save_transition(tx.connection, deliveries, row.delivery_id, forth, {}, now=now)


def _reject_damaged(
    tx: Transaction,
    row: Row[Any],
    chat: ChatKey,
    cut: Cut,
    *,
    now: datetime,
    end: str | None = None,
) -> None:
    """Refuse a chunk on the wire that cannot be read, so that what is behind it goes on.

    `end` is why the delivery was to end meanwhile.
    """
    refused = {"reason": DAMAGED, "not_before": None}
    move = (ChunkState.SENDING, ChunkState.REJECTED)
    save_transition(tx.connection, chunks, row.id, move, refused, now=now)
    reason = end if end in _STOPPING else DAMAGED
    move_on(tx, DeliveryId(row.delivery_id), chat, {"reason": reason}, cut, now=now)


def _reject_rest(
    connection: Connection, delivery: DeliveryId, reason: str, *, now: datetime
) -> None:
    """No chunk will do better than the one before: each is refused with it, unsent.

    So the delivery ends as failed or partial, as it does when each of them was tried.
    """
    rows = connection.execute(
        select(chunks.c.id, chunks.c.state).where(chunks.c.delivery_id == delivery, is_open_chunk())
    ).all()
    for row in rows:
        state = ChunkState(row.state)
        if state is ChunkState.PENDING:
            move = (state, ChunkState.SENDING)
            save_transition(connection, chunks, row.id, move, {}, now=now)
            state = ChunkState.SENDING
        refused = {"reason": reason, "not_before": None}
        save_transition(connection, chunks, row.id, (state, ChunkState.REJECTED), refused, now=now)


def _base_address(address: str) -> str:
    """The chat's own part of an address, without its topic."""
    return address.partition(":")[0]
