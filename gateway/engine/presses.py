"""What a press of a button under a message of ours does, and a short reply to a reminder."""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from typing import assert_never
from zoneinfo import ZoneInfo

from sqlalchemy import Connection

from gateway.domain import quick
from gateway.domain.button import Button, ButtonAction
from gateway.domain.delivery import DeliveryId
from gateway.domain.job import Job, JobState
from gateway.domain.message import NewMessage
from gateway.domain.wallclock import instants
from gateway.engine import texts
from gateway.engine.answers import Asking, Done, joined
from gateway.engine.reminder_commands import allow_one, ask_which, cancel_one, live, snooze_fired
from gateway.store.database import Transaction
from gateway.store.history import FiredJob, delivery_of, fired_by
from gateway.store.jobs import OPEN_JOB_STATES, get_job, list_jobs
from gateway.store.wire import is_offer_of

Effect = Callable[[Transaction], Done]

_ENDED = (JobState.DONE, JobState.CANCELLED)


def press(tx: Transaction, message: NewMessage, asking: Asking) -> Done:
    """Do what a button asks for; the answer goes under the message that it is under."""
    button = Button.parse(message.text)
    done = None if button is None else _pressed(tx, message, button, asking)
    if done is None:
        return Done(text=texts.STALE_BUTTON)
    return replace(done, under=message.quoted_external_id)


def _pressed(tx: Transaction, message: NewMessage, button: Button, asking: Asking) -> Done | None:
    """What came of a press; None = nothing of this chat is behind the button."""
    if button.action is ButtonAction.ALLOW:
        job = get_job(tx.connection, asking.chat, button.subject)
        under = message.quoted_external_id
        if job is None or under is None or not is_offer_of(tx.connection, asking.chat, under, job):
            return None  # a button under what the job said before allows nothing
        return Done(text=allow_one(tx, job.id, asking))
    fired = live(fired_by(tx.connection, asking.chat, DeliveryId(button.subject)))
    if len(fired) != 1:
        return None
    match button.action:
        case ButtonAction.DONE:
            return replace(_done(tx, fired[0], asking), text="✓ Done")
        case ButtonAction.SNOOZE_10_MINUTES:
            until = asking.now + timedelta(minutes=10)
        case ButtonAction.SNOOZE_1_HOUR:
            until = asking.now + timedelta(hours=1)
        case ButtonAction.TOMORROW:
            until = _tomorrow(fired[0], asking)
        case _:
            assert_never(button.action)
    return Done(text=snooze_fired(tx, fired[0], until, asking))


def _tomorrow(fired: FiredJob, asking: Asking) -> datetime:
    """The day after today, at the local time of the slot."""
    zone = ZoneInfo(fired.job.timezone)
    day = asking.now.astimezone(zone).date() + timedelta(days=1)
    return instants(day, fired.slot_at.astimezone(zone).time(), zone)[0].at


def read_reply(connection: Connection, message: NewMessage, asking: Asking) -> Effect | None:
    """What a short reply to a reminder of ours does; None = it is an ordinary message."""
    if message.quoted_external_id is None:
        return None
    delivery = delivery_of(connection, asking.chat, message.quoted_external_id)
    fired = () if delivery is None else live(fired_by(connection, asking.chat, delivery))
    if not fired:
        return None
    wish = quick.read_quick(message.text, now=asking.said_at, zone=ZoneInfo(asking.timezone))
    if wish is None:
        return None
    return partial(_reply, wish=wish, fired=fired, asking=asking)


def _reply(
    tx: Transaction, *, wish: quick.Quick, fired: tuple[FiredJob, ...], asking: Asking
) -> Done:
    only = fired[0] if len(fired) == 1 else None
    match wish:
        case quick.Done():
            return _done(tx, only, asking)
        case quick.StopIt():
            if only is None:
                return ask_which(fired, "/cancel {}", asking)
            return _stop(tx, only, asking)
        case quick.SnoozeUntil(at=at, said=said):
            if only is None:
                return ask_which(fired, f"/snooze {{}} {said}", asking)
            return Done(text=snooze_fired(tx, only, at, asking))
        case _:
            assert_never(wish)


def _done(tx: Transaction, fired: FiredJob | None, asking: Asking) -> Done:
    """What was put off is done, too; a series goes on."""
    if fired is None:
        return Done(text="Done.")
    put_off = _put_off(tx.connection, fired, asking)
    ended = joined(cancel_one(tx, job.id, asking) for job in put_off)
    job = fired.job
    if job.state is JobState.ACTIVE and job.next_slot_at is not None:
        return replace(ended, text=f"Done. It comes again: {job.line(now=asking.now)}")
    return replace(ended, text="Done.")


def _stop(tx: Transaction, fired: FiredJob, asking: Asking) -> Done:
    """Cancel the job, and with it what was put off of this slot."""
    stopped = () if fired.job.state in _ENDED else (fired.job,)
    open_jobs = (*stopped, *_put_off(tx.connection, fired, asking))
    if not open_jobs:
        return Done(text=f"Nothing more will come of it: {fired.job.line(now=asking.now)}")
    return joined(cancel_one(tx, job.id, asking) for job in open_jobs)


def _put_off(connection: Connection, fired: FiredJob, asking: Asking) -> list[Job]:
    """What was put off of this slot and is not over yet."""
    return [
        job
        for job in list_jobs(connection, asking.chat)
        if job.snoozed_from == fired.turn and job.state in OPEN_JOB_STATES
    ]
