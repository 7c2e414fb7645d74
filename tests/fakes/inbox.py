"""The engine's side of a channel: takes in what the channel receives, or refuses to."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

from gateway.channels.base import Channel, ChannelHealth
from gateway.domain.message import Inbound, NewMessage


class Inbox:
    """Stores in memory, unless told to fail or to keep the channel waiting."""

    def __init__(self) -> None:
        self.items: list[Inbound] = []
        self.tried: list[Inbound] = []
        self.healths: list[ChannelHealth] = []
        self._verdicts: list[Exception | None] = []
        self._gate = asyncio.Event()
        self._gate.set()
        self._change = asyncio.Event()
        self.admits = True

    @property
    def texts(self) -> list[str]:
        return [item.text for item in self.items if isinstance(item, NewMessage)]

    def fail_next(self, *verdicts: Exception | None) -> None:
        """Have the next receptions raise these, one each; None lets one succeed."""
        self._verdicts.extend(verdicts)

    def shut(self) -> None:
        """Receptions do not come back until `open`."""
        self._gate.clear()

    def open(self) -> None:
        self._gate.set()

    async def receive(self, inbound: Inbound) -> bool:
        self.tried.append(inbound)
        self._touch()
        await self._gate.wait()
        verdict = self._verdicts.pop(0) if self._verdicts else None
        if verdict is not None:
            raise verdict
        self.items.append(inbound)
        self._touch()
        return self.admits

    def health_changed(self, channel: Channel) -> None:
        self.healths.append(channel.health)
        self._touch()

    async def until(self, is_so: Callable[[], bool], *, within: float = 10.0) -> None:
        """Return once `is_so`, asked again after each event here. Raises TimeoutError."""
        async with asyncio.timeout(within):
            change = self._change
            while not is_so():
                await change.wait()
                change = self._change

    def _touch(self) -> None:
        self._change.set()
        self._change = asyncio.Event()


@asynccontextmanager
async def running(channel: Channel, inbox: Inbox) -> AsyncIterator[asyncio.Task[None]]:
    """Run a channel for the length of a block; its task is given."""
    task = asyncio.create_task(channel.run(inbox.receive), name=f"run-{channel.name}")
    try:
        yield task
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
