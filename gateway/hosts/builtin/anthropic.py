"""The Anthropic messages dialect, with prompt caching."""

import json
from dataclasses import dataclass, field
from typing import assert_never

from gateway.hosts.builtin.dialect import (
    ModelRequest,
    Piece,
    TextPiece,
    ThinkingPiece,
    new_call_id,
    read_arguments,
    with_scheme,
)
from gateway.hosts.builtin.failures import ModelError, error_from_body
from gateway.hosts.builtin.loose_json import JsonObject, as_count, as_object, as_text
from gateway.hosts.builtin.messages import (
    AssistantMessage,
    Call,
    Message,
    StopReason,
    ToolOutcome,
    Usage,
    UserMessage,
    without_tool_traffic,
)

_DEFAULT_BASE = "https://api.anthropic.com"
_ENDPOINT = "/v1/messages"
_VERSION = "2023-06-01"
# The API wants a limit; this is the largest that every model of the family accepts.
_LONGEST_REPLY_TOKENS = 4096
_CACHED: JsonObject = {"type": "ephemeral"}
# What the stream's own `error` events mean in terms of statuses.
_ERROR_STATUSES = {
    "overloaded_error": 529,
    "rate_limit_error": 429,
    "api_error": 500,
    "authentication_error": 401,
    "permission_error": 403,
    "invalid_request_error": 400,
    "request_too_large": 413,
}


class AnthropicDialect:
    """Asks `POST <base>/v1/messages`."""

    def __init__(self, *, model: str, base_url: str | None) -> None:
        base = with_scheme(base_url or _DEFAULT_BASE).removesuffix(_ENDPOINT).removesuffix("/v1")
        self._url = base + _ENDPOINT
        self._model = model

    @property
    def url(self) -> str:
        """Where requests go."""
        return self._url

    def headers(self, key: str | None) -> dict[str, str]:
        """Return the version, and the key if there is one."""
        headers = {"anthropic-version": _VERSION}
        return headers | {"x-api-key": key} if key else headers

    def body(self, request: ModelRequest) -> JsonObject:
        """Return the request's JSON: cached up to the system text and up to its last block."""
        messages = request.messages if request.tools else without_tool_traffic(request.messages)
        body: JsonObject = {
            "model": self._model,
            "max_tokens": _LONGEST_REPLY_TOKENS,
            "system": [{"type": "text", "text": request.system, "cache_control": _CACHED}],
            "messages": _render_all(messages),
            "stream": True,
        }
        if request.tools:
            body["tools"] = [
                {
                    "name": tool.name,
                    "description": tool.description,
                    "input_schema": tool.parameters,
                }
                for tool in request.tools
            ]
        return body

    def reader(self) -> "AnthropicReader":
        """Return a reader for one reply."""
        return AnthropicReader()

    def adapt(self, refusal: str) -> bool:
        """Nothing in a request is dispensable."""
        return False


def _render_all(messages: tuple[Message, ...]) -> list[JsonObject]:
    """Return messages of alternating roles: outcomes are blocks of what the user says next."""
    rendered: list[tuple[str, list[JsonObject]]] = []
    for message in messages:
        role = "assistant" if isinstance(message, AssistantMessage) else "user"
        if not rendered or rendered[-1][0] != role:
            rendered.append((role, []))
        rendered[-1][1].extend(_blocks(message))
    if rendered and rendered[-1][0] == "user" and rendered[-1][1]:
        rendered[-1][1][-1]["cache_control"] = _CACHED
    return [{"role": role, "content": blocks} for role, blocks in rendered]


def _blocks(message: Message) -> list[JsonObject]:
    match message:
        case UserMessage():
            return [{"type": "text", "text": message.text}]
        case AssistantMessage():
            text: list[JsonObject] = (
                [{"type": "text", "text": message.text}] if message.text.strip() else []
            )
            return text + [
                {"type": "tool_use", "id": call.id, "name": call.name, "input": call.arguments}
                for call in message.calls
            ]
        case ToolOutcome():
            return [
                {
                    "type": "tool_result",
                    "tool_use_id": message.call_id,
                    "content": message.text,
                    "is_error": not message.ok,
                }
            ]
        case _:
            assert_never(message)


