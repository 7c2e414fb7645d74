"""The reminder tool: what it takes for a time, what it refuses and why, and what it answers."""

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

import pytest
from pydantic import ValidationError

from extensions.schedule import NAME, make_extension
from extensions.schedule_arguments import ScheduleArguments
from gateway.domain.job import MAX_OPEN_JOBS, MAX_TEXT_BYTES, JobState, Tier
from gateway.domain.tool import NOTHING_SET, SpokenAt, ToolContext, ToolResult
from gateway.domain.turn import Trigger
from gateway.store.database import Database
from gateway.store.schema import jobs
from tests.factories import (
    BERLIN,
    CHAT,
    OTHER_CHAT,
    Door,
    active_job,
    fire,
    fire_rules,
    moment_of,
    next_send,
    rows_of,
    running_turn,
)

NOW = datetime(2026, 12, 1, 8, 0, tzinfo=UTC)  # 09:00 in Berlin, 13:30 in Kolkata
IT_IS_NOW = "It is now Tue 1 Dec 09:00 (Europe/Berlin)."


def said(text: str, *, ago: float = 0) -> SpokenAt:
    return SpokenAt(text=text, sent_at=NOW - timedelta(seconds=ago))


@dataclass(slots=True)
class Bench:
    """The tool on a store, asked by a running turn; each call is a call of its own."""

    store: Database
    context: ToolContext
    door: Door
    calls: int = 0

    async def ask(self, *spoken: SpokenAt, **arguments: object) -> ToolResult:
        self.calls += 1
        context = replace(
            self.context, key=f"call-{self.calls}", spoken=spoken or self.context.spoken
        )
        fields = {name.rstrip("_"): value for name, value in arguments.items()}
        extension = make_extension(self.store, fire_rules(self.door))
        return await extension.tools[0].call(context, ScheduleArguments.model_validate(fields))

    async def create(self, *spoken: SpokenAt, **arguments: object) -> ToolResult:
        return await self.ask(*spoken, action="create", **{"text": "call mum"} | arguments)

    async def slots(self) -> list[datetime | None]:
        return [moment_of(row.next_slot_at) for row in await rows_of(self.store, jobs)]


@pytest.fixture
async def bench(store: Database) -> Bench:
    claim = await running_turn(store, now=NOW)
    context = ToolContext(
        chat=CHAT,
        turn=claim.turn,
        run=claim.run,
        trigger=Trigger.MESSAGE,
        tier=Tier.MUTATE,
        timezone=BERLIN,
        now=NOW,
        key="",
        spoken=(said("please"),),
    )
    return Bench(store, context, Door())


# ---- times -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "slot"),
    [
        ({"when": "tomorrow at 9"}, "2026-12-02T08:00:00+00:00"),
        ({"when": "in 20 minutes"}, "2026-12-01T08:20:00+00:00"),
        ({"when": "17:30"}, "2026-12-01T16:30:00+00:00"),
        ({"in": "20 minutes"}, "2026-12-01T08:20:00+00:00"),
        ({"in": "in 20 minutes"}, "2026-12-01T08:20:00+00:00"),
        ({"in": " 1h "}, "2026-12-01T09:00:00+00:00"),
        ({"at": "2026-12-24T18:00"}, "2026-12-24T17:00:00+00:00"),
        ({"at": "2026-12-24 18:00:30"}, "2026-12-24T17:00:30+00:00"),
        ({"at": "2026-12-24T18:00:00Z"}, "2026-12-24T18:00:00+00:00"),
        ({"at": "2026-12-24T18:00:00-05:00"}, "2026-12-24T23:00:00+00:00"),
        ({"at": "2026-12-24"}, "2026-12-24T08:00:00+00:00"),
    ],
)
async def test_a_time_is_resolved_in_the_chats_zone(
    bench: Bench, arguments: dict[str, object], slot: str
) -> None:
    result = await bench.create(**arguments)

    assert result.ok, result.text
    assert await bench.slots() == [datetime.fromisoformat(slot)]


