"""Channels side by side: one that cannot run never stops another."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import pytest

from gateway.channels.base import ChannelHealth, ChannelState
from gateway.domain.message import ChannelName, ChatKey, Inbound
from gateway.engine.owner import Episode, OwnerNotices
from gateway.engine.supervisor import Supervisor, Unavailable
from gateway.errors import ChannelSetupError, NoChannelError
from gateway.store.database import Database
from gateway.store.schema import deliveries
from tests.factories import CHAT, cut, rows_of
from tests.fakes.clock import ManualClock
from tests.fakes.recording_channel import RecordingChannel
from tests.fakes.sessions import eventually

TELEGRAM, WHATSAPP = ChannelName.TELEGRAM, ChannelName.WHATSAPP
OWNER = ChatKey(CHAT.channel, "99")


async def receive(inbound: Inbound) -> bool:
    return True


@pytest.fixture
def owner(store: Database, clock: ManualClock) -> OwnerNotices:
    return OwnerNotices(store, clock, owner=OWNER, cut=cut)


def supervise(
    owner: OwnerNotices, *channels: RecordingChannel, unavailable: Sequence[Unavailable] = ()
) -> Supervisor:
    named = {channel.name: channel for channel in channels}
    return Supervisor(named, tuple(unavailable), owner, restart_after=0.001)


@asynccontextmanager
async def running(supervisor: Supervisor) -> AsyncIterator[asyncio.Task[None]]:
    task = asyncio.create_task(supervisor.run(receive), name="channels")
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_a_channel_that_comes_to_its_end_ends_them_all(owner: OwnerNotices) -> None:
    telegram, console = RecordingChannel(), RecordingChannel(ChannelName.CONSOLE)
    async with running(supervise(owner, telegram, console)) as task:
        await eventually(lambda: telegram.runs == console.runs == 1)
        console.end()
        await task


async def test_a_channel_that_breaks_is_run_again(
    owner: OwnerNotices, caplog: pytest.LogCaptureFixture
) -> None:
    telegram, whatsapp = RecordingChannel(), RecordingChannel(WHATSAPP)
    async with running(supervise(owner, telegram, whatsapp)):
        telegram.end(RuntimeError("broken"))
        telegram.end(OSError("reset"))
        await eventually(lambda: telegram.runs == 3)
        assert whatsapp.runs == 1

    broken = [record for record in caplog.records if record.message == "channel_broke"]
    assert len(broken) == 2


async def test_a_channel_that_cannot_run_is_named_and_the_others_go_on(
    owner: OwnerNotices,
) -> None:
    telegram, whatsapp = RecordingChannel(), RecordingChannel(WHATSAPP)
    whatsapp.health = ChannelHealth(state=ChannelState.CONNECTED)
    supervisor = supervise(owner, telegram, whatsapp)
    failed = ChannelHealth(state=ChannelState.FAILED, reason="The token is wrong.")
    async with running(supervisor) as task:
        telegram.end(ChannelSetupError("The token is wrong."))
        await eventually(lambda: supervisor.states()[TELEGRAM] == failed)
        assert supervisor.states()[WHATSAPP].state is ChannelState.CONNECTED
        assert telegram.runs == 1
        assert not task.done()


async def test_when_no_channel_is_left_it_ends_with_all_the_reasons(owner: OwnerNotices) -> None:
    telegram, whatsapp = RecordingChannel(), RecordingChannel(WHATSAPP)
    async with running(supervise(owner, telegram, whatsapp)) as task:
        telegram.end(ChannelSetupError("The token is wrong."))
        await eventually(lambda: telegram.runs == 1)
        whatsapp.end(ChannelSetupError("Not paired."))
        with pytest.raises(NoChannelError) as raised:
            await task

    assert str(raised.value).splitlines() == [
        "No channel could start.",
        "telegram: The token is wrong.",
        "whatsapp: Not paired.",
    ]


async def test_without_any_channel_it_ends_at_once_and_says_why(owner: OwnerNotices) -> None:
    nobody = Unavailable(name=TELEGRAM, reason="nobody is allowed.")
    supervisor = supervise(owner, unavailable=[nobody])

    with pytest.raises(NoChannelError, match="telegram: nobody is allowed"):
        await supervisor.run(receive)

    assert supervisor.states() == {
        TELEGRAM: ChannelHealth(state=ChannelState.FAILED, reason="nobody is allowed.")
    }


async def test_a_channel_that_is_connected_again_wakes_what_waits_for_it(
    owner: OwnerNotices,
) -> None:
    telegram = RecordingChannel()
    supervisor = supervise(owner, telegram)
    up: list[ChannelName] = []

    async def came_up(name: ChannelName) -> None:
        up.append(name)

    async with running(supervisor):
        await supervisor.when_up(came_up)
        for state in (ChannelState.DISCONNECTED, ChannelState.CONNECTED):
            telegram.health = ChannelHealth(state=state)
            supervisor.health_changed(telegram)
        await eventually(lambda: up == [TELEGRAM])


async def test_a_channel_that_connected_before_is_not_forgotten(owner: OwnerNotices) -> None:
    telegram = RecordingChannel()
    supervisor = supervise(owner, telegram)
    up: list[ChannelName] = []

    async def came_up(name: ChannelName) -> None:
        up.append(name)

    async with running(supervisor):
        telegram.health = ChannelHealth(state=ChannelState.CONNECTED)
        await supervisor.when_up(came_up)
        assert up == [TELEGRAM]


async def test_a_channel_may_connect_before_anything_waits_for_it(owner: OwnerNotices) -> None:
    telegram = RecordingChannel()
    supervisor = supervise(owner, telegram)
    async with running(supervisor):
        await owner.tell(Episode.TELEGRAM_CONFLICT, "Two of us.")
        telegram.health = ChannelHealth(state=ChannelState.CONNECTED)
        supervisor.health_changed(telegram)
        await eventually(lambda: not owner.is_open(Episode.TELEGRAM_CONFLICT))


async def test_a_conflict_is_told_to_the_owner_once_and_again_after_it_was_over(
    store: Database, owner: OwnerNotices
) -> None:
    telegram = RecordingChannel()
    supervisor = supervise(owner, telegram)

    async def become(state: ChannelState, *, told: bool) -> None:
        telegram.health = ChannelHealth(state=state)
        supervisor.health_changed(telegram)
        await eventually(lambda: owner.is_open(Episode.TELEGRAM_CONFLICT) is told)

    async with running(supervisor):
        await become(ChannelState.CONFLICT, told=True)
        await become(ChannelState.CONFLICT, told=True)
        await become(ChannelState.CONNECTED, told=False)
        await become(ChannelState.CONFLICT, told=True)
        async with asyncio.timeout(10):
            while len(await rows_of(store, deliveries)) < 2:  # noqa: ASYNC110
                await asyncio.sleep(0.005)

    first, second = await rows_of(store, deliveries)
    assert (
        first.text
        == second.text
        == ("Another program polls Telegram with the same bot token. Stop one of the two.")
    )


async def test_a_stop_ends_every_channel(owner: OwnerNotices) -> None:
    telegram, whatsapp = RecordingChannel(), RecordingChannel(WHATSAPP)
    async with running(supervise(owner, telegram, whatsapp)):
        await eventually(lambda: telegram.runs == whatsapp.runs == 1)

    names = {task.get_name() for task in asyncio.all_tasks()}
    assert not any(name.startswith("channel") for name in names)
