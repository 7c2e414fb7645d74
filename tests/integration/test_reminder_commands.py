"""The commands about reminders: what each does to the stored rows, and what it says."""

from dataclasses import replace
from datetime import time
from pathlib import Path

import pytest

from gateway.domain.delivery import NotSent, NotSentReason
from gateway.domain.job import Job, JobAction, Tier
from gateway.domain.message import ChatKey
from gateway.domain.schedule import Daily
from gateway.store.chats import load_chat
from gateway.store.database import Database
from gateway.store.jobs import Created
from gateway.store.schema import deliveries, jobs, turns
from tests.factories import (
    CHAT,
    OTHER_CHAT,
    active_job,
    created_job,
    fire,
    job_state,
    later,
    make_message,
    moment_of,
    new_job,
    row_of,
    rows_of,
    states_of,
    stored_delivery,
)
from tests.fakes.clock import ManualClock
from tests.fakes.rig import Rig, running_rig
from tests.fakes.sessions import eventually

FORM = "Write for example /snooze 2 10m or /snooze 2 tomorrow at 9."
WHICH = "Say which one: /{} 2. /reminders shows their numbers."


async def ask(rig: Rig, text: str, *, chat: ChatKey = CHAT) -> str:
    """The answer to a command, once it was sent."""
    before = len(rig.channel.texts(chat.address))
    await rig.receive(replace(make_message(text, chat=chat), sent_at=rig.clock.now()))
    await eventually(lambda: len(rig.channel.texts(chat.address)) > before)
    return rig.channel.texts(chat.address)[before]


async def daily_job(store: Database, text: str = "take pills", *, tier: Tier | None = None) -> Job:
    """Every day at 10:01 in Berlin."""
    new = replace(new_job(text), schedule=Daily(time=time(10, 1)))
    if tier is not None:
        new = replace(new, action=JobAction.PROMPT, asked_tier=tier)
    created = await created_job(store, new)
    assert isinstance(created, Created)
    return created.job


async def go_off(rig: Rig, seconds: float = 60) -> None:
    """Let what is due by then go off and out."""
    rig.clock.set(later(seconds))
    await fire(rig.store, later(seconds))
    count = len(await rows_of(rig.store, deliveries))
    await rig.until(deliveries, ["sent"] * count)


# ---- snooze ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("argument", "seconds"),
    [
        ("1 10m", 660),
        ("#1 10 min", 660),
        ("1 1h", 3660),
        ("1 1h30", 5460),
        ("1 90 seconds", 150),
        ("1 half an hour", 1860),
        ("1 in 10 minutes", 660),
        ("1 tomorrow at 9", 23 * 3600),
        ("1", 660),
        ("10m", 660),
        ("10 minutes", 660),
        ("tomorrow at 9", 23 * 3600),
        ("", 660),
    ],
)
async def test_snooze_puts_a_reminder_off(
    argument: str, seconds: float, store: Database, clock: ManualClock, tmp_path: Path
) -> None:
    await active_job(store)
    async with running_rig(store, clock, tmp_path) as rig:
        await go_off(rig)
        told = await ask(rig, f"/snooze {argument}")

    (again,) = await rows_of(store, jobs, jobs.c.snoozed_from.is_not(None))
    assert moment_of(again.next_slot_at) == later(seconds)
    assert told.startswith("Snoozed: #2 ")
    assert told.endswith(" (Europe/Berlin): call mum")


async def test_snooze_again_moves_the_same_one(
    store: Database, clock: ManualClock, tmp_path: Path
) -> None:
    await daily_job(store)
    async with running_rig(store, clock, tmp_path) as rig:
        await go_off(rig)
        await ask(rig, "/snooze 1 10m")
        assert await ask(rig, "/snooze 1 1h") == (
            "Snoozed: #2 Mon 2 Mar 11:01 (Europe/Berlin): take pills"
        )

    assert await states_of(store, jobs) == ["active", "active"]


async def test_snooze_takes_several(store: Database, clock: ManualClock, tmp_path: Path) -> None:
    for text in ("tea", "bread"):
        await active_job(store, text)
    async with running_rig(store, clock, tmp_path) as rig:
        await go_off(rig)
        told = await ask(rig, "/snooze 1, #2 10 minutes")

    assert [line.partition("): ")[2] for line in told.splitlines()] == ["tea", "bread"]


