"""Frames on descriptors: one JSON object a line, cut at line feeds only."""

import asyncio
import os
import threading
from contextlib import suppress

from gateway.hosts.builtin.loose_json import JsonObject, dump_line

_LONGEST_LINE = 1 << 26
_CHUNK = 1 << 16


class FrameWriter:
    """Writes whole frames; once closed, or once nobody reads, it swallows them."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._is_closed = False

    def send(self, frame: JsonObject) -> None:
        """Write one frame."""
        data = memoryview(dump_line(frame))
        try:
            while data and not self._is_closed:
                data = data[os.write(self._descriptor, data) :]
        except BrokenPipeError:
            self._is_closed = True

    def close(self) -> None:
        """Say nothing more."""
        self._is_closed = True


class LineReader:
    """Reads lines of up to 64 MiB; a longer one is read past and comes out empty."""

    def __init__(self, stream: asyncio.StreamReader) -> None:
        self._stream = stream

    async def next(self) -> bytes | None:
        """Return the next line without its line feed, or None at the end of input.

        A last line without a line feed was cut off by the writer's end: it is dropped.
        """
        is_overlong = False
        while True:
            try:
                line = await self._stream.readuntil(b"\n")
            except asyncio.IncompleteReadError:
                return None
            except asyncio.LimitOverrunError as overrun:
                await self._stream.readexactly(overrun.consumed)
                is_overlong = True
            else:
                return b"" if is_overlong else line[:-1]


def open_reader(descriptor: int) -> LineReader:
    """Return a reader of the descriptor, whatever it is; needs a running loop.

    A thread does the reading: an event loop can wait for pipes, but neither for files nor for
    `/dev/null`, where it would hang instead of seeing the end.
    """
    loop = asyncio.get_running_loop()
    stream = asyncio.StreamReader(limit=_LONGEST_LINE)

    def pump() -> None:
        with suppress(RuntimeError):  # the loop has closed: nobody wants the rest
            while chunk := _read(descriptor):
                loop.call_soon_threadsafe(stream.feed_data, chunk)
            loop.call_soon_threadsafe(stream.feed_eof)

    threading.Thread(target=pump, name="input", daemon=True).start()
    return LineReader(stream)


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, _CHUNK)
    except OSError:  # a terminal that is gone has no more to say either
        return b""
