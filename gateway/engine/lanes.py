"""One task a chat, woken by hints: the shape that the router and the outbox share."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Iterable
from datetime import datetime, timedelta

from gateway.domain.message import ChatKey
from gateway.engine.clock import Clock

log = logging.getLogger(__name__)

_RETRY_AFTER = timedelta(seconds=5)

Work = Callable[[ChatKey], Awaitable[datetime | None]]
"""Does all that is due for a chat; returns when there is more to do, None = when hinted."""


class Patience:
    """How long a stop waits for work to end; `hurry` cuts every wait short."""

    def __init__(self) -> None:
        self._hurry = asyncio.Event()

    def hurry(self) -> None:
        """Wait no longer."""
        self._hurry.set()

    async def wait(
        self, tasks: Collection["asyncio.Task[None]"], seconds: float
    ) -> set["asyncio.Task[None]"]:
        """Wait for the tasks; returns those that did not end in time."""
        if not tasks:
            return set()
        waiting = asyncio.create_task(asyncio.wait(tasks, timeout=seconds), name="patience")
        hurried = asyncio.create_task(self._hurry.wait(), name="hurry")
        try:
            await asyncio.wait({waiting, hurried}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            waiting.cancel()
            hurried.cancel()
        return {task for task in tasks if not task.done()}


class Lane:
    """A chat's one-at-a-time order. Lanes do not wait for each other.

    A lane lives while its chat has something to do or to wait for; a hint that comes while it
    works makes it look again.
    """

    def __init__(self, chat: ChatKey) -> None:
        self.chat = chat
        self.wakeup = asyncio.Event()
        self.task: asyncio.Task[None] | None = None


class Lanes:
    """The lanes of one worker."""

    def __init__(self, name: str, work: Work, clock: Clock) -> None:
        self._name = name
        self._work = work
        self._clock = clock
        self._lanes: dict[ChatKey, Lane] = {}
        self._is_open = True

    def hint(self, chats: Iterable[ChatKey]) -> None:
        """These chats may have something to do."""
        for chat in chats:
            lane = self._lanes.get(chat)
            if lane is None:
                if not self._is_open:
                    continue
                lane = self._lanes[chat] = Lane(chat)
                lane.task = asyncio.create_task(self._run(lane), name=f"{self._name}:{chat}")
            lane.wakeup.set()

    async def close(self, patience: Patience, *, grace: float) -> None:
        """Start no lane any more, give the running ones `grace` seconds, then cancel them."""
        self._is_open = False
        for lane in self._lanes.values():
            lane.wakeup.set()  # one that waits for a moment has nothing to finish
        tasks = {lane.task for lane in self._lanes.values() if lane.task is not None}
        late = await patience.wait(tasks, grace)
        for task in late:
            task.cancel()
        await asyncio.gather(*late, return_exceptions=True)

    @property
    def is_open(self) -> bool:
        """Whether new work is taken."""
        return self._is_open

    async def _run(self, lane: Lane) -> None:
        try:
            while True:
                lane.wakeup.clear()
                until = await self._work_once(lane.chat)
                if lane.wakeup.is_set() and self._is_open:
                    continue
                if until is None or not self._is_open:
                    return
                await self._clock.wait(lane.wakeup, until)
        finally:
            del self._lanes[lane.chat]

    async def _work_once(self, chat: ChatKey) -> datetime | None:
        try:
            return await self._work(chat)
        except Exception:
            log.exception("lane_failed", extra={"worker": self._name, "chat": str(chat)})
            return self._clock.now() + _RETRY_AFTER
