"""The tool server on its real socket: whose call it is, and what is stored before it says so."""

import asyncio
import json
import logging
import tempfile
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import pytest
from pydantic import BaseModel

from extensions.schedule import make_extension
from extensions.schedule_arguments import PROMPT
from gateway.domain.job import JobState, Tier
from gateway.domain.message import ChatKey
from gateway.domain.tool import NOT_SAVED, Extension, Tool, ToolContext, ToolResult
from gateway.domain.turn import Trigger
from gateway.engine.toolserver import MAX_BODY, ToolServer
from gateway.errors import StoreBusyError
from gateway.hosts.base import Finished, Prompt
from gateway.log_context import bound_ids
from gateway.store.database import Database
from gateway.store.ending import recover_turns
from gateway.store.opening import Layout
from gateway.store.schema import jobs, tool_calls
from gateway.store.stopping import stop_chat
from gateway.store.turns import Claim
from tests.factories import (
    BERLIN,
    CHAT,
    NOTICE,
    NOW,
    OTHER_CHAT,
    SERVED,
    active_job,
    claimed,
    fire_rules,
    later,
    queued_job_turn,
    rows_of,
    running_turn,
    states_of,
)
from tests.fakes.clock import ManualClock
from tests.fakes.local_host import LocalHost, LocalSession, said
from tests.fakes.rig import running_rig, tools_served
from tests.fakes.tool_client import ToolClient

T = TypeVar("T")
CHRISTMAS = "2026-12-24T18:00"
LINE = "#1 Thu 24 Dec 18:00 (Europe/Berlin): call mum"


@dataclass(slots=True)
class Served:
    """The server, and clients of it."""

    tools: ToolServer
    socket: Path

    def client(self, chat: ChatKey = CHAT) -> ToolClient:
        """A session of the chat."""
        return self.with_token(self.tools.issue(chat))

    def with_token(self, token: str | None) -> ToolClient:
        return ToolClient(path=self.socket, token=token)


@pytest.fixture
async def served(store: Database, clock: ManualClock) -> AsyncIterator[Served]:
    tools = ToolServer(store, [make_extension(store, fire_rules())], clock)
    with tempfile.TemporaryDirectory(prefix="tools-") as folder:
        socket = Path(folder) / "tools.sock"
        async with tools_served(tools, socket):
            yield Served(tools, socket)


# ---- tokens ----------------------------------------------------------------------------------


@pytest.mark.parametrize("token", [None, "", "wrong", "wr\u00f6ng"])
async def test_without_a_known_token_nothing_is_told(served: Served, token: str | None) -> None:
    client = served.with_token(token)

    for answer in (
        await client.get("/tools"),
        await client.get("/prompt"),
        await client.schedule(action="list"),
        await client.post("/tools/nothing", b""),
    ):
        assert answer.status == 401
        assert answer.body == {"ok": False, "text": "Unknown token."}


async def test_a_revoked_token_opens_nothing_any_more(store: Database, served: Served) -> None:
    token = served.tools.issue(CHAT)
    client = served.with_token(token)
    async with served.tools.running(await running_turn(store), BERLIN):
        assert (await client.schedule(action="list")).status == 200
        served.tools.revoke(token)
        served.tools.revoke(token)
        assert (await client.schedule(action="list")).status == 401


async def test_only_our_own_user_reaches_the_socket(served: Served) -> None:
    assert served.socket.stat().st_mode & 0o777 == 0o600


# ---- what there is ---------------------------------------------------------------------------


async def test_the_tools_are_listed_with_what_they_take(served: Served) -> None:
    answer = await served.client().get("/tools")

    listed: Any = answer.body["tools"]
    (tool,) = listed
    assert tool["name"] == "schedule"
    assert {"action", "text", "when", "in", "at", "id"} <= set(tool["parameters"]["properties"])
    assert "create" in tool["description"]


async def test_the_extensions_tell_the_host_how_to_use_them(served: Served) -> None:
    assert (await served.client().get("/prompt")).text == PROMPT


async def test_a_tool_that_is_not_there_is_named_with_those_that_are(
    store: Database, served: Served
) -> None:
    async with served.tools.running(await running_turn(store), BERLIN):
        answer = await served.client().post("/tools/shell", b"{}")

    assert (answer.status, answer.text) == (404, "There is no such tool. There are: schedule.")


# ---- whose call it is ------------------------------------------------------------------------


