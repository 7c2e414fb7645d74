"""Buttons under a message: what a press asks for, and what of."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from gateway.domain.job import LARGEST_ID


class ButtonAction(StrEnum):
    """What a press asks for."""

    DONE = "done"
    SNOOZE_10_MINUTES = "snooze10"
    SNOOZE_1_HOUR = "snooze60"
    TOMORROW = "tomorrow"
    ALLOW = "allow"


_LABELS: Final = {
    ButtonAction.DONE: "Done",
    ButtonAction.SNOOZE_10_MINUTES: "Snooze 10 min",
    ButtonAction.SNOOZE_1_HOUR: "Snooze 1 h",
    ButtonAction.TOMORROW: "Tomorrow",
    ButtonAction.ALLOW: "Allow",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Button:
    """One button. `subject` is the job to allow, else the delivery that the button is under."""

    action: ButtonAction
    subject: int

    @property
    def label(self) -> str:
        """What stands on it."""
        return _LABELS[self.action]

    @property
    def data(self) -> str:
        """What the platform hands back at a press; at most 64 bytes, Telegram's limit."""
        return f"{self.action}:{self.subject}"

    @classmethod
    def parse(cls, data: str) -> "Button | None":
        """Read what a press brought back; None = it is none of ours."""
        action, _, subject = data.partition(":")
        if action not in set(ButtonAction) or not (subject.isascii() and subject.isdecimal()):
            return None
        number = int(subject) if len(subject) < 20 else LARGEST_ID + 1
        return cls(action=ButtonAction(action), subject=number) if number <= LARGEST_ID else None


def reminder_buttons(delivery: int) -> tuple[Button, ...]:
    """The row under a single reminder."""
    actions = tuple(action for action in ButtonAction if action is not ButtonAction.ALLOW)
    return tuple(Button(action=action, subject=delivery) for action in actions)
