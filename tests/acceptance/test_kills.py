"""Kill -9 at every transition and at random: nothing is lost, nothing is silently doubled."""

import asyncio
import random
import re
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.acceptance.harness import (
    LONG,
    MARK,
    Started,
    World,
    answered,
    asked,
    pi_stand_in,
    pushed,
    until,
)
from tests.fakes.bot_api import BotApi
from tests.fakes.bot_api_faults import Fault
from tests.fakes.model_script import Say, call
from tests.fakes.model_server import FakeModelServer

pytestmark = [pytest.mark.acceptance, pytest.mark.timeout(300)]


async def settled_once(world: World, gateway: Started, api: BotApi, texts: list[str]) -> None:
    """Everything ended, with exactly these texts in the chat, in order."""
    await gateway.until(lambda: not api.pending)
    await gateway.until(world.is_settled)
    assert api.texts(7) == texts
    world.check_store()


async def test_killed_before_t1_the_message_is_handed_over_again(
    connected: World, api: BotApi, model: FakeModelServer
) -> None:
    model.when("hello", Say(text="hello yourself"))
    gateway = await connected.up()
    over = {call.number for call in api.calls if call.status is not None}

    def is_handed_out() -> bool:
        return any(
            call.status == 200 and call.number not in over for call in api.calls_of("getUpdates")
        )

    with connected.store_held():
        pushed(api, "hello")
        await gateway.until(is_handed_out)
        await gateway.kill()
    assert connected.count("messages") == 0
    gateway = await connected.up()
    await answered(gateway, api, 1)
    await settled_once(connected, gateway, api, ["hello yourself"])


async def test_killed_between_t1_and_t2_the_message_is_still_queued(
    connected: World, api: BotApi, model: FakeModelServer
) -> None:
    model.when("hello", Say(text="hello yourself"))
    # A host that starts and never gets ready keeps the turn where it is.
    stuck = {"HOST_KIND": "pi", "HOST_COMMAND": "sh -c 'exec sleep 1000' sh"}
    gateway = await connected.up(settings=stuck)
    pushed(api, "hello")
    await gateway.until(lambda: connected.count("turns WHERE state = 'queued'") == 1)
    await gateway.until(lambda: bool(connected.host_processes()))
    await gateway.kill()
    assert connected.count("runs") == 0
    gateway = await connected.up()
    await answered(gateway, api, 1)
    await settled_once(connected, gateway, api, ["hello yourself"])


async def test_killed_between_t2_and_t3_the_turn_runs_again_and_is_told_so(
    connected: World, api: BotApi, model: FakeModelServer
) -> None:
    model.queue(Say(text="cut off", pieces=2, gate="never"))
    model.when("hello", Say(text="hello yourself"))
    gateway = await connected.up()
    pushed(api, "hello")
    await asked(gateway, model, "hello")
    await gateway.kill()
    [run] = connected.rows("SELECT state FROM runs")
    assert run["state"] == "running"
    gateway = await connected.up()
    await answered(gateway, api, 1)
    await settled_once(connected, gateway, api, ["hello yourself"])
    runs = connected.rows("SELECT state FROM runs ORDER BY id")
    assert [run["state"] for run in runs] == ["interrupted", "succeeded"]
    assert "An earlier try at this request was cut off" in model.requests[-1].asked.user


async def test_a_turn_that_is_cut_off_twice_fails_with_a_notice(
    connected: World, api: BotApi, model: FakeModelServer
) -> None:
    model.when("hello", Say(text="cut off", pieces=2, gate="never"))
    for times in (1, 2):
        gateway = await connected.up()
        if times == 1:
            pushed(api, "hello")
        await asked(gateway, model, "hello", times=times)
        await gateway.kill()
    gateway = await connected.up()
    [notice] = await answered(gateway, api, 1)
    assert "cut off twice" in notice
    assert re.search(r"\(ref \d+\)$", notice)
    await settled_once(connected, gateway, api, [notice])
    [turn] = connected.rows("SELECT state, reason FROM turns")
    assert (turn["state"], turn["reason"]) == ("failed", "interrupted")


