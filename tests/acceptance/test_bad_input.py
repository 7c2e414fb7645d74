"""Whatever settings, people, hosts and models come up with: a plain sentence, never a crash."""

import json
import re
import signal
from pathlib import Path

import psutil
import pytest

from gateway.domain.tool import NOTHING_SET
from tests.acceptance.harness import (
    MARK,
    World,
    answered,
    asked,
    pi_stand_in,
    pushed,
    telegram_settings,
)
from tests.fakes import bot_api_updates as updates
from tests.fakes.bot_api import BotApi
from tests.fakes.bot_api_faults import Fault
from tests.fakes.model_script import Cut, Refuse, Say, Silent, call
from tests.fakes.model_server import FakeModelServer

pytestmark = [pytest.mark.acceptance, pytest.mark.timeout(300)]

REFERENCE = re.compile(r" \(ref \d+\)$")


async def test_all_problems_of_the_settings_are_listed_at_once(world: World) -> None:
    wrong = {
        "TELEGRAM_BOT_TOKEN": "12345:CANARY with spaces",
        "TELEGRAM_ALLOWLIST": "7, @ann, -100",
        "GATEWAY_TIMEZONE": "Mars/Olympus",
        "HOST_KIND": "magic",
        "HOST_SILENCE_TIMEOUT": "soon",
        "HOST_MAX_PROCESSES": "0",
        "MODEL_BASE_URL": "not an address",
        "GATEWAY_OWNER": "telegram:-5",
        "DELIVERY_EXPIRY": "1y",
    }
    for command in ("run", "status"):
        ended = await world.run(command, settings=wrong)
        assert ended.code == 2, command
        lines = ended.errors.splitlines()
        for name in wrong:
            assert sum(line.startswith(f"{name}: ") for line in lines) == 1, ended.errors
        assert "@ann" in ended.errors
        assert "CANARY" not in ended.errors
        assert "Traceback" not in ended.errors
        assert ended.output == ""
    assert not world.data.exists()


async def test_a_misspelt_key_is_an_error_in_the_file_and_a_warning_outside(
    world: World, api: BotApi
) -> None:
    env_file = world.folder / ".env"
    env_file.write_text("TELEGRAM_ALOWLIST=7\n")
    env_file.chmod(0o600)
    ended = await world.run("status")
    assert ended.code == 2
    assert "TELEGRAM_ALLOWLIST" in ended.errors
    env_file.unlink()
    ended = await world.run("status", settings={"TELEGRAM_ALOWLIST": "7"})
    assert ended.code == 0
    assert "TELEGRAM_ALLOWLIST" in ended.errors


async def test_settings_as_people_write_them_are_understood(world: World, api: BotApi) -> None:
    env_file = world.folder / ".env"
    env_file.write_text(
        f'TELEGRAM_BOT_TOKEN = " {api.token} "\n'
        "TELEGRAM_ALLOWLIST= 7 , ,-100200,\n"
        f"TELEGRAM_API_BASE_URL={api.base_url}/\n"
    )
    env_file.chmod(0o600)
    gateway = await world.up()
    pushed(api, "hello")
    await answered(gateway, api, 1)


async def test_s19_a_wrong_token_is_named(world: World, api: BotApi) -> None:
    world.settings |= telegram_settings(api)
    world.settings["TELEGRAM_BOT_TOKEN"] = "654321:CANARY-that-nobody-issued-to-us-00"
    ended = await world.run("run")
    assert ended.code == 5
    assert "telegram" in ended.errors
    assert "@BotFather" in ended.errors
    assert "CANARY" not in ended.errors


async def test_a_token_that_is_taken_starts_no_second_channel(offline: World, api: BotApi) -> None:
    first = await offline.up()
    await first.until(lambda: offline.channel().get("state") == "connected")
    elsewhere = {"GATEWAY_DATA_DIR": str(offline.folder / "elsewhere")}
    polls = len(api.calls_of("getMe"))
    second = await offline.run("run", settings=elsewhere)
    assert second.code == 5
    assert f"process {first.pid}" in second.errors
    assert "token" in second.errors
    assert len(api.calls_of("getMe")) == polls
    await first.kill()
    third = offline.start("run", settings=elsewhere)
    pushed(api, "hello")
    await answered(third, api, 1)


def texts_under(*folders: Path) -> bytes:
    """All that was written anywhere, file by file."""
    files = [path for folder in folders for path in folder.rglob("*") if path.is_file()]
    return b"\n".join(path.read_bytes() + str(path).encode() for path in files)


