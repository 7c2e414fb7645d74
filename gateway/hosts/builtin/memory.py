"""What a session remembers: whole turns, and a summary in place of the oldest."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from gateway.hosts.builtin.compaction import summary_messages
from gateway.hosts.builtin.messages import Message, Turn
from gateway.hosts.builtin.transcript import resume_transcript, start_transcript


class Memory:
    """One session's turns, kept in step with its transcript.

    Only completed turns enter, so what is sent to a model is always well formed.
    """

    def __init__(self, directory: Path | None) -> None:
        """Resume the directory's newest session; None remembers nothing past this process."""
        self._directory = directory
        self._transcript, contents = resume_transcript(directory)
        self._summary = contents.summary
        self._turns = contents.turns

    @property
    def session_id(self) -> str:
        """Which session this is."""
        return self._transcript.session_id

    @property
    def file(self) -> Path | None:
        """The transcript."""
        return self._transcript.path

    @property
    def summary(self) -> str | None:
        """What stands for the turns that are gone."""
        return self._summary

    @property
    def turns(self) -> Sequence[Turn]:
        """The turns that are remembered whole, oldest first."""
        return self._turns

    @property
    def messages(self) -> tuple[Message, ...]:
        """All that is remembered, as a model is told."""
        beginning = () if self._summary is None else summary_messages(self._summary)
        return beginning + tuple(message for turn in self._turns for message in turn.messages)

    def add(self, turn: Turn) -> None:
        """Remember a completed turn."""
        self._turns = (*self._turns, turn)
        self._transcript.append(turn)

    def condense(self, summary: str, kept: Iterable[Turn]) -> None:
        """Put `summary` in place of all but the turns `kept`.

        Their token counts go: they were taken with the older part still in the window.
        """
        self._summary = summary
        self._turns = tuple(replace(turn, context_tokens=None) for turn in kept)
        self._transcript.rewrite(summary=summary, turns=self._turns)

    def start_over(self) -> None:
        """Begin a new session; the file of the old one stays."""
        self._transcript = start_transcript(self._directory)
        self._transcript.begin()
        self._summary, self._turns = None, ()
