"""The workers behind the channels: built, started, and stopped in order."""

import asyncio
import contextlib
import logging
import os
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass

from extensions.schedule import make_extension
from gateway.engine.admin import AdminServer
from gateway.engine.alarm import AlarmClock
from gateway.engine.intake import Intake
from gateway.engine.outbox import Outbox
from gateway.engine.router import Router, RouterRules
from gateway.engine.scheduler import Scheduler
from gateway.engine.toolserver import ToolServer, bind_private_socket, make_server
from gateway.errors import SettingsError
from gateway.front import Gateway
from gateway.hosts.base import Deadlines, Host, HostKind
from gateway.hosts.launch import ModelAccess, builtin_launch, pi_launch
from gateway.hosts.ledger import ProcessLedger
from gateway.hosts.pi import RpcHost
from gateway.hosts.pool import HostPool, PoolLimits
from gateway.live import answers_of, start_chores
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
    gateway: Gateway, intake: Intake, environ: Mapping[str, str]
) -> AsyncIterator[Backstage]:
    """Start the workers; at the end stop them in order: scheduler, turns, sessions, outbox."""
    backstage = _build(gateway, environ)
    if await backstage.ledger.reap_leftovers():
        log.warning("leftovers_reaped")
    server = make_server(backstage.tools)
    listener = bind_private_socket(gateway.places.tool_socket)
    serving = asyncio.create_task(server.serve(sockets=[listener]), name="toolserver")
    admin = AdminServer(answers_of(gateway, backstage, intake))
    await admin.start(bind_private_socket(gateway.places.admin_socket))
    gateway.supervisor.when_up(backstage.outbox.channel_is_up)
    backstage.alarm.start()
    start_chores(gateway, backstage.alarm)
    await backstage.outbox.look(gateway.served)
    await backstage.router.look(gateway.served)
    scheduling = asyncio.create_task(backstage.scheduler.run(), name="scheduler")
    log.info("started", extra={"host": backstage.host.kind})
    try:
        yield backstage
    finally:
        await admin.close()
        backstage.alarm.stop()
        scheduling.cancel()
        await asyncio.gather(scheduling, return_exceptions=True)
        await backstage.router.close(gateway.patience, grace=_RUN_GRACE)
        await backstage.pool.close(_POOL_GRACE)
        server.should_exit = True
        await asyncio.gather(serving, return_exceptions=True)
        await backstage.outbox.close(gateway.patience, grace=_SEND_GRACE)
        for path in (gateway.places.tool_socket, gateway.places.admin_socket):
            path.unlink(missing_ok=True)


def _build(gateway: Gateway, environ: Mapping[str, str]) -> Backstage:
    settings = gateway.settings
    ledger = ProcessLedger(gateway.places.processes)
    host = _build_host(settings, gateway.places, ledger, environ)
    extension = make_extension(gateway.database, gateway.access.admits_chat)
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
    router = Router(
        gateway.database,
        pool,
        tools,
        gateway.clock,
        (gateway.typing, gateway.owner),
        RouterRules(
            owner_id=f"{os.uname().nodename}:{os.getpid()}",
            timezone=settings.gateway_timezone,
            cuts=gateway.cuts,
        ),
    )
    outbox = Outbox(
        gateway.database,
        gateway.channels,
        gateway.access,
        gateway.clock,
        gateway.typing,
        expiry=settings.delivery_expiry,
    )
    alarm = AlarmClock()
    rules = FireRules(
        channels=gateway.served,
        cut=lambda chat: gateway.cuts[chat.channel],
        admits=gateway.access.admits_chat,
    )
    return Backstage(
        host=host,
        ledger=ledger,
        pool=pool,
        tools=tools,
        router=router,
        outbox=outbox,
        alarm=alarm,
        scheduler=Scheduler(gateway.database, rules, gateway.clock, alarm),
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
    elif kind is HostKind.ACP:
        raise SettingsError(
            ["HOST_KIND=acp is not available yet. Use HOST_KIND=builtin, pi or offline."]
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
