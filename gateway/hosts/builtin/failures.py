"""Why a model call failed, in a line that is safe to log."""

import re

from gateway.errors import HostError
from gateway.hosts.builtin.loose_json import as_object, as_text, parse_object

CONTEXT_MARK = "context_length_exceeded"
_LONGEST_DETAIL = 300
_PASSING_STATUSES = frozenset({408, 409, 429, 529})
_OVERFLOW = re.compile(
    r"context[_ ]length|context[_ ]size|context window|maximum context|context limit"
    r"|prompt is too long|prompt too long|input is too long|too many (?:input )?tokens"
    r"|exceeds? the maximum number of tokens|reduce the length of the (?:messages|prompt)"
    r"|context the overflows|exceed_context",
    re.IGNORECASE,
)
# How servers say that a model, or their own set-up, knows no tools.
_NO_TOOLS = re.compile(
    r"not support (?:tools|functions)|support tool use|tool[_ -]choice|tool[_ -]call|tools param",
    re.IGNORECASE,
)
_TAG = re.compile(r"<[^>]*>")
_URL = re.compile(r"\b[a-z][a-z0-9+.-]*://[^\s\"'<>]+", re.IGNORECASE)
_KEY = re.compile(r"\b(?:sk|pk|key|gsk|xai|AIza)[-_]?[\w*.-]{8,}|\bBearer\s+\S+", re.IGNORECASE)


class ModelError(HostError):
    """A model call that brought no reply; `str()` holds no key and no address.

    `is_passing`: worth another try. `is_overflow`: the conversation does not fit the model.
    `rejects_tools`: the same request without tools may be taken. `retry_after` is the server's
    wish in seconds.
    """

    def __init__(
        self,
        message: str,
        *,
        status: int | None = None,
        is_passing: bool = False,
        retry_after: float | None = None,
    ) -> None:
        self.is_overflow = status in {None, 400, 413, 422, 500} and bool(_OVERFLOW.search(message))
        if self.is_overflow and CONTEXT_MARK not in message:
            message = f"{CONTEXT_MARK}: {message}"
        super().__init__(message if status is None else f"{status}: {message}")
        self.rejects_tools = not self.is_overflow and _rejects_tools(status, message)
        # A request that cannot be taken as it stands will not be taken later either.
        self.is_passing = is_passing and not (self.is_overflow or self.rejects_tools)
        self.retry_after = retry_after


def _rejects_tools(status: int | None, message: str) -> bool:
    if status in {400, 422}:  # servers that check strictly say all sorts of things here
        return True
    return status in {404, 500, 501} and bool(_NO_TOOLS.search(message))


def is_passing_status(status: int) -> bool:
    """Tell whether a status may be gone at the next try."""
    return status in _PASSING_STATUSES or status >= 500


def error_from_body(
    body: str | bytes, *, status: int | None, secret: str | None, retry_after: float | None = None
) -> ModelError:
    """Return the failure that a provider's error body describes."""
    data = parse_object(body)
    if data is None:
        text = body.decode("utf-8", "replace") if isinstance(body, bytes) else body
        detail = _TAG.sub(" ", text)
    else:
        detail = _message_in(data)
    return ModelError(
        redact(detail, secret) or "no body",
        status=status,
        is_passing=status is not None and is_passing_status(status),
        retry_after=retry_after,
    )


def _message_in(data: dict[str, object]) -> str:
    error = data.get("error", data)
    if isinstance(error, str):
        return error
    fields = as_object(error)
    words = [as_text(fields.get(name)) for name in ("code", "type", "message")]
    return " ".join(dict.fromkeys(word for word in words if word)) or str(data)


def redact(text: str, secret: str | None) -> str:
    """Return one short line without the key, anything shaped like a key, or an address."""
    if secret:
        text = text.replace(secret, "[key]")
    line = " ".join(_KEY.sub("[key]", _URL.sub("[address]", text)).split())
    return line if len(line) <= _LONGEST_DETAIL else line[: _LONGEST_DETAIL - 1] + "…"
