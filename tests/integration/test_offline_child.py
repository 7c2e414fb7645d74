"""The offline child on the same wire: no model, no network, and an answer all the same."""

import asyncio
import os
import sys
from pathlib import Path

from tests.fakes.child_wire import ChildWire, JsonObject
from tests.fakes.tool_socket import FakeToolServer

NOON_MS = 1_796_040_000_000


def context(text: str) -> JsonObject:
    message = {"text": text, "sender": "Anna", "sent_at": NOON_MS, "quoted": None}
    return {
        "messages": [message],
        "trigger": "message",
        "timezone": "Europe/Berlin",
        "now": NOON_MS,
        "job": None,
        "recent": [],
    }


def child(tmp_path: Path, socket: Path) -> ChildWire:
    environment = {
        "HOST_KIND": "offline",
        "GATEWAY_TOOL_SOCKET": str(socket),
        "GATEWAY_TOOL_TOKEN": "tool-token",
    }
    return ChildWire(tmp_path, environment)


async def test_it_tells_its_state_and_keeps_no_files(tmp_path: Path) -> None:
    async with child(tmp_path, tmp_path / "none") as wire:
        state = await wire.state()
        run = await wire.run("hi", context=context("help"))
        assert (await wire.state())["sessionId"] == state["sessionId"]
    assert state["model"] == {"provider": "offline", "id": "grammar"}
    assert run.stop == "stop"
    assert run.text
    assert list(tmp_path.iterdir()) == []


async def test_a_reminder_goes_through_the_tool_and_is_told_as_confirmed(tmp_path: Path) -> None:
    async with (
        FakeToolServer(tmp_path / "tools.sock") as tools,
        child(tmp_path, tools.path) as wire,
    ):
        run = await wire.run("…", context=context("remind me tomorrow at 9 to call mum"))
    assert [name for name, _ in tools.calls] == ["schedule"]
    assert "Saved as #7." in run.text
    assert "tool_execution_end" in run.types


async def test_r33_the_reminder_that_was_sent_is_what_is_put_off(tmp_path: Path) -> None:
    recent = [{"text": "call mum", "job_ids": [7]}]
    async with (
        FakeToolServer(tmp_path / "tools.sock") as tools,
        child(tmp_path, tools.path) as wire,
    ):
        await wire.run("…", context=context("snooze that 10 min") | {"recent": recent})
    ((name, arguments),) = tools.calls
    assert name == "schedule"
    assert (arguments["action"], arguments["id"]) == ("snooze", 7)


async def test_without_the_tool_server_it_says_so(tmp_path: Path) -> None:
    async with child(tmp_path, tmp_path / "none") as wire:
        run = await wire.run("…", context=context("remind me tomorrow at 9 to call mum"))
    assert run.stop == "stop"
    assert "cannot be reached" in run.text


async def test_a_prompt_without_facts_is_refused(tmp_path: Path) -> None:
    async with child(tmp_path, tmp_path / "none") as wire:
        response = await wire.ask("prompt", message="hi")
        assert response["success"] is False
        assert (await wire.run("hi", context=context("help"))).stop == "stop"


async def test_nothing_that_speaks_http_to_models_is_loaded() -> None:
    program = (
        "import sys\n"
        "import gateway.hosts.builtin.__main__, gateway.hosts.builtin.offline_answerer\n"
        "heavy = {'httpx', 'anyio', 'pydantic', 'sqlalchemy', 'rich'} & set(sys.modules)\n"
        "sys.exit(', '.join(heavy) or 0)\n"
    )
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", program, env={"PYTHONPATH": os.pathsep.join(sys.path)}
    )
    assert await process.wait() == 0
