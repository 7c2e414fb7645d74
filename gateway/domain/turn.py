"""One request to a host and each attempt at it: their states and what an outcome means."""

from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import NewType

from gateway.domain.message import ChatKey
from gateway.domain.state import check_move

TurnId = NewType("TurnId", int)
RunId = NewType("RunId", int)

GIVEN_BACK = "shutdown"
"""Reason of a run that a planned stop gave back; it does not count as an interruption."""

MAX_INTERRUPTIONS = 2
"""A message turn that was cut off this often is not tried again."""


class Trigger(StrEnum):
    """Why a turn exists."""

    MESSAGE = "message"
    JOB = "job"
    HEARTBEAT = "heartbeat"


class TurnState(StrEnum):
    """Where a turn stands; TURN_MOVES draws the moves."""

    QUEUED = "queued"  # stored, waiting for its chat's lane
    RUNNING = "running"  # a run is in progress
    ANSWERED = "answered"  # a text was stored for delivery
    SILENT = "silent"  # the host answered, and nothing is to be sent
    FAILED = "failed"  # no run succeeded and none will be tried
    CANCELLED = "cancelled"  # stopped by the person, or a slot that is not run


class RunState(StrEnum):
    """Where a run stands; RUN_MOVES draws the moves."""

    RUNNING = "running"  # the host is at work
    SUCCEEDED = "succeeded"  # ended well with text
    EMPTY = "empty"  # ended well without text
    FAILED = "failed"  # the host or its model failed
    TIMED_OUT = "timed_out"  # silent, or at work, for too long
    CANCELLED = "cancelled"  # stopped by the person
    INTERRUPTED = "interrupted"  # the gateway ended under it


_T = TurnState
TURN_MOVES: dict[TurnState, frozenset[TurnState]] = {
    _T.QUEUED: frozenset({_T.RUNNING, _T.CANCELLED, _T.FAILED}),
    _T.RUNNING: frozenset({_T.QUEUED, _T.ANSWERED, _T.SILENT, _T.FAILED, _T.CANCELLED}),
    _T.ANSWERED: frozenset(),
    _T.SILENT: frozenset(),
    _T.FAILED: frozenset(),
    _T.CANCELLED: frozenset(),
}
RUN_MOVES: dict[RunState, frozenset[RunState]] = {
    state: frozenset(set(RunState) - {RunState.RUNNING})
    if state is RunState.RUNNING
    else frozenset()
    for state in RunState
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One request to the host. Only `advance` changes its state; only the store writes it."""

    id: TurnId
    chat: ChatKey
    trigger: Trigger
    state: TurnState
    reason: str | None
    not_before: datetime | None
    text: str | None
    created_at: datetime
    ended_at: datetime | None

    def advance(self, to: TurnState, *, now: datetime, reason: str | None = None) -> "Turn":
        """Return the turn in its new state, or raise IllegalTransitionError."""
        check_move(TURN_MOVES, self.state, to)
        return replace(self, state=to, reason=reason, ended_at=now if not TURN_MOVES[to] else None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One attempt of a host at a turn. Only `advance` changes its state."""

    id: RunId
    turn_id: TurnId
    attempt: int
    state: RunState
    reason: str | None
    error: str | None
    started_at: datetime
    ended_at: datetime | None

    def advance(
        self, to: RunState, *, now: datetime, reason: str | None = None, error: str | None = None
    ) -> "Run":
        """Return the run in its new state, or raise IllegalTransitionError."""
        check_move(RUN_MOVES, self.state, to)
        return replace(self, state=to, reason=reason, error=error, ended_at=now)


def after_interruption(trigger: Trigger, interruptions: int) -> TurnState:
    """Where a running turn goes whose gateway ended under it for the n-th time."""
    if trigger is Trigger.HEARTBEAT:
        return TurnState.CANCELLED
    return TurnState.QUEUED if interruptions < MAX_INTERRUPTIONS else TurnState.FAILED
