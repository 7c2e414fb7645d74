"""What reaches the log, in which form, and what never does."""

import io
import json
import logging
import subprocess
import sys
import threading
from collections.abc import Iterator
from urllib.parse import quote

import httpx
import pytest

from gateway.log_context import bind
from gateway.logs import QUIET_LOGGERS, configure_logging

TOKEN = "123456:CANARY-of-the-bot_token"
SECRET_HALF = TOKEN.partition(":")[2]
KEY = "sk-model\"key\\with'marks"

log = logging.getLogger("gateway.test")


@pytest.fixture(autouse=True)
def _logging_as_before(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Undo what `configure_logging` does to the process."""
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)
    monkeypatch.setattr(threading, "excepthook", threading.excepthook)
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    levels = {name: logging.getLogger(name).level for name in QUIET_LOGGERS}
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    for name, former in levels.items():
        logging.getLogger(name).setLevel(former)


def configured(level: str = "INFO", form: str = "text") -> io.StringIO:
    stream = io.StringIO()
    configure_logging(level, form, secrets=[TOKEN, KEY], stream=stream)
    return stream


class HoldsToken:
    def __repr__(self) -> str:
        return f"Bot[token={TOKEN}]"


def fail_deep_inside() -> None:
    try:
        raise httpx.ConnectError(f"no route to https://api.telegram.org/bot{TOKEN}/getMe")
    except httpx.ConnectError as error:
        raise RuntimeError(f"{HoldsToken()!r} did not start") from error


@pytest.mark.parametrize("form", ["text", "json"])
@pytest.mark.parametrize("level", ["INFO", "DEBUG"])
def test_s11_bot_token_never_reaches_the_log(level: str, form: str) -> None:
    stream = configured(level, form)
    log.warning("url https://api.telegram.org/bot%s/sendMessage", TOKEN)
    log.warning("object_logged", extra={"bot": HoldsToken(), "half": SECRET_HALF})
    log.warning("encoded %s", quote(f"https://host/bot{TOKEN}/x", safe=""))
    log.warning("mapping %r", {"bot": HoldsToken(), "nested": [TOKEN.encode()]})
    log.debug("debug %s", TOKEN)
    try:
        fail_deep_inside()
    except RuntimeError:
        log.exception("start_failed", stack_info=True, extra={TOKEN: 1})
    logged = stream.getvalue()
    assert "CANARY" not in logged
    assert "start_failed" in logged
    assert "fail_deep_inside" in logged
    assert "[redacted]/sendMessage" in logged


@pytest.mark.parametrize("form", ["text", "json"])
def test_s11_bot_token_never_reaches_the_log_though_nobody_registered_it(form: str) -> None:
    stream = io.StringIO()
    configure_logging("INFO", form, secrets=[], stream=stream)
    unregistered = "9876543210:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw"
    log.info("one https://api.telegram.org/bot42:shortone/getMe two %s", unregistered)
    assert "shortone" not in stream.getvalue()
    assert "AAHdqTcv" not in stream.getvalue()


def test_s11_bot_token_never_reaches_the_log_when_the_process_crashes() -> None:
    crash = (
        "import logging, sys, threading\n"
        "from gateway.logs import configure_logging\n"
        "token = sys.stdin.read()\n"
        "configure_logging('INFO', 'text', secrets=[token])\n"
        "def fail(): raise RuntimeError('https://host/bot' + token)\n"
        "thread = threading.Thread(target=fail, name='worker')\n"
        "thread.start(); thread.join()\n"
        "logging.getLogger('gateway').info('%d is missing', token)\n"
        "fail()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", crash], input=TOKEN, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "CANARY" not in done.stdout + done.stderr
    assert "thread_crashed" in done.stderr
    assert "log_record_lost logger=gateway line=8" in done.stderr
    assert " crashed " in done.stderr


def test_no_secret_is_logged_in_any_spelling() -> None:
    for form in ("text", "json"):
        stream = configured(form=form)
        log.info("plain %s repr %r quoted %s", KEY, KEY, quote(KEY, safe=""))
        log.info("as_field", extra={"key": KEY, "dump": json.dumps({"key": KEY})})
        assert "sk-model" not in stream.getvalue()


def test_a_placeholder_key_does_not_black_out_the_log() -> None:
    stream = io.StringIO()
    configure_logging("INFO", "text", secrets=["", "none"], stream=stream)
    log.info("none_left")
    assert "none_left" in stream.getvalue()


def test_text_names_the_event_first_and_then_the_fields() -> None:
    stream = configured()
    log.info("turn_claimed", extra={"chat": "telegram:123", "turn": 7, "why": 'a "b"'})
    (line,) = stream.getvalue().splitlines()
    _, level, rest = line.split(maxsplit=2)
    assert level == "INFO"
    assert rest == r'turn_claimed chat=telegram:123 turn=7 why="a \"b\"" logger=gateway.test'


def test_json_is_one_object_a_line_with_plain_types() -> None:
    stream = configured(form="json")
    log.info("sent", extra={"turn": 7, "ok": True, "reason": None, "level": "two\nlines \u2028"})
    (line,) = stream.getvalue().splitlines()
    record = json.loads(line)
    assert record.pop("time").endswith("+00:00")
    assert record == {
        "level": "INFO",
        "event": "sent",
        "logger": "gateway.test",
        "turn": 7,
        "ok": True,
        "reason": None,
        "level_": "two\nlines \u2028",
    }


def test_bound_ids_are_on_each_record_until_the_block_ends() -> None:
    stream = configured(form="json")
    with bind(chat="telegram:1", turn=2):
        with bind(run=3, turn=4):
            log.info("inner", extra={"chat": "telegram:9"})
        log.info("outer")
    log.info("after")
    inner, outer, after = (json.loads(line) for line in stream.getvalue().splitlines())
    assert (inner["chat"], inner["turn"], inner["run"]) == ("telegram:9", 4, 3)
    assert (outer["chat"], outer["turn"]) == ("telegram:1", 2)
    assert "run" not in outer
    assert not {"chat", "turn", "run", "delivery"} & after.keys()


@pytest.mark.parametrize("form", ["text", "json"])
def test_no_text_can_forge_a_line(form: str) -> None:
    stream = configured(form=form)
    forged = "x\n2026-11-30T10:00:00 ERROR forged\r\u2028\u0085\x1b[2J\u202e\ud800"
    log.info(forged, extra={"field": forged, forged: forged})
    (line,) = stream.getvalue().splitlines()
    assert line.isprintable()


def test_a_traceback_cannot_forge_a_line() -> None:
    stream = configured()
    try:
        raise ValueError("x\n2026-11-30T10:00:00 ERROR forged\u2028ERROR forged")
    except ValueError:
        log.exception("failed")
    first, *rest = stream.getvalue().splitlines()
    assert "failed" in first
    assert rest
    assert all(line.startswith("    | ") for line in rest)


@pytest.mark.parametrize(
    "text",
    [
        "chat=whatsapp:15551234567",
        "+1 555 123 4567 is unknown",
        "+15551234567",
        "15551234567@s.whatsapp.net",
        "15551234567:12@s.whatsapp.net",
    ],
)
def test_phone_numbers_show_at_debug_only(text: str) -> None:
    stream = configured("DEBUG")
    log.info("seen", extra={"from": text})
    assert "555" not in stream.getvalue()
    assert "*567" in stream.getvalue().replace(" ", "")
    log.debug("seen", extra={"from": text})
    assert text in stream.getvalue()


def test_ids_of_telegram_chats_show() -> None:
    stream = configured()
    log.info("seen", extra={"chat": "telegram:-1001234567890", "sender": 15551234567})
    assert "chat=telegram:-1001234567890 sender=15551234567" in stream.getvalue()


@pytest.mark.parametrize("name", QUIET_LOGGERS)
def test_chatty_libraries_speak_from_warning_on(name: str) -> None:
    stream = configured("DEBUG")
    logging.getLogger(f"{name}.part").info("chatter")
    logging.getLogger(f"{name}.part").warning("trouble")
    assert "chatter" not in stream.getvalue()
    assert "trouble" in stream.getvalue()


def test_configuring_again_replaces_the_handler() -> None:
    first, second = configured(), configured()
    log.info("once")
    assert first.getvalue() == ""
    assert second.getvalue().count("once") == 1


def test_a_record_that_cannot_be_written_harms_nobody() -> None:
    stream = configured()
    stream.close()
    log.info("into_the_void")
