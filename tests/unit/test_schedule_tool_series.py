"""The reminder tool: what repeats, what is changed, put off and run, and what became of it."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from extensions.schedule import make_extension
from extensions.schedule_arguments import ScheduleArguments
from gateway.domain.chunking import TELEGRAM, RichText, split
from gateway.domain.delivery import DeliveryKind
from gateway.domain.job import JobState, Tier
from gateway.domain.schedule import local_time
from gateway.domain.tool import NOTHING_SET
from gateway.domain.turn import TurnState
from gateway.store.job_changes import allow_job
from gateway.store.schema import deliveries, jobs, turns
from tests.factories import BERLIN, CHAT, fire, fire_rules, rows_of
from tests.unit.test_schedule_tool import IT_IS_NOW, NOW, Bench, bench, said

__all__ = ["bench"]


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)


# ---- what repeats ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ({"when": "every weekday at 8"}, "#1 Wed 2 Dec 08:00 (Europe/Berlin), weekdays: call mum"),
        ({"cron": "30 18 * * 1-5"}, "#1 Tue 1 Dec 18:30 (Europe/Berlin), Mon-Fri: call mum"),
        (
            {"schedule": {"kind": "every", "seconds": 7200}},
            "#1 Tue 1 Dec 11:00 (Europe/Berlin), every 2 hours: call mum",
        ),
        (
            {"schedule": {"kind": "daily", "time": "08:00", "every": 2}},
            "#1 Thu 3 Dec 08:00 (Europe/Berlin), every 2 days: call mum",
        ),
        (
            {"schedule": {"kind": "weekly", "days": ["mon", "fri"], "time": "07:30"}},
            "#1 Fri 4 Dec 07:30 (Europe/Berlin), Mon, Fri: call mum",
        ),
        (
            {"when": "every day at 9:30", "max_runs": 3},
            "#1 Tue 1 Dec 09:30 (Europe/Berlin), daily, 3 times: call mum",
        ),
        (
            {"when": "every day at 9:30", "until": "2026-12-24"},
            "#1 Tue 1 Dec 09:30 (Europe/Berlin), daily until Thu 24 Dec 23:59:59: call mum",
        ),
        (
            {"cron": "0 9 1 * *", "until": "2027-03-01T12:00"},
            "#1 Fri 1 Jan 2027 09:00 (Europe/Berlin), monthly on the 1st until Mon 1 Mar 2027",
        ),
    ],
)
async def test_a_series_is_confirmed_with_its_first_time_and_rhythm(
    bench: Bench, arguments: dict[str, object], line: str
) -> None:
    result = await bench.create(**arguments)

    assert result.ok, result.text
    assert result.line is not None
    assert result.line.startswith(line)
    (slot,) = await bench.slots()
    assert slot is not None
    assert local_time(slot, ZoneInfo(BERLIN), now=NOW) in result.line


async def test_a_series_does_not_begin_while_its_request_waited(bench: Bench) -> None:
    spoken = said("every 2 minutes", ago=300)

    await bench.create(spoken, when="every 2 minutes")

    # Counted from when it was said, 5 minutes ago: the third slot is the next one.
    assert await bench.slots() == [NOW + timedelta(minutes=1)]


@pytest.mark.parametrize(
    ("expression", "days"),
    [
        ("0 9 * * 0", ", Sun: "),
        ("0 9 * * 7", ", Sun: "),
        ("0 9 * * 1-5", ", Mon-Fri: "),
        ("0 9 * * 1,3", ", Mon, Wed: "),
        ("0 9 * * 5-7", ", Fri-Sun: "),
        ("0 9 * * */2", ", Tue, Thu, Sat, Sun: "),
        ("0 9 * * mon#1", "monthly on the first Mon: "),
        ("0 9 * * 5L", "monthly on the last Fri: "),
    ],
)
async def test_r10_the_confirmation_names_the_days_of_a_cron_expression(
    bench: Bench, expression: str, days: str
) -> None:
    result = await bench.create(cron=expression)

    assert days in result.text


@pytest.mark.parametrize(
    ("expression", "named"),
    [
        ("5 minutes", "5 fields"),
        ("0 9 * *", "5 fields"),
        ("0 0 9 * * *", "5 fields"),
        ("60 9 * * *", "minute"),
        ("*/0 * * * *", "minute"),
        ("0 0 31 2 *", "day-of-month"),
        ("0 9 * * fri-mon", "day-of-week"),
    ],
)
async def test_r11_a_bad_expression_is_refused_by_its_field(
    bench: Bench, expression: str, named: str
) -> None:
    result = await bench.create(cron=expression)

    assert named in result.text
    assert result.text.startswith(NOTHING_SET)
    assert result.text.endswith(IT_IS_NOW)
    assert await bench.slots() == []


async def test_the_same_series_asked_for_later_is_the_same_reminder(bench: Bench) -> None:
    first = await bench.create(schedule={"kind": "every", "seconds": 7200})
    second = await bench.create(schedule={"kind": "every", "seconds": 7200, "anchor": 0})

    assert second.text.startswith("That reminder is set already: #1 ")
    assert second.line == first.line


# ---- what a prompt may do --------------------------------------------------------------------


async def test_a_prompt_that_asks_for_more_waits_for_the_persons_word(bench: Bench) -> None:
    await bench.create(text="tidy the notes", in_="5 minutes", do="prompt", tier="mutate")

    (row,) = await rows_of(bench.store, jobs)
    assert (row.tier, row.asked_tier) == (Tier.READ_ONLY, Tier.MUTATE)
    (offer,) = await rows_of(bench.store, deliveries, deliveries.c.kind == DeliveryKind.NOTICE)
    assert offer.offers_job_id == row.id
    assert "tidy the notes" in offer.text
    assert "/allow 1" in offer.text


async def test_a_message_has_no_tier(bench: Bench) -> None:
    result = await bench.create(in_="5 minutes", tier="mutate")

    assert result.text.startswith(f"{NOTHING_SET}: tier is for do=prompt")


async def test_r29_where_a_reminder_came_from_is_kept_with_it(bench: Bench) -> None:
    await bench.create(said("please remind me\nof mum", ago=60), in_="5 minutes")

    result = await bench.ask(action="get", id=1)

    assert result.text.splitlines() == [
        "#1 Tue 1 Dec 09:04 (Europe/Berlin): call mum",
        'Asked for Tue 1 Dec 08:59: "please remind me of mum"',
    ]


# ---- changes ---------------------------------------------------------------------------------


async def test_a_reminder_that_is_moved_keeps_its_number(bench: Bench) -> None:
    await bench.create(when="tomorrow at 9")

    result = await bench.ask(action="update", id=1, when="tomorrow at 17:30")

    assert result.text == "Changed: #1 Wed 2 Dec 17:30 (Europe/Berlin): call mum"
    assert await bench.slots() == [at("2026-12-02T17:30+01:00")]


async def test_a_new_time_is_meant_where_the_chat_lives_now(bench: Bench) -> None:
    await bench.create(when="every day at 8")
    bench.context = replace(bench.context, timezone="Asia/Kolkata")

    moved = await bench.ask(action="update", id=1, when="every day at 18:00")
    ended = await bench.ask(action="update", id=1, max_runs=2)

    assert moved.line == "#1 Tue 1 Dec 18:00 (Asia/Kolkata), daily: call mum"
    assert await bench.slots() == [at("2026-12-01T18:00+05:30")]
    assert ended.line == "#1 Tue 1 Dec 18:00 (Asia/Kolkata), daily, 2 times: call mum"


@pytest.mark.parametrize("when", ["tomorrow at 9", "in 20 minutes", "friday"])
async def test_a_series_does_not_silently_become_one_moment(bench: Bench, when: str) -> None:
    await bench.create(when="every day at 8")
    before = await rows_of(bench.store, jobs)

    result = await bench.ask(action="update", id=1, when=when)

    assert result.text.startswith("Nothing was changed: #1 repeats")
    assert await rows_of(bench.store, jobs) == before


@pytest.mark.parametrize(
    ("before", "when", "line"),
    [
        ("every day at 8", "9:30", "#1 Tue 1 Dec 09:30 (Europe/Berlin), daily: call mum"),
        ("every monday at 8", "at 6pm", "#1 Mon 7 Dec 18:00 (Europe/Berlin), weekly: call mum"),
        ("11 december at 15:00", "16:00", "#1 Fri 11 Dec 16:00 (Europe/Berlin): call mum"),
        ("tomorrow at 9", "noon", "#1 Wed 2 Dec 12:00 (Europe/Berlin): call mum"),
    ],
)
async def test_another_clock_time_keeps_the_day(
    bench: Bench, before: str, when: str, line: str
) -> None:
    await bench.create(when=before)

    result = await bench.ask(action="update", id=1, when=when)

    assert result.line == line


async def test_another_clock_time_comes_with_the_end_that_was_asked_for(bench: Bench) -> None:
    await bench.create(when="every day at 8")

    moved = await bench.ask(action="update", id=1, when="9:30", max_runs=3)

    assert moved.line == "#1 Tue 1 Dec 09:30 (Europe/Berlin), daily, 3 times: call mum"


async def test_a_clock_time_and_a_delay_are_not_taken_together(bench: Bench) -> None:
    await bench.create(when="every day at 8")

    refused = await bench.ask(action="update", id=1, when="9:30", in_="5 minutes")

    assert refused.text.startswith("Nothing was changed: give exactly one of when ")


async def test_what_is_paused_is_not_confirmed_as_if_it_would_come(bench: Bench) -> None:
    await bench.create(when="every day at 8")
    await bench.ask(action="pause", id=1)

    again = await bench.create(when="every day at 8")
    moved = await bench.ask(action="update", id=1, when="every day at 9")

    assert "it is paused; /resume 1" in again.text
    assert "it is paused; /resume 1" in moved.text


@pytest.mark.parametrize("text", ["\u200d", "\u2800"])
async def test_a_text_with_nothing_to_show_is_refused(bench: Bench, text: str) -> None:
    def shown(text: str, *, is_markdown: bool) -> tuple[RichText, ...]:
        return split(RichText.literal(text), TELEGRAM)

    rules = replace(fire_rules(), cut=lambda chat: shown)
    (tool,) = make_extension(bench.store, rules).tools
    asked = ScheduleArguments.model_validate({"action": "create", "text": text, "in": "5 minutes"})

    result = await tool.call(bench.context, asked)

    assert result.text.startswith(f"{NOTHING_SET}: text is missing")
    assert await bench.slots() == []


async def test_an_end_alone_leaves_a_reminder_in_its_zone(bench: Bench) -> None:
    await bench.create(when="every day at 8")
    bench.context = replace(bench.context, timezone="Asia/Kolkata")

    ended = await bench.ask(action="update", id=1, max_runs=2)

    assert ended.line == "#1 Wed 2 Dec 08:00 (Europe/Berlin), daily, 2 times: call mum"


async def test_another_text_has_to_be_allowed_again(bench: Bench) -> None:
    await bench.create(text="tidy the notes", in_="5 minutes", do="prompt", tier="mutate")
    await bench.store.write(allow_job, CHAT, 1, now=NOW)

    await bench.ask(action="update", id=1, text="delete the notes")

    (row,) = await rows_of(bench.store, jobs)
    assert (row.tier, row.asked_tier) == (Tier.READ_ONLY, Tier.MUTATE)
    offers = await rows_of(bench.store, deliveries, deliveries.c.offers_job_id == 1)
    assert ["delete the notes" in offer.text for offer in offers] == [False, True]


async def test_a_moment_can_become_a_series_and_get_another_text(bench: Bench) -> None:
    await bench.create(when="tomorrow at 9")

    result = await bench.ask(action="update", id=1, when="every day at 8", text="call dad")

    assert result.line == "#1 Wed 2 Dec 08:00 (Europe/Berlin), daily: call dad"


async def test_a_series_gets_an_end_and_keeps_its_times(bench: Bench) -> None:
    await bench.create(when="every day at 8")

    result = await bench.ask(action="update", id=1, max_runs=2)

    assert result.line == "#1 Wed 2 Dec 08:00 (Europe/Berlin), daily, 2 times: call mum"


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({}, "say what to change"),
        ({"when": "yesterday at 9"}, "passed"),
        ({"text": "  "}, "text is missing"),
        ({"tier": "mutate"}, "do and tier stay"),
        ({"when": "tomorrow", "in": "5 minutes"}, "give exactly one"),
        ({"max_runs": 3}, "this is one moment"),
    ],
)
async def test_a_change_that_makes_no_sense_changes_nothing(
    bench: Bench, arguments: dict[str, object], reason: str
) -> None:
    await bench.create(when="tomorrow at 9")
    before = await rows_of(bench.store, jobs)

    result = await bench.ask(action="update", id=1, **arguments)

    assert not result.ok
    assert reason in result.text
    assert result.text.endswith(IT_IS_NOW)
    assert await rows_of(bench.store, jobs) == before


@pytest.mark.parametrize("action", ["update", "pause", "resume", "snooze", "run_now", "get"])
async def test_a_number_that_is_none_of_the_chats_is_not_found(bench: Bench, action: str) -> None:
    asked = {"text": "x"} if action == "update" else {}

    result = await bench.ask(action=action, id=7, **asked)

    assert not result.ok
    assert "#7" in result.text


async def test_a_paused_series_goes_on_with_its_next_time(bench: Bench) -> None:
    await bench.create(when="every day at 8")

    paused = await bench.ask(action="pause", id=1)
    assert paused.text == "Paused: #1 Wed 2 Dec 08:00 (Europe/Berlin), daily: call mum"
    assert await fire(bench.store, at("2026-12-03T12:00+01:00")) == 0
    resumed = await bench.ask(action="resume", id=1)

    assert resumed.text == "Goes on: #1 Wed 2 Dec 08:00 (Europe/Berlin), daily: call mum"
    (row,) = await rows_of(bench.store, jobs)
    assert row.state == JobState.ACTIVE


async def test_what_went_off_is_put_off_once(bench: Bench) -> None:
    await bench.create(when="now", text="oven")
    await fire(bench.store, NOW)

    first = await bench.ask(action="snooze", id=1, **{"for": "10 minutes"})
    again = await bench.ask(action="snooze", id=1, when="tomorrow at 9")

    assert first.text == "Snoozed: #2 Tue 1 Dec 09:10 (Europe/Berlin): oven"
    assert again.text == "Snoozed: #2 Wed 2 Dec 09:00 (Europe/Berlin): oven"
    assert len(await rows_of(bench.store, jobs)) == 2


@pytest.mark.parametrize(
    "arguments", [{}, {"for": "10 minutes", "when": "tomorrow"}, {"for": "a while"}]
)
async def test_a_snooze_needs_one_moment(bench: Bench, arguments: dict[str, object]) -> None:
    await bench.create(when="now", text="oven")
    await fire(bench.store, NOW)

    result = await bench.ask(action="snooze", id=1, **arguments)

    assert result.text.startswith(NOTHING_SET)
    assert len(await rows_of(bench.store, jobs)) == 1


async def test_what_has_not_gone_off_yet_cannot_be_put_off(bench: Bench) -> None:
    await bench.create(when="tomorrow at 9")

    result = await bench.ask(action="snooze", id=1, **{"for": "10 minutes"})

    assert not result.ok
    assert len(await rows_of(bench.store, jobs)) == 1


async def test_a_reminder_runs_now_and_keeps_its_time(bench: Bench) -> None:
    await bench.create(when="every day at 8")

    result = await bench.ask(action="run_now", id=1)

    assert result.text.startswith("It goes out now: #1 Wed 2 Dec 08:00 (Europe/Berlin), daily")
    assert await bench.slots() == [at("2026-12-02T08:00+01:00")]
    fired = [row for row in await rows_of(bench.store, turns) if row.job_id == 1]
    assert [row.state for row in fired] == [TurnState.ANSWERED]
    (sent,) = await rows_of(bench.store, deliveries, deliveries.c.kind == DeliveryKind.REMINDER)
    assert (sent.text, sent.chat_key) == ("call mum", str(CHAT))


async def test_r18_the_history_shows_run_and_delivery_side_by_side(bench: Bench) -> None:
    await bench.create(when="every day at 8")
    empty = await bench.ask(action="history", id=1)
    assert empty.text.splitlines()[1:] == ["It has not gone off yet."]
    await fire(bench.store, at("2026-12-02T08:00+01:00"))
    await fire(bench.store, at("2026-12-03T08:00+01:00"))

    result = await bench.ask(action="history", id=1)

    lines = result.text.splitlines()
    assert lines[0].startswith("#1 Fri 4 Dec 08:00 (Europe/Berlin), daily: call mum")
    assert len(lines) == 3
    assert lines[1].startswith("Thu 3 Dec 08:00")
    assert lines[2].startswith("Wed 2 Dec 08:00")
    assert all("pending" in line for line in lines[1:])


async def test_a_change_is_told_by_the_stored_line(bench: Bench) -> None:
    await bench.create(when="tomorrow at 9")

    moved = await bench.ask(action="update", id=1, when="tomorrow at 10")

    assert moved.line == "#1 Wed 2 Dec 10:00 (Europe/Berlin): call mum"
    assert NOW + timedelta(days=1, hours=1) in await bench.slots()
