"""Check-ins: once a silence, stored, never beside other work."""

from datetime import UTC, datetime, time, timedelta

import pytest

from gateway.domain.heartbeat import HeartbeatRules
from gateway.domain.message import ChannelName, ChatKey
from gateway.domain.turn import Trigger
from gateway.store.chats import ensure_chat, set_reachable
from gateway.store.database import Database
from gateway.store.heartbeats import earliest_heartbeat, note_activity, queue_heartbeats
from gateway.store.opening import Layout, open_database
from gateway.store.schema import chats, turns
from tests.factories import (
    BERLIN,
    CHAT,
    NOW,
    OTHER_CHAT,
    SERVED,
    Door,
    active_job,
    fire,
    later,
    moment_of,
    queued_turn,
    rows_of,
    states_of,
)

INTERVAL = timedelta(minutes=30)
DUE = 1800.0
RULES = HeartbeatRules(
    interval=INTERVAL, quiet_hours=(time(22), time(8)), daily_cap=3, timezone=BERLIN
)


async def wrote(
    store: Database,
    chat: ChatKey = CHAT,
    *,
    now: datetime = NOW,
    interval: timedelta | None = INTERVAL,
    is_group: bool = False,
) -> None:
    """A person wrote in a chat, and was answered."""
    await store.write(ensure_chat, chat, is_group=is_group, now=now)
    await store.write(note_activity, chat, interval=interval, now=now)


async def look(
    store: Database, now: datetime, *, door: Door | None = None, rules: HeartbeatRules = RULES
) -> int:
    admits = (door or Door()).admits
    return await store.write(queue_heartbeats, SERVED, admits, rules, now=now)


async def end_all(store: Database) -> None:
    """Every turn has ended meanwhile."""
    await store.write(
        lambda tx: tx.connection.execute(turns.update().values(state="silent", ended_at=1))
    )


async def next_of(store: Database, chat: ChatKey = CHAT) -> datetime | None:
    (row,) = await rows_of(store, chats, chats.c.chat_key == str(chat))
    return moment_of(row.next_heartbeat_at)


async def test_a_chat_is_checked_on_once_a_silence(store: Database) -> None:
    await wrote(store)
    assert await look(store, later(DUE - 1)) == 0
    assert await look(store, later(DUE)) == 1
    (row,) = await rows_of(store, turns)
    assert (row.trigger, row.state) == (Trigger.HEARTBEAT, "queued")
    assert row.source_key.startswith(f"heartbeat:{CHAT}:")
    await end_all(store)
    assert await look(store, later(10 * DUE)) == 0
    await wrote(store, now=later(10 * DUE))
    assert await look(store, later(11 * DUE)) == 1


async def test_each_message_begins_the_silence_anew(store: Database) -> None:
    await wrote(store)
    await wrote(store, now=later(1000))
    assert await look(store, later(DUE)) == 0
    assert await look(store, later(1000 + DUE)) == 1


async def test_without_an_interval_and_in_groups_there_are_none(store: Database) -> None:
    await wrote(store, interval=None)
    await wrote(store, OTHER_CHAT, is_group=True)
    assert await next_of(store) is None
    assert await next_of(store, OTHER_CHAT) is None
    assert await look(store, later(10 * DUE)) == 0


async def test_after_a_downtime_there_is_one_and_a_restart_repeats_none(layout: Layout) -> None:
    store = open_database(layout)
    await wrote(store)
    await store.close()
    store = open_database(layout)
    assert await look(store, later(10 * DUE)) == 1
    await store.close()
    store = open_database(layout)
    assert await look(store, later(20 * DUE)) == 0
    assert len(await rows_of(store, turns)) == 1
    await store.close()


async def test_m20_on_an_open_lane_it_is_put_off_and_not_queued(store: Database) -> None:
    await wrote(store)
    await queued_turn(store, now=later(10))
    for due in (1, 2, 3):
        assert await look(store, later(DUE * due)) == 0
        assert await next_of(store) == later(DUE * (due + 1))
    await end_all(store)
    assert await look(store, later(DUE * 4)) == 1


