"""A long history must not slow the store: every statement that runs often is served by an index."""

import re
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import replace
from datetime import time, timedelta
from typing import Any

import pytest
from sqlalchemy import Connection, UniqueConstraint, event
from sqlalchemy.engine import Engine

from gateway.domain.delivery import (
    ChunkState,
    DeliveryId,
    DeliveryKind,
    DeliveryState,
    Rejected,
    Sent,
)
from gateway.domain.heartbeat import HeartbeatRules
from gateway.domain.job import JobState, Tier
from gateway.domain.schedule import Daily
from gateway.domain.tool import ToolResult
from gateway.domain.turn import RunState, Trigger, TurnState
from gateway.store.database import Database, Transaction
from gateway.store.deliveries import release_channel
from gateway.store.ending import answer_turn, recover_turns
from gateway.store.fallback import earliest_fallback, fall_back_overdue
from gateway.store.firing import earliest_slot, fire_late_prompts
from gateway.store.heartbeats import earliest_heartbeat, note_activity, queue_heartbeats
from gateway.store.history import delivery_of, fired_by, job_history, last_fired
from gateway.store.job_changes import (
    JobChange,
    allow_job,
    pause_job,
    resume_job,
    snooze,
    update_job,
)
from gateway.store.jobs import Created, cancel_job, list_jobs
from gateway.store.listings import is_chat_settled, load_counts
from gateway.store.messages import admit_message, edit_message, is_held
from gateway.store.missed import realign
from gateway.store.notices import note_too_old, was_answered_lately
from gateway.store.schema import chunks, deliveries, jobs, messages, metadata, runs, turns
from gateway.store.sending import finish_send, open_delivery_chats, recover_sends
from gateway.store.stopping import cancel_heartbeat, stop_chat
from gateway.store.turns import next_turn, queued_chats
from gateway.store.upkeep import purge
from tests.factories import (
    CHAT,
    NOTICE,
    NOW,
    SERVED,
    SUCCEEDED,
    active_job,
    created_job,
    cut,
    fire,
    fire_rules,
    later,
    make_edit,
    make_message,
    new_job,
    next_send,
    queued_turn,
    running_turn,
    send_rules,
    stored_delivery,
    tool_call,
)

HISTORY = ("messages", "turns", "runs", "jobs", "deliveries", "chunks", "events", "tool_calls")
PAST = 3000
HEARTBEATS = HeartbeatRules(
    interval=timedelta(hours=1), quiet_hours=(time(1), time(2)), daily_cap=3, timezone="UTC"
)


class Watch:
    """Notes every statement that the store runs."""

    def __init__(self) -> None:
        self.statements: dict[str, Sequence[Any]] = {}

    def note(
        self,
        connection: Connection,
        cursor: object,
        statement: str,
        parameters: Sequence[Any],
        context: object,
        executemany: bool,
    ) -> None:
        if statement.startswith(("SELECT", "UPDATE", "DELETE")) and not executemany:
            self.statements[statement] = parameters


@pytest.fixture
async def watch(store: Database) -> AsyncIterator[Watch]:
    watch = Watch()
    event.listen(Engine, "before_cursor_execute", watch.note)
    yield watch
    event.remove(Engine, "before_cursor_execute", watch.note)


def write_history(tx: Transaction) -> None:
    """Much that ended, all of it in one chat."""
    at = 1000
    numbers = range(1, PAST + 1)
    key = str(CHAT)
    insert: Callable[..., object] = tx.connection.execute
    insert(
        jobs.insert(),
        [
            {
                "chat_key": key,
                "state": JobState.DONE,
                "action": "message",
                "text": "x",
                "schedule": "{}",
                "timezone": "UTC",
                "missed": "skip",
                "tier": "read_only",
                "asked_tier": "read_only",
                "created_at": at,
                "ended_at": at,
            }
            for _ in numbers
        ],
    )
    insert(
        deliveries.insert(),
        [
            {
                "chat_key": key,
                "kind": DeliveryKind.REPLY,
                "state": DeliveryState.SENT,
                "text": "x",
                "created_at": at,
                "settled_at": at,
            }
            for _ in numbers
        ],
    )
    insert(
        chunks.insert(),
        [{"delivery_id": n, "number": 1, "state": ChunkState.SENT, "body": "{}"} for n in numbers],
    )
    insert(
        turns.insert(),
        [
            {
                "chat_key": key,
                "trigger": Trigger.MESSAGE,
                "source_key": f"past:{n}",
                "state": TurnState.ANSWERED,
                "delivery_id": n,
                "created_at": at,
                "ended_at": at,
            }
            for n in numbers
        ],
    )
    insert(
        runs.insert(),
        [
            {
                "turn_id": n,
                "attempt": 1,
                "owner": "x",
                "state": RunState.SUCCEEDED,
                "started_at": at,
            }
            for n in numbers
        ],
    )
    insert(
        messages.insert(),
        [
            {
                "chat_key": key,
                "channel": "telegram",
                "account": "7000",
                "address": "42",
                "kind": "message",
                "external_id": f"past{n}",
                "sender_id": "42",
                "sender_name": "Ada",
                "text": "x",
                "turn_id": n,
                "sent_at": at,
                "received_at": at,
            }
            for n in numbers
        ],
    )


