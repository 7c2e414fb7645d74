"""The model child as its parent sees it: frames, tools, aborts, bad lines."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.fakes.child_wire import JsonObject
from tests.fakes.child_world import World, open_world
from tests.fakes.model_script import (
    ECHO,
    CallTools,
    Refuse,
    RefuseTools,
    Say,
    Shape,
    Silent,
    ToolUse,
    call,
)

TEA: JsonObject = {"text": "tea", "when": "in 5 minutes"}


@pytest.fixture(params=["openai"])
async def world(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[World]:
    async with open_world(tmp_path, request.param) as opened:
        yield opened


both_dialects = pytest.mark.parametrize("world", ["openai", "anthropic"], indirect=True)


async def test_a_new_child_tells_its_state(world: World) -> None:
    async with world.child() as child:
        state = await child.state()
    assert state["model"] == {"provider": "openai", "id": "m1"}
    assert state["messageCount"] == 0
    assert state["isStreaming"] is False
    assert str(state["sessionId"]) in str(state["sessionFile"])


@both_dialects
async def test_a_plain_run_tells_its_frames_in_pis_order(world: World) -> None:
    world.model.queue(Say(text="Hello", pieces=2))
    async with world.child() as child:
        run = await child.run("hi")
        state = await child.state()
    assert run.types == [
        "response",
        "agent_start",
        "turn_start",
        "message_end",
        "message_update",
        "message_update",
        "message_update",
        "message_update",
        "message_end",
        "turn_end",
        "agent_end",
        "agent_settled",
    ]
    assert run.frames[0]["data"] == {"disposition": "started"}
    assert (run.text, run.deltas(), run.stop, run.is_aborted) == ("Hello", "Hello", "stop", False)
    assert [message["role"] for message in run.messages] == ["user", "assistant"]
    assert run.last["provider"] == world.provider
    assert run.last["model"] == "m1"
    assert run.last["usage"] == {"input": 10, "output": 5, "totalTokens": 15}
    assert run.frames[-2]["willRetry"] is False
    assert state["messageCount"] == 2


@both_dialects
async def test_the_conversation_goes_along(world: World) -> None:
    world.model.script.default = (Say(text="re {last_line}"),)
    async with world.child() as child:
        await child.run("one")
        await child.run("two")
    assert "one" in world.said()[0]
    assert "re one" in world.said()[1]
    assert "two" in world.said()[2]
    assert "Anna" in world.model.requests[-1].system


@both_dialects
async def test_a_tool_round_ends_in_the_models_words(world: World) -> None:
    world.model.when("tea", call("schedule", TEA), Say(text="Done: {tool}"))
    async with world.child() as child:
        run = await child.run("tea in 5 minutes please")
        state = await child.state()
    assert run.text == "Done: Saved as #7."
    assert world.tools.calls == [("schedule", TEA)]
    assert world.model.requests[0].tool_names == ["schedule"]
    roles = [message["role"] for message in run.messages]
    assert roles == ["user", "assistant", "toolResult", "assistant"]
    started = next(f for f in run.frames if f["type"] == "tool_execution_start")
    ended = next(f for f in run.frames if f["type"] == "tool_execution_end")
    assert (started["toolName"], started["args"]) == ("schedule", TEA)
    assert (ended["toolCallId"], ended["isError"]) == (started["toolCallId"], False)
    assert state["messageCount"] == 4


@both_dialects
async def test_parallel_calls_all_come_back(world: World) -> None:
    bath: JsonObject = {"text": "bath", "when": "tomorrow at 9"}
    uses = (ToolUse(name="schedule", arguments=TEA), ToolUse(name="schedule", arguments=bath))
    world.model.when("both", CallTools(calls=uses, text="Let me see."), Say(text="Both set."))
    async with world.child() as child:
        run = await child.run("both")
    assert run.text == "Both set."
    assert sorted(str(arguments["text"]) for _, arguments in world.tools.calls) == ["bath", "tea"]
    assert run.types.count("tool_execution_end") == 2


@pytest.mark.parametrize("shape", [Shape.BARE, Shape.OBJECT, Shape.STOP, Shape.NO_ID])
async def test_a_sloppy_call_is_made_all_the_same(world: World, shape: Shape) -> None:
    world.model.when("tea", call("schedule", TEA, shape), Say(text="ok"))
    async with world.child() as child:
        assert (await child.run("tea")).text == "ok"
    assert world.tools.calls == [("schedule", TEA)]


@both_dialects
@pytest.mark.parametrize("shape", [Shape.TEXT, Shape.FENCED, Shape.TAGGED])
async def test_a_call_written_as_text_is_made(world: World, shape: Shape) -> None:
    world.model.when("tea", call("schedule", TEA, shape), Say(text="ok"))
    async with world.child() as child:
        run = await child.run("tea")
    assert run.text == "ok"
    assert world.tools.calls == [("schedule", TEA)]
    assert world.model.requests[1].asked.tool == "Saved as #7."


async def test_a_failed_tool_is_told_to_the_model_as_it_is(world: World) -> None:
    world.tools.status = 422
    world.tools.answer = {"ok": False, "text": "when: not understood"}
    world.model.when("tea", call("schedule", TEA), Say(text="{tool}"))
    async with world.child() as child:
        run = await child.run("tea")
    assert run.text == "when: not understood"
    ended = next(f for f in run.frames if f["type"] == "tool_execution_end")
    assert ended["isError"] is True


async def test_an_unknown_tool_is_refused_with_the_known_names(world: World) -> None:
    world.model.when("tea", call("remind", TEA), Say(text="{tool}"))
    async with world.child() as child:
        assert "schedule" in (await child.run("tea")).text
    assert world.tools.calls == []


async def test_tool_rounds_have_an_end(world: World) -> None:
    world.model.when("tea", call("schedule", TEA))
    async with world.child() as child:
        run = await child.run("tea")
        state = await child.state()
    assert run.stop == "error"
    assert "12 times" in run.error
    assert len(world.model.requests) == 12
    assert state["messageCount"] == 0


async def test_without_the_tool_server_the_model_answers_and_knows(world: World) -> None:
    async with world.child(GATEWAY_TOOL_SOCKET=str(world.directory / "none")) as child:
        assert (await child.run("hi")).text == "hi"
    assert world.model.requests[0].tool_names == []
    assert "No tools can be reached" in world.model.requests[0].system


async def test_a_refused_token_means_no_tools(world: World) -> None:
    async with world.child(GATEWAY_TOOL_TOKEN="old") as child:
        assert (await child.run("hi")).text == "hi"
    assert world.model.requests[0].tool_names == []


@both_dialects
async def test_a_model_without_tool_support_is_asked_again_without(world: World) -> None:
    world.model.script.default = (RefuseTools(then=ECHO),)
    async with world.child() as child:
        assert (await child.run("hi")).text == "hi"
    assert [request.tool_names for request in world.model.requests] == [["schedule"], []]
    assert "No tools can be reached" in world.model.requests[1].system


async def test_a_server_that_refuses_the_token_count_is_asked_without(world: World) -> None:
    body = '{"detail":[{"loc":["body","stream_options"],"msg":"Extra inputs are not permitted"}]}'
    world.model.queue(Refuse(status=422, body=body))
    async with world.child() as child:
        assert (await child.run("one")).text == "one"
        assert (await child.run("two")).text == "two"
    asked = ["stream_options" in request.body for request in world.model.requests]
    assert asked == [True, False, False]
    assert all(request.tool_names for request in world.model.requests)


async def test_a_tool_that_gives_no_answer_is_not_told_as_undone(world: World) -> None:
    world.model.when("tea", call("schedule", TEA), Say(text="{tool}"))
    world.tools.breaks_off = True
    async with world.child() as child:
        assert "is not known" in (await child.run("tea")).text


async def test_tools_are_offered_as_they_stand_at_each_prompt(world: World) -> None:
    async with world.child() as child:
        await child.run("one")
        world.tools.tools = ()
        await child.run("two")
    assert [request.tool_names for request in world.model.requests] == [["schedule"], []]


async def test_the_operators_prompt_file_is_added(world: World, tmp_path: Path) -> None:
    persona = tmp_path / "persona.md"
    persona.write_text("You are Bob the bär.", encoding="utf-8")
    async with world.child(HOST_PROMPT_FILE=str(persona)) as child:
        await child.run("hi")
    async with world.child(HOST_PROMPT_FILE=str(tmp_path / "missing")) as child:
        await child.run("hi")
    first, second = (request.system for request in world.model.requests)
    assert "You are Bob the bär." in first
    assert "Bob" not in second


async def test_any_text_passes_through_unharmed(world: World) -> None:
    text = "a\u2028b\u2029c\x85d ☕🇩🇪 \\n \x00"
    world.model.script.default = (ECHO,)
    async with world.child() as child:
        run = await child.run(text)
    assert (run.text, world.said()) == (text, [text])
    assert run.messages[0]["content"] == [{"type": "text", "text": text}]


async def test_a_very_long_prompt_and_reply_pass(world: World) -> None:
    text = "word" * 75_000
    world.model.script.default = (ECHO,)
    async with world.child(MODEL_CONTEXT_WINDOW="1000000") as child:
        assert (await child.run(text)).text == text


async def test_d25_think_blocks_are_no_part_of_the_reply(world: World) -> None:
    world.model.when(
        "tea",
        CallTools(calls=(ToolUse(name="schedule", arguments=TEA),), text="Let me check…"),
        Say(text="<think>secret plan</think>Here it is.", thinking="more secrets"),
    )
    async with world.child() as child:
        run = await child.run("tea")
        await child.run("and now?")
    assert run.text == "Here it is."
    assert "secret" not in json.dumps(world.said())


@both_dialects
async def test_an_abort_stops_a_stream_and_keeps_the_partial_text(world: World) -> None:
    world.model.when("long", Say(text="Once upon a time", pieces=4, gate="never"))
    async with world.child() as child:
        await child.ask("prompt", message="long")
        await child.until(lambda f: "Once" in json.dumps(f))
        assert (await child.state())["isStreaming"] is True
        response = await child.ask("abort")
        run_frames = child.frames[:-1]
        again = await child.run("short")
    assert response["success"] is True
    assert [frame["type"] for frame in run_frames[-2:]] == ["agent_end", "agent_settled"]
    assert run_frames[-1]["aborted"] is True
    messages = run_frames[-2]["messages"]
    assert isinstance(messages, list)
    assert messages[-1]["stopReason"] == "aborted"
    assert messages[-1]["content"] == [{"type": "text", "text": "Once"}]
    assert again.text == "short"
    assert len(world.said()) == 1


async def test_an_abort_stops_a_silent_request(world: World) -> None:
    world.model.queue(Silent())
    async with world.child() as child:
        await child.ask("prompt", message="hi")
        await world.model.reached("silence")
        assert (await child.ask("abort"))["success"] is True
        assert child.frames[-2]["aborted"] is True


async def test_an_abort_gives_a_tool_call_up(world: World) -> None:
    world.model.when("tea", call("schedule", TEA), Say(text="ok"))
    world.tools.gate.clear()
    async with world.child() as child:
        await child.ask("prompt", message="tea")
        async with asyncio.timeout(10):
            await world.tools.called.wait()
        await child.ask("abort")
        assert child.frames[-2]["aborted"] is True
        assert (await child.run("hi")).text == "hi"


async def test_an_abort_before_the_first_step_still_ends_the_run(world: World) -> None:
    async with world.child() as child:
        both = [{"id": "p", "type": "prompt", "message": "hi"}, {"id": "a", "type": "abort"}]
        await child.write(b"".join(json.dumps(frame).encode() + b"\n" for frame in both))
        run = await child.settled()
    assert run.is_aborted is True
    assert run.stop == "aborted"


async def test_an_abort_with_nothing_to_stop_succeeds(world: World) -> None:
    async with world.child() as child:
        assert (await child.ask("abort"))["success"] is True
        await child.run("hi")
        assert (await child.ask("abort"))["success"] is True
        assert [frame["type"] for frame in child.frames].count("agent_settled") == 1


async def test_a_second_prompt_is_refused_while_one_runs(world: World) -> None:
    world.model.when("long", Say(text="ab", pieces=2, gate="later"))
    async with world.child() as child:
        await child.send({"id": 1, "type": "prompt", "message": "long"})
        await world.model.reached("later")
        refused = await child.ask("prompt", message="short")
        world.model.open("later")
        run = await child.settled()
    assert refused["success"] is False
    assert run.text == "ab"


async def test_bad_lines_are_answered_and_survived(world: World) -> None:
    async with world.child() as child:
        for line in (b"{oops", b"", b"null", b"[1]", b"\xff\xfe", b"[" * 200_000):
            await child.write(line + b"\n")
            frame = await child.read()
            assert (frame["command"], frame["success"]) == ("parse", False)
        unknown = await child.ask("nope")
        assert (unknown["success"], unknown["error"]) == (False, "Unknown command: nope")
        no_text = await child.ask("prompt")
        assert no_text["success"] is False
        assert (await child.run("hi")).text == "hi"
