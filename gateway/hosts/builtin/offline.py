"""The offline host's answers: reminders through the tools, and plain words for all else."""

from datetime import datetime
from typing import Final, assert_never
from zoneinfo import ZoneInfo

from gateway.hosts.base import ContextMessage, PromptContext
from gateway.hosts.builtin.deeds import (
    WHOLE,
    CallTool,
    Sent,
    act,
    change,
    listed,
    sent_before,
    set_one,
    which,
)
from gateway.hosts.builtin.grammar import understand_all
from gateway.hosts.builtin.intents import (
    Act,
    AskBack,
    ClockQuestion,
    Done,
    Feature,
    Fragment,
    Help,
    Intent,
    ListReminders,
    Move,
    NotYet,
    Remind,
    Rename,
    SmallTalk,
    Snooze,
    Talk,
    Unknown,
    WhichOne,
)

_Talked = Done | AskBack | Fragment | ClockQuestion | Help | SmallTalk | NotYet | Unknown

NOTHING: Final = "NOTHING"  # a heartbeat's answer that is not sent
_ABILITIES: Final = (
    'I set reminders, once ("remind me tomorrow at 9 to call mum") or repeating ("remind me every '
    'day at 8 to take my pills"), list them ("what are my reminders?"), change them by number '
    '("move 2 to 5pm", "rename 2 to call dad", "pause 2", "resume 2", "cancel 2"), remind again of '
    'one that went off ("snooze 2 for 10 minutes") and tell the time.'
)
_SHORTLY: Final = (
    'I keep reminders: "remind me tomorrow at 9 to call mum", "what are my reminders?", '
    '"snooze 2 for 10 minutes". Say "help" for more.'
)
_HONEST: Final = "I am not a language model, just a small grammar that works without a network."
_CONNECT: Final = (
    "To connect a model, set MODEL_NAME and MODEL_BASE_URL or MODEL_API_KEY (see the README)."
)
_IN_SHORT: Final = 'I set, list, change and cancel reminders: say "help" for examples.'
_INSTEAD: Final = {
    Feature.NOTES: _IN_SHORT,
    Feature.TIME_ZONE: "Send the command with its name: /timezone Europe/Berlin",
}
_TALK: Final = {
    Talk.GREETING: "Hello! " + _SHORTLY,
    Talk.WELL_BEING: "All is running, thank you. What shall I remind you of?",
    Talk.THANKS: "You are welcome!",
    Talk.AFFECTION: "That is kind of you, thank you.",
    Talk.FAREWELL: "Bye! Your reminders stay set. In a terminal, Ctrl-D ends the chat.",
    Talk.IDENTITY: "I am the reminder part of this chat gateway. " + _ABILITIES,
    Talk.NOD: "All right. I do not keep track of earlier messages, so please send a request whole.",
}
# Where somebody may take this for a person or a model, and where the talk goes beyond a phrase.
_NEEDS_HONESTY: Final = frozenset({Talk.GREETING, Talk.WELL_BEING, Talk.IDENTITY})
_WELL_DONE: Final = (
    'Well done. A reminder that repeats goes on; to end one, say its number: "cancel 2".'
)


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
    sent = sent_before(message, context.recent)
    intents = understand_all(message.text, now=message.sent_at, zone=zone)
    now = context.now.astimezone(zone)
    return "\n".join([await _respond(intent, sent, now=now, call=call) for intent in intents])


async def _respond(intent: Intent, sent: Sent, *, now: datetime, call: CallTool) -> str:
    match intent:
        case Remind():
            return await set_one(intent, call)
        case Act():
            return await act(intent, sent, call)
        case Snooze() | Move() | Rename():
            return await change(intent, sent, call)
        case ListReminders():
            return await listed(call)
        case WhichOne():
            return await which(intent.question, call)
        case _:
            return _say(intent, now=now)


def _say(intent: _Talked, *, now: datetime) -> str:
    """Answer what needs no tool."""
    match intent:
        case Done():
            return _WELL_DONE
        case AskBack():
            return intent.question if intent.says_whole else f"{intent.question}\n{WHOLE}"
        case Fragment():
            return _half_finished(intent)
        case ClockQuestion():
            return f"It is {now:%A}, {now.day} {now:%B %Y}, {now:%H:%M} ({now.tzinfo})."
        case Help():
            return f"{_ABILITIES} {_HONEST} {_CONNECT}"
        case SmallTalk():
            return _small_talk(intent.kind)
        case NotYet():
            return f"I cannot {intent.feature}. {_INSTEAD[intent.feature]}"
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
