"""Reminders: their states, their tiers, and the one line in which people read them."""

import unicodedata
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import NewType
from zoneinfo import ZoneInfo

from gateway.domain.message import ChatKey, MessageId
from gateway.domain.schedule import Schedule, local_time
from gateway.domain.turn import TurnId

JobId = NewType("JobId", int)

MAX_OPEN_JOBS = 50
MAX_CREATES_PER_MINUTE = 10
MAX_TEXT_BYTES = 32 * 1024

LATE_AFTER = timedelta(minutes=2)
"""A reminder sent later than this after its slot says when it was due."""

_LINE_TEXT = 200


class JobState(StrEnum):
    """Where a job stands; JOB_MOVES draws the moves."""

    ACTIVE = "active"  # it will fire
    PAUSED = "paused"  # it waits for a resume
    DONE = "done"  # its last slot was delivered
    CANCELLED = "cancelled"  # taken back by the person
    FAILED = "failed"  # it did not reach the person, or cannot fire


class JobAction(StrEnum):
    """What a due job does."""

    MESSAGE = "message"  # the stored text is sent, no model
    PROMPT = "prompt"  # a turn is started with the text


class Tier(StrEnum):
    """What a turn may do with tools, least first."""

    READ_ONLY = "read_only"
    SUGGEST = "suggest"
    MUTATE = "mutate"


_J = JobState
JOB_MOVES: dict[JobState, frozenset[JobState]] = {
    _J.ACTIVE: frozenset({_J.PAUSED, _J.DONE, _J.FAILED, _J.CANCELLED}),
    _J.PAUSED: frozenset({_J.ACTIVE, _J.DONE, _J.FAILED, _J.CANCELLED}),
    _J.FAILED: frozenset({_J.ACTIVE, _J.CANCELLED}),
    _J.DONE: frozenset(),
    _J.CANCELLED: frozenset(),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class NewJob:
    """A job to be stored."""

    chat: ChatKey
    action: JobAction
    text: str
    schedule: Schedule
    timezone: str
    next_slot_at: datetime
    tier: Tier = Tier.READ_ONLY
    created_by: TurnId | None = None
    origin_message: MessageId | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """Text, action and schedule, owned by a chat."""

    id: JobId
    chat: ChatKey
    state: JobState
    action: JobAction
    text: str
    schedule: Schedule
    timezone: str
    next_slot_at: datetime | None
    tier: Tier

    def line(self, *, now: datetime) -> str:
        """The one line people read: `#7 Tue 1 Dec 09:00 (Europe/Berlin): call mum`."""
        slot = self.next_slot_at or self.schedule.at
        when = local_time(slot, ZoneInfo(self.timezone), now=now)
        return f"#{self.id} {when} ({self.timezone}): {one_line(self.text, limit=_LINE_TEXT)}"

    def listed(self, *, now: datetime) -> str:
        """Its line in a list, with its state when it is not simply waiting for its time."""
        match self.state:
            case JobState.ACTIVE:
                state = "" if self.next_slot_at is not None else " (on its way)"
            case JobState.FAILED:
                state = " (may not have reached you)"
            case _:
                state = f" ({self.state})"
        return self.line(now=now) + state


def one_line(text: str, *, limit: int) -> str:
    """A text as data inside a line: no line break, control or bidi character, cut at `limit`."""
    flat = " ".join("".join(map(_flattened, text)).split())
    return flat if len(flat) <= limit else flat[: limit - 1].rstrip() + "…"


_BREAKS = frozenset({"Zl", "Zp", "Cc"})
_HIDDEN = frozenset({"Cf", "Cs", "Co", "Cn"})
_ZERO_WIDTH_JOINER = "\u200d"  # holds emoji families together


def _flattened(character: str) -> str:
    category = unicodedata.category(character)
    if category in _BREAKS:
        return " "
    is_hidden = category in _HIDDEN and character != _ZERO_WIDTH_JOINER
    return "" if is_hidden else character


@dataclass(frozen=True, slots=True, kw_only=True)
class DueReminder:
    """A fired slot whose stored text is on its way."""

    job_id: JobId
    text: str
    slot_at: datetime
    timezone: str


def reminder_text(due: list[DueReminder], *, now: datetime) -> str:
    """What is sent for the slots that share a delivery; each late one says when it was due."""
    texts = [_due_text(one, now=now) for one in due]
    return texts[0] if len(texts) == 1 else "\n".join(f"• {text}" for text in texts)


def _due_text(due: DueReminder, *, now: datetime) -> str:
    if now - due.slot_at <= LATE_AFTER:
        return due.text
    when = local_time(due.slot_at, ZoneInfo(due.timezone), now=now)
    return f"(was due {when}) {due.text}"
