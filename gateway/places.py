"""Where a gateway's sockets and files are, given its data directory."""

import hashlib
import os
import stat
import tempfile
from dataclasses import dataclass
from pathlib import Path

from gateway.errors import SettingsError

_LONGEST_SOCKET_PATH = 100
"""Unix socket paths end at 104 bytes (macOS) or 108 (Linux)."""


@dataclass(frozen=True, slots=True)
class Places:
    """The files of one data directory."""

    directory: Path

    @property
    def tool_socket(self) -> Path:
        """Where hosts reach the tools."""
        return self._socket("tools.sock")

    @property
    def admin_socket(self) -> Path:
        """Where the commands reach a running gateway."""
        return self._socket("admin.sock")

    @property
    def sessions(self) -> Path:
        """The hosts' directories, one a chat."""
        return self.directory / "sessions"

    @property
    def processes(self) -> Path:
        """What is noted of running hosts."""
        return self.directory / "processes"

    @property
    def console_history(self) -> Path:
        """What was typed at the prompt."""
        return self.directory / "console_history"

    def make_private(self) -> None:
        """Make the folders that sockets need, for our own user alone."""
        for folder in (self.tool_socket.parent, self.sessions):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)

    def _socket(self, name: str) -> Path:
        direct = self.directory.absolute() / name
        if len(os.fsencode(direct)) <= _LONGEST_SOCKET_PATH:
            return direct
        digest = hashlib.sha256(os.fsencode(self.directory.absolute())).hexdigest()[:12]
        return runtime_directory() / digest / name


def runtime_directory() -> Path:
    """Our own user's folder for what lives no longer than the machine is up (0700)."""
    base = os.environ.get("XDG_RUNTIME_DIR") or tempfile.gettempdir()
    directory = Path(base) / f"chat-gateway-{os.getuid()}"
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = directory.lstat()
    except OSError as error:
        raise SettingsError(
            [f"XDG_RUNTIME_DIR: {directory} cannot be used ({error.strerror}); set another folder"]
        ) from error
    is_ours = found.st_uid == os.getuid() and stat.S_ISDIR(found.st_mode)
    if not is_ours or found.st_mode & 0o077:
        raise SettingsError(
            [f"XDG_RUNTIME_DIR: {directory} is open to others; remove it or set another folder"]
        )
    return directory


def token_lock_path(token: str) -> Path:
    """The lock of one bot token, named by a hash so that the token stands nowhere."""
    digest = hashlib.sha256(token.encode()).hexdigest()[:16]
    return runtime_directory() / f"telegram-{digest}.lock"
