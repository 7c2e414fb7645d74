"""What scripts read: the JSON of the reading commands, and the exit code of every command."""

import contextlib
import sqlite3
import subprocess
import time
from pathlib import Path

import pytest

from tests.acceptance.harness import World, answered, pushed, telegram_settings
from tests.fakes.bot_api import BotApi
from tests.fakes.bot_api_updates import Json
from tests.fakes.model_script import Refuse
from tests.fakes.model_server import FakeModelServer

pytestmark = [pytest.mark.acceptance, pytest.mark.timeout(300)]

LISTS = ("reminders", "turns", "deliveries")
STATUS = {
    *("running", "pid", "since", "channels", "host"),
    *("queue", "jobs", "scheduler", "deliveries"),
}
REMINDER = {
    *("id", "chat_key", "state", "action", "text", "schedule", "timezone", "next_slot_at"),
    *("tier", "last_slot_at", "last_run_state", "last_delivery_state"),
}
TURN = {
    *("id", "chat_key", "trigger", "job_id", "slot_at", "state", "reason", "delivery_id"),
    *("delivery_state", "runs"),
}
RUN = {"id", "state", "reason", "error", "model", "started_at", "ended_at"}
DELIVERY = {
    *("id", "chat_key", "kind", "state", "reason", "attempts", "turn_ids", "job_ids"),
    *("created_at", "settled_at", "chunks"),
}
CHUNK = {"number", "state", "external_id", "sent_at"}


def check_status_keys(status: Json) -> None:
    assert set(status) == STATUS
    for channel in status["channels"]:
        assert set(channel) == {"name", "state", "reason", "last_ok_at"}
    assert set(status["host"]) == {"kind", "model", "state", "sessions", "busy"}
    assert set(status["queue"]) == {"queued", "running"}
    assert set(status["jobs"]) == {"active", "paused", "failed", "overdue", "next_slot_at"}
    assert set(status["scheduler"]) == {"last_look_at"}
    assert set(status["deliveries"]) == {"pending", "unknown", "failed"}


def is_recent(millis: int) -> bool:
    """Whether it is a time of this test, in milliseconds."""
    return abs(time.time() * 1000 - millis) < 300_000


async def test_without_a_database_everything_is_empty_and_nothing_is_made(world: World) -> None:
    for command in LISTS:
        ended = await world.run(command, "--json")
        assert (ended.code, ended.json(), ended.errors) == (0, [], "")
    ended = await world.run("status", "--json")
    assert ended.code == 0
    status = ended.json()
    check_status_keys(status)
    assert (status["running"], status["pid"], status["since"]) == (False, None, None)
    assert status["channels"] == []
    assert status["queue"] == {"queued": 0, "running": 0}
    assert (await world.run("pair", "--list")).code == 0
    assert not world.data.exists()


async def test_status_of_a_running_and_of_a_stopped_gateway(offline: World, api: BotApi) -> None:
    gateway = await offline.up()
    pushed(api, "remind me in 20 minutes to call mum")
    await answered(gateway, api, 1)
    await gateway.until(lambda: offline.channel()["state"] == "connected")
    await gateway.until(lambda: not offline.count("deliveries WHERE state = 'sending'"))
    running = (await offline.run("status", "--json")).json()
    check_status_keys(running)
    assert (running["running"], running["pid"]) == (True, gateway.pid)
    assert is_recent(running["since"])
    [channel] = running["channels"]
    assert (channel["name"], channel["state"], channel["reason"]) == ("telegram", "connected", None)
    assert is_recent(channel["last_ok_at"])
    assert running["host"] == {
        "kind": "offline",
        "model": None,
        "state": "ready",
        "sessions": 1,
        "busy": 0,
    }
    [job] = offline.rows("SELECT next_slot_at FROM jobs")
    counted = {"active": 1, "paused": 0, "failed": 0, "overdue": 0}
    assert is_recent(running["scheduler"]["last_look_at"])
    assert running["jobs"] == counted | {"next_slot_at": job["next_slot_at"]}
    assert running["deliveries"] == {"pending": 0, "unknown": 0, "failed": 0}
    assert f"process {gateway.pid}" in (await offline.run("status")).output

    assert (await gateway.stop()).code == 0
    ended = await offline.run("status", "--json")
    assert ended.code == 0
    stopped = ended.json()
    check_status_keys(stopped)
    assert (stopped["running"], stopped["pid"], stopped["since"]) == (False, None, None)
    assert stopped["channels"] == [
        {"name": "telegram", "state": "stopped", "reason": None, "last_ok_at": None}
    ]
    assert stopped["host"]["kind"] == "offline"
    assert stopped["jobs"] == running["jobs"]
    assert "Not running" in (await offline.run("status")).output


