"""Functions offered to hosts; whose chat they act on comes from the connection that asks."""

import hashlib
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime

from pydantic import BaseModel

from gateway.domain.job import Tier
from gateway.domain.message import ChatKey
from gateway.domain.turn import RunId, Trigger, TurnId

NOTHING_SET = "No reminder was set"
"""Starts the answer of every failed create, so that a reply that repeats it needs no addition."""

NOTHING_CHANGED = "Nothing was changed"
"""Starts the answer of every failed change of a reminder that is there."""

NOT_SAVED = "Not saved: the gateway's store is busy or full. Please try again in a minute."


@dataclass(frozen=True, slots=True, kw_only=True)
class SpokenAt:
    """A message's text with the platform time at which it was sent."""

    text: str
    sent_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolContext:
    """Who asks, in which run, and what they may do. Built by the tool server alone.

    `key` is the same for the same call of a repeated run, so that no effect happens twice.
    `spoken` holds the messages of the turn, oldest first. Only a turn that a person's message
    started changes jobs, whatever its tier.
    """

    chat: ChatKey
    turn: TurnId
    run: RunId
    trigger: Trigger
    tier: Tier
    timezone: str
    now: datetime
    key: str
    spoken: tuple[SpokenAt, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult:
    """What a tool answers: `text` is for the model and, by way of it, for the person.

    `line` is the stored line of the job that the call created or changed.
    `is_create` says that a reminder was asked for, whether it was set (`ok`) or not.
    """

    ok: bool
    text: str
    line: str | None = None
    is_create: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """One function: its arguments are validated before `call` sees them.

    `call` commits what it does before it returns, and raises StoreError when it could not.
    `refuse` makes the answer to arguments that do not fit, from them and what is wrong.
    """

    name: str
    description: str
    arguments: type[BaseModel]
    call: Callable[[ToolContext, BaseModel], Awaitable[ToolResult]]
    refuse: Callable[[Mapping[str, object], str], ToolResult]


@dataclass(frozen=True, slots=True, kw_only=True)
class Extension:
    """A set of tools and the section that they add to the system prompt."""

    name: str
    tools: tuple[Tool, ...]
    prompt: str


def call_key(turn: TurnId, tool: str, arguments: Mapping[str, object], ordinal: int) -> str:
    """The identity of a tool call: equal for the n-th equal call of any run of a turn."""
    canonical = json.dumps(arguments, sort_keys=True, separators=(",", ":"), default=str)
    text = f"{turn}\x00{tool}\x00{canonical}\x00{ordinal}"
    return hashlib.sha256(text.encode()).hexdigest()
