"""T0: a due job moves past its slot and its text is stored, in one commit, once a slot."""

from dataclasses import replace
from datetime import time, timedelta

import pytest
from sqlalchemy import text

from gateway.domain.delivery import (
    NotSent,
    NotSentReason,
    Rejected,
    SendOutcome,
    Sent,
    Unknown,
)
from gateway.domain.job import (
    MAX_CREATES_PER_MINUTE,
    MAX_OPEN_JOBS,
    Job,
    JobAction,
    JobState,
    MissedWindow,
    Origin,
    Tier,
)
from gateway.domain.message import ChannelName, ChatKey
from gateway.domain.schedule import Every, Weekly, to_millis
from gateway.domain.turn import Trigger, TurnState
from gateway.store.database import Change, Database, Topic, Transaction
from gateway.store.ending import answer_turn
from gateway.store.firing import earliest_slot
from gateway.store.jobs import (
    Created,
    JobLimit,
    cancel_job,
    create_job,
    get_job,
    list_jobs,
)
from gateway.store.opening import Layout, open_database
from gateway.store.schema import deliveries, events, jobs, messages, runs, turns
from gateway.store.sending import finish_send
from tests.factories import (
    CHAT,
    NOW,
    OTHER_CHAT,
    SERVED,
    SUCCEEDED,
    Door,
    active_job,
    created_job,
    cut,
    fire,
    fired_job,
    job_state,
    later,
    moment_of,
    new_job,
    next_send,
    queued_turn,
    row_of,
    rows_of,
    running_turn,
    send_rules,
    states_of,
)

OK = Sent(external_id="99")
REFUSED = Rejected(reason="chat not found")


async def damage(store: Database, job: Job, **values: object) -> None:
    """Change a job's row behind the program's back."""

    def change(tx: Transaction) -> None:
        tx.connection.execute(jobs.update().where(jobs.c.id == job.id).values(**values))

    await store.write(change)


async def send(store: Database, outcome: SendOutcome, *, seconds: float = 60) -> None:
    step = await next_send(store, now=later(seconds))
    await store.write(finish_send, step, outcome, send_rules(), now=later(seconds))


# ---- creating ------------------------------------------------------------------------------


async def test_a_job_is_stored_before_it_is_confirmed(store: Database) -> None:
    heard: list[frozenset[Change]] = []
    store.subscribe(heard.append)
    job = await active_job(store, "call mum", at=later(60))
    row = await row_of(store, jobs, job.id)
    assert (row.state, row.action, row.text, row.tier) == (
        "active",
        "message",
        "call mum",
        "read_only",
    )
    assert moment_of(row.next_slot_at) == later(60)
    assert job.line(now=NOW) == "#1 Mon 2 Mar 10:01 (Europe/Berlin): call mum"
    assert heard == [frozenset({Change(Topic.JOBS, CHAT)})]
    (event,) = await rows_of(store, events)
    assert (event.subject, event.before, event.after) == ("jobs", None, "active")


async def test_r25_confirmed_jobs_are_there_after_a_restart(layout: Layout) -> None:
    before = open_database(layout)
    for number in range(6):
        await active_job(before, f"{number}", chat=CHAT if number % 2 else OTHER_CHAT)
    await before.close()
    after = open_database(layout)
    listed = [job.text for chat in (CHAT, OTHER_CHAT) for job in await after.read(list_jobs, chat)]
    assert sorted(listed) == [f"{number}" for number in range(6)]
    await after.close()


async def test_the_same_text_and_schedule_is_the_same_job(store: Database) -> None:
    job = await active_job(store, "tea")
    again = await created_job(store, new_job("tea"), now=later(1))
    assert again == Created(job=job, is_new=False)
    for other in (
        new_job("tea", at=later(61)),
        new_job("Tea"),
        new_job("tea", chat=OTHER_CHAT),
    ):
        created = await created_job(store, other)
        assert isinstance(created, Created)
        assert created.is_new


async def test_a_job_that_fired_or_ended_is_not_the_same_any_more(store: Database) -> None:
    fired = await fired_job(store, "tea")
    second = await active_job(store, "tea", at=later(60))
    assert second.id != fired.id
    await store.write(cancel_job, CHAT, second.id, now=NOW)
    third = await active_job(store, "tea", at=later(60))
    assert third.id not in (fired.id, second.id)


