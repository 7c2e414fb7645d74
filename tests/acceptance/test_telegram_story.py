"""A person talks with the bot on Telegram: once asked, once answered, whatever goes wrong."""

import re
import time

import pytest

from tests.acceptance.harness import (
    LONG,
    MARK,
    Started,
    World,
    answered,
    asked,
    pushed,
    telegram_settings,
    until,
)
from tests.fakes import bot_api_updates as updates
from tests.fakes.bot_api import BotApi
from tests.fakes.bot_api_faults import Fault
from tests.fakes.model_script import Refuse, Say, call
from tests.fakes.model_server import FakeModelServer

pytestmark = [pytest.mark.acceptance, pytest.mark.timeout(300)]


async def confirmed(gateway: Started, api: BotApi) -> None:
    """Wait until the gateway has told Telegram that everything arrived."""
    await gateway.until(lambda: not api.pending)


async def test_one_message_gets_one_answer(
    connected: World, api: BotApi, model: FakeModelServer
) -> None:
    model.when("hello", Say(text="Hello **Ann**!"))
    gateway = await connected.up()
    pushed(api, "hello")
    assert await answered(gateway, api, 1) == ["Hello Ann!"]
    await confirmed(gateway, api)
    [sent] = api.sent
    assert [entity["type"] for entity in sent["entities"]] == ["bold"]
    assert connected.channel()["state"] == "connected"
    assert (await gateway.stop()).code == 0
    assert api.texts() == ["Hello Ann!"]
    await connected.no_host_left()


async def test_i01_the_same_update_again_is_not_answered_again(
    connected: World, api: BotApi, model: FakeModelServer
) -> None:
    model.when("once", Say(text="only once"))
    model.when("later", Say(text="and later"))
    update = {"update_id": 1001, **updates.text("once", message_id=77)}
    renumbered = {"update_id": 1002, **updates.text("once", message_id=77)}
    api.push(update, update, renumbered)
    gateway = await connected.up()
    await answered(gateway, api, 1)
    await confirmed(gateway, api)
    api.push(update)
    await gateway.stop()
    gateway = await connected.up()
    api.push({"update_id": 1003, **updates.text("once", message_id=77)})
    pushed(api, "later")
    assert await answered(gateway, api, 2) == ["only once", "and later"]
    assert connected.count("turns") == 2


async def test_i03_messages_of_the_downtime_are_answered_and_old_ones_named(
    connected: World, api: BotApi, model: FakeModelServer
) -> None:
    now = int(time.time())
    model.when("ten minutes ago", Say(text="welcome back"))
    api.push(updates.text("yesterday's question", date=now - 30 * 3600))
    api.push(updates.text("ten minutes ago", date=now - 600))
    gateway = await connected.up()
    texts = await answered(gateway, api, 2)
    assert "welcome back" in texts
    [named] = [text for text in texts if text != "welcome back"]
    assert "too old to answer" in named
    assert len(model.requests) == 1


async def test_d01_a_rate_limit_is_waited_for_and_holds_no_other_chat(
    connected: World, api: BotApi
) -> None:
    gateway = await connected.up()
    api.fail("sendMessage", Fault.too_many_requests(3), chat_id=7, times=2)
    pushed(api, "limited", chat=7)
    await gateway.until(lambda: len(api.calls_of("sendMessage", chat_id=7)) == 1)
    pushed(api, "free", chat=8)
    await answered(gateway, api, 1, chat=8)
    await answered(gateway, api, 1, chat=7)
    await gateway.until(connected.is_settled)
    first, second, third = api.calls_of("sendMessage", chat_id=7)
    assert second.at - first.at >= 3
    assert third.at - second.at >= 3
    assert not api.texts(7)[0].startswith(MARK)
    [delivery] = connected.rows("SELECT * FROM deliveries WHERE chat_key = 'telegram:7'")
    assert delivery["state"] == "sent"


async def test_d03_after_two_bad_gateways_the_answer_comes_once_and_is_marked(
    connected: World, api: BotApi, model: FakeModelServer
) -> None:
    model.when("question", Say(text="the answer"))
    gateway = await connected.up()
    api.fail("sendMessage", Fault.web_page(502), times=2)
    pushed(api, "question")
    assert await answered(gateway, api, 1) == [f"{MARK}the answer"]
    await gateway.until(connected.is_settled)
    first, second, third = api.calls_of("sendMessage", chat_id=7)
    assert second.at - first.at >= 2
    assert third.at - second.at >= 15
    assert len(model.requests) == 1


