"""One request to a host and each attempt at it: their states and what an outcome means."""

from datetime import datetime, timedelta
from enum import StrEnum
from typing import NewType

TurnId = NewType("TurnId", int)
RunId = NewType("RunId", int)

GIVEN_BACK = "shutdown"
"""Reason of a run that a planned stop gave back; it does not count as an interruption."""

MAX_INTERRUPTIONS = 2
"""A message turn that was cut off this often is not tried again."""

RETRY_AFTER = (timedelta(seconds=30), timedelta(minutes=1))
"""How long a job's turn waits after its first failed try, and after its second."""

GIVE_UP_AFTER = timedelta(minutes=5)
"""A job's turn is not begun any more so long after it was due to run: its stored text goes out."""


class Trigger(StrEnum):
    """Why a turn exists."""

    MESSAGE = "message"
    JOB = "job"
    HEARTBEAT = "heartbeat"

    @property
    def is_isolated(self) -> bool:
        """Whether its turns run in a fresh session, discarded after, and not in the chat's own."""
        return self is Trigger.JOB


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


def next_try(failed: int, *, began_at: datetime, now: datetime) -> datetime | None:
    """When a job's turn is tried again after its n-th failed try; None = no more."""
    if failed > len(RETRY_AFTER) or now - began_at >= GIVE_UP_AFTER:
        return None
    return now + RETRY_AFTER[failed - 1]
