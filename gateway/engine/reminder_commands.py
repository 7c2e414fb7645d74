"""The commands about reminders and their time zone."""

from collections.abc import Callable
from datetime import datetime
from zoneinfo import ZoneInfo

from sqlalchemy import Connection

from gateway.domain.job import TIER_WORDS, Job, JobState, Tier, one_line
from gateway.domain.quick import SNOOZE, read_delay
from gateway.domain.schedule import local_time
from gateway.domain.when import Unclear, Understood
from gateway.domain.zones import find_zones
from gateway.engine import texts
from gateway.engine.answers import Asking, Done, joined
from gateway.store.chats import set_chat_timezone
from gateway.store.database import Transaction
from gateway.store.history import FiredJob, fired_by, job_history, last_fired
from gateway.store.job_changes import Refusal, allow_job, pause_job, resume_job, snooze
from gateway.store.jobs import cancel_job, get_job, list_jobs
from gateway.store.notices import last_reminder

_SHOWN_SLOTS = 10
_SHOWN_TEXT = 200
_SHOWN_ZONES = 10
_MOST_DIGITS = 15
_MOST_NUMBERS = 20


def show_reminders(tx: Transaction, argument: str, asking: Asking) -> Done:
    """`/reminders` lists them, `/reminders 2` tells all about one."""
    if argument:
        return _each(tx, argument, asking, "reminders", _show_one, between="\n\n")
    jobs = list_jobs(tx.connection, asking.chat)
    if not jobs:
        return Done(text="You have no reminders.")
    return Done(text="\n".join(job.listed(now=asking.now) for job in jobs))


def cancel(tx: Transaction, argument: str, asking: Asking) -> Done:
    """`/cancel 2`."""
    named = _named(argument)
    return joined(cancel_one(tx, number, asking) for number in named) if named else _ask("cancel")


def pause(tx: Transaction, argument: str, asking: Asking) -> Done:
    """`/pause 2`."""

    def one(tx: Transaction, number: int, asking: Asking) -> str:
        paused = pause_job(tx, asking.chat, number, now=asking.now)
        if isinstance(paused, Refusal):
            return _refused(paused, number, asking)
        return f"Paused: {paused.line(now=asking.now)}\n/resume {number} lets it go on."

    return _each(tx, argument, asking, "pause", one)


def resume(tx: Transaction, argument: str, asking: Asking) -> Done:
    """`/resume 2`."""

    def one(tx: Transaction, number: int, asking: Asking) -> str:
        resumed = resume_job(tx, asking.chat, number, now=asking.now)
        if isinstance(resumed, Refusal):
            return _refused(resumed, number, asking)
        return f"Goes on: {resumed.line(now=asking.now)}"

    return _each(tx, argument, asking, "resume", one)


def allow(tx: Transaction, argument: str, asking: Asking) -> Done:
    """`/allow 2`."""
    return _each(tx, argument, asking, "allow", allow_one)


def snooze_reminders(tx: Transaction, argument: str, asking: Asking) -> Done:
    """`/snooze 2 10m`, or `/snooze 10m` for the last reminder that went off."""
    words = argument.split()
    count, when = _split_snooze(words, asking)
    if isinstance(when, Unclear):
        return Done(text=f"{when.question} {texts.SNOOZE_FORM}")
    if not count:
        return _snooze_last(tx, argument or SNOOZE, when.at, asking)
    numbers = dict.fromkeys(_number(word) for word in words[:count])
    told = (_snooze_one(tx, number, when.at, asking) for number in numbers if number is not None)
    return Done(text="\n".join(told))


def _split_snooze(words: list[str], asking: Asking) -> tuple[int, Understood | Unclear]:
    """How many words are numbers of reminders, and until when the rest puts them off."""
    zone = ZoneInfo(asking.timezone)

    def read(count: int) -> Understood | Unclear:
        said = " ".join(words[count:]) or SNOOZE
        return read_delay(said, now=asking.said_at, zone=zone)

    most = _leading_numbers(words)
    # The most numbers that leave a time behind them: "3 10 minutes" is reminder 3.
    for count in range(most, -1, -1):
        when = read(count)
        if isinstance(when, Understood):
            return count, when
    return 0, read(min(most, 1))


def timezone(tx: Transaction, argument: str, asking: Asking) -> Done:
    """`/timezone` tells it, `/timezone Europe/Berlin` changes it."""
    if not argument:
        present = _present(asking.timezone, asking)
        return Done(text=f"It is {present}. To change the zone: /timezone America/New_York")
    found = find_zones(argument)
    if not found:
        named = one_line(argument, limit=40)
        return Done(text=f"I do not know the time zone {named}. {texts.ZONE_FORM}")
    if len(found) > 1:
        names = ", ".join(found[:_SHOWN_ZONES])
        return Done(text=f"There are several: {names}. Write the one you mean.")
    name = found[0]
    set_chat_timezone(tx, asking.chat, name)
    text = f"Your time zone is {name} now: it is {_present(name, asking)}."
    return Done(text=text + _kept(tx.connection, name, asking))


def _kept(connection: Connection, name: str, asking: Asking) -> str:
    """That reminders stay where they are."""
    others = sum(job.timezone != name for job in list_jobs(connection, asking.chat))
    if not others:
        return ""
    which = "1 reminder keeps its" if others == 1 else f"{others} reminders keep their"
    return f"\n{which} own time zone, as /reminders shows."


def _present(zone: str, asking: Asking) -> str:
    return f"{local_time(asking.now, ZoneInfo(zone), now=asking.now)} ({zone})"


# ---- one reminder ------------------------------------------------------------------------------


