"""The offline host's answers, with a tool that records its calls."""

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

import pytest

from gateway.hosts.base import ContextMessage, PromptContext, RecentSight
from gateway.hosts.builtin.offline import NOTHING, answer
from gateway.hosts.builtin.tool_answer import ToolAnswer

NOW = datetime(2026, 11, 30, 9, 0, tzinfo=UTC)
CONFIRMATION = "Saved: #7 Tue 1 Dec 09:00 (Europe/Berlin): call mum"


@dataclass(slots=True, kw_only=True)
class RecordingTool:
    reply: ToolAnswer = field(default_factory=lambda: ToolAnswer(ok=True, text=CONFIRMATION))
    calls: list[tuple[str, dict[str, object]]] = field(default_factory=list)

    async def __call__(self, name: str, arguments: dict[str, object]) -> ToolAnswer:
        self.calls.append((name, arguments))
        return self.reply


def context(
    *texts: str, sent_at: datetime = NOW, trigger: str = "message", job: str | None = None
) -> PromptContext:
    messages = tuple(ContextMessage(text=text, sender="Ann", sent_at=sent_at) for text in texts)
    return PromptContext(
        messages=messages, trigger=trigger, timezone="Europe/Berlin", now=NOW, job=job
    )


def after(
    *sights: tuple[str, tuple[int, ...]], text: str, quoted: str | None = None
) -> PromptContext:
    """A message after these texts were sent, each naming reminders."""
    message = ContextMessage(text=text, sender="Ann", sent_at=NOW, quoted=quoted)
    recent = tuple(RecentSight(text=said, job_ids=jobs) for said, jobs in sights)
    return replace(context(), messages=(message,), recent=recent)


async def test_a_reminder_is_set_at_an_instant_and_confirmed_in_the_tools_words() -> None:
    tool = RecordingTool()
    reply = await answer(context("remind me tomorrow at 09:00 to call mum"), tool)
    assert reply == CONFIRMATION
    assert tool.calls == [
        (
            "schedule",
            {"action": "create", "text": "call mum", "at": "2026-12-01T08:00:00.000+00:00"},
        )
    ]


async def test_what_was_assumed_follows_the_confirmation() -> None:
    reply = await answer(context("remind me tomorrow at 9 to call mum"), RecordingTool())
    assert reply == f"{CONFIRMATION}\n(I read 9 as 09:00)"


async def test_r13_a_delay_counts_from_when_the_message_was_sent() -> None:
    tool = RecordingTool()
    sent = NOW - timedelta(minutes=3, milliseconds=250)
    await answer(context("remind me in 5 minutes to go", sent_at=sent), tool)
    assert tool.calls[0][1]["at"] == "2026-11-30T09:01:59.750+00:00"


async def test_r13_a_snooze_and_a_rhythm_count_from_when_the_message_was_sent() -> None:
    tool = RecordingTool()
    sent = NOW - timedelta(minutes=3)
    await answer(context("snooze 2 for 5 minutes", sent_at=sent), tool)
    await answer(context("remind me every 2 hours to drink", sent_at=sent), tool)
    assert tool.calls[0][1]["when"] == "2026-11-30T09:02:00.000+00:00"
    anchor = round(sent.timestamp() * 1000)
    schedule = tool.calls[1][1]["schedule"]
    assert schedule == {"kind": "every", "seconds": 7200, "anchor": anchor}


async def test_a_moment_that_passed_while_waiting_is_left_to_the_tool() -> None:
    tool = RecordingTool()
    sent = NOW - timedelta(minutes=3)
    await answer(context("remind me in 10 seconds to go", sent_at=sent), tool)
    assert tool.calls[0][1]["at"] == "2026-11-30T08:57:10.000+00:00"


async def test_nothing_is_claimed_when_the_tool_fails() -> None:
    tool = RecordingTool(reply=ToolAnswer(ok=False, text="The store is full."))
    reply = await answer(context("remind me at 5 to go"), tool)
    assert reply == "No reminder was set: The store is full."
    assert "not" in await answer(context("what are my reminders?"), tool)
    assert await answer(context("cancel 2"), tool) == "I did not cancel #2. The store is full."


async def test_that_nothing_was_set_is_said_once() -> None:
    refused = ToolAnswer(ok=False, text="No reminder was set: The moment has passed.")
    reply = await answer(context("remind me at 5 to go"), RecordingTool(reply=refused))
    assert reply == refused.text