async def test_snooze_without_a_number_asks_which_of_several(
    store: Database, clock: ManualClock, tmp_path: Path
) -> None:
    for text in ("tea", "bread"):
        await active_job(store, text)
    async with running_rig(store, clock, tmp_path) as rig:
        await go_off(rig)
        told = await ask(rig, "/snooze 1h30")

    assert told.splitlines()[2::2] == ["/snooze 1 1h30", "/snooze 2 1h30"]
    assert await rows_of(store, jobs, jobs.c.snoozed_from.is_not(None)) == []


async def test_snooze_without_a_number_means_the_last_one_here(
    store: Database, clock: ManualClock, tmp_path: Path
) -> None:
    await active_job(store, "tea", at=later(60))
    await active_job(store, "bread", at=later(120))
    await active_job(store, "elsewhere", chat=OTHER_CHAT, at=later(180))
    async with running_rig(store, clock, tmp_path) as rig:
        for seconds in (60, 120, 180):
            await go_off(rig, seconds)
        await stored_delivery(store, "a reply")
        await rig.until_sent("tea", "bread", "a reply")
        assert (await ask(rig, "/snooze 10m")).endswith(": bread")


@pytest.mark.parametrize(
    ("argument", "why"),
    [
        ("1 59 seconds", "at least 1 minute"),
        ("1 6 years", "more than 5 years"),
        ("1 every day at 9", ""),
        ("1 soon", ""),
        ("x", ""),
        ("10", "#10"),
        ("2 10m", "#2"),
        ("99999999999999 10m", "#99999999999999"),
    ],
)
async def test_snooze_says_what_it_does_not_take(
    argument: str, why: str, store: Database, clock: ManualClock, tmp_path: Path
) -> None:
    await active_job(store)
    async with running_rig(store, clock, tmp_path) as rig:
        await go_off(rig)
        told = await ask(rig, f"/snooze {argument}")

    assert why in told
    assert FORM in told or why.startswith("#")
    assert len(await rows_of(store, jobs)) == 1


async def test_snooze_of_what_never_went_off_says_so(
    store: Database, clock: ManualClock, tmp_path: Path
) -> None:
    await active_job(store)
    async with running_rig(store, clock, tmp_path) as rig:
        assert await ask(rig, "/snooze 10m") == f"No reminder went off here lately. {FORM}"
        assert "#1" in await ask(rig, "/snooze 1 10m")

    assert len(await rows_of(store, jobs)) == 1


# ---- pause, resume, allow --------------------------------------------------------------------


async def test_a_paused_reminder_goes_on_when_it_is_resumed(
    store: Database, clock: ManualClock, tmp_path: Path
) -> None:
    await daily_job(store)
    line = "#1 Mon 2 Mar 10:01 (Europe/Berlin), daily: take pills"
    async with running_rig(store, clock, tmp_path) as rig:
        assert await ask(rig, "/pause 1") == f"Paused: {line}\n/resume 1 lets it go on."
        assert await states_of(store, jobs) == ["paused"]
        assert await ask(rig, "/reminders") == f"{line} (paused)"
        assert await ask(rig, "/resume #1") == f"Goes on: {line}"

    assert await states_of(store, jobs) == ["active"]


async def test_a_one_shot_whose_time_passed_is_not_resumed_and_the_time_is_told(
    store: Database, clock: ManualClock, tmp_path: Path
) -> None:
    await active_job(store)
    async with running_rig(store, clock, tmp_path) as rig:
        await ask(rig, "/pause 1")
        clock.set(later(3600))
        told = await ask(rig, "/resume 1")

    assert "Mon 2 Mar 11:00 (Europe/Berlin)" in told
    assert await states_of(store, jobs) == ["paused"]


async def test_allow_gives_a_reminder_what_it_asks_for(
    store: Database, clock: ManualClock, tmp_path: Path
) -> None:
    await daily_job(store, "tidy up", tier=Tier.SUGGEST)
    async with running_rig(store, clock, tmp_path) as rig:
        assert "/allow 1" in await ask(rig, "/reminders 1")
        assert await ask(rig, "/allow 1") == (
            "Allowed to read, and write into its own workspace: "
            "#1 Mon 2 Mar 10:01 (Europe/Berlin), daily: tidy up"
        )
        assert "/allow 1" not in await ask(rig, "/reminders 1")

    assert (await row_of(store, jobs, 1)).tier == Tier.SUGGEST


