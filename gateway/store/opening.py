"""Opening the store: the lock, the version check, migrations, copies, and damage."""

import contextlib
import fcntl
import os
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
    NewerDatabaseError,
    StoreError,
)
from gateway.store.database import Database, classify, open_engine
from gateway.store.schema import REVISIONS, metadata

DATABASE_NAME = "gateway.db"
COPIES_KEPT = 3
_LOCK_NAME = "gateway.lock"
_LOCK_WAIT = 3.0
_LOCK_POLL = 0.1
_CHECKED_AT_START = 32 * 1024 * 1024
"""A larger database is checked whole with its daily copy only: it would delay the start."""


class FileLock:
    """An advisory lock on a file that is never unlinked; the holder's pid stands inside."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor: int | None = None

    def acquire(self, *, wait: float = _LOCK_WAIT) -> int | None:
        """Try for `wait` seconds; None = it is ours, else the pid of the holder (0 = unknown)."""
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        deadline = time.monotonic() + wait
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                if time.monotonic() < deadline:
                    time.sleep(_LOCK_POLL)
                    continue
                holder = _read_pid(descriptor)
                os.close(descriptor)
                return holder
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
            self._descriptor = descriptor
            return None

    def release(self) -> None:
        """Give the lock back."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def lock_data_directory(directory: Path) -> FileLock:
    """Take the data directory for this process; raises DataDirectoryInUseError."""
    lock = FileLock(directory / _LOCK_NAME)
    holder = lock.acquire()
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
        return self.directory / "copies"


def open_database(layout: Layout) -> Database:
    """Open the store, made or migrated as needed; the data directory's lock must be held.

    Raises NewerDatabaseError or CorruptDatabaseError, and leaves the file as it is.
    """
    path = layout.database
    revision = None
    if path.exists():
        revision = check_database(path)
    else:
        # Made private before SQLite writes into it.
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    if revision != REVISIONS[-1]:
        if revision is not None:
            copy_database(layout, label=f"before-{REVISIONS[-1]}")
        _migrate(path)
    path.chmod(0o600)
    return Database(path)


def check_database(path: Path) -> str | None:
    """The revision of the database file; raises if it is damaged or newer than this program."""
    if path.stat().st_size == 0:
        return None
    try:
        with _read_only(path) as connection:
            revision = _revision(connection)
            if revision is not None and revision not in REVISIONS:
                raise NewerDatabaseError(
                    f"{path} was written by a newer gateway (revision {revision}). "
                    "Update this program, or point GATEWAY_DATA_DIR to another directory."
                )
            if path.stat().st_size <= _CHECKED_AT_START:
                _quick_check(connection)
    except sqlite3.DatabaseError as error:
        if isinstance(error, sqlite3.OperationalError) and "locked" in str(error):
            raise classify(error) from error
        raise CorruptDatabaseError(_damage_text(path, str(error))) from error
    return revision


def copy_database(layout: Layout, *, label: str = "daily") -> Path:
    """Write a consistent copy of the database (0600) and keep the newest three.

    Raises CorruptDatabaseError when the database is damaged; the copies stay as they are.
    """
    layout.copies.mkdir(mode=0o700, exist_ok=True)
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S")
    target = layout.copies / f"gateway-{stamp}-{label}.db"
    partial = target.with_suffix(".partial")
    partial.unlink(missing_ok=True)
    try:
        with _read_only(layout.database) as connection:
            _quick_check(connection)
            os.close(os.open(partial, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
            connection.execute("VACUUM INTO ?", (str(partial),))
        partial.rename(target)
    except sqlite3.Error as error:
        partial.unlink(missing_ok=True)
        if isinstance(error, sqlite3.OperationalError):
            raise classify(error) from error
        raise CorruptDatabaseError(_damage_text(layout.database, str(error))) from error
    for old in list_copies(layout)[COPIES_KEPT:]:
        old.unlink(missing_ok=True)
    return target


def list_copies(layout: Layout) -> list[Path]:
    """The copies, newest first."""
    return sorted(layout.copies.glob("gateway-*.db"), key=lambda path: path.name, reverse=True)


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
    for copy in list_copies(layout):
        with contextlib.suppress(CorruptDatabaseError):
            check_database(copy)
            set_aside(layout)
            layout.database.write_bytes(copy.read_bytes())
            layout.database.chmod(0o600)
            return copy
    raise StoreError(f"There is no good copy in {layout.copies}. Nothing was changed.")


def _migrate(path: Path) -> None:
    # Alembic is slow to import, and needed on the first start and after an update only.
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
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
        connection.execute("PRAGMA busy_timeout=5000")
        yield connection
    finally:
        connection.close()


def _damage_text(path: Path, reason: str) -> str:
    layout = Layout(directory=path.parent)
    good = next(iter(list_copies(layout)), None)
    ways = "`gateway run --start-empty` begins with an empty one"
    if good is not None:
        ways = f"`gateway run --restore` goes back to the copy {good.name}; {ways}"
    return (
        f"The database {path} is damaged ({reason}). It was left as it is. {ways}. "
        "Either keeps the damaged file beside it."
    )


def _read_pid(descriptor: int) -> int:
    text = os.pread(descriptor, 32, 0).decode("ascii", "replace").strip()
    return int(text) if text.isdigit() else 0
