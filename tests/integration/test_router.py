"""Turns: joined, run one at a time, ended once, and told to the person whatever becomes of them."""

import asyncio
import logging
import threading
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import pytest
from sqlalchemy import Row, select

from gateway.domain.delivery import DeliveryKind
from gateway.domain.message import ChatKey
from gateway.domain.richtext import RichText
from gateway.domain.turn import GIVEN_BACK, RunId, RunState, TurnState
from gateway.engine import texts
from gateway.engine.owner import Episode
from gateway.engine.prompts import build_prompt
from gateway.errors import HostNotReadyError, StoreError
from gateway.hosts.base import Failed, FailureKind, Prompt
from gateway.log_context import bound_ids
from gateway.store.database import Database
from gateway.store.ending import Notice, answer_turn, recover_turns
from gateway.store.opening import Layout
from gateway.store.schema import deliveries, runs, turns
from gateway.store.stopping import stop_chat
from gateway.store.turns import Claim
from tests.factories import (
    CHAT,
    NOTICE,
    NOW,
    OTHER_CHAT,
    SERVED,
    claimed,
    cut,
    fired_job,
    later,
    make_message,
    rows_of,
    running_turn,
    states_of,
)
from tests.fakes.clock import ManualClock
from tests.fakes.local_host import End, LocalHost, LocalSession, Pause, hang, said
from tests.fakes.rig import RigRules, running_rig
from tests.fakes.sessions import eventually

OWNER = ChatKey(CHAT.channel, "99")
T = TypeVar("T")


@pytest.fixture
def host() -> LocalHost:
    return LocalHost()


async def only(store: Database) -> tuple[Row[Any], Row[Any]]:
    """The one turn and its one run."""
    (turn,) = await rows_of(store, turns)
    (run,) = await rows_of(store, runs)
    return turn, run


# ---- joining and order -----------------------------------------------------------------------


async def test_a_message_is_answered(
    store: Database, clock: ManualClock, tmp_path: Path, host: LocalHost
) -> None:
    host.steps.append(said("hello Ada"))
    async with running_rig(store, clock, tmp_path, host=host) as rig:
        await rig.receive("hello")
        await rig.until_sent("hello Ada")

    turn, run = await only(store)
    assert (turn.state, turn.reply) == (TurnState.ANSWERED, "hello Ada")
    assert (run.state, run.owner) == (RunState.SUCCEEDED, "rig:1")
    assert (run.provider, run.model) == ("fake", "fake-1")
    assert (run.input_tokens, run.output_tokens) == (1, 2)


async def test_d19_messages_sent_during_a_turn_become_one_follow_up_turn(
    store: Database, clock: ManualClock, tmp_path: Path, host: LocalHost
) -> None:
    slow = Pause("one")
    host.steps.extend([slow, said("two and three")])
    async with running_rig(store, clock, tmp_path, host=host) as rig:
        await rig.receive("first")
        await eventually(lambda: len(host.prompts) == 1)
        await rig.receive("second")
        await rig.receive("third")
        assert len(host.prompts) == 1
        slow.go_on.set()
        await rig.until_sent("one", "two and three")

    assert len(host.prompts) == 2
    assert host.texts[1].endswith('[From "Ada"]\nsecond\nthird')
    assert {row.kind for row in await rows_of(store, deliveries)} == {DeliveryKind.REPLY}


async def test_i20_a_long_paste_becomes_one_prompt(
    store: Database, clock: ManualClock, tmp_path: Path, host: LocalHost
) -> None:
    parts = ["a" * 4096, "b" * 4096, "c" * 808]
    async with running_rig(store, clock, tmp_path, host=host) as rig:
        await rig.receive(make_message(parts[0], hold=1.5, is_part=True))
        rig.advance(0.06)
        await rig.receive("hi", chat=OTHER_CHAT)
        await rig.until_sent("echo: hi", address="43")
        await rig.receive(make_message(parts[1], hold=1.5, is_part=True))
        rig.advance(1.2)
        await rig.receive(parts[2])
        await rig.until_sent(f"echo: {''.join(parts)}")

    assert len(host.prompts) == 2


async def test_i20_a_long_message_alone_waits_for_its_hold_only(
    store: Database, clock: ManualClock, tmp_path: Path, host: LocalHost
) -> None:
    async with running_rig(store, clock, tmp_path, host=host) as rig:
        await rig.receive(make_message("long", hold=1.5, is_part=True))
        await eventually(lambda: clock.waiting == 1)
        assert host.prompts == []
        rig.advance(1.5)
        await rig.until_sent("echo: long")


