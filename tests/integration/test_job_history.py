"""Which slots of a job went out, by which message, and what became of each."""

from dataclasses import replace
from datetime import datetime, time
from zoneinfo import ZoneInfo

import pytest
from sqlalchemy import text

from gateway.domain.delivery import DeliveryId, DeliveryKind, DeliveryState, Rejected, Sent
from gateway.domain.job import Job, JobAction
from gateway.domain.schedule import Daily
from gateway.domain.turn import RunState, TurnId, TurnState
from gateway.store.database import Database, Transaction
from gateway.store.deliveries import NewDelivery, store_delivery
from gateway.store.ending import answer_turn, break_off
from gateway.store.fallback import fall_back
from gateway.store.history import SlotRecord, delivery_of, fired_by, job_history, last_fired
from gateway.store.jobs import Created, cancel_job
from gateway.store.schema import deliveries, jobs, turns
from gateway.store.sending import finish_send
from tests.factories import (
    CHAT,
    HOST_FAILED,
    NOW,
    OTHER_CHAT,
    SUCCEEDED,
    Door,
    active_job,
    claimed,
    created_job,
    cut,
    fire,
    fired_job,
    later,
    new_job,
    next_send,
    queued_job_turn,
    rows_of,
    send_rules,
    stored_delivery,
)

BERLIN = ZoneInfo("Europe/Berlin")
DAY = 86_400


async def daily(store: Database, *, action: JobAction = JobAction.MESSAGE) -> Job:
    new = replace(new_job("pills"), schedule=Daily(time=time(10, 1)), action=action)
    created = await created_job(store, new)
    assert isinstance(created, Created)
    return created.job


async def send(
    store: Database, *, external_id: str | None = "99", seconds: float = 60
) -> DeliveryId:
    step = await next_send(store, now=later(seconds))
    outcome = Rejected(reason="x") if external_id is None else Sent(external_id=external_id)
    await store.write(finish_send, step, outcome, send_rules(), now=later(seconds))
    return step.chunk.delivery_id


async def history(store: Database, job: Job, *, limit: int = 10) -> list[str]:
    records = await store.read(job_history, CHAT, job.id, limit=limit)
    return [record.told(BERLIN, now=NOW) for record in records]


# ---- what went out ---------------------------------------------------------------------------


async def test_the_last_slot_that_went_out_is_the_newest(store: Database) -> None:
    job = await daily(store)
    assert await store.read(last_fired, CHAT, job.id) is None
    for day in range(2):
        await fire(store, later(60 + day * DAY))
        await send(store, seconds=60 + day * DAY)
    found = await store.read(last_fired, CHAT, job.id)
    assert found is not None
    newest = (await rows_of(store, turns))[-1]
    assert (found.turn, found.slot_at) == (newest.id, later(60 + DAY))
    assert (found.job.id, found.job.next_slot_at) == (job.id, later(60 + 2 * DAY))


@pytest.mark.parametrize("external_id", ["99", None])
async def test_what_may_not_have_arrived_can_be_put_off_too(
    store: Database, external_id: str | None
) -> None:
    job = await fired_job(store)
    assert await store.read(last_fired, CHAT, job.id) is not None
    await send(store, external_id=external_id)
    assert await store.read(last_fired, CHAT, job.id) is not None


async def test_what_was_not_given_did_not_go_out(store: Database) -> None:
    held = await active_job(store)
    door = Door()
    door.out = {CHAT}
    await fire(store, later(60), door=door)
    assert await store.read(last_fired, CHAT, held.id) is None
    dropped = await fired_job(store, "tea", at=later(120))
    await store.write(cancel_job, CHAT, dropped.id, now=later(121))
    assert await store.read(last_fired, CHAT, dropped.id) is None


async def test_r21_a_slot_is_found_in_its_own_chat_alone(store: Database) -> None:
    job = await fired_job(store)
    delivery = await send(store, external_id="99")
    assert await store.read(last_fired, OTHER_CHAT, job.id) is None
    assert await store.read(fired_by, OTHER_CHAT, delivery) == ()
    assert await store.read(delivery_of, OTHER_CHAT, "99") is None
    assert await store.read(job_history, OTHER_CHAT, job.id, limit=9) == ()


