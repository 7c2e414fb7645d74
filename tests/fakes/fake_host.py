"""A model host that does what a script says: a real subprocess speaking the RPC dialect.

    python -m tests.fakes.fake_host --script FILE | --json TEXT  --session-dir DIR [--no-session]

In tests: `RpcHost(HostKind.OFFLINE, fake_launch({...}), ledger=...)`.

The script is one JSON object; every key may be missing.

    dialect   "new" (disposition, agent_settled) or "old" (neither)
    start     "silent": never answers get_state; "exit": ends with status 1;
              "exit_on_transcript": ends so if the session directory holds a transcript
    ignore    any of "abort", "term", "eof"
    record    a file that gets one JSON line for each thing that happens: {"event": "start", pid,
              cwd, argv, environment}, {"event": "prompt", message, context}, {"event": "abort"},
              {"event": "fork", pid}, {"event": "dialog", reply}, {"event": "call", status, body}
    rules     the first whose "match" is part of the prompt (and whose "min_messages" the
              conversation has reached) says what happens; without one the host answers "echo: "
              and the last line of the prompt

A rule has "ack" ("started", "handled", "none", "lost_id", or "refuse: why") and "steps", each an
object whose "do" names it:

    say text [times]    the final answer, streamed word by word; ends the run
    message content reason [error]   the final message with these blocks; ends the run
    fail text           the run ends in this provider error
    retry text          one pass fails so and is announced to be tried again
    overflow [give_up]  one pass fails on its context, and the host compacts (old dialect)
    delta text          one piece of text
    narrate text        text that precedes tool calls
    tool name [ok] [size]   a tool call with its result, padded to `size` bytes
    call name arguments a call to the gateway's tool server; later texts may hold {result}
    raw text            written to standard output as it is, without a line end
    raw_hex text        the same, given as hex
    stderr text         one line on standard error
    settle              a stray agent_settled
    dialog method       asks the screen, and waits for the reply
    fork                starts `sleep 1000` in the same group
    wait file           goes on when the file exists
    hang                does nothing until it is aborted
    stream              a word every 5 ms until it is aborted
    exit status | kill | close_output
"""

import argparse
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from gateway.hosts.launch import Launch

_ROOT = Path(__file__).parents[2]
_PROVIDER = {"provider": "fake", "model": "fake-1"}
_USAGE = {"input": 11, "output": 7}


def fake_launch(script: Mapping[str, object]) -> "Launch":
    """Return how to start a fake host with this script."""
    from gateway.hosts.launch import DIRECTORY, Launch

    module = ("-S", "-m", "tests.fakes.fake_host")
    return Launch(
        command=(sys.executable, *module, "--json", json.dumps(script)),
        environment={"PATH": os.environ["PATH"], "PYTHONPATH": str(_ROOT), "PYTHONUTF8": "1"},
        resume_arguments=("--session-dir", DIRECTORY),
        ephemeral_arguments=("--session-dir", DIRECTORY, "--no-session"),
        is_own_child=True,
    )


class _RunOverError(Exception):
    """The steps of a run came to its end."""


