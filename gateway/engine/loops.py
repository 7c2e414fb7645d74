"""The breaker for loops: a sender who answers us faster than people do, over and over."""

from collections import OrderedDict, deque
from datetime import datetime, timedelta

from gateway.domain.message import ChatKey

_WINDOW = timedelta(seconds=90)
_MOST = 6
_AT_ONCE = timedelta(seconds=2)
_WHOLE_SECOND = timedelta(seconds=1)
_REMEMBERED = 1000

Sender = tuple[ChatKey, str]
"""Who writes, and where."""


def is_at_once(sent_at: datetime, ours: datetime | None) -> bool:
    """Whether a message sent then follows our last one (None = there was none) at once."""
    # Telegram cuts its times to whole seconds, so an answer may look older than its question.
    return ours is not None and -_WHOLE_SECOND < sent_at - ours <= _AT_ONCE


class LoopBreaker:
    """Counts what was stored. Forgets a loop once its sender was quiet for 90 s."""

    def __init__(self) -> None:
        self._quick: OrderedDict[Sender, deque[datetime]] = OrderedDict()
        self._looping: dict[Sender, datetime] = {}

    def is_one_too_many(self, sender: Sender, *, now: datetime) -> bool:
        """Whether the sender loops if one more message follows ours at once."""
        times = self._quick.get(sender)
        return times is not None and len(times) == _MOST and now - times[0] <= _WINDOW

    def note(self, sender: Sender, *, at_once: bool, is_loop: bool, now: datetime) -> None:
        """A message of the sender was stored; `is_loop` = it is not answered for its haste."""
        if not at_once:
            self._quick.pop(sender, None)
            return
        self._quick.setdefault(sender, deque(maxlen=_MOST)).append(now)
        self._quick.move_to_end(sender)
        while len(self._quick) > _REMEMBERED:
            self._quick.popitem(last=False)
        if is_loop:
            self._looping[sender] = now

    def is_any_looping(self, *, now: datetime) -> bool:
        """Whether a loop was seen within the last 90 s."""
        self._looping = {
            sender: last for sender, last in self._looping.items() if now - last <= _WINDOW
        }
        return bool(self._looping)
