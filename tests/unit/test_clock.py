"""The machine's clock: it waits for a moment or a wake-up, whichever comes first."""

import asyncio
from datetime import UTC, timedelta

import pytest

from gateway.engine.clock import SystemClock

HOUR = timedelta(hours=1)


def test_it_tells_the_time_in_utc() -> None:
    assert SystemClock().now().tzinfo is UTC


async def test_a_wait_ends_at_its_moment() -> None:
    clock, wakeup = SystemClock(), asyncio.Event()
    until = clock.now() + timedelta(milliseconds=20)

    await clock.wait(wakeup, until)

    assert clock.now() >= until


async def test_a_wait_for_a_moment_that_has_passed_ends_at_once() -> None:
    clock, wakeup = SystemClock(), asyncio.Event()

    async with asyncio.timeout(5):
        await clock.wait(wakeup, clock.now() - HOUR)


@pytest.mark.parametrize("ahead", [HOUR, None])
async def test_a_wake_up_ends_a_wait_and_is_used_up(ahead: timedelta | None) -> None:
    clock, wakeup = SystemClock(), asyncio.Event()
    until = None if ahead is None else clock.now() + ahead
    waiting = asyncio.create_task(clock.wait(wakeup, until))
    await asyncio.sleep(0)

    wakeup.set()
    async with asyncio.timeout(5):
        await waiting

    assert not wakeup.is_set()


async def test_a_wake_up_from_before_counts() -> None:
    clock, wakeup = SystemClock(), asyncio.Event()
    wakeup.set()

    async with asyncio.timeout(5):
        await clock.wait(wakeup, None)
