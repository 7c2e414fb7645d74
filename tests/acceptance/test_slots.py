"""Reminders at their time, with the real process: killed, frozen, repeating, and by a model."""

import re
import signal
import time
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from tests.acceptance.harness import (
    LONG,
    MARK,
    ZONE,
    Started,
    World,
    answered,
    asked,
    pushed,
    until,
)
from tests.fakes.bot_api import BotApi
from tests.fakes.model_script import Say, call
from tests.fakes.model_server import FakeModelServer

pytestmark = [pytest.mark.acceptance, pytest.mark.timeout(300)]

KILLS = 30


async def slot_of(world: World, gateway: Started, text: str) -> float:
    """The slot of the job with this text once it is stored, in seconds since the epoch."""
    await gateway.until(lambda: world.count("jobs WHERE text = ?", text) == 1)
    [job] = world.rows("SELECT next_slot_at, last_slot_at FROM jobs WHERE text = ?", text)
    return float(job["next_slot_at"] or job["last_slot_at"]) / 1000


async def test_r02_thirty_kills_around_a_slot_give_one_message_for_each(
    offline: World, api: BotApi
) -> None:
    gateway = await offline.up()
    pushed(api, "remind me every minute to breathe")
    for number in range(KILLS):
        words = f"job{number}"
        pushed(api, f"remind me in 2 seconds to {words}", chat=(8, 9, 10)[number % 3])
        slot = await slot_of(offline, gateway, words)
        # From a second before the slot to a second after it.
        moment = slot - 1 + 2 * number / (KILLS - 1)
        await until(lambda moment=moment: time.time() >= moment)  # type: ignore[misc]
        await gateway.kill()
        gateway = await offline.up()
    await gateway.until(lambda: not offline.count("jobs WHERE text LIKE 'job%' AND state='active'"))
    await gateway.until(lambda: not offline.count("deliveries WHERE state = 'pending'"))

    fired = offline.rows(
        "SELECT j.text, count(*) AS n FROM turns t JOIN jobs j ON j.id = t.job_id"
        " WHERE j.text LIKE 'job%' GROUP BY j.id"
    )
    assert {row["text"]: row["n"] for row in fired} == {f"job{n}": 1 for n in range(KILLS)}
    lines = [line for chat in (8, 9, 10) for text in api.texts(chat) for line in bodies(text)]
    for number in range(KILLS):
        came = [is_marked for words, is_marked in lines if words == f"job{number}"]
        assert came, number
        assert came.count(False) <= 1, (number, came)
    slots = offline.rows(
        "SELECT slot_at FROM turns t JOIN jobs j ON j.id = t.job_id WHERE j.text = 'breathe'"
    )
    assert len(slots) >= 1
    assert len({row["slot_at"] for row in slots}) == len(slots)
    offline.check_store()


def bodies(text: str) -> list[tuple[str, bool]]:
    """The reminders in a text that was sent, each without what is said of when it was due."""
    is_marked = text.startswith(MARK)
    lines = text.removeprefix(MARK).splitlines()
    return [(re.sub(r"^(• )?(\(was due [^)]*\) )?", "", line), is_marked) for line in lines]


async def test_r04_a_slot_during_a_sleep_of_the_machine_comes_once_after_it(
    offline: World, api: BotApi
) -> None:
    gateway = await offline.up()
    pushed(api, "remind me in 3 seconds to stretch")
    await answered(gateway, api, 1)
    slot = await slot_of(offline, gateway, "stretch")
    gateway.process.send_signal(signal.SIGSTOP)
    await until(lambda: time.time() > slot + 0.5)
    assert len(api.texts(7)) == 1
    gateway.process.send_signal(signal.SIGCONT)
    await answered(gateway, api, 2)
    await gateway.until(offline.is_settled)
    assert api.texts(7)[1:] == ["stretch"]


async def test_r25_what_was_confirmed_is_there_after_a_kill(offline: World, api: BotApi) -> None:
    gateway = await offline.up()
    for number in range(6):
        words = f"remind me tomorrow at 1{number}:00 to job{number}"
        pushed(api, words, chat=(7, 8)[number % 2])
    await gateway.until(
        lambda: sum(text.count("Reminder set") for c in (7, 8) for text in api.texts(c)) == 6
    )
    await gateway.kill()
    gateway = await offline.up()
    jobs = offline.rows("SELECT text FROM jobs WHERE state = 'active' ORDER BY text")
    assert [job["text"] for job in jobs] == [f"job{number}" for number in range(6)]


