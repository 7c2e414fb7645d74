"""A reminder arrives on Telegram with its buttons, and a press does what stands on it, once."""

import time

import pytest

from tests.acceptance.harness import Started, World, answered, pushed, until
from tests.fakes import bot_api_updates as updates
from tests.fakes.bot_api import BotApi
from tests.fakes.bot_api_updates import Json, labels_of

pytestmark = [pytest.mark.acceptance, pytest.mark.timeout(300)]

BUTTONS = [["Done", "Snooze 10 min"], ["Snooze 1 h", "Tomorrow"]]
MINUTE = 60_000
HOUR = 60 * MINUTE
GROUP = -100200


async def reminded(gateway: Started, api: BotApi, *, chat: int = 7) -> Json:
    """Ask for a reminder and return the message that it comes as."""
    before = len(api.texts(chat))
    pushed(api, "remind me in 2 seconds to stretch", chat=chat)
    await answered(gateway, api, before + 2, chat=chat)
    return api.sent[-1]


def shown(api: BotApi, message: Json) -> Json:
    """A message as it stands now."""
    [found] = [one for one in api.sent if one["message_id"] == message["message_id"]]
    return found


async def press(
    gateway: Started, api: BotApi, message: Json, label: str, *, sender: Json | None = None
) -> None:
    """Press a button and wait until the client's spinner ends."""
    before = len(api.calls_of("answerCallbackQuery"))
    api.push(updates.press(message, label, sender=sender))
    await gateway.until(lambda: len(api.calls_of("answerCallbackQuery")) > before)


async def edited(gateway: Started, api: BotApi, message: Json) -> Json:
    """Wait until a message says something else, and return it."""
    await gateway.until(lambda: shown(api, message)["text"] != message["text"])
    return shown(api, message)


async def active(world: World) -> list[Json]:
    listed = await world.run("reminders", "--json")
    return [job for job in listed.json() if job["state"] == "active"]


async def quiet(gateway: Started, api: BotApi, world: World) -> None:
    """Wait until all that was pressed is received and all that it brings is sent."""
    await gateway.until(lambda: not api.pending)
    unsent = "deliveries WHERE state IN ('pending', 'sending')"
    await gateway.until(lambda: not world.count(unsent))


async def test_a_snoozed_reminder_says_so_and_comes_again_in_ten_minutes(
    offline: World, api: BotApi
) -> None:
    gateway = await offline.up()
    reminder = await reminded(gateway, api)
    assert reminder["text"] == "stretch"
    assert labels_of(reminder) == BUTTONS

    earliest = time.time() * 1000 + 10 * MINUTE
    await press(gateway, api, reminder, "Snooze 10 min")

    now = await edited(gateway, api, reminder)
    assert "stretch" in now["text"]
    assert labels_of(now) == []
    [job] = await active(offline)
    assert job["text"] == "stretch"
    # Slots may be kept to the second.
    assert earliest - 1000 <= job["next_slot_at"] <= time.time() * 1000 + 10 * MINUTE
    await quiet(gateway, api, offline)
    assert len(api.texts(7)) == 2


async def test_two_presses_also_of_two_buttons_on_two_devices_make_one_snooze(
    offline: World, api: BotApi
) -> None:
    gateway = await offline.up()
    reminder = await reminded(gateway, api)
    await press(gateway, api, reminder, "Snooze 10 min")
    await press(gateway, api, reminder, "Snooze 10 min")
    [job] = await active(offline)
    earliest = time.time() * 1000 + HOUR

    await press(gateway, api, reminder, "Snooze 1 h")

    [moved] = await active(offline)
    assert moved["id"] == job["id"]
    assert earliest - 1000 <= moved["next_slot_at"] <= time.time() * 1000 + HOUR
    await quiet(gateway, api, offline)
    assert labels_of(shown(api, reminder)) == []


async def test_tomorrow_is_the_same_time_of_the_next_day(offline: World, api: BotApi) -> None:
    gateway = await offline.up()
    reminder = await reminded(gateway, api)
    await press(gateway, api, reminder, "Tomorrow")
    [job] = await active(offline)
    # A day with a change of the clock is an hour longer or shorter.
    assert 22 * HOUR <= job["next_slot_at"] - time.time() * 1000 <= 25 * HOUR
    assert labels_of(await edited(gateway, api, reminder)) == []


async def test_done_is_said_on_the_message_and_leaves_nothing_to_come(
    offline: World, api: BotApi
) -> None:
    gateway = await offline.up()
    reminder = await reminded(gateway, api)
    await press(gateway, api, reminder, "Done")
    now = await edited(gateway, api, reminder)
    assert "stretch" in now["text"]
    assert labels_of(now) == []
    assert await active(offline) == []
    await quiet(gateway, api, offline)
    assert len(api.texts(7)) == 2


