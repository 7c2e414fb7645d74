"""The reminder tool: set, listed, changed and cancelled, answered from the committed row."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from zoneinfo import ZoneInfo

from pydantic import BaseModel
from sqlalchemy import Connection

from extensions.schedule_arguments import DESCRIPTION, PROMPT, ScheduleArguments
from extensions.schedule_times import (
    has_new_time,
    names_time,
    resolve,
    resolve_change,
    resolve_delay,
)
from gateway.domain.delivery import DeliveryKind
from gateway.domain.job import (
    MAX_CREATES_PER_MINUTE,
    MAX_OPEN_JOBS,
    MAX_TEXT_BYTES,
    TIER_WORDS,
    Job,
    JobAction,
    JobState,
    MissedWindow,
    NewJob,
    Origin,
    Tier,
    one_line,
)
from gateway.domain.schedule import At, local_time
from gateway.domain.tool import (
    NOTHING_CHANGED,
    NOTHING_SET,
    Extension,
    Tool,
    ToolContext,
    ToolResult,
)
from gateway.domain.turn import Trigger
from gateway.store.database import Database, Transaction
from gateway.store.deliveries import Cut, NewDelivery, store_delivery
from gateway.store.firing import FireRules, fire_now
from gateway.store.history import job_history, last_fired
from gateway.store.job_changes import (
    JobChange,
    Refusal,
    pause_job,
    resume_job,
    snooze,
    update_job,
)
from gateway.store.jobs import JobLimit, cancel_job, create_job, get_job, list_jobs
from gateway.store.toolcalls import run_once

NAME = "schedule"

_LIMITS: Mapping[JobLimit, str] = {
    JobLimit.TOO_MANY: f"there are {MAX_OPEN_JOBS} open reminders already; cancel one first.",
    JobLimit.TOO_FAST: (
        f"at most {MAX_CREATES_PER_MINUTE} reminders a minute can be set; wait a minute."
    ),
}
_NEW = frozenset({"create", "snooze"})
_SETTING = _NEW | {"update", "resume"}
"""Actions after which a model may say that a reminder is set: when refused, the person is told."""

_PAUSED = "Paused"
_SHOWN = 200
_HISTORY = 10

_Effect = Callable[[Transaction, ToolContext, ScheduleArguments], ToolResult]


class ScheduleTool:
    """Admission is synchronous: what it answers is committed."""

    def __init__(self, database: Database, rules: FireRules) -> None:
        self._database = database
        self._rules = rules
        self._effects: Mapping[str, _Effect] = {
            "create": self._create,
            "update": self._update,
            "pause": _pause,
            "resume": _resume,
            "cancel": _cancel,
            "snooze": _snooze,
            "run_now": self._run_now,
        }

    async def call(self, context: ToolContext, arguments: BaseModel) -> ToolResult:
        """Do one call, once for each identical call of a turn however often it is run.

        What only reads says each time what is stored then.
        """
        if not isinstance(arguments, ScheduleArguments):
            raise TypeError(f"expected ScheduleArguments, got {type(arguments).__name__}")
        match arguments.action:
            case "list":
                return await self._database.read(_list, context)
            case "get":
                return await self._database.read(_get, context, arguments)
            case "history":
                return await self._database.read(_history, context, arguments)
            case _:
                return await self._database.write(
                    run_once, context, NAME, lambda tx: self._run(tx, context, arguments)
                )

    def _run(
        self, tx: Transaction, context: ToolContext, arguments: ScheduleArguments
    ) -> ToolResult:
        if context.trigger is not Trigger.MESSAGE:
            return _refused(context, arguments, "a turn that runs by itself changes no reminders.")
        if not self._rules.admits(tx.connection, context.chat):
            return _refused(context, arguments, "this chat is not allowed any more.")
        return self._effects[arguments.action](tx, context, arguments)

    def _create(
        self, tx: Transaction, context: ToolContext, arguments: ScheduleArguments
    ) -> ToolResult:
        text = (arguments.text or "").strip()
        timing = _check_text(arguments, text, self._rules.cut(context.chat)) or resolve(
            context, arguments
        )
        if isinstance(timing, str):
            return _refused(context, arguments, timing)
        new = NewJob(
            chat=context.chat,
            action=JobAction(arguments.do or JobAction.MESSAGE),
            text=text,
            schedule=timing.schedule,
            timezone=context.timezone,
            next_slot_at=timing.first,
            missed=MissedWindow(arguments.missed or MissedWindow.CATCH_UP_ONE),
            asked_tier=Tier(arguments.tier or Tier.READ_ONLY),
            created_by=context.turn,
            origin=_origin(context),
        )
        created = create_job(tx, new, now=context.now)
        if isinstance(created, JobLimit):
            return _refused(context, arguments, _LIMITS[created], about=text)
        if created.is_new and created.job.asked_tier is not created.job.tier:
            self._offer(tx, created.job, now=context.now)
        head = "Reminder set" if created.is_new else "That reminder is set already"
        return _changed(context, head, created.job, note=timing.note)

    def _offer(self, tx: Transaction, job: Job, *, now: datetime) -> None:
        """Ask the person, with the job's full text, for what it wants to do beyond reading."""
        text = (
            f"Reminder #{job.id} asks to {TIER_WORDS[job.asked_tier]} when it runs.\n"
            f"It will be asked: {job.text}\n"
            f"Until you allow it, it may only read: /allow {job.id}"
        )
        pieces = self._rules.cut(job.chat)(text, is_markdown=False)
        offer = NewDelivery(
            chat=job.chat, kind=DeliveryKind.NOTICE, text=text, chunks=pieces, offers_job=job.id
        )
        store_delivery(tx, offer, now=now)

    def _update(
        self, tx: Transaction, context: ToolContext, arguments: ScheduleArguments
    ) -> ToolResult:
        if arguments.id is None:
            return _refused(context, arguments, _ID_MISSING)
        job = get_job(tx.connection, context.chat, arguments.id)
        if job is None:
            return _refused(context, arguments, Refusal.NOT_FOUND.told(arguments.id))
        change = _change(context, arguments, job, self._rules.cut(context.chat))
        if isinstance(change, str):
            return _refused(context, arguments, change)
        changed = update_job(tx, context.chat, arguments.id, change.change, now=context.now)
        if isinstance(changed, Job) and changed.tier is not job.tier:
            self._offer(tx, changed, now=context.now)
        return _answered(context, arguments, "Changed", changed, note=change.note)

    def _run_now(
        self, tx: Transaction, context: ToolContext, arguments: ScheduleArguments
    ) -> ToolResult:
        if arguments.id is None:
            return _refused(context, arguments, _ID_MISSING)
        fired = fire_now(tx, context.chat, arguments.id, context.key, self._rules, now=context.now)
        if isinstance(fired, Refusal):
            return _refused(context, arguments, fired.told(arguments.id))
        does = "It goes out now" if fired.action is JobAction.MESSAGE else "It runs now"
        return _changed(context, does, fired)