async def change_jobs(store: Database) -> None:
    """Every change of a job, and every look at what became of it."""
    daily = replace(new_job("pills"), schedule=Daily(time=time(9)), asked_tier=Tier.MUTATE)
    created = await created_job(store, daily, now=later(60))
    assert isinstance(created, Created)
    job = created.job.id
    change = JobChange(schedule=daily.schedule, next_slot_at=later(9999))
    await store.write(update_job, CHAT, job, change, now=later(60))
    await store.write(allow_job, CHAT, job, now=later(60))
    await store.write(pause_job, CHAT, job, now=later(60))
    await store.write(update_job, CHAT, job, change, now=later(60))
    await store.write(resume_job, CHAT, job, now=later(60))
    await store.read(list_jobs, CHAT)
    fired = await store.read(last_fired, CHAT, 1 + PAST)
    assert fired is not None
    for seconds in (600, 900):
        await store.write(snooze, fired, later(seconds), now=later(60))
    await store.read(job_history, CHAT, 1 + PAST, limit=10)
    await store.read(delivery_of, CHAT, "1")
    await store.read(fired_by, CHAT, DeliveryId(1))


async def live_a_day(store: Database) -> None:
    """Every transition and every look that a running gateway makes again and again."""
    rules = send_rules()
    await queued_turn(store)
    await store.write(write_history)
    claim = await running_turn(store)
    await tool_call(store, claim, ToolResult(ok=True, text="x", line="#1"), key="k")
    await store.write(answer_turn, claim, SUCCEEDED, "1|2", cut, now=NOW)
    await stored_delivery(store, "3")
    for outcome in (Rejected(reason="x"), Sent(external_id="1"), Sent(external_id="2")):
        step = await next_send(store)
        await store.write(finish_send, step, outcome, rules, now=NOW)
    message = make_message("held", hold=1.5)
    await store.write(admit_message, message, now=NOW)
    await store.read(is_held, CHAT, now=NOW)
    await store.write(edit_message, make_edit("edited", message))
    jobs_made = [await active_job(store, text, at=later(60)) for text in ("tea", "bread")]
    await store.read(earliest_slot, SERVED, after=NOW)
    await store.write(realign, SERVED, now=NOW)
    await store.write(fire_late_prompts, fire_rules(), most=3, now=NOW)
    await store.write(fall_back_overdue, SERVED, lambda chat: cut, now=NOW)
    await store.read(earliest_fallback, SERVED)
    await store.write(note_activity, CHAT, interval=timedelta(0), now=NOW)
    await store.write(queue_heartbeats, SERVED, fire_rules().admits, HEARTBEATS, now=NOW)
    await store.read(earliest_heartbeat, SERVED, after=NOW)
    await fire(store, later(60))
    await change_jobs(store)
    await store.write(cancel_job, CHAT, jobs_made[0].id, now=later(61))
    step = await next_send(store, now=later(61))
    await store.write(recover_sends, SERVED, rules, now=later(61))
    await running_turn(store)
    await store.write(recover_turns, SERVED, NOTICE, now=later(61))
    await running_turn(store)
    await stored_delivery(store, "next", kind=DeliveryKind.NOTICE)
    await store.write(note_too_old, CHAT, cut, timezone="UTC", now=later(61))
    since = NOW - timedelta(seconds=10)
    await store.read(was_answered_lately, CHAT, "unsupported", since=since)
    await store.write(release_channel, CHAT.channel)
    await store.read(open_delivery_chats, SERVED)
    await store.read(next_turn, CHAT, now=NOW)
    await store.read(queued_chats, SERVED)
    await store.read(is_chat_settled, CHAT)
    await store.read(load_counts, now=NOW)
    await store.write(cancel_heartbeat, CHAT, now=later(62))
    await store.write(stop_chat, CHAT, now=later(62))
    await store.write(purge, before=NOW)


