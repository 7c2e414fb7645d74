"""Answering with a model: the tool loop, the session's memory, and room for both."""

import asyncio
import json
from dataclasses import dataclass, replace
from pathlib import Path

from gateway.hosts.base import PromptContext
from gateway.hosts.builtin.client import ModelClient, Progress
from gateway.hosts.builtin.compaction import (
    estimate_tokens,
    is_nearly_full,
    split_for_summary,
    summary_request,
    tidy_summary,
)
from gateway.hosts.builtin.dialect import ModelRequest, TextPiece, ThinkingPiece
from gateway.hosts.builtin.failures import ModelError
from gateway.hosts.builtin.memory import Memory
from gateway.hosts.builtin.messages import (
    AssistantMessage,
    Call,
    Message,
    StopReason,
    ToolOutcome,
    Turn,
    UserMessage,
    message_size,
)
from gateway.hosts.builtin.recovery import recover_calls
from gateway.hosts.builtin.report import Report
from gateway.hosts.builtin.tools import Offer, ToolServer
from gateway.hosts.reply import strip_reasoning

_MAX_ROUNDS = 12
_ROLE = (
    "You are a chat assistant. The person reaches you through a messenger: keep replies short "
    "and to the point. Markdown is allowed."
)
_WITH_TOOLS = (
    "Use the tools for reminders. Pass the person's own words for the time, such as "
    '"tomorrow at 9", and leave the calendar to the tool. A reminder exists only if a tool '
    "confirmed it: never claim one otherwise, and tell the time that the tool gave."
)
_WITHOUT_TOOLS = (
    "No tools can be reached right now: reminders can be neither set nor listed nor changed. If "
    "the person asks for that, say so plainly and suggest trying again later."
)


@dataclass(slots=True, kw_only=True)
class _Run:
    """One prompt on its way: what was said in it so far, and where to tell it."""

    report: Report
    offer: Offer
    messages: list[Message]
    has_compacted: bool = False


