"""The fake model server's stream, in both dialects and in the wrong shapes that servers send."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tests.fakes.model_script import JsonObject, Shape, ToolUse

END_MARK = "[DONE]"


@dataclass(frozen=True, slots=True, kw_only=True)
class TextDelta:
    """A piece of text."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ThoughtDelta:
    """A piece of reasoning."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CallsDelta:
    """All tool calls of a reply."""

    calls: tuple[ToolUse, ...]
    shape: Shape


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishDelta:
    """Why the reply ends, if it says so, and what it cost."""

    reason: str | None
    usage: tuple[int, int] | None
    has_end: bool


Delta = TextDelta | ThoughtDelta | CallsDelta | FinishDelta
Encode = Callable[[Delta], Iterator[JsonObject | str]]


def calls_as_text(calls: tuple[ToolUse, ...], shape: Shape) -> str | None:
    """Return the calls as a small model writes them, or None if the shape is no text."""
    spelled = [json.dumps({"name": use.name, "arguments": use.arguments}) for use in calls]
    match shape:
        case Shape.TEXT:
            return spelled[0]
        case Shape.FENCED:
            return f"```json\n{spelled[0]}\n```"
        case Shape.TAGGED:
            return "\n".join(f"<tool_call>\n{one}\n</tool_call>" for one in spelled)
        case _:
            return None


def openai_events(delta: Delta) -> Iterator[JsonObject | str]:
    """Yield chat-completion chunks."""
    match delta:
        case TextDelta():
            yield _chunk({"content": delta.text})
        case ThoughtDelta():
            yield _chunk({"reasoning_content": delta.text})
        case CallsDelta():
            for number, use in enumerate(delta.calls):
                for fragment in _fragments(number, use, delta.shape):
                    yield _chunk({"tool_calls": [fragment]})
        case FinishDelta():
            yield _chunk({}, delta.reason)
            yield {"choices": [], "usage": openai_usage(delta.usage)}
            if delta.has_end:
                yield END_MARK


def openai_usage(usage: tuple[int, int] | None) -> JsonObject | None:
    """Return the counts as OpenAI does; several servers send null."""
    return None if usage is None else {"prompt_tokens": usage[0], "completion_tokens": usage[1]}


def _chunk(delta: JsonObject, finish: str | None = None) -> JsonObject:
    choice: JsonObject = {"index": 0, "delta": delta, "finish_reason": finish}
    return {"id": "c1", "object": "chat.completion.chunk", "choices": [choice], "usage": None}


def _fragments(number: int, use: ToolUse, shape: Shape) -> Iterator[JsonObject]:
    text = json.dumps(use.arguments)
    call_id = f"call_{number}"
    if shape is Shape.OBJECT:
        yield _call({"name": use.name, "arguments": use.arguments}, number, call_id)
    elif shape is Shape.BARE:
        yield _call({"name": use.name, "arguments": text})
    elif shape is Shape.NO_INDEX:
        yield _call({"name": use.name, "arguments": text}, None, call_id)
    elif shape is Shape.NO_ID:
        yield _call({"name": use.name, "arguments": text[:3]}, number)
        yield _call({"arguments": text[3:]}, number)
    else:
        index = 0 if shape is Shape.SAME_INDEX else number
        yield _call({"name": use.name, "arguments": ""}, index, call_id)
        yield _call({"arguments": text[:3]}, index)
        yield _call({"arguments": text[3:]}, index)


def _call(function: JsonObject, index: int | None = None, call_id: str | None = None) -> JsonObject:
    call: JsonObject = {"function": function}
    if index is not None:
        call["index"] = index
    if call_id is not None:
        call |= {"id": call_id, "type": "function"}
    return call


_ANTHROPIC_REASONS = {"stop": "end_turn", "tool_calls": "tool_use", "length": "max_tokens"}


def make_anthropic_encoder() -> Encode:
    """Return an encoder for one reply; it numbers the reply's content blocks."""
    index = -1
    open_kind = ""

    def block(kind: str, start: JsonObject, delta: JsonObject) -> Iterator[JsonObject | str]:
        nonlocal index, open_kind
        if open_kind != kind or kind == "tool_use":
            if open_kind:
                yield {"type": "content_block_stop", "index": index}
            index, open_kind = index + 1, kind
            yield {
                "type": "content_block_start",
                "index": index,
                "content_block": {"type": kind, **start},
            }
        yield {"type": "content_block_delta", "index": index, "delta": delta}

    def encode(delta: Delta) -> Iterator[JsonObject | str]:
        match delta:
            case TextDelta(text=text):
                yield from block("text", {"text": ""}, {"type": "text_delta", "text": text})
            case ThoughtDelta(text=text):
                thought: JsonObject = {"type": "thinking_delta", "thinking": text}
                yield from block("thinking", {"thinking": ""}, thought)
            case CallsDelta():
                for number, use in enumerate(delta.calls):
                    start: JsonObject = {"id": f"toolu_{number}", "name": use.name, "input": {}}
                    piece = json.dumps(use.arguments)
                    yield from block(
                        "tool_use", start, {"type": "input_json_delta", "partial_json": piece}
                    )
            case FinishDelta():
                yield from _anthropic_end(delta)

    return encode


def _anthropic_end(delta: FinishDelta) -> Iterator[JsonObject | str]:
    if delta.usage is not None:
        start: JsonObject = {"usage": {"input_tokens": delta.usage[0], "output_tokens": 1}}
        yield {"type": "message_start", "message": start}
    if delta.reason is not None:
        yield {
            "type": "message_delta",
            "delta": {"stop_reason": _ANTHROPIC_REASONS.get(delta.reason, delta.reason)},
            "usage": {"output_tokens": delta.usage[1] if delta.usage else 0},
        }
    if delta.has_end:
        yield {"type": "message_stop"}
