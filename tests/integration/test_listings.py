"""What scripts read as JSON: exactly these keys, newest first."""

import json
from dataclasses import replace
from datetime import time, timedelta

import pytest

from gateway.domain.delivery import DeliveryKind, Rejected, Sent, Unknown
from gateway.domain.schedule import Daily, Every, Schedule, Weekly, parse_cron, to_millis
from gateway.store.database import Database, Transaction
from gateway.store.ending import fail_turn
from gateway.store.jobs import cancel_job
from gateway.store.listings import (
    Counts,
    chat_deliveries,
    delivery_records,
    is_chat_settled,
    load_counts,
    reminder_records,
    turn_records,
)
from gateway.store.schema import jobs
from gateway.store.sending import finish_send
from tests.factories import (
    CHAT,
    HOST_FAILED,
    NOTICE,
    NOW,
    OTHER_CHAT,
    active_job,
    answered_turn,
    created_job,
    fired_job,
    later,
    new_job,
    next_send,
    queued_turn,
    running_turn,
    send_rules,
    sending_chunk,
    stored_delivery,
)

OK = Sent(external_id="99")


async def send(store: Database, outcome: Sent | Rejected | Unknown) -> None:
    step = await next_send(store, now=later(60))
    await store.write(finish_send, step, outcome, send_rules(), now=later(60))


async def test_nothing_stored_is_an_empty_list(store: Database) -> None:
    assert await store.read(reminder_records, limit=50) == []
    assert await store.read(turn_records, limit=50) == []
    assert await store.read(delivery_records, limit=50) == []
    assert await store.read(chat_deliveries, CHAT, limit=10) == ()


async def test_a_reminder_as_scripts_read_it(store: Database) -> None:
    job = await active_job(store, "call mum", at=later(60))
    (record,) = await store.read(reminder_records, limit=50)
    assert record == {
        "id": job.id,
        "chat_key": "telegram:42",
        "state": "active",
        "action": "message",
        "text": "call mum",
        "schedule": {"kind": "at", "at": to_millis(later(60))},
        "timezone": "Europe/Berlin",
        "next_slot_at": to_millis(later(60)),
        "tier": "read_only",
        "last_slot_at": None,
        "last_run_state": None,
        "last_delivery_state": None,
    }


async def test_a_fired_reminder_says_what_became_of_it(store: Database) -> None:
    await fired_job(store)
    (waiting,) = await store.read(reminder_records, limit=50)
    assert (waiting["next_slot_at"], waiting["last_delivery_state"]) == (None, "pending")
    await send(store, OK)
    (done,) = await store.read(reminder_records, limit=50)
    assert (done["state"], done["last_delivery_state"]) == ("done", "sent")
    assert (done["last_slot_at"], done["last_run_state"]) == (to_millis(later(60)), None)


async def test_reminders_of_all_states_newest_first_and_no_more_than_asked(
    store: Database,
) -> None:
    numbers = [(await active_job(store, f"{n}", at=later(900 - n))).id for n in range(4)]
    await store.write(cancel_job, CHAT, numbers[3], now=NOW)

    def damage(tx: Transaction) -> None:
        tx.connection.execute(jobs.update().where(jobs.c.id == numbers[2]).values(schedule="abc"))

    await store.write(damage)
    records = await store.read(reminder_records, limit=3)
    assert [(record["id"], record["state"]) for record in records] == [
        (numbers[3], "cancelled"),
        (numbers[2], "active"),
        (numbers[1], "active"),
    ]
    assert records[1]["schedule"] is None


SERIES: list[tuple[Schedule, dict[str, object]]] = [
    (
        Every(period=timedelta(hours=2), anchor=NOW, max_runs=3),
        {"kind": "every", "seconds": 7200, "anchor": to_millis(NOW), "max_runs": 3},
    ),
    (
        Daily(time=time(8), until=later(10**6)),
        {"kind": "daily", "time": "08:00", "until": to_millis(later(10**6))},
    ),
    (
        Weekly(days=frozenset({0, 4}), time=time(9, 30)),
        {"kind": "weekly", "days": ["mon", "fri"], "time": "09:30"},
    ),
    (parse_cron("0 9 * * MON"), {"kind": "cron", "expression": "0 9 * * mon"}),
]


@pytest.mark.parametrize(("schedule", "stored"), SERIES)
async def test_the_schedule_of_a_series_as_scripts_read_it(
    store: Database, schedule: Schedule, stored: dict[str, object]
) -> None:
    await created_job(store, replace(new_job(), schedule=schedule))
    (record,) = await store.read(reminder_records, limit=50)
    assert record["schedule"] == stored


