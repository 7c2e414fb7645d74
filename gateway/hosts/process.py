"""One host subprocess: its pipes read line by line, and an end that leaves nothing behind."""

import asyncio
import functools
import logging
import secrets
import shutil
import signal
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, cast

from gateway.errors import HostError, HostNotReadyError
from gateway.hosts.ledger import MARK_VARIABLE, ProcessLedger, signal_group

log = logging.getLogger(__name__)

MAX_LINE_BYTES = 64 * 1024 * 1024

_STDERR_LINE_BYTES = 64 * 1024
_STDERR_TAIL_LINES = 20
_STDERR_TAIL_CHARACTERS = 400
_KILL_WAIT = 2.0
_DRAIN_WAIT = 0.5


class ProcessGoneError(HostError):
    """The process has ended, or reads its input no more."""


class HostExitedError(HostNotReadyError):
    """A session's process ended before it was ready, rather than being slow."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """What to run, where, and with which environment: nothing is inherited."""

    arguments: tuple[str, ...]
    environment: Mapping[str, str] = field(repr=False)
    directory: Path


class OutputSink(Protocol):
    """Takes what a process writes; called on the event loop, in order."""

    def line_received(self, line: bytes) -> None:
        """Take one line of standard output, its end cut off."""
        ...

    def output_ended(self) -> None:
        """Standard output ended, or its process did; called once, after the last line."""
        ...


class LineSplitter:
    """Cuts a byte stream at LF alone, however it comes in pieces.

    A line longer than `limit` bytes is skipped and counted, and reading goes on behind it.
    """

    def __init__(self, limit: int = MAX_LINE_BYTES) -> None:
        self.skipped = 0
        self._limit = limit
        self._pieces: list[bytes] = []
        self._size = 0

    def feed(self, data: bytes) -> list[bytes]:
        """Add what was read; returns the lines that it completed."""
        *ends, rest = data.split(b"\n")
        lines: list[bytes] = []
        for end in ends:
            self._add(end)
            if self._size > self._limit:
                self.skipped += 1
            else:
                lines.append(b"".join(self._pieces))
            self._pieces.clear()
            self._size = 0
        self._add(rest)
        return lines

    def _add(self, piece: bytes) -> None:
        self._size += len(piece)
        if self._size > self._limit:
            self._pieces.clear()
        elif piece:
            self._pieces.append(piece)


class HostProcess:
    """A child in a session and process group of its own, known to the ledger while it lives.

    When the process ends, whatever is left of its group is killed at once. A descendant that
    moved to a group of its own is out of reach; TERM to the process itself is its chance.
    """

    def __init__(self, *, ledger: ProcessLedger, sink: OutputSink) -> None:
        self._ledger = ledger
        self._sink = sink
        self._transport: asyncio.SubprocessTransport | None = None
        self._lines = LineSplitter()
        self._stderr_lines = LineSplitter(_STDERR_LINE_BYTES)
        self._stderr_tail: deque[str] = deque(maxlen=_STDERR_TAIL_LINES)
        self._exited = asyncio.Event()
        self._writable = asyncio.Event()
        self._writable.set()
        self._has_output_ended = False

    async def start(self, command: Command) -> None:
        """Start the command, once; raises OSError if it cannot be run.

        The main thread alone may spawn: the kernel tells a child of its parent's death when the
        thread that made it ends.
        """
        if threading.current_thread() is not threading.main_thread():
            raise RuntimeError("host processes are spawned from the main thread only")
        mark = secrets.token_hex(16)
        await asyncio.get_running_loop().subprocess_exec(
            lambda: _Pipes(self),
            *command.arguments,
            cwd=command.directory,
            env={**command.environment, MARK_VARIABLE: mark},
            start_new_session=True,
        )
        try:
            self._ledger.record(self.pid, mark=mark)
        except OSError:
            await self.end(grace=0, terminate=0)
            raise
        if self._exited.is_set():
            self._ledger.forget(self.pid)

    @property
    def pid(self) -> int:
        """The process's id, which is also its group's and session's."""
        return self._running_transport().get_pid()

    @property
    def returncode(self) -> int | None:
        """The exit status, negative for a signal; None while it runs."""
        return self._running_transport().get_returncode()

    @property
    def is_running(self) -> bool:
        """Whether the process lives and its output is open."""
        return not self._exited.is_set() and not self._has_output_ended

    @property
    def skipped_lines(self) -> int:
        """How many lines of output were too long to be read."""
        return self._lines.skipped

    @property
    def stderr_tail(self) -> str:
        """The last lines of standard error, for the log only."""
        return "\n".join(self._stderr_tail)

    async def send(self, line: bytes, *, deadline: float) -> None:
        """Write one line within `deadline` seconds.

        Raises ProcessGoneError if nobody reads it any more, TimeoutError if the process does not
        take it in time; it may then hold half a line and must be ended.
        """
        self.send_soon(line)
        async with asyncio.timeout(deadline):
            await self._writable.wait()
        if self._stdin().is_closing():
            raise ProcessGoneError("the process reads no more")

    def send_soon(self, line: bytes) -> None:
        """Hand one line to the pipe without waiting; raises ProcessGoneError if it is closed."""
        if not self._stdin().is_closing():
            self._stdin().write(line)
        if self._stdin().is_closing():
            raise ProcessGoneError("the process reads no more")

    async def end(self, *, grace: float, terminate: float) -> None:
        """End the process and its group; safe to call twice.

        Its input is closed, TERM follows after `grace` seconds and KILL after `terminate` more.
        If cancelled, the group is killed at once.
        """
        try:
            self._stdin().close()
            if not await self._has_exited_within(grace):
                self._signal(signal.SIGTERM)
                await self._has_exited_within(terminate)
        finally:
            self._signal(signal.SIGKILL)
            await self._has_exited_within(_KILL_WAIT)
            self._running_transport().close()

    def _signal(self, number: signal.Signals) -> None:
        if not self._exited.is_set():
            signal_group(self.pid, number)

    async def _has_exited_within(self, seconds: float) -> bool:
        try:
            async with asyncio.timeout(seconds):
                await self._exited.wait()
        except TimeoutError:
            return False
        return True

    def _running_transport(self) -> asyncio.SubprocessTransport:
        if self._transport is None:
            raise RuntimeError("the process was not started")
        return self._transport

    def _stdin(self) -> asyncio.WriteTransport:
        return cast(asyncio.WriteTransport, self._running_transport().get_pipe_transport(0))

    def _read(self, descriptor: int, data: bytes) -> None:
        if descriptor == 1:
            for line in self._lines.feed(data):
                self._sink.line_received(line)
            return
        for line in self._stderr_lines.feed(data):
            text = line.decode("utf-8", "replace").rstrip()
            self._stderr_tail.append(text[:_STDERR_TAIL_CHARACTERS])
            log.debug("host.stderr", extra={"line": text})

    def _lost(self, descriptor: int) -> None:
        if descriptor == 0:
            self._writable.set()
        elif descriptor == 1:
            self._end_output()

    def _end_output(self) -> None:
        if not self._has_output_ended:
            self._has_output_ended = True
            self._sink.output_ended()

    def _exit(self) -> None:
        self._exited.set()
        signal_group(self.pid, signal.SIGKILL)
        self._ledger.forget(self.pid)
        # A stranger that inherited the pipe may hold it open for ever.
        asyncio.get_running_loop().call_later(_DRAIN_WAIT, self._end_output)