async def test_a_call_outside_a_running_turn_is_refused(store: Database, served: Served) -> None:
    client, claim = served.client(), await running_turn(store)

    before = await client.schedule(action="create", text="call mum", at=CHRISTMAS)
    async with served.tools.running(claim, BERLIN):
        elsewhere = await served.client(OTHER_CHAT).schedule(action="list")
    after = await client.schedule(action="list")

    assert [before.status, elsewhere.status, after.status] == [409] * 3
    assert await rows_of(store, jobs) == []


async def test_a_call_is_logged_with_its_ids(
    store: Database, served: Served, caplog: pytest.LogCaptureFixture
) -> None:
    seen: dict[str, Mapping[str, object]] = {}

    def note(record: logging.LogRecord) -> bool:
        seen[record.getMessage()] = bound_ids()
        return True

    caplog.set_level(logging.INFO, "gateway")
    caplog.handler.addFilter(note)
    claim = await running_turn(store)
    async with served.tools.running(claim, BERLIN):
        await served.client().schedule(action="list")
    caplog.handler.removeFilter(note)

    assert seen["tool_called"] == {"chat": CHAT, "turn": claim.turn, "run": claim.run}


async def test_a_call_of_a_stopped_turn_does_nothing(store: Database, served: Served) -> None:
    async with served.tools.running(await running_turn(store), BERLIN):
        await store.write(stop_chat, CHAT, now=NOW)
        answer = await served.client().schedule(action="create", text="call mum", at=CHRISTMAS)

    assert answer.body == {"ok": False, "text": "This request was stopped; nothing was done."}
    assert await rows_of(store, jobs) == []


async def test_another_chats_reminders_are_neither_seen_nor_cancelled(
    store: Database, served: Served
) -> None:
    await active_job(store, chat=OTHER_CHAT)
    client = served.client()
    async with served.tools.running(await running_turn(store), BERLIN):
        assert (await client.schedule(action="list")).text == "You have no reminders."
        answer = await client.schedule(action="cancel", id=1)

    assert answer.body == {"ok": False, "text": "There is no open reminder #1."}
    assert await states_of(store, jobs) == [JobState.ACTIVE]


@pytest.mark.parametrize("name", ["chat", "chat_key", "user", "to"])
async def test_a_chat_cannot_be_named(name: str, store: Database, served: Served) -> None:
    fields: dict[str, object] = {name: str(OTHER_CHAT)}
    async with served.tools.running(await running_turn(store), BERLIN):
        answer = await served.client().schedule(
            action="create", text="call mum", at=CHRISTMAS, **fields
        )

    assert answer.text == (
        f"No reminder was set: The arguments do not fit. {name}: Extra inputs are not permitted"
    )
    assert await rows_of(store, jobs) == []


async def test_r23_a_scheduled_turn_is_read_only(store: Database, served: Served) -> None:
    await active_job(store)
    claim = replace(await running_turn(store), trigger=Trigger.JOB)
    client = served.client()
    async with served.tools.running(claim, BERLIN):
        assert (await client.schedule(action="list")).body["ok"]
        created = await client.schedule(action="create", text="call mum", at=CHRISTMAS)
        cancelled = await client.schedule(action="cancel", id=1)

    assert not created.body["ok"]
    assert not cancelled.body["ok"]
    assert await states_of(store, jobs) == [JobState.ACTIVE]


class NoArguments(BaseModel):
    """A tool that takes none."""


@pytest.mark.parametrize("trigger", Trigger)
async def test_r23_a_tool_is_told_why_the_turn_runs_and_what_it_may_do(
    trigger: Trigger, store: Database, clock: ManualClock
) -> None:
    told: list[tuple[Trigger, Tier]] = []

    async def note(context: ToolContext, arguments: BaseModel) -> ToolResult:
        told.append((context.trigger, context.tier))
        return ToolResult(ok=True, text="")

    def refuse(arguments: Mapping[str, object], problem: str) -> ToolResult:
        return ToolResult(ok=False, text=problem)

    tool = Tool(name="note", description="", arguments=NoArguments, call=note, refuse=refuse)
    tools = ToolServer(store, [Extension(name="note", tools=(tool,), prompt="")], clock)
    await queued_job_turn(store)
    claim = await claimed(store)
    assert claim.job is not None
    allowed = replace(claim, trigger=trigger, job=replace(claim.job, tier=Tier.SUGGEST))
    with tempfile.TemporaryDirectory(prefix="tools-") as folder:
        socket = Path(folder) / "tools.sock"
        async with tools_served(tools, socket), tools.running(allowed, BERLIN):
            await ToolClient(path=socket, token=tools.issue(CHAT)).post("/tools/note", b"{}")

    assert told == [(trigger, Tier.MUTATE if trigger is Trigger.MESSAGE else Tier.SUGGEST)]


