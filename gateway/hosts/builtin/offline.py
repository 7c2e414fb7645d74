"""The offline host's answers: reminders through the tools, and plain words for all else."""

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Final, assert_never
from zoneinfo import ZoneInfo

from gateway.hosts.base import ContextMessage, PromptContext
from gateway.hosts.builtin.grammar import understand_all
from gateway.hosts.builtin.intents import (
    AskBack,
    Cancel,
    ClockQuestion,
    Feature,
    Fragment,
    Help,
    Intent,
    ListReminders,
    NotYet,
    Remind,
    SmallTalk,
    Talk,
    Unknown,
    WhichToCancel,
)
from gateway.hosts.builtin.tool_answer import ToolAnswer

_Talked = AskBack | Fragment | ClockQuestion | Help | SmallTalk | NotYet | Unknown
CallTool = Callable[[str, dict[str, object]], Awaitable[ToolAnswer]]

NOTHING: Final = "NOTHING"  # a heartbeat's answer that is not sent
_TOOL: Final = "schedule"
_ABILITIES: Final = (
    'I set one-time reminders ("remind me tomorrow at 9 to call mum", "remind me in 20 minutes to '
    'check the oven"), list them ("what are my reminders?"), cancel them by number ("cancel 2") '
    "and tell the time."
)
_HONEST: Final = "I am not a language model, just a small grammar that works without a network."
_CONNECT: Final = (
    "To connect a model, set MODEL_NAME and MODEL_BASE_URL or MODEL_API_KEY (see the README)."
)
_IN_SHORT: Final = 'I set one-time reminders, list and cancel them: say "help" for examples.'
# Every question ends with it: what was sent before is not kept.
_WHOLE: Final = "Please send the whole request again in one message."
_INSTEAD: Final = {
    Feature.SNOOZE: (
        "Send a new reminder whole instead, like: remind me in 10 minutes to check the oven"
    ),
    Feature.CHANGE: 'Cancel it by its number ("cancel 2") and set a new one.',
    Feature.PAUSE: 'You can cancel it by its number ("cancel 2") and set it again later.',
    Feature.NOTES: _IN_SHORT,
    Feature.TIME_ZONE: _IN_SHORT,
}
_NOTHING_SET: Final = "No reminder was set"  # the tool's words; without them they are appended
_TALK: Final = {
    Talk.GREETING: "Hello! I keep your reminders. " + _ABILITIES,
    Talk.WELL_BEING: "All is running, thank you. What shall I remind you of?",
    Talk.THANKS: "You are welcome!",
    Talk.AFFECTION: "That is kind of you, thank you.",
    Talk.FAREWELL: "Bye! Your reminders stay set. In a terminal, Ctrl-D ends the chat.",
    Talk.IDENTITY: "I am the reminder part of this chat gateway. " + _ABILITIES,
    Talk.NOD: "All right. I do not keep track of earlier messages, so please send a request whole.",
}
# Where somebody may take this for a person or a model, and where the talk goes beyond a phrase.
_NEEDS_HONESTY: Final = frozenset({Talk.GREETING, Talk.WELL_BEING, Talk.IDENTITY})


async def answer(context: PromptContext, call: CallTool) -> str:
    """Answer every message of the turn, one blank line between the answers; never blank.

    A heartbeat is answered with NOTHING, a due job with its own text. Raises what `call` raises.
    """
    if context.job is not None:
        return context.job
    if context.trigger == "heartbeat" or not context.messages:
        return NOTHING
    answers: list[str] = []
    for message in context.messages:
        text = await _answer_message(message, context, call)
        if text not in answers:
            answers.append(text)
    return "\n\n".join(answers)


async def _answer_message(message: ContextMessage, context: PromptContext, call: CallTool) -> str:
    zone = ZoneInfo(context.timezone)
    intents = understand_all(message.text, now=message.sent_at, zone=zone)
    now = context.now.astimezone(zone)
    return "\n".join([await _respond(intent, now=now, call=call) for intent in intents])


async def _respond(intent: Intent, *, now: datetime, call: CallTool) -> str:
    match intent:
        case Remind():
            return await _set(intent, call)
        case ListReminders():
            return await _list(call)
        case Cancel():
            return await _cancel(intent, call)
        case WhichToCancel():
            return f"{intent.question} {_WHOLE}\n\n{await _list(call)}"
        case _:
            return _say(intent, now=now)


def _say(intent: _Talked, *, now: datetime) -> str:
    """Answer what needs no tool."""
    match intent:
        case AskBack():
            return intent.question if intent.says_whole else f"{intent.question}\n{_WHOLE}"
        case Fragment():
            return _half_finished(intent)
        case ClockQuestion():
            return f"It is {now:%A}, {now.day} {now:%B %Y}, {now:%H:%M} ({now.tzinfo})."
        case Help():
            return f"{_ABILITIES} {_HONEST} {_CONNECT}"
        case SmallTalk():
            return _small_talk(intent.kind)
        case NotYet():
            return f"I cannot {intent.feature} yet. {_INSTEAD[intent.feature]}"
        case Unknown():
            return f"I did not understand that. {_IN_SHORT}"
        case _:
            assert_never(intent)


def _small_talk(kind: Talk) -> str:
    parts = [_TALK[kind]]
    if kind in _NEEDS_HONESTY:
        parts.append(_HONEST)
    if kind is Talk.IDENTITY:
        parts.append(_CONNECT)
    return " ".join(parts)


def _half_finished(fragment: Fragment) -> str:
    time = fragment.time or "on 5 December"
    return (
        f"I keep no half-finished requests: send it whole, like: remind me {time} to pay the rent"
    )


async def _list(call: CallTool) -> str:
    listed = await call(_TOOL, {"action": "list"})
    return listed.text if listed.ok else f"I could not read your reminders. {listed.text}"


async def _set(intent: Remind, call: CallTool) -> str:
    """Set a reminder; the tool's confirmation is the only one, followed by what was assumed."""
    at = intent.when.at.astimezone(UTC).isoformat(timespec="milliseconds")
    created = await call(_TOOL, {"action": "create", "text": intent.text, "at": at})
    if not created.ok:
        is_said = _NOTHING_SET in created.text
        return created.text if is_said else f"{_NOTHING_SET}: {created.text}"
    return created.text if intent.when.note is None else f"{created.text}\n({intent.when.note})"


async def _cancel(intent: Cancel, call: CallTool) -> str:
    answers = []
    for number in intent.numbers:
        cancelled = await call(_TOOL, {"action": "cancel", "id": number})
        failure = f"I did not cancel #{number}. {cancelled.text}"
        answers.append(cancelled.text if cancelled.ok else failure)
    return "\n".join(answers)
