"""What a host is told with each turn: the time, who speaks, what went out, and the words."""

from datetime import datetime
from zoneinfo import ZoneInfo

from gateway.domain.delivery import DeliveryKind
from gateway.domain.job import one_line
from gateway.domain.message import Message
from gateway.domain.schedule import local_time
from gateway.domain.turn import Trigger
from gateway.hosts.base import ContextMessage, Prompt, PromptContext
from gateway.store.sights import Sight
from gateway.store.turns import Claim

_NAME = 64
_QUOTE = 500
_RECENT_TEXT = 300


def build_prompt(claim: Claim, *, timezone: str, now: datetime) -> Prompt:
    """The prompt of a claimed turn.

    Names, quotes and what was sent before are data: one line each, without control characters,
    fenced with where they come from.
    """
    zone = ZoneInfo(timezone)
    local = now.astimezone(zone)
    head = [f"[Now: {local:%A} {local.day} {local:%B %Y}, {local:%H:%M:%S} ({timezone})]"]
    if claim.was_interrupted:
        head.append(
            "[An earlier try at this request was cut off. What tools did then is done; "
            "the same call again changes nothing.]"
        )
    head += [_sight_line(sight, zone, now) for sight in claim.recent]
    return Prompt(
        text="\n".join([*head, "", _words(claim)]),
        context=PromptContext(
            messages=tuple(
                ContextMessage(
                    text=text, sender=first.sender_name, sent_at=first.sent_at, quoted=first.quoted
                )
                for text, first in _joined(claim.messages)
            ),
            trigger=claim.trigger,
            timezone=timezone,
            now=now,
            job=claim.text if claim.trigger is Trigger.JOB else None,
            recent=tuple(sight.text for sight in claim.recent),
        ),
    )


def _words(claim: Claim) -> str:
    joined = _joined(claim.messages)
    names = {message.sender_name for message in claim.messages}
    parts = []
    for text, first in joined:
        lines = []
        if first.quoted:
            lines.append(f"[In reply to: {_fenced(first.quoted, limit=_QUOTE)}]")
        if claim.chat.is_group or len(names) > 1:
            lines.append(f"[From {_fenced(first.sender_name, limit=_NAME)}]")
        lines += [
            f"[With a {attachment.kind} attached, which cannot be read here]"
            for attachment in first.attachments
        ]
        parts.append("\n".join([*lines, text]))
    if not claim.chat.is_group and len(names) == 1:
        parts.insert(0, f"[From {_fenced(names.pop(), limit=_NAME)}]")
    return "\n".join(parts) if parts else (claim.text or "")


def _joined(messages: tuple[Message, ...]) -> list[tuple[str, Message]]:
    """The texts of a turn, each with its first message; a client's cuts are undone."""
    joined: list[tuple[str, Message]] = []
    continues = False
    for message in messages:
        if continues and joined[-1][1].sender_id == message.sender_id:
            text, first = joined[-1]
            joined[-1] = (text + message.text, first)
        else:
            joined.append((message.text, message))
        continues = message.is_part
    return joined


def _sight_line(sight: Sight, zone: ZoneInfo, now: datetime) -> str:
    when = local_time(sight.sent_at, zone, now=now)
    jobs = ", ".join(f"#{job}" for job in sight.job_ids)
    what = f"reminder {jobs}" if sight.kind is DeliveryKind.REMINDER else "answer to a command"
    return f"[Sent to this chat {when}, {what}: {_fenced(sight.text, limit=_RECENT_TEXT)}]"


def _fenced(text: str, *, limit: int) -> str:
    """Other people's text between quotation marks that it cannot close."""
    return '"' + one_line(text, limit=limit).replace('"', "'") + '"'
