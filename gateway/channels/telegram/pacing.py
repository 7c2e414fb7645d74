"""How long to wait: deadlines of calls, and the pace that Telegram asks senders to keep."""

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

# The limits that Telegram's bot FAQ names: one message a second in a chat with short bursts
# tolerated, 20 a minute in a group, 30 a second in all.
_CHAT: Final = (3, 3.0)
_GROUP: Final = (20, 60.0)
_OVERALL: Final = (30, 1.0)

# A sender that waits longer looks like one that got no answer.
_LONGEST_WAIT = 30.0
_IDLE_AFTER = 60.0
_REMEMBERED_CHATS = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """Deadlines and waits of the channel, in seconds."""

    poll_timeout: int = 10  # how long the server may hold a getUpdates without news
    poll_slack: float = 5.0  # what the network may add to that
    first_wait: float = 1.0  # after a failed poll; doubles with each further one
    longest_wait: float = 30.0
    send_timeout: float = 60.0  # for the request and for the answer, each
    connect_timeout: float = 10.0
    side_call_timeout: float = 5.0  # typing, button answers: not worth waiting for

    @property
    def poll_deadline(self) -> float:
        """When a getUpdates that has not come back is dead."""
        return 2 * self.poll_timeout + self.poll_slack

    @property
    def send_deadline(self) -> float:
        """When a send is given up whatever trickles in."""
        return self.connect_timeout + 2 * self.send_timeout + self.poll_slack


class _Window:
    """At most `count` slots within any `seconds`, given out in order."""

    def __init__(self, count: int, seconds: float) -> None:
        self._count = count
        self._seconds = seconds
        self._taken: deque[float] = deque(maxlen=count)

    def next_slot(self, now: float) -> float:
        """The first moment from `now` on that is free."""
        if not self._taken:
            return now
        earliest = max(now, self._taken[-1])
        if len(self._taken) < self._count:
            return earliest
        return max(earliest, self._taken[0] + self._seconds)

    def take(self, slot: float) -> None:
        self._taken.append(slot)

    def is_idle(self, now: float) -> bool:
        return not self._taken or self._taken[-1] + _IDLE_AFTER < now


class Pacer:
    """Makes senders wait for their turn, per chat and in all."""

    def __init__(
        self,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._clock = clock
        self._sleep = sleep
        self._overall = _Window(*_OVERALL)
        self._chats: dict[int, tuple[_Window, ...]] = {}

    async def wait(self, chat_id: int) -> timedelta | None:
        """Return None when one message may go to this chat; a waiting chat holds back no other.

        When its turn is more than half a minute away, it is not waited for: returns how long to
        stay away, and the turn is not taken.
        """
        windows = self._windows(chat_id)
        now = self._clock()
        away = max(window.next_slot(now) for window in windows) - now
        if away > _LONGEST_WAIT:
            return timedelta(seconds=away)
        await self._wait_for(windows)
        await self._wait_for((self._overall,))
        return None

    async def _wait_for(self, windows: tuple[_Window, ...]) -> None:
        now = self._clock()
        slot = max(window.next_slot(now) for window in windows)
        for window in windows:
            window.take(slot)
        if slot > now:
            await self._sleep(slot - now)

    def _windows(self, chat_id: int) -> tuple[_Window, ...]:
        if chat_id not in self._chats:
            self._forget_idle_chats()
            limits = (_CHAT, _GROUP) if chat_id < 0 else (_CHAT,)
            self._chats[chat_id] = tuple(_Window(*limit) for limit in limits)
        return self._chats[chat_id]

    def _forget_idle_chats(self) -> None:
        if len(self._chats) < _REMEMBERED_CHATS:
            return
        now = self._clock()
        self._chats = {
            chat_id: windows
            for chat_id, windows in self._chats.items()
            if not all(window.is_idle(now) for window in windows)
        }
