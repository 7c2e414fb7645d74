"""What reminders say when they go out, and what their end means for their jobs."""

from datetime import datetime, timedelta

import pytest

from gateway.domain.delivery import DeliveryId, DeliveryKind, NotSent, NotSentReason, Rejected, Sent
from gateway.domain.job import Job, JobAction, JobState
from gateway.domain.richtext import RichText
from gateway.domain.turn import TurnId, TurnState
from gateway.store.database import Database, Transaction
from gateway.store.deliveries import NewDelivery, store_delivery
from gateway.store.events import save_transition
from gateway.store.fallback import earliest_fallback, fall_back, fall_back_overdue
from gateway.store.jobs import cancel_job
from gateway.store.reminders import put_in_delivery, reminder_saying
from gateway.store.schema import deliveries, jobs, turns
from gateway.store.sending import finish_send
from gateway.store.slots import MAX_FAILED_SLOTS
from tests.factories import (
    CHAT,
    OTHER_CHAT,
    SERVED,
    active_job,
    cut,
    fire,
    job_state,
    later,
    next_send,
    row_of,
    rows_of,
    send_rules,
    states_of,
)
from tests.integration.test_store_firing import every, made, prompt, send_all, texts_of

HOUR = timedelta(hours=1)


async def queued_slot(store: Database, at: datetime, text: str = "news") -> TurnId:
    """The turn of a prompt that waits for the lane."""
    job = await prompt(store, at, text)
    await fire(store, at)
    (row,) = await rows_of(store, turns, turns.c.job_id == job.id)
    return TurnId(row.id)


def _answer(tx: Transaction, turn: TurnId, reply: str, now: datetime) -> DeliveryId:
    connection = tx.connection
    forth = (TurnState.QUEUED, TurnState.RUNNING)
    save_transition(connection, turns, turn, forth, {}, now=now)
    pieces = cut(reply, is_markdown=True)
    new = NewDelivery(chat=CHAT, kind=DeliveryKind.REMINDER, text=reply, chunks=pieces)
    delivery = store_delivery(tx, new, now=now)
    end = (TurnState.RUNNING, TurnState.ANSWERED)
    save_transition(connection, turns, turn, end, {"reply": reply}, now=now)
    put_in_delivery(connection, turn, delivery)
    return delivery


async def answered_slot(store: Database, reply: str, *, at: datetime, now: datetime) -> DeliveryId:
    """The delivery of what a model made of a job's text."""
    turn = await queued_slot(store, at)
    return await store.write(_answer, turn, reply, now)


async def pieces_of(
    store: Database, delivery: int, now: datetime
) -> tuple[str, tuple[RichText, ...]] | None:
    saying = await store.read(reminder_saying, DeliveryId(delivery), now=now)
    return None if saying is None else (saying.text, saying.pieces(cut))


async def fail(store: Database, now: datetime) -> None:
    """The platform refuses the chat's next chunk for good."""
    step = await next_send(store, now=now)
    refused = Rejected(reason="chat not found")
    await store.write(finish_send, step, refused, send_rules(), now=now)


async def failed_slots(store: Database, job: Job) -> int:
    count: int = (await row_of(store, jobs, job.id)).failed_slots
    return count


# ---- what they say ---------------------------------------------------------------------------


async def test_stored_texts_are_joined_and_each_late_one_says_when_it_was_due(
    store: Database,
) -> None:
    await active_job(store, "tea", at=later(60))
    await active_job(store, "bread", at=later(120))
    await fire(store, later(120))
    (row,) = await rows_of(store, deliveries)
    assert await pieces_of(store, row.id, later(181)) == (
        "• (was due Mon 2 Mar 10:01) tea\n• bread",
        (RichText(text="• (was due Mon 2 Mar 10:01) tea\n• bread"),),
    )


async def test_a_reply_in_time_goes_out_as_it_is(store: Database) -> None:
    delivery = await answered_slot(store, "# News\n- one", at=later(60), now=later(70))
    assert await pieces_of(store, delivery, later(180)) == (
        "# News\n- one",
        (RichText(text="# News\n- one"),),
    )


async def test_a_late_reply_says_when_it_was_due_on_a_line_of_its_own(store: Database) -> None:
    delivery = await answered_slot(store, "# News", at=later(60), now=later(70))
    told = await pieces_of(store, delivery, later(181))
    assert told is not None
    assert told[0] == "(was due Mon 2 Mar 10:01)\n\n# News"


async def test_a_reply_of_marks_alone_is_shown_as_typed(store: Database) -> None:
    delivery = await answered_slot(store, "---", at=later(60), now=later(70))
    told = await pieces_of(store, delivery, later(70))
    assert told == ("---", (RichText(text="---"),))


