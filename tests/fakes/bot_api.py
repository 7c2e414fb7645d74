"""A Bot API server on loopback that behaves, and misbehaves, like the real one.

In process: `async with BotApi() as api: ...`. As a process of its own, steered by JSON requests
to `/admin/...`: `python -m tests.fakes.bot_api --port-file F [--port N] [--state FILE]`.
"""

import argparse
import asyncio
import contextlib
import json
import signal
from dataclasses import asdict
from pathlib import Path
from typing import Any, Self

from aiohttp import web

from tests.fakes import bot_api_updates as updates
from tests.fakes.bot_api_faults import Ending, Fault, FaultScripts
from tests.fakes.bot_api_methods import BotApiState, Call
from tests.fakes.bot_api_rules import RefusedError
from tests.fakes.bot_api_updates import TOKEN, Json

# Parameters that are text even where they look like JSON.
_PLAIN = frozenset({"text", "caption", "parse_mode", "callback_query_id", "action", "url"})


class BotApi(BotApiState):
    """The server. Its state outlives `stop` and is there again after `start`."""

    def __init__(self, *, token: str = TOKEN) -> None:
        super().__init__()
        self.token = token
        self.port = 0
        self._faults = FaultScripts()
        self._released = asyncio.Event()
        self._runner: web.AppRunner | None = None
        self._transports: set[asyncio.Transport] = set()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self.stop()

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def start(self) -> None:
        """Listen; after a `stop` on the same port as before."""
        app = web.Application(client_max_size=64 * 1024 * 1024)
        app.router.add_route("*", "/bot{token}/{method}", self._handle)
        app.router.add_get("/file/bot{token}/{path:.*}", self._file)
        app.router.add_route("*", "/admin/{action}", self._admin)
        self._runner = web.AppRunner(app, shutdown_timeout=0.05, access_log=None)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self.port)
        await site.start()
        self.port = self._runner.addresses[0][1]

    async def stop(self) -> None:
        """Stop listening and cut all connections."""
        if self._runner is not None:
            self.drop_connections()
            self.release()
            await self._runner.cleanup()
            self._runner = None

    def fail(
        self, method: str, fault: Fault, *, chat_id: int | None = None, times: int | None = 1
    ) -> None:
        """Have the next `times` calls of a method (to a chat) go wrong; None = all of them."""
        self._faults.add(method, fault, chat_id=chat_id, times=times)

    def heal(self) -> None:
        """Forget the faults that have not happened yet."""
        self._faults.clear()

    def release(self) -> None:
        """Let go of all answers that are being held."""
        self._released.set()
        self._released = asyncio.Event()

    def drop_connections(self) -> None:
        """Cut all open connections with a reset."""
        for transport in self._transports:
            transport.abort()
        self._transports.clear()

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        params = await _params(request)
        if request.match_info["token"] != self.token:
            return _refusal(401, "Unauthorized")
        call = self._record(request.match_info["method"], params)
        if request.transport is not None:
            self._transports = {open_ for open_ in self._transports if not open_.is_closing()}
            self._transports.add(request.transport)
        fault = self._faults.next_for(call.method, call.chat_id)
        response = await self._respond(call, fault)
        match fault.ending if fault else Ending.ANSWER:
            case Ending.RESET:
                if request.transport is not None:
                    request.transport.abort()
            case Ending.HOLD:
                await self._released.wait()
            case Ending.TRICKLE:
                return await _trickle(request)
            case Ending.ANSWER:
                pass
        call.status = response.status
        self.touch()
        return response

    def _record(self, method: str, params: Json) -> Call:
        call = Call(
            number=len(self.calls) + 1,
            at=asyncio.get_running_loop().time(),
            method=method,
            params=params,
        )
        self.calls.append(call)
        self.touch()
        return call

    async def _respond(self, call: Call, fault: Fault | None) -> web.Response:
        result: Any = True
        if fault is None or fault.is_stored:
            try:
                result = await self.answer(call.method, call.params)
            except RefusedError as refused:
                return _refusal(refused.status, refused.description)
        if fault is not None and fault.page is not None:
            return web.Response(status=fault.status, text=fault.page, content_type="text/html")
        if fault is not None and fault.status != 200:
            return _refusal(fault.status, fault.description, dict(fault.parameters))
        return web.json_response({"ok": True, "result": result})

    async def _file(self, request: web.Request) -> web.Response:
        if request.match_info["token"] != self.token:
            return _refusal(401, "Unauthorized")
        return web.Response(body=b"content of " + request.match_info["path"].encode())

    async def _admin(self, request: web.Request) -> web.Response:
        body: Json = await request.json() if request.can_read_body else {}
        return web.json_response(self._steer(request.match_info["action"], body))

    def _steer(self, action: str, body: Json) -> Any:
        match action:
            case "updates":
                return self.push(*body["updates"])
            case "text":
                chat_id = int(body.pop("chat_id", 7))
                chat = updates.private(chat_id) if chat_id > 0 else updates.supergroup(chat_id)
                sender = updates.person(int(body.pop("user_id", abs(chat_id))))
                return self.push(updates.text(body.pop("text"), chat=chat, sender=sender, **body))
            case "faults":
                self.fail(
                    body["method"],
                    Fault.from_json(body["fault"]),
                    chat_id=body.get("chat_id"),
                    times=body.get("times", 1),
                )
            case "heal":
                self.heal()
            case "release":
                self.release()
            case "drop_connections":
                self.drop_connections()
            case "delete_topic":
                self.delete_topic(body["chat_id"], body["thread_id"])
            case "record":
                calls = [asdict(call) for call in self.calls[body.get("since", 0) :]]
                return {"calls": calls, "sent": self.sent, "pending": self.pending}
            case _:
                raise web.HTTPNotFound
        return True


async def _trickle(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Type": "application/json"})
    await response.prepare(request)
    with contextlib.suppress(ConnectionError):
        while True:
            await response.write(b" ")
            await asyncio.sleep(0.05)
    return response


def _refusal(
    status: int, description: str, parameters: dict[str, int] | None = None
) -> web.Response:
    body: Json = {"ok": False, "error_code": status, "description": description}
    headers = {}
    if parameters:
        body["parameters"] = parameters
        if "retry_after" in parameters:
            headers["Retry-After"] = str(parameters["retry_after"])
    return web.json_response(body, status=status, headers=headers)


async def _params(request: web.Request) -> Json:
    if request.content_type == "application/json":
        body: Json = await request.json()
        return body
    form = {**request.query, **await request.post()}
    return {name: _decoded(name, str(value)) for name, value in form.items()}


def _decoded(name: str, value: str) -> Any:
    if name in _PLAIN:
        return value
    try:
        return json.loads(value)
    except ValueError:
        return value


async def _serve(port: int, port_file: Path, state_file: Path | None) -> None:
    api = BotApi()
    api.port = port
    if state_file is not None and state_file.exists():
        api.load_json(json.loads(state_file.read_text()))
    stopped = asyncio.Event()
    for signum in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(signum, stopped.set)
    async with api:
        part = port_file.with_suffix(".part")
        part.write_text(str(api.port))
        part.replace(port_file)
        await stopped.wait()
    if state_file is not None:
        state_file.write_text(json.dumps(api.to_json()))


def main() -> None:
    parser = argparse.ArgumentParser(description="A fake Bot API server for tests.")
    parser.add_argument("--port-file", type=Path, required=True, help="where to write the port")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--state", type=Path, help="kept here from one process to the next")
    arguments = parser.parse_args()
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_serve(arguments.port, arguments.port_file, arguments.state))


if __name__ == "__main__":
    main()
