"""What a tool said, as our own child hands it on."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolAnswer:
    """A tool's text for the person; `ok` tells whether the tool did what was asked."""

    ok: bool
    text: str
