"""What a chat was sent outside its session, and up to where the session was told of it."""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, bindparam, func, select, update

from gateway.domain.delivery import DeliveryId, DeliveryKind, DeliveryState
from gateway.domain.job import JobId
from gateway.domain.message import ChatKey
from gateway.store.events import read_moment
from gateway.store.schema import DELIVERY_IS_OPEN, chats, deliveries, turns

_RECENT = 10

_IS_SIGHT = deliveries.c.kind.in_((DeliveryKind.REMINDER, DeliveryKind.COMMAND))
_MARKS = select(
    chats.c.seen_delivery_id,
    select(func.max(deliveries.c.id))
    .where(deliveries.c.chat_key == chats.c.chat_key)
    .scalar_subquery()
    .label("newest"),
    select(func.min(deliveries.c.id))
    .where(deliveries.c.chat_key == chats.c.chat_key, DELIVERY_IS_OPEN, _IS_SIGHT)
    .scalar_subquery()
    .label("first_open"),
).where(chats.c.chat_key == bindparam("chat"))
_RECENT_SIGHTS = (
    select(deliveries)
    .where(
        deliveries.c.chat_key == bindparam("chat"),
        deliveries.c.id > bindparam("seen"),
        _IS_SIGHT,
        deliveries.c.state.in_((DeliveryState.SENT, DeliveryState.PARTIAL)),
    )
    .order_by(deliveries.c.id.desc())
    .limit(_RECENT)
)
_SEE = update(chats).where(chats.c.chat_key == bindparam("chat"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Sight:
    """Something that was sent to a chat outside its session."""

    kind: DeliveryKind
    text: str
    sent_at: datetime
    job_ids: tuple[JobId, ...]


def recent_sights(connection: Connection, chat: ChatKey) -> tuple[DeliveryId, tuple[Sight, ...]]:
    """What was sent to the chat outside its session since its last turn, oldest first.

    What is still on its way is told of once it arrived: up to there, and no further, all is seen.
    """
    key = str(chat)
    marks = connection.execute(_MARKS, {"chat": key}).one()
    newest = marks.newest or 0
    if newest <= marks.seen_delivery_id:
        return DeliveryId(marks.seen_delivery_id), ()
    seen = newest if marks.first_open is None else marks.first_open - 1
    since = {"chat": key, "seen": marks.seen_delivery_id}
    rows = connection.execute(_RECENT_SIGHTS, since).all()
    sights = []
    for row in reversed(rows):
        job_ids = connection.execute(
            select(turns.c.job_id).where(turns.c.delivery_id == row.id).order_by(turns.c.id)
        ).scalars()
        sights.append(
            Sight(
                kind=DeliveryKind(row.kind),
                text=row.text if isinstance(row.text, str) else "",
                sent_at=read_moment(row.settled_at),
                job_ids=tuple(JobId(job) for job in job_ids if job is not None),
            )
        )
    return DeliveryId(max(seen, marks.seen_delivery_id)), tuple(sights)


def mark_seen(connection: Connection, chat: ChatKey, delivery: DeliveryId) -> None:
    """The chat's session was told of what was sent up to this delivery."""
    connection.execute(_SEE, {"chat": str(chat), "seen_delivery_id": delivery})
