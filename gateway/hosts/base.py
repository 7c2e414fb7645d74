"""What every model host offers the engine: sessions that take one prompt and emit events."""

from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Protocol

from gateway.domain.message import ChatKey


class HostKind(StrEnum):
    """The ways to run a model."""

    OFFLINE = "offline"
    BUILTIN = "builtin"
    PI = "pi"
    ACP = "acp"


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextMessage:
    """One message of a turn as our own child reads it; times are aware UTC."""

    text: str
    sender: str
    sent_at: datetime
    quoted: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RecentSight:
    """A text that was sent to the chat outside the session, and the reminders that it names."""

    text: str
    job_ids: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptContext:
    """The facts behind a prompt, for children that read facts instead of prose.

    `trigger` is message, job or heartbeat; `job` is the due job's text; `recent` is what was
    sent to the chat outside the session since its last turn, oldest first.
    """

    messages: tuple[ContextMessage, ...]
    trigger: str
    timezone: str
    now: datetime
    job: str | None = None
    recent: tuple[RecentSight, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """One request to a session: prose for models, facts for our own child."""

    text: str
    context: PromptContext


@dataclass(frozen=True, slots=True, kw_only=True)
class TextDelta:
    """A further piece of the reply; a notice, the reply itself comes with Finished."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """The host began a tool call; a notice, the tool server runs it."""

    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult:
    """The host got a tool's answer; a notice."""

    name: str
    ok: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """The run ended well with `text` (never blank, reasoning stripped)."""

    text: str
    provider: str | None = None
    model: str | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None


class FailureKind(StrEnum):
    """Why a run gave no reply; each is a run outcome of its own."""

    EMPTY = "empty"  # ended well without text
    ERROR = "error"  # the model or its provider answered with an error
    REFUSED = "refused"  # the host did not take the prompt
    AUTH = "auth"  # the key or the account is refused: only the operator can mend it
    CONTEXT = "context"  # the conversation no longer fits the model
    ABORTED = "aborted"  # stopped on request
    DIED = "died"  # the process ended, or closed its output, before the run did
    SILENT = "silent"  # no event for HOST_SILENCE_TIMEOUT
    TIMED_OUT = "timed_out"  # the whole turn took longer than HOST_TURN_TIMEOUT


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """The run ended without a reply. `detail` is for the log only, never for a chat."""

    kind: FailureKind
    detail: str
    provider: str | None = None
    model: str | None = None


HostEvent = TextDelta | ToolCall | ToolResult | Finished | Failed


@dataclass(frozen=True, slots=True, kw_only=True)
class Deadlines:
    """How long a host may take, in seconds."""

    ready: float = 60.0
    acknowledge: float = 15.0
    silence: float = 120.0
    turn: float = 1800.0
    abort: float = 5.0
    terminate: float = 3.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionSpec:
    """What a session is started with.

    `directory` is the chat's own (named by a hash), made by the driver. `generation` counts
    fresh starts: another number means another transcript. `tool_address` is the tool server's
    unix socket and `tool_token` this session's key to it; neither is ever logged.
    `is_ephemeral` sessions keep no transcript.
    """

    chat: ChatKey
    directory: Path
    generation: int
    tool_address: Path
    tool_token: str = field(repr=False)
    is_ephemeral: bool = False


class HostSession(Protocol):
    """One live host subprocess bound to one chat. One prompt at a time."""

    @property
    def is_alive(self) -> bool:
        """Whether it can take another prompt."""
        ...

    @property
    def lost_context(self) -> bool:
        """Whether it began without the transcript that it should have resumed."""
        ...

    def prompt(self, prompt: Prompt) -> AsyncGenerator[HostEvent, None]:
        """Run one prompt; the last event is Finished or Failed, and no error is raised.

        Closing the iterator early aborts the run.
        """
        ...

    async def abort(self) -> None:
        """Stop the run in progress, if any; it ends as Failed(ABORTED). Returns within 5 s."""
        ...

    async def close(self) -> None:
        """End the process and its group, asking first; safe to call twice."""
        ...


class Host(Protocol):
    """A way to run a model: it starts sessions."""

    @property
    def kind(self) -> HostKind:
        """Which way this is."""
        ...

    @property
    def model(self) -> str | None:
        """The model's name as configured, for status."""
        ...

    async def start(self, spec: SessionSpec) -> HostSession:
        """Start a session and wait until it is ready; raises HostNotReadyError."""
        ...
