"""What is done at once, without a model: who asks, what they are answered, and how that is kept."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from sqlalchemy import Connection

from gateway.domain.delivery import DeliveryKind
from gateway.domain.message import ChatKey
from gateway.domain.richtext import RichText
from gateway.domain.turn import RunId
from gateway.store.database import Transaction
from gateway.store.deliveries import Cut, NewDelivery, store_delivery, store_text
from gateway.store.wire import sent_body

_SOON = timedelta(minutes=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """Who asks, and what commands may need to know.

    `said_at` is when the person wrote, from which "in 10 minutes" counts; `timezone` is the chat's.
    """

    chat: ChatKey
    now: datetime
    said_at: datetime
    timezone: str
    host: str

    def still_ahead(self, moment: datetime) -> datetime:
        """The moment, or a near one where it passed while the message was on its way."""
        return moment if moment > self.now else self.now + _SOON


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """An answer, and what is to be done once it is committed.

    `under` is the platform's id of the message of ours that a press changes: the answer is put
    under its text.
    """

    text: str
    abort: tuple[RunId, ...] = field(default=())
    begins_session: bool = False
    under: str | None = None


def joined(answers: Iterable[Done]) -> Done:
    """Several answers in one, a line for each."""
    told = tuple(answers)
    return Done(
        text="\n".join(one.text for one in told),
        abort=tuple(run for one in told for run in one.abort),
    )


def store_answer(tx: Transaction, chat: ChatKey, done: Done, cut: Cut, *, now: datetime) -> None:
    """Store the delivery of an answer."""
    grown = _grown(tx.connection, chat, done, cut)
    if grown is None:
        store_text(tx, chat, DeliveryKind.COMMAND, done.text, cut, now=now)
        return
    new = NewDelivery(
        chat=chat,
        kind=DeliveryKind.COMMAND,
        text=grown.text,
        chunks=(grown,),
        edits=done.under,
    )
    store_delivery(tx, new, now=now)


def _grown(connection: Connection, chat: ChatKey, done: Done, cut: Cut) -> RichText | None:
    """The message of ours with the answer under it; None = it has to be a message of its own."""
    body = None if done.under is None else sent_body(connection, chat, done.under)
    if body is None:
        return None
    grown = RichText(text=f"{body.text}\n\n{done.text}", entities=body.entities)
    return grown if len(cut(grown.text, is_markdown=False)) == 1 else None
