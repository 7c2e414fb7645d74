"""The RPC dialect on the wire: commands written as JSON lines, lines read as frames.

Pi defines the dialect; our own child speaks the same. Lines come from programs that we do not
control, so reading never raises: what cannot be read is None.
"""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field

from gateway.hosts.reply import Origin

_OBJECT_START = re.compile(r'\{\s*"(?:type|id)"\s*:')
_MAX_RECOVERY_TRIES = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class HostState:
    """What a host says of itself when asked."""

    session_id: str | None
    message_count: int | None
    is_busy: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """The answer to a command; `error` is None when it was taken. Some hosts lose the id."""

    id: str | None
    command: str | None
    error: str | None
    disposition: str | None
    state: HostState | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The last message of the model in a run, and why it stopped there."""

    text: str
    stop_reason: str
    error: str | None
    origin: Origin


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStarted:
    """The host began to work on a prompt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A further piece of text."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolBegan:
    """A tool call began."""

    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolEnded:
    """A tool call ended."""

    name: str
    ok: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEnded:
    """One pass over the prompt ended. `will_retry` is None where the host never says."""

    answer: Answer | None
    will_retry: bool | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSettled:
    """The run is over for good, retries and compaction included."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryAnnounced:
    """The host will try the same run again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionBegan:
    """The host summarises its conversation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionEnded:
    """It has done so, or failed to; `will_retry`: the run that did not fit is tried again."""

    will_retry: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialog:
    """A question for a person at the host's own screen, where nobody sits."""

    id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherFrame:
    """Something that does not concern us; it shows that the host is alive."""

    type: str = field(default="")


Frame = (
    Response
    | RunStarted
    | Piece
    | ToolBegan
    | ToolEnded
    | RunEnded
    | RunSettled
    | RetryAnnounced
    | CompactionBegan
    | CompactionEnded
    | Dialog
    | OtherFrame
)


def write_frame(fields: dict[str, object]) -> bytes:
    """Return one LF-ended line; all text stays as it is but for half surrogate pairs."""
    return json.dumps(fields, ensure_ascii=False).encode("utf-8", "replace") + b"\n"


def read_frame(line: bytes) -> Frame | None:
    """Read one line; None if it holds no JSON object, not even behind noise."""
    fields = _read_object(line.decode("utf-8", "replace"))
    if fields is None:
        return None
    type_name = _text(fields, "type") or ""
    reader = _READERS.get(type_name)
    return OtherFrame(type=type_name) if reader is None else reader(fields)


def _read_object(text: str) -> dict[str, object] | None:
    fields = _parse(text)
    if fields is not None:
        return fields
    starts = _OBJECT_START.finditer(text)
    for start, _ in zip(starts, range(_MAX_RECOVERY_TRIES), strict=False):
        fields = _parse(text[start.start() :])
        if fields is not None:
            return fields
    return None


def _parse(text: str) -> dict[str, object] | None:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _response(fields: dict[str, object]) -> Frame:
    data = _object(fields, "data")
    is_state = _text(fields, "command") == "get_state" and bool(data)
    error = None if fields.get("success") is True else _text(fields, "error") or "no reason given"
    return Response(
        id=_text(fields, "id"),
        command=_text(fields, "command"),
        error=error,
        disposition=_text(data, "disposition"),
        state=_state(data) if is_state else None,
    )


def _state(data: dict[str, object]) -> HostState:
    return HostState(
        session_id=_text(data, "sessionId"),
        message_count=_number(data, "messageCount"),
        is_busy=data.get("isStreaming") is True or data.get("isCompacting") is True,
    )


def _message_update(fields: dict[str, object]) -> Frame:
    update = _object(fields, "assistantMessageEvent")
    if update.get("type") == "text_delta":
        return Piece(text=_text(update, "delta") or "")
    return OtherFrame(type="message_update")


def _tool_ended(fields: dict[str, object]) -> Frame:
    return ToolEnded(name=_text(fields, "toolName") or "", ok=fields.get("isError") is not True)


def _run_ended(fields: dict[str, object]) -> Frame:
    messages = [
        message
        for message in _objects(fields.get("messages"))
        if message.get("role") == "assistant"
    ]
    will_retry = fields.get("willRetry")
    return RunEnded(
        answer=_answer(messages) if messages else None,
        will_retry=will_retry if isinstance(will_retry, bool) else None,
    )


def _answer(messages: list[dict[str, object]]) -> Answer:
    last = messages[-1]
    usages = [_object(message, "usage") for message in messages]
    return Answer(
        text=_final_text(last.get("content")),
        stop_reason=_text(last, "stopReason") or "",
        error=_text(last, "errorMessage"),
        origin=Origin(
            provider=_text(last, "provider"),
            model=_text(last, "model"),
            input_tokens=_total(usages, "input"),
            output_tokens=_total(usages, "output"),
        ),
    )


def _final_text(content: object) -> str:
    """Join the text of a message; what comes before a tool call in it is narration."""
    if isinstance(content, str):
        return content
    pieces: list[str] = []
    for block in _objects(content):
        match block.get("type"):
            case "toolCall":
                pieces.clear()
            case "text":
                pieces.append(_text(block, "text") or "")
    return "".join(pieces)


def _total(usages: list[dict[str, object]], name: str) -> int | None:
    counts = [count for usage in usages if (count := _number(usage, name)) is not None]
    return sum(counts) if counts else None


_READERS: dict[str, Callable[[dict[str, object]], Frame]] = {
    "response": _response,
    "agent_start": lambda _: RunStarted(),
    "message_update": _message_update,
    "tool_execution_start": lambda fields: ToolBegan(name=_text(fields, "toolName") or ""),
    "tool_execution_end": _tool_ended,
    "agent_end": _run_ended,
    "agent_settled": lambda _: RunSettled(),
    "auto_retry_start": lambda _: RetryAnnounced(),
    "compaction_start": lambda _: CompactionBegan(),
    "compaction_end": lambda fields: CompactionEnded(will_retry=fields.get("willRetry") is True),
    "extension_ui_request": lambda fields: (
        OtherFrame(type="notify")
        if fields.get("method") == "notify"
        else Dialog(id=_text(fields, "id") or "")
    ),
}


def _text(fields: dict[str, object], name: str) -> str | None:
    value = fields.get(name)
    return value if isinstance(value, str) else None


def _number(fields: dict[str, object], name: str) -> int | None:
    value = fields.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _object(fields: dict[str, object], name: str) -> dict[str, object]:
    value = fields.get(name)
    return value if isinstance(value, dict) else {}


def _objects(value: object) -> list[dict[str, object]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
