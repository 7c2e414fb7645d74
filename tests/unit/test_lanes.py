"""Lanes: one chat's work at a time and in order, chats side by side, and an orderly end."""

import asyncio
import logging
from datetime import datetime, timedelta

import pytest

from gateway.domain.message import ChatKey
from gateway.engine.lanes import Lanes, Patience
from tests.factories import CHAT, OTHER_CHAT
from tests.fakes.clock import ManualClock
from tests.fakes.sessions import eventually


class Worker:
    """Counts what it is asked to do; each chat's gate holds its work back."""

    def __init__(self) -> None:
        self.began: list[ChatKey] = []
        self.ended: list[ChatKey] = []
        self.busy: dict[ChatKey, int] = {}
        self.most_busy = 0
        self.gates: dict[ChatKey, asyncio.Event] = {}
        self.again_at: list[datetime | None] = []
        self.errors: list[Exception] = []

    async def work(self, chat: ChatKey) -> datetime | None:
        self.began.append(chat)
        self.busy[chat] = self.busy.get(chat, 0) + 1
        self.most_busy = max(self.most_busy, self.busy[chat])
        try:
            if chat in self.gates:
                await self.gates[chat].wait()
            if self.errors:
                raise self.errors.pop()
        finally:
            self.busy[chat] -= 1
        self.ended.append(chat)
        return self.again_at.pop(0) if self.again_at else None


def is_at_rest() -> bool:
    """Whether no lane works or waits."""
    return not any(task.get_name().startswith("test:") for task in asyncio.all_tasks())


@pytest.fixture
def worker() -> Worker:
    return Worker()


async def test_a_hint_makes_a_chat_be_looked_at(worker: Worker, clock: ManualClock) -> None:
    lanes = Lanes("test", worker.work, clock)

    lanes.hint([CHAT, OTHER_CHAT])
    await eventually(is_at_rest)

    assert sorted(worker.ended, key=str) == [CHAT, OTHER_CHAT]


async def test_hints_while_a_chat_is_worked_on_make_one_more_look(
    worker: Worker, clock: ManualClock
) -> None:
    gate = worker.gates[CHAT] = asyncio.Event()
    lanes = Lanes("test", worker.work, clock)
    lanes.hint([CHAT])
    await eventually(lambda: worker.began == [CHAT])

    lanes.hint([CHAT])
    lanes.hint([CHAT])
    gate.set()
    await eventually(is_at_rest)

    assert worker.ended == [CHAT, CHAT]
    assert worker.most_busy == 1


async def test_i25_a_chat_that_takes_long_holds_up_no_other(
    worker: Worker, clock: ManualClock
) -> None:
    gate = worker.gates[CHAT] = asyncio.Event()
    lanes = Lanes("test", worker.work, clock)

    lanes.hint([CHAT, OTHER_CHAT])
    await eventually(lambda: worker.ended == [OTHER_CHAT])

    gate.set()
    await eventually(is_at_rest)


async def test_a_lane_waits_for_its_moment(worker: Worker, clock: ManualClock) -> None:
    worker.again_at = [clock.now() + timedelta(minutes=1), None]
    lanes = Lanes("test", worker.work, clock)
    lanes.hint([CHAT])
    await eventually(lambda: clock.waiting == 1)

    clock.advance(timedelta(seconds=59))
    assert worker.ended == [CHAT]
    clock.advance(timedelta(seconds=1))
    await eventually(is_at_rest)

    assert worker.ended == [CHAT, CHAT]


async def test_a_hint_cuts_the_wait_for_a_moment_short(worker: Worker, clock: ManualClock) -> None:
    worker.again_at = [clock.now() + timedelta(hours=1), None]
    lanes = Lanes("test", worker.work, clock)
    lanes.hint([CHAT])
    await eventually(lambda: clock.waiting == 1)

    lanes.hint([CHAT])
    await eventually(is_at_rest)

    assert worker.ended == [CHAT, CHAT]


async def test_work_that_fails_is_logged_and_done_again_later(
    worker: Worker, clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    worker.errors = [RuntimeError("broken")]
    lanes = Lanes("test", worker.work, clock)

    with caplog.at_level(logging.ERROR):
        lanes.hint([CHAT])
        await eventually(lambda: clock.waiting == 1)
    clock.advance(timedelta(seconds=5))
    await eventually(is_at_rest)

    assert [record.message for record in caplog.records] == ["lane_failed"]
    assert worker.ended == [CHAT]


async def test_a_close_lets_work_end_and_takes_no_more(worker: Worker, clock: ManualClock) -> None:
    gate = worker.gates[CHAT] = asyncio.Event()
    lanes = Lanes("test", worker.work, clock)
    lanes.hint([CHAT])
    await eventually(lambda: worker.began == [CHAT])

    closing = asyncio.create_task(lanes.close(Patience(), grace=20))
    await eventually(lambda: not lanes.is_open)
    lanes.hint([CHAT, OTHER_CHAT])
    gate.set()
    await closing

    assert worker.ended == [CHAT]
    assert is_at_rest()


async def test_a_close_does_not_wait_for_moments(worker: Worker, clock: ManualClock) -> None:
    worker.again_at = [clock.now() + timedelta(hours=1)]
    lanes = Lanes("test", worker.work, clock)
    lanes.hint([CHAT])
    await eventually(lambda: clock.waiting == 1)

    await lanes.close(Patience(), grace=20)

    assert is_at_rest()


async def test_work_that_outlasts_the_grace_is_cancelled(
    worker: Worker, clock: ManualClock
) -> None:
    worker.gates[CHAT] = asyncio.Event()
    lanes = Lanes("test", worker.work, clock)
    lanes.hint([CHAT])
    await eventually(lambda: worker.began == [CHAT])

    await lanes.close(Patience(), grace=0.01)

    assert worker.ended == []
    assert is_at_rest()


async def test_a_hurry_cuts_the_grace_short(worker: Worker, clock: ManualClock) -> None:
    worker.gates[CHAT] = asyncio.Event()
    lanes, patience = Lanes("test", worker.work, clock), Patience()
    lanes.hint([CHAT])
    await eventually(lambda: worker.began == [CHAT])

    closing = asyncio.create_task(lanes.close(patience, grace=3600))
    patience.hurry()
    await closing

    assert is_at_rest()