async def test_d05_killed_between_t3_and_t4_the_answer_comes_later(
    connected: World, api: BotApi, model: FakeModelServer
) -> None:
    model.when("hello", Say(text="hello yourself", pieces=2, gate="ready"))
    gateway = await connected.up()
    pushed(api, "hello")
    await asked(gateway, model, "hello")
    await gateway.until(lambda: not api.pending)
    await api.stop()
    model.open("ready")
    await gateway.until(lambda: bool(connected.count("turns WHERE state = 'answered'")))
    # Killed while it cannot commit a T4, so that it is not in the middle of a try.
    is_killed = False
    while not is_killed:
        await gateway.until(lambda: bool(connected.count("chunks WHERE state = 'pending'")))
        with connected.store_held():
            if connected.count("chunks WHERE state = 'pending'"):
                await gateway.kill()
                is_killed = True
    await api.start()
    gateway = await connected.up()
    await answered(gateway, api, 1)
    await settled_once(connected, gateway, api, ["hello yourself"])
    assert len(model.requests) == 1


async def test_killed_between_t4_and_t5_a_chunk_that_arrived_comes_once_more_marked(
    connected: World, api: BotApi, model: FakeModelServer
) -> None:
    model.when("hello", Say(text="hello yourself"))
    gateway = await connected.up()
    api.fail("sendMessage", Fault.slow())
    pushed(api, "hello")
    await answered(gateway, api, 1)
    await gateway.kill()
    api.release()
    [chunk] = connected.rows("SELECT state FROM chunks")
    assert chunk["state"] == "sending"
    gateway = await connected.up()
    await answered(gateway, api, 2)
    await settled_once(connected, gateway, api, ["hello yourself", f"{MARK}hello yourself"])
    assert len(model.requests) == 1


async def test_killed_between_t4_and_t5_a_chunk_that_was_lost_comes_marked(
    connected: World, api: BotApi, model: FakeModelServer
) -> None:
    model.when("hello", Say(text="hello yourself"))
    gateway = await connected.up()
    api.fail("sendMessage", Fault.never())
    pushed(api, "hello")
    await gateway.until(lambda: len(api.calls_of("sendMessage")) == 1)
    await gateway.kill()
    api.release()
    gateway = await connected.up()
    await answered(gateway, api, 1)
    await settled_once(connected, gateway, api, [f"{MARK}hello yourself"])


async def test_killed_at_t0_a_slot_fires_once(offline: World, api: BotApi) -> None:
    gateway = await offline.up()
    pushed(api, "remind me in 4 seconds to stretch")
    [confirmation] = await answered(gateway, api, 1)
    await gateway.until(lambda: not offline.count("deliveries WHERE state = 'sending'"))
    with offline.store_held():
        # The slot passes while T0 cannot be committed.
        await gateway.until(lambda: "store_busy" in gateway.errors)
        await gateway.kill()
    assert offline.count("turns WHERE trigger = 'job'") == 0
    gateway = await offline.up()
    await answered(gateway, api, 2)
    await settled_once(offline, gateway, api, [confirmation, "stretch"])
    assert offline.count("turns WHERE trigger = 'job'") == 1
    await gateway.kill()
    gateway = await offline.up()
    await settled_once(offline, gateway, api, [confirmation, "stretch"])


async def test_a_reminder_whose_time_passed_while_all_was_down_comes_once(
    offline: World, api: BotApi
) -> None:
    gateway = await offline.up()
    pushed(api, "remind me in 4 seconds to stretch")
    [confirmation] = await answered(gateway, api, 1)
    await gateway.until(lambda: not offline.count("deliveries WHERE state = 'sending'"))
    await gateway.kill()
    [job] = offline.rows("SELECT next_slot_at FROM jobs")
    await until(lambda: time.time() * 1000 > job["next_slot_at"])
    gateway = await offline.up()
    await answered(gateway, api, 2)
    await settled_once(offline, gateway, api, [confirmation, "stretch"])


