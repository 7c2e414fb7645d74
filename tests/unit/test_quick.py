"""What a short answer to a reminder asks for, and what is no such thing."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from gateway.domain.quick import Done, SnoozeUntil, StopIt, read_delay, read_quick
from gateway.domain.when import Unclear, Understood

ZONE = ZoneInfo("Europe/Berlin")
NOW = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)  # Monday, 10:00 in Berlin


def local(day: int, hour: int, minute: int = 0) -> datetime:
    return datetime(2026, 3, day, hour, minute, tzinfo=ZONE).astimezone(UTC)


@pytest.mark.parametrize(
    "text",
    [
        *("done", "Done.", "DONE!", "ok done", "ok, done", "I did it", "It’s done", "already done"),
        *("✅", "👍", "👍🏽", "done ✅", "finished", "yes, done, thanks"),
        *("fertig", "Erledigt!", "schon erledigt", "hab ich"),
        *("fait", "c'est fait", "C’est fait", "terminé", "hecho", "ya está", "listo"),
    ],
)
def test_done(text: str) -> None:
    assert read_quick(text, now=NOW, zone=ZONE) == Done()


@pytest.mark.parametrize(
    "text",
    [
        *("stop", "Stop.", "stop this", "stop this one", "stop it please", "please stop"),
        *("cancel", "cancel it", "cancel this reminder", "delete this", "stop reminding me"),
        *("stop reminding me of this", "don't remind me again", "do not remind me of this again"),
        *("stopp", "Stopp bitte", "abbrechen", "lösche das", "hör auf", "nicht mehr erinnern"),
        *("arrête", "arrête ça", "annule", "para", "para esto", "cancela", "bórralo"),
    ],
)
def test_r29_stop_this_one_is_understood_in_many_words(text: str) -> None:
    assert read_quick(text, now=NOW, zone=ZONE) == StopIt()


@pytest.mark.parametrize(
    ("text", "until"),
    [
        ("snooze", local(2, 10, 10)),
        ("Snooze it", local(2, 10, 10)),
        ("snooze 10m", local(2, 10, 10)),
        ("snooze 10 min", local(2, 10, 10)),
        ("snooze for 1 hour", local(2, 11)),
        ("snooze this for 2 days", local(4, 10)),
        ("snooze an hour please", local(2, 11)),
        ("snooze 1h30", local(2, 11, 30)),
        ("snooze until 17:30", local(2, 17, 30)),
        ("snooze until 9", local(2, 21)),
        ("snooze till tomorrow", local(3, 9)),
        ("10m", local(2, 10, 10)),
        ("90 seconds", local(2, 10, 1) + timedelta(seconds=30)),
        ("in 10 minutes", local(2, 10, 10)),
        ("later today at 5", local(2, 17)),
        ("at 5", local(2, 17)),
        ("tomorrow", local(3, 9)),
        ("tomorrow at 9", local(3, 9)),
        ("remind me again in 1 hour", local(2, 11)),
        ("again in 2h", local(2, 12)),
        ("remind me about this tomorrow at 8:30 please", local(3, 8, 30)),
        ("next friday", local(13, 9)),
        ("snooze 1m", local(2, 10, 1)),
        ("snooze 10 Minuten", local(2, 10, 10)),
        ("erinnere mich morgen um 8", local(3, 8)),
        ("snooze 1 heure", local(2, 11)),
        ("rappelle-moi dans 10 minutes", local(2, 10, 10)),
        ("snooze 10 minutos", local(2, 10, 10)),
        ("recuérdame mañana a las 8", local(3, 8)),
    ],
)
def test_snooze_says_until_when(text: str, until: datetime) -> None:
    wish = read_quick(text, now=NOW, zone=ZONE)
    assert isinstance(wish, SnoozeUntil)
    assert wish.at == until


@pytest.mark.parametrize("text", ["10m", "snooze for 1 hour", "remind me again tomorrow at 9"])
def test_what_was_said_of_the_time_means_the_same_once_more(text: str) -> None:
    wish = read_quick(text, now=NOW, zone=ZONE)
    assert isinstance(wish, SnoozeUntil)
    again = read_delay(wish.said, now=NOW, zone=ZONE)
    assert isinstance(again, Understood)
    assert again.at == wish.at


@pytest.mark.parametrize(
    "text",
    [
        *("", "   ", "ok", "thanks", "yes", "no", "?", "🎉"),
        *("done?", "stop?", "done with the dishes", "stop talking", "stop the music at 9"),
        *("later", "remind me", "remind me later", "again", "5", "snooze 10"),
        *("now", "10 seconds", "snooze 10 seconds", "yesterday", "in 6 years", "snooze 0 minutes"),
        *("every day at 9", "snooze every day at 9"),
        *("call dad tomorrow at 9", "what is this?", "stop\nand buy milk", "done " * 40),
    ],
)
def test_anything_else_is_an_ordinary_message(text: str) -> None:
    assert read_quick(text, now=NOW, zone=ZONE) is None


@pytest.mark.parametrize(
    ("words", "until"),
    [
        ("10m", local(2, 10, 10)),
        ("10 min", local(2, 10, 10)),
        ("1h", local(2, 11)),
        ("1h30", local(2, 11, 30)),
        ("half an hour", local(2, 10, 30)),
        ("tomorrow at 9", local(3, 9)),
        ("friday", local(6, 9)),
    ],
)
def test_a_delay_is_a_length_or_a_time(words: str, until: datetime) -> None:
    when = read_delay(words, now=NOW, zone=ZONE)
    assert isinstance(when, Understood)
    assert when.at == until


@pytest.mark.parametrize("words", ["59 seconds", "now", "0m", "6 years", "every day at 9", "", "x"])
def test_a_delay_that_is_none_says_why(words: str) -> None:
    when = read_delay(words, now=NOW, zone=ZONE)
    assert isinstance(when, Unclear)
    assert when.question
