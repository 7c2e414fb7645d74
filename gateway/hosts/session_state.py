"""A note beside each transcript of how long it was, to see later whether it was lost."""

import json
import logging
from dataclasses import dataclass
from pathlib import Path

from gateway.hosts.rpc_frames import HostState

log = logging.getLogger(__name__)

STATE_FILE = "gateway-state.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class TranscriptNote:
    """Which conversation a session held after its last finished run, and how many messages."""

    session_id: str | None
    message_count: int


def make_private_directory(directory: Path) -> None:
    """Make a session's directory and the one above it, for us alone; raises OSError."""
    directory.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    directory.mkdir(mode=0o700, exist_ok=True)


def write_note(directory: Path, state: HostState) -> None:
    """Remember what a session holds; a failure is logged, and costs only the later comparison."""
    if state.message_count is None:
        return
    path = directory / STATE_FILE
    draft = path.with_suffix(".new")
    data = {"session_id": state.session_id, "message_count": state.message_count}
    try:
        draft.write_text(json.dumps(data), encoding="utf-8")
        draft.chmod(0o600)
        draft.replace(path)
    except OSError as error:
        log.warning("host.note_not_written", extra={"reason": str(error)})


def is_transcript_lost(directory: Path, state: HostState) -> bool:
    """Whether a session that just started lacks what its directory's note speaks of.

    Hosts open a new conversation in silence when a transcript cannot be read. Fewer messages
    under the same session id are no loss: compaction and retries shorten a transcript too.
    """
    note = _read_note(directory)
    if note is None or note.message_count == 0 or state.message_count is None:
        return False
    is_other = note.session_id != state.session_id
    return state.message_count == 0 or (is_other and state.message_count < note.message_count)


def _read_note(directory: Path) -> TranscriptNote | None:
    try:
        data = json.loads((directory / STATE_FILE).read_bytes())
        session_id = data["session_id"]
        return TranscriptNote(
            session_id=None if session_id is None else str(session_id),
            message_count=int(data["message_count"]),
        )
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError, KeyError) as error:
        log.warning("host.note_damaged", extra={"reason": type(error).__name__})
        return None
