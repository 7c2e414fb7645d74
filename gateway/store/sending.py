"""T4 and T5: one chunk at a time goes on the wire, and what became of it is written down."""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection, Row, func, select, true, update

from gateway.domain.chunking import RichText
from gateway.domain.delivery import (
    Chunk,
    ChunkId,
    ChunkState,
    DeliveryId,
    DeliveryKind,
    DeliveryState,
    Moved,
    NotSentReason,
    SendOutcome,
    Unknown,
    Verdict,
    is_expired,
    judge,
    settled_state,
)
from gateway.domain.job import one_line, reminder_text
from gateway.domain.message import ChannelName, ChatKey
from gateway.domain.schedule import to_millis
from gateway.store.chats import move_chat, set_reachable
from gateway.store.database import Topic, Transaction
from gateway.store.deliveries import (
    OPEN_STATES,
    Cut,
    EndReason,
    NewDelivery,
    drop_chunks,
    drop_delivery,
    drop_open,
    is_open_chunk,
    recut,
    store_delivery,
)
from gateway.store.events import moment, save_move
from gateway.store.reminders import due_reminders, settle_jobs
from gateway.store.schema import chats, chunks, deliveries

MAX_LOOKAHEAD = 50
"""How many open deliveries of a chat are looked at for one that may go out now."""

_NAMED_TEXT = 120
_STOPPING = frozenset(EndReason)
_TAKEN_BACK = _STOPPING - {EndReason.EXPIRED}

