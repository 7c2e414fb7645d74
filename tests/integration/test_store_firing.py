"""Slots of jobs: each is given once, or its turn says why not."""

import asyncio
import logging
from dataclasses import replace
from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo

import pytest

from gateway.domain.delivery import Sent
from gateway.domain.job import Job, JobAction, JobState, MissedWindow, NewJob
from gateway.domain.message import ChannelName, ChatKey
from gateway.domain.missed import MOST_RECORDED
from gateway.domain.schedule import (
    At,
    Daily,
    Every,
    Schedule,
    Weekly,
    next_slot,
    parse_cron,
    to_millis,
)
from gateway.store.chats import ensure_chat, set_reachable
from gateway.store.database import Database, Transaction
from gateway.store.firing import earliest_slot, fire_due, fire_late_prompts, fire_now
from gateway.store.job_changes import Refusal, pause_job
from gateway.store.jobs import Created, cancel_job, list_jobs
from gateway.store.missed import realign
from gateway.store.opening import Layout, open_database
from gateway.store.schema import deliveries, jobs, turns
from gateway.store.sending import finish_send
from tests.factories import (
    BERLIN,
    CHAT,
    NOW,
    OTHER_CHAT,
    SERVED,
    Door,
    active_job,
    created_job,
    fire,
    fire_rules,
    job_state,
    later,
    moment_of,
    new_job,
    next_send,
    row_of,
    rows_of,
    send_rules,
    states_of,
)

HOUR = timedelta(hours=1)
DAY = timedelta(days=1)
NEW_YORK = "America/New_York"


def every(
    period: timedelta, *, until: datetime | None = None, max_runs: int | None = None
) -> Every:
    return Every(period=period, anchor=NOW, until=until, max_runs=max_runs)


async def made(
    store: Database,
    schedule: Schedule,
    text: str = "tea",
    *,
    chat: ChatKey = CHAT,
    action: JobAction = JobAction.MESSAGE,
    missed: MissedWindow = MissedWindow.CATCH_UP_ONE,
    zone: str = BERLIN,
    now: datetime = NOW,
) -> Job:
    slot = next_slot(schedule, after=now, zone=ZoneInfo(zone))
    assert slot is not None
    new = NewJob(
        chat=chat,
        action=action,
        text=text,
        schedule=schedule,
        timezone=zone,
        next_slot_at=slot,
        missed=missed,
    )
    created = await created_job(store, new, now=now)
    assert isinstance(created, Created)
    return created.job


async def prompt(store: Database, at: datetime, text: str = "news") -> Job:
    return await made(store, At(at=at), text, action=JobAction.PROMPT)


async def slots_of(store: Database, job: Job) -> list[tuple[datetime | None, str, str | None]]:
    """Every slot of a job that has a turn, with its state and reason, in the order of time."""
    rows = await rows_of(store, turns, turns.c.job_id == job.id)
    found = [(moment_of(row.slot_at), row.state, row.reason) for row in rows]
    return sorted(found, key=lambda slot: slot[0] or NOW)


async def next_of(store: Database, job: Job) -> datetime | None:
    return moment_of((await row_of(store, jobs, job.id)).next_slot_at)


async def texts_of(store: Database) -> list[str]:
    return [row.text for row in await rows_of(store, deliveries) if row.state == "pending"]


async def send_all(store: Database, now: datetime, *, chat: ChatKey = CHAT) -> list[str]:
    """Send what waits in a chat; returns the texts as they went out."""
    went = []
    while await rows_of(store, deliveries, deliveries.c.state == "pending"):
        step = await next_send(store, chat=chat, now=now)
        went.append(step.chunk.body.text)
        await store.write(
            finish_send, step, Sent(external_id=str(len(went))), send_rules(), now=now
        )
    return went


async def block(store: Database, chat: ChatKey = CHAT, *, is_reachable: bool = False) -> None:
    await store.write(set_reachable, chat, is_reachable=is_reachable, now=NOW)


# ---- what repeats ----------------------------------------------------------------------------