async def test_a_paused_job_is_the_same(store: Database) -> None:
    job = await active_job(store, "tea")
    await damage(store, job, state=JobState.PAUSED)
    again = await created_job(store, new_job("tea"))
    assert isinstance(again, Created)
    assert (again.is_new, again.job.id, again.job.state) == (False, job.id, JobState.PAUSED)


async def test_a_chat_has_fifty_open_jobs_at_most(store: Database) -> None:
    for number in range(MAX_OPEN_JOBS):
        await active_job(store, f"{number}", at=later(9999), now=later(number * 10))
    at = later(MAX_OPEN_JOBS * 10)
    assert await created_job(store, new_job("one more", at=later(9999)), now=at) is (
        JobLimit.TOO_MANY
    )
    assert isinstance(
        await created_job(store, new_job("elsewhere", chat=OTHER_CHAT), now=at), Created
    )
    same = await created_job(store, new_job("0", at=later(9999)), now=at)
    assert isinstance(same, Created)
    await store.write(cancel_job, CHAT, same.job.id, now=at)
    assert isinstance(
        await created_job(store, new_job("one more", at=later(9999)), now=at), Created
    )


async def test_ten_creates_a_minute_at_most(store: Database) -> None:
    for number in range(MAX_CREATES_PER_MINUTE):
        await active_job(store, f"{number}", now=later(number))
    refused = await created_job(store, new_job("too fast"), now=later(59))
    assert refused is JobLimit.TOO_FAST
    assert isinstance(await created_job(store, new_job("later"), now=later(60)), Created)


async def test_jobs_are_listed_by_their_time_with_those_that_failed(store: Database) -> None:
    late = await active_job(store, "late", at=later(300))
    soon = await active_job(store, "soon", at=later(120))
    failed = await fired_job(store, "failed", at=later(60))
    await send(store, REFUSED)
    cancelled = await active_job(store, "cancelled", at=later(90))
    await store.write(cancel_job, CHAT, cancelled.id, now=NOW)
    await active_job(store, "elsewhere", chat=OTHER_CHAT)
    listed = await store.read(list_jobs, CHAT)
    assert [(job.id, job.state) for job in listed] == [
        (failed.id, JobState.FAILED),
        (soon.id, JobState.ACTIVE),
        (late.id, JobState.ACTIVE),
    ]


# ---- firing --------------------------------------------------------------------------------


async def test_a_due_job_stores_its_text_and_moves_on_in_one_commit(store: Database) -> None:
    job = await active_job(store, "tea", at=later(60))
    assert await fire(store, later(59.999)) == 0
    heard: list[frozenset[Change]] = []
    store.subscribe(heard.append)
    assert await fire(store, later(60)) == 1
    row = await row_of(store, jobs, job.id)
    assert (row.state, row.next_slot_at, row.fired) == ("active", None, 1)
    assert moment_of(row.last_slot_at) == later(60)
    (turn,) = await rows_of(store, turns)
    assert (turn.trigger, turn.state, turn.text, turn.job_id) == ("job", "answered", "tea", job.id)
    assert turn.source_key == f"job:{job.id}:{row.last_slot_at}"
    assert await rows_of(store, runs) == []
    delivery = await row_of(store, deliveries, turn.delivery_id)
    assert (delivery.kind, delivery.state, delivery.text) == ("reminder", "pending", "tea")
    assert heard == [frozenset({Change(Topic.JOBS, CHAT), Change(Topic.DELIVERIES, CHAT)})]


async def test_r02_a_slot_fires_once_whatever_is_restarted(layout: Layout) -> None:
    first = open_database(layout)
    await fired_job(first)
    await send(first, OK)
    await first.close()
    for minutes in range(5):
        store = open_database(layout)
        assert await fire(store, later(120 + 60 * minutes)) == 0
        assert len(await rows_of(store, turns)) == 1
        assert len(await rows_of(store, deliveries)) == 1
        await store.close()


@pytest.mark.parametrize("is_sent", [False, True])
async def test_a_slot_that_was_fired_before_moves_the_job_and_fires_nothing(
    store: Database, is_sent: bool
) -> None:
    job = await fired_job(store, at=later(60))
    if is_sent:
        await send(store, OK)
    row = await row_of(store, jobs, job.id)
    again = {"state": JobState.ACTIVE, "next_slot_at": row.last_slot_at, "ended_at": None}
    await damage(store, job, **again)
    assert await fire(store, later(61)) == 1
    row = await row_of(store, jobs, job.id)
    assert (row.state, row.next_slot_at) == ("done" if is_sent else "active", None)
    assert len(await rows_of(store, turns)) == 1
    assert len(await rows_of(store, deliveries)) == 1
    assert await fire(store, later(62)) == 0


