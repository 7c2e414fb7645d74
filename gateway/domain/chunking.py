"""How formatted text is cut into pieces that a channel accepts."""

import heapq
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

from gateway.domain.graphemes import is_boundary
from gateway.domain.richtext import Entity, EntityKind, RichText, sanitize, utf16_len

__all__ = [
    "CONSOLE",
    "MARK_RESERVE",
    "TELEGRAM",
    "Entity",
    "EntityKind",
    "Limits",
    "RichText",
    "sanitize",
    "split",
    "utf16_len",
]

# Units kept free in every Telegram piece for a mark such as "(may be a repeat) ".
MARK_RESERVE = 128

# What Telegram takes for nothing at all: white space, zero-width and blank characters.
_VISIBLE = re.compile(r"[^\s\u180e\u200b-\u200f\u2060\u2800\ufeff]")
_BLANK_LINE = re.compile(r"\r?\n[^\S\n]*\n")
_NEWLINE = re.compile(r"\r?\n")
# Bounded and anchored behind the mark, so that a line of dots is not read again and again.
_SENTENCE_END = re.compile(
    r"(?<=[.!?…])[\"'”’»)\]]{0,3}(?=\s)|(?<=[。！？])[”’」』）]{0,3}(?![。！？])"
)
_SPACE = re.compile(r"\s+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What one piece may hold: `units` UTF-16 code units of text, and `entities`.

    Raises ValueError if not even one character with one entity would fit.
    """

    units: int
    entities: int

    def __post_init__(self) -> None:
        if self.units < 2 or self.entities < 1:
            raise ValueError("a piece must hold 2 units and 1 entity at least")


# 4096 units after parsing and 100 entities a message: the Bot API's sendMessage.
TELEGRAM = Limits(units=4096 - MARK_RESERVE, entities=100)
CONSOLE = Limits(units=1_000_000, entities=1_000_000)


def split(rich: RichText, limits: Limits) -> tuple[RichText, ...]:
    """Cut `rich` into pieces within `limits`, none of them blank; blank input gives none.

    A cut is made at the last blank line, else newline, sentence end or space in the second half
    of a full piece, else between two grapheme clusters; further ahead only to keep whole a word
    or line of code that fits in one piece. White space is lost at cuts alone, within a code block
    only the one newline that was cut at. Entities that cross a cut go on in the next piece; a
    link moves there whole if it fits. Of entities nested deeper than half of `limits.entities`
    the inner ones are dropped, so that every piece makes headway.
    """
    return tuple(_Cutter(_sanitized(rich), limits).pieces())


def _sanitized(rich: RichText) -> RichText:
    text = sanitize(rich.text)
    if "\0" not in rich.text:
        return replace(rich, text=text)
    units = _unit_offsets(rich.text)
    nuls = [units[at] for at, char in enumerate(rich.text) if char == "\0"]
    entities = []
    for entity in rich.entities:
        end = entity.offset + entity.length
        start = entity.offset - bisect_left(nuls, entity.offset)
        length = end - bisect_left(nuls, end) - start
        entities.append(replace(entity, offset=start, length=length))
    return RichText(text=text, entities=tuple(entities))


def _unit_offsets(text: str) -> Sequence[int]:
    """The UTF-16 offset of each code point, and of the end."""
    if text.isascii() or max(text) <= "\uffff":
        return range(len(text) + 1)
    return list(accumulate((1 if char <= "\uffff" else 2 for char in text), initial=0))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Span:
    """An entity with its range in code points."""

    start: int
    end: int
    entity: Entity


class _Zones:
    """Ranges of code points, merged where they overlap, that a cut treats apart."""

    def __init__(self, spans: Iterable[_Span]) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []
        for span in spans:
            if self._ends and span.start < self._ends[-1]:
                self._ends[-1] = max(span.end, self._ends[-1])
            else:
                self._starts.append(span.start)
                self._ends.append(span.end)

    def start_around(self, at: int) -> int | None:
        """Where the zone begins that a cut at `at` would divide; None if it divides none."""
        index = bisect_left(self._starts, at) - 1
        return self._starts[index] if index >= 0 and at < self._ends[index] else None

    def is_divided(self, at: int) -> bool:
        return self.start_around(at) is not None

    def holds(self, at: int) -> bool:
        """Whether the code point at `at` lies in a zone."""
        index = bisect_right(self._starts, at) - 1
        return index >= 0 and at < self._ends[index]

    def next_start(self, at: int, default: int) -> int:
        """Where the first zone at or after `at` begins."""
        index = bisect_left(self._starts, at)
        return self._starts[index] if index < len(self._starts) else default


class _Cutter:
    """One run of `split`; positions are code points unless named units."""

    def __init__(self, rich: RichText, limits: Limits) -> None:
        self._text = rich.text
        self._limits = limits
        self._offsets = _unit_offsets(rich.text)
        self._spans = self._spans_of(rich.entities)
        self._pre = _Zones(s for s in self._spans if s.entity.kind is EntityKind.PRE)
        self._links = _Zones(s for s in self._spans if self._is_movable_link(s))

    def pieces(self) -> Iterator[RichText]:
        start, end = 0, len(self._text)
        upcoming = 0
        held: list[_Span] = []
        while start < end:
            # Held are the spans that cover `start`; the upcoming ones begin after it.
            held = [span for span in held if span.end > start]
            while upcoming < len(self._spans) and self._spans[upcoming].start <= start:
                if self._spans[upcoming].end > start:
                    held.append(self._spans[upcoming])
                upcoming += 1
            over = upcoming + self._limits.entities - len(held)
            entity_limit = self._spans[over].start if over < len(self._spans) else end
            cut = self._cut(start, min(entity_limit, self._reach(start)))
            stop = self._trimmed(start, cut)
            while upcoming < len(self._spans) and self._spans[upcoming].start < stop:
                held.append(self._spans[upcoming])
                upcoming += 1
            if _VISIBLE.search(self._text, start, stop):
                yield self._piece(start, stop, held)
            start = self._resume(cut)

    def _spans_of(self, entities: tuple[Entity, ...]) -> list[_Span]:
        """The entities clipped to whole code points of the text, outer before inner."""
        found = []
        for entity in entities:
            start = bisect_left(self._offsets, max(0, entity.offset))
            end = bisect_right(self._offsets, entity.offset + entity.length) - 1
            if start < end:
                found.append(_Span(start=start, end=end, entity=entity))
        found.sort(key=lambda span: (span.start, -span.end))
        depth = max(1, self._limits.entities // 2)
        ends: list[int] = []
        kept = []
        for span in found:
            while ends and ends[0] <= span.start:
                heapq.heappop(ends)
            if len(ends) < depth:
                heapq.heappush(ends, span.end)
                kept.append(span)
        return kept

    def _is_movable_link(self, span: _Span) -> bool:
        units = self._offsets[span.end] - self._offsets[span.start]
        return span.entity.kind is EntityKind.TEXT_LINK and units <= self._limits.units

    def _piece(self, start: int, stop: int, spans: list[_Span]) -> RichText:
        base = self._offsets[start]
        entities = []
        for span in spans:
            first, last = max(span.start, start), min(span.end, stop)
            if first < last:
                offset = self._offsets[first]
                length = self._offsets[last] - offset
                entities.append(replace(span.entity, offset=offset - base, length=length))
        entities.sort(key=lambda entity: (entity.offset, -entity.length))
        return RichText(text=self._text[start:stop], entities=tuple(entities))

    def _reach(self, start: int) -> int:
        """The furthest end of a piece that begins at `start`."""
        return bisect_right(self._offsets, self._offsets[start] + self._limits.units) - 1

    def _cut(self, start: int, limit: int) -> int:
        """Where the piece from `start` on ends: after `start`, at most at `limit`."""
        if limit == len(self._text):
            return limit
        link = self._links.start_around(limit)
        if link is not None and link > start:
            limit = link
        half = start + (limit - start) // 2
        for candidate in self._candidates(start, half, limit):
            if candidate is not None:
                return candidate
        return self._cluster_cut(start, limit)

    def _candidates(self, start: int, half: int, limit: int) -> Iterator[int | None]:
        yield self._last(_BLANK_LINE, half, limit)
        yield self._last(_NEWLINE, half, limit)
        yield self._last(_NEWLINE, half, limit, in_pre=True)
        yield self._last(_SENTENCE_END, half, limit)
        yield self._last(_SPACE, half, limit)
        yield self._early_break(start, limit)
        yield self._space_in_pre(start, half, limit)

    def _last(
        self, pattern: re.Pattern[str], low: int, limit: int, *, in_pre: bool = False
    ) -> int | None:
        """The last cut that `pattern` allows after `low` and up to `limit`, or None."""
        found = None
        for match in pattern.finditer(self._text, low, limit + 2):
            cut = match.end() if pattern is _SENTENCE_END else match.start()
            if low < cut <= limit and self._is_open(cut, in_pre=in_pre):
                found = cut
        return found

    def _is_open(self, cut: int, *, in_pre: bool) -> bool:
        return (
            self._pre.is_divided(cut) is in_pre
            and not self._links.is_divided(cut)
            and is_boundary(self._text, cut)
        )

    def _last_break(self, low: int, limit: int) -> int | None:
        """The last space outside code blocks or newline inside one."""
        space = self._last(_SPACE, low, limit)
        newline = self._last(_NEWLINE, low, limit, in_pre=True)
        return max((cut for cut in (space, newline) if cut is not None), default=None)

    def _early_break(self, start: int, limit: int) -> int | None:
        """A break in the first half, if the word or line that it moves on fits in one piece."""
        cut = self._last_break(start, limit)
        if cut is None:
            return None
        reach = self._reach(self._resume(cut))
        fits = reach == len(self._text) or self._last_break(limit, reach) is not None
        return cut if fits else None

    def _space_in_pre(self, start: int, half: int, limit: int) -> int | None:
        """The last place after a space in a code block: the space stays, as code must."""
        visible = _VISIBLE.search(self._text, start, limit)
        if visible is None:
            return None
        found = None
        for match in _SPACE.finditer(self._text, max(half, visible.end()), limit):
            if self._is_open(match.end(), in_pre=True):
                found = match.end()
        return found

    def _cluster_cut(self, start: int, limit: int) -> int:
        at = limit
        while at > start:
            link = self._links.start_around(at)
            if link is not None and link > start:
                at = link
            elif is_boundary(self._text, at, floor=start):
                return at
            else:
                at -= 1
        return limit

    def _trimmed(self, start: int, cut: int) -> int:
        """Where the text before `cut` ends, less the white space that the cut swallows."""
        if cut == len(self._text) or self._pre.is_divided(cut):
            return cut
        while cut > start and self._text[cut - 1].isspace() and not self._pre.holds(cut - 1):
            cut -= 1
        return cut

    def _resume(self, cut: int) -> int:
        """Where the next piece begins, past the white space that the cut swallows."""
        if self._pre.is_divided(cut):
            newline = _NEWLINE.match(self._text, cut)
            return newline.end() if newline else cut
        space = _SPACE.match(self._text, cut, self._pre.next_start(cut, len(self._text)))
        if space is None:
            return cut
        # A space that carries a combining mark is half of a cluster and stays.
        return space.end() if is_boundary(self._text, space.end()) else space.end() - 1