async def test_a_series_goes_on_from_its_slot_and_keeps_its_phase(store: Database) -> None:
    job = await made(store, every(timedelta(minutes=10)))
    assert await fire(store, later(599)) == 0
    assert await fire(store, later(600)) == 1
    assert await fire(store, later(1217)) == 1
    row = await row_of(store, jobs, job.id)
    assert (moment_of(row.next_slot_at), moment_of(row.last_slot_at)) == (later(1800), later(1200))
    assert (row.fired, row.state) == (2, JobState.ACTIVE)
    assert await slots_of(store, job) == [
        (later(600), "answered", None),
        (later(1200), "answered", None),
    ]


async def test_the_next_slot_follows_the_clock_of_the_jobs_own_zone(store: Database) -> None:
    job = await made(store, Daily(time=time(9)), zone="Asia/Kolkata")
    slot = job.next_slot_at
    assert slot == datetime(2026, 3, 3, 3, 30, tzinfo=UTC)
    await fire(store, slot)
    assert await next_of(store, job) == slot + DAY


async def test_r01_two_looks_at_the_same_boundary_make_one_turn(store: Database) -> None:
    job = await made(store, parse_cron("* * * * *"), action=JobAction.PROMPT)
    for minute in (1, 2, 3):
        looks = (fire(store, later(60 * minute + extra)) for extra in (0, 0, 5, 10))
        assert sum(await asyncio.gather(*looks)) == 1
    assert await slots_of(store, job) == [(later(60 * n), "queued", None) for n in (1, 2, 3)]


async def test_a_slot_that_has_its_turn_already_only_moves_the_job_on(store: Database) -> None:
    job = await made(store, every(HOUR))
    await fire(store, later(3600))
    await send_all(store, later(3600))

    def move_back(tx: Transaction) -> None:
        tx.connection.execute(jobs.update().values(next_slot_at=moment_millis(later(3600))))

    await store.write(move_back)
    assert await fire(store, later(3700)) == 1
    assert await slots_of(store, job) == [(later(3600), "answered", None)]
    row = await row_of(store, jobs, job.id)
    assert (moment_of(row.next_slot_at), row.fired) == (later(7200), 1)
    assert await texts_of(store) == []


def moment_millis(moment: datetime) -> int:
    return round(moment.timestamp() * 1000)


async def test_r02_what_ran_today_does_not_run_again_after_restarts(layout: Layout) -> None:
    store = open_database(layout)
    job = await made(store, parse_cron("0 22 * * *"))
    slot = datetime(2026, 3, 2, 21, 0, tzinfo=UTC)
    await fire(store, slot + timedelta(seconds=5))
    await send_all(store, slot + timedelta(seconds=6))
    await store.close()
    for restart in range(5):
        store = open_database(layout)
        at = slot + timedelta(minutes=30, seconds=30 + restart)
        await store.write(realign, SERVED, now=at)
        assert await fire(store, at) == 0
        assert await next_of(store, job) == slot + DAY
        await store.close()


async def test_r08_the_wall_clock_time_holds_when_the_clocks_change(store: Database) -> None:
    begin = datetime(2026, 3, 7, 12, 0, tzinfo=UTC)
    daily = await made(store, parse_cron("0 8 * * *"), zone=NEW_YORK, now=begin)
    for day, hour in ((7, 13), (8, 12), (9, 12)):
        slot = datetime(2026, 3, day, hour, tzinfo=UTC)
        assert await fire(store, slot - timedelta(minutes=1)) == 0
        assert await fire(store, slot) == 1
    await store.write(
        lambda tx: tx.connection.execute(
            jobs.update().values(next_slot_at=moment_millis(datetime(2026, 10, 31, 12, tzinfo=UTC)))
        )
    )
    for day, hour in ((31, 12), (32, 13), (33, 13)):
        slot = datetime(2026, 10, 1, hour, tzinfo=UTC) + timedelta(days=day - 1)
        assert await fire(store, slot - timedelta(minutes=1)) == 0
        assert await fire(store, slot) == 1
    assert [reason for _, _, reason in await slots_of(store, daily)] == [None] * 6


