"""What the fake model server answers: replies, the rules that choose them, and their JSON form."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import assert_never

JsonObject = dict[str, object]


class Shape(StrEnum):
    """How a tool call looks on the wire: as documented, or as real servers get it wrong."""

    PROPER = "proper"
    NO_INDEX = "no_index"
    NO_ID = "no_id"
    BARE = "bare"  # neither index nor id
    SAME_INDEX = "same_index"  # every call has index 0
    OBJECT = "object"  # arguments as an object instead of text
    STOP = "stop"  # finish_reason "stop" all the same
    TEXT = "text"  # the call as plain JSON in the content
    FENCED = "fenced"
    TAGGED = "tagged"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolUse:
    """One tool call of a reply."""

    name: str
    arguments: JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class Say:
    """A text in `pieces` chunks.

    In it `{user}`, `{last_line}` and `{tool}` stand for the last message, the last line of that,
    and the last tool result. After its first chunk it waits for the gate, and for `seconds`.
    `finish` None leaves out the finish reason, `has_end` False the end mark too; `is_whole` sends
    one JSON body, no stream.
    """

    text: str = ""
    pieces: int = 1
    thinking: str | None = None
    usage: tuple[int, int] | None = (10, 5)
    finish: str | None = "stop"
    has_end: bool = True
    is_whole: bool = False
    gate: str | None = None
    seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class CallTools:
    """One or more tool calls, after `text` if any."""

    calls: tuple[ToolUse, ...]
    shape: Shape = Shape.PROPER
    text: str = ""
    usage: tuple[int, int] | None = (10, 5)


@dataclass(frozen=True, slots=True, kw_only=True)
class Refuse:
    """A status error, `times` times, then `then`; without it every time."""

    status: int
    body: str = '{"error":{"message":"scripted"}}'
    headers: Mapping[str, str] = field(default_factory=dict)
    times: int = 1
    then: "Reply | None" = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RefuseTools:
    """A 400 to each request that offers tools; `then` to one that does not."""

    then: "Reply"


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitContext:
    """A context-length error while the messages hold more characters than this; then `then`."""

    characters: int
    then: "Reply"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """The connection breaks after `text`."""

    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class BadEvent:
    """An event that is not JSON, after `text`."""

    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Silent:
    """Headers, `text`, then nothing for as long as the client stays."""

    text: str = ""


Reply = Say | CallTools | Refuse | RefuseTools | LimitContext | Cut | BadEvent | Silent

ECHO = Say(text="{user}")


def call(name: str, arguments: JsonObject, shape: Shape = Shape.PROPER) -> CallTools:
    """Return a reply of one tool call."""
    return CallTools(calls=(ToolUse(name=name, arguments=arguments),), shape=shape)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What a rule may look at: the last thing the person said and what followed it."""

    user: str
    tool: str
    rounds: int
    characters: int
    has_tools: bool


@dataclass(slots=True, kw_only=True)
class Rule:
    """Replies to messages that hold `contains`: the first, and one for each tool round after."""

    contains: str
    replies: Sequence[Reply]


@dataclass(slots=True)
class Script:
    """Chooses a reply: the queue first, then the first rule that fits, then the default."""

    queue: list[Reply] = field(default_factory=list)
    rules: list[Rule] = field(default_factory=list)
    default: Sequence[Reply] = (ECHO,)
    _refusals: dict[int, int] = field(default_factory=dict)

    def choose(self, asked: Asked) -> Reply:
        """Return what to answer."""
        if self.queue:
            return self._resolve(self.queue.pop(0), asked)
        fitting = (rule.replies for rule in self.rules if rule.contains in asked.user)
        replies = next(fitting, self.default)
        return self._resolve(replies[min(asked.rounds, len(replies) - 1)], asked)

    def _resolve(self, reply: Reply, asked: Asked) -> Reply:
        match reply:
            case Refuse(then=None):
                return reply
            case Refuse():
                used = self._refusals.get(id(reply), 0)
                self._refusals[id(reply)] = used + 1
                return reply if used < reply.times else self._resolve(_not_none(reply), asked)
            case RefuseTools():
                if asked.has_tools:
                    return Refuse(
                        status=400, body='{"error":{"message":"this model does not support tools"}}'
                    )
                return self._resolve(reply.then, asked)
            case LimitContext():
                if asked.characters > reply.characters:
                    return Refuse(status=400, body=_OVERFLOW)
                return self._resolve(reply.then, asked)
            case Say() | CallTools() | Cut() | BadEvent() | Silent():
                return reply
            case _:
                assert_never(reply)


_OVERFLOW = json.dumps(
    {
        "error": {
            "message": "This model's maximum context length is 10 tokens.",
            "code": "context_length_exceeded",
        }
    }
)


def _not_none(reply: Refuse) -> Reply:
    if reply.then is None:
        raise AssertionError("a refusal without a sequel repeats")
    return reply.then


def load_script(path: Path) -> Script:
    """Read `{"queue": [...], "rules": [{"contains", "replies"}], "default": [...]}`."""
    data = json.loads(path.read_text(encoding="utf-8"))
    default = [read_reply(item) for item in data.get("default", [])]
    return Script(
        queue=[read_reply(item) for item in data.get("queue", [])],
        rules=[
            Rule(contains=rule["contains"], replies=[read_reply(r) for r in rule["replies"]])
            for rule in data.get("rules", [])
        ],
        default=default or (ECHO,),
    )


_KINDS: dict[str, type[Say | Cut | BadEvent | Silent]] = {
    "say": Say,
    "cut": Cut,
    "bad_event": BadEvent,
    "silent": Silent,
}


def read_reply(data: JsonObject) -> Reply:
    """Read one reply: `kind` and the fields of its class.

    Kinds: say, call (name, arguments, shape), refuse (status, body, headers, times, then),
    refuse_tools (then), limit (characters, then), cut, bad_event, silent.
    """
    fields = {key: value for key, value in data.items() if key != "kind"}
    then = fields.pop("then", None)
    sequel = read_reply(then) if isinstance(then, dict) else None
    match data["kind"]:
        case "call":
            arguments = fields.get("arguments")
            shape = Shape(str(fields.get("shape", "proper")))
            return call(
                str(fields["name"]), arguments if isinstance(arguments, dict) else {}, shape
            )
        case "refuse":
            return Refuse(then=sequel, **fields)  # type: ignore[arg-type]
        case "refuse_tools":
            return RefuseTools(then=sequel or ECHO)
        case "limit":
            return LimitContext(then=sequel or ECHO, **fields)  # type: ignore[arg-type]
        case kind:
            if isinstance(usage := fields.get("usage"), list):
                fields["usage"] = tuple(usage)
            return _KINDS[str(kind)](**fields)  # type: ignore[arg-type]
