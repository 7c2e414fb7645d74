"""Opening the store: the lock, the version check, migrations, copies, and damage."""

import contextlib
import fcntl
import os
import shutil
import sqlite3
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from sqlalchemy import select, table
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.sql import column

from gateway.errors import (
    CorruptDatabaseError,
    DataDirectoryInUseError,
    GatewayError,
    NewerDatabaseError,
    StoreBusyError,
    StoreError,
)
from gateway.store.database import Database, classify, open_engine
from gateway.store.schema import REVISIONS, metadata

DATABASE_NAME = "gateway.db"
COPIES_KEPT = 3
_COPIES_NAME = "copies"
_LOCK_NAME = "gateway.lock"
_LOCK_WAIT = 3.0
_LOCK_POLL = 0.1
_BUSY_MILLIS = 5000
_CHECKED_AT_START = 32 * 1024 * 1024
"""A larger database is checked whole with its daily copy only: it would delay the start."""


class FileLock:
    """An advisory lock on a file that is never unlinked; the holder's pid stands inside."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor: int | None = None

    def acquire(self, *, wait: float = _LOCK_WAIT) -> int | None:
        """Try for `wait` seconds; None = it is ours, else the pid of the holder (0 = unknown).

        Raises StoreError when the file cannot be locked at all.
        """
        try:
            return self._acquire(wait)
        except OSError as error:
            raise StoreError(f"{self._path} cannot be locked: {error}") from error

    def _acquire(self, wait: float) -> int | None:
        descriptor = _open_private(self._path)
        deadline = time.monotonic() + wait
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() < deadline:
                    time.sleep(_LOCK_POLL)
                    continue
                holder = _read_pid(descriptor)
                os.close(descriptor)
                return holder
            except OSError:
                os.close(descriptor)
                raise
            self._descriptor = descriptor
            # The text only helps people; on a full disk the lock alone must do.
            with contextlib.suppress(OSError):
                os.ftruncate(descriptor, 0)
                os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
            return None

    def release(self) -> None:
        """Give the lock back."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def lock_data_directory(directory: Path, *, wait: float = _LOCK_WAIT) -> FileLock:
    """Take the data directory for this process, trying for `wait` seconds.

    Raises DataDirectoryInUseError.
    """
    lock = FileLock(directory / _LOCK_NAME)
    holder = lock.acquire(wait=wait)
    if holder is not None:
        who = f"process {holder}" if holder else "another process"
        raise DataDirectoryInUseError(
            f"Another gateway ({who}) is using {directory}. "
            "Stop it first, or set GATEWAY_DATA_DIR to another directory."
        )
    return lock


def make_data_directory(directory: Path) -> None:
    """Make the data directory, for its owner alone."""
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    directory.chmod(0o700)


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Where the store's files are; `elsewhere` names a database outside the directory."""

    directory: Path
    elsewhere: Path | None = None

    @property
    def database(self) -> Path:
        """The database file."""
        return self.elsewhere or self.directory / DATABASE_NAME

    @property
    def copies(self) -> Path:
        """The folder of its copies."""
        return self.directory / _COPIES_NAME


def open_database(layout: Layout) -> Database:
    """Open the store, made or migrated as needed; the data directory's lock must be held.

    Raises NewerDatabaseError or CorruptDatabaseError, and leaves the file as it is.
    """
    path = layout.database
    revision = None
    if path.exists():
        revision = check_database(path, copies=layout.copies)
    else:
        # Made private before SQLite writes into it.
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    if revision != REVISIONS[-1]:
        if revision is not None:
            copy_database(layout, label=f"before-{REVISIONS[-1]}")
        _migrate(path)
    with contextlib.suppress(PermissionError):
        path.chmod(0o600)
    return Database(path)


def check_database(path: Path, *, copies: Path | None = None, whole: bool = False) -> str | None:
    """The revision of the database file; raises if it is damaged or newer than this program.

    `whole` checks a large file to its end, too. `copies` is where the copies are that a person
    is pointed to.
    """
    copies = copies or path.parent / _COPIES_NAME
    size = path.stat().st_size
    if size == 0 and not _newest_first(copies):
        return None
    try:
        if size == 0:
            raise sqlite3.DatabaseError("it is empty, and there are copies of it")
        with _read_only(path) as connection:
            revision = _revision(connection)
            if revision is not None and revision not in REVISIONS:
                raise NewerDatabaseError(
                    f"{path} was written by a newer gateway (revision {revision}). "
                    "Update this program, or point GATEWAY_DATA_DIR to another directory."
                )
            if whole or size <= _CHECKED_AT_START:
                _quick_check(connection)
    except sqlite3.Error as error:
        raise _translated(error, path, copies) from error
    return revision


