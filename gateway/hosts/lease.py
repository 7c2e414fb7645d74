"""A session as the pool lends it out."""

import asyncio
from collections.abc import AsyncGenerator
from enum import StrEnum

from gateway.domain.message import ChatKey
from gateway.hosts.base import HostEvent, HostSession, Prompt


class LeaseState(StrEnum):
    """Where a pooled session stands."""

    OPENING = "opening"  # granted, its process not ready yet
    BUSY = "busy"  # with whoever acquired it
    IDLE = "idle"  # waiting for its chat's next turn
    CLOSING = "closing"  # its process is being ended


class Lease:
    """One place in the pool and the session in it; it is the HostSession that acquirers see.

    `is_succeeded`: its place was given on before it was closed, so it fills none itself.
    `is_doomed`: it is closed when it comes back.
    """

    def __init__(self, chat: ChatKey, *, generation: int, is_ephemeral: bool) -> None:
        self.chat = chat
        self.generation = generation
        self.is_ephemeral = is_ephemeral
        self.state = LeaseState.OPENING
        self.idle_since = 0.0
        self.token: str | None = None
        self.is_succeeded = False
        self.is_doomed = False
        self.is_replacement = False
        self.opening: asyncio.Task[None] | None = None
        self.closing: asyncio.Task[None] | None = None
        self.predecessor: asyncio.Task[None] | None = None
        self._session: HostSession | None = None

    @property
    def session(self) -> HostSession:
        """The session itself; only after it was put in."""
        if self._session is None:
            raise RuntimeError("the session is not open")
        return self._session

    @session.setter
    def session(self, session: HostSession) -> None:
        self._session = session

    @property
    def has_session(self) -> bool:
        """Whether a session was put in."""
        return self._session is not None

    @property
    def is_alive(self) -> bool:
        """Whether it can take another prompt."""
        return self._session is not None and self._session.is_alive

    @property
    def lost_context(self) -> bool:
        """Whether it began without the transcript that it should have resumed."""
        return self.is_replacement or self.session.lost_context

    def prompt(self, prompt: Prompt) -> AsyncGenerator[HostEvent, None]:
        """Run one prompt."""
        return self.session.prompt(prompt)

    async def abort(self) -> None:
        """Stop the run in progress, if any."""
        await self.session.abort()

    async def close(self) -> None:
        """End the process; the pool learns of it when the lease comes back."""
        await self.session.close()
