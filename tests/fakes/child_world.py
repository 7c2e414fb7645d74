"""A model child between a fake model server and a fake tool server."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.fakes.child_wire import ChildWire
from tests.fakes.model_server import FakeModelServer
from tests.fakes.tool_socket import FakeToolServer

KEY = "CANARYKEY"


@dataclass(slots=True, kw_only=True)
class World:
    """A model server, a tool server, and children between them."""

    model: FakeModelServer
    tools: FakeToolServer
    directory: Path
    provider: str

    def child(self, *flags: str, **environment: str) -> ChildWire:
        told = {
            "HOST_KIND": "builtin",
            "MODEL_PROVIDER": self.provider,
            "MODEL_NAME": "m1",
            "MODEL_BASE_URL": self.model.url,
            "MODEL_API_KEY": KEY,
            "GATEWAY_TOOL_SOCKET": str(self.tools.path),
            "GATEWAY_TOOL_TOKEN": self.tools.token,
        }
        return ChildWire(self.directory, told | environment, *flags)

    def said(self, request: int = -1) -> list[str]:
        """What a request told the model, roles left out."""
        return [str(m["content"]) for m in self.model.requests[request].messages]


@asynccontextmanager
async def open_world(directory: Path, provider: str) -> AsyncIterator[World]:
    """Start both servers; `directory` gets the tools' socket and the session's directory."""
    session = directory / "session"
    session.mkdir(mode=0o700)
    async with FakeModelServer() as model, FakeToolServer(directory / "tools.sock") as tools:
        yield World(model=model, tools=tools, directory=session, provider=provider)