# ---- the end of a series ---------------------------------------------------------------------


async def test_after_its_last_run_a_series_is_done_once_that_arrived(store: Database) -> None:
    job = await made(store, every(HOUR, max_runs=2))
    await fire(store, later(3600))
    await send_all(store, later(3600))
    assert await job_state(store, job.id) is JobState.ACTIVE
    await fire(store, later(7200))
    assert await next_of(store, job) is None
    assert await job_state(store, job.id) is JobState.ACTIVE
    await send_all(store, later(7200))
    assert await job_state(store, job.id) is JobState.DONE
    assert await fire(store, later(10**6)) == 0


async def test_past_its_end_date_a_series_has_no_slot(store: Database) -> None:
    job = await made(store, every(HOUR, until=later(3 * 3600)))
    for hour in (1, 2, 3):
        assert await fire(store, later(3600 * hour)) == 1
        await send_all(store, later(3600 * hour))
    assert await job_state(store, job.id) is JobState.DONE
    assert len(await slots_of(store, job)) == 3


async def test_missed_slots_do_not_count_as_runs(store: Database) -> None:
    job = await made(store, every(HOUR, max_runs=2))
    await fire(store, later(5 * 3600))
    await send_all(store, later(5 * 3600))
    assert await next_of(store, job) == later(6 * 3600)
    await fire(store, later(6 * 3600))
    await send_all(store, later(6 * 3600))
    assert await job_state(store, job.id) is JobState.DONE


# ---- missed windows --------------------------------------------------------------------------


async def test_r04_a_slot_in_a_short_downtime_fires_at_the_start(store: Database) -> None:
    job = await made(store, parse_cron("37 12 * * *"))
    slot = datetime(2026, 3, 2, 11, 37, tzinfo=UTC)
    assert await fire(store, slot + timedelta(minutes=1)) == 1
    assert await slots_of(store, job) == [(slot, "answered", None)]
    assert await texts_of(store) == ["tea"]


async def test_r04_a_slot_of_two_days_ago_comes_late_and_says_when_it_was_due(
    store: Database,
) -> None:
    await made(store, parse_cron("0 16 * * 5"))
    await fire(store, datetime(2026, 3, 8, 9, 6, tzinfo=UTC))
    assert await texts_of(store) == ["(was due Fri 6 Mar 16:00) tea"]


async def test_r04_a_series_that_skips_leaves_a_trace_of_each_slot(
    store: Database, caplog: pytest.LogCaptureFixture
) -> None:
    job = await made(store, Daily(time=time(12)), missed=MissedWindow.SKIP)
    slot = datetime(2026, 3, 2, 11, 0, tzinfo=UTC)
    with caplog.at_level(logging.WARNING):
        await fire(store, slot + 3 * DAY - HOUR)
    assert await slots_of(store, job) == [(slot + n * DAY, "cancelled", "missed") for n in range(3)]
    assert await next_of(store, job) == slot + 3 * DAY
    assert await job_state(store, job.id) is JobState.ACTIVE
    assert await states_of(store, deliveries) == ["suppressed", "suppressed"]
    assert [record.message for record in caplog.records] == ["slots_missed"]


async def test_of_many_missed_slots_the_latest_fires_and_the_newest_are_recorded(
    store: Database, caplog: pytest.LogCaptureFixture
) -> None:
    job = await made(store, every(HOUR))
    with caplog.at_level(logging.WARNING):
        await fire(store, later(30 * 3600 + 600))
    slots = await slots_of(store, job)
    missed = [(later(3600 * n), "cancelled", "missed") for n in range(30 - MOST_RECORDED, 30)]
    assert slots == [*missed, (later(30 * 3600), "answered", None)]
    (record,) = caplog.records
    assert [getattr(record, name) for name in ("job", "count", "more")] == [job.id, 20, 9]
    assert len(await texts_of(store)) == 1


