"""The `gateway` command: what people type, what scripts read, and the exit codes."""

import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated

import typer

from gateway.errors import GatewayError, SettingsError

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from gateway.front import Options
    from gateway.settings import Settings

app = typer.Typer(
    help="A chat gateway for what must not be forgotten.",
    no_args_is_help=False,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for scripts.")]
Limit = Annotated[int, typer.Option("--limit", min=1, max=100_000, help="How many at most.")]

Records = list[dict[str, object]]


@app.callback(invoke_without_command=True)
def start(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Show the version.")] = False,
) -> None:
    """Without a command: the same as `gateway run`."""
    if version:
        from importlib.metadata import version as installed_version

        typer.echo(installed_version("chat-gateway"))
        raise typer.Exit
    if context.invoked_subcommand is None:
        run()


@app.command()
def run(
    restore: Annotated[
        bool,
        typer.Option("--restore", help="Put the newest good copy in place of a damaged database."),
    ] = False,
    start_empty: Annotated[
        bool,
        typer.Option(
            "--start-empty", help="Set a damaged database aside and begin with an empty one."
        ),
    ] = False,
) -> None:
    """Run the gateway with all configured channels, until it is stopped."""
    from gateway.front import Damage, Options

    if restore and start_empty:
        raise SettingsError(["Give only one of --restore and --start-empty."])
    damage = Damage.REFUSE
    if restore:
        damage = Damage.RESTORE
    elif start_empty:
        damage = Damage.START_EMPTY
    _serve(Options(damage=damage))


@app.command()
def chat(
    linger: Annotated[
        float,
        typer.Option(
            min=0.0, max=86_400.0, help="Seconds to stay after the end of input, for reminders."
        ),
    ] = 0.0,
) -> None:
    """Chat in this terminal, or with a script on standard input."""
    from gateway.front import Options

    _serve(Options(is_chat=True, linger=linger))


@app.command()
def status(as_json: AsJson = False) -> None:
    """Show whether the gateway runs, and how it is."""
    from gateway.engine.admin import ask_gateway
    from gateway.places import Places
    from gateway.reports import stopped_status, write_status

    settings = _settings()
    record = ask_gateway(Places(settings.gateway_data_dir).admin_socket, {"command": "status"})
    if record is None:
        record = stopped_status(settings)
    elif "error" in record:
        raise GatewayError(str(record["error"]))
    _print(json.dumps(record) if as_json else write_status(record))


@app.command()
def reminders(as_json: AsJson = False, limit: Limit = 50) -> None:
    """List reminders, newest first, in every state."""
    from gateway.reports import write_reminders
    from gateway.store.listings import reminder_records

    _list(lambda c: reminder_records(c, limit=limit), write_reminders, as_json=as_json)


@app.command()
def turns(as_json: AsJson = False, limit: Limit = 50) -> None:
    """List turns, newest first, with what became of run and delivery."""
    from gateway.reports import write_turns
    from gateway.store.listings import turn_records

    _list(lambda c: turn_records(c, limit=limit), write_turns, as_json=as_json)


@app.command()
def deliveries(as_json: AsJson = False, limit: Limit = 50) -> None:
    """List deliveries, newest first, with their chunks."""
    from gateway.reports import write_deliveries
    from gateway.store.listings import delivery_records

    _list(lambda c: delivery_records(c, limit=limit), write_deliveries, as_json=as_json)


@app.command()
def pair(
    code: Annotated[str | None, typer.Argument(help="The code that the person was given.")] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Ask nothing.")] = False,
    show: Annotated[bool, typer.Option("--list", help="List who was let in.")] = False,
    revoke: Annotated[
        str | None, typer.Option(help="Put somebody out again: telegram:123.")
    ] = None,
) -> None:
    """Let somebody in who was given a pairing code."""
    from gateway.pairing import admit, list_everybody, put_out

    settings = _settings()
    if show:
        _print(list_everybody(settings))
    elif revoke is not None:
        _print(put_out(settings, revoke))
    elif code is not None:
        _print(admit(settings, code, ask=None if yes else _confirm))
    else:
        raise SettingsError(["Give the code that the person was shown: gateway pair CODE"])


def main() -> None:
    """Run the command; every failure is one plain sentence and an exit code."""
    _fill_standard_streams()
    try:
        app()
    except GatewayError as error:
        print(error, file=sys.stderr)  # noqa: T201 - the command's own output
        sys.exit(error.exit_code)


def _fill_standard_streams() -> None:
    """Open what our parent closed: the next file to be opened would get its number, and with it
    whatever is written there.
    """
    if sys.stdin is None:
        sys.stdin = os.fdopen(os.open(os.devnull, os.O_RDONLY))
    if sys.stdout is None:
        sys.stdout = os.fdopen(os.open(os.devnull, os.O_WRONLY), "w")
    if sys.stderr is None:
        sys.stderr = os.fdopen(os.open(os.devnull, os.O_WRONLY), "w")


def _print(text: str) -> None:
    """Write to standard output. Raises GatewayError when it takes nothing, and ends quietly when
    nobody reads it any more.
    """
    try:
        typer.echo(text)
    except OSError as error:
        # What is left in the buffer would fail once more at the exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):
            sys.exit(1)
        raise GatewayError(f"The output could not be written: {error.strerror}.") from error


def _settings() -> "Settings":
    from gateway.settings import load_settings

    settings = load_settings(os.environ, cwd=Path.cwd())
    for warning in settings.warnings:
        typer.echo(warning, err=True)
    return settings


def _serve(options: "Options") -> None:
    import asyncio

    from gateway.app import run_gateway
    from gateway.front import opens_console
    from gateway.logs import configure_logging

    settings = _settings()
    level = settings.gateway_log_level
    if opens_console(settings, options) and level == "INFO":
        level = "WARNING"  # the log shares the terminal with the conversation
    secrets = [
        secret.get_secret_value()
        for secret in (settings.telegram_bot_token, settings.model_api_key)
        if secret is not None
    ]
    configure_logging(level, settings.gateway_log_format, secrets=secrets)
    _leave_on_signals()
    asyncio.run(run_gateway(settings, options, dict(os.environ)))


def _leave_on_signals() -> None:
    """A stop that comes before the gateway can stop in order, or when it has, is a stop too."""

    def leave(number: int, frame: FrameType | None) -> None:
        raise SystemExit(0)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, leave)


def _list(
    query: Callable[["Connection"], Records], write: Callable[[Records, str], str], *, as_json: bool
) -> None:
    from gateway.reports import read_store

    settings = _settings()
    records = read_store(settings, query)
    _print(json.dumps(records) if as_json else write(records, settings.gateway_timezone))


def _confirm(question: str) -> bool:
    """Ask on the terminal; without one the answer is no."""
    if not sys.stdin.isatty():
        raise GatewayError(f"{question} Say yes with --yes; there is no terminal to ask on.")
    return typer.confirm(question)
