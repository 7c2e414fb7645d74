"""Reading JSON that a model or its server wrote, without trusting any of its shapes."""

import json

JsonObject = dict[str, object]


def parse_json(text: str | bytes) -> object:
    """Return the value; raises ValueError for anything that is not JSON, however deep."""
    try:
        value: object = json.loads(text)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    return value


def parse_object(text: str | bytes) -> JsonObject | None:
    """Return the object, or None for anything else."""
    try:
        value = parse_json(text)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def as_object(value: object) -> JsonObject:
    """Return the object, or an empty one for anything else."""
    return value if isinstance(value, dict) else {}


def as_list(value: object) -> list[object]:
    """Return the list, or an empty one for anything else."""
    return value if isinstance(value, list) else []


def as_text(value: object) -> str:
    """Return the text, or an empty one for anything else."""
    return value if isinstance(value, str) else ""


def as_count(value: object) -> int | None:
    """Return a whole number of zero or more, or None for anything else."""
    is_count = isinstance(value, int) and not isinstance(value, bool) and value >= 0
    return value if is_count and isinstance(value, int) else None


def dump_line(value: JsonObject) -> bytes:
    """Return one line of UTF-8 ending in a newline, text unescaped.

    A lone surrogate, which UTF-8 cannot hold, becomes a question mark.
    """
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "replace") + b"\n"
