"""What tests of hosts share: specs, prompts, and looking at processes from outside."""

import asyncio
import os
import signal
from collections.abc import Callable
from contextlib import aclosing, suppress
from datetime import UTC, datetime
from pathlib import Path

import psutil

from gateway.domain.message import ChannelName, ChatKey
from gateway.hosts.base import (
    ContextMessage,
    Failed,
    Finished,
    HostEvent,
    HostSession,
    Prompt,
    PromptContext,
    SessionSpec,
)

CHAT = ChatKey(ChannelName.CONSOLE, "local")
NOON = datetime(2026, 3, 1, 12, 0, 0, 250_000, tzinfo=UTC)


def make_prompt(text: str) -> Prompt:
    """Return a prompt whose facts are one message of the same text."""
    message = ContextMessage(text=text, sender="Ada", sent_at=NOON)
    context = PromptContext(
        messages=(message,), trigger="message", timezone="Europe/Berlin", now=NOON
    )
    return Prompt(text=text, context=context)


def make_spec(root: Path, *, is_ephemeral: bool = False) -> SessionSpec:
    """Return a spec with the same directory for the same root."""
    return SessionSpec(
        chat=CHAT,
        directory=root / "sessions" / "chat" / "1",
        generation=1,
        tool_address=root / "tools.sock",
        tool_token="secret-token",
        is_ephemeral=is_ephemeral,
    )


async def run_prompt(session: HostSession, text: str) -> list[HostEvent]:
    """Run one prompt to its end and return all its events."""
    async with aclosing(session.prompt(make_prompt(text))) as events:
        return [event async for event in events]


async def outcome_of(session: HostSession, text: str) -> Finished | Failed:
    """Run one prompt and return how it ended."""
    last = (await run_prompt(session, text))[-1]
    assert isinstance(last, Finished | Failed)
    return last


async def eventually(holds: Callable[[], bool], *, within: float = 20.0) -> None:
    """Wait until something is true; fails the test if it does not become so."""
    async with asyncio.timeout(within):
        while not holds():  # noqa: ASYNC110
            await asyncio.sleep(0.005)


def is_alive(pid: int) -> bool:
    """Whether a process runs; a zombie does not."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def group_members(group: int) -> list[int]:
    """Return the pids of a process group, zombies left out."""
    members = []
    for process in psutil.process_iter():
        with suppress(ProcessLookupError):
            if os.getpgid(process.pid) == group and is_alive(process.pid):
                members.append(process.pid)
    return members


def kill_group(group: int) -> None:
    """Kill what a test may have left behind."""
    with suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)
