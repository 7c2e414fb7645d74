"""What a host is told with each turn: the time, why it runs, what went out, and the words."""

from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from gateway.domain.delivery import DeliveryKind
from gateway.domain.job import MAX_TEXT_BYTES, Job, Tier, one_line
from gateway.domain.message import Message
from gateway.domain.reminder import LATE_AFTER
from gateway.domain.schedule import local_time
from gateway.domain.schedule_forms import describe
from gateway.domain.silence import SENTINEL
from gateway.domain.turn import Trigger
from gateway.hosts.base import ContextMessage, Prompt, PromptContext, RecentSight
from gateway.store.sights import Sight
from gateway.store.turns import Claim

_NAME = 64
_QUOTE = 500
_RECENT_TEXT = 300

_MAY: dict[Tier, str] = {
    Tier.READ_ONLY: "look things up, and change nothing",
    Tier.SUGGEST: "look things up and write in your workspace, and change nothing else",
    Tier.MUTATE: "use all your tools",
}

_CONTRACT = (
    "[Answer with the text that is to be sent to the person, and with nothing else. If something "
    "fails, say plainly what. Set or change no reminders. Never answer with silence.]"
)


def build_prompt(claim: Claim, *, timezone: str, now: datetime, silence: timedelta) -> Prompt:
    """The prompt of a claimed turn; a check-in comes after so much `silence`.

    Names, quotes, jobs and what was sent before are data: one line each, without control
    characters, fenced with where they come from.
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
    match claim.trigger:
        case Trigger.MESSAGE:
            body = ["", _words(claim)]
        case Trigger.JOB:
            body = _job_lines(claim, zone, now)
        case Trigger.HEARTBEAT:
            body = _check_in_lines(silence)
    return Prompt(
        text="\n".join([*head, *body]),
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
            recent=tuple(
                RecentSight(text=sight.text, job_ids=sight.job_ids) for sight in claim.recent
            ),
        ),
    )


def _job_lines(claim: Claim, zone: ZoneInfo, now: datetime) -> list[str]:
    """A due job: that nobody wrote it now, whose wish it was, and what is to be done."""
    name = "a reminder" if claim.job is None else f"reminder #{claim.job.id}"
    lines = [f"[Automatic turn: {name} is due. This is not a message of the person.]"]
    if claim.slot_at is not None:
        late = ", so it is late" if now - claim.slot_at > LATE_AFTER else ""
        lines.append(f"[Planned for {local_time(claim.slot_at, zone, now=now)}{late}.]")
    if claim.job is not None:
        lines += _wish_lines(claim.job, zone, now)
    lines += [
        f"[Its tier is {claim.tier}: you may {_MAY[claim.tier]}.]",
        _CONTRACT,
        "",
        f"Task of {name}: {_fenced(claim.text or '', limit=MAX_TEXT_BYTES)}",
    ]
    return lines


def _wish_lines(job: Job, zone: ZoneInfo, now: datetime) -> list[str]:
    lines = []
    rhythm = describe(job.schedule, zone, now=now)
    if rhythm:
        lines.append(f"[It repeats: {rhythm}.]")
    if job.origin is not None:
        asked_at = local_time(job.origin.sent_at, zone, now=now)
        words = _fenced(job.origin.text, limit=_QUOTE)
        lines.append(f"[The person asked for it {asked_at}: {words}]")
    return lines


def _check_in_lines(silence: timedelta) -> list[str]:
    minutes = round(silence.total_seconds() / 60)
    return [
        (
            f"[Automatic check-in: nobody has written for {minutes} minutes or more. "
            "This is not a message of the person.]"
        ),
        "",
        (
            "Look at what is open in this conversation. Write to the person only if that is worth "
            f"their while now. Else answer exactly {SENTINEL}, and nothing besides."
        ),
    ]


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
    return "\n".join(parts)


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
