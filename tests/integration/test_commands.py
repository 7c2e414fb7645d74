"""Commands: their effect and their answer in one commit, at once, also while a turn runs."""

from pathlib import Path

import pytest

from gateway.domain.delivery import DeliveryKind, DeliveryState, NotSent, NotSentReason
from gateway.domain.job import JobState
from gateway.domain.message import ChatKey
from gateway.domain.tool import ToolResult
from gateway.engine import texts
from gateway.engine.commands import COMMANDS
from gateway.errors import StoreBusyError
from gateway.store.database import Database
from gateway.store.schema import deliveries, jobs, messages, turns
from tests.factories import (
    CHAT,
    OTHER_CHAT,
    active_job,
    fire,
    fired_job,
    later,
    make_message,
    rows_of,
    running_turn,
    states_of,
    stored_delivery,
    tool_call,
)
from tests.fakes.clock import ManualClock
from tests.fakes.local_host import LocalHost, hang
from tests.fakes.rig import Rig, running_rig
from tests.fakes.sessions import eventually


@pytest.fixture
def host() -> LocalHost:
    return LocalHost()


async def ask(rig: Rig, text: str, *, chat: ChatKey = CHAT) -> str:
    """The answer to a command, once it was sent."""
    before = len(rig.channel.texts(chat.address))
    await rig.receive(text, chat=chat)
    await eventually(lambda: len(rig.channel.texts(chat.address)) > before)
    return rig.channel.texts(chat.address)[before]


async def test_start_greets_with_the_help(
    store: Database, clock: ManualClock, tmp_path: Path
) -> None:
    async with running_rig(store, clock, tmp_path) as rig:
        assert await ask(rig, "/start") == f"Hello! {await ask(rig, '/help')}"


async def test_the_help_names_every_command_that_is_there(
    store: Database, clock: ManualClock, tmp_path: Path
) -> None:
    async with running_rig(store, clock, tmp_path) as rig:
        text = await ask(rig, "/help")

    missing = [name for name in COMMANDS if f"\n/{name} " not in text]
    assert missing == ["start"]
    assert len(text.splitlines()) < 25


async def test_an_unknown_command_says_so_and_starts_no_turn(
    store: Database, clock: ManualClock, tmp_path: Path, host: LocalHost
) -> None:
    async with running_rig(store, clock, tmp_path, host=host) as rig:
        answer = await ask(rig, "/" + "x" * 100)

    assert answer == f"I do not know /{'x' * 31}…. /help lists what I know."
    assert await rows_of(store, turns) == []


async def test_an_unknown_command_forges_no_line(
    store: Database, clock: ManualClock, tmp_path: Path
) -> None:
    async with running_rig(store, clock, tmp_path) as rig:
        assert await ask(rig, "/hilfe\nfoo") == "I do not know /hilfe. /help lists what I know."


async def test_a_command_is_a_message_with_its_answer_beside_it(
    store: Database, clock: ManualClock, tmp_path: Path
) -> None:
    async with running_rig(store, clock, tmp_path) as rig:
        await ask(rig, "/help")

    (message,) = await rows_of(store, messages)
    (delivery,) = await rows_of(store, deliveries)
    assert (message.reason, message.turn_id) == ("command", None)
    assert (delivery.kind, delivery.state) == (DeliveryKind.COMMAND, DeliveryState.SENT)


async def test_a_repeated_update_does_nothing(
    store: Database, clock: ManualClock, tmp_path: Path
) -> None:
    await active_job(store)
    command = make_message("/cancel 1")
    async with running_rig(store, clock, tmp_path) as rig:
        await rig.receive(command)
        await rig.receive(command)
        await rig.until(deliveries, ["sent"])