# ---- what is stored --------------------------------------------------------------------------


async def test_r25_the_answer_comes_from_the_committed_row(store: Database, served: Served) -> None:
    async with served.tools.running(await running_turn(store), BERLIN):
        answer = await served.client().schedule(action="create", text="call mum", at=CHRISTMAS)
        (row,) = await rows_of(store, jobs)

    assert answer.body == {"ok": True, "text": f"Reminder set: {LINE}"}
    assert (row.id, row.text, row.chat_key) == (1, "call mum", str(CHAT))


async def again(store: Database) -> Claim:
    """The gateway died under the run, and the turn runs once more."""
    await store.write(recover_turns, SERVED, NOTICE, now=NOW)
    return await claimed(store)


async def test_the_same_call_of_a_repeated_run_changes_nothing_and_answers_the_same(
    store: Database, served: Served
) -> None:
    client = served.client()
    async with served.tools.running(await running_turn(store), BERLIN):
        first = await client.schedule(action="create", text="call mum", at=CHRISTMAS)
    async with served.tools.running(await again(store), BERLIN):
        second = await client.schedule(at=CHRISTMAS, text="call mum", action="create")

    assert second.body == first.body
    assert len(await rows_of(store, jobs)) == 1


async def test_a_list_says_what_is_stored_each_time(store: Database, served: Served) -> None:
    client = served.client()
    async with served.tools.running(await running_turn(store), BERLIN):
        await client.schedule(action="create", text="call mum", at=CHRISTMAS)
        assert (await client.schedule(action="list")).text == LINE
        await client.schedule(action="cancel", id=1)
        assert (await client.schedule(action="list")).text == "You have no reminders."


async def test_concurrent_equal_calls_make_one_reminder(store: Database, served: Served) -> None:
    client = served.client()
    async with served.tools.running(await running_turn(store), BERLIN):
        answers = await asyncio.gather(
            *(client.schedule(action="create", text="call mum", in_="5 minutes") for _ in range(8))
        )

    assert all(answer.body["ok"] for answer in answers)
    assert sum(answer.text.startswith("Reminder set: ") for answer in answers) == 1
    assert len(await rows_of(store, jobs)) == 1
    assert len(await rows_of(store, tool_calls)) == 8


async def test_r25_reminders_of_several_chats_at_once_are_all_there(
    store: Database, served: Served
) -> None:
    mine, theirs = await running_turn(store), await running_turn(store, chat=OTHER_CHAT)
    async with served.tools.running(mine, BERLIN), served.tools.running(theirs, BERLIN):
        clients = [served.client(), served.client(OTHER_CHAT)] * 3
        answers = await asyncio.gather(
            *(
                client.schedule(action="create", text=f"n{number}", at=CHRISTMAS)
                for number, client in enumerate(clients)
            )
        )

    assert all(answer.body["ok"] for answer in answers)
    owners = {row.text: row.chat_key for row in await rows_of(store, jobs)}
    chats = [str(CHAT), str(OTHER_CHAT)] * 3
    assert owners == {f"n{number}": chat for number, chat in enumerate(chats)}


async def test_r13_a_delay_counts_from_the_message_although_the_turn_waited(
    store: Database, served: Served, clock: ManualClock
) -> None:
    claim = await running_turn(store, "in 5 minutes turn off the oven")
    clock.set(later(180))
    async with served.tools.running(claim, BERLIN):
        await served.client().schedule(action="create", text="oven", in_="5 minutes")

    (row,) = await rows_of(store, jobs)
    assert row.next_slot_at == int(later(300).timestamp() * 1000)


async def test_the_chats_zone_is_that_of_the_run(store: Database, served: Served) -> None:
    async with served.tools.running(await running_turn(store), "Asia/Kolkata"):
        answer = await served.client().schedule(action="create", text="call mum", at=CHRISTMAS)

    assert answer.text == "Reminder set: #1 Thu 24 Dec 18:00 (Asia/Kolkata): call mum"


