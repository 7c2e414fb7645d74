"""Somebody chats in a terminal, or a script does, with one command and no key."""

import contextlib
import fcntl
import os
import re
import shlex
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from gateway.engine import texts
from tests.acceptance.harness import (
    COMMAND,
    ZONE,
    Started,
    World,
    answered,
    asked,
    pushed,
    until,
)
from tests.fakes.bot_api import BotApi
from tests.fakes.bot_api_updates import Json
from tests.fakes.model_script import Say
from tests.fakes.model_server import FakeModelServer

pytestmark = [pytest.mark.acceptance, pytest.mark.timeout(300)]

CHAT = "console:local"
SET = re.compile(r"^Reminder set: #(\d+) (\w{3} \d{1,2} \w{3} \d\d:\d\d(?::\d\d)?) \((.+)\): (.+)$")


def answers(output: str, count: int) -> list[str]:
    """What a script printed, one text each; texts here have no blank line of their own."""
    assert output.endswith("\n")
    found = output.removesuffix("\n").split("\n\n")
    assert len(found) == count, output
    return found


async def test_a_script_gets_an_answer_to_each_line_and_then_its_reminder(world: World) -> None:
    lines = b"hello\nremind me in 3 seconds to stretch\nwhat are my reminders?\n"
    first = await world.run("chat", "--linger", "10", given=lines)
    assert first.code == 0, first.errors
    hello, confirmation, listed, reminder = answers(first.output, 4)
    assert "not a language model" in hello
    confirmed = SET.match(confirmation)
    assert confirmed is not None, confirmation
    number, when, zone, words = confirmed.groups()
    assert (zone, words) == (ZONE, "stretch")
    [job] = world.rows("SELECT id, last_slot_at, state FROM jobs")
    assert number == str(job["id"])
    slot = datetime.fromtimestamp(job["last_slot_at"] / 1000, UTC).astimezone(ZoneInfo(ZONE))
    assert when.startswith(f"{slot:%a} {slot.day} {slot:%b %H:%M}")
    assert listed.startswith(f"#{number} {when}")
    assert reminder == "stretch"
    assert job["state"] == "done"

    second = await world.run("chat", given=b"what are my reminders?\n")
    assert second.code == 0
    assert answers(second.output, 1) == ["You have no reminders."]


async def test_a_late_reminder_is_shown_at_the_next_start(world: World) -> None:
    first = await world.run("chat", given=b"remind me in 1 hour to breathe\n")
    answers(first.output, 1)
    world.change("UPDATE jobs SET next_slot_at = ?", int(time.time() * 1000) - 1000)
    second = await world.run("chat", "--linger", "3")
    assert second.code == 0
    assert second.output.endswith("\n\nbreathe\n")


async def test_empty_input_says_in_five_lines_what_this_is(world: World) -> None:
    ended = await world.run("chat")
    assert ended.code == 0, ended.errors
    lines = ended.output.splitlines()
    assert len(lines) == 5
    assert "gateway chat" in ended.output
    assert "TELEGRAM_BOT_TOKEN" in ended.output
    assert ended.errors == ""


async def test_a_reply_of_many_lines_keeps_its_blank_lines(world: World) -> None:
    ended = await world.run("chat", given=b"/help\nwhat are my reminders?\n")
    assert ended.output == f"{texts.HELP}\n\nYou have no reminders.\n"


async def test_a_line_sees_the_effect_of_those_above_it(world: World) -> None:
    lines = b"remind me in 20 minutes to call mum\ncancel 1\n/reminders\n"
    ended = await world.run("chat", given=lines)
    assert ended.code == 0
    confirmation, cancelled, listed = answers(ended.output, 3)
    assert SET.match(confirmation)
    assert cancelled.startswith("Cancelled: #1 ")
    assert listed == "You have no reminders."


