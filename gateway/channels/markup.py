"""A model's Markdown as formatted text; nothing that the model wrote vanishes in silence."""

import logging
import re
import string
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from gateway.domain.chunking import Entity, EntityKind, RichText, sanitize, utf16_len

if TYPE_CHECKING:
    from pyromark import Options
    from telegramify_markdown import MessageEntity, RenderConfig

_log = logging.getLogger(__name__)

# Each of the 32 ASCII marks has a stand-in among the 32 noncharacters U+FDD0..U+FDEF, which no
# parser gives a meaning and which take one UTF-16 unit as the mark does: shielded text comes out
# of the converter as it went in, and trading the marks back moves no entity.
_SHIELD = {ord(mark): 0xFDD0 + index for index, mark in enumerate(string.punctuation)}
_UNSHIELD = {stand_in: mark for mark, stand_in in _SHIELD.items()}
_FOREIGN_STAND_INS = dict.fromkeys(_UNSHIELD, "\ufffd")

# A block of its own in front, taken off again: in the first block of a text the converter runs
# the code, table or quote of a list item into the item's words.
_LEAD = "\ufdd0\n\n"

# Shielding can uncover new syntax; after this many rounds links and tags stay as written.
_ROUNDS = 4
# Indents of nested lists and padded table cells can blow a text up beyond use.
_MOST_GROWTH = 4
_GROWTH_OF_ANY_TEXT = 4096
# The converter looks for the end of each of these from its start on: time grows with the square.
_MOST_LATEX_OPENERS = 100
_LATEX_OPENER = re.compile(r"\\[(\[]")

# A spoiler hugs its text and stands alone; any other || is an operator or an empty table cell.
_SPOILER_OR_BARS = re.compile(
    r"(?<![\\|\w])\|\|(?=[^\s|])[^\n|]{0,999}[^\s|\\]\|\|(?![|\w])|(?P<bars>(?<!\\)\|\|+)"
)

# Lists and quotes nested this deep in one line are nobody's list, and costly to lay out.
_DEEP_NESTING = re.compile(r"(?m)^[ \t]*(?:>[ \t]?|(?:[-*+]|\d{1,9}[.)])[ \t]+){32,}")

# 2*3*4 is a product, not a 3 in italics.
_PRODUCT = re.compile(r"(?<=\d)\*(?=\d)")
_LANGUAGE = re.compile(r"\w[\w+#.-]*")

_WEB = re.compile(
    r"https?://(?:[^\s/?#@]*@)?[^\s/?#@:.\[\]<>\"'\\^`{|}%]+(?:\.[^\s/?#@:.\[\]<>\"'\\^`{|}%]+)+\.?"
    r"(?::(?P<port>\d{1,5}))?(?:[/?#]\S*)?",
    re.IGNORECASE,
)
_TG = re.compile(r"tg:(?://)?[a-z0-9_-]+(?:[/?#]\S*)?", re.IGNORECASE)
_MAILTO = re.compile(r"mailto:[^\s@<>]+@[^\s@<>.?]+(?:\.[^\s@<>.?]+)+(?:\?\S*)?", re.IGNORECASE)

_KINDS = {kind.value: kind for kind in EntityKind}
_CODE = (EntityKind.CODE, EntityKind.PRE)
_QUOTES = (EntityKind.BLOCKQUOTE, EntityKind.EXPANDABLE_BLOCKQUOTE)


def from_markdown(text: str) -> RichText:
    """Convert Markdown to text with entities that Telegram accepts.

    Tags and other `<...>` stay visible. A link whose target Telegram would refuse, or that stands
    in a table, becomes its text and its target in brackets. If the converter fails, leaves nothing
    visible, or blows the text up many times over, `text` comes back as it stands.
    """
    source = sanitize(text)
    try:
        rich = _converted(source)
    except BaseException as error:
        # A panic in the Rust parser is not an Exception.
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        _log.warning("markdown_not_converted", extra={"error": type(error).__name__})
        return RichText(text=source)
    is_usable = 0 < len(rich.text) <= _GROWTH_OF_ANY_TEXT + _MOST_GROWTH * len(source)
    return rich if is_usable else RichText(text=source)


def _converted(source: str) -> RichText:
    from telegramify_markdown import convert

    shielded = _shielded_losses(source.translate(_FOREIGN_STAND_INS))
    converted, entities = convert(
        _LEAD + shielded,
        latex_escape=len(_LATEX_OPENER.findall(shielded)) <= _MOST_LATEX_OPENERS,
        config=_plain_symbols(),
    )
    if not converted.startswith(_LEAD):
        return RichText(text="")
    visible = converted.removeprefix(_LEAD).translate(_UNSHIELD).rstrip()
    return RichText(text=visible, entities=_repaired(visible, entities))


