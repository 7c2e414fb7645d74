"""Turns and runs: claimed one at a time per chat (T2), ended in one commit (T3)."""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, bindparam, func, insert, select

from gateway.domain.delivery import DeliveryId, DeliveryKind
from gateway.domain.message import ChannelName, ChatKey, Message
from gateway.domain.schedule import to_millis
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
from gateway.store.chats import Admits, Chat, chat_of, load_chat, new_session
from gateway.store.database import Topic, Transaction
from gateway.store.deliveries import (
    BLANK,
    Cut,
    NewDelivery,
    store_delivery,
    store_silence,
    store_text,
)
from gateway.store.events import moment, record_event, save_transition
from gateway.store.messages import turn_messages
from gateway.store.removal import cancel_queued
from gateway.store.schema import (
    TURN_IS_QUEUED,
    TURN_IS_RUNNING,
    chats,
    runs,
    turns,
)
from gateway.store.sights import Sight, mark_seen, recent_sights
from gateway.store.toolcalls import with_stored_lines

_NEXT = (
    select(chats, func.min(func.coalesce(turns.c.not_before, 0)).label("first"))
    .join(turns, turns.c.chat_key == chats.c.chat_key)
    .where(turns.c.chat_key == bindparam("chat"), TURN_IS_QUEUED)
    .group_by(chats.c.chat_key)
)
_HEAD = (
    select(turns.c.id, turns.c.trigger, turns.c.text)
    .where(
        turns.c.chat_key == bindparam("chat"),
        TURN_IS_QUEUED,
        func.coalesce(turns.c.not_before, 0) <= bindparam("now"),
    )
    .order_by(turns.c.id)
    .limit(1)
)
_RUNS = select(runs.c.state, runs.c.reason).where(runs.c.turn_id == bindparam("turn"))
_INSERT_RUN = insert(runs).returning(runs.c.id)


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

    text: Callable[[TurnId], str]
    cut: Cut


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """A chat with queued turns: whether one may run now, else when the first one may."""

    chat: Chat
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
    row = connection.execute(_NEXT, {"chat": str(chat)}).one_or_none()
    if row is None:
        return None
    is_due = row.first <= to_millis(now)
    not_before = None if is_due else moment(row.first)
    return Head(chat=chat_of(row), is_due=is_due, not_before=not_before)


def claim_turn(
    tx: Transaction, chat: ChatKey, *, owner: str, admits: Admits, now: datetime
) -> Claim | None:
    """T2: start a run of the chat's oldest queued turn whose not_before has passed.

    The queued turns of a chat that is not allowed any more are cancelled instead.
    """
    if not admits(tx.connection, chat):
        cancel_queued(tx, chat, now=now)
        return None
    return _claim(tx, chat, owner=owner, now=now)


def _claim(tx: Transaction, chat: ChatKey, *, owner: str, now: datetime) -> Claim | None:
    connection = tx.connection
    due = {"chat": str(chat), "now": to_millis(now)}
    row = connection.execute(_HEAD, due).one_or_none()
    known = load_chat(connection, chat)
    if row is None or known is None:
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
    """The session was not ready: end the chat's head turn with a failed run, in one commit.

    A chat that is not allowed any more is not told so: its notice is dropped before it is sent.
    """
    claim = _claim(tx, chat, owner=owner, now=now)
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
    # Marks alone, a rule for instance, are nothing once rendered: then they are shown as typed.
    pieces = cut(text, is_markdown=True) or cut(text, is_markdown=False)
    reason = None if pieces else BLANK
    new = NewDelivery(
        chat=claim.chat.key, kind=DeliveryKind.REPLY, text=text, chunks=pieces, reason=reason
    )
    values = {
        "reply": text,
        "reason": reason,
        "delivery_id": store_delivery(tx, new, now=now),
        "ended_at": to_millis(now),
    }
    move = (TurnState.RUNNING, TurnState.ANSWERED if pieces else TurnState.SILENT)
    save_transition(tx.connection, turns, claim.turn, move, values, now=now)
    mark_seen(tx.connection, claim.chat.key, claim.seen_delivery)
    tx.touch(Topic.ENDED, claim.chat.key)
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
    told = with_stored_lines(tx.connection, claim.turn, notice.text(claim.turn))
    values = {
        "reason": end.reason or end.state,
        "delivery_id": store_text(tx, chat, DeliveryKind.NOTICE, told, notice.cut, now=now),
        "ended_at": to_millis(now),
    }
    move = (TurnState.RUNNING, TurnState.FAILED)
    save_transition(tx.connection, turns, claim.turn, move, values, now=now)
    if begins_session:
        new_session(tx, chat)
    tx.touch(Topic.ENDED, chat)
    return True


def give_back(tx: Transaction, claim: Claim, *, now: datetime) -> bool:
    """A planned stop takes a running turn back into the queue; it does not count as cut off."""
    end = RunEnd(state=RunState.INTERRUPTED, reason=GIVEN_BACK)
    if not _end_run(tx, claim.run, end, now=now):
        return False
    move = (TurnState.RUNNING, TurnState.QUEUED)
    save_transition(tx.connection, turns, claim.turn, move, {"started_at": None}, now=now)
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
    run = (
        select(runs.c.id)
        .where(runs.c.turn_id == turns.c.id, runs.c.state == RunState.RUNNING)
        .scalar_subquery()
    )
    rows = tx.connection.execute(
        select(turns.c.id, turns.c.chat_key, turns.c.trigger, run.label("run_id"))
        .join(chats, chats.c.chat_key == turns.c.chat_key)
        .where(TURN_IS_RUNNING, chats.c.channel.in_(channels))
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
            text = with_stored_lines(tx.connection, row.id, notice.text(TurnId(row.id)))
            notice_id = store_text(tx, chat, DeliveryKind.NOTICE, text, notice.cut, now=now)
            values["delivery_id"] = notice_id
        elif after is TurnState.CANCELLED:
            values["delivery_id"] = store_silence(tx, chat, reason="interrupted", now=now)
        save_transition(tx.connection, turns, row.id, (TurnState.RUNNING, after), values, now=now)
        tx.touch(Topic.TURNS, chat)
    return len(rows)


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
        save_transition(tx.connection, runs, run, (RunState.RUNNING, end.state), values, now=now)
    except StaleStateError:
        return False
    return True


def _counts(state: str, reason: str | None) -> bool:
    return state == RunState.INTERRUPTED and reason != GIVEN_BACK


def _interruptions(connection: Connection, turn: int) -> int:
    rows = connection.execute(_RUNS, {"turn": turn}).all()
    return sum(_counts(row.state, row.reason) for row in rows)