async def test_d04_answers_wait_for_a_bot_api_that_is_away(
    connected: World, api: BotApi, model: FakeModelServer
) -> None:
    model.when("question", Say(text="part one, part two", pieces=2, gate="ready"))
    gateway = await connected.up()
    pushed(api, "question")
    await asked(gateway, model, "question")
    await confirmed(gateway, api)
    await api.stop()
    model.open("ready")
    await gateway.until(lambda: bool(connected.count("deliveries WHERE reason = 'channel_down'")))
    await gateway.until(lambda: connected.channel()["state"] == "disconnected")
    await api.start()
    assert await answered(gateway, api, 1) == ["part one, part two"]
    await gateway.until(connected.is_settled)
    [delivery] = connected.rows("SELECT * FROM deliveries")
    assert delivery["attempts"] == 1


async def test_d16_a_chunk_that_fails_neither_repeats_the_head_nor_loses_the_tail(
    connected: World, api: BotApi, model: FakeModelServer
) -> None:
    words = [f"word{number}" for number in range(1500)]
    model.when("long", Say(text=" ".join(words)))
    gateway = await connected.up()
    pushed(api, "hello")
    await answered(gateway, api, 1)
    api.fail("sendMessage", Fault.slow())
    pushed(api, "long")
    await answered(gateway, api, 2)
    api.fail("sendMessage", Fault.reset(is_stored=False))
    api.release()
    await gateway.until(connected.is_settled)
    chunks = api.texts(7)[1:]
    assert [text.startswith(MARK) for text in chunks] == [False, True, *[False] * len(chunks[2:])]
    assert " ".join(text.removeprefix(MARK) for text in chunks).split() == words


async def test_three_messages_during_a_turn_make_one_more_turn(
    connected: World, api: BotApi, model: FakeModelServer
) -> None:
    model.when("slow", Say(text="done with the first", pieces=2, gate="slow"))
    gateway = await connected.up()
    pushed(api, "slow question")
    await asked(gateway, model, "slow question")
    for words in ("one more", "two more", "three more"):
        pushed(api, words)
    await confirmed(gateway, api)
    assert api.texts() == []
    model.open("slow")
    first, second = await answered(gateway, api, 2)
    assert first == "done with the first"
    assert all(words in second for words in ("one more", "two more", "three more"))
    await gateway.until(connected.is_settled)
    assert len(api.texts()) == 2
    assert [turn["state"] for turn in connected.rows("SELECT state FROM turns")] == [
        "answered",
        "answered",
    ]


async def test_d19_waiting_behind_a_turn_brings_no_notice_of_its_own(
    connected: World, api: BotApi, model: FakeModelServer
) -> None:
    model.when("first", Say(text="one", pieces=2, gate="first"))
    model.when("second", Say(text="two"))
    gateway = await connected.up()
    pushed(api, "first")
    await asked(gateway, model, "first")
    pushed(api, "second")
    await confirmed(gateway, api)
    model.open("first")
    await answered(gateway, api, 2)
    await gateway.until(connected.is_settled)
    assert api.texts() == ["one", "two"]


async def test_i25_a_slow_chat_delays_no_other(
    connected: World, api: BotApi, model: FakeModelServer
) -> None:
    model.when("slow", Say(text="at last", pieces=2, gate="slow"))
    gateway = await connected.up()
    pushed(api, "slow", chat=7)
    await asked(gateway, model, "slow")
    pushed(api, "quick", chat=8)
    pushed(api, "/status", chat=9)
    await answered(gateway, api, 1, chat=8)
    [status] = await answered(gateway, api, 1, chat=9)
    assert "1 running" in status
    assert api.texts(7) == []


async def test_i04_a_turn_cut_off_by_a_kill_is_answered_after_the_restart(
    connected: World, api: BotApi, model: FakeModelServer
) -> None:
    model.queue(Say(text="never heard", pieces=2, gate="never"))
    gateway = await connected.up()
    pushed(api, "question")
    await asked(gateway, model, "question")
    for number in range(5):
        pushed(api, f"follow-up {number}")
    await confirmed(gateway, api)
    await gateway.kill()
    gateway = await connected.up()
    first, second = await answered(gateway, api, 2)
    assert "question" in first
    assert "cut off" in first  # the echo of what the model was told
    assert all(f"follow-up {number}" in second for number in range(5))
    await gateway.until(connected.is_settled)
    assert len(api.texts()) == 2


