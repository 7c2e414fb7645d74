"""How many turns a second the engine alone can take through the store."""

import asyncio
import time
from pathlib import Path

from benchmarks.engine import Engine, engine_running
from benchmarks.figures import THROUGHPUT, Measurement, percentile

_CHATS = tuple(range(1000, 1200))
_MESSAGES = 10


async def measure(folder: Path, *, is_full: bool) -> list[Measurement]:
    """All chats at once; each writes its next message when the last one was answered."""
    async with engine_running(folder, _CHATS) as engine:
        began, cpu_began = time.perf_counter(), time.process_time()
        async with asyncio.TaskGroup() as chats:
            talks = [chats.create_task(_talk(engine, chat)) for chat in _CHATS]
        elapsed = time.perf_counter() - began
        cpu = time.process_time() - cpu_began
    turns = len(_CHATS) * _MESSAGES
    waits = [wait for talk in talks for wait in talk.result()]
    return [
        Measurement(
            budget=THROUGHPUT,
            figure=turns / elapsed,
            detail=f"{turns} turns in {elapsed:.1f} s; {cpu / turns * 1000:.1f} ms of CPU a turn; "
            f"answer after {percentile(waits, 50):.2f} s median",
            samples=tuple(waits),
        )
    ]


async def _talk(engine: Engine, chat: int) -> list[float]:
    waits = []
    for _ in range(_MESSAGES):
        began = time.perf_counter()
        await engine.say(chat)
        waits.append(time.perf_counter() - began)
    return waits
