"""T3: how a run ends, and what that makes of its turn, in one commit."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from sqlalchemy import bindparam, select

from gateway.domain.delivery import DeliveryKind
from gateway.domain.message import ChannelName, ChatKey
from gateway.domain.richtext import RichText
from gateway.domain.schedule import to_millis
from gateway.domain.silence import is_evasion, is_nothing
from gateway.domain.turn import (
    GIVEN_BACK,
    MAX_INTERRUPTIONS,
    RunId,
    RunState,
    Trigger,
    TurnId,
    TurnState,
    next_try,
)
from gateway.errors import StaleStateError
from gateway.store.chats import new_session
from gateway.store.database import Topic, Transaction
from gateway.store.deliveries import (
    BLANK,
    Cut,
    NewDelivery,
    store_delivery,
    store_silence,
    store_text,
)
from gateway.store.events import millis, read_moment, save_transition
from gateway.store.fallback import fall_back
from gateway.store.schema import TURN_IS_QUEUED, TURN_IS_RUNNING, chats, runs, turns
from gateway.store.sights import mark_seen
from gateway.store.stopping import cancel_turn
from gateway.store.toolcalls import with_stored_lines
from gateway.store.turns import Claim, claim_head, was_cut_off

NOTHING = "nothing"
"""Reason of a check-in that had nothing to say."""

INTERRUPTED = "interrupted"
"""Reason of a turn that ended because the gateway died under it."""

_RUNS = select(runs.c.state, runs.c.reason).where(runs.c.turn_id == bindparam("turn"))
_BEGAN = select(turns.c.created_at).where(turns.c.id == bindparam("turn"))


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
    """What a chat is told when a run of its own message gave no reply."""

    text: Callable[[TurnId], str]
    cut: Cut


def refuse_turn(
    tx: Transaction,
    head: tuple[ChatKey, Trigger],
    end: RunEnd,
    notice: Notice,
    *,
    owner: str,
    now: datetime,
) -> bool:
    """The session was not ready for the head of a chat: a failed run of it, in one commit.

    A chat that is not allowed any more is not told so: its notice is dropped before it is sent.
    """
    chat, trigger = head
    claim = claim_head(tx, chat, trigger=trigger, owner=owner, now=now)
    return claim is not None and fail_turn(tx, claim, end, notice, now=now)


def answer_turn(
    tx: Transaction, claim: Claim, end: RunEnd, reply: str, cut: Cut, *, now: datetime
) -> bool:
    """T3: the run succeeded. Stores the reply's delivery; false = the run was stopped meanwhile
    and its result is thrown away.

    A check-in may answer with silence. A reminder may not: that is a failed try.
    """
    chat = claim.chat.key
    text = with_stored_lines(tx.connection, claim.turn, reply)
    # Marks alone, a rule for instance, are nothing once rendered: then they are shown as typed.
    pieces = cut(text, is_markdown=True) or cut(text, is_markdown=False)
    if claim.trigger is Trigger.JOB and (is_evasion(reply) or not pieces):
        empty = replace(end, state=RunState.EMPTY, reason=RunState.EMPTY, error=None)
        if not _end_run(tx, claim.run, empty, now=now):
            return False
        _miss(tx, chat, claim.turn, cut, now=now)
        return True
    if not _end_run(tx, claim.run, end, now=now):
        return False
    reason = None if pieces else BLANK
    if claim.trigger is Trigger.HEARTBEAT and is_nothing(reply):
        pieces, reason = (), NOTHING
    kind = DeliveryKind.REMINDER if claim.trigger is Trigger.JOB else DeliveryKind.REPLY
    shown = text if pieces else ""
    new = NewDelivery(chat=chat, kind=kind, text=shown, chunks=pieces, reason=reason)
    values = {"reply": text, "reason": reason, "delivery_id": store_delivery(tx, new, now=now)}
    after = TurnState.ANSWERED if pieces else TurnState.SILENT
    _end(tx, chat, claim.turn, after, values, now=now)
    if not claim.trigger.is_isolated:
        mark_seen(tx.connection, chat, claim.seen_delivery)
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
    """T3: the run gave no reply. Who wrote is told at once; a job's turn is tried again, or its
    stored text goes out; a check-in says nothing. False = the run was stopped meanwhile.
    """
    if not _end_run(tx, claim.run, end, now=now):
        return False
    chat = claim.chat.key
    reason = end.reason or end.state
    match claim.trigger:
        case Trigger.MESSAGE:
            _tell(tx, chat, claim.turn, notice, reason=reason, now=now)
            if begins_session:
                new_session(tx, chat)
        case Trigger.JOB:
            _miss(tx, chat, claim.turn, notice.cut, now=now)
        case Trigger.HEARTBEAT:
            _end_silently(tx, chat, claim.turn, TurnState.FAILED, reason=reason, now=now)
    return True


def break_off(tx: Transaction, claim: Claim, end: RunEnd, text: str, *, now: datetime) -> bool:
    """T3 when `fail_turn` itself fails: end the turn by the least that can go wrong, so that the
    chat's next turn can run. `text` is sent as it stands; a check-in says nothing.
    """
    if not _end_run(tx, claim.run, end, now=now):
        return False
    chat = claim.chat.key
    reason = end.reason or end.state
    if claim.trigger is Trigger.HEARTBEAT:
        _end_silently(tx, chat, claim.turn, TurnState.FAILED, reason=reason, now=now)
        return True
    pieces = (RichText.literal(text),)
    new = NewDelivery(chat=chat, kind=DeliveryKind.NOTICE, text=text, chunks=pieces)
    values = {"reason": reason, "delivery_id": store_delivery(tx, new, now=now)}
    _end(tx, chat, claim.turn, TurnState.FAILED, values, now=now)
    return True


def give_back(tx: Transaction, claim: Claim, *, now: datetime) -> bool:
    """A planned stop takes a running turn back into the queue; it does not count as cut off."""
    end = RunEnd(state=RunState.INTERRUPTED, reason=GIVEN_BACK)
    if not _end_run(tx, claim.run, end, now=now):
        return False
    _queue_again(tx, claim.chat.key, claim.turn, not_before=None, now=now)
    return True


def recover_turns(
    tx: Transaction,
    channels: Collection[ChannelName],
    notice: Notice,
    *,
    now: datetime,
) -> int:
    """At the start: every run was interrupted, and no check-in is due any more that waited for one.

    Returns how many runs there were.
    """
    _cancel_waiting_check_ins(tx, channels, now=now)
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
        chat, turn = ChatKey.parse(row.chat_key), TurnId(row.id)
        match Trigger(row.trigger):
            case Trigger.MESSAGE if _interruptions(tx, turn) < MAX_INTERRUPTIONS:
                _queue_again(tx, chat, turn, not_before=None, now=now)
            case Trigger.MESSAGE:
                _tell(tx, chat, turn, notice, reason=INTERRUPTED, now=now)
            case Trigger.JOB:
                _miss(tx, chat, turn, notice.cut, now=now)
            case Trigger.HEARTBEAT:
                _end_silently(tx, chat, turn, TurnState.CANCELLED, reason=INTERRUPTED, now=now)
    return len(rows)


def _cancel_waiting_check_ins(
    tx: Transaction, channels: Collection[ChannelName], *, now: datetime
) -> None:
    rows = tx.connection.execute(
        select(turns.c.id, turns.c.chat_key)
        .join(chats, chats.c.chat_key == turns.c.chat_key)
        .where(TURN_IS_QUEUED, turns.c.trigger == Trigger.HEARTBEAT, chats.c.channel.in_(channels))
    ).all()
    for row in rows:
        chat, turn = ChatKey.parse(row.chat_key), TurnId(row.id)
        cancel_turn(tx, chat, turn, TurnState.QUEUED, reason=INTERRUPTED, now=now)


def _miss(tx: Transaction, chat: ChatKey, turn: TurnId, cut: Cut, *, now: datetime) -> None:
    """A try of a job's turn failed: it is tried again later, or its stored text goes out."""
    rows = tx.connection.execute(_RUNS, {"turn": turn}).all()
    tried = [row for row in rows if row.reason != GIVEN_BACK]
    began_at = read_moment(tx.connection.execute(_BEGAN, {"turn": turn}).scalar_one())
    again = next_try(len(tried), began_at=began_at, now=now)
    if again is not None:
        _queue_again(tx, chat, turn, not_before=again, now=now)
    else:
        fall_back(tx, turn, TurnState.RUNNING, cut, now=now)


