"""`python -m benchmarks`: one table, with the machine named. Over budget is no error."""

import argparse
import asyncio
import json
import logging
import sys
import tempfile
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import asdict
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks import footprint, history, lateness, starting, throughput, turns
from benchmarks.figures import Measurement, write_figure
from benchmarks.machine import Machine, look_at_machine

_GROUPS: dict[str, Callable[..., Coroutine[None, None, list[Measurement]]]] = {
    "starting": starting.measure,
    "turns": turns.measure,
    "footprint": footprint.measure,
    "throughput": throughput.measure,
    "lateness": lateness.measure,
    "history": history.measure,
}


def main() -> None:
    """Measure, print the table, and write the samples if asked to."""
    options = _parser().parse_args()
    # A gateway that stops cuts the fake server's connections, of which this would tell at length.
    logging.getLogger("aiohttp").setLevel(logging.CRITICAL)
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        machine = look_at_machine(Path(folder))
        measured = list(_measure(Path(folder), options.only or list(_GROUPS), options.full))
    _print_table(machine, measured)
    if options.json is not None:
        _write_json(options.json, machine, measured)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "--only", action="append", choices=_GROUPS, help="this group alone; may be repeated"
    )
    parser.add_argument(
        "--full", action="store_true", help="a history of 1,000,000 messages, not 100,000"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all samples to FILE")
    return parser


def _measure(folder: Path, groups: list[str], is_full: bool) -> Iterator[Measurement]:
    for name in groups:
        print(f"measuring {name} ...", file=sys.stderr, flush=True)
        own = folder / name
        own.mkdir(mode=0o700)
        yield from asyncio.run(_GROUPS[name](own, is_full=is_full))


def _print_table(machine: Machine, measured: list[Measurement]) -> None:
    console = Console(width=None if sys.stdout.isatty() else 160, highlight=False)
    table = Table(caption=str(machine), caption_justify="left", show_edge=False)
    for heading in ("what", "budget", "measured", "", "how"):
        table.add_column(heading)
    for one in measured:
        budget = one.budget
        bound = "at least" if budget.is_floor else "at most"
        table.add_row(
            budget.what,
            f"{bound} {write_figure(budget.limit, budget.unit)}",
            write_figure(one.figure, budget.unit),
            "ok" if budget.is_met_by(one.figure) else "over",
            one.detail,
        )
    console.print(table)


def _write_json(path: Path, machine: Machine, measured: list[Measurement]) -> None:
    records = [asdict(one) | {"is_met": one.budget.is_met_by(one.figure)} for one in measured]
    content = {"machine": asdict(machine), "measurements": records}
    path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
