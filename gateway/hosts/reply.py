"""What a model's last message amounts to: a reply for the chat, or the kind of its failure."""

import re
import unicodedata
from dataclasses import dataclass

from gateway.hosts.base import Failed, FailureKind, Finished

_REASONING_TAG = re.compile(r"<\s*(/?)\s*(?:think|thinking|reasoning)\b[^<>]*>", re.IGNORECASE)

_OVERFLOW = re.compile(
    r"context[ _-]?(?:length|window|size)"
    r"|maximum context|prompt(?: is)? too long|input is too long|too many (?:input )?tokens"
    r"|maximum prompt length|input token count|token limit exceeded|exceeded model token limit"
    r"|reduce the length",
    re.IGNORECASE,
)
_OVERLOAD = re.compile(r"\b(?:429|529)\b|rate.?limit|overloaded|throttl", re.IGNORECASE)
_ACCOUNT = re.compile(
    r"\b40[123]\b|api[ _-]?key|unauthori[sz]ed|forbidden|authentication|invalid.{0,20}credential",
    re.IGNORECASE,
)
_UNPAID = re.compile(r"insufficient_quota|billing|credit balance|payment required", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Which model made a message and what it cost, as far as the host says."""

    provider: str | None = None
    model: str | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None


def finish(text: str, origin: Origin) -> Finished | Failed:
    """Make the outcome of a run that ended well; the only place where a reply is made.

    Reasoning is stripped, as is what no store or channel can hold (NUL, half surrogate pairs).
    Nothing visible left is a failure of its own.
    """
    reply = _drop_unwritable(strip_reasoning(text)).strip()
    if not _is_visible(reply):
        return fail(FailureKind.EMPTY, f"no visible text in {len(text)} characters", origin)
    return Finished(
        text=reply,
        provider=origin.provider,
        model=origin.model,
        input_tokens=origin.input_tokens,
        output_tokens=origin.output_tokens,
    )


def fail(kind: FailureKind, detail: str, origin: Origin | None = None) -> Failed:
    """Make the outcome of a run without a reply; `detail` reaches the log only."""
    return Failed(
        kind=kind,
        detail=detail,
        provider=origin.provider if origin else None,
        model=origin.model if origin else None,
    )


def strip_reasoning(text: str) -> str:
    """Remove think, thinking and reasoning blocks, nested and unclosed ones too.

    An unclosed block reaches to the end. A closing tag without an opening one ends a block that
    began with the text: some chat templates keep the opening tag to themselves.
    """
    kept: list[str] = []
    depth = 0
    position = 0
    for tag in _REASONING_TAG.finditer(text):
        if depth == 0:
            kept.append(text[position : tag.start()])
        position = tag.end()
        if tag.group(1):
            if depth == 0:
                kept.clear()
            depth = max(0, depth - 1)
        elif not tag.group().rstrip("> ").endswith("/"):
            depth += 1
    if depth == 0:
        kept.append(text[position:])
    return "".join(kept).strip()


def classify_error(message: str) -> FailureKind:
    """Tell from a provider's error text who can mend it: AUTH, CONTEXT or plain ERROR."""
    if _UNPAID.search(message):
        return FailureKind.AUTH
    if _OVERLOAD.search(message):
        return FailureKind.ERROR
    if _OVERFLOW.search(message):
        return FailureKind.CONTEXT
    if _ACCOUNT.search(message):
        return FailureKind.AUTH
    return FailureKind.ERROR


def _drop_unwritable(text: str) -> str:
    return text.replace("\0", "").encode("utf-8", "replace").decode("utf-8")


def _is_visible(text: str) -> bool:
    return any(not _is_blank(character) for character in text)


def _is_blank(character: str) -> bool:
    return character.isspace() or unicodedata.category(character) in {"Cc", "Cf"}