async def test_the_answer_is_the_stored_line(bench: Bench) -> None:
    result = await bench.create(at="2026-12-24T18:00")

    assert result.line == "#1 Thu 24 Dec 18:00 (Europe/Berlin): call mum"
    assert result.text == f"Reminder set: {result.line}"


async def test_what_was_assumed_is_said(bench: Bench) -> None:
    result = await bench.create(when="tomorrow")

    assert result.text.endswith("call mum (no time given, so 09:00)")


async def test_r07_a_bare_time_is_the_chats_not_the_servers(bench: Bench) -> None:
    bench.context = replace(bench.context, timezone="Asia/Kolkata")

    result = await bench.create(at="2026-12-02T09:00")

    assert await bench.slots() == [datetime(2026, 12, 2, 3, 30, tzinfo=UTC)]
    assert result.line == "#1 Wed 2 Dec 09:00 (Asia/Kolkata): call mum"
    (row,) = await rows_of(bench.store, jobs)
    assert row.timezone == "Asia/Kolkata"


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"when": "tomorrow", "in": "5 minutes"},
        {"in": "5 minutes", "at": "2026-12-24T18:00"},
        {"when": "tomorrow", "in": "5 minutes", "at": "2026-12-24T18:00"},
    ],
)
async def test_exactly_one_time_is_wanted(bench: Bench, arguments: dict[str, object]) -> None:
    result = await bench.create(**arguments)

    assert result.text.startswith(f"{NOTHING_SET}: give exactly one of when ")
    assert result.text.endswith(f". {IT_IS_NOW}")
    assert await bench.slots() == []


@pytest.mark.parametrize(
    "arguments",
    [
        {"when": "5 minutes"},
        {"when": "@daily"},
        {"when": "0 9 * *"},
        {"when": "0 0 9 * * *"},
        {"when": "60 9 * * *"},
        {"when": "*/0 * * * *"},
        {"when": "0 0 31 2 *"},
        {"when": "0 9 * * mon#1"},
        {"when": ""},
        {"when": "x" * 5000},
        {"when": "soon"},
        {"in": ""},
        {"in": "-5 minutes"},
        {"in": "a while"},
        {"in": "tomorrow"},
        {"at": "2026-02-31T09:00"},
        {"at": "2026-12-24T25:00"},
        {"at": "2026-12-24T09:00 Mars/Base"},
        {"at": "1766000000"},
        {"cron": "5 minutes"},
        {"cron": "@daily"},
        {"cron": "0 9 * *"},
        {"cron": "0 0 9 * * *"},
        {"cron": "60 9 * * *"},
        {"cron": "*/0 * * * *"},
        {"cron": "0 0 31 2 *"},
        {"cron": ""},
        {"when": "every 30 seconds"},
        {"when": "every day at 9", "until": "yesterday"},
        {"when": "every day at 9", "until": "2020-01-01"},
        {"when": "tomorrow at 9", "until": "2027-01-01"},
        {"when": "tomorrow at 9", "max_runs": 3},
        {"schedule": {}},
        {"schedule": {"kind": "at", "at": "soon"}},
        {"schedule": {"kind": "every", "seconds": 30}},
        {"schedule": {"kind": "every", "seconds": "60"}},
        {"schedule": {"kind": "daily", "time": "25:00"}},
        {"schedule": {"kind": "daily"}},
        {"schedule": {"kind": "weekly", "days": [], "time": "09:00"}},
        {"schedule": {"kind": "weekly", "days": ["monday"], "time": "09:00"}},
        {"schedule": {"kind": "cron", "expression": "0 9 * * mon", "max_runs": 0}},
        {"schedule": {"kind": "daily", "time": "09:00", "until": 0}},
        {"schedule": {"kind": "fortnightly"}},
    ],
)
async def test_r11_a_time_that_is_not_understood_is_refused_and_not_stored(
    bench: Bench, arguments: dict[str, object]
) -> None:
    result = await bench.create(**arguments)

    assert not result.ok
    assert result.is_create
    assert result.text.startswith(f"{NOTHING_SET}: ")
    assert result.text.endswith(IT_IS_NOW)
    assert ".." not in result.text
    assert "?." not in result.text
    assert await bench.slots() == []


