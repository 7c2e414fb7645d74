"""Opening the store: the lock, versions, migrations, copies, and damage that is left in place."""

import asyncio
import os
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory

import gateway.store
from gateway.errors import (
    CorruptDatabaseError,
    DataDirectoryInUseError,
    NewerDatabaseError,
    StoreBusyError,
    StoreError,
)
from gateway.store import opening
from gateway.store.database import open_engine
from gateway.store.opening import (
    COPIES_KEPT,
    FileLock,
    Layout,
    check_database,
    copy_database,
    list_copies,
    lock_data_directory,
    make_data_directory,
    open_database,
    restore_newest,
    set_aside,
)
from gateway.store.schema import REVISIONS, metadata, turns
from tests.factories import queued_turn, rows_of

LOCK = "gateway.lock"

HOLDER = """
import sys, time
from pathlib import Path
from gateway.store.opening import lock_data_directory
lock = lock_data_directory(Path(sys.argv[1]))
print("locked", flush=True)
sys.stdin.read()
"""


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


# ---- the lock ------------------------------------------------------------------------------


def test_s07_a_second_process_is_refused_and_told_who_holds_the_directory(
    tmp_path: Path,
) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdin is not None
        assert holder.stdout.readline() == "locked\n"
        with pytest.raises(DataDirectoryInUseError, match=f"process {holder.pid}") as caught:
            lock_data_directory(tmp_path, wait=0)
        assert caught.value.exit_code == 4
        holder.kill()
        holder.wait()
        # Killed, it leaves its text behind, and nothing else.
        assert (tmp_path / LOCK).read_text() == f"{holder.pid}\n"
        lock_data_directory(tmp_path, wait=0).release()


def test_a_lock_waits_for_its_holder_to_leave(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdin is not None
        holder.stdout.readline()
        holder.stdin.close()
        lock = FileLock(tmp_path / LOCK)
        assert lock.acquire(wait=20.0) is None
        lock.release()


@pytest.mark.parametrize("text", ["1\n", "", "garbage\xff", "9" * 400, "12 34", "²"])
def test_s07_the_text_of_a_lock_file_means_nothing(tmp_path: Path, text: str) -> None:
    (tmp_path / LOCK).write_text(text)
    lock = lock_data_directory(tmp_path, wait=0)
    assert (tmp_path / LOCK).read_text() == f"{os.getpid()}\n"
    with pytest.raises(DataDirectoryInUseError, match=f"process {os.getpid()}"):
        lock_data_directory(tmp_path, wait=0)
    (tmp_path / LOCK).write_text(text)
    with pytest.raises(DataDirectoryInUseError):
        lock_data_directory(tmp_path, wait=0)
    lock.release()
    assert (tmp_path / LOCK).exists()
    lock_data_directory(tmp_path, wait=0).release()


def test_s07_a_read_only_lock_file_does_not_stop_its_owner(tmp_path: Path) -> None:
    (tmp_path / LOCK).write_text("1\n")
    (tmp_path / LOCK).chmod(0o400)
    lock_data_directory(tmp_path, wait=0).release()


def test_a_directory_that_cannot_hold_a_lock_is_our_own_error(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="cannot be locked"):
        lock_data_directory(tmp_path / "missing")


def test_the_lock_file_and_the_directory_are_private(tmp_path: Path) -> None:
    directory = tmp_path / "a" / "b"
    make_data_directory(directory)
    lock_data_directory(directory).release()
    assert (mode_of(directory), mode_of(directory / LOCK)) == (0o700, 0o600)


def test_a_lock_that_was_released_twice_is_released(tmp_path: Path) -> None:
    lock = lock_data_directory(tmp_path, wait=0)
    lock.release()
    lock.release()
    lock_data_directory(tmp_path, wait=0).release()


# ---- versions and migrations ---------------------------------------------------------------


async def test_a_new_database_is_private_and_durable(tmp_path: Path) -> None:
    layout = Layout(directory=tmp_path)
    store = open_database(layout)
    assert await rows_of(store, turns) == []
    await queued_turn(store)
    assert {mode_of(path) for path in tmp_path.glob("gateway.db*")} == {0o600}
    settings = await store.write(
        lambda tx: [
            tx.connection.exec_driver_sql(f"PRAGMA {name}").scalar_one()
            for name in ("journal_mode", "synchronous", "foreign_keys", "busy_timeout")
        ]
    )
    assert settings == ["wal", 2, 1, 5000]
    await store.close()
    assert list_copies(layout) == []


async def test_a_directory_with_odd_characters_is_no_trouble(tmp_path: Path) -> None:
    directory = tmp_path / "50%s ?a#b ü"
    directory.mkdir()
    store = open_database(Layout(directory=directory))
    await queued_turn(store)
    await store.close()
    assert check_database(directory / "gateway.db") == REVISIONS[-1]


async def test_the_migrations_make_exactly_the_tables_of_the_schema(tmp_path: Path) -> None:
    layout = Layout(directory=tmp_path)
    await open_database(layout).close()
    engine = open_engine(layout.database, is_read_only=True)
    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, metadata) == []
    engine.dispose()
    made = stored_sql(layout.database)
    created = tmp_path / "created.db"
    other = open_engine(created, is_read_only=False)
    with other.connect() as connection, connection.begin():
        metadata.create_all(connection)
    other.dispose()
    # Partial indexes and CHECKs are what the comparison above does not see.
    assert stored_sql(created) == made


