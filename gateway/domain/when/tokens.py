"""Words of a sentence with their places, and the look-alikes of time words."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final

from gateway.domain.when.words import (
    CLOCK_PARTS,
    FILLERS,
    MONTHS,
    NUMBERS,
    ORDINALS,
    ORDINARY,
    SPELLABLE,
    UNITS,
    WEEKDAYS,
)

# A quoted span or a web address is text, whatever it says. Closing marks are looked for on the
# same line only.
_QUOTED: Final = re.compile(
    r"(?:https?://|www\.)\S+|"
    r'"[^"\n]+"|“[^“”\n]+”|„[^„“”\n]+[“”]|«[^«»\n]+»|'
    r"(?<![^\s,;:(])['‘][^'‘’\n]+['’](?![^\s,.;:!?)])"
)
_CORE: Final = re.compile(r"(?:[^\s,;!?()\[\]{}\"“”„«»…—*]|(?<=\d)[,;](?=\d))+")
_BREAK: Final = re.compile(r"[,;:.!?()\n—…]|\s-\s")
_STRIP_LEFT, _STRIP_RIGHT = "'‘’_`.:–", "'‘’_`.:–-"
# Controls and format marks (right-to-left marks, joiners) that a client may put into a word.
_INVISIBLE: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f\u00ad\u061c\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufe0e\ufe0f\ufeff]"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """One word: `sentence[start:end]`, and its normalised form for look-ups.

    `gap` is what stands between it and the next word; `is_quoted` that it is a whole quoted
    span or web address, never to be read as time.
    """

    start: int
    end: int
    raw: str
    word: str
    gap: str
    is_quoted: bool

    @property
    def ends(self) -> bool:
        """Whether punctuation or a new line follows."""
        return _BREAK.search(self.gap) is not None


class Words:
    """The words of one sentence; looking past either end gives the empty word."""

    def __init__(self, tokens: Sequence[Token]) -> None:
        self.tokens = tuple(tokens)
        # Each word is looked at some hundred times.
        self._words = ["" if token.is_quoted else token.word for token in self.tokens]
        self._parted = [True, *(token.ends for token in self.tokens[:-1])]

    def __len__(self) -> int:
        return len(self.tokens)

    def at(self, index: int) -> str:
        """The word at `index`, or "" outside the sentence and for a quoted span."""
        return self._words[index] if 0 <= index < len(self._words) else ""

    def joined(self, index: int) -> str:
        """The word at `index` if nothing separates it from the one before, else ""."""
        is_in = 0 < index < len(self._words) and not self._parted[index]
        return self._words[index] if is_in else ""

    def only(self, index: int, word: str) -> "Words":
        """A sentence of the one word at `index`, read as `word`."""
        return Words([replace(self.tokens[index], word=word, gap="\n")])

    def is_parted(self, index: int) -> bool:
        """Whether a sentence edge or punctuation stands before the word at `index`."""
        return not 0 < index < len(self._words) or self._parted[index]

    def after_filler(self, index: int) -> int:
        """Where the words go on after "sharp", "exactly" or "or so" at `index`, if one is there."""
        if self.joined(index) in FILLERS:
            return index + 1
        is_or_so = self.joined(index) == "or" and self.joined(index + 1) == "so"
        return index + 2 if is_or_so else index

    def said(self, start: int, end: int) -> str:
        """The words from `start` up to `end` as typed, for a question; at most 40 characters."""
        text = " ".join(token.raw for token in self.tokens[start:end] if token.raw)
        return text if len(text) <= 40 else text[:39] + "…"


def read_words(sentence: str) -> Words:
    """Cut a sentence into words, in time linear in its length."""
    spans = list(_spans(sentence))
    tokens = []
    for number, (start, end, is_quoted) in enumerate(spans):
        following = spans[number + 1][0] if number + 1 < len(spans) else len(sentence)
        raw = _INVISIBLE.sub("", sentence[start:end])
        tokens.append(
            Token(
                start=start,
                end=end,
                raw=raw,
                word=raw.replace("’", "'").lower(),
                gap=sentence[end:following],
                is_quoted=is_quoted,
            )
        )
    return Words(tokens)


def _spans(sentence: str) -> Iterator[tuple[int, int, bool]]:
    position = 0
    for quoted in _QUOTED.finditer(sentence):
        yield from _plain_spans(sentence, position, quoted.start())
        yield quoted.start(), quoted.end(), True
        position = quoted.end()
    yield from _plain_spans(sentence, position, len(sentence))


def _plain_spans(sentence: str, start: int, end: int) -> Iterator[tuple[int, int, bool]]:
    for core in _CORE.finditer(sentence, start, end):
        text = core.group()
        left = len(text) - len(text.lstrip(_STRIP_LEFT))
        right = len(text.rstrip(_STRIP_RIGHT))
        if left < right and _INVISIBLE.sub("", text):
            yield from _parts(text, left, right, offset=core.start())


def _parts(text: str, left: int, right: int, *, offset: int) -> Iterator[tuple[int, int, bool]]:
    """The word itself, or its parts: a clock time that is hyphenated (nine-thirty) or "@5"."""
    if re.match(r"@[0-9]", text[left:right]):
        yield offset + left, offset + left + 1, False
        left += 1
    parts = text[left:right].split("-")
    if len(parts) == 1 or any(part.lower() not in CLOCK_PARTS for part in parts):
        yield offset + left, offset + right, False
        return
    start = offset + left
    for part in parts:
        yield start, start + len(part), False
        start += len(part) + 1


def _without_one(word: str) -> set[str]:
    return {word[:at] + word[at + 1 :] for at in range(len(word))} | {word}


def _shortened(word: str) -> set[str]:
    """The word with up to one letter left out; up to two where it is long."""
    once = _without_one(word)
    if len(word) < 8:
        return once
    return once.union(*(_without_one(shorter) for shorter in once))


def _table() -> dict[str, str]:
    table: dict[str, str] = {}
    for word in sorted(SPELLABLE):
        for shorter in _shortened(word):
            table.setdefault(shorter, word)
    return table


_MISSPELT: Final = _table()
_KNOWN: Final = frozenset({*SPELLABLE, *ORDINARY, *UNITS, *MONTHS, *WEEKDAYS, *NUMBERS, *ORDINALS})


@lru_cache(maxsize=4096)
def resembled(word: str) -> str | None:
    """The time word that `word` is a likely slip for, or None.

    Two words are alike when leaving out a letter or two of each makes them equal: that covers a
    missing, doubled, wrong or swapped letter without comparing every pair.
    """
    if word.startswith("2") and word[1:].isalpha():
        spelt = f"to{word[1:]}"  # 2morrow, 2nite
        return spelt if spelt in SPELLABLE else resembled(spelt)
    if word in _KNOWN or not 4 <= len(word) <= 12 or not word.isalpha():
        return None
    for shorter in sorted(_shortened(word), key=len, reverse=True):
        near = _MISSPELT.get(shorter)
        if near is not None and abs(len(near) - len(word)) <= 2:
            return near
    return None
