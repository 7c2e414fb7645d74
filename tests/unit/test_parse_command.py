"""Which texts are commands, and what they say."""

import pytest

from gateway.engine.commands import COMMANDS, Command, parse_command


@pytest.mark.parametrize(
    ("text", "name", "argument"),
    [
        ("/stop", "stop", ""),
        ("  /stop  ", "stop", ""),
        ("/STOP", "stop", ""),
        ("/cancel 2", "cancel", "2"),
        ("/cancel   2, 3 ", "cancel", "2, 3"),
        ("/cancel\t2", "cancel", "2"),
        ("/cancel\n2 3", "cancel", "2 3"),
        ("/cancel@gateway_bot 2", "cancel", "2"),
        ("/what_is_this", "what_is_this", ""),
        ("/hilfe bitte", "hilfe", "bitte"),
    ],
)
def test_a_command_is_its_name_and_the_rest(text: str, name: str, argument: str) -> None:
    assert parse_command(text) == Command(name=name, argument=argument)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "   ",
        "/",
        "//",
        "/ stop",
        "/@bot",
        "stop",
        "please /stop",
        "/etc/passwd is a file",
        "/-1",
        "/_",
        "\u200f/stop",
    ],
)
def test_other_texts_are_for_the_host(text: str) -> None:
    assert parse_command(text) is None


def test_the_commands_are_those_that_people_were_promised() -> None:
    assert set(COMMANDS) == {
        *("start", "help", "new", "stop", "status", "deliveries", "timezone"),
        *("reminders", "cancel", "snooze", "pause", "resume", "allow"),
    }
