"""What was said in a session, and its JSON form on the wire and in the transcript."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import assert_never

from gateway.hosts.builtin.loose_json import JsonObject, as_count, as_list, as_object, as_text


class StopReason(StrEnum):
    """Why an assistant message ended; the words are Pi's."""

    STOP = "stop"
    LENGTH = "length"  # cut at the model's own limit
    TOOL_USE = "toolUse"
    ERROR = "error"
    ABORTED = "aborted"


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A tool call that the model asked for; `problem` says why it cannot be made as it stands."""

    id: str
    name: str
    arguments: JsonObject
    problem: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Tokens as the provider counted them for one call, cached ones included."""

    input_tokens: int
    output_tokens: int

    @property
    def total(self) -> int:
        """How much of the context window the conversation holds after that call."""
        return self.input_tokens + self.output_tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class UserMessage:
    """What the gateway asked, as prose."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AssistantMessage:
    """What one model call brought back."""

    text: str
    calls: tuple[Call, ...] = ()
    stop: StopReason = StopReason.STOP
    usage: Usage | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolOutcome:
    """What one tool call came to."""

    call_id: str
    name: str
    text: str
    ok: bool


Message = UserMessage | AssistantMessage | ToolOutcome


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One request and all that followed: never cut, so no call loses its outcome.

    `context_tokens` is how full the model's window was after it, if its server counts.
    """

    messages: tuple[Message, ...]
    context_tokens: int | None = None

    @property
    def size(self) -> int:
        """Length in characters, tool calls included."""
        return sum(message_size(message) for message in self.messages)


def message_size(message: Message) -> int:
    """Return the message's length in characters, tool calls included."""
    match message:
        case UserMessage() | ToolOutcome():
            return len(message.text)
        case AssistantMessage():
            calls = sum(len(call.name) + len(str(call.arguments)) for call in message.calls)
            return len(message.text) + calls
        case _:
            assert_never(message)


def without_tool_traffic(messages: Iterable[Message]) -> tuple[Message, ...]:
    """Return the conversation as if no tool had been used.

    Anthropic refuses tool blocks in a request that offers no tools.
    """
    kept: list[Message] = []
    for message in messages:
        match message:
            case UserMessage():
                kept.append(message)
            case AssistantMessage():
                if message.text.strip() and not message.calls:
                    kept.append(message)
            case ToolOutcome():
                pass
            case _:
                assert_never(message)
    return tuple(kept)


def message_to_json(message: Message) -> JsonObject:
    """Return the message in Pi's shape."""
    match message:
        case UserMessage():
            return {"role": "user", "content": [_text_block(message.text)]}
        case AssistantMessage():
            return _assistant_to_json(message)
        case ToolOutcome():
            return {
                "role": "toolResult",
                "toolCallId": message.call_id,
                "toolName": message.name,
                "content": [_text_block(message.text)],
                "isError": not message.ok,
            }
        case _:
            assert_never(message)


def _assistant_to_json(message: AssistantMessage) -> JsonObject:
    content: list[JsonObject] = [_text_block(message.text)] if message.text else []
    content += [
        {"type": "toolCall", "id": call.id, "name": call.name, "arguments": call.arguments}
        for call in message.calls
    ]
    data: JsonObject = {
        "role": "assistant",
        "content": content,
        "stopReason": message.stop.value,
    }
    if message.usage is not None:
        data["usage"] = _usage_to_json(message.usage)
    if message.error is not None:
        data["errorMessage"] = message.error
    return data


def _usage_to_json(usage: Usage) -> JsonObject:
    return {
        "input": usage.input_tokens,
        "output": usage.output_tokens,
        "totalTokens": usage.total,
    }


def _text_block(text: str) -> JsonObject:
    return {"type": "text", "text": text}


def turn_to_json(turn: Turn) -> JsonObject:
    """Return the turn as one transcript entry."""
    data: JsonObject = {
        "type": "turn",
        "messages": [message_to_json(message) for message in turn.messages],
    }
    if turn.context_tokens is not None:
        data["contextTokens"] = turn.context_tokens
    return data


def turn_from_json(data: JsonObject) -> Turn:
    """Read what `turn_to_json` wrote.

    Raises ValueError unless the turn is whole: a question, an answer, and an outcome for
    each call between them. A model refuses a conversation with an orphan in it.
    """
    messages = tuple(_message_from_json(as_object(item)) for item in as_list(data.get("messages")))
    if len(messages) < 2 or not isinstance(messages[0], UserMessage):
        raise ValueError("a turn begins with a question")
    last = messages[-1]
    if not isinstance(last, AssistantMessage) or last.calls:
        raise ValueError("a turn ends with an answer")
    asked = {c.id for m in messages if isinstance(m, AssistantMessage) for c in m.calls}
    answered = {m.call_id for m in messages if isinstance(m, ToolOutcome)}
    if asked != answered:
        raise ValueError("a tool call and its outcome belong together")
    return Turn(messages=messages, context_tokens=as_count(data.get("contextTokens")))


def _message_from_json(data: JsonObject) -> Message:
    text = "".join(
        as_text(block.get("text")) for block in _blocks(data) if block.get("type") == "text"
    )
    match data.get("role"):
        case "user":
            return UserMessage(text=text)
        case "assistant":
            calls = tuple(_call(b) for b in _blocks(data) if b.get("type") == "toolCall")
            stop = StopReason(as_text(data.get("stopReason")))
            return AssistantMessage(text=text, calls=calls, stop=stop)
        case "toolResult":
            return ToolOutcome(
                call_id=as_text(data.get("toolCallId")),
                name=as_text(data.get("toolName")),
                text=text,
                ok=data.get("isError") is False,
            )
        case _:
            raise ValueError("a message of unknown role")


def _blocks(data: JsonObject) -> list[JsonObject]:
    return [as_object(block) for block in as_list(data.get("content"))]


def _call(block: JsonObject) -> Call:
    return Call(
        id=as_text(block.get("id")),
        name=as_text(block.get("name")),
        arguments=as_object(block.get("arguments")),
    )
