"""A model host in this process, for tests in which no process behaviour matters."""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable

from gateway.hosts.base import (
    Failed,
    FailureKind,
    Finished,
    HostEvent,
    HostKind,
    Prompt,
    SessionSpec,
)

End = Finished | Failed
Step = End | Callable[["LocalSession", Prompt], Awaitable[End]]


def said(text: str) -> Finished:
    """A run that ended well."""
    return Finished(text=text, provider="fake", model="fake-1", input_tokens=1, output_tokens=2)


async def hang(session: "LocalSession", prompt: Prompt) -> End:
    """A run that only an abort ends."""
    await session.aborted.wait()
    return Failed(kind=FailureKind.ABORTED, detail="stopped on request")


class Pause:
    """A run that goes on when it is told to, and then says something."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.go_on = asyncio.Event()

    async def __call__(self, session: "LocalSession", prompt: Prompt) -> End:
        await self.go_on.wait()
        return said(self.text)


class LocalSession:
    """Implements `gateway.hosts.base.HostSession`."""

    def __init__(self, host: "LocalHost", spec: SessionSpec) -> None:
        self.host = host
        self.spec = spec
        self.is_alive = True
        self.lost_context = False
        self.aborted = asyncio.Event()
        self.aborts = 0

    async def prompt(self, prompt: Prompt) -> AsyncGenerator[HostEvent, None]:
        self.host.prompts.append(prompt)
        self.aborted.clear()
        step = self.host.steps.popleft() if self.host.steps else said(f"echo: {_last(prompt)}")
        yield step if isinstance(step, Finished | Failed) else await step(self, prompt)

    async def abort(self) -> None:
        self.aborts += 1
        self.aborted.set()

    async def close(self) -> None:
        self.is_alive = False
        self.aborted.set()


class LocalHost:
    """Implements `gateway.hosts.base.Host`; a run without a step echoes its last line."""

    kind = HostKind.OFFLINE
    model = None

    def __init__(self) -> None:
        self.prompts: list[Prompt] = []
        self.steps: deque[Step] = deque()
        self.sessions: list[LocalSession] = []
        self.refusals: deque[Exception] = deque()
        self.may_start = asyncio.Event()
        self.may_start.set()
        self.loses_context = False
        self.starts = 0

    @property
    def texts(self) -> list[str]:
        """What the prompts said, oldest first."""
        return [prompt.text for prompt in self.prompts]

    async def start(self, spec: SessionSpec) -> LocalSession:
        self.starts += 1
        await self.may_start.wait()
        if self.refusals:
            raise self.refusals.popleft()
        session = LocalSession(self, spec)
        session.lost_context = self.loses_context
        self.sessions.append(session)
        return session


def _last(prompt: Prompt) -> str:
    return prompt.text.rstrip().splitlines()[-1]