async def test_i20_a_command_after_a_long_message_does_not_wait(
    store: Database, clock: ManualClock, tmp_path: Path, host: LocalHost
) -> None:
    async with running_rig(store, clock, tmp_path, host=host) as rig:
        await rig.receive(make_message("long", hold=1.5, is_part=True))
        await rig.receive("/reminders")
        await rig.until_sent("You have no reminders.")

    assert host.prompts == []


async def test_i25_a_slow_chat_holds_up_no_other(
    store: Database, clock: ManualClock, tmp_path: Path, host: LocalHost
) -> None:
    host.steps.append(hang)
    third = ChatKey(CHAT.channel, "44")
    async with running_rig(store, clock, tmp_path, host=host) as rig:
        await rig.receive("slow")
        await eventually(lambda: len(host.prompts) == 1)
        await rig.receive("hi", chat=OTHER_CHAT)
        await rig.receive("/reminders", chat=third)

        await rig.until_sent("echo: hi", address="43")
        await rig.until_sent("You have no reminders.", address="44")


async def test_d23_typing_is_shown_until_the_reply_is_out(
    store: Database, clock: ManualClock, tmp_path: Path, host: LocalHost
) -> None:
    slow = Pause("done")
    host.steps.append(slow)
    async with running_rig(store, clock, tmp_path, host=host) as rig:
        await rig.receive("work")
        await eventually(lambda: len(rig.channel.typing) >= 3)
        rig.channel.shut("42")
        slow.go_on.set()
        await eventually(lambda: len(rig.channel.tried) == 1)
        before = len(rig.channel.typing)
        await eventually(lambda: len(rig.channel.typing) >= before + 3)
        rig.channel.open("42")
        await rig.until_sent("done")
        await eventually(lambda: not _typing_tasks())


async def test_d23_typing_is_shown_while_more_of_a_message_is_waited_for(
    store: Database, clock: ManualClock, tmp_path: Path, host: LocalHost
) -> None:
    async with running_rig(store, clock, tmp_path, host=host) as rig:
        await rig.receive(make_message("one", hold=1.5, is_part=True))
        await eventually(lambda: clock.waiting == 1 and len(rig.channel.typing) >= 3)
        await rig.receive(make_message(" two", hold=1.5, is_part=True))
        rig.advance(1.5)
        await rig.until_sent("echo: one two")
        await eventually(lambda: not _typing_tasks())
        await rig.receive(make_message("three", hold=1.5, is_part=True))
        await eventually(lambda: clock.waiting == 1 and len(_typing_tasks()) == 1)
    await eventually(lambda: not _typing_tasks())


def _typing_tasks() -> list[str]:
    return _tasks("typing:")


def _tasks(start: str) -> list[str]:
    names = [task.get_name() for task in asyncio.all_tasks()]
    return [name for name in names if name.startswith(start)]


async def test_nothing_is_run_before_the_first_look(
    store: Database, clock: ManualClock, tmp_path: Path, host: LocalHost
) -> None:
    rules = RigRules(looks=False)
    async with running_rig(store, clock, tmp_path, host=host, rules=rules) as rig:
        await rig.receive("hello")
        assert _tasks("router:") == []
        await rig.router.look(SERVED)
        await rig.until(turns, ["answered"])
        await rig.receive("next")
        await rig.until(turns, ["answered", "answered"])

    assert len(host.prompts) == 2


async def test_what_is_queued_at_the_start_is_run(
    store: Database, clock: ManualClock, tmp_path: Path, host: LocalHost
) -> None:
    async with running_rig(store, clock, tmp_path / "first", host=host) as rig:
        await rig.receive(make_message("late", hold=60))
    async with running_rig(store, clock, tmp_path / "second", host=host) as rig:
        rig.advance(60)
        await rig.until_sent("echo: late")


# ---- what the prompt holds -------------------------------------------------------------------