@pytest.mark.parametrize(
    "stored", ["", "[]", "[" * 100_000, '{"kind":"at","at":1e999}', '{"kind":"at"}', b"\xff\x00"]
)
async def test_r26_a_damaged_reminder_is_shown_without_its_schedule(
    store: Database, stored: str | bytes
) -> None:
    await active_job(store, "tea")

    def damage(tx: Transaction) -> None:
        update = "UPDATE jobs SET schedule = ?, text = ?"
        tx.connection.exec_driver_sql(update, (stored, b"\xff"))

    await store.write(damage)
    (record,) = await store.read(reminder_records, limit=50)
    assert (record["schedule"], record["text"]) == (None, "")
    assert json.dumps(record, allow_nan=False)


async def test_turns_as_scripts_read_them(store: Database) -> None:
    claim = await running_turn(store)
    await store.write(fail_turn, claim, HOST_FAILED, NOTICE, now=later(5))
    queued = await queued_turn(store)
    newest, oldest = await store.read(turn_records, limit=50)
    assert (newest["id"], newest["state"], newest["runs"]) == (queued, "queued", [])
    assert oldest == {
        "id": claim.turn,
        "chat_key": "telegram:42",
        "trigger": "message",
        "job_id": None,
        "slot_at": None,
        "state": "failed",
        "reason": "died",
        "delivery_id": 1,
        "delivery_state": "pending",
        "runs": [
            {
                "id": claim.run,
                "state": "failed",
                "reason": "died",
                "error": "exit 1",
                "model": None,
                "started_at": to_millis(NOW),
                "ended_at": to_millis(later(5)),
            }
        ],
    }
    assert len(await store.read(turn_records, limit=1)) == 1


async def test_deliveries_as_scripts_read_them(store: Database) -> None:
    job = await fired_job(store, "1|2")
    await send(store, OK)
    await send(store, Unknown(reason="500", answered=True))
    turn = await answered_turn(store, "hello")
    newest, oldest = await store.read(delivery_records, limit=50)
    assert (newest["turn_ids"], newest["job_ids"], newest["kind"]) == ([turn], [], "reply")
    (of_job,) = [t for t in await store.read(turn_records, limit=9) if t["job_id"] == job.id]
    assert oldest == {
        "id": 1,
        "chat_key": "telegram:42",
        "kind": "reminder",
        "state": "pending",
        "reason": "500",
        "attempts": 2,
        "turn_ids": [of_job["id"]],
        "job_ids": [job.id],
        "created_at": to_millis(later(60)),
        "settled_at": None,
        "chunks": [
            {
                "number": 1,
                "state": "sent",
                "external_id": "99",
                "sent_at": to_millis(later(60)),
            },
            {"number": 2, "state": "unknown", "external_id": None, "sent_at": None},
        ],
    }


async def test_a_chat_sees_its_own_deliveries_newest_first(store: Database) -> None:
    await stored_delivery(store, "one")
    await stored_delivery(store, "two", kind=DeliveryKind.COMMAND)
    await stored_delivery(store, "three", chat=OTHER_CHAT)
    notes = await store.read(chat_deliveries, CHAT, limit=10)
    assert [(note.kind, note.text) for note in notes] == [("command", "two"), ("reply", "one")]
    assert len(await store.read(chat_deliveries, CHAT, limit=1)) == 1


async def test_counts_of_an_empty_store_are_nought(store: Database) -> None:
    assert await store.read(load_counts, now=NOW) == Counts(
        queued=0,
        running=0,
        active=0,
        paused=0,
        failed_jobs=0,
        overdue=0,
        next_slot_at=None,
        pending=0,
        unknown=0,
        failed_deliveries=0,
    )


async def test_everything_is_counted_once(store: Database) -> None:
    await fired_job(store, "refused")
    await send(store, Rejected(reason="chat not found"))
    await stored_delivery(store, "unknown")
    await send(store, Unknown(reason="500", answered=True))
    await running_turn(store)
    await queued_turn(store)
    await queued_turn(store, chat=OTHER_CHAT)
    await sending_chunk(store, "on the wire", chat=OTHER_CHAT)
    await active_job(store, "overdue", at=later(70))
    await active_job(store, "later", at=later(900))
    paused = await active_job(store, "paused", at=later(60))

    def pause(tx: Transaction) -> None:
        tx.connection.execute(jobs.update().where(jobs.c.id == paused.id).values(state="paused"))

    await store.write(pause)
    assert await store.read(load_counts, now=later(80)) == Counts(
        queued=2,
        running=1,
        active=2,
        paused=1,
        failed_jobs=1,
        overdue=1,
        next_slot_at=to_millis(later(70)),
        pending=2,
        unknown=1,
        failed_deliveries=1,
    )


async def test_a_chat_is_settled_when_nothing_of_it_is_open(store: Database) -> None:
    assert await store.read(is_chat_settled, CHAT)
    await queued_turn(store, chat=OTHER_CHAT)
    assert await store.read(is_chat_settled, CHAT)
    await answered_turn(store)
    assert not await store.read(is_chat_settled, CHAT)
    await send(store, OK)
    assert await store.read(is_chat_settled, CHAT)
    await queued_turn(store)
    assert not await store.read(is_chat_settled, CHAT)