def _queue_again(
    tx: Transaction, chat: ChatKey, turn: TurnId, *, not_before: datetime | None, now: datetime
) -> None:
    move = (TurnState.RUNNING, TurnState.QUEUED)
    values = {"started_at": None, "not_before": millis(not_before)}
    save_transition(tx.connection, turns, turn, move, values, now=now)
    tx.touch(Topic.TURNS, chat)


def _tell(
    tx: Transaction, chat: ChatKey, turn: TurnId, notice: Notice, *, reason: str, now: datetime
) -> None:
    """Fail a person's own turn and say so, with what its tools had done."""
    told = with_stored_lines(tx.connection, turn, notice.text(turn))
    delivery = store_text(tx, chat, DeliveryKind.NOTICE, told, notice.cut, now=now)
    values = {"reason": reason, "delivery_id": delivery}
    _end(tx, chat, turn, TurnState.FAILED, values, now=now)


def _end_silently(
    tx: Transaction, chat: ChatKey, turn: TurnId, end: TurnState, *, reason: str, now: datetime
) -> None:
    delivery = store_silence(tx, chat, reason=reason, now=now)
    _end(tx, chat, turn, end, {"reason": reason, "delivery_id": delivery}, now=now)


def _end(
    tx: Transaction,
    chat: ChatKey,
    turn: TurnId,
    end: TurnState,
    values: Mapping[str, object],
    *,
    now: datetime,
) -> None:
    ended = {"ended_at": to_millis(now), **values}
    save_transition(tx.connection, turns, turn, (TurnState.RUNNING, end), ended, now=now)
    tx.touch(Topic.ENDED, chat)


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


def _interruptions(tx: Transaction, turn: TurnId) -> int:
    rows = tx.connection.execute(_RUNS, {"turn": turn}).all()
    return sum(was_cut_off(row.state, row.reason) for row in rows)
