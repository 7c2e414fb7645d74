"""Slots that are not run: their turns, and what the chat is told when nothing else will come."""

from collections.abc import Callable, Collection, Sequence
from datetime import datetime, timedelta
from typing import Final
from zoneinfo import ZoneInfo

from sqlalchemy import String, bindparam, cast, select, update

from gateway.domain.delivery import DeliveryKind
from gateway.domain.job import Job, JobState, one_line
from gateway.domain.message import ChannelName, ChatKey
from gateway.domain.schedule import local_time, next_slot, to_millis
from gateway.domain.turn import TurnState
from gateway.store.database import Topic, Transaction
from gateway.store.deliveries import Cut, EndReason, store_silence, store_text
from gateway.store.events import save_transition
from gateway.store.jobs import load_job
from gateway.store.reminders import put_in_delivery
from gateway.store.schema import JOB_IS_ACTIVE, chats, jobs, turns
from gateway.store.slots import insert_turn, planned_slot

MISSED: Final = "missed"
"""Reason of a slot that passed unseen, or was too late to be given."""

UNREACHABLE: Final = "chat_unreachable"
"""Reason of a prompt's slot that came while the chat could not be written to."""

NOT_ALLOWED: Final = EndReason.NOT_ALLOWED.value

_NAMED_TEXT = 120
_MARGIN = timedelta(seconds=60)
_MOVE_BACK = update(jobs).where(jobs.c.id == bindparam("job"), jobs.c.state == JobState.ACTIVE)
_WORDS: Final = {
    MISSED: "it was due {when}, too long ago",
    UNREACHABLE: "it was due {when}, while I could not write here",
}


def cancel_slots(
    tx: Transaction, job: Job, slots: Sequence[datetime], reason: str, *, now: datetime
) -> None:
    """Store the turns of slots that are not run; those that are there already stay as they are."""
    found = (
        insert_turn(
            tx.connection, job, planned_slot(job, at), TurnState.CANCELLED, reason=reason, now=now
        )
        for at in slots
    )
    made = [turn for turn in found if turn is not None]
    if made:
        silence = store_silence(tx, job.chat, reason=reason, now=now)
        for turn in made:
            put_in_delivery(tx.connection, turn, silence)


def end_unrun(
    tx: Transaction,
    job: Job,
    slot: datetime,
    reason: str,
    cut: Callable[[ChatKey], Cut],
    *,
    now: datetime,
) -> None:
    """End a job whose last slot is not run. It stays listed, and its chat is told."""
    values = {"next_slot_at": None, "reason": reason, "ended_at": to_millis(now)}
    move = (JobState.ACTIVE, JobState.FAILED)
    save_transition(tx.connection, jobs, job.id, move, values, now=now)
    when = local_time(slot, ZoneInfo(job.timezone), now=now)
    why = _WORDS[reason].format(when=when)
    text = f'Reminder #{job.id} was not given: {why}: "{one_line(job.text, limit=_NAMED_TEXT)}"'
    store_text(tx, job.chat, DeliveryKind.NOTICE, text, cut(job.chat), now=now)
    tx.touch(Topic.JOBS, job.chat)


def realign(tx: Transaction, channels: Collection[ChannelName], *, now: datetime) -> int:
    """The clock was set back: what repeats goes on from now, instead of after the slots that came
    while the clock was ahead. Those that were run are not run again: their turns are there.

    Returns how many jobs had to be moved.
    """
    rows = tx.connection.execute(
        select(jobs)
        .join(chats, chats.c.chat_key == jobs.c.chat_key)
        .where(
            JOB_IS_ACTIVE,
            jobs.c.next_slot_at > to_millis(now),
            jobs.c.last_slot_at > to_millis(now - _MARGIN),
            chats.c.channel.in_(channels),
        )
    ).all()
    moved = 0
    for row in rows:
        try:
            job = load_job(row)
        except ValueError:
            continue  # it is switched off when it is due
        slot = next_slot(job.schedule, after=now, zone=ZoneInfo(job.timezone))
        if slot is None or job.next_slot_at is None or slot >= job.next_slot_at:
            continue
        values = {"job": job.id, "next_slot_at": to_millis(slot)}
        moved += tx.connection.execute(_MOVE_BACK, values).rowcount
        _void_missed(tx, job, now=now)
        tx.touch(Topic.JOBS, job.chat)
    return moved


def _void_missed(tx: Transaction, job: Job, *, now: datetime) -> None:
    """Slots that a clock ahead of its time made pass as missed, and that are to come, may come."""
    tx.connection.execute(
        update(turns)
        .where(
            turns.c.job_id == job.id,
            turns.c.state == TurnState.CANCELLED,
            turns.c.reason == MISSED,
            turns.c.slot_at > to_millis(now),
        )
        .values(source_key=turns.c.source_key + ":void:" + cast(turns.c.id, String))
    )
