"""The child's main loop: commands in, the frames of at most one run out."""

import asyncio
import logging

from gateway.hosts.base import PromptContext
from gateway.hosts.builtin.answerer import Answerer
from gateway.hosts.builtin.failures import ModelError
from gateway.hosts.builtin.loose_json import JsonObject, as_text, parse_json
from gateway.hosts.builtin.messages import StopReason
from gateway.hosts.builtin.report import Report
from gateway.hosts.builtin.wire import FrameWriter, LineReader
from gateway.hosts.context import decode_context

_BUSY = "Agent is already processing: one prompt at a time."
_ABORTED = "Request was aborted"
log = logging.getLogger(__name__)


class Child:
    """Serves one conversation. A bad line gets an error for an answer; only end of input ends it.

    At end of input a run in progress is dropped without a word: nobody is left to hear it.
    """

    def __init__(self, writer: FrameWriter, answerer: Answerer) -> None:
        self._writer = writer
        self._answerer = answerer
        self._run: asyncio.Task[None] | None = None
        self._report: Report | None = None

    async def serve(self, lines: LineReader) -> None:
        """Take commands until the input ends."""
        while (line := await lines.next()) is not None:
            await self._take(line)
        self._writer.close()
        await self._stop()
        await self._answerer.close()

    async def _take(self, line: bytes) -> None:
        try:
            frame = parse_json(line)
        except ValueError as error:
            self._refuse({}, "parse", f"Failed to parse command: {error}")
            return
        if not isinstance(frame, dict):
            self._refuse({}, "parse", "Failed to parse command: not an object")
            return
        match as_text(frame.get("type")):
            case "get_state":
                self._accept(frame, self._state())
                asyncio.get_running_loop().call_soon(self._answerer.warm_up)
            case "prompt":
                self._prompt(frame)
            case "abort":
                await self._stop()
                self._accept(frame)
            case "new_session":
                await self._stop()
                self._answerer.start_over()
                self._accept(frame, {"cancelled": False})
            case kind:
                self._refuse(frame, kind, f"Unknown command: {kind}")

    def _state(self) -> JsonObject:
        answerer = self._answerer
        state: JsonObject = {
            "model": {"provider": answerer.provider, "id": answerer.model},
            "sessionId": answerer.session_id,
            "messageCount": answerer.message_count,
            "isStreaming": self._is_busy(),
        }
        if answerer.session_file is not None:
            state["sessionFile"] = str(answerer.session_file)
        return state

    def _is_busy(self) -> bool:
        return self._report is not None and not self._report.is_settled

    def _prompt(self, frame: JsonObject) -> None:
        text = frame.get("message")
        if self._is_busy():
            self._refuse(frame, "prompt", _BUSY)
            return
        if not isinstance(text, str):
            self._refuse(frame, "prompt", "message is not text")
            return
        try:
            context = self._context(frame)
        except ValueError as error:
            self._refuse(frame, "prompt", str(error))
            return
        self._accept(frame, {"disposition": "started"})
        report = Report(
            self._writer.send, provider=self._answerer.provider, model=self._answerer.model
        )
        report.begin(text)
        self._report = report
        self._run = asyncio.create_task(self._answer(text, context, report), name="run")

    def _context(self, frame: JsonObject) -> PromptContext | None:
        return decode_context(frame.get("context")) if self._answerer.needs_context else None

    async def _answer(self, text: str, context: PromptContext | None, report: Report) -> None:
        try:
            await self._answerer.answer(text, context, report)
        except ModelError as error:
            report.fail(StopReason.ERROR, str(error))
        except Exception as error:
            # Its text may quote anything; the kind alone crosses the wire.
            log.exception("run_broke")
            report.fail(StopReason.ERROR, f"internal: {type(error).__name__}")
        else:
            report.settle()

    async def _stop(self) -> None:
        """End the run in progress, if any, and tell that it was aborted."""
        if self._run is None or self._report is None:
            return
        self._run.cancel()
        await asyncio.wait({self._run})
        # Here rather than in the run: one that was cancelled before its first step never ran.
        self._report.fail(StopReason.ABORTED, _ABORTED)

    def _accept(self, frame: JsonObject, data: JsonObject | None = None) -> None:
        answer = _answer_to(frame, as_text(frame.get("type"))) | {"success": True}
        self._writer.send(answer if data is None else answer | {"data": data})

    def _refuse(self, frame: JsonObject, command: str, reason: str) -> None:
        self._writer.send(_answer_to(frame, command) | {"success": False, "error": reason})


def _answer_to(frame: JsonObject, command: str) -> JsonObject:
    echo: JsonObject = {"id": frame["id"]} if "id" in frame else {}
    return echo | {"type": "response", "command": command}
