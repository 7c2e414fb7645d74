"""What is measured, against which budget, and how a figure is written."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import assert_never


class Unit(StrEnum):
    """What a figure counts; times are seconds, and MB are 2**20 bytes, as `top` shows them."""

    SECONDS = "seconds"
    MEGABYTES = "MB"
    PERCENT = "%"
    MESSAGES = "messages/s"
    TIMES = "x"


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """How much something may take at most, or must reach at least (`is_floor`)."""

    what: str
    limit: float
    unit: Unit
    is_floor: bool = False

    def is_met_by(self, figure: float) -> bool:
        """Whether a measured figure keeps the budget."""
        return figure >= self.limit if self.is_floor else figure <= self.limit


FIRST_CALL = Budget(what="spawn to first Bot API call", limit=0.9, unit=Unit.SECONDS)
PROMPT_WRITTEN = Budget(
    what="update received to prompt written, warm session", limit=0.010, unit=Unit.SECONDS
)
SEND_REQUEST = Budget(
    what="reply complete to send request, both commits", limit=0.008, unit=Unit.SECONDS
)
FIRST_TURN_OFFLINE = Budget(
    what="first turn after start, offline host", limit=0.5, unit=Unit.SECONDS
)
FIRST_TURN_BUILTIN = Budget(
    what="first turn after start, builtin host", limit=0.5, unit=Unit.SECONDS
)
GATEWAY_MEMORY = Budget(
    what="resident memory, gateway with Telegram idle", limit=100, unit=Unit.MEGABYTES
)
OFFLINE_MEMORY = Budget(
    what="resident memory, each warm offline session", limit=32, unit=Unit.MEGABYTES
)
BUILTIN_MEMORY = Budget(
    what="resident memory, each warm builtin session", limit=32, unit=Unit.MEGABYTES
)
IDLE_CPU = Budget(what="idle CPU, 5 chats and 50 jobs", limit=1.0, unit=Unit.PERCENT)
THROUGHPUT = Budget(
    what="200 chats x 10 messages, in-process host",
    limit=200,
    unit=Unit.MESSAGES,
    is_floor=True,
)
LATENESS_FEW = Budget(
    what="lateness of a one-shot, 10 jobs stored, p99", limit=0.1, unit=Unit.SECONDS
)
LATENESS_MANY = Budget(
    what="lateness of a one-shot, 100,000 jobs stored, p99", limit=0.1, unit=Unit.SECONDS
)
HISTORY_PROMPT = Budget(
    what="message to prompt, long history over empty", limit=1.1, unit=Unit.TIMES
)
HISTORY_SEND = Budget(what="reply to send, long history over empty", limit=1.1, unit=Unit.TIMES)


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """One measured figure with the samples that it was made from."""

    budget: Budget
    figure: float
    detail: str
    samples: tuple[float, ...]


def median_of(budget: Budget, samples: Sequence[float]) -> Measurement:
    """The median against the budget, the 95th percentile beside it."""
    high = write_figure(percentile(samples, 95), budget.unit)
    return Measurement(
        budget=budget,
        figure=statistics.median(samples),
        detail=f"median of {len(samples)}; p95 {high}",
        samples=tuple(samples),
    )


def percentile(samples: Sequence[float], percent: int) -> float:
    """The smallest sample that `percent` % of all samples do not exceed."""
    rank = -(-len(samples) * percent // 100)
    return sorted(samples)[max(rank, 1) - 1]


def write_figure(figure: float, unit: Unit) -> str:
    """A figure for people, in the scale in which it is easy to read."""
    match unit:
        case Unit.SECONDS:
            return f"{figure:.2f} s" if figure >= 1 else f"{figure * 1000:.3g} ms"
        case Unit.MEGABYTES:
            return f"{figure:.0f} MB"
        case Unit.PERCENT:
            return f"{figure:.2f} %"
        case Unit.MESSAGES:
            return f"{figure:.0f} messages/s"
        case Unit.TIMES:
            return f"{figure:.2f} x"
        case _:
            assert_never(unit)
