"""The pool: who gets a session, who waits, who makes room, and what is left in the end."""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator
from pathlib import Path

import pytest

from gateway.domain.message import ChannelName, ChatKey
from gateway.errors import HostNotReadyError
from gateway.hosts.base import (
    Failed,
    FailureKind,
    Finished,
    HostEvent,
    HostKind,
    HostSession,
    Prompt,
    SessionSpec,
)
from gateway.hosts.directory import session_directory
from gateway.hosts.ledger import ProcessLedger
from gateway.hosts.pi import RpcHost
from gateway.hosts.pool import HostPool, PoolLimits, PoolStats
from gateway.hosts.process import HostExitedError
from tests.fakes.fake_host import fake_launch
from tests.fakes.sessions import eventually, is_alive, outcome_of

HOUR = 3600.0


def chat(number: int) -> ChatKey:
    return ChatKey(ChannelName.TELEGRAM, str(number))


class Session:
    """A session in this process; it ends when it may."""

    def __init__(self, spec: SessionSpec) -> None:
        self.spec = spec
        self.is_alive = True
        self.lost_context = False
        self.closings = 0
        self.may_close = asyncio.Event()
        self.may_close.set()

    async def prompt(self, prompt: Prompt) -> AsyncGenerator[HostEvent, None]:
        yield Failed(kind=FailureKind.ABORTED, detail="stopped")

    async def abort(self) -> None:
        pass

    async def close(self) -> None:
        self.closings += 1
        self.is_alive = False
        await self.may_close.wait()


class Tokens:
    """Issues numbered tokens and knows which still count."""

    def __init__(self) -> None:
        self.issued = 0
        self.valid: dict[str, ChatKey] = {}

    def issue(self, chat: ChatKey) -> str:
        self.issued += 1
        token = f"token-{self.issued}"
        self.valid[token] = chat
        return token

    def revoke(self, token: str) -> None:
        self.valid.pop(token, None)


class InProcessHost:
    """Starts sessions in this process; `errors` are raised by the next starts, in order."""

    kind = HostKind.OFFLINE
    model = None

    def __init__(self) -> None:
        self.started: list[Session] = []
        self.errors: list[Exception | None] = []
        self.may_start = asyncio.Event()
        self.may_start.set()
        self.starting = 0
        self.most_starting = 0

    async def start(self, spec: SessionSpec) -> HostSession:
        self.starting += 1
        self.most_starting = max(self.most_starting, self.starting)
        try:
            await self.may_start.wait()
        finally:
            self.starting -= 1
        error = self.errors.pop(0) if self.errors else None
        if error is not None:
            raise error
        spec.directory.mkdir(parents=True, exist_ok=True)
        self.started.append(Session(spec))
        return self.started[-1]


class Setup:
    """A pool over an in-process host."""

    def __init__(self, root: Path, **limits: float) -> None:
        self.host = InProcessHost()
        self.tokens = Tokens()
        self.root = root
        self.pool = HostPool(
            self.host,
            root=root,
            tool_address=root / "tools.sock",
            tokens=self.tokens,
            limits=PoolLimits(
                capacity=int(limits.get("capacity", 2)),
                idle_timeout=limits.get("idle_timeout", HOUR),
                parallel_starts=int(limits.get("parallel_starts", 2)),
            ),
        )

    def keep_transcript(self, number: int) -> Path:
        """Put a transcript where the chat's session looks for one."""
        directory = session_directory(self.root, chat(number), 1)
        directory.mkdir(parents=True)
        transcript = directory / "transcript.jsonl"
        transcript.write_text("kept")
        return transcript


@pytest.fixture
async def setup(tmp_path: Path) -> AsyncIterator[Setup]:
    made = Setup(tmp_path)
    yield made
    await made.pool.close(5)


def later(
    pool: HostPool, number: int, *, generation: int = 1, is_ephemeral: bool = False
) -> "asyncio.Task[HostSession]":
    return asyncio.create_task(
        pool.acquire(chat(number), generation=generation, is_ephemeral=is_ephemeral)
    )


