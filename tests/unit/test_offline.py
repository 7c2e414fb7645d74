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
    assert reply == "I did not set a reminder. The store is full."
    assert "not" in await answer(context("what are my reminders?"), tool)
    assert await answer(context("cancel 2"), tool) == "I did not cancel #2. The store is full."


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


@pytest.mark.parametrize("text", ["hello", "who are you?", "are you an AI?", "how are you", "asdf"])
async def test_small_talk_says_honestly_what_answers(text: str) -> None:
    tool = RecordingTool()
    reply = await answer(context(text), tool)
    assert "not a language model" in reply
    assert "MODEL_NAME" in reply
    assert "MODEL_BASE_URL" in reply
    assert tool.calls == []


@pytest.mark.parametrize(
    "text",
    ["remind me every day at 8 to go", "remind me to go", "cancel all", "move 2 to 5pm", "thanks",
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