async def test_a_reply_to_a_reminder_acts_on_that_one_also_after_a_press(
    offline: World, api: BotApi
) -> None:
    gateway = await offline.up()
    first = await reminded(gateway, api)
    second = await reminded(gateway, api)
    await press(gateway, api, first, "Done")
    done = await edited(gateway, api, first)

    earliest = time.time() * 1000 + HOUR
    api.push(updates.reply("snooze 1h", done))
    assert "stretch" in (await answered(gateway, api, 5))[4]

    [job] = await active(offline)
    assert earliest - 1000 <= job["next_slot_at"] <= time.time() * 1000 + HOUR
    assert shown(api, second) == second


async def test_a_press_during_the_downtime_counts_after_it(offline: World, api: BotApi) -> None:
    gateway = await offline.up()
    reminder = await reminded(gateway, api)
    await gateway.until(offline.is_settled)
    await gateway.stop()
    api.push(updates.press(reminder, "Snooze 1 h"))
    gateway = await offline.up()
    assert labels_of(await edited(gateway, api, reminder)) == []
    assert len(await active(offline)) == 1


async def test_a_press_on_a_message_that_was_deleted_is_answered_with_a_new_one(
    offline: World, api: BotApi
) -> None:
    gateway = await offline.up()
    reminder = await reminded(gateway, api)
    api.delete_message(reminder["message_id"])
    await press(gateway, api, reminder, "Snooze 1 h")
    assert "stretch" in (await answered(gateway, api, 2))[1]
    assert len(await active(offline)) == 1


async def test_i06_a_stranger_who_presses_in_a_group_changes_nothing(
    offline: World, api: BotApi
) -> None:
    offline.settings["TELEGRAM_ALLOWLIST"] = f"7,{GROUP}"
    gateway = await offline.up()
    words = "@MyBot remind me in 2 seconds to stretch"
    mention = updates.mention(words)
    api.push(updates.text(words, chat=updates.supergroup(GROUP), entities=[mention]))
    await answered(gateway, api, 2, chat=GROUP)
    reminder = api.sent[-1]

    api.push(updates.press(reminder, "Snooze 1 h", sender=updates.person(666, "Eve")))
    await quiet(gateway, api, offline)
    assert shown(api, reminder) == reminder
    assert api.calls_of("answerCallbackQuery") == []
    assert await active(offline) == []

    await press(gateway, api, reminder, "Snooze 1 h")
    assert labels_of(await edited(gateway, api, reminder)) == []
    assert len(await active(offline)) == 1
    assert len(api.calls_of("answerCallbackQuery")) == 1


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ("snooze60:{delivery}", "does nothing any more"),
        ("done:99999999999999999999", "does nothing any more"),
        ("x", "does nothing any more"),
        ("allow:1", "does nothing any more"),
    ],
)
async def test_a_button_that_is_none_of_this_chats_says_that_it_does_nothing(
    offline: World, api: BotApi, data: str, said: str
) -> None:
    gateway = await offline.up()
    reminder = await reminded(gateway, api, chat=7)
    [delivery] = offline.rows("SELECT id FROM deliveries WHERE kind = 'reminder'")
    foreign = updates.message(chat=updates.private(8), sender=updates.bot(), text="stretch")
    found = data.format(delivery=delivery["id"])

    api.push(updates.button(found, under=foreign, sender=updates.person(8)))

    assert said in (await answered(gateway, api, 1, chat=8))[0]
    await quiet(gateway, api, offline)
    assert shown(api, reminder) == reminder
    assert await active(offline) == []


async def test_reminders_that_come_joined_have_no_buttons_and_a_reply_is_asked_which(
    offline: World, api: BotApi
) -> None:
    gateway = await offline.up()
    for number, words in enumerate(("stretch", "drink water"), start=1):
        pushed(api, f"remind me in 15 seconds to {words}")
        await answered(gateway, api, number)
    await gateway.stop()
    due = "SELECT max(next_slot_at) AS at FROM jobs"
    await until(lambda: time.time() * 1000 > offline.rows(due)[0]["at"])

    gateway = await offline.up()

    await gateway.until(lambda: any("drink water" in text for text in api.texts(7)[2:]))
    await gateway.until(offline.is_settled)
    [joined] = api.sent[2:]
    assert "stretch" in joined["text"]
    assert labels_of(joined) == []

    api.push(updates.reply("snooze 10m", joined))
    asked = (await answered(gateway, api, 4))[3]
    assert "/snooze 1" in asked
    assert "/snooze 2" in asked
    assert await active(offline) == []