@pytest.mark.parametrize(
    ("late", "state"), [(0, "answered"), (3600, "answered"), (3601, "cancelled")]
)
async def test_a_daily_job_that_skips_has_an_hour(store: Database, late: int, state: str) -> None:
    job = await made(store, Daily(time=time(12)), missed=MissedWindow.SKIP)
    assert job.next_slot_at is not None
    await fire(store, job.next_slot_at + timedelta(seconds=late))
    ((_, found, _),) = await slots_of(store, job)
    assert found == state


async def test_a_one_shot_that_skips_is_told_of_and_stays_listed(store: Database) -> None:
    job = await made(store, At(at=later(60)), missed=MissedWindow.SKIP)
    await fire(store, later(7200))
    assert await slots_of(store, job) == [(later(60), "cancelled", "missed")]
    row = await row_of(store, jobs, job.id)
    assert (row.state, row.reason, row.next_slot_at) == ("failed", "missed", None)
    (notice,) = await texts_of(store)
    assert f"#{job.id}" in notice
    assert "Mon 2 Mar 10:01" in notice
    assert "tea" in notice
    assert [listed.id for listed in await store.read(list_jobs, CHAT)] == [job.id]


async def test_a_one_shot_that_catches_up_always_fires(store: Database) -> None:
    job = await made(store, At(at=later(60)))
    await fire(store, later(40 * 86400))
    assert await slots_of(store, job) == [(later(60), "answered", None)]


async def test_r05_after_a_long_outage_each_chat_gets_one_text(store: Database) -> None:
    for number in range(20):
        chat = (CHAT, OTHER_CHAT)[number % 2]
        late = NOW + timedelta(seconds=20 * number)
        await made(store, every(HOUR), f"hourly {number}", chat=chat, now=late)
        if number < 10:
            await made(store, Daily(time=time(12)), f"daily {number}", chat=chat, now=late)
            await made(store, At(at=later(3600 + number)), f"once {number}", chat=chat, now=late)
    await fire(store, later(12 * 3600))
    texts = await texts_of(store)
    assert len(texts) == 2
    lines = [line for text in texts for line in text.splitlines()]
    assert len(lines) == 40
    assert await fire(store, later(12 * 3600)) == 0


async def test_r05_late_turns_for_a_model_wait_for_their_share(store: Database) -> None:
    for number in range(8):
        await prompt(store, later(60 + number), f"n{number}")
    await made(store, At(at=later(70)), "text")
    assert await fire(store, later(7200)) == 1
    assert await states_of(store, turns, turns.c.state == "queued") == []
    rules = fire_rules()
    assert await store.write(fire_late_prompts, rules, most=5, now=later(7200)) == 5
    assert await store.write(fire_late_prompts, rules, most=3, now=later(7230)) == 3
    assert await store.write(fire_late_prompts, rules, most=3, now=later(7260)) == 0
    queued = await rows_of(store, turns, turns.c.state == "queued")
    assert [row.text for row in queued] == [f"n{number}" for number in range(8)]


async def test_a_held_back_turn_sets_no_alarm(store: Database) -> None:
    await prompt(store, later(60))
    await made(store, At(at=later(9000)), "text")
    assert await fire(store, later(7200)) == 0
    assert await store.read(earliest_slot, SERVED, after=later(7200)) == later(9000)


async def test_a_turn_for_a_model_that_is_on_time_is_never_held_back(store: Database) -> None:
    for number in range(8):
        await prompt(store, later(60 + number), f"n{number}")
    assert await fire(store, later(180)) == 8


# ---- turns for a model -----------------------------------------------------------------------


async def test_a_prompt_is_queued_with_its_text_and_no_delivery(store: Database) -> None:
    job = await prompt(store, later(60), "read me the news")
    await fire(store, later(61))
    (row,) = await rows_of(store, turns)
    assert (row.state, row.text, row.trigger) == ("queued", "read me the news", "job")
    assert (row.source_key, moment_of(row.slot_at)) == (
        f"job:{job.id}:{moment_millis(later(60))}",
        later(60),
    )
    assert (moment_of(row.created_at), row.ended_at, row.delivery_id) == (later(61), None, None)
    assert await rows_of(store, deliveries) == []
    assert await job_state(store, job.id) is JobState.ACTIVE


