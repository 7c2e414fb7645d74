"""T2: a chat's queued turns, and the one of them that is claimed to run."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, bindparam, case, func, insert, select

from gateway.domain.delivery import DeliveryId
from gateway.domain.job import Job, Tier
from gateway.domain.message import ChannelName, ChatKey, Message
from gateway.domain.schedule import to_millis
from gateway.domain.turn import GIVEN_BACK, RunId, RunState, Trigger, TurnId, TurnState
from gateway.store.chats import Admits, Chat, chat_of
from gateway.store.database import Transaction
from gateway.store.events import read_moment, record_event, save_transition
from gateway.store.jobs import get_job
from gateway.store.messages import turn_messages
from gateway.store.removal import cancel_queued
from gateway.store.schema import TURN_IS_QUEUED, chats, runs, turns
from gateway.store.sights import Sight, recent_sights

_not_before = func.coalesce(turns.c.not_before, 0)
# Those whose time has come go in the order in which they came, the others by their time.
_HEAD = (
    select(
        chats,
        turns.c.id,
        turns.c.trigger,
        turns.c.text,
        turns.c.job_id,
        turns.c.slot_at,
        _not_before.label("not_before"),
    )
    .join(chats, chats.c.chat_key == turns.c.chat_key)
    .where(turns.c.chat_key == bindparam("chat"), TURN_IS_QUEUED)
    .order_by(case((_not_before <= bindparam("now"), 0), else_=_not_before), turns.c.id)
    .limit(1)
)
_RUNS = select(runs.c.state, runs.c.reason).where(runs.c.turn_id == bindparam("turn"))
_INSERT_RUN = insert(runs).returning(runs.c.id)


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A turn that runs now, with all that its prompt needs.

    `job` is the job of a scheduled turn as it stands now, `text` the job's text as it fired.
    """

    turn: TurnId
    run: RunId
    chat: Chat
    trigger: Trigger
    text: str | None
    messages: tuple[Message, ...]
    recent: tuple[Sight, ...]
    seen_delivery: DeliveryId
    was_interrupted: bool
    job: Job | None = None
    slot_at: datetime | None = None

    @property
    def tier(self) -> Tier:
        """What its tools may do: all that who wrote asks for, else what the job was allowed."""
        if self.trigger is Trigger.MESSAGE:
            return Tier.MUTATE
        if self.job is None or self.job.text != self.text:
            return Tier.READ_ONLY  # what was allowed was allowed under another text
        return self.job.tier


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """A chat's first queued turn: it may run now, or else at `not_before`."""

    chat: Chat
    trigger: Trigger
    is_due: bool
    not_before: datetime | None


def queued_chats(connection: Connection, channels: Collection[ChannelName]) -> tuple[ChatKey, ...]:
    """Every chat with queued turns."""
    rows = connection.execute(
        select(turns.c.chat_key)
        .distinct()
        .join(chats, chats.c.chat_key == turns.c.chat_key)
        .where(TURN_IS_QUEUED, chats.c.channel.in_(channels))
    ).scalars()
    return tuple(ChatKey.parse(key) for key in rows)


def next_turn(connection: Connection, chat: ChatKey, *, now: datetime) -> Head | None:
    """The chat's head of the queue; None = nothing is queued."""
    row = _head(connection, chat, now=now)
    if row is None:
        return None
    is_due = row.not_before <= to_millis(now)
    not_before = None if is_due else read_moment(row.not_before)
    return Head(
        chat=chat_of(row), trigger=Trigger(row.trigger), is_due=is_due, not_before=not_before
    )


def claim_turn(
    tx: Transaction,
    chat: ChatKey,
    *,
    trigger: Trigger,
    owner: str,
    admits: Admits,
    now: datetime,
) -> Claim | None:
    """T2: start a run of the chat's oldest queued turn whose not_before has passed.

    A session was readied for a turn of that trigger: nothing is claimed if the head needs another
    kind of session meanwhile. The queued turns of a chat that is not allowed any more are
    cancelled instead.
    """
    if not admits(tx.connection, chat):
        cancel_queued(tx, chat, now=now)
        return None
    return claim_head(tx, chat, trigger=trigger, owner=owner, now=now)


def claim_head(
    tx: Transaction, chat: ChatKey, *, trigger: Trigger, owner: str, now: datetime
) -> Claim | None:
    """What `claim_turn` does for a chat that is allowed."""
    connection = tx.connection
    row = _head(connection, chat, now=now)
    if row is None or row.not_before > to_millis(now):
        return None
    found = Trigger(row.trigger)
    if found.is_isolated is not trigger.is_isolated:
        return None
    turn = TurnId(row.id)
    earlier = connection.execute(_RUNS, {"turn": turn}).all()
    move = (TurnState.QUEUED, TurnState.RUNNING)
    save_transition(connection, turns, turn, move, {"started_at": to_millis(now)}, now=now)
    run = _insert_run(connection, turn, attempt=len(earlier) + 1, owner=owner, now=now)
    seen, recent = recent_sights(connection, chat)
    return Claim(
        turn=turn,
        run=run,
        chat=chat_of(row),
        trigger=found,
        text=row.text,
        messages=turn_messages(connection, turn),
        recent=recent,
        seen_delivery=seen,
        was_interrupted=any(was_cut_off(one.state, one.reason) for one in earlier),
        job=None if row.job_id is None else get_job(connection, chat, row.job_id),
        slot_at=None if row.slot_at is None else read_moment(row.slot_at),
    )


def was_cut_off(state: str, reason: str | None) -> bool:
    """Whether the gateway ended under a run without having planned to."""
    return state == RunState.INTERRUPTED and reason != GIVEN_BACK


def _head(connection: Connection, chat: ChatKey, *, now: datetime) -> Row[Any] | None:
    return connection.execute(_HEAD, {"chat": str(chat), "now": to_millis(now)}).one_or_none()


def _insert_run(
    connection: Connection, turn: TurnId, *, attempt: int, owner: str, now: datetime
) -> RunId:
    run = connection.execute(
        _INSERT_RUN,
        {
            "turn_id": turn,
            "attempt": attempt,
            "owner": owner,
            "state": RunState.RUNNING,
            "started_at": to_millis(now),
        },
    ).scalar_one()
    record_event(connection, runs, run, (None, RunState.RUNNING), now=now)
    return RunId(run)