async def test_r15_everything_that_is_due_fires_however_late(store: Database) -> None:
    for number in range(5):
        chat = ChatKey(ChannelName.TELEGRAM, f"{number}")
        await active_job(store, chat=chat, at=later(60 + number))
    assert await fire(store, later(10**6)) == 5
    assert await store.read(earliest_slot, SERVED, after=NOW) is None


async def test_only_the_served_channels_fire(store: Database) -> None:
    console = ChatKey(ChannelName.CONSOLE, "local")
    await active_job(store, chat=console, at=later(60))
    await active_job(store, at=later(90))
    assert await store.read(earliest_slot, SERVED, after=NOW) == later(90)
    assert await store.read(earliest_slot, (ChannelName.CONSOLE,), after=NOW) == later(60)
    assert await fire(store, later(60)) == 0
    assert await states_of(store, jobs) == ["active", "active"]


async def test_more_than_one_batch_fires_in_the_order_of_the_slots(store: Database) -> None:
    def many(tx: Transaction) -> None:
        for number in range(205):
            new = new_job(f"{number}", at=later(60 + number))
            tx.connection.execute(
                jobs.insert().values(
                    chat_key=str(CHAT),
                    state=JobState.ACTIVE,
                    action=new.action,
                    text=new.text,
                    schedule='{"kind":"at","at":0}',
                    timezone="UTC",
                    missed=new.missed,
                    tier=new.tier,
                    asked_tier=new.asked_tier,
                    next_slot_at=1000 * (60 + number),
                    created_at=0,
                )
            )

    await queued_turn(store)
    await store.write(many)
    assert [await fire(store, NOW) for _ in range(6)] == [50, 50, 50, 50, 5, 0]
    slots = [row.slot_at for row in await rows_of(store, turns) if row.job_id is not None]
    assert slots == sorted(slots)
    assert len(slots) == 205
    carried = {row.delivery_id for row in await rows_of(store, turns) if row.job_id is not None}
    assert len(carried) == 1


async def test_a_chat_that_is_not_allowed_any_more_pauses_its_job(store: Database) -> None:
    job = await active_job(store, at=later(60))
    door = Door()
    door.out = {CHAT}
    assert await fire(store, later(60), door=door) == 1
    row = await row_of(store, jobs, job.id)
    assert (row.state, row.reason) == ("paused", "not_allowed")
    assert moment_of(row.next_slot_at) == later(60)
    (turn,) = await rows_of(store, turns)
    assert (turn.state, turn.reason) == ("cancelled", "not_allowed")
    delivery = await row_of(store, deliveries, turn.delivery_id)
    assert (delivery.state, delivery.reason) == ("suppressed", "not_allowed")
    assert await fire(store, later(61), door=door) == 0


# ---- damage --------------------------------------------------------------------------------

DAMAGES: dict[str, dict[str, object]] = {
    "schedule": {"schedule": '{"kind":"at","at":"abc"}'},
    "no json": {"schedule": "abc"},
    "far away": {"schedule": '{"kind":"at","at":99999999999999999999}'},
    "zone": {"timezone": "Europe/Nowhere"},
    "zone path": {"timezone": "../../etc/passwd"},
    "zone folder": {"timezone": "Europe"},
    "long zone": {"timezone": "x" * 5000},
}


@pytest.mark.parametrize("values", DAMAGES.values(), ids=DAMAGES)
async def test_r26_a_damaged_row_disables_itself_alone(
    store: Database, values: dict[str, object]
) -> None:
    broken = await active_job(store, "tea", at=later(60))
    good = await active_job(store, "bread", at=later(60))
    await damage(store, broken, **values)
    assert await fire(store, later(60)) == 2
    row = await row_of(store, jobs, broken.id)
    assert (row.state, row.reason, row.next_slot_at) == ("failed", "damaged", None)
    texts = sorted(row.text for row in await rows_of(store, deliveries))
    assert texts == [f'Reminder #{broken.id} is damaged and was switched off: "tea"', "bread"]
    assert (await row_of(store, jobs, good.id)).fired == 1
    assert await fire(store, later(61)) == 0


async def test_two_slots_of_a_job_that_share_a_delivery_end_it_once(store: Database) -> None:
    job = await fired_job(store, "tea", at=later(60))
    await damage(store, job, next_slot_at=to_millis(later(90)))
    await fire(store, later(90))
    await send(store, OK, seconds=90)
    assert len(await rows_of(store, turns)) == 2
    assert await job_state(store, job.id) == "done"