def stored_sql(path: Path) -> dict[str, list[str]]:
    connection = sqlite3.connect(path)
    rows = connection.execute(
        "SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL AND name NOT LIKE 'alembic%'"
        " AND name NOT LIKE 'sqlite%'"
    ).fetchall()
    connection.close()
    return {name: sorted(part.strip(" ,()\t") for part in sql.split("\n")) for name, sql in rows}


def test_the_program_knows_every_migration_in_order() -> None:
    config = Config()
    scripts = Path(gateway.store.__file__).parent / "migrations"
    config.set_main_option("script_location", str(scripts))
    chain = ScriptDirectory.from_config(config)
    assert tuple(script.revision for script in reversed(list(chain.walk_revisions()))) == REVISIONS
    assert chain.get_heads() == [REVISIONS[-1]]


async def test_opening_again_changes_nothing(layout: Layout) -> None:
    store = open_database(layout)
    await queued_turn(store)
    await store.close()
    before = layout.database.read_bytes()
    store = open_database(layout)
    assert len(await rows_of(store, turns)) == 1
    await store.close()
    assert layout.database.read_bytes() == before
    assert list_copies(layout) == []


def set_revision(path: Path, revision: str | None) -> None:
    connection = sqlite3.connect(path)
    if revision is None:
        connection.execute("DELETE FROM alembic_version")
    else:
        connection.execute("UPDATE alembic_version SET version_num = ?", (revision,))
    connection.commit()
    connection.close()


def test_a_newer_database_is_refused_untouched(layout: Layout) -> None:
    set_revision(layout.database, "9999")
    before = layout.database.read_bytes()
    with pytest.raises(NewerDatabaseError, match="9999") as caught:
        open_database(layout)
    assert caught.value.exit_code == 3
    assert layout.database.read_bytes() == before
    assert list_copies(layout) == []


def test_a_migration_copies_first_what_was_there(
    layout: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opening, "REVISIONS", (*REVISIONS, "0002"))
    asyncio.run(open_database(layout).close())
    (copy,) = list_copies(layout)
    assert copy.name.endswith("-before-0002.db")
    assert check_database(copy) == REVISIONS[-1]


# ---- damage --------------------------------------------------------------------------------


def fill(layout: Layout) -> None:
    """Enough rows that every part of the file holds something."""
    connection = sqlite3.connect(layout.database)
    connection.executemany(
        "INSERT INTO events (at, subject, subject_id, after, reason) VALUES (?, 'x', 1, 'y', ?)",
        [(number, "z" * 200) for number in range(500)],
    )
    connection.commit()
    connection.close()


def cut_in_half(path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])


def overwrite_header(path: Path) -> None:
    path.write_bytes(b"this is not a database".ljust(4096, b"!"))


def overwrite_middle(path: Path) -> None:
    data = bytearray(path.read_bytes())
    middle = len(data) // 2 // 4096 * 4096
    data[middle : middle + 8192] = b"\xaa" * 8192
    path.write_bytes(bytes(data))


DAMAGES = [cut_in_half, overwrite_header, overwrite_middle]


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_r26_a_damaged_database_is_refused_and_left_in_place(
    layout: Layout, damage: Callable[[Path], None]
) -> None:
    fill(layout)
    copy = copy_database(layout)
    damage(layout.database)
    before = layout.database.read_bytes()
    with pytest.raises(CorruptDatabaseError) as caught:
        open_database(layout)
    assert caught.value.exit_code == 6
    assert str(layout.database) in str(caught.value)
    assert copy.name in str(caught.value)
    assert layout.database.read_bytes() == before
    with pytest.raises(CorruptDatabaseError):
        copy_database(layout)
    assert list_copies(layout) == [copy]


