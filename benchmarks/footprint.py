"""What a gateway costs that has nothing to do: memory and processor time."""

import asyncio
import statistics
from collections.abc import Mapping
from pathlib import Path

import psutil

from benchmarks.figures import (
    BUILTIN_MEMORY,
    GATEWAY_MEMORY,
    IDLE_CPU,
    OFFLINE_MEMORY,
    Budget,
    Measurement,
)
from benchmarks.real_gateway import (
    Running,
    TimedBotApi,
    chat_key,
    gateway_running,
    make_database,
    until_idle,
)
from benchmarks.stored import store_chats, store_far_jobs, stored_data
from tests.fakes.model_script import Say, Script
from tests.fakes.model_server import FakeModelServer

_CHATS = tuple(range(21, 26))
_JOBS = 50
_QUIET_SECONDS = 5.0
_IDLE_SECONDS = 20.0
_MEGABYTE = 2**20


async def measure(folder: Path, *, is_full: bool) -> list[Measurement]:
    """Look at a gateway from outside: when idle, and with a warm session for each chat."""
    async with TimedBotApi() as api, FakeModelServer(_script()) as model:
        await make_database(folder, api)
        with stored_data(folder) as connection:
            store_chats(connection, [chat_key(chat) for chat in _CHATS])
            store_far_jobs(connection, [chat_key(chat) for chat in _CHATS], _JOBS)
        offline = {"HOST_KIND": "offline"}
        async with gateway_running(folder, api, _CHATS, offline) as running:
            await until_idle(folder, api)
            resident = [_resident(running.process)]
            gateway = Measurement(
                budget=GATEWAY_MEMORY,
                figure=resident[0],
                detail=f"{_unique(running.process):.0f} MB not shared",
                samples=tuple(resident),
            )
            offline_sessions = await _weigh_sessions(api, running, OFFLINE_MEMORY)
            idle = await _time_idling(running)
        builtin = await _weigh_builtin(folder, api, model.url)
        return [gateway, offline_sessions, builtin, idle]


def _script() -> Script:
    script = Script()
    script.queue.extend(Say(text="Good morning.") for _ in _CHATS)
    return script


async def _weigh_builtin(folder: Path, api: TimedBotApi, url: str) -> Measurement:
    settings: Mapping[str, str] = {
        "HOST_KIND": "builtin",
        "MODEL_NAME": "fake",
        "MODEL_BASE_URL": f"{url}/v1",
    }
    async with gateway_running(folder, api, _CHATS, settings) as running:
        await until_idle(folder, api)
        return await _weigh_sessions(api, running, BUILTIN_MEMORY)


async def _weigh_sessions(api: TimedBotApi, running: Running, budget: Budget) -> Measurement:
    """Have a turn in each chat, then weigh the hosts that it left warm."""
    answers = len(api.sent)
    for chat in _CHATS:
        api.write(chat, "help")
    await api.until_sent(answers + len(_CHATS))
    sessions = running.sessions()
    samples = [_resident(session) for session in sessions]
    unique = statistics.mean(_unique(session) for session in sessions)
    return Measurement(
        budget=budget,
        figure=statistics.mean(samples),
        detail=f"mean of {len(samples)}; {unique:.0f} MB not shared",
        samples=tuple(samples),
    )


async def _time_idling(running: Running) -> Measurement:
    await asyncio.sleep(_QUIET_SECONDS)
    processes = [running.process, *running.sessions()]
    before = [_used(process) for process in processes]
    await asyncio.sleep(_IDLE_SECONDS)
    samples = [
        (_used(process) - used) / _IDLE_SECONDS * 100
        for process, used in zip(processes, before, strict=True)
    ]
    return Measurement(
        budget=IDLE_CPU,
        figure=sum(samples),
        detail=f"gateway {samples[0]:.2f} %, {len(samples) - 1} sessions "
        f"{sum(samples[1:]):.2f} %, over {_IDLE_SECONDS:.0f} s",
        samples=tuple(samples),
    )


def _used(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


def _resident(process: psutil.Process) -> float:
    return float(process.memory_info().rss) / _MEGABYTE


def _unique(process: psutil.Process) -> float:
    """Megabytes that would be free if this process ended."""
    return float(process.memory_full_info().uss) / _MEGABYTE