@pytest.mark.parametrize("at", ["2020-01-01T00:00Z", "2026-12-01T07:55:00Z", "2026-12-01T08:55"])
async def test_r12_a_time_that_has_passed_is_refused_with_the_present_one(
    bench: Bench, at: str
) -> None:
    result = await bench.create(at=at)

    assert result.text == f"{NOTHING_SET}: that time has passed already. {IT_IS_NOW}"
    assert await bench.slots() == []


@pytest.mark.parametrize(
    "arguments", [{"at": "2026-12-01T07:59:57Z"}, {"at": "2026-12-01T08:00:00Z"}, {"when": "now"}]
)
async def test_r12_a_moment_that_has_just_passed_fires_at_once(
    bench: Bench, arguments: dict[str, object]
) -> None:
    assert (await bench.create(**arguments)).ok
    assert await fire(bench.store, NOW) == 1


# ---- from when a delay counts ----------------------------------------------------------------


async def test_r13_a_delay_counts_from_when_it_was_said(bench: Bench) -> None:
    await bench.create(
        said("remind me in 5 minutes to turn off the oven", ago=180), in_="5 minutes"
    )

    assert await bench.slots() == [NOW + timedelta(minutes=2)]


async def test_r13_a_delay_counts_from_the_newest_message_that_holds_its_words(
    bench: Bench,
) -> None:
    spoken = (
        said("In  5 Minutes: oven", ago=180),
        said("in 5 minutes: door", ago=120),
        said("thanks", ago=10),
    )

    await bench.create(*spoken, in_="5 minutes")

    assert await bench.slots() == [NOW + timedelta(minutes=3)]


async def test_r13_a_delay_is_not_found_inside_a_longer_one(bench: Bench) -> None:
    spoken = (said("in 5 minutes: oven", ago=180), said("in 15 minutes: door", ago=60))

    await bench.create(*spoken, in_="5 minutes")

    assert await bench.slots() == [NOW + timedelta(minutes=2)]


async def test_r13_words_that_nobody_said_count_from_the_newest_message(bench: Bench) -> None:
    await bench.create(said("one", ago=180), said("two", ago=60), when="in 10 minutes")

    assert await bench.slots() == [NOW + timedelta(minutes=9)]


@pytest.mark.parametrize(
    "arguments",
    [{"in": "30 seconds"}, {"in": "5 minutes"}, {"when": "in 5 minutes"}, {"when": "at 08:30"}],
)
async def test_r13_a_delay_that_ran_out_while_the_turn_waited_fires_at_once(
    bench: Bench, arguments: dict[str, object]
) -> None:
    result = await bench.create(said("in 5 minutes", ago=3600), **arguments)

    assert result.ok, result.text
    assert await fire(bench.store, NOW) == 1


async def test_a_full_time_that_passed_while_the_turn_waited_is_refused(bench: Bench) -> None:
    result = await bench.create(said("at half past", ago=3600), at="2026-12-01T08:30")

    assert result.text == f"{NOTHING_SET}: that time has passed already. {IT_IS_NOW}"


# ---- what is stored --------------------------------------------------------------------------


async def test_the_same_request_again_returns_the_same_reminder(bench: Bench) -> None:
    first = await bench.create(when="tomorrow at 9")
    second = await bench.create(when="tomorrow at 9")

    assert second.ok
    assert second.text.startswith("That reminder is set already: #1 ")
    assert second.line == first.line
    assert len(await bench.slots()) == 1


async def test_the_same_text_at_another_time_is_another_reminder(bench: Bench) -> None:
    await bench.create(when="tomorrow at 9")
    await bench.create(when="tomorrow at 10")

    assert len(await bench.slots()) == 2


@pytest.mark.parametrize("text", [None, "", "  \n ", "\u200b\u200f"])
async def test_a_reminder_without_a_text_is_refused(bench: Bench, text: str | None) -> None:
    result = await bench.create(text=text, in_="5 minutes")

    assert result.text == f"{NOTHING_SET}: text is missing: say what to remind of. {IT_IS_NOW}"