@pytest.mark.parametrize("revision", [None, "drop"])
def test_a_database_with_tables_and_no_version_is_damaged(
    layout: Layout, revision: str | None
) -> None:
    set_revision(layout.database, None)
    if revision == "drop":
        connection = sqlite3.connect(layout.database)
        connection.execute("DROP TABLE alembic_version")
        connection.close()
    with pytest.raises(CorruptDatabaseError, match="version"):
        open_database(layout)


def test_an_emptied_database_is_damage_if_there_are_copies(layout: Layout) -> None:
    copy_database(layout)
    layout.database.write_bytes(b"")
    with pytest.raises(CorruptDatabaseError, match="--restore"):
        open_database(layout)
    assert layout.database.read_bytes() == b""


async def test_an_empty_file_of_a_first_start_that_was_cut_off_is_no_damage(
    tmp_path: Path,
) -> None:
    layout = Layout(directory=tmp_path)
    layout.database.touch()
    store = open_database(layout)
    await queued_turn(store)
    await store.close()


def test_a_locked_database_is_busy_and_not_damaged(
    layout: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    holder = sqlite3.connect(layout.database)
    holder.execute("PRAGMA locking_mode=EXCLUSIVE")
    holder.execute("BEGIN EXCLUSIVE")
    monkeypatch.setattr(opening, "_BUSY_MILLIS", 0)
    with pytest.raises(StoreBusyError):
        check_database(layout.database)
    holder.close()
    assert check_database(layout.database) == REVISIONS[-1]


async def test_restore_goes_back_to_the_newest_good_copy_and_keeps_the_damaged_file(
    layout: Layout,
) -> None:
    store = open_database(layout)
    await queued_turn(store)
    await store.close()
    good = copy_database(layout, label="good")
    bad = good.with_name("gateway-29990101T000000-daily.db")
    bad.write_bytes(good.read_bytes()[:5000])
    overwrite_header(layout.database)
    with pytest.raises(CorruptDatabaseError, match=good.name):
        open_database(layout)
    assert restore_newest(layout) == good
    assert mode_of(layout.database) == 0o600
    store = open_database(layout)
    assert len(await rows_of(store, turns)) == 1
    await store.close()
    (aside,) = (
        path
        for path in layout.directory.glob("gateway.db.corrupt-*")
        if not path.name.endswith(("-wal", "-shm"))
    )
    assert aside.read_bytes().startswith(b"this is not a database")
    assert list(layout.directory.glob("*.restoring")) == []


def test_restore_without_a_good_copy_moves_nothing(layout: Layout) -> None:
    overwrite_header(layout.database)
    with pytest.raises(StoreError, match="no good copy"):
        restore_newest(layout)
    assert layout.database.read_bytes().startswith(b"this is not a database")


async def test_start_empty_sets_the_damaged_file_aside(layout: Layout) -> None:
    store = open_database(layout)
    await queued_turn(store)
    await store.close()
    layout.database.with_name("gateway.db-wal").write_bytes(b"left over")
    aside = set_aside(layout)
    assert aside is not None
    assert aside.name.startswith("gateway.db.corrupt-")
    assert aside.with_name(f"{aside.name}-wal").read_bytes() == b"left over"
    store = open_database(layout)
    assert await rows_of(store, turns) == []
    await store.close()
    assert set_aside(Layout(directory=layout.directory / "nowhere")) is None


# ---- copies --------------------------------------------------------------------------------


async def test_a_copy_is_whole_private_and_made_while_the_store_is_open(layout: Layout) -> None:
    store = open_database(layout)
    await queued_turn(store)
    copy = await asyncio.to_thread(copy_database, layout)
    await queued_turn(store)
    await store.close()
    assert (mode_of(copy), mode_of(layout.copies)) == (0o600, 0o700)
    connection = sqlite3.connect(copy)
    assert connection.execute("SELECT count(*) FROM messages").fetchone() == (1,)
    connection.close()


def test_three_copies_are_kept_the_newest_ones(layout: Layout) -> None:
    layout.copies.mkdir()
    old = [layout.copies / f"gateway-2020010{day}T000000-daily.db" for day in (1, 2, 3, 4)]
    for path in old:
        path.write_bytes(b"old")
    (layout.copies / "gateway-20200101T000000-daily.partial").write_bytes(b"cut off")
    copy = copy_database(layout)
    assert list_copies(layout) == [copy, old[3], old[2]]
    assert len(list(layout.copies.iterdir())) == COPIES_KEPT


def test_a_copy_that_cannot_be_written_is_our_own_error_and_leaves_nothing(
    layout: Layout,
) -> None:
    layout.copies.write_bytes(b"a file is in the way")
    with pytest.raises(StoreError):
        copy_database(layout)
    assert layout.copies.read_bytes() == b"a file is in the way"
    assert check_database(layout.database) == REVISIONS[-1]
