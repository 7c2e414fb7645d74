"""A job that is changed, paused, resumed, allowed more or put off: what is stored, what is not."""

from dataclasses import replace
from datetime import datetime, time
from zoneinfo import ZoneInfo

import pytest

from gateway.domain.delivery import Rejected, Sent
from gateway.domain.job import MAX_OPEN_JOBS, Job, JobAction, JobState, MissedWindow, Origin, Tier
from gateway.domain.message import ChatKey
from gateway.domain.schedule import At, Daily, Recurring, Schedule, next_slot
from gateway.domain.turn import TurnId
from gateway.store.database import Change, Database, Topic, Transaction
from gateway.store.history import FiredJob, last_fired
from gateway.store.job_changes import (
    JobChange,
    Refusal,
    Snoozed,
    allow_job,
    pause_job,
    resume_job,
    snooze,
    update_job,
)
from gateway.store.jobs import Created, cancel_job, get_job
from gateway.store.schema import events, jobs, turns
from gateway.store.sending import finish_send
from tests.factories import (
    CHAT,
    NOW,
    OTHER_CHAT,
    active_job,
    created_job,
    fire,
    fired_job,
    job_state,
    later,
    moment_of,
    new_job,
    next_send,
    row_of,
    rows_of,
    send_rules,
)

OK = Sent(external_id="99")
REFUSED = Rejected(reason="chat not found")
DAILY = Daily(time=time(10, 1))
TOMORROW = later(86_460)


async def set_row(store: Database, job: Job, **values: object) -> None:
    """Change a job's row behind the program's back."""

    def change(tx: Transaction) -> None:
        tx.connection.execute(jobs.update().where(jobs.c.id == job.id).values(**values))

    await store.write(change)


async def series(store: Database, schedule: Recurring = DAILY, text: str = "pills") -> Job:
    """Daily at 10:01 in Berlin, a minute from now, unless a schedule says otherwise."""
    created = await created_job(store, replace(new_job(text), schedule=schedule))
    assert isinstance(created, Created)
    return created.job


async def task(store: Database, *, asked: Tier) -> Job:
    """A task for a model, every day, that asks to do more than read."""
    new = replace(new_job("tidy up"), schedule=DAILY, action=JobAction.PROMPT, asked_tier=asked)
    created = await created_job(store, new)
    assert isinstance(created, Created)
    return created.job


async def send(store: Database, outcome: Sent | Rejected, *, seconds: float = 60) -> None:
    step = await next_send(store, now=later(seconds))
    await store.write(finish_send, step, outcome, send_rules(), now=later(seconds))


async def moves(store: Database, job: Job) -> list[tuple[str | None, str, str | None]]:
    """The job's events after its creation."""
    rows = await rows_of(store, events, events.c.subject == "jobs", events.c.subject_id == job.id)
    return [(row.before, row.after, row.reason) for row in rows][1:]


def retimed(at: datetime) -> JobChange:
    return JobChange(schedule=At(at=at), next_slot_at=at)


def changed(outcome: Job | Refusal) -> Job:
    assert isinstance(outcome, Job), outcome
    return outcome


# ---- update ----------------------------------------------------------------------------------


async def test_a_job_with_a_new_time_keeps_its_number(store: Database) -> None:
    job = await active_job(store, "tea")
    heard: list[frozenset[Change]] = []
    store.subscribe(heard.append)
    moved = changed(await store.write(update_job, CHAT, job.id, retimed(later(300)), now=NOW))
    assert (moved.id, moved.text, moved.next_slot_at) == (job.id, "tea", later(300))
    assert await store.read(get_job, CHAT, job.id) == moved
    assert heard == [frozenset({Change(Topic.JOBS, CHAT)})]
    assert await moves(store, job) == [("active", "active", "rescheduled")]
    assert await fire(store, later(299)) == 0
    assert await fire(store, later(300)) == 1


async def test_text_and_missed_window_are_changed_alone(store: Database) -> None:
    job = await series(store)
    change = JobChange(text="new words", missed=MissedWindow.SKIP)
    after = changed(await store.write(update_job, CHAT, job.id, change, now=NOW))
    assert after == replace(job, text="new words", missed=MissedWindow.SKIP)
    assert await moves(store, job) == [("active", "active", "changed")]


async def test_a_change_of_nothing_writes_nothing(store: Database) -> None:
    job = await active_job(store, "tea")
    for change in (JobChange(), JobChange(text="tea")):
        assert await store.write(update_job, CHAT, job.id, change, now=NOW) == job
    assert await moves(store, job) == []


