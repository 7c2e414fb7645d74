"""Serves the extensions' tools to hosts; a session's token says whose chat it acts on."""

import contextlib
import hmac
import json
import logging
import secrets
import socket
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import uvicorn
from pydantic import ValidationError
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from gateway.domain.job import Tier, one_line
from gateway.domain.message import ChatKey
from gateway.domain.tool import (
    NOT_SAVED,
    Extension,
    SpokenAt,
    Tool,
    ToolContext,
    ToolResult,
    call_key,
)
from gateway.engine.clock import Clock
from gateway.errors import StaleStateError, StoreError
from gateway.log_context import bind
from gateway.store.database import Database
from gateway.store.toolcalls import run_once
from gateway.store.turns import Claim

log = logging.getLogger(__name__)

MAX_BODY = 256 * 1024
_FIELD = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class _Unsaved:
    """A call that the store did not take, with what it was answered."""

    context: ToolContext
    tool: str
    answer: ToolResult


@dataclass(slots=True)
class _Running:
    """The run of a chat that may call tools now, with how often it made each call."""

    claim: Claim
    timezone: str
    tier: Tier
    calls: Counter[str] = field(default_factory=Counter)
    unsaved: list[_Unsaved] = field(default_factory=list)


class ToolServer:
    """Tokens, the run behind each, and the HTTP face. It decides nothing that a tool decides."""

    def __init__(self, database: Database, extensions: Sequence[Extension], clock: Clock) -> None:
        self._database = database
        self._tools = {tool.name: tool for ext in extensions for tool in ext.tools}
        # Built once: every prompt of every session asks for it.
        self._listed = [_description(tool) for tool in self._tools.values()]
        self._prompt = "\n\n".join(ext.prompt for ext in extensions)
        self._clock = clock
        self._tokens: dict[str, ChatKey] = {}
        self._running: dict[ChatKey, _Running] = {}

    def issue(self, chat: ChatKey) -> str:
        """A new random token for one session of the chat."""
        token = secrets.token_urlsafe(32)
        self._tokens[token] = chat
        return token

    def revoke(self, token: str) -> None:
        """The session is over; its token opens nothing any more."""
        self._tokens.pop(token, None)

    @contextlib.asynccontextmanager
    async def running(self, claim: Claim, timezone: str) -> AsyncIterator[None]:
        """Let the chat's session call tools for this run while inside.

        Calls that could not be saved are noted at the end, so that the reply's own end knows.
        """
        running = _Running(claim=claim, timezone=timezone, tier=claim.tier)
        self._running[claim.chat.key] = running
        try:
            yield
        finally:
            del self._running[claim.chat.key]
        for call in running.unsaved:
            await self._note(call)

    async def _note(self, call: _Unsaved) -> None:
        with contextlib.suppress(StaleStateError):
            await self._database.insist(run_once, call.context, call.tool, lambda _: call.answer)

    def application(self) -> Starlette:
        """The ASGI app: GET /tools, POST /tools/<name>, GET /prompt."""
        return Starlette(
            routes=[
                Route("/tools", self._list, methods=["GET"]),
                Route("/tools/{name}", self._call, methods=["POST"]),
                Route("/prompt", self._get_prompt, methods=["GET"]),
            ]
        )

    def _chat_of(self, request: Request) -> ChatKey | None:
        scheme, _, given = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer":
            return None
        for token, chat in self._tokens.items():
            if hmac.compare_digest(token.encode(), given.encode()):
                return chat
        return None

    async def _list(self, request: Request) -> JSONResponse:
        if self._chat_of(request) is None:
            return _refusal(401, "Unknown token.")
        return JSONResponse({"tools": self._listed})

    async def _get_prompt(self, request: Request) -> JSONResponse:
        if self._chat_of(request) is None:
            return _refusal(401, "Unknown token.")
        return JSONResponse({"text": self._prompt})

    async def _call(self, request: Request) -> JSONResponse:
        chat = self._chat_of(request)
        if chat is None:
            return _refusal(401, "Unknown token.")
        tool = self._tools.get(request.path_params["name"])
        if tool is None:
            return _refusal(404, f"There is no such tool. There are: {', '.join(self._tools)}.")
        running = self._running.get(chat)
        if running is None:
            return _refusal(409, "Tools can be called while a request of the chat runs, only.")
        body = await _read_object(request)
        if body is None:
            return _refusal(400, "The arguments must be one JSON object of at most 256 KiB.")
        claim = running.claim
        with bind(chat=chat, turn=claim.turn, run=claim.run):
            result = await self._run_tool(tool, running, body)
        return JSONResponse({"ok": result.ok, "text": result.text})

    async def _run_tool(
        self, tool: Tool, running: _Running, body: Mapping[str, object]
    ) -> ToolResult:
        context = self._context(tool, running, body)
        try:
            result = await self._attempt(tool, context, body)
        except StaleStateError:
            return ToolResult(ok=False, text="This request was stopped; nothing was done.")
        except StoreError:
            log.exception("tool_not_saved", extra={"tool": tool.name})
            result = tool.refuse(body, NOT_SAVED)
            running.unsaved.append(_Unsaved(context=context, tool=tool.name, answer=result))
            return result
        log.info("tool_called", extra={"tool": tool.name, "ok": result.ok})
        return result

    def _context(self, tool: Tool, running: _Running, body: Mapping[str, object]) -> ToolContext:
        claim = running.claim
        signature = call_key(claim.turn, tool.name, body, 0)
        ordinal = running.calls[signature]
        running.calls[signature] += 1
        return ToolContext(
            chat=claim.chat.key,
            turn=claim.turn,
            run=claim.run,
            trigger=claim.trigger,
            tier=running.tier,
            timezone=running.timezone,
            now=self._clock.now(),
            key=call_key(claim.turn, tool.name, body, ordinal),
            spoken=tuple(SpokenAt(text=m.text, sent_at=m.sent_at) for m in claim.messages),
        )

    async def _attempt(
        self, tool: Tool, context: ToolContext, body: Mapping[str, object]
    ) -> ToolResult:
        try:
            arguments = tool.arguments.model_validate(body)
        except ValidationError as error:
            refusal = tool.refuse(body, _field_errors(error))
            return await self._database.write(run_once, context, tool.name, lambda _: refusal)
        return await tool.call(context, arguments)