async def settle() -> None:
    """Let everything run that can run without anything new happening."""
    for _ in range(50):
        await asyncio.sleep(0)


async def test_a_released_session_is_warm_for_its_chat_alone(setup: Setup) -> None:
    first = await setup.pool.acquire(chat(1), generation=1)
    setup.pool.release(first)

    again = await setup.pool.acquire(chat(1), generation=1)
    other = await setup.pool.acquire(chat(2), generation=1)

    assert again is first
    assert other is not first
    assert [session.spec.chat for session in setup.host.started] == [chat(1), chat(2)]
    assert setup.pool.stats() == PoolStats(live=2, busy=2, waiting=0)


async def test_a_session_is_told_its_chat_directory_and_token(setup: Setup) -> None:
    await setup.pool.acquire(chat(7), generation=3)

    spec = setup.host.started[0].spec
    assert spec.directory == session_directory(setup.root, chat(7), 3)
    assert spec.directory.name == "3"
    assert len(spec.directory.parent.name) == 16
    assert setup.tokens.valid == {spec.tool_token: chat(7)}


async def test_a_new_generation_gets_a_fresh_process_after_the_old_one_ended(
    setup: Setup,
) -> None:
    old = await setup.pool.acquire(chat(1), generation=1)
    setup.pool.release(old)
    setup.host.started[0].may_close.clear()

    waiting = later(setup.pool, 1, generation=2)
    await settle()
    assert not waiting.done()
    assert len(setup.host.started) == 1
    setup.host.started[0].may_close.set()

    assert (await waiting) is not old
    assert setup.host.started[1].spec.generation == 2
    assert setup.tokens.valid == {"token-2": chat(1)}


async def test_a_full_pool_ends_the_longest_idle_session(setup: Setup) -> None:
    first = await setup.pool.acquire(chat(1), generation=1)
    second = await setup.pool.acquire(chat(2), generation=1)
    setup.pool.release(second)
    await asyncio.sleep(0.002)
    setup.pool.release(first)

    await setup.pool.acquire(chat(3), generation=1)

    assert [session.closings for session in setup.host.started] == [0, 1, 0]
    assert set(setup.tokens.valid.values()) == {chat(1), chat(3)}


async def test_a_place_is_given_on_only_when_its_process_has_ended(setup: Setup) -> None:
    for number in (1, 2):
        setup.pool.release(await setup.pool.acquire(chat(number), generation=1))
    for session in setup.host.started:
        session.may_close.clear()

    waiting = later(setup.pool, 3)
    await settle()
    assert len(setup.host.started) == 2
    for session in setup.host.started:
        session.may_close.set()

    await waiting
    assert setup.pool.stats().live == 2


async def test_busy_sessions_are_never_evicted_and_chats_wait_in_order(setup: Setup) -> None:
    held = [await setup.pool.acquire(chat(number), generation=1) for number in (1, 2)]
    waiting = [later(setup.pool, number) for number in (3, 4, 5)]
    await settle()
    assert setup.pool.stats() == PoolStats(live=2, busy=2, waiting=3)
    assert [session.closings for session in setup.host.started] == [0, 0]

    setup.pool.release(held[0])
    third = await waiting[0]
    await settle()
    assert not waiting[1].done()
    setup.pool.release(held[1])
    await waiting[1]
    setup.pool.release(third)
    await waiting[2]

    order = [session.spec.chat for session in setup.host.started]
    assert order == [chat(1), chat(2), chat(3), chat(4), chat(5)]


async def test_a_chat_waits_for_its_own_session_and_others_pass(setup: Setup) -> None:
    held = await setup.pool.acquire(chat(1), generation=1)

    same = later(setup.pool, 1)
    await settle()
    other = await setup.pool.acquire(chat(2), generation=1)
    assert not same.done()
    setup.pool.release(held)

    assert (await same) is held
    assert other is not held
    assert len(setup.host.started) == 2


async def test_a_chat_that_waits_itself_is_not_the_first_to_make_room(setup: Setup) -> None:
    one = await setup.pool.acquire(chat(1), generation=1)
    two = await setup.pool.acquire(chat(2), generation=1)
    three = later(setup.pool, 3)
    again = later(setup.pool, 1)
    await settle()

    setup.pool.release(two)
    await three
    setup.pool.release(one)

    assert (await again) is one


