"""What a failed call to the Bot API means for the chunk that it carried."""

from collections.abc import Iterable

import httpx
from telegram.error import (
    BadRequest,
    ChatMigrated,
    Conflict,
    Forbidden,
    InvalidToken,
    NetworkError,
    TelegramError,
    TimedOut,
)

from gateway.channels.telegram.answers import RateLimitedError, UnreadableAnswerError
from gateway.domain.delivery import (
    Malformed,
    Moved,
    NotSent,
    NotSentReason,
    Rejected,
    SendOutcome,
    Unknown,
)

# Raised before the first byte of the request was written.
_BEFORE_SENDING = (
    httpx.ConnectError,  # refused, DNS, TLS handshake
    httpx.ConnectTimeout,
    httpx.PoolTimeout,
    httpx.ProxyError,
    httpx.InvalidURL,
    httpx.UnsupportedProtocol,
    httpx.LocalProtocolError,
)
_FORMATTING = ("can't parse entities", "entity", "entities", "can't find end")
_NOT_EDITABLE = (
    "message to edit not found",
    "message can't be edited",
    "message_id_invalid",
    "message_edit_time_expired",
    "there is no text in the message to edit",
)
_GONE = (
    "chat not found",
    "user not found",
    "peer_id_invalid",
    "chat_id is empty",
    "bot was kicked",
    "user is deactivated",
    "input_user_deactivated",
    "chat was deactivated",
    "chat was deleted",
)


def classify(error: BaseException) -> SendOutcome:
    """Say what became of a chunk whose send raised `error`; the only place that decides it.

    Reasons hold the server's own words or the name of a network failure, never an address: the
    token is part of each address.
    """
    match error:
        case RateLimitedError():
            return NotSent(reason=NotSentReason.RATE_LIMITED, retry_after=error.retry_after)
        case UnreadableAnswerError():
            return _unreadable(error)
        case ChatMigrated():
            return Moved(to=str(error.new_chat_id))
        case BadRequest():
            return _bad_request(error.message)
        case Forbidden():
            return _forbidden(error.message)
        case InvalidToken():
            return NotSent(reason=NotSentReason.CHANNEL_DOWN)
        case Conflict():
            return NotSent(reason=NotSentReason.REFUSED_FOR_NOW)
        case NetworkError() if isinstance(error.__cause__, _BEFORE_SENDING):
            return NotSent(reason=NotSentReason.CHANNEL_DOWN)
        case _:
            return Unknown(reason=describe(error), answered=False)


def is_topic_gone(error: BaseException) -> bool:
    """Whether the send failed only because the topic that it named does not exist any more."""
    return isinstance(error, BadRequest) and _has(
        error.message, ("message thread not found", "topic_deleted")
    )


def is_unchanged(error: BaseException) -> bool:
    """Whether an edit failed only because the message says that already."""
    return isinstance(error, BadRequest) and _has(error.message, ("message is not modified",))


def is_not_editable(error: BaseException) -> bool:
    """Whether an edit failed because the message is deleted, too old, or not the bot's."""
    return isinstance(error, BadRequest) and _has(error.message, _NOT_EDITABLE)


def describe(error: BaseException) -> str:
    """A failure in words fit for a log or a status line: no address, hence no token."""
    match error:
        case InvalidToken():
            return "the bot token is not accepted"
        case RateLimitedError() | UnreadableAnswerError():
            return error.message
        case TimedOut() | NetworkError() if not isinstance(error, BadRequest):
            return _cause(error)
        case TelegramError():
            return error.message
        case TimeoutError():
            return "no answer in time"
        case _:
            return type(error).__name__


def _cause(error: BaseException) -> str:
    match error.__cause__:
        case httpx.ConnectError() | httpx.ProxyError():
            return "no connection"
        case httpx.ConnectTimeout() | httpx.PoolTimeout():
            return "no connection in time"
        case httpx.TimeoutException():
            return "no answer in time"
        case httpx.TransportError():
            return "the connection broke off"
        case cause:
            return type(cause or error).__name__


def _unreadable(error: UnreadableAnswerError) -> SendOutcome:
    """5xx and a strange 200 may hide an accepted message; other codes are a refusal on the way."""
    status = error.status
    if status >= 500 or 200 <= status < 300:
        return Unknown(reason=error.message, answered=True)
    if status == 413:
        return Rejected(reason=error.message)
    if 300 <= status < 400:
        return NotSent(reason=NotSentReason.CHANNEL_DOWN)
    return NotSent(reason=NotSentReason.REFUSED_FOR_NOW)


def _bad_request(message: str) -> SendOutcome:
    if _has(message, _GONE):
        return Rejected(reason=message, chat_gone=True)
    if _has(message, _FORMATTING):
        return Malformed(reason=message)
    return Rejected(reason=message)


def _forbidden(message: str) -> SendOutcome:
    """A 403 may be lifted (unblocked, let in again), unless the account or group is no more."""
    if _has(message, ("user is deactivated", "chat was deleted")):
        return Rejected(reason=message, chat_gone=True)
    return NotSent(reason=NotSentReason.CHAT_UNREACHABLE)


def _has(message: str, phrases: Iterable[str]) -> bool:
    lowered = message.lower()
    return any(phrase in lowered for phrase in phrases)