class _Server(uvicorn.Server):
    """Uvicorn without its own signal handling: the gateway stops it, after the sessions."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave the signals alone."""
        yield


def bind_private_socket(path: Path) -> socket.socket:
    """A listening unix socket that only our own user can reach (0600)."""
    path.unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(str(path))
    path.chmod(0o600)
    listener.listen(128)
    return listener


def make_server(tools: ToolServer) -> uvicorn.Server:
    """The HTTP server, to be served on a bound socket."""
    config = uvicorn.Config(
        tools.application(),
        log_config=None,
        access_log=False,
        lifespan="off",
        ws="none",
        timeout_graceful_shutdown=1,
    )
    return _Server(config)


def _description(tool: Tool) -> dict[str, object]:
    return {
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.arguments.model_json_schema(),
    }


def _refusal(status: int, text: str) -> JSONResponse:
    return JSONResponse({"ok": False, "text": text}, status_code=status)


async def _read_object(request: Request) -> dict[str, object] | None:
    raw = bytearray()
    async for part in request.stream():
        raw += part
        if len(raw) > MAX_BODY:
            return None
    try:
        body = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    return body if isinstance(body, dict) else None


def _field_errors(error: ValidationError) -> str:
    """Each wrong field with what is expected, so that a model can mend its call."""
    lines = []
    for problem in error.errors(include_url=False, include_context=False, include_input=False):
        place = ".".join(str(part) for part in problem["loc"]) or "arguments"
        lines.append(f"{one_line(place, limit=_FIELD)}: {problem['msg']}")
    return "The arguments do not fit. " + "; ".join(lines)