async def test_a_schedule_comes_with_its_first_slot() -> None:
    with pytest.raises(ValueError, match="together"):
        JobChange(schedule=DAILY)
    with pytest.raises(ValueError, match="together"):
        JobChange(next_slot_at=NOW)


async def test_a_one_shot_that_failed_goes_on_with_a_new_time_alone(store: Database) -> None:
    job = await fired_job(store, "tea")
    await send(store, REFUSED)
    assert await job_state(store, job.id) == "failed"
    words = JobChange(text="coffee")
    assert await store.write(update_job, CHAT, job.id, words, now=later(61)) is Refusal.PASSED
    assert await store.write(resume_job, CHAT, job.id, now=later(61)) is Refusal.PASSED
    revived = changed(
        await store.write(update_job, CHAT, job.id, retimed(later(300)), now=later(61))
    )
    assert (revived.state, revived.next_slot_at) == (JobState.ACTIVE, later(300))
    row = await row_of(store, jobs, job.id)
    assert (row.reason, row.ended_at) == (None, None)
    assert await fire(store, later(300)) == 1


async def test_a_paused_job_with_a_new_time_stays_paused(store: Database) -> None:
    job = await active_job(store)
    await store.write(pause_job, CHAT, job.id, now=NOW)
    moved = changed(await store.write(update_job, CHAT, job.id, retimed(later(300)), now=NOW))
    assert (moved.state, moved.next_slot_at) == (JobState.PAUSED, later(300))
    assert await fire(store, later(300)) == 0


async def test_a_job_that_nobody_paused_goes_on_with_a_new_time(store: Database) -> None:
    job = await active_job(store)
    await set_row(store, job, state=JobState.PAUSED, reason="not_allowed")
    moved = changed(await store.write(update_job, CHAT, job.id, retimed(later(300)), now=NOW))
    assert moved.state is JobState.ACTIVE


async def test_a_job_on_its_way_can_be_given_another_time(store: Database) -> None:
    job = await fired_job(store, "tea")
    words = JobChange(text="coffee")
    assert await store.write(update_job, CHAT, job.id, words, now=later(61)) is Refusal.PASSED
    await store.write(update_job, CHAT, job.id, retimed(later(300)), now=later(61))
    await send(store, OK, seconds=61)
    assert await job_state(store, job.id) == "active"
    assert await fire(store, later(300)) == 1


@pytest.mark.parametrize(
    ("schedule", "fired"),
    [
        (replace(DAILY, max_runs=3, until=later(10**6)), 2),
        (replace(DAILY, max_runs=4), 2),
        (Daily(time=time(9), max_runs=3), 0),
        (At(at=TOMORROW), 0),
    ],
)
async def test_runs_are_counted_anew_for_another_rhythm(
    store: Database, schedule: Schedule, fired: int
) -> None:
    job = await series(store, replace(DAILY, max_runs=3))
    await set_row(store, job, fired=2)
    change = JobChange(schedule=schedule, next_slot_at=TOMORROW)
    after = changed(await store.write(update_job, CHAT, job.id, change, now=NOW))
    assert (after.fired, after.schedule) == (fired, schedule)


async def test_a_new_time_begins_with_a_clean_count_of_failures(store: Database) -> None:
    job = await series(store)
    await set_row(store, job, failed_slots=9)
    words = JobChange(text="other pills")
    kept = changed(await store.write(update_job, CHAT, job.id, words, now=NOW))
    assert kept.failed_slots == 9
    after = changed(await store.write(update_job, CHAT, job.id, retimed(TOMORROW), now=NOW))
    assert after.failed_slots == 0


async def test_what_was_allowed_does_not_hold_for_another_text(store: Database) -> None:
    job = await task(store, asked=Tier.MUTATE)
    await store.write(allow_job, CHAT, job.id, now=NOW)
    same = JobChange(text=job.text, missed=MissedWindow.SKIP)
    kept = changed(await store.write(update_job, CHAT, job.id, same, now=NOW))
    assert kept.tier is Tier.MUTATE
    other = JobChange(text="delete everything")
    after = changed(await store.write(update_job, CHAT, job.id, other, now=NOW))
    assert (after.tier, after.asked_tier) == (Tier.READ_ONLY, Tier.MUTATE)


# ---- pause and resume ------------------------------------------------------------------------