def _plain_symbols() -> "RenderConfig":
    from telegramify_markdown import RenderConfig

    config = RenderConfig.isolated()
    symbol = config.markdown_symbol
    symbol.heading_level_1 = symbol.heading_level_2 = ""
    symbol.heading_level_3 = symbol.heading_level_4 = ""
    symbol.image = symbol.link = ""
    symbol.unordered_list_item = "•"
    symbol.task_completed, symbol.task_uncompleted = "[x]", "[ ]"
    symbol.horizontal_rule = "———"
    # A quote of any length is shown whole.
    config.cite_expandable = False
    return config


def _parser_options() -> "Options":
    """The options under which the converter parses, so that both see the same events."""
    from pyromark import Options

    return (
        Options.ENABLE_TABLES
        | Options.ENABLE_STRIKETHROUGH
        | Options.ENABLE_TASKLISTS
        | Options.ENABLE_MATH
    )


# --- what the converter would swallow ---------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class _Edit:
    """A new text for the bytes from `start` to `end` of the UTF-8 source."""

    start: int
    end: int
    text: str


def _shielded_losses(source: str) -> str:
    """`source` changed so that the converter drops nothing of it."""
    text = _SPOILER_OR_BARS.sub(
        lambda match: _shield(match[0]) if match["bars"] else match[0], source
    )
    text = _PRODUCT.sub(_shield("*"), text)
    text = _DEEP_NESTING.sub(lambda match: _shield(match[0]), text)
    for _ in range(_ROUNDS):
        edits = _Losses(text).edits()
        if not edits:
            return text
        text = _edited(text, edits)
    return text.translate({ord(mark): _SHIELD[ord(mark)] for mark in "<[`~"})


def _shield(text: str, marks: str = string.punctuation) -> str:
    return text.translate({ord(mark): _SHIELD[ord(mark)] for mark in marks})


def _edited(text: str, edits: Iterable[_Edit]) -> str:
    source = text.encode()
    parts: list[bytes] = []
    cursor = 0
    for edit in sorted(edits, key=lambda edit: (edit.start, edit.end)):
        # Of two that overlap the second waits for the next round.
        if edit.start >= cursor:
            parts += (source[cursor : edit.start], edit.text.encode())
            cursor = edit.end
    return b"".join((*parts, source[cursor:])).decode()


@dataclass(slots=True, kw_only=True)
class _OpenLink:
    """A link or image whose end has not been read yet."""

    opener: str
    kind: object
    url: str
    text: str = ""
    inner_end: int | None = None

    def take_in(self, text: str, end: int) -> None:
        # Compared with the address alone, so a bounded part of it will do.
        self.text = (self.text + text)[:4096]
        self.inner_end = end


@dataclass(slots=True)
class _Losses:
    """One reading of a source for what the converter would drop from it or misplace."""

    text: str
    _source: bytes = b""
    _edits: list[_Edit] = field(default_factory=list)
    _links: list[_OpenLink] = field(default_factory=list)
    _used_labels: set[str] = field(default_factory=set)
    _is_in_cell: bool = False
    _is_in_code: bool = False
    _is_code_empty: bool = False

    def edits(self) -> list[_Edit]:
        from pyromark import events_with_range, reference_definitions

        self._source = self.text.encode()
        options = _parser_options()
        for event, where in events_with_range(self.text, options=options):
            self._read(event, where["start"], where["end"])
        for label, definition in reference_definitions(self.text, options=options).items():
            if not _is_linkable(definition["dest"]) or _label(label) not in self._used_labels:
                at = self._source.index(b"[", definition["span"]["start"])
                self._shield(at, at + 1)
        return self._edits

    def _read(self, event: object, start: int, end: int) -> None:
        match event:
            case {"Start": tag}:
                self._open(tag)
            case {"End": tag}:
                self._close(tag, start, end)
                self._take_in("", end)
            case {"InlineHtml": str(html)} | {"Html": str(html)}:
                self._shield(start, end, "<")
                self._take_in(html, end)
            case {"InlineMath": str(math)} | {"DisplayMath": str(math)}:
                self._read_math(math, start, end)
            case {"Text": str(text)}:
                self._read_text(text, start, end, is_code=self._is_in_code)
            case {"Code": str(text)}:
                self._read_text(text, start, end, is_code=True)
            case _:
                pass

    def _open(self, tag: object) -> None:
        match tag:
            case {"Link": {"link_type": kind, "dest_url": str(url), "id": str(label)}}:
                self._links.append(_OpenLink(opener="[", kind=kind, url=url))
                self._used_labels.add(_label(label))
            case {"Image": {"link_type": kind, "dest_url": str(url), "id": str(label)}}:
                self._links.append(_OpenLink(opener="![", kind=kind, url=url))
                self._used_labels.add(_label(label))
            case {"CodeBlock": _}:
                self._is_in_code = self._is_code_empty = True
            case "TableCell":
                self._is_in_cell = True
            case _:
                pass

    def _close(self, tag: object, start: int, end: int) -> None:
        match tag:
            case "Link" | "Image":
                link = self._links.pop()
                self._close_link(link, start, end)
                self._take_in(link.text, end)
            case "CodeBlock":
                if self._is_code_empty:
                    self._close_empty_code(start, end)
                self._is_in_code = self._is_code_empty = False
            case "TableCell":
                self._is_in_cell = False
            case _:
                pass

    def _close_link(self, link: _OpenLink, start: int, end: int) -> None:
        is_good = _is_linkable(link.url)
        if link.kind == "Autolink":
            if not is_good:
                self._shield(start, end)
        elif link.inner_end is None:
            # Neither text nor picture to carry it.
            text = link.url or self._source[start:end].decode()
            self._edits.append(_Edit(start=start, end=end, text=_shield(text)))
        elif (link.kind == "Inline" and not is_good) or (self._is_in_cell and link.kind != "Email"):
            shown = link.text.strip()
            target = f" ({link.url})" if link.url and link.url != shown else ""
            opened = start + len(link.opener)
            self._edits.append(_Edit(start=start, end=opened, text=""))
            self._edits.append(_Edit(start=link.inner_end, end=end, text=_shield(target)))
        # A bad target of the reference kind goes with its definition.

    def _close_empty_code(self, start: int, end: int) -> None:
        fence = self._source[start:end].decode()
        if fence.strip("`~ \t\r\n"):
            self._shield(start, end)
        elif "\n" in fence.strip():
            self._shield(start, end, "`~")
        else:
            # The reply broke off here.
            self._edits.append(_Edit(start=start, end=end, text=""))

    def _read_text(self, text: str, start: int, end: int, *, is_code: bool) -> None:
        if text.strip():
            self._is_code_empty = False
        if is_code and _LATEX_OPENER.search(text):
            # The converter turns \\(..\\) into symbols in code as well.
            self._shield(start, end, "\\")
        self._take_in(text, end)

    def _read_math(self, math: str, start: int, end: int) -> None:
        """$HOME/$USER is no formula, and a formula in a table would leave its cell."""
        follower = self._source[end : end + 1]
        if self._is_in_cell or follower.isalnum() or follower in (b"_", b"{"):
            self._shield(start, end, "$")
        self._take_in(math, end)

    def _take_in(self, text: str, end: int) -> None:
        if self._links:
            self._links[-1].take_in(text, end)

    def _shield(self, start: int, end: int, marks: str = string.punctuation) -> None:
        text = _shield(self._source[start:end].decode(), marks)
        self._edits.append(_Edit(start=start, end=end, text=text))


