"""The facts of a prompt as they travel to our own child: plain JSON, times as integer ms UTC."""

from datetime import UTC, datetime, timedelta

from gateway.hosts.base import ContextMessage, PromptContext, RecentSight

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)


def encode_context(context: PromptContext) -> dict[str, object]:
    """Return the JSON object that `decode_context` reads back; times lose their microseconds."""
    return {
        "messages": [_encode_message(message) for message in context.messages],
        "trigger": context.trigger,
        "timezone": context.timezone,
        "now": _to_milliseconds(context.now),
        "job": context.job,
        "recent": [_encode_sight(sight) for sight in context.recent],
    }


def decode_context(data: object) -> PromptContext:
    """Read what `encode_context` wrote; raises ValueError naming the first wrong field."""
    fields = _object(data, "context")
    return PromptContext(
        messages=tuple(_decode_message(item) for item in _list(fields, "messages")),
        trigger=_text(fields, "trigger"),
        timezone=_text(fields, "timezone"),
        now=_time(fields, "now"),
        job=_optional_text(fields, "job"),
        recent=tuple(_decode_sight(item) for item in _list(fields, "recent")),
    )


def _encode_message(message: ContextMessage) -> dict[str, object]:
    return {
        "text": message.text,
        "sender": message.sender,
        "sent_at": _to_milliseconds(message.sent_at),
        "quoted": message.quoted,
    }


def _decode_message(data: object) -> ContextMessage:
    fields = _object(data, "messages")
    return ContextMessage(
        text=_text(fields, "text"),
        sender=_text(fields, "sender"),
        sent_at=_time(fields, "sent_at"),
        quoted=_optional_text(fields, "quoted"),
    )


def _encode_sight(sight: RecentSight) -> dict[str, object]:
    return {"text": sight.text, "job_ids": list(sight.job_ids)}


def _decode_sight(data: object) -> RecentSight:
    fields = _object(data, "recent")
    return RecentSight(
        text=_text(fields, "text"),
        job_ids=tuple(_whole(item, "job_ids") for item in _list(fields, "job_ids")),
    )


def _to_milliseconds(moment: datetime) -> int:
    if moment.tzinfo is None:
        raise ValueError("a time without a zone cannot be told to a host")
    return (moment - _EPOCH) // _MILLISECOND


def _object(data: object, name: str) -> dict[str, object]:
    if not isinstance(data, dict):
        raise ValueError(f"{name} is not an object")
    return {str(key): value for key, value in data.items()}


def _list(fields: dict[str, object], name: str) -> list[object]:
    value = fields.get(name)
    if not isinstance(value, list):
        raise ValueError(f"{name} is not a list")
    return list(value)


def _whole(value: object, name: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise ValueError(f"{name} is not whole numbers")
    return value


def _as_text(value: object, name: str) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{name} is not text")
    return value


def _text(fields: dict[str, object], name: str) -> str:
    return _as_text(fields.get(name), name)


def _optional_text(fields: dict[str, object], name: str) -> str | None:
    value = fields.get(name)
    return None if value is None else _as_text(value, name)


def _time(fields: dict[str, object], name: str) -> datetime:
    value = fields.get(name)
    if not isinstance(value, int) or isinstance(value, bool):
        raise ValueError(f"{name} is not a time in milliseconds")
    try:
        return _EPOCH + value * _MILLISECOND
    except OverflowError as error:
        raise ValueError(f"{name} is not a time in milliseconds") from error
