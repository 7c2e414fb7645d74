"""Where a chat's sessions keep their transcripts, and how a damaged one is put aside."""

import hashlib
import logging
import shutil
import time
from datetime import datetime
from pathlib import Path

from gateway.domain.message import ChatKey

log = logging.getLogger(__name__)

_NAME_LENGTH = 16


def session_directory(root: Path, chat: ChatKey, generation: int) -> Path:
    """Return the directory of a chat's transcript; its name tells nobody whose it is."""
    name = hashlib.sha256(str(chat).encode()).hexdigest()[:_NAME_LENGTH]
    return root / name / str(generation)


def move_aside(directory: Path) -> Path | None:
    """Rename a directory to `<name>.damaged-<unix ms>`; None if there is nothing in it to keep.

    Raises OSError.
    """
    if not directory.is_dir() or not any(directory.iterdir()):
        return None
    stamp = time.time_ns() // 1_000_000
    kept = directory.with_name(f"{directory.name}.damaged-{stamp}")
    directory.rename(kept)
    log.warning("host.transcript_moved_aside", extra={"directory": str(kept)})
    return kept


def move_back(kept: Path, directory: Path) -> None:
    """Undo `move_aside`: it was not the directory's fault. Raises OSError."""
    if directory.exists():
        shutil.rmtree(directory)
    kept.rename(directory)
    log.warning("host.transcript_moved_back", extra={"directory": str(directory)})


def forget_old_sessions(root: Path, *, before: datetime) -> int:
    """Remove the transcripts of conversations that a newer one of the same chat replaced, or that
    were moved aside, and that nobody touched since then. Returns how many there were.
    """
    count = 0
    for chat in root.glob("*/"):
        generations = [int(one.name) for one in chat.glob("*/") if one.name.isdecimal()]
        newest = str(max(generations, default=0))
        for one in chat.glob("*/"):
            touched = max(path.stat().st_mtime for path in (one, *one.rglob("*")))
            if one.name != newest and touched < before.timestamp():
                shutil.rmtree(one, ignore_errors=True)
                count += 1
    return count
