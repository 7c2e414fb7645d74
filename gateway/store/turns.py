"""Turns and runs: claimed one at a time per chat (T2), ended in one commit (T3)."""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, func, insert, select, update

from gateway.domain.delivery import DeliveryId, DeliveryKind
from gateway.domain.job import JobId
from gateway.domain.message import ChannelName, ChatKey, Message
from gateway.domain.schedule import from_millis, to_millis
from gateway.domain.tool import NOTHING_SET
from gateway.domain.turn import (
    GIVEN_BACK,
    RunId,
    RunState,
    Trigger,
    TurnId,
    TurnState,
    after_interruption,
)
from gateway.errors import StaleStateError
from gateway.store.chats import Chat, load_chat, new_session
from gateway.store.database import Topic, Transaction
from gateway.store.deliveries import Cut, NewDelivery, store_delivery
from gateway.store.events import moment, record_event, save_move
from gateway.store.messages import turn_messages
from gateway.store.schema import chats, deliveries, runs, tool_calls, turns

_RECENT = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Sight:
    """Something that was sent to a chat outside its session."""

    kind: DeliveryKind
    text: str
    sent_at: datetime
    job_ids: tuple[JobId, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A turn that runs now, with all that its prompt needs."""

    turn: TurnId
    run: RunId
    chat: Chat
    trigger: Trigger
    text: str | None
    messages: tuple[Message, ...]
    recent: tuple[Sight, ...]
    seen_delivery: DeliveryId
    was_interrupted: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEnd:
    """How a run ended; `error` is for the log and the operator."""

    state: RunState
    reason: str | None = None
    error: str | None = None
    provider: str | None = None
    model: str | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """What a chat is told when a run of it gave no reply."""

    text: Callable[[RunId], str]
    cut: Cut


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """A chat with queued turns: whether one may run now, else when the first one may."""

    chat: ChatKey
    is_due: bool
    not_before: datetime | None


def queue_heads(
    connection: Connection, channels: Collection[ChannelName], *, now: datetime
) -> tuple[Head, ...]:
    """Every chat with queued turns."""
    at = to_millis(now)
    rows = connection.execute(
        select(turns.c.chat_key, func.min(func.coalesce(turns.c.not_before, 0)).label("first"))
        .join(chats, chats.c.chat_key == turns.c.chat_key)
        .where(turns.c.state == TurnState.QUEUED, chats.c.channel.in_(channels))
        .group_by(turns.c.chat_key)
    ).all()
    return tuple(
        Head(
            chat=ChatKey.parse(row.chat_key),
            is_due=row.first <= at,
            not_before=moment(row.first) if row.first > at else None,
        )
        for row in rows
    )


def next_turn(connection: Connection, chat: ChatKey, *, now: datetime) -> Head | None:
    """The chat's head of the queue; None = nothing is queued."""
    first = connection.execute(
        select(func.min(func.coalesce(turns.c.not_before, 0))).where(
            turns.c.chat_key == str(chat), turns.c.state == TurnState.QUEUED
        )
    ).scalar_one()
    if first is None:
        return None
    is_due = first <= to_millis(now)
    return Head(chat=chat, is_due=is_due, not_before=None if is_due else moment(first))


def claim_turn(tx: Transaction, chat: ChatKey, *, owner: str, now: datetime) -> Claim | None:
    """T2: start a run of the chat's oldest queued turn whose not_before has passed."""
    connection = tx.connection
    row = connection.execute(
        select(turns.c.id, turns.c.trigger, turns.c.text)
        .where(
            turns.c.chat_key == str(chat),
            turns.c.state == TurnState.QUEUED,
            func.coalesce(turns.c.not_before, 0) <= to_millis(now),
        )
        .order_by(turns.c.id)
        .limit(1)
    ).one_or_none()
    known = load_chat(connection, chat)
    if row is None or known is None:
        return None
    turn = TurnId(row.id)
    earlier = connection.execute(
        select(runs.c.state, runs.c.reason).where(runs.c.turn_id == turn)
    ).all()
    move = (TurnState.QUEUED, TurnState.RUNNING)
    save_move(connection, turns, turn, move, {"started_at": to_millis(now)}, now=now)
    run = _insert_run(connection, turn, attempt=len(earlier) + 1, owner=owner, now=now)
    seen, recent = _recent(connection, chat)
    return Claim(
        turn=turn,
        run=run,
        chat=known,
        trigger=Trigger(row.trigger),
        text=row.text,
        messages=turn_messages(connection, turn),
        recent=recent,
        seen_delivery=seen,
        was_interrupted=any(_counts(one.state, one.reason) for one in earlier),
    )


def refuse_turn(
    tx: Transaction,
    chat: ChatKey,
    end: RunEnd,
    notice: Notice,
    *,
    owner: str,
    now: datetime,
) -> bool:
    """The session was not ready: end the chat's head turn with a failed run, in one commit."""
    claim = claim_turn(tx, chat, owner=owner, now=now)
    if claim is None:
        return False
    return fail_turn(tx, claim, end, notice, now=now)


def answer_turn(
    tx: Transaction, claim: Claim, end: RunEnd, reply: str, cut: Cut, *, now: datetime
) -> bool:
    """T3: the run succeeded. Stores the reply's delivery; false = the run was stopped meanwhile
    and its result is thrown away.
    """
    if not _end_run(tx, claim.run, end, now=now):
        return False
    text = with_stored_lines(tx.connection, claim.turn, reply)
    delivery = store_delivery(
        tx,
        NewDelivery(
            chat=claim.chat.key,
            kind=DeliveryKind.REPLY,
            text=text,
            chunks=cut(text, is_markdown=True),
        ),
        now=now,
    )
    values = {"reply": text, "delivery_id": delivery, "ended_at": to_millis(now)}
    move = (TurnState.RUNNING, TurnState.ANSWERED)
    save_move(tx.connection, turns, claim.turn, move, values, now=now)
    tx.connection.execute(
        update(chats)
        .where(chats.c.chat_key == str(claim.chat.key))
        .values(seen_delivery_id=claim.seen_delivery)
    )
    tx.touch(Topic.TURNS, claim.chat.key)
    return True


def fail_turn(
    tx: Transaction,
    claim: Claim,
    end: RunEnd,
    notice: Notice,
    *,
    now: datetime,
    begins_session: bool = False,
) -> bool:
    """T3: the run gave no reply. The person is told at once; false = it was stopped meanwhile."""
    if not _end_run(tx, claim.run, end, now=now):
        return False
    chat = claim.chat.key
    told = with_stored_lines(tx.connection, claim.turn, notice.text(claim.run))
    values = {
        "reason": end.reason or end.state,
        "delivery_id": _store_notice(tx, chat, told, notice.cut, now=now),
        "ended_at": to_millis(now),
    }
    move = (TurnState.RUNNING, TurnState.FAILED)
    save_move(tx.connection, turns, claim.turn, move, values, now=now)
    if begins_session:
        new_session(tx, chat)
    tx.touch(Topic.TURNS, chat)
    return True


def give_back(tx: Transaction, claim: Claim, *, now: datetime) -> bool:
    """A planned stop takes a running turn back into the queue; it does not count as cut off."""
    end = RunEnd(state=RunState.INTERRUPTED, reason=GIVEN_BACK)
    if not _end_run(tx, claim.run, end, now=now):
        return False
    move = (TurnState.RUNNING, TurnState.QUEUED)
    save_move(tx.connection, turns, claim.turn, move, {"started_at": None}, now=now)
    tx.touch(Topic.TURNS, claim.chat.key)
    return True


def recover_turns(
    tx: Transaction,
    channels: Collection[ChannelName],
    notice: Notice,
    *,
    now: datetime,
) -> int:
    """After a crash: every run was interrupted. Returns how many there were."""
    rows = tx.connection.execute(
        select(turns.c.id, turns.c.chat_key, turns.c.trigger, runs.c.id.label("run_id"))
        .join(runs, (runs.c.turn_id == turns.c.id) & (runs.c.state == RunState.RUNNING))
        .join(chats, chats.c.chat_key == turns.c.chat_key)
        .where(turns.c.state == TurnState.RUNNING, chats.c.channel.in_(channels))
    ).all()
    for row in rows:
        end = RunEnd(state=RunState.INTERRUPTED, reason="gateway_died")
        _end_run(tx, RunId(row.run_id), end, now=now)
        chat = ChatKey.parse(row.chat_key)
        after = after_interruption(Trigger(row.trigger), _interruptions(tx.connection, row.id))
        values: dict[str, object] = {}
        if after is not TurnState.QUEUED:
            values = {"reason": "interrupted", "ended_at": to_millis(now)}
        if after is TurnState.FAILED:
            text = notice.text(RunId(row.run_id))
            values["delivery_id"] = _store_notice(tx, chat, text, notice.cut, now=now)
        elif after is TurnState.CANCELLED:
            values["delivery_id"] = store_silence(tx, chat, reason="interrupted", now=now)
        save_move(tx.connection, turns, row.id, (TurnState.RUNNING, after), values, now=now)
        tx.touch(Topic.TURNS, chat)
    return len(rows)


def with_stored_lines(connection: Connection, turn: TurnId, reply: str) -> str:
    """The reply with the stored line of each job that the turn created or changed, unless it
    holds it word for word; if all that it tried to set failed, that none was set.
    """
    calls = connection.execute(
        select(tool_calls.c.line, tool_calls.c.is_failed_create)
        .where(tool_calls.c.turn_id == turn)
        .order_by(tool_calls.c.id)
    ).all()
    lines = dict.fromkeys(call.line for call in calls if call.line is not None)
    missing = [line for line in lines if line not in reply]
    has_failed = any(call.is_failed_create for call in calls)
    if has_failed and not lines and NOTHING_SET not in reply:
        missing.append(f"{NOTHING_SET}.")
    return "\n\n".join([reply, "\n".join(missing)]) if missing else reply


def store_silence(tx: Transaction, chat: ChatKey, *, reason: str, now: datetime) -> DeliveryId:
    """The delivery row of a turn's end that has nothing to send."""
    nothing = NewDelivery(chat=chat, kind=DeliveryKind.REPLY, text="", chunks=(), reason=reason)
    return store_delivery(tx, nothing, now=now)


def _store_notice(
    tx: Transaction, chat: ChatKey, text: str, cut: Cut, *, now: datetime
) -> DeliveryId:
    notice = NewDelivery(
        chat=chat, kind=DeliveryKind.NOTICE, text=text, chunks=cut(text, is_markdown=False)
    )
    return store_delivery(tx, notice, now=now)


def _insert_run(
    connection: Connection, turn: TurnId, *, attempt: int, owner: str, now: datetime
) -> RunId:
    run = connection.execute(
        insert(runs)
        .values(
            turn_id=turn,
            attempt=attempt,
            owner=owner,
            state=RunState.RUNNING,
            started_at=to_millis(now),
        )
        .returning(runs.c.id)
    ).scalar_one()
    record_event(connection, runs, run, (None, RunState.RUNNING), now=now)
    return RunId(run)


def _end_run(tx: Transaction, run: RunId, end: RunEnd, *, now: datetime) -> bool:
    values = {
        "reason": end.reason,
        "error": end.error,
        "provider": end.provider,
        "model": end.model,
        "input_tokens": end.input_tokens,
        "output_tokens": end.output_tokens,
        "ended_at": to_millis(now),
    }
    try:
        save_move(tx.connection, runs, run, (RunState.RUNNING, end.state), values, now=now)
    except StaleStateError:
        return False
    return True


def _counts(state: str, reason: str | None) -> bool:
    return state == RunState.INTERRUPTED and reason != GIVEN_BACK


def _interruptions(connection: Connection, turn: int) -> int:
    rows = connection.execute(
        select(runs.c.state, runs.c.reason).where(runs.c.turn_id == turn)
    ).all()
    return sum(_counts(row.state, row.reason) for row in rows)


def _recent(connection: Connection, chat: ChatKey) -> tuple[DeliveryId, tuple[Sight, ...]]:
    """What was sent to the chat outside its session since its last turn, oldest first."""
    key = str(chat)
    seen = connection.execute(
        select(chats.c.seen_delivery_id).where(chats.c.chat_key == key)
    ).scalar_one()
    rows = connection.execute(
        select(deliveries)
        .where(
            deliveries.c.chat_key == key,
            deliveries.c.id > seen,
            deliveries.c.kind.in_((DeliveryKind.REMINDER, DeliveryKind.COMMAND)),
        )
        .order_by(deliveries.c.id.desc())
        .limit(_RECENT)
    ).all()
    if not rows:
        return DeliveryId(seen), ()
    sights = []
    for row in reversed(rows):
        job_ids = connection.execute(
            select(turns.c.job_id).where(turns.c.delivery_id == row.id).order_by(turns.c.id)
        ).scalars()
        sights.append(
            Sight(
                kind=DeliveryKind(row.kind),
                text=row.text,
                sent_at=from_millis(row.settled_at or row.created_at),
                job_ids=tuple(JobId(job) for job in job_ids if job is not None),
            )
        )
    return DeliveryId(rows[0].id), tuple(sights)
