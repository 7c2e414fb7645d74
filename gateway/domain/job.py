"""Reminders: their states, their tiers, and the one line in which people read them."""

import unicodedata
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import NewType
from zoneinfo import ZoneInfo

from gateway.domain.message import ChatKey
from gateway.domain.schedule import At, Schedule, local_time, next_slot
from gateway.domain.schedule_forms import describe
from gateway.domain.turn import TurnId

JobId = NewType("JobId", int)

LARGEST_ID = 2**63 - 1
"""The largest id that a row can have."""

MAX_OPEN_JOBS = 50
MAX_CREATES_PER_MINUTE = 10
MAX_TEXT_BYTES = 32 * 1024

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


class MissedWindow(StrEnum):
    """What becomes of a slot that passed while nothing could fire it."""

    CATCH_UP_ONE = "catch_up_one"  # the latest one fires, late, and says when it was due
    SKIP = "skip"  # it fires within the grace of its schedule only


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
class Origin:
    """The message that asked for a job: its words, on one line, and when it was sent."""

    text: str
    sent_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class NewJob:
    """A job to be stored. `asked_tier` is what a person may allow it beyond its tier.

    `snoozed_from` is the turn of the slot that was put off.
    """

    chat: ChatKey
    action: JobAction
    text: str
    schedule: Schedule
    timezone: str
    next_slot_at: datetime
    missed: MissedWindow = MissedWindow.CATCH_UP_ONE
    tier: Tier = Tier.READ_ONLY
    asked_tier: Tier = Tier.READ_ONLY
    created_by: TurnId | None = None
    origin: Origin | None = None
    snoozed_from: TurnId | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """Text, action and schedule, owned by a chat.

    `fired` counts its runs, `failed_slots` those in a row that failed. Without `next_slot_at`
    nothing of it is to come.
    """

    id: JobId
    chat: ChatKey
    state: JobState
    action: JobAction
    text: str
    schedule: Schedule
    timezone: str
    next_slot_at: datetime | None
    last_slot_at: datetime | None
    created_at: datetime
    tier: Tier
    asked_tier: Tier
    missed: MissedWindow
    fired: int
    failed_slots: int
    origin: Origin | None
    snoozed_from: TurnId | None

    def line(self, *, now: datetime) -> str:
        """The one line people read: `#7 Tue 1 Dec 09:00 (Europe/Berlin), weekly: call mum`."""
        zone = ZoneInfo(self.timezone)
        when = f"#{self.id} {local_time(self._shown_slot(), zone, now=now)} ({self.timezone})"
        rhythm = describe(self.schedule, zone, now=now)
        often = f", {rhythm}" if rhythm else ""
        return f"{when}{often}: {one_line(self.text, limit=_LINE_TEXT)}"

    def _shown_slot(self) -> datetime:
        if self.next_slot_at is not None:
            return self.next_slot_at
        if isinstance(self.schedule, At):
            return self.schedule.at
        return self.last_slot_at or self.created_at

    def resumed_slot(self, *, now: datetime) -> datetime | None:
        """Where it goes on from now; None = its time is over, or all its runs are used up."""
        if not isinstance(self.schedule, At):
            granted = self.schedule.max_runs
            if granted is not None and self.fired >= granted:
                return None
        return next_slot(self.schedule, after=now, zone=ZoneInfo(self.timezone))

    def listed(self, *, now: datetime) -> str:
        """Its line in a list, with how it stands when it is not simply waiting for its time."""
        marks = [self._standing(now=now)]
        if self.snoozed_from is not None:
            marks.append("snoozed")
        if self.action is JobAction.PROMPT and self.asked_tier is not self.tier:
            marks.append(f"asks to {TIER_WORDS[self.asked_tier]}: /allow {self.id}")
        return self.line(now=now) + "".join(f" ({mark})" for mark in marks if mark)

    def _standing(self, *, now: datetime) -> str:
        match self.state:
            case JobState.ACTIVE:
                return "" if self.next_slot_at is not None else "on its way"
            case JobState.FAILED:
                # Of a one-shot, and of the end of a series, this is all that is known.
                is_series = not isinstance(self.schedule, At)
                goes_on = is_series and self.resumed_slot(now=now) is not None
                return "switched off" if goes_on else "may not have reached you"
            case _:
                return str(self.state)


TIER_WORDS = {
    Tier.READ_ONLY: "read only",
    Tier.SUGGEST: "read, and write into its own workspace",
    Tier.MUTATE: "read, write and change things",
}
"""What a tier allows, as people are told."""


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
