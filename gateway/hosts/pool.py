"""The live sessions: who has one, who waits for one, and which idle one makes room."""

import asyncio
import logging
import os
from collections import Counter, deque
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from gateway.domain.message import ChatKey
from gateway.errors import HostNotReadyError
from gateway.hosts.base import Host, HostSession, SessionSpec
from gateway.hosts.directory import move_aside, move_back, session_directory
from gateway.hosts.lease import Lease, LeaseState
from gateway.hosts.process import HostExitedError

log = logging.getLogger(__name__)

_FAILURES_UNTIL_DAMAGED = 2
_KILL_WAIT = 5.0


class TokenIssuer(Protocol):
    """Gives each session its key to the tools."""

    def issue(self, chat: ChatKey) -> str:
        """Return a new secret that stands for this chat until it is revoked."""
        ...

    def revoke(self, token: str) -> None:
        """Make a secret worthless; unknown ones are ignored."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolLimits:
    """How many sessions may live at once and how long an unused one does, in seconds."""

    capacity: int = 8
    idle_timeout: float = 600.0
    parallel_starts: int = field(default_factory=lambda: os.cpu_count() or 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolStats:
    """How full the pool is: sessions that live, those of them lent out, and who waits."""

    live: int
    busy: int
    waiting: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Waiter:
    """Somebody who wants a session."""

    chat: ChatKey
    generation: int
    is_ephemeral: bool
    granted: asyncio.Future[Lease]


class HostPool:
    """Lends out sessions, at most `capacity` processes at a time.

    A busy session is never taken from its holder. A transcript has one process at a time: whoever
    wants a chat's session while it is lent out or being closed waits for it, and others pass.
    Everything runs on the event loop's thread.
    """

    def __init__(
        self,
        host: Host,
        *,
        root: Path,
        tool_address: Path,
        tokens: TokenIssuer,
        limits: PoolLimits | None = None,
    ) -> None:
        self._host = host
        self._root = root
        self._tool_address = tool_address
        self._tokens = tokens
        self._limits = limits or PoolLimits()
        self._leases: list[Lease] = []
        self._waiters: deque[_Waiter] = deque()
        self._starts = asyncio.Semaphore(self._limits.parallel_starts)
        self._failures: Counter[ChatKey] = Counter()
        self._timer: asyncio.TimerHandle | None = None
        self._is_closed = False

    async def acquire(
        self, chat: ChatKey, *, generation: int, is_ephemeral: bool = False
    ) -> HostSession:
        """Return a ready session for the chat, the warm one if there is one.

        Waits in order while the pool is full. An ephemeral session is always a fresh one. The
        session must come back through `release` or `discard`. Raises HostNotReadyError.
        """
        if self._is_closed:
            raise HostNotReadyError("The gateway is stopping.")
        granted: asyncio.Future[Lease] = asyncio.get_running_loop().create_future()
        waiter = _Waiter(
            chat=chat, generation=generation, is_ephemeral=is_ephemeral, granted=granted
        )
        self._waiters.append(waiter)
        self._grant()
        try:
            lease = await granted
        except asyncio.CancelledError:
            self._withdraw(waiter)
            raise
        await self._await_opening(lease)
        return lease

    def release(self, session: HostSession) -> None:
        """Give a session back; it stays warm for its chat if it can take another prompt."""
        lease = self._find(session)
        if lease is None or lease.state is not LeaseState.BUSY:
            return
        if lease.is_ephemeral or lease.is_doomed or not lease.is_alive or self._is_closed:
            self._retire(lease)
            return
        lease.state = LeaseState.IDLE
        lease.idle_since = _now()
        self._set_timer()
        self._grant()

    async def discard(self, session: HostSession) -> None:
        """Give a session back and end it."""
        lease = self._find(session)
        if lease is not None:
            await asyncio.wait({self._retire(lease)})

    async def evict(self, chat: ChatKey) -> None:
        """End the chat's sessions: idle ones now, one that is lent out when it comes back."""
        closings = set()
        for lease in self._of(chat):
            if lease.state is LeaseState.IDLE:
                closings.add(self._retire(lease))
            else:
                lease.is_doomed = True
        if closings:
            await asyncio.wait(closings)

    def stats(self) -> PoolStats:
        """Return how full the pool is now."""
        return PoolStats(
            live=sum(lease.is_alive for lease in self._leases),
            busy=sum(lease.state is LeaseState.BUSY for lease in self._leases),
            waiting=len(self._waiters),
        )

    async def close(self, deadline: float) -> None:
        """End all sessions, the busy ones too; what lives after `deadline` seconds is killed."""
        self._is_closed = True
        self._set_timer()
        while self._waiters:
            granted = self._waiters.popleft().granted
            if not granted.done():
                granted.set_exception(HostNotReadyError("The gateway is stopping."))
        endings = {self._end_somehow(lease) for lease in self._leases}
        for wait, is_last in ((deadline, False), (_KILL_WAIT, True)):
            if endings:
                _, endings = await asyncio.wait(endings, timeout=wait)
            if not is_last:
                for ending in endings:
                    ending.cancel()

    def _end_somehow(self, lease: Lease) -> "asyncio.Task[None]":
        if lease.opening is not None and not lease.opening.done():
            lease.opening.cancel()
            return lease.opening
        return self._retire(lease)

    def _grant(self) -> None:
        """Serve the waiters in order, passing by those whose own chat's session is not free."""
        for waiter in list(self._waiters):
            if waiter.granted.done() or self._is_chat_taken(waiter):
                continue  # done: cancelled, and about to withdraw
            lease = self._find_place(waiter)
            if lease is None:
                return
            self._waiters.remove(waiter)
            waiter.granted.set_result(lease)

    def _is_chat_taken(self, waiter: _Waiter) -> bool:
        if waiter.is_ephemeral:
            return False
        return any(
            lease.state is not LeaseState.IDLE and not lease.is_ephemeral
            for lease in self._of(waiter.chat)
        )

    def _find_place(self, waiter: _Waiter) -> Lease | None:
        """Return a lease for the waiter: its warm session, a free place, or an idle one's."""
        warm = None if waiter.is_ephemeral else self._idle_of(waiter.chat)
        if warm is not None and warm.is_alive and warm.generation == waiter.generation:
            warm.state = LeaseState.BUSY
            self._set_timer()
            return warm
        if warm is not None:
            return self._open(waiter, instead_of=warm)
        if sum(not lease.is_succeeded for lease in self._leases) < self._limits.capacity:
            return self._open(waiter, instead_of=None)
        victim = self._longest_idle()
        return None if victim is None else self._open(waiter, instead_of=victim)

    def _idle_of(self, chat: ChatKey) -> Lease | None:
        idle = (lease for lease in self._of(chat) if lease.state is LeaseState.IDLE)
        return next(idle, None)

    def _longest_idle(self) -> Lease | None:
        """Return whom to close for another; a chat that waits itself only if there is no other."""
        waiting = {waiter.chat for waiter in self._waiters}
        idle = [lease for lease in self._leases if lease.state is LeaseState.IDLE]
        return min(idle, key=lambda one: (one.chat in waiting, one.idle_since), default=None)

    def _open(self, waiter: _Waiter, *, instead_of: Lease | None) -> Lease:
        lease = Lease(waiter.chat, generation=waiter.generation, is_ephemeral=waiter.is_ephemeral)
        if instead_of is not None:
            instead_of.is_succeeded = True
            lease.predecessor = self._retire(instead_of)
        self._leases.append(lease)
        lease.opening = asyncio.create_task(self._fill(lease), name=f"host open {lease.chat}")
        lease.opening.add_done_callback(
            lambda task: self._remove(lease) if task.cancelled() or task.exception() else None
        )
        return lease

    async def _fill(self, lease: Lease) -> None:
        """Put a ready session into a lease."""
        if lease.predecessor is not None:
            await asyncio.wait({lease.predecessor})
        async with self._starts:
            await self._start(lease)
        lease.state = LeaseState.BUSY

    async def _await_opening(self, lease: Lease) -> None:
        if lease.opening is None or lease.state is not LeaseState.OPENING:
            return
        try:
            await lease.opening
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if self._is_closed and task is not None and not task.cancelling():
                raise HostNotReadyError("The gateway is stopping.") from None
            if lease.has_session:
                self._retire(lease)
            raise

    async def _start(self, lease: Lease) -> None:
        """Start a session; a transcript that fails twice in a row is suspected and replaced.

        A process that ended at its start is tried again at once: that costs little time.
        """
        directory = session_directory(self._root, lease.chat, lease.generation)
        if lease.is_ephemeral:
            await self._launch(lease, directory)
            return
        while self._failures[lease.chat] < _FAILURES_UNTIL_DAMAGED:
            try:
                await self._launch(lease, directory)
            except HostNotReadyError as error:
                self._failures[lease.chat] += 1
                is_suspect = self._failures[lease.chat] >= _FAILURES_UNTIL_DAMAGED
                if not is_suspect and not isinstance(error, HostExitedError):
                    raise
            else:
                del self._failures[lease.chat]
                return
        await self._start_afresh(lease, directory)

    async def _start_afresh(self, lease: Lease, directory: Path) -> None:
        """Start without the suspected transcript; if that fails too, it was not at fault."""
        try:
            kept = move_aside(directory)
            try:
                await self._launch(lease, directory)
            except BaseException:
                if kept is not None:
                    move_back(kept, directory)
                raise
        except OSError as error:
            raise HostNotReadyError("The session's directory cannot be replaced.") from error
        finally:
            del self._failures[lease.chat]
        lease.is_replacement = kept is not None

    async def _launch(self, lease: Lease, directory: Path) -> None:
        token = self._tokens.issue(lease.chat)
        spec = SessionSpec(
            chat=lease.chat,
            directory=directory,
            generation=lease.generation,
            tool_address=self._tool_address,
            tool_token=token,
            is_ephemeral=lease.is_ephemeral,
        )
        try:
            lease.session = await self._host.start(spec)
        except BaseException:
            self._tokens.revoke(token)
            raise
        lease.token = token

    def _withdraw(self, waiter: _Waiter) -> None:
        """Take back the wish of somebody who was cancelled, and what he was given meanwhile."""
        if waiter in self._waiters:
            self._waiters.remove(waiter)
            self._grant()
            return
        granted = waiter.granted
        if granted.done() and not granted.cancelled() and granted.exception() is None:
            lease = granted.result()
            if lease.state is LeaseState.OPENING and lease.opening is not None:
                lease.opening.cancel()
            else:
                self.release(lease)

    def _retire(self, lease: Lease) -> "asyncio.Task[None]":
        """Begin to close a session, which calls no tools any more; returns the task that ends
        with it.
        """
        if lease.closing is None:
            lease.state = LeaseState.CLOSING
            if lease.token is not None:
                self._tokens.revoke(lease.token)
            lease.closing = asyncio.create_task(
                self._close_session(lease), name=f"host close {lease.chat}"
            )
            self._set_timer()
        return lease.closing

    async def _close_session(self, lease: Lease) -> None:
        try:
            await lease.close()
        except Exception:
            log.exception("host.close_failed")
        finally:
            self._remove(lease)

    def _remove(self, lease: Lease) -> None:
        self._leases.remove(lease)
        self._grant()

    def _find(self, session: HostSession) -> Lease | None:
        return next((lease for lease in self._leases if lease is session), None)

    def _of(self, chat: ChatKey) -> list[Lease]:
        return [lease for lease in self._leases if lease.chat == chat]

    def _set_timer(self) -> None:
        """Wake when the next idle session has been so for too long."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        idle = [lease.idle_since for lease in self._leases if lease.state is LeaseState.IDLE]
        if idle and not self._is_closed:
            due = min(idle) + self._limits.idle_timeout
            self._timer = asyncio.get_running_loop().call_at(due, self._retire_idle)

    def _retire_idle(self) -> None:
        limit = _now() - self._limits.idle_timeout
        for lease in list(self._leases):
            if lease.state is LeaseState.IDLE and (lease.idle_since <= limit or not lease.is_alive):
                self._retire(lease)
        self._set_timer()


def _now() -> float:
    return asyncio.get_running_loop().time()
