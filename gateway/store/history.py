"""What a job's slots came to: which of them went out, and how each ended."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from zoneinfo import ZoneInfo

from sqlalchemy import Connection, Row, bindparam, select

from gateway.domain.delivery import DeliveryId, DeliveryKind, DeliveryState
from gateway.domain.job import Job
from gateway.domain.message import ChatKey
from gateway.domain.schedule import local_time
from gateway.domain.turn import RunState, TurnId, TurnState
from gateway.store.events import read_moment
from gateway.store.fallback import FELL_BACK
from gateway.store.jobs import JOB_OF_CHAT, is_id, salvage_job
from gateway.store.missed import MISSED, NOT_ALLOWED, UNREACHABLE
from gateway.store.schema import chunks, deliveries, jobs, runs, turns

_UNGIVEN: Final = (DeliveryState.DROPPED, DeliveryState.SUPPRESSED)

_SLOTS = (
    select(jobs, turns.c.id.label("turn_id"), turns.c.slot_at)
    .join(turns, turns.c.job_id == jobs.c.id)
    .join(deliveries, deliveries.c.id == turns.c.delivery_id)
    .where(jobs.c.chat_key == bindparam("chat"), deliveries.c.kind == DeliveryKind.REMINDER)
)
_LAST = (
    _SLOTS.where(turns.c.job_id == bindparam("job"), deliveries.c.state.not_in(_UNGIVEN))
    .order_by(turns.c.id.desc())
    .limit(1)
)
_CARRIED = _SLOTS.where(turns.c.delivery_id == bindparam("delivery")).order_by(
    turns.c.slot_at, turns.c.id
)
_DELIVERY = (
    select(chunks.c.delivery_id)
    .join(deliveries, deliveries.c.id == chunks.c.delivery_id)
    .where(
        chunks.c.external_id == bindparam("external_id"),
        deliveries.c.chat_key == bindparam("chat"),
        # What a press made of a message is no message of its own.
        deliveries.c.edits.is_(None),
    )
    # A platform may count its ids anew: the newest message is the one in sight.
    .order_by(chunks.c.id.desc())
    .limit(1)
)
_RUN = (
    select(runs.c.state)
    .where(runs.c.turn_id == turns.c.id)
    .order_by(runs.c.attempt.desc())
    .limit(1)
    .scalar_subquery()
    .label("run")
)
_HISTORY = (
    select(
        turns.c.slot_at,
        turns.c.state,
        turns.c.reason,
        _RUN,
        deliveries.c.state.label("delivery"),
    )
    .outerjoin(deliveries, deliveries.c.id == turns.c.delivery_id)
    .where(turns.c.job_id == bindparam("job"))
    .order_by(turns.c.id.desc())
    .limit(bindparam("limit"))
)


@dataclass(frozen=True, slots=True, kw_only=True)
class FiredJob:
    """A job, and the turn of one slot of it that went out."""

    job: Job
    turn: TurnId
    slot_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotRecord:
    """What became of one slot: of its turn, of its last run if it had one, of what was sent."""

    slot_at: datetime
    turn_state: TurnState
    reason: str | None
    run_state: RunState | None
    delivery_state: DeliveryState | None

    def told(self, zone: ZoneInfo, *, now: datetime) -> str:
        """`Tue 1 Dec 09:00: run succeeded, sent`."""
        outcome = self._outcome()
        run = _plain(self.run_state or "")
        if run not in ("", outcome):
            outcome = f"run {run}, {outcome}"
        return f"{local_time(self.slot_at, zone, now=now)}: {outcome}"

    def _outcome(self) -> str:
        if self.turn_state is TurnState.CANCELLED and self.reason not in (None, self.turn_state):
            return f"not given: {_NOT_GIVEN.get(self.reason, _plain(self.reason))}"
        if self.delivery_state is None or self.turn_state is TurnState.CANCELLED:
            return str(self.turn_state)
        sent = _SENT.get(self.delivery_state, str(self.delivery_state))
        return f"stored text {sent}" if self.reason == FELL_BACK else sent


_NOT_GIVEN: Final[Mapping[str, str]] = {
    MISSED: "it was too late",
    UNREACHABLE: "I could not write here",
    NOT_ALLOWED: "this chat was not allowed",
}
_SENT: Final[Mapping[DeliveryState, str]] = {
    DeliveryState.SENDING: "on its way",
    DeliveryState.PARTIAL: "sent in part",
    DeliveryState.FAILED: "not sent",
    DeliveryState.DROPPED: "taken back",
    DeliveryState.SUPPRESSED: "nothing to send",
}


def _plain(word: str) -> str:
    return word.replace("_", " ")


def last_fired(connection: Connection, chat: ChatKey, job_id: int) -> FiredJob | None:
    """The newest slot of a job that went out, or is about to; None = there is none."""
    if not is_id(job_id):
        return None
    row = connection.execute(_LAST, {"chat": str(chat), "job": job_id}).one_or_none()
    return None if row is None else _fired(row)


def fired_by(connection: Connection, chat: ChatKey, delivery: DeliveryId) -> tuple[FiredJob, ...]:
    """The slots that a reminder of this chat carried, oldest first."""
    rows = connection.execute(_CARRIED, {"chat": str(chat), "delivery": delivery}).all()
    return tuple(_fired(row) for row in rows)


def _fired(row: Row[Any]) -> FiredJob:
    return FiredJob(
        job=salvage_job(row), turn=TurnId(row.turn_id), slot_at=read_moment(row.slot_at)
    )


def delivery_of(connection: Connection, chat: ChatKey, external_id: str) -> DeliveryId | None:
    """Which delivery a message of ours in this chat belongs to; None = it is none of ours."""
    named = {"chat": str(chat), "external_id": external_id}
    found = connection.execute(_DELIVERY, named).scalar_one_or_none()
    return None if found is None else DeliveryId(found)


def job_history(
    connection: Connection, chat: ChatKey, job_id: int, *, limit: int
) -> tuple[SlotRecord, ...]:
    """The newest slots of a job of this chat and what became of each, newest first."""
    known = {"chat": str(chat), "job": job_id}
    if not is_id(job_id) or connection.execute(JOB_OF_CHAT, known).first() is None:
        return ()
    rows = connection.execute(_HISTORY, {"job": job_id, "limit": limit}).all()
    return tuple(
        SlotRecord(
            slot_at=read_moment(row.slot_at),
            turn_state=TurnState(row.state),
            reason=row.reason,
            run_state=None if row.run is None else RunState(row.run),
            delivery_state=None if row.delivery is None else DeliveryState(row.delivery),
        )
        for row in rows
    )
