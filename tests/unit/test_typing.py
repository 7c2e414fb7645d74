"""The sign of life: shown while somebody holds it, again and again, and never for ever."""

import asyncio
import logging

import pytest

from gateway.domain.message import ChatKey
from gateway.engine.typing import Typing
from gateway.errors import StoreBusyError
from tests.factories import CHAT, OTHER_CHAT
from tests.fakes.sessions import eventually

HOUR = 3600.0


class Screen:
    """Counts the signals per chat; the first `failures` of them fail."""

    def __init__(self, *, failures: int = 0) -> None:
        self.shown: list[ChatKey] = []
        self.failures = failures

    async def show(self, chat: ChatKey) -> None:
        self.shown.append(chat)
        if len(self.shown) <= self.failures:
            raise StoreBusyError("busy")


async def test_d23_it_is_shown_again_and_again_while_held() -> None:
    screen = Screen()
    typing = Typing(screen.show, limit=HOUR, interval=0.001)

    with typing.hold(CHAT):
        await eventually(lambda: screen.shown.count(CHAT) >= 5)


async def test_it_ends_with_the_last_of_several_holders() -> None:
    screen = Screen()
    typing = Typing(screen.show, limit=HOUR, interval=0.001)

    with typing.hold(CHAT):
        with typing.hold(CHAT):
            await eventually(lambda: len(screen.shown) >= 2)
        before = len(screen.shown)
        await eventually(lambda: len(screen.shown) > before)
    at_end = len(screen.shown)
    with typing.hold(OTHER_CHAT):
        await eventually(lambda: screen.shown.count(OTHER_CHAT) >= 5)

    assert screen.shown.count(CHAT) == at_end


async def test_it_is_not_shown_for_longer_than_the_limit() -> None:
    screen = Screen()
    typing = Typing(screen.show, limit=0.02, interval=0.001, delay=0)

    with typing.hold(CHAT):
        await eventually(lambda: not _tasks())
        assert screen.shown


async def test_it_is_not_shown_for_what_ends_at_once() -> None:
    screen = Screen()
    at_once = Typing(screen.show, limit=HOUR, delay=HOUR)
    typing = Typing(screen.show, limit=HOUR, interval=0.001)

    with at_once.hold(CHAT), typing.hold(OTHER_CHAT):
        await eventually(lambda: screen.shown.count(OTHER_CHAT) >= 5)
    await eventually(lambda: not _tasks())

    assert CHAT not in screen.shown


async def test_a_signal_that_fails_is_logged_and_tried_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    screen = Screen(failures=2)
    typing = Typing(screen.show, limit=HOUR, interval=0.001)

    with caplog.at_level(logging.ERROR), typing.hold(CHAT):
        await eventually(lambda: len(screen.shown) >= 4)

    assert [record.message for record in caplog.records] == ["typing_failed"] * 2


def _tasks() -> list[str]:
    names = [task.get_name() for task in asyncio.all_tasks()]
    return [name for name in names if name.startswith("typing:")]
