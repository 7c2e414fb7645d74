"""Turns on real host processes: what a process does to a turn, and what tools did in it."""

import json
from pathlib import Path
from typing import Any

import psutil
import pytest

from gateway.domain.schedule import to_millis
from gateway.domain.turn import RunState, TurnState
from gateway.engine import texts
from gateway.hosts.base import Deadlines, FailureKind, HostKind
from gateway.hosts.ledger import ProcessLedger
from gateway.hosts.pi import RpcHost
from gateway.store.database import Database
from gateway.store.schema import deliveries, jobs, runs, turns
from tests.factories import CHAT, queued_job_turn, rows_of, states_of
from tests.fakes.clock import ManualClock
from tests.fakes.fake_host import fake_launch
from tests.fakes.rig import running_rig
from tests.fakes.sessions import eventually

SECRET = "529 overloaded_error req_011CSabc https://api.example/v1 billing@example.com"


def process_host(
    folder: Path, script: dict[str, object], deadlines: Deadlines | None = None
) -> RpcHost:
    """The real driver on a scripted process, which notes in `record` what happens to it."""
    script = script | {"record": str(folder / "record")}
    ledger = ProcessLedger(folder / "processes")
    return RpcHost(HostKind.OFFLINE, fake_launch(script), ledger=ledger, deadlines=deadlines)


def recorded(folder: Path, event: str) -> list[dict[str, Any]]:
    path = folder / "record"
    lines = path.read_text().splitlines() if path.exists() else []
    return [entry for entry in map(json.loads, lines) if entry["event"] == event]


async def test_a_session_that_died_idle_is_replaced_without_a_word(
    store: Database, clock: ManualClock, tmp_path: Path
) -> None:
    async with running_rig(store, clock, tmp_path, host=process_host(tmp_path, {})) as rig:
        await rig.receive("one")
        await rig.until_sent("echo: one")
        (start,) = recorded(tmp_path, "start")
        psutil.Process(start["pid"]).kill()
        await eventually(lambda: rig.pool.stats().live == 0)
        await rig.receive("two")
        await rig.until_sent("echo: one", "echo: two")

    assert await states_of(store, runs) == [RunState.SUCCEEDED] * 2


async def test_m01_a_host_that_goes_silent_is_replaced(
    store: Database, clock: ManualClock, tmp_path: Path
) -> None:
    script: dict[str, object] = {
        "rules": [{"match": "stall", "steps": [{"do": "hang"}]}],
        "ignore": ["abort", "term", "eof"],
    }
    deadlines = Deadlines(silence=0.3, abort=0.1, terminate=0.1)
    host = process_host(tmp_path, script, deadlines)
    async with running_rig(store, clock, tmp_path, host=host) as rig:
        await rig.receive("stall")
        await eventually(lambda: len(recorded(tmp_path, "prompt")) == 1)
        await rig.receive("two")
        await rig.receive("three")
        await rig.until(turns, ["failed", "answered"])
        await rig.until(deliveries, ["sent", "sent"])

    first, second = rig.channel.texts()
    assert first.startswith("I heard nothing for too long")
    assert second == "echo: three"
    assert await states_of(store, runs) == [RunState.TIMED_OUT, RunState.SUCCEEDED]
    assert len(recorded(tmp_path, "start")) == 2


@pytest.mark.parametrize(
    "steps",
    [
        [{"do": "delta", "text": "Well, "}, {"do": "exit", "status": 1}],
        [{"do": "delta", "text": "Well, "}, {"do": "exit", "status": 0}],
        [{"do": "tool", "name": "look"}, {"do": "kill"}],
        [{"do": "close_output"}],
    ],
)
async def test_m03_a_host_that_dies_in_a_turn_is_told_once(
    steps: list[object], store: Database, clock: ManualClock, tmp_path: Path
) -> None:
    script: dict[str, object] = {"rules": [{"match": "die", "steps": steps}]}
    async with running_rig(store, clock, tmp_path, host=process_host(tmp_path, script)) as rig:
        await rig.receive("die")
        await rig.until(turns, ["failed"])
        await rig.receive("next")
        await rig.until(turns, ["failed", "answered"])
        await rig.until(deliveries, ["sent", "sent"])

    told, answer = rig.channel.texts()
    assert told.startswith("Something went wrong")
    assert "Well" not in told
    assert answer == "echo: next"
    assert (await rows_of(store, runs))[0].reason == FailureKind.DIED