async def test_r33_reminders_and_command_answers_are_told_once(
    store: Database, clock: ManualClock, tmp_path: Path, host: LocalHost
) -> None:
    async with running_rig(store, clock, tmp_path, host=host) as rig:
        clock.set(later(60))
        await fired_job(store, "call mum", at=later(60))
        await rig.until_sent("call mum")
        await rig.receive("/reminders")
        await rig.until(deliveries, ["sent", "sent"])
        await rig.receive("snooze that")
        await rig.until(turns, ["answered", "answered"])
        await rig.receive("thanks")
        await rig.until(turns, ["answered"] * 3)

    assert 'reminder #1: "call mum"]' in host.texts[0]
    assert "answer to a command: " in host.texts[0]
    assert "Sent to this chat" not in host.texts[1]


async def test_what_a_failed_run_was_told_is_told_again(
    store: Database, clock: ManualClock, tmp_path: Path, host: LocalHost
) -> None:
    host.steps.append(Failed(kind=FailureKind.DIED, detail="exit 1"))
    async with running_rig(store, clock, tmp_path, host=host) as rig:
        clock.set(later(60))
        await fired_job(store, "call mum", at=later(60))
        await rig.until_sent("call mum")
        await rig.receive("one")
        await rig.until(turns, ["answered", "failed"])
        await rig.receive("two")
        await rig.until(turns, ["answered", "failed", "answered"])

    assert all('"call mum"' in text for text in host.texts)


async def test_a_turn_that_was_cut_off_is_run_again_and_says_so(
    store: Database, clock: ManualClock, tmp_path: Path, host: LocalHost
) -> None:
    await running_turn(store, "hello")
    await store.write(recover_turns, SERVED, NOTICE, now=NOW)

    async with running_rig(store, clock, tmp_path, host=host) as rig:
        await rig.until_sent("echo: hello")

    assert "An earlier try at this request was cut off" in host.texts[0]


async def test_a_turn_that_was_cut_off_twice_is_told_and_not_run_again(
    store: Database, clock: ManualClock, tmp_path: Path, host: LocalHost
) -> None:
    notice = Notice(text=texts.interrupted_text, cut=cut)
    await running_turn(store, "hello")
    await store.write(recover_turns, SERVED, notice, now=NOW)
    second = await claimed(store)
    await store.write(recover_turns, SERVED, notice, now=NOW)

    async with running_rig(store, clock, tmp_path, host=host) as rig:
        await rig.until_sent(texts.interrupted_text(second.turn))

    assert host.prompts == []


# ---- stopping --------------------------------------------------------------------------------


async def test_stop_is_stored_and_answered_while_the_run_goes_on(
    store: Database, clock: ManualClock, tmp_path: Path, host: LocalHost
) -> None:
    slow = Pause("too late")
    host.steps.append(slow)
    async with running_rig(store, clock, tmp_path, host=host) as rig:
        await rig.receive("work")
        await eventually(lambda: len(host.prompts) == 1)
        await rig.receive("/stop")

        await rig.until_sent("Stopped.")
        turn, run = await only(store)
        assert (turn.state, run.state) == (TurnState.CANCELLED, RunState.CANCELLED)
        await eventually(lambda: host.sessions[0].aborts == 1)

        slow.go_on.set()  # a host that does not obey, and answers all the same
        await rig.receive("next")
        await rig.until_sent("Stopped.", "echo: next")

    assert await states_of(store, turns) == [TurnState.CANCELLED, TurnState.ANSWERED]


class ClaimWatched(Database):
    """A store in which something happens between a claim and its prompt."""

    claimed: Callable[[Claim], Awaitable[None]] | None = None

    async def insist(self, transition: Callable[..., T], *args: Any, **kwargs: Any) -> T:
        result = await super().insist(transition, *args, **kwargs)
        if isinstance(result, Claim) and self.claimed is not None:
            await self.claimed(result)
        return result


async def test_a_stop_between_claim_and_prompt_is_remembered(
    layout: Layout, clock: ManualClock, tmp_path: Path, host: LocalHost
) -> None:
    store = ClaimWatched(layout.database)
    async with running_rig(store, clock, tmp_path, host=host) as rig:

        async def stop(claim: Claim) -> None:
            store.claimed = None
            stopped = await store.write(stop_chat, CHAT, now=NOW)
            await rig.router.abort(stopped.runs)

        store.claimed = stop
        await rig.receive("never mind")
        await rig.until(turns, ["cancelled"])
        await rig.receive("next")
        await rig.until_sent("echo: next")
    await store.close()

    (prompt,) = host.texts
    assert "never mind" not in prompt


