"""Where in Telegram something is: a chat, and the topic in it if there is one."""

from dataclasses import dataclass
from typing import Self


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A chat id (negative for groups) and a topic's thread id; written `-100200:43`."""

    chat_id: int
    thread_id: int | None = None

    def __str__(self) -> str:
        return str(self.chat_id) if self.thread_id is None else f"{self.chat_id}:{self.thread_id}"

    @classmethod
    def parse(cls, address: str) -> Self:
        """Read the written form; raises ValueError on any other shape."""
        chat_id, separator, thread_id = address.partition(":")
        return cls(chat_id=int(chat_id), thread_id=int(thread_id) if separator else None)

    def without_topic(self) -> Self:
        """The chat as a whole."""
        return type(self)(chat_id=self.chat_id)
