"""Changes of a job: given another time, held, resumed, allowed more, put off; each one commit."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Final

from sqlalchemy import Connection, bindparam, select, update

from gateway.domain.job import Job, JobId, JobState, MissedWindow, NewJob, Tier
from gateway.domain.message import ChatKey
from gateway.domain.schedule import At, Schedule, to_millis
from gateway.domain.schedule_forms import schedule_to_json
from gateway.domain.turn import TurnId
from gateway.errors import StaleStateError
from gateway.store.database import Topic, Transaction
from gateway.store.deliveries import EndReason
from gateway.store.events import record_event, save_transition
from gateway.store.history import FiredJob
from gateway.store.jobs import find_job, has_room, insert_job, load_job, salvage_job
from gateway.store.schema import jobs

PAUSED: Final = "paused"
"""Reason of a job that a person paused."""

_PUT_OFF = (
    select(jobs).where(jobs.c.snoozed_from == bindparam("turn")).order_by(jobs.c.id.desc()).limit(1)
)
_REASON = select(jobs.c.reason).where(jobs.c.id == bindparam("job"))


class Refusal(StrEnum):
    """Why a job stays as it is."""

    NOT_FOUND = "not_found"  # the chat has no such job
    ENDED = "ended"  # cancelled, done, or all its runs are used up
    PASSED = "passed"  # its one time is over
    NOT_PAUSED = "not_paused"  # it goes on already
    NOT_ACTIVE = "not_active"  # it is paused already, or switched off
    NOTHING_ASKED = "nothing_asked"  # it may do all that it asks for
    NEVER_FIRED = "never_fired"  # there is nothing yet that could be put off
    CAME_AGAIN = "came_again"  # what was put off went out since
    TOO_MANY = "too_many"  # the chat has no room for one more that is open
    DAMAGED = "damaged"  # its row cannot be read

    def told(self, job_id: int) -> str:
        """What the person is told of the job."""
        return _WORDS[self].format(job_id)


_WORDS: Final[Mapping[Refusal, str]] = {
    Refusal.NOT_FOUND: "There is no reminder #{0}. /reminders lists them.",
    Refusal.ENDED: "Reminder #{0} is over; please set a new one.",
    Refusal.PASSED: "The time of reminder #{0} has passed; please give it a new one.",
    Refusal.NOT_PAUSED: "Reminder #{0} is not paused.",
    Refusal.NOT_ACTIVE: "Reminder #{0} is quiet already; /resume {0} lets it go on.",
    Refusal.NOTHING_ASKED: "Reminder #{0} asks for nothing more than it may do.",
    Refusal.NEVER_FIRED: "Reminder #{0} has not gone off yet; please give it another time instead.",
    Refusal.CAME_AGAIN: "Reminder #{0} was put off and came again since; snooze that newer one.",
    Refusal.TOO_MANY: "There are too many open reminders to let #{0} go on; cancel one first.",
    Refusal.DAMAGED: "Reminder #{0} is damaged; please /cancel {0} and set it again.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class JobChange:
    """What is to be different; None stays. A schedule comes with its first slot, and with the zone
    in which it was asked for, if that is another.
    """

    text: str | None = None
    schedule: Schedule | None = None
    next_slot_at: datetime | None = None
    timezone: str | None = None
    missed: MissedWindow | None = None

    def __post_init__(self) -> None:
        if (self.schedule is None) != (self.next_slot_at is None):
            raise ValueError("a schedule and its first slot come together")


@dataclass(frozen=True, slots=True, kw_only=True)
class Snoozed:
    """The job that reminds again; `is_moved` says that it was there already."""

    job: Job
    is_moved: bool


def update_job(
    tx: Transaction, chat: ChatKey, job_id: int, change: JobChange, *, now: datetime
) -> Job | Refusal:
    """Change a job under its number.

    With a new time a job goes on that had failed, or was held because its chat was not allowed;
    one that a person paused stays paused.
    """
    job = _changeable(tx.connection, chat, job_id)
    if isinstance(job, Refusal):
        return job
    values = _changed(job, change)
    if change.schedule is None:
        if job.next_slot_at is None and isinstance(job.schedule, At):
            return Refusal.PASSED
        return _write(tx, job, values, "changed", now=now)
    is_held = job.state is JobState.PAUSED and _is_held(tx.connection, job.id)
    if job.state is JobState.FAILED or is_held:
        return _go_on(tx, job, values, now=now)
    return _write(tx, job, values, "rescheduled", now=now)


def _changed(job: Job, change: JobChange) -> dict[str, object]:
    values: dict[str, object] = {}
    if change.text is not None and change.text != job.text:
        # What a person allowed, they allowed under its full text.
        values |= {"text": change.text, "tier": Tier.READ_ONLY}
    if change.missed is not None:
        values["missed"] = change.missed
    if change.timezone is not None:
        values["timezone"] = change.timezone
    if change.schedule is not None and change.next_slot_at is not None:
        values |= {
            "schedule": schedule_to_json(change.schedule),
            "next_slot_at": to_millis(change.next_slot_at),
            "failed_slots": 0,
        }
        if not _differs_in_end_only(job.schedule, change.schedule):
            values["fired"] = 0
    return values


def _differs_in_end_only(before: Schedule, after: Schedule) -> bool:
    """Whether the runs that were counted go on counting for `max_runs`."""
    if isinstance(before, At) or isinstance(after, At):
        return False
    endless = replace(before, until=None, max_runs=None)
    return endless == replace(after, until=None, max_runs=None)


def _is_held(connection: Connection, job: JobId) -> bool:
    reason = connection.execute(_REASON, {"job": job}).scalar_one()
    return bool(reason == EndReason.NOT_ALLOWED)


def pause_job(tx: Transaction, chat: ChatKey, job_id: int, *, now: datetime) -> Job | Refusal:
    """Keep a job quiet; its next time stays with it."""
    job = _changeable(tx.connection, chat, job_id)
    if isinstance(job, Refusal):
        return job
    if job.state is not JobState.ACTIVE:
        return Refusal.NOT_ACTIVE
    if job.next_slot_at is None:
        return Refusal.PASSED
    move = (JobState.ACTIVE, JobState.PAUSED)
    save_transition(tx.connection, jobs, job.id, move, {"reason": PAUSED}, now=now)
    return _reloaded(tx, job)


def resume_job(tx: Transaction, chat: ChatKey, job_id: int, *, now: datetime) -> Job | Refusal:
    """Let a job that is paused, or was switched off, go on with its next slot from now."""
    job = _changeable(tx.connection, chat, job_id)
    if isinstance(job, Refusal):
        return job
    if job.state is JobState.ACTIVE:
        return Refusal.NOT_PAUSED
    slot = job.resumed_slot(now=now)
    if isinstance(job.schedule, At) and (slot is None or job.state is JobState.FAILED):
        return Refusal.PASSED
    if slot is None:
        return Refusal.ENDED
    return _go_on(tx, job, {"next_slot_at": to_millis(slot), "failed_slots": 0}, now=now)


def allow_job(tx: Transaction, chat: ChatKey, job_id: int, *, now: datetime) -> Job | Refusal:
    """Give a job what it asks for. Only a person's own command or press may lead here."""
    job = _changeable(tx.connection, chat, job_id)
    if isinstance(job, Refusal):
        return job
    if job.asked_tier is job.tier:
        return Refusal.NOTHING_ASKED
    return _write(tx, job, {"tier": job.asked_tier}, "allowed", now=now)