@dataclass(slots=True, kw_only=True)
class ModelAnswerer:
    """One conversation with one model. `window` is the model's context size in tokens.

    `persona` is the operator's addition to the system text. Tools and the extensions' prompt
    sections are asked for anew at each prompt: a scheduled turn may use fewer tools.
    """

    provider: str
    model: str
    client: ModelClient
    tools: ToolServer
    memory: Memory
    persona: str
    window: int

    @property
    def session_id(self) -> str:
        """Which session this is."""
        return self.memory.session_id

    @property
    def session_file(self) -> Path | None:
        """The transcript."""
        return self.memory.file

    @property
    def message_count(self) -> int:
        """How many messages go along with the next prompt."""
        return len(self.memory.messages)

    @property
    def needs_context(self) -> bool:
        """A model reads prose."""
        return False

    def start_over(self) -> None:
        """Begin a new session."""
        self.memory.start_over()

    def warm_up(self) -> None:
        """Load what speaks HTTP."""
        self.client.open()

    async def close(self) -> None:
        """Close the connections."""
        await self.client.close()

    async def answer(self, text: str, context: PromptContext | None, report: Report) -> None:
        """Answer one prompt; raises ModelError. Only a run that ends in text is remembered."""
        run = _Run(report=report, offer=await self.tools.offer(), messages=[UserMessage(text=text)])
        await self._make_room(run)
        for _ in range(_MAX_ROUNDS):
            message = await self._ask(run)
            run.messages.append(message)
            report.finish_message(message)
            if not message.calls:
                self._remember(run, message)
                return
            outcomes = await self._use_tools(message.calls, run)
            run.messages += outcomes
            report.finish_calls(message, outcomes)
        raise ModelError(f"the model asked for tools {_MAX_ROUNDS} times and gave no answer")

    def _remember(self, run: _Run, last: AssistantMessage) -> None:
        if last.text:
            tokens = None if last.usage is None else last.usage.total
            self.memory.add(Turn(messages=tuple(run.messages), context_tokens=tokens))

    async def _ask(self, run: _Run) -> AssistantMessage:
        """Make one model call, mending once what can be mended before any text went out."""
        while True:
            request = self._request(run)
            try:
                return _tidy(await self.client.ask(request, run.report.note), request)
            except ModelError as error:
                if run.report.has_open_text or not await self._mend(run, request, error):
                    raise

    async def _mend(self, run: _Run, request: ModelRequest, error: ModelError) -> bool:
        """Tell whether another call is worth making now; each remedy is used once a run."""
        if self.client.dialect.adapt(str(error)):
            return True
        if error.is_overflow and not run.has_compacted:
            run.has_compacted = True
            size = len(request.system) + sum(message_size(m) for m in request.messages)
            return await self._compact(run, "overflow", min(self.window, estimate_tokens(size)))
        if error.rejects_tools and request.tools and len(run.messages) == 1:
            run.offer = replace(run.offer, tools=())
            return True
        return False

    async def _make_room(self, run: _Run) -> None:
        system = self._system(run.offer)
        tools = sum(len(json.dumps(tool.parameters)) for tool in run.offer.tools)
        if is_nearly_full(
            self.memory.turns,
            fresh=sum(message_size(message) for message in run.messages),
            fixed=len(system) + tools + len(self.memory.summary or ""),
            window=self.window,
        ):
            await self._compact(run, "threshold", self.window)

    async def _compact(self, run: _Run, reason: str, window: int) -> bool:
        """Put a summary in place of the older turns; False if there is none or it failed."""
        if not self.memory.turns:
            return False

        def note(progress: Progress) -> None:
            is_text = isinstance(progress, TextPiece)
            run.report.note(ThinkingPiece() if is_text else progress)

        older, kept = split_for_summary(self.memory.turns)
        request = summary_request(older, self.memory.summary, window)
        run.report.begin_compaction(reason)
        try:
            reply = await self.client.ask(request, note)
        except ModelError as error:
            run.report.finish_compaction(reason, str(error))
            return False
        summary = tidy_summary(strip_reasoning(reply.text))
        if summary:
            self.memory.condense(summary, kept)
        run.report.finish_compaction(reason, None if summary else "the summary was empty")
        return bool(summary)

    async def _use_tools(self, calls: tuple[Call, ...], run: _Run) -> list[ToolOutcome]:
        for call in calls:
            run.report.begin_call(call)
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(self._use_tool(call, run)) for call in calls]
        return [task.result() for task in tasks]

    async def _use_tool(self, call: Call, run: _Run) -> ToolOutcome:
        names = [tool.name for tool in run.offer.tools]
        if call.problem is not None:
            text, ok = call.problem, False
        elif call.name not in names:
            text, ok = f"There is no such tool. There are: {', '.join(names) or 'none'}.", False
        else:
            answer = await self.tools.call(call.name, call.arguments)
            text, ok = answer.text, answer.ok
        outcome = ToolOutcome(call_id=call.id, name=call.name, text=text, ok=ok)
        run.report.finish_call(outcome)
        return outcome

    def _request(self, run: _Run) -> ModelRequest:
        return ModelRequest(
            system=self._system(run.offer),
            messages=(*self.memory.messages, *run.messages),
            tools=run.offer.tools,
        )

    def _system(self, offer: Offer) -> str:
        rules = _WITH_TOOLS if offer.tools else _WITHOUT_TOOLS
        parts = (_ROLE, rules, self.persona, offer.sections)
        return "\n\n".join(part.strip() for part in parts if part.strip())


def _tidy(message: AssistantMessage, request: ModelRequest) -> AssistantMessage:
    """Take out reasoning, and make a call of a text that is nothing but one."""
    text = strip_reasoning(message.text)
    if not text.strip():
        text = ""
    calls = message.calls or recover_calls(text, request.tools)
    if calls and not message.calls:
        return replace(message, text="", calls=calls, stop=StopReason.TOOL_USE)
    return replace(message, text=text)
