"""How far one prompt has come: a state machine fed with frames and time-outs, without I/O."""

from dataclasses import dataclass
from enum import StrEnum
from typing import assert_never

from gateway.hosts.base import (
    Deadlines,
    Failed,
    FailureKind,
    Finished,
    HostEvent,
    TextDelta,
    ToolCall,
    ToolResult,
)
from gateway.hosts.reply import classify_error, fail, finish
from gateway.hosts.rpc_frames import (
    Answer,
    CompactionBegan,
    CompactionEnded,
    Dialog,
    Frame,
    HostState,
    OtherFrame,
    Piece,
    Response,
    RetryAnnounced,
    RunEnded,
    RunSettled,
    RunStarted,
    ToolBegan,
    ToolEnded,
)

# A host that says neither disposition nor settled begins well within this time, or never will.
_START_SECONDS = 2.0
# Such a host announces a retry or the compaction after an overflow at once behind the failed end.
_AFTERMATH_SECONDS = 0.2


class Phase(StrEnum):
    """Where a prompt stands."""

    SENT = "sent"  # written, not acknowledged
    TAKEN = "taken"  # acknowledged by a host that does not say whether a run follows
    ASKED = "asked"  # no run followed yet; the host was asked whether one is on its way
    RUNNING = "running"  # the host works on it
    ENDING = "ending"  # ended in an error that the host may still mend by itself


@dataclass(frozen=True, slots=True, kw_only=True)
class Inquiry:
    """The host must be asked for its state, and the answer handed to `answer_inquiry`."""