def cancel_one(tx: Transaction, number: int, asking: Asking) -> Done:
    """Cancel a reminder, and what a host is doing for it."""
    cancelled = cancel_job(tx, asking.chat, number, now=asking.now)
    if cancelled is None:
        return Done(text=f"There is no open reminder #{number}. /reminders lists them.")
    return Done(text=cancelled.told(asking.now), abort=cancelled.runs)


def allow_one(tx: Transaction, number: int, asking: Asking) -> str:
    """Give a reminder what it asks for; returns what the person is told, the same of a repeat."""
    allowed = allow_job(tx, asking.chat, number, now=asking.now)
    if allowed is Refusal.NOTHING_ASKED:
        known = get_job(tx.connection, asking.chat, number)
        if known is not None and known.tier is not Tier.READ_ONLY:
            allowed = known
    if isinstance(allowed, Refusal):
        return allowed.told(number)
    return f"Allowed to {TIER_WORDS[allowed.tier]}: {allowed.line(now=asking.now)}"


def snooze_fired(tx: Transaction, fired: FiredJob, until: datetime, asking: Asking) -> str:
    """Put off a slot that went out; returns what the person is told."""
    snoozed = snooze(tx, fired, asking.still_ahead(until), now=asking.now)
    if isinstance(snoozed, Refusal):
        return snoozed.told(fired.job.id)
    return f"Snoozed: {snoozed.job.line(now=asking.now)}"


def ask_which(fired: tuple[FiredJob, ...], command: str, asking: Asking) -> Done:
    """Several are meant, perhaps: their lines, each with what to type for it."""
    lines = [f"{one.job.line(now=asking.now)}\n{command.format(one.job.id)}" for one in fired]
    return Done(text="\n".join(("That message held several reminders. Which one?", *lines)))


def live(fired: tuple[FiredJob, ...]) -> tuple[FiredJob, ...]:
    """Those of a delivery that may be meant: each job once, and of several no cancelled one."""
    latest = tuple({one.job.id: one for one in fired}.values())
    if len(latest) == 1:
        return latest
    return tuple(one for one in latest if one.job.state is not JobState.CANCELLED)


def _snooze_one(tx: Transaction, number: int, until: datetime, asking: Asking) -> str:
    if get_job(tx.connection, asking.chat, number) is None:
        return Refusal.NOT_FOUND.told(number)
    fired = last_fired(tx.connection, asking.chat, number)
    if fired is None:
        return Refusal.NEVER_FIRED.told(number)
    return snooze_fired(tx, fired, until, asking)


def _snooze_last(tx: Transaction, said: str, until: datetime, asking: Asking) -> Done:
    last = last_reminder(tx.connection, asking.chat)
    fired = () if last is None else live(fired_by(tx.connection, asking.chat, last))
    match fired:
        case ():
            return Done(text=f"No reminder went off here lately. {texts.SNOOZE_FORM}")
        case (only,):
            return Done(text=snooze_fired(tx, only, until, asking))
        case _:
            return ask_which(fired, f"/snooze {{}} {said}", asking)


def _show_one(tx: Transaction, number: int, asking: Asking) -> str:
    job = get_job(tx.connection, asking.chat, number)
    if job is None:
        return Refusal.NOT_FOUND.told(number)
    zone = ZoneInfo(job.timezone)
    lines = [job.listed(now=asking.now)]
    if one_line(job.text, limit=_SHOWN_TEXT) != job.text:
        lines.append(f"Its text:\n{job.text}")
    lines.append(_what_comes(job, zone, asking))
    if job.asked_tier is not job.tier:
        lines.append(f"It asks to {TIER_WORDS[job.asked_tier]}; allow it with /allow {number}")
    records = job_history(tx.connection, asking.chat, number, limit=_SHOWN_SLOTS)
    lines.append("Lately, newest first:" if records else "It has not gone off yet.")
    lines += [record.told(zone, now=asking.now) for record in records]
    return "\n".join(lines)


def _what_comes(job: Job, zone: ZoneInfo, asking: Asking) -> str:
    if job.state is JobState.PAUSED:
        return f"It is paused; /resume {job.id} lets it go on."
    if job.next_slot_at is None:
        return "Nothing more of it is to come."
    return f"Next: {local_time(job.next_slot_at, zone, now=asking.now)}"


def _refused(refusal: Refusal, number: int, asking: Asking) -> str:
    """A refusal; one about a time that is over says what time it is."""
    told = refusal.told(number)
    if refusal is not Refusal.PASSED:
        return told
    return f"{told} It is now {_present(asking.timezone, asking)}."


# ---- numbers -----------------------------------------------------------------------------------


def _each(
    tx: Transaction,
    argument: str,
    asking: Asking,
    name: str,
    one: Callable[[Transaction, int, Asking], str],
    *,
    between: str = "\n",
) -> Done:
    """Do something with each reminder that is named: `2`, `#2`, `2, 3`."""
    named = _named(argument)
    if not named:
        return _ask(name)
    return Done(text=between.join(one(tx, number, asking) for number in named))


def _named(argument: str) -> list[int]:
    """The numbers that an argument consists of, each once; none if there is anything else."""
    numbers = [_number(word) for word in argument.replace(",", " ").split()]
    named = [number for number in dict.fromkeys(numbers) if number is not None]
    return [] if None in numbers else named


def _ask(name: str) -> Done:
    return Done(text=f"Say which one: /{name} 2. /reminders shows their numbers.")


def _number(word: str) -> int | None:
    digits = word.strip("#,")
    is_number = digits.isascii() and digits.isdecimal() and len(digits) <= _MOST_DIGITS
    return int(digits) if is_number else None


def _leading_numbers(words: list[str]) -> int:
    count = 0
    while count < min(len(words), _MOST_NUMBERS) and _number(words[count]) is not None:
        count += 1
    return count
