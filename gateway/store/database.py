"""The one writer thread and the one reader thread, and what they promise about a transaction."""

import asyncio
import logging
import queue
import sqlite3
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar

from sqlalchemy import Connection, Engine, Table, create_engine, event
from sqlalchemy.dialects import sqlite
from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.pool import StaticPool

from gateway.domain.message import ChatKey
from gateway.errors import CorruptDatabaseError, GatewayError, StoreBusyError, StoreError

log = logging.getLogger(__name__)

P = ParamSpec("P")
T = TypeVar("T")

_BATCH = 64
"""How many waiting transitions one commit may take."""

_BUSY_TIMEOUT_MILLIS = 5000
_STATEMENTS_KEPT = 512
_FIRST_RETRY = 0.5
_LAST_RETRY = 10.0


class Topic(StrEnum):
    """What a commit changed, for the workers that wait on it."""

    TURNS = "turns"
    DELIVERIES = "deliveries"
    JOBS = "jobs"
    ENDED = "ended"  # a turn or a send ended: its own worker goes on, and others need not look


@dataclass(frozen=True, slots=True)
class Change:
    """A hint that a chat has something new; correctness never depends on it."""

    topic: Topic
    chat: ChatKey


Listener = Callable[[frozenset[Change]], None]


@dataclass(slots=True)
class Transaction:
    """An open transaction: statements go to `connection`; `touch` tells the workers afterwards."""

    connection: Connection
    changes: set[Change] = field(default_factory=set)

    def touch(self, topic: Topic, chat: ChatKey) -> None:
        """Wake whoever works on this chat's rows once the commit is durable."""
        self.changes.add(Change(topic, chat))


@dataclass(slots=True)
class _Write(Generic[T]):
    transition: Callable[[Transaction], T]
    future: asyncio.Future[T]


_PASSING = frozenset(
    {
        sqlite3.SQLITE_BUSY,
        sqlite3.SQLITE_LOCKED,
        sqlite3.SQLITE_PROTOCOL,
        sqlite3.SQLITE_READONLY,
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_CANTOPEN,
    }
)
_DAMAGED = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
_PRIMARY_CODE = 0xFF


def classify(error: Exception) -> GatewayError:
    """Translate what the database layer raised into our own error, by SQLite's result code."""
    if isinstance(error, GatewayError):
        return error
    cause = error.orig if isinstance(error, DBAPIError) else error
    # Absent when the driver itself complains.
    code = getattr(cause, "sqlite_errorcode", sqlite3.SQLITE_OK) & _PRIMARY_CODE
    if code in _DAMAGED:
        return CorruptDatabaseError(f"The database is damaged: {cause}.")
    if code in _PASSING:
        return StoreBusyError(f"The database cannot be written right now: {cause}.")
    return StoreError(f"The store failed: {type(cause).__name__}: {cause}")


def upsert(table: Table) -> sqlite.Insert:
    """An INSERT that can say ON CONFLICT, which both databases write alike."""
    return sqlite.insert(table)


def open_engine(path: Path, *, is_read_only: bool) -> Engine:
    """An engine of one connection to the SQLite file, with the pragmas that the promises need."""
    mode = "ro" if is_read_only else "rwc"

    def connect() -> sqlite3.Connection:
        uri = f"{path.absolute().as_uri()}?mode={mode}"
        connection = sqlite3.connect(
            uri,
            uri=True,
            isolation_level=None,
            check_same_thread=False,
            cached_statements=_STATEMENTS_KEPT,
        )
        try:
            connection.execute(f"PRAGMA busy_timeout={_BUSY_TIMEOUT_MILLIS}")
            connection.execute("PRAGMA foreign_keys=ON")
            if not is_read_only:
                connection.execute("PRAGMA journal_mode=WAL")
                connection.execute("PRAGMA synchronous=FULL")
        except sqlite3.Error:
            connection.close()
            raise
        return connection

    engine = create_engine("sqlite://", creator=connect, poolclass=StaticPool)
    # Deferred transactions that turn into writers are refused at once, whatever the timeout.
    begin = "BEGIN" if is_read_only else "BEGIN IMMEDIATE"

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        connection.exec_driver_sql(begin)

    return engine


