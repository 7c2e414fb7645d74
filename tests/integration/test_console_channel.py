"""The console beyond what every channel does: its lines are handed over by nobody but it."""

import asyncio

from gateway.channels.console import ConsoleChannel, ConsoleRules
from gateway.domain.chunking import RichText
from tests.fakes.inbox import Inbox


class Typist:
    """Says its lines, then breaks off once, then goes on."""

    is_script = False

    def __init__(self, *lines: str | Exception | None) -> None:
        self._lines = list(lines)

    async def read_line(self) -> str | None:
        line = self._lines.pop(0)
        if isinstance(line, Exception):
            raise line
        return line

    async def show(self, body: RichText) -> None:
        pass

    def show_typing(self) -> None:
        pass


async def test_lines_after_a_restart_are_not_taken_for_repeats() -> None:
    inbox = Inbox()
    typist = Typist("one", "two", RuntimeError("terminal went away"), "three", None)
    channel = ConsoleChannel(typist, ConsoleRules(settled=lambda: asyncio.sleep(0)))

    for _ in range(2):
        await asyncio.gather(channel.run(inbox.receive), return_exceptions=True)

    assert inbox.texts == ["one", "two", "three"]
    assert len({item.external_id for item in inbox.items if hasattr(item, "external_id")}) == 3
