"""Due jobs: fired at their stored time, whatever clocks, alarms and the store do meanwhile."""

import asyncio
import sqlite3
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime, time, timedelta
from typing import Any, TypeVar

import pytest

from gateway.domain.heartbeat import HeartbeatRules
from gateway.domain.job import JobAction, JobState
from gateway.domain.message import ChatKey
from gateway.domain.schedule import Daily, Every
from gateway.domain.turn import Trigger
from gateway.engine.alarm import AlarmClock
from gateway.engine.scheduler import SWEEP, Scheduler
from gateway.errors import StoreError
from gateway.store.chats import ensure_chat
from gateway.store.database import Database, Transaction
from gateway.store.heartbeats import note_activity, queue_heartbeats
from gateway.store.jobs import Created, create_job
from gateway.store.opening import Layout
from gateway.store.schema import deliveries, jobs, turns
from tests.factories import (
    BERLIN,
    CHAT,
    NOW,
    OTHER_CHAT,
    Door,
    active_job,
    created_job,
    fire_rules,
    later,
    moment_of,
    new_job,
    queued_job_turn,
    rows_of,
    states_of,
)
from tests.fakes.clock import ManualClock
from tests.fakes.sessions import eventually

T = TypeVar("T")

HEARTBEATS = HeartbeatRules(
    interval=timedelta(minutes=30), quiet_hours=(time(22), time(8)), daily_cap=3, timezone=BERLIN
)


class Alarm:
    """Remembers for when it was set, and rings when a test says so."""

    def __init__(self) -> None:
        self.moments: list[datetime | None] = []
        self.ring: Callable[[], None] | None = None

    def set(self, moment: datetime | None, ring: Callable[[], None]) -> None:
        self.moments.append(moment)
        self.ring = ring


def make_scheduler(
    store: Database,
    clock: ManualClock,
    alarm: Alarm,
    *,
    sweep: timedelta = SWEEP,
    door: Door | None = None,
    heartbeat: HeartbeatRules | None = None,
) -> Scheduler:
    rules = replace(fire_rules(door), heartbeat=heartbeat)
    return Scheduler(store, rules, clock, alarm, sweep=sweep)


async def late_prompt(store: Database, number: int) -> None:
    """A task for a model that is due in a minute."""
    chat = ChatKey(CHAT.channel, str(1000 + number))
    new = replace(new_job(f"n{number}", chat=chat), action=JobAction.PROMPT)
    await created_job(store, new)


@asynccontextmanager
async def running(scheduler: Scheduler) -> AsyncIterator[None]:
    task = asyncio.create_task(scheduler.run(), name="scheduler")
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


@pytest.fixture
def alarm() -> Alarm:
    return Alarm()


async def texts_of(store: Database) -> list[str]:
    return [row.text for row in await rows_of(store, deliveries)]


# ---- one look --------------------------------------------------------------------------------


async def test_a_job_fires_at_its_stored_time_and_not_before(
    store: Database, clock: ManualClock, alarm: Alarm
) -> None:
    await active_job(store, at=later(60))
    scheduler = make_scheduler(store, clock, alarm)

    clock.set(later(59.999))
    assert await scheduler.tick() == 0
    clock.set(later(60))
    assert await scheduler.tick() == 1
    assert await scheduler.tick() == 0

    assert await texts_of(store) == ["call mum"]


async def test_the_alarm_is_set_to_the_earliest_slot_and_to_silence_without_one(
    store: Database, clock: ManualClock, alarm: Alarm
) -> None:
    scheduler = make_scheduler(store, clock, alarm)
    await scheduler.tick()
    await active_job(store, "later", at=later(600))
    await active_job(store, "sooner", at=later(60), chat=OTHER_CHAT)
    await scheduler.tick()
    clock.set(later(60))
    await scheduler.tick()
    clock.set(later(600))
    await scheduler.tick()

    assert alarm.moments == [None, later(60), later(600), None]


async def test_what_was_due_while_the_gateway_was_down_fires_once(
    store: Database, clock: ManualClock, alarm: Alarm
) -> None:
    await active_job(store, at=later(60))
    clock.set(later(7200))

    assert await make_scheduler(store, clock, alarm).tick() == 1
    assert await make_scheduler(store, clock, alarm).tick() == 0

    assert await texts_of(store) == ["(was due Mon 2 Mar 10:01) call mum"]


