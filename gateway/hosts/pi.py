"""The driver for hosts that speak Pi's RPC dialect: Pi itself and our own offline and builtin."""

import asyncio
import logging
from collections.abc import AsyncGenerator

from gateway.errors import HostNotReadyError
from gateway.hosts.base import (
    Deadlines,
    Failed,
    FailureKind,
    Finished,
    HostEvent,
    HostKind,
    Prompt,
    SessionSpec,
)
from gateway.hosts.context import encode_context
from gateway.hosts.launch import Launch
from gateway.hosts.ledger import ProcessLedger
from gateway.hosts.process import HostExitedError, ProcessGoneError
from gateway.hosts.reply import fail
from gateway.hosts.rpc_frames import Frame, Response, RunStarted
from gateway.hosts.rpc_run import Inquiry, Phase, RunProgress
from gateway.hosts.rpc_wire import RpcWire
from gateway.hosts.session_state import is_transcript_lost, make_private_directory, write_note

log = logging.getLogger(__name__)

_NOTE_SECONDS = 1.0


class RpcHost:
    """Starts sessions of one kind of host."""

    def __init__(
        self,
        kind: HostKind,
        launch: Launch,
        *,
        ledger: ProcessLedger,
        model: str | None = None,
        deadlines: Deadlines | None = None,
    ) -> None:
        self._kind = kind
        self._launch = launch
        self._ledger = ledger
        self._model = model
        self._deadlines = deadlines or Deadlines()

    @property
    def kind(self) -> HostKind:
        """Which way to run a model this is."""
        return self._kind

    @property
    def model(self) -> str | None:
        """The model's name as configured."""
        return self._model

    async def start(self, spec: SessionSpec) -> "RpcSession":
        """Start a session and wait until it answered for its state.

        Raises HostExitedError if its process ended before, else HostNotReadyError.
        """
        session = RpcSession(spec, self._launch, ledger=self._ledger, deadlines=self._deadlines)
        await session.open()
        return session


class _AbortAsked:
    """Put among a run's frames: somebody wants it stopped."""


class _WireEnded:
    """Put among a run's frames: there will be no more."""


class _Run:
    """One prompt in flight: what came in for it, and what its reader is told."""

    def __init__(self, progress: RunProgress) -> None:
        self.progress = progress
        self.inbox: asyncio.Queue[Frame | _AbortAsked | _WireEnded] = asyncio.Queue()
        self.events: asyncio.Queue[HostEvent] = asyncio.Queue()
        self.stop_by: float | None = None  # set once an abort was asked for

    @property
    def due(self) -> float:
        """Until when to wait for what comes next, in the loop's time."""
        due = self.progress.due
        return due if self.stop_by is None else min(due, self.stop_by)


