"""What the engine may rely on, whichever host runs the model."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gateway.hosts.base import (
    Failed,
    FailureKind,
    Finished,
    Host,
    HostEvent,
    HostSession,
    TextDelta,
    ToolCall,
    ToolResult,
)
from tests.contract.host_implementations import IMPLEMENTATIONS, Implementation, Scene
from tests.fakes.sessions import make_spec, outcome_of, run_prompt

Reading = asyncio.Task[list[HostEvent]]

pytestmark = pytest.mark.parametrize(
    "implementation", IMPLEMENTATIONS, ids=[one.name for one in IMPLEMENTATIONS]
)


@pytest.fixture
async def host(implementation: Implementation, tmp_path: Path) -> AsyncIterator[Host]:
    async with implementation.open(tmp_path) as host:
        yield host


@pytest.fixture
async def session(host: Host, tmp_path: Path) -> AsyncIterator[HostSession]:
    session = await host.start(make_spec(tmp_path))
    yield session
    await session.close()


def prompt_for(implementation: Implementation, scene: Scene) -> str:
    if scene not in implementation.prompts:
        pytest.skip(f"{implementation.name} knows no such scene")
    return implementation.prompts[scene]


async def test_a_started_session_is_alive_and_missed_nothing(session: HostSession) -> None:
    assert session.is_alive
    assert not session.lost_context


async def test_an_answer_ends_in_one_finished_with_the_whole_text(
    implementation: Implementation, session: HostSession
) -> None:
    events = await run_prompt(session, prompt_for(implementation, Scene.TEXT))

    last = events[-1]
    assert isinstance(last, Finished)
    assert last.text == implementation.replies[Scene.TEXT]
    assert not any(isinstance(event, Finished | Failed) for event in events[:-1])
    pieces = [event.text for event in events if isinstance(event, TextDelta)]
    assert "".join(pieces).strip() == last.text


async def test_a_session_takes_one_prompt_after_another(
    implementation: Implementation, session: HostSession
) -> None:
    for _ in range(3):
        outcome = await outcome_of(session, prompt_for(implementation, Scene.TEXT))
        assert isinstance(outcome, Finished)


async def test_d25_a_tool_call_is_noticed_and_its_narration_is_no_reply(
    implementation: Implementation, session: HostSession
) -> None:
    events = await run_prompt(session, prompt_for(implementation, Scene.TOOL))

    notices = [event for event in events if isinstance(event, ToolCall | ToolResult)]
    assert [type(event) for event in notices] == [ToolCall, ToolResult]
    assert notices[0].name == notices[1].name != ""
    assert isinstance(notices[1], ToolResult)
    assert notices[1].ok
    assert isinstance(events[-1], Finished)
    assert events[-1].text == implementation.replies[Scene.TOOL]


async def test_a_run_without_text_fails_as_empty(
    implementation: Implementation, session: HostSession
) -> None:
    outcome = await outcome_of(session, prompt_for(implementation, Scene.EMPTY))

    assert isinstance(outcome, Failed)
    assert outcome.kind is FailureKind.EMPTY
    assert session.is_alive


async def test_m09_a_refused_key_is_told_apart_and_the_session_goes_on(
    implementation: Implementation, session: HostSession
) -> None:
    outcome = await outcome_of(session, prompt_for(implementation, Scene.AUTH))

    assert isinstance(outcome, Failed)
    assert outcome.kind is FailureKind.AUTH
    again = await outcome_of(session, prompt_for(implementation, Scene.TEXT))
    assert isinstance(again, Finished)


async def test_d20_a_failure_that_the_host_mends_is_one_reply(
    implementation: Implementation, session: HostSession
) -> None:
    events = await run_prompt(session, prompt_for(implementation, Scene.RETRY))

    ends = [event for event in events if isinstance(event, Finished | Failed)]
    assert len(ends) == 1
    assert isinstance(ends[0], Finished)
    assert ends[0].text == implementation.replies[Scene.RETRY]


async def test_a_prompt_that_starts_no_run_fails_as_empty(
    implementation: Implementation, session: HostSession
) -> None:
    outcome = await outcome_of(session, prompt_for(implementation, Scene.HANDLED))

    assert isinstance(outcome, Failed)
    assert outcome.kind is FailureKind.EMPTY
    assert session.is_alive


async def begin(implementation: Implementation, session: HostSession) -> Reading:
    """Begin a run that does not end by itself, and read it elsewhere."""
    text = prompt_for(implementation, Scene.ENDLESS)
    reading = asyncio.create_task(run_prompt(session, text))
    await asyncio.sleep(0)
    return reading


async def test_abort_ends_the_run_as_aborted_and_the_next_prompt_works(
    implementation: Implementation, session: HostSession
) -> None:
    reading = await begin(implementation, session)

    await session.abort()

    last = (await reading)[-1]
    assert isinstance(last, Failed)
    assert last.kind is FailureKind.ABORTED
    again = await outcome_of(session, prompt_for(implementation, Scene.TEXT))
    assert isinstance(again, Finished)


async def test_a_reader_that_goes_away_stops_the_run(
    implementation: Implementation, session: HostSession
) -> None:
    reading = await begin(implementation, session)

    reading.cancel()

    await asyncio.wait({reading})
    again = await outcome_of(session, prompt_for(implementation, Scene.TEXT))
    assert isinstance(again, Finished)


async def test_abort_without_a_run_does_nothing(
    implementation: Implementation, session: HostSession
) -> None:
    await session.abort()

    assert isinstance(await outcome_of(session, prompt_for(implementation, Scene.TEXT)), Finished)


async def test_a_second_prompt_during_a_run_is_refused(
    implementation: Implementation, session: HostSession
) -> None:
    reading = await begin(implementation, session)

    second = await outcome_of(session, prompt_for(implementation, Scene.TEXT))

    assert isinstance(second, Failed)
    assert second.kind is FailureKind.REFUSED
    assert not reading.done()
    await session.abort()
    await reading


async def test_a_closed_session_stays_closed(
    implementation: Implementation, session: HostSession
) -> None:
    await session.close()
    await session.close()

    assert not session.is_alive
    outcome = await outcome_of(session, prompt_for(implementation, Scene.TEXT))
    assert isinstance(outcome, Failed)
    assert outcome.kind is FailureKind.DIED


async def test_closing_in_mid_run_ends_the_run(
    implementation: Implementation, session: HostSession
) -> None:
    reading = await begin(implementation, session)

    await session.close()

    assert isinstance((await reading)[-1], Failed)
    assert not session.is_alive


async def test_an_ephemeral_session_answers_like_any_other(
    implementation: Implementation, host: Host, tmp_path: Path
) -> None:
    session = await host.start(make_spec(tmp_path, is_ephemeral=True))
    try:
        outcome = await outcome_of(session, prompt_for(implementation, Scene.TEXT))
    finally:
        await session.close()

    assert isinstance(outcome, Finished)
