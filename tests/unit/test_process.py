"""Host processes: how their output is cut, how they end, and what a killed gateway leaves."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.hosts.ledger import MARK_VARIABLE, ProcessLedger
from gateway.hosts.process import (
    Command,
    HostProcess,
    LineSplitter,
    ProcessGoneError,
    with_parent_death_signal,
)
from tests.fakes.sessions import eventually, group_members, is_alive, kill_group

needs_proc = pytest.mark.skipif(sys.platform != "linux", reason="environments are read in /proc")


class Sink:
    """Keeps what a process wrote."""

    def __init__(self) -> None:
        self.lines: list[bytes] = []
        self.ends = 0

    def line_received(self, line: bytes) -> None:
        self.lines.append(line)

    def output_ended(self) -> None:
        self.ends += 1


def python(code: str, directory: Path) -> Command:
    environment = {"PATH": os.environ["PATH"]}
    arguments = (sys.executable, "-S", "-u", "-c", code)
    return Command(arguments=arguments, environment=environment, directory=directory)


async def run(code: str, tmp_path: Path) -> tuple[HostProcess, Sink]:
    sink = Sink()
    process = HostProcess(ledger=ProcessLedger(tmp_path / "ledger"), sink=sink)
    await process.start(python(code, tmp_path))
    return process, sink


@given(
    lines=st.lists(st.binary(max_size=40).map(lambda line: line.replace(b"\n", b" "))),
    size=st.integers(min_value=1, max_value=50),
)
def test_m05_lines_come_whole_however_they_are_cut_on_the_way(
    lines: list[bytes], size: int
) -> None:
    stream = b"".join(line + b"\n" for line in lines)
    splitter = LineSplitter(limit=40)

    got = [
        line
        for start in range(0, len(stream), size)
        for line in splitter.feed(stream[start : start + size])
    ]

    assert got == lines
    assert splitter.skipped == 0


@pytest.mark.parametrize("size", [1, 7, 64, 1000])
def test_m05_a_line_beyond_the_limit_is_skipped_and_counted(size: int) -> None:
    stream = b"before\n" + b"x" * 100 + b"\nafter\n" + b"y" * 100
    splitter = LineSplitter(limit=20)

    got = [
        line
        for start in range(0, len(stream), size)
        for line in splitter.feed(stream[start : start + size])
    ]

    assert got == [b"before", b"after"]
    assert splitter.skipped == 1


def test_m07_only_a_line_feed_ends_a_line() -> None:
    odd = "a\u2028b\u2029c\u0085d\re\x0bf\x0cg\x1ch".encode()

    assert LineSplitter().feed(odd + b"\n") == [odd]


async def test_output_and_its_end_reach_the_sink_once(tmp_path: Path) -> None:
    process, sink = await run("print('one'); print('two'); print('half', end='')", tmp_path)

    await eventually(lambda: sink.ends == 1 and process.returncode is not None)
    await process.end(grace=0, terminate=1)

    assert sink.lines == [b"one", b"two"]
    assert sink.ends == 1
    assert process.returncode == 0
    assert not process.is_running


async def test_standard_error_is_drained_and_its_last_lines_kept(tmp_path: Path) -> None:
    code = "import sys\nfor n in range(50_000): print('line', n, file=sys.stderr)\nprint('done')"
    process, sink = await run(code, tmp_path)

    await eventually(lambda: sink.lines == [b"done"] and "line 49999" in process.stderr_tail)
    await process.end(grace=1, terminate=1)

    assert "line 49000" not in process.stderr_tail


async def test_m03_writing_to_a_process_that_is_gone_fails_at_once(tmp_path: Path) -> None:
    process, sink = await run("pass", tmp_path)
    await eventually(lambda: sink.ends == 1)

    with pytest.raises(ProcessGoneError):
        await process.send(b"hello\n", deadline=20)
    await process.end(grace=0, terminate=1)


async def test_m03_writing_to_a_closed_input_fails_at_once(tmp_path: Path) -> None:
    code = "import os, time\nos.close(0)\nprint('closed')\ntime.sleep(1000)"
    process, sink = await run(code, tmp_path)
    await eventually(lambda: sink.lines == [b"closed"])

    with pytest.raises(ProcessGoneError):
        await process.send(b"hello\n", deadline=20)
    await process.end(grace=0, terminate=1)


async def test_writing_to_a_process_that_does_not_read_ends_at_the_deadline(
    tmp_path: Path,
) -> None:
    process, _ = await run("import time\ntime.sleep(1000)", tmp_path)

    with pytest.raises(TimeoutError):
        await process.send(b"x" * 10_000_000 + b"\n", deadline=0.2)
    await process.end(grace=0, terminate=1)

    assert group_members(process.pid) == []


STUBBORN = """
import signal, subprocess, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = subprocess.Popen(["sleep", "1000"])
print(child.pid)
time.sleep(1000)
"""


async def test_m14_a_stubborn_process_and_its_children_are_killed_and_reaped(
    tmp_path: Path,
) -> None:
    process, sink = await run(STUBBORN, tmp_path)
    await eventually(lambda: len(sink.lines) == 1)
    grandchild = int(sink.lines[0])

    await process.end(grace=0.1, terminate=0.1)

    assert process.returncode == -signal.SIGKILL
    assert not psutil.pid_exists(process.pid)  # not even as a zombie
    await eventually(lambda: not is_alive(grandchild))
    assert list((tmp_path / "ledger").iterdir()) == []


async def test_m14_what_a_process_leaves_behind_ends_with_it(tmp_path: Path) -> None:
    code = "import subprocess\nprint(subprocess.Popen(['sleep', '1000']).pid)"
    process, sink = await run(code, tmp_path)

    await eventually(lambda: len(sink.lines) == 1 and sink.ends == 1)

    await eventually(lambda: not is_alive(int(sink.lines[0])))
    await process.end(grace=0, terminate=1)


async def test_an_escaped_child_that_holds_the_pipe_does_not_delay_the_end(
    tmp_path: Path,
) -> None:
    code = (
        "import subprocess\nprint(subprocess.Popen(['sleep', '1000'], start_new_session=True).pid)"
    )
    process, sink = await run(code, tmp_path)

    await eventually(lambda: sink.ends == 1, within=10)

    kill_group(int(sink.lines[0]))
    await process.end(grace=0, terminate=1)


async def test_ending_twice_is_harmless(tmp_path: Path) -> None:
    process, _ = await run("input()", tmp_path)

    await asyncio.gather(process.end(grace=1, terminate=1), process.end(grace=1, terminate=1))
    await process.end(grace=1, terminate=1)

    assert not process.is_running


async def test_a_thread_of_its_own_may_not_spawn(tmp_path: Path) -> None:
    def spawn() -> None:
        asyncio.run(run("pass", tmp_path))

    with pytest.raises(RuntimeError, match="main thread"):
        await asyncio.to_thread(spawn)


async def test_records_are_private_and_gone_after_the_end(tmp_path: Path) -> None:
    process, _ = await run("input()", tmp_path)
    record = tmp_path / "ledger" / f"{process.pid}.json"

    assert record.stat().st_mode & 0o777 == 0o600
    assert record.parent.stat().st_mode & 0o777 == 0o700
    await process.end(grace=5, terminate=1)

    assert not record.exists()


@pytest.mark.skipif(sys.platform != "linux", reason="a call of Linux alone")
async def test_m14_a_wrapped_command_ends_when_its_parent_is_killed(tmp_path: Path) -> None:
    wrapped = with_parent_death_signal(("sleep", "1000"))
    if wrapped == ("sleep", "1000"):
        pytest.skip("no tool for it on this machine")
    code = (
        "import subprocess, time\n"
        f"print(subprocess.Popen({list(wrapped)!r}, start_new_session=True).pid)\n"
        "time.sleep(1000)"
    )
    process, sink = await run(code, tmp_path)
    await eventually(lambda: len(sink.lines) == 1)
    orphan = int(sink.lines[0])
    # The signal is asked for by the wrapper itself: it must have given way to the command.
    await eventually(lambda: Path(f"/proc/{orphan}/comm").read_text() == "sleep\n")

    os.kill(process.pid, signal.SIGKILL)

    await eventually(lambda: not is_alive(orphan))
    await process.end(grace=0, terminate=1)


class Leftovers:
    """Processes as a killed gateway leaves them: in groups of their own, on record or not."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.ledger = ProcessLedger(directory)
        self.started: list[subprocess.Popen[bytes]] = []

    def spawn(self, code: str, *, mark: str = "m") -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            [sys.executable, "-S", "-u", "-c", code],
            env={"PATH": os.environ["PATH"], MARK_VARIABLE: mark},
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        self.started.append(process)
        return process

    def edit(self, pid: int, **fields: object) -> None:
        path = self.directory / f"{pid}.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | fields))

    @property
    def recorded(self) -> list[str]:
        return [path.name for path in self.directory.iterdir()]


