"""Short replies to reminders and buttons under them: done at once, on exactly that reminder."""

from dataclasses import replace
from datetime import UTC, datetime, time, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from sqlalchemy import Row

from gateway.domain.button import Button, ButtonAction, reminder_buttons
from gateway.domain.delivery import DeliveryId, DeliveryKind
from gateway.domain.job import Job, NewJob, Tier
from gateway.domain.message import ChatKey, MessageKind, NewMessage
from gateway.domain.richtext import Entity, EntityKind, RichText
from gateway.domain.schedule import Daily, from_millis
from gateway.engine import texts
from gateway.store.database import Database, Transaction
from gateway.store.deliveries import NewDelivery, store_delivery
from gateway.store.job_changes import JobChange, Refusal, update_job
from gateway.store.jobs import Created
from gateway.store.schema import chunks, deliveries, jobs, messages, turns
from tests.factories import (
    BERLIN,
    CHAT,
    NOW,
    OTHER_CHAT,
    active_job,
    created_job,
    cut,
    fire,
    job_state,
    later,
    make_message,
    moment_of,
    new_job,
    row_of,
    rows_of,
    states_of,
)
from tests.fakes.clock import ManualClock
from tests.fakes.local_host import LocalHost
from tests.fakes.recording_channel import Shown
from tests.fakes.rig import Rig, running_rig
from tests.fakes.sessions import eventually

SNOOZED_LINE = "Snoozed: #2 Mon 2 Mar 10:11 (Europe/Berlin): call mum"


@pytest.fixture
def host() -> LocalHost:
    return LocalHost()


def daily(text: str = "take pills", *, at: datetime | None = None) -> NewJob:
    """Every day, for the first time in a minute unless `at` says otherwise."""
    first = at or later(60)
    clock = first.astimezone(ZoneInfo(BERLIN)).time()
    return replace(new_job(text, at=first), schedule=Daily(time=clock))


async def series(store: Database, text: str = "take pills") -> Job:
    created = await created_job(store, daily(text))
    assert isinstance(created, Created)
    return created.job


async def sent_reminder(rig: Rig, *, chat: ChatKey = CHAT) -> str:
    """Let what is due in a minute go off and out; returns the platform's id of the message."""
    rig.clock.set(later(60))
    await fire(rig.store, later(60))
    await rig.until(deliveries, ["sent"], deliveries.c.kind == "reminder")
    (row,) = await rows_of(rig.store, chunks)
    assert row.external_id is not None
    return str(row.external_id)


def reply_to(external_id: str, text: str, rig: Rig, *, chat: ChatKey = CHAT) -> NewMessage:
    message = replace(make_message(text, chat=chat), sent_at=rig.clock.now())
    return replace(message, quoted="what it said", quoted_external_id=external_id)


def press(
    action: ButtonAction, external_id: str, rig: Rig, *, subject: int = 1, chat: ChatKey = CHAT
) -> NewMessage:
    data = Button(action=action, subject=subject).data
    return replace(reply_to(external_id, data, rig, chat=chat), kind=MessageKind.BUTTON)


async def answer(rig: Rig, message: NewMessage) -> Shown:
    """What is shown for a message, once it is."""
    before = len(rig.channel.sent)
    await rig.receive(message)
    await eventually(lambda: len(rig.channel.sent) > before)
    return rig.channel.sent[before]


async def put_off(store: Database) -> list[Row[Any]]:
    return await rows_of(store, jobs, jobs.c.snoozed_from.is_not(None))


# ---- replies to a reminder -------------------------------------------------------------------


async def test_r29_stop_this_one_cancels_exactly_the_reminder_that_it_answers(
    store: Database, clock: ManualClock, tmp_path: Path, host: LocalHost
) -> None:
    pills = await series(store)
    for text in ("water the plants", "call mum"):
        await active_job(store, text, at=later(7200))
    async with running_rig(store, clock, tmp_path, host=host) as rig:
        sent = await sent_reminder(rig)
        told = await answer(rig, reply_to(sent, "stop this one", rig))

    assert told.text == "Cancelled: #1 Tue 3 Mar 10:01 (Europe/Berlin), daily: take pills"
    assert await states_of(store, jobs) == ["cancelled", "active", "active"]
    assert (await row_of(store, jobs, pills.id)).next_slot_at is None
    assert host.prompts == []
    (message,) = await rows_of(store, messages)
    assert (message.reason, message.turn_id) == ("command", None)