async def test_the_list_is_the_tools() -> None:
    tool = RecordingTool(reply=ToolAnswer(ok=True, text="No reminders."))
    assert await answer(context("what are my reminders?"), tool) == "No reminders."
    assert tool.calls == [("schedule", {"action": "list"})]


async def test_a_series_is_handed_over_as_it_is_stored() -> None:
    tool = RecordingTool()
    reply = await answer(context("remind me to swim on mondays"), tool)
    assert reply == f"{CONFIRMATION}\n(no time given, so 09:00)"
    schedule = {"kind": "weekly", "days": ["mon"], "time": "09:00"}
    assert tool.calls == [("schedule", {"action": "create", "text": "swim", "schedule": schedule})]


@pytest.mark.parametrize(
    ("text", "arguments"),
    [
        ("move 2 to 17:30", {"action": "update", "id": 2, "when": "17:30"}),
        (
            "reschedule 3 to every day at 8",
            {"action": "update", "id": 3, "schedule": {"kind": "daily", "time": "08:00"}},
        ),
        ("rename 2 to call dad", {"action": "update", "id": 2, "text": "call dad"}),
        ("pause 2", {"action": "pause", "id": 2}),
        ("resume 2", {"action": "resume", "id": 2}),
        ("run 2 now", {"action": "run_now", "id": 2}),
        ("show reminder 2", {"action": "get", "id": 2}),
        ("history of 2", {"action": "history", "id": 2}),
        (
            "snooze 2 for 10 minutes",
            {"action": "snooze", "id": 2, "when": "2026-11-30T09:10:00.000+00:00"},
        ),
        ("lösche 2", {"action": "cancel", "id": 2}),
    ],
)
async def test_what_is_asked_by_number_is_one_call(text: str, arguments: dict[str, object]) -> None:
    tool = RecordingTool(reply=ToolAnswer(ok=True, text="As asked: #2"))
    assert (await answer(context(text), tool)).startswith("As asked: #2")
    assert tool.calls == [("schedule", arguments)]


async def test_what_was_assumed_of_a_new_time_is_said() -> None:
    tool = RecordingTool(reply=ToolAnswer(ok=True, text="Changed: #2"))
    reply = await answer(context("move 2 to tomorrow at 5"), tool)
    assert reply == "Changed: #2\n(I read 5 as 05:00; write 17:00 for the afternoon)"


@pytest.mark.parametrize(
    "text", ["move 2 to 5pm", "rename 2 to go", "pause 2", "resume 2", "run 2 now", "show 2",
             "history of 2", "snooze 2", "cancel 2"]
)  # fmt: skip
async def test_r30_no_change_is_claimed_when_the_tool_refuses(text: str) -> None:
    tool = RecordingTool(reply=ToolAnswer(ok=False, text="There is no reminder #2."))
    reply = await answer(context(text), tool)
    assert reply.startswith("I ")
    assert "not" in reply
    assert reply.endswith("#2. There is no reminder #2.")


@pytest.mark.parametrize("head", ["No reminder was set", "Nothing was changed"])
async def test_that_nothing_was_changed_is_said_once(head: str) -> None:
    refused = ToolAnswer(ok=False, text=f"{head}: Reminder #2 has not gone off yet.")
    assert await answer(context("snooze 2"), RecordingTool(reply=refused)) == refused.text


async def test_r33_snooze_that_means_the_reminder_that_was_sent_last() -> None:
    tool = RecordingTool(reply=ToolAnswer(ok=True, text="Snoozed: #9"))
    said = after(("take pills", (4,)), ("call mum", (7,)), ("Done.", ()), text="snooze that 10 min")
    assert await answer(said, tool) == "Snoozed: #9"
    until = "2026-11-30T09:10:00.000+00:00"
    assert tool.calls == [("schedule", {"action": "snooze", "id": 7, "when": until})]


@pytest.mark.parametrize(
    ("text", "action"),
    [
        ("stop that", "cancel"),
        ("stop it", "cancel"),
        ("snooze", "snooze"),
        ("remind me again in 10 minutes", "snooze"),
        ("pause it", "pause"),
        ("make it 9:30 instead", "update"),
        ("arrête ça", "cancel"),
    ],
)
async def test_r29_that_acts_on_the_one_reminder_that_was_sent(text: str, action: str) -> None:
    tool = RecordingTool(reply=ToolAnswer(ok=True, text="As asked."))
    assert (await answer(after(("call mum", (7,)), text=text), tool)).startswith("As asked.")
    assert [(call["action"], call["id"]) for _, call in tool.calls] == [(action, 7)]


