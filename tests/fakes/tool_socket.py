"""A tool server on a unix socket, as a child sees it; `calls` holds all that came in."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from aiohttp import web

JsonObject = dict[str, object]

SCHEDULE: JsonObject = {
    "name": "schedule",
    "description": "Create a reminder.",
    "parameters": {
        "type": "object",
        "properties": {"text": {"type": "string"}, "when": {"type": "string"}},
        "required": ["text", "when"],
    },
}


@dataclass(slots=True)
class FakeToolServer:
    """Answers every call with `answer` and `status`; while `gate` is closed, calls wait.

    With `breaks_off` the connection of a call ends without an answer.
    """

    path: Path
    token: str = "tool-token"
    tools: Sequence[JsonObject] = (SCHEDULE,)
    sections: str = "The person's name is Anna."
    status: int = 200
    answer: JsonObject = field(default_factory=lambda: {"ok": True, "text": "Saved as #7."})
    calls: list[tuple[str, JsonObject]] = field(default_factory=list)
    gate: asyncio.Event = field(default_factory=asyncio.Event)
    breaks_off: bool = False
    called: asyncio.Event = field(default_factory=asyncio.Event)
    _runner: web.AppRunner | None = None

    async def __aenter__(self) -> Self:
        self.gate.set()
        app = web.Application()
        app.router.add_get("/tools", self._list)
        app.router.add_get("/prompt", self._prompt)
        app.router.add_post("/tools/{name}", self._call)
        self._runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.UnixSite(self._runner, str(self.path)).start()
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._runner is not None:
            await self._runner.cleanup()

    def _check(self, request: web.Request) -> None:
        if request.headers.get("Authorization") != f"Bearer {self.token}":
            raise web.HTTPUnauthorized

    async def _list(self, request: web.Request) -> web.Response:
        self._check(request)
        return web.json_response({"tools": list(self.tools)})

    async def _prompt(self, request: web.Request) -> web.Response:
        self._check(request)
        return web.json_response({"text": self.sections})

    async def _call(self, request: web.Request) -> web.Response:
        self._check(request)
        self.calls.append((request.match_info["name"], await request.json()))
        self.called.set()
        await self.gate.wait()
        if self.breaks_off and request.transport is not None:
            request.transport.abort()
        return web.json_response(self.answer, status=self.status)
