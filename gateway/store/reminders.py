"""Reminder deliveries: which slots' texts one carries, and what it says now."""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, bindparam, insert, select, update

from gateway.domain.delivery import DeliveryId, DeliveryKind, DeliveryState
from gateway.domain.job import JobId, JobState
from gateway.domain.message import ChatKey
from gateway.domain.reminder import DueReminder, late_note, reminder_text
from gateway.domain.richtext import RichText
from gateway.domain.schedule import to_millis
from gateway.domain.turn import TurnId
from gateway.domain.wallclock import zone_or_none
from gateway.store.database import Topic, Transaction
from gateway.store.deliveries import DELIVERY_IS_TOUCHED, Cut, recut
from gateway.store.events import read_moment, record_event
from gateway.store.schema import DELIVERY_IS_PENDING, deliveries, jobs, turns

_LINES_OF_A_JOB = 3
_DAMAGED_TEXT = "(its text is damaged)"

_SLOTS = (
    select(turns.c.text, turns.c.slot_at, turns.c.reply, jobs.c.id, jobs.c.timezone)
    .join(jobs, jobs.c.id == turns.c.job_id)
    .where(turns.c.delivery_id == bindparam("delivery"), jobs.c.state != JobState.CANCELLED)
    .order_by(turns.c.slot_at, turns.c.id)
)
_HOLDS_REPLY = (
    select(turns.c.id)
    .where(turns.c.delivery_id == deliveries.c.id, turns.c.reply.is_not(None))
    .exists()
)
_WAITING = (
    select(deliveries.c.id)
    .where(
        deliveries.c.chat_key == bindparam("chat"),
        deliveries.c.kind == DeliveryKind.REMINDER,
        DELIVERY_IS_PENDING,
        ~DELIVERY_IS_TOUCHED,
        ~_HOLDS_REPLY,
    )
    .order_by(deliveries.c.id.desc())
    .limit(1)
)
_INSERT_DELIVERY = insert(deliveries).returning(deliveries.c.id)
_PUT_IN_DELIVERY = update(turns).where(turns.c.id == bindparam("turn"))


def due_reminders(connection: Connection, delivery: DeliveryId) -> list[DueReminder]:
    """The slots whose text a delivery carries, oldest first, without those of cancelled jobs.

    Of many slots of a job the newest stand for all: nobody reads a hundred lines that are alike.
    A job that was damaged since it fired is told as well as it can be, and harms no other.
    """
    rows = connection.execute(_SLOTS, {"delivery": delivery}).all()
    ahead = Counter(row.id for row in rows)
    due = []
    for row in rows:
        ahead[row.id] -= 1
        if ahead[row.id] >= _LINES_OF_A_JOB:
            continue
        is_oldest = ahead[row.id] == _LINES_OF_A_JOB - 1
        due.append(
            DueReminder(
                job_id=JobId(row.id),
                text=row.text if isinstance(row.text, str) else _DAMAGED_TEXT,
                reply=row.reply if isinstance(row.reply, str) else None,
                slot_at=read_moment(row.slot_at),
                timezone=row.timezone if zone_or_none(row.timezone) else "UTC",
                earlier=sum(one.id == row.id for one in rows) - _LINES_OF_A_JOB if is_oldest else 0,
            )
        )
    return due


@dataclass(frozen=True, slots=True, kw_only=True)
class Saying:
    """What a reminder's delivery says now: a model's reply, or stored texts as they stand."""

    text: str
    is_markdown: bool

    def pieces(self, cut: Cut) -> tuple[RichText, ...]:
        """Marks alone are nothing once rendered: then they are shown as typed."""
        rendered = cut(self.text, is_markdown=True) if self.is_markdown else ()
        return rendered or cut(self.text, is_markdown=False)


def reminder_saying(
    connection: Connection, delivery: DeliveryId, *, now: datetime
) -> Saying | None:
    """What a reminder's delivery says now; None = no line of it is left."""
    due = due_reminders(connection, delivery)
    if not due:
        return None
    first = due[0]
    if first.reply is None:
        return Saying(text=reminder_text(due, now=now), is_markdown=False)
    late = late_note(first, now=now)
    # A line of its own: behind the note, a heading or a list would be none any more.
    text = f"{late}\n\n{first.reply}" if late else first.reply
    return Saying(text=text, is_markdown=True)


def join_reminder(tx: Transaction, chat: ChatKey, turn: TurnId, *, now: datetime) -> DeliveryId:
    """Put a slot's turn into the reminder that waits to be sent, or into a new one.

    `write_reminders` has to follow once all that is due together is in.
    """
    waiting = tx.connection.execute(_WAITING, {"chat": str(chat)}).scalar_one_or_none()
    delivery = _new_reminder(tx, chat, now=now) if waiting is None else DeliveryId(waiting)
    put_in_delivery(tx.connection, turn, delivery)
    return delivery


def put_in_delivery(connection: Connection, turn: TurnId, delivery: DeliveryId) -> None:
    """Note which delivery carries what came of a turn."""
    connection.execute(_PUT_IN_DELIVERY, {"turn": turn, "delivery_id": delivery})


def _new_reminder(tx: Transaction, chat: ChatKey, *, now: datetime) -> DeliveryId:
    delivery = tx.connection.execute(
        _INSERT_DELIVERY,
        {
            "chat_key": str(chat),
            "kind": DeliveryKind.REMINDER,
            "state": DeliveryState.PENDING,
            "text": "",
            "created_at": to_millis(now),
        },
    ).scalar_one()
    record_event(tx.connection, deliveries, delivery, (None, DeliveryState.PENDING), now=now)
    return DeliveryId(delivery)


def write_reminders(
    tx: Transaction,
    joined: Iterable[tuple[ChatKey, DeliveryId]],
    cut: Callable[[ChatKey], Cut],
    *,
    now: datetime,
) -> None:
    """Give the reminders that were joined their text and chunks."""
    for chat, delivery in joined:
        saying = reminder_saying(tx.connection, delivery, now=now)
        if saying is not None:
            recut(tx, delivery, saying.text, saying.pieces(cut(chat)), now=now)
            tx.touch(Topic.DELIVERIES, chat)