Admits = Callable[[Connection, ChatKey], bool]
"""Whether a chat is (still) allowed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SendRules:
    """What sending needs from outside the store, for one channel."""

    account: str
    cut: Cut
    admits: Admits
    expiry: timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class ToSend:
    """A chunk that T4 put on the wire, and where it goes."""

    chunk: Chunk
    delivery: DeliveryId
    kind: DeliveryKind
    address: str


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
    row = connection.execute(
        select(chats.c.address, chats.c.unreachable_since).where(chats.c.chat_key == str(chat))
    ).one()
    if row.unreachable_since is not None:
        return Wait(until=None)
    candidate = _next_candidate(connection, chat, now=now)
    if isinstance(candidate, Wait):
        return candidate
    if candidate.kind == DeliveryKind.REMINDER and not _was_tried(candidate):
        if not _compose_reminder(tx, candidate, rules.cut, now=now):
            return begin_send(tx, chat, rules, now=now)
        candidate = _next_candidate(connection, chat, now=now)
        if isinstance(candidate, Wait):
            return candidate
    return _put_on_wire(tx, candidate, address=row.address, account=rules.account, now=now)


def finish_send(
    tx: Transaction, sent: ToSend, outcome: SendOutcome, rules: SendRules, *, now: datetime
) -> Verdict:
    """T5: note what became of a chunk on the wire, and settle its delivery with the last one."""
    connection = tx.connection
    row = connection.execute(select(deliveries).where(deliveries.c.id == sent.delivery)).one()
    chat = ChatKey.parse(row.chat_key)
    if isinstance(outcome, Moved):
        move_chat(tx, chat.channel, _base_address(sent.address), outcome.to, now=now)
    verdict = judge(sent.chunk, outcome, now=now)
    if verdict.reason == NotSentReason.CHAT_UNREACHABLE:
        set_reachable(tx, chat, is_reachable=False, now=now)
    _save_verdict(connection, sent.chunk, verdict, now=now)
    answered_at = row.answered_at
    if answered_at is None and verdict.was_answered:
        answered_at = to_millis(now)
    connection.execute(
        update(deliveries)
        .where(deliveries.c.id == sent.delivery)
        .values(
            attempts=row.attempts + (verdict.attempts - sent.chunk.attempts),
            answered_at=answered_at,
        )
    )
    end = row.reason if row.reason in _STOPPING else None
    has_failed = verdict.is_open and verdict.was_answered and verdict.reason is not None
    if has_failed and is_expired(answered_at=moment(answered_at), now=now, expiry=rules.expiry):
        end = end or EndReason.EXPIRED
    if end is not None:
        drop_chunks(connection, sent.delivery, now=now)
    _settle(tx, sent.delivery, chat, reason=end or verdict.reason, rules=rules, now=now)
    return verdict


def _save_verdict(connection: Connection, chunk: Chunk, verdict: Verdict, *, now: datetime) -> None:
    """Write what a send made of its chunk."""
    is_sent = verdict.state is ChunkState.SENT
    save_move(
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


def _settle(
    tx: Transaction,
    delivery: DeliveryId,
    chat: ChatKey,
    *,
    reason: str | None,
    rules: SendRules,
    now: datetime,
) -> None:
    """Move a delivery whose chunk came back: on to the next chunk, or to its end."""
    end = _move_on(tx, delivery, chat, reason=reason, now=now)
    if end is None:
        return
    settle_jobs(tx, delivery, end, now=now)
    if end is DeliveryState.SENT:
        _name_lost(tx, chat, rules.cut, now=now)


def _move_on(
    tx: Transaction, delivery: DeliveryId, chat: ChatKey, *, reason: str | None, now: datetime
) -> DeliveryState | None:
    rows = tx.connection.execute(
        select(chunks.c.state, chunks.c.reason, is_open_chunk().label("is_open"))
        .where(chunks.c.delivery_id == delivery)
        .order_by(chunks.c.number)
    ).all()
    tx.touch(Topic.DELIVERIES, chat)
    if any(row.is_open for row in rows):
        back = (DeliveryState.SENDING, DeliveryState.PENDING)
        save_move(tx.connection, deliveries, delivery, back, {"reason": reason}, now=now)
        return None
    end = settled_state([ChunkState(row.state) for row in rows])
    if end is DeliveryState.SENT:
        reason = None
    elif end is not DeliveryState.DROPPED:
        reason = next(row.reason or row.state for row in rows if row.state != ChunkState.SENT)
    is_lost = end is not DeliveryState.SENT and reason not in _TAKEN_BACK
    values = {"reason": reason, "settled_at": to_millis(now), "owes_notice": is_lost}
    move = (DeliveryState.SENDING, end)
    save_move(tx.connection, deliveries, delivery, move, values, now=now)
    return end


def _name_lost(tx: Transaction, chat: ChatKey, cut: Cut, *, now: datetime) -> None:
    """Something got through: tell the chat what did not, before."""
    lost = (deliveries.c.chat_key == str(chat), deliveries.c.owes_notice == true())
    rows = tx.connection.execute(select(deliveries.c.id, deliveries.c.text).where(*lost)).all()
    if not rows:
        return
    tx.connection.execute(update(deliveries).where(*lost).values(owes_notice=False))
    lines = "\n".join(f"• {one_line(row.text, limit=_NAMED_TEXT)}" for row in rows)
    text = f"Earlier, this did not get through to you (or not all of it):\n{lines}"
    notice = NewDelivery(
        chat=chat, kind=DeliveryKind.NOTICE, text=text, chunks=cut(text, is_markdown=False)
    )
    store_delivery(tx, notice, now=now)


def _next_candidate(connection: Connection, chat: ChatKey, *, now: datetime) -> Row[Any] | Wait:
    """The first chunk that may go out: chunks never overtake within a delivery, a delivery that
    waits lets later ones pass, and a rate limit holds the whole chat.
    """
    heads = (
        select(chunks.c.delivery_id, func.min(chunks.c.number).label("number"))
        .join(deliveries, deliveries.c.id == chunks.c.delivery_id)
        .where(
            deliveries.c.chat_key == str(chat),
            deliveries.c.state.in_(OPEN_STATES),
            is_open_chunk(),
        )
        .group_by(chunks.c.delivery_id)
        .order_by(chunks.c.delivery_id)
        .limit(MAX_LOOKAHEAD)
        .subquery()
    )
    rows = connection.execute(
        select(chunks, deliveries.c.kind, deliveries.c.state.label("delivery_state"))
        .join(
            heads,
            (heads.c.delivery_id == chunks.c.delivery_id) & (heads.c.number == chunks.c.number),
        )
        .join(deliveries, deliveries.c.id == chunks.c.delivery_id)
        .order_by(chunks.c.delivery_id)
    ).all()
    if any(row.state == ChunkState.SENDING for row in rows):
        return Wait(until=None)
    at = to_millis(now)
    waiting = [row for row in rows if (row.not_before or 0) > at]
    held = [row.not_before for row in waiting if row.reason == NotSentReason.RATE_LIMITED]
    if held:
        return Wait(until=moment(max(held)))
    ready = next((row for row in rows if (row.not_before or 0) <= at), None)
    if ready is not None:
        return ready
    return Wait(until=moment(min((row.not_before for row in waiting), default=None)))


def recover_sends(
    tx: Transaction, channels: Collection[ChannelName], rules: SendRules, *, now: datetime
) -> int:
    """After a crash between T4 and T5 nobody knows what became of the chunk on the wire.

    Returns how many there were.
    """
    rows = tx.connection.execute(
        select(chunks, deliveries.c.kind, deliveries.c.chat_key, chats.c.address)
        .join(deliveries, deliveries.c.id == chunks.c.delivery_id)
        .join(chats, chats.c.chat_key == deliveries.c.chat_key)
        .where(
            deliveries.c.state == DeliveryState.SENDING,
            chunks.c.state == ChunkState.SENDING,
            chats.c.channel.in_(channels),
        )
    ).all()
    for row in rows:
        sent = ToSend(
            chunk=load_chunk(row),
            delivery=DeliveryId(row.delivery_id),
            kind=DeliveryKind(row.kind),
            address=row.address,
        )
        lost = Unknown(reason="interrupted", answered=False)
        finish_send(tx, sent, lost, rules, now=now)
    return len(rows)


def mark_channel_down(tx: Transaction, chat: ChatKey) -> None:
    """Note on what waits that the chat's channel is not running here."""
    tx.connection.execute(
        update(deliveries)
        .where(
            deliveries.c.chat_key == str(chat),
            deliveries.c.state == DeliveryState.PENDING,
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
        .where(deliveries.c.state.in_(OPEN_STATES), chats.c.channel.in_(channels))
    ).scalars()
    return tuple(ChatKey.parse(key) for key in rows)


def _compose_reminder(tx: Transaction, row: Row[Any], cut: Cut, *, now: datetime) -> bool:
    """Write the reminder as it is true now: late lines say so, cancelled ones are gone.

    False = no line was left, and the delivery is dropped.
    """
    delivery = DeliveryId(row.delivery_id)
    due = due_reminders(tx.connection, delivery)
    if not due:
        drop_delivery(tx, delivery, DeliveryState.PENDING, reason=EndReason.CANCELLED, now=now)
        return False
    text = reminder_text(due, now=now)
    stored = tx.connection.execute(
        select(deliveries.c.text).where(deliveries.c.id == delivery)
    ).scalar_one()
    if text != stored:
        recut(tx, delivery, text, cut(text, is_markdown=False))
    return True


def _put_on_wire(
    tx: Transaction, row: Row[Any], *, address: str, account: str, now: datetime
) -> ToSend:
    move = (ChunkState(row.state), ChunkState.SENDING)
    save_move(tx.connection, chunks, row.id, move, {"account": account}, now=now)
    if row.delivery_state == DeliveryState.PENDING:
        forth = (DeliveryState.PENDING, DeliveryState.SENDING)
        save_move(tx.connection, deliveries, row.delivery_id, forth, {}, now=now)
    return ToSend(
        chunk=load_chunk(row),
        delivery=DeliveryId(row.delivery_id),
        kind=DeliveryKind(row.kind),
        address=address,
    )


def load_chunk(row: Row[Any]) -> Chunk:
    """A chunk from its row."""
    return Chunk(
        id=ChunkId(row.id),
        delivery_id=DeliveryId(row.delivery_id),
        number=row.number,
        state=ChunkState.SENDING,
        body=RichText.from_json(row.body),
        attempts=row.attempts,
        unknowns=row.unknowns,
        unanswered=row.unanswered,
        not_sent=row.not_sent,
    )


def _was_tried(row: Row[Any]) -> bool:
    return bool(row.number > 1 or row.attempts or row.unknowns or row.unanswered)


def _base_address(address: str) -> str:
    """The chat's own part of an address, without its topic."""
    return address.partition(":")[0]
