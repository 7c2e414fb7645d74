"""Turns that nobody wrote: retried or replaced by the stored text, or ended in silence."""

from dataclasses import replace
from datetime import datetime

import pytest
from sqlalchemy import Row

from gateway.domain.delivery import DeliveryKind, Sent
from gateway.domain.job import JobAction, JobState, Tier
from gateway.domain.tool import NOTHING_SET, ToolResult
from gateway.domain.turn import RunState, Trigger, TurnId
from gateway.store.chats import load_chat
from gateway.store.database import Database
from gateway.store.ending import (
    RunEnd,
    answer_turn,
    break_off,
    fail_turn,
    give_back,
    recover_turns,
    refuse_turn,
)
from gateway.store.jobs import list_jobs
from gateway.store.schema import chunks, deliveries, runs, turns
from gateway.store.sending import finish_send
from gateway.store.stopping import cancel_heartbeat, stop_chat
from gateway.store.turns import Claim, claim_turn, next_turn
from tests.factories import (
    CHAT,
    HOST_FAILED,
    NOTICE,
    NOW,
    OTHER_CHAT,
    SERVED,
    SUCCEEDED,
    Door,
    claimed,
    cut,
    later,
    new_job,
    next_send,
    queued_heartbeat,
    queued_job_turn,
    queued_turn,
    row_of,
    rows_of,
    running_turn,
    send_rules,
    sending_chunk,
    states_of,
    stored_delivery,
    tool_call,
)

TASK = "water the plants"


async def answer(store: Database, claim: Claim, reply: str, *, now: datetime = NOW) -> bool:
    return await store.write(answer_turn, claim, SUCCEEDED, reply, cut, now=now)


async def fail(store: Database, claim: Claim, *, now: datetime = NOW) -> bool:
    return await store.write(fail_turn, claim, HOST_FAILED, NOTICE, now=now)


async def refuse(store: Database, trigger: Trigger, *, now: datetime = NOW) -> bool:
    end = RunEnd(state=RunState.FAILED, reason="host_not_ready", error="no answer")
    return await store.write(refuse_turn, (CHAT, trigger), end, NOTICE, owner="test", now=now)


async def recover(store: Database, *, now: datetime = NOW) -> None:
    assert await store.write(recover_turns, SERVED, NOTICE, now=now) == 1


async def wakes_at(store: Database, now: datetime) -> datetime | None:
    """When the chat's head turn may run, if it may not yet."""
    head = await store.read(next_turn, CHAT, now=now)
    assert head is not None
    return head.not_before


async def end_of(store: Database, turn: TurnId) -> tuple[str, str | None, str, str]:
    """How a turn ended, with the kind and the state of what was stored for the chat."""
    row: Row[tuple[object, ...]] = await row_of(store, turns, turn)
    delivery = await row_of(store, deliveries, row.delivery_id)
    return row.state, row.reason, delivery.kind, delivery.state


async def assert_fell_back(store: Database, turn: TurnId, *, now: datetime) -> None:
    """The stored text, and nothing else, waits to be sent."""
    assert await end_of(store, turn) == ("failed", "fell_back", "reminder", "pending")
    assert (await next_send(store, now=now)).chunk.body.text == TASK
    assert len(await rows_of(store, deliveries)) == 1


# ---- a claim -----------------------------------------------------------------------------------


async def test_a_scheduled_turn_is_claimed_with_its_job_and_its_slot(store: Database) -> None:
    turn = await queued_job_turn(store, TASK)
    claim = await claimed(store)
    assert (claim.turn, claim.trigger, claim.text, claim.slot_at) == (turn, "job", TASK, NOW)
    assert claim.job is not None
    assert (claim.job.id, claim.job.chat, claim.messages) == (1, CHAT, ())


