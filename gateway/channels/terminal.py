"""The console in a terminal: a prompt that stays while replies come in above it."""

import asyncio
import os
import time
from pathlib import Path

from prompt_toolkit import PromptSession
from prompt_toolkit.history import FileHistory
from prompt_toolkit.patch_stdout import patch_stdout
from rich.console import Console
from rich.text import Text

from gateway.domain.chunking import EntityKind, RichText

GREETING = "Say something, like: remind me in 20 minutes to call mum. Ctrl-D leaves."

_TYPING_SHOWN = 5.0

_STYLES: dict[EntityKind, str] = {
    EntityKind.BOLD: "bold",
    EntityKind.ITALIC: "italic",
    EntityKind.UNDERLINE: "underline",
    EntityKind.STRIKETHROUGH: "strike",
    EntityKind.SPOILER: "dim",
    EntityKind.CODE: "cyan",
    EntityKind.PRE: "cyan",
    EntityKind.TEXT_LINK: "underline blue",
    EntityKind.BLOCKQUOTE: "italic dim",
    EntityKind.EXPANDABLE_BLOCKQUOTE: "italic dim",
}


class TerminalSurface:
    """Reads with history, writes with colours, and shows below the prompt that work goes on."""

    is_script = False

    def __init__(self, history: Path) -> None:
        os.close(os.open(history, os.O_CREAT | os.O_WRONLY, 0o600))
        self._session: PromptSession[str] = PromptSession(
            history=FileHistory(str(history)), bottom_toolbar=self._toolbar
        )
        self._typing_until = 0.0
        self._has_greeted = False

    async def read_line(self) -> str | None:
        """The next line; None after Ctrl-D or Ctrl-C."""
        if not self._has_greeted:
            self._has_greeted = True
            Console(highlight=False).print(GREETING, style="dim", end="\n\n")
        try:
            with patch_stdout(raw=True):
                return await self._session.prompt_async("you> ")
        except (EOFError, KeyboardInterrupt):
            return None

    async def show(self, body: RichText) -> None:
        """Print a reply above the prompt."""
        self._typing_until = 0.0
        Console(highlight=False).print(styled(body), end="\n\n", soft_wrap=True)
        await asyncio.sleep(0)

    def show_typing(self) -> None:
        """Say below the prompt that an answer is being prepared."""
        self._typing_until = time.monotonic() + _TYPING_SHOWN
        self._session.app.invalidate()

    def _toolbar(self) -> str:
        return "answering …" if time.monotonic() < self._typing_until else ""


def styled(body: RichText) -> Text:
    """A text with its marks as terminal styles; links can be clicked where the terminal can."""
    text = Text(body.text)
    at = _CodePoints(body.text)
    for entity in body.entities:
        style = _STYLES[entity.kind]
        if entity.url:
            style += f" link {entity.url}"
        text.stylize(style, at(entity.offset), at(entity.offset + entity.length))
    return text


class _CodePoints:
    """Turns UTF-16 offsets into Python's."""

    def __init__(self, text: str) -> None:
        self._encoded = text.encode("utf-16-le")

    def __call__(self, units: int) -> int:
        return len(self._encoded[: units * 2].decode("utf-16-le", "ignore"))