async def test_a_reminder_set_by_a_turn_that_was_cut_off_is_not_set_twice(
    connected: World, api: BotApi, model: FakeModelServer
) -> None:
    arguments: dict[str, object] = {
        "action": "create",
        "text": "water the plants",
        "when": "tomorrow at 9",
    }
    create = call("schedule", arguments)
    model.queue(create, Say(text="I will", pieces=2, gate="never"))
    model.when("plants", create, Say(text="I will."))
    gateway = await connected.up()
    pushed(api, "tomorrow at 9 remind me of the plants")
    await asked(gateway, model, "plants", times=2)
    assert connected.count("jobs") == 1
    await gateway.kill()
    gateway = await connected.up()
    [text] = await answered(gateway, api, 1)
    assert text.startswith("I will.")
    assert "#1 " in text
    assert connected.count("jobs") == 1


@pytest.mark.parametrize("way", ["stop", "kill"])
async def test_m14_no_process_outlives_its_gateway(
    connected: World, api: BotApi, tmp_path: Path, way: str
) -> None:
    script = tmp_path / "script.json"
    script.write_text(
        '{"rules": [{"match": "stay", "steps": [{"do": "fork"}, {"do": "hang"}]}],'
        ' "ignore": ["term", "eof"]}'
    )
    connected.settings |= pi_stand_in(script)
    gateway = await connected.up()
    for chat in (7, 8, 9):
        pushed(api, "stay", chat=chat)

    await gateway.until(lambda: connected.host_names().count("sleep") == 3)
    if way == "stop":
        assert (await gateway.stop()).code == 0
    else:
        await gateway.kill()
        script.write_text("{}")
        gateway = await connected.up()
        assert "leftovers_reaped" in gateway.errors
        assert "sleep" not in connected.host_names()
        for chat in (7, 8, 9):
            await answered(gateway, api, 1, chat=chat)
        assert (await gateway.stop()).code == 0
    await connected.no_host_left()


@dataclass(slots=True)
class Stream:
    """People who keep writing over four chats, to a platform that now and then answers late."""

    api: BotApi
    model: FakeModelServer
    chance: random.Random
    written: list[tuple[int, str]] = field(default_factory=list)
    reminders: int = 0

    async def flow(self) -> None:
        while True:
            chat = self.chance.choice((7, 8, 9, 10))
            number = len(self.written)
            words = f"note{number}."
            if self.chance.random() < 0.3:
                self.reminders += 1
                words = f"remind me in 2 seconds of job{number}."
                create: dict[str, object] = {
                    "action": "create",
                    "text": f"job{number}.",
                    "in": "2 seconds",
                }
                self.model.when(words, call("schedule", create), ECHOED)
            if self.chance.random() < 0.2:
                self.api.fail("sendMessage", Fault.slow(), chat_id=chat)
            self.written.append((chat, words))
            pushed(self.api, words, chat=chat)
            await asyncio.sleep(self.chance.uniform(0.1, 0.5))


ECHOED = Say(text="You said: {user}", pieces=2, seconds=0.3)
HELD = Say(text="You said: {user}", pieces=2, gate="never")
KILLS = 11


