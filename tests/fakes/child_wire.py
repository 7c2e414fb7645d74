"""A minimal parent of our own model child: it spawns, writes commands and reads frames."""

import asyncio
import json
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

import gateway

JsonObject = dict[str, object]

_LIMIT = 1 << 26
_DEADLINE_SECONDS = 20


class ChildWire:
    """One child process. `frames` holds every frame read so far, in order."""

    def __init__(self, directory: Path, environment: Mapping[str, str], *flags: str) -> None:
        self._directory = directory
        self._environment = dict(environment) | {
            "PATH": "/usr/bin:/bin",
            "PYTHONPATH": str(Path(gateway.__file__).parents[1]),
        }
        self._flags = flags
        self._process: Process | None = None
        self.frames: list[JsonObject] = []

    async def __aenter__(self) -> Self:
        self._process = await asyncio.create_subprocess_exec(
            sys.executable,
            *("-m", "gateway.hosts.builtin", "--session-dir", str(self._directory), *self._flags),
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
            limit=_LIMIT,
            env=self._environment,
            cwd=self._directory,
        )
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.process.returncode is None:
            self.process.kill()
        await self.process.communicate()

    @property
    def process(self) -> Process:
        """The running child."""
        assert self._process is not None
        return self._process

    async def write(self, line: bytes) -> None:
        """Write bytes as they are."""
        assert self.process.stdin is not None
        self.process.stdin.write(line)
        await self.process.stdin.drain()

    async def send(self, frame: JsonObject) -> None:
        """Write one command."""
        await self.write(json.dumps(frame, ensure_ascii=False).encode() + b"\n")

    async def read(self) -> JsonObject:
        """Return the next frame."""
        assert self.process.stdout is not None
        async with asyncio.timeout(_DEADLINE_SECONDS):
            line = await self.process.stdout.readline()
        if not line:
            assert self.process.stderr is not None
            raise EOFError((await self.process.stderr.read()).decode())
        frame: JsonObject = json.loads(line)
        self.frames.append(frame)
        return frame

    async def until(self, is_it: Callable[[JsonObject], bool]) -> JsonObject:
        """Read up to the first frame that fits, and return it."""
        while not is_it(frame := await self.read()):
            pass
        return frame

    async def ask(self, kind: str, **fields: object) -> JsonObject:
        """Send a command and return its response."""
        await self.send({"id": kind, "type": kind, **fields})
        return await self.until(lambda f: f["type"] == "response" and f.get("id") == kind)

    async def state(self) -> JsonObject:
        """Return the answer to get_state."""
        data = (await self.ask("get_state"))["data"]
        assert isinstance(data, dict)
        return data

    async def run(self, message: str, **fields: object) -> "RunSeen":
        """Send a prompt and read until it settled."""
        start = len(self.frames)
        response = await self.ask("prompt", message=message, **fields)
        assert response["success"] is True, response
        return await self.settled(start)

    async def settled(self, start: int = 0) -> "RunSeen":
        """Read until the run in progress settled; `start` is where its frames begin."""
        await self.until(lambda f: f["type"] == "agent_settled")
        return RunSeen(self.frames[start:])


class RunSeen:
    """The frames of one run, and what they say."""

    def __init__(self, frames: list[JsonObject]) -> None:
        self.frames = frames
        ends = [frame for frame in frames if frame["type"] == "agent_end"]
        assert len(ends) == 1, frames
        messages = ends[0]["messages"]
        assert isinstance(messages, list)
        self.messages: list[JsonObject] = messages
        self.last: JsonObject = messages[-1]

    @property
    def types(self) -> list[str]:
        """The kinds of frames, in order."""
        return [str(frame["type"]) for frame in self.frames]

    @property
    def text(self) -> str:
        """The text of the last message."""
        content = self.last["content"]
        assert isinstance(content, list)
        return "".join(block["text"] for block in content if block["type"] == "text")

    @property
    def stop(self) -> object:
        """Why the last message ended."""
        return self.last["stopReason"]

    @property
    def error(self) -> str:
        """The last message's error."""
        return str(self.last.get("errorMessage", ""))

    @property
    def is_aborted(self) -> object:
        """Whether it settled as aborted."""
        return self.frames[-1]["aborted"]

    def deltas(self) -> str:
        """All text pieces joined."""
        events = [f["assistantMessageEvent"] for f in self.frames if f["type"] == "message_update"]
        return "".join(
            str(event["delta"])
            for event in events
            if isinstance(event, dict) and event["type"] == "text_delta"
        )
