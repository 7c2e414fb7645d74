"""The real process in a world of its own: one data directory, a clean environment, fakes around."""

import asyncio
import contextlib
import json
import os
import shlex
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import psutil

from gateway.engine.admin import ask_gateway
from gateway.places import Places
from tests.fakes.bot_api import BotApi
from tests.fakes.bot_api_updates import Json, person, private, text
from tests.fakes.model_server import FakeModelServer

ROOT = Path(__file__).parents[2]
COMMAND = (sys.executable, "-m", "gateway")
ZONE = "Europe/Berlin"
MARK = "(may be a repeat) "

LONG = 40.0
"""Seconds within which everything happens that happens at all, on a busy machine."""

_POLL = 0.02
_TAIL = 4000


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """A command that ended: its exit code and what it said."""

    code: int
    output: str
    errors: str

    def json(self) -> Any:
        return json.loads(self.output)


@dataclass(slots=True)
class Started:
    """A gateway that was started; its output goes to files, so that it never waits for us."""

    process: subprocess.Popen[bytes]
    output_path: Path
    errors_path: Path

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def output(self) -> str:
        return self.output_path.read_text("utf-8", "replace")

    @property
    def errors(self) -> str:
        return self.errors_path.read_text("utf-8", "replace")

    @property
    def is_running(self) -> bool:
        return self.process.poll() is None

    def say(self, line: str) -> None:
        """Write a line to its standard input."""
        assert self.process.stdin is not None
        self.process.stdin.write(line.encode() + b"\n")
        self.process.stdin.flush()

    def end_input(self) -> None:
        if self.process.stdin is not None:
            with contextlib.suppress(BrokenPipeError):
                self.process.stdin.close()

    async def until(self, is_so: Callable[[], bool], *, within: float = LONG) -> None:
        """Wait for a state, and show the log when it does not come."""

        def check() -> bool:
            if is_so():
                return True
            assert self.is_running, f"ended with {self.process.poll()}\n{self.errors[-_TAIL:]}"
            return False

        try:
            await until(check, within=within)
        except TimeoutError:
            raise AssertionError(
                f"not within {within} s; its log:\n{self.errors[-_TAIL:]}"
            ) from None

    async def ended(self, *, within: float = LONG) -> Ended:
        try:
            await until(lambda: not self.is_running, within=within)
        except TimeoutError:
            raise AssertionError(f"still runs; its log:\n{self.errors[-_TAIL:]}") from None
        return Ended(code=self.process.returncode, output=self.output, errors=self.errors)

    async def stop(self, number: int = signal.SIGTERM) -> Ended:
        self.process.send_signal(number)
        return await self.ended()

    async def kill(self) -> None:
        """End it as a power cut would."""
        self.process.kill()
        await until(lambda: not self.is_running)


async def until(is_so: Callable[[], bool], *, within: float = LONG) -> None:
    """Return once `is_so`. Raises TimeoutError."""
    deadline = time.monotonic() + within
    while not is_so():
        if time.monotonic() > deadline:
            raise TimeoutError
        await asyncio.sleep(_POLL)


