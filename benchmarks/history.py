"""Whether a long history slows a turn down: the same turns on an empty and on a full store."""

import statistics
from pathlib import Path

from benchmarks.engine import engine_running
from benchmarks.figures import (
    HISTORY_PROMPT,
    HISTORY_SEND,
    Budget,
    Measurement,
    Unit,
    write_figure,
)
from benchmarks.past import store_past
from gateway.store.opening import Layout, make_data_directory, open_database

_CHATS = tuple(range(500, 600))
_SHORT = 100_000
_FULL = 1_000_000
_TURNS = 300
_WARM_UP = 20


async def measure(folder: Path, *, is_full: bool) -> list[Measurement]:
    """Turns on both stores, one by one and in changing order, so that noise meets both alike."""
    messages = _FULL if is_full else _SHORT
    full = Layout(directory=folder / "full" / "data")
    make_data_directory(full.directory)
    await open_database(full).close()
    store_past(full.database, _CHATS, messages)
    async with (
        engine_running(folder / "empty", _CHATS) as empty,
        engine_running(folder / "full", _CHATS) as long,
    ):
        times: dict[bool, list[tuple[float, float]]] = {False: [], True: []}
        for number in range(_WARM_UP + _TURNS):
            chat = _CHATS[number % len(_CHATS)]
            for is_long in (number % 2 == 0, number % 2 == 1):
                times[is_long].append(await (long if is_long else empty).say(chat))
    counted = {is_long: turns[_WARM_UP:] for is_long, turns in times.items()}
    size = full.database.stat().st_size / 1e6
    detail = f"{messages:,} messages, {size:.0f} MB"
    return [
        _compare(HISTORY_PROMPT, detail, *([one[0] for one in counted[long]] for long in counted)),
        _compare(HISTORY_SEND, detail, *([one[1] for one in counted[long]] for long in counted)),
    ]


def _compare(budget: Budget, detail: str, empty: list[float], long: list[float]) -> Measurement:
    medians = [statistics.median(samples) for samples in (empty, long)]
    written = " -> ".join(write_figure(median, Unit.SECONDS) for median in medians)
    return Measurement(
        budget=budget,
        figure=medians[1] / medians[0],
        detail=f"{detail}; median {written}",
        samples=tuple(after / before for before, after in zip(empty, long, strict=True)),
    )
