"""The workers behind the channels: built, started, and stopped in order."""

import asyncio
import contextlib
import logging
import os
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass

from extensions.schedule import make_extension
from gateway.chores import Chores
from gateway.domain.heartbeat import HeartbeatRules
from gateway.engine.admin import AdminServer
from gateway.engine.alarm import AlarmClock
from gateway.engine.intake import Intake
from gateway.engine.outbox import Outbox
from gateway.engine.router import Router, RouterRules
from gateway.engine.scheduler import Scheduler
from gateway.engine.toolserver import ToolServer, bind_private_socket, make_server
from gateway.front import Gateway
from gateway.hosts.base import Deadlines, Host, HostKind
from gateway.hosts.launch import ModelAccess, builtin_launch, pi_launch
from gateway.hosts.ledger import ProcessLedger
from gateway.hosts.pi import RpcHost
from gateway.hosts.pool import HostPool, PoolLimits
from gateway.live import LiveAnswers
from gateway.places import Places
from gateway.settings import Settings
from gateway.store.firing import FireRules

log = logging.getLogger(__name__)

_RUN_GRACE = 4.0
_POOL_GRACE = 2.0
_SEND_GRACE = 3.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Backstage:
    """What answers: the host and all that surrounds it."""

    host: Host
    ledger: ProcessLedger
    pool: HostPool
    tools: ToolServer
    router: Router
    outbox: Outbox
    alarm: AlarmClock
    scheduler: Scheduler


@contextlib.asynccontextmanager
async def backstage_running(
    gateway: Gateway,
    intake: Intake,
    environ: Mapping[str, str],
    meet: Callable[[Backstage], None],
) -> AsyncIterator[None]:
    """Start the workers; at the end stop them: scheduler, turns, sessions, tools, outbox.

    `meet` is told who they are before the first of them works.
    """
    backstage = _build(gateway, environ)
    if await backstage.ledger.reap_leftovers():
        log.warning("leftovers_reaped")
    async with contextlib.AsyncExitStack() as stops:
        # Stopped in the opposite order of what is written here.
        stops.push_async_callback(backstage.outbox.close, gateway.patience, grace=_SEND_GRACE)
        await stops.enter_async_context(_tools_served(backstage.tools, gateway.places))
        stops.push_async_callback(backstage.pool.close, _POOL_GRACE)
        stops.push_async_callback(backstage.router.close, gateway.patience, grace=_RUN_GRACE)
        await stops.enter_async_context(_jobs_fired(gateway, backstage))
        await stops.enter_async_context(_admin_served(gateway, backstage, intake))
        meet(backstage)
        await gateway.supervisor.when_up(backstage.outbox.channel_is_up)
        await backstage.outbox.look(gateway.served)
        await backstage.router.look(gateway.served)
        log.info("started", extra={"host": backstage.host.kind})
        yield


@contextlib.asynccontextmanager
async def _tools_served(tools: ToolServer, places: Places) -> AsyncIterator[None]:
    server = make_server(tools)
    listener = bind_private_socket(places.tool_socket)
    serving = asyncio.create_task(server.serve(sockets=[listener]), name="toolserver")
    try:
        yield
    finally:
        server.should_exit = True
        await asyncio.gather(serving, return_exceptions=True)
        places.tool_socket.unlink(missing_ok=True)


@contextlib.asynccontextmanager
async def _jobs_fired(gateway: Gateway, backstage: Backstage) -> AsyncIterator[None]:
    backstage.alarm.start()
    Chores(gateway).start(backstage.alarm)
    scheduling = asyncio.create_task(backstage.scheduler.run(), name="scheduler")
    try:
        yield
    finally:
        backstage.alarm.stop()
        scheduling.cancel()
        await asyncio.gather(scheduling, return_exceptions=True)