async def test_stop_is_answered_at_once_and_ends_the_work(
    connected: World, api: BotApi, model: FakeModelServer
) -> None:
    model.when("endless", Say(text="never heard", pieces=2, gate="never"))
    gateway = await connected.up()
    pushed(api, "endless")
    await asked(gateway, model, "endless")
    pushed(api, "and this one waits")
    await confirmed(gateway, api)
    pushed(api, "/stop")
    [stopped] = await answered(gateway, api, 1)
    assert stopped.startswith("Stopped. ")
    assert "will not be answered" in stopped
    await gateway.until(lambda: (connected.status() or {})["host"]["busy"] == 0)
    await gateway.until(connected.is_settled)
    [cancelled, waiting] = connected.rows("SELECT state FROM turns ORDER BY id")
    assert (cancelled["state"], waiting["state"]) == ("cancelled", "cancelled")
    pushed(api, "next")
    last = (await answered(gateway, api, 2))[-1]
    assert "next" in last
    assert "endless" not in last


async def test_commands_are_answered_while_a_turn_runs(
    connected: World, api: BotApi, model: FakeModelServer
) -> None:
    model.when("slow", Say(text="the slow answer", pieces=2, gate="slow"))
    gateway = await connected.up()
    pushed(api, "slow")
    await asked(gateway, model, "slow")
    commands = ("/help", "/status", "/reminders", "/deliveries", "/cancel 9", "/nonsense")
    for command in commands:
        pushed(api, command)
    texts = await answered(gateway, api, len(commands))
    expected = ("Commands:", "I am running", "no reminders", "command:", "no open", "do not know")
    for words, text in zip(expected, texts, strict=True):
        assert words in text
    model.open("slow")
    assert (await answered(gateway, api, len(commands) + 1))[-1] == "the slow answer"


async def test_new_begins_a_conversation_without_the_former_one(
    connected: World, api: BotApi, model: FakeModelServer
) -> None:
    gateway = await connected.up()
    pushed(api, "my name is Ann")
    await answered(gateway, api, 1)
    pushed(api, "/new")
    await answered(gateway, api, 2)
    pushed(api, "who am I")
    await answered(gateway, api, 3)
    told = model.requests[-1].messages
    assert len(told) == 1
    assert "my name is Ann" not in str(told)


async def test_a_reminder_is_confirmed_listed_and_comes_once(offline: World, api: BotApi) -> None:
    gateway = await offline.up()
    pushed(api, "remind me in 4 seconds to stretch")
    [confirmation] = await answered(gateway, api, 1)
    assert re.fullmatch(
        r"Reminder set: #1 \w{3} \d+ \w{3} \d\d:\d\d(:\d\d)? \(Europe/Berlin\): stretch",
        confirmation,
    )
    pushed(api, "/reminders")
    listed = (await answered(gateway, api, 2))[1]
    assert listed.startswith("#1 ")
    assert (await answered(gateway, api, 3))[2] == "stretch"
    await gateway.until(offline.is_settled)
    [job] = offline.rows("SELECT state FROM jobs")
    assert job["state"] == "done"
    pushed(api, "/reminders")
    assert (await answered(gateway, api, 4))[3] == "You have no reminders."


async def test_a_models_reminder_is_confirmed_from_the_stored_row(
    connected: World, api: BotApi, model: FakeModelServer
) -> None:
    arguments: dict[str, object] = {
        "action": "create",
        "text": "water the plants",
        "in": "2 seconds",
    }
    model.when("plants", call("schedule", arguments), Say(text="I will."))
    gateway = await connected.up()
    pushed(api, "remind me of the plants in 2 seconds")
    [confirmation, *_] = await answered(gateway, api, 1)
    assert confirmation.startswith("I will.\n\n#1 ")
    assert confirmation.endswith("(Europe/Berlin): water the plants")
    assert (await answered(gateway, api, 2))[1] == "water the plants"


