"""The breaker for loops: what is at once, how many are too many, and when a loop is over."""

from datetime import timedelta

import pytest

from gateway.engine.loops import LoopBreaker, Sender, is_at_once
from tests.factories import CHAT, NOW, OTHER_CHAT, later

SENDER: Sender = (CHAT, "7")


def note_quick(loops: LoopBreaker, times: int, *, sender: Sender = SENDER, pace: float = 1) -> None:
    for number in range(times):
        loops.note(sender, at_once=True, is_loop=False, now=later(number * pace))


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [(-1.0, False), (-0.9, True), (0, True), (2, True), (2.1, False), (60, False)],
)
def test_i23_at_once_is_within_two_seconds(seconds: float, expected: bool) -> None:
    assert is_at_once(NOW + timedelta(seconds=seconds), NOW) is expected


def test_nothing_follows_a_message_that_was_not_sent() -> None:
    assert not is_at_once(NOW, None)


@pytest.mark.parametrize(("times", "expected"), [(5, False), (6, True), (7, True)])
def test_i23_the_seventh_in_a_row_is_one_too_many(times: int, expected: bool) -> None:
    loops = LoopBreaker()
    note_quick(loops, times)
    assert loops.is_one_too_many(SENDER, now=later(times)) is expected


@pytest.mark.parametrize(("pace", "expected"), [(15, True), (15.1, False)])
def test_i23_they_count_for_ninety_seconds(pace: float, expected: bool) -> None:
    loops = LoopBreaker()
    note_quick(loops, 6, pace=pace)
    assert loops.is_one_too_many(SENDER, now=later(6 * pace)) is expected


def test_an_answer_that_took_its_time_ends_the_row() -> None:
    loops = LoopBreaker()
    note_quick(loops, 6)
    loops.note(SENDER, at_once=False, is_loop=False, now=later(6))
    note_quick(loops, 5)
    assert not loops.is_one_too_many(SENDER, now=later(7))


def test_senders_and_chats_are_counted_apart() -> None:
    loops = LoopBreaker()
    note_quick(loops, 6)
    assert not loops.is_one_too_many((CHAT, "8"), now=later(6))
    assert not loops.is_one_too_many((OTHER_CHAT, "7"), now=later(6))


def test_a_loop_is_over_after_a_quiet_time() -> None:
    loops = LoopBreaker()
    assert not loops.is_any_looping(now=NOW)
    loops.note(SENDER, at_once=True, is_loop=True, now=NOW)
    loops.note((CHAT, "8"), at_once=False, is_loop=False, now=later(1))
    loops.note(SENDER, at_once=False, is_loop=False, now=later(1))
    assert loops.is_any_looping(now=later(90))
    assert not loops.is_any_looping(now=later(90.1))


def test_senders_of_long_ago_are_forgotten() -> None:
    loops = LoopBreaker()
    note_quick(loops, 6)
    for number in range(1000):
        note_quick(loops, 1, sender=(CHAT, f"other {number}"))
    assert not loops.is_one_too_many(SENDER, now=later(6))
