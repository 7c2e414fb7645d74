"""The engine as the gateway wires it, on a real store, a manual clock and a recorded channel."""

import asyncio
import tempfile
from collections.abc import AsyncIterator, Collection
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

from sqlalchemy import ColumnElement, Table

from extensions.schedule import make_extension
from gateway.channels.base import Target
from gateway.domain.allowlist import Allowlist
from gateway.domain.delivery import SendOutcome
from gateway.domain.message import ChannelName, ChatKey, NewMessage
from gateway.domain.richtext import RichText
from gateway.engine.access import Access
from gateway.engine.answers import Done
from gateway.engine.intake import Intake, IntakeRules
from gateway.engine.lanes import Patience
from gateway.engine.outbox import Outbox
from gateway.engine.owner import OwnerNotices
from gateway.engine.router import Router, RouterRules
from gateway.engine.toolserver import ToolServer, bind_private_socket, make_server
from gateway.engine.typing import Typing
from gateway.hosts.base import Host
from gateway.hosts.pool import HostPool, PoolLimits
from gateway.store.chats import load_chat
from gateway.store.database import Database
from gateway.store.deliveries import Cut
from gateway.store.firing import FireRules
from tests.factories import BERLIN, SERVED, cut, make_message, states_of
from tests.fakes.clock import ManualClock
from tests.fakes.local_host import LocalHost
from tests.fakes.recording_channel import RecordingChannel
from tests.fakes.tool_client import ToolClient


@dataclass(frozen=True, slots=True, kw_only=True)
class RigRules:
    """How a rig differs from the usual one."""

    owner: ChatKey | None = None
    allowed: Collection[str] = ("42", "43", "44", "99")
    pairing: Collection[ChannelName] = ()
    patience: float = 10.0
    capacity: int = 8
    channels: Collection[ChannelName] = SERVED
    cut: Cut = cut
    looks: bool = True


@dataclass(slots=True, kw_only=True)
class Rig:
    """The workers, all of them at work."""

    store: Database
    clock: ManualClock
    channel: RecordingChannel
    access: Access
    typing: Typing
    owner: OwnerNotices
    tools: ToolServer
    pool: HostPool
    router: Router
    outbox: Outbox
    intake: Intake
    socket: Path
    stop_patience: Patience = field(default_factory=Patience)

    async def receive(self, message: NewMessage | str, *, chat: ChatKey | None = None) -> bool:
        """Have a message come in, or a text from a chat (the first one, if none is named)."""
        if isinstance(message, str):
            message = make_message(message) if chat is None else make_message(message, chat=chat)
        return await self.intake.receive(message)

    async def until(self, table: Table, states: list[str], *where: ColumnElement[bool]) -> None:
        """Return when the rows of a table stand so, oldest first."""
        async with asyncio.timeout(15):
            while await states_of(self.store, table, *where) != states:  # noqa: ASYNC110
                await asyncio.sleep(0.005)

    async def until_sent(self, *texts: str, address: str = "42") -> None:
        """Return when exactly these texts went to an address."""
        with suppress(TimeoutError):
            async with asyncio.timeout(15):
                while self.channel.texts(address) != [*texts]:  # noqa: ASYNC110
                    await asyncio.sleep(0.005)
        assert self.channel.texts(address) == [*texts], self.channel.texts(address)

    def advance(self, seconds: float) -> None:
        self.clock.advance(timedelta(seconds=seconds))

    def client(self, token: str | None) -> ToolClient:
        return ToolClient(path=self.socket, token=token)


@asynccontextmanager
async def running_rig(
    store: Database,
    clock: ManualClock,
    folder: Path,
    *,
    host: Host | None = None,
    rules: RigRules | None = None,
) -> AsyncIterator[Rig]:
    """Everything but the scheduler, from the first look until it is closed in order."""
    rules = rules or RigRules()
    channel = RecordingChannel()
    listed = {name: frozenset(rules.allowed) for name in rules.channels}
    access = Access(Allowlist(listed), pairing=rules.pairing)
    owner = OwnerNotices(store, clock, owner=rules.owner, cut=cut)
    await owner.load()
    fire_rules = FireRules(
        channels=rules.channels, cut=lambda chat: rules.cut, admits=access.admits_chat
    )
    tools = ToolServer(store, [make_extension(store, fire_rules)], clock)
    async with AsyncExitStack() as stops:
        # Not below pytest's folder: the path of a socket has to be short.
        short = stops.enter_context(tempfile.TemporaryDirectory(prefix="rig-"))
        socket = Path(short) / "tools.sock"
        pool = HostPool(
            host or LocalHost(),
            root=folder / "sessions",
            tool_address=socket,
            tokens=tools,
            limits=PoolLimits(capacity=rules.capacity),
        )
        rig = _build(store, clock, channel, access, owner, tools, pool, rules, socket)
        # Started, and so stopped, in the gateway's own order.
        stops.push_async_callback(rig.outbox.close, rig.stop_patience, grace=0.05)
        await stops.enter_async_context(tools_served(tools, socket))
        stops.push_async_callback(pool.close, 2)
        stops.push_async_callback(rig.router.close, rig.stop_patience, grace=0.05)
        stops.push_async_callback(rig.intake.close)
        if rules.looks:
            await rig.outbox.look(SERVED)
            await rig.router.look(SERVED)
        yield rig


def _build(
    store: Database,
    clock: ManualClock,
    channel: RecordingChannel,
    access: Access,
    owner: OwnerNotices,
    tools: ToolServer,
    pool: HostPool,
    rules: RigRules,
    socket: Path,
) -> Rig:
    async def show(chat: ChatKey) -> None:
        known = await store.read(load_chat, chat)
        if known is not None:
            await channel.show_typing(Target(address=known.address))

    typing = Typing(show, limit=60, interval=0.01, delay=0)
    router_rules = RouterRules(
        owner_id="rig:1",
        timezone=BERLIN,
        cuts=dict.fromkeys(ChannelName, rules.cut),
        admits=access.admits_chat,
        silence=timedelta(minutes=30),
        patience=rules.patience,
    )
    router = Router(store, pool, tools, clock, (typing, owner), router_rules)

    async def follow(done: Done, chat: ChatKey) -> None:
        if done.begins_session:
            await pool.evict(chat)
        await router.abort(done.abort)

    async def say(chat: ChatKey, text: str) -> None:
        outcome: SendOutcome = await channel.send(
            Target(address=chat.address), RichText.literal(text)
        )
        del outcome

    intake_rules = IntakeRules(
        timezone=BERLIN,
        host="offline",
        max_age=timedelta(hours=24),
        heartbeat=timedelta(minutes=30),
        cuts=dict.fromkeys(ChannelName, cut),
        follow=follow,
        say=say,
    )
    return Rig(
        store=store,
        clock=clock,
        channel=channel,
        access=access,
        typing=typing,
        owner=owner,
        tools=tools,
        pool=pool,
        router=router,
        outbox=Outbox(
            store,
            {channel.name: channel},
            access,
            clock,
            typing,
            expiry=timedelta(hours=24),
        ),
        intake=Intake(store, access, clock, owner, intake_rules),
        socket=socket,
    )


@asynccontextmanager
async def tools_served(tools: ToolServer, socket: Path) -> AsyncIterator[None]:
    """Serve tools on a unix socket, as the gateway does."""
    server = make_server(tools)
    serving = asyncio.create_task(server.serve(sockets=[bind_private_socket(socket)]))
    async with asyncio.timeout(10):
        while not server.started:  # noqa: ASYNC110
            await asyncio.sleep(0.005)
    try:
        yield
    finally:
        server.should_exit = True
        await serving