@pytest.mark.parametrize("text", ["stop that", "snooze", "pause it", "make it 9:30 instead"])
@pytest.mark.parametrize("jobs", [(), (4, 7)])
async def test_r29_that_is_asked_about_where_it_is_not_one(
    text: str, jobs: tuple[int, ...]
) -> None:
    tool = RecordingTool(reply=ToolAnswer(ok=True, text="#4 …\n#7 …"))
    reply = await answer(after(("pills\ncall mum", jobs), text=text), tool)
    assert reply.startswith("Which reminder shall I ")
    assert reply.endswith("#4 …\n#7 …")
    assert tool.calls == [("schedule", {"action": "list"})]


async def test_a_new_time_is_not_given_to_one_of_two_reminders() -> None:
    tool = RecordingTool()
    said = after(("take pills", (4,)), ("call mum", (7,)), text="make it 9:30 instead")
    assert (await answer(said, tool)).startswith("Which reminder shall I change?")
    assert tool.calls == [("schedule", {"action": "list"})]


async def test_a_number_that_may_be_minutes_is_asked_about_after_a_reminder() -> None:
    tool = RecordingTool()
    asked = await answer(after(("call mum", (7,)), text="snooze 10"), tool)
    assert asked.startswith("Which reminder")
    await answer(after(("call mum", (7,)), text="snooze 7"), tool)
    await answer(after(text="snooze 10"), tool)
    assert [call.get("id") for _, call in tool.calls] == [None, 7, 10]


async def test_a_quote_points_at_what_was_quoted_alone() -> None:
    tool = RecordingTool(reply=ToolAnswer(ok=True, text="Paused: #4"))
    sights = (("take pills", (4,)), ("call mum", (7,)))
    quoted = "(may be a repeat) take pills"
    assert await answer(after(*sights, text="pause it", quoted=quoted), tool) == "Paused: #4"
    asked = await answer(after(*sights, text="pause it", quoted="see you at 5"), tool)
    assert asked.startswith("Which reminder shall I pause?")
    assert [call["action"] for _, call in tool.calls] == ["pause", "list"]


async def test_done_changes_nothing() -> None:
    tool = RecordingTool()
    assert (await answer(after(("call mum", (7,)), text="done"), tool)).startswith("Well done.")
    assert tool.calls == []


async def test_the_time_zone_is_told_how_to_change() -> None:
    reply = await answer(context("set my timezone to Berlin"), RecordingTool())
    assert "/timezone Europe/Berlin" in reply


async def test_each_number_is_cancelled() -> None:
    tool = RecordingTool(reply=ToolAnswer(ok=True, text="Cancelled."))
    assert await answer(context("cancel 2 and 3"), tool) == "Cancelled.\nCancelled."
    assert [arguments for _, arguments in tool.calls] == [
        {"action": "cancel", "id": 2},
        {"action": "cancel", "id": 3},
    ]


async def test_every_message_of_a_turn_is_answered() -> None:
    tool = RecordingTool()
    reply = await answer(context("hello", "remind me in 1 hour to go", "what time is it"), tool)
    greeting, confirmation, clock = reply.split("\n\n")
    assert greeting.startswith("Hello!")
    assert confirmation == CONFIRMATION
    assert clock == "It is Monday, 30 November 2026, 10:00 (Europe/Berlin)."
    assert len(tool.calls) == 1


async def test_the_same_answer_is_given_once() -> None:
    reply = await answer(context("asdf", "qwer"), RecordingTool())
    assert reply.count("I did not understand that.") == 1


@pytest.mark.parametrize(
    ("text", "says_how"),
    [("hello", False), ("how are you", False), ("who are you?", True), ("are you an AI?", True),
     ("help", True)],
)  # fmt: skip
async def test_small_talk_says_honestly_what_answers(text: str, says_how: bool) -> None:
    tool = RecordingTool()
    reply = await answer(context(text), tool)
    assert "not a language model" in reply
    for name in ("MODEL_NAME", "MODEL_BASE_URL", "MODEL_API_KEY"):
        assert (name in reply) is says_how
    assert tool.calls == []