@pytest.mark.parametrize("host", ["offline", "builtin"])
async def test_i04_random_kills_lose_nothing_and_double_nothing(
    connected: World, api: BotApi, model: FakeModelServer, host: str
) -> None:
    connected.settings["HOST_KIND"] = host
    model.script.default = (ECHOED,)
    stream = Stream(api, model, random.Random(host))
    flowing = asyncio.create_task(stream.flow())
    for _ in range(KILLS):
        gateway = connected.start("run")
        # Some kills fall into the start, most into the work.
        await asyncio.wait({flowing}, timeout=stream.chance.uniform(0.2, 2.5))
        assert gateway.is_running, gateway.errors
        await gateway.kill()
    # However slow the machine is, one of the kills cuts off a run.
    model.script.default = (HELD,)
    gateway = await connected.up()
    if host == "builtin":
        await gateway.until(lambda: connected.count("runs WHERE state = 'running'") > 0)
    await gateway.kill()
    model.script.default = (ECHOED,)
    flowing.cancel()
    await asyncio.gather(flowing, return_exceptions=True)
    api.heal()
    api.release()
    gateway = await connected.up()
    await gateway.until(lambda: not api.pending, within=2 * LONG)
    await gateway.until(connected.is_settled, within=3 * LONG)

    connected.check_store()
    check_messages(connected, api, stream, is_echo=host == "builtin")
    check_reminders(connected, api, stream, is_whole=host == "offline")
    assert unmarked_repeats(api) == []
    assert (await gateway.stop()).code == 0
    await connected.no_host_left()


def check_messages(world: World, api: BotApi, stream: Stream, *, is_echo: bool) -> None:
    """Each message was stored once, and its turn ended in one text that went out."""
    rows = world.rows(
        "SELECT m.text, t.chat_key, t.state, d.state AS delivery FROM messages m"
        " JOIN turns t ON t.id = m.turn_id JOIN deliveries d ON d.id = t.delivery_id"
    )
    assert sorted(row["text"] for row in rows) == sorted(words for _, words in stream.written)
    assert {row["state"] for row in rows} <= {"answered", "failed"}
    # Two ends without an answer may leave it open whether a chunk arrived.
    assert {row["delivery"] for row in rows} <= {"sent", "failed"}
    interrupted = world.count("runs WHERE state = 'interrupted'")
    if is_echo:
        assert interrupted
        for row in rows:
            heard = api.texts(int(row["chat_key"].split(":")[1]))
            is_told = row["state"] == "answered" and any(row["text"] in text for text in heard)
            assert is_told or any("cut off twice" in text for text in heard), row


def unmarked_repeats(api: BotApi) -> list[tuple[int, str]]:
    """Texts that came a second time without saying so.

    The grammar answers every note alike; what names a reminder or a run comes once.
    """
    times = Counter((message["chat"]["id"], message["text"]) for message in api.sent)
    return [
        (chat, text)
        for (chat, text), count in times.items()
        if count > 1 and not text.startswith(MARK) and re.search(r"job\d|note\d|ref \d", text)
    ]


def check_reminders(world: World, api: BotApi, stream: Stream, *, is_whole: bool) -> None:
    """Each job fired once, its text came, and none was made twice or left out."""
    jobs = world.rows("SELECT id, chat_key, text, state FROM jobs")
    assert len({job["text"] for job in jobs}) == len(jobs)
    assert {job["state"] for job in jobs} <= {"done", "failed"}
    if is_whole:
        told = world.rows("SELECT m.text, t.state FROM messages m JOIN turns t ON t.id = m.turn_id")
        failed = [row for row in told if row["state"] == "failed" and "remind" in row["text"]]
        assert stream.reminders - len(failed) <= len(jobs) <= stream.reminders
    fired = world.rows(
        "SELECT job_id, count(*) AS n FROM turns WHERE trigger = 'job' GROUP BY job_id"
    )
    assert {row["job_id"]: row["n"] for row in fired} == {job["id"]: 1 for job in jobs}
    for job in jobs:
        texts = api.texts(int(job["chat_key"].split(":")[1]))
        came = [text for text in texts if reminds_of(text, job["text"].rstrip("."))]
        assert came, job
        assert sum(not text.startswith(MARK) for text in came) <= 1, came


def reminds_of(text: str, words: str) -> bool:
    """Whether a text is the reminder itself, alone or in a list; not its confirmation, nor word
    that nobody knows whether it arrived.
    """
    if "may not have reached you" in text:
        return False
    line = re.compile(rf"(• )?(\(was due [^)]*\) )?{re.escape(words)}\.?")
    return any(line.fullmatch(one) for one in text.removeprefix(MARK).splitlines())
