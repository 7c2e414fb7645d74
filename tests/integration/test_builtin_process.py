"""The model child as a process: how it starts, and all the ways in which it ends."""

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import psutil
import pytest

from gateway.hosts.builtin.options import read_options
from tests.fakes.child_world import KEY, World, open_world
from tests.fakes.model_script import (
    Say,
)


@pytest.fixture(params=["openai"])
async def world(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[World]:
    async with open_world(tmp_path, request.param) as opened:
        yield opened


async def test_the_end_of_input_ends_the_child_in_the_middle_of_a_run(world: World) -> None:
    world.model.when("long", Say(text="ab", pieces=2, gate="never"))
    async with world.child() as child:
        await child.ask("prompt", message="long")
        await world.model.reached("never")
        await child.until(lambda f: "text_delta" in json.dumps(f))
        assert child.process.stdin is not None
        child.process.stdin.close()
        with pytest.raises(EOFError):
            await child.read()
        async with asyncio.timeout(10):
            assert await child.process.wait() == 0


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("HOST_KIND", "pi"),
        ("MODEL_PROVIDER", "gemini"),
        ("MODEL_NAME", ""),
        ("MODEL_CONTEXT_WINDOW", "many"),
        ("MODEL_BASE_URL", "gopher://host"),
        ("MODEL_BASE_URL", "http://[::bad"),
        ("MODEL_BASE_URL", "http://host:99999"),
    ],
)
async def test_a_wrong_setting_is_named_and_ends_the_child(
    world: World, name: str, value: str
) -> None:
    async with world.child(**{name: value}) as child:
        with pytest.raises(EOFError, match=name):
            await child.read()
        assert await child.process.wait() == 2


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel's help is Linux's")
async def test_a_child_dies_with_its_parent(world: World) -> None:
    reading, writing = os.pipe()
    parent = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        "import subprocess, sys\n"
        "child = subprocess.Popen(sys.argv[2:], stdin=int(sys.argv[1]), stdout=subprocess.PIPE)\n"
        "print(child.pid, flush=True)\n"
        "child.stdout.readline()\n"
        "print('ready', flush=True)\n"
        "child.wait()\n",
        str(reading),
        *(sys.executable, "-m", "gateway.hosts.builtin", "--session-dir", str(world.directory)),
        pass_fds=(reading,),
        stdout=asyncio.subprocess.PIPE,
        env={"HOST_KIND": "builtin", "MODEL_NAME": "m", "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    try:
        assert parent.stdout is not None
        child = psutil.Process(int(await parent.stdout.readline()))
        os.write(writing, b'{"type":"get_state"}\n')
        assert await parent.stdout.readline() == b"ready\n"
        parent.send_signal(signal.SIGKILL)
        await parent.wait()
        # Its input is still open: nothing but the kernel tells it.
        gone, _ = await asyncio.to_thread(psutil.wait_procs, [child], timeout=10)
        assert gone == [child]
    finally:
        os.close(reading)
        os.close(writing)


async def test_stray_output_never_reaches_the_frames() -> None:
    program = (
        "import os, sys\n"
        "from gateway.hosts.builtin.guard import take_output\n"
        "from gateway.hosts.builtin.wire import FrameWriter\n"
        "frames = FrameWriter(take_output())\n"
        "print('stray'); sys.stdout.flush(); os.write(1, b'stray')\n"
        "frames.send({'type': 'x'})\n"
    )
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        program,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={"PYTHONPATH": os.pathsep.join(sys.path)},
    )
    out, err = await process.communicate()
    assert out == b'{"type":"x"}\n'
    assert err.count(b"stray") == 2


@pytest.mark.parametrize("kind", ["offline", "builtin"])
async def test_input_that_is_no_pipe_ends_the_child_as_well(tmp_path: Path, kind: str) -> None:
    script = tmp_path / "input"
    script.write_bytes(b'{"id":1,"type":"get_state"}\n{"id":2,"type":"abort"}\ncut off')
    answers = []
    for source in (Path(os.devnull), script):
        with source.open("rb") as file:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "gateway.hosts.builtin", "--session-dir", str(tmp_path)),
                stdin=file,
                stdout=asyncio.subprocess.PIPE,
                env={
                    "HOST_KIND": kind,
                    "MODEL_NAME": "m",
                    "PYTHONPATH": os.pathsep.join(sys.path),
                },
            )
        out, _ = await process.communicate()
        assert process.returncode == 0
        answers.append([json.loads(line)["id"] for line in out.splitlines()])
    assert answers == [[], [1, 2]]


def test_s11_keys_are_taken_out_of_the_environment(tmp_path: Path) -> None:
    environ = {
        "HOST_KIND": "builtin",
        "MODEL_NAME": "m",
        "MODEL_API_KEY": KEY,
        "GATEWAY_TOOL_TOKEN": KEY,
        "GATEWAY_TOOL_SOCKET": str(tmp_path / "s"),
    }
    options = read_options(["--session-dir", str(tmp_path)], environ)
    assert environ == {"HOST_KIND": "builtin", "MODEL_NAME": "m"}
    assert options.model is not None
    assert (options.model.key, options.tool_token) == (KEY, KEY)
    assert KEY not in repr(options)
    assert options.model.window_tokens == 32768