async def test_a_blocked_chat_costs_no_turns_and_hears_the_texts_later(store: Database) -> None:
    series = await made(store, every(HOUR), "news", action=JobAction.PROMPT)
    once = await prompt(store, later(3600), "report")
    await made(store, every(HOUR), "water")
    await made(store, At(at=later(3700)), "call mum")
    await block(store)
    await fire(store, later(3600))
    await fire(store, later(3700))

    assert await slots_of(store, series) == [(later(3600), "cancelled", "chat_unreachable")]
    assert await job_state(store, series.id) is JobState.ACTIVE
    assert await job_state(store, once.id) is JobState.FAILED
    await block(store, is_reachable=True)
    went = await send_all(store, later(3700))
    assert sorted(went, key=len)[0] == "• water\n• call mum"
    assert any(f"#{once.id}" in text and "report" in text for text in went)
    assert len(went) == 2


# ---- out of turn -----------------------------------------------------------------------------


async def run_now(
    store: Database, job: Job, key: str = "k", *, chat: ChatKey = CHAT, now: datetime
) -> Job | Refusal:
    return await store.write(fire_now, chat, job.id, key, fire_rules(), now=now)


async def test_run_now_gives_the_text_at_once_and_leaves_the_next_slot(store: Database) -> None:
    job = await made(store, every(HOUR))
    ran = await run_now(store, job, now=later(600))
    assert isinstance(ran, Job)
    assert (ran.fired, ran.next_slot_at, ran.last_slot_at) == (1, later(3600), None)
    assert await texts_of(store) == ["tea"]
    (row,) = await rows_of(store, turns)
    assert (row.state, row.source_key) == ("answered", f"job:{job.id}:now:k")
    assert moment_of(row.slot_at) == later(600)
    await fire(store, later(3600))
    assert len(await rows_of(store, turns)) == 2


async def test_run_now_of_a_prompt_waits_for_the_lane(store: Database) -> None:
    job = await made(store, every(HOUR), action=JobAction.PROMPT)
    await run_now(store, job, now=later(600))
    assert await states_of(store, turns) == ["queued"]
    assert await rows_of(store, deliveries) == []


async def test_the_same_call_runs_a_job_once(store: Database) -> None:
    job = await made(store, every(HOUR))
    first = await run_now(store, job, now=later(600))
    assert await run_now(store, job, now=later(700)) == first
    await run_now(store, job, "another", now=later(700))
    assert len(await rows_of(store, turns)) == 2


async def test_run_now_counts_for_the_number_of_runs(store: Database) -> None:
    job = await made(store, every(HOUR, max_runs=2))
    await run_now(store, job, now=later(600))
    await send_all(store, later(600))
    ran = await run_now(store, job, "k2", now=later(700))
    assert isinstance(ran, Job)
    assert ran.next_slot_at is None
    assert await run_now(store, job, "k3", now=later(700)) is Refusal.ENDED
    await send_all(store, later(700))
    assert await job_state(store, job.id) is JobState.DONE


async def test_a_paused_job_runs_when_it_is_asked_to_and_stays_paused(store: Database) -> None:
    job = await made(store, every(HOUR))
    await store.write(pause_job, CHAT, job.id, now=NOW)
    ran = await run_now(store, job, now=later(600))
    assert isinstance(ran, Job)
    assert (ran.state, ran.next_slot_at) == (JobState.PAUSED, later(3600))
    assert await send_all(store, later(600)) == ["tea"]
    assert await job_state(store, job.id) is JobState.PAUSED


