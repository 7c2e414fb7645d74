"""Speaks HTTP to a tool server's unix socket, with the standard library alone."""

import asyncio
import http.client
import json
import socket
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Answer:
    """What the server said."""

    status: int
    body: dict[str, object]

    @property
    def text(self) -> str:
        return str(self.body["text"])


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: Path) -> None:
        super().__init__("localhost", timeout=20)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self._path))


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolClient:
    """One session's connection to its tools; without a token it sends none."""

    path: Path
    token: str | None = None

    async def get(self, path: str) -> Answer:
        return await asyncio.to_thread(self._ask, "GET", path, None)

    async def schedule(self, **arguments: object) -> Answer:
        """Call the schedule tool; `in_` is sent as `in`."""
        fields = {name.rstrip("_"): value for name, value in arguments.items()}
        return await self.post("/tools/schedule", json.dumps(fields).encode())

    async def post(self, path: str, body: bytes) -> Answer:
        return await asyncio.to_thread(self._ask, "POST", path, body)

    def _ask(self, method: str, path: str, body: bytes | None) -> Answer:
        connection = _UnixConnection(self.path)
        headers = {} if self.token is None else {"Authorization": f"Bearer {self.token}"}
        try:
            connection.request(method, path, body, headers)
            response = connection.getresponse()
            return Answer(response.status, json.loads(response.read()))
        finally:
            connection.close()
