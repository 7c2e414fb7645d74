"""A second opinion: the same round trip against a Bot API server that others wrote.

`npm install --prefix .crabline @openclaw/crabline@0.1` brings it in; without it this is skipped.
"""

import asyncio
import json
import os
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from gateway.channels.base import ChannelState, Target
from gateway.channels.telegram import TelegramChannel, Timing
from gateway.domain.delivery import Rejected, Sent
from gateway.domain.message import NewMessage
from gateway.errors import StoreBusyError
from tests.fakes.inbox import Inbox, running

_BUNDLED = Path(__file__).parents[2] / ".crabline" / "node_modules" / ".bin" / "crabline"
CRABLINE = os.environ.get("CRABLINE_BIN") or str(_BUNDLED)

pytestmark = pytest.mark.skipif(
    shutil.which(CRABLINE) is None or shutil.which("node") is None,
    reason=f"needs node and crabline: CRABLINE_BIN or {_BUNDLED}",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Crabline:
    """A running server; `calls` reads what it wrote down."""

    token: str
    base_url: str
    inbound_url: str
    admin_token: str
    recorder: Path

    async def say(self, text: str, **more: Any) -> None:
        async with httpx.AsyncClient(trust_env=False) as client:
            answer = await client.post(
                self.inbound_url,
                json={"chatId": 7, "fromId": 7, "fromName": "Ann", "text": text, **more},
                headers={"X-Crabline-Admin-Token": self.admin_token},
            )
        assert answer.status_code == 200, answer.text

    def calls(self, method: str) -> list[dict[str, Any]]:
        events = [json.loads(line) for line in self.recorder.read_text().splitlines()]
        return [event for event in events if event["path"].endswith(f"/{method}")]


async def _read_until(stream: asyncio.StreamReader, words: bytes) -> None:
    async with asyncio.timeout(20):
        while words not in (line := await stream.readline()):
            assert line, "crabline ended before it was ready"


@asynccontextmanager
async def serving(folder: Path) -> AsyncIterator[Crabline]:
    ready, recorder = folder / "ready.json", folder / "recorder.jsonl"
    process = await asyncio.create_subprocess_exec(
        *(CRABLINE, "serve", "telegram", "--port", "0"),
        *("--ready-file", str(ready), "--recorder", str(recorder)),
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    try:
        await _read_until(process.stdout, b"server ready")
        manifest = json.loads(ready.read_text())
        yield Crabline(
            token=manifest["botToken"],
            base_url=manifest["endpoints"]["apiRoot"],
            inbound_url=manifest["endpoints"]["adminInboundUrl"],
            admin_token=manifest["adminToken"],
            recorder=recorder,
        )
    finally:
        process.terminate()
        await process.communicate()


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Crabline]:
    async with serving(tmp_path) as crabline:
        yield crabline


@pytest.fixture
async def channel(server: Crabline, inbox: Inbox) -> AsyncIterator[TelegramChannel]:
    opened = TelegramChannel(
        server.token,
        base_url=server.base_url,
        health_changed=inbox.health_changed,
        timing=Timing(poll_timeout=1, first_wait=0.05),
    )
    yield opened
    await opened.close()


@pytest.fixture
def inbox() -> Inbox:
    return Inbox()


async def test_a_message_is_received_and_answered_with_formatting(
    server: Crabline, channel: TelegramChannel, inbox: Inbox
) -> None:
    async with running(channel, inbox):
        await server.say("hello 😀")
        await inbox.until(lambda: bool(inbox.items))
        (message,) = inbox.items
        assert isinstance(message, NewMessage)
        (piece,) = channel.cut("**Hi** 👋 see [this](https://example.org)", is_markdown=True)
        outcome = await channel.send(Target(address=message.address), piece)

    assert message.text == "hello 😀"
    assert isinstance(outcome, Sent)
    (call,) = server.calls("sendMessage")
    assert call["accepted"]
    assert call["body"]["text"] == "Hi 👋 see this"
    entities = call["body"]["entities"]
    assert (
        json.loads(entities)
        if isinstance(entities, str)
        else entities
        == [
            {"type": "bold", "offset": 0, "length": 2},
            {"type": "text_link", "offset": 10, "length": 4, "url": "https://example.org"},
        ]
    )


async def test_an_update_that_was_not_stored_is_handed_over_again_and_then_confirmed(
    server: Crabline, channel: TelegramChannel, inbox: Inbox
) -> None:
    inbox.fail_next(StoreBusyError("database is locked"))

    async with running(channel, inbox):
        await server.say("one")
        await server.say("two")
        await inbox.until(lambda: len(inbox.items) == 2)
        await inbox.until(lambda: channel.health.state is ChannelState.CONNECTED)

    assert inbox.texts == ["one", "two"]
    assert len(inbox.tried) == 3


async def test_a_topic_is_written_to_under_its_thread_id(
    server: Crabline, channel: TelegramChannel, inbox: Inbox
) -> None:
    async with running(channel, inbox):
        await server.say("hi", chatId=-100200, chatType="supergroup", isForum=True)
        await inbox.until(lambda: bool(inbox.items))
        (piece,) = channel.cut("for the topic", is_markdown=False)
        outcome = await channel.send(Target(address="-100200:43"), piece)

    (message,) = inbox.items
    assert isinstance(message, NewMessage)
    assert message.is_group
    assert not message.is_addressed
    assert isinstance(outcome, Sent)
    assert int(server.calls("sendMessage")[0]["body"]["message_thread_id"]) == 43


async def test_a_text_past_the_limit_is_refused_for_good(
    server: Crabline, channel: TelegramChannel
) -> None:
    (piece,) = channel.cut("x", is_markdown=False)

    outcome = await channel.send(Target(address="7"), piece.prefixed("x" * 4096))

    assert isinstance(outcome, Rejected)
    assert not outcome.chat_gone


async def test_two_pollers_are_told_of_each_other(
    server: Crabline, channel: TelegramChannel, inbox: Inbox
) -> None:
    other_inbox = Inbox()
    other = TelegramChannel(
        server.token,
        base_url=server.base_url,
        health_changed=other_inbox.health_changed,
        timing=Timing(poll_timeout=1, first_wait=0.05),
    )
    async with running(channel, inbox), running(other, other_inbox):
        await inbox.until(
            lambda: (
                ChannelState.CONFLICT
                in [health.state for health in inbox.healths + other_inbox.healths]
            ),
            within=15,
        )
    await other.close()