@pytest.mark.parametrize("text", ["snooze that 10 min", "snooze 10m", "10m", "in 10 minutes"])
async def test_r33_a_reminder_that_is_snoozed_comes_again_here(
    text: str, store: Database, clock: ManualClock, tmp_path: Path, host: LocalHost
) -> None:
    job = await active_job(store)
    async with running_rig(store, clock, tmp_path, host=host) as rig:
        sent = await sent_reminder(rig)
        told = await answer(rig, reply_to(sent, text, rig))
        assert told.text == SNOOZED_LINE
        assert told.edits is None
        assert await job_state(store, job.id) == "done"
        (again,) = await put_off(store)
        assert (again.chat_key, again.text, again.timezone) == (str(CHAT), "call mum", BERLIN)
        assert moment_of(again.next_slot_at) == later(660)
        await fire(store, later(660))
        rig.clock.set(later(660))
        await rig.until_sent("call mum", SNOOZED_LINE, "call mum")

    assert host.prompts == []


async def test_a_snooze_counts_from_when_it_was_written(
    store: Database, clock: ManualClock, tmp_path: Path
) -> None:
    await active_job(store)
    async with running_rig(store, clock, tmp_path) as rig:
        sent = await sent_reminder(rig)
        early = reply_to(sent, "10m", rig)
        rig.clock.set(later(90))
        await answer(rig, early)
        assert [moment_of(row.next_slot_at) for row in await put_off(store)] == [later(660)]
        rig.clock.set(later(3600))
        await answer(rig, replace(early, external_id="again"))

    # What was to come meanwhile comes soon.
    assert [moment_of(row.next_slot_at) for row in await put_off(store)] == [later(3660)]


async def test_done_changes_nothing_but_the_message(
    store: Database, clock: ManualClock, tmp_path: Path
) -> None:
    job = await series(store)
    async with running_rig(store, clock, tmp_path) as rig:
        sent = await sent_reminder(rig)
        before = await row_of(store, jobs, job.id)
        told = await answer(rig, reply_to(sent, "done", rig))

    line = "#1 Tue 3 Mar 10:01 (Europe/Berlin), daily: take pills"
    assert told.text == f"Done. It comes again: {line}"
    assert await row_of(store, jobs, job.id) == before


async def test_what_will_not_come_again_says_so(
    store: Database, clock: ManualClock, tmp_path: Path
) -> None:
    await active_job(store)
    async with running_rig(store, clock, tmp_path) as rig:
        sent = await sent_reminder(rig)
        await answer(rig, reply_to(sent, "snooze", rig))
        assert (await answer(rig, reply_to(sent, "erledigt", rig))).text == "Done."
        told = await answer(rig, reply_to(sent, "stop", rig))

    assert told.text == (
        "Nothing more will come of it: #1 Mon 2 Mar 10:01 (Europe/Berlin): call mum"
    )
    assert await states_of(store, jobs) == ["done", "cancelled"]


async def test_stop_takes_back_what_was_put_off_as_well(
    store: Database, clock: ManualClock, tmp_path: Path
) -> None:
    await active_job(store)
    async with running_rig(store, clock, tmp_path) as rig:
        sent = await sent_reminder(rig)
        await answer(rig, reply_to(sent, "snooze", rig))
        told = await answer(rig, reply_to(sent, "stop", rig))

    assert told.text == "Cancelled: #2 Mon 2 Mar 10:11 (Europe/Berlin): call mum"
    assert await states_of(store, jobs) == ["done", "cancelled"]


