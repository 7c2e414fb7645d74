"""How each host that speaks the RPC dialect is started: command line and environment."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import gateway
from gateway.hosts.base import HostKind, SessionSpec
from gateway.hosts.process import Command, with_parent_death_signal

# Stands for the session's directory among a launch's arguments.
DIRECTORY = "{directory}"

TOKEN_VARIABLE = "GATEWAY_TOOL_TOKEN"  # noqa: S105
SOCKET_VARIABLE = "GATEWAY_TOOL_SOCKET"

_INHERITED = frozenset(
    {"PATH", "LANG", "TZ", "TMPDIR", "SSL_CERT_FILE", "SSL_CERT_DIR"}
    | {f"{scheme}_PROXY" for scheme in ("HTTP", "HTTPS", "ALL", "NO")}
)

# Pi reads a provider's key under the provider's own name; only these do not follow the rule.
_PI_KEY_VARIABLES = {"google": "GEMINI_API_KEY", "huggingface": "HF_TOKEN"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelAccess:
    """Which model a host calls, and with which key."""

    provider: str
    name: str
    base_url: str | None = None
    api_key: str | None = field(default=None, repr=False)
    context_window: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """How to start one kind of host.

    `resume_arguments` make a session keep its transcript in its directory and go on with it,
    `ephemeral_arguments` make it keep none; in both DIRECTORY stands for the directory.
    `is_own_child` says that it is our own Python child: it sees to its end with its parent, and
    its prompts carry the facts besides the prose.
    """

    command: tuple[str, ...]
    environment: Mapping[str, str] = field(repr=False)
    resume_arguments: tuple[str, ...]
    ephemeral_arguments: tuple[str, ...]
    is_own_child: bool

    def command_for(self, spec: SessionSpec) -> Command:
        """Fill in what one session needs: its directory and its way back to the tools."""
        own = self.ephemeral_arguments if spec.is_ephemeral else self.resume_arguments
        directory = str(spec.directory)
        arguments = (
            *self.command,
            *(directory if argument == DIRECTORY else argument for argument in own),
        )
        return Command(
            arguments=arguments if self.is_own_child else with_parent_death_signal(arguments),
            environment={
                **self.environment,
                TOKEN_VARIABLE: spec.tool_token,
                SOCKET_VARIABLE: str(spec.tool_address),
            },
            directory=spec.directory,
        )


def builtin_launch(
    *,
    inherited: Mapping[str, str],
    model: ModelAccess | None = None,
    prompt_file: Path | None = None,
    silence: float = 120.0,
) -> Launch:
    """Start our own child: `offline` without a model, else `builtin`.

    `inherited` is the gateway's environment, of which only an allowlist is passed on; the home
    directory is not among it, since HTTP clients look for keys there. `silence` is how many
    seconds a model may say nothing.
    """
    kind = HostKind.OFFLINE if model is None else HostKind.BUILTIN
    environment = {
        **pick_inherited(inherited),
        "HOST_KIND": kind.value,
        "PYTHONPATH": str(Path(gateway.__file__).parents[1]),
        "PYTHONUTF8": "1",
    }
    if prompt_file is not None:
        environment["HOST_PROMPT_FILE"] = str(prompt_file)
    if model is not None:
        environment.update(_model_environment(model))
    return Launch(
        command=(
            *(sys.executable, "-P", "-m", "gateway.hosts.builtin"),
            *("--silence", f"{silence:g}"),
        ),
        environment=environment,
        resume_arguments=("--session-dir", DIRECTORY),
        ephemeral_arguments=("--session-dir", DIRECTORY, "--no-session"),
        is_own_child=True,
    )


def pi_launch(
    *,
    command: tuple[str, ...],
    inherited: Mapping[str, str],
    agent_directory: Path,
    model: ModelAccess | None = None,
    prompt_file: Path | None = None,
    extension: Path | None = None,
) -> Launch:
    """Start Pi with nothing of its own: no tools, skills, templates, themes or context files.

    `agent_directory` is where Pi keeps settings and keys, shared by all sessions. Without a model
    Pi takes the one from its own settings. `extension` is loaded although discovery is off.
    """
    arguments = [*command, "--mode", "rpc"]
    if model is not None:
        arguments += ["--model", f"{model.provider}/{model.name}"]
    arguments += ["-nbt", "-ne", "-ns", "-np", "-nc", "--no-themes"]
    if extension is not None:
        arguments += ["-e", str(extension)]
    if prompt_file is not None:
        arguments += ["--system-prompt", str(prompt_file)]
    environment = {
        **pick_inherited(inherited, "HOME"),
        "PI_CODING_AGENT_DIR": str(agent_directory),
        "PI_OFFLINE": "1",
    }
    if model is not None and model.api_key is not None:
        environment[_pi_key_variable(model.provider)] = model.api_key
    return Launch(
        command=tuple(arguments),
        environment=environment,
        resume_arguments=("--session-dir", DIRECTORY, "--continue"),
        ephemeral_arguments=("--no-session",),
        is_own_child=False,
    )


def pick_inherited(environment: Mapping[str, str], *also: str) -> dict[str, str]:
    """Return what a host may see of the gateway's environment: never a bot's token."""
    return {
        name: value
        for name, value in environment.items()
        if name.upper() in _INHERITED or name.startswith("LC_") or name in also
    }


def _model_environment(model: ModelAccess) -> dict[str, str]:
    values = {
        "MODEL_PROVIDER": model.provider,
        "MODEL_NAME": model.name,
        "MODEL_BASE_URL": model.base_url,
        "MODEL_API_KEY": model.api_key,
        "MODEL_CONTEXT_WINDOW": None if model.context_window is None else str(model.context_window),
    }
    return {name: value for name, value in values.items() if value}


def _pi_key_variable(provider: str) -> str:
    usual = f"{provider.upper().replace('-', '_')}_API_KEY"
    return _PI_KEY_VARIABLES.get(provider, usual)