async def test_s11_token_and_key_show_nowhere(
    connected: World, api: BotApi, model: FakeModelServer
) -> None:
    connected.settings |= {"GATEWAY_LOG_LEVEL": "DEBUG", "TELEGRAM_PAIRING": "true"}
    key = connected.settings["MODEL_API_KEY"]
    refusal = json.dumps({"error": {"message": f"Incorrect API key provided: {key}"}})
    model.when("refused", Refuse(status=401, body=refusal))
    model.when("broken", Refuse(status=400, body=f"<html>{key}</html>"))
    api.fail("getMe", Fault.reset(is_stored=False))
    api.fail("getUpdates", Fault.conflict())
    api.fail("sendMessage", Fault.web_page(502))
    api.fail("sendMessage", Fault.bad_request("chat not found"), chat_id=9)
    api.fail("sendChatAction", Fault.server_error(), times=None)
    gateway = await connected.up()
    for chat, words in ((7, "refused"), (8, "broken"), (9, "hello"), (666, "let me in")):
        pushed(api, words, chat=chat)
    await answered(gateway, api, 1, chat=7)
    await answered(gateway, api, 1, chat=8)
    await gateway.until(connected.is_settled)
    seen = [" ".join(psutil.Process(gateway.pid).cmdline())]
    hosts = connected.host_processes()
    assert hosts
    for host in hosts:
        seen.append(" ".join(host.cmdline()))
        assert api.token not in str(host.environ())
        assert host.environ()["MODEL_API_KEY"] == key
    await api.stop()
    await gateway.until(lambda: connected.channel()["state"] == "disconnected")
    reports = [await connected.run(name, "--json") for name in ("status", "turns", "deliveries")]
    seen += [report.output for report in reports]
    await gateway.stop()
    assert "CANARY" not in "".join(seen)
    assert "DEBUG" in gateway.errors
    everything = texts_under(connected.folder, connected.runtime)
    assert b"CANARY" not in everything
    assert api.token.encode() not in everything


async def test_s20_a_stop_gives_the_running_turn_back(
    connected: World, api: BotApi, model: FakeModelServer
) -> None:
    model.queue(Say(text="never heard", pieces=2, gate="never"))
    model.when("question", Say(text="the answer"))
    gateway = await connected.up()
    pushed(api, "question")
    await asked(gateway, model, "question")
    gateway.process.send_signal(signal.SIGTERM)
    ended = await gateway.ended(within=15)
    assert ended.code == 0, ended.errors
    assert "Traceback" not in ended.errors
    await connected.no_host_left()
    [turn] = connected.rows("SELECT state FROM turns")
    [run] = connected.rows("SELECT state FROM runs")
    assert (turn["state"], run["state"]) == ("queued", "interrupted")
    gateway = await connected.up()
    assert await answered(gateway, api, 1) == ["the answer"]
    # A planned stop is not told to the model, nor does it count as cut off.
    assert "cut off" not in model.requests[-1].asked.user


async def test_s20_a_second_signal_ends_it_in_order_too(
    connected: World, api: BotApi, model: FakeModelServer
) -> None:
    model.queue(Say(text="never heard", pieces=2, gate="never"))
    gateway = await connected.up()
    api.fail("sendMessage", Fault.never(), chat_id=8)
    pushed(api, "/help", chat=8)
    await gateway.until(lambda: len(api.calls_of("sendMessage", chat_id=8)) == 1)
    pushed(api, "question", chat=7)
    await asked(gateway, model, "question")
    gateway.process.send_signal(signal.SIGTERM)
    await gateway.until(lambda: "stopping" in gateway.errors)
    gateway.process.send_signal(signal.SIGTERM)
    ended = await gateway.ended(within=15)
    assert ended.code == 0, ended.errors
    assert "Traceback" not in ended.errors
    api.release()
    gateway = await connected.up()
    assert (await answered(gateway, api, 1, chat=8))[0].startswith(MARK)
    await answered(gateway, api, 1, chat=7)


async def test_s20_a_stop_during_a_rate_limit_and_between_chunks_loses_nothing(
    connected: World, api: BotApi, model: FakeModelServer
) -> None:
    words = [f"word{number}" for number in range(1500)]
    model.when("long", Say(text=" ".join(words)))
    gateway = await connected.up()
    api.fail("sendMessage", Fault.too_many_requests(3), chat_id=8)
    pushed(api, "limited", chat=8)
    pushed(api, "long", chat=7)
    await answered(gateway, api, 1, chat=7)
    await gateway.until(lambda: len(api.calls_of("sendMessage", chat_id=8)) == 1)
    assert (await gateway.stop()).code == 0
    gateway = await connected.up()
    await gateway.until(connected.is_settled)
    assert len(api.texts(8)) == 1
    assert not api.texts(8)[0].startswith(MARK)
    assert " ".join(api.texts(7)).split() == words