@pytest.mark.parametrize(
    ("text", "commands"),
    [
        ("stop this", ["/cancel 1", "/cancel 2"]),
        ("snooze for 1 hour", ["/snooze 1 1 hour", "/snooze 2 1 hour"]),
        ("snooze", ["/snooze 1 10m", "/snooze 2 10m"]),
    ],
)
async def test_r29_a_reply_to_joined_reminders_asks_which(
    text: str, commands: list[str], store: Database, clock: ManualClock, tmp_path: Path
) -> None:
    await active_job(store, "tea", at=later(60))
    await series(store, "pills")
    async with running_rig(store, clock, tmp_path) as rig:
        sent = await sent_reminder(rig)
        told = await answer(rig, reply_to(sent, text, rig))
        states = await states_of(store, jobs)

    assert told.text.splitlines() == [
        "That message held several reminders. Which one?",
        "#1 Mon 2 Mar 10:01 (Europe/Berlin): tea",
        commands[0],
        "#2 Tue 3 Mar 10:01 (Europe/Berlin), daily: pills",
        commands[1],
    ]
    assert states == ["done", "active"]


async def test_a_reply_to_joined_reminders_of_which_one_is_left_means_that_one(
    store: Database, clock: ManualClock, tmp_path: Path
) -> None:
    for text in ("tea", "pills"):
        await series(store, text)
    async with running_rig(store, clock, tmp_path) as rig:
        sent = await sent_reminder(rig)
        await answer(rig, replace(make_message("/cancel 1"), sent_at=clock.now()))
        told = await answer(rig, reply_to(sent, "stop", rig))

    assert told.text == "Cancelled: #2 Tue 3 Mar 10:01 (Europe/Berlin), daily: pills"


@pytest.mark.parametrize("text", ["what does that mean?", "stop talking", "call her at 9"])
async def test_any_other_reply_to_a_reminder_goes_to_the_host_with_the_quote(
    text: str, store: Database, clock: ManualClock, tmp_path: Path, host: LocalHost
) -> None:
    await active_job(store)
    async with running_rig(store, clock, tmp_path, host=host) as rig:
        sent = await sent_reminder(rig)
        await rig.receive(reply_to(sent, text, rig))
        await eventually(lambda: len(host.prompts) == 1)

    assert text in host.texts[0]
    assert "what it said" in host.texts[0]


@pytest.mark.parametrize("text", ["stop", "done", "10m", "tomorrow at 9"])
async def test_a_reply_to_what_was_no_reminder_is_an_ordinary_message(
    text: str, store: Database, clock: ManualClock, tmp_path: Path, host: LocalHost
) -> None:
    await active_job(store)
    async with running_rig(store, clock, tmp_path, host=host) as rig:
        await rig.receive("hello")
        await rig.until_sent("echo: hello")
        for number, external_id in enumerate(("x1", "unknown"), start=2):
            await rig.receive(reply_to(external_id, text, rig))
            await rig.until(turns, ["answered"] * number)

    assert len(host.prompts) == 3
    assert await states_of(store, jobs) == ["active"]


async def test_a_reply_in_another_chat_does_not_reach_the_reminder(
    store: Database, clock: ManualClock, tmp_path: Path, host: LocalHost
) -> None:
    await series(store)
    async with running_rig(store, clock, tmp_path, host=host) as rig:
        sent = await sent_reminder(rig)
        await rig.receive(reply_to(sent, "stop", rig, chat=OTHER_CHAT))
        await eventually(lambda: len(host.prompts) == 1)

    assert await states_of(store, jobs) == ["active"]


async def test_a_repeated_reply_does_nothing(
    store: Database, clock: ManualClock, tmp_path: Path
) -> None:
    await active_job(store)
    async with running_rig(store, clock, tmp_path) as rig:
        sent = await sent_reminder(rig)
        reply = reply_to(sent, "snooze", rig)
        await answer(rig, reply)
        rig.clock.set(later(120))
        assert await rig.receive(reply)

    assert [moment_of(row.next_slot_at) for row in await put_off(store)] == [later(660)]
    assert len(await rows_of(store, deliveries, deliveries.c.kind == "command")) == 1


# ---- buttons ---------------------------------------------------------------------------------


async def test_done_puts_a_mark_under_the_message_and_takes_its_buttons_away(
    store: Database, clock: ManualClock, tmp_path: Path
) -> None:
    job = await series(store)
    async with running_rig(store, clock, tmp_path) as rig:
        sent = await sent_reminder(rig)
        assert rig.channel.sent[0].buttons == reminder_buttons(1)
        before = await row_of(store, jobs, job.id)
        shown = await answer(rig, press(ButtonAction.DONE, sent, rig))

    assert (shown.text, shown.edits, shown.buttons) == ("take pills\n\n✓ Done", sent, ())
    assert await row_of(store, jobs, job.id) == before
    (message,) = await rows_of(store, messages)
    assert (message.kind, message.reason) == ("button", "command")


