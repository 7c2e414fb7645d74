"""The writer: whole transitions, one commit for many, and what happens when none can be made."""

import asyncio
import resource
import sqlite3
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager

import pytest
from sqlalchemy import Connection, update

from gateway.domain.message import ChatKey
from gateway.domain.turn import Trigger
from gateway.errors import (
    CorruptDatabaseError,
    GatewayError,
    StaleStateError,
    StoreBusyError,
    StoreError,
)
from gateway.store import database as writer
from gateway.store.chats import begin_episode, open_episode_names
from gateway.store.database import Change, Database, Topic, Transaction, classify
from gateway.store.messages import admit_message
from gateway.store.opening import Layout, open_database
from gateway.store.schema import episodes, events, messages, turns
from gateway.store.turns import claim_turn
from tests.factories import (
    CHAT,
    NOW,
    OTHER_CHAT,
    Door,
    make_message,
    queued_turn,
    rows_of,
)


@pytest.fixture
async def store(layout: Layout, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Database]:
    """A store that gives up on a locked database at once, and tries again soon."""
    monkeypatch.setattr(writer, "_BUSY_TIMEOUT_MILLIS", 0)
    monkeypatch.setattr(writer, "_FIRST_RETRY", 0.01)
    monkeypatch.setattr(writer, "_LAST_RETRY", 0.02)
    opened = open_database(layout)
    yield opened
    await opened.close()


def note(tx: Transaction, name: str, chat: ChatKey = CHAT) -> str:
    begin_episode(tx, name, now=NOW)
    tx.touch(Topic.JOBS, chat)
    return name


def note_and_fail(tx: Transaction, name: str) -> None:
    note(tx, name)
    raise ValueError(name)


async def noted(store: Database) -> set[str]:
    return set(await store.read(open_episode_names))


class Gate:
    """Keeps the writer thread inside a transition, so that what follows piles up behind it."""

    def __init__(self) -> None:
        self._open = threading.Event()
        self._entered = threading.Event()

    def hold(self, tx: Transaction) -> None:
        self._entered.set()
        assert self._open.wait(20)

    async def entered(self) -> None:
        assert await asyncio.to_thread(self._entered.wait, 20)

    def open(self) -> None:
        self._open.set()


async def all_at_once(
    store: Database, *transitions: Callable[[Transaction], object]
) -> list[object]:
    """Have the writer take all transitions into one commit; returns results or exceptions."""
    gate = Gate()
    first = asyncio.create_task(store.write(gate.hold))
    await gate.entered()
    tasks = [asyncio.create_task(store.write(transition)) for transition in transitions]
    await asyncio.sleep(0)  # each task runs up to its place in the queue
    gate.open()
    await first
    return list(await asyncio.gather(*tasks, return_exceptions=True))


def naming(name: str) -> Callable[[Transaction], str]:
    return lambda tx: note(tx, name)


