"""A session against a host that misbehaves in every way seen in the field."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from gateway.errors import HostNotReadyError
from gateway.hosts.base import (
    Deadlines,
    Failed,
    FailureKind,
    Finished,
    HostKind,
    TextDelta,
    ToolCall,
    ToolResult,
)
from gateway.hosts.context import decode_context
from gateway.hosts.launch import Launch
from gateway.hosts.ledger import ProcessLedger
from gateway.hosts.pi import RpcHost, RpcSession
from gateway.hosts.process import HostExitedError
from tests.fakes.fake_host import fake_launch
from tests.fakes.sessions import (
    eventually,
    group_members,
    is_alive,
    make_prompt,
    make_spec,
    outcome_of,
    run_prompt,
)

POLITE_HOST = """
import json, sys
for line in sys.stdin:
    answer = {"type": "response", "command": "get_state", "success": True}
    print(json.dumps(answer | {"id": json.loads(line)["id"]}), flush=True)
open("ended well", "w").close()
"""

Start = Callable[..., Awaitable[RpcSession]]
Steps = list[dict[str, object]]


def steps(*items: dict[str, object], ack: str = "started", **script: object) -> dict[str, object]:
    """Return a script that does these things on every prompt."""
    return {"rules": [{"ack": ack, "steps": list(items)}], **script}


def do(what: str, /, **details: object) -> dict[str, object]:
    return {"do": what, **details}


def say(text: str) -> dict[str, object]:
    return do("say", text=text)


def make_host(tmp_path: Path, launch: Launch, deadlines: Deadlines | None = None) -> RpcHost:
    ledger = ProcessLedger(tmp_path / "processes")
    return RpcHost(HostKind.OFFLINE, launch, ledger=ledger, deadlines=deadlines)


@pytest.fixture
async def start(tmp_path: Path) -> AsyncIterator[Start]:
    """Start sessions of scripted hosts, all in the same directory; closes them afterwards."""
    sessions: list[RpcSession] = []

    async def start_one(
        script: Mapping[str, object] | Launch,
        *,
        deadlines: Deadlines | None = None,
        is_ephemeral: bool = False,
    ) -> RpcSession:
        launch = script if isinstance(script, Launch) else fake_launch(script)
        host = make_host(tmp_path, launch, deadlines)
        session = await host.start(make_spec(tmp_path, is_ephemeral=is_ephemeral))
        sessions.append(session)
        return session

    yield start_one
    for session in sessions:
        await session.close()


def records(path: Path, event: str) -> list[dict[str, object]]:
    lines = path.read_text(encoding="utf-8").split("\n") if path.exists() else []
    found = [json.loads(line) for line in lines if line]
    return [record for record in found if record["event"] == event]


async def assert_over(session: RpcSession, outcome: Finished | Failed, kind: FailureKind) -> None:
    assert isinstance(outcome, Failed)
    assert outcome.kind is kind
    assert not session.is_alive
    await eventually(lambda: group_members(session.pid) == [])


async def test_a_host_that_never_says_that_it_is_ready_is_given_up(tmp_path: Path) -> None:
    record = tmp_path / "record"
    launch = fake_launch({"start": "silent", "record": str(record)})

    with pytest.raises(HostNotReadyError) as caught:
        await make_host(tmp_path, launch, Deadlines(ready=0.5)).start(make_spec(tmp_path))

    assert not isinstance(caught.value, HostExitedError)
    for started in records(record, "start"):
        assert group_members(int(str(started["pid"]))) == []


async def test_m12_a_host_that_ends_at_its_start_is_told_from_a_slow_one(tmp_path: Path) -> None:
    with pytest.raises(HostExitedError) as caught:
        await make_host(tmp_path, fake_launch({"start": "exit"})).start(make_spec(tmp_path))

    assert "scripted" not in str(caught.value)
    assert "cannot start: scripted" in caught.value.__notes__[0]


async def test_a_command_that_does_not_exist_is_not_ready(tmp_path: Path) -> None:
    launch = replace(fake_launch({}), command=(str(tmp_path / "no-such-host"),))

    with pytest.raises(HostNotReadyError):
        await make_host(tmp_path, launch).start(make_spec(tmp_path))


async def test_a_cancelled_start_leaves_no_process(tmp_path: Path) -> None:
    record = tmp_path / "record"
    launch = fake_launch({"start": "silent", "record": str(record)})
    starting = asyncio.create_task(make_host(tmp_path, launch).start(make_spec(tmp_path)))
    await eventually(lambda: bool(records(record, "start")))
    pid = int(str(records(record, "start")[0]["pid"]))

    starting.cancel()
    await asyncio.wait({starting})

    assert starting.cancelled()
    await eventually(lambda: group_members(pid) == [])


async def test_m01_a_prompt_that_is_never_acknowledged_ends_the_process(start: Start) -> None:
    session = await start(steps(ack="none"), deadlines=Deadlines(acknowledge=0.3))

    outcome = await outcome_of(session, "hello")

    await assert_over(session, outcome, FailureKind.SILENT)


async def test_m01_a_silent_run_is_ended_and_a_fresh_process_takes_the_next_prompt(
    start: Start, tmp_path: Path
) -> None:
    record = tmp_path / "record"
    script = {
        "record": str(record),
        "rules": [{"match": "stall", "steps": [do("delta", text="w"), do("hang")]}],
    }
    session = await start(script, deadlines=Deadlines(silence=0.3))

    outcome = await outcome_of(session, "stall")

    await assert_over(session, outcome, FailureKind.SILENT)
    assert records(record, "abort")
    following = await start(script)
    assert not following.lost_context
    assert await outcome_of(following, "and now?") == _answered("echo: and now?")


async def test_m01_a_run_that_never_ends_is_cut_at_the_turns_deadline(start: Start) -> None:
    session = await start(steps(do("stream")), deadlines=Deadlines(turn=0.4))

    outcome = await outcome_of(session, "go on for ever")

    await assert_over(session, outcome, FailureKind.TIMED_OUT)


async def test_m14_a_host_deaf_to_abort_and_term_is_killed_with_its_grandchildren(
    start: Start, tmp_path: Path
) -> None:
    record = tmp_path / "record"
    script = steps(do("fork"), do("hang"), ignore=["abort", "term", "eof"], record=str(record))
    quick = Deadlines(silence=0.5, abort=0.2, terminate=0.2)
    session = await start(script, deadlines=quick)

    outcome = await outcome_of(session, "hello")

    await assert_over(session, outcome, FailureKind.SILENT)
    grandchild = int(str(records(record, "fork")[0]["pid"]))
    await eventually(lambda: not is_alive(grandchild))


@pytest.mark.parametrize(
    "death",
    [
        [do("delta", text="half"), do("exit", status=1)],
        [do("delta", text="half"), do("exit", status=0)],
        [do("tool", name="look"), do("kill")],
        [do("delta", text="half"), do("close_output"), do("hang")],
        [do("fork"), do("exit", status=1)],
    ],
    ids=["exit 1", "exit 0", "killed", "output closed", "grandchild holds the pipe"],
)
async def test_m03_a_host_that_dies_in_mid_run_fails_it_at_once(start: Start, death: Steps) -> None:
    session = await start(steps(*death))

    async with asyncio.timeout(5):
        outcome = await outcome_of(session, "hello")

    await assert_over(session, outcome, FailureKind.DIED)


async def test_m03_the_last_words_of_a_dead_host_are_kept_for_the_log(start: Start) -> None:
    session = await start(steps(do("stderr", text="out of memory"), do("exit", status=7)))

    outcome = await outcome_of(session, "hello")

    assert isinstance(outcome, Failed)
    assert "out of memory" in outcome.detail
    assert "exit status 7" in outcome.detail


async def test_a_prompt_to_a_dead_session_fails_without_an_error(start: Start) -> None:
    session = await start(steps(do("exit", status=1)))
    await outcome_of(session, "hello")

    outcome = await outcome_of(session, "again")

    assert isinstance(outcome, Failed)
    assert outcome.kind is FailureKind.DIED


async def test_an_abort_that_is_not_obeyed_ends_the_process(start: Start) -> None:
    script = steps(do("delta", text="w"), do("hang"), ignore=["abort"])
    session = await start(script, deadlines=Deadlines(abort=0.3))
    reading = asyncio.create_task(run_prompt(session, "hello"))
    await asyncio.sleep(0)

    await session.abort()

    await assert_over(session, (await reading)[-1], FailureKind.ABORTED)  # type: ignore[arg-type]


async def test_an_abort_in_the_middle_of_the_text_keeps_the_session(start: Start) -> None:
    script = {"rules": [{"match": "long", "steps": [do("stream")]}]}
    session = await start(script)
    outcomes = []
    async for event in session.prompt(make_prompt("long")):
        if isinstance(event, TextDelta):
            await session.abort()
        elif isinstance(event, Finished | Failed):
            outcomes.append(event)

    assert isinstance(outcomes[0], Failed)
    assert outcomes[0].kind is FailureKind.ABORTED
    assert await outcome_of(session, "short") == _answered("echo: short")


def _answered(text: str) -> Finished:
    return Finished(text=text, provider="fake", model="fake-1", input_tokens=11, output_tokens=7)


NOISE = {
    "a package manager's line": do("raw", text="changed 265 packages in 8s\n"),
    "an empty line": do("raw", text="\n"),
    "bytes that are no text": do("raw_hex", text="fffe80c3280a"),
    "a list": do("raw", text="[]\n"),
    "null": do("raw", text="null\n"),
    "a number": do("raw", text="12\n"),
    "text": do("raw", text='"agent_end"\n'),
    "half an object": do("raw", text='{"type":"agent_end","messages":[\n'),
    "brackets without end": do("raw", text="[" * 50_000 + "\n"),
}


@pytest.mark.parametrize("noise", NOISE.values(), ids=NOISE)
async def test_m04_noise_between_the_lines_is_skipped_and_counted(
    start: Start, noise: dict[str, object]
) -> None:
    session = await start(steps(noise, say("fine")))

    assert await outcome_of(session, "hello") == _answered("fine")
    assert session.skipped_lines == 1


GLUE = {
    "an escape code": "\u001b]777;notify;x\u0007",
    "words": "npm notice ",
    "an open object": '{"level":"info"}',
    "a broken object": '{"type":"x", ',
}


@pytest.mark.parametrize("glue", GLUE.values(), ids=GLUE)
@pytest.mark.parametrize("dialect", ["new", "old"])
async def test_m04_an_event_glued_behind_noise_is_recovered(
    start: Start, glue: str, dialect: str
) -> None:
    blocks = [{"type": "text", "text": "fine"}]
    message = {"role": "assistant", "content": blocks, "stopReason": "stop"}
    end: dict[str, object] = {"type": "agent_end", "messages": [message]}
    settled = ""
    if dialect == "new":
        end["willRetry"] = False
        settled = f'{glue}{{"type": "agent_settled"}}\n'
    line = f"{glue}{json.dumps(end)}\n{settled}"
    session = await start(steps(do("raw", text=line), do("hang"), dialect=dialect))

    outcome = await outcome_of(session, "hello")

    assert isinstance(outcome, Finished)
    assert outcome.text == "fine"


async def test_invalid_bytes_inside_an_event_cost_only_themselves(start: Start) -> None:
    update = (
        b'{"type":"message_update","assistantMessageEvent":{"type":"text_delta","delta":"a\xff"}}'
    )
    session = await start(steps(do("raw_hex", text=update.hex() + "0a"), say("fine")))

    events = await run_prompt(session, "hello")

    assert events[0] == TextDelta(text="a\ufffd")
    assert events[-1] == _answered("fine")


async def test_m05_lines_of_megabytes_are_read_whole(start: Start) -> None:
    answer = "x" * 300_000
    big = do("tool", name="dump", size=5_000_000)
    session = await start(steps(big, do("say", text="x", times=len(answer))))

    events = await run_prompt(session, "hello")

    assert events[:2] == [ToolCall(name="dump"), ToolResult(name="dump", ok=True)]
    assert events[-1] == _answered(answer)


async def test_a_prompt_of_megabytes_is_written_whole(start: Start, tmp_path: Path) -> None:
    record = tmp_path / "record"
    session = await start({"record": str(record)})
    text = "x" * 3_000_000

    assert isinstance(await outcome_of(session, f"{text}\nend"), Finished)
    assert records(record, "prompt")[0]["message"] == f"{text}\nend"


async def test_m07_unicode_line_ends_stay_inside_their_event_both_ways(
    start: Start, tmp_path: Path
) -> None:
    record = tmp_path / "record"
    text = "a\u2028b\u2029c\u0085d\re\u000bf\u001cg 😀 ß"
    session = await start(steps(say(text), record=str(record)))

    outcome = await outcome_of(session, f"{text}\nnext")

    assert outcome == _answered(text)
    assert records(record, "prompt")[0]["message"] == f"{text}\nnext"
    assert session.skipped_lines == 0


async def test_half_a_surrogate_pair_becomes_text_that_can_be_stored(start: Start) -> None:
    blocks = [{"type": "text", "text": "cut \ud83d here"}]
    session = await start(steps(do("message", content=blocks)))

    outcome = await outcome_of(session, "half \ud83d too")

    assert isinstance(outcome, Finished)
    outcome.text.encode("utf-8")
    assert outcome.text.startswith("cut ")


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ("529 overloaded_error req_011CabcdeF", FailureKind.ERROR),
        ("401 User not found", FailureKind.AUTH),
        ("429 status code (no body)", FailureKind.ERROR),
        ("400 maximum context length is 8192 tokens", FailureKind.CONTEXT),
    ],
)
async def test_m09_m11_a_providers_error_is_classified_and_kept_for_the_log(
    start: Start, error: str, kind: FailureKind
) -> None:
    session = await start(steps(do("fail", text=error)))

    outcome = await outcome_of(session, "hello")

    assert outcome == Failed(kind=kind, detail=error, provider="fake", model="fake-1")
    assert session.is_alive


async def test_m11_a_full_conversation_fails_as_context_until_it_is_a_new_one(
    start: Start,
) -> None:
    overflow = {"min_messages": 2, "steps": [do("fail", text="prompt is too long: 9 > 8")]}
    session = await start({"rules": [overflow]})

    assert isinstance(await outcome_of(session, "one"), Finished)
    second = await outcome_of(session, "two")

    assert isinstance(second, Failed)
    assert second.kind is FailureKind.CONTEXT


@pytest.mark.parametrize(
    ("ack", "kind"),
    [
        ("refuse: Agent is already processing", FailureKind.REFUSED),
        ("refuse: No API key found for anthropic. Use /login", FailureKind.AUTH),
        ("lost_id", FailureKind.REFUSED),
        ("handled", FailureKind.EMPTY),
    ],
)
async def test_a_prompt_that_is_not_taken_fails_and_the_session_goes_on(
    start: Start, ack: str, kind: FailureKind
) -> None:
    session = await start(steps(ack=ack))

    outcome = await outcome_of(session, "hello")

    assert isinstance(outcome, Failed)
    assert outcome.kind is kind
    assert session.is_alive


async def test_a_dialog_is_cancelled_and_a_notification_is_not_answered(
    start: Start, tmp_path: Path
) -> None:
    record = tmp_path / "record"
    ask = do("dialog", method="confirm")
    script = steps(do("dialog", method="notify"), ask, say("done"), record=str(record))
    session = await start(script)

    assert await outcome_of(session, "hello") == _answered("done")
    replies = [dialog["reply"] for dialog in records(record, "dialog")]
    assert replies == [{"type": "extension_ui_response", "id": "d1", "cancelled": True}]


@pytest.mark.parametrize(
    ("blocks", "reply"),
    [
        ([{"type": "text", "text": "<think>secret plan</think>Here it is."}], "Here it is."),
        (
            [
                {"type": "thinking", "thinking": "secret plan"},
                {"type": "text", "text": "Here it "},
                {"type": "text", "text": "is."},
            ],
            "Here it is.",
        ),
        (
            [
                {"type": "text", "text": "Let me check"},
                {"type": "toolCall", "name": "look"},
                {"type": "text", "text": "Here it is."},
            ],
            "Here it is.",
        ),
    ],
    ids=["tags", "blocks", "text before a call"],
)
@pytest.mark.parametrize("dialect", ["new", "old"])
async def test_d25_neither_thoughts_nor_narration_reach_the_reply(
    start: Start, blocks: list[object], reply: str, dialect: str
) -> None:
    narrated = do("narrate", text="Let me check…")
    tool = do("tool", name="look")
    end = do("message", content=blocks)
    session = await start(steps(narrated, tool, end, dialect=dialect))

    assert await outcome_of(session, "hello") == _answered(reply)


@pytest.mark.parametrize("text", ["", "  \n", "<think>only thoughts", "\u200b"])
async def test_an_answer_without_visible_text_fails_as_empty(start: Start, text: str) -> None:
    session = await start(steps(say(text)))

    outcome = await outcome_of(session, "hello")

    assert isinstance(outcome, Failed)
    assert outcome.kind is FailureKind.EMPTY


async def test_a_run_that_stops_at_a_tool_call_has_no_reply(start: Start) -> None:
    blocks = [{"type": "text", "text": "Let me check"}]
    session = await start(steps(do("message", content=blocks, reason="toolUse")))

    outcome = await outcome_of(session, "hello")

    assert isinstance(outcome, Failed)
    assert outcome.kind is FailureKind.EMPTY


async def test_d20_an_old_host_that_compacts_after_an_overflow_is_waited_for(
    start: Start,
) -> None:
    session = await start(steps(do("overflow"), say("fits now"), dialect="old"))

    assert await outcome_of(session, "hello") == _answered("fits now")


async def test_m11_an_old_host_whose_compaction_fails_gives_its_error(start: Start) -> None:
    session = await start(steps(do("overflow", give_up=True), dialect="old"))

    outcome = await outcome_of(session, "hello")

    assert isinstance(outcome, Failed)
    assert outcome.kind is FailureKind.CONTEXT


async def test_a_tool_that_fails_is_noticed_as_failed(start: Start) -> None:
    session = await start(steps(do("tool", name="look", ok=False), say("no luck")))

    events = await run_prompt(session, "hello")

    assert ToolResult(name="look", ok=False) in events


async def test_our_own_child_gets_the_facts_and_nothing_of_our_environment(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TELEGRAM_BOT_TOKEN", "123:secret")
    record = tmp_path / "record"
    session = await start({"record": str(record)})
    prompt = make_prompt("hello")

    await outcome_of(session, "hello")

    told = decode_context(records(record, "prompt")[0]["context"])
    assert told == prompt.context
    started = records(record, "start")[0]
    environment = started["environment"]
    assert isinstance(environment, dict)
    assert environment["GATEWAY_TOOL_TOKEN"] == "secret-token"
    assert environment["GATEWAY_TOOL_SOCKET"] == str(tmp_path / "tools.sock")
    assert "TELEGRAM_BOT_TOKEN" not in environment
    assert started["cwd"] == str(make_spec(tmp_path).directory)


async def test_a_foreign_host_gets_no_facts_and_no_text_that_reads_as_a_command(
    start: Start, tmp_path: Path
) -> None:
    record = tmp_path / "record"
    launch = replace(fake_launch({"record": str(record)}), is_own_child=False)
    session = await start(launch)

    await outcome_of(session, "/skill:x")

    prompt = records(record, "prompt")[0]
    assert prompt["message"] == " /skill:x"
    assert prompt["context"] is None


async def test_a_foreign_host_gives_the_wrapper_no_process_of_its_own(
    start: Start, tmp_path: Path
) -> None:
    record = tmp_path / "record"
    launch = replace(fake_launch({"record": str(record)}), is_own_child=False)
    session = await start(launch)

    # Whatever wraps the command has given way to it: pid and group are the host's own.
    assert records(record, "start")[0]["pid"] == session.pid
    assert group_members(session.pid) == [session.pid]


async def test_session_directories_are_ours_alone(start: Start, tmp_path: Path) -> None:
    await start({})

    directory = make_spec(tmp_path).directory
    assert directory.stat().st_mode & 0o777 == 0o700
    assert directory.parent.stat().st_mode & 0o777 == 0o700


async def test_m12_a_transcript_that_vanished_is_noticed_at_the_next_start(
    start: Start, tmp_path: Path
) -> None:
    session = await start({})
    await outcome_of(session, "remember me")
    await session.close()
    directory = make_spec(tmp_path).directory
    resumed = await start({})
    assert not resumed.lost_context
    await resumed.close()

    (directory / "transcript.jsonl").write_text("")
    bereft = await start({})

    assert bereft.lost_context


async def test_a_fresh_directory_has_lost_nothing(start: Start) -> None:
    assert not (await start({})).lost_context


async def test_m12_a_damaged_note_is_not_a_lost_transcript(start: Start, tmp_path: Path) -> None:
    session = await start({})
    await outcome_of(session, "hello")
    await session.close()
    (make_spec(tmp_path).directory / "gateway-state.json").write_text("{")

    assert not (await start({})).lost_context


async def test_an_ephemeral_session_leaves_no_trace(start: Start, tmp_path: Path) -> None:
    session = await start({}, is_ephemeral=True)

    await outcome_of(session, "hello")
    await session.close()

    assert list(make_spec(tmp_path).directory.iterdir()) == []


async def test_a_cancelled_close_kills_at_once(tmp_path: Path) -> None:
    script = {"ignore": ["term", "eof"]}
    session = await make_host(tmp_path, fake_launch(script)).start(make_spec(tmp_path))
    closing = asyncio.create_task(session.close())
    await asyncio.sleep(0)

    closing.cancel()
    async with asyncio.timeout(2.5):
        await asyncio.wait({closing})

    await eventually(lambda: group_members(session.pid) == [])


async def test_closing_an_idle_host_needs_no_signal(tmp_path: Path) -> None:
    launch = replace(
        fake_launch({}),
        command=(
            sys.executable,
            "-S",
            "-c",
            POLITE_HOST,
        ),
    )
    session = await make_host(tmp_path, launch).start(make_spec(tmp_path))

    await session.close()

    assert (make_spec(tmp_path).directory / "ended well").exists()