async def test_m24_a_refused_key_is_told_plainly_and_the_owner_once(
    connected: World, api: BotApi, model: FakeModelServer
) -> None:
    connected.settings["GATEWAY_OWNER"] = "telegram:8"
    body = '{"error":{"message":"401 User not found req_011CQ"}}'
    model.script.default = (Refuse(status=401, body=body),)
    gateway = await connected.up()
    for count in (1, 2):
        pushed(api, f"question {count}")
        texts = await answered(gateway, api, count)
        assert "operator" in texts[-1]
        assert "401" not in texts[-1]
        assert "req_" not in texts[-1]
    [told] = await answered(gateway, api, 1, chat=8)
    assert "MODEL_API_KEY" in told
    await gateway.until(connected.is_settled)
    assert len(api.texts(8)) == 1


async def test_i06_a_stranger_gets_nothing_at_all(connected: World, api: BotApi) -> None:
    gateway = await connected.up()
    stranger, chat = updates.person(666, "Eve"), updates.private(666)
    for words in ("hello", "/start", "👍", "/status"):
        api.push(updates.text(words, chat=chat, sender=stranger))
    api.push(updates.media("voice", chat=chat, sender=stranger))
    api.push(updates.button(sender=stranger, under=updates.message(chat=chat)))
    api.push(updates.text("@MyBot hi", chat=updates.supergroup(), sender=stranger))
    api.push(updates.from_bot("hi from a bot"))
    api.push(updates.channel_post())
    pushed(api, "I am allowed", chat=7)
    await answered(gateway, api, 1, chat=7)
    await confirmed(gateway, api)
    await gateway.until(connected.is_settled)
    addressed = {call.chat_id for call in api.calls if call.chat_id is not None}
    assert addressed == {7}
    assert api.calls_of("answerCallbackQuery") == []
    assert connected.count("messages WHERE sender_id = '666'") == 0
    assert "666" not in {
        row["chat_key"].split(":")[1] for row in connected.rows("SELECT chat_key FROM chats")
    }


@pytest.mark.parametrize("allowlist", [None, "", " ", ",", " , ,"])
async def test_i07_an_empty_allowlist_lets_nobody_in(
    world: World, api: BotApi, allowlist: str | None
) -> None:
    world.settings |= telegram_settings(api)
    if allowlist is None:
        del world.settings["TELEGRAM_ALLOWLIST"]
    else:
        world.settings["TELEGRAM_ALLOWLIST"] = allowlist
    pushed(api, "hello")
    ended = await world.run("run")
    assert ended.code == 5
    assert "TELEGRAM_ALLOWLIST" in ended.errors
    assert "@userinfobot" in ended.errors
    assert api.calls == []


async def test_pairing_lets_a_stranger_in_while_the_gateway_runs(
    connected: World, api: BotApi
) -> None:
    connected.settings |= {"TELEGRAM_PAIRING": "true", "TELEGRAM_ALLOWLIST": ""}
    gateway = await connected.up()
    pushed(api, "let me in", chat=42)
    [offer] = await answered(gateway, api, 1, chat=42)
    found = re.search(r"code is ([A-Z0-9]{8})\b", offer)
    assert found is not None, offer
    code = found[1]
    pushed(api, "please", chat=42)
    await confirmed(gateway, api)
    listed = await connected.run("pair", "--list")
    assert (listed.code, code in listed.output, "telegram:42" in listed.output) == (0, True, True)

    unsure = await connected.run("pair", code)
    assert unsure.code == 1
    assert "--yes" in unsure.errors
    wrong = await connected.run("pair", "ABCDEFGH", "--yes")
    assert wrong.code == 1
    admitted = await connected.run("pair", code, "--yes")
    assert admitted.code == 0, admitted.errors
    assert "telegram:42" in admitted.output

    assert (await answered(gateway, api, 2, chat=42))[1].startswith("You are let in now.")
    pushed(api, "now I am in", chat=42)
    texts = await answered(gateway, api, 3, chat=42)
    assert "now I am in" in texts[2]
    assert len(texts) == 3
    listed = await connected.run("pair", "--list")
    assert "in: Ann (telegram:42)" in listed.output

    revoked = await connected.run("pair", "--revoke", "telegram:42")
    assert revoked.code == 0, revoked.errors
    pushed(api, "still there?", chat=42)
    await confirmed(gateway, api)
    await gateway.until(connected.is_settled)
    assert "still there?" not in str(api.texts(42))
    again = await connected.run("pair", "--revoke", "telegram:42")
    assert again.code == 1


