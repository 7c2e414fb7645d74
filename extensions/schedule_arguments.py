"""What a host may say to the reminder tool, and how it is told so."""

from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from gateway.domain.job import LARGEST_ID
from gateway.domain.richtext import sanitize

DESCRIPTION = (
    "Reminders of this chat. create: text plus exactly one of when (the person's own time words, "
    'also repeating ones: "tomorrow at 9", "every weekday at 8"), in ("20 minutes"), at (ISO 8601, '
    "local unless it has an offset), cron (5 fields) or schedule. update: id and what changes. "
    "snooze: id and for or when, once it has gone off. list; get, history, pause, resume, cancel, "
    "run_now: id. Times are checked and resolved here; the answer holds the stored id and local "
    "time, which you should repeat word for word."
)

PROMPT = (
    "Reminders: use the `schedule` tool for every reminder; pass the person's own words for the "
    "time and do no date arithmetic. A reminder exists, or is changed, only if the tool said so."
)

_MAX_RUNS = 1_000_000

_Words = Annotated[str, AfterValidator(sanitize)]


_SPELLED_OUT = (
    'Repeating, spelled out, local times: {"kind": "every", "seconds": 7200} or {"kind": "daily", '
    '"time": "08:00"} or {"kind": "weekly", "days": ["mon", "fri"], "time": "08:00"}; daily and '
    'weekly take "every": 2 for each second day or week; all take until (ms UTC) and max_runs.'
)


class ScheduleArguments(BaseModel):
    """One call; no field names a chat."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True)

    action: Literal[
        "create",
        "list",
        "get",
        "update",
        "pause",
        "resume",
        "cancel",
        "snooze",
        "run_now",
        "history",
    ]
    id: Annotated[
        int | None, Field(ge=1, le=LARGEST_ID, description="The number of the reminder.")
    ] = None
    text: Annotated[_Words | None, Field(description="What to remind of.")] = None
    when: Annotated[_Words | None, Field(description="The person's own time words.")] = None
    in_: Annotated[_Words | None, Field(alias="in", description='A delay: "20 minutes".')] = None
    at: Annotated[_Words | None, Field(description="ISO 8601, like 2026-12-01T09:00.")] = None
    cron: Annotated[_Words | None, Field(description='5 fields, local: "0 9 * * mon-fri".')] = None
    schedule: Annotated[dict[str, object] | None, Field(description=_SPELLED_OUT)] = None
    until: Annotated[
        _Words | None,
        Field(description='End of what repeats: ISO 8601 or words like "friday".'),
    ] = None
    max_runs: Annotated[
        int | None, Field(ge=1, le=_MAX_RUNS, description="How often in all, of what repeats.")
    ] = None
    for_: Annotated[
        _Words | None, Field(alias="for", description='How long to snooze: "10 minutes".')
    ] = None
    missed: Annotated[
        Literal["catch_up_one", "skip"] | None,
        Field(description="After downtime: one late reminder (default), or skip it."),
    ] = None
    do: Annotated[
        Literal["message", "prompt"] | None,
        Field(description="message sends the text (default); prompt has you answer it then."),
    ] = None
    tier: Annotated[
        Literal["read_only", "suggest", "mutate"] | None,
        Field(description="What a prompt may do then; above read_only the person has to allow it."),
    ] = None
