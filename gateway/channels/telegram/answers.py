"""What the Bot API answered: the answers that python-telegram-bot cannot tell apart."""

import json
import logging
from datetime import timedelta

from telegram import Update
from telegram.error import TelegramError

log = logging.getLogger(__name__)

# 400, 401, 403, 404 and 409 become errors of python-telegram-bot's own.
_LEFT_TO_LIBRARY = frozenset({400, 401, 403, 404, 409})

Answer = dict[str, object]


class RateLimitedError(TelegramError):
    """429. The library's own error warns on construction and needs a positive wait."""

    def __init__(self, retry_after: timedelta | None) -> None:
        super().__init__("Too many requests")
        self.retry_after = retry_after


class UnreadableAnswerError(TelegramError):
    """An answer that says nothing about the request: a 5xx, or not the Bot API's JSON at all."""

    def __init__(self, status: int) -> None:
        super().__init__(f"HTTP {status} without a usable answer")
        self.status = status


def read_answer(status: int, payload: bytes) -> Answer:
    """Parse an answer that python-telegram-bot can deal with.

    Raises RateLimitedError or UnreadableAnswerError for the others.
    """
    answer = _json_object(payload)
    retry_after = _retry_after(answer)
    if status == 429 or retry_after is not None:
        raise RateLimitedError(retry_after)
    is_success = 200 <= status < 300 and "result" in answer
    is_refusal = status in _LEFT_TO_LIBRARY and answer.get("ok") is False
    if not is_success and not is_refusal:
        raise UnreadableAnswerError(status)
    return answer


def without_undecodable(answer: Answer) -> Answer | None:
    """The answer with each update that cannot be decoded cut down to its id; None if all can.

    The library fails on the whole batch for one such update, and would fetch it again for ever.
    """
    updates = answer.get("result")
    if not isinstance(updates, list):
        return None
    kept = [update if _is_decodable(update) else _bare(update) for update in updates]
    if kept == updates:
        return None
    return {**answer, "result": [update for update in kept if update is not None]}


def _json_object(payload: bytes) -> Answer:
    try:
        answer = json.loads(payload)
    except ValueError:
        return {}
    return answer if isinstance(answer, dict) else {}


def _retry_after(answer: Answer) -> timedelta | None:
    match answer.get("parameters"):
        case {"retry_after": int(seconds) | float(seconds)}:
            return timedelta(seconds=seconds)
        case _:
            return None


def _is_decodable(update: dict[str, object]) -> bool:
    try:
        Update.de_json(update, None)
    except Exception:
        log.exception("telegram_update_undecodable", extra={"update_id": _id_of(update)})
        return False
    return True


def _bare(update: object) -> Answer | None:
    update_id = _id_of(update)
    return None if update_id is None else {"update_id": update_id}


def _id_of(update: object) -> int | None:
    match update:
        case {"update_id": int(update_id)}:
            return update_id
        case _:
            return None