@dataclass(slots=True, kw_only=True)
class World:
    """One data directory and what is configured around it."""

    folder: Path
    runtime: Path
    settings: dict[str, str] = field(default_factory=dict)
    started: list[Started] = field(default_factory=list)

    @property
    def data(self) -> Path:
        return self.folder / "data"

    @property
    def database(self) -> Path:
        return self.data / "gateway.db"

    def environment(self, more: Mapping[str, str] | None = None) -> dict[str, str]:
        """Nothing of our own environment but what Python and the coverage measurement need."""
        kept = {k: v for k, v in os.environ.items() if k == "PATH" or k.startswith("COVERAGE")}
        return {
            **kept,
            "HOME": str(self.folder),
            "LANG": "C.UTF-8",
            "PYTHONPATH": str(ROOT),
            "XDG_RUNTIME_DIR": str(self.runtime),
            "GATEWAY_DATA_DIR": str(self.data),
            "GATEWAY_TIMEZONE": ZONE,
            **self.settings,
            **(more or {}),
        }

    def start(
        self,
        *arguments: str,
        settings: Mapping[str, str] | None = None,
        stdin: int = subprocess.DEVNULL,
        stdout: int | IO[bytes] | None = None,
    ) -> Started:
        """Start a gateway; the fixture ends it at the latest."""
        number = len(self.started) + 1
        output = self.folder / f"{number}.out"
        errors = self.folder / f"{number}.err"
        with output.open("wb") as out, errors.open("wb") as err:
            process = subprocess.Popen(
                [*COMMAND, *arguments],
                cwd=self.folder,
                env=self.environment(settings),
                stdin=stdin,
                stdout=out if stdout is None else stdout,
                stderr=err,
                start_new_session=True,
            )
        started = Started(process, output, errors)
        self.started.append(started)
        return started

    async def up(self, *arguments: str, settings: Mapping[str, str] | None = None) -> Started:
        """Start a gateway and wait until it works."""
        started = self.start(*arguments, settings=settings)
        await self.works(started)
        return started

    async def works(self, started: Started) -> None:
        """Wait until this gateway answers on its socket; its channels may still connect."""

        def is_up() -> bool:
            status = self.status()
            return status is not None and status.get("pid") == started.pid

        await started.until(is_up)

    async def run(
        self,
        *arguments: str,
        given: bytes = b"",
        settings: Mapping[str, str] | None = None,
        within: float = LONG,
    ) -> Ended:
        """Run a command to its end, `given` on its standard input."""
        source = self.folder / "given"
        source.write_bytes(given)
        with source.open("rb") as file:
            started = self.start(*arguments, settings=settings, stdin=file.fileno())
        return await started.ended(within=within)

    def status(self) -> Json | None:
        """The running gateway's own status; None = none is running."""
        try:
            found = ask_gateway(Places(self.data).admin_socket, {"command": "status"})
        except (OSError, ValueError):
            return None
        return None if found is None else dict(found)

    def channel(self, name: str = "telegram") -> Json:
        """One channel's entry in the status, {} if there is none."""
        channels = (self.status() or {}).get("channels", [])
        return next((dict(one) for one in channels if one["name"] == name), {})

    def rows(self, query: str, *values: object) -> list[Json]:
        """Read the database as any other program may; [] = it is not there yet."""
        try:
            with contextlib.closing(self._open()) as connection:
                connection.row_factory = sqlite3.Row
                return [dict(row) for row in connection.execute(query, values)]
        except sqlite3.OperationalError:
            return []

    def change(self, statement: str, *values: object) -> None:
        """Change the database of a gateway that does not run."""
        with contextlib.closing(sqlite3.connect(self.database)) as connection, connection:
            connection.execute(statement, values)

    def count(self, query: str, *values: object) -> int:
        rows = self.rows(f"SELECT count(*) AS n FROM {query}", *values)  # noqa: S608
        return int(rows[0]["n"]) if rows else 0

    @contextlib.contextmanager
    def store_held(self) -> Iterator[None]:
        """Hold the database's write lock as a backup program might."""
        with contextlib.closing(sqlite3.connect(self.database, isolation_level=None)) as holder:
            holder.execute("PRAGMA busy_timeout=10000")
            holder.execute("BEGIN IMMEDIATE")
            yield
            holder.execute("ROLLBACK")

    def is_settled(self) -> bool:
        """Nothing is open: no turn, no delivery, no reminder."""
        return (
            self.database.exists()
            and not self.count("turns WHERE state IN ('queued', 'running')")
            and not self.count("deliveries WHERE state IN ('pending', 'sending')")
            and not self.count("jobs WHERE state = 'active'")
        )

    def check_store(self) -> None:
        """The database is sound."""
        assert self.rows("PRAGMA integrity_check") == [{"integrity_check": "ok"}]
        assert self.rows("PRAGMA foreign_key_check") == []

    def host_processes(self) -> list[psutil.Process]:
        """What lives and was started as a host, or by one, of this world."""
        mark = str(self.folder)
        return [one for one in psutil.process_iter() if _belongs(one, mark)]

    def host_names(self) -> list[str]:
        """The names of those programs."""
        names = []
        for one in self.host_processes():
            with contextlib.suppress(psutil.Error):
                names.append(one.name())
        return names

    async def no_host_left(self) -> None:
        try:
            await until(lambda: not self.host_processes(), within=15)
        except TimeoutError:
            raise AssertionError(f"left over: {self.host_processes()}") from None

    def close(self) -> None:
        for started in self.started:
            started.end_input()
            if started.is_running:
                started.process.kill()
            started.process.wait(timeout=LONG)
        for leftover in self.host_processes():
            with contextlib.suppress(psutil.Error):
                leftover.kill()

    def _open(self) -> sqlite3.Connection:
        return sqlite3.connect(f"{self.database.as_uri()}?mode=ro", uri=True, timeout=10)


def _belongs(process: psutil.Process, mark: str) -> bool:
    try:
        environment = process.environ()
    except psutil.Error:
        return False
    return mark in environment.get("GATEWAY_TOOL_SOCKET", "")


def pushed(api: BotApi, words: str, *, chat: int = 7, **parts: Any) -> int:
    """Somebody writes in a private chat; returns the id of the update."""
    return api.push(text(words, chat=private(chat), sender=person(chat), **parts))[0]


async def answered(
    gateway: Started, api: BotApi, count: int, *, chat: int = 7, within: float = LONG
) -> list[str]:
    """Wait until a chat got that many texts, and return them."""
    await gateway.until(lambda: len(api.texts(chat)) >= count, within=within)
    return api.texts(chat)


async def asked(gateway: Started, model: FakeModelServer, words: str, *, times: int = 1) -> None:
    """Wait until the model was asked for something that holds these words."""

    def is_asked() -> bool:
        return sum(words in one.asked.user for one in model.requests) >= times

    await gateway.until(is_asked)


def telegram_settings(api: BotApi, *, allowlist: str = "7,8,9,10") -> dict[str, str]:
    return {
        "TELEGRAM_BOT_TOKEN": api.token,
        "TELEGRAM_API_BASE_URL": api.base_url,
        "TELEGRAM_ALLOWLIST": allowlist,
    }


def model_settings(model: FakeModelServer) -> dict[str, str]:
    return {
        "MODEL_NAME": "fake-model",
        "MODEL_BASE_URL": f"{model.url}/v1",
        "MODEL_API_KEY": "sk-CANARY-model-key",
        "HEARTBEAT_INTERVAL": "0",
    }


def pi_stand_in(script: Path) -> dict[str, str]:
    """A host that is scripted, started the way that Pi is."""
    program = str(ROOT / "tests" / "acceptance" / "pi_stand_in.py")
    command = shlex.join([sys.executable, "-S", program, "--script", str(script)])
    return {"HOST_KIND": "pi", "HOST_COMMAND": command, "MODEL_NAME": "", "MODEL_BASE_URL": ""}
