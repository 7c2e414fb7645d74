"""What the offline host does through the reminder tool, and what it says of the outcome."""

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, assert_never

from gateway.domain.schedule import At
from gateway.domain.schedule_forms import schedule_to_json
from gateway.domain.when import Understood
from gateway.hosts.base import ContextMessage, RecentSight
from gateway.hosts.builtin import questions
from gateway.hosts.builtin.intents import (
    Act,
    Deed,
    Latest,
    Move,
    Numbers,
    Remind,
    Rename,
    Snooze,
    Target,
)
from gateway.hosts.builtin.tool_answer import ToolAnswer

CallTool = Callable[[str, dict[str, object]], Awaitable[ToolAnswer]]

# Every question ends with it: what was sent before is not kept.
WHOLE: Final = "Please send the whole request again in one message."
_TOOL: Final = "schedule"
# The tool's own words for it; a failure without them is told with what it kept from being done.
_NOTHING_SET: Final = "No reminder was set"
_SAYS_SO: Final = (_NOTHING_SET, "Nothing was changed")
_NOT_DONE: Final[Mapping[Deed, str]] = {
    Deed.CANCEL: "I did not cancel #{}.",
    Deed.PAUSE: "I did not pause #{}.",
    Deed.RESUME: "I did not resume #{}.",
    Deed.RUN_NOW: "I did not send #{}.",
    Deed.GET: "I cannot show #{}.",
    Deed.HISTORY: "I cannot tell of #{}.",
}
_NOT_CHANGED: Final = "I did not change #{}."
_NOT_SNOOZED: Final = "I did not put off #{}."


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """The reminders that a message may mean by "that".

    `latest` are those of the text that named any last, or of the one that the message quotes;
    `all` are those of all texts since the last turn.
    """

    latest: frozenset[int]
    all: frozenset[int]


def sent_before(message: ContextMessage, recent: tuple[RecentSight, ...]) -> Sent:
    """Tell what a message can point at; a quote points at nothing but what was quoted.

    What was quoted may begin with a mark that was put before the text as it was sent.
    """
    quoted = None if message.quoted is None else " ".join(message.quoted.split())
    sights = [
        frozenset(sight.job_ids)
        for sight in recent
        if sight.job_ids and (quoted is None or quoted.endswith(" ".join(sight.text.split())))
    ]
    return Sent(latest=sights[-1] if sights else frozenset(), all=frozenset().union(*sights))


async def listed(call: CallTool) -> str:
    """What is set."""
    answer = await call(_TOOL, {"action": "list"})
    return answer.text if answer.ok else f"I could not read your reminders. {answer.text}"


async def which(question: str, call: CallTool) -> str:
    """Ask for a number, with the list to choose from."""
    return f"{question} {WHOLE}\n\n{await listed(call)}"


async def set_one(intent: Remind, call: CallTool) -> str:
    """Set a reminder; the tool's confirmation is the only one, followed by what was assumed."""
    arguments = {"action": "create", "text": intent.text, **_time(intent.when)}
    created = await call(_TOOL, arguments)
    if not created.ok:
        is_said = _NOTHING_SET in created.text
        return created.text if is_said else f"{_NOTHING_SET}: {created.text}"
    return _noted(created.text, intent.when.note)


def _time(when: Understood) -> dict[str, object]:
    if isinstance(when.schedule, At):
        return {"at": _iso(when.at)}
    schedule: dict[str, object] = json.loads(schedule_to_json(when.schedule))
    return {"schedule": schedule}


def _iso(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="milliseconds")


def _noted(text: str, note: str | None) -> str:
    return text if note is None else f"{text}\n({note})"


async def act(intent: Act, sent: Sent, call: CallTool) -> str:
    """Do one deed to each reminder that is meant, or ask which."""
    numbers = _meant(intent.target, sent.latest)
    if not numbers:
        return await which(questions.WHICH[intent.deed], call)
    failure = _NOT_DONE[intent.deed]
    answers = [await _ask(call, intent.deed, number, failure=failure) for number in numbers]
    return "\n".join(answers)


async def _ask(
    call: CallTool, action: str, number: int, *, failure: str, **arguments: object
) -> str:
    """Call the tool for one reminder; a refusal says that nothing was done."""
    answer = await call(_TOOL, {"action": str(action), "id": number, **arguments})
    is_said = answer.ok or answer.text.startswith(_SAYS_SO)
    return answer.text if is_said else f"{failure.format(number)} {answer.text}"


def _meant(target: Target, candidates: frozenset[int]) -> tuple[int, ...]:
    """The numbers that are meant; none where "that" may mean more than one."""
    match target:
        case Numbers():
            return target.numbers
        case Latest():
            return tuple(candidates) if len(candidates) == 1 else ()
        case _:
            assert_never(target)


async def change(intent: Snooze | Move | Rename, sent: Sent, call: CallTool) -> str:
    """Put off, move or rename what is meant, or ask which."""
    match intent:
        case Snooze():
            return await _snooze(intent, sent, call)
        case Move():
            numbers = _meant(intent.target, sent.all)
            if not numbers:
                return await which(questions.WHICH_TO_CHANGE, call)
            time = _time(intent.when) if intent.clock is None else {"when": intent.clock}
            moved = await _ask(call, "update", numbers[0], failure=_NOT_CHANGED, **time)
            return _noted(moved, None if intent.clock else intent.when.note)
        case Rename():
            return await _ask(call, "update", intent.number, failure=_NOT_CHANGED, text=intent.text)
        case _:
            assert_never(intent)


async def _snooze(intent: Snooze, sent: Sent, call: CallTool) -> str:
    numbers = _meant(intent.target, sent.latest)
    is_doubtful = intent.is_doubtful and bool(sent.latest) and not sent.latest.issuperset(numbers)
    if not numbers or is_doubtful:
        return await which(questions.WHICH_TO_SNOOZE, call)
    until = _iso(intent.until)
    answers = [
        await _ask(call, "snooze", number, failure=_NOT_SNOOZED, when=until) for number in numbers
    ]
    return "\n".join(answers)
