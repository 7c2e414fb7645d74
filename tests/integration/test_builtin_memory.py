"""What the model child remembers and forgets: failures, restarts, damage, overflow."""

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.fakes.child_wire import JsonObject
from tests.fakes.child_world import KEY, World, open_world
from tests.fakes.model_script import (
    ECHO,
    BadEvent,
    Cut,
    LimitContext,
    Refuse,
    Say,
    Silent,
)

TEA: JsonObject = {"text": "tea", "when": "in 5 minutes"}


@pytest.fixture(params=["openai"])
async def world(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[World]:
    async with open_world(tmp_path, request.param) as opened:
        yield opened


both_dialects = pytest.mark.parametrize("world", ["openai", "anthropic"], indirect=True)


@both_dialects
async def test_an_empty_reply_is_told_as_empty_and_forgotten(world: World) -> None:
    world.model.queue(Say(text=""))
    async with world.child() as child:
        run = await child.run("hi")
        state = await child.state()
    assert (run.stop, run.text, run.last["content"]) == ("stop", "", [])
    assert state["messageCount"] == 0


@both_dialects
async def test_m09_s11_a_provider_error_ends_the_run_and_keeps_the_key(world: World) -> None:
    body = json.dumps(
        {"error": {"message": f"bad key {KEY}, see {world.model.url}/keys", "type": "auth"}}
    )
    world.model.queue(Refuse(status=401, body=body))
    async with world.child() as child:
        run = await child.run("hi")
        again = await child.run("still there?")
        assert child.process.stdin is not None
        child.process.stdin.close()
        assert child.process.stderr is not None
        errors = await child.process.stderr.read()
    assert run.stop == "error"
    assert run.error.startswith("401: ")
    assert run.text == ""
    assert again.text == "still there?"
    told = json.dumps(child.frames) + errors.decode()
    assert KEY not in told
    assert world.model.url not in told
    assert world.tools.token not in told


async def test_a_failed_run_is_forgotten(world: World) -> None:
    world.model.queue(Refuse(status=404))
    async with world.child() as child:
        await child.run("one")
        await child.run("two")
    assert world.said() == ["two"]


async def test_a_passing_error_is_mended_in_the_run(world: World) -> None:
    at_once = {"retry-after": "0"}
    world.model.queue(Refuse(status=529, headers=at_once), Refuse(status=429, headers=at_once))
    async with world.child() as child:
        run = await child.run("hi")
    assert run.text == "hi"
    retries = [frame for frame in run.frames if frame["type"] == "auto_retry_start"]
    assert [frame["errorMessage"] for frame in retries] == ["529: scripted", "429: scripted"]


@pytest.mark.parametrize(
    ("broken", "error"),
    [
        (Cut(text="half"), "connection: "),
        (BadEvent(text="half"), "not JSON"),
        (Say(text="half", finish=None, has_end=False), "without a finish reason"),
    ],
)
async def test_a_stream_that_breaks_keeps_its_partial_text(
    world: World, broken: Cut | BadEvent | Say, error: str
) -> None:
    world.model.queue(broken)
    async with world.child() as child:
        run = await child.run("hi")
    assert (run.stop, run.text) == ("error", "half")
    assert error in run.error


async def test_silence_is_an_error_of_its_own(world: World) -> None:
    world.model.queue(Silent())
    async with world.child("--silence", "0.1") as child:
        run = await child.run("hi")
    assert (run.stop, run.error) == ("error", "no data for 0.1 s")


async def test_a_killed_child_is_resumed_where_its_last_turn_ended(world: World) -> None:
    world.model.when("long", Say(text="ab", pieces=2, gate="never"))
    async with world.child() as child:
        await child.run("remember me")
        before = await child.state()
        await child.ask("prompt", message="long")
        await world.model.reached("never")
    async with world.child() as child:
        after = await child.state()
        await child.run("next")
    assert child.process.returncode is not None
    assert after == before
    assert world.said() == ["remember me", "remember me", "next"]


async def test_a_new_session_forgets(world: World) -> None:
    async with world.child() as child:
        await child.run("one")
        before = await child.state()
        response = await child.ask("new_session")
        after = await child.state()
        await child.run("two")
    assert response["data"] == {"cancelled": False}
    assert after["messageCount"] == 0
    assert after["sessionId"] != before["sessionId"]
    assert world.said() == ["two"]


async def test_without_a_session_nothing_is_kept(world: World) -> None:
    async with world.child("--no-session") as child:
        await child.run("one")
        state = await child.state()
    assert "sessionFile" not in state
    assert state["messageCount"] == 2
    assert list(world.directory.iterdir()) == []


async def test_m12_a_damaged_transcript_is_set_aside_and_the_chat_goes_on(world: World) -> None:
    async with world.child() as child:
        await child.run("one")
        before = await child.state()
    Path(str(before["sessionFile"])).write_bytes(b"\x00" * 512)
    async with world.child() as child:
        after = await child.state()
        assert (await child.run("two")).text == "two"
    assert after["messageCount"] == 0
    assert after["sessionId"] != before["sessionId"]
    assert any(".damaged-" in path.name for path in world.directory.iterdir())


@both_dialects
async def test_m11_an_overflow_is_mended_once_by_condensing(world: World) -> None:
    long = "x" * 400
    world.model.script.default = (LimitContext(characters=2500, then=Say(text=long)),)
    world.model.when("Person: ", Say(text="They said x. SUMMARY"))
    async with world.child() as child:
        runs = [await child.run(f"{number} {long}") for number in range(4)]
        state = await child.state()
    assert [run.stop for run in runs] == ["stop"] * 4
    starts = [frame for frame in runs[3].frames if frame["type"] == "compaction_start"]
    assert [frame["reason"] for frame in starts] == ["overflow"]
    assert "SUMMARY" in str(world.said()[0])
    assert f"3 {long}" in world.said()[-1]
    assert state["messageCount"] == 2 + 2 + 2
    async with world.child() as child:
        assert await child.state() == state


async def test_m11_an_overflow_that_stays_is_one_clear_error(world: World) -> None:
    world.model.script.default = (LimitContext(characters=500, then=ECHO),)
    async with world.child() as child:
        await child.run("hi")
        run = await child.run("y" * 1000)
        again = await child.run("z")
    assert run.stop == "error"
    assert "context_length_exceeded" in run.error
    assert again.text == "z"
    assert len(world.model.requests) <= 5


async def test_m11_a_nearly_full_window_is_condensed_before_it_overflows(world: World) -> None:
    world.model.when("Person: ", Say(text="<think>hm</think>SUMMARY"))
    world.model.script.default = (Say(text="ok", usage=(900, 10)),)
    async with world.child(MODEL_CONTEXT_WINDOW="1000") as child:
        await child.run("one")
        run = await child.run("two")
    assert "compaction_start" in run.types
    assert run.text == "ok"
    assert world.said()[0].endswith("SUMMARY")
    assert world.said()[-1] == "two"


async def test_a_failed_condensing_does_not_cost_the_reply(world: World) -> None:
    world.model.when("Person: ", Refuse(status=404))
    world.model.script.default = (Say(text="ok", usage=(900, 10)),)
    async with world.child(MODEL_CONTEXT_WINDOW="1000") as child:
        await child.run("one")
        run = await child.run("two")
        assert (await child.state())["messageCount"] == 4
    assert run.text == "ok"