# ---- what does not fit -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"action": "create", "text": 7}, "No reminder was set: The arguments do not fit. text: "),
        ({"action": "create", "at": {}}, "No reminder was set: The arguments do not fit. at: "),
        ({"action": "create", "in": 5}, "No reminder was set: The arguments do not fit. in: "),
        ({"action": "drop"}, "The arguments do not fit. action: "),
        ({}, "The arguments do not fit. action: Field required"),
        ({"action": "cancel", "id": "two"}, "The arguments do not fit. id: "),
        ({"action": "cancel", "id": 10**30}, "The arguments do not fit. id: "),
        ({"action": "list", "x\n" + "y" * 500: 1}, "The arguments do not fit. x y"),
        ({"action": "list", "x\ud800": 1}, "The arguments do not fit. arguments: "),
    ],
)
async def test_arguments_that_do_not_fit_are_named_by_their_field(
    fields: dict[str, object], text: str, store: Database, served: Served
) -> None:
    async with served.tools.running(await running_turn(store), BERLIN):
        answer = await served.client().post("/tools/schedule", json.dumps(fields).encode())

    assert (answer.status, answer.body["ok"]) == (200, False)
    assert answer.text.startswith(text)
    assert len(answer.text) < 250
    assert "\n" not in answer.text


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b'"create"',
        b"null",
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"text": "' + b"x" * MAX_BODY + b'"}',
    ],
)
async def test_a_body_that_is_no_object_is_refused(
    body: bytes, store: Database, served: Served
) -> None:
    async with served.tools.running(await running_turn(store), BERLIN):
        answer = await served.client().post("/tools/schedule", body)

    assert (answer.status, answer.text) == (
        400,
        "The arguments must be one JSON object of at most 256 KiB.",
    )


async def test_a_text_of_32_kib_fits(store: Database, served: Served) -> None:
    async with served.tools.running(await running_turn(store), BERLIN):
        answer = await served.client().schedule(action="create", text="x" * 32 * 1024, at=CHRISTMAS)

    assert answer.body["ok"]


# ---- a store that takes nothing --------------------------------------------------------------


class FullStore(Database):
    """A store whose disk is full while `is_full`."""

    is_full = False

    async def write(self, transition: Callable[..., T], *args: Any, **kwargs: Any) -> T:
        if self.is_full:
            raise StoreBusyError("disk full")
        return await super().write(transition, *args, **kwargs)


@pytest.fixture
async def full_store(layout: Layout) -> AsyncIterator[FullStore]:
    store = FullStore(layout.database)
    yield store
    await store.close()


@pytest.mark.parametrize(
    ("fields", "answered", "told"),
    [
        (
            {"action": "create", "text": "call mum", "at": CHRISTMAS},
            f"No reminder was set: {NOT_SAVED}",
            "Done, I'll remind you.\n\nNo reminder was set.",
        ),
        ({"action": "cancel", "id": 1}, NOT_SAVED, "Done, I'll remind you."),
    ],
)
async def test_r30_what_could_not_be_saved_is_not_confirmed(
    fields: dict[str, object],
    answered: str,
    told: str,
    full_store: FullStore,
    clock: ManualClock,
    tmp_path: Path,
) -> None:
    host, answers = LocalHost(), []
    async with running_rig(full_store, clock, tmp_path, host=host) as rig:

        async def call(session: LocalSession, prompt: Prompt) -> Finished:
            full_store.is_full = True
            client = rig.client(session.spec.tool_token)
            answers.append((await client.schedule(**fields)).text)
            full_store.is_full = False
            return said("Done, I'll remind you.")

        host.steps.append(call)
        await rig.receive("hello")
        await rig.until_sent(told)

    assert answers == [answered]
    assert await rows_of(full_store, jobs) == []


async def test_r30_a_second_try_that_was_saved_counts(
    full_store: FullStore, clock: ManualClock, tmp_path: Path
) -> None:
    host = LocalHost()
    async with running_rig(full_store, clock, tmp_path, host=host) as rig:

        async def call(session: LocalSession, prompt: Prompt) -> Finished:
            client = rig.client(session.spec.tool_token)
            for is_full in (True, False):
                full_store.is_full = is_full
                await client.schedule(action="create", text="call mum", at=CHRISTMAS)
            return said("Done.")

        host.steps.append(call)
        await rig.receive("hello")
        await rig.until_sent(f"Done.\n\n{LINE}")


async def test_a_sessions_token_ends_with_the_session(
    store: Database, clock: ManualClock, tmp_path: Path
) -> None:
    host = LocalHost()
    async with running_rig(store, clock, tmp_path, host=host) as rig:
        await rig.receive("hello")
        await rig.until_sent("echo: hello")
        client = rig.client(host.sessions[0].spec.tool_token)
        assert (await client.get("/tools")).status == 200
        await rig.pool.evict(CHAT)
        assert (await client.get("/tools")).status == 401
