"""Plays recorded Pi transcripts over real pipes: the prompt `replay NAME` plays NAME.jsonl.

    python -m tests.fakes.pi_replay VERSION

Where the recording shows that something was sent to Pi, the play stops until the same kind of
command arrives. Answers carry the ids of the commands that really came.
"""

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gateway.hosts.launch import Launch

RECORDINGS = Path(__file__).parent / "pi_rpc"

_SENT = "> "


def replay_launch(version: str) -> "Launch":
    """Return how to start a replay of this version's recordings, as a host that is not ours."""
    from gateway.hosts.launch import Launch

    return Launch(
        command=(sys.executable, "-S", "-m", "tests.fakes.pi_replay", version),
        environment={"PATH": os.environ["PATH"], "PYTHONPATH": str(RECORDINGS.parents[2])},
        resume_arguments=(),
        ephemeral_arguments=(),
        is_own_child=False,
    )


def recorded_lines(path: Path) -> list[str]:
    """Return a recording's lines; they are cut at LF alone."""
    return [line for line in path.read_text(encoding="utf-8").split("\n") if line]


class Replay:
    """Reads commands and plays what was recorded behind them."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._ids: dict[str, object] = {}
        self._commands = self._read()

    def serve(self) -> None:
        """Answer commands until the input ends."""
        for command in self._commands:
            if command.get("type") == "prompt":
                self._play(str(command["message"]).split()[-1])

    def _read(self) -> Iterator[dict[str, object]]:
        """Yield the commands that a play depends on, and answer the others at once."""
        for line in sys.stdin.buffer:
            command = json.loads(line)
            kind = str(command["type"])
            self._ids[kind] = command.get("id")
            if kind == "get_state":
                self._write(recorded_lines(self._folder / "text.jsonl")[1])
            else:
                yield command

    def _play(self, name: str) -> None:
        lines = recorded_lines(self._folder / f"{name}.jsonl")
        first = next(i for i, line in enumerate(lines) if line.startswith(_SENT + '{"id": "p1"'))
        for line in lines[first + 1 :]:
            if line.startswith(_SENT):
                self._await(str(json.loads(line.removeprefix(_SENT))["type"]))
            else:
                self._write(line)

    def _await(self, kind: str) -> None:
        for command in self._commands:
            if command["type"] == kind:
                return
        sys.exit(0)

    def _write(self, line: str) -> None:
        frame = json.loads(line)
        if frame["type"] == "response" and "id" in frame:
            line = json.dumps(frame | {"id": self._ids[frame["command"]]})
        os.write(1, line.encode() + b"\n")


if __name__ == "__main__":
    Replay(RECORDINGS / sys.argv[1]).serve()
