"""Telling the parent about one run, frame by frame, in Pi's words."""

import time
from collections.abc import Callable, Sequence
from typing import assert_never

from gateway.hosts.builtin.client import Progress, Retry
from gateway.hosts.builtin.dialect import TextPiece, ThinkingPiece
from gateway.hosts.builtin.loose_json import JsonObject
from gateway.hosts.builtin.messages import (
    AssistantMessage,
    Call,
    Message,
    StopReason,
    ToolOutcome,
    UserMessage,
    message_to_json,
)
from gateway.hosts.reply import strip_reasoning

Send = Callable[[JsonObject], None]


class Report:
    """One run's frames, from `agent_start` to exactly one `agent_settled`."""

    def __init__(self, send: Send, *, provider: str, model: str) -> None:
        self._send = send
        self._origin: JsonObject = {"provider": provider, "model": model}
        self._messages: list[JsonObject] = []
        self._partial: list[str] = []
        self._is_settled = False

    @property
    def has_open_text(self) -> bool:
        """Whether text went out that no finished message holds yet."""
        return bool(self._partial)

    @property
    def is_settled(self) -> bool:
        """Whether the run has been told to be over."""
        return self._is_settled

    def begin(self, text: str) -> None:
        """Open the run with what was asked."""
        self._send({"type": "agent_start"})
        self._send({"type": "turn_start"})
        self._tell(UserMessage(text=text))

    def note(self, progress: Progress) -> None:
        """Tell what a model call is doing."""
        match progress:
            case TextPiece():
                if not self._partial:
                    self._update("text_start")
                self._partial.append(progress.text)
                self._update("text_delta", {"delta": progress.text})
            case ThinkingPiece():
                # The thoughts stay here; the frame shows that the model is alive.
                self._update("thinking_delta", {"delta": ""})
            case Retry():
                self._send(
                    {
                        "type": "auto_retry_start",
                        "attempt": progress.attempt,
                        "delayMs": round(progress.delay * 1000),
                        "errorMessage": progress.reason,
                    }
                )
            case _:
                assert_never(progress)

    def finish_message(self, message: AssistantMessage) -> None:
        """Close the message that the pieces belonged to; without calls its turn ends too."""
        if self._partial:
            self._update("text_end", {"content": message.text})
            self._partial.clear()
        data = self._tell(message)
        if not message.calls:
            self._send({"type": "turn_end", "message": data, "toolResults": []})

    def begin_call(self, call: Call) -> None:
        """Tell that a tool call is under way."""
        self._send(
            {
                "type": "tool_execution_start",
                "toolCallId": call.id,
                "toolName": call.name,
                "args": call.arguments,
            }
        )

    def finish_call(self, outcome: ToolOutcome) -> None:
        """Tell what a tool call came to."""
        self._send(
            {
                "type": "tool_execution_end",
                "toolCallId": outcome.call_id,
                "toolName": outcome.name,
                "result": {"content": [{"type": "text", "text": outcome.text}]},
                "isError": not outcome.ok,
            }
        )

    def finish_calls(self, message: AssistantMessage, outcomes: Sequence[ToolOutcome]) -> None:
        """Close a turn that used tools, and open the next."""
        results = [self._tell(outcome) for outcome in outcomes]
        self._send(
            {"type": "turn_end", "message": self._stamp(message), "toolResults": list(results)}
        )
        self._send({"type": "turn_start"})

    def begin_compaction(self, reason: str) -> None:
        """Tell that the older part of the conversation is being condensed."""
        self._send({"type": "compaction_start", "reason": reason})

    def finish_compaction(self, reason: str, error: str | None) -> None:
        """Tell how the condensing ended."""
        frame: JsonObject = {"type": "compaction_end", "reason": reason, "aborted": False}
        self._send(frame if error is None else frame | {"errorMessage": error})

    def fail(self, stop: StopReason, error: str) -> None:
        """End the run without a reply; text that was on its way is kept in the last message."""
        if self._is_settled:
            return
        text = strip_reasoning("".join(self._partial))
        self.finish_message(AssistantMessage(text=text, stop=stop, error=error))
        self.settle(is_aborted=stop is StopReason.ABORTED)

    def settle(self, *, is_aborted: bool = False) -> None:
        """End the run."""
        self._send({"type": "agent_end", "messages": list(self._messages), "willRetry": False})
        self._send({"type": "agent_settled", "aborted": is_aborted})
        self._is_settled = True

    def _tell(self, message: Message) -> JsonObject:
        data = self._stamp(message)
        self._messages.append(data)
        self._send({"type": "message_end", "message": data})
        return data

    def _stamp(self, message: Message) -> JsonObject:
        origin = self._origin if isinstance(message, AssistantMessage) else {}
        return message_to_json(message) | origin | {"timestamp": time.time_ns() // 1_000_000}

    def _update(self, kind: str, fields: JsonObject | None = None) -> None:
        event: JsonObject = {"type": kind, "contentIndex": 0} | (fields or {})
        self._send({"type": "message_update", "assistantMessageEvent": event})