async def test_s20_a_signal_during_the_start_is_a_stop_too(offline: World, api: BotApi) -> None:
    gateway = offline.start("run")
    lock = offline.data / "gateway.lock"
    # From here on the database is made, which takes longer than all else at a first start.
    await gateway.until(lambda: lock.exists() and lock.read_text() == f"{gateway.pid}\n")
    ended = await gateway.stop()
    assert ended.code == 0, ended.errors
    assert "Traceback" not in ended.errors
    offline.check_store()
    await offline.up()


async def test_a_gateway_that_hangs_is_named_and_not_called_stopped(
    offline: World, api: BotApi
) -> None:
    gateway = await offline.up()
    gateway.process.send_signal(signal.SIGSTOP)
    ended = await offline.run("status", "--json")
    gateway.process.send_signal(signal.SIGCONT)
    assert (ended.code, ended.output) == (1, "")
    assert "gave no answer" in ended.errors
    assert "Traceback" not in ended.errors
    assert (await offline.run("status")).code == 0


async def test_m03_a_host_that_is_killed_costs_one_sentence(
    connected: World, api: BotApi, model: FakeModelServer
) -> None:
    model.queue(Say(text="half of it", pieces=2, gate="never"))
    model.when("second", Say(text="the second answer"))
    gateway = await connected.up()
    pushed(api, "first")
    await asked(gateway, model, "first")
    [host] = connected.host_processes()
    host.kill()
    [notice] = await answered(gateway, api, 1)
    assert REFERENCE.search(notice)
    assert "half of it" not in notice
    pushed(api, "second")
    assert await answered(gateway, api, 2) == [notice, "the second answer"]
    [run] = (await connected.run("turns", "--json")).json()[1]["runs"]
    assert (run["state"], run["reason"]) == ("failed", "died")


async def test_m01_a_silent_model_costs_one_sentence(
    connected: World, api: BotApi, model: FakeModelServer
) -> None:
    connected.settings["HOST_SILENCE_TIMEOUT"] = "1s"
    model.when("first", Silent(text="half of it"))
    model.when("second", Say(text="the second answer"))
    gateway = await connected.up()
    pushed(api, "first")
    await asked(gateway, model, "first")
    [notice] = await answered(gateway, api, 1)
    assert "heard nothing for too long" in notice
    assert REFERENCE.search(notice)
    pushed(api, "second")
    assert await answered(gateway, api, 2) == [notice, "the second answer"]
    [run] = connected.rows("SELECT state, reason FROM runs WHERE id = 1")
    assert (run["state"], run["reason"]) == ("timed_out", "silent")


HOST_ENDS: dict[str, tuple[list[dict[str, object]], str]] = {
    "hang": ([{"do": "delta", "text": "half"}, {"do": "hang"}], "silent"),
    "die": ([{"do": "delta", "text": "half"}, {"do": "exit", "status": 1}], "died"),
    "leave": ([{"do": "delta", "text": "half"}, {"do": "exit", "status": 0}], "died"),
    "vanish": ([{"do": "kill"}], "died"),
    "mute": ([{"do": "close_output"}, {"do": "hang"}], "died"),
    "blank": ([{"do": "say", "text": ""}], "empty"),
    "fail": ([{"do": "fail", "text": "529 overloaded_error req_011"}], "error"),
    "refuse": ([], "refused"),
}


