"""What a gateway does now and then."""

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from gateway.chores import Chores
from gateway.engine.alarm import AlarmClock
from gateway.errors import CorruptDatabaseError
from gateway.front import Gateway, Options, build_gateway
from gateway.hosts.directory import forget_old_sessions
from gateway.settings import load_settings
from gateway.store.database import Database
from gateway.store.opening import Layout, list_copies


@pytest.fixture
async def gateway(store: Database, layout: Layout) -> Gateway:
    environ = {
        "GATEWAY_DATA_DIR": str(layout.directory),
        "TELEGRAM_BOT_TOKEN": "1:abcdef",
        "TELEGRAM_ALLOWLIST": "7",
    }
    settings = load_settings(environ, cwd=layout.directory)
    return await build_gateway(settings, Options(), store, None)


async def test_a_copy_is_made_once_a_day(gateway: Gateway, layout: Layout) -> None:
    chores = Chores(gateway)
    await chores.copy()
    await chores.copy()
    [copy] = list_copies(layout)
    yesterday = datetime.now(UTC) - timedelta(hours=25)
    os.utime(copy, (yesterday.timestamp(),) * 2)
    copy.rename(copy.with_name("gateway-20200101T000000-daily.db"))
    await chores.copy()
    assert len(list_copies(layout)) == 2


@pytest.mark.parametrize("is_replaced", [False, True])
async def test_a_database_that_was_taken_away_stops_the_gateway(
    gateway: Gateway, store: Database, *, is_replaced: bool
) -> None:
    told: list[CorruptDatabaseError] = []
    store.on_damage = told.append
    chores = Chores(gateway)
    await chores.look()
    assert told == []
    store.path.rename(store.path.with_name("away.db"))
    if is_replaced:
        store.path.write_bytes(b"")
    await chores.look()
    assert "was removed or replaced while the gateway ran" in str(told[0])


async def test_the_chores_are_given_to_the_alarm_clock(gateway: Gateway) -> None:
    alarm = AlarmClock()
    alarm.start()
    Chores(gateway).start(alarm)
    assert alarm.chores == ["clean", "copy", "look"]
    alarm.stop()


def make_session(root: Path, name: str, *, age: timedelta) -> Path:
    directory = root / "0123456789abcdef" / name
    directory.mkdir(parents=True)
    transcript = directory / "transcript.jsonl"
    transcript.write_text("{}")
    at = (datetime.now(UTC) - age).timestamp()
    for path in (transcript, directory):
        os.utime(path, (at, at))
    return directory


def test_old_conversations_are_removed_and_the_present_one_is_kept(tmp_path: Path) -> None:
    old = make_session(tmp_path, "1", age=timedelta(days=40))
    damaged = make_session(tmp_path, "2.damaged-1", age=timedelta(days=40))
    young = make_session(tmp_path, "9", age=timedelta(days=1))
    present = make_session(tmp_path, "10", age=timedelta(days=40))

    gone = forget_old_sessions(tmp_path, before=datetime.now(UTC) - timedelta(days=30))

    assert gone == 2
    assert [one.exists() for one in (old, damaged, young, present)] == [False, False, True, True]