class _Pipes(asyncio.SubprocessProtocol):
    """Hands the event loop's calls to a HostProcess."""

    def __init__(self, process: HostProcess) -> None:
        self._process = process

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._process._transport = cast(asyncio.SubprocessTransport, transport)

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        self._process._read(fd, data)

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        self._process._lost(fd)

    def process_exited(self) -> None:
        self._process._exit()

    def pause_writing(self) -> None:
        self._process._writable.clear()

    def resume_writing(self) -> None:
        self._process._writable.set()


def with_parent_death_signal(arguments: tuple[str, ...]) -> tuple[str, ...]:
    """Wrap a command so that the kernel sends it TERM when we die, where a tool for that is there.

    Linux only, by util-linux's setpriv; without it the end of the command's input must do.
    """
    setpriv = _find_setpriv()
    return arguments if setpriv is None else (setpriv, "--pdeathsig", "TERM", "--", *arguments)


@functools.cache
def _find_setpriv() -> str | None:
    path = shutil.which("setpriv") if sys.platform == "linux" else None
    if path is None:
        return None
    # Busybox has a setpriv without this option.
    probe = subprocess.run(
        [path, "--pdeathsig", "TERM", "--", "true"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=5,
        check=False,
    )
    return path if probe.returncode == 0 else None