@pytest.fixture
def leftovers(tmp_path: Path) -> Iterator[Leftovers]:
    made = Leftovers(tmp_path / "ledger")
    yield made
    for process in made.started:
        kill_group(process.pid)
        process.kill()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()


def said_pid(process: subprocess.Popen[bytes]) -> int:
    assert process.stdout is not None
    return int(process.stdout.readline())


async def test_m14_a_recorded_leftover_is_ended_with_its_group(leftovers: Leftovers) -> None:
    host = leftovers.spawn(STUBBORN)
    grandchild = said_pid(host)
    leftovers.ledger.record(host.pid, mark="m")

    assert await leftovers.ledger.reap_leftovers(grace=0.1) == 1

    assert not is_alive(host.pid)
    assert not is_alive(grandchild)
    assert leftovers.recorded == []


FORKS_AND_STAYS = """
import subprocess, time
print(subprocess.Popen(["sleep", "1000"]).pid)
time.sleep(1000)
"""


@needs_proc
async def test_m14_a_group_that_outlived_its_leader_is_known_by_its_mark(
    leftovers: Leftovers,
) -> None:
    host = leftovers.spawn(FORKS_AND_STAYS)
    grandchild = said_pid(host)
    leftovers.ledger.record(host.pid, mark="m")
    host.kill()
    host.wait()
    assert is_alive(grandchild)

    assert await leftovers.ledger.reap_leftovers(grace=2) == 1

    assert not is_alive(grandchild)


