"""The machine that figures come from: without it they say nothing."""

import os
import platform
import statistics
import time
from dataclasses import dataclass
from pathlib import Path

import psutil

_WRITES = 100
_PAGE = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """Processor, kernel, Python, and how long the disk takes to keep one page (seconds)."""

    processor: str
    cores: int
    memory_gigabytes: float
    kernel: str
    python: str
    fsync_median: float
    load: float

    def __str__(self) -> str:
        return (
            f"{self.processor}, {self.cores} cores, {self.memory_gigabytes:.0f} GB; {self.kernel}; "
            f"Python {self.python}; fsync {self.fsync_median * 1000:.2f} ms median; "
            f"load {self.load:.1f} at start"
        )


def look_at_machine(folder: Path) -> Machine:
    """Name this machine; the disk is the one that `folder` is on."""
    return Machine(
        processor=_processor(),
        cores=os.cpu_count() or 1,
        memory_gigabytes=psutil.virtual_memory().total / 2**30,
        kernel=f"{platform.system()} {platform.release()}",
        python=platform.python_version(),
        fsync_median=_fsync_median(folder / "fsync"),
        load=os.getloadavg()[0],
    )


def _processor() -> str:
    listing = Path("/proc/cpuinfo")
    if listing.exists():
        for line in listing.read_text().splitlines():
            name, _, value = line.partition(":")
            if name.strip() == "model name":
                return value.strip()
    return platform.processor() or platform.machine()


def _fsync_median(path: Path) -> float:
    """How long one page takes, appended and made durable, as the store's log does it."""
    samples = []
    with path.open("wb", buffering=0) as file:
        for _ in range(_WRITES):
            began = time.perf_counter()
            file.write(os.urandom(_PAGE))
            os.fsync(file.fileno())
            samples.append(time.perf_counter() - began)
    path.unlink()
    return statistics.median(samples)