async def test_r07_wall_clock_times_are_those_of_the_configured_zone(
    offline: World, api: BotApi
) -> None:
    offline.settings |= {"TZ": "UTC", "GATEWAY_TIMEZONE": "Asia/Kolkata"}
    gateway = await offline.up()
    year = datetime.now(UTC).year + 1
    pushed(api, f"remind me at {year}-12-01T09:00 to call mum")
    assert "Asia/Kolkata" in (await answered(gateway, api, 1))[0]
    pushed(api, "remind me every day at 9 to take my pills")
    await answered(gateway, api, 2)
    pushed(api, "/reminders")
    listed = (await answered(gateway, api, 3))[2]

    assert f"1 Dec {year} 09:00 (Asia/Kolkata): call mum" in listed
    assert " 09:00 (Asia/Kolkata), daily: take my pills" in listed
    for row in offline.rows("SELECT next_slot_at, timezone FROM jobs"):
        moment = datetime.fromtimestamp(row["next_slot_at"] / 1000, UTC)
        assert (moment.hour, moment.minute) == (3, 30)
        assert row["timezone"] == "Asia/Kolkata"


async def test_two_series_are_set_and_listed_with_their_next_local_times(world: World) -> None:
    lines = (
        b"remind me every day at 8 to take my pills\n"
        b"remind me every weekday at 18:30 to leave\n"
        b"/reminders\n"
    )
    ended = await world.run("chat", given=lines)

    assert ended.code == 0
    zone = ZoneInfo("Europe/Berlin")
    listed = [line for line in ended.output.splitlines() if line.startswith("#")]
    assert len(listed) == 2
    for line, clock, rhythm in zip(
        sorted(listed), ("08:00", "18:30"), ("daily: take my pills", "weekdays: leave"), strict=True
    ):
        assert f" {clock} (Europe/Berlin), {rhythm}" in line
    rows = world.rows("SELECT next_slot_at FROM jobs ORDER BY id")
    slots = [datetime.fromtimestamp(row["next_slot_at"] / 1000, zone) for row in rows]
    assert [f"{slot:%H:%M}" for slot in slots] == ["08:00", "18:30"]
    assert all(slot > datetime.now(zone) for slot in slots)
    assert slots[1].weekday() < 5


async def test_a_prompt_is_asked_at_its_time_in_a_session_of_its_own(
    connected: World, api: BotApi, model: FakeModelServer
) -> None:
    arguments: dict[str, object] = {
        "action": "create",
        "text": "look whether the shop is open",
        "in": "2 seconds",
        "do": "prompt",
    }
    model.when("the shop is open", Say(text="The shop is **open**."))
    model.when("secret word", call("schedule", arguments), Say(text="I will look."))
    gateway = await connected.up()
    pushed(api, "remember the secret word, and look at the shop in 2 seconds")
    await answered(gateway, api, 1)
    await asked(gateway, model, "look whether the shop is open")

    texts = await answered(gateway, api, 2)
    assert texts[1] == "The shop is open."
    fired = model.requests[-1]
    assert "secret word" not in str(fired.messages[:-1])
    await gateway.until(connected.is_settled)
    [turn] = connected.rows("SELECT state FROM turns WHERE trigger = 'job'")
    assert turn["state"] == "answered"
    [job] = connected.rows("SELECT state, fired FROM jobs")
    assert (job["state"], job["fired"]) == ("done", 1)


async def test_a_heartbeat_comes_once_a_silence_and_may_say_nothing(
    connected: World, api: BotApi, model: FakeModelServer
) -> None:
    # An hour of night that is half a day away.
    hour = (datetime.now(ZoneInfo(ZONE)).hour + 12) % 24
    night = f"{hour:02}:00-{(hour + 1) % 24:02}:00"
    connected.settings |= {"HEARTBEAT_INTERVAL": "2", "HEARTBEAT_QUIET_HOURS": night}
    model.when("hello", Say(text="hello yourself"))
    model.when("again", Say(text="here I am"))
    model.script.default = (Say(text="**Nothing.**"),)
    gateway = await connected.up()
    pushed(api, "hello")
    await answered(gateway, api, 1)
    await gateway.until(lambda: connected.count("turns WHERE state = 'silent'") == 1)
    model.script.default = (Say(text="Your train leaves soon."),)
    pushed(api, "again")

    texts = await answered(gateway, api, 3, within=LONG)
    assert texts == ["hello yourself", "here I am", "Your train leaves soon."]
    assert connected.count("turns WHERE trigger = 'heartbeat'") == 2
    assert connected.rows("SELECT next_heartbeat_at FROM chats") == [{"next_heartbeat_at": None}]
