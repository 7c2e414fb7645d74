"""What the wire asks of whoever answers the prompts of this process."""

from pathlib import Path
from typing import Protocol

from gateway.hosts.base import PromptContext
from gateway.hosts.builtin.report import Report


class Answerer(Protocol):
    """One conversation: takes one prompt at a time and remembers what was said."""

    @property
    def provider(self) -> str:
        """The provider's name, as told with each message."""
        ...

    @property
    def model(self) -> str:
        """The model's name, as told with each message."""
        ...

    @property
    def session_id(self) -> str:
        """Which session this is; another one after a loss or a new start."""
        ...

    @property
    def session_file(self) -> Path | None:
        """Where it is remembered, if anywhere."""
        ...

    @property
    def message_count(self) -> int:
        """How many messages are remembered."""
        ...

    @property
    def needs_context(self) -> bool:
        """Whether a prompt without facts cannot be answered."""
        ...

    async def answer(self, text: str, context: PromptContext | None, report: Report) -> None:
        """Answer one prompt into `report`, all but its settling; raises ModelError.

        Only a run that ends well is remembered; one that raises or is cancelled leaves nothing.
        """
        ...

    def start_over(self) -> None:
        """Begin a new session."""
        ...

    def warm_up(self) -> None:
        """Do early what the first prompt would otherwise wait for."""
        ...

    async def close(self) -> None:
        """Let go of connections."""
        ...
