"""What can go wrong between a bot and the Bot API, as scripts for the fake server."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any, Self


class Ending(StrEnum):
    """How a call ends."""

    ANSWER = "answer"
    HOLD = "hold"  # the answer waits until it is released
    RESET = "reset"  # the connection is cut after the request was read
    TRICKLE = "trickle"  # an answer without end, too slow to be of use


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One misbehaviour. `is_stored`: the call took effect all the same."""

    status: int = 200
    description: str = ""
    parameters: Mapping[str, int] = field(default_factory=dict)
    page: str | None = None
    ending: Ending = Ending.ANSWER
    is_stored: bool = False

    @classmethod
    def too_many_requests(cls, retry_after: int) -> Self:
        return cls(
            status=429,
            description=f"Too Many Requests: retry after {retry_after}",
            parameters={"retry_after": retry_after},
        )

    @classmethod
    def blocked(cls) -> Self:
        return cls(status=403, description="Forbidden: bot was blocked by the user")

    @classmethod
    def kicked(cls) -> Self:
        return cls(status=403, description="Forbidden: bot was kicked from the group chat")

    @classmethod
    def deactivated(cls) -> Self:
        return cls(status=403, description="Forbidden: user is deactivated")

    @classmethod
    def chat_not_found(cls) -> Self:
        return cls(status=400, description="Bad Request: chat not found")

    @classmethod
    def migrated(cls, new_chat_id: int) -> Self:
        return cls(
            status=400,
            description="Bad Request: group chat was upgraded to a supergroup chat",
            parameters={"migrate_to_chat_id": new_chat_id},
        )

    @classmethod
    def bad_request(cls, description: str) -> Self:
        return cls(status=400, description=f"Bad Request: {description}")

    @classmethod
    def unauthorized(cls) -> Self:
        return cls(status=401, description="Unauthorized")

    @classmethod
    def conflict(cls) -> Self:
        return cls(
            status=409,
            description="Conflict: terminated by other getUpdates request; "
            "make sure that only one bot instance is running",
        )

    @classmethod
    def server_error(cls) -> Self:
        return cls(status=500, description="Internal Server Error")

    @classmethod
    def web_page(cls, status: int, *, is_stored: bool = False) -> Self:
        """An HTML page instead of the Bot API's JSON: 502 of a proxy, 200 of a captive portal."""
        return cls(status=status, page="<html><h1>nginx</h1></html>", is_stored=is_stored)

    @classmethod
    def slow(cls) -> Self:
        """The call takes effect; the answer waits for `release`."""
        return cls(ending=Ending.HOLD, is_stored=True)

    @classmethod
    def never(cls) -> Self:
        """The call takes no effect and is not answered before `release`."""
        return cls(ending=Ending.HOLD)

    @classmethod
    def trickle(cls) -> Self:
        """Bytes keep coming, so that no read times out, but never the whole answer."""
        return cls(ending=Ending.TRICKLE)

    @classmethod
    def reset(cls, *, is_stored: bool) -> Self:
        return cls(ending=Ending.RESET, is_stored=is_stored)

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> Self:
        return cls(**{**body, "ending": Ending(body.get("ending", Ending.ANSWER))})

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(slots=True, kw_only=True)
class _Script:
    method: str
    chat_id: int | None
    fault: Fault
    remaining: int | None


class FaultScripts:
    """Faults to come, per method and chat; the one scripted first is used up first."""

    def __init__(self) -> None:
        self._scripts: list[_Script] = []

    def add(self, method: str, fault: Fault, *, chat_id: int | None, times: int | None) -> None:
        """Have the next `times` calls (None = all) of `method` go wrong."""
        self._scripts.append(_Script(method=method, chat_id=chat_id, fault=fault, remaining=times))

    def next_for(self, method: str, chat_id: int | None) -> Fault | None:
        for script in self._scripts:
            if script.method != method or script.chat_id not in (None, chat_id):
                continue
            if script.remaining is not None:
                script.remaining -= 1
                if script.remaining == 0:
                    self._scripts.remove(script)
            return script.fault
        return None

    def clear(self) -> None:
        self._scripts.clear()
