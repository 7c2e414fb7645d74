"""What counts as no answer: the sentinel of a check-in, and the tokens of models that bail out."""

import re

SENTINEL = "NOTHING"
"""The whole answer of a check-in that has nothing to say."""

_TAG = re.compile(r"</?[A-Za-z][^<>]*>")
_WORD = re.compile(r"\w+")
_TOKENS = frozenset(
    {
        *("NOTHING", "SILENT", "SILENCE", "SKIP", "NONE", "NULL", "EMPTY", "OK"),
        *("HEARTBEAT_OK", "HEARTBEATOK", "NO_REPLY", "NOREPLY", "NO_RESPONSE", "NO_OUTPUT"),
    }
)
_LONGEST = 200
"""Characters of a reply that may be a token with marks around it."""


def is_nothing(reply: str) -> bool:
    """Whether the whole reply, less marks, punctuation, emoji, white space and case, is the
    sentinel: one that says anything else as well is an answer.
    """
    return [word.strip("_").upper() for word in _words(reply)] == [SENTINEL]


def is_evasion(reply: str) -> bool:
    """Whether the whole reply is the sentinel or such a token: `[SILENT]`, `HEARTBEAT_OK`.

    For turns that owe the person a text: what they would have been sent stands in for it.
    """
    if not reply.strip():
        return True
    return "_".join(word.strip("_").upper() for word in _words(reply)) in _TOKENS


def _words(reply: str) -> list[str]:
    if len(reply.strip()) > _LONGEST:
        return [reply]
    words = _WORD.findall(_TAG.sub(" ", reply))
    return [word for word in words if word.strip("_")]
