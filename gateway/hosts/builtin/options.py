"""How a child is told what to be: flags for the session, the environment for the rest."""

from argparse import ArgumentParser
from collections.abc import MutableMapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from gateway.hosts.builtin.dialect import with_scheme

_SECRETS = ("MODEL_API_KEY", "GATEWAY_TOOL_TOKEN", "GATEWAY_TOOL_SOCKET")
_DEFAULT_WINDOW_TOKENS = 32_768


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelOptions:
    """Which model, and how to reach it."""

    provider: str
    name: str
    base_url: str | None
    key: str | None = field(repr=False)
    window_tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """All that a child is told at its start; `model` is None for the grammar.

    `directory` is None for a session that keeps no transcript.
    """

    directory: Path | None
    silence_seconds: float
    model: ModelOptions | None
    tool_socket: Path | None
    tool_token: str = field(repr=False)
    persona_file: Path | None


def read_options(argv: Sequence[str], environ: MutableMapping[str, str]) -> Options:
    """Return the options and take the secrets out of `environ`; exits 2 on wrong usage."""
    parser = ArgumentParser(prog="python -m gateway.hosts.builtin")
    parser.add_argument("--session-dir", type=Path, required=True)
    parser.add_argument("--no-session", action="store_true")
    parser.add_argument("--silence", type=float, default=120.0, metavar="SECONDS")
    flags = parser.parse_args(argv)
    secrets = {name: environ.pop(name, "") for name in _SECRETS}
    kind = environ.get("HOST_KIND", "offline")
    if kind not in {"offline", "builtin"}:
        parser.error(f"HOST_KIND is {kind!r}, not offline or builtin")
    try:
        model = _read_model(environ, secrets["MODEL_API_KEY"]) if kind == "builtin" else None
    except ValueError as error:
        parser.error(str(error))
    return Options(
        directory=None if flags.no_session else flags.session_dir,
        silence_seconds=flags.silence,
        model=model,
        tool_socket=_path(secrets["GATEWAY_TOOL_SOCKET"]),
        tool_token=secrets["GATEWAY_TOOL_TOKEN"],
        persona_file=_path(environ.get("HOST_PROMPT_FILE", "")),
    )


def _read_model(environ: MutableMapping[str, str], key: str) -> ModelOptions:
    provider = environ.get("MODEL_PROVIDER") or "openai"
    if provider not in {"openai", "anthropic"}:
        raise ValueError(f"MODEL_PROVIDER is {provider!r}, not openai or anthropic")
    name = environ.get("MODEL_NAME", "")
    if not name:
        raise ValueError("MODEL_NAME is not set")
    window = environ.get("MODEL_CONTEXT_WINDOW") or str(_DEFAULT_WINDOW_TOKENS)
    if not window.isdecimal() or int(window) == 0:
        raise ValueError(f"MODEL_CONTEXT_WINDOW is {window!r}, not a number of tokens")
    base_url = environ.get("MODEL_BASE_URL") or None
    if base_url is not None and not _is_usable(base_url):
        raise ValueError("MODEL_BASE_URL is not an address of an HTTP server")
    return ModelOptions(
        provider=provider,
        name=name,
        base_url=base_url,
        key=key or None,
        window_tokens=int(window),
    )


def _is_usable(base_url: str) -> bool:
    try:
        parts = urlsplit(with_scheme(base_url))
        return parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def _path(value: str) -> Path | None:
    return Path(value) if value else None