@contextmanager
def locked_by_another(layout: Layout) -> Iterator[None]:
    """Another program holds the write lock for the length of a block."""
    other = sqlite3.connect(layout.database, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    try:
        yield
    finally:
        other.close()


# ---- one transition ------------------------------------------------------------------------


async def test_a_transition_is_committed_before_its_result_is_handed_back(
    store: Database, layout: Layout
) -> None:
    assert await store.write(note, "a") == "a"
    other = sqlite3.connect(layout.database)
    assert other.execute("SELECT name FROM episodes").fetchall() == [("a",)]
    other.close()


async def test_reads_work_before_the_first_write_and_see_every_commit(store: Database) -> None:
    assert await noted(store) == set()
    for name in "abc":
        await store.write(note, name)
        assert name in await noted(store)


async def test_a_reader_cannot_write(store: Database) -> None:
    def sneak(connection: Connection) -> None:
        connection.execute(update(episodes).values(name="x"))

    with pytest.raises(StoreError):
        await store.read(sneak)
    assert await noted(store) == set()


async def test_after_a_raise_nothing_of_the_transition_remains(store: Database) -> None:
    with pytest.raises(StoreError, match="ValueError: a") as caught:
        await store.write(note_and_fail, "a")
    assert isinstance(caught.value.__cause__, ValueError)
    assert await noted(store) == set()
    await store.write(note, "b")
    assert await noted(store) == {"b"}


async def test_our_own_errors_come_back_as_they_are(store: Database) -> None:
    def refuse(tx: Transaction) -> None:
        raise StaleStateError("moved")

    with pytest.raises(StaleStateError, match="moved"):
        await store.write(refuse)


async def test_a_query_that_fails_does_not_break_the_reader(store: Database) -> None:
    with pytest.raises(StoreError):
        await store.read(lambda connection: connection.exec_driver_sql("SELECT nonsense"))
    assert await noted(store) == set()


async def test_foreign_keys_are_enforced(store: Database) -> None:
    def orphan(tx: Transaction) -> None:
        tx.connection.execute(
            turns.insert().values(
                chat_key="telegram:1",
                trigger="message",
                source_key="x",
                state="queued",
                created_at=0,
            )
        )

    with pytest.raises(StoreError, match="FOREIGN KEY"):
        await store.write(orphan)


# ---- several in one commit -----------------------------------------------------------------


async def test_what_piles_up_is_taken_into_one_commit(store: Database) -> None:
    heard: list[frozenset[Change]] = []
    store.subscribe(heard.append)
    results = await all_at_once(
        store,
        naming("a"),
        lambda tx: note(tx, "b", OTHER_CHAT),
        naming("c"),
    )
    assert results == ["a", "b", "c"]
    assert await noted(store) == {"a", "b", "c"}
    assert heard == [frozenset({Change(Topic.JOBS, CHAT), Change(Topic.JOBS, OTHER_CHAT)})]


async def test_one_that_fails_takes_back_only_itself(store: Database) -> None:
    heard: list[frozenset[Change]] = []

    def fail(tx: Transaction) -> None:
        note(tx, "failed", OTHER_CHAT)
        raise ValueError("failed")

    store.subscribe(heard.append)
    first, failed, second = await all_at_once(store, naming("a"), fail, naming("b"))
    assert (first, second) == ("a", "b")
    assert isinstance(failed, StoreError)
    assert await noted(store) == {"a", "b"}
    assert heard == [frozenset({Change(Topic.JOBS, CHAT)})]


async def test_a_broken_constraint_takes_back_only_its_own_transition(store: Database) -> None:
    await queued_turn(store)

    def spoil(tx: Transaction) -> None:
        note(tx, "spoiled")
        tx.connection.execute(update(turns).values(state="nonsense"))

    first, failed, second = await all_at_once(store, naming("a"), spoil, naming("b"))
    assert (first, second) == ("a", "b")
    assert isinstance(failed, StoreError)
    assert not isinstance(failed, StoreBusyError)
    assert await noted(store) == {"a", "b"}


async def test_two_claims_in_one_commit_run_one_turn(store: Database) -> None:
    await queued_turn(store)
    message = Trigger.MESSAGE
    claims = await all_at_once(
        store,
        lambda tx: claim_turn(tx, CHAT, trigger=message, owner="a", admits=Door().admits, now=NOW),
        lambda tx: claim_turn(tx, CHAT, trigger=message, owner="b", admits=Door().admits, now=NOW),
    )
    assert [claim is not None for claim in claims] == [True, False]


async def test_more_than_a_batch_is_all_done(store: Database) -> None:
    names = {f"{number}" for number in range(200)}
    results = await all_at_once(store, *map(naming, names))
    assert set(results) == names == await noted(store)


async def test_a_transaction_that_the_database_rolled_back_loses_no_word_of_it(
    store: Database,
) -> None:
    def roll_back(tx: Transaction) -> None:
        tx.connection.exec_driver_sql("ROLLBACK")
        raise ValueError("as SQLite does on a failed write")

    results = await all_at_once(store, naming("a"), roll_back, naming("b"))
    assert all(isinstance(result, StoreError) for result in results)
    assert all("as SQLite does" in str(result) for result in results)
    assert await noted(store) == set()
    await store.write(note, "c")
    assert await noted(store) == {"c"}


# ---- busy, full, broken --------------------------------------------------------------------


async def test_s08_a_locked_database_is_busy_and_the_writer_lives_on(
    store: Database, layout: Layout
) -> None:
    await store.write(note, "before")
    with locked_by_another(layout):
        for _ in range(3):
            with pytest.raises(StoreBusyError):
                await store.write(note, "meanwhile")
        assert await noted(store) == {"before"}
    await store.write(note, "after")
    assert await noted(store) == {"before", "after"}


async def test_s08_insist_waits_until_the_lock_is_gone_and_blocks_nobody(
    store: Database, layout: Layout, caplog: pytest.LogCaptureFixture
) -> None:
    with locked_by_another(layout):
        tasks = [asyncio.create_task(store.insist(note, name)) for name in "ab"]
        while not any(record.message == "store_busy" for record in caplog.records):
            assert await noted(store) == set()  # the loop and the reader work meanwhile
        assert not any(task.done() for task in tasks)
    assert await asyncio.gather(*tasks) == ["a", "b"]
    assert await noted(store) == {"a", "b"}


async def test_s08_the_first_connection_may_meet_a_locked_database(
    store: Database, layout: Layout
) -> None:
    other = sqlite3.connect(layout.database, isolation_level=None)
    other.execute("PRAGMA locking_mode=EXCLUSIVE")
    other.execute("BEGIN EXCLUSIVE")
    with pytest.raises(StoreBusyError):
        await store.write(note, "a")
    with pytest.raises(StoreBusyError):
        await store.read(open_episode_names)
    other.close()
    await store.write(note, "b")
    assert await noted(store) == {"b"}


@contextmanager
def small_disk(kilobytes: int) -> Iterator[None]:
    """No file of this process may grow beyond that."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (kilobytes * 1024, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def store_much(tx: Transaction) -> None:
    """More than the page cache holds, so that it is written before the commit."""
    for number in range(4000):
        tx.connection.execute(
            events.insert().values(
                at=number, subject="turns", subject_id=1, after="queued", reason="x" * 1000
            )
        )


async def test_s10_a_full_disk_is_busy_and_nothing_is_half_written(store: Database) -> None:
    await store.write(note, "before")
    with small_disk(300):
        with pytest.raises(StoreBusyError):
            await store.write(store_much)
        results = await all_at_once(store, naming("a"), store_much, naming("b"))
        assert all(isinstance(result, StoreBusyError) for result in results), results
        assert await noted(store) == {"before"}
        assert await rows_of(store, events) == []
    assert await store.write(note, "after") == "after"
    assert await noted(store) == {"before", "after"}
    assert (
        await store.read(
            lambda connection: connection.exec_driver_sql("PRAGMA integrity_check").scalar_one()
        )
        == "ok"
    )


async def set_most_pages(store: Database, most: int) -> None:
    """Let the database have so many pages at most; 0 = as many as it has now."""

    def limit(tx: Transaction) -> None:
        pages = most or tx.connection.exec_driver_sql("PRAGMA page_count").scalar_one()
        tx.connection.exec_driver_sql(f"PRAGMA max_page_count = {pages}")

    await store.write(limit)


async def test_s10_a_message_that_finds_no_room_is_refused_and_taken_when_there_is_some(
    store: Database,
) -> None:
    await set_most_pages(store, 0)
    long = make_message("x" * 30_000)
    with pytest.raises(StoreBusyError):
        await store.write(admit_message, long, now=NOW)
    results = await all_at_once(
        store, naming("a"), lambda tx: admit_message(tx, long, now=NOW), naming("b")
    )
    assert all(isinstance(result, StoreBusyError) for result in results), results
    assert await noted(store) == set()
    assert await rows_of(store, messages) == []
    waiting = asyncio.create_task(store.insist(admit_message, long, now=NOW))
    await set_most_pages(store, 10**6)
    assert await waiting is not None
    assert await store.write(admit_message, long, now=NOW) is None
    assert len(await rows_of(store, messages)) == 1


async def test_a_database_that_became_read_only_is_busy(store: Database) -> None:
    def write_read_only(tx: Transaction) -> None:
        tx.connection.exec_driver_sql("PRAGMA query_only = ON")
        try:
            note(tx, "meanwhile")
        finally:
            tx.connection.exec_driver_sql("PRAGMA query_only = OFF")

    await store.write(note, "before")
    with pytest.raises(StoreBusyError):
        await store.write(write_read_only)
    await store.write(note, "after")
    assert await noted(store) == {"before", "after"}


def sqlite_error(code: int) -> sqlite3.OperationalError:
    error = sqlite3.OperationalError("as SQLite says it")
    error.sqlite_errorcode = code
    return error


@pytest.mark.parametrize(
    ("code", "translated"),
    [
        (sqlite3.SQLITE_BUSY, StoreBusyError),
        (sqlite3.SQLITE_BUSY_SNAPSHOT, StoreBusyError),
        (sqlite3.SQLITE_LOCKED, StoreBusyError),
        (sqlite3.SQLITE_FULL, StoreBusyError),
        (sqlite3.SQLITE_READONLY, StoreBusyError),
        (sqlite3.SQLITE_READONLY_DBMOVED, StoreBusyError),
        (sqlite3.SQLITE_IOERR, StoreBusyError),
        (sqlite3.SQLITE_IOERR_WRITE, StoreBusyError),
        (sqlite3.SQLITE_IOERR_FSYNC, StoreBusyError),
        (sqlite3.SQLITE_CANTOPEN, StoreBusyError),
        (sqlite3.SQLITE_CORRUPT, CorruptDatabaseError),
        (sqlite3.SQLITE_CORRUPT_INDEX, CorruptDatabaseError),
        (sqlite3.SQLITE_NOTADB, CorruptDatabaseError),
        (sqlite3.SQLITE_CONSTRAINT_UNIQUE, StoreError),
        (sqlite3.SQLITE_ERROR, StoreError),
    ],
)
def test_result_codes_mean_what_they_say(code: int, translated: type[GatewayError]) -> None:
    assert type(classify(sqlite_error(code))) is translated


def test_words_in_a_message_mean_nothing() -> None:
    for text in ("no such table: fulltext", "malformed JSON", "busy is not a column"):
        assert type(classify(sqlite3.OperationalError(text))) is StoreError
        assert type(classify(ValueError(text))) is StoreError


async def test_damage_is_reported_whoever_meets_it(store: Database) -> None:
    seen: list[GatewayError] = []
    store.on_damage = seen.append

    def meet(_: object) -> None:
        raise sqlite_error(sqlite3.SQLITE_CORRUPT)

    with pytest.raises(CorruptDatabaseError):
        await store.write(meet)
    with pytest.raises(CorruptDatabaseError):
        await store.read(meet)
    assert [type(error) for error in seen] == [CorruptDatabaseError] * 2


# ---- callers, listeners, the end -----------------------------------------------------------


async def test_a_cancelled_caller_finds_it_done_or_not_done_but_whole(store: Database) -> None:
    gate = Gate()
    first = asyncio.create_task(store.write(gate.hold))
    await gate.entered()
    waiting = asyncio.create_task(store.write(note, "a"))
    await asyncio.sleep(0)
    waiting.cancel()
    gate.open()
    await first
    with pytest.raises(asyncio.CancelledError):
        await waiting
    await store.write(note, "b")
    assert await noted(store) == {"a", "b"}


async def test_listeners_are_told_after_the_commit_and_never_of_what_failed(
    store: Database, layout: Layout
) -> None:
    seen: list[tuple[frozenset[Change], set[str]]] = []

    def listen(changes: frozenset[Change]) -> None:
        other = sqlite3.connect(layout.database)
        names = {name for (name,) in other.execute("SELECT name FROM episodes")}
        other.close()
        seen.append((changes, names))

    store.subscribe(listen)
    with pytest.raises(StoreError):
        await store.write(note_and_fail, "failed")
    await store.write(lambda tx: begin_episode(tx, "told nobody", now=NOW))
    await store.write(note, "a")
    assert seen == [(frozenset({Change(Topic.JOBS, CHAT)}), {"told nobody", "a"})]


async def test_close_finishes_what_waits_and_takes_nothing_more(layout: Layout) -> None:
    store = open_database(layout)
    tasks = [asyncio.create_task(store.write(note, f"{number}")) for number in range(100)]
    await asyncio.sleep(0)
    await store.close()
    await store.close()
    assert len(await asyncio.gather(*tasks)) == 100
    with pytest.raises(StoreError, match="closed"):
        await store.write(note, "late")
    other = sqlite3.connect(layout.database)
    assert other.execute("SELECT count(*) FROM episodes").fetchone() == (100,)
    other.close()


async def test_many_writers_and_readers_lose_nothing(store: Database) -> None:
    async def work(number: int) -> None:
        chat = ChatKey(CHAT.channel, f"{number}")
        for _ in range(5):
            await queued_turn(store, chat=chat)
            assert await rows_of(store, messages, messages.c.chat_key == str(chat))

    await asyncio.gather(*(work(number) for number in range(20)))
    assert len(await rows_of(store, messages)) == 100
    assert len(await rows_of(store, turns)) == 20


def test_the_dialect_of_the_other_database_is_not_loaded() -> None:
    code = "import sys, gateway.store.opening; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "sqlalchemy.dialects.sqlite" in done.stdout.split()
    assert "sqlalchemy.dialects.postgresql" not in done.stdout.split()
