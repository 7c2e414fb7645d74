"""What counts as no answer: the sentinel of a check-in, and the tokens of models that bail out."""

import re

SENTINEL = "NOTHING"
"""The whole answer of a check-in that has nothing to say."""

_TAG = re.compile(r"</?[A-Za-z][^<>]*>")
_WORD = re.compile(r"\w+")
_BRACKETED = re.compile(r"\W*\[\W*\w+\W*\]\W*")


def is_nothing(reply: str) -> bool:
    """Whether the whole reply, less marks, punctuation, emoji, white space and case, is the
    sentinel: one that says anything else as well is an answer.
    """
    return [word.strip("_").upper() for word in _words(reply)] == [SENTINEL]


def is_evasion(reply: str) -> bool:
    """Whether the whole reply is the sentinel or such a token: `[SILENT]`, `HEARTBEAT_OK`.

    For turns that owe the person a text: what they would have been sent stands in for it.
    """
    words = _words(reply)
    if len(words) != 1:
        return not reply.strip()
    is_shouted = words[0].isupper() and len(words[0]) > 1
    return is_shouted or is_nothing(reply) or _BRACKETED.fullmatch(reply) is not None


def _words(reply: str) -> list[str]:
    words = _WORD.findall(_TAG.sub(" ", reply))
    return [word for word in words if word.strip("_")]
