"""The pace that Telegram asks for, measured on a clock that only moves when somebody waits."""

import asyncio

from gateway.channels.telegram.pacing import Pacer, Timing


class WaitingClock:
    """Sleeping moves it on at once."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        until = self.now + seconds
        await asyncio.sleep(0)
        self.now = max(self.now, until)


async def moments(chat_ids: list[int]) -> list[float]:
    """When each message may go, sent one after the other, in seconds from the first."""
    clock = WaitingClock()
    pacer = Pacer(clock=clock, sleep=clock.sleep)
    found = []
    for chat_id in chat_ids:
        while away := await pacer.wait(chat_id):
            await clock.sleep(away.total_seconds())
        found.append(clock.now - 1000.0)
    return found


def most_within(seconds: float, found: list[float]) -> int:
    return max(sum(start <= at < start + seconds for at in found) for start in found)


async def test_a_short_burst_to_one_chat_goes_out_at_once_and_then_one_a_second() -> None:
    found = await moments([7] * 9)

    assert found[:3] == [0.0, 0.0, 0.0]
    assert most_within(3.0, found) == 3
    assert found[-1] == 6.0


async def test_a_group_gets_twenty_messages_a_minute() -> None:
    found = await moments([-4001] * 45)

    assert most_within(60.0, found) == 20
    assert found[-1] < 130


async def test_all_chats_together_get_thirty_messages_a_second() -> None:
    found = await moments(list(range(1, 101)))

    assert most_within(1.0, found) == 30
    assert found[-1] == 3.0


async def test_i25_a_group_that_has_to_wait_holds_back_no_other_chat() -> None:
    clock = WaitingClock()
    never = asyncio.Event()

    async def sleep_for_ever(seconds: float) -> None:
        await never.wait()

    pacer = Pacer(clock=clock, sleep=sleep_for_ever)
    waiting = [asyncio.create_task(pacer.wait(-4001)) for _ in range(40)]
    await asyncio.sleep(0)

    await asyncio.wait_for(pacer.wait(7), timeout=5)

    assert clock.now == 1000.0
    for task in waiting:
        task.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)


async def test_quiet_chats_are_forgotten_and_busy_ones_keep_their_pace() -> None:
    clock = WaitingClock()
    pacer = Pacer(clock=clock, sleep=clock.sleep)
    for chat_id in range(1, 2001):
        await pacer.wait(chat_id)
        clock.now += 0.1
    found = []
    for _ in range(6):
        await pacer.wait(2000)
        found.append(clock.now)

    assert most_within(3.0, found) == 3


def test_a_poll_is_dead_after_two_poll_timeouts_and_a_slack() -> None:
    assert Timing(poll_timeout=10, poll_slack=5).poll_deadline == 25


async def test_a_turn_that_is_far_away_is_named_and_not_waited_for() -> None:
    clock = WaitingClock()
    pacer = Pacer(clock=clock, sleep=clock.sleep)
    for _ in range(20):
        await pacer.wait(-4001)
    before = clock.now

    away = await pacer.wait(-4001)

    assert away is not None
    assert 30 < away.total_seconds() <= 60
    assert clock.now == before
    assert await pacer.wait(-4001) == away
