"""The chat-completions dialect: OpenAI, and the many servers that speak alike."""

import json
from dataclasses import dataclass, field
from typing import assert_never
from urllib.parse import urlsplit

from gateway.hosts.builtin.dialect import (
    ModelRequest,
    Piece,
    TextPiece,
    ThinkingPiece,
    ToolSpec,
    new_call_id,
    read_arguments,
    with_scheme,
)
from gateway.hosts.builtin.failures import ModelError, error_from_body
from gateway.hosts.builtin.loose_json import JsonObject, as_count, as_list, as_object, as_text
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

_DEFAULT_BASE = "https://api.openai.com/v1"
_ENDPOINT = "/chat/completions"


class OpenAIDialect:
    """Asks `POST <base>/chat/completions`; a base without a path gets `/v1`."""

    def __init__(self, *, model: str, base_url: str | None) -> None:
        base = with_scheme(base_url or _DEFAULT_BASE).removesuffix(_ENDPOINT)
        self._url = base + ("" if urlsplit(base).path else "/v1") + _ENDPOINT
        self._model = model
        self._wants_usage = True

    @property
    def url(self) -> str:
        """Where requests go."""
        return self._url

    def headers(self, key: str | None) -> dict[str, str]:
        """Return the bearer header, or nothing: a local server needs no key."""
        return {"authorization": f"Bearer {key}"} if key else {}

    def body(self, request: ModelRequest) -> JsonObject:
        """Return the request's JSON."""
        messages = request.messages if request.tools else without_tool_traffic(request.messages)
        body: JsonObject = {
            "model": self._model,
            "messages": [{"role": "system", "content": request.system}]
            + [_render(message) for message in messages],
            "stream": True,
        }
        if self._wants_usage:
            body["stream_options"] = {"include_usage": True}
        if request.tools:
            body["tools"] = [_render_tool(tool) for tool in request.tools]
        return body

    def reader(self) -> "OpenAIReader":
        """Return a reader for one reply."""
        return OpenAIReader()

    def adapt(self, refusal: str) -> bool:
        """Stop asking for the token count where `stream_options` is refused, as Mistral does."""
        if "stream_options" not in refusal or not self._wants_usage:
            return False
        self._wants_usage = False
        return True


def _render(message: Message) -> JsonObject:
    match message:
        case UserMessage():
            return {"role": "user", "content": message.text}
        case AssistantMessage():
            # Empty text rather than null: templates of local servers stumble over null.
            data: JsonObject = {"role": "assistant", "content": message.text}
            if message.calls:
                data["tool_calls"] = [_render_call(call) for call in message.calls]
            return data
        case ToolOutcome():
            return {"role": "tool", "tool_call_id": message.call_id, "content": message.text}
        case _:
            assert_never(message)


def _render_call(call: Call) -> JsonObject:
    arguments = json.dumps(call.arguments, ensure_ascii=False)
    function: JsonObject = {"name": call.name, "arguments": arguments}
    return {"id": call.id, "type": "function", "function": function}


def _render_tool(tool: ToolSpec) -> JsonObject:
    function: JsonObject = {
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.parameters,
    }
    return {"type": "function", "function": function}


@dataclass(slots=True, kw_only=True)
class _CallParts:
    """A call as it trickles in; `whole` holds arguments that came as an object."""

    id: str = ""
    name: str = ""
    text: str = ""
    whole: JsonObject | None = None

    def build(self, taken: set[str]) -> Call:
        arguments, problem = read_arguments(self.text if self.whole is None else self.whole)
        call_id = self.id if self.id and self.id not in taken else new_call_id()
        taken.add(call_id)
        return Call(id=call_id, name=self.name, arguments=arguments, problem=problem)