async def test_a_thousand_jobs_due_at_once_all_fire_once(
    store: Database, clock: ManualClock, alarm: Alarm
) -> None:
    def fill(tx: Transaction) -> None:
        for number in range(1000):
            chat = ChatKey(CHAT.channel, str(1000 + number % 100))
            ensure_chat(tx, chat, is_group=False, now=NOW)
            created = create_job(tx, new_job(f"n{number}", chat=chat), now=NOW)
            assert isinstance(created, Created)

    await store.write(fill)
    clock.set(later(60))

    assert await make_scheduler(store, clock, alarm).tick() == 1000

    assert len(await rows_of(store, turns)) == 1000
    lines = [line for text in await texts_of(store) for line in text.splitlines()]
    assert sorted(lines) == sorted(f"• n{number}" for number in range(1000))
    assert len(await rows_of(store, deliveries)) == 100
    assert alarm.moments == [None]


async def test_a_damaged_job_harms_no_other(
    store: Database, clock: ManualClock, alarm: Alarm
) -> None:
    await active_job(store, "good")
    broken = await active_job(store, "bad")
    await store.write(
        lambda tx: tx.connection.execute(
            jobs.update().where(jobs.c.id == broken.id).values(timezone="Mars/Base")
        )
    )
    clock.set(later(60))

    await make_scheduler(store, clock, alarm).tick()

    assert "good" in await texts_of(store)
    assert await states_of(store, jobs) == [JobState.ACTIVE, JobState.FAILED]


async def test_a_chat_that_was_put_out_is_not_reminded(
    store: Database, clock: ManualClock, alarm: Alarm
) -> None:
    door = Door()
    await active_job(store)
    door.out.add(CHAT)
    clock.set(later(60))

    await make_scheduler(store, clock, alarm, door=door).tick()

    assert await states_of(store, jobs) == [JobState.PAUSED]
    assert await states_of(store, deliveries) == ["suppressed"]


async def test_at_most_five_late_turns_for_a_model_begin_at_the_start_and_three_a_sweep(
    store: Database, clock: ManualClock, alarm: Alarm
) -> None:
    for number in range(10):
        await late_prompt(store, number)
    await active_job(store, "text", at=later(9000))
    clock.set(later(7200))
    scheduler = make_scheduler(store, clock, alarm, sweep=timedelta(seconds=3600))
    assert [await scheduler.tick() for _ in range(3)] == [5, 0, 0]
    assert alarm.moments == [later(7200 + 300)] * 3

    scheduler = make_scheduler(store, clock, alarm, sweep=timedelta(0))
    assert [await scheduler.tick() for _ in range(2)] == [5, 0]


async def test_each_sweep_takes_three_more(
    store: Database, clock: ManualClock, alarm: Alarm
) -> None:
    for number in range(9):
        await late_prompt(store, number)
    clock.set(later(7200))
    scheduler = make_scheduler(store, clock, alarm, sweep=timedelta(0))
    assert [await scheduler.tick() for _ in range(4)] == [5, 3, 1, 0]


async def test_what_no_model_answered_in_five_minutes_is_sent_as_it_is_stored(
    store: Database, clock: ManualClock, alarm: Alarm
) -> None:
    await queued_job_turn(store, "water the plants", now=later(60))
    scheduler = make_scheduler(store, clock, alarm)
    clock.set(later(61))
    await scheduler.tick()
    assert alarm.moments == [later(360)]
    clock.set(later(360))
    await scheduler.tick()

    assert await states_of(store, turns) == ["failed"]
    assert "water the plants" in (await texts_of(store))[0]
    assert alarm.moments == [later(360), None]


async def test_a_silent_chat_is_checked_on_where_that_is_wanted(
    store: Database, clock: ManualClock, alarm: Alarm
) -> None:
    await active_job(store, at=later(9000))
    await store.write(note_activity, CHAT, interval=timedelta(minutes=30), now=NOW)
    await make_scheduler(store, clock, alarm).tick()
    await make_scheduler(store, clock, alarm, heartbeat=HEARTBEATS).tick()
    assert alarm.moments == [later(9000), later(1800)]

    clock.set(later(1800))
    await make_scheduler(store, clock, alarm).tick()
    assert await rows_of(store, turns) == []
    await make_scheduler(store, clock, alarm, heartbeat=HEARTBEATS).tick()
    await make_scheduler(store, clock, alarm, heartbeat=HEARTBEATS).tick()

    (row,) = await rows_of(store, turns)
    assert row.trigger == Trigger.HEARTBEAT
    assert alarm.moments[-1] == later(9000)


async def test_it_knows_when_the_last_look_was_completed(
    store: Database, clock: ManualClock, alarm: Alarm
) -> None:
    scheduler = make_scheduler(store, clock, alarm)
    assert scheduler.last_look_at is None
    clock.set(later(60))
    await scheduler.tick()
    assert scheduler.last_look_at == later(60)


