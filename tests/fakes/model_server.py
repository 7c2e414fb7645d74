"""A model server on loopback that speaks both provider dialects and follows a script.

In a test: `async with FakeModelServer() as server`. As a process of its own:
`python -m tests.fakes.model_server --port-file F --script S`; then `GET /requests` lists what
came in and `POST /gates/<name>` opens a gate.
"""

import argparse
import asyncio
import json
from collections import defaultdict
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Self, assert_never

from aiohttp import web

from tests.fakes.model_events import (
    CallsDelta,
    Delta,
    Encode,
    FinishDelta,
    TextDelta,
    ThoughtDelta,
    calls_as_text,
    make_anthropic_encoder,
    openai_events,
    openai_usage,
)
from tests.fakes.model_script import (
    Asked,
    BadEvent,
    CallTools,
    Cut,
    JsonObject,
    LimitContext,
    Refuse,
    RefuseTools,
    Reply,
    Rule,
    Say,
    Script,
    Shape,
    Silent,
    load_script,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """One request as it came in."""

    path: str
    headers: dict[str, str]
    body: JsonObject

    @property
    def messages(self) -> list[JsonObject]:
        """The messages, without an OpenAI request's system message."""
        return [
            message for message in _objects(self.body, "messages") if message["role"] != "system"
        ]

    @property
    def system(self) -> str:
        """The system text, in either dialect."""
        told = [m for m in _objects(self.body, "messages") if m["role"] == "system"]
        return _text(told[0]["content"] if told else self.body.get("system"))

    @property
    def tool_names(self) -> list[str]:
        """The tools on offer."""
        functions = [tool.get("function", tool) for tool in _objects(self.body, "tools")]
        return [str(function["name"]) for function in functions if isinstance(function, dict)]

    @property
    def asked(self) -> Asked:
        """What a rule looks at."""
        last = max((i for i, m in enumerate(self.messages) if _is_said(m)), default=0)
        after = self.messages[last + 1 :]
        results = [_result(message) for message in after]
        return Asked(
            user=_text(self.messages[last].get("content")) if self.messages else "",
            tool=next((text for text in reversed(results) if text), ""),
            rounds=sum(1 for message in after if message["role"] == "assistant"),
            characters=sum(len(_text(message.get("content"))) for message in self.messages),
            has_tools=bool(self.tool_names),
        )


class FakeModelServer:
    """Serves `/v1/chat/completions` and `/v1/messages`; `requests` holds all that came in."""

    def __init__(self, script: Script | None = None) -> None:
        self.script = script or Script()
        self.requests: list[Recorded] = []
        self.url = ""
        self.port = 0
        self._gates: defaultdict[str, asyncio.Event] = defaultdict(asyncio.Event)
        self._reached: defaultdict[str, asyncio.Event] = defaultdict(asyncio.Event)
        self._runner: web.AppRunner | None = None

    async def __aenter__(self) -> Self:
        app = web.Application(client_max_size=1 << 26)
        app.router.add_post("/v1/chat/completions", self._chat)
        app.router.add_post("/v1/messages", self._chat)
        app.router.add_get("/requests", self._list_requests)
        app.router.add_post("/gates/{name}", self._open_gate)
        # A handler must not outlive its client, or silence would hold up the end of a test.
        self._runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.port = self._runner.addresses[0][1]
        self.url = f"http://127.0.0.1:{self.port}"
        return self

    async def __aexit__(self, *_: object) -> None:
        for gate in self._gates.values():
            gate.set()
        if self._runner is not None:
            await self._runner.cleanup()

    def queue(self, *replies: Reply) -> None:
        """Answer the next requests with these, whatever they say."""
        self.script.queue.extend(replies)

    def when(self, contains: str, *replies: Reply) -> None:
        """Answer messages that hold `contains`; each further reply follows a tool round."""
        self.script.rules.append(Rule(contains=contains, replies=replies))

    def open(self, gate: str) -> None:
        """Let replies that wait at this gate go on."""
        self._gates[gate].set()

    async def reached(self, gate: str) -> None:
        """Wait until a reply has come to this gate, its first piece sent."""
        async with asyncio.timeout(10):
            await self._reached[gate].wait()

    async def _list_requests(self, _: web.Request) -> web.Response:
        listed = [{"path": one.path, "body": one.body} for one in self.requests]
        return web.json_response(listed)

    async def _open_gate(self, request: web.Request) -> web.Response:
        self.open(request.match_info["name"])
        return web.json_response({})

    async def _chat(self, request: web.Request) -> web.StreamResponse:
        headers = {name.lower(): value for name, value in request.headers.items()}
        recorded = Recorded(path=request.path, headers=headers, body=await request.json())
        self.requests.append(recorded)
        reply = self.script.choose(recorded.asked)
        if isinstance(reply, Refuse):
            return web.Response(
                status=reply.status,
                text=reply.body,
                headers=dict(reply.headers),
                content_type="application/json",
            )
        if isinstance(reply, Say) and reply.is_whole:
            return web.json_response(_whole(reply, recorded.asked))
        response = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await response.prepare(request)
        await self._stream(reply, recorded.asked, _Sink(response, request))
        return response

    async def _stream(self, reply: Reply, asked: Asked, sink: "_Sink") -> None:
        match reply:
            case Say():
                await self._say(reply, asked, sink)
            case CallTools():
                await sink.call(reply)
            case Cut():
                await sink.text(reply.text)
                sink.cut()
            case BadEvent():
                await sink.text(reply.text)
                await sink.raw("data: {not json\n\n")
            case Silent():
                await sink.text(reply.text)
                await self._pass("silence")
            case Refuse() | RefuseTools() | LimitContext():
                raise AssertionError("resolved before")
            case _:
                assert_never(reply)

    async def _say(self, reply: Say, asked: Asked, sink: "_Sink") -> None:
        if reply.thinking is not None:
            await sink.send(ThoughtDelta(text=reply.thinking))
        first, *rest = _cut(_fill(reply.text, asked), reply.pieces)
        await sink.text(first)
        if reply.gate is not None:
            await self._pass(reply.gate)
        await asyncio.sleep(reply.seconds)
        for piece in rest:
            await sink.text(piece)
        await sink.send(FinishDelta(reason=reply.finish, usage=reply.usage, has_end=reply.has_end))

    async def _pass(self, gate: str) -> None:
        self._reached[gate].set()
        await self._gates[gate].wait()


class _Sink:
    """Writes one reply in one dialect."""

    def __init__(self, response: web.StreamResponse, request: web.Request) -> None:
        self._response = response
        self._request = request
        is_anthropic = request.path == "/v1/messages"
        self._encode: Encode = make_anthropic_encoder() if is_anthropic else openai_events

    async def text(self, text: str) -> None:
        if text:
            await self.send(TextDelta(text=text))

    async def call(self, reply: CallTools) -> None:
        spelled = calls_as_text(reply.calls, reply.shape)
        await self.text(reply.text if spelled is None else spelled)
        if spelled is None:
            await self.send(CallsDelta(calls=reply.calls, shape=reply.shape))
        is_plain = spelled is not None or reply.shape is Shape.STOP
        reason = "stop" if is_plain else "tool_calls"
        await self.send(FinishDelta(reason=reason, usage=reply.usage, has_end=True))

    async def send(self, delta: Delta) -> None:
        for event in self._encode(delta):
            data = event if isinstance(event, str) else json.dumps(event, ensure_ascii=False)
            await self.raw(f"data: {data}\n\n")

    async def raw(self, data: str) -> None:
        await self._response.write(data.encode())

    def cut(self) -> None:
        if self._request.transport is not None:
            self._request.transport.abort()


def _whole(reply: Say, asked: Asked) -> JsonObject:
    message: JsonObject = {"role": "assistant", "content": _fill(reply.text, asked)}
    choice: JsonObject = {"index": 0, "message": message, "finish_reason": reply.finish}
    return {"object": "chat.completion", "choices": [choice], "usage": openai_usage(reply.usage)}


def _fill(text: str, asked: Asked) -> str:
    last_line = (asked.user.strip().splitlines() or [""])[-1]
    named = {"{user}": asked.user, "{last_line}": last_line, "{tool}": asked.tool}
    for name, value in named.items():
        text = text.replace(name, value)
    return text


def _cut(text: str, pieces: int) -> list[str]:
    bounds = [len(text) * number // pieces for number in range(pieces + 1)]
    return [text[start:end] for start, end in pairwise(bounds)]


def _objects(data: JsonObject, name: str) -> list[JsonObject]:
    value = data.get(name)
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _text(content: object) -> str:
    """Return the text of a message's content: plain, or in blocks, tool results not counted."""
    if isinstance(content, str):
        return content
    blocks = _objects({"blocks": content}, "blocks")
    return "".join(str(block["text"]) for block in blocks if block.get("type") == "text")


def _is_said(message: JsonObject) -> bool:
    return message["role"] == "user" and bool(_text(message.get("content")))


def _result(message: JsonObject) -> str:
    if message["role"] == "tool":
        return str(message["content"])
    results = [b for b in _objects(message, "content") if b.get("type") == "tool_result"]
    return str(results[-1]["content"]) if results else ""


async def _serve(port_file: Path, script: Path) -> None:
    async with FakeModelServer(load_script(script)) as server:
        draft = port_file.with_suffix(".new")
        draft.write_text(str(server.port), encoding="utf-8")
        draft.replace(port_file)  # whoever waits for the file finds it whole
        await asyncio.Event().wait()


def main() -> None:
    """Serve until killed."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--port-file", type=Path, required=True)
    parser.add_argument("--script", type=Path, required=True)
    arguments = parser.parse_args()
    asyncio.run(_serve(arguments.port_file, arguments.script))


if __name__ == "__main__":
    main()
