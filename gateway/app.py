"""The composition root: opens the store, starts everything, stops it in order; decides nothing."""

import asyncio
import contextlib
import importlib
import logging
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from gateway.channels.base import Channel, Target
from gateway.domain.chunking import RichText
from gateway.domain.message import ChannelName, ChatKey
from gateway.engine import texts
from gateway.engine.answers import Done
from gateway.engine.intake import Intake, IntakeRules
from gateway.engine.lanes import Patience
from gateway.errors import CorruptDatabaseError, SettingsError
from gateway.front import Damage, Gateway, Options, build_gateway, layout_of
from gateway.places import token_lock_path
from gateway.settings import Settings
from gateway.store.ending import Notice, recover_turns
from gateway.store.opening import (
    FileLock,
    Layout,
    lock_data_directory,
    make_data_directory,
    open_database,
    restore_newest,
    set_aside,
)
from gateway.store.removal import pause_not_allowed
from gateway.store.sending import SendRules, recover_sends

if TYPE_CHECKING:
    from gateway.wiring import Backstage

log = logging.getLogger(__name__)

_HEAD_START = 0.01


async def run_gateway(settings: Settings, options: Options, environ: Mapping[str, str]) -> None:
    """Run until stopped; returns after SIGTERM, SIGINT, or the end of the console's input.

    Raises GatewayError with the exit code for everything that keeps it from running.
    """
    directory = settings.gateway_data_dir
    stop, patience = asyncio.Event(), Patience()
    with _signals(stop, patience), _data_directory(directory):
        database = open_database(_prepare_layout(settings, options))
        try:
            async with _token_lock(settings, options) as holder:
                gateway = await build_gateway(settings, options, database, holder)
                await _run(replace(gateway, stop=stop, patience=patience), environ)
        finally:
            await database.close()


@contextlib.contextmanager
def _data_directory(directory: Path) -> Iterator[None]:
    """Have the data directory for this process alone."""
    try:
        make_data_directory(directory)
        lock = lock_data_directory(directory)
    except OSError as error:
        raise SettingsError(
            [f"GATEWAY_DATA_DIR: {directory} cannot be used: {error.strerror}. Name another one."]
        ) from error
    try:
        yield
    finally:
        lock.release()


def _prepare_layout(settings: Settings, options: Options) -> Layout:
    layout = layout_of(settings)
    match options.damage:
        case Damage.RESTORE:
            copy = restore_newest(layout)
            log.warning("database_restored", extra={"copy": str(copy)})
        case Damage.START_EMPTY:
            aside = set_aside(layout)
            log.warning("database_set_aside", extra={"path": str(aside)})
        case Damage.REFUSE:
            pass
    return layout


@contextlib.asynccontextmanager
async def _token_lock(settings: Settings, options: Options) -> AsyncIterator[str | None]:
    """Hold the bot token's lock; yields who else holds it, or None when it is ours."""
    token = settings.telegram_bot_token
    if token is None or options.is_chat:
        yield None
        return
    lock = FileLock(token_lock_path(token.get_secret_value()))
    holder = await asyncio.to_thread(lock.acquire)
    try:
        yield None if holder is None else f"process {holder}" if holder else "another process"
    finally:
        lock.release()


@dataclass(slots=True)
class _Late:
    """Stands for the router in the intake, which is ready before it."""

    backstage: "Backstage | None" = None

    def meet(self, backstage: "Backstage") -> None:
        """The workers are about to start."""
        self.backstage = backstage

    async def follow(self, done: Done, chat: ChatKey) -> None:
        """Do what a committed command asks of running sessions."""
        if self.backstage is None:
            return  # no worker was started yet, so there is nothing to abort
        # First, since it dooms the session that is lent out, and no later one.
        if done.begins_session:
            await self.backstage.pool.evict(chat)
        await self.backstage.router.abort(done.abort)