async def test_nothing_is_left_of_a_cancelled_job(store: Database) -> None:
    job = await active_job(store, at=later(60))
    await fire(store, later(60))
    (row,) = await rows_of(store, deliveries)
    await store.write(cancel_job, CHAT, job.id, now=later(61))
    assert await pieces_of(store, row.id, later(61)) is None


async def test_a_reply_is_never_joined_with_what_is_due_meanwhile(store: Database) -> None:
    delivery = await answered_slot(store, "the news", at=later(60), now=later(70))
    await active_job(store, "tea", at=later(80))
    await fire(store, later(80))
    rows = await rows_of(store, deliveries)
    assert [(row.id == delivery, row.text) for row in rows] == [(True, "the news"), (False, "tea")]


async def test_what_waited_in_a_chat_that_blocked_the_bot_goes_out_joined(
    store: Database,
) -> None:
    await made(store, every(HOUR), "water")
    await fire(store, later(3600))
    step = await next_send(store, now=later(3600))
    blocked = NotSent(reason=NotSentReason.CHAT_UNREACHABLE)
    await store.write(finish_send, step, blocked, send_rules(), now=later(3600))
    await fire(store, later(7200))
    await fire(store, later(10800))
    await store.write(
        lambda tx: tx.connection.exec_driver_sql("UPDATE chats SET unreachable_since = NULL")
    )
    assert await send_all(store, later(10805)) == [
        "• (was due Mon 2 Mar 11:00) water\n• (was due Mon 2 Mar 12:00) water\n• water"
    ]


# ---- falling back ----------------------------------------------------------------------------


async def test_r22_without_an_answer_the_stored_text_goes_out(store: Database) -> None:
    turn = await queued_slot(store, later(60), "take a bath")
    await store.write(fall_back, turn, TurnState.QUEUED, cut, now=later(100))
    row = await row_of(store, turns, turn)
    assert (row.state, row.reason) == ("failed", "fell_back")
    assert row.ended_at is not None
    assert await send_all(store, later(100)) == ["take a bath"]
    assert row.delivery_id is not None


async def test_a_running_turn_falls_back_as_well(store: Database) -> None:
    turn = await queued_slot(store, later(60), "take a bath")

    def run(tx: Transaction) -> None:
        move = (TurnState.QUEUED, TurnState.RUNNING)
        save_transition(tx.connection, turns, turn, move, {}, now=later(61))

    await store.write(run)
    await store.write(fall_back, turn, TurnState.RUNNING, cut, now=later(100))
    assert await states_of(store, turns) == ["failed"]
    assert await texts_of(store) == ["take a bath"]


async def test_a_text_that_falls_back_joins_what_waits(store: Database) -> None:
    turn = await queued_slot(store, later(60), "news")
    await active_job(store, "tea", at=later(90))
    await fire(store, later(90))
    await store.write(fall_back, turn, TurnState.QUEUED, cut, now=later(100))
    assert await texts_of(store) == ["• news\n• tea"]


async def test_what_waited_five_minutes_falls_back_and_nothing_sooner(store: Database) -> None:
    await queued_slot(store, later(60), "news")
    await queued_slot(store, later(90), "weather")
    assert await store.read(earliest_fallback, SERVED) == later(360)
    lanes = (SERVED, lambda chat: cut)
    assert await store.write(fall_back_overdue, *lanes, now=later(359)) == 0
    assert await store.write(fall_back_overdue, *lanes, now=later(360)) == 1
    assert await states_of(store, turns) == ["failed", "queued"]
    assert await store.read(earliest_fallback, SERVED) == later(390)
    assert await store.write(fall_back_overdue, (), lanes[1], now=later(999)) == 0
    assert await store.write(fall_back_overdue, *lanes, now=later(999)) == 1
    assert await store.read(earliest_fallback, SERVED) is None


async def test_what_waits_since_a_time_to_come_falls_back_at_once(store: Database) -> None:
    await queued_slot(store, later(7200))
    lanes = (SERVED, lambda chat: cut)
    assert await store.write(fall_back_overdue, *lanes, now=later(7200 - 60)) == 0
    assert await store.write(fall_back_overdue, *lanes, now=later(3600)) == 1
    assert await texts_of(store) == ["news"]


# ---- what the end of a slot means for its job ------------------------------------------------


async def test_r20_a_one_shot_stays_until_its_text_is_sent(store: Database) -> None:
    job = await active_job(store, at=later(60))
    await fire(store, later(60))
    assert await job_state(store, job.id) is JobState.ACTIVE
    step = await next_send(store, now=later(61))
    down = NotSent(reason=NotSentReason.CHANNEL_DOWN)
    await store.write(finish_send, step, down, send_rules(), now=later(61))
    assert await job_state(store, job.id) is JobState.ACTIVE
    assert await send_all(store, later(700)) == ["(was due Mon 2 Mar 10:01) call mum"]
    assert await job_state(store, job.id) is JobState.DONE