async def test_r23_a_turn_does_what_its_trigger_and_its_job_allow(store: Database) -> None:
    asked = replace(new_job(TASK, at=NOW), action=JobAction.PROMPT, asked_tier=Tier.MUTATE)
    await queued_job_turn(store, job=asked)
    first = await claimed(store)
    assert first.tier is Tier.READ_ONLY
    assert first.job is not None
    assert replace(first, job=replace(first.job, tier=Tier.SUGGEST)).tier is Tier.SUGGEST
    assert replace(first, job=None).tier is Tier.READ_ONLY
    await answer(store, first, "done")
    assert (await running_turn(store)).tier is Tier.MUTATE
    await queued_heartbeat(store, chat=OTHER_CHAT)
    assert (await claimed(store, chat=OTHER_CHAT)).tier is Tier.READ_ONLY


@pytest.mark.parametrize(
    ("ready_for", "is_taken"),
    [(Trigger.JOB, True), (Trigger.MESSAGE, False), (Trigger.HEARTBEAT, False)],
)
async def test_a_head_is_claimed_for_its_own_kind_of_session_only(
    store: Database, ready_for: Trigger, is_taken: bool
) -> None:
    await queued_job_turn(store)
    admits = Door().admits
    claim = await store.write(
        claim_turn, CHAT, trigger=ready_for, owner="test", admits=admits, now=NOW
    )
    assert (claim is not None) is is_taken
    if not is_taken:
        assert not await refuse(store, ready_for)
        assert await states_of(store, turns) == ["queued"]
        assert await rows_of(store, runs) == []


async def test_m20_the_session_that_a_check_in_waited_for_serves_who_wrote_meanwhile(
    store: Database,
) -> None:
    turn = await queued_turn(store)
    claim = await store.write(
        claim_turn, CHAT, trigger=Trigger.HEARTBEAT, owner="test", admits=Door().admits, now=NOW
    )
    assert claim is not None
    assert (claim.turn, claim.trigger) == (turn, Trigger.MESSAGE)


# ---- what a job's turn comes to ----------------------------------------------------------------


async def test_a_models_reply_to_a_job_is_a_reminder(store: Database) -> None:
    turn = await queued_job_turn(store, TASK)
    assert await answer(store, await claimed(store), "The ferns are dry.")
    assert await end_of(store, turn) == ("answered", None, "reminder", "pending")
    assert (await row_of(store, turns, turn)).reply == "The ferns are dry."
    assert (await next_send(store)).chunk.body.text == "The ferns are dry."


async def test_r22_a_job_is_tried_three_times_and_then_its_text_goes_out(store: Database) -> None:
    turn = await queued_job_turn(store, TASK)
    await fail(store, await claimed(store))
    assert (await row_of(store, turns, turn)).state == "queued"
    assert await rows_of(store, deliveries) == []
    assert await wakes_at(store, NOW) == later(30)

    await fail(store, await claimed(store, now=later(30)), now=later(40))
    assert await wakes_at(store, later(40)) == later(100)

    await fail(store, await claimed(store, now=later(100)), now=later(101))
    await assert_fell_back(store, turn, now=later(101))
    assert [(run.state, run.reason) for run in await rows_of(store, runs)] == [
        ("failed", "died")
    ] * 3


async def test_a_try_that_fails_five_minutes_after_its_time_is_the_last(store: Database) -> None:
    turn = await queued_job_turn(store, TASK)
    first = await claimed(store)
    await fail(store, first, now=later(299))
    assert (await row_of(store, turns, turn)).state == "queued"
    await fail(store, await claimed(store, now=later(400)), now=later(400))
    assert (await end_of(store, turn))[:2] == ("failed", "fell_back")


@pytest.mark.parametrize(
    "reply", ["", " \n", "[SILENT]", "NOTHING", "**Nothing.**", "HEARTBEAT_OK", "|"]
)
async def test_r22_a_reply_that_says_nothing_is_a_failed_try(store: Database, reply: str) -> None:
    turn = await queued_job_turn(store, TASK)
    for start in (0, 30, 90):
        assert await answer(store, await claimed(store, now=later(start)), reply, now=later(start))
    await assert_fell_back(store, turn, now=later(90))
    assert [(run.state, run.reason) for run in await rows_of(store, runs)] == [
        ("empty", "empty")
    ] * 3


