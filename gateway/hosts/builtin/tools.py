"""The child's side of the tool server: HTTP over a unix socket, on the standard library."""

import asyncio
import http.client
import socket
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

from gateway.hosts.builtin.dialect import ToolSpec
from gateway.hosts.builtin.loose_json import (
    JsonObject,
    as_list,
    as_object,
    as_text,
    dump_line,
    parse_object,
)
from gateway.hosts.builtin.tool_answer import ToolAnswer

_AWAY = "Reminders cannot be reached right now. Please try again in a minute."
_UNCLEAR = "The tool gave no answer. Whether it was done is not known: look before trying again."
_TIMEOUT_SECONDS = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """What the tool server has for one prompt: nothing, if it could not be asked."""

    tools: tuple[ToolSpec, ...] = ()
    sections: str = ""


class _LostError(Exception):
    """The tool server was reached, but its answer was not."""


class _Connection(http.client.HTTPConnection):
    """An HTTP connection to a unix socket that another thread may cut."""

    def __init__(self, path: Path) -> None:
        super().__init__("localhost", timeout=_TIMEOUT_SECONDS)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(_TIMEOUT_SECONDS)
        self.sock.connect(str(self._path))

    def cut(self) -> None:
        """Wake the thread that waits on this connection; it gets an error."""
        if self.sock is not None:
            with suppress(OSError):
                self.sock.shutdown(socket.SHUT_RDWR)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolServer:
    """Where this session's tools are. No call raises: a server that is away is an answer too."""

    path: Path | None
    token: str = field(repr=False)

    async def offer(self) -> Offer:
        """Return the tools and prompt sections of this moment."""
        try:
            tools, sections = await asyncio.gather(
                self._exchange("GET", "/tools"), self._exchange("GET", "/prompt")
            )
        except (OSError, _LostError):
            return Offer()
        if tools[0] != http.HTTPStatus.OK:
            return Offer()
        specs = (_spec(as_object(item)) for item in as_list(tools[1].get("tools")))
        return Offer(
            tools=tuple(spec for spec in specs if spec.name),
            sections=as_text(sections[1].get("text")),
        )

    async def call(self, name: str, arguments: JsonObject) -> ToolAnswer:
        """Run a tool; a cancelled call is given up at once."""
        try:
            status, data = await self._exchange("POST", f"/tools/{quote(name, safe='')}", arguments)
        except _LostError:
            return ToolAnswer(ok=False, text=_UNCLEAR)
        except OSError:
            return ToolAnswer(ok=False, text=_AWAY)
        text = as_text(data.get("text"))
        if not text:
            return ToolAnswer(ok=False, text=f"The tool server answered {status}.")
        return ToolAnswer(ok=data.get("ok") is True and status == http.HTTPStatus.OK, text=text)

    async def _exchange(
        self, method: str, target: str, arguments: JsonObject | None = None
    ) -> tuple[int, JsonObject]:
        if self.path is None:
            raise ConnectionRefusedError("no tool server was named")
        connection = _Connection(self.path)
        body = None if arguments is None else dump_line(arguments)
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        try:
            return await asyncio.to_thread(_talk, connection, method, target, (body, headers))
        except asyncio.CancelledError:
            connection.cut()
            raise


def _talk(
    connection: _Connection,
    method: str,
    target: str,
    content: tuple[bytes | None, dict[str, str]],
) -> tuple[int, JsonObject]:
    try:
        connection.connect()
        return _send(connection, method, target, content)
    finally:
        connection.close()


def _send(
    connection: _Connection,
    method: str,
    target: str,
    content: tuple[bytes | None, dict[str, str]],
) -> tuple[int, JsonObject]:
    try:
        connection.request(method, target, body=content[0], headers=content[1])
        response = connection.getresponse()
        return response.status, parse_object(response.read()) or {}
    except (OSError, http.client.HTTPException) as error:
        raise _LostError from error


def _spec(data: JsonObject) -> ToolSpec:
    return ToolSpec(
        name=as_text(data.get("name")),
        description=as_text(data.get("description")),
        parameters=as_object(data.get("parameters")) or {"type": "object", "properties": {}},
    )