async def test_a_slot_that_is_there_already_leaves_no_second_silence(store: Database) -> None:
    job = await active_job(store, at=later(60))
    door = Door()
    door.out = {CHAT}
    await fire(store, later(60), door=door)
    await damage(store, job, state="active", next_slot_at=to_millis(later(60)))
    await fire(store, later(61), door=door)
    (turn,) = await rows_of(store, turns)
    (delivery,) = await rows_of(store, deliveries)
    assert turn.delivery_id == delivery.id


async def test_r26_a_job_damaged_after_it_fired_holds_no_other_back(store: Database) -> None:
    broken = await fired_job(store, "tea", at=later(60))
    await damage(store, broken, timezone="Europe/Nowhere")
    await active_job(store, "bread", at=later(600))
    await fire(store, later(600))
    step = await next_send(store, now=later(600))
    assert step.chunk.body.text == "• (was due Mon 2 Mar 09:01) tea\n• bread"


async def test_r16_a_text_that_is_none_harms_no_other_job(store: Database) -> None:
    broken = await active_job(store, "tea", at=later(60))
    await active_job(store, "bread", at=later(60))

    def spoil(tx: Transaction) -> None:
        tx.connection.execute(
            text("UPDATE jobs SET text = x'ff00' WHERE id = :id"), {"id": broken.id}
        )

    await store.write(spoil)
    assert await fire(store, later(60)) == 2
    assert await job_state(store, broken.id) == "failed"
    assert "bread" in [row.text for row in await rows_of(store, deliveries)]


ODD_VALUES: dict[str, str] = {
    "schedule": "schedule = 'abc', timezone = 'Europe/Nowhere'",
    "deep schedule": "schedule = replace(hex(zeroblob(50000)), '00', '[[')",
    "binary schedule": "schedule = x'ff00'",
    "end of the calendar": 'schedule = \'{"kind":"at","at":253402300799000}\'',
    "far end of a series": """schedule = '{"kind":"daily","time":"09:00","until":1e300}'""",
    "slot": "next_slot_at = 'soon'",
    "far slot": "next_slot_at = 253402300799000",
    "last slot": "last_slot_at = 'once'",
    "creation": "created_at = 'once'",
    "runs": "fired = 'many'",
    "failures": "failed_slots = 'many'",
    "origin": "origin_text = x'ff00', origin_at = 0",
    "time of its origin": "origin_text = 'please', origin_at = 'once'",
    "what was put off": "snoozed_from = 'x'",
    "tier": "tier = 'boss'",
    "asked tier": "asked_tier = 'boss'",
    "missed window": "missed = 'never'",
    "action": "action = 'shell'",
    "text": "text = x'ff00'",
    "zone": "timezone = x'ff00'",
}


def spoil(tx: Transaction, job: Job, assignment: str) -> None:
    """Write what the table itself would refuse."""
    for statement in (
        "PRAGMA ignore_check_constraints = ON",
        f"UPDATE jobs SET {assignment} WHERE id = {job.id:d}",  # noqa: S608
        "PRAGMA ignore_check_constraints = OFF",
    ):
        tx.connection.exec_driver_sql(statement)


@pytest.mark.parametrize("has_fired", [False, True])
@pytest.mark.parametrize("assignment", ODD_VALUES.values(), ids=ODD_VALUES)
async def test_r26_a_damaged_job_is_listed_and_can_be_cancelled(
    store: Database, assignment: str, has_fired: bool
) -> None:
    broken = await active_job(store, "tea", at=later(60))
    good = await active_job(store, "bread", at=later(3600))
    await store.write(spoil, broken, assignment)
    if has_fired:
        await fire(store, later(60))
    listed = {job.id: job for job in await store.read(list_jobs, CHAT)}
    assert set(listed) == {broken.id, good.id}
    assert "(damaged)" in listed[broken.id].listed(now=NOW)
    assert await store.read(get_job, CHAT, broken.id) == listed[broken.id]
    assert await store.write(cancel_job, CHAT, broken.id, now=NOW) is not None
    assert await job_state(store, broken.id) == "cancelled"
    assert await store.read(get_job, CHAT, good.id) == good


