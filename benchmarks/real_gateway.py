"""The real `gateway run` process against a fake Bot API that notes when updates are handed out.

The server lives in the benchmark's own process, which does nothing else meanwhile; all times are
of the monotonic clock, which processes share.
"""

import asyncio
import contextlib
import os
import sys
import time
from collections.abc import AsyncIterator, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from gateway.domain.message import ChannelName, ChatKey
from gateway.places import Places
from tests.fakes.bot_api import BotApi
from tests.fakes.bot_api_updates import Json, person, private, text

_START_SECONDS = 30.0
_STOP_SECONDS = 20.0
_ANSWER_SECONDS = 30.0
_SETTLE_SECONDS = 1.0
_LOOK_SECONDS = 0.02
_LOG_TAIL = 4000


class TimedBotApi(BotApi):
    """Knows when each update was first handed out, and when each text was asked to be sent."""

    def __init__(self) -> None:
        super().__init__()
        self.handed_out: dict[int, float] = {}

    async def answer(self, method: str, params: Json) -> Any:
        result = await super().answer(method, params)
        if method == "getUpdates":
            now = time.monotonic()
            for update in result:
                self.handed_out.setdefault(update["update_id"], now)
        return result

    def write(self, chat_id: int, words: str) -> int:
        """A person writes in their private chat; returns the update's id."""
        return self.push(text(words, chat=private(chat_id), sender=person(chat_id)))[0]

    def sends(self) -> dict[str, float]:
        """When each text arrived to be sent, the first time."""
        arrived: dict[str, float] = {}
        for call in self.calls_of("sendMessage"):
            arrived.setdefault(str(call.params["text"]), call.at)
        return arrived

    async def until_sent(self, count: int) -> None:
        """Return once that many messages were accepted in all."""
        await self.until(lambda: len(self.sent) >= count, within=_ANSWER_SECONDS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """A gateway process, with the moment at which it was spawned."""

    spawned_at: float
    process: psutil.Process

    def sessions(self) -> list[psutil.Process]:
        """The model hosts that live now."""
        return self.process.children(recursive=True)


def chat_key(chat_id: int) -> ChatKey:
    """The key of a private chat."""
    return ChatKey(ChannelName.TELEGRAM, str(chat_id))


@contextlib.asynccontextmanager
async def gateway_running(
    folder: Path, api: TimedBotApi, chats: Iterable[int], settings: Mapping[str, str]
) -> AsyncIterator[Running]:
    """Run a gateway whose data are in `folder`; its log is `folder/gateway.log`."""
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "XDG_RUNTIME_DIR": str(folder),
        "GATEWAY_DATA_DIR": str(folder / "data"),
        "GATEWAY_TIMEZONE": "Europe/Berlin",
        "TELEGRAM_API_BASE_URL": api.base_url,
        "TELEGRAM_BOT_TOKEN": api.token,
        "TELEGRAM_ALLOWLIST": ",".join(map(str, chats)),
        **settings,
    }
    with (folder / "gateway.log").open("ab") as log:
        spawned_at = time.monotonic()
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "gateway", "run"),
            cwd=folder,
            env=environment,
            stdin=asyncio.subprocess.DEVNULL,
            stderr=log,
        )
    try:
        yield Running(spawned_at=spawned_at, process=psutil.Process(process.pid))
    except BaseException:
        # The folder goes with the benchmark; what the gateway had to say must not.
        print((folder / "gateway.log").read_text()[-_LOG_TAIL:], file=sys.stderr)
        raise
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
        async with asyncio.timeout(_STOP_SECONDS):
            await process.wait()


async def first_call_at(api: TimedBotApi, *, since: int) -> float:
    """When the first call after the first `since` ones arrived."""
    await api.until(lambda: len(api.calls) > since, within=_START_SECONDS)
    return api.calls[since].at


async def until_idle(folder: Path, api: TimedBotApi) -> None:
    """Return once a gateway that was just spawned waits for updates and all its workers run."""
    since = len(api.calls)
    await api.until(
        lambda: any(int(call.params.get("timeout", 0)) > 0 for call in api.calls[since:]),
        within=_START_SECONDS,
    )
    socket = Places(folder / "data").admin_socket
    async with asyncio.timeout(_START_SECONDS):
        while not socket.exists():  # noqa: ASYNC110 - a socket rings no bell when it appears
            await asyncio.sleep(_LOOK_SECONDS)
    await asyncio.sleep(_SETTLE_SECONDS)


async def make_database(folder: Path, api: TimedBotApi) -> None:
    """Start and stop a gateway once, so that database and compiled modules are there."""
    (folder / "data").mkdir(mode=0o700, parents=True, exist_ok=True)
    async with gateway_running(folder, api, [1], {"HOST_KIND": "offline"}):
        await until_idle(folder, api)
