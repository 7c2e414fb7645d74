"""The reminder tool: create, list and cancel, answered from the committed row."""

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Literal
from zoneinfo import ZoneInfo

from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from sqlalchemy import Connection

from gateway.domain.job import (
    MAX_CREATES_PER_MINUTE,
    MAX_OPEN_JOBS,
    MAX_TEXT_BYTES,
    JobAction,
    NewJob,
    Tier,
    one_line,
)
from gateway.domain.richtext import sanitize
from gateway.domain.schedule import At, local_time
from gateway.domain.tool import NOTHING_SET, Extension, Tool, ToolContext, ToolResult
from gateway.domain.when import UnclearReason, Understood, parse_when
from gateway.store.chats import Admits
from gateway.store.database import Database, Transaction
from gateway.store.jobs import JobLimit, cancel_job, create_job, list_jobs
from gateway.store.toolcalls import run_once

NAME = "schedule"

DESCRIPTION = (
    "Reminders of this chat. create: text plus exactly one of when (the person's own time words, "
    'like "tomorrow at 9"), in (like "20 minutes") or at (ISO 8601, local unless it has an '
    "offset). list: all of them. cancel: by id. Times are checked and resolved here; the answer "
    "holds the stored id and local time, which you should repeat word for word."
)

PROMPT = (
    "Reminders: use the `schedule` tool for every reminder; pass the person's own words for the "
    "time and do no date arithmetic. A reminder exists only if the tool said so."
)

_LIMITS: Mapping[JobLimit, str] = {
    JobLimit.TOO_MANY: f"there are {MAX_OPEN_JOBS} open reminders already; cancel one first.",
    JobLimit.TOO_FAST: (
        f"at most {MAX_CREATES_PER_MINUTE} reminders a minute can be set; wait a minute."
    ),
}

_LARGEST_ID = 2**63 - 1
_SHOWN = 200

_Words = Annotated[str, AfterValidator(sanitize)]