async def test_m09_whatever_a_host_does_the_person_gets_one_neutral_sentence(
    offline: World, api: BotApi, tmp_path: Path
) -> None:
    rules: list[dict[str, object]] = [
        {"match": name, "steps": steps} for name, (steps, _) in HOST_ENDS.items()
    ]
    rules[-1]["ack"] = "refuse: no credits at https://provider.example"
    noise = [
        {"do": "raw", "text": "Debugger listening\nnull\n[1]\n{broken\n\r\n"},
        {"do": "raw_hex", "text": "fffe0a"},
        {"do": "stderr", "text": "warning: noise"},
        {"do": "tool", "name": "look", "size": 300_000},
        {"do": "say", "text": "through all the noise"},
    ]
    rules.append({"match": "noise", "steps": noise})
    script = tmp_path / "script.json"
    script.write_text(json.dumps({"rules": rules}))
    chats = dict(zip([*HOST_ENDS, "noise"], range(20, 40), strict=False))
    offline.settings |= pi_stand_in(script) | {
        "TELEGRAM_ALLOWLIST": ",".join(map(str, chats.values())),
        "HOST_SILENCE_TIMEOUT": "2s",
        "HOST_MAX_PROCESSES": "20",
    }
    gateway = await offline.up()
    for name, chat in chats.items():
        pushed(api, name, chat=chat)
    for name, (_, reason) in HOST_ENDS.items():
        [notice] = await answered(gateway, api, 1, chat=chats[name])
        assert REFERENCE.search(notice), name
        for leak in ("half", "529", "req_", "401", "provider", "exit", "Traceback"):
            assert leak not in notice, name
        [run] = offline.rows(
            "SELECT r.state, r.reason FROM runs r JOIN turns t ON t.id = r.turn_id"
            " WHERE t.chat_key = ?",
            f"telegram:{chats[name]}",
        )
        assert run["reason"] == reason, name
    assert await answered(gateway, api, 1, chat=chats["noise"]) == ["through all the noise"]
    await gateway.until(offline.is_settled)
    assert len(api.sent) == len(chats)
    assert gateway.is_running


async def test_m09_what_providers_say_stays_in_the_log(
    connected: World, api: BotApi, model: FakeModelServer
) -> None:
    told = '{"error":{"type":"overloaded_error","message":"req_011CANARY see https://x.example"}}'
    model.when("refused", Refuse(status=400, body=told))
    model.when("page", Refuse(status=404, body="<html>nginx</html>"))
    model.when("cut", Cut(text="half of it"))
    model.when("error text", Say(text="Error: 529 is only what I was asked to say"))
    gateway = await connected.up()
    for chat, words in ((7, "refused"), (8, "page"), (9, "cut"), (10, "error text")):
        pushed(api, words, chat=chat)
    for chat in (7, 8, 9):
        [notice] = await answered(gateway, api, 1, chat=chat)
        assert REFERENCE.search(notice)
        for leak in ("req_", "example", "overloaded", "nginx", "404", "half"):
            assert leak not in notice
    assert await answered(gateway, api, 1, chat=10) == [
        "Error: 529 is only what I was asked to say"
    ]
    assert "req_011CANARY" in gateway.errors


TABLE = "| a | b |\n|---|---|\n| 1 | 2 |\n| three | *four* |"
LINKS = (
    "[one](https://example.org/a_b?c=d&e=f) [two](javascript:alert(1)) [three](not a link)"
    " [four]() [](https://example.org) [six](tg://user?id=1) <https://example.org/seven>"
)
REPLIES = {
    "50,000 characters without a space": "x" * 50_000,
    "one code line of 10,000 characters": "```\n" + "y" * 10_000 + "\n```",
    "thousands of backticks": "`" * 5_001,
    "unclosed fence": "Look:\n```python\nprint('hi')\n" + "z = 1\n" * 2_000,
    "table": TABLE,
    "links": LINKS,
    "3,000 emoji": "👨‍👩‍👧‍👦" * 600 + "🎉" * 2_400,
    "marks without end": "**bold _italic ~~struck " * 300,
    "angle brackets": "if a<b and c>d then <your-name> & <b>bold</b>",
    "odd characters": "a\u202eb\u2028c\ufeffd\x07e",
}


async def test_every_reply_gets_through_whole(
    connected: World, api: BotApi, model: FakeModelServer
) -> None:
    chats = dict(zip(REPLIES, range(20, 40), strict=False))
    for name, reply in REPLIES.items():
        model.when(f"<{name}>", Say(text=reply))
    connected.settings |= {
        "TELEGRAM_ALLOWLIST": ",".join(map(str, chats.values())),
        "HOST_MAX_PROCESSES": "20",
    }
    gateway = await connected.up()
    for name, chat in chats.items():
        pushed(api, f"<{name}>", chat=chat)
    for chat in chats.values():
        await answered(gateway, api, 1, chat=chat)
    await gateway.until(connected.is_settled, within=90)
    assert {call.status for call in api.calls_of("sendMessage")} == {200}
    states = connected.rows("SELECT DISTINCT state FROM deliveries")
    assert states == [{"state": "sent"}]
    whole = {name: "".join(api.texts(chat)) for name, chat in chats.items()}
    for name in ("50,000 characters without a space", "3,000 emoji"):
        assert whole[name] == REPLIES[name], name
    assert whole["one code line of 10,000 characters"].replace("\n", "") == "y" * 10_000
    assert whole["unclosed fence"].count("z = 1") == 2_000
    assert whole["angle brackets"] == REPLIES["angle brackets"]
    for words in ("three", "four", "1", "2"):
        assert words in whole["table"]
    links = [entity.get("url") for message in api.sent for entity in message.get("entities", [])]
    assert "https://example.org/a_b?c=d&e=f" in links
    assert not any(str(url).startswith("javascript") for url in links)