@dataclass(slots=True)
class OpenAIReader:
    """Puts one reply together from chunks, or from a whole completion sent despite `stream`."""

    _text: list[str] = field(default_factory=list)
    _calls: list[_CallParts] = field(default_factory=list)
    _slots: dict[int, _CallParts] = field(default_factory=dict)
    _usage: Usage | None = None
    _finish: str | None = None
    _has_ended: bool = False

    def feed(self, data: JsonObject) -> tuple[Piece, ...]:
        """Take one chunk; raises ModelError if it reports a failure."""
        if data.get("error"):
            code = as_count(as_object(data["error"]).get("code"))
            raise error_from_body(json.dumps(data), status=code, secret=None)
        self._note_usage(as_object(data.get("usage")))
        pieces: list[Piece] = []
        for item in as_list(data.get("choices"))[:1]:
            choice = as_object(item)
            delta = as_object(choice.get("delta") or choice.get("message"))
            pieces += self._note_text(delta)
            for call in as_list(delta.get("tool_calls")):
                self._note_call(as_object(call))
            self._finish = as_text(choice.get("finish_reason")) or self._finish
        return tuple(pieces)

    def end(self) -> None:
        """Take `[DONE]`: some servers send it without ever giving a finish reason."""
        self._has_ended = True

    def reply(self) -> AssistantMessage:
        """Return the whole reply; raises ModelError if the stream broke off."""
        if self._finish is None and not self._has_ended:
            raise ModelError("the stream ended without a finish reason", is_passing=True)
        taken: set[str] = set()
        calls = tuple(parts.build(taken) for parts in self._calls if parts.name)
        text = "".join(self._text)
        return AssistantMessage(
            text=text, calls=calls, stop=self._stop(text, calls), usage=self._usage
        )

    def _stop(self, text: str, calls: tuple[Call, ...]) -> StopReason:
        if calls:  # whatever the finish reason says: several servers say "stop"
            return StopReason.TOOL_USE
        if self._finish == "content_filter" and not text:
            raise ModelError("content_filter: the provider withheld the reply")
        return StopReason.LENGTH if self._finish == "length" else StopReason.STOP

    def _note_usage(self, usage: JsonObject) -> None:
        asked, answered = as_count(usage.get("prompt_tokens")), usage.get("completion_tokens")
        if asked is not None:
            self._usage = Usage(input_tokens=asked, output_tokens=as_count(answered) or 0)

    def _note_text(self, delta: JsonObject) -> list[Piece]:
        pieces: list[Piece] = []
        if delta.get("reasoning_content") or delta.get("reasoning"):
            pieces.append(ThinkingPiece())
        if text := _content(delta.get("content")):
            self._text.append(text)
            pieces.append(TextPiece(text=text))
        return pieces

    def _note_call(self, data: JsonObject) -> None:
        function = as_object(data.get("function"))
        call_id, name = as_text(data.get("id")), as_text(function.get("name"))
        parts = self._slot(as_count(data.get("index")), call_id, name)
        parts.id = parts.id or call_id
        parts.name = parts.name or name
        arguments = function.get("arguments")
        if isinstance(arguments, dict):
            parts.whole = arguments
        else:
            parts.text += as_text(arguments)

    def _slot(self, index: int | None, call_id: str, name: str) -> _CallParts:
        """Return the call that a fragment belongs to.

        The index decides where there is one; servers that leave it out, or say 0 for each,
        begin a call with another id or with a name.
        """
        if index is None:
            known = self._calls[-1] if self._calls else None
            is_new = bool(name) or bool(call_id and known and call_id != known.id)
        else:
            known = self._slots.get(index)
            is_new = bool(name and call_id and known and known.id and call_id != known.id)
        if known is None or is_new:
            known = _CallParts()
            self._calls.append(known)
            if index is not None:
                self._slots[index] = known
        return known


def _content(content: object) -> str:
    """Return the text of a delta: plain, or in blocks as Mistral sends it."""
    if isinstance(content, str):
        return content
    blocks = [as_object(block) for block in as_list(content)]
    return "".join(as_text(block.get("text")) for block in blocks if block.get("type") == "text")