async def test_r26_a_job_in_no_state_that_there_is_can_still_be_looked_at(store: Database) -> None:
    broken = await active_job(store, "tea")
    await store.write(spoil, broken, "state = 'odd'")
    found = await store.read(get_job, CHAT, broken.id)
    assert found is not None
    assert found.text == "tea (damaged)"
    assert await store.read(list_jobs, CHAT) == ()


async def test_a_damaged_job_is_not_taken_for_the_one_that_is_asked_for(store: Database) -> None:
    broken = await active_job(store, "tea")
    await damage(store, broken, schedule="abc")
    created = await created_job(store, new_job("tea"))
    assert isinstance(created, Created)
    assert created.is_new


@pytest.mark.parametrize("state", list(JobState))
async def test_a_job_is_found_by_its_chat_in_any_state(store: Database, state: JobState) -> None:
    job = await active_job(store, "tea")
    await damage(store, job, state=state)
    found = await store.read(get_job, CHAT, job.id)
    assert found is not None
    assert (found.id, found.state) == (job.id, state)
    assert await store.read(get_job, OTHER_CHAT, job.id) is None
    assert await store.read(get_job, CHAT, job.id + 1) is None


async def test_everything_that_was_asked_for_is_read_back(store: Database) -> None:
    series = Weekly(
        days=frozenset({0, 4}),
        time=time(9, 30),
        every=2,
        since=NOW.date(),
        until=later(10**7),
        max_runs=7,
    )
    new = replace(
        new_job("tea"),
        action=JobAction.PROMPT,
        schedule=series,
        missed=MissedWindow.SKIP,
        asked_tier=Tier.MUTATE,
        origin=Origin(text="remind me of tea", sent_at=later(-5)),
    )
    created = await created_job(store, new)
    assert isinstance(created, Created)
    found = await store.read(get_job, CHAT, created.job.id)
    assert found == created.job
    for name in ("action", "schedule", "missed", "tier", "asked_tier", "origin", "timezone"):
        assert getattr(found, name) == getattr(new, name), name


async def test_an_interval_asked_for_again_is_the_same_job(store: Database) -> None:
    every = Every(period=timedelta(hours=2), anchor=NOW)
    first = await created_job(store, replace(new_job("tea"), schedule=every))
    for other, is_new in (
        (replace(every, anchor=later(60)), False),
        (replace(every, period=timedelta(hours=3)), True),
        (replace(every, max_runs=3), True),
    ):
        created = await created_job(store, replace(new_job("tea"), schedule=other))
        assert isinstance(first, Created)
        assert isinstance(created, Created)
        assert (created.is_new, created.job.id != first.job.id) == (is_new, is_new)
    elsewhere = replace(new_job("tea"), schedule=every, timezone="Asia/Kolkata")
    created = await created_job(store, elsewhere)
    assert isinstance(created, Created)
    assert created.is_new


async def test_r26_a_slot_beyond_all_time_harms_no_list(store: Database) -> None:
    broken = await active_job(store, "tea", at=later(60))
    await damage(store, broken, next_slot_at=10**18)
    await active_job(store, "bread", at=later(60))
    assert sorted(job.text for job in await store.read(list_jobs, CHAT)) == [
        "bread",
        "tea (damaged)",
    ]
    assert await store.read(earliest_slot, SERVED, after=NOW) == later(60)
    assert await store.write(cancel_job, CHAT, broken.id, now=NOW) is not None


# ---- settling ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("outcomes", "state", "reason"),
    [
        ([OK], "done", None),
        ([REFUSED], "failed", "not_delivered"),
        ([Unknown(reason="x", answered=False)] * 2, "failed", "not_delivered"),
    ],
)
async def test_a_one_shot_ends_as_its_delivery_does(
    store: Database, outcomes: list[SendOutcome], state: str, reason: str | None
) -> None:
    job = await fired_job(store)
    assert await job_state(store, job.id) == "active"
    for outcome in outcomes:
        await send(store, outcome)
    row = await row_of(store, jobs, job.id)
    assert (row.state, row.reason) == (state, reason)
    assert moment_of(row.ended_at) == later(60)
    last = [event for event in await rows_of(store, events) if event.subject == "jobs"][-1]
    assert (last.before, last.after, last.reason) == ("active", state, reason)


async def test_a_one_shot_that_arrived_in_part_is_done(store: Database) -> None:
    job = await fired_job(store, "1|2")
    await send(store, OK)
    await send(store, REFUSED)
    assert await job_state(store, job.id) == "done"