async def test_r18_a_run_that_went_well_and_a_send_that_did_not_are_two_outcomes(
    store: Database,
) -> None:
    await answered_slot(store, "the news", at=later(60), now=later(70))
    await fail(store, later(70))
    ((turn),) = await rows_of(store, turns)
    delivery = await row_of(store, deliveries, turn.delivery_id)
    assert (turn.state, delivery.state, delivery.reason) == ("answered", "failed", "chat not found")
    assert await states_of(store, jobs) == ["failed"]


async def test_r19_a_failed_send_makes_no_new_turn(store: Database) -> None:
    job = await made(store, every(HOUR), action=JobAction.PROMPT)
    await fire(store, later(3600))
    (row,) = await rows_of(store, turns)
    await store.write(_answer, TurnId(row.id), "the news", later(3601))
    await fail(store, later(3602))
    assert await fire(store, later(3700)) == 0
    assert await states_of(store, turns) == ["answered"]
    assert await failed_slots(store, job) == 1


async def test_the_tenth_failed_slot_in_a_row_switches_a_series_off_and_says_so(
    store: Database,
) -> None:
    job = await made(store, every(HOUR), "water the plants")
    for slot in range(1, MAX_FAILED_SLOTS + 1):
        assert await job_state(store, job.id) is JobState.ACTIVE
        await fire(store, later(3600 * slot))
        await fail(store, later(3600 * slot))
        assert await failed_slots(store, job) == slot
    row = await row_of(store, jobs, job.id)
    assert (row.state, row.reason, row.next_slot_at) == ("failed", "failing", None)
    assert row.ended_at is not None
    (notice,) = await texts_of(store)
    assert f"/resume {job.id}" in notice
    assert "water the plants" in notice
    assert await fire(store, later(10**6)) == 0


async def test_a_slot_that_arrived_ends_the_count(store: Database) -> None:
    job = await made(store, every(HOUR))
    for slot in range(1, MAX_FAILED_SLOTS):
        await fire(store, later(3600 * slot))
        await fail(store, later(3600 * slot))
    await fire(store, later(3600 * MAX_FAILED_SLOTS))
    await send_all(store, later(3600 * MAX_FAILED_SLOTS))
    assert await failed_slots(store, job) == 0
    assert await job_state(store, job.id) is JobState.ACTIVE


async def test_a_text_that_fell_back_counts_as_failed_although_it_arrived(
    store: Database,
) -> None:
    job = await made(store, every(HOUR), action=JobAction.PROMPT)
    for slot in range(1, MAX_FAILED_SLOTS + 1):
        await fire(store, later(3600 * slot))
        await store.write(fall_back_overdue, SERVED, lambda chat: cut, now=later(3600 * slot + 300))
        await send_all(store, later(3600 * slot + 300))
    row = await row_of(store, jobs, job.id)
    assert (row.state, row.failed_slots) == ("failed", MAX_FAILED_SLOTS)


async def test_a_one_shot_whose_text_fell_back_and_arrived_is_done(store: Database) -> None:
    turn = await queued_slot(store, later(60))
    await store.write(fall_back, turn, TurnState.QUEUED, cut, now=later(100))
    await send_all(store, later(100))
    assert await states_of(store, jobs) == ["done"]


async def test_a_job_of_which_something_is_on_its_way_is_left_alone(store: Database) -> None:
    job = await made(store, every(HOUR, max_runs=2))
    await fire(store, later(3600))
    step = await next_send(store, now=later(3600))
    await fire(store, later(7200))
    await store.write(finish_send, step, Sent(external_id="1"), send_rules(), now=later(7200))
    assert await job_state(store, job.id) is JobState.ACTIVE
    await send_all(store, later(7200))
    assert await job_state(store, job.id) is JobState.DONE


async def test_each_job_of_a_joined_text_is_settled_on_its_own(store: Database) -> None:
    once = await active_job(store, "once", at=later(3600))
    series = await made(store, every(HOUR), "series")
    other = await made(store, every(HOUR), "other", chat=OTHER_CHAT)
    await fire(store, later(3600))
    await fail(store, later(3600))
    assert await job_state(store, once.id) is JobState.FAILED
    assert [await failed_slots(store, job) for job in (series, other)] == [1, 0]


@pytest.mark.parametrize("is_sent", [True, False])
async def test_several_slots_of_a_job_in_one_text_count_each(
    store: Database, is_sent: bool
) -> None:
    job = await made(store, every(HOUR))
    for slot in (1, 2, 3):
        await fire(store, later(3600 * slot))
    if is_sent:
        await send_all(store, later(10800))
    else:
        await fail(store, later(10800))
    assert await failed_slots(store, job) == (0 if is_sent else 3)