async def test_the_lists_say_the_same_of_a_running_and_of_a_stopped_gateway(
    connected: World, api: BotApi, model: FakeModelServer
) -> None:
    connected.settings["HOST_KIND"] = "offline"
    gateway = await connected.up()
    for number, words in enumerate(("remind me in 2 seconds to stretch", "/help"), start=1):
        pushed(api, words)
        await answered(gateway, api, number)
    await answered(gateway, api, 3)
    await gateway.until(connected.is_settled)
    await gateway.stop()
    connected.settings["HOST_KIND"] = "builtin"
    model.script.default = (Refuse(status=400, body='{"error":{"message":"bad request"}}'),)
    gateway = await connected.up()
    pushed(api, "what no model answers")
    await answered(gateway, api, 4)
    await gateway.until(connected.is_settled)

    running = {name: (await connected.run(name, "--json")).json() for name in LISTS}
    await gateway.stop()
    stopped = {name: (await connected.run(name, "--json")).json() for name in LISTS}
    assert running == stopped
    check_lists(**running)
    for name in LISTS:
        assert (await connected.run(name)).output.count("\n") == len(running[name])


def check_lists(reminders: list[Json], turns: list[Json], deliveries: list[Json]) -> None:
    [reminder] = reminders
    assert set(reminder) == REMINDER
    assert (reminder["chat_key"], reminder["state"]) == ("telegram:7", "done")
    assert (reminder["action"], reminder["text"]) == ("message", "stretch")
    assert reminder["schedule"] == {"kind": "at", "at": reminder["last_slot_at"]}
    assert is_recent(reminder["last_slot_at"])
    assert (reminder["next_slot_at"], reminder["tier"]) == (None, "read_only")
    assert (reminder["last_run_state"], reminder["last_delivery_state"]) == (None, "sent")
    assert reminder["timezone"] == "Europe/Berlin"

    assert all(set(turn) == TURN for turn in turns)
    assert all(set(run) == RUN for turn in turns for run in turn["runs"])
    failed, due, asked = turns
    assert [turn["id"] for turn in turns] == [3, 2, 1]
    assert (failed["state"], failed["delivery_state"]) == ("failed", "sent")
    [failed_run] = failed["runs"]
    assert failed_run["state"] == "failed"
    assert "bad request" in failed_run["error"]
    assert (due["trigger"], due["job_id"], due["runs"]) == ("job", reminder["id"], [])
    assert due["slot_at"] == reminder["last_slot_at"]
    assert (asked["trigger"], asked["state"], asked["slot_at"]) == ("message", "answered", None)
    [run] = asked["runs"]
    assert run["state"] == "succeeded"
    assert is_recent(run["started_at"])
    assert run["started_at"] <= run["ended_at"]

    assert all(set(delivery) == DELIVERY for delivery in deliveries)
    assert all(set(chunk) == CHUNK for one in deliveries for chunk in one["chunks"])
    assert [one["id"] for one in deliveries] == sorted((d["id"] for d in deliveries), reverse=True)
    kinds = {one["kind"]: one for one in deliveries}
    assert set(kinds) == {"reply", "command", "reminder", "notice"}
    assert kinds["reminder"]["turn_ids"] == [due["id"]]
    assert kinds["reminder"]["job_ids"] == [reminder["id"]]
    assert (kinds["reply"]["turn_ids"], kinds["reply"]["job_ids"]) == ([asked["id"]], [])
    assert (kinds["command"]["turn_ids"], kinds["command"]["job_ids"]) == ([], [])
    for one in deliveries:
        assert (one["chat_key"], one["state"], one["attempts"]) == ("telegram:7", "sent", 1)
        [chunk] = one["chunks"]
        assert (chunk["number"], chunk["state"]) == (1, "sent")
        assert chunk["external_id"]
        assert is_recent(chunk["sent_at"])
        assert one["created_at"] <= one["settled_at"]


async def test_the_limit_counts_from_the_newest(world: World) -> None:
    await world.run("chat", given=b"hello\nhello again\nhello once more\n")
    for command in ("turns", "deliveries"):
        everything = (await world.run(command, "--json")).json()
        assert [one["id"] for one in everything] == [3, 2, 1]
        newest = await world.run(command, "--json", "--limit", "2")
        assert newest.json() == everything[:2]
    assert (await world.run("turns", "--json", "--limit", "0")).code == 2
    assert (await world.run("turns", "--json", "--limit", "many")).code == 2


async def test_exit_code_1_says_what_was_refused(world: World) -> None:
    ended = await world.run("pair", "ABCDEFGH", "--yes")
    assert (ended.code, ended.output) == (1, "")
    assert "no such open code" in ended.errors
    assert "Traceback" not in ended.errors


async def test_exit_code_2_names_a_data_directory_that_cannot_be(world: World) -> None:
    (world.folder / "file").write_text("not a directory")
    wrong = {"GATEWAY_DATA_DIR": str(world.folder / "file" / "data")}
    ended = await world.run("run", settings=wrong)
    assert ended.code == 2
    assert "GATEWAY_DATA_DIR" in ended.errors
    assert "Traceback" not in ended.errors


@pytest.mark.parametrize(
    "arguments",
    [("nonsense",), ("run", "--nonsense"), ("pair",), ("run", "--restore", "--start-empty")],
    ids=" ".join,
)
async def test_exit_code_2_is_for_wrong_usage(world: World, arguments: tuple[str, ...]) -> None:
    ended = await world.run(*arguments)
    assert ended.code == 2
    assert ended.errors
    assert "Traceback" not in ended.errors
    assert not world.data.exists()