async def test_r15_500_reminders_a_minute_apart_all_fire_without_traffic(
    store: Database, clock: ManualClock, alarm: Alarm
) -> None:
    def fill(tx: Transaction) -> None:
        for number in range(500):
            chat = ChatKey(CHAT.channel, str(1000 + number))
            ensure_chat(tx, chat, is_group=False, now=NOW)
            at = later(60 * (number + 1))
            create_job(tx, new_job(f"n{number}", chat=chat, at=at), now=NOW)

    await store.write(fill)
    scheduler = make_scheduler(store, clock, alarm)
    await scheduler.tick()
    for _ in range(500):
        moment = alarm.moments[-1]
        assert moment is not None
        clock.set(moment)
        assert await scheduler.tick() == 1
    assert alarm.moments[-1] is None


# ---- what makes it look ----------------------------------------------------------------------


async def test_a_new_job_moves_the_alarm_forward(
    store: Database, clock: ManualClock, alarm: Alarm
) -> None:
    await active_job(store, at=later(600))
    async with running(make_scheduler(store, clock, alarm)):
        await eventually(lambda: alarm.moments[-1:] == [later(600)])
        await active_job(store, "sooner", at=later(60))
        await eventually(lambda: alarm.moments[-1] == later(60))


async def test_the_alarm_makes_it_look(store: Database, clock: ManualClock, alarm: Alarm) -> None:
    await active_job(store, at=later(60))
    async with running(make_scheduler(store, clock, alarm)):
        await eventually(lambda: alarm.moments == [later(60)])
        clock.set(later(60))
        assert alarm.ring is not None
        alarm.ring()
        await eventually(lambda: alarm.moments[-1] is None)

    assert await texts_of(store) == ["call mum"]


async def test_s16_a_clock_that_jumps_there_and_back_makes_nothing_late_or_double(
    store: Database, clock: ManualClock, alarm: Alarm, caplog: pytest.LogCaptureFixture
) -> None:
    await active_job(store, "in 30 minutes", at=later(1800))
    await active_job(store, "in 3 hours", at=later(3 * 3600))
    sweep = timedelta(milliseconds=10)
    async with running(make_scheduler(store, clock, alarm, sweep=sweep)):
        await eventually(lambda: alarm.moments[-1:] == [later(1800)])
        clock.set(later(7200))
        await eventually(lambda: alarm.moments[-1] == later(3 * 3600))
        looks = len(alarm.moments)
        clock.set(later(0))
        await eventually(lambda: len(alarm.moments) >= looks + 2)
        clock.set(later(1800))
        await eventually(lambda: len(alarm.moments) >= looks + 4)
        assert len(await rows_of(store, turns)) == 1
        clock.set(later(3 * 3600))
        await eventually(lambda: alarm.moments[-1] is None)

    assert len(await rows_of(store, turns)) == 2
    jumps = [record for record in caplog.records if record.message == "clock_jumped"]
    assert len(jumps) >= 3


async def test_a_clock_set_back_a_day_leaves_no_day_out_and_repeats_none(
    store: Database, clock: ManualClock, alarm: Alarm
) -> None:
    daily = replace(new_job("tea"), schedule=Daily(time=time(12)), next_slot_at=later(7200))
    await created_job(store, daily)
    scheduler = make_scheduler(store, clock, alarm)
    await scheduler.tick()
    day = 86400
    # Three days ahead, back again, and then on as if nothing had been.
    for at in (7200, 3 * day + 7200, 7300):
        clock.set(later(at))
        await scheduler.tick()
    assert alarm.moments[-1] == later(day + 7200)
    for days in (1, 2, 3, 4):
        clock.set(later(days * day + 7200))
        await scheduler.tick()

    given = await rows_of(store, turns, turns.c.state == "answered")
    slots = [moment_of(row.slot_at) for row in given]
    assert sorted(slot for slot in slots if slot) == [later(days * day + 7200) for days in range(5)]


@pytest.mark.parametrize("hours", [1, 24])
async def test_a_clock_that_jumps_back_over_a_series_repeats_none_of_it(
    store: Database, clock: ManualClock, alarm: Alarm, hours: int
) -> None:
    hourly = Every(period=timedelta(hours=1), anchor=NOW)
    await created_job(store, replace(new_job(), schedule=hourly, next_slot_at=later(3600)))
    scheduler = make_scheduler(store, clock, alarm)
    for hour in range(1, 31):
        clock.set(later(3600 * hour))
        assert await scheduler.tick() == 1
    clock.set(later(3600 * (30 - hours) + 10))
    await scheduler.tick()
    for hour in range(31 - hours, 33):
        clock.set(later(3600 * hour))
        await scheduler.tick()

    assert await states_of(store, turns) == ["answered"] * 32


