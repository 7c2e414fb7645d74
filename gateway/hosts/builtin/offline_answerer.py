"""Answering without a model, through the grammar of reminders."""

from dataclasses import dataclass, field
from pathlib import Path
from uuid import uuid4

from gateway.hosts.base import PromptContext
from gateway.hosts.builtin.dialect import TextPiece
from gateway.hosts.builtin.loose_json import JsonObject
from gateway.hosts.builtin.messages import AssistantMessage, Call, ToolOutcome
from gateway.hosts.builtin.offline import answer
from gateway.hosts.builtin.report import Report
from gateway.hosts.builtin.tool_answer import ToolAnswer
from gateway.hosts.builtin.tools import ToolServer


@dataclass(slots=True, kw_only=True)
class OfflineAnswerer:
    """Reads the facts of each prompt; what was said before plays no part, so nothing is kept."""

    tools: ToolServer
    provider: str = "offline"
    model: str = "grammar"
    session_id: str = field(default_factory=lambda: uuid4().hex)
    session_file: Path | None = None
    message_count: int = 0  # nothing is remembered, so a restart loses nothing

    @property
    def needs_context(self) -> bool:
        """The grammar reads facts, not prose."""
        return True

    def start_over(self) -> None:
        """Begin a new session."""
        self.session_id = uuid4().hex

    def warm_up(self) -> None:
        """Nothing waits."""

    async def close(self) -> None:
        """Nothing is open."""

    async def answer(self, text: str, context: PromptContext | None, report: Report) -> None:
        """Answer each message of the prompt's facts."""
        if context is None:
            raise ValueError("the grammar needs facts")

        async def call_tool(name: str, arguments: JsonObject) -> ToolAnswer:
            call = Call(id=uuid4().hex[:9], name=name, arguments=arguments)
            report.begin_call(call)
            result = await self.tools.call(name, arguments)
            outcome = ToolOutcome(call_id=call.id, name=name, text=result.text, ok=result.ok)
            report.finish_call(outcome)
            return result

        reply = await answer(context, call_tool)
        report.note(TextPiece(text=reply))
        report.finish_message(AssistantMessage(text=reply))
