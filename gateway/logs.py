"""Logging: one handler on the root, which adds the ids in force and lets no secret through."""

import json
import logging
import re
import sys
import threading
from collections.abc import Collection, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from types import TracebackType
from typing import TextIO
from urllib.parse import quote

from gateway.log_context import bound_ids

QUIET_LOGGERS = ("alembic", "httpx", "httpcore", "telegram", "apscheduler", "uvicorn")

REDACTED = "[redacted]"

# Shorter keys are placeholders for servers that need none ("none", "x"); hiding such a word
# wherever it occurs would spoil the log and protect nothing.
SHORTEST_SECRET = 6

_TOKEN = re.compile(r"bot[0-9]+(?::|%3A)[A-Za-z0-9_-]+|[0-9]{5,}(?::|%3A)[A-Za-z0-9_-]{30,}", re.I)
_TOKEN_SHAPE = re.compile(r"[0-9]+:([A-Za-z0-9_-]+)")
_PHONE = re.compile(
    r"(?<=whatsapp:)\+?[0-9]{7,15}"
    r"|(?<!\w)\+[0-9][0-9 ().-]{5,18}[0-9]"
    r"|[0-9]{7,15}(?=(?::[0-9]+)?@(?:s\.whatsapp\.net|c\.us))"
)
_BARE_VALUE = re.compile(r"[^\s\"'=]+")
_STANDARD_ATTRIBUTES = frozenset(
    {*vars(logging.makeLogRecord({})), "message", "asctime", "taskName", "color_message"}
)


class Redactor:
    """Replaces secrets, whatever text they turn up in.

    Knows the registered ones in plain, quoted and escaped spelling, the secret half of a bot
    token by itself, and the shape of bot tokens in general.
    """

    def __init__(self, secrets: Collection[str]) -> None:
        spellings = {spelling for secret in secrets for spelling in _spellings(secret)}
        longest_first = sorted(spellings, key=len, reverse=True)
        known = "|".join(re.escape(spelling) for spelling in longest_first)
        self._known = re.compile(known) if known else None

    def __call__(self, text: str) -> str:
        if self._known is not None:
            text = self._known.sub(REDACTED, text)
        return _TOKEN.sub(REDACTED, text)


def _spellings(secret: str) -> Iterator[str]:
    shape = _TOKEN_SHAPE.fullmatch(secret)
    parts = [secret] if shape is None else [shape[1]]
    if shape is not None:
        yield secret
    for part in parts:
        if len(part) >= SHORTEST_SECRET:
            yield part
            yield quote(part, safe="")
            yield repr(part)[1:-1]
            yield json.dumps(part)[1:-1]


def _masked_phone(match: re.Match[str]) -> str:
    return f"*{match[0][-3:]}"


def _escaped(text: str) -> str:
    """`text` on one line: whatever does not print is spelled out."""
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode("ascii")
        for char in text
    )


class _Formatter(logging.Formatter):
    """Takes a record apart; what subclasses put together holds cleaned texts only."""

    def __init__(self, redact: Redactor) -> None:
        super().__init__()
        self._redact = redact

    def clean(self, text: str, record: logging.LogRecord) -> str:
        """`text` without secrets, and without phone numbers unless the record is for debugging."""
        text = self._redact(text)
        return text if record.levelno <= logging.DEBUG else _PHONE.sub(_masked_phone, text)

    def fields(self, record: logging.LogRecord) -> dict[str, str | int | float | None]:
        """The ids in force and what the caller gave as `extra`, which wins."""
        extra = {k: v for k, v in vars(record).items() if k not in _STANDARD_ATTRIBUTES}
        return {
            self._redact(name): value
            if isinstance(value, int | float | None)
            else self.clean(str(value), record)
            for name, value in {**bound_ids(), **extra}.items()
        }

    def traceback(self, record: logging.LogRecord) -> str:
        """The exception and the stack that the record carries, or an empty text."""
        parts = [self.formatException(record.exc_info) if record.exc_info else record.exc_text]
        parts.append(record.stack_info)
        return self.clean("\n".join(part for part in parts if part), record)


class TextFormatter(_Formatter):
    """One line a record: time, level, event, fields; a traceback follows, indented and barred."""

    def format(self, record: logging.LogRecord) -> str:
        time = datetime.fromtimestamp(record.created, UTC).astimezone()
        words = [
            time.isoformat(timespec="milliseconds"),
            f"{record.levelname:<7}",
            _escaped(self.clean(record.getMessage(), record)),
        ]
        for name, value in {**self.fields(record), "logger": record.name}.items():
            words.append(f"{_escaped(name)}={_quoted(str(value))}")
        lines = [" ".join(words)]
        lines += [f"    | {_escaped(line)}" for line in self.traceback(record).splitlines()]
        return "\n".join(lines)


def _quoted(value: str) -> str:
    if _BARE_VALUE.fullmatch(value) and value.isprintable():
        return value
    escaped = _escaped(value.replace("\\", "\\\\").replace('"', '\\"'))
    return f'"{escaped}"'


class JsonFormatter(_Formatter):
    """One JSON object a line, in ASCII."""

    def format(self, record: logging.LogRecord) -> str:
        time = datetime.fromtimestamp(record.created, UTC)
        line: dict[str, str | int | float | None] = {
            "time": time.isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "event": self.clean(record.getMessage(), record),
            "logger": record.name,
        }
        for name, value in self.fields(record).items():
            line[f"{name}_" if name in line else name] = value
        if traceback := self.traceback(record):
            line["traceback"] = traceback
        return json.dumps(line)


class _Handler(logging.StreamHandler[TextIO]):
    """The only handler. A record that cannot be formatted is named, never dumped."""

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 (logging's name)
        # The base class prints the record's arguments past our redaction.
        with suppress(OSError, ValueError):
            self.stream.write(f"log_record_lost logger={record.name} line={record.lineno}\n")
            self.flush()


def configure_logging(
    level: str, format: str, *, secrets: Collection[str], stream: TextIO | None = None
) -> None:
    """Send all logging to `stream` (standard error), as `format` says: text or json.

    Takes the place of whatever was configured before. `secrets` never show, at any level, nor do
    uncaught exceptions escape to the interpreter's own output with them.
    """
    redact = Redactor(secrets)
    handler = _Handler(stream or sys.stderr)
    handler.setFormatter(JsonFormatter(redact) if format == "json" else TextFormatter(redact))
    root = logging.getLogger()
    for former in list(root.handlers):
        root.removeHandler(former)
    root.addHandler(handler)
    root.setLevel(level)
    for name in QUIET_LOGGERS:
        logging.getLogger(name).setLevel(logging.WARNING)
    sys.excepthook = _log_crash
    threading.excepthook = _log_thread_crash


def _log_crash(
    kind: type[BaseException], error: BaseException, traceback: TracebackType | None
) -> None:
    if issubclass(kind, KeyboardInterrupt):
        return
    logging.getLogger("gateway").critical("crashed", exc_info=(kind, error, traceback))


def _log_thread_crash(args: threading.ExceptHookArgs) -> None:
    if args.exc_value is not None and args.exc_type is not SystemExit:
        thread = args.thread.name if args.thread else None
        logging.getLogger("gateway").critical(
            "thread_crashed", exc_info=args.exc_value, extra={"thread_name": thread}
        )
