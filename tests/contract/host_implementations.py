"""Every model host that the contract suite runs over: one entry each."""

import os
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from gateway.hosts.base import Host, HostKind
from gateway.hosts.launch import Launch, ModelAccess, builtin_launch
from gateway.hosts.ledger import ProcessLedger
from gateway.hosts.pi import RpcHost
from tests.fakes.fake_host import fake_launch
from tests.fakes.model_script import Refuse, Say, Silent, call
from tests.fakes.model_server import FakeModelServer
from tests.fakes.pi_replay import replay_launch
from tests.fakes.sessions import make_spec
from tests.fakes.tool_socket import FakeToolServer


class Scene(StrEnum):
    """What a host is brought to do."""

    TEXT = "text"  # answers in words
    TOOL = "tool"  # calls one tool, then answers
    EMPTY = "empty"  # ends well without a word
    AUTH = "auth"  # its key is refused
    RETRY = "retry"  # fails at first, mends it by itself, and answers
    HANDLED = "handled"  # takes the prompt, and no run follows
    ENDLESS = "endless"  # is busy until it is stopped


@dataclass(frozen=True, slots=True, kw_only=True)
class Implementation:
    """One host: how to open it in a directory, and the prompt that brings each scene about.

    `replies` holds the whole reply of each scene that ends in one. Scenes that a host does not
    know are left out.
    """

    name: str
    open: Callable[[Path], AbstractAsyncContextManager[Host]]
    prompts: Mapping[Scene, str]
    replies: Mapping[Scene, str]


def _rpc(launch: Callable[[], Launch]) -> Callable[[Path], AbstractAsyncContextManager[Host]]:
    @asynccontextmanager
    async def open_host(root: Path) -> AsyncIterator[Host]:
        yield RpcHost(HostKind.PI, launch(), ledger=ProcessLedger(root / "processes"))

    return open_host


_RECORDED = {
    Scene.TEXT: "replay text",
    Scene.TOOL: "replay tool",
    Scene.EMPTY: "replay empty",
    Scene.AUTH: "replay error_401",
    Scene.RETRY: "replay retry_recover",
    Scene.HANDLED: "replay handled",
    Scene.ENDLESS: "replay abort",
}
_RECORDED_REPLIES = {
    Scene.TEXT: "hello",
    Scene.TOOL: (
        'tool said: {"ok":true,"chat":"tg:1001","job_id":"j1",'
        '"echo":{"action":"create","text":"tea"}}'
    ),
    Scene.RETRY: "recovered",
}

_SCRIPT = {
    "rules": [
        {"match": "say", "steps": [{"do": "say", "text": "hello there"}]},
        {
            "match": "use",
            "steps": [
                {"do": "narrate", "text": "Let me look."},
                {"do": "tool", "name": "list_jobs"},
                {"do": "say", "text": "Two reminders."},
            ],
        },
        {"match": "nothing", "steps": [{"do": "say", "text": ""}]},
        {"match": "key", "steps": [{"do": "fail", "text": "401 User not found"}]},
        {
            "match": "again",
            "steps": [{"do": "retry", "text": "503 busy"}, {"do": "say", "text": "mended"}],
        },
        {"match": "menu", "ack": "handled"},
        {"match": "endless", "steps": [{"do": "stream"}]},
    ]
}
_SCRIPTED = {
    Scene.TEXT: "say",
    Scene.TOOL: "use",
    Scene.EMPTY: "nothing",
    Scene.AUTH: "bad key",
    Scene.RETRY: "again",
    Scene.HANDLED: "menu",
    Scene.ENDLESS: "endless",
}

_ASKED = {
    Scene.TEXT: "say",
    Scene.TOOL: "use the tool",
    Scene.EMPTY: "nothing",
    Scene.AUTH: "bad key",
    Scene.RETRY: "again",
    Scene.ENDLESS: "endless",
}


def _script_model(server: FakeModelServer) -> None:
    server.when("say", Say(text="hello there", pieces=2))
    server.when(
        "use the tool",
        call("schedule", {"text": "tea", "when": "tomorrow at 9"}),
        Say(text="Saved, see you then."),
    )
    server.when("nothing", Say(text=""))
    server.when("bad key", Refuse(status=401, times=99))
    server.when("again", Refuse(status=503, headers={"retry-after": "0"}, then=Say(text="mended")))
    server.when("endless", Silent(text="and so"))


def _bundled(provider: str) -> Callable[[Path], AbstractAsyncContextManager[Host]]:
    @asynccontextmanager
    async def open_host(root: Path) -> AsyncIterator[Host]:
        spec = make_spec(root)
        async with (
            FakeModelServer() as server,
            FakeToolServer(spec.tool_address, token=spec.tool_token),
        ):
            _script_model(server)
            model = ModelAccess(
                provider=provider, name="m1", base_url=f"{server.url}/v1", api_key="k"
            )
            launch = builtin_launch(inherited=os.environ, model=model)
            yield RpcHost(HostKind.BUILTIN, launch, ledger=ProcessLedger(root / "processes"))

    return open_host


@asynccontextmanager
async def _offline(root: Path) -> AsyncIterator[Host]:
    spec = make_spec(root)
    async with FakeToolServer(spec.tool_address, token=spec.tool_token):
        launch = builtin_launch(inherited=os.environ)
        yield RpcHost(HostKind.OFFLINE, launch, ledger=ProcessLedger(root / "processes"))


IMPLEMENTATIONS = [
    *(
        Implementation(
            name=f"Pi {version}, recorded",
            open=_rpc(lambda version=version: replay_launch(version)),  # type: ignore[misc]
            prompts=_RECORDED,
            replies=_RECORDED_REPLIES,
        )
        for version in ("0.73.1", "1.6.0")
    ),
    Implementation(
        name="scripted host",
        open=_rpc(lambda: fake_launch(_SCRIPT)),
        prompts=_SCRIPTED,
        replies={
            Scene.TEXT: "hello there",
            Scene.TOOL: "Two reminders.",
            Scene.RETRY: "mended",
        },
    ),
    *(
        Implementation(
            name=f"our child over {provider}",
            open=_bundled(provider),
            prompts=_ASKED,
            replies={
                Scene.TEXT: "hello there",
                Scene.TOOL: "Saved, see you then.",
                Scene.RETRY: "mended",
            },
        )
        for provider in ("openai", "anthropic")
    ),
    Implementation(
        name="our child offline",
        open=_offline,
        prompts={Scene.TEXT: "thanks", Scene.TOOL: "what are my reminders?"},
        replies={Scene.TEXT: "You are welcome!", Scene.TOOL: "Saved as #7."},
    ),
]
