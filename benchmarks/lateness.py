"""How late a reminder leaves, with few and with many others stored."""

import asyncio
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

from benchmarks.figures import (
    LATENESS_FEW,
    LATENESS_MANY,
    Budget,
    Measurement,
    percentile,
    write_figure,
)
from benchmarks.real_gateway import (
    TimedBotApi,
    chat_key,
    gateway_running,
    make_database,
    until_idle,
)
from benchmarks.stored import store_chats, store_far_jobs, store_jobs, stored_data

_CHATS = tuple(range(100, 140))
_SLOTS = 100
_APART = timedelta(milliseconds=217)
_AHEAD = timedelta(seconds=6)
_FEW = 10
_MANY = 100_000


async def measure(folder: Path, *, is_full: bool) -> list[Measurement]:
    """Time from each slot to the request that sends its text."""
    return [
        await _time_slots(folder / "few", LATENESS_FEW, _FEW),
        await _time_slots(folder / "many", LATENESS_MANY, _MANY),
    ]


async def _time_slots(folder: Path, budget: Budget, stored: int) -> Measurement:
    keys = [chat_key(chat) for chat in _CHATS]
    async with TimedBotApi() as api:
        await make_database(folder, api)
        with stored_data(folder) as connection:
            store_chats(connection, keys)
            store_far_jobs(connection, keys, stored)
        first = datetime.now(UTC) + _AHEAD
        due = {f"reminder {number}": first + number * _APART for number in range(_SLOTS)}
        with stored_data(folder) as connection:
            store_jobs(connection, keys, [(slot, text) for text, slot in due.items()])
        async with gateway_running(folder, api, _CHATS, {"HOST_KIND": "offline"}):
            await until_idle(folder, api)
            await asyncio.sleep((max(due.values()) - datetime.now(UTC)).total_seconds())
            await api.until_sent(_SLOTS)
        wall_ahead = time.time() - time.monotonic()
        sends = api.sends()
        samples = [sends[text] + wall_ahead - slot.timestamp() for text, slot in due.items()]
    middle = write_figure(percentile(samples, 50), budget.unit)
    return Measurement(
        budget=budget,
        figure=percentile(samples, 99),
        detail=f"p99 of {len(samples)}; median {middle}",
        samples=tuple(samples),
    )