async def test_an_abort_of_a_run_that_is_over_is_not_remembered(
    store: Database, clock: ManualClock, tmp_path: Path, host: LocalHost
) -> None:
    async with running_rig(store, clock, tmp_path, host=host) as rig:
        await rig.router.abort([RunId(1), RunId(2)])
        await rig.receive("hello")
        await rig.until_sent("echo: hello")

    assert (await only(store))[1].id == 1


async def test_new_begins_a_session_of_its_own(
    store: Database, clock: ManualClock, tmp_path: Path, host: LocalHost
) -> None:
    async with running_rig(store, clock, tmp_path, host=host) as rig:
        await rig.receive("one")
        await rig.until_sent("echo: one")
        await rig.receive("/new")
        await eventually(lambda: not host.sessions[0].is_alive)
        await rig.receive("two")
        await rig.until(turns, ["answered", "answered"])

    assert [session.spec.generation for session in host.sessions] == [1, 2]


async def test_new_during_a_run_takes_its_session_away_with_it(
    store: Database, clock: ManualClock, tmp_path: Path, host: LocalHost
) -> None:
    host.steps.append(hang)
    async with running_rig(store, clock, tmp_path, host=host) as rig:
        await rig.receive("work")
        await eventually(lambda: len(host.prompts) == 1)
        await rig.receive("/new")
        await rig.receive("two")
        await rig.until(turns, ["cancelled", "answered"])

    assert [session.spec.generation for session in host.sessions] == [1, 2]
    assert rig.channel.texts()[-1] == "echo: two"


# ---- failures --------------------------------------------------------------------------------

SECRET = "529 overloaded_error req_011CSabc https://api.example/v1 billing@example.com"
OUTCOMES = {
    FailureKind.EMPTY: RunState.EMPTY,
    FailureKind.ERROR: RunState.FAILED,
    FailureKind.REFUSED: RunState.FAILED,
    FailureKind.AUTH: RunState.FAILED,
    FailureKind.CONTEXT: RunState.FAILED,
    FailureKind.ABORTED: RunState.CANCELLED,
    FailureKind.DIED: RunState.FAILED,
    FailureKind.SILENT: RunState.TIMED_OUT,
    FailureKind.TIMED_OUT: RunState.TIMED_OUT,
}


@pytest.mark.parametrize("kind", FailureKind)
async def test_m09_every_failure_is_one_neutral_sentence_and_an_outcome_of_its_own(
    kind: FailureKind, store: Database, clock: ManualClock, tmp_path: Path, host: LocalHost
) -> None:
    host.steps.append(Failed(kind=kind, detail=SECRET, provider="fake", model="fake-1"))
    async with running_rig(store, clock, tmp_path, host=host) as rig:
        await rig.receive("hello")
        await rig.until(deliveries, ["sent"])
        (told,) = rig.channel.texts()
        await rig.receive("again")
        await rig.until(turns, ["failed", "answered"])

    first, _ = await rows_of(store, runs)
    assert (first.state, first.reason, first.error) == (OUTCOMES[kind], kind, SECRET)
    assert (first.provider, first.model) == ("fake", "fake-1")
    turn = (await rows_of(store, turns))[0]
    assert (turn.reason, turn.reply) == (kind, None)
    assert told == texts.failure_text(kind, turn.id)
    assert told.endswith(f" (ref {turn.id})")
    assert not any(word in told for word in SECRET.split())


async def test_a_session_that_does_not_start_fails_the_turn_with_one_notice(
    store: Database, clock: ManualClock, tmp_path: Path, host: LocalHost
) -> None:
    host.refusals.append(HostNotReadyError("no answer within 60 s"))
    async with running_rig(store, clock, tmp_path, host=host, rules=RigRules(owner=OWNER)) as rig:
        await rig.receive("hello")
        await rig.until_sent(texts.not_ready_text((await _only_run(rig.store)).id))
        turn, run = await only(store)
        assert (turn.state, turn.reason) == (TurnState.FAILED, "host_not_ready")
        assert (run.state, run.error) == (RunState.FAILED, "no answer within 60 s")
        await eventually(lambda: len(rig.channel.texts("99")) == 1)
        assert rig.owner.is_open(Episode.HOST_BROKEN)

        await rig.receive("again")
        await rig.until(turns, ["failed", "answered"])
        await eventually(lambda: not rig.owner.is_open(Episode.HOST_BROKEN))


async def _only_run(store: Database) -> Row[Any]:
    async with asyncio.timeout(10):
        while not await rows_of(store, runs):  # noqa: ASYNC110
            await asyncio.sleep(0.005)
    return (await rows_of(store, runs))[0]