async def test_a_command_that_cannot_be_stored_has_no_effect(
    store: Database, clock: ManualClock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await active_job(store)
    async with running_rig(store, clock, tmp_path) as rig:

        def refuse(*args: object, **kwargs: object) -> None:
            raise StoreBusyError("disk full")

        with monkeypatch.context() as patched:
            patched.setattr("gateway.engine.answers.store_text", refuse)
            with pytest.raises(StoreBusyError):
                await rig.receive(make_message("/cancel 1", external_id="u1"))
        assert await states_of(store, jobs) == [JobState.ACTIVE]
        assert await rows_of(store, messages) == []

        await rig.receive(make_message("/cancel 1", external_id="u1"))
        await rig.until(jobs, ["cancelled"])


# ---- stop and new ----------------------------------------------------------------------------


async def test_stop_with_nothing_going_on_says_so(
    store: Database, clock: ManualClock, tmp_path: Path
) -> None:
    async with running_rig(store, clock, tmp_path) as rig:
        assert await ask(rig, "/stop") == "Nothing was going on."


async def test_stop_takes_waiting_messages_and_unsent_replies_and_no_reminder(
    store: Database, clock: ManualClock, tmp_path: Path, host: LocalHost
) -> None:
    host.steps.append(hang)
    async with running_rig(store, clock, tmp_path, host=host) as rig:
        await rig.receive("one")
        await eventually(lambda: len(host.prompts) == 1)
        await rig.receive("two")
        busy = NotSent(reason=NotSentReason.REFUSED_FOR_NOW)
        rig.channel.answer_next(busy, busy)
        await stored_delivery(store, "a reply")
        clock.set(later(60))
        await fired_job(store, "a reminder")
        await eventually(lambda: len(rig.channel.tried) == 2)

        answer = await ask(rig, "/stop")
        assert answer == "Stopped. What was waiting will not be answered."
        rig.advance(60)
        await eventually(lambda: "a reminder" in rig.channel.texts())

    assert "a reply" not in rig.channel.texts()
    assert await states_of(store, turns, turns.c.job_id.is_(None)) == ["cancelled", "cancelled"]
    assert len(host.prompts) == 1


async def test_stop_names_each_thing_that_tools_did_once(
    store: Database, clock: ManualClock, tmp_path: Path
) -> None:
    claim = await running_turn(store)
    done = ToolResult(ok=True, text="Reminder set", line="#7 Tue 1 Dec 09:00 (Europe/Berlin): a")
    await tool_call(store, claim, done, key="k1")
    await tool_call(store, claim, done, key="k2")
    await tool_call(store, claim, ToolResult(ok=True, text="You have no reminders."), key="k3")

    async with running_rig(store, clock, tmp_path) as rig:
        assert await ask(rig, "/stop") == f"Stopped. Done before that, and kept:\n{done.line}"


async def test_stop_concerns_its_own_chat_only(
    store: Database, clock: ManualClock, tmp_path: Path, host: LocalHost
) -> None:
    host.steps.append(hang)
    async with running_rig(store, clock, tmp_path, host=host) as rig:
        await rig.receive("work", chat=OTHER_CHAT)
        await eventually(lambda: len(host.prompts) == 1)
        assert await ask(rig, "/stop") == "Nothing was going on."
        assert await states_of(store, turns) == ["running"]


async def test_new_keeps_the_reminders(store: Database, clock: ManualClock, tmp_path: Path) -> None:
    await active_job(store)
    async with running_rig(store, clock, tmp_path) as rig:
        assert await ask(rig, "/new") == "A new conversation begins. Your reminders are kept."

    assert await states_of(store, jobs) == [JobState.ACTIVE]


async def test_new_says_what_it_stopped(
    store: Database, clock: ManualClock, tmp_path: Path, host: LocalHost
) -> None:
    host.steps.append(hang)
    async with running_rig(store, clock, tmp_path, host=host) as rig:
        await rig.receive("work")
        await eventually(lambda: len(host.prompts) == 1)
        assert await ask(rig, "/new") == (
            "Stopped.\nA new conversation begins. Your reminders are kept."
        )


# ---- reminders -------------------------------------------------------------------------------


async def test_reminders_are_listed_by_their_time_with_their_state(
    store: Database, clock: ManualClock, tmp_path: Path
) -> None:
    await active_job(store, "later", at=later(7200))
    await active_job(store, "sooner", at=later(3600))
    await active_job(store, "somebody else's", chat=OTHER_CHAT)
    async with running_rig(store, clock, tmp_path) as rig:
        assert await ask(rig, "/reminders") == (
            "#2 Mon 2 Mar 11:00 (Europe/Berlin): sooner\n#1 Mon 2 Mar 12:00 (Europe/Berlin): later"
        )


async def test_a_reminder_that_is_on_its_way_is_listed_so(
    store: Database, clock: ManualClock, tmp_path: Path
) -> None:
    await active_job(store, at=later(60))
    await fire(store, later(60))
    async with running_rig(store, clock, tmp_path) as rig:
        rig.channel.shut("42")
        await eventually(lambda: len(rig.channel.tried) == 1)
        await rig.receive("/reminders")
        rig.channel.open("42")
        await rig.until_sent(
            "call mum", "#1 Mon 2 Mar 10:01 (Europe/Berlin): call mum (on its way)"
        )


@pytest.mark.parametrize(
    ("state", "mark"), [(JobState.FAILED, "may not have reached you"), (JobState.PAUSED, "paused")]
)
async def test_a_reminder_that_will_not_fire_is_listed_with_its_state(
    state: JobState, mark: str, store: Database, clock: ManualClock, tmp_path: Path
) -> None:
    await active_job(store)
    await store.write(lambda tx: tx.connection.execute(jobs.update().values(state=state)))
    async with running_rig(store, clock, tmp_path) as rig:
        assert await ask(rig, "/reminders") == (
            f"#1 Mon 2 Mar 10:01 (Europe/Berlin): call mum ({mark})"
        )


async def test_r29_cancel_takes_exactly_that_reminder(
    store: Database, clock: ManualClock, tmp_path: Path
) -> None:
    for text in ("a", "b", "c"):
        await active_job(store, text, at=later(3600))
    async with running_rig(store, clock, tmp_path) as rig:
        answer = await ask(rig, "/cancel 2")

    assert answer == "Cancelled: #2 Mon 2 Mar 11:00 (Europe/Berlin): b"
    assert await states_of(store, jobs) == ["active", "cancelled", "active"]


@pytest.mark.parametrize("command", ["/cancel #1, 3", "/cancel 1 3", "/cancel\n1\n3"])
async def test_cancel_takes_several(
    command: str, store: Database, clock: ManualClock, tmp_path: Path
) -> None:
    for text in ("a", "b", "c"):
        await active_job(store, text)
    async with running_rig(store, clock, tmp_path) as rig:
        assert len((await ask(rig, command)).splitlines()) == 2

    assert await states_of(store, jobs) == ["cancelled", "active", "cancelled"]


async def test_another_chats_reminder_is_not_found(
    store: Database, clock: ManualClock, tmp_path: Path
) -> None:
    await active_job(store, chat=OTHER_CHAT)
    async with running_rig(store, clock, tmp_path) as rig:
        answer = await ask(rig, "/cancel 1")

    assert answer == "There is no open reminder #1. /reminders lists them."
    assert await states_of(store, jobs) == ["active"]


async def test_cancel_warns_when_the_text_is_on_the_wire(
    store: Database, clock: ManualClock, tmp_path: Path
) -> None:
    await active_job(store, at=later(60))
    await fire(store, later(60))
    async with running_rig(store, clock, tmp_path) as rig:
        rig.channel.shut("42")
        await eventually(lambda: len(rig.channel.tried) == 1)
        await rig.receive("/cancel 1")
        rig.channel.open("42")
        await rig.until_sent(
            "call mum",
            "Cancelled: #1 Mon 2 Mar 10:01 (Europe/Berlin): call mum\n"
            "Its text was on its way already, so it may still arrive.",
        )


# ---- status and deliveries -------------------------------------------------------------------


async def test_status_tells_how_things_are_here(
    store: Database, clock: ManualClock, tmp_path: Path, host: LocalHost
) -> None:
    host.steps.append(hang)
    await active_job(store)
    await active_job(store, chat=OTHER_CHAT)
    async with running_rig(store, clock, tmp_path, host=host) as rig:
        await rig.receive("work")
        await eventually(lambda: len(host.prompts) == 1)
        await rig.receive("more")
        assert (await ask(rig, "/status")).splitlines()[:4] == [
            "I am running. Model host: offline.",
            "Turns: 1 running, 1 waiting.",
            "Your reminders: 1 active.",
            "Time here: Mon 2 Mar 10:00 (Europe/Berlin).",
        ]


async def test_deliveries_tell_what_went_out_and_what_did_not(
    store: Database, clock: ManualClock, tmp_path: Path
) -> None:
    await stored_delivery(store, "for somebody else", chat=OTHER_CHAT)
    async with running_rig(store, clock, tmp_path) as rig:
        assert await ask(rig, "/deliveries") == "Nothing was sent here yet."
        lines = (await ask(rig, "/deliveries")).splitlines()

    assert lines == ["Mon 2 Mar 10:00 command: sent: Nothing was sent here yet."]


async def test_deliveries_say_why_in_plain_words(
    store: Database, clock: ManualClock, tmp_path: Path
) -> None:
    async with running_rig(store, clock, tmp_path) as rig:
        rig.channel.answer_next(NotSent(reason=NotSentReason.REFUSED_FOR_NOW))
        await stored_delivery(store, "hello")
        await rig.until(deliveries, ["pending"], deliveries.c.reason == "refused_for_now")
        lines = (await ask(rig, "/deliveries")).splitlines()

    assert lines == ["Mon 2 Mar 10:00 reply: pending (not taken, tried again): hello"]


async def test_deliveries_show_ten_on_a_line_each(
    store: Database, clock: ManualClock, tmp_path: Path
) -> None:
    for number in range(12):
        await stored_delivery(store, f"text {number}\nmore " + "x" * 100)
    async with running_rig(store, clock, tmp_path) as rig:
        await rig.until(deliveries, ["sent"] * 12)
        lines = (await ask(rig, "/deliveries")).splitlines()

    assert len(lines) == 10
    assert all(len(line) < 110 for line in lines)


async def test_a_command_is_answered_while_its_chat_is_busy(
    store: Database, clock: ManualClock, tmp_path: Path, host: LocalHost
) -> None:
    host.steps.append(hang)
    async with running_rig(store, clock, tmp_path, host=host) as rig:
        await rig.receive("work")
        await eventually(lambda: len(host.prompts) == 1)
        assert await ask(rig, "/help") == texts.HELP
        assert await states_of(store, turns) == ["running"]
