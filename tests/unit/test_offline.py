"""The offline host's answers, with a tool that records its calls."""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import pytest

from gateway.hosts.base import ContextMessage, PromptContext
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
    "text", ["asdf", "move 2 to 5pm", "pay the rent", "I love you", "snooze 2", "thanks"]
)
async def test_other_misses_are_answered_shortly(text: str) -> None:
    reply = await answer(context(text), RecordingTool())
    assert len(reply.split()) <= 25
    assert "language model" not in reply


@pytest.mark.parametrize(
    "text",
    ["remind me on 5/12 to go", "remind me at half 8 to go", "remind me today or tuesday to go",
     "remind me tomorrow at midnight to go", "remind me to go", "remind me at 5", "remind me soon",
     "remind me every day at 8 to go", "remind me tommorow to go", "remind me twice tomorrow",
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
    ["remind me every day at 8 to go", "remind me to go", "move 2 to 5pm", "thanks",
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
        "create", "create", "list", "cancel",
    ]  # fmt: skip
