"""Writes what people read about the settings, from `Settings` itself."""

import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from gateway.settings import ENV_FILE_KEY, Settings

_GROUPS = {
    "GATEWAY": "The gateway itself",
    "TELEGRAM": "Telegram",
    "WHATSAPP": "WhatsApp",
    "HOST": "What answers",
    "MODEL": "The model",
    "HEARTBEAT": "Check-ins that the model starts",
    "DELIVERY": "Delivery",
}

_EXAMPLE_HEAD = """\
# Settings of the chat gateway. Copy this file to .env and take the # off what you need; every
# setting may be left out. The environment wins over this file.
# One NAME=value a line. A value with blanks or a # needs quotes; comments have their own lines.
# Durations read 90s, 10m, 24h or 2d; switches true or false.
"""

_TABLE_HEAD = """\
# Settings

Values come from the environment, then from one file: the one that `GATEWAY_ENV_FILE` names, else
`./.env` (if it is yours and not everybody may write to it), else `.env` in the data directory. An
empty value is an unset one. Durations read `90`, `90s`, `10m`, `24h` or `2d`; switches `true`,
`yes`, `1` or `false`, `no`, `0`; lists are separated by commas or written as JSON. Nothing in the
file is interpolated. In single quotes `\\'` and `\\\\` are escapes, in double quotes `\\"`, `\\\\`,
`\\n` and the like, too; a bare value with a blank and a `#` in it is refused.

All problems are reported at once, with exit code 2. An unknown name under one of the prefixes
below is a problem in the file and a warning in the environment.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One setting as the documents show it; `default` and `example` may be empty."""

    name: str
    description: str
    default: str
    is_computed: bool
    example: str


def render_env_example() -> str:
    """The text of `.env.example`: every setting that a file may hold, commented out."""
    parts = [_EXAMPLE_HEAD]
    for title, entries in _grouped_entries():
        parts.append(f"\n# ---- {title} {'-' * (75 - len(title))}\n")
        parts.extend(_example(entry) for entry in entries if entry.name != ENV_FILE_KEY)
    return "".join(parts)


def render_settings_table() -> str:
    """The text of `docs/settings.md`."""
    parts = [_TABLE_HEAD]
    for title, entries in _grouped_entries():
        parts.append(f"\n## {title}\n\n| setting | default | meaning |\n|---|---|---|\n")
        parts.extend(_row(entry) for entry in entries)
    return "".join(parts)


def write_reference(root: Path) -> None:
    """Write both files below the project's directory."""
    (root / ".env.example").write_text(render_env_example(), encoding="utf-8")
    (root / "docs" / "settings.md").write_text(render_settings_table(), encoding="utf-8")


def _grouped_entries() -> Iterator[tuple[str, list[Entry]]]:
    entries = list(_entries())
    for prefix, title in _GROUPS.items():
        yield title, [entry for entry in entries if entry.name.startswith(f"{prefix}_")]


def _entries() -> Iterator[Entry]:
    for attribute, field in Settings.model_fields.items():
        extra = field.json_schema_extra if isinstance(field.json_schema_extra, dict) else {}
        yield Entry(
            name=attribute.upper(),
            description=field.description or "",
            default=str(extra.get("shown") or _default_text(field.default)),
            is_computed=field.default is None or field.default_factory is not None,
            example=str(extra.get("example", "")),
        )


def _default_text(default: object) -> str:
    match default:
        case None | ():
            return ""
        case bool():
            return str(default).lower()
        case timedelta():
            return _duration_text(default)
    return str(default)


def _duration_text(length: timedelta) -> str:
    seconds = round(length.total_seconds())
    if seconds <= 120:
        return f"{seconds}s"
    if seconds % 3600 == 0:
        return f"{seconds // 3600}h"
    return f"{seconds // 60}m" if seconds % 60 == 0 else f"{seconds}s"


def _example(entry: Entry) -> str:
    text = entry.description
    value = entry.default
    if entry.is_computed or not value:
        value = entry.example
        if entry.default:
            text += f" Default: {entry.default}."
        if entry.example:
            text += " Example:"
    comment = textwrap.fill(text, width=98, initial_indent="# ", subsequent_indent="# ")
    return f"{comment}\n#{entry.name}={value}\n"


def _row(entry: Entry) -> str:
    default = entry.default
    if default and not entry.is_computed:
        default = f"`{default}`"
    example = f" Example: `{entry.example}`" if entry.example else ""
    return f"| `{entry.name}` | {default or '-'} | {entry.description}{example} |\n"