async def test_a_paused_job_is_quiet_and_keeps_its_time(store: Database) -> None:
    job = await series(store)
    paused = changed(await store.write(pause_job, CHAT, job.id, now=NOW))
    assert paused == replace(job, state=JobState.PAUSED)
    assert (await row_of(store, jobs, job.id)).reason == "paused"
    assert await fire(store, later(60)) == 0
    assert await store.write(pause_job, CHAT, job.id, now=NOW) is Refusal.NOT_ACTIVE
    assert await moves(store, job) == [("active", "paused", "paused")]


async def test_a_resumed_series_goes_on_with_its_next_slot_from_now(store: Database) -> None:
    job = await series(store)
    await store.write(pause_job, CHAT, job.id, now=NOW)
    resumed = changed(await store.write(resume_job, CHAT, job.id, now=later(60)))
    assert (resumed.state, resumed.next_slot_at) == (JobState.ACTIVE, TOMORROW)
    assert (await row_of(store, jobs, job.id)).reason is None
    assert await moves(store, job) == [("active", "paused", "paused"), ("paused", "active", None)]
    assert await store.write(resume_job, CHAT, job.id, now=later(61)) is Refusal.NOT_PAUSED


async def test_a_resumed_one_shot_keeps_its_time_while_it_is_ahead(store: Database) -> None:
    job = await active_job(store)
    await store.write(pause_job, CHAT, job.id, now=NOW)
    assert await store.write(resume_job, CHAT, job.id, now=later(60)) is Refusal.PASSED
    assert await job_state(store, job.id) == "paused"
    resumed = changed(await store.write(resume_job, CHAT, job.id, now=later(59)))
    assert resumed.next_slot_at == later(60)


async def test_a_series_that_was_switched_off_is_resumed_with_a_clean_count(
    store: Database,
) -> None:
    job = await series(store)
    off = {"state": JobState.FAILED, "next_slot_at": None, "failed_slots": 10, "ended_at": 1}
    await set_row(store, job, **off, reason="failing")
    resumed = changed(await store.write(resume_job, CHAT, job.id, now=later(61)))
    assert (resumed.state, resumed.failed_slots) == (JobState.ACTIVE, 0)
    assert resumed.next_slot_at == TOMORROW
    row = await row_of(store, jobs, job.id)
    assert (row.reason, row.ended_at) == (None, None)


async def test_a_one_shot_that_failed_is_not_resumed_even_before_its_time(store: Database) -> None:
    job = await active_job(store)
    await set_row(store, job, state=JobState.FAILED)
    assert await store.write(resume_job, CHAT, job.id, now=NOW) is Refusal.PASSED


@pytest.mark.parametrize("state", [JobState.PAUSED, JobState.FAILED])
@pytest.mark.parametrize(
    ("schedule", "fired"),
    [(replace(DAILY, max_runs=2), 2), (replace(DAILY, until=later(3600)), 0)],
)
async def test_a_series_that_is_used_up_or_over_is_not_resumed(
    store: Database, state: JobState, schedule: Recurring, fired: int
) -> None:
    job = await series(store, schedule)
    await set_row(store, job, state=state, fired=fired)
    assert await store.write(resume_job, CHAT, job.id, now=later(3600)) is Refusal.ENDED
    assert await job_state(store, job.id) == state


async def test_a_job_whose_last_text_is_on_its_way_is_not_paused(store: Database) -> None:
    job = await fired_job(store)
    assert await store.write(pause_job, CHAT, job.id, now=later(61)) is Refusal.PASSED


async def test_nothing_goes_on_beyond_the_room_of_a_chat(store: Database) -> None:
    failed = await series(store)
    await set_row(store, failed, state=JobState.FAILED, next_slot_at=None)
    for number in range(MAX_OPEN_JOBS):
        await active_job(store, f"{number}", at=later(9999), now=later(number * 10))
    at = later(MAX_OPEN_JOBS * 10)
    assert await store.write(resume_job, CHAT, failed.id, now=at) is Refusal.TOO_MANY
    change = retimed(later(9999))
    assert await store.write(update_job, CHAT, failed.id, change, now=at) is Refusal.TOO_MANY
    # One that is paused has its room.
    await store.write(pause_job, CHAT, failed.id + 1, now=at)
    assert isinstance(await store.write(resume_job, CHAT, failed.id + 1, now=at), Job)


# ---- allow -----------------------------------------------------------------------------------