def copy_database(layout: Layout, *, label: str = "daily") -> Path:
    """Write a consistent copy of the database (0600) and keep the newest three.

    Raises StoreError when it cannot be written, CorruptDatabaseError when the database is
    damaged; the older copies stay as they are.
    """
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S")
    target = layout.copies / f"gateway-{stamp}-{label}.db"
    partial = target.with_suffix(".partial")
    try:
        layout.copies.mkdir(mode=0o700, exist_ok=True)
        for left_over in layout.copies.glob("*.partial"):
            left_over.unlink()
        with _read_only(layout.database) as connection:
            _quick_check(connection)
            os.close(os.open(partial, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
            connection.execute("VACUUM INTO ?", (str(partial),))
        partial.rename(target)
    except (sqlite3.Error, OSError) as error:
        with contextlib.suppress(OSError):
            partial.unlink(missing_ok=True)
        raise _translated(error, layout.database, layout.copies) from error
    for old in list_copies(layout)[COPIES_KEPT:]:
        old.unlink(missing_ok=True)
    return target


def list_copies(layout: Layout) -> list[Path]:
    """The copies, newest first."""
    return _newest_first(layout.copies)


def _newest_first(copies: Path) -> list[Path]:
    return sorted(copies.glob("gateway-*.db"), key=lambda path: path.name, reverse=True)


def _good_copies(copies: Path) -> Iterator[Path]:
    for copy in _newest_first(copies):
        with contextlib.suppress(CorruptDatabaseError):
            check_database(copy, whole=True)
            yield copy


def set_aside(layout: Layout) -> Path | None:
    """Move a database out of the way to `*.corrupt-<time>`; None = there was none."""
    if not layout.database.exists():
        return None
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S")
    name = layout.database.name
    aside = layout.database.with_name(f"{name}.corrupt-{stamp}")
    for suffix in ("-wal", "-shm", ""):
        part = layout.database.with_name(name + suffix)
        if part.exists():
            part.rename(aside.with_name(aside.name + suffix))
    return aside


def restore_newest(layout: Layout) -> Path:
    """Put the newest good copy in place of the database, which is set aside.

    Raises StoreError when there is no good copy; nothing is moved then.
    """
    for copy in _good_copies(layout.copies):
        restored = layout.database.with_name(f"{layout.database.name}.restoring")
        shutil.copyfile(copy, restored)
        restored.chmod(0o600)
        with restored.open("rb") as written:
            os.fsync(written.fileno())
        set_aside(layout)
        restored.rename(layout.database)
        return copy
    raise StoreError(f"There is no good copy in {layout.copies}. Nothing was changed.")


def _migrate(path: Path) -> None:
    # Alembic is slow to import, and needed on the first start and after an update only.
    from alembic import command
    from alembic.config import Config

    config = Config()
    scripts = Path(__file__).parent / "migrations"
    config.set_main_option("script_location", str(scripts).replace("%", "%%"))
    engine = open_engine(path, is_read_only=False)
    try:
        with engine.connect() as connection, connection.begin():
            config.attributes["connection"] = connection
            command.upgrade(config, "head")
    except SQLAlchemyError as error:
        raise classify(error) from error
    finally:
        engine.dispose()


def _revision(connection: sqlite3.Connection) -> str | None:
    names = {row[0] for row in connection.execute("SELECT name FROM sqlite_master")}
    if "alembic_version" not in names:
        if names & set(metadata.tables):
            raise sqlite3.DatabaseError("it has tables but no version")
        return None
    query = str(select(column("version_num")).select_from(table("alembic_version")))
    row = connection.execute(query).fetchone()
    if row is None:
        raise sqlite3.DatabaseError("it has no version")
    return str(row[0])


def _quick_check(connection: sqlite3.Connection) -> None:
    result = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
    if result != "ok":
        raise sqlite3.DatabaseError(str(result))


@contextlib.contextmanager
def _read_only(path: Path) -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)
    try:
        connection.execute(f"PRAGMA busy_timeout={_BUSY_MILLIS}")
        yield connection
    finally:
        connection.close()


def _translated(error: sqlite3.Error | OSError, path: Path, copies: Path) -> GatewayError:
    """Our error for a database file: damage, unless something else stood in the way."""
    translated = classify(error)
    if isinstance(error, OSError) or isinstance(translated, StoreBusyError):
        return translated
    good = next(_good_copies(copies), None)
    ways = "`gateway run --start-empty` begins with an empty one"
    if good is not None:
        ways = f"`gateway run --restore` goes back to the copy {good.name}; {ways}"
    return CorruptDatabaseError(
        f"The database {path} is damaged ({error}). It was left as it is. {ways}. "
        "Either keeps the damaged file beside it."
    )


def _open_private(path: Path) -> int:
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
    try:
        return os.open(path, flags, 0o600)
    except PermissionError:
        path.chmod(0o600)  # it may be ours and made read-only; else this fails as well
        return os.open(path, flags, 0o600)


def _read_pid(descriptor: int) -> int:
    text = os.pread(descriptor, 32, 0).decode("ascii", "replace").strip()
    return int(text) if text.isdecimal() else 0
