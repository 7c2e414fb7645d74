"""The admin socket: how `gateway status` and `gateway pair` speak to a running gateway."""

import asyncio
import json
import logging
import socket
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from pathlib import Path

from gateway.errors import GatewayError

log = logging.getLogger(__name__)

Answer = Callable[[Mapping[str, object]], Awaitable[Mapping[str, object]]]

_TIMEOUT = 10.0


class AdminServer:
    """Answers one JSON line with one JSON line. Only our own user can reach the socket."""

    def __init__(self, answers: Mapping[str, Answer]) -> None:
        self._answers = answers
        self._server: asyncio.Server | None = None
        self._serving: set[asyncio.Task[None]] = set()

    async def start(self, listener: socket.socket) -> None:
        """Serve on a bound private socket."""
        self._server = await asyncio.start_unix_server(self._serve, sock=listener)

    async def close(self) -> None:
        """Take no request any more."""
        if self._server is not None:
            self._server.close()
        # From Python 3.12 on, waiting for the server waits for whoever is connected.
        for task in self._serving:
            task.cancel()
        await asyncio.gather(*self._serving, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is not None:
            self._serving.add(task)
            task.add_done_callback(self._serving.discard)
        try:
            # A line over the reader's limit is a ValueError.
            with suppress(OSError, TimeoutError, ValueError):
                async with asyncio.timeout(_TIMEOUT):
                    line = await reader.readline()
                    answer = await self._answer(line)
                    writer.write(json.dumps(answer).encode() + b"\n")
                    await writer.drain()
        finally:
            writer.close()

    async def _answer(self, line: bytes) -> Mapping[str, object]:
        try:
            request = json.loads(line)
            answer = self._answers[request["command"]]
        except (ValueError, KeyError, TypeError):
            return {"error": "There is no such command."}
        try:
            return await answer(request)
        except Exception:
            log.exception("admin_failed")
            return {"error": "The gateway could not do that; its log says why."}


def ask_gateway(path: Path, request: Mapping[str, object]) -> Mapping[str, object] | None:
    """Ask the gateway behind the socket; None = none is running.

    Raises GatewayError when one runs and does not answer.
    """
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(_TIMEOUT)
        try:
            connection.connect(str(path))
            connection.sendall(json.dumps(request).encode() + b"\n")
            with connection.makefile("rb") as answers:
                line = answers.readline()
        except TimeoutError as error:
            raise GatewayError(
                f"A gateway is running, but it gave no answer within {_TIMEOUT:g} s."
            ) from error
        except OSError:
            return None
    # A gateway that ends meanwhile closes the connection without a word.
    return dict(json.loads(line)) if line else None