async def test_a_message_leads_to_the_slots_that_it_carried(store: Database) -> None:
    made = [await active_job(store, name, at=later(60)) for name in ("tea", "bread")]
    await fire(store, later(60))
    sent = await send(store, external_id="500")
    found = await store.read(delivery_of, CHAT, "500")
    assert found == sent
    carried = await store.read(fired_by, CHAT, sent)
    assert [(one.job.id, one.slot_at) for one in carried] == [(job.id, later(60)) for job in made]


async def test_a_message_that_is_no_reminder_carried_none(store: Database) -> None:
    delivery = await stored_delivery(store, "hello")
    await send(store, external_id="7")
    assert await store.read(delivery_of, CHAT, "7") == delivery
    assert await store.read(fired_by, CHAT, delivery) == ()
    assert await store.read(delivery_of, CHAT, "8") is None
    assert await store.read(fired_by, CHAT, DeliveryId(2**63 - 1)) == ()


async def test_a_notice_about_a_slot_is_not_the_slot(store: Database) -> None:
    await queued_job_turn(store, "water the plants")
    claim = await claimed(store)
    assert await store.write(break_off, claim, HOST_FAILED, "That went wrong.", now=later(5))
    (job,) = await rows_of(store, jobs)
    (turn,) = await rows_of(store, turns)
    assert await store.read(last_fired, CHAT, job.id) is None
    assert await store.read(fired_by, CHAT, DeliveryId(turn.delivery_id)) == ()


async def test_an_id_that_was_given_out_again_is_that_of_the_newest_message(
    store: Database,
) -> None:
    await stored_delivery(store, "old")
    await send(store, external_id="7")
    new = await stored_delivery(store, "new")
    await send(store, external_id="7")
    assert await store.read(delivery_of, CHAT, "7") == new


async def test_a_message_whose_text_was_replaced_still_leads_to_its_slot(store: Database) -> None:
    job = await fired_job(store)
    sent = await send(store, external_id="500")

    def answer(tx: Transaction) -> None:
        pieces = cut("Done", is_markdown=False)
        edit = NewDelivery(
            chat=CHAT, kind=DeliveryKind.COMMAND, text="Done", chunks=pieces, edits="500"
        )
        store_delivery(tx, edit, now=later(61))

    await store.write(answer)
    await send(store, external_id="500", seconds=61)
    assert await store.read(delivery_of, CHAT, "500") == sent
    (carried,) = await store.read(fired_by, CHAT, sent)
    assert carried.job.id == job.id


async def test_r26_a_damaged_job_is_found_by_its_message(store: Database) -> None:
    job = await fired_job(store, "tea")
    sent = await send(store)

    def spoil(tx: Transaction) -> None:
        values = {"schedule": "abc", "timezone": "Europe/Nowhere"}
        tx.connection.execute(jobs.update().values(**values))
        tx.connection.execute(text("UPDATE turns SET slot_at = 'soon'"))

    await store.write(spoil)
    (carried,) = await store.read(fired_by, CHAT, sent)
    assert (carried.job.id, carried.job.text) == (job.id, "tea (damaged)")
    last = await store.read(last_fired, CHAT, job.id)
    assert last is not None
    assert len(await history(store, job)) == 1


# ---- what became of each ---------------------------------------------------------------------


async def test_r18_the_history_has_run_and_delivery_side_by_side(store: Database) -> None:
    turn = await queued_job_turn(store, "water the plants")
    (row,) = await rows_of(store, jobs)
    job_id = row.id
    claim = await claimed(store)
    assert await store.write(answer_turn, claim, SUCCEEDED, "all is watered", cut, now=later(5))
    (record,) = await store.read(job_history, CHAT, job_id, limit=10)
    assert record == SlotRecord(
        slot_at=NOW,
        turn_state=TurnState.ANSWERED,
        reason=None,
        run_state=RunState.SUCCEEDED,
        delivery_state=DeliveryState.PENDING,
    )
    await send(store)
    (record,) = await store.read(job_history, CHAT, job_id, limit=10)
    assert record.told(BERLIN, now=NOW) == "Mon 2 Mar 10:00: run succeeded, sent"
    assert TurnId(turn) == claim.turn


