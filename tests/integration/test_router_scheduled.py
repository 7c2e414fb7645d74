"""Turns that nobody wrote: in whose session, what is shown meanwhile, and what the person gets."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from gateway.domain.delivery import Rejected, Unknown
from gateway.domain.job import JobState
from gateway.domain.message import ChatKey
from gateway.domain.schedule import to_millis
from gateway.domain.turn import GIVEN_BACK, RunState, TurnId
from gateway.engine import run_ends, texts
from gateway.engine.owner import Episode
from gateway.errors import HostNotReadyError, StoreError
from gateway.hosts.base import Failed, FailureKind
from gateway.store.database import Database
from gateway.store.schema import deliveries, jobs, runs, turns
from gateway.store.stopping import cancel_heartbeat
from tests.factories import (
    CHAT,
    OTHER_CHAT,
    queued_heartbeat,
    queued_job_turn,
    rows_of,
    states_of,
)
from tests.fakes.clock import ManualClock
from tests.fakes.local_host import LocalHost, Pause, Step, hang, said
from tests.fakes.rig import Rig, RigRules, running_rig
from tests.fakes.sessions import eventually

OWNER = ChatKey(CHAT.channel, "99")
TASK = "take a bath"
DIED = Failed(kind=FailureKind.DIED, detail="exit 1")


@pytest.fixture
def host() -> LocalHost:
    return LocalHost()


async def until_next_try(rig: Rig) -> None:
    """Return when a try of a job has failed and the next one waits for its moment."""
    is_waiting = turns.c.not_before > to_millis(rig.clock.now())
    await rig.until(turns, ["queued"], is_waiting)


async def fail_thrice(rig: Rig) -> None:
    """Let the tries of a due job fail, each after its wait, until none is left."""
    for wait in (30, 60):
        await until_next_try(rig)
        rig.advance(wait)


def has_tried(rig: Rig, times: int) -> Callable[[], bool]:
    return lambda: len(rig.channel.tried) == times


# ---- whose session -----------------------------------------------------------------------------


async def test_a_job_runs_in_a_session_of_its_own_that_ends_with_it(
    store: Database, clock: ManualClock, tmp_path: Path, host: LocalHost
) -> None:
    async with running_rig(store, clock, tmp_path, host=host) as rig:
        await rig.receive("one")
        await rig.until_sent("echo: one")
        host.steps.append(said("Your bath is ready."))
        await queued_job_turn(store, TASK)
        await rig.until_sent("echo: one", "Your bath is ready.")
        await eventually(lambda: not host.sessions[1].is_alive)
        await rig.receive("two")
        await rig.until_sent("echo: one", "Your bath is ready.", "echo: two")

    assert [session.spec.is_ephemeral for session in host.sessions] == [False, True]
    assert "Automatic turn: reminder #1 is due" in host.texts[1]
    assert host.texts[1].endswith(f'Task of reminder #1: "{TASK}"')
    # R33: the chat's own session hears of what the other one said.
    assert 'reminder #1: "Your bath is ready."]' in host.texts[2]
    assert [row.kind for row in await rows_of(store, deliveries)] == ["reply", "reminder", "reply"]


async def test_a_session_for_a_job_that_was_cancelled_meanwhile_runs_nothing_else(
    store: Database, clock: ManualClock, tmp_path: Path, host: LocalHost
) -> None:
    host.may_start.clear()
    async with running_rig(store, clock, tmp_path, host=host) as rig:
        await queued_job_turn(store, TASK)
        await eventually(lambda: host.starts == 1)
        await rig.receive("/cancel 1")
        await rig.receive("hello")
        host.may_start.set()
        await rig.until(turns, ["cancelled", "answered"])
        await eventually(lambda: not host.sessions[0].is_alive)

    assert [session.spec.is_ephemeral for session in host.sessions] == [True, False]
    assert len(host.prompts) == 1


async def test_a_check_in_runs_in_the_chats_own_session(
    store: Database, clock: ManualClock, tmp_path: Path, host: LocalHost
) -> None:
    host.steps.extend([said("hi"), said("Your train is late.")])
    async with running_rig(store, clock, tmp_path, host=host) as rig:
        await rig.receive("hello")
        await rig.until_sent("hi")
        await queued_heartbeat(store)
        await rig.until_sent("hi", "Your train is late.")

    assert [session.spec.is_ephemeral for session in host.sessions] == [False]
    assert "[Automatic check-in: nobody has written for 30 minutes or more." in host.texts[1]


# ---- what the person gets ----------------------------------------------------------------------


@pytest.mark.parametrize(
    "step",
    [
        Failed(kind=FailureKind.EMPTY, detail="no text"),
        said("[SILENT]"),
        said("NOTHING"),
        said("HEARTBEAT_OK"),
        DIED,
    ],
    ids=["empty", "silent", "nothing", "heartbeat_ok", "dies"],
)
async def test_r22_a_due_reminder_comes_whatever_the_model_says(
    step: Step, store: Database, clock: ManualClock, tmp_path: Path, host: LocalHost
) -> None:
    host.steps.extend([step] * 3)
    async with running_rig(store, clock, tmp_path, host=host) as rig:
        await queued_job_turn(store, TASK)
        await fail_thrice(rig)
        await rig.until_sent(TASK)
        await rig.until(jobs, [JobState.DONE])
        assert rig.channel.typing == []

    assert len(host.prompts) == 3
    (turn,) = await rows_of(store, turns)
    assert (turn.state, turn.reason) == ("failed", "fell_back")


async def test_a_later_try_that_succeeds_is_the_reminder(
    store: Database, clock: ManualClock, tmp_path: Path, host: LocalHost
) -> None:
    host.steps.extend([DIED, said("Time for your bath!")])
    async with running_rig(store, clock, tmp_path, host=host) as rig:
        await queued_job_turn(store, TASK)
        await until_next_try(rig)
        rig.advance(30)
        await rig.until_sent("Time for your bath!")

    assert await states_of(store, runs) == [RunState.FAILED, RunState.SUCCEEDED]
    assert len(await rows_of(store, deliveries)) == 1


async def test_r19_a_failed_send_does_not_run_the_job_again(
    store: Database, clock: ManualClock, tmp_path: Path, host: LocalHost
) -> None:
    host.steps.append(said("Your bath is ready."))
    away = Unknown(reason="502", answered=True)
    async with running_rig(store, clock, tmp_path, host=host) as rig:
        rig.channel.answer_next(away, away)
        await queued_job_turn(store, TASK)
        for tried, wait in ((1, 2), (2, 15)):
            await eventually(has_tried(rig, tried))
            await eventually(lambda: clock.waiting == 1)
            rig.advance(wait)
        await rig.until(deliveries, ["sent"])

    assert len(host.prompts) == 1
    assert len(rig.channel.tried) == 3
    assert len(rig.channel.sent) == 1
    assert await states_of(store, runs) == [RunState.SUCCEEDED]


async def test_r18_the_run_and_the_delivery_have_each_their_own_end(
    store: Database, clock: ManualClock, tmp_path: Path, host: LocalHost
) -> None:
    failed = Failed(kind=FailureKind.ERROR, detail="500")
    host.steps.extend([said("Your bath is ready."), failed, failed, failed])
    async with running_rig(store, clock, tmp_path, host=host) as rig:
        rig.channel.answer_next(Rejected(reason="chat not found"))
        await queued_job_turn(store, TASK)
        await rig.until(deliveries, ["failed"])
        await rig.until(jobs, [JobState.FAILED])
        await queued_job_turn(store, "call mum")
        await fail_thrice(rig)
        await rig.until(jobs, [JobState.FAILED, JobState.DONE])

    assert await states_of(store, turns) == ["answered", "failed"]
    assert await states_of(store, runs) == ["succeeded"] + ["failed"] * 3
    assert (await rows_of(store, deliveries))[0].reason == "chat not found"


async def test_a_session_that_does_not_start_costs_the_stored_text_only(
    store: Database, clock: ManualClock, tmp_path: Path, host: LocalHost
) -> None:
    host.refusals.extend([HostNotReadyError("no answer within 60 s")] * 3)
    async with running_rig(store, clock, tmp_path, host=host, rules=RigRules(owner=OWNER)) as rig:
        await queued_job_turn(store, TASK)
        await fail_thrice(rig)
        await rig.until_sent(TASK)
        await eventually(lambda: len(rig.channel.texts("99")) == 1)
        assert rig.owner.is_open(Episode.HOST_BROKEN)

    assert {run.reason for run in await rows_of(store, runs)} == {"host_not_ready"}


async def test_the_owner_hears_of_what_fails_a_job_and_the_person_does_not(
    store: Database, clock: ManualClock, tmp_path: Path, host: LocalHost
) -> None:
    host.steps.extend([Failed(kind=FailureKind.AUTH, detail="401")] * 3)
    async with running_rig(store, clock, tmp_path, host=host, rules=RigRules(owner=OWNER)) as rig:
        await queued_job_turn(store, TASK)
        await fail_thrice(rig)
        await rig.until_sent(TASK)
        await eventually(lambda: rig.channel.texts("99") == [texts.MODEL_REFUSED])


async def test_a_person_is_answered_between_two_tries_of_a_job(
    store: Database, clock: ManualClock, tmp_path: Path, host: LocalHost
) -> None:
    host.steps.extend([DIED, said("hi"), said("Time for your bath!")])
    async with running_rig(store, clock, tmp_path, host=host) as rig:
        await queued_job_turn(store, TASK)
        await until_next_try(rig)
        await rig.receive("hello")
        await rig.until_sent("hi")
        rig.advance(30)
        await rig.until_sent("hi", "Time for your bath!")


# ---- what is shown, and for whom there is a wait -----------------------------------------------


async def test_m16_a_check_in_with_nothing_to_say_is_not_noticed(
    store: Database, clock: ManualClock, tmp_path: Path, host: LocalHost
) -> None:
    host.steps.append(said("**NOTHING** 👍"))
    async with running_rig(store, clock, tmp_path, host=host) as rig:
        await queued_heartbeat(store)
        await rig.until(turns, ["silent"])
        await rig.receive("hello")
        await rig.until_sent("echo: hello")

    assert [row.state for row in await rows_of(store, deliveries)] == ["suppressed", "sent"]


@pytest.mark.parametrize("step", [DIED, Failed(kind=FailureKind.ERROR, detail="500")])
async def test_a_check_in_that_fails_is_not_noticed(
    step: Failed, store: Database, clock: ManualClock, tmp_path: Path, host: LocalHost
) -> None:
    host.steps.append(step)
    async with running_rig(store, clock, tmp_path, host=host) as rig:
        await queued_heartbeat(store)
        await rig.until(turns, ["failed"])
        assert rig.channel.typing == []

    assert rig.channel.tried == []


@pytest.mark.parametrize("queue", [queued_heartbeat, queued_job_turn])
async def test_typing_is_not_shown_for_what_nobody_waits_for(
    queue: Callable[..., Awaitable[TurnId]],
    store: Database,
    clock: ManualClock,
    tmp_path: Path,
    host: LocalHost,
) -> None:
    host.steps.extend([hang, hang])
    async with running_rig(store, clock, tmp_path, host=host) as rig:
        await queue(store)
        await eventually(lambda: len(host.prompts) == 1)
        await rig.receive("work", chat=OTHER_CHAT)
        await eventually(lambda: rig.channel.typing.count("43") >= 3)

        assert "42" not in rig.channel.typing


async def test_m20_a_check_in_that_has_to_wait_says_nothing_and_gives_way(
    store: Database, clock: ManualClock, tmp_path: Path, host: LocalHost
) -> None:
    slow = Pause("done")
    host.steps.extend([slow, said("hi")])
    rules = RigRules(patience=0.001, capacity=1)
    async with running_rig(store, clock, tmp_path, host=host, rules=rules) as rig:
        await rig.receive("work", chat=OTHER_CHAT)
        await eventually(lambda: len(host.prompts) == 1)
        await queued_heartbeat(store)
        await eventually(lambda: rig.pool.stats().waiting == 1)
        patient_until = asyncio.get_running_loop().time() + 20 * rules.patience
        await eventually(lambda: asyncio.get_running_loop().time() > patient_until)
        assert await store.write(cancel_heartbeat, CHAT, now=clock.now()) is None
        await rig.receive("hello")
        slow.go_on.set()
        await rig.until_sent("hi")

    assert len(host.prompts) == 2
    assert await states_of(store, turns) == ["answered", "cancelled", "answered"]


async def test_m20_a_person_is_answered_at_once_during_a_check_in(
    store: Database, clock: ManualClock, tmp_path: Path, host: LocalHost
) -> None:
    host.steps.extend([hang, said("hi")])
    async with running_rig(store, clock, tmp_path, host=host) as rig:
        await queued_heartbeat(store)
        await eventually(lambda: len(host.prompts) == 1)
        await rig.receive("hello")
        await rig.until_sent("hi")

    assert await states_of(store, turns) == ["cancelled", "answered"]
    assert await states_of(store, runs) == [RunState.CANCELLED, RunState.SUCCEEDED]
    assert "check-in" not in host.texts[1]


async def test_a_check_in_does_not_speak_of_a_lost_conversation(
    store: Database, clock: ManualClock, tmp_path: Path, host: LocalHost
) -> None:
    host.loses_context = True
    host.steps.append(said("NOTHING"))
    async with running_rig(store, clock, tmp_path, host=host) as rig:
        await queued_heartbeat(store)
        await rig.until(turns, ["silent"])
        assert await states_of(store, deliveries) == ["suppressed"]
        await rig.receive("hello")
        await rig.until_sent(texts.LOST_CONTEXT, "echo: hello")


# ---- stopping ----------------------------------------------------------------------------------


async def test_stop_ends_a_job_that_runs_and_leaves_the_next_one(
    store: Database, clock: ManualClock, tmp_path: Path, host: LocalHost
) -> None:
    host.steps.extend([hang, said("Call her now.")])
    async with running_rig(store, clock, tmp_path, host=host) as rig:
        await queued_job_turn(store, TASK)
        await eventually(lambda: len(host.prompts) == 1)
        await queued_job_turn(store, "call mum")
        await rig.receive("/stop")
        await rig.until_sent("Stopped.", "Call her now.")
        await rig.until(jobs, [JobState.FAILED, JobState.DONE])

    assert await states_of(store, turns) == ["cancelled", "answered"]


async def test_cancel_ends_the_run_of_that_reminder_and_what_waits_behind_it_goes_on(
    store: Database, clock: ManualClock, tmp_path: Path, host: LocalHost
) -> None:
    host.steps.extend([hang, said("hello yourself")])
    async with running_rig(store, clock, tmp_path, host=host) as rig:
        await queued_job_turn(store, TASK)
        await eventually(lambda: len(host.prompts) == 1)
        await rig.receive("hello")
        await rig.receive("/cancel 1")
        await eventually(lambda: "hello yourself" in rig.channel.texts(CHAT.address))

    assert await states_of(store, jobs) == ["cancelled"]
    assert await states_of(store, turns) == ["cancelled", "answered"]


async def test_a_job_given_back_by_a_planned_stop_loses_no_try(
    store: Database, clock: ManualClock, tmp_path: Path, host: LocalHost
) -> None:
    host.steps.append(hang)
    async with running_rig(store, clock, tmp_path, host=host) as rig:
        await queued_job_turn(store, TASK)
        await eventually(lambda: len(host.prompts) == 1)
    (run,) = await rows_of(store, runs)
    assert (run.state, run.reason) == (RunState.INTERRUPTED, GIVEN_BACK)

    host.steps.extend([DIED] * 3)
    async with running_rig(store, clock, tmp_path / "again", host=host) as rig:
        await fail_thrice(rig)
        await rig.until_sent(TASK)

    assert len(host.prompts) == 4


@pytest.mark.parametrize("is_scheduled", [False, True])
async def test_a_failure_that_cannot_be_stored_does_not_hold_up_the_chat(
    is_scheduled: bool,
    store: Database,
    clock: ManualClock,
    tmp_path: Path,
    host: LocalHost,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(*args: object, **kwargs: object) -> bool:
        raise StoreError("damaged")

    host.steps.append(DIED)
    monkeypatch.setattr(run_ends, "fail_turn", refuse)
    async with running_rig(store, clock, tmp_path, host=host) as rig:
        if is_scheduled:
            await queued_job_turn(store, TASK)
        else:
            await rig.receive("hello")
        await rig.until(turns, ["failed"])
        await rig.receive("next")
        told = TASK if is_scheduled else texts.failure_text(FailureKind.ERROR, TurnId(1))
        await rig.until_sent(told, "echo: next")
