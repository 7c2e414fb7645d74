"""The admin socket: one line asks, one line answers, whatever the line is."""

import asyncio
import socket
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from gateway.engine.admin import AdminServer, Answer, ask_gateway
from gateway.engine.toolserver import bind_private_socket

UNKNOWN = {"error": "There is no such command."}


async def echo(request: Mapping[str, object]) -> Mapping[str, object]:
    return {"asked": request}


async def fail(request: Mapping[str, object]) -> Mapping[str, object]:
    raise RuntimeError("the secret is 42")


@asynccontextmanager
async def serving(answers: Mapping[str, Answer]) -> AsyncIterator[Path]:
    with tempfile.TemporaryDirectory(prefix="admin-") as folder:
        path = Path(folder) / "admin.sock"
        server = AdminServer(answers)
        await server.start(bind_private_socket(path))
        try:
            yield path
        finally:
            await server.close()


def send_line(path: Path, line: bytes) -> bytes:
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(10)
        connection.connect(str(path))
        connection.sendall(line)
        connection.shutdown(socket.SHUT_WR)
        return connection.makefile("rb").readline()


async def test_a_request_is_answered() -> None:
    async with serving({"echo": echo}) as path:
        request = {"command": "echo", "text": "größe\n2"}

        assert await asyncio.to_thread(ask_gateway, path, request) == {"asked": request}


async def test_a_command_that_is_not_there_says_so() -> None:
    async with serving({"echo": echo}) as path:
        assert await asyncio.to_thread(ask_gateway, path, {"command": "drop"}) == UNKNOWN
        assert await asyncio.to_thread(ask_gateway, path, {}) == UNKNOWN


@pytest.mark.parametrize(
    "line", [b"\n", b"{\n", b"[]\n", b'"echo"\n', b"\xff\xfe\n", b'{"command": []}\n', b""]
)
async def test_a_line_that_is_no_request_says_so(line: bytes) -> None:
    async with serving({"echo": echo}) as path:
        answer = await asyncio.to_thread(send_line, path, line)
        after = await asyncio.to_thread(ask_gateway, path, {"command": "echo"})

    assert answer == b'{"error": "There is no such command."}\n'
    assert after == {"asked": {"command": "echo"}}


async def test_what_goes_wrong_is_logged_and_not_told(caplog: pytest.LogCaptureFixture) -> None:
    async with serving({"fail": fail}) as path:
        answer = await asyncio.to_thread(ask_gateway, path, {"command": "fail"})

    assert answer == {"error": "The gateway could not do that; its log says why."}
    assert [record.message for record in caplog.records] == ["admin_failed"]


def test_without_a_gateway_nobody_answers(tmp_path: Path) -> None:
    assert ask_gateway(tmp_path / "nothing.sock", {"command": "status"}) is None
    bind_private_socket(tmp_path / "a.sock").close()
    assert ask_gateway(tmp_path / "a.sock", {"command": "status"}) is None


async def test_a_line_without_end_gets_no_answer_and_holds_nothing() -> None:
    async with serving({"echo": echo}) as path:
        assert await asyncio.to_thread(send_line, path, b"x" * 100_000) == b""
        assert await asyncio.to_thread(ask_gateway, path, {"command": "echo"}) is not None


async def test_somebody_who_connects_and_says_nothing_does_not_hold_up_the_stop() -> None:
    async with serving({"echo": echo}) as path:
        reader, writer = await asyncio.open_unix_connection(str(path))
        assert await asyncio.to_thread(ask_gateway, path, {"command": "echo"}) is not None
    assert await reader.read() == b""
    writer.close()
