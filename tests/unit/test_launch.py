"""Command lines and environments of the hosts that speak the RPC dialect."""

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from gateway.hosts.launch import (
    ModelAccess,
    builtin_launch,
    pi_launch,
    pick_inherited,
)
from tests.fakes.sessions import make_spec

OURS = {
    "PATH": "/bin",
    "HOME": "/nowhere/ada",
    "LC_TIME": "de_DE",
    "TZ": "Europe/Berlin",
    "https_proxy": "http://proxy",
    "NO_PROXY": "localhost",
    "TELEGRAM_BOT_TOKEN": "1:secret",
    "MODEL_API_KEY": "other",
    "AWS_SECRET_ACCESS_KEY": "secret",
    "PYTHONSTARTUP": "/x.py",
    "NODE_OPTIONS": "--require x",
}
MODEL = ModelAccess(
    provider="openai",
    name="small",
    base_url="http://127.0.0.1:1/v1",
    api_key="sk-1",
    context_window=8192,
)


def test_only_an_allowlist_is_inherited() -> None:
    assert set(pick_inherited(OURS)) == {"PATH", "LC_TIME", "TZ", "https_proxy", "NO_PROXY"}
    assert "HOME" in pick_inherited(OURS, "HOME")


def test_our_child_without_a_model_is_offline_and_gets_no_key() -> None:
    environment = builtin_launch(inherited=OURS).environment

    assert environment["HOST_KIND"] == "offline"
    assert not any(name.startswith("MODEL_") for name in environment)
    assert "secret" not in "".join(environment.values())


def test_our_child_with_a_model_gets_all_it_needs_to_call_it() -> None:
    launch = builtin_launch(inherited=OURS, model=MODEL, prompt_file=Path("/p.txt"))

    assert launch.environment["HOST_KIND"] == "builtin"
    assert launch.environment["MODEL_API_KEY"] == "sk-1"
    assert launch.environment["MODEL_CONTEXT_WINDOW"] == "8192"
    assert launch.environment["HOST_PROMPT_FILE"] == "/p.txt"
    assert launch.command[:4] == (sys.executable, "-P", "-m", "gateway.hosts.builtin")


def test_what_is_not_set_is_not_passed_on() -> None:
    bare = replace(MODEL, base_url=None, api_key=None, context_window=None)
    environment = builtin_launch(inherited={}, model=bare).environment

    assert {name for name in environment if name.startswith("MODEL_")} == {
        "MODEL_PROVIDER",
        "MODEL_NAME",
    }


def test_a_session_that_is_kept_names_its_directory(tmp_path: Path) -> None:
    spec = make_spec(tmp_path)
    launch = builtin_launch(inherited={})
    kept = launch.command_for(spec)
    once = launch.command_for(make_spec(tmp_path, is_ephemeral=True))

    assert kept.arguments[-2:] == ("--session-dir", str(spec.directory))
    assert once.arguments[-1] == "--no-session"
    assert kept.directory == spec.directory
    assert kept.environment["GATEWAY_TOOL_TOKEN"] == spec.tool_token


def test_pi_is_started_with_nothing_of_its_own(tmp_path: Path) -> None:
    launch = pi_launch(
        command=("node", "/pi/cli.js"),
        inherited=OURS,
        agent_directory=tmp_path / "agent",
        model=replace(MODEL, provider="anthropic"),
        prompt_file=Path("/p.txt"),
        extension=Path("/e.ts"),
    )
    arguments = launch.command_for(make_spec(tmp_path)).arguments
    start = arguments.index("node")

    directory = str(make_spec(tmp_path).directory)
    assert arguments[start:] == (
        *("node", "/pi/cli.js", "--mode", "rpc", "--model", "anthropic/small"),
        *("-nbt", "-ne", "-ns", "-np", "-nc", "--no-themes", "-e", "/e.ts"),
        *("--system-prompt", "/p.txt", "--session-dir", directory, "--continue"),
    )
    assert launch.environment["PI_OFFLINE"] == "1"
    assert launch.environment["PI_CODING_AGENT_DIR"] == str(tmp_path / "agent")
    assert "TELEGRAM_BOT_TOKEN" not in launch.environment


@pytest.mark.parametrize(
    ("provider", "variable"),
    [
        ("anthropic", "ANTHROPIC_API_KEY"),
        ("google", "GEMINI_API_KEY"),
        ("some-new", "SOME_NEW_API_KEY"),
    ],
)
def test_pi_reads_the_key_under_its_providers_name(
    tmp_path: Path, provider: str, variable: str
) -> None:
    launch = pi_launch(
        command=("pi",),
        inherited={},
        agent_directory=tmp_path,
        model=replace(MODEL, provider=provider),
    )

    assert launch.environment[variable] == "sk-1"


def test_no_secret_shows_in_a_representation(tmp_path: Path) -> None:
    launch = builtin_launch(inherited=OURS, model=MODEL)
    shown = repr((MODEL, launch, launch.command_for(make_spec(tmp_path)), make_spec(tmp_path)))

    assert "sk-1" not in shown
    assert "secret-token" not in shown