async def test_a_one_shot_that_was_run_before_its_time_still_fires(store: Database) -> None:
    job = await made(store, At(at=later(3600)))
    await run_now(store, job, now=later(600))
    await send_all(store, later(600))
    assert await job_state(store, job.id) is JobState.ACTIVE
    await fire(store, later(3600))
    await send_all(store, later(3600))
    assert await job_state(store, job.id) is JobState.DONE


async def test_run_now_refuses_what_is_over_or_of_another_chat(store: Database) -> None:
    job = await made(store, every(HOUR))
    assert await run_now(store, job, chat=OTHER_CHAT, now=NOW) is Refusal.NOT_FOUND
    await store.write(cancel_job, CHAT, job.id, now=NOW)
    assert await run_now(store, job, now=NOW) is Refusal.ENDED
    bad = await made(store, every(HOUR), "bad")
    await store.write(_damage, bad, {"timezone": "Mars/Base"})
    assert await run_now(store, bad, now=NOW) is Refusal.DAMAGED
    assert await rows_of(store, turns) == []


# ---- who may not -----------------------------------------------------------------------------


async def test_a_series_of_a_chat_that_was_put_out_pauses_with_its_next_slot(
    store: Database,
) -> None:
    door = Door()
    door.out.add(CHAT)
    job = await made(store, every(HOUR))
    await fire(store, later(3600), door=door)
    row = await row_of(store, jobs, job.id)
    assert (row.state, row.reason) == (JobState.PAUSED, "not_allowed")
    assert moment_of(row.next_slot_at) == later(7200)
    assert await slots_of(store, job) == [(later(3600), "cancelled", "not_allowed")]
    assert await texts_of(store) == []


async def test_r26_a_damaged_series_is_switched_off_and_the_others_fire(store: Database) -> None:
    good = await made(store, every(HOUR), "good")
    damage: list[dict[str, object]] = [
        {"schedule": '{"kind":"cron","expression":"0 9 * *"}'},
        {"schedule": '{"kind":"daily","time":"8 o\'clock"}'},
        {"schedule": "[]"},
        {"timezone": "Mars/Base"},
        {"timezone": ""},
        {"fired": "often"},
        {"created_at": "once"},
    ]
    for number, values in enumerate(damage):
        bad = await made(store, every(HOUR), f"bad {number}")
        await store.write(_damage, bad, values)
    await fire(store, later(3600))
    assert await states_of(store, jobs) == ["active"] + ["failed"] * len(damage)
    assert await slots_of(store, good) == [(later(3600), "answered", None)]
    told = await rows_of(store, deliveries, deliveries.c.kind == "notice")
    assert ["damaged" in row.text for row in told] == [True] * len(damage)


def _damage(tx: Transaction, job: Job, values: dict[str, object]) -> None:
    tx.connection.execute(jobs.update().where(jobs.c.id == job.id).values(values))


# ---- many at once ----------------------------------------------------------------------------


@pytest.mark.parametrize("chats", [1, 1000])
async def test_a_thousand_jobs_due_in_one_second_all_fire_once(store: Database, chats: int) -> None:
    keys = [ChatKey(ChannelName.TELEGRAM, str(1000 + number)) for number in range(chats)]

    def fill(tx: Transaction) -> None:
        for number in range(1000):
            # Within the limits of a chat, had they been asked for one by one.
            _plant(tx, keys[number % chats], f"n{number}", later(60 + number / 1000))
        tx.connection.execute(jobs.update().where(jobs.c.text == "n500").values(schedule="{"))

    await store.write(fill)
    fired = 0
    while count := await store.write(fire_due, fire_rules(), now=later(61)):
        fired += count
    assert fired == 1000
    assert len(await rows_of(store, turns)) == 999
    reminders = await rows_of(store, deliveries, deliveries.c.kind == "reminder")
    lines = [line.removeprefix("• ") for row in reminders for line in row.text.splitlines()]
    assert sorted(lines) == sorted(f"n{number}" for number in range(1000) if number != 500)
    assert len(reminders) == (1 if chats == 1 else 999)
    assert await states_of(store, jobs, jobs.c.state == "failed") == ["failed"]