async def test_a_prompt_of_its_own_gets_a_fresh_session_beside_the_chats(setup: Setup) -> None:
    own = await setup.pool.acquire(chat(1), generation=1)

    once = await setup.pool.acquire(chat(1), generation=1, is_ephemeral=True)
    setup.pool.release(once)
    await eventually(lambda: setup.host.started[1].closings == 1)

    assert once is not own
    assert setup.host.started[1].spec.is_ephemeral
    assert setup.host.started[0].closings == 0
    assert setup.tokens.valid == {"token-1": chat(1)}


async def test_a_session_that_died_while_idle_is_replaced_without_an_error(
    setup: Setup,
) -> None:
    first = await setup.pool.acquire(chat(1), generation=1)
    setup.pool.release(first)
    setup.host.started[0].is_alive = False

    second = await setup.pool.acquire(chat(1), generation=1)

    assert second is not first
    assert second.is_alive
    assert not second.lost_context
    assert setup.tokens.valid == {"token-2": chat(1)}


async def test_a_session_that_broke_is_not_kept(setup: Setup) -> None:
    session = await setup.pool.acquire(chat(1), generation=1)
    setup.host.started[0].is_alive = False

    setup.pool.release(session)
    await eventually(lambda: setup.host.started[0].closings == 1)

    assert setup.tokens.valid == {}
    assert setup.pool.stats() == PoolStats(live=0, busy=0, waiting=0)


async def test_a_session_that_ends_slowly_has_no_key_to_the_tools_any_more(setup: Setup) -> None:
    once = await setup.pool.acquire(chat(1), generation=1, is_ephemeral=True)
    setup.host.started[0].may_close.clear()

    setup.pool.release(once)
    await eventually(lambda: setup.host.started[0].closings == 1)

    assert setup.pool.stats().live == 0
    assert setup.tokens.valid == {}
    setup.host.started[0].may_close.set()


async def test_discard_ends_the_session_and_frees_its_place(setup: Setup) -> None:
    held = [await setup.pool.acquire(chat(number), generation=1) for number in (1, 2)]
    waiting = later(setup.pool, 3)
    await settle()

    await setup.pool.discard(held[0])

    await waiting
    assert setup.host.started[0].closings == 1


async def test_giving_back_twice_is_harmless(setup: Setup) -> None:
    session = await setup.pool.acquire(chat(1), generation=1)

    await setup.pool.discard(session)
    await setup.pool.discard(session)
    setup.pool.release(session)

    assert setup.host.started[0].closings == 1


async def test_evict_ends_the_idle_at_once_and_the_busy_when_they_come_back(
    setup: Setup,
) -> None:
    setup.pool.release(await setup.pool.acquire(chat(1), generation=1))
    busy = await setup.pool.acquire(chat(2), generation=1)

    await setup.pool.evict(chat(1))
    await setup.pool.evict(chat(2))
    assert [session.closings for session in setup.host.started] == [1, 0]
    setup.pool.release(busy)

    await eventually(lambda: setup.host.started[1].closings == 1)


async def test_idle_sessions_are_ended_when_their_time_is_over(tmp_path: Path) -> None:
    setup = Setup(tmp_path, idle_timeout=0.05)
    busy = await setup.pool.acquire(chat(1), generation=1)
    setup.pool.release(await setup.pool.acquire(chat(2), generation=1))

    await eventually(lambda: setup.tokens.valid == {"token-1": chat(1)})

    assert setup.pool.stats() == PoolStats(live=1, busy=1, waiting=0)
    assert [session.closings for session in setup.host.started] == [0, 1]
    setup.pool.release(busy)
    await eventually(lambda: setup.pool.stats().live == 0)
    await setup.pool.close(5)