async def test_a_job_gets_what_it_asks_for_once(store: Database) -> None:
    job = await task(store, asked=Tier.SUGGEST)
    allowed = changed(await store.write(allow_job, CHAT, job.id, now=NOW))
    assert allowed == replace(job, tier=Tier.SUGGEST)
    assert await moves(store, job) == [("active", "active", "allowed")]
    assert await store.write(allow_job, CHAT, job.id, now=NOW) is Refusal.NOTHING_ASKED
    assert len(await moves(store, job)) == 1


async def test_a_job_that_asks_for_nothing_is_given_nothing(store: Database) -> None:
    job = await active_job(store)
    assert await store.write(allow_job, CHAT, job.id, now=NOW) is Refusal.NOTHING_ASKED


# ---- snooze ----------------------------------------------------------------------------------


async def fired(store: Database, job: Job) -> FiredJob:
    found = await store.read(last_fired, CHAT, job.id)
    assert found is not None
    return found


def snoozed(outcome: Snoozed | Refusal) -> Snoozed:
    assert isinstance(outcome, Snoozed), outcome
    return outcome


async def test_r33_what_went_off_comes_again_as_a_job_of_its_own(store: Database) -> None:
    new = replace(
        new_job("tea"),
        action=JobAction.PROMPT,
        schedule=DAILY,
        timezone="Asia/Kolkata",
        asked_tier=Tier.SUGGEST,
        origin=Origin(text="please", sent_at=NOW),
    )
    created = await created_job(store, new)
    assert isinstance(created, Created)
    await fire(store, later(60))
    (turn,) = await rows_of(store, turns)
    slot = FiredJob(job=created.job, turn=TurnId(turn.id), slot_at=later(60))
    outcome = snoozed(await store.write(snooze, slot, later(660), now=later(61)))
    again = outcome.job
    assert not outcome.is_moved
    assert (again.id, again.snoozed_from) == (created.job.id + 1, turn.id)
    assert (again.schedule, again.next_slot_at) == (At(at=later(660)), later(660))
    for name in ("chat", "action", "text", "timezone", "tier", "asked_tier", "origin"):
        assert getattr(again, name) == getattr(created.job, name), name
    series_row = await row_of(store, jobs, created.job.id)
    assert moment_of(series_row.next_slot_at) == next_slot(
        DAILY, after=later(60), zone=ZoneInfo(again.timezone)
    )


async def test_a_second_snooze_moves_the_same_job(store: Database) -> None:
    job = await fired_job(store, "tea")
    await send(store, OK)
    slot = await fired(store, job)
    first = snoozed(await store.write(snooze, slot, later(660), now=later(61)))
    second = snoozed(await store.write(snooze, slot, later(3660), now=later(62)))
    assert second.is_moved
    assert second.job == replace(first.job, schedule=At(at=later(3660)), next_slot_at=later(3660))
    assert len(await rows_of(store, jobs)) == 2
    assert await moves(store, first.job) == [("active", "active", "snoozed again")]
    assert await fire(store, later(660)) == 0
    assert await fire(store, later(3660)) == 1


async def test_a_paused_snooze_goes_on_when_it_is_moved(store: Database) -> None:
    slot = await fired(store, await fired_job(store, "tea"))
    first = snoozed(await store.write(snooze, slot, later(660), now=later(61)))
    await store.write(pause_job, CHAT, first.job.id, now=later(62))
    second = snoozed(await store.write(snooze, slot, later(3660), now=later(63)))
    assert (second.job.id, second.job.state) == (first.job.id, JobState.ACTIVE)


async def test_what_came_again_is_not_put_off_by_its_old_message(store: Database) -> None:
    slot = await fired(store, await fired_job(store, "tea"))
    first = snoozed(await store.write(snooze, slot, later(660), now=later(61)))
    await fire(store, later(660))
    for is_sent in (False, True):
        if is_sent:
            await send(store, OK, seconds=660)
        outcome = await store.write(snooze, slot, later(1200), now=later(661))
        assert outcome is Refusal.CAME_AGAIN
    assert len(await rows_of(store, jobs)) == 2
    # The newer message puts the newer slot off.
    newer = await fired(store, first.job)
    assert not snoozed(await store.write(snooze, newer, later(1200), now=later(662))).is_moved


async def test_a_cancelled_snooze_can_be_asked_for_again(store: Database) -> None:
    slot = await fired(store, await fired_job(store, "tea"))
    first = snoozed(await store.write(snooze, slot, later(660), now=later(61)))
    await store.write(cancel_job, CHAT, first.job.id, now=later(62))
    second = snoozed(await store.write(snooze, slot, later(1200), now=later(63)))
    assert second.job.id != first.job.id
    assert not second.is_moved


