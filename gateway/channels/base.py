"""What every channel offers the engine, and what it is given."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Protocol

from gateway.domain.button import Button
from gateway.domain.chunking import RichText
from gateway.domain.delivery import SendOutcome
from gateway.domain.message import ChannelName, Inbound


class ChannelState(StrEnum):
    """Where a channel stands, for status."""

    STOPPED = "stopped"  # not running
    CONNECTING = "connecting"  # trying to reach the platform
    CONNECTED = "connected"  # receives and sends
    DISCONNECTED = "disconnected"  # lost the platform; trying again
    CONFLICT = "conflict"  # another instance polls with the same identity; trying again
    FAILED = "failed"  # cannot run until its operator mends something


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelHealth:
    """A channel's state with its reason in plain words; `last_ok_at` = last successful receive."""

    state: ChannelState
    reason: str | None = None
    last_ok_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Where one chunk goes. `address` is the channel's own id of the chat, topic included.

    `edits` is the external id of a message of ours that the chunk replaces; where that cannot be
    done, it is sent as a new one.
    """

    address: str
    edits: str | None = None


Receive = Callable[[Inbound], Awaitable[bool]]
"""Stores one inbound thing; false = it is from somebody who is not let in, and nothing at all may
go out to them. Raises StoreError when it failed: the channel must then not acknowledge it."""

HealthChanged = Callable[["Channel"], None]
"""Told when the state or the reason of a channel changes."""


class Channel(Protocol):
    """One messaging platform. It parses, sends and classifies; it decides nothing."""

    @property
    def name(self) -> ChannelName:
        """Which platform."""
        ...

    @property
    def account(self) -> str:
        """The bot's own identity there; known before `run`."""
        ...

    @property
    def health(self) -> ChannelHealth:
        """Where it stands now."""
        ...

    def cut(self, text: str, *, is_markdown: bool) -> tuple[RichText, ...]:
        """Cut a text into pieces that each fit one send; blank text gives none."""
        ...

    async def run(self, receive: Receive) -> None:
        """Receive until cancelled, reconnecting for ever.

        Raises ChannelSetupError when only its operator can mend it.
        """
        ...

    async def send(
        self, target: Target, body: RichText, *, buttons: tuple[Button, ...] = ()
    ) -> SendOutcome:
        """Send one piece and say what became of it; never raises for what the platform did.

        A channel without buttons leaves them out.
        """
        ...

    async def show_typing(self, target: Target) -> None:
        """Show that an answer is being prepared; failures are swallowed."""
        ...

    async def close(self) -> None:
        """Give back connections; `send` is not called afterwards."""
        ...
