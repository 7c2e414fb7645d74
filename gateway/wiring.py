"""Builds the model side of the gateway: host, pool, tools and router."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from extensions.schedule import make_extension
from gateway.domain.message import ChannelName, ChatKey
from gateway.engine.access import Access
from gateway.engine.clock import Clock
from gateway.engine.owner import OwnerNotices
from gateway.engine.router import Router, RouterRules
from gateway.engine.toolserver import ToolServer
from gateway.engine.typing import Typing
from gateway.errors import SettingsError
from gateway.hosts.base import Deadlines, Host, HostKind, TextDelta, ToolCall, ToolResult
from gateway.hosts.launch import ModelAccess, builtin_launch, pi_launch
from gateway.hosts.ledger import ProcessLedger
from gateway.hosts.pi import RpcHost
from gateway.hosts.pool import HostPool, PoolLimits
from gateway.places import Places
from gateway.settings import Settings
from gateway.store.database import Database
from gateway.store.deliveries import Cut


@dataclass(frozen=True, slots=True, kw_only=True)
class Backstage:
    """What answers: the host and all that surrounds it."""

    host: Host
    ledger: ProcessLedger
    pool: HostPool
    tools: ToolServer
    router: Router


@dataclass(frozen=True, slots=True, kw_only=True)
class Front:
    """What the model side needs of the rest."""

    database: Database
    access: Access
    clock: Clock
    typing: Typing
    owner: OwnerNotices
    cuts: Mapping[ChannelName, Cut]
    owner_id: str


def build_backstage(
    settings: Settings, places: Places, front: Front, environ: Mapping[str, str]
) -> Backstage:
    """Build it; nothing is started yet."""
    ledger = ProcessLedger(places.processes)
    host = _build_host(settings, places, ledger, environ)
    extension = make_extension(front.database, front.access.admits_chat)
    tools = ToolServer(front.database, [extension], front.clock)
    pool = HostPool(
        host,
        root=places.sessions,
        tool_address=places.tool_socket,
        tokens=tools,
        limits=PoolLimits(
            capacity=settings.host_max_processes,
            idle_timeout=settings.host_idle_timeout.total_seconds(),
        ),
    )
    rules = RouterRules(
        owner_id=front.owner_id,
        timezone=settings.gateway_timezone,
        cuts=front.cuts,
        observe=_observe_nothing,
    )
    router = Router(
        front.database, pool, tools, front.clock, (front.typing, front.owner), rules
    )
    return Backstage(host=host, ledger=ledger, pool=pool, tools=tools, router=router)


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


def _observe_nothing(chat: ChatKey, event: TextDelta | ToolCall | ToolResult) -> None:
    """Streaming to chats is not built; the events are notices only."""


DAILY = timedelta(days=1)