@pytest.mark.parametrize("command", ["pause", "resume", "allow", "cancel", "snooze", "reminders"])
async def test_what_belongs_to_another_chat_is_not_found(
    command: str, store: Database, clock: ManualClock, tmp_path: Path
) -> None:
    await active_job(store, "secret words", chat=OTHER_CHAT)
    before = await row_of(store, jobs, 1)
    async with running_rig(store, clock, tmp_path) as rig:
        told = await ask(rig, f"/{command} 1")

    assert "#1" in told
    assert "secret" not in told
    assert await row_of(store, jobs, 1) == before


@pytest.mark.parametrize("command", ["pause", "resume", "allow", "cancel"])
@pytest.mark.parametrize("argument", ["", "all", "1 x", "-1", "9" * 40])
async def test_a_command_about_a_reminder_asks_for_its_number(
    argument: str, command: str, store: Database, clock: ManualClock, tmp_path: Path
) -> None:
    await active_job(store)
    async with running_rig(store, clock, tmp_path) as rig:
        assert await ask(rig, f"/{command} {argument}") == WHICH.format(command)

    assert await states_of(store, jobs) == ["active"]


@pytest.mark.parametrize("command", ["pause", "resume", "allow"])
async def test_a_refusal_names_the_reminder_and_changes_nothing(
    command: str, store: Database, clock: ManualClock, tmp_path: Path
) -> None:
    job = await active_job(store)
    async with running_rig(store, clock, tmp_path) as rig:
        await ask(rig, "/cancel 1")
        assert "#1" in await ask(rig, f"/{command} 1")

    assert (await row_of(store, jobs, job.id)).state == "cancelled"


# ---- one reminder ----------------------------------------------------------------------------


async def test_all_about_a_reminder_is_its_line_its_next_time_and_what_became_of_it(
    store: Database, clock: ManualClock, tmp_path: Path
) -> None:
    await daily_job(store)
    async with running_rig(store, clock, tmp_path) as rig:
        first = (await ask(rig, "/reminders 1")).splitlines()
        await go_off(rig)
        lines = (await ask(rig, "/reminders #1")).splitlines()

    assert first == [
        "#1 Mon 2 Mar 10:01 (Europe/Berlin), daily: take pills",
        "Next: Mon 2 Mar 10:01",
        "It has not gone off yet.",
    ]
    assert lines[:3] == [
        "#1 Tue 3 Mar 10:01 (Europe/Berlin), daily: take pills",
        "Next: Tue 3 Mar 10:01",
        "Lately, newest first:",
    ]
    assert len(lines) == 4
    assert "Mon 2 Mar 10:01" in lines[3]
    assert "sent" in lines[3]


async def test_the_last_ten_slots_of_a_reminder_are_told(
    store: Database, clock: ManualClock, tmp_path: Path
) -> None:
    await daily_job(store)
    async with running_rig(store, clock, tmp_path) as rig:
        for day in range(12):
            await go_off(rig, 60 + day * 86400)
        lines = (await ask(rig, "/reminders 1")).splitlines()

    assert len(lines) == 13
    assert "Fri 13 Mar" in lines[3]
    assert "Wed 4 Mar" in lines[-1]


async def test_a_long_text_is_told_whole(
    store: Database, clock: ManualClock, tmp_path: Path
) -> None:
    text = "word " * 100 + "\nand a line"
    await active_job(store, text, at=later(3600))
    async with running_rig(store, clock, tmp_path) as rig:
        assert f"Its text:\n{text}" in await ask(rig, "/reminders 1")


async def test_a_reminder_that_is_over_says_that_nothing_is_to_come(
    store: Database, clock: ManualClock, tmp_path: Path
) -> None:
    await active_job(store)
    async with running_rig(store, clock, tmp_path) as rig:
        await go_off(rig)
        assert "Nothing more of it is to come." in await ask(rig, "/reminders 1")


async def test_r20_a_one_shot_is_listed_until_it_arrived(
    store: Database, clock: ManualClock, tmp_path: Path
) -> None:
    job = await active_job(store)
    line = "#1 Mon 2 Mar 10:01 (Europe/Berlin): call mum"
    async with running_rig(store, clock, tmp_path) as rig:
        clock.set(later(60))
        rig.channel.answer_next(NotSent(reason=NotSentReason.CHANNEL_DOWN))
        await fire(store, later(60))
        await eventually(lambda: len(rig.channel.tried) == 1)
        await rig.until(deliveries, ["pending"])
        assert await ask(rig, "/reminders") == f"{line} (on its way)"
        rig.advance(600)
        await rig.until_sent(f"{line} (on its way)", "(was due Mon 2 Mar 10:01) call mum")
        assert await ask(rig, "/reminders") == "You have no reminders."

    assert await job_state(store, job.id) == "done"