async def _run(gateway: Gateway, environ: Mapping[str, str]) -> None:
    """Start the channels first, so that they connect while the rest is made."""
    damaged: list[CorruptDatabaseError] = []

    def on_damage(error: CorruptDatabaseError) -> None:
        damaged.append(error)
        gateway.stop.set()

    gateway.database.on_damage = on_damage
    await _recover(gateway)
    late = _Late()
    intake = _build_intake(gateway, late)
    channels = asyncio.create_task(gateway.supervisor.run(intake.receive), name="channels")
    try:
        # The channels' first requests go out before the imports below compete with theirs.
        await asyncio.sleep(_HEAD_START)
        wiring = await asyncio.to_thread(importlib.import_module, "gateway.wiring")
        async with wiring.backstage_running(gateway, intake, environ, late.meet):
            try:
                await _until_stopped(gateway, channels)
            finally:
                await intake.close()
    finally:
        channels.cancel()
        await asyncio.gather(channels, return_exceptions=True)
        for channel in gateway.channels.values():
            await channel.close()
    if damaged:
        raise damaged[0]


async def _until_stopped(gateway: Gateway, channels: "asyncio.Task[None]") -> None:
    """Return when asked to stop, or when the channels end; intake is stopped then."""
    stopping = asyncio.create_task(gateway.stop.wait(), name="stop")
    await asyncio.wait({channels, stopping}, return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()
    if channels.done():
        channels.result()
        return
    log.info("stopping", extra={"reason": "asked to"})
    channels.cancel()
    await asyncio.gather(channels, return_exceptions=True)


def _build_intake(gateway: Gateway, late: _Late) -> Intake:
    rules = IntakeRules(
        timezone=gateway.settings.gateway_timezone,
        host=gateway.settings.resolved_host_kind,
        max_age=gateway.settings.gateway_max_message_age,
        heartbeat=gateway.settings.heartbeat_silence,
        cuts=gateway.cuts,
        follow=late.follow,
        say=_saying(gateway.channels),
    )
    return Intake(gateway.database, gateway.access, gateway.clock, gateway.owner, rules)


def _saying(channels: Mapping[ChannelName, Channel]) -> Callable[[ChatKey, str], Awaitable[None]]:
    """Says something to somebody who is not let in yet, so that no delivery is stored for them."""

    async def say(chat: ChatKey, text: str) -> None:
        channel = channels.get(chat.channel)
        if channel is not None:
            outcome = await channel.send(Target(address=chat.address), RichText.literal(text))
            log.info(
                "pairing_offered", extra={"chat": str(chat), "outcome": type(outcome).__name__}
            )

    return say


async def _recover(gateway: Gateway) -> None:
    """Everything that ran or was on the wire when the last gateway ended was interrupted; and who
    was taken off the allowlist meanwhile is not served any more.
    """
    now = gateway.clock.now()
    for name in gateway.served:
        cut = gateway.cuts[name]
        notice = Notice(text=texts.interrupted_text, cut=cut)
        turns = await gateway.database.insist(recover_turns, (name,), notice, now=now)
        rules = SendRules(
            account="",
            cut=cut,
            admits=gateway.access.admits_chat,
            expiry=gateway.settings.delivery_expiry,
        )
        sends = await gateway.database.insist(recover_sends, (name,), rules, now=now)
        if turns or sends:
            log.warning("recovered", extra={"channel": name, "turns": turns, "sends": sends})
    admits = gateway.access.admits_chat
    paused = await gateway.database.insist(pause_not_allowed, gateway.served, admits, now=now)
    if paused:
        log.warning("chats_not_allowed", extra={"chats": paused})


@contextlib.contextmanager
def _signals(stop: asyncio.Event, patience: Patience) -> Iterator[None]:
    """The first SIGTERM or SIGINT stops the gateway in order, also one that comes while it starts;
    a second one skips the waits.
    """
    loop = asyncio.get_running_loop()

    def on_signal() -> None:
        if stop.is_set():
            patience.hurry()
        stop.set()

    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    for number in before:
        loop.add_signal_handler(number, on_signal)
    try:
        yield
    finally:
        for number, handler in before.items():
            loop.remove_signal_handler(number)
            signal.signal(number, handler)