def _label(text: str) -> str:
    return " ".join(text.split()).casefold()


def _is_linkable(url: str) -> bool:
    """Whether Telegram takes `url` as a link's target: http(s), tg or mailto, with a dotted host.

    The rule is TDLib's check of links: one bad target refuses the whole message.
    """
    if not url.isprintable() or " " in url:
        return False
    web = _WEB.fullmatch(url)
    if web:
        return web["port"] is None or 0 < int(web["port"]) < 65536
    return bool(_TG.fullmatch(url) or _MAILTO.fullmatch(url))


# --- what the converter would get wrong -------------------------------------------------------


def _repaired(text: str, found: "Iterable[MessageEntity]") -> tuple[Entity, ...]:
    """The entities of `found` that Telegram accepts, outer before inner."""
    open_entities: list[Entity] = []
    kept = []
    for entity in sorted(_clipped(text, found), key=_nesting_order):
        while open_entities and _end(open_entities[-1]) <= entity.offset:
            open_entities.pop()
        if open_entities:
            # What crosses the end of its surroundings ends there too.
            length = min(_end(entity), _end(open_entities[-1])) - entity.offset
            entity = replace(entity, length=length)
        if not any(_excludes(outer.kind, entity.kind) for outer in open_entities):
            open_entities.append(entity)
            kept.append(entity)
    return tuple(kept)


def _clipped(text: str, found: "Iterable[MessageEntity]") -> Iterator[Entity]:
    units = utf16_len(text)
    low_halves = _low_halves(text)
    for raw in found:
        kind = _KINDS.get(raw.type)
        if kind is None or (kind is EntityKind.TEXT_LINK and not _is_linkable(raw.url or "")):
            continue
        offset = raw.offset - len(_LEAD)
        start, end = max(0, offset), min(offset + raw.length, units)
        start, end = start + (start in low_halves), end - (end in low_halves)
        if start < end:
            language = _LANGUAGE.search(raw.language or "")
            yield Entity(
                kind=kind,
                offset=start,
                length=end - start,
                url=raw.url if kind is EntityKind.TEXT_LINK else None,
                language=language[0] if language and kind is EntityKind.PRE else None,
            )


def _low_halves(text: str) -> frozenset[int]:
    """The unit offsets that lie inside a surrogate pair."""
    astral = (at for at, char in enumerate(text) if char > "\uffff")
    return frozenset(at + before + 1 for before, at in enumerate(astral))


def _nesting_order(entity: Entity) -> tuple[int, int, bool]:
    return entity.offset, -entity.length, entity.kind in _CODE


def _end(entity: Entity) -> int:
    return entity.offset + entity.length


def _excludes(outer: EntityKind, inner: EntityKind) -> bool:
    return outer is inner or outer in _CODE or (outer in _QUOTES and inner in _QUOTES)
