"""Text with formatting, measured as Telegram measures it."""

import json
import re
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Self

_SURROGATE = re.compile("[\ud800-\udfff]")


class EntityKind(StrEnum):
    """What a stretch of text is shown as, in Telegram's words."""

    BOLD = "bold"
    ITALIC = "italic"
    UNDERLINE = "underline"
    STRIKETHROUGH = "strikethrough"
    SPOILER = "spoiler"
    CODE = "code"
    PRE = "pre"
    TEXT_LINK = "text_link"
    BLOCKQUOTE = "blockquote"
    EXPANDABLE_BLOCKQUOTE = "expandable_blockquote"


@dataclass(frozen=True, slots=True, kw_only=True)
class Entity:
    """Formatting of `length` UTF-16 code units from `offset` on."""

    kind: EntityKind
    offset: int
    length: int
    url: str | None = None
    language: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RichText:
    """A text and the entities that format it."""

    text: str
    entities: tuple[Entity, ...] = ()

    @classmethod
    def literal(cls, text: str) -> Self:
        """`text` shown as it stands, without formatting."""
        return cls(text=sanitize(text))

    def prefixed(self, mark: str) -> Self:
        """The same with `mark`, itself unformatted, in front."""
        shift = utf16_len(mark)
        moved = (replace(entity, offset=entity.offset + shift) for entity in self.entities)
        return replace(self, text=mark + self.text, entities=tuple(moved))

    def plain(self) -> Self:
        """The same text without its formatting."""
        return replace(self, entities=())

    def to_json(self) -> str:
        """One line that `from_json` reads back; equal texts give equal lines."""
        rows = [[e.kind, e.offset, e.length, e.url, e.language] for e in self.entities]
        body = {"text": self.text, "entities": rows}
        line = json.dumps(body, ensure_ascii=False, separators=(",", ":"))
        # A lone surrogate cannot be stored as UTF-8, its escape can.
        return line if not _SURROGATE.search(line) else json.dumps(body, separators=(",", ":"))

    @classmethod
    def from_json(cls, line: str) -> Self:
        """Read what `to_json` wrote. Raises ValueError if it is damaged."""
        try:
            body = json.loads(line)
        except RecursionError as error:
            raise ValueError("not a stored text: nested too deeply") from error
        match body:
            case {"text": str(text), "entities": list(rows), **others} if not others:
                entities = tuple(_entity_from_row(row) for row in rows)
            case _:
                raise ValueError("not a stored text")
        units = utf16_len(text)
        if any(entity.offset + entity.length > units for entity in entities):
            raise ValueError("a stored entity reaches past its text")
        return cls(text=text, entities=entities)


def _entity_from_row(row: object) -> Entity:
    match row:
        case [str(kind), int(offset), int(length), (str() | None) as url, (str() | None) as lang]:
            if isinstance(offset, bool) or isinstance(length, bool) or offset < 0 or length <= 0:
                raise ValueError("a stored entity has no proper range")
            return Entity(
                kind=EntityKind(kind), offset=offset, length=length, url=url, language=lang
            )
        case _:
            raise ValueError("not a stored entity")


def utf16_len(text: str) -> int:
    """Length in UTF-16 code units, the measure of Telegram's limits and entities."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


def sanitize(text: str) -> str:
    """`text` as it can be stored and sent: no NUL, and U+FFFD for each lone surrogate."""
    if _SURROGATE.search(text):
        # Two halves side by side become the character that they stand for.
        text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text.replace("\0", "")
