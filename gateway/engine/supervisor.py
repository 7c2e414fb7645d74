"""Keeps the channels running, each on its own, and says how they are."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from gateway.channels.base import Channel, ChannelHealth, ChannelState, Receive
from gateway.domain.message import ChannelName
from gateway.engine.owner import Episode, OwnerNotices
from gateway.errors import ChannelSetupError, NoChannelError

log = logging.getLogger(__name__)

RESTART_AFTER = 5.0
"""Seconds until a channel that broke is run again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unavailable:
    """A channel that is configured and cannot start here; the reason names the fix."""

    name: ChannelName
    reason: str


class Supervisor:
    """Runs each channel; one that cannot run never stops another."""

    def __init__(
        self,
        channels: Mapping[ChannelName, Channel],
        unavailable: tuple[Unavailable, ...],
        owner: OwnerNotices,
        *,
        restart_after: float = RESTART_AFTER,
    ) -> None:
        self._channels = channels
        self._failed = {one.name: one.reason for one in unavailable}
        self._owner = owner
        self._restart_after = restart_after
        self._tasks: set[asyncio.Task[None]] = set()
        self._came_up: Callable[[ChannelName], Awaitable[None]] | None = None

    def states(self) -> dict[ChannelName, ChannelHealth]:
        """Every configured channel with where it stands."""
        states = {
            name: ChannelHealth(state=ChannelState.FAILED, reason=reason)
            for name, reason in self._failed.items()
        }
        return states | {
            name: channel.health
            for name, channel in self._channels.items()
            if name not in self._failed
        }

    async def when_up(self, came_up: Callable[[ChannelName], Awaitable[None]]) -> None:
        """Call this for every channel that is connected now, and whenever one is (again)."""
        self._came_up = came_up
        for name, channel in self._channels.items():
            if channel.health.state is ChannelState.CONNECTED:
                await came_up(name)

    def health_changed(self, channel: Channel) -> None:
        """A channel's state changed: log it, wake what waits for it, tell the operator."""
        health = channel.health
        log.info(
            "channel_state",
            extra={"channel": channel.name, "state": health.state, "reason": health.reason},
        )
        task = asyncio.create_task(self._follow(channel.name, health), name="channel-state")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def run(self, receive: Receive) -> None:
        """Run all channels until one comes to its own end (the console's input).

        Raises NoChannelError when none is left that could run.
        """
        if not self._channels:
            raise NoChannelError(self._why_none())
        tasks = {
            asyncio.create_task(self._run_one(channel, receive), name=f"channel:{name}")
            for name, channel in self._channels.items()
        }
        try:
            while tasks:
                done, tasks = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
                if any(task.result() for task in done):
                    return
            raise NoChannelError(self._why_none())
        finally:
            ending = (*tasks, *self._tasks)
            for task in ending:
                task.cancel()
            await asyncio.gather(*ending, return_exceptions=True)

    async def _run_one(self, channel: Channel, receive: Receive) -> bool:
        """True = the channel came to its own end; false = it cannot run."""
        while True:
            try:
                await channel.run(receive)
            except ChannelSetupError as error:
                log.error("channel_failed", extra={"channel": channel.name, "reason": str(error)})
                self._failed[channel.name] = str(error)
                return False
            except Exception:
                log.exception("channel_broke", extra={"channel": channel.name})
            else:
                return True
            await asyncio.sleep(self._restart_after)

    async def _follow(self, name: ChannelName, health: ChannelHealth) -> None:
        if health.state is ChannelState.CONNECTED:
            await self._owner.over(Episode.TELEGRAM_CONFLICT)
            if self._came_up is not None:
                await self._came_up(name)
        elif health.state is ChannelState.CONFLICT:
            await self._owner.tell(
                Episode.TELEGRAM_CONFLICT,
                "Another program polls Telegram with the same bot token. Stop one of the two.",
            )

    def _why_none(self) -> str:
        reasons = [f"{name}: {reason}" for name, reason in self._failed.items()]
        return "\n".join(["No channel could start.", *reasons])
