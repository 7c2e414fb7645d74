"""Remembers host processes on disk, so that a killed gateway's leftovers can be ended safely."""

import asyncio
import functools
import json
import logging
import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

log = logging.getLogger(__name__)

MARK_VARIABLE = "GATEWAY_PROCESS_MARK"

_POLL = 0.02
_KILL_WAIT = 2.0
_PROC = Path("/proc")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Record:
    """What the ledger knows of one process, which led its own session and group."""

    pid: int
    started: str
    mark: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Status:
    """One line of the process table; `started` is comparable within one boot."""

    pid: int
    state: str
    group: int
    session: int
    started: str


class ProcessLedger:
    """One small file for each running host process, in a directory that only we read.

    A record holds the pid, the start time and a random mark that the process carries in its
    environment. Every host process leads its own session and group, so pid, group and session
    are one number. Whoever calls `reap_leftovers` holds the data directory's lock: all records
    are then those of gateways that have ended.

    Why a group is never mistaken: a kernel gives out no pid that is still some process's group
    or session. So
    - pid and start time match: it is that process, and its group is its own;
    - the pid now belongs to a process with another start time: the old group had emptied before
      the number was given out again, and nothing in the present group is ours;
    - no process has the pid: the group may live on without its leader, or a stranger that got
      the number later may have died too and left a group of its own. Only a member that carries
      our mark in its environment proves the first. Where environments cannot be read (no /proc),
      such a group is left alone and named in the log.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def record(self, pid: int, *, mark: str) -> None:
        """Remember a process just started, whose environment holds `mark`."""
        status = _status_of(pid)
        if status is None:
            return  # ended already: there is nothing to reap
        self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = self._path(pid)
        draft = path.with_suffix(".new")
        draft.unlink(missing_ok=True)
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            json.dump({"pid": pid, "started": status.started, "mark": mark}, file)
        draft.replace(path)

    def forget(self, pid: int) -> None:
        """Drop the record of a process that has ended with its whole group."""
        self._path(pid).unlink(missing_ok=True)

    async def reap_leftovers(self, *, grace: float = 3.0) -> int:
        """End what earlier gateways left running; returns how many groups there were.

        Each gets TERM, and KILL after `grace` seconds. Run it before anything is spawned.
        """
        groups: list[int] = []
        for path in sorted(self._directory.glob("*.json")):
            record = _read_record(path)
            if record is not None and _is_ours(record):
                groups.append(record.pid)
            else:
                path.unlink(missing_ok=True)
        if groups:
            log.warning("host.leftovers_found", extra={"groups": groups})
        await _end_groups(groups, grace)
        for group in groups:
            if _is_group_alive(group):
                log.error("host.leftover_survives", extra={"group": group})
            else:
                self.forget(group)
        return len(groups)

    def _path(self, pid: int) -> Path:
        return self._directory / f"{pid}.json"


async def _end_groups(groups: list[int], grace: float) -> None:
    for group in groups:
        signal_group(group, signal.SIGTERM)
    if await _all_gone(groups, grace):
        return
    for group in groups:
        signal_group(group, signal.SIGKILL)
    await _all_gone(groups, _KILL_WAIT)


async def _all_gone(groups: list[int], seconds: float) -> bool:
    """Wait for processes that are not our children: no wait call tells of their end."""
    try:
        async with asyncio.timeout(seconds):
            while any(_is_group_alive(group) for group in groups):  # noqa: ASYNC110
                await asyncio.sleep(_POLL)
    except TimeoutError:
        return False
    return True


def signal_group(group: int, number: signal.Signals) -> None:
    """Send a signal to every process of a group; a group that has emptied is no error."""
    try:
        os.killpg(group, number)
    except ProcessLookupError:
        pass
    except PermissionError:  # macOS says so of a group that holds only zombies
        log.debug("host.signal_refused", extra={"group": group, "signal": number.name})


def _is_ours(record: _Record) -> bool:
    leader = _status_of(record.pid)
    if leader is not None:
        return leader.started == record.started and leader.group == record.pid
    members = _members_of(record.pid)
    if any(_carries(member.pid, record.mark) for member in members):
        return True
    if members:
        log.warning("host.leftover_unproven", extra={"group": record.pid})
    return False


def _is_group_alive(group: int) -> bool:
    return any(member.state != "Z" for member in _members_of(group))


def _members_of(group: int) -> list[_Status]:
    return [
        status for status in _all_processes() if status.group == group and status.session == group
    ]


def _carries(pid: int, mark: str) -> bool:
    try:
        environment = (_PROC / str(pid) / "environ").read_bytes()
    except OSError:
        return False
    return f"{MARK_VARIABLE}={mark}".encode() in environment.split(b"\0")


def _read_record(path: Path) -> _Record | None:
    try:
        data = json.loads(path.read_bytes())
        return _Record(pid=int(data["pid"]), started=str(data["started"]), mark=str(data["mark"]))
    except (OSError, ValueError, TypeError, KeyError):
        log.warning("host.ledger_record_damaged", extra={"file": path.name})
        return None


if sys.platform == "linux":

    @functools.cache
    def _boot() -> str:
        return (_PROC / "sys/kernel/random/boot_id").read_text(encoding="ascii").strip()

    def _status_of(pid: int) -> _Status | None:
        try:
            line = (_PROC / str(pid) / "stat").read_text(encoding="utf-8", errors="replace")
        except OSError:
            return None
        # The name in brackets may hold spaces and brackets itself; the fields follow the last one.
        fields = line.rpartition(")")[2].split()
        return _Status(
            pid=pid,
            state=fields[0],
            group=int(fields[2]),
            session=int(fields[3]),
            started=f"{_boot()}/{fields[19]}",
        )

    def _all_processes() -> list[_Status]:
        statuses = (_status_of(int(path.name)) for path in _PROC.glob("[0-9]*"))
        return [status for status in statuses if status is not None]

else:

    def _status_of(pid: int) -> _Status | None:
        return next(iter(_ask_ps("-p", str(pid))), None)

    def _all_processes() -> list[_Status]:
        return _ask_ps("-A")

    def _ask_ps(*selection: str) -> list[_Status]:
        """Ask ps, which tells no session there: the group stands in for it."""
        columns = "pid=,stat=,pgid=,lstart="
        answer = subprocess.run(
            ["/bin/ps", *selection, "-o", columns],
            env={"LC_ALL": "C"},
            capture_output=True,
            text=True,
            timeout=10,
            check=False,
        )
        rows = (line.split(maxsplit=3) for line in answer.stdout.splitlines())
        return [
            _Status(pid=int(pid), state=state[0], group=int(group), session=int(group), started=at)
            for pid, state, group, at in rows
        ]