class FakeHost:
    """One conversation; commands are read on a thread of their own while steps run."""

    def __init__(self, script: dict[str, object], directory: Path, *, keeps: bool) -> None:
        self.script = script
        self.is_old = script.get("dialect") == "old"
        self.ignored = {str(item) for item in _list(script.get("ignore"))}
        self.transcript = directory / "transcript.jsonl" if keeps else None
        self.messages = self._load()
        self.session_id = os.urandom(8).hex()
        self.prompts: list[dict[str, object]] = []
        self.arrived = threading.Condition()
        self.aborted = threading.Event()
        self.dialog_reply = threading.Event()
        self.is_running = False
        self.result = ""
        self.writing = threading.Lock()

    def serve(self) -> None:
        """Work on prompts until the input ends."""
        self.record("start", pid=os.getpid(), argv=sys.argv, environment=dict(os.environ))
        self._start()
        threading.Thread(target=self._read, daemon=True).start()
        while True:
            with self.arrived:
                self.arrived.wait_for(lambda: bool(self.prompts))
                prompt = self.prompts.pop(0)
            self._run(prompt)

    def record(self, event: str, **details: object) -> None:
        """Tell the test what happened."""
        path = self.script.get("record")
        if path is not None:
            line = json.dumps({"event": event, "cwd": str(Path.cwd()), **details}) + "\n"
            with Path(str(path)).open("a", encoding="utf-8") as file:
                file.write(line)

    def emit(self, **frame: object) -> None:
        """Write one frame; half surrogate pairs stay escaped."""
        try:
            data = json.dumps(frame, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            data = json.dumps(frame).encode()
        self.write(data + b"\n")

    def write(self, data: bytes) -> None:
        """Write bytes to standard output, whole."""
        with self.writing:
            while data:
                data = data[os.write(1, data) :]

    def _load(self) -> list[dict[str, object]]:
        if self.transcript is None or not self.transcript.exists():
            return []
        return [json.loads(line) for line in self.transcript.read_text().splitlines()]

    def _keep(self, role: str, text: str) -> None:
        self.messages.append({"role": role, "text": text})
        if self.transcript is not None:
            lines = "".join(json.dumps(message) + "\n" for message in self.messages)
            self.transcript.write_text(lines)

    def _start(self) -> None:
        if "term" in self.ignored:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        how = self.script.get("start")
        if how == "exit" or (how == "exit_on_transcript" and self.messages):
            os.write(2, b"cannot start: scripted\n")
            os._exit(1)

    def _read(self) -> None:
        for line in sys.stdin.buffer:
            frame = json.loads(line)
            if not isinstance(frame, dict):
                os._exit(1)  # as the real one does
            self._command(frame)
        if "eof" not in self.ignored:
            os._exit(0)

    def _command(self, frame: dict[str, object]) -> None:
        match frame.get("type"):
            case "get_state" if self.script.get("start") != "silent":
                self._respond(
                    frame,
                    data={
                        "sessionId": self.session_id,
                        "messageCount": len(self.messages),
                        "isStreaming": self.is_running,
                    },
                )
            case "prompt":
                self.record("prompt", message=frame["message"], context=frame.get("context"))
                with self.arrived:
                    self.prompts.append(frame)
                    self.arrived.notify()
            case "abort":
                self.record("abort")
                if "abort" not in self.ignored:
                    threading.Thread(target=self._abort, args=(frame,), daemon=True).start()
            case "extension_ui_response":
                self.record("dialog", reply=frame)
                self.dialog_reply.set()

    def _respond(self, frame: dict[str, object], **fields: object) -> None:
        answer = {"type": "response", "command": frame["type"], "success": True, **fields}
        self.emit(id=frame.get("id"), **answer)

    def _abort(self, frame: dict[str, object]) -> None:
        if self.is_running:
            self.aborted.set()
            while self.is_running:
                time.sleep(0.001)
        self._respond(frame)

    def _run(self, prompt: dict[str, object]) -> None:
        text = str(prompt["message"])
        rule = self._rule_for(text)
        if not self._acknowledge(prompt, str(rule.get("ack", "started"))):
            return
        self.aborted.clear()
        self.is_running = True
        self._keep("user", text)
        self.emit(type="agent_start")
        self.emit(type="turn_start")
        try:
            for step in _list(rule.get("steps")):
                Steps(self, _object(step)).run()
            Steps(self, {"do": "hang"}).run()
        except _RunOverError:
            pass
        self.is_running = False

    def _rule_for(self, text: str) -> dict[str, object]:
        for item in _list(self.script.get("rules")):
            rule = _object(item)
            enough = len(self.messages) >= int(str(rule.get("min_messages", 0)))
            if enough and str(rule.get("match", "")) in text:
                return rule
        last = text.rstrip().splitlines()[-1] if text.strip() else ""
        return {"steps": [{"do": "say", "text": f"echo: {last}"}]}

    def _acknowledge(self, prompt: dict[str, object], how: str) -> bool:
        """Answer a prompt; returns whether a run follows."""
        if how.startswith("refuse: "):
            self._respond(prompt, success=False, error=how.removeprefix("refuse: "))
        elif how == "lost_id":
            self._respond(prompt | {"id": None}, success=False, error="lost my way")
        elif how == "none":
            pass
        elif self.is_old:
            self._respond(prompt)
        else:
            self._respond(prompt, data={"disposition": how})
        return how == "started"

    def end(self, reason: str, content: list[object], error: str | None = None) -> NoReturn:
        """Close the run with the model's last message."""
        self.end_pass(reason, content, error, will_retry=False)
        if not self.is_old:
            self.is_running = False
            self.emit(type="agent_settled", aborted=reason == "aborted")
        raise _RunOverError

    def end_pass(
        self, reason: str, content: list[object], error: str | None, *, will_retry: bool
    ) -> None:
        """Close one pass over the prompt."""
        message: dict[str, object] = {"role": "assistant", "content": content, **_PROVIDER}
        message |= {"usage": _USAGE, "stopReason": reason}
        message |= {} if error is None else {"errorMessage": error}
        self._keep("assistant", json.dumps(content))
        self.emit(type="message_end", message=message)
        self.emit(type="turn_end", message=message, toolResults=[])
        end: dict[str, object] = {"type": "agent_end", "messages": [message]}
        self.emit(**(end if self.is_old else end | {"willRetry": will_retry}))


class Steps:
    """The things that a script may ask for, one method each."""

    def __init__(self, host: FakeHost, step: dict[str, object]) -> None:
        self.host = host
        self.step = step

    def run(self) -> None:
        """Do the step; an abort that came meanwhile ends the run."""
        getattr(self, f"do_{self.step['do']}")()
        self._stop_if_aborted()

    def _stop_if_aborted(self) -> None:
        if self.host.aborted.is_set():
            self.host.end("aborted", [], "Request was aborted")

    def text(self, name: str = "text") -> str:
        """Return one field of the step, filled in."""
        return str(self.step.get(name, "")).replace("{result}", self.host.result)

    def _delta(self, text: str) -> None:
        update = {"type": "text_delta", "contentIndex": 0, "delta": text}
        self.host.emit(type="message_update", assistantMessageEvent=update)

    def do_say(self) -> None:
        text = self.text() * int(str(self.step.get("times", 1)))
        for word in text.split(" "):
            self._stop_if_aborted()
            self._delta(f"{word} ")
        self.host.end("stop", [{"type": "text", "text": text}])

    def do_message(self) -> None:
        error = self.step.get("error")
        reason = str(self.step.get("reason", "stop"))
        self.host.end(reason, _list(self.step["content"]), None if error is None else str(error))

    def do_fail(self) -> None:
        self.host.end("error", [], self.text())

    def do_retry(self) -> None:
        self.host.end_pass("error", [], self.text(), will_retry=True)
        self.host.emit(type="auto_retry_start", attempt=1, errorMessage=self.text())
        self.host.emit(type="agent_start")

    def do_overflow(self) -> None:
        problem = "400 maximum context length is 100 tokens"
        self.host.end_pass("error", [], problem, will_retry=True)
        self.host.emit(type="compaction_start", reason="overflow")
        if self.step.get("give_up"):
            self.host.emit(type="compaction_end", errorMessage="still too long")
            raise _RunOverError
        self.host.emit(type="compaction_end", willRetry=True)
        self.host.emit(type="agent_start")

    def do_delta(self) -> None:
        self._delta(self.text())

    def do_narrate(self) -> None:
        self._delta(self.text())
        blocks = [{"type": "text", "text": self.text()}, {"type": "toolCall", "name": "look"}]
        message = {"role": "assistant", "content": blocks, "stopReason": "toolUse"}
        self.host.emit(type="message_end", message=message)

    def do_tool(self) -> None:
        name = self.text("name")
        self.host.emit(type="tool_execution_start", toolCallId="t1", toolName=name, args={})
        filler = "x" * int(str(self.step.get("size", 0)))
        self.host.emit(
            type="tool_execution_end",
            toolCallId="t1",
            toolName=name,
            result={"content": [{"type": "text", "text": filler}]},
            isError=not self.step.get("ok", True),
        )

    def do_call(self) -> None:
        name = self.text("name")
        self.host.emit(type="tool_execution_start", toolCallId="t1", toolName=name, args={})
        status, body = _post(f"/tools/{name}", self.step.get("arguments", {}))
        self.host.result = body
        self.host.record("call", status=status, body=body)
        ok = status < http.client.BAD_REQUEST
        self.host.emit(type="tool_execution_end", toolCallId="t1", toolName=name, isError=not ok)

    def do_raw(self) -> None:
        self.host.write(self.text().encode())

    def do_raw_hex(self) -> None:
        self.host.write(bytes.fromhex(self.text()))

    def do_stderr(self) -> None:
        os.write(2, self.text().encode() + b"\n")

    def do_settle(self) -> None:
        self.host.emit(type="agent_settled", aborted=False)

    def do_dialog(self) -> None:
        method = self.text("method")
        self.host.emit(type="extension_ui_request", id="d1", method=method, title="Sure?")
        if method != "notify":
            self.host.dialog_reply.wait()

    def do_fork(self) -> None:
        child = subprocess.Popen(["sleep", "1000"], stdin=subprocess.DEVNULL)
        self.host.record("fork", pid=child.pid)

    def do_wait(self) -> None:
        path = Path(self.text("file"))
        while not path.exists():
            self._stop_if_aborted()
            time.sleep(0.005)

    def do_hang(self) -> None:
        self.host.aborted.wait()

    def do_stream(self) -> None:
        while not self.host.aborted.wait(0.005):
            self._delta("word ")

    def do_exit(self) -> None:
        os._exit(int(str(self.step.get("status", 1))))

    def do_kill(self) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    def do_close_output(self) -> None:
        os.close(1)


class _UnixConnection(http.client.HTTPConnection):
    """HTTP over a unix socket."""

    def __init__(self, path: str) -> None:
        super().__init__("localhost", timeout=20)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


def _post(path: str, body: object) -> tuple[int, str]:
    connection = _UnixConnection(os.environ["GATEWAY_TOOL_SOCKET"])
    headers = {
        "Authorization": f"Bearer {os.environ['GATEWAY_TOOL_TOKEN']}",
        "Content-Type": "application/json",
    }
    connection.request("POST", path, json.dumps(body), headers)
    response = connection.getresponse()
    text = response.read().decode()
    connection.close()
    return response.status, text


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _object(value: object) -> dict[str, object]:
    return value if isinstance(value, dict) else {}


def main() -> None:
    """Read the arguments and serve."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--script", type=Path)
    parser.add_argument("--json")
    parser.add_argument("--session-dir", type=Path, required=True)
    parser.add_argument("--no-session", action="store_true")
    options = parser.parse_args()
    script = json.loads(options.json or options.script.read_text(encoding="utf-8"))
    try:
        FakeHost(script, options.session_dir, keeps=not options.no_session).serve()
    except BaseException:  # noqa: BLE001
        traceback.print_exc()
        os._exit(70)  # the reading thread would make an orderly end hang


if __name__ == "__main__":
    main()
