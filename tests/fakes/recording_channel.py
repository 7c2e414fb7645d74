"""A messaging platform in this process: it takes what it is told to take, and remembers it."""

import asyncio
from collections import defaultdict, deque
from dataclasses import dataclass

from gateway.channels.base import ChannelHealth, ChannelState, HealthChanged, Receive, Target
from gateway.domain.button import Button
from gateway.domain.delivery import SendOutcome, Sent
from gateway.domain.message import ChannelName
from gateway.domain.richtext import RichText
from gateway.errors import ChannelError
from tests.factories import ACCOUNT, cut


@dataclass(frozen=True, slots=True)
class Shown:
    """One send as the platform saw it."""

    address: str
    text: str
    has_format: bool = False
    buttons: tuple[Button, ...] = ()
    edits: str | None = None


class RecordingChannel:
    """Implements `gateway.channels.base.Channel`; every send is accepted unless scripted."""

    def __init__(
        self,
        name: ChannelName = ChannelName.TELEGRAM,
        *,
        health_changed: HealthChanged | None = None,
    ) -> None:
        self.name = name
        self.account = ACCOUNT
        self.health = ChannelHealth(state=ChannelState.STOPPED)
        self.tried: list[Shown] = []
        self.sent: list[Shown] = []
        self.typing: list[str] = []
        self.runs = 0
        self.is_closed = False
        self._health_changed = health_changed
        self._outcomes: dict[str, deque[SendOutcome | Exception]] = defaultdict(deque)
        self._gates: dict[str, asyncio.Event] = {}
        self._ends: asyncio.Queue[Exception | None] = asyncio.Queue()

    def texts(self, address: str = "42") -> list[str]:
        """What one chat was sent, oldest first."""
        return [shown.text for shown in self.sent if shown.address == address]

    def answer_next(self, *outcomes: SendOutcome | Exception, address: str = "42") -> None:
        """Have the next sends to an address come to this, one each."""
        self._outcomes[address].extend(outcomes)

    def shut(self, address: str) -> None:
        """Sends to an address do not come back until `open`."""
        self._gates[address] = asyncio.Event()

    def open(self, address: str) -> None:
        self._gates.pop(address).set()

    def become(self, state: ChannelState, reason: str | None = None) -> None:
        """Change the health, as a connection that comes or goes does."""
        self.health = ChannelHealth(state=state, reason=reason)
        if self._health_changed is not None:
            self._health_changed(self)

    def end(self, error: Exception | None = None) -> None:
        """Have `run` return, or raise."""
        self._ends.put_nowait(error)

    def cut(self, text: str, *, is_markdown: bool) -> tuple[RichText, ...]:
        return cut(text, is_markdown=is_markdown)

    async def run(self, receive: Receive) -> None:
        self.runs += 1
        error = await self._ends.get()
        if error is not None:
            raise error

    async def send(
        self, target: Target, body: RichText, *, buttons: tuple[Button, ...] = ()
    ) -> SendOutcome:
        if self.is_closed:
            raise ChannelError("closed")
        shown = Shown(
            target.address,
            body.text,
            has_format=bool(body.entities),
            buttons=buttons,
            edits=target.edits,
        )
        self.tried.append(shown)
        gate = self._gates.get(target.address)
        if gate is not None:
            await gate.wait()
        scripted = self._outcomes[target.address]
        external_id = target.edits or f"x{len(self.tried)}"
        outcome = scripted.popleft() if scripted else Sent(external_id=external_id)
        if isinstance(outcome, Exception):
            raise outcome
        if isinstance(outcome, Sent):
            self.sent.append(shown)
        return outcome

    async def show_typing(self, target: Target) -> None:
        self.typing.append(target.address)

    async def close(self) -> None:
        self.is_closed = True
