"""One process's end of the RPC dialect: commands out, answers matched to them, frames in."""

import asyncio
import itertools
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from gateway.hosts.ledger import ProcessLedger
from gateway.hosts.process import HostProcess, ProcessGoneError
from gateway.hosts.rpc_frames import Dialog, Frame, Response, read_frame, write_frame

log = logging.getLogger(__name__)

_NOISE_SHOWN = 200


class WireListener(Protocol):
    """Takes what a host says of its own accord."""

    def frame_received(self, frame: Frame) -> None:
        """Take a frame that answers no command."""
        ...

    def wire_ended(self) -> None:
        """There will be no more frames; called once."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class _Expected:
    """A command without its answer yet."""

    command: str
    answer: Callable[[Response], None]
    end: Callable[[], None]


class RpcWire:
    """Commands and frames of one host process.

    Lines that are no frames are skipped and counted. Dialogs are cancelled at once: nobody sits
    at the host's screen, and an open one would block it.
    """

    def __init__(self, listener: WireListener, *, ledger: ProcessLedger) -> None:
        self.process = HostProcess(ledger=ledger, sink=self)
        self.noise = 0
        self._listener = listener
        self._ids = itertools.count(1)
        self._expected: dict[str, _Expected] = {}

    async def ask(self, command: str, *, deadline: float) -> Response:
        """Send a command and wait for its answer, `deadline` seconds in all.

        Raises TimeoutError, or ProcessGoneError if the process ends first.
        """
        future: asyncio.Future[Response] = asyncio.get_running_loop().create_future()

        def end() -> None:
            if not future.done():
                future.set_exception(ProcessGoneError("the process ended before it answered"))

        def answer(response: Response) -> None:
            if not future.done():
                future.set_result(response)

        command_id = self._expect(_Expected(command=command, answer=answer, end=end))
        try:
            async with asyncio.timeout(deadline):
                frame = write_frame({"id": command_id, "type": command})
                await self.process.send(frame, deadline=deadline)
                return await future
        finally:
            self._expected.pop(command_id, None)
            future.cancel()

    async def send(
        self, fields: dict[str, object], *, deadline: float, answer: Callable[[Response], None]
    ) -> None:
        """Send a command whose answer goes to `answer`, if it comes; raises as `ask` does."""
        expected = _Expected(command=str(fields["type"]), answer=answer, end=lambda: None)
        command_id = self._expect(expected)
        await self.process.send(write_frame({"id": command_id, **fields}), deadline=deadline)

    def send_soon(self, fields: dict[str, object]) -> None:
        """Send a frame whose answer does not matter, to whoever still reads."""
        try:
            self.process.send_soon(write_frame(fields))
        except ProcessGoneError:
            log.debug("host.frame_unread", extra={"type": fields.get("type")})

    def line_received(self, line: bytes) -> None:
        """Take one line of the process's output."""
        frame = read_frame(line)
        if frame is None:
            self._count_noise(line)
        elif isinstance(frame, Response):
            self._match(frame)
        else:
            if isinstance(frame, Dialog):
                reply = {"type": "extension_ui_response", "id": frame.id, "cancelled": True}
                self.send_soon(reply)
            self._listener.frame_received(frame)

    def output_ended(self) -> None:
        """Take the end of the process's output."""
        for expected in self._expected.values():
            expected.end()
        self._listener.wire_ended()

    def _expect(self, expected: _Expected) -> str:
        command_id = f"g{next(self._ids)}"
        self._expected[command_id] = expected
        return command_id

    def _match(self, response: Response) -> None:
        command_id = response.id
        if command_id is None:  # older hosts lose the id with some errors
            same = (key for key, one in self._expected.items() if one.command == response.command)
            command_id = next(same, "")
        expected = self._expected.pop(command_id, None)
        if expected is not None:
            expected.answer(response)

    def _count_noise(self, line: bytes) -> None:
        self.noise += 1
        level = logging.WARNING if self.noise == 1 else logging.DEBUG
        log.log(level, "host.noise", extra={"count": self.noise, "length": len(line)})
        log.debug("host.noise_text", extra={"line": repr(line[:_NOISE_SHOWN])})