def make_extension(database: Database, rules: FireRules) -> Extension:
    """The extension, working on this store."""
    tool = Tool(
        name=NAME,
        description=DESCRIPTION,
        arguments=ScheduleArguments,
        call=ScheduleTool(database, rules).call,
        refuse=_refuse_arguments,
    )
    return Extension(name=NAME, tools=(tool,), prompt=PROMPT)


_ID_MISSING = "id is missing: the number of it."


def _check_text(arguments: ScheduleArguments, text: str, cut: Cut) -> str | None:
    """What is wrong with the rest of a create or update."""
    if not one_line(text, limit=_SHOWN) or not cut(text, is_markdown=False):
        return "text is missing: say what to remind of."
    if len(text.encode()) > MAX_TEXT_BYTES:
        return f"text is longer than {MAX_TEXT_BYTES // 1024} KiB."
    if arguments.tier not in (None, Tier.READ_ONLY) and arguments.do != "prompt":
        return "tier is for do=prompt; a message only sends its text."
    return None


def _origin(context: ToolContext) -> Origin | None:
    if not context.spoken:
        return None
    newest = context.spoken[-1]
    return Origin(text=one_line(newest.text, limit=_SHOWN), sent_at=newest.sent_at)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Change:
    """What an update asks for; `note` is what was assumed."""

    change: JobChange
    note: str | None = None


def _change(
    context: ToolContext, arguments: ScheduleArguments, job: Job, cut: Cut
) -> _Change | str:
    """What is to be different of a job, or why that cannot be."""
    if arguments.do is not None or arguments.tier is not None:
        return "do and tier stay; set a new reminder instead."
    text = None if arguments.text is None else arguments.text.strip()
    wrong = None if text is None else _check_text(arguments, text, cut)
    if wrong is not None:
        return wrong
    missed = None if arguments.missed is None else MissedWindow(arguments.missed)
    if not names_time(arguments):
        if text is None and missed is None:
            return "say what to change: text, a time, until, max_runs or missed."
        return _Change(change=JobChange(text=text, missed=missed))
    timing = resolve_change(context, arguments, job)
    if isinstance(timing, str):
        return timing
    if isinstance(timing.schedule, At) and not isinstance(job.schedule, At):
        return (
            f"#{job.id} repeats, and that is one moment. Say how often, like every day at 9, or "
            "set a new reminder for the one moment."
        )
    change = JobChange(
        text=text,
        schedule=timing.schedule,
        next_slot_at=timing.first,
        # A new time is meant in the zone in which the chat lives now.
        timezone=context.timezone if has_new_time(arguments) else None,
        missed=missed,
    )
    return _Change(change=change, note=timing.note)


def _pause(tx: Transaction, context: ToolContext, arguments: ScheduleArguments) -> ToolResult:
    if arguments.id is None:
        return _refused(context, arguments, _ID_MISSING)
    paused = pause_job(tx, context.chat, arguments.id, now=context.now)
    return _answered(context, arguments, _PAUSED, paused)