async def test_d20_an_end_without_its_end_event_gives_one_outcome(
    store: Database, clock: ManualClock, tmp_path: Path
) -> None:
    steps = [{"do": "delta", "text": "The answer."}, {"do": "exit", "status": 1}]
    script: dict[str, object] = {"rules": [{"match": "ask", "steps": steps}]}
    async with running_rig(store, clock, tmp_path, host=process_host(tmp_path, script)) as rig:
        await rig.receive("ask")
        await rig.until(deliveries, ["sent"])

    assert len(recorded(tmp_path, "prompt")) == 1
    assert len(rig.channel.sent) == 1


async def test_m09_a_providers_words_stay_in_the_run(
    store: Database, clock: ManualClock, tmp_path: Path
) -> None:
    script: dict[str, object] = {"rules": [{"steps": [{"do": "fail", "text": SECRET}]}]}
    async with running_rig(store, clock, tmp_path, host=process_host(tmp_path, script)) as rig:
        await rig.receive("hello")
        await rig.until(deliveries, ["sent"])

    (told,) = rig.channel.texts()
    assert not any(word in told for word in SECRET.split())
    (run,) = await rows_of(store, runs)
    assert "req_011CSabc" in run.error


async def test_d25_only_the_final_words_reach_the_chat(
    store: Database, clock: ManualClock, tmp_path: Path
) -> None:
    steps = [
        {"do": "narrate", "text": "Let me check..."},
        {"do": "tool", "name": "look"},
        {"do": "say", "text": "<think>secret plan</think>Here it is."},
    ]
    script: dict[str, object] = {"rules": [{"steps": steps}]}
    async with running_rig(store, clock, tmp_path, host=process_host(tmp_path, script)) as rig:
        await rig.receive("hello")
        await rig.until_sent("Here it is.")


async def test_m12_a_transcript_that_kills_its_host_is_put_aside(
    store: Database, clock: ManualClock, tmp_path: Path
) -> None:
    script: dict[str, object] = {"start": "exit_on_transcript"}
    host = process_host(tmp_path, script)
    async with running_rig(store, clock, tmp_path, host=host) as rig:
        await rig.receive("one")
        await rig.until_sent("echo: one")
        await rig.pool.evict(CHAT)
        await rig.receive("two")
        await rig.until_sent("echo: one", texts.LOST_CONTEXT, "echo: two")


async def test_stop_ends_a_real_run(store: Database, clock: ManualClock, tmp_path: Path) -> None:
    script: dict[str, object] = {"rules": [{"match": "work", "steps": [{"do": "stream"}]}]}
    async with running_rig(store, clock, tmp_path, host=process_host(tmp_path, script)) as rig:
        await rig.receive("work")
        await eventually(lambda: len(recorded(tmp_path, "prompt")) == 1)
        await rig.receive("/stop")
        await rig.receive("next")
        await rig.until_sent("Stopped.", "echo: next")

    assert recorded(tmp_path, "abort")
    assert await states_of(store, turns) == [TurnState.CANCELLED, TurnState.ANSWERED]


# ---- what tools did belongs to the reply -----------------------------------------------------


def call(**arguments: object) -> dict[str, object]:
    return {"do": "call", "name": "schedule", "arguments": arguments}


CREATE = call(action="create", text="call mum", at="2026-12-24T18:00")
LINE = "#1 Thu 24 Dec 18:00 (Europe/Berlin): call mum"


async def test_r30_the_stored_line_is_added_to_a_reply_that_lacks_it(
    store: Database, clock: ManualClock, tmp_path: Path
) -> None:
    script: dict[str, object] = {"rules": [{"steps": [CREATE, {"do": "say", "text": "Done!"}]}]}
    async with running_rig(store, clock, tmp_path, host=process_host(tmp_path, script)) as rig:
        await rig.receive("hello")
        await rig.until_sent(f"Done!\n\n{LINE}")


