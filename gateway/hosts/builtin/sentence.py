"""A message made comparable word by word, and still readable as it was typed."""

import re
from dataclasses import dataclass
from typing import Final

from gateway.domain.letters import plain_letters

_WORD: Final = re.compile(r"\S+")
_CLOSING: Final = " .!?…,;"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sentence:
    """`plain` holds one word for each word of `typed`: small letters, no accents, one space."""

    typed: str
    plain: str
    starts: tuple[int, ...]

    def start(self, position: int) -> int:
        """Where in `typed` the word begins that stands at `position` of `plain`."""
        return self.starts[self.plain[:position].count(" ")]

    def since(self, position: int) -> str:
        """What was typed from the word on that stands at `position` of `plain`; "" at its end."""
        return self.typed[self.start(position) :] if position < len(self.plain) else ""


def read_sentence(message: str) -> Sentence:
    """Read a message, without the marks that close it."""
    typed = message.strip().rstrip(_CLOSING) or message.strip()
    words = list(_WORD.finditer(typed))
    plain = " ".join(_plain_word(word.group()) for word in words)
    return Sentence(typed=typed, plain=plain, starts=tuple(word.start() for word in words))


def _plain_word(word: str) -> str:
    # A letter that stands for a space and a mark would make two words of one.
    return plain_letters(word.replace("’", "'")).replace(" ", "") or "-"
