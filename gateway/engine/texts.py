"""What the gateway itself says to people, in one place: short, plain, no blame."""

from gateway.domain.turn import TurnId
from gateway.hosts.base import FailureKind

HELP = """I answer messages and keep reminders. For example:
• remind me in 20 minutes to call mum
• remind me every weekday at 8 to take my pills
• move 2 to 17:30, snooze that 10 min, cancel 2
• what are my reminders?

Commands:
/reminders - what I will remind you of
/reminders 2 - all about reminder 2
/cancel 2 - cancel reminder 2
/snooze 2 10m - remind you again in 10 minutes
/pause 2 - keep it quiet
/resume 2 - let it go on
/allow 2 - let the model do what reminder 2 asks for
/timezone Berlin - set your time zone
/stop - stop what I am doing now
/new - begin a new conversation (reminders stay)
/deliveries - what was sent lately, and what was not
/status - how I am
/help - this text"""

START = f"Hello! {HELP}"

SLOW_START = "I am busy with other conversations. Your message is kept, and I answer it next."

LOST_CONTEXT = (
    "I could not pick up our earlier conversation, so I begin a new one. Your reminders are kept."
)

ONLY_TEXT = "I can read text only, so far: no photos, voice messages or files. Please write it."

PAIRING = (
    "Your pairing code is {code}. It is valid for one hour. "
    "Give it to the operator of this bot, who lets you in with: gateway pair {code}"
)

NOT_TAKEN = "Something went wrong as that message came in, so I cannot answer it. Please try again."

SNOOZE_FORM = "Write for example /snooze 2 10m or /snooze 2 tomorrow at 9."

ZONE_FORM = (
    "Write it like Europe/Berlin or America/New_York, or the large city that it is named after."
)

STALE_BUTTON = "That button does nothing any more."

LOOP_STOPPED = (
    "Somebody answers me faster than people do, again and again, so I stopped answering there: {}."
)

MODEL_REFUSED = (
    "The model's provider refuses the key or the account. Check MODEL_API_KEY, MODEL_NAME and "
    "MODEL_BASE_URL, then restart the gateway."
)

MODEL_FAILING = (
    "A request to the model failed; perhaps its server is not running, or does not know the model. "
    "`gateway turns` shows what it answered. This is told once until a request succeeds again."
)

HOST_BROKEN = "The model host does not start. `gateway status` and the log say why."

_REASONS = {
    "blank": "nothing to show",
    "cancelled": "you cancelled it",
    "channel_down": "no connection",
    "chat_unreachable": "I was blocked here",
    "damaged": "its stored form is damaged",
    "expired": "given up after trying for long",
    "interrupted": "I was cut off",
    "missed": "its time had passed",
    "nothing": "there was nothing to say",
    "not_allowed": "this chat is not allowed",
    "person_wrote": "you wrote first",
    "rate_limited": "too much at once",
    "refused_for_now": "not taken, tried again",
    "stopped": "you stopped it",
    "too_old": "it came too late",
}

_SENTENCES: dict[FailureKind, str] = {
    FailureKind.EMPTY: "No answer came back this time. Please try again, perhaps in other words.",
    FailureKind.AUTH: "I cannot answer right now; my operator has to mend something first.",
    FailureKind.CONTEXT: (
        "This conversation had grown too long for me, so a new one begins. Please send that again."
    ),
    FailureKind.SILENT: "I heard nothing for too long, so I stopped. Please try again.",
    FailureKind.TIMED_OUT: "That took too long, so I stopped. Please try again.",
}
_OTHER = "Something went wrong while I worked on that. Please try again."


def reason_text(reason: str) -> str:
    """Why something was not sent, or not whole, in plain words."""
    return _REASONS.get(reason, reason.replace("_", " "))


def failure_text(kind: FailureKind, turn: TurnId) -> str:
    """One neutral sentence with a reference for the operator; never what a provider said."""
    return f"{_SENTENCES.get(kind, _OTHER)} (ref {turn})"


def interrupted_text(turn: TurnId) -> str:
    """A request was cut off twice and is not tried again."""
    return f"I was cut off twice while I worked on your message. Please send it again. (ref {turn})"


def not_ready_text(turn: TurnId) -> str:
    """The model's process did not start."""
    return f"I could not start to work on that. Please try again in a minute. (ref {turn})"