async def test_r30_a_reply_that_holds_the_stored_line_is_left_alone(
    store: Database, clock: ManualClock, tmp_path: Path
) -> None:
    script: dict[str, object] = {
        "rules": [{"steps": [CREATE, {"do": "say", "text": f"Reminder set: {LINE}"}]}]
    }
    async with running_rig(store, clock, tmp_path, host=process_host(tmp_path, script)) as rig:
        await rig.receive("hello")
        await rig.until_sent(f"Reminder set: {LINE}")


@pytest.mark.parametrize(
    "calls",
    [
        [call(action="create", text="call mum", when="soonish")],
        [call(action="create", text="call mum", chat="telegram:43", when="tomorrow")],
        [call(action="create", text="call mum"), call(action="list")],
    ],
)
async def test_r30_a_reminder_that_was_not_set_is_not_confirmed(
    calls: list[object], store: Database, clock: ManualClock, tmp_path: Path
) -> None:
    script: dict[str, object] = {
        "rules": [{"steps": [*calls, {"do": "say", "text": "Done, I'll remind you."}]}]
    }
    async with running_rig(store, clock, tmp_path, host=process_host(tmp_path, script)) as rig:
        await rig.receive("hello")
        await rig.until_sent("Done, I'll remind you.\n\nNo reminder was set.")


async def test_stop_tells_what_tools_had_done(
    store: Database, clock: ManualClock, tmp_path: Path
) -> None:
    script: dict[str, object] = {"rules": [{"match": "work", "steps": [CREATE, {"do": "hang"}]}]}
    async with running_rig(store, clock, tmp_path, host=process_host(tmp_path, script)) as rig:
        await rig.receive("work")
        await eventually(lambda: len(recorded(tmp_path, "call")) == 1)
        await rig.receive("and more")
        await rig.receive("/stop")
        await rig.until_sent(
            f"Stopped. What was waiting will not be answered. Done before that, and kept:\n{LINE}"
        )


async def test_a_failed_run_tells_what_its_tools_had_done(
    store: Database, clock: ManualClock, tmp_path: Path
) -> None:
    script: dict[str, object] = {"rules": [{"steps": [CREATE, {"do": "exit", "status": 1}]}]}
    async with running_rig(store, clock, tmp_path, host=process_host(tmp_path, script)) as rig:
        await rig.receive("hello")
        await rig.until(turns, ["failed"])
        (run,) = await rows_of(store, runs)
        await rig.until_sent(f"{texts.failure_text(FailureKind.DIED, run.id)}\n\n{LINE}")


# ---- turns that nobody wrote -----------------------------------------------------------------


async def test_r23_a_due_reminder_sets_no_further_ones(
    store: Database, clock: ManualClock, tmp_path: Path
) -> None:
    again = call(action="create", text="take a bath", **{"in": "1 minute"})
    steps = [again, {"do": "say", "text": "Time for your bath."}]
    script: dict[str, object] = {"rules": [{"match": "Automatic turn", "steps": steps}]}
    async with running_rig(store, clock, tmp_path, host=process_host(tmp_path, script)) as rig:
        await queued_job_turn(store, "take a bath")
        await rig.until_sent("Time for your bath.\n\nNo reminder was set.")
        await rig.until(jobs, ["done"])
        await eventually(lambda: rig.pool.stats().live == 0)

    assert len(recorded(tmp_path, "call")) == 1


async def test_m03_a_host_that_dies_over_a_reminder_costs_only_its_own_words(
    store: Database, clock: ManualClock, tmp_path: Path
) -> None:
    steps = [{"do": "delta", "text": "Well, "}, {"do": "kill"}]
    script: dict[str, object] = {"rules": [{"match": "Automatic turn", "steps": steps}]}
    async with running_rig(store, clock, tmp_path, host=process_host(tmp_path, script)) as rig:
        await queued_job_turn(store, "take a bath")
        for wait in (30, 60):
            await rig.until(turns, ["queued"], turns.c.not_before > to_millis(clock.now()))
            rig.advance(wait)
        await rig.until_sent("take a bath")

    assert [run.reason for run in await rows_of(store, runs)] == [FailureKind.DIED] * 3
    assert len(recorded(tmp_path, "start")) == 3