async def plans_of(store: Database, watch: Watch) -> dict[str, list[str]]:
    """How SQLite goes about each statement."""
    statements = dict(watch.statements)

    def explain(connection: Connection) -> dict[str, list[str]]:
        return {
            statement: [
                row[3]
                for row in connection.exec_driver_sql(
                    f"EXPLAIN QUERY PLAN {statement}", tuple(parameters)
                )
            ]
            for statement, parameters in statements.items()
        }

    return await store.read(explain)


def is_scan(step: str) -> bool:
    """Whether a step reads a table, or a whole index that grows with the history."""
    scanned = re.match(r"SCAN (\w+)(?: USING (?:COVERING )?INDEX (\w+))?", step)
    if scanned is None or scanned[1] not in HISTORY:
        return False
    (table,) = (table for table in metadata.tables.values() if table.name == scanned[1])
    partial = {
        index.name
        for index in table.indexes
        if index.dialect_options["sqlite"]["where"] is not None
    }
    return scanned[2] not in partial


async def test_no_statement_reads_the_history(store: Database, watch: Watch) -> None:
    await live_a_day(store)
    plans = await plans_of(store, watch)
    assert len(plans) > 60
    scans = {
        statement: [step for step in plan if is_scan(step)]
        for statement, plan in plans.items()
        if any(is_scan(step) for step in plan)
    }
    assert scans == {}


@pytest.mark.parametrize(
    ("words", "index"),
    [
        ("SELECT jobs.id, jobs.chat_key, .* FROM jobs JOIN chats .*next_slot_at <=", "ix_jobs_due"),
        ("SELECT jobs.next_slot_at .*JOIN chats .*LIMIT", "ix_jobs_due"),
        (r'SELECT chats.chat_key, .*turns."trigger", turns.text, .*LIMIT', "ix_turns_open"),
        (r"SELECT turns.id, turns.state .*trigger. = ", "ix_turns_open"),
        (r"SELECT turns.id, turns.chat_key .*created_at <= ", "ix_turns_open"),
        (r"SELECT min\(turns.created_at\)", "ix_turns_open"),
        ("SELECT chats.chat_key, .*next_heartbeat_at <= ", "ix_chats_heartbeat"),
        ("SELECT chats.next_heartbeat_at .*LIMIT", "ix_chats_heartbeat"),
        (r"SELECT turns.id, turns.not_before .*NOT \(EXISTS", "ix_turns_open"),
        (r"SELECT chats.seen_delivery_id, .*min\(deliveries.id\)", "ix_deliveries_open"),
        (r"SELECT chunks.id, .*anon_1", "ix_deliveries_open"),
        (r"SELECT deliveries.id .*kind = .*NOT \(EXISTS", "ix_deliveries_open"),
        ("SELECT deliveries.id, deliveries.text .*owes_notice", "ix_deliveries_owing"),
        ("UPDATE messages SET text=.*EXISTS", "sqlite_autoindex_messages_1"),
        ("SELECT .*FROM messages .*turn_id = ", "ix_messages_turn"),
        ("SELECT .* AS run_id FROM turns .*'running'", "ux_turns_running"),
        ("SELECT .*chats.address FROM chunks", "ix_chunks_unsure"),
        ("SELECT chunks.delivery_id .*external_id = ", "ix_chunks_external"),
        ("SELECT jobs.id, .*snoozed_from = ", "ix_jobs_snoozed"),
        (r"SELECT jobs.id, .* turns.slot_at .*turns.job_id = \?", "ix_turns_job"),
        (r"SELECT jobs.id, .* turns.slot_at .*turns.delivery_id = \?", "ix_turns_delivery"),
        (r"SELECT turns.slot_at, turns.state, .*turns.job_id = ", "ix_turns_job"),
    ],
)
async def test_what_runs_most_is_served_by_its_own_index(
    store: Database, watch: Watch, words: str, index: str
) -> None:
    await live_a_day(store)
    plans = await plans_of(store, watch)
    found = [
        plan for statement, plan in plans.items() if re.match(words, " ".join(statement.split()))
    ]
    assert found, sorted(plans)
    for plan in found:
        assert any(index in step for step in plan), plan


async def test_a_message_is_told_from_a_repeat_by_an_index(store: Database) -> None:
    unique = [
        [column.name for column in constraint.columns]
        for constraint in messages.constraints
        if isinstance(constraint, UniqueConstraint)
    ]
    assert unique == [["channel", "account", "address", "kind", "external_id"]]
    (plan,) = await store.read(
        lambda connection: connection.exec_driver_sql(
            "EXPLAIN QUERY PLAN SELECT id FROM messages WHERE channel = 'a' AND account = 'b' "
            "AND address = 'c' AND kind = 'd' AND external_id = 'e'"
        ).fetchall()
    )
    assert "sqlite_autoindex_messages_1" in plan[3]
