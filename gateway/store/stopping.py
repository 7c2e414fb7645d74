"""What `/stop` and `/new` commit before anything is aborted."""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import bindparam, select

from gateway.domain.delivery import DeliveryKind, DeliveryState
from gateway.domain.message import ChatKey
from gateway.domain.schedule import to_millis
from gateway.domain.turn import RunId, RunState, Trigger, TurnId, TurnState
from gateway.store.database import Topic, Transaction
from gateway.store.deliveries import EndReason, drop_open, store_silence
from gateway.store.events import save_transition
from gateway.store.schema import (
    TURN_IS_OPEN,
    TURN_IS_RUNNING,
    runs,
    tool_calls,
    turns,
)
from gateway.store.slots import settle_jobs

_OPEN_HEARTBEATS = select(turns.c.id, turns.c.state).where(
    turns.c.chat_key == bindparam("chat"), TURN_IS_OPEN, turns.c.trigger == Trigger.HEARTBEAT
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stopped:
    """What was stopped: the runs to abort, how many waiting turns and unsent replies, and the
    stored lines of what tools had already done.
    """

    runs: tuple[RunId, ...]
    queued: int
    replies: int
    done_lines: tuple[str, ...]

    @property
    def is_nothing(self) -> bool:
        """Whether nothing was going on."""
        return not (self.runs or self.queued or self.replies)


def stop_chat(tx: Transaction, chat: ChatKey, *, now: datetime) -> Stopped:
    """Cancel the running turn and the queued message turns; drop what is unsent of replies.

    Reminders, a model's too, are never dropped, and scheduled turns stay queued.
    """
    rows = tx.connection.execute(
        select(turns.c.id, turns.c.state).where(
            turns.c.chat_key == str(chat),
            TURN_IS_OPEN,
            TURN_IS_RUNNING | (turns.c.trigger == Trigger.MESSAGE),
        )
    ).all()
    stopped: list[RunId] = []
    for row in rows:
        stopped += cancel_turn(
            tx, chat, TurnId(row.id), TurnState(row.state), reason="stopped", now=now
        )
    replies = drop_open(tx, chat, kinds=(DeliveryKind.REPLY,), reason=EndReason.STOPPED, now=now)
    lines = tx.connection.execute(
        select(tool_calls.c.line)
        .where(tool_calls.c.turn_id.in_([row.id for row in rows]), tool_calls.c.line.is_not(None))
        .order_by(tool_calls.c.id)
    ).scalars()
    tx.touch(Topic.TURNS, chat)
    return Stopped(
        runs=tuple(stopped),
        queued=len(rows) - len(stopped),
        replies=replies,
        done_lines=tuple(dict.fromkeys(line for line in lines if line is not None)),
    )


def cancel_heartbeat(tx: Transaction, chat: ChatKey, *, now: datetime) -> RunId | None:
    """A person wrote: end the chat's check-in in silence; returns its run, to be aborted after the
    commit, if one is in progress.
    """
    rows = tx.connection.execute(_OPEN_HEARTBEATS, {"chat": str(chat)}).all()
    stopped: list[RunId] = []
    for row in rows:
        state = TurnState(row.state)
        stopped += cancel_turn(tx, chat, TurnId(row.id), state, reason="person_wrote", now=now)
    if rows:
        tx.touch(Topic.TURNS, chat)
    return stopped[0] if stopped else None


def cancel_turn(
    tx: Transaction,
    chat: ChatKey,
    turn: TurnId,
    state: TurnState,
    *,
    reason: str,
    now: datetime,
) -> list[RunId]:
    """End an open turn without an answer, and its one-shot with it; returns its running run, whose
    result is void now.
    """
    cancelled = _cancel_runs(tx, turn, reason=reason, now=now)
    silence = store_silence(tx, chat, reason=reason, now=now)
    values = {"reason": reason, "delivery_id": silence, "ended_at": to_millis(now)}
    save_transition(tx.connection, turns, turn, (state, TurnState.CANCELLED), values, now=now)
    settle_jobs(tx, silence, DeliveryState.SUPPRESSED, now=now)
    return cancelled


def _cancel_runs(tx: Transaction, turn: TurnId, *, reason: str, now: datetime) -> list[RunId]:
    rows = tx.connection.execute(
        select(runs.c.id).where(runs.c.turn_id == turn, runs.c.state == RunState.RUNNING)
    ).scalars()
    cancelled = []
    for run in list(rows):
        move = (RunState.RUNNING, RunState.CANCELLED)
        values = {"reason": reason, "ended_at": to_millis(now)}
        save_transition(tx.connection, runs, run, move, values, now=now)
        cancelled.append(RunId(run))
    return cancelled
