"""What a reminder says when it is sent: its stored text or a model's reply, and when it was due."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from gateway.domain.job import MAX_TEXT_BYTES, JobId, one_line
from gateway.domain.schedule import local_time

LATE_AFTER = timedelta(minutes=2)
"""A reminder sent later than this after its slot says when it was due."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DueReminder:
    """A fired slot whose text is on its way: the stored one, or what a model made of it.

    `earlier` counts slots of the same job before it, for which it stands as well.
    """

    job_id: JobId
    text: str
    slot_at: datetime
    timezone: str
    reply: str | None = None
    earlier: int = 0


def reminder_text(due: list[DueReminder], *, now: datetime) -> str:
    """What is sent for the slots that share a delivery; each late one says when it was due."""
    texts = [_due_text(one, now=now) for one in due]
    if len(texts) == 1:
        return texts[0]
    # One line each, so that no text can look like two reminders.
    return "\n".join(f"• {one_line(text, limit=MAX_TEXT_BYTES)}" for text in texts)


def _due_text(due: DueReminder, *, now: datetime) -> str:
    times = {0: "", 1: "(and once before)"}.get(due.earlier, f"(and {due.earlier} times before)")
    return " ".join(filter(None, (late_note(due, now=now), due.text, times)))


def late_note(due: DueReminder, *, now: datetime) -> str:
    """`(was due Tue 1 Dec 09:00)` if it is late, else nothing."""
    if now - due.slot_at <= LATE_AFTER:
        return ""
    return f"(was due {local_time(due.slot_at, ZoneInfo(due.timezone), now=now)})"