class ScheduleArguments(BaseModel):
    """What a host may say; no field names a chat."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True)

    action: Literal["create", "list", "cancel"]
    text: Annotated[_Words | None, Field(description="What to remind of (create).")] = None
    when: Annotated[_Words | None, Field(description="The person's own time words (create).")] = (
        None
    )
    in_: Annotated[
        _Words | None, Field(alias="in", description='A delay, like "20 minutes" (create).')
    ] = None
    at: Annotated[
        _Words | None, Field(description="ISO 8601 date and time, like 2026-12-01T09:00 (create).")
    ] = None
    id: Annotated[
        int | None, Field(ge=1, le=_LARGEST_ID, description="The number of the reminder (cancel).")
    ] = None


class ScheduleTool:
    """Admission is synchronous: what it answers is committed."""

    def __init__(self, database: Database, admits: Admits) -> None:
        self._database = database
        self._admits = admits

    async def call(self, context: ToolContext, arguments: BaseModel) -> ToolResult:
        """Do one call, once for each identical call of a turn however often it is run.

        A list changes nothing, and says each time what is stored then.
        """
        if not isinstance(arguments, ScheduleArguments):
            raise TypeError(f"expected ScheduleArguments, got {type(arguments).__name__}")
        if arguments.action == "list":
            return await self._database.read(_list, context)
        return await self._database.write(
            run_once, context, NAME, lambda tx: self._run(tx, context, arguments)
        )

    def _run(
        self, tx: Transaction, context: ToolContext, arguments: ScheduleArguments
    ) -> ToolResult:
        if arguments.action == "create":
            return self._create(tx, context, arguments)
        return self._cancel(tx, context, arguments)

    def _create(
        self, tx: Transaction, context: ToolContext, arguments: ScheduleArguments
    ) -> ToolResult:
        if context.tier is not Tier.MUTATE:
            return _refused(context, "a scheduled turn cannot set reminders.")
        if not self._admits(tx.connection, context.chat):
            return _refused(context, "this chat is not allowed any more.")
        text = (arguments.text or "").strip()
        if not one_line(text, limit=_SHOWN):
            return _refused(context, "text is missing: say what to remind of.")
        if len(text.encode()) > MAX_TEXT_BYTES:
            return _refused(context, f"text is longer than {MAX_TEXT_BYTES // 1024} KiB.")
        slot = _resolve(context, arguments)
        if isinstance(slot, str):
            return _refused(context, slot)
        new = NewJob(
            chat=context.chat,
            action=JobAction.MESSAGE,
            text=text,
            schedule=At(at=slot.at),
            timezone=context.timezone,
            next_slot_at=slot.at,
            created_by=context.turn,
            origin_message=context.spoken[-1].message_id if context.spoken else None,
        )
        created = create_job(tx, new, now=context.now)
        if isinstance(created, JobLimit):
            return _refused(context, _LIMITS[created], about=text)
        line = created.job.line(now=context.now)
        head = "Reminder set" if created.is_new else "That reminder is set already"
        note = f" ({slot.note})" if slot.note else ""
        return ToolResult(ok=True, text=f"{head}: {line}{note}", line=line, is_create=True)

    def _cancel(
        self, tx: Transaction, context: ToolContext, arguments: ScheduleArguments
    ) -> ToolResult:
        if context.tier is not Tier.MUTATE:
            return ToolResult(ok=False, text="A scheduled turn cannot cancel reminders.")
        if not self._admits(tx.connection, context.chat):
            return ToolResult(ok=False, text="This chat is not allowed any more.")
        if arguments.id is None:
            return ToolResult(ok=False, text="id is missing: the number of the reminder to cancel.")
        cancelled = cancel_job(tx, context.chat, arguments.id, now=context.now)
        if cancelled is None:
            return ToolResult(ok=False, text=f"There is no open reminder #{arguments.id}.")
        told = cancelled.told(context.now)
        return ToolResult(ok=True, text=told, line=told)


def make_extension(database: Database, admits: Admits) -> Extension:
    """The extension, working on this store."""
    tool = Tool(
        name=NAME,
        description=DESCRIPTION,
        arguments=ScheduleArguments,
        call=ScheduleTool(database, admits).call,
        refuse=_refuse_arguments,
    )
    return Extension(name=NAME, tools=(tool,), prompt=PROMPT)


def _list(connection: Connection, context: ToolContext) -> ToolResult:
    jobs = list_jobs(connection, context.chat)
    if not jobs:
        return ToolResult(ok=True, text="You have no reminders.")
    text = "\n".join(job.listed(now=context.now) for job in jobs)
    return ToolResult(ok=True, text=text)


def _resolve(context: ToolContext, arguments: ScheduleArguments) -> Understood | str:
    """The moment that the arguments name, or why there is none."""
    given = [value for value in (arguments.when, arguments.in_, arguments.at) if value is not None]
    if len(given) != 1:
        return (
            'give exactly one of when (like "tomorrow at 9"), in (like "20 minutes") or at '
            "(ISO 8601, like 2026-12-01T09:00)."
        )
    words = given[0] if arguments.in_ is None else _as_delay(given[0])
    # A moment that passed while the turn waited is due at once; one that was named in full is not.
    since = context.now if arguments.at is not None else _said_at(context, given[0])
    understood = parse_when(words, now=since, zone=ZoneInfo(context.timezone))
    if isinstance(understood, Understood):
        return understood
    if understood.reason is UnclearReason.PAST:
        return "that time has passed already."
    return understood.question


def _as_delay(words: str) -> str:
    return words if words.strip().lower().startswith("in ") else f"in {words}"


def _said_at(context: ToolContext, words: str) -> datetime:
    """From when words count: the newest message that holds them, else the newest."""
    if not context.spoken:
        return context.now
    wanted = re.compile(rf"(?<!\w){re.escape(_flat(words))}(?!\w)")
    holding = (one for one in reversed(context.spoken) if wanted.search(_flat(one.text)))
    return next(holding, context.spoken[-1]).sent_at


def _flat(text: str) -> str:
    return " ".join(text.split()).casefold()


def _refused(context: ToolContext, reason: str, *, about: str | None = None) -> ToolResult:
    """Nothing was set, and why; `about` names which reminder, where several may be asked for."""
    zone = ZoneInfo(context.timezone)
    present = local_time(context.now, zone, now=context.now)
    named = "" if about is None else f' for "{one_line(about, limit=_SHOWN)}"'
    text = f"{NOTHING_SET}{named}: {reason} It is now {present} ({context.timezone})."
    return ToolResult(ok=False, text=text, is_create=True)


def _refuse_arguments(body: Mapping[str, object], reason: str) -> ToolResult:
    is_create = body.get("action") == "create"
    text = f"{NOTHING_SET}: {reason}" if is_create else reason
    return ToolResult(ok=False, text=text, is_create=is_create)