async def test_m11_a_conversation_that_grew_too_long_begins_anew(
    store: Database, clock: ManualClock, tmp_path: Path, host: LocalHost
) -> None:
    host.steps.append(Failed(kind=FailureKind.CONTEXT, detail="400 too many tokens"))
    async with running_rig(store, clock, tmp_path, host=host) as rig:
        await rig.receive("one")
        await rig.until(turns, ["failed"])
        await rig.receive("two")
        await rig.until(turns, ["failed", "answered"])

    assert [session.spec.generation for session in host.sessions] == [1, 2]
    assert "a new one begins" in rig.channel.texts()[0]
    assert len(rig.channel.texts()) == 2


async def test_m24_a_refused_key_is_told_to_the_owner_once_an_episode(
    store: Database, clock: ManualClock, tmp_path: Path, host: LocalHost
) -> None:
    refused = Failed(kind=FailureKind.AUTH, detail="401 invalid x-api-key")
    host.steps.extend([refused, refused, said("back"), refused])
    rules = RigRules(owner=OWNER)
    ends: list[str] = []
    async with running_rig(store, clock, tmp_path, host=host, rules=rules) as rig:

        def is_told() -> bool:
            return rig.owner.is_open(Episode.MODEL_REFUSED)

        def is_over() -> bool:
            return not is_told()

        for end in ("failed", "failed", "answered", "failed"):
            ends.append(end)
            await rig.receive("hello")
            await rig.until(turns, ends)
            await eventually(is_told if end == "failed" else is_over)
        await eventually(lambda: len(rig.channel.texts("99")) == 2)
        await eventually(lambda: len(rig.channel.texts()) == 4)

    first, second = rig.channel.texts("99")
    assert first == second
    assert "MODEL_API_KEY" in first
    assert all("MODEL_API_KEY" not in told for told in rig.channel.texts())


async def test_a_model_that_cannot_be_reached_is_told_to_the_owner_once(
    store: Database, clock: ManualClock, tmp_path: Path, host: LocalHost
) -> None:
    away = Failed(kind=FailureKind.ERROR, detail="All connection attempts failed")
    host.steps.extend([away, away, said("back")])
    rules = RigRules(owner=OWNER)
    async with running_rig(store, clock, tmp_path, host=host, rules=rules) as rig:
        for ends in (["failed"], ["failed"] * 2, ["failed", "failed", "answered"]):
            await rig.receive("hello")
            await rig.until(turns, ends)
        await eventually(lambda: not rig.owner.is_open(Episode.MODEL_FAILING))
        await eventually(lambda: len(rig.channel.texts("99")) == 1)

    (told,) = rig.channel.texts("99")
    assert "gateway turns" in told
    assert "connection" not in told


async def test_lost_context_is_told_once_a_session(
    store: Database, clock: ManualClock, tmp_path: Path, host: LocalHost
) -> None:
    host.loses_context = True
    async with running_rig(store, clock, tmp_path, host=host) as rig:
        await rig.receive("one")
        await rig.until_sent(texts.LOST_CONTEXT, "echo: one")
        await rig.receive("two")
        await rig.until_sent(texts.LOST_CONTEXT, "echo: one", "echo: two")

    assert len(await rows_of(store, deliveries)) == 3


class Broken:
    """Something that is not meant to happen, the first time."""

    def __init__(self, then: Callable[..., Any]) -> None:
        self.then = then
        self.is_broken = True

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.is_broken:
            self.is_broken = False
            raise ValueError(SECRET)
        return self.then(*args, **kwargs)