@pytest.mark.parametrize("reply", ["", "  \n\t ", "<think>only thoughts</think>"])
async def test_an_empty_reply_is_said_to_be_one(
    connected: World, api: BotApi, model: FakeModelServer, reply: str
) -> None:
    model.script.default = (Say(text=reply),)
    gateway = await connected.up()
    pushed(api, "hello")
    [notice] = await answered(gateway, api, 1)
    assert "No answer came back" in notice
    assert REFERENCE.search(notice)
    [run] = connected.rows("SELECT state FROM runs")
    assert run["state"] == "empty"


async def test_a_tool_call_without_sense_sets_nothing_and_says_so(
    connected: World, api: BotApi, model: FakeModelServer
) -> None:
    wrong = call("schedule", {"action": "create", "text": "x", "when": "at the end of time"})
    model.when("remind me", wrong, Say(text="Done, I will remind you!"))
    gateway = await connected.up()
    pushed(api, "remind me of x at the end of time")
    [text] = await answered(gateway, api, 1)
    assert text != "Done, I will remind you!"
    assert NOTHING_SET in text
    assert connected.count("jobs") == 0


async def test_messages_of_every_kind_find_an_answer_or_are_none_of_ours(
    connected: World, api: BotApi, model: FakeModelServer
) -> None:
    connected.settings["TELEGRAM_ALLOWLIST"] = "7,8,9,10,11,12,13,14,-100200"
    gateway = await connected.up()
    cases = {
        7: updates.text("a\u2028b\u200fc\u202e!", chat=updates.private(7)),
        8: updates.text("👍🏽👨‍👩‍👧", chat=updates.private(8), sender=updates.person(8)),
        9: updates.media("voice", chat=updates.private(9), sender=updates.person(9)),
        10: updates.media(
            "photo", caption="what is it?", chat=updates.private(10), sender=updates.person(10)
        ),
        11: updates.text("x" * 4096, chat=updates.private(11), sender=updates.person(11)),
        12: updates.text("nul \0 here", chat=updates.private(12), sender=updates.person(12)),
    }
    api.push(*cases.values())
    api.push(updates.from_bot("beep", chat=updates.private(13)), updates.channel_post())
    api.push(updates.text("not for the bot", chat=updates.supergroup()))
    for chat in cases:
        await answered(gateway, api, 1, chat=chat)
    await gateway.until(connected.is_settled)
    assert "text only" in api.texts(9)[0]
    assert "what is it?" in api.texts(10)[0]
    assert "👍🏽👨‍👩‍👧" in api.texts(8)[0]
    assert "\0" not in api.texts(12)[0]
    assert len(api.texts(13)) == 0
    assert api.texts(-100200) == []
    assert not api.pending


async def test_i17_an_edit_counts_while_its_turn_is_still_queued(
    connected: World, api: BotApi, model: FakeModelServer
) -> None:
    model.when("first", Say(text="one", pieces=2, gate="first"))
    gateway = await connected.up()
    pushed(api, "first")
    await asked(gateway, model, "first")
    api.push(updates.text("meet at five", message_id=501))
    api.push(updates.edited("meet at six", message_id=501))
    api.push(updates.edited("first, but other words", message_id=502))
    await gateway.until(lambda: not api.pending)
    model.open("first")
    second = (await answered(gateway, api, 2))[1]
    assert "meet at six" in second
    assert "meet at five" not in second
    api.push(updates.edited("meet at seven", message_id=501))
    pushed(api, "/status")
    await answered(gateway, api, 3)
    await gateway.until(connected.is_settled)
    assert len(api.texts()) == 3
    assert connected.count("turns") == 2


async def test_an_ordinary_day_leaves_no_error_in_the_log(connected: World, api: BotApi) -> None:
    gateway = await connected.up()
    pushed(api, "hello")
    pushed(api, "/status")
    await answered(gateway, api, 2)
    assert (await gateway.stop()).code == 0
    assert "ERROR" not in gateway.errors
    assert "WARNING" not in gateway.errors
    assert "alembic" not in gateway.errors