@contextlib.asynccontextmanager
async def _admin_served(
    gateway: Gateway, backstage: Backstage, intake: Intake
) -> AsyncIterator[None]:
    admin = AdminServer(LiveAnswers(gateway, backstage, intake).by_command())
    await admin.start(bind_private_socket(gateway.places.admin_socket))
    try:
        yield
    finally:
        await admin.close()
        gateway.places.admin_socket.unlink(missing_ok=True)


def _build(gateway: Gateway, environ: Mapping[str, str]) -> Backstage:
    settings = gateway.settings
    ledger = ProcessLedger(gateway.places.processes)
    host = _build_host(settings, gateway.places, ledger, environ)
    rules = FireRules(
        channels=gateway.served,
        cut=lambda chat: gateway.cuts[chat.channel],
        admits=gateway.access.admits_chat,
        heartbeat=_heartbeat_rules(settings),
    )
    extension = make_extension(gateway.database, rules)
    tools = ToolServer(gateway.database, [extension], gateway.clock)
    pool = HostPool(
        host,
        root=gateway.places.sessions,
        tool_address=gateway.places.tool_socket,
        tokens=tools,
        limits=PoolLimits(
            capacity=settings.host_max_processes,
            idle_timeout=settings.host_idle_timeout.total_seconds(),
        ),
    )
    alarm = AlarmClock()
    return Backstage(
        host=host,
        ledger=ledger,
        pool=pool,
        tools=tools,
        router=_build_router(gateway, pool, tools),
        outbox=Outbox(
            gateway.database,
            gateway.channels,
            gateway.access,
            gateway.clock,
            gateway.typing,
            expiry=settings.delivery_expiry,
        ),
        alarm=alarm,
        scheduler=Scheduler(gateway.database, rules, gateway.clock, alarm),
    )


def _build_router(gateway: Gateway, pool: HostPool, tools: ToolServer) -> Router:
    rules = RouterRules(
        owner_id=f"{os.uname().nodename}:{os.getpid()}",
        timezone=gateway.settings.gateway_timezone,
        cuts=gateway.cuts,
        admits=gateway.access.admits_chat,
        silence=gateway.settings.heartbeat_interval,
    )
    notices = (gateway.typing, gateway.owner)
    return Router(gateway.database, pool, tools, gateway.clock, notices, rules)


def _heartbeat_rules(settings: Settings) -> HeartbeatRules | None:
    silence = settings.heartbeat_silence
    if silence is None:
        return None
    return HeartbeatRules(
        interval=silence,
        quiet_hours=settings.heartbeat_quiet_hours,
        daily_cap=settings.heartbeat_daily_cap,
        timezone=settings.gateway_timezone,
    )


def _build_host(
    settings: Settings, places: Places, ledger: ProcessLedger, environ: Mapping[str, str]
) -> Host:
    deadlines = Deadlines(
        silence=settings.host_silence_timeout.total_seconds(),
        turn=settings.host_turn_timeout.total_seconds(),
    )
    kind = HostKind(settings.resolved_host_kind)
    model = _model_access(settings)
    if kind is HostKind.PI:
        launch = pi_launch(
            command=settings.host_command or ("pi",),
            inherited=environ,
            agent_directory=places.directory / "pi",
            model=model,
            prompt_file=settings.host_prompt_file,
        )
    else:
        launch = builtin_launch(
            inherited=environ,
            model=model if kind is HostKind.BUILTIN else None,
            prompt_file=settings.host_prompt_file,
            silence=deadlines.silence,
        )
    name = None if kind is HostKind.OFFLINE else settings.model_name
    return RpcHost(kind, launch, ledger=ledger, model=name, deadlines=deadlines)


def _model_access(settings: Settings) -> ModelAccess | None:
    if settings.model_name is None:
        return None
    key = settings.model_api_key
    return ModelAccess(
        provider=settings.model_provider,
        name=settings.model_name,
        base_url=settings.model_base_url,
        api_key=None if key is None else key.get_secret_value(),
        context_window=settings.model_context_window,
    )