def snooze(
    tx: Transaction, fired: FiredJob, until: datetime, *, now: datetime
) -> Snoozed | Refusal:
    """Remind once more of a slot that went out; what waits for that already is moved.

    There is at most one for each slot, so the limits of new jobs do not count.
    """
    chat = fired.job.chat
    known = _put_off(tx.connection, fired.turn)
    if known is not None and known.state is not JobState.CANCELLED:
        if known.next_slot_at is None and known.state is not JobState.FAILED:
            return Refusal.CAME_AGAIN
        moved = _move(tx, known, until, now=now)
        return moved if isinstance(moved, Refusal) else Snoozed(job=moved, is_moved=True)
    row = find_job(tx.connection, chat, fired.job.id)
    if row is None:
        return Refusal.NOT_FOUND
    try:
        job = load_job(row)
    except ValueError:
        return Refusal.DAMAGED
    new = NewJob(
        chat=chat,
        action=job.action,
        text=job.text,
        schedule=At(at=until),
        timezone=job.timezone,
        next_slot_at=until,
        tier=job.tier,
        asked_tier=job.asked_tier,
        origin=job.origin,
        snoozed_from=fired.turn,
    )
    return Snoozed(job=insert_job(tx, new, now=now), is_moved=False)


def _put_off(connection: Connection, turn: TurnId) -> Job | None:
    row = connection.execute(_PUT_OFF, {"turn": turn}).one_or_none()
    return None if row is None else salvage_job(row)


def _move(tx: Transaction, waiting: Job, until: datetime, *, now: datetime) -> Job | Refusal:
    job = _changeable(tx.connection, waiting.chat, waiting.id)
    if isinstance(job, Refusal):
        return job
    values = {"schedule": schedule_to_json(At(at=until)), "next_slot_at": to_millis(until)}
    if job.state is JobState.ACTIVE:
        return _write(tx, job, values, "snoozed again", now=now)
    return _go_on(tx, job, values, now=now)


def _changeable(connection: Connection, chat: ChatKey, job_id: int) -> Job | Refusal:
    """A job of the chat that is not over, or why it cannot be changed."""
    row = find_job(connection, chat, job_id)
    if row is None:
        return Refusal.NOT_FOUND
    try:
        job = load_job(row)
    except ValueError:
        return Refusal.DAMAGED
    return Refusal.ENDED if job.state in (JobState.DONE, JobState.CANCELLED) else job


def _write(
    tx: Transaction, job: Job, values: Mapping[str, object], reason: str, *, now: datetime
) -> Job:
    """Change a job that keeps its state."""
    if not values:
        return job
    stands = (jobs.c.id == job.id) & (jobs.c.state == job.state)
    if tx.connection.execute(update(jobs).where(stands).values(**values)).rowcount != 1:
        raise StaleStateError(f"jobs {job.id} is not {job.state} any more")
    record_event(tx.connection, jobs, job.id, (job.state, job.state), now=now, reason=reason)
    return _reloaded(tx, job)


def _go_on(
    tx: Transaction, job: Job, values: Mapping[str, object], *, now: datetime
) -> Job | Refusal:
    """Make a job active again."""
    if job.state is JobState.FAILED and not has_room(tx.connection, job.chat):
        return Refusal.TOO_MANY
    fresh = {**values, "reason": None, "ended_at": None}
    save_transition(tx.connection, jobs, job.id, (job.state, JobState.ACTIVE), fresh, now=now)
    return _reloaded(tx, job)


def _reloaded(tx: Transaction, job: Job) -> Job:
    tx.touch(Topic.JOBS, job.chat)
    row = find_job(tx.connection, job.chat, job.id)
    return job if row is None else load_job(row)