async def test_exit_code_3_leaves_a_newer_database_as_it_is(offline: World, api: BotApi) -> None:
    await offline.run("chat", given=b"hello\n")
    with contextlib.closing(sqlite3.connect(offline.database)) as connection, connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    before = offline.rows("SELECT * FROM turns")
    for command in (("run",), ("chat",), ("turns", "--json"), ("status",)):
        ended = await offline.run(*command)
        assert ended.code == 3, command
        assert "newer" in ended.errors
        assert "9999" in ended.errors
        assert ended.output == ""
    assert offline.rows("SELECT * FROM turns") == before
    assert api.calls == []


async def test_exit_code_4_names_who_holds_the_directory(offline: World, api: BotApi) -> None:
    first = await offline.up()
    for command in ("run", "chat"):
        ended = await offline.run(command)
        assert ended.code == 4
        assert f"process {first.pid}" in ended.errors
        assert "GATEWAY_DATA_DIR" in ended.errors
    assert first.is_running
    pushed(api, "hello")
    await answered(first, api, 1)


@pytest.mark.parametrize("content", ["4194304\n", "1\n", "garbage", ""])
async def test_s07_what_a_lock_file_holds_is_no_obstacle(world: World, content: str) -> None:
    world.data.mkdir()
    (world.data / "gateway.lock").write_text(content)
    ended = await world.run("chat", given=b"hello\n")
    assert ended.code == 0, ended.errors


async def test_exit_code_5_says_how_to_connect_a_channel(world: World) -> None:
    ended = await world.run("run")
    assert ended.code == 5
    assert "TELEGRAM_BOT_TOKEN" in ended.errors
    assert "gateway chat" in ended.errors
    bare = await world.run()
    assert (bare.code, bare.errors) == (ended.code, ended.errors)


def damage(path: Path) -> None:
    """Overwrite the pages behind the first."""
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xa5" * (size - 4096))


async def chatted(world: World) -> None:
    """A database with a conversation in it, whole in its one file."""
    await world.run("chat", given=b"remind me in 20 minutes to call mum\n")
    with contextlib.closing(sqlite3.connect(world.database)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def copied(world: World) -> str:
    """Make a copy as the daily chore does."""
    copies = world.data / "copies"
    copies.mkdir(exist_ok=True)
    name = "gateway-20260101T000000-daily.db"
    with contextlib.closing(sqlite3.connect(world.database)) as connection:
        connection.execute("VACUUM INTO ?", (str(copies / name),))
    return name


async def test_exit_code_6_names_file_reason_and_newest_copy(world: World) -> None:
    await chatted(world)
    copy = copied(world)
    damage(world.database)
    before = world.database.read_bytes()
    for command in (("chat",), ("reminders", "--json")):
        ended = await world.run(*command)
        assert ended.code == 6, ended.errors
        assert str(world.database) in ended.errors
        assert copy in ended.errors
        assert "--restore" in ended.errors
        assert ended.output == ""
    assert world.database.read_bytes() == before
    assert not list(world.data.glob("*.corrupt-*"))


async def test_restore_goes_back_to_the_newest_good_copy(offline: World, api: BotApi) -> None:
    await chatted(offline)
    copied(offline)
    (offline.data / "copies" / "gateway-20260202T000000-daily.db").write_bytes(b"not a database")
    damage(offline.database)
    gateway = await offline.up("run", "--restore")
    [reminder] = (await offline.run("reminders", "--json")).json()
    assert reminder["text"] == "call mum"
    pushed(api, "hello")
    await answered(gateway, api, 1)
    assert len(list(offline.data.glob("gateway.db.corrupt-*"))) == 1
    assert offline.database.stat().st_mode & 0o777 == 0o600
    offline.check_store()


async def test_start_empty_keeps_the_damaged_file_beside(offline: World, api: BotApi) -> None:
    await chatted(offline)
    damage(offline.database)
    before = offline.database.read_bytes()
    gateway = await offline.up("run", "--start-empty")
    pushed(api, "hello")
    await answered(gateway, api, 1)
    assert (await offline.run("reminders", "--json")).json() == []
    [aside] = offline.data.glob("gateway.db.corrupt-*")
    assert aside.read_bytes() == before


async def test_restore_without_a_good_copy_changes_nothing(world: World, api: BotApi) -> None:
    world.settings |= telegram_settings(api)
    await chatted(world)
    damage(world.database)
    before = world.database.read_bytes()
    ended = await world.run("run", "--restore")
    assert ended.code == 1
    assert "no good copy" in ended.errors
    assert world.database.read_bytes() == before


async def test_a_signal_while_nothing_works_yet_ends_the_start(offline: World, api: BotApi) -> None:
    await api.stop()
    gateway = offline.start("run", stdin=subprocess.DEVNULL)
    await offline.works(gateway)
    assert (await gateway.stop()).code == 0