@pytest.mark.parametrize(
    ("action", "at"),
    [
        (ButtonAction.SNOOZE_10_MINUTES, later(660)),
        (ButtonAction.SNOOZE_1_HOUR, later(3660)),
        (ButtonAction.TOMORROW, later(86460)),
    ],
)
async def test_a_press_puts_a_reminder_off_and_says_until_when(
    action: ButtonAction, at: datetime, store: Database, clock: ManualClock, tmp_path: Path
) -> None:
    await active_job(store)
    async with running_rig(store, clock, tmp_path) as rig:
        sent = await sent_reminder(rig)
        shown = await answer(rig, press(action, sent, rig))

    (again,) = await put_off(store)
    assert moment_of(again.next_slot_at) == at
    local = at.astimezone(ZoneInfo(BERLIN))
    day = f"{local:%a} {local.day} Mar {local:%H:%M}"
    line = f"Snoozed: #2 {day} (Europe/Berlin): call mum"
    assert (shown.text, shown.edits, shown.buttons) == (f"call mum\n\n{line}", sent, ())


async def test_two_presses_make_one_snooze(
    store: Database, clock: ManualClock, tmp_path: Path
) -> None:
    await active_job(store)
    async with running_rig(store, clock, tmp_path) as rig:
        sent = await sent_reminder(rig)
        for _ in range(2):
            shown = await answer(rig, press(ButtonAction.SNOOZE_10_MINUTES, sent, rig))
        other_device = await answer(rig, press(ButtonAction.SNOOZE_1_HOUR, sent, rig))

    assert shown.text == f"call mum\n\n{SNOOZED_LINE}"
    assert other_device.text == (
        "call mum\n\nSnoozed: #2 Mon 2 Mar 11:01 (Europe/Berlin): call mum"
    )
    assert [moment_of(row.next_slot_at) for row in await put_off(store)] == [later(3660)]


async def test_a_repeated_press_does_nothing(
    store: Database, clock: ManualClock, tmp_path: Path
) -> None:
    await active_job(store)
    async with running_rig(store, clock, tmp_path) as rig:
        sent = await sent_reminder(rig)
        pressed = press(ButtonAction.SNOOZE_10_MINUTES, sent, rig)
        await answer(rig, pressed)
        rig.clock.set(later(120))
        await rig.receive(pressed)

    assert [moment_of(row.next_slot_at) for row in await put_off(store)] == [later(660)]
    assert len(await rows_of(store, deliveries, deliveries.c.kind == "command")) == 1


async def test_a_snooze_works_after_done_and_done_after_a_snooze(
    store: Database, clock: ManualClock, tmp_path: Path
) -> None:
    await active_job(store)
    async with running_rig(store, clock, tmp_path) as rig:
        sent = await sent_reminder(rig)
        shown = [
            (await answer(rig, press(action, sent, rig))).text
            for action in (ButtonAction.DONE, ButtonAction.SNOOZE_10_MINUTES, ButtonAction.DONE)
        ]

    done = "call mum\n\n✓ Done"
    assert shown == [done, f"call mum\n\n{SNOOZED_LINE}", done]
    # What is done does not come again.
    assert [row.state for row in await put_off(store)] == ["cancelled"]


async def test_a_reply_still_works_after_a_press(
    store: Database, clock: ManualClock, tmp_path: Path
) -> None:
    await series(store)
    async with running_rig(store, clock, tmp_path) as rig:
        sent = await sent_reminder(rig)
        await answer(rig, press(ButtonAction.DONE, sent, rig))
        told = await answer(rig, reply_to(sent, "stop this", rig))

    assert told.text.startswith("Cancelled: #1 ")
    assert await states_of(store, jobs) == ["cancelled"]