async def test_r22_a_token_is_no_answer_because_a_tool_refused_something(store: Database) -> None:
    turn = await queued_job_turn(store, TASK)
    claim = await claimed(store)
    refused = ToolResult(ok=False, text=f"{NOTHING_SET}: why", is_create=True)
    await tool_call(store, claim, refused, key="k1")
    await answer(store, claim, "NOTHING")
    assert (await row_of(store, turns, turn)).state == "queued"


async def test_a_session_that_is_not_ready_is_a_failed_try(store: Database) -> None:
    turn = await queued_job_turn(store, TASK)
    for start in (0, 30, 90):
        assert await refuse(store, Trigger.JOB, now=later(start))
    await assert_fell_back(store, turn, now=later(90))
    assert {run.reason for run in await rows_of(store, runs)} == {"host_not_ready"}


async def test_a_crash_is_a_failed_try_and_a_planned_stop_is_none(store: Database) -> None:
    turn = await queued_job_turn(store, TASK)
    for _ in range(3):
        assert await store.write(give_back, await claimed(store), now=NOW)
    for start in (0, 30):
        await claimed(store, now=later(start))
        await recover(store, now=later(start))
        assert (await row_of(store, turns, turn)).state == "queued"
    third = await claimed(store, now=later(90))
    assert third.was_interrupted
    await recover(store, now=later(90))
    await assert_fell_back(store, turn, now=later(90))


async def test_a_crash_that_lasted_long_leaves_the_stored_text(store: Database) -> None:
    turn = await queued_job_turn(store, TASK)
    await claimed(store)
    await recover(store, now=later(3600))
    assert (await end_of(store, turn))[:2] == ("failed", "fell_back")


async def test_who_writes_does_not_wait_for_a_next_try(store: Database) -> None:
    job_turn = await queued_job_turn(store)
    await fail(store, await claimed(store))
    message_turn = await queued_turn(store)
    first = await claimed(store)
    assert first.turn == message_turn
    await answer(store, first, "done", now=later(31))
    assert (await claimed(store, now=later(31))).turn == job_turn


async def test_r33_what_a_jobs_own_session_was_told_is_told_to_the_chats_too(
    store: Database,
) -> None:
    step = await sending_chunk(store, "Cancelled: #1", kind=DeliveryKind.COMMAND)
    await store.write(finish_send, step, Sent(external_id="1"), send_rules(), now=NOW)
    await queued_job_turn(store)
    claim = await claimed(store)
    assert [sight.text for sight in claim.recent] == ["Cancelled: #1"]
    await answer(store, claim, "done")
    assert [sight.text for sight in (await running_turn(store)).recent] == ["Cancelled: #1"]


# ---- check-ins ---------------------------------------------------------------------------------


@pytest.mark.parametrize("reply", ["NOTHING", "nothing.", "**NOTHING**", "Nothing 🙂"])
async def test_m16_a_check_in_with_nothing_to_say_sends_nothing(
    store: Database, reply: str
) -> None:
    beat = await queued_heartbeat(store)
    assert await answer(store, await claimed(store), reply)
    assert await end_of(store, beat) == ("silent", "nothing", "reply", "suppressed")
    assert await rows_of(store, chunks) == []
    assert await states_of(store, runs) == ["succeeded"]


async def test_m17_a_check_in_with_something_to_say_is_sent(store: Database) -> None:
    beat = await queued_heartbeat(store)
    await answer(store, await claimed(store), "NOTHING new, but your train is late")
    assert await end_of(store, beat) == ("answered", None, "reply", "pending")
    assert (await next_send(store)).chunk.body.text == "NOTHING new, but your train is late"


async def test_the_sentinel_is_an_answer_to_a_person(store: Database) -> None:
    claim = await running_turn(store)
    await answer(store, claim, "Nothing")
    assert (await next_send(store)).chunk.body.text == "Nothing"


async def test_a_check_in_that_fails_says_nothing(store: Database) -> None:
    beat = await queued_heartbeat(store)
    end = replace(HOST_FAILED, reason="context")
    claim = await claimed(store)
    await store.write(fail_turn, claim, end, NOTICE, now=NOW, begins_session=True)
    assert await end_of(store, beat) == ("failed", "context", "reply", "suppressed")
    known = await store.read(load_chat, CHAT)
    assert known is not None
    assert known.session_ref == claim.chat.session_ref