async def test_a_strangers_group_without_leader_is_left_alone(leftovers: Leftovers) -> None:
    stranger = leftovers.spawn(FORKS_AND_STAYS, mark="other")
    member = said_pid(stranger)
    leftovers.ledger.record(stranger.pid, mark="ours")
    stranger.kill()
    stranger.wait()

    assert await leftovers.ledger.reap_leftovers(grace=0.1) == 0

    assert is_alive(member)
    assert leftovers.recorded == []


async def test_a_pid_that_was_given_out_again_is_never_signalled(leftovers: Leftovers) -> None:
    stranger = leftovers.spawn("import time\nprint(1)\ntime.sleep(1000)")
    said_pid(stranger)
    leftovers.ledger.record(stranger.pid, mark="m")
    leftovers.edit(stranger.pid, started="another boot/1")

    assert await leftovers.ledger.reap_leftovers(grace=0.1) == 0

    assert is_alive(stranger.pid)
    assert leftovers.recorded == []


async def test_a_record_of_nothing_and_a_damaged_one_are_dropped(leftovers: Leftovers) -> None:
    ended = leftovers.spawn("input()")
    leftovers.ledger.record(ended.pid, mark="m")
    ended.kill()
    ended.wait()
    (leftovers.directory / "1.json").write_text("{")
    (leftovers.directory / "2.json").write_text('{"pid": "x"}')
    (leftovers.directory / "3.json").write_text("[]")

    assert await leftovers.ledger.reap_leftovers(grace=0.1) == 0

    assert leftovers.recorded == []


async def test_without_a_ledger_there_is_nothing_to_reap(tmp_path: Path) -> None:
    assert await ProcessLedger(tmp_path / "none").reap_leftovers() == 0