async def test_m22_the_quiet_hours_of_the_chats_own_zone_count(store: Database) -> None:
    await wrote(store)
    await wrote(store, OTHER_CHAT)
    await store.write(
        lambda tx: tx.connection.execute(
            chats.update().where(chats.c.chat_key == str(CHAT)).values(timezone="Asia/Tokyo")
        )
    )
    now = datetime(2026, 3, 2, 13, 30, tzinfo=UTC)  # 22:30 in Tokyo, 14:30 in Berlin
    assert await look(store, now) == 1
    assert await next_of(store) == datetime(2026, 3, 2, 23, tzinfo=UTC)
    await end_all(store)
    assert await look(store, datetime(2026, 3, 2, 23, tzinfo=UTC)) == 1


async def test_m22_quiet_hours_hold_no_reminder(store: Database) -> None:
    night = datetime(2026, 3, 3, 2, tzinfo=UTC)
    await active_job(store, at=night)
    assert await fire(store, night) == 1


async def test_a_day_has_no_more_than_the_cap(store: Database) -> None:
    rules = HeartbeatRules(
        interval=INTERVAL, quiet_hours=RULES.quiet_hours, daily_cap=2, timezone=BERLIN
    )
    for number in range(4):
        await wrote(store, now=later(2 * DUE * number))
        await look(store, later(2 * DUE * number + DUE), rules=rules)
        await end_all(store)
    assert len(await rows_of(store, turns)) == 2
    assert await next_of(store) == datetime(2026, 3, 2, 23, tzinfo=UTC)
    assert await look(store, datetime(2026, 3, 2, 23, tzinfo=UTC), rules=rules) == 0
    assert await look(store, datetime(2026, 3, 3, 7, tzinfo=UTC), rules=rules) == 1


async def test_who_cannot_be_reached_or_may_not_talk_is_not_checked_on(store: Database) -> None:
    await wrote(store)
    await wrote(store, OTHER_CHAT)
    await store.write(set_reachable, CHAT, is_reachable=False, now=NOW)
    door = Door()
    door.out.add(OTHER_CHAT)
    assert await look(store, later(DUE), door=door) == 0
    assert await next_of(store) == later(DUE)
    assert await next_of(store, OTHER_CHAT) is None


async def test_only_the_served_channels_are_checked_on(store: Database) -> None:
    await wrote(store, ChatKey(ChannelName.CONSOLE, "local"))
    assert await look(store, later(DUE)) == 0


async def test_the_alarm_knows_the_next_one_that_is_to_come(store: Database) -> None:
    await wrote(store)
    await wrote(store, OTHER_CHAT, now=later(60))
    assert await store.read(earliest_heartbeat, SERVED, after=NOW) == later(DUE)
    assert await store.read(earliest_heartbeat, SERVED, after=later(DUE)) == later(DUE + 60)
    assert await store.read(earliest_heartbeat, SERVED, after=later(DUE + 60)) is None


@pytest.mark.parametrize("damage", [{"timezone": "Mars/Base"}, {"heartbeat_day": "someday"}])
async def test_a_damaged_chat_harms_no_other(store: Database, damage: dict[str, str]) -> None:
    await wrote(store)
    await wrote(store, OTHER_CHAT)
    await store.write(
        lambda tx: tx.connection.execute(
            chats.update().where(chats.c.chat_key == str(CHAT)).values(damage)
        )
    )
    assert await look(store, later(DUE)) == 2
    assert await states_of(store, turns) == ["queued", "queued"]


async def test_many_silent_chats_are_checked_on_a_few_at_a_time(store: Database) -> None:
    for number in range(8):
        await wrote(store, ChatKey(ChannelName.TELEGRAM, f"{100 + number}"))

    assert [await look(store, later(DUE)) for _ in range(3)] == [5, 3, 0]
