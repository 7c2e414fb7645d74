"""The text of a reminder: the sentence without its time words, without loose ends."""

import re
from typing import Final

from gateway.domain.when.scan import Scan

_CONTROL: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_LOOSE_LEFT: Final = re.compile(r"^(?:[\s,;:.!–—]|-\s)+")
_LOOSE_BEFORE_LIST: Final = re.compile(r"^[\s,;:.!]+")
_LOOSE_RIGHT: Final = frozenset(",;:–—-")
_LEADING: Final = re.compile(r"^(?:(?:to|that|about|of)(?:\s+|$))+", re.IGNORECASE)
_TRAILING: Final = re.compile(r"(?:^|\s)at$|^(?:to|on|that|about)$", re.IGNORECASE)
_EMPTY: Final = re.compile(r"[(]\s*[)]")
_ONE_QUOTE: Final = re.compile(r"[\"“„'‘«]([^\"“”„«»]+)[\"”“'’»]")


def remaining_text(sentence: str, result: Scan) -> str:
    """What the sentence says besides the time, in its own letters.

    Text that is one quoted span loses its quotes.
    """
    segments = []
    position = 0
    tokens = result.words.tokens
    for placed in result.found:
        segments.append(sentence[position : tokens[placed.start].start])
        position = tokens[placed.end - 1].end
    segments.append(sentence[position:])
    text = " ".join(filter(None, (_trim(segment) for segment in segments)))
    # What a time stood in: "on friday (tomorrow)".
    return tidy(text if _EMPTY.search(sentence) else _EMPTY.sub("", text))


def tidy(text: str) -> str:
    """Drop control characters, loose punctuation and a dangling "to", "that" or "at"."""
    text = _trim(_CONTROL.sub("", text))
    text = _trim(_LEADING.sub("", text, count=1))
    text = _trim(_TRAILING.sub("", text, count=1))
    if text.endswith(".") and not text.endswith(".."):
        text = text[:-1]
    quoted = _ONE_QUOTE.fullmatch(text)
    return quoted[1].strip() if quoted is not None else text


def _trim(segment: str) -> str:
    # The dash before the first of several lines belongs to a list.
    loose = _LOOSE_BEFORE_LIST if "\n- " in segment else _LOOSE_LEFT
    text = loose.sub("", segment)
    end = len(text)
    while end and (text[end - 1] in _LOOSE_RIGHT or text[end - 1].isspace()):
        end -= 1
    return text[:end]
