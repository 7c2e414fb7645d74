"""Sending one message: in its turn, once, with a verdict on what became of it."""

import logging
from collections.abc import Awaitable, Callable

from telegram.error import InvalidToken, TelegramError

from gateway.channels.base import ChannelState
from gateway.channels.telegram.client import BotClient
from gateway.channels.telegram.outcome import classify, is_not_editable, is_topic_gone
from gateway.channels.telegram.pacing import Pacer
from gateway.channels.telegram.place import Place
from gateway.channels.telegram.polling import REFUSED_BOT, Report
from gateway.domain.button import Button
from gateway.domain.chunking import RichText
from gateway.domain.delivery import NotSent, NotSentReason, SendOutcome, Sent

log = logging.getLogger(__name__)


class _GoneError(Exception):
    """Nothing was sent: the topic or the message that it was meant for is not there any more."""


class Sender:
    """Sends for one bot, at the pace that Telegram asks for."""

    def __init__(self, client: BotClient, *, pacer: Pacer, report: Report) -> None:
        self._client = client
        self._pacer = pacer
        self._report = report

    async def send(
        self,
        place: Place,
        body: RichText,
        *,
        edits: str | None = None,
        buttons: tuple[Button, ...] = (),
    ) -> SendOutcome:
        """Send `body`, in place of the message `edits` if that can be, and say what became of it.

        A further request is made in two cases alone, in which the one before has certainly done
        nothing: the message cannot be edited, so the text is sent as a new one; the topic is gone,
        so the text goes to the group with a word on where it belonged.
        """
        # An id of another shape was issued by another channel: there is nothing to edit here.
        if edits is not None and edits.isdecimal():
            message_id = int(edits)
            try:
                return await self._attempt(
                    place, lambda: self._client.edit(place, message_id, body, buttons)
                )
            except _GoneError:
                log.info("telegram_message_not_editable", extra={"external_id": edits})
        try:
            return await self._attempt(place, lambda: self._client.send(place, body, buttons))
        except _GoneError:
            log.warning("telegram_topic_gone", extra={"thread_id": place.thread_id})
        group = place.without_topic()
        moved = body.prefixed(f"(for topic {place.thread_id}, which is gone) ")
        return await self._attempt(group, lambda: self._client.send(group, moved, buttons))

    async def _attempt(self, place: Place, request: Callable[[], Awaitable[str]]) -> SendOutcome:
        away = await self._pacer.wait(place.chat_id)
        if away is not None:
            return NotSent(reason=NotSentReason.RATE_LIMITED, retry_after=away)
        try:
            message_id = await request()
        except (TelegramError, TimeoutError) as error:
            if is_not_editable(error) or (place.thread_id is not None and is_topic_gone(error)):
                raise _GoneError from error
            if isinstance(error, InvalidToken):
                self._report(ChannelState.FAILED, REFUSED_BOT)
            return classify(error)
        except Exception as error:
            # The request went out and something came back that the library stumbled over.
            log.exception("telegram_answer_undecodable")
            return classify(error)
        return Sent(external_id=message_id)