class RpcSession:
    """One process and its conversation; one prompt at a time.

    When a run breaks off (silence, time-out, death, an abort that is not obeyed), the process
    group is ended and the session with it: a host in an unknown state gets no further prompt.
    """

    def __init__(
        self, spec: SessionSpec, launch: Launch, *, ledger: ProcessLedger, deadlines: Deadlines
    ) -> None:
        self._spec = spec
        self._launch = launch
        self._deadlines = deadlines
        self._wire = RpcWire(self, ledger=ledger)
        self._run: _Run | None = None
        self._driving: asyncio.Task[None] | None = None
        self._noting: asyncio.Task[None] | None = None
        self._is_over = False
        self._lost_context = False

    @property
    def is_alive(self) -> bool:
        """Whether it can take another prompt."""
        return not self._is_over and self._wire.process.is_running

    @property
    def lost_context(self) -> bool:
        """Whether it began without the transcript that it should have resumed."""
        return self._lost_context

    @property
    def pid(self) -> int:
        """The process's id, which is its group's too."""
        return self._wire.process.pid

    @property
    def skipped_lines(self) -> int:
        """How many lines of its output were noise or too long."""
        return self._wire.noise + self._wire.process.skipped_lines

    async def open(self) -> None:
        """Start the process and wait until it is ready; raises as `RpcHost.start` says."""
        try:
            make_private_directory(self._spec.directory)
            await self._wire.process.start(self._launch.command_for(self._spec))
        except OSError as error:
            log.warning("host.not_spawned", extra={"reason": str(error)})
            raise HostNotReadyError("The host's command could not be run.") from error
        try:
            response = await self._wire.ask("get_state", deadline=self._deadlines.ready)
        except TimeoutError as error:
            await self._end_process(grace=0)
            raise self._not_ready(HostNotReadyError("The host was not ready in time.")) from error
        except ProcessGoneError as error:
            await self._end_process(grace=0)
            raise self._not_ready(HostExitedError("The host ended at its start.")) from error
        except BaseException:
            await self._end_process(grace=0)
            raise
        if response.state is not None and not self._spec.is_ephemeral:
            self._lost_context = is_transcript_lost(self._spec.directory, response.state)

    async def prompt(self, prompt: Prompt) -> AsyncGenerator[HostEvent, None]:
        """Run one prompt; the last event is Finished or Failed, and no error is raised."""
        if self._run is not None:
            yield fail(FailureKind.REFUSED, "another prompt is still running")
            return
        if not self.is_alive:
            yield fail(FailureKind.DIED, "the session is over")
            return
        run = self._run = _Run(RunProgress(self._deadlines, now=_now()))
        driving = self._driving = asyncio.create_task(
            self._drive(run, prompt), name=f"host run {self.pid}"
        )
        try:
            while True:
                event = await run.events.get()
                yield event
                if isinstance(event, Finished | Failed):
                    return
        finally:
            if not driving.done():
                run.inbox.put_nowait(_AbortAsked())
                await asyncio.wait({driving})

    async def abort(self) -> None:
        """Stop the run in progress, if any; it ends as Failed(ABORTED)."""
        if self._run is None or self._driving is None:
            return
        self._run.inbox.put_nowait(_AbortAsked())
        await asyncio.wait({self._driving}, timeout=self._deadlines.abort)

    async def close(self) -> None:
        """End the process and its group, asking first; if cancelled, they are killed at once."""
        try:
            await self.abort()
            if self._noting is not None:
                await asyncio.wait({self._noting}, timeout=_NOTE_SECONDS)
            await self._end_process(grace=self._deadlines.terminate)
            if self._driving is not None:
                await asyncio.wait({self._driving}, timeout=_NOTE_SECONDS)
        except BaseException:
            await self._wire.process.end(grace=0, terminate=0)
            raise

    def frame_received(self, frame: Frame) -> None:
        """Take a frame from the wire; between runs nobody waits for one."""
        if self._run is not None:
            self._run.inbox.put_nowait(frame)

    def wire_ended(self) -> None:
        """Take the end of the wire."""
        if self._run is not None:
            self._run.inbox.put_nowait(_WireEnded())

    async def _drive(self, run: _Run, prompt: Prompt) -> None:
        """Carry one prompt to its end, whatever becomes of its reader."""
        outcome: Finished | Failed = fail(FailureKind.DIED, "the run was cut off")
        try:
            outcome = await self._reach_end_or_break_off(run, prompt)
        finally:
            if run.stop_by is not None:
                outcome = fail(FailureKind.ABORTED, "stopped on request")
            self._run = None
            run.events.put_nowait(outcome)
        if isinstance(outcome, Finished) and not self._spec.is_ephemeral:
            self._noting = asyncio.create_task(self._note_state(), name=f"host note {self.pid}")

    async def _reach_end_or_break_off(self, run: _Run, prompt: Prompt) -> Finished | Failed:
        try:
            return await self._reach_end(run, prompt)
        except ProcessGoneError as error:
            return await self._break_off(FailureKind.DIED, str(error))
        except TimeoutError:
            return await self._break_off(FailureKind.SILENT, "a command was not answered in time")
        except Exception:
            log.exception("host.run_broke")
            return await self._break_off(FailureKind.ERROR, "our own fault, see the log")

    async def _reach_end(self, run: _Run, prompt: Prompt) -> Finished | Failed:
        await self._wire.send(
            self._prompt_fields(prompt),
            deadline=self._deadlines.acknowledge,
            answer=run.inbox.put_nowait,
        )
        while True:
            try:
                async with asyncio.timeout_at(run.due):
                    item = await run.inbox.get()
            except TimeoutError:
                event = await self._expire(run)
            else:
                event = await self._take(run, item)
            if isinstance(event, Finished | Failed):
                return event
            if event is not None:
                run.events.put_nowait(event)

    async def _take(self, run: _Run, item: Frame | _AbortAsked | _WireEnded) -> HostEvent | None:
        match item:
            case _AbortAsked():
                if run.stop_by is None:
                    run.stop_by = _now() + self._deadlines.abort
                    self._ask_abort()
                return None
            case _WireEnded():
                certain = run.progress.conclude_at_eof()
                return certain or await self._break_off(FailureKind.DIED, "its output ended")
            case RunStarted() if run.stop_by is not None:
                self._ask_abort()  # the first one came before there was anything to stop
        return run.progress.take(item, now=_now())

    async def _expire(self, run: _Run) -> HostEvent | None:
        if run.stop_by is not None and _now() >= run.stop_by:
            return await self._break_off(FailureKind.ABORTED, "the abort was not obeyed")
        match run.progress.expire(now=_now()):
            case Inquiry():
                response = await self._wire.ask("get_state", deadline=self._deadlines.acknowledge)
                return run.progress.answer_inquiry(response.state, now=_now())
            case Failed(kind=FailureKind.SILENT | FailureKind.TIMED_OUT) as failed:
                await self._try_abort(run)
                return await self._break_off(failed.kind, failed.detail)
            case outcome:
                return outcome

    def _ask_abort(self) -> None:
        self._wire.send_soon({"id": "abort", "type": "abort"})

    async def _try_abort(self, run: _Run) -> None:
        """Give a run that took too long the chance to leave its transcript in order."""
        if run.progress.phase is not Phase.RUNNING:
            return
        self._ask_abort()
        limit = _now() + self._deadlines.abort
        while True:
            try:
                async with asyncio.timeout_at(limit):
                    item = await run.inbox.get()
            except TimeoutError:
                return
            if isinstance(item, _WireEnded):
                return
            if not isinstance(item, _AbortAsked | Response):
                event = run.progress.take(item, now=_now())
                if isinstance(event, Finished | Failed):
                    return

    async def _break_off(self, kind: FailureKind, reason: str) -> Failed:
        """End the process and with it the session."""
        await self._end_process(grace=0)
        return fail(kind, f"{reason}; {self._obituary()}")

    async def _end_process(self, *, grace: float) -> None:
        self._is_over = True
        await self._wire.process.end(grace=grace, terminate=self._deadlines.terminate)

    def _obituary(self) -> str:
        process = self._wire.process
        return f"exit status {process.returncode}, standard error: {process.stderr_tail!r}"

    def _not_ready(self, error: HostNotReadyError) -> HostNotReadyError:
        """Add what the log should have; the error's own text may reach a person."""
        error.add_note(self._obituary())
        log.warning("host.not_ready", extra={"reason": str(error)})
        return error

    def _prompt_fields(self, prompt: Prompt) -> dict[str, object]:
        if self._launch.is_own_child:
            context = encode_context(prompt.context)
            return {"type": "prompt", "message": prompt.text, "context": context}
        # A leading slash would be read as one of the host's own commands.
        text = f" {prompt.text}" if prompt.text.startswith("/") else prompt.text
        return {"type": "prompt", "message": text}

    async def _note_state(self) -> None:
        try:
            response = await self._wire.ask("get_state", deadline=self._deadlines.acknowledge)
        except (TimeoutError, ProcessGoneError):
            return
        if response.state is not None:
            write_note(self._spec.directory, response.state)


def _now() -> float:
    return asyncio.get_running_loop().time()
