"""Silence: only the whole sentinel is no answer; whatever says more is said."""

import pytest

from gateway.domain.silence import is_evasion, is_nothing

DRESSED_UP = [
    "NOTHING",
    "nothing.",
    "Nothing",
    "**NOTHING**",
    "__nothing__",
    "`NOTHING`",
    "```\nNOTHING\n```",
    "NOTHING\n\n",
    "<b>NOTHING</b>",
    "NOTHING 👍",
    "Nothing 🙂",
    "> *Nothing!*",
    "# NOTHING",
    '"NOTHING"',
    "[NOTHING]",
    "\u200bNOTHING\u200b",
]
ANSWERS = [
    "Nothing urgent, but your passport expires Friday.",
    "NOTHING new, but your train is late",
    "There is nothing in the fridge - buy milk",
    "Nothing.\n\nAh, one thing: the milk is off.",
    "NOTHING 2",
    "NOTHING_NEW",
    "nothing, 没有",
    "No, thing",
    "the word NOTHING stands in here" + ", and more" * 90,
]


@pytest.mark.parametrize("reply", DRESSED_UP)
def test_m16_the_sentinel_is_known_in_any_dress(reply: str) -> None:
    assert is_nothing(reply)
    assert is_evasion(reply)


@pytest.mark.parametrize("reply", [*ANSWERS, "", "👍", "---"])
def test_m17_a_reply_that_says_anything_else_is_one(reply: str) -> None:
    assert not is_nothing(reply)


@pytest.mark.parametrize(
    "reply", ["", " \n", "[SILENT]", "[silent]", "NOTHING", "HEARTBEAT_OK", "**NO_REPLY**", "OK."]
)
def test_r22_a_token_is_no_reminder(reply: str) -> None:
    assert is_evasion(reply)


@pytest.mark.parametrize(
    "reply",
    [
        "Take a bath",
        "Bath!",
        "TAKE A BATH",
        "🛁",
        "洗澡",
        "(bath)",
        "7",
        "A",
        "[bath] now",
        "YES",
        "NASA",
        "RAIN!",
        "[done]",
        "[" * 20_000 + "a",
    ],
)
def test_a_short_reminder_is_one(reply: str) -> None:
    assert not is_evasion(reply)