@dataclass(slots=True, kw_only=True)
class _Block:
    """One content block as it trickles in."""

    kind: str
    id: str = ""
    name: str = ""
    text: str = ""
    given: JsonObject | None = None

    def build(self) -> Call:
        arguments, problem = read_arguments(self.text or self.given)
        return Call(
            id=self.id or new_call_id(), name=self.name, arguments=arguments, problem=problem
        )


@dataclass(slots=True)
class AnthropicReader:
    """Puts one reply together from the stream's events."""

    _blocks: dict[int, _Block] = field(default_factory=dict)
    _input_tokens: int | None = None
    _output_tokens: int = 0
    _stop: str | None = None
    _has_ended: bool = False

    def feed(self, data: JsonObject) -> tuple[Piece, ...]:
        """Take one event; raises ModelError if it reports a failure."""
        match data.get("type"):
            case "message_start":
                self._note_usage(as_object(as_object(data.get("message")).get("usage")))
            case "content_block_start":
                return self._begin_block(data)
            case "content_block_delta":
                return self._extend_block(data)
            case "message_delta":
                reason = as_text(as_object(data.get("delta")).get("stop_reason"))
                self._stop = reason or self._stop
                self._note_usage(as_object(data.get("usage")))
            case "message_stop":
                self._has_ended = True
            case "error":
                kind = as_text(as_object(data.get("error")).get("type"))
                status = _ERROR_STATUSES.get(kind)
                raise error_from_body(json.dumps(data), status=status, secret=None)
            case _:
                pass
        return ()

    def end(self) -> None:
        """Nothing: this dialect ends with an event of its own."""

    def reply(self) -> AssistantMessage:
        """Return the whole reply; raises ModelError if the stream broke off."""
        if self._stop is None and not self._has_ended:
            raise ModelError("the stream ended without a stop reason", is_passing=True)
        blocks = [self._blocks[index] for index in sorted(self._blocks)]
        text = "".join(block.text for block in blocks if block.kind == "text")
        calls = tuple(block.build() for block in blocks if block.kind == "tool_use")
        usage = (
            None
            if self._input_tokens is None
            else Usage(input_tokens=self._input_tokens, output_tokens=self._output_tokens)
        )
        return AssistantMessage(
            text=text, calls=calls, stop=self._stop_reason(text, calls), usage=usage
        )

    def _stop_reason(self, text: str, calls: tuple[Call, ...]) -> StopReason:
        if calls:
            return StopReason.TOOL_USE
        if self._stop == "refusal" and not text:
            raise ModelError("refusal: the provider withheld the reply")
        if self._stop == "model_context_window_exceeded" and not text:
            raise ModelError("context window exceeded")
        return StopReason.LENGTH if self._stop == "max_tokens" else StopReason.STOP

    def _note_usage(self, usage: JsonObject) -> None:
        # `input_tokens` leaves out what the cache took or gave.
        names = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
        counts = [count for name in names if (count := as_count(usage.get(name))) is not None]
        if counts:
            self._input_tokens = max(sum(counts), self._input_tokens or 0)
        self._output_tokens = as_count(usage.get("output_tokens")) or self._output_tokens

    def _begin_block(self, data: JsonObject) -> tuple[Piece, ...]:
        block = as_object(data.get("content_block"))
        begun = _Block(
            kind=as_text(block.get("type")),
            id=as_text(block.get("id")),
            name=as_text(block.get("name")),
            text=as_text(block.get("text")),
            given=as_object(block.get("input")),
        )
        self._blocks[as_count(data.get("index")) or 0] = begun
        return (TextPiece(text=begun.text),) if begun.kind == "text" and begun.text else ()

    def _extend_block(self, data: JsonObject) -> tuple[Piece, ...]:
        delta = as_object(data.get("delta"))
        index = as_count(data.get("index")) or 0
        match delta.get("type"):
            case "text_delta":
                text = as_text(delta.get("text"))
                self._blocks.setdefault(index, _Block(kind="text")).text += text
                return (TextPiece(text=text),) if text else ()
            case "input_json_delta":
                if index in self._blocks:
                    self._blocks[index].text += as_text(delta.get("partial_json"))
                return ()
            case "thinking_delta":
                return (ThinkingPiece(),)
            case _:
                return ()