class RunProgress:
    """One prompt on its way through a host.

    A host that names a disposition in its acknowledgement, or `willRetry` in its end, closes each
    run with `agent_settled`; an older one closes it with `agent_end`. Times are the caller's
    monotonic seconds.
    """

    def __init__(self, deadlines: Deadlines, *, now: float) -> None:
        self.phase = Phase.SENT
        self._deadlines = deadlines
        self._began = now
        self._since = now  # when the phase began
        self._heard = now  # when the host last said anything
        self._settles = False
        self._is_compacting = False
        self._answer: Answer | None = None

    @property
    def due(self) -> float:
        """Until when to wait for the next frame; then call `expire`."""
        return min(self._phase_due(), self._began + self._deadlines.turn)

    def _phase_due(self) -> float:
        match self.phase:
            case Phase.SENT if not self._is_compacting:
                return self._since + self._deadlines.acknowledge
            case Phase.ASKED:
                return self._since + self._deadlines.acknowledge
            case Phase.TAKEN:
                return self._since + _START_SECONDS
            case Phase.ENDING:
                return self._since + _AFTERMATH_SECONDS
            case _:
                return self._heard + self._deadlines.silence

    def take(self, frame: Frame, *, now: float) -> HostEvent | None:
        """Move on by one frame; Finished and Failed end the run. Replies to others: not here."""
        self._heard = now
        match frame:
            case Response():
                return self._acknowledge(frame, now)
            case RunEnded():
                return self._end(frame, now)
            case RunSettled():
                # One that comes before the acknowledgement belongs to an earlier run.
                return None if self.phase is Phase.SENT else self._conclude()
            case RunStarted() | Piece() | ToolBegan() | ToolEnded():
                self._enter(Phase.RUNNING, now)
                return _notice(frame)
            case CompactionBegan() | CompactionEnded() | RetryAnnounced():
                self._mend(frame, now)
                return None
            case Dialog() | OtherFrame():
                return None
            case _:
                assert_never(frame)

    def answer_inquiry(self, state: HostState | None, *, now: float) -> HostEvent | None:
        """Take the answer to an Inquiry: without a run on its way the prompt was only handled."""
        self._heard = now
        if self.phase is not Phase.ASKED:
            return None
        if state is not None and state.is_busy:
            self._enter(Phase.RUNNING, now)
            return None
        return fail(FailureKind.EMPTY, "taken, but no run followed")

    def expire(self, *, now: float) -> Finished | Failed | Inquiry:
        """Say what follows when `due` has passed without a frame."""
        if now >= self._began + self._deadlines.turn:
            return fail(FailureKind.TIMED_OUT, f"longer than {self._deadlines.turn:g} s")
        match self.phase:
            case Phase.TAKEN:
                self._enter(Phase.ASKED, now)
                return Inquiry()
            case Phase.ENDING:
                return self._conclude()
            case Phase.SENT | Phase.ASKED | Phase.RUNNING:
                return fail(FailureKind.SILENT, f"nothing heard while {self.phase}")
            case _:
                assert_never(self.phase)

    def conclude_at_eof(self) -> Finished | Failed | None:
        """Return the outcome that was already certain when the output ended, if any."""
        return self._conclude() if self.phase is Phase.ENDING else None

    def _enter(self, phase: Phase, now: float) -> None:
        if self.phase is not phase:
            self.phase = phase
            self._since = now

    def _acknowledge(self, response: Response, now: float) -> HostEvent | None:
        if self.phase is not Phase.SENT and response.error is None:
            return None
        if response.error is not None:
            kind = classify_error(response.error)
            refused = kind if kind is FailureKind.AUTH else FailureKind.REFUSED
            return fail(refused, response.error)
        match response.disposition:
            case None:
                self._enter(Phase.TAKEN, now)
            case "handled":
                return fail(FailureKind.EMPTY, "the host handled it as a command of its own")
            case _:
                self._settles = True
                self._enter(Phase.RUNNING, now)
        return None

    def _end(self, frame: RunEnded, now: float) -> HostEvent | None:
        if self.phase is Phase.SENT:
            return None  # an earlier run's
        self._answer = frame.answer or self._answer
        if self._settles or frame.will_retry is not None:
            self._settles = True
            self._enter(Phase.RUNNING, now)
            return None
        if self._answer is not None and self._answer.stop_reason == "error":
            self._enter(Phase.ENDING, now)
            return None
        return self._conclude()

    def _mend(self, frame: CompactionBegan | CompactionEnded | RetryAnnounced, now: float) -> None:
        """Follow a host that repairs a failed run, or makes room before or after one."""
        was_compacting = self._is_compacting
        self._is_compacting = isinstance(frame, CompactionBegan)
        if self.phase is Phase.ENDING and not isinstance(frame, CompactionEnded):
            self._enter(Phase.RUNNING, now)
        elif isinstance(frame, CompactionEnded) and was_compacting:
            self._leave_compaction(frame, now)

    def _leave_compaction(self, frame: CompactionEnded, now: float) -> None:
        if self.phase is Phase.SENT:
            self._since = now  # the acknowledgement waited for it
        elif self._is_failed_for_now() and not frame.will_retry:
            self._enter(Phase.ENDING, now)

    def _is_failed_for_now(self) -> bool:
        return (
            self.phase is Phase.RUNNING
            and not self._settles
            and self._answer is not None
            and self._answer.stop_reason == "error"
        )

    def _conclude(self) -> Finished | Failed:
        answer = self._answer
        if answer is None:
            return fail(FailureKind.EMPTY, "the run ended without a message")
        match answer.stop_reason:
            case "stop" | "length":
                return finish(answer.text, answer.origin)
            case "aborted":
                return fail(FailureKind.ABORTED, answer.error or "aborted", answer.origin)
            case "error":
                detail = answer.error or "no reason given"
                return fail(classify_error(detail), detail, answer.origin)
            case other:
                return fail(FailureKind.EMPTY, f"the run stopped at {other!r}", answer.origin)


def _notice(frame: RunStarted | Piece | ToolBegan | ToolEnded) -> HostEvent | None:
    match frame:
        case Piece(text=text):
            return TextDelta(text=text) if text else None
        case ToolBegan(name=name):
            return ToolCall(name=name)
        case ToolEnded(name=name, ok=ok):
            return ToolResult(name=name, ok=ok)
        case RunStarted():
            return None
        case _:
            assert_never(frame)
