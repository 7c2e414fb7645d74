"""A model host that notes when it read each prompt and when it ended each run; standard library
only, run as a script: `stamping_host.py LOG [what Pi is given]`.

Each line of LOG is one run: {"text": the reply, "read_at": seconds, "ended_at": seconds}, by the
monotonic clock. The reply is the last word of the form `sample-N` in the prompt.
"""

import json
import re
import sys
import time
from typing import IO

_SAMPLE = re.compile(r"sample-\d+")


def _write(*frames: dict[str, object]) -> None:
    sys.stdout.buffer.write(b"".join(json.dumps(frame).encode() + b"\n" for frame in frames))
    sys.stdout.buffer.flush()


def _respond(frame: dict[str, object], data: dict[str, object]) -> dict[str, object]:
    answer = {"type": "response", "command": frame["type"], "success": True, "data": data}
    return {"id": frame.get("id"), **answer}


def _run(frame: dict[str, object], read_at: float, log: IO[str]) -> None:
    text = _SAMPLE.findall(str(frame["message"]))[-1]
    _write(_respond(frame, {"disposition": "started"}), {"type": "agent_start"})
    message = {"role": "assistant", "content": text, "stopReason": "stop"}
    ended_at = time.monotonic()
    _write(
        {"type": "agent_end", "messages": [message], "willRetry": False},
        {"type": "agent_settled"},
    )
    log.write(json.dumps({"text": text, "read_at": read_at, "ended_at": ended_at}) + "\n")
    log.flush()


def main() -> None:
    """Serve until the input ends."""
    state: dict[str, object] = {"sessionId": "bench", "messageCount": 0, "isStreaming": False}
    with open(sys.argv[1], "a", encoding="utf-8") as log:  # noqa: PTH123 - imports cost time here
        for line in sys.stdin.buffer:
            read_at = time.monotonic()
            frame = json.loads(line)
            if frame["type"] == "prompt":
                _run(frame, read_at, log)
            elif frame["type"] == "get_state":
                _write(_respond(frame, state))


if __name__ == "__main__":
    main()