async def test_standard_error_stays_silent_while_all_is_well(world: World) -> None:
    ended = await world.run("chat", given=b"hello\n")
    assert ended.errors == ""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_a_signal_ends_the_chat_with_exit_code_0(world: World, number: int) -> None:
    chat = world.start("chat", stdin=subprocess.PIPE)
    chat.say("hello")
    await chat.until(lambda: "reminders" in chat.output)
    ended = await chat.stop(number)
    assert ended.code == 0, ended.errors
    assert "Traceback" not in ended.errors
    await world.no_host_left()


async def test_a_signal_ends_the_linger(world: World) -> None:
    chat = world.start("chat", "--linger", "3600", stdin=subprocess.PIPE)
    chat.say("hello")
    chat.end_input()
    await chat.until(lambda: "reminders" in chat.output)
    assert (await chat.stop()).code == 0


async def test_s07_a_second_chat_is_told_who_holds_the_directory(world: World) -> None:
    first = world.start("chat", stdin=subprocess.PIPE)
    await world.works(first)
    second = await world.run("chat", given=b"hello\n")
    assert second.code == 4
    assert f"process {first.pid}" in second.errors
    assert second.output == ""
    await first.kill()
    third = await world.run("chat", given=b"hello\n")
    assert third.code == 0, third.errors


def telegram_rows(world: World) -> list[list[Json]]:
    tables = ("turns", "jobs", "deliveries", "messages")
    return [
        world.rows(f"SELECT * FROM {table} WHERE chat_key = 'telegram:7' ORDER BY id")  # noqa: S608
        for table in tables
    ]


async def test_the_console_leaves_other_chats_alone(
    connected: World, api: BotApi, model: FakeModelServer
) -> None:
    model.when("first", Say(text="the first answer", pieces=2, gate="first"))
    gateway = await connected.up()
    pushed(api, "first")
    await asked(gateway, model, "first")
    await gateway.kill()
    before = telegram_rows(connected)
    assert [turn["state"] for turn in before[0]] == ["running"]

    ended = await connected.run("chat", given=b"hello\n")
    assert ended.code == 0, ended.errors
    assert "hello" in ended.output
    assert telegram_rows(connected) == before
    assert api.texts() == []

    model.open("first")
    gateway = await connected.up()
    assert await answered(gateway, api, 1) == ["the first answer"]


async def test_a_reader_that_leaves_is_no_crash(world: World) -> None:
    read_end, write_end = os.pipe()
    chat = world.start("chat", stdin=subprocess.PIPE, stdout=write_end)
    os.close(write_end)
    chat.say("hello")
    os.set_blocking(read_end, False)
    shown = b""

    def has_shown() -> bool:
        nonlocal shown
        with contextlib.suppress(BlockingIOError):
            shown += os.read(read_end, 4096)
        return b"reminders" in shown

    await chat.until(has_shown)
    os.close(read_end)
    chat.say("hello again")
    ended = await chat.ended()
    assert ended.code == 0
    assert "Traceback" not in ended.errors
    # What nobody saw is not lost.
    later = await world.run("chat", given=b"what are my reminders?\n")
    hello, listed = answers(later.output, 2)
    assert "not a language model" in hello
    assert listed == "You have no reminders."


async def test_a_list_whose_reader_left_is_no_crash(world: World) -> None:
    read_end, write_end = os.pipe()
    os.close(read_end)
    listing = world.start("turns", "--json", stdout=write_end)
    os.close(write_end)
    ended = await listing.ended()
    assert ended.code == 1
    assert "Traceback" not in ended.errors


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full, which Linux has")
async def test_an_output_that_is_full_is_said_plainly(world: World) -> None:
    with Path("/dev/full").open("wb") as full:
        listing = world.start("turns", "--json", stdout=full.fileno())
    ended = await listing.ended()
    assert ended.code == 1
    assert "could not be written" in ended.errors
    assert "Traceback" not in ended.errors