async def test_r20_a_one_shot_stays_until_it_arrived(store: Database) -> None:
    job = await fired_job(store, "tea")
    await send(store, NotSent(reason=NotSentReason.CHANNEL_DOWN))
    (listed,) = await store.read(list_jobs, CHAT)
    assert (listed.id, listed.state, listed.next_slot_at) == (job.id, JobState.ACTIVE, None)
    await send(store, OK, seconds=660)
    (delivery,) = await rows_of(store, deliveries)
    assert delivery.text == "(was due Mon 2 Mar 10:01) tea"
    assert await store.read(list_jobs, CHAT) == ()
    assert await job_state(store, job.id) == "done"


async def test_a_job_that_was_given_another_slot_meanwhile_is_left_alone(store: Database) -> None:
    job = await fired_job(store)
    await damage(store, job, next_slot_at=10**13)
    await send(store, OK)
    assert await job_state(store, job.id) == "active"


async def test_a_paused_job_whose_last_slot_arrives_is_done(store: Database) -> None:
    job = await fired_job(store)
    await damage(store, job, state=JobState.PAUSED)
    await send(store, OK)
    assert await job_state(store, job.id) == "done"


# ---- cancelling ----------------------------------------------------------------------------


async def test_cancel_closes_a_job_that_did_not_fire(store: Database) -> None:
    job = await active_job(store, at=later(60))
    cancelled = await store.write(cancel_job, CHAT, job.id, now=NOW)
    assert cancelled is not None
    assert (cancelled.job, cancelled.is_on_its_way) == (job, False)
    row = await row_of(store, jobs, job.id)
    assert (row.state, row.next_slot_at) == ("cancelled", None)
    assert await fire(store, later(60)) == 0


async def test_cancel_drops_a_reminder_that_was_not_sent(store: Database) -> None:
    job = await fired_job(store)
    cancelled = await store.write(cancel_job, CHAT, job.id, now=later(61))
    assert cancelled is not None
    assert not cancelled.is_on_its_way
    (delivery,) = await rows_of(store, deliveries)
    assert (delivery.state, delivery.reason, delivery.owes_notice) == (
        "dropped",
        "cancelled",
        False,
    )
    assert await job_state(store, job.id) == "cancelled"


async def test_cancel_of_a_failed_reminder_does_not_say_that_it_is_on_its_way(
    store: Database,
) -> None:
    job = await fired_job(store)
    await send(store, REFUSED)
    cancelled = await store.write(cancel_job, CHAT, job.id, now=later(61))
    assert cancelled is not None
    assert not cancelled.is_on_its_way


@pytest.mark.parametrize("state", [TurnState.QUEUED, TurnState.RUNNING])
async def test_cancel_ends_the_open_turns_of_a_job(store: Database, state: TurnState) -> None:
    job = await active_job(store)
    claim = await running_turn(store) if state is TurnState.RUNNING else None
    turn = claim.turn if claim is not None else await queued_turn(store)

    def belong(tx: Transaction) -> None:
        tx.connection.execute(
            turns.update().where(turns.c.id == turn).values(job_id=job.id, trigger=Trigger.JOB)
        )

    await store.write(belong)
    assert await store.write(cancel_job, CHAT, job.id, now=NOW) is not None
    row = await row_of(store, turns, turn)
    assert (row.state, row.reason) == ("cancelled", "cancelled")
    if claim is not None:
        assert await states_of(store, runs) == ["cancelled"]
        assert not await store.write(answer_turn, claim, SUCCEEDED, "late", cut, now=NOW)


@pytest.mark.parametrize("which", ["another chat's", "an ended", "an unknown"])
async def test_cancel_finds_open_jobs_of_its_own_chat_alone(store: Database, which: str) -> None:
    job = await active_job(store)
    chat, number = CHAT, int(job.id)
    if which == "another chat's":
        chat = OTHER_CHAT
    elif which == "an ended":
        await store.write(cancel_job, CHAT, job.id, now=NOW)
    else:
        number += 1
    before = await job_state(store, job.id)
    assert await store.write(cancel_job, chat, number, now=NOW) is None
    assert await job_state(store, job.id) == before


async def test_a_job_and_the_message_it_came_from_stand_or_fall_together(
    store: Database,
) -> None:
    await queued_turn(store)

    def create_and_fail(tx: Transaction) -> None:
        create_job(tx, new_job(), now=NOW)
        tx.connection.execute(messages.update().values(text=None))

    with pytest.raises(Exception, match="NOT NULL"):
        await store.write(create_and_fail)
    assert await rows_of(store, jobs) == []