def _plant(tx: Transaction, chat: ChatKey, text: str, at: datetime) -> None:
    ensure_chat(tx, chat, is_group=False, now=NOW)
    tx.connection.execute(
        jobs.insert().values(
            chat_key=str(chat),
            state=JobState.ACTIVE,
            action=JobAction.MESSAGE,
            text=text,
            schedule=f'{{"kind":"at","at":{moment_millis(at)}}}',
            timezone=BERLIN,
            missed=MissedWindow.CATCH_UP_ONE,
            tier="read_only",
            asked_tier="read_only",
            next_slot_at=moment_millis(at),
            created_at=moment_millis(NOW),
        )
    )


# ---- a clock that is set ---------------------------------------------------------------------


async def test_after_a_day_ahead_and_back_nothing_fires_twice_and_nothing_is_left_out(
    store: Database,
) -> None:
    job = await made(store, every(HOUR))
    await fire(store, later(3600))
    await fire(store, later(27 * 3600))  # the clock was set a day and two hours ahead
    assert await store.write(realign, SERVED, now=later(3700)) == 1
    assert await next_of(store, job) == later(7200)
    for hour in range(2, 30):
        await fire(store, later(3600 * hour))
    given = [slot for slot, state, _ in await slots_of(store, job) if state == "answered"]
    assert given == [later(3600 * hour) for hour in range(1, 30)]


async def test_a_clock_set_back_leaves_what_is_right_as_it_is(store: Database) -> None:
    early = await made(store, every(HOUR))
    await fire(store, later(3600))
    due = await made(store, every(timedelta(minutes=1)), "often", now=later(3600))
    assert await store.write(realign, SERVED, now=later(3610)) == 0
    assert await next_of(store, early) == later(7200)
    assert await store.write(realign, SERVED, now=later(3720)) == 0
    assert await next_of(store, due) == later(3660)


async def test_a_paused_series_stays_where_it_is(store: Database) -> None:
    job = await made(store, Weekly(days=frozenset({0}), time=time(12)))
    assert job.next_slot_at is not None
    await fire(store, job.next_slot_at)
    await store.write(lambda tx: tx.connection.execute(jobs.update().values(state="paused")))
    assert await store.write(realign, SERVED, now=NOW) == 0


@pytest.mark.parametrize(
    "damage",
    [
        {"fired": 2**63 - 1},
        {"next_slot_at": 60_000.5},
        {"next_slot_at": 1},
        {"failed_slots": "many"},
    ],
)
async def test_r26_a_row_that_cannot_be_counted_on_harms_no_other(
    store: Database, damage: dict[str, object]
) -> None:
    bad = await active_job(store, "bad")
    await active_job(store, "good", chat=OTHER_CHAT)
    if damage.get("next_slot_at") == 60_000.5:
        damage = {"next_slot_at": to_millis(later(60)) + 0.5}
    await store.write(_damage, bad, damage)

    for _ in range(3):
        await fire(store, later(61))

    fired = await rows_of(store, turns, turns.c.text == "good")
    assert [row.state for row in fired] == ["answered"]
    assert await fire(store, later(61)) == 0


@pytest.mark.parametrize("stored", ["soon", 10**17])
async def test_r16_a_moment_that_cannot_be_read_stops_no_alarm(
    store: Database, stored: object
) -> None:
    bad = await active_job(store, "bad")
    await store.write(_damage, bad, {"next_slot_at": stored})

    assert await store.read(earliest_slot, SERVED, after=NOW) is None


async def test_of_many_missed_sends_of_a_series_a_few_lines_tell(store: Database) -> None:
    new = replace(new_job("drink"), schedule=Every(period=timedelta(minutes=5), anchor=later(60)))
    await created_job(store, new)
    for number in range(20):
        await fire(store, later(60 + 300 * number))

    (waiting,) = await rows_of(store, deliveries)
    lines = waiting.text.splitlines()
    assert len(lines) == 3
    assert "drink (and 17 times before)" in lines[0]
    assert lines[2] == "• drink"
