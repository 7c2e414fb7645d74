"""What the gateway adds to a turn of a warm session: before the model and after it."""

import asyncio
import json
import shlex
import sys
import time
from pathlib import Path

from benchmarks.figures import PROMPT_WRITTEN, SEND_REQUEST, Measurement, median_of
from benchmarks.real_gateway import TimedBotApi, gateway_running, make_database, until_idle

_CHATS = tuple(range(11, 19))
_SAMPLES = 100
_SAME_CHAT_SECONDS = 1.1
"""The gateway itself holds back a chat that gets more than three messages in three seconds."""


async def measure(folder: Path, *, is_full: bool) -> list[Measurement]:
    """Time turns one after the other, in turn in several chats."""
    log = folder / "host.jsonl"
    script = Path(__file__).with_name("stamping_host.py")
    command = (sys.executable, "-I", "-S", str(script), str(log))
    settings = {"HOST_KIND": "pi", "HOST_COMMAND": shlex.join(command)}
    async with TimedBotApi() as api:
        await make_database(folder, api)
        async with gateway_running(folder, api, _CHATS, settings):
            await until_idle(folder, api)
            updates = await _write_samples(api)
        runs = {run["text"]: run for run in map(json.loads, log.read_text().splitlines())}
        sends = api.sends()
        names = list(updates)[len(_CHATS) :]
        before = [runs[name]["read_at"] - api.handed_out[updates[name]] for name in names]
        after = [sends[name] - runs[name]["ended_at"] for name in names]
        return [median_of(PROMPT_WRITTEN, before), median_of(SEND_REQUEST, after)]


async def _write_samples(api: TimedBotApi) -> dict[str, int]:
    """Write the samples, the first of each chat to warm its session; returns their updates."""
    updates: dict[str, int] = {}
    last_sent = dict.fromkeys(_CHATS, 0.0)
    for number in range(len(_CHATS) + _SAMPLES):
        chat = _CHATS[number % len(_CHATS)]
        await asyncio.sleep(max(0.0, last_sent[chat] + _SAME_CHAT_SECONDS - time.monotonic()))
        updates[f"sample-{number}"] = api.write(chat, f"sample-{number}")
        await api.until_sent(number + 1)
        last_sent[chat] = time.monotonic()
    return updates