class Database:
    """The open store. Every change is one transition: a function of a transaction, run whole in
    the writer thread, committed (fully synchronous) before its result is handed back.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._writer_engine = open_engine(path, is_read_only=False)
        self._reader_engine = open_engine(path, is_read_only=True)
        self._reader = ThreadPoolExecutor(max_workers=1, thread_name_prefix="store-reader")
        self._queue: queue.SimpleQueue[_Write[Any] | None] = queue.SimpleQueue()
        self._listeners: list[Listener] = []
        self.on_damage: Callable[[CorruptDatabaseError], None] | None = None
        """Called in the event loop when the database turns out to be damaged."""
        self._loop: asyncio.AbstractEventLoop | None = None
        self._writer = threading.Thread(target=self._write_loop, name="store-writer", daemon=True)
        self._writer.start()
        self._is_closed = False

    def subscribe(self, listener: Listener) -> None:
        """Call `listener` in the event loop with the changes of each commit."""
        self._listeners.append(listener)

    async def write(
        self,
        transition: Callable[Concatenate[Transaction, P], T],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        """Run a transition and commit it; raises what it raised, or StoreError of the commit.

        After a raise nothing of the transition remains. Once begun it is not cancelled: a
        cancelled caller may find it done.
        """
        if self._is_closed:
            raise StoreError("The store is closed.")
        self._loop = loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        self._queue.put(_Write(lambda tx: transition(tx, *args, **kwargs), future))
        return await future

    async def insist(
        self,
        transition: Callable[Concatenate[Transaction, P], T],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        """Like `write`, but a busy or full store is waited for: 0.5 s, 1 s ... 10 s, for ever."""
        wait = _FIRST_RETRY
        while True:
            try:
                return await self.write(transition, *args, **kwargs)
            except StoreBusyError as error:
                log.warning("store_busy", extra={"error": str(error), "retry_seconds": wait})
            await asyncio.sleep(wait)
            wait = min(_LAST_RETRY, wait * 2)

    async def read(
        self,
        query: Callable[Concatenate[Connection, P], T],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        """Run a query in one short read transaction of the reader thread."""

        def run() -> T:
            try:
                with self._reader_engine.connect() as connection, connection.begin():
                    return query(connection, *args, **kwargs)
            except (SQLAlchemyError, sqlite3.Error) as error:
                raise classify(error) from error

        try:
            return await asyncio.get_running_loop().run_in_executor(self._reader, run)
        except CorruptDatabaseError as error:
            self._tell_damage(error)
            raise

    def _tell_damage(self, error: GatewayError) -> None:
        if isinstance(error, CorruptDatabaseError) and self.on_damage is not None:
            self.on_damage(error)

    async def close(self) -> None:
        """Finish the transitions that wait, then close both connections."""
        if self._is_closed:
            return
        self._is_closed = True
        self._queue.put(None)
        await asyncio.to_thread(self._writer.join)
        self._reader.shutdown()
        self._reader_engine.dispose()
        self._writer_engine.dispose()

    def _write_loop(self) -> None:
        is_open = True
        while is_open:
            batch, is_open = self._next_batch()
            if batch:
                self._hand_back(*self._commit(batch))

    def _next_batch(self) -> tuple[list[_Write[Any]], bool]:
        """Wait for a transition, take what waits behind it; false = the last batch."""
        batch: list[_Write[Any]] = []
        item = self._queue.get()
        while item is not None:
            batch.append(item)
            if len(batch) >= _BATCH:
                return batch, True
            try:
                item = self._queue.get_nowait()
            except queue.Empty:
                return batch, True
        return batch, False

    def _commit(
        self, batch: Sequence[_Write[Any]]
    ) -> tuple[list[tuple[_Write[Any], Any, Exception | None]], frozenset[Change]]:
        """Run a batch in one transaction; a transition that raises takes back only itself."""
        done: list[tuple[_Write[Any], Any, Exception | None]] = []
        changes: set[Change] = set()
        try:
            with self._writer_engine.connect() as connection, connection.begin():
                for write in batch:
                    tx = Transaction(connection)
                    if len(batch) == 1:
                        result, error = write.transition(tx), None
                    else:
                        result, error = _run_guarded(tx, write.transition)
                    done.append((write, result, error))
                    if error is None:
                        changes |= tx.changes
        except Exception as error:  # noqa: BLE001 - handed to every caller
            return [(write, None, error) for write in batch], frozenset()
        return done, frozenset(changes)

    def _hand_back(
        self,
        done: Sequence[tuple[_Write[Any], Any, Exception | None]],
        changes: frozenset[Change],
    ) -> None:
        loop = self._loop
        if loop is None:
            return

        def resolve() -> None:
            for write, result, error in done:
                if write.future.done():
                    continue
                if error is None:
                    write.future.set_result(result)
                else:
                    translated = classify(error)
                    if translated is not error:
                        translated.__cause__ = error
                    write.future.set_exception(translated)
                    self._tell_damage(translated)
            if changes:
                for listener in self._listeners:
                    listener(changes)

        # A loop that is closed has nobody left to tell.
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(resolve)


def _run_guarded(
    tx: Transaction, transition: Callable[[Transaction], T]
) -> tuple[T | None, Exception | None]:
    """Run one transition of several in a savepoint; returns its result, or what it raised.

    Raises when the whole transaction is lost with it: SQLite rolls everything back by itself on
    a full disk or a failed write, and each statement after that would be committed on its own.
    """
    # Not SQLAlchemy's own savepoints: their bookkeeping costs as much as a statement or two.
    tx.connection.exec_driver_sql("SAVEPOINT one")
    try:
        result = transition(tx)
        tx.connection.exec_driver_sql("RELEASE one")
    except Exception as error:
        driver = tx.connection.connection.driver_connection
        is_alive = driver is not None and driver.in_transaction
        if not is_alive or isinstance(classify(error), StoreBusyError):
            raise
        tx.connection.exec_driver_sql("ROLLBACK TO one")
        tx.connection.exec_driver_sql("RELEASE one")
        return None, error
    return result, None