# ---- trouble with the store ------------------------------------------------------------------


async def test_a_locked_store_is_waited_for(
    store: Database, clock: ManualClock, alarm: Alarm
) -> None:
    await active_job(store)
    clock.set(later(60))
    other = sqlite3.connect(store.path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")

    ticking = asyncio.create_task(make_scheduler(store, clock, alarm).tick())
    await asyncio.sleep(0)
    other.execute("ROLLBACK")
    other.close()

    assert await ticking == 1


class Troubled(Database):
    """A store whose next reads fail."""

    failures = 0

    async def read(self, query: Callable[..., T], *args: Any, **kwargs: Any) -> T:
        if self.failures:
            self.failures -= 1
            raise StoreError("the disk is gone")
        return await super().read(query, *args, **kwargs)


async def test_r16_after_an_error_it_goes_on(
    layout: Layout, clock: ManualClock, alarm: Alarm, caplog: pytest.LogCaptureFixture
) -> None:
    store = Troubled(layout.database)
    await active_job(store)
    clock.set(later(60))
    store.failures = 1
    async with running(make_scheduler(store, clock, alarm)):
        await eventually(lambda: alarm.moments == [None])
    await store.close()

    assert [record.message for record in caplog.records][:1] == ["scheduler_failed"]


class NoCheckIns(Database):
    """A store in which no check-in can be queued."""

    async def insist(self, transition: Callable[..., T], *args: Any, **kwargs: Any) -> T:
        if transition is queue_heartbeats:
            raise StoreError("a chat is damaged")
        return await super().insist(transition, *args, **kwargs)


async def test_r16_trouble_with_check_ins_holds_no_reminder_up(
    layout: Layout, clock: ManualClock, alarm: Alarm
) -> None:
    store = NoCheckIns(layout.database)
    await active_job(store)
    clock.set(later(60))
    scheduler = make_scheduler(store, clock, alarm, heartbeat=HEARTBEATS)
    with pytest.raises(StoreError):
        await scheduler.tick()
    assert scheduler.last_look_at is None
    assert await texts_of(store) == ["call mum"]
    await store.close()


# ---- the alarm clock itself ------------------------------------------------------------------


class Bell:
    """Notes each ring with the thread that it came in."""

    def __init__(self) -> None:
        self.threads: list[int] = []

    def ring(self) -> None:
        self.threads.append(threading.get_ident())


@pytest.fixture
async def alarm_clock() -> AsyncIterator[AlarmClock]:
    made = AlarmClock()
    made.start()
    yield made
    made.stop()


async def test_it_rings_at_its_moment_in_the_loops_own_thread(alarm_clock: AlarmClock) -> None:
    bell = Bell()
    alarm_clock.set(datetime.now(UTC) + timedelta(milliseconds=50), bell.ring)

    await eventually(lambda: len(bell.threads) == 1)

    assert bell.threads == [threading.get_ident()]


async def test_a_moment_that_has_passed_rings_at_once(alarm_clock: AlarmClock) -> None:
    bell = Bell()
    alarm_clock.set(datetime.now(UTC) - timedelta(hours=2), bell.ring)

    await eventually(lambda: len(bell.threads) == 1)


async def test_a_new_moment_replaces_the_old_one(alarm_clock: AlarmClock) -> None:
    bell, first = Bell(), Bell()
    alarm_clock.set(datetime.now(UTC) + timedelta(hours=1), first.ring)
    alarm_clock.set(datetime.now(UTC) + timedelta(milliseconds=20), bell.ring)

    await eventually(lambda: len(bell.threads) == 1)
    assert first.threads == []


async def test_silence_takes_the_moment_back(alarm_clock: AlarmClock) -> None:
    taken_back, bell = Bell(), Bell()
    alarm_clock.set(datetime.now(UTC) + timedelta(milliseconds=20), taken_back.ring)
    alarm_clock.set(None, taken_back.ring)
    alarm_clock.set(datetime.now(UTC) + timedelta(milliseconds=40), bell.ring)

    await eventually(lambda: len(bell.threads) == 1)
    assert taken_back.threads == []


async def test_silence_may_be_asked_for_twice(alarm_clock: AlarmClock) -> None:
    alarm_clock.set(None, Bell().ring)
    alarm_clock.set(None, Bell().ring)