async def test_starts_are_staggered(tmp_path: Path) -> None:
    setup = Setup(tmp_path, capacity=10, parallel_starts=3)
    setup.host.may_start.clear()
    waiting = [later(setup.pool, number) for number in range(8)]
    await settle()
    assert setup.host.starting == 3
    setup.host.may_start.set()

    await asyncio.gather(*waiting)

    assert setup.host.most_starting == 3
    await setup.pool.close(5)


async def test_a_start_that_fails_reaches_its_chat_and_frees_the_place(setup: Setup) -> None:
    setup.host.errors = [HostNotReadyError("slow")]

    with pytest.raises(HostNotReadyError, match="slow"):
        await setup.pool.acquire(chat(1), generation=1)

    assert setup.tokens.valid == {}
    for number in (1, 2):
        await setup.pool.acquire(chat(number), generation=1)


async def test_m12_two_quick_exits_put_the_transcript_aside_and_start_afresh(
    setup: Setup,
) -> None:
    transcript = setup.keep_transcript(1)
    setup.host.errors = [HostExitedError("1"), HostExitedError("2")]

    session = await setup.pool.acquire(chat(1), generation=1)

    assert session.lost_context
    assert not transcript.exists()
    kept = list(transcript.parent.parent.glob("1.damaged-*/transcript.jsonl"))
    assert [path.read_text() for path in kept] == ["kept"]
    setup.pool.release(session)
    assert not (await setup.pool.acquire(chat(2), generation=1)).lost_context


async def test_m12_a_slow_start_is_tried_again_by_the_next_turn_before_that(
    setup: Setup,
) -> None:
    transcript = setup.keep_transcript(1)
    setup.host.errors = [HostNotReadyError("1"), HostNotReadyError("2")]

    with pytest.raises(HostNotReadyError, match="1"):
        await setup.pool.acquire(chat(1), generation=1)
    assert transcript.exists()
    session = await setup.pool.acquire(chat(1), generation=1)

    assert session.lost_context
    assert not transcript.exists()


async def test_m12_a_success_between_two_failures_clears_the_suspicion(setup: Setup) -> None:
    transcript = setup.keep_transcript(1)
    for _ in range(3):
        setup.host.errors = [HostNotReadyError("slow")]
        with pytest.raises(HostNotReadyError):
            await setup.pool.acquire(chat(1), generation=1)
        await setup.pool.discard(await setup.pool.acquire(chat(1), generation=1))

    assert transcript.exists()


async def test_m12_a_host_that_cannot_start_at_all_costs_nobody_the_transcript(
    setup: Setup,
) -> None:
    transcript = setup.keep_transcript(1)
    setup.host.errors = [HostExitedError("no such model") for _ in range(6)]

    for _ in range(2):
        with pytest.raises(HostNotReadyError):
            await setup.pool.acquire(chat(1), generation=1)
    session = await setup.pool.acquire(chat(1), generation=1)

    assert transcript.read_text() == "kept"
    assert not session.lost_context
    assert list(transcript.parent.parent.glob("*.damaged-*")) == []


async def test_one_who_stops_waiting_keeps_nobody_from_a_place(setup: Setup) -> None:
    held = [await setup.pool.acquire(chat(number), generation=1) for number in (1, 2)]
    gone = later(setup.pool, 3)
    patient = later(setup.pool, 4)
    await settle()

    gone.cancel()
    setup.pool.release(held[0])
    await patient

    assert gone.cancelled()
    assert setup.pool.stats() == PoolStats(live=2, busy=2, waiting=0)


async def test_a_start_that_nobody_waits_for_is_given_up(setup: Setup) -> None:
    setup.host.may_start.clear()
    gone = later(setup.pool, 1)
    await settle()

    gone.cancel()
    await asyncio.wait({gone})
    await settle()

    assert setup.tokens.valid == {}
    setup.host.may_start.set()
    for number in (1, 2):
        await setup.pool.acquire(chat(number), generation=1)


async def test_a_warm_session_granted_to_one_who_left_is_free_again(setup: Setup) -> None:
    held = await setup.pool.acquire(chat(1), generation=1)
    gone = later(setup.pool, 1)
    await settle()
    setup.pool.release(held)  # grants it to the waiting task, which has not run yet
    gone.cancel()
    await asyncio.wait({gone})

    assert (await setup.pool.acquire(chat(1), generation=1)) is held