async def test_tomorrow_is_the_same_local_time_where_the_clocks_change(
    store: Database, clock: ManualClock, tmp_path: Path
) -> None:
    slot = datetime(2026, 3, 28, 8, 30, tzinfo=ZoneInfo(BERLIN)).astimezone(UTC)
    await active_job(store, at=slot)
    async with running_rig(store, clock, tmp_path) as rig:
        clock.set(slot)
        await fire(store, slot)
        await rig.until_sent("call mum")
        await answer(rig, press(ButtonAction.TOMORROW, "x1", rig))

    (again,) = await put_off(store)
    assert from_millis(again.next_slot_at).astimezone(ZoneInfo(BERLIN)).time() == time(8, 30)
    assert from_millis(again.next_slot_at) - slot == timedelta(hours=23)


@pytest.mark.parametrize(
    "data", ["", "done", "done:", "done:x", "done:99", f"done:{2**70}", "wipe:1", "done:1:2"]
)
async def test_a_button_that_is_not_known_says_so(
    data: str, store: Database, clock: ManualClock, tmp_path: Path
) -> None:
    await active_job(store)
    async with running_rig(store, clock, tmp_path) as rig:
        sent = await sent_reminder(rig)
        shown = await answer(rig, replace(press(ButtonAction.DONE, sent, rig), text=data))

    assert (shown.text, shown.edits) == (texts.STALE_BUTTON, None)


async def test_a_button_of_another_chat_says_that_it_does_nothing(
    store: Database, clock: ManualClock, tmp_path: Path
) -> None:
    await active_job(store)
    async with running_rig(store, clock, tmp_path) as rig:
        sent = await sent_reminder(rig)
        foreign = press(ButtonAction.SNOOZE_1_HOUR, sent, rig, chat=OTHER_CHAT)
        shown = await answer(rig, foreign)

    assert (shown.address, shown.text, shown.edits) == ("43", texts.STALE_BUTTON, None)
    assert await put_off(store) == []


async def test_a_button_is_not_for_joined_reminders(
    store: Database, clock: ManualClock, tmp_path: Path
) -> None:
    for text in ("tea", "bread"):
        await active_job(store, text, at=later(60))
    async with running_rig(store, clock, tmp_path) as rig:
        sent = await sent_reminder(rig)
        assert rig.channel.sent[0].buttons == ()
        shown = await answer(rig, press(ButtonAction.SNOOZE_1_HOUR, sent, rig))

    assert (shown.text, shown.edits) == (texts.STALE_BUTTON, None)
    assert await put_off(store) == []


async def test_an_answer_that_finds_no_room_under_the_message_is_one_of_its_own(
    store: Database, clock: ManualClock, tmp_path: Path
) -> None:
    await active_job(store, "tea|bread")
    async with running_rig(store, clock, tmp_path) as rig:
        clock.set(later(60))
        await fire(store, later(60))
        await rig.until_sent("tea", "bread")
        assert [len(shown.buttons) for shown in rig.channel.sent] == [0, 4]
        shown = await answer(rig, press(ButtonAction.SNOOZE_10_MINUTES, "x2", rig))

    assert shown.text == "Snoozed: #2 Mon 2 Mar 10:11 (Europe/Berlin): tea"
    assert shown.edits is None


async def test_an_answer_to_a_message_that_is_not_known_any_more_is_one_of_its_own(
    store: Database, clock: ManualClock, tmp_path: Path
) -> None:
    await active_job(store)
    async with running_rig(store, clock, tmp_path) as rig:
        await sent_reminder(rig)
        shown = await answer(rig, press(ButtonAction.SNOOZE_10_MINUTES, "elsewhere", rig))

    assert (shown.text, shown.edits) == (SNOOZED_LINE, None)


async def test_a_message_keeps_its_formatting_under_the_mark(
    store: Database, clock: ManualClock, tmp_path: Path
) -> None:
    await active_job(store)
    async with running_rig(store, clock, tmp_path) as rig:
        sent = await sent_reminder(rig)
        bold = Entity(kind=EntityKind.BOLD, offset=0, length=4)
        body = RichText(text="call mum", entities=(bold,)).to_json()
        await store.write(lambda tx: tx.connection.execute(chunks.update().values(body=body)))
        shown = await answer(rig, press(ButtonAction.DONE, sent, rig))

    assert (shown.text, shown.has_format) == ("call mum\n\n✓ Done", True)


# ---- the button that allows ------------------------------------------------------------------


OFFER = "It asks for more: take pills"


