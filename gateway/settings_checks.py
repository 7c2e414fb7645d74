"""What settings must be true of each other, once each is right by itself."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import TYPE_CHECKING

from gateway.settings_values import shown

if TYPE_CHECKING:
    from gateway.settings import Settings


def contradictions(settings: Settings, doubtful: Collection[str]) -> Iterator[str]:
    """What does not fit together, as far as it rests on no setting that is `doubtful`."""
    for names, check in _CHECKS:
        if names.isdisjoint(doubtful) and (problem := check(settings)):
            yield problem


def _host_can_start(settings: Settings) -> str | None:
    if settings.host_kind == "acp":
        return "HOST_KIND: acp is not available yet; write builtin, pi, offline or auto"
    if settings.model_name or settings.host_kind in {"auto", "offline"}:
        return None
    if settings.host_kind == "builtin":
        return "MODEL_NAME: HOST_KIND=builtin needs it; name a model, or set HOST_KIND=auto"
    if settings.host_command:
        return None
    return "HOST_COMMAND: HOST_KIND=pi needs it or MODEL_NAME; set one of them"


def doubts(settings: Settings) -> Iterator[str]:
    """What will hardly work, although it might."""
    has_way = settings.model_base_url or settings.model_api_key
    if settings.resolved_host_kind == "builtin" and not has_way:
        yield (
            f"MODEL_API_KEY: {settings.model_provider} needs one;"
            " set it, or MODEL_BASE_URL for a model server of your own"
        )


def _builtin_knows_provider(settings: Settings) -> str | None:
    if settings.resolved_host_kind != "builtin":
        return None
    if settings.model_provider in {"openai", "anthropic"}:
        return None
    provider = shown(settings.model_provider)
    return f"MODEL_PROVIDER: the builtin host does not know {provider}; write openai or anthropic"


def _tools_are_confined(settings: Settings) -> str | None:
    if settings.host_tools == "none":
        return None
    if settings.host_tools_unsandboxed or settings.host_sandbox != "none":
        return f"HOST_TOOLS: {settings.host_tools} is not available yet; write none"
    return (
        f"HOST_TOOLS: {settings.host_tools} gives the model the rights of the gateway's own"
        " account; set HOST_SANDBOX=bubblewrap, or HOST_TOOLS_UNSANDBOXED=true to accept that"
    )


def _owner_is_allowed(settings: Settings) -> str | None:
    if settings.gateway_owner is None:
        return None
    channel, _, address = settings.gateway_owner.partition(":")
    if channel == "telegram":
        allowed, is_pairing = settings.telegram_allowlist, settings.telegram_pairing
    else:
        allowed, is_pairing = settings.whatsapp_allowlist, False
    if address in allowed or is_pairing:
        return None
    return f"GATEWAY_OWNER: {address} is not allowed; add it to {channel.upper()}_ALLOWLIST"


_CHECKS: tuple[tuple[frozenset[str], Callable[[Settings], str | None]], ...] = (
    (frozenset({"host_kind", "host_command", "model_name"}), _host_can_start),
    (frozenset({"host_kind", "model_name", "model_provider"}), _builtin_knows_provider),
    (
        frozenset({"host_tools", "host_tools_unsandboxed", "host_sandbox"}),
        _tools_are_confined,
    ),
    (
        frozenset(
            {"gateway_owner", "telegram_allowlist", "telegram_pairing", "whatsapp_allowlist"}
        ),
        _owner_is_allowed,
    ),
)
