"""Chat commands: answered at once, also while a turn runs, without a model (T1c)."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from zoneinfo import ZoneInfo

from gateway.domain.job import JobState, one_line
from gateway.domain.schedule import local_time
from gateway.engine import reminder_commands, texts
from gateway.engine.answers import Asking, Done
from gateway.store.chats import new_session
from gateway.store.database import Transaction
from gateway.store.jobs import list_jobs
from gateway.store.listings import chat_deliveries, load_counts
from gateway.store.stopping import Stopped, stop_chat

_SHOWN_DELIVERIES = 10
_SHOWN_TEXT = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A command as typed: `/cancel 2` is name `cancel`, argument `2`."""

    name: str
    argument: str


def parse_command(text: str) -> Command | None:
    """The command that a text is; None = it is none."""
    head, *rest = text.split(maxsplit=1) or ("",)
    name = head.removeprefix("/").partition("@")[0].lower()
    if not head.startswith("/") or not name.replace("_", "").isalnum():
        return None
    return Command(name=name, argument="".join(rest).strip())


def run_command(tx: Transaction, command: Command, asking: Asking) -> Done:
    """Do a command within the transaction that stores its message and its answer."""
    action = _ACTIONS.get(command.name)
    if action is None:
        name = one_line(command.name, limit=32)
        return Done(text=f"I do not know /{name}. /help lists what I know.")
    return action(tx, command.argument, asking)


def _start(tx: Transaction, argument: str, asking: Asking) -> Done:
    return Done(text=texts.START)


def _help(tx: Transaction, argument: str, asking: Asking) -> Done:
    return Done(text=texts.HELP)


def _stop(tx: Transaction, argument: str, asking: Asking) -> Done:
    stopped = stop_chat(tx, asking.chat, now=asking.now)
    if stopped.is_nothing:
        return Done(text="Nothing was going on.")
    return Done(text=_stopped_text(stopped), abort=stopped.runs)


def _new(tx: Transaction, argument: str, asking: Asking) -> Done:
    stopped = stop_chat(tx, asking.chat, now=asking.now)
    new_session(tx, asking.chat)
    text = "A new conversation begins. Your reminders are kept."
    if not stopped.is_nothing:
        text = f"{_stopped_text(stopped)}\n{text}"
    return Done(text=text, abort=stopped.runs, begins_session=True)


def _stopped_text(stopped: Stopped) -> str:
    text = "Stopped."
    if stopped.queued:
        text += " What was waiting will not be answered."
    if stopped.done_lines:
        text += " Done before that, and kept:\n" + "\n".join(stopped.done_lines)
    return text


def _status(tx: Transaction, argument: str, asking: Asking) -> Done:
    counts = load_counts(tx.connection, now=asking.now)
    jobs = list_jobs(tx.connection, asking.chat)
    active = [job for job in jobs if job.state is JobState.ACTIVE]
    here = local_time(asking.now, ZoneInfo(asking.timezone), now=asking.now)
    lines = [
        f"I am running. Model host: {asking.host}.",
        f"Turns: {counts.running} running, {counts.queued} waiting.",
        f"Your reminders: {len(active)} active.",
        f"Time here: {here} ({asking.timezone}).",
    ]
    if counts.pending:
        lines.append(f"To be sent: {counts.pending}.")
    return Done(text="\n".join(lines))


def _deliveries(tx: Transaction, argument: str, asking: Asking) -> Done:
    notes = chat_deliveries(tx.connection, asking.chat, limit=_SHOWN_DELIVERIES)
    if not notes:
        return Done(text="Nothing was sent here yet.")
    zone = ZoneInfo(asking.timezone)
    lines = []
    for note in notes:
        reason = f" ({texts.reason_text(note.reason)})" if note.reason else ""
        text = one_line(note.text, limit=_SHOWN_TEXT)
        at = local_time(note.created_at, zone, now=asking.now)
        lines.append(f"{at} {note.kind}: {note.state}{reason}: {text}")
    return Done(text="\n".join(lines))


_ACTIONS: Mapping[str, Callable[[Transaction, str, Asking], Done]] = {
    "start": _start,
    "help": _help,
    "new": _new,
    "stop": _stop,
    "status": _status,
    "deliveries": _deliveries,
    "reminders": reminder_commands.show_reminders,
    "cancel": reminder_commands.cancel,
    "snooze": reminder_commands.snooze_reminders,
    "pause": reminder_commands.pause,
    "resume": reminder_commands.resume,
    "allow": reminder_commands.allow,
    "timezone": reminder_commands.timezone,
}

COMMANDS = tuple(_ACTIONS)
