"""Fills a gateway's database with what months of use would leave there."""

import contextlib
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from sqlalchemy import Connection, insert

from gateway.domain.job import JobAction, JobState, MissedWindow, Tier
from gateway.domain.message import ChatKey
from gateway.domain.schedule import At, to_millis
from gateway.domain.schedule_forms import schedule_to_json
from gateway.store.database import open_engine, upsert
from gateway.store.opening import DATABASE_NAME
from gateway.store.schema import addresses, chats, jobs

_FAR = timedelta(days=365)


@contextlib.contextmanager
def stored_data(folder: Path) -> Iterator[Connection]:
    """One transaction on the database of a stopped gateway."""
    engine = open_engine(folder / "data" / DATABASE_NAME, is_read_only=False)
    try:
        with engine.connect() as connection, connection.begin():
            yield connection
    finally:
        engine.dispose()


def store_chats(connection: Connection, keys: Sequence[ChatKey]) -> None:
    """Store private chats."""
    now = to_millis(datetime.now(UTC))
    connection.execute(
        upsert(chats).on_conflict_do_nothing(),
        [
            {
                "chat_key": str(key),
                "channel": key.channel,
                "address": key.address,
                "created_at": now,
            }
            for key in keys
        ],
    )
    connection.execute(
        upsert(addresses).on_conflict_do_nothing(),
        [{"channel": key.channel, "address": key.address, "chat_key": str(key)} for key in keys],
    )


def store_far_jobs(connection: Connection, keys: Sequence[ChatKey], count: int) -> None:
    """Store jobs that are due from a year from now on, one a minute."""
    first = datetime.now(UTC) + _FAR
    slots = [first + timedelta(minutes=number) for number in range(count)]
    store_jobs(connection, keys, [(slot, "water the plants") for slot in slots])


def store_jobs(
    connection: Connection, keys: Sequence[ChatKey], due: Sequence[tuple[datetime, str]]
) -> None:
    """Store one-shots with their texts, dealt out to the chats in turn."""
    now = to_millis(datetime.now(UTC))
    connection.execute(
        insert(jobs),
        [
            {
                "chat_key": str(keys[number % len(keys)]),
                "state": JobState.ACTIVE,
                "action": JobAction.MESSAGE,
                "text": text,
                "schedule": schedule_to_json(At(at=slot)),
                "timezone": "Europe/Berlin",
                "missed": MissedWindow.CATCH_UP_ONE,
                "tier": Tier.READ_ONLY,
                "asked_tier": Tier.READ_ONLY,
                "next_slot_at": to_millis(slot),
                "created_at": now,
            }
            for number, (slot, text) in enumerate(due)
        ],
    )
