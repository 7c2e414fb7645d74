"""Inbound messages: what came in, once, and the turn that each one joined."""

import json
import logging
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, bindparam, exists, insert, select, update

from gateway.domain.message import (
    Attachment,
    ChatKey,
    Edit,
    Message,
    MessageId,
    MessageKind,
    NewMessage,
)
from gateway.domain.schedule import to_millis
from gateway.domain.turn import Trigger, TurnId, TurnState
from gateway.store.chats import ensure_chat, note_message, resolve_chat
from gateway.store.database import Topic, Transaction, upsert
from gateway.store.events import millis, read_moment, record_event
from gateway.store.schema import TURN_IS_QUEUED, messages, runs, turns

log = logging.getLogger(__name__)

MAX_JOINED = 50
MAX_JOINED_BYTES = 64 * 1024

_HAS_RUN = exists().where(runs.c.turn_id == turns.c.id)
_WAITING_TURN = (
    select(turns.c.id, turns.c.not_before)
    .where(
        turns.c.chat_key == bindparam("chat"),
        TURN_IS_QUEUED,
        turns.c.trigger == Trigger.MESSAGE,
        ~_HAS_RUN,
    )
    .order_by(turns.c.id.desc())
    .limit(1)
)
_INSERT_MESSAGE = upsert(messages).on_conflict_do_nothing().returning(messages.c.id)
_PUT_IN_TURN = update(messages).where(messages.c.id == bindparam("message"))
_INSERT_TURN = insert(turns).returning(turns.c.id)
_TURN_MESSAGES = (
    select(messages).where(messages.c.turn_id == bindparam("turn")).order_by(messages.c.id)
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """A message that was stored just now, and the stored key of its chat."""

    id: MessageId
    chat: ChatKey


def record_message(
    tx: Transaction, message: NewMessage, *, now: datetime, reason: str | None = None
) -> Recorded | None:
    """Store a message; None = it was stored before, and nothing is to be done.

    `reason` says why no turn will hold it (command, too_old, unsupported, loop).
    """
    chat = ensure_chat(tx, message.chat, is_group=message.is_group, now=now)
    inserted = tx.connection.execute(
        _INSERT_MESSAGE,
        {
            "chat_key": str(chat),
            "channel": message.chat.channel,
            "account": message.account,
            "address": message.address,
            "kind": message.kind,
            "external_id": message.external_id,
            "sender_id": message.sender_id,
            "sender_name": message.sender_name,
            "text": message.text,
            "quoted": message.quoted,
            "attachments": _attachments_to_json(message.attachments),
            "is_part": message.is_part,
            "reason": reason,
            "sent_at": to_millis(message.sent_at),
            "received_at": to_millis(now),
        },
    ).scalar_one_or_none()
    if inserted is None:
        return None
    note_message(tx, chat, now=now)
    return Recorded(id=MessageId(inserted), chat=chat)


def admit_message(tx: Transaction, message: NewMessage, *, now: datetime) -> TurnId | None:
    """T1: store a message and the turn that will answer it; None = it was stored before.

    It joins the chat's newest queued message turn that has had no run, while that has room.
    """
    recorded = record_message(tx, message, now=now)
    if recorded is None:
        return None
    not_before = None if message.hold is None else now + message.hold
    turn = _join(tx.connection, recorded.chat, size=_size(message.text), not_before=not_before)
    if turn is None:
        turn = _insert_turn(tx, recorded, not_before=not_before, now=now)
    tx.connection.execute(_PUT_IN_TURN, {"message": recorded.id, "turn_id": turn})
    tx.touch(Topic.TURNS, recorded.chat)
    return turn


def _join(
    connection: Connection, chat: ChatKey, *, size: int, not_before: datetime | None
) -> TurnId | None:
    """The queued turn that takes in `size` bytes more, and waits as the newest part says."""
    waiting = connection.execute(_WAITING_TURN, {"chat": str(chat)}).one_or_none()
    if waiting is None:
        return None
    held = [_size(message.text) for message in turn_messages(connection, waiting.id)]
    has_room = len(held) < MAX_JOINED and sum(held) + size <= MAX_JOINED_BYTES
    # A full turn waits for nothing any more, else what comes next would overtake it.
    wait = millis(not_before) if has_room else None
    if wait != waiting.not_before:
        connection.execute(update(turns).where(turns.c.id == waiting.id).values(not_before=wait))
    return TurnId(waiting.id) if has_room else None


def _size(text: str) -> int:
    return len(text.encode())


def is_held(connection: Connection, chat: ChatKey, *, now: datetime) -> bool:
    """Whether the chat's queued turn waits for more parts of the same message."""
    stored = str(resolve_chat(connection, chat))
    waiting = connection.execute(_WAITING_TURN, {"chat": stored}).one_or_none()
    if waiting is None or waiting.not_before is None:
        return False
    return bool(waiting.not_before > to_millis(now))


def is_continued(connection: Connection, chat: ChatKey, sender_id: str, *, now: datetime) -> bool:
    """Whether the chat waits for the rest of a text that this sender's client cut."""
    if not is_held(connection, chat, now=now):
        return False
    last = connection.execute(
        select(messages.c.sender_id, messages.c.is_part)
        .where(messages.c.chat_key == str(resolve_chat(connection, chat)))
        .order_by(messages.c.id.desc())
        .limit(1)
    ).one()
    return bool(last.is_part and last.sender_id == sender_id)


def edit_message(tx: Transaction, edit: Edit) -> bool:
    """Replace the text of a message whose turn is still queued and had no run; false = too late."""
    in_waiting_turn = (
        select(turns.c.id).where(turns.c.id == messages.c.turn_id, TURN_IS_QUEUED, ~_HAS_RUN)
    ).exists()
    changed = tx.connection.execute(
        update(messages)
        .where(
            messages.c.channel == edit.chat.channel,
            messages.c.account == edit.account,
            messages.c.address == edit.address,
            messages.c.kind == MessageKind.MESSAGE,
            messages.c.external_id == edit.external_id,
            in_waiting_turn,
        )
        .values(text=edit.text)
    )
    return changed.rowcount > 0


def turn_messages(connection: Connection, turn: TurnId) -> tuple[Message, ...]:
    """The messages that a turn holds, in the order in which they came."""
    rows = connection.execute(_TURN_MESSAGES, {"turn": turn}).all()
    return tuple(_message(row) for row in rows)


def _message(row: Row[Any]) -> Message:
    """A message from its row; what of it is damaged is left out, and the rest is answered."""
    return Message(
        id=MessageId(row.id),
        chat=ChatKey.parse(row.chat_key),
        external_id=row.external_id,
        sender_id=row.sender_id,
        sender_name=_text(row.sender_name),
        text=_text(row.text),
        quoted=None if row.quoted is None else _text(row.quoted),
        attachments=_read_attachments(row),
        sent_at=read_moment(row.sent_at),
        is_part=row.is_part,
    )


def _text(stored: object) -> str:
    return stored if isinstance(stored, str) else ""


def _read_attachments(row: Row[Any]) -> tuple[Attachment, ...]:
    try:
        return _attachments_from_json(row.attachments)
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        log.warning("message_damaged", extra={"stored": row.id, "error": type(error).__name__})
        return ()


def _insert_turn(
    tx: Transaction, recorded: Recorded, *, not_before: datetime | None, now: datetime
) -> TurnId:
    turn = tx.connection.execute(
        _INSERT_TURN,
        {
            "chat_key": str(recorded.chat),
            "trigger": Trigger.MESSAGE,
            "source_key": f"message:{recorded.id}",
            "state": TurnState.QUEUED,
            "not_before": millis(not_before),
            "created_at": to_millis(now),
        },
    ).scalar_one()
    record_event(tx.connection, turns, turn, (None, TurnState.QUEUED), now=now)
    return TurnId(turn)


def _attachments_to_json(attachments: tuple[Attachment, ...]) -> str:
    return json.dumps([{"kind": a.kind, "file_id": a.file_id, "size": a.size} for a in attachments])


def _attachments_from_json(stored: str) -> tuple[Attachment, ...]:
    return tuple(
        Attachment(kind=item["kind"], file_id=item["file_id"], size=item["size"])
        for item in json.loads(stored)
    )
