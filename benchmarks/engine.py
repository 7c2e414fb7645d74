"""The engine in this process, as the gateway wires it: the store, intake, router and outbox are
real, the host answers at once, and the channel only notes what it is given.
"""

import asyncio
import contextlib
import itertools
import time
from collections.abc import AsyncGenerator, AsyncIterator, Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path

from benchmarks.real_gateway import chat_key
from gateway.channels.base import ChannelHealth, ChannelState, Receive, Target
from gateway.channels.markup import from_markdown
from gateway.domain.allowlist import Allowlist
from gateway.domain.button import Button
from gateway.domain.chunking import TELEGRAM, RichText, split
from gateway.domain.delivery import SendOutcome, Sent
from gateway.domain.message import ChannelName, ChatKey, NewMessage
from gateway.engine.access import Access
from gateway.engine.answers import Done
from gateway.engine.clock import SystemClock
from gateway.engine.intake import Intake, IntakeRules
from gateway.engine.lanes import Patience
from gateway.engine.outbox import Outbox
from gateway.engine.owner import OwnerNotices
from gateway.engine.router import Router, RouterRules
from gateway.engine.toolserver import ToolServer
from gateway.engine.typing import Typing
from gateway.hosts.base import Finished, HostEvent, HostKind, Prompt, SessionSpec
from gateway.hosts.pool import HostPool, PoolLimits
from gateway.store.opening import Layout, make_data_directory, open_database

_CLOSE_SECONDS = 5.0
_ANSWER_SECONDS = 30.0
_REPLY = "Done: **all** that you asked for, see [the page](https://example.org)."


class InstantHost:
    """A host without a process; it notes when each chat's last prompt came and was answered."""

    kind = HostKind.OFFLINE
    model: str | None = None

    def __init__(self) -> None:
        self.prompted_at: dict[ChatKey, float] = {}
        self.ended_at: dict[ChatKey, float] = {}

    async def start(self, spec: SessionSpec) -> "InstantSession":
        return InstantSession(self, spec.chat)


class InstantSession:
    """Answers each prompt at once."""

    is_alive = True
    lost_context = False

    def __init__(self, host: InstantHost, chat: ChatKey) -> None:
        self._host = host
        self._chat = chat

    async def prompt(self, prompt: Prompt) -> AsyncGenerator[HostEvent, None]:
        self._host.prompted_at[self._chat] = time.perf_counter()
        end = Finished(text=_REPLY, provider="bench", model="instant")
        self._host.ended_at[self._chat] = time.perf_counter()
        yield end

    async def abort(self) -> None:
        """There is never anything to stop."""

    async def close(self) -> None:
        """There is no process."""


class RecordingChannel:
    """Takes every chunk at once, and notes when; chats are named by Telegram's rules."""

    name = ChannelName.TELEGRAM
    account = "1"

    def __init__(self) -> None:
        self.sent_at: dict[str, float] = {}
        self._ids = itertools.count(1)
        self._arrived: dict[str, asyncio.Event] = {}

    @property
    def health(self) -> ChannelHealth:
        return ChannelHealth(state=ChannelState.CONNECTED)

    def cut(self, text: str, *, is_markdown: bool) -> tuple[RichText, ...]:
        return split(from_markdown(text) if is_markdown else RichText.literal(text), TELEGRAM)

    async def run(self, receive: Receive) -> None:
        await asyncio.Event().wait()

    async def send(
        self, target: Target, body: RichText, *, buttons: tuple[Button, ...] = ()
    ) -> SendOutcome:
        self.sent_at[target.address] = time.perf_counter()
        self._event(target.address).set()
        return Sent(external_id=str(next(self._ids)))

    async def show_typing(self, target: Target) -> None:
        """Nobody sees it."""

    async def close(self) -> None:
        """There is no connection."""

    async def until_sent(self, address: str) -> None:
        """Return at the next send to this chat."""
        event = self._event(address)
        async with asyncio.timeout(_ANSWER_SECONDS):
            await event.wait()
        event.clear()

    def _event(self, address: str) -> asyncio.Event:
        return self._arrived.setdefault(address, asyncio.Event())


class Engine:
    """A running engine; `say` is a whole turn."""

    def __init__(self, intake: Intake, host: InstantHost, channel: RecordingChannel) -> None:
        self._intake = intake
        self._ids = itertools.count(10_000_000)
        self.host = host
        self.channel = channel

    async def say(self, chat_id: int) -> tuple[float, float]:
        """Have a turn; returns the seconds from message to prompt, and from reply to send."""
        key = chat_key(chat_id)
        began = time.perf_counter()
        await self._intake.receive(self._message(key))
        await self.channel.until_sent(key.address)
        before = self.host.prompted_at[key] - began
        return before, self.channel.sent_at[key.address] - self.host.ended_at[key]

    def _message(self, key: ChatKey) -> NewMessage:
        return NewMessage(
            chat=key,
            account=self.channel.account,
            address=key.address,
            external_id=str(next(self._ids)),
            sender_id=key.address,
            sender_name="Ann",
            chat_addresses=(key.address,),
            sender_addresses=(key.address,),
            text="Where did I leave the keys?",
            sent_at=datetime.now(UTC),
        )


@contextlib.asynccontextmanager
async def engine_running(folder: Path, chats: Iterable[int]) -> AsyncIterator[Engine]:
    """Run an engine on the database in `folder/data`, made if it is missing."""
    directory = folder / "data"
    make_data_directory(directory)
    allowed = frozenset(map(str, chats))
    database = open_database(Layout(directory=directory))
    clock = SystemClock()
    host, channel = InstantHost(), RecordingChannel()
    access = Access(Allowlist({ChannelName.TELEGRAM: allowed}))
    owner = OwnerNotices(database, clock, owner=None, cut=None)
    typing = Typing(_show_nothing, limit=60.0)
    tools = ToolServer(database, [], clock)
    pool = HostPool(
        host,
        root=directory / "sessions",
        tool_address=directory / "tools.sock",
        tokens=tools,
        limits=PoolLimits(capacity=len(allowed)),
    )
    cuts = {ChannelName.TELEGRAM: channel.cut}
    router = Router(
        database,
        pool,
        tools,
        clock,
        (typing, owner),
        RouterRules(
            owner_id="bench",
            timezone="Europe/Berlin",
            cuts=cuts,
            admits=access.admits_chat,
            silence=timedelta(minutes=30),
        ),
    )
    outbox = Outbox(
        database,
        {channel.name: channel},
        access,
        clock,
        typing,
        expiry=timedelta(hours=24),
    )
    rules = IntakeRules(
        timezone="Europe/Berlin",
        host=HostKind.OFFLINE,
        max_age=timedelta(hours=24),
        heartbeat=timedelta(minutes=30),
        cuts=cuts,
        follow=_follow_nothing,
        say=_say_nothing,
    )
    try:
        await router.look([channel.name])
        await outbox.look([channel.name])
        yield Engine(Intake(database, access, clock, owner, rules), host, channel)
    finally:
        patience = Patience()
        await router.close(patience, grace=_CLOSE_SECONDS)
        await pool.close(_CLOSE_SECONDS)
        await outbox.close(patience, grace=_CLOSE_SECONDS)
        await database.close()


async def _show_nothing(chat: ChatKey) -> None:
    """No platform to show it on."""


async def _follow_nothing(done: Done, chat: ChatKey) -> None:
    """No command is ever sent."""


async def _say_nothing(chat: ChatKey, text: str) -> None:
    """No stranger ever writes."""