async def test_the_limits_of_new_jobs_do_not_count_what_was_put_off(store: Database) -> None:
    job = await fired_job(store, "tea")
    await send(store, OK)
    slot = await fired(store, job)
    for number in range(MAX_OPEN_JOBS):
        await active_job(store, f"{number}", at=later(10**6), now=later(1000 + number * 10))
    at = later(1000 + MAX_OPEN_JOBS * 10)
    again = snoozed(await store.write(snooze, slot, later(10**6), now=at))
    # And it takes no room from the others.
    await store.write(cancel_job, CHAT, job.id + 1, now=at)
    new = new_job("one more", at=later(10**6))
    assert isinstance(await created_job(store, new, now=at), Created)
    assert again.job.state is JobState.ACTIVE


async def test_a_damaged_job_is_not_put_off(store: Database) -> None:
    job = await fired_job(store, "tea")
    slot = await fired(store, job)
    await set_row(store, job, schedule="abc")
    outcome = await store.write(snooze, slot, later(660), now=later(61))
    assert outcome is Refusal.DAMAGED
    assert len(await rows_of(store, jobs)) == 1


async def test_a_damaged_snooze_is_not_moved(store: Database) -> None:
    slot = await fired(store, await fired_job(store, "tea"))
    first = snoozed(await store.write(snooze, slot, later(660), now=later(61)))
    await set_row(store, first.job, timezone="Europe/Nowhere")
    before = await row_of(store, jobs, first.job.id)
    outcome = await store.write(snooze, slot, later(1200), now=later(62))
    assert outcome is Refusal.DAMAGED
    assert await row_of(store, jobs, first.job.id) == before


# ---- what is refused -------------------------------------------------------------------------


async def every_change(store: Database, chat: ChatKey, number: int) -> set[Job | Refusal]:
    """What comes of each change of a job."""
    return {
        await store.write(update_job, chat, number, retimed(later(300)), now=NOW),
        await store.write(pause_job, chat, number, now=NOW),
        await store.write(resume_job, chat, number, now=NOW),
        await store.write(allow_job, chat, number, now=NOW),
    }


@pytest.mark.parametrize("number", [0, -1, 2, 10**15, 2**63, 10**30])
async def test_a_number_that_is_no_job_is_not_found(store: Database, number: int) -> None:
    await active_job(store)
    assert await every_change(store, CHAT, number) == {Refusal.NOT_FOUND}
    assert await store.read(get_job, CHAT, number) is None
    assert await store.write(cancel_job, CHAT, number, now=NOW) is None


async def test_another_chats_job_is_not_found(store: Database) -> None:
    job = await task(store, asked=Tier.MUTATE)
    before = await row_of(store, jobs, job.id)
    assert await every_change(store, OTHER_CHAT, job.id) == {Refusal.NOT_FOUND}
    assert await row_of(store, jobs, job.id) == before


@pytest.mark.parametrize("state", [JobState.DONE, JobState.CANCELLED])
async def test_a_job_that_is_over_stays_as_it_is(store: Database, state: JobState) -> None:
    job = await task(store, asked=Tier.MUTATE)
    await set_row(store, job, state=state)
    before = await row_of(store, jobs, job.id)
    assert await every_change(store, CHAT, job.id) == {Refusal.ENDED}
    assert await row_of(store, jobs, job.id) == before


@pytest.mark.parametrize(
    "values",
    [
        {"schedule": "abc"},
        {"schedule": '{"kind":"cron","expression":"60 9 * * *"}'},
        {"timezone": "Europe/Nowhere"},
        {"next_slot_at": 10**18},
        {"fired": "many"},
    ],
)
@pytest.mark.parametrize("state", [JobState.ACTIVE, JobState.PAUSED, JobState.FAILED])
async def test_r26_a_damaged_job_stays_as_it_is(
    store: Database, state: JobState, values: dict[str, object]
) -> None:
    job = await task(store, asked=Tier.MUTATE)
    await set_row(store, job, state=state, **values)
    before = await row_of(store, jobs, job.id)
    assert await every_change(store, CHAT, job.id) == {Refusal.DAMAGED}
    assert await row_of(store, jobs, job.id) == before


@pytest.mark.parametrize("refusal", Refusal)
def test_each_refusal_names_the_job_in_a_sentence(refusal: Refusal) -> None:
    told = refusal.told(7)
    assert "#7" in told
    assert told.endswith(".")