async def test_several_reminders_are_told_one_after_the_other(
    store: Database, clock: ManualClock, tmp_path: Path
) -> None:
    for text in ("tea", "bread"):
        await active_job(store, text)
    async with running_rig(store, clock, tmp_path) as rig:
        told = await ask(rig, "/reminders 1 2")
        assert await ask(rig, "/reminders all") == WHICH.format("reminders")

    assert [part.splitlines()[0][:2] for part in told.split("\n\n")] == ["#1", "#2"]


# ---- the time zone ---------------------------------------------------------------------------


@pytest.mark.parametrize("argument", ["America/New_York", "new york", "america/new york"])
async def test_the_time_zone_is_changed_and_reminders_keep_theirs(
    argument: str, store: Database, clock: ManualClock, tmp_path: Path
) -> None:
    for text in ("tea", "bread"):
        await active_job(store, text, at=later(3600))
    async with running_rig(store, clock, tmp_path) as rig:
        assert await ask(rig, f"/timezone {argument}") == (
            "Your time zone is America/New_York now: it is Mon 2 Mar 04:00 (America/New_York).\n"
            "2 reminders keep their own time zone, as /reminders shows."
        )
        assert "Time here: Mon 2 Mar 04:00 (America/New_York)." in await ask(rig, "/status")
        assert (await ask(rig, "/reminders")).startswith("#1 Mon 2 Mar 11:00 (Europe/Berlin)")

    known = await store.read(load_chat, CHAT)
    assert known is not None
    assert known.timezone == "America/New_York"


async def test_the_time_zone_is_told_and_how_to_change_it(
    store: Database, clock: ManualClock, tmp_path: Path
) -> None:
    async with running_rig(store, clock, tmp_path) as rig:
        assert await ask(rig, "/timezone") == (
            "It is Mon 2 Mar 10:00 (Europe/Berlin). To change the zone: /timezone America/New_York"
        )
        assert await ask(rig, "/timezone utc") == (
            "Your time zone is UTC now: it is Mon 2 Mar 09:00 (UTC)."
        )
        assert (await ask(rig, "/timezone")).startswith("It is Mon 2 Mar 09:00 (UTC).")
        elsewhere = await ask(rig, "/timezone", chat=OTHER_CHAT)

    assert elsewhere.startswith("It is Mon 2 Mar 10:00 (Europe/Berlin).")


@pytest.mark.parametrize(
    ("argument", "told"),
    [
        ("Atlantis", "I do not know the time zone Atlantis. Write it like Europe/Berlin"),
        ("EST", "I do not know the time zone EST. Write it like Europe/Berlin"),
        ("a\nb", "I do not know the time zone a b. Write it like Europe/Berlin"),
        (
            "louisville",
            "There are several: America/Kentucky/Louisville, America/Louisville. Write the one",
        ),
    ],
)
async def test_a_time_zone_that_is_not_clear_is_not_taken(
    argument: str, told: str, store: Database, clock: ManualClock, tmp_path: Path
) -> None:
    async with running_rig(store, clock, tmp_path) as rig:
        assert (await ask(rig, f"/timezone {argument}")).startswith(told)

    known = await store.read(load_chat, CHAT)
    assert known is not None
    assert known.timezone is None


async def test_a_snooze_reads_times_in_the_zone_of_the_chat(
    store: Database, clock: ManualClock, tmp_path: Path
) -> None:
    await active_job(store)
    async with running_rig(store, clock, tmp_path) as rig:
        await ask(rig, "/timezone America/New_York")
        await go_off(rig)
        assert await ask(rig, "/snooze 1 tomorrow at 9") == (
            "Snoozed: #2 Tue 3 Mar 15:00 (Europe/Berlin): call mum"
        )


async def test_no_command_about_reminders_starts_a_turn(
    store: Database, clock: ManualClock, tmp_path: Path
) -> None:
    async with running_rig(store, clock, tmp_path) as rig:
        for command in ("snooze 1 10m", "pause 1", "resume 1", "allow 1", "timezone berlin"):
            assert await ask(rig, f"/{command}")

    assert await rows_of(store, turns) == []