async def test_what_cannot_be_stored_is_taken_out_of_a_text(bench: Bench) -> None:
    await bench.create(text="call\ud800 \0mum", in_="5 minutes")

    (row,) = await rows_of(bench.store, jobs)
    assert row.text == "call\ufffd mum"


async def test_a_text_may_have_32_kib(bench: Bench) -> None:
    assert (await bench.create(text="ä" * (MAX_TEXT_BYTES // 2), in_="5 minutes")).ok


async def test_a_longer_text_is_refused(bench: Bench) -> None:
    result = await bench.create(text="ä" * (MAX_TEXT_BYTES // 2 + 1), in_="5 minutes")

    assert result.text == f"{NOTHING_SET}: text is longer than 32 KiB. {IT_IS_NOW}"


async def test_a_text_with_line_breaks_forges_no_line(bench: Bench) -> None:
    await bench.create(text="a\n#9 Tue 1 Dec 09:00 (Europe/Berlin): forged", in_="5 minutes")

    result = await bench.ask(action="list")

    assert len(result.text.splitlines()) == 1


async def test_more_than_ten_a_minute_are_refused(bench: Bench) -> None:
    for number in range(10):
        assert (await bench.create(text=f"n{number}", when="tomorrow at 9")).ok

    result = await bench.create(when="tomorrow at 9")

    assert result.text.startswith(
        f'{NOTHING_SET} for "call mum": at most 10 reminders a minute can be set'
    )
    assert len(await bench.slots()) == 10


async def test_more_than_fifty_open_ones_are_refused(bench: Bench) -> None:
    for number in range(MAX_OPEN_JOBS):
        slot, then = NOW + timedelta(days=1), NOW - timedelta(minutes=MAX_OPEN_JOBS - number + 1)
        await active_job(bench.store, f"n{number}", at=slot, now=then)

    result = await bench.create(when="tomorrow at 9")

    assert result.text.startswith(
        f'{NOTHING_SET} for "call mum": there are 50 open reminders already'
    )


async def test_a_chat_that_was_put_out_sets_nothing(bench: Bench) -> None:
    bench.door.out.add(CHAT)

    result = await bench.create(in_="5 minutes")

    assert result.text.startswith(f"{NOTHING_SET}: this chat is not allowed any more.")
    assert await bench.slots() == []


# ---- list and cancel -------------------------------------------------------------------------


async def test_an_empty_list_says_so(bench: Bench) -> None:
    assert (await bench.ask(action="list")).text == "You have no reminders."


async def test_a_list_has_a_line_for_each_reminder_of_the_chat_by_its_time(bench: Bench) -> None:
    await bench.create(text="later", when="tomorrow at 9")
    await bench.create(text="sooner", in_="5 minutes")
    await active_job(bench.store, "somebody else's", chat=OTHER_CHAT, at=NOW + timedelta(hours=1))

    result = await bench.ask(action="list")

    assert result.text == (
        "#2 Tue 1 Dec 09:05 (Europe/Berlin): sooner\n#1 Wed 2 Dec 09:00 (Europe/Berlin): later"
    )


async def test_a_list_asked_for_again_is_not_the_old_one(bench: Bench) -> None:
    tool = make_extension(bench.store, fire_rules(bench.door)).tools[0]
    asked = ScheduleArguments(action="list")
    await tool.call(bench.context, asked)
    await bench.create(in_="5 minutes")

    again = await tool.call(bench.context, asked)

    assert again.text == "#1 Tue 1 Dec 09:05 (Europe/Berlin): call mum"


async def test_a_chat_that_is_not_allowed_any_more_cancels_nothing(bench: Bench) -> None:
    await bench.create(in_="5 minutes")
    bench.door.out.add(CHAT)

    result = await bench.ask(action="cancel", id=1)

    assert not result.ok
    assert result.text == f"Nothing was changed: this chat is not allowed any more. {IT_IS_NOW}"
    (row,) = await rows_of(bench.store, jobs)
    assert row.state == JobState.ACTIVE


async def test_a_cancelled_reminder_is_named_and_gone(bench: Bench) -> None:
    await bench.create(in_="5 minutes")

    result = await bench.ask(action="cancel", id=1)

    assert result.text == "Cancelled: #1 Tue 1 Dec 09:05 (Europe/Berlin): call mum"
    assert (await bench.ask(action="list")).text == "You have no reminders."
    (row,) = await rows_of(bench.store, jobs)
    assert row.state == JobState.CANCELLED


async def test_a_reminder_whose_text_is_on_the_wire_is_cancelled_with_a_warning(
    bench: Bench,
) -> None:
    await bench.create(in_="5 minutes")
    due = NOW + timedelta(minutes=5)
    await fire(bench.store, due)
    await next_send(bench.store, now=due)

    result = await bench.ask(action="cancel", id=1)

    assert result.text.splitlines()[1:] == [
        "Its text was on its way already, so it may still arrive."
    ]


async def test_r29_another_chats_reminder_cannot_be_cancelled(bench: Bench) -> None:
    await active_job(bench.store, chat=OTHER_CHAT, at=NOW + timedelta(hours=1))

    result = await bench.ask(action="cancel", id=1)

    assert not result.ok
    assert result.text == "There is no open reminder #1."
    (row,) = await rows_of(bench.store, jobs)
    assert row.state == JobState.ACTIVE


async def test_a_cancel_without_a_number_says_what_is_missing(bench: Bench) -> None:
    result = await bench.ask(action="cancel")

    assert (result.ok, result.is_create) == (False, False)
    assert result.text == f"Nothing was changed: id is missing: the number of it. {IT_IS_NOW}"


# ---- who may do what -------------------------------------------------------------------------


@pytest.mark.parametrize("trigger", [Trigger.JOB, Trigger.HEARTBEAT])
@pytest.mark.parametrize("tier", list(Tier))
async def test_r23_a_turn_that_no_person_started_reads_and_changes_nothing(
    bench: Bench, trigger: Trigger, tier: Tier
) -> None:
    await active_job(bench.store, at=NOW + timedelta(hours=1))
    before = await rows_of(bench.store, jobs)
    bench.context = replace(bench.context, trigger=trigger, tier=tier)

    for action in ("list", "get", "history"):
        assert (await bench.ask(action=action, id=1)).ok
    refused = await bench.create(in_="1 minute")
    assert refused.text.startswith(f"{NOTHING_SET}: a turn that runs by itself changes no ")
    for action in ("update", "pause", "resume", "cancel", "snooze", "run_now"):
        asked = {"text": "other"} if action == "update" else {}
        assert not (await bench.ask(action=action, id=1, **asked)).ok
    assert await rows_of(bench.store, jobs) == before


@pytest.mark.parametrize(
    "arguments",
    [
        {"action": "create", "chat": "telegram:43"},
        {"action": "create", "chat_key": "telegram:43"},
        {"action": "drop"},
        {},
        {"action": "cancel", "id": "two"},
        {"action": "cancel", "id": 0},
        {"action": "cancel", "id": 10**30},
        {"action": "create", "text": 7},
    ],
)
def test_arguments_of_another_shape_do_not_fit(arguments: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        ScheduleArguments.model_validate(arguments)


def test_no_argument_names_a_chat() -> None:
    assert set(ScheduleArguments.model_json_schema()["properties"]) == {
        *("action", "id", "text", "when", "in", "at", "cron", "schedule", "until", "max_runs"),
        *("for", "missed", "do", "tier"),
    }


@pytest.mark.parametrize(
    ("action", "is_create"), [("create", True), ("snooze", True), ("cancel", False), (7, False)]
)
def test_unfit_arguments_are_a_failed_create_only_if_they_asked_for_one(
    store: Database, action: object, is_create: bool
) -> None:
    (tool,) = make_extension(store, fire_rules()).tools

    result = tool.refuse({"action": action}, "at: not a text.")

    assert result.is_create is is_create
    assert result.text == (f"{NOTHING_SET}: at: not a text." if is_create else "at: not a text.")
    assert tool.name == NAME
