"""The fake Bot API server as a process of its own, for tests that drive the real gateway."""

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

import httpx

from tests.fakes.bot_api_faults import Fault
from tests.fakes.bot_api_updates import TOKEN, Json


class BotApiProcess:
    """A server that survives the gateway's death; all calls here block."""

    token = TOKEN

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        self._port = 0
        self._client = httpx.Client(timeout=10, trust_env=False)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.stop()
        self._client.close()

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    def start(self) -> None:
        """Start, after a `stop` on the same port and with what was there before."""
        port_file = self._folder / "bot-api.port"
        port_file.unlink(missing_ok=True)
        command = [
            *(sys.executable, "-m", "tests.fakes.bot_api"),
            *("--port-file", str(port_file), "--port", str(self._port)),
            *("--state", str(self._folder / "bot-api.json")),
        ]
        self._process = subprocess.Popen(command, cwd=Path(__file__).parents[2])
        _wait_until(port_file.exists, within=20)
        self._port = int(port_file.read_text())

    def stop(self) -> None:
        """Stop: from now on connections are refused."""
        if self._process is not None:
            self._process.terminate()
            self._process.wait(timeout=10)
            self._process = None

    def push(self, *updates: Json) -> list[int]:
        found: list[int] = self._ask("updates", {"updates": updates})
        return found

    def push_text(self, text: str, **parts: Any) -> int:
        """A text message; `chat_id`, `user_id`, `message_id`, `date`, `topic` may be given."""
        ids: list[int] = self._ask("text", {"text": text, **parts})
        return ids[0]

    def fail(
        self, method: str, fault: Fault, *, chat_id: int | None = None, times: int | None = 1
    ) -> None:
        body = {"method": method, "fault": fault.to_json(), "chat_id": chat_id, "times": times}
        self._ask("faults", body)

    def heal(self) -> None:
        self._ask("heal", {})

    def release(self) -> None:
        self._ask("release", {})

    def calls(self, method: str | None = None) -> list[Json]:
        """The calls so far: number, at (monotonic), method, params, status."""
        calls: list[Json] = self._ask("record", {})["calls"]
        return [call for call in calls if method in (None, call["method"])]

    def sent(self, chat_id: int | None = None) -> list[Json]:
        """The messages that were accepted, in order."""
        found: list[Json] = self._ask("record", {"since": 10**9})["sent"]
        return [message for message in found if chat_id in (None, message["chat"]["id"])]

    def texts(self, chat_id: int | None = None) -> list[str]:
        return [str(message["text"]) for message in self.sent(chat_id)]

    def pending(self) -> list[Json]:
        """The updates that nobody has confirmed yet."""
        found: list[Json] = self._ask("record", {"since": 10**9})["pending"]
        return found

    def wait_for_texts(self, count: int, *, chat_id: int | None = None, within: float = 20) -> None:
        """Return once that many messages were accepted. Raises TimeoutError."""
        _wait_until(lambda: len(self.sent(chat_id)) >= count, within=within)

    def _ask(self, action: str, body: Json) -> Any:
        answer = self._client.post(f"{self.base_url}/admin/{action}", json=body)
        answer.raise_for_status()
        return answer.json()


def _wait_until(is_so: Callable[[], bool], *, within: float) -> None:
    deadline = time.monotonic() + within
    while not is_so():
        if time.monotonic() > deadline:
            raise TimeoutError(f"not within {within} s")
        time.sleep(0.02)
