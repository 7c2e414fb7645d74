"""What the real Bot API server accepts as a message, and how it refuses the rest."""

import re
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

MAX_UNITS = 4096
MAX_RAW_BYTES = 32_768
MAX_ENTITIES = 100
MAX_DATA_BYTES = 64

_HTML_TAGS = frozenset(
    {"a", "b", "strong", "i", "em", "s", "strike", "del", "u", "ins", "span", "pre", "code"}
    | {"blockquote", "tg-spoiler", "tg-emoji", "tg-time"}
)
_TAG = re.compile(rb"</?([a-zA-Z][a-zA-Z0-9-]*)[^>]*>")
_MARKDOWN_V2_RESERVED = re.compile(r"(?<!\\)[.!#+=|{}>()\[\]~-]")
_SCHEMES = frozenset({"http", "https", "ton", "tg", "tonsite", "mailto", "tel"})


class RefusedError(Exception):
    """The server answers with an error and does nothing."""

    def __init__(self, status: int, description: str) -> None:
        super().__init__(description)
        self.status = status
        self.description = description


def bad_request(description: str) -> RefusedError:
    return RefusedError(400, f"Bad Request: {description}")


def check_text(
    text: str, entities: Sequence[dict[str, Any]], parse_mode: str | None
) -> tuple[str, list[dict[str, Any]]]:
    """Return text and entities as the server keeps them, or raise RefusedError.

    Parse modes are only refused where they are plainly wrong, never applied.
    """
    if not text:
        raise bad_request("message text is empty")
    if len(text.encode("utf-8", "surrogatepass")) > MAX_RAW_BYTES:
        raise bad_request("text is too long")
    _check_parse_mode(text, parse_mode)
    kept = [_checked_entity(entity, text) for entity in entities][:MAX_ENTITIES]
    trimmed = text.rstrip()
    if not trimmed.strip():
        raise bad_request("text must be non-empty")
    if _units(trimmed) > MAX_UNITS:
        raise bad_request("message is too long")
    return trimmed, kept


def check_keyboard(markup: Any) -> dict[str, Any] | None:
    """Return the buttons under a message as the server keeps them, or raise RefusedError."""
    if not markup:
        return None
    if not isinstance(markup, dict) or not isinstance(markup.get("inline_keyboard"), list):
        raise bad_request("object expected as reply markup")
    rows = [[_checked_button(button) for button in row] for row in markup["inline_keyboard"]]
    return {"inline_keyboard": rows} if any(rows) else None


def _checked_button(button: dict[str, Any]) -> dict[str, Any]:
    wrong = "can't parse inline keyboard button: "
    if not button.get("text"):
        raise bad_request(wrong + 'Can\'t find field "text"')
    if "callback_data" not in button:
        raise bad_request(wrong + "Text buttons are unallowed in the inline keyboard")
    if not 1 <= len(str(button["callback_data"]).encode()) <= MAX_DATA_BYTES:
        raise bad_request("BUTTON_DATA_INVALID")
    return button


def _units(text: str) -> int:
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def _check_parse_mode(text: str, parse_mode: str | None) -> None:
    match (parse_mode or "").lower():
        case "":
            return
        case "html":
            for tag in _TAG.finditer(text.encode()):
                name = tag.group(1).decode().lower()
                if name not in _HTML_TAGS:
                    raise bad_request(
                        f'can\'t parse entities: Unsupported start tag "{name}" '
                        f"at byte offset {tag.start()}"
                    )
        case "markdownv2":
            reserved = _MARKDOWN_V2_RESERVED.search(text)
            if reserved:
                raise bad_request(
                    f"can't parse entities: Character '{reserved.group()}' is reserved and must "
                    "be escaped with the preceding '\\'"
                )
        case "markdown":
            if text.count("*") % 2 or text.count("`") % 2:
                raise bad_request(
                    "can't parse entities: Can't find end of the entity starting at byte offset 0"
                )
        case _:
            raise bad_request("unsupported parse_mode")


def _checked_entity(entity: dict[str, Any], text: str) -> dict[str, Any]:
    start = int(entity["offset"])
    end = start + int(entity["length"])
    units = text.encode("utf-16-le", "surrogatepass")
    total = len(units) // 2
    if start < 0 or end <= start or end > total:
        raise bad_request(
            f"entity beginning at UTF-16 offset {start} ends after the end of the text "
            f"at UTF-16 offset {end}"
        )
    for edge, what in ((start, "begins"), (end, "ends")):
        if edge < total and 0xDC <= units[2 * edge + 1] <= 0xDF:
            raise bad_request(
                f"entity {what} in a middle of a UTF-16 symbol at UTF-16 offset {edge}"
            )
    if entity.get("type") == "text_link":
        _check_link(str(entity.get("url", "")))
    return entity


def _check_link(url: str) -> None:
    parts = urlsplit(url if "://" in url or ":" in url else f"http://{url}")
    if parts.scheme not in _SCHEMES:
        raise bad_request(f"Entity URL has an unsupported protocol: {parts.scheme}")
    if parts.scheme in ("http", "https") and "." not in (parts.hostname or ""):
        raise bad_request("Entity URL is invalid: Wrong HTTP URL")