async def test_a_place_granted_to_one_who_left_is_free_again(setup: Setup) -> None:
    held = [await setup.pool.acquire(chat(number), generation=1) for number in (1, 2)]
    gone = later(setup.pool, 3)
    await settle()
    setup.pool.release(held[0])
    gone.cancel()
    await asyncio.wait({gone})
    await settle()

    await setup.pool.acquire(chat(4), generation=1)

    assert setup.pool.stats().live == 2


async def test_closing_ends_all_sessions_and_turns_waiters_away(setup: Setup) -> None:
    held = [await setup.pool.acquire(chat(number), generation=1) for number in (1, 2)]
    setup.pool.release(held[0])
    waiting = [later(setup.pool, 2), later(setup.pool, 2)]
    await settle()

    await setup.pool.close(5)

    assert [session.closings for session in setup.host.started] == [1, 1]
    assert setup.tokens.valid == {}
    results = await asyncio.gather(*waiting, return_exceptions=True)
    assert all(isinstance(result, HostNotReadyError) for result in results)
    with pytest.raises(HostNotReadyError):
        await setup.pool.acquire(chat(1), generation=1)


async def test_closing_gives_up_what_is_still_starting(setup: Setup) -> None:
    setup.host.may_start.clear()
    waiting = later(setup.pool, 1)
    await settle()

    await setup.pool.close(5)

    with pytest.raises(HostNotReadyError):
        await waiting
    assert setup.tokens.valid == {}


async def test_closing_does_not_wait_for_ever(setup: Setup) -> None:
    await setup.pool.acquire(chat(1), generation=1)
    setup.host.started[0].may_close.clear()

    async with asyncio.timeout(10):
        await setup.pool.close(0.05)

    assert setup.tokens.valid == {}


async def test_s15_a_new_pool_starts_nothing_for_old_directories(tmp_path: Path) -> None:
    setup = Setup(tmp_path)
    for number in range(30):
        setup.keep_transcript(number)

    await settle()

    assert setup.pool.stats() == PoolStats(live=0, busy=0, waiting=0)
    assert setup.host.started == []


async def test_m14_real_sessions_come_and_go_without_a_trace(tmp_path: Path) -> None:
    record = tmp_path / "record"
    fork = {"match": "fork", "steps": [{"do": "fork"}, {"do": "say", "text": "forked"}]}
    launch = fake_launch({"record": str(record), "rules": [fork]})
    ledger = ProcessLedger(tmp_path / "processes")
    pool = HostPool(
        RpcHost(HostKind.OFFLINE, launch, ledger=ledger),
        root=tmp_path / "sessions",
        tool_address=tmp_path / "tools.sock",
        tokens=Tokens(),
        limits=PoolLimits(capacity=2),
    )
    for number in range(6):
        session = await pool.acquire(chat(number), generation=1)
        assert isinstance(await outcome_of(session, "fork"), Finished)
        pool.release(session)
    await pool.close(10)

    happened = [json.loads(line) for line in record.read_text().splitlines()]
    pids = [event["pid"] for event in happened if "pid" in event]
    assert len(pids) == 12
    await eventually(lambda: not any(is_alive(pid) for pid in pids))
    assert list((tmp_path / "processes").iterdir()) == []


async def test_m12_a_real_host_that_dies_of_its_transcript_starts_afresh(tmp_path: Path) -> None:
    launch = fake_launch({"start": "exit_on_transcript"})
    pool = HostPool(
        RpcHost(HostKind.OFFLINE, launch, ledger=ProcessLedger(tmp_path / "processes")),
        root=tmp_path / "sessions",
        tool_address=tmp_path / "tools.sock",
        tokens=Tokens(),
    )
    first = await pool.acquire(chat(1), generation=1)
    await outcome_of(first, "hello")
    await pool.discard(first)

    second = await pool.acquire(chat(1), generation=1)

    assert second.lost_context
    assert isinstance(await outcome_of(second, "still there?"), Finished)
    await pool.close(10)
