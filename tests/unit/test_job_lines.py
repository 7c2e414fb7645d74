"""The one line in which people read a reminder, and how a list says where it stands."""

from dataclasses import replace
from datetime import UTC, datetime, time, timedelta

import pytest

from gateway.domain.job import Job, JobAction, JobState, Tier
from gateway.domain.schedule import Daily, Every, Schedule, Weekly, parse_cron
from gateway.domain.turn import TurnId
from tests.factories import NOW, later, make_job

DAILY = Daily(time=time(10, 1))


def job(state: JobState = JobState.ACTIVE, *, schedule: Schedule | None = None) -> Job:
    made = make_job(state)
    return made if schedule is None else replace(made, schedule=schedule)


def test_a_line_names_number_time_zone_and_text() -> None:
    assert job().line(now=NOW) == "#7 Mon 2 Mar 10:01 (Europe/Berlin): call mum"
    assert replace(job(), next_slot_at=None).line(now=NOW) == job().line(now=NOW)


@pytest.mark.parametrize(
    ("schedule", "rhythm"),
    [
        (DAILY, "daily"),
        (Weekly(days=frozenset({0}), time=time(10, 1)), "weekly"),
        (Every(period=timedelta(hours=2), anchor=NOW), "every 2 hours"),
        (parse_cron("1 10 * * 1-5"), "Mon-Fri"),
        (replace(DAILY, max_runs=3), "daily, 3 times"),
    ],
)
def test_a_line_of_a_series_names_its_rhythm(schedule: Schedule, rhythm: str) -> None:
    assert job(schedule=schedule).line(now=NOW) == (
        f"#7 Mon 2 Mar 10:01 (Europe/Berlin), {rhythm}: call mum"
    )


def test_a_series_that_is_over_shows_its_last_time() -> None:
    over = replace(job(schedule=DAILY), next_slot_at=None, last_slot_at=later(86460))
    assert over.line(now=NOW).startswith("#7 Tue 3 Mar 10:01 ")
    never = replace(over, last_slot_at=None)
    assert never.line(now=NOW).startswith("#7 Mon 2 Mar 10:00 ")


def test_a_line_break_in_a_text_forges_no_line() -> None:
    forged = replace(job(), text="tea\n#8 Mon 2 Mar 10:02 (UTC): forged")
    assert "\n" not in forged.listed(now=NOW)


@pytest.mark.parametrize(
    ("state", "mark"),
    [
        (JobState.ACTIVE, ""),
        (JobState.PAUSED, " (paused)"),
        (JobState.FAILED, " (may not have reached you)"),
        (JobState.DONE, " (done)"),
        (JobState.CANCELLED, " (cancelled)"),
    ],
)
def test_a_list_says_where_a_reminder_stands(state: JobState, mark: str) -> None:
    assert job(state).listed(now=NOW) == job().line(now=NOW) + mark


def test_a_list_says_what_is_on_its_way() -> None:
    fired = replace(job(), next_slot_at=None)
    assert fired.listed(now=NOW).endswith("call mum (on its way)")


def test_a_series_that_could_go_on_was_switched_off() -> None:
    failing = replace(job(JobState.FAILED, schedule=DAILY), next_slot_at=None)
    assert failing.listed(now=NOW).endswith(" (switched off)")
    last = replace(failing, schedule=replace(DAILY, max_runs=2), fired=2)
    assert last.listed(now=NOW).endswith(" (may not have reached you)")
    ended = replace(failing, schedule=replace(DAILY, until=NOW))
    assert ended.listed(now=NOW).endswith(" (may not have reached you)")


def test_a_list_names_what_was_put_off() -> None:
    snoozed = replace(job(), snoozed_from=TurnId(3))
    assert snoozed.listed(now=NOW).endswith("call mum (snoozed)")
    assert replace(snoozed, state=JobState.PAUSED).listed(now=NOW).endswith(" (paused) (snoozed)")


@pytest.mark.parametrize(
    ("tier", "asked", "mark"),
    [
        (Tier.READ_ONLY, Tier.READ_ONLY, ""),
        (
            Tier.READ_ONLY,
            Tier.SUGGEST,
            " (asks to read, and write into its own workspace: /allow 7)",
        ),
        (Tier.READ_ONLY, Tier.MUTATE, " (asks to read, write and change things: /allow 7)"),
        (Tier.MUTATE, Tier.MUTATE, ""),
    ],
)
def test_a_list_says_what_a_task_asks_for(tier: Tier, asked: Tier, mark: str) -> None:
    task = replace(job(), action=JobAction.PROMPT, tier=tier, asked_tier=asked)
    assert task.listed(now=NOW) == task.line(now=NOW) + mark


def test_a_message_asks_for_nothing() -> None:
    message = replace(job(), asked_tier=Tier.MUTATE)
    assert message.listed(now=NOW) == message.line(now=NOW)


@pytest.mark.parametrize(
    ("fired", "granted", "slot"),
    [
        (1, 2, datetime(2026, 3, 2, 9, 1, tzinfo=UTC)),
        (2, 2, None),
        (3, 2, None),
        (9, None, datetime(2026, 3, 2, 9, 1, tzinfo=UTC)),
    ],
)
def test_a_series_goes_on_while_it_has_runs_left(
    fired: int, granted: int | None, slot: datetime | None
) -> None:
    series = replace(job(schedule=replace(DAILY, max_runs=granted)), fired=fired)
    assert series.resumed_slot(now=NOW) == slot


def test_a_one_shot_goes_on_only_to_its_own_time() -> None:
    assert job().resumed_slot(now=NOW) == later(60)
    assert job().resumed_slot(now=later(60)) is None