async def offered(store: Database) -> Job:
    """A job that asks for more than it may, offered with a button."""
    created = await created_job(store, replace(daily(at=later(3600)), asked_tier=Tier.MUTATE))
    assert isinstance(created, Created)
    job = created.job

    def offer(tx: Transaction) -> DeliveryId:
        new = NewDelivery(
            chat=CHAT,
            kind=DeliveryKind.NOTICE,
            text=OFFER,
            chunks=cut(OFFER, is_markdown=False),
            offers_job=job.id,
        )
        return store_delivery(tx, new, now=NOW)

    await store.write(offer)
    return job


async def test_a_press_allows_a_job_what_it_asks_for(
    store: Database, clock: ManualClock, tmp_path: Path
) -> None:
    async with running_rig(store, clock, tmp_path) as rig:
        job = await offered(store)
        await rig.until_sent(OFFER)
        (button,) = rig.channel.sent[0].buttons
        allow = press(button.action, "x1", rig, subject=button.subject)
        shown = await answer(rig, allow)
        again = await answer(rig, replace(allow, external_id="another device"))

    assert shown.edits == again.edits == "x1"
    assert shown.text.startswith(f"{OFFER}\n\nAllowed to read, write and change things: #1 ")
    assert again.text == shown.text
    assert (await row_of(store, jobs, job.id)).tier == Tier.MUTATE


async def test_a_button_under_a_former_text_allows_nothing(
    store: Database, clock: ManualClock, tmp_path: Path
) -> None:
    async with running_rig(store, clock, tmp_path) as rig:
        job = await offered(store)
        await rig.until_sent(OFFER)
        await store.write(update_job, CHAT, job.id, JobChange(text="wipe the disk"), now=NOW)
        shown = await answer(rig, press(ButtonAction.ALLOW, "x1", rig, subject=job.id))

    assert shown.text == texts.STALE_BUTTON
    assert (await row_of(store, jobs, job.id)).tier == Tier.READ_ONLY


async def test_a_job_of_another_chat_is_not_allowed_anything(
    store: Database, clock: ManualClock, tmp_path: Path
) -> None:
    async with running_rig(store, clock, tmp_path) as rig:
        job = await offered(store)
        await rig.until_sent(OFFER)
        foreign = press(ButtonAction.ALLOW, "x1", rig, subject=job.id, chat=OTHER_CHAT)
        shown = await answer(rig, foreign)

    assert (shown.address, shown.text, shown.edits) == ("43", texts.STALE_BUTTON, None)
    assert (await row_of(store, jobs, job.id)).tier == Tier.READ_ONLY


async def test_a_job_that_was_cancelled_is_not_allowed_anything(
    store: Database, clock: ManualClock, tmp_path: Path
) -> None:
    async with running_rig(store, clock, tmp_path) as rig:
        job = await offered(store)
        await rig.until_sent(OFFER)
        await answer(rig, make_message(f"/cancel {job.id}"))
        shown = await answer(rig, press(ButtonAction.ALLOW, "x1", rig, subject=job.id))

    assert "Allowed" not in shown.text
    assert (await row_of(store, jobs, job.id)).tier == Tier.READ_ONLY


async def test_what_was_put_off_and_came_again_is_put_off_there(
    store: Database, clock: ManualClock, tmp_path: Path
) -> None:
    await series(store)
    async with running_rig(store, clock, tmp_path) as rig:
        sent = await sent_reminder(rig)
        await answer(rig, press(ButtonAction.SNOOZE_10_MINUTES, sent, rig))
        clock.set(later(660))
        await fire(store, later(660))
        await rig.until(deliveries, ["sent"] * 3)
        (newest,) = [shown for shown in rig.channel.sent[2:] if shown.buttons]
        old = await answer(rig, press(ButtonAction.SNOOZE_1_HOUR, sent, rig))
        again = await answer(
            rig, press(ButtonAction.SNOOZE_1_HOUR, "x3", rig, subject=newest.buttons[0].subject)
        )

    assert old.text == f"take pills\n\n{Refusal.CAME_AGAIN.told(1)}"
    assert again.text == ("take pills\n\nSnoozed: #3 Mon 2 Mar 11:11 (Europe/Berlin): take pills")
    assert await states_of(store, jobs) == ["active", "done", "active"]