@pytest.mark.parametrize("step", ["build_prompt", "answer_turn", "cut", "host", "tools"])
async def test_what_nobody_foresaw_fails_the_turn_and_the_chat_goes_on(
    step: str,
    store: Database,
    clock: ManualClock,
    tmp_path: Path,
    host: LocalHost,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def explode(session: LocalSession, prompt: Prompt) -> End:
        raise ValueError(SECRET)

    rules = RigRules(cut=BrokenCut()) if step == "cut" else None
    async with running_rig(store, clock, tmp_path, host=host, rules=rules) as rig:
        match step:
            case "host":
                host.steps.append(explode)
            case "tools":
                monkeypatch.setattr(rig.tools, "running", Broken(rig.tools.running))
            case "build_prompt":
                monkeypatch.setattr("gateway.engine.router.build_prompt", Broken(build_prompt))
            case "answer_turn":
                monkeypatch.setattr("gateway.engine.run_ends.answer_turn", Broken(answer_turn))
        await rig.receive("hello")
        await rig.until(turns, ["failed"])
        await rig.receive("next")
        await rig.until(turns, ["failed", "answered"])
        await rig.until(deliveries, ["sent", "sent"])

    first, _ = await rows_of(store, runs)
    assert first.state == RunState.FAILED
    assert SECRET in first.error
    assert rig.channel.texts() == [texts.failure_text(FailureKind.ERROR, first.id), "echo: next"]
    assert [record.message for record in caplog.records].count("run_broke") == 1
    assert not host.sessions[0].is_alive


class BrokenCut:
    """Cannot cut the first reply."""

    is_broken = True

    def __call__(self, text: str, *, is_markdown: bool) -> tuple[RichText, ...]:
        if is_markdown and self.is_broken:
            self.is_broken = False
            raise ValueError(SECRET)
        return cut(text, is_markdown=is_markdown)


class WatchedCut:
    """Notes which thread cuts Markdown."""

    def __init__(self) -> None:
        self.threads: list[str] = []

    def __call__(self, text: str, *, is_markdown: bool) -> tuple[RichText, ...]:
        if is_markdown:
            self.threads.append(threading.current_thread().name)
        return cut(text, is_markdown=is_markdown)


@pytest.mark.parametrize("length", [1, 100_000])
async def test_a_reply_is_cut_where_nobody_waits_for_it(
    length: int, store: Database, clock: ManualClock, tmp_path: Path, host: LocalHost
) -> None:
    watched = WatchedCut()
    host.steps.append(said("x" * length))
    async with running_rig(store, clock, tmp_path, host=host, rules=RigRules(cut=watched)) as rig:
        await rig.receive("hello")
        await rig.until_sent("x" * length)

    (thread,) = watched.threads
    assert not thread.startswith("store")
    assert (thread == threading.current_thread().name) is (length == 1)


async def test_a_run_is_logged_with_its_ids(
    store: Database, clock: ManualClock, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    seen: dict[str, Mapping[str, object]] = {}

    def note(record: logging.LogRecord) -> bool:
        seen[record.getMessage()] = bound_ids()
        return True

    caplog.set_level(logging.INFO)
    caplog.handler.addFilter(note)
    async with running_rig(store, clock, tmp_path) as rig:
        await rig.receive("hello")
        await rig.until_sent("echo: hello")
    caplog.handler.removeFilter(note)

    turn, run = await only(store)
    assert seen["message_received"] == {"chat": CHAT}
    for event in ("run_started", "run_succeeded"):
        assert seen[event] == {"chat": CHAT, "turn": turn.id, "run": run.id}


# ---- waiting for a session -------------------------------------------------------------------


async def test_who_waits_long_for_a_session_is_told_once_a_turn(
    store: Database, clock: ManualClock, tmp_path: Path, host: LocalHost
) -> None:
    slow, slower = Pause("done"), Pause("done again")
    host.steps.extend([slow, slower, said("both")])
    rules = RigRules(patience=0.01, capacity=1)
    async with running_rig(store, clock, tmp_path, host=host, rules=rules) as rig:
        await rig.receive("first", chat=OTHER_CHAT)
        await eventually(lambda: len(host.prompts) == 1)
        await rig.receive("second")
        await rig.until_sent(texts.SLOW_START)
        # A further long part makes the turn wait again, once its session is there.
        await rig.receive(make_message("third", hold=30, is_part=True))
        slow.go_on.set()
        await eventually(lambda: clock.waiting == 1)
        await rig.receive("fourth", chat=OTHER_CHAT)
        await eventually(lambda: len(host.prompts) == 2)
        rig.advance(30)
        await eventually(lambda: rig.pool.stats().waiting == 1)
        patient_until = asyncio.get_running_loop().time() + 5 * rules.patience
        await eventually(lambda: asyncio.get_running_loop().time() > patient_until)
        slower.go_on.set()
        await rig.until_sent(texts.SLOW_START, "both")

    told = [row.text for row in await rows_of(store, deliveries) if row.chat_key == str(CHAT)]
    assert told == [texts.SLOW_START, "both"]


async def test_a_wait_within_patience_is_not_mentioned(
    store: Database, clock: ManualClock, tmp_path: Path, host: LocalHost
) -> None:
    host.may_start.clear()
    async with running_rig(store, clock, tmp_path, host=host) as rig:
        await rig.receive("hello")
        await rig.until(turns, ["queued"])
        host.may_start.set()
        await rig.until_sent("echo: hello")


class Unwilling(Database):
    """A store that takes no notice, the first time."""

    is_unwilling = True

    async def insist(self, transition: Callable[..., T], *args: Any, **kwargs: Any) -> T:
        if self.is_unwilling and {texts.LOST_CONTEXT, texts.SLOW_START} & {*args}:
            self.is_unwilling = False
            raise StoreError("broken")
        return await super().insist(transition, *args, **kwargs)


@pytest.mark.parametrize("loses_context", [True, False])
async def test_a_session_is_not_lost_with_a_notice_that_could_not_be_stored(
    loses_context: bool, layout: Layout, clock: ManualClock, tmp_path: Path, host: LocalHost
) -> None:
    store = Unwilling(layout.database)
    host.loses_context = loses_context
    rules = RigRules(patience=10 if loses_context else 0.001, capacity=1)
    async with running_rig(store, clock, tmp_path, host=host, rules=rules) as rig:
        if not loses_context:
            host.may_start.clear()
        await rig.receive("hello")
        await eventually(lambda: clock.waiting == 1)
        host.may_start.set()
        rig.advance(5)
        await eventually(lambda: "echo: hello" in rig.channel.texts())
    await store.close()


# ---- the end of the gateway ------------------------------------------------------------------


async def test_a_run_that_outlasts_the_stop_is_given_back(
    store: Database, clock: ManualClock, tmp_path: Path, host: LocalHost
) -> None:
    host.steps.append(hang)
    async with running_rig(store, clock, tmp_path, host=host) as rig:
        await rig.receive("work")
        await eventually(lambda: len(host.prompts) == 1)

    turn, run = await only(store)
    assert turn.state == TurnState.QUEUED
    assert (run.state, run.reason) == (RunState.INTERRUPTED, GIVEN_BACK)
    assert await rows_of(store, deliveries) == []

    async with running_rig(store, clock, tmp_path / "again", host=host) as rig:
        await rig.until_sent("echo: work")
    assert "cut off" not in host.texts[1]


async def test_a_run_that_ends_during_the_stop_is_kept(
    store: Database, clock: ManualClock, tmp_path: Path, host: LocalHost
) -> None:
    slow = Pause("just in time")
    host.steps.append(slow)
    async with running_rig(store, clock, tmp_path, host=host) as rig:
        await rig.receive("work")
        await eventually(lambda: len(host.prompts) == 1)
        closing = asyncio.create_task(rig.router.close(rig.stop_patience, grace=20))
        slow.go_on.set()
        await closing

    turn, _ = await only(store)
    assert (turn.state, turn.reply) == (TurnState.ANSWERED, "just in time")


async def test_a_turn_claimed_as_the_gateway_stops_is_given_back_unrun(
    layout: Layout, clock: ManualClock, tmp_path: Path, host: LocalHost
) -> None:
    store = ClaimWatched(layout.database)
    async with running_rig(store, clock, tmp_path, host=host) as rig:

        async def close(claim: Claim) -> None:
            closing.append(asyncio.create_task(rig.router.close(rig.stop_patience, grace=20)))
            await asyncio.sleep(0)
            await asyncio.sleep(0)

        closing: list[asyncio.Task[None]] = []
        store.claimed = close
        await rig.receive("hello")
        await rig.until(turns, ["queued"], turns.c.id.in_(select(runs.c.turn_id)))
        await asyncio.gather(*closing)
    (run,) = await rows_of(store, runs)
    await store.close()

    assert (run.state, run.reason) == (RunState.INTERRUPTED, GIVEN_BACK)
    assert host.prompts == []


async def test_a_stop_does_not_wait_for_sessions_that_are_not_there_yet(
    store: Database, clock: ManualClock, tmp_path: Path, host: LocalHost
) -> None:
    host.may_start.clear()
    async with running_rig(store, clock, tmp_path, host=host) as rig:
        await rig.receive("hello")
        await eventually(lambda: host.starts == 1)
        async with asyncio.timeout(3):
            await rig.router.close(rig.stop_patience, grace=3600)

    assert await states_of(store, turns) == [TurnState.QUEUED]
    assert await rows_of(store, runs) == []
