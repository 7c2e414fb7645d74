"""What goes on the wire: a chunk, the message that it replaces, and the buttons under it."""

import logging
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row, bindparam, func, select

from gateway.domain.button import Button, ButtonAction, reminder_buttons
from gateway.domain.delivery import Chunk, ChunkId, ChunkState, DeliveryId, DeliveryKind
from gateway.domain.job import Job, JobState
from gateway.domain.message import ChatKey
from gateway.domain.richtext import RichText
from gateway.store.schema import chunks, deliveries, jobs, turns

log = logging.getLogger(__name__)

_LAST_NUMBER = select(func.max(chunks.c.number)).where(
    chunks.c.delivery_id == bindparam("delivery")
)
_CARRIED = (
    select(turns.c.id)
    .join(jobs, jobs.c.id == turns.c.job_id)
    .where(turns.c.delivery_id == bindparam("delivery"), jobs.c.state != JobState.CANCELLED)
    .limit(2)
)
_ASKS_FOR_MORE = select(jobs.c.id).where(
    jobs.c.id == bindparam("job"),
    jobs.c.chat_key == bindparam("chat"),
    jobs.c.state.in_((JobState.ACTIVE, JobState.PAUSED)),
    jobs.c.asked_tier != jobs.c.tier,
)
_SENT_AS = (
    select(chunks)
    .join(deliveries, deliveries.c.id == chunks.c.delivery_id)
    .where(
        chunks.c.external_id == bindparam("external_id"),
        deliveries.c.chat_key == bindparam("chat"),
        # What a press made of the message is no part of it.
        deliveries.c.edits.is_(None),
    )
    .order_by(chunks.c.id.desc())
    .limit(1)
)


_OFFERED = (
    select(deliveries.c.text)
    .join(chunks, chunks.c.delivery_id == deliveries.c.id)
    .where(
        chunks.c.external_id == bindparam("external_id"),
        deliveries.c.chat_key == bindparam("chat"),
        deliveries.c.offers_job_id == bindparam("job"),
    )
    .limit(1)
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToSend:
    """A chunk that T4 put on the wire, and where it goes.

    `edits` is the platform's id of the message of ours that it replaces.
    """

    chunk: Chunk
    delivery: DeliveryId
    kind: DeliveryKind
    address: str
    edits: str | None = None
    buttons: tuple[Button, ...] = ()

    @property
    def body(self) -> RichText:
        """What is sent: marked if it may be a repeat, which an edit never is."""
        return self.chunk.to_send() if self.edits is None else self.chunk.body


def load_step(row: Row[Any], chat: ChatKey, *, address: str) -> ToSend | None:
    """What the row of a chunk on the wire says is sent; None = it is damaged."""
    try:
        chunk = _load_chunk(row)
    except (ValueError, TypeError) as error:
        named = {"chat": str(chat), "delivery": row.delivery_id, "number": row.number}
        log.warning("chunk_damaged", extra={**named, "error": type(error).__name__})
        return None
    return ToSend(
        chunk=chunk,
        delivery=DeliveryId(row.delivery_id),
        kind=DeliveryKind(row.kind),
        address=address,
        edits=row.edits,
    )


def buttons_under(connection: Connection, row: Row[Any], chat: ChatKey) -> tuple[Button, ...]:
    """The buttons under a chunk: the last one of a single reminder, or of an offer, has some."""
    is_reminder = row.kind == DeliveryKind.REMINDER
    if not is_reminder and row.offers_job_id is None:
        return ()
    last = connection.execute(_LAST_NUMBER, {"delivery": row.delivery_id}).scalar_one()
    if row.number != last:
        return ()
    if is_reminder:
        carried = connection.execute(_CARRIED, {"delivery": row.delivery_id}).all()
        return reminder_buttons(row.delivery_id) if len(carried) == 1 else ()
    offered = {"job": row.offers_job_id, "chat": str(chat)}
    if connection.execute(_ASKS_FOR_MORE, offered).first() is None:
        return ()
    return (Button(action=ButtonAction.ALLOW, subject=row.offers_job_id),)


def sent_body(connection: Connection, chat: ChatKey, external_id: str) -> RichText | None:
    """What the message of ours said when it was sent; None = it is not known any more."""
    named = {"chat": str(chat), "external_id": external_id}
    row = connection.execute(_SENT_AS, named).one_or_none()
    if row is None:
        return None
    try:
        return _load_chunk(row).to_send()
    except (ValueError, TypeError):
        return None


def is_offer_of(connection: Connection, chat: ChatKey, external_id: str, job: Job) -> bool:
    """Whether a message of ours offers to allow this job, with the text that it has now."""
    named = {"chat": str(chat), "external_id": external_id, "job": job.id}
    offered = connection.execute(_OFFERED, named).scalar_one_or_none()
    return isinstance(offered, str) and job.text in offered


def _load_chunk(row: Row[Any]) -> Chunk:
    """A chunk from its row; raises ValueError or TypeError when it is damaged."""
    return Chunk(
        id=ChunkId(row.id),
        delivery_id=DeliveryId(row.delivery_id),
        number=row.number,
        state=ChunkState.SENDING,
        body=RichText.from_json(row.body),
        attempts=_count(row.attempts),
        unknowns=_count(row.unknowns),
        unanswered=_count(row.unanswered),
        not_sent=_count(row.not_sent),
    )


def _count(stored: object) -> int:
    if not isinstance(stored, int):
        raise ValueError("not a count")
    return stored