@pytest.mark.parametrize(
    "text", ["asdf", "remember my keys", "pay the rent", "I love you", "done", "thanks"]
)
async def test_other_misses_are_answered_shortly(text: str) -> None:
    reply = await answer(context(text), RecordingTool())
    assert len(reply.split()) <= 25
    assert "language model" not in reply


@pytest.mark.parametrize(
    "text",
    ["remind me on 5/12 to go", "remind me at half 8 to go", "remind me today or tuesday to go",
     "remind me tomorrow at midnight to go", "remind me to go", "remind me at 5", "remind me soon",
     "always remind me at 8 to go", "remind me tommorow to go", "remind me twice tomorrow",
     "move 2 by an hour", "pause 2 until monday", "snooze 2 soon", "change 2 to go", "later",
     "erinnere mich morgen", "pause all",
     "remind me yesterday to go", "remind bob to go at 5pm", "cancel mum", "5/12"],
)  # fmt: skip
async def test_every_question_tells_once_to_send_it_whole(text: str) -> None:
    reply = await answer(context(text), RecordingTool())
    assert reply.count("Please send the whole request again in one message.") == 1
    assert reply.count("send") == 1


async def test_a_piece_sent_alone_is_told_how_to_send_it_whole() -> None:
    tool = RecordingTool()
    reply = await answer(context("the fifth of december"), tool)
    assert reply.startswith("I keep no half-finished requests: send it whole, like: ")
    assert tool.calls == []
    await answer(context(reply.partition("like: ")[2]), tool)
    assert tool.calls[0][1]["at"] == "2026-12-05T08:00:00.000+00:00"
    reply = await answer(context("pay the rent"), tool)
    assert reply.endswith("send it whole, like: remind me on 5 December to pay the rent")


async def test_which_one_to_cancel_is_asked_with_the_list() -> None:
    tool = RecordingTool(reply=ToolAnswer(ok=True, text="#2 Tue 1 Dec 09:00: call mum"))
    reply = await answer(context("cancel the last one"), tool)
    assert reply.startswith("Which reminder shall I cancel?")
    assert reply.endswith("\n\n#2 Tue 1 Dec 09:00: call mum")
    assert tool.calls == [("schedule", {"action": "list"})]


async def test_lines_that_are_each_a_request_are_done_one_by_one() -> None:
    tool = RecordingTool(reply=ToolAnswer(ok=True, text="Cancelled."))
    assert await answer(context("cancel 2\ncancel 3"), tool) == "Cancelled.\nCancelled."
    assert [arguments["id"] for _, arguments in tool.calls] == [2, 3]


@pytest.mark.parametrize("text", ["exit", "quit", "bye"])
async def test_a_farewell_names_the_way_out_of_a_terminal(text: str) -> None:
    assert "Ctrl-D" in await answer(context(text), RecordingTool())


@pytest.mark.parametrize(
    "text",
    ["always remind me at 8 to go", "remind me to go", "move 2 by an hour", "thanks",
     "remind me tomorrow at 9 or 10 to go", "call mum tomorrow at 9", "", "bye", "ok"],
)  # fmt: skip
async def test_nothing_is_set_for_what_is_not_understood_whole(text: str) -> None:
    tool = RecordingTool()
    assert await answer(context(text), tool)
    assert tool.calls == []


async def test_a_heartbeat_has_nothing_to_say() -> None:
    tool = RecordingTool()
    assert await answer(context(trigger="heartbeat"), tool) == NOTHING == "NOTHING"
    assert tool.calls == []


async def test_a_due_job_is_its_own_text() -> None:
    tool = RecordingTool()
    due = context(trigger="job", job="remind me tomorrow at 9 to go")
    assert await answer(due, tool) == "remind me tomorrow at 9 to go"
    assert tool.calls == []


async def test_the_abilities_it_names_are_understood() -> None:
    tool = RecordingTool()
    reply = await answer(context("help"), tool)
    for example in reply.split('"')[1::2]:
        await answer(context(example), tool)
    assert [arguments["action"] for _, arguments in tool.calls] == [
        "create", "create", "list", "update", "update", "pause", "resume", "cancel", "snooze",
    ]  # fmt: skip