async def test_a_check_in_whose_session_is_not_ready_says_nothing(store: Database) -> None:
    beat = await queued_heartbeat(store)
    assert await refuse(store, Trigger.HEARTBEAT)
    assert await end_of(store, beat) == ("failed", "host_not_ready", "reply", "suppressed")


async def test_a_check_in_does_not_outlive_the_gateway(store: Database) -> None:
    beats = [await queued_heartbeat(store), await queued_heartbeat(store, chat=OTHER_CHAT)]
    assert await store.write(give_back, await claimed(store), now=NOW)
    assert await store.write(recover_turns, SERVED, NOTICE, now=later(3600)) == 0
    for beat in beats:
        assert await end_of(store, beat) == ("cancelled", "interrupted", "reply", "suppressed")


async def test_m20_who_writes_ends_the_check_in_that_runs(store: Database) -> None:
    beat = await queued_heartbeat(store)
    claim = await claimed(store)
    assert await store.write(cancel_heartbeat, CHAT, now=NOW) == claim.run
    assert await end_of(store, beat) == ("cancelled", "person_wrote", "reply", "suppressed")
    assert await states_of(store, runs) == ["cancelled"]
    assert not await answer(store, claim, "Your train is late")
    assert await rows_of(store, chunks) == []


async def test_m20_who_writes_ends_the_check_in_that_waits_and_no_other_turn(
    store: Database,
) -> None:
    await queued_turn(store)
    await queued_job_turn(store)
    await queued_heartbeat(store, chat=OTHER_CHAT)
    beat = await queued_heartbeat(store)
    assert await store.write(cancel_heartbeat, CHAT, now=NOW) is None
    assert await store.write(cancel_heartbeat, CHAT, now=NOW) is None
    assert await states_of(store, turns, turns.c.id != beat) == ["queued"] * 3
    assert (await row_of(store, turns, beat)).state == "cancelled"


# ---- stopping and the last resort --------------------------------------------------------------


async def test_stop_ends_a_running_job_turn_and_its_one_shot_stays_listed(store: Database) -> None:
    turn = await queued_job_turn(store)
    claim = await claimed(store)
    stopped = await store.write(stop_chat, CHAT, now=NOW)
    assert stopped.runs == (claim.run,)
    assert await end_of(store, turn) == ("cancelled", "stopped", "reply", "suppressed")
    assert [job.state for job in await store.read(list_jobs, CHAT)] == [JobState.FAILED]


async def test_stop_drops_replies_and_no_reminder_whoever_wrote_it(store: Database) -> None:
    await queued_job_turn(store)
    await answer(store, await claimed(store), "The ferns are dry.")
    await stored_delivery(store, "a reply", kind=DeliveryKind.REPLY)
    stopped = await store.write(stop_chat, CHAT, now=NOW)
    assert stopped.replies == 1
    assert await states_of(store, deliveries) == ["pending", "dropped"]


@pytest.mark.parametrize("trigger", Trigger)
async def test_a_turn_whose_failure_cannot_be_stored_is_broken_off(
    store: Database, trigger: Trigger
) -> None:
    match trigger:
        case Trigger.MESSAGE:
            turn = await queued_turn(store)
        case Trigger.JOB:
            turn = await queued_job_turn(store)
        case Trigger.HEARTBEAT:
            turn = await queued_heartbeat(store)
    claim = await claimed(store)
    assert await store.write(break_off, claim, HOST_FAILED, "sorry | that broke", now=NOW)
    assert not await store.write(break_off, claim, HOST_FAILED, "again", now=NOW)
    told = ("reply", "suppressed") if trigger is Trigger.HEARTBEAT else ("notice", "pending")
    assert await end_of(store, turn) == ("failed", "died", *told)
    if trigger is not Trigger.HEARTBEAT:
        assert (await next_send(store)).chunk.body.text == "sorry | that broke"