def _resume(tx: Transaction, context: ToolContext, arguments: ScheduleArguments) -> ToolResult:
    if arguments.id is None:
        return _refused(context, arguments, _ID_MISSING)
    resumed = resume_job(tx, context.chat, arguments.id, now=context.now)
    return _answered(context, arguments, "Goes on", resumed)


def _cancel(tx: Transaction, context: ToolContext, arguments: ScheduleArguments) -> ToolResult:
    if arguments.id is None:
        return _refused(context, arguments, _ID_MISSING)
    cancelled = cancel_job(tx, context.chat, arguments.id, now=context.now)
    if cancelled is None:
        return ToolResult(ok=False, text=f"There is no open reminder #{arguments.id}.")
    told = cancelled.told(context.now)
    return ToolResult(ok=True, text=told, line=told)


def _snooze(tx: Transaction, context: ToolContext, arguments: ScheduleArguments) -> ToolResult:
    if arguments.id is None:
        return _refused(context, arguments, _ID_MISSING)
    if get_job(tx.connection, context.chat, arguments.id) is None:
        return _refused(context, arguments, Refusal.NOT_FOUND.told(arguments.id))
    fired = last_fired(tx.connection, context.chat, arguments.id)
    if fired is None:
        return _refused(context, arguments, Refusal.NEVER_FIRED.told(arguments.id))
    until = resolve_delay(context, arguments)
    if isinstance(until, str):
        return _refused(context, arguments, until)
    snoozed = snooze(tx, fired, until, now=context.now)
    job = snoozed if isinstance(snoozed, Refusal) else snoozed.job
    return _answered(context, arguments, "Snoozed", job)


def _answered(
    context: ToolContext,
    arguments: ScheduleArguments,
    head: str,
    outcome: Job | Refusal,
    *,
    note: str | None = None,
) -> ToolResult:
    if isinstance(outcome, Refusal):
        return _refused(context, arguments, outcome.told(arguments.id or 0))
    return _changed(context, head, outcome, note=note)


def _changed(context: ToolContext, head: str, job: Job, *, note: str | None = None) -> ToolResult:
    """What was stored, in its own line."""
    line = job.line(now=context.now)
    notes = [note] if note else []
    if job.state is JobState.PAUSED and head != _PAUSED:
        notes.append(f"it is paused; /resume {job.id} lets it go on")
    assumed = f" ({'; '.join(notes)})" if notes else ""
    return ToolResult(ok=True, text=f"{head}: {line}{assumed}", line=line, is_create=True)


def _list(connection: Connection, context: ToolContext) -> ToolResult:
    jobs = list_jobs(connection, context.chat)
    if not jobs:
        return ToolResult(ok=True, text="You have no reminders.")
    text = "\n".join(job.listed(now=context.now) for job in jobs)
    return ToolResult(ok=True, text=text)


def _get(connection: Connection, context: ToolContext, arguments: ScheduleArguments) -> ToolResult:
    job = None if arguments.id is None else get_job(connection, context.chat, arguments.id)
    if job is None:
        reason = _ID_MISSING if arguments.id is None else Refusal.NOT_FOUND.told(arguments.id)
        return ToolResult(ok=False, text=reason)
    lines = [job.listed(now=context.now)]
    if len(job.text) > _SHOWN or "\n" in job.text:
        lines.append(f"Its text:\n{job.text}")
    if job.origin is not None:
        when = local_time(job.origin.sent_at, ZoneInfo(context.timezone), now=context.now)
        lines.append(f'Asked for {when}: "{job.origin.text}"')
    return ToolResult(ok=True, text="\n".join(lines))


def _history(
    connection: Connection, context: ToolContext, arguments: ScheduleArguments
) -> ToolResult:
    job = None if arguments.id is None else get_job(connection, context.chat, arguments.id)
    if job is None or arguments.id is None:
        return _get(connection, context, arguments)
    records = job_history(connection, context.chat, arguments.id, limit=_HISTORY)
    zone = ZoneInfo(job.timezone)
    lines = [job.listed(now=context.now)]
    lines += [record.told(zone, now=context.now) for record in records]
    if not records:
        lines.append("It has not gone off yet.")
    return ToolResult(ok=True, text="\n".join(lines))


def _refused(
    context: ToolContext, arguments: ScheduleArguments, reason: str, *, about: str | None = None
) -> ToolResult:
    """Nothing was changed, and why; `about` names which reminder, where several may be meant."""
    zone = ZoneInfo(context.timezone)
    present = local_time(context.now, zone, now=context.now)
    is_setting = arguments.action in _SETTING
    named = "" if about is None else f' for "{one_line(about, limit=_SHOWN)}"'
    head = NOTHING_SET if arguments.action in _NEW else NOTHING_CHANGED
    text = f"{head}{named}: {reason} It is now {present} ({context.timezone})."
    return ToolResult(ok=False, text=text, is_create=is_setting)


def _refuse_arguments(body: Mapping[str, object], reason: str) -> ToolResult:
    is_setting = body.get("action") in _SETTING
    head = NOTHING_SET if body.get("action") in _NEW else NOTHING_CHANGED
    text = f"{head}: {reason}" if is_setting else reason
    return ToolResult(ok=False, text=text, is_create=is_setting)