@pytest.mark.parametrize(
    ("words", "code"), [("chat <&-", 0), ("chat <&- >&-", 0), ("run <&-", 5), ("status >&-", 0)]
)
async def test_closed_standard_streams_are_no_crash(world: World, words: str, code: int) -> None:
    """As some service managers and cron jobs start programs."""
    shell = subprocess.Popen(
        ["sh", "-c", f"exec {shlex.join(COMMAND)} {words} 2>{world.folder / 'errors'}"],
        env=world.environment(),
        cwd=world.folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
    )
    await until(lambda: shell.poll() is not None)
    shell.communicate()
    errors = (world.folder / "errors").read_text()
    assert shell.returncode == code, errors
    assert "Traceback" not in errors


@pytest.mark.parametrize(
    ("line", "name"),
    [
        (b"\xff\xfe not utf-8 \xc3", "invalid UTF-8"),
        (b"a\0b", "NUL"),
        (b"\xe2\x80\xa8\xe2\x80\xae", "line separator and right-to-left"),
        ("👍🏽👨‍👩‍👧".encode(), "emoji only"),
        (b"x" * 100_000, "100 kB"),
        (b"\r", "carriage return"),
        (b"last line without an end", "no newline at the end"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
async def test_odd_input_gets_an_answer_and_never_a_crash(
    world: World, line: bytes, name: str
) -> None:
    given = line if name.startswith("no newline") else line + b"\nhello\n"
    ended = await world.run("chat", given=given)
    assert ended.code == 0, ended.errors
    assert "Traceback" not in ended.errors
    assert ended.output.strip()
    assert world.is_settled()


class Terminal:
    """What a person sees and types; the other end of a pseudo terminal."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._seen = b""

    @property
    def screen(self) -> str:
        """All that was written so far, without control sequences."""
        with contextlib.suppress(BlockingIOError, OSError):
            while data := os.read(self._descriptor, 65536):
                self._seen += data
        text = self._seen.decode("utf-8", "replace")
        return re.sub(r"\x1b\[[0-?]*[ -/]*[@-~]", "", text)

    def type(self, keys: str) -> None:
        os.write(self._descriptor, keys.encode())


@pytest.fixture
def terminal(world: World) -> Iterator[tuple[Started, Terminal]]:
    mine, theirs = os.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 200, 0, 0))
    os.set_blocking(mine, False)
    settings = {"TERM": "xterm-256color", "PROMPT_TOOLKIT_NO_CPR": "1"}
    chat = world.start("chat", stdin=theirs, stdout=theirs, settings=settings)
    os.close(theirs)
    yield chat, Terminal(mine)
    chat.process.kill()
    chat.process.wait()
    os.close(mine)


async def test_a_terminal_shows_a_prompt_the_replies_and_ends_with_ctrl_d(
    world: World, terminal: tuple[Started, Terminal]
) -> None:
    chat, seen = terminal
    await chat.until(lambda: "you>" in seen.screen)
    seen.type("hello\r")
    await chat.until(lambda: "not a language model" in seen.screen)
    seen.type("what are my reminders?\r")
    await chat.until(lambda: "You have no reminders." in seen.screen)
    await chat.until(lambda: world.count("chunks WHERE state = 'sent'") == 2)
    seen.type("\x04")
    # The terminal's other end must be read, or the last words of the program never leave it.
    await until(lambda: (seen.screen, not chat.is_running)[1])
    assert chat.process.returncode == 0, chat.errors
    history = world.data / "console_history"
    assert "what are my reminders?" in history.read_text()
    assert history.stat().st_mode & 0o777 == 0o600


async def test_without_a_channel_the_gateway_opens_the_console_on_a_terminal(
    world: World,
) -> None:
    mine, theirs = os.openpty()
    os.set_blocking(mine, False)
    gateway = world.start("run", stdin=theirs, stdout=theirs, settings={"TERM": "xterm"})
    os.close(theirs)
    seen = Terminal(mine)
    await gateway.until(lambda: "you>" in seen.screen)
    seen.type("\x04")
    await until(lambda: (seen.screen, not gateway.is_running)[1])
    os.close(mine)
    assert gateway.process.returncode == 0, gateway.errors
