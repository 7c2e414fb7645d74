"""The session's memory on disk: JSON lines, one for each completed turn.

The first line names version and session; `turn` lines follow. A compaction writes the file
anew: a `compaction` line that stands for all that went before it, then the turns that were kept.
"""

import logging
import os
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

from gateway.hosts.builtin.loose_json import JsonObject, as_count, as_text, dump_line, parse_object
from gateway.hosts.builtin.messages import Turn, turn_from_json, turn_to_json

_VERSION = 1
_SUFFIX = ".jsonl"
_STAMP_DIGITS = 19  # nanoseconds since 1970
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    """What could be read of a transcript."""

    session_id: str
    summary: str | None = None
    turns: tuple[Turn, ...] = ()


class Transcript:
    """One session's file. It appears with the first entry, or when begun; without a path, never.

    A disk that fails costs the memory of a restart, not the reply: it is logged and lived with.
    """

    def __init__(self, *, session_id: str, path: Path | None) -> None:
        self.session_id = session_id
        self.path = path

    def begin(self) -> None:
        """Write the file without an entry, so that no older session is resumed in its place."""
        self._add([])

    def append(self, turn: Turn) -> None:
        """Add a completed turn; it is on the disk when this returns."""
        self._add([turn_to_json(turn)])

    def rewrite(self, *, summary: str, turns: Iterable[Turn]) -> None:
        """Replace all entries by a summary and the turns that stay."""
        if self.path is None:
            return
        entries: list[JsonObject] = [{"type": "compaction", "summary": summary}]
        entries += [turn_to_json(turn) for turn in turns]
        try:
            _replace(self.path, [self._header(), *entries])
        except OSError as error:
            log.warning("transcript_not_written: %s", error.strerror)

    def _add(self, entries: list[JsonObject]) -> None:
        if self.path is None:
            return
        try:
            _append(self.path, entries, self._header())
        except OSError as error:
            log.warning("transcript_not_written: %s", error.strerror)

    def _header(self) -> JsonObject:
        return {
            "type": "session",
            "version": _VERSION,
            "id": self.session_id,
            "timestamp": _now_ms(),
        }


def start_transcript(directory: Path | None) -> Transcript:
    """Return a new session's transcript."""
    session_id = uuid4().hex
    if directory is None:
        return Transcript(session_id=session_id, path=None)
    # The newest file is the one resumed, also after the clock was set back.
    newest = _newest(directory)
    stamp = max(time.time_ns(), 0 if newest is None else _stamp(newest) + 1)
    path = directory / f"{stamp:0{_STAMP_DIGITS}d}-{session_id}{_SUFFIX}"
    return Transcript(session_id=session_id, path=path)


def resume_transcript(directory: Path | None) -> tuple[Transcript, Contents]:
    """Return the newest session's transcript and what it holds, or a new and empty one.

    Lines that cannot be read are skipped. A file of which nothing can be used is set aside as
    `*.damaged-<ms>`; no damage raises.
    """
    path = None if directory is None else _newest(directory)
    contents = None if path is None else _load(path)
    if path is not None and contents is not None:
        return Transcript(session_id=contents.session_id, path=path), contents
    started = start_transcript(directory)
    if path is not None:
        started.begin()
        _set_aside(path)
    return started, Contents(session_id=started.session_id)


def _newest(directory: Path) -> Path | None:
    try:
        return max(directory.glob(f"*{_SUFFIX}"), default=None)
    except OSError:
        return None


def _stamp(path: Path) -> int:
    digits = path.name[:_STAMP_DIGITS]
    return int(digits) if digits.isdecimal() else 0


def _load(path: Path) -> Contents | None:
    """Return what the file holds, or None if none of it is of use."""
    try:
        lines = path.read_bytes().split(b"\n")
    except OSError as error:
        log.warning("transcript_unreadable: %s", error.strerror)
        return None
    session_id, summary, bad = "", None, 0
    turns: list[Turn] = []
    for line in filter(None, lines):
        entry = parse_object(line) or {}
        match entry.get("type"):
            case "session":
                if as_count(entry.get("version")) != _VERSION:
                    return None
                session_id = as_text(entry.get("id"))
            case "compaction":
                summary, turns = as_text(entry.get("summary")) or None, []
            case _:
                try:
                    turns.append(_read_turn(entry))
                except ValueError:
                    bad += 1
    if bad:
        log.warning("transcript_lines_skipped: %d", bad)
    if not turns and summary is None and (bad or not session_id):
        return None
    return Contents(
        session_id=session_id or path.stem.rpartition("-")[2],
        summary=summary,
        turns=tuple(turns),
    )


def _read_turn(entry: JsonObject) -> Turn:
    if entry.get("type") != "turn":
        raise ValueError("not an entry")
    return turn_from_json(entry)


def _set_aside(path: Path) -> None:
    with suppress(OSError):
        path.rename(path.with_name(f"{path.name}.damaged-{_now_ms()}"))
        log.warning("transcript_set_aside: %s", path.name)


def _append(path: Path, entries: list[JsonObject], header: JsonObject) -> None:
    flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
    with open(os.open(path, flags, 0o600), "r+b") as file:  # noqa: PTH123 (needs the mode)
        size = file.seek(0, os.SEEK_END)
        data = b"".join(dump_line(entry) for entry in entries)
        if size == 0:
            data = dump_line(header) + data
        elif not _ends_line(file.fileno(), size):
            data = b"\n" + data  # a line that a crash tore must not swallow this one
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _ends_line(descriptor: int, size: int) -> bool:
    return os.pread(descriptor, 1, size - 1) == b"\n"


def _replace(path: Path, entries: list[JsonObject]) -> None:
    fresh = path.with_name(f"{path.name}.new")
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
    with open(os.open(fresh, flags, 0o600), "wb") as file:  # noqa: PTH123 (needs the mode)
        file.writelines(dump_line(entry) for entry in entries)
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)
    directory = os.open(path.parent, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