async def test_the_history_says_when_the_stored_text_stood_in(store: Database) -> None:
    turn = await queued_job_turn(store, "water the plants")
    await store.write(fall_back, turn, TurnState.QUEUED, cut, now=later(301))
    await send(store, seconds=301)
    (row,) = await rows_of(store, jobs)
    (record,) = await store.read(job_history, CHAT, row.id, limit=10)
    assert (record.turn_state, record.reason) == (TurnState.FAILED, "fell_back")
    assert record.told(BERLIN, now=NOW) == "Mon 2 Mar 10:00: stored text sent"


async def test_the_newest_slots_come_first_and_no_more_than_asked(store: Database) -> None:
    job = await daily(store)
    for day in range(3):
        await fire(store, later(60 + day * DAY))
        await send(store, seconds=60 + day * DAY, external_id=None if day == 1 else "9")
    assert await history(store, job, limit=2) == [
        "Wed 4 Mar 10:01: sent",
        "Tue 3 Mar 10:01: not sent",
    ]


async def test_a_slot_that_was_not_given_says_why(store: Database) -> None:
    job = await active_job(store)
    door = Door()
    door.out = {CHAT}
    await fire(store, later(60), door=door)
    assert await history(store, job) == ["Mon 2 Mar 10:01: not given: this chat was not allowed"]


async def test_a_job_that_did_not_fire_has_no_history(store: Database) -> None:
    job = await active_job(store)
    assert await history(store, job) == []
    for number in (0, 99, 2**70):
        assert await store.read(job_history, CHAT, number, limit=10) == ()
        assert await store.read(last_fired, CHAT, number) is None


@pytest.mark.parametrize(
    ("turn", "reason", "run", "delivery", "words"),
    [
        (TurnState.QUEUED, None, None, None, "queued"),
        (TurnState.QUEUED, None, RunState.FAILED, None, "run failed, queued"),
        (TurnState.RUNNING, None, RunState.RUNNING, None, "running"),
        (TurnState.ANSWERED, None, None, DeliveryState.SENT, "sent"),
        (
            TurnState.ANSWERED,
            None,
            RunState.SUCCEEDED,
            DeliveryState.PARTIAL,
            "run succeeded, sent in part",
        ),
        (
            TurnState.FAILED,
            "fell_back",
            RunState.TIMED_OUT,
            DeliveryState.SENT,
            "run timed out, stored text sent",
        ),
        (
            TurnState.CANCELLED,
            "missed",
            None,
            DeliveryState.SUPPRESSED,
            "not given: it was too late",
        ),
        (TurnState.CANCELLED, "chat_unreachable", None, None, "not given: I could not write here"),
        (TurnState.CANCELLED, "cancelled", RunState.CANCELLED, None, "cancelled"),
        (TurnState.CANCELLED, None, None, None, "cancelled"),
        (TurnState.CANCELLED, "put_out", None, None, "not given: put out"),
        (TurnState.FAILED, "damaged", None, None, "failed"),
        (TurnState.FAILED, "damaged", None, DeliveryState.FAILED, "not sent"),
        (TurnState.ANSWERED, None, None, DeliveryState.PENDING, "pending"),
        (TurnState.ANSWERED, None, None, DeliveryState.SENDING, "on its way"),
        (TurnState.ANSWERED, None, None, DeliveryState.DROPPED, "taken back"),
        (TurnState.ANSWERED, None, None, DeliveryState.SUPPRESSED, "nothing to send"),
    ],
)
def test_what_became_of_a_slot_in_words(
    turn: TurnState,
    reason: str | None,
    run: RunState | None,
    delivery: DeliveryState | None,
    words: str,
) -> None:
    record = SlotRecord(
        slot_at=later(60), turn_state=turn, reason=reason, run_state=run, delivery_state=delivery
    )
    assert record.told(BERLIN, now=NOW) == f"Mon 2 Mar 10:01: {words}"


def test_a_slot_of_another_year_says_so() -> None:
    record = SlotRecord(
        slot_at=datetime.fromisoformat("2025-12-31T08:00+01:00"),
        turn_state=TurnState.ANSWERED,
        reason=None,
        run_state=None,
        delivery_state=DeliveryState.SENT,
    )
    assert record.told(BERLIN, now=NOW) == "Wed 31 Dec 2025 08:00: sent"


async def test_other_deliveries_are_no_slots(store: Database) -> None:
    job = await fired_job(store)
    await stored_delivery(store, "hello")
    assert len(await rows_of(store, deliveries)) == 2
    assert len(await history(store, job)) == 1