async def test_pairing_works_on_a_stopped_gateway(connected: World, api: BotApi) -> None:
    connected.settings |= {"TELEGRAM_PAIRING": "true", "TELEGRAM_ALLOWLIST": ""}
    gateway = await connected.up()
    pushed(api, "let me in", chat=42)
    [offer] = await answered(gateway, api, 1, chat=42)
    await gateway.stop()
    code = offer.split("code is ")[1][:8]
    admitted = await connected.run("pair", code.lower(), "--yes")
    assert admitted.code == 0, admitted.errors
    # Paired chats alone are enough: pairing may be switched off again.
    connected.settings["TELEGRAM_PAIRING"] = "false"
    gateway = await connected.up()
    assert (await answered(gateway, api, 2, chat=42))[1].startswith("You are let in now.")
    pushed(api, "now I am in", chat=42)
    assert "now I am in" in (await answered(gateway, api, 3, chat=42))[2]
    await gateway.stop()
    revoked = await connected.run("pair", "--revoke", "telegram:42")
    assert revoked.code == 0, revoked.errors
    assert (await connected.run("run")).code == 5
    listed = await connected.run("pair", "--list")
    assert "Nobody" in listed.output


async def test_who_is_put_out_has_no_reminder_that_would_fire(offline: World, api: BotApi) -> None:
    offline.settings |= {"TELEGRAM_PAIRING": "true", "TELEGRAM_ALLOWLIST": "7"}
    gateway = await offline.up()
    pushed(api, "let me in", chat=42)
    [offer] = await answered(gateway, api, 1, chat=42)
    await offline.run("pair", offer.split("code is ")[1][:8], "--yes")
    await answered(gateway, api, 2, chat=42)
    for chat, told in ((42, 3), (7, 1)):
        pushed(api, "remind me in 4 hours to stretch", chat=chat)
        await answered(gateway, api, told, chat=chat)
    await offline.run("pair", "--revoke", "telegram:42")
    query = "SELECT state, reason FROM jobs WHERE chat_key = ?"
    put_out = [{"state": "paused", "reason": "not_allowed"}]
    assert offline.rows(query, "telegram:42") == put_out
    await gateway.stop()
    offline.settings["TELEGRAM_ALLOWLIST"] = "8"
    assert [job["state"] for job in offline.rows(query, "telegram:7")] == ["active"]
    gateway = await offline.up()
    await gateway.until(lambda: offline.rows(query, "telegram:7") == put_out)


async def test_s05_a_second_poller_is_named_and_outlived(
    connected: World, api: BotApi, model: FakeModelServer
) -> None:
    gateway = await connected.up()
    api.fail("getUpdates", Fault.conflict(), times=3)
    pushed(api, "hello")
    await gateway.until(lambda: connected.channel().get("state") == "conflict")
    assert "same bot token" in connected.channel()["reason"]
    assert "hello" in (await answered(gateway, api, 1))[0]
    await gateway.until(lambda: connected.channel().get("state") == "connected")


async def test_d20_a_reply_that_was_cut_off_is_not_sent_twice(
    connected: World, api: BotApi, model: FakeModelServer
) -> None:
    model.when("steady", Say(text="all of it"))
    gateway = await connected.up()
    api.fail("sendMessage", Fault.slow())
    pushed(api, "steady")
    await answered(gateway, api, 1)
    await gateway.stop()
    assert len(model.requests) == 1
    gateway = await connected.up()
    pushed(api, "next")
    await gateway.until(lambda: any("next" in text for text in api.texts()))
    await gateway.until(connected.is_settled)
    unmarked = [text for text in api.texts() if text == "all of it"]
    marked = [text for text in api.texts() if text == f"{MARK}all of it"]
    assert len(unmarked) == 1
    assert len(marked) <= 1
    assert sum("steady" in one.asked.user for one in model.requests) == 1


async def test_s10_nothing_is_acknowledged_while_the_store_cannot_be_written(
    connected: World, api: BotApi
) -> None:
    gateway = await connected.up()
    with connected.store_held():
        pushed(api, "hello")
        await until(lambda: "telegram_update_kept_unconfirmed" in gateway.errors, within=LONG)
        assert len(api.pending) == 1
    assert "hello" in (await answered(gateway, api, 1))[0]
    await confirmed(gateway, api)
    await gateway.until(connected.is_settled)
    assert len(api.texts()) == 1
