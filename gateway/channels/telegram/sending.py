"""Sending one message: in its turn, once, with a verdict on what became of it."""

import logging

from telegram.error import InvalidToken, TelegramError

from gateway.channels.base import ChannelState
from gateway.channels.telegram.client import BotClient
from gateway.channels.telegram.outcome import classify, is_topic_gone
from gateway.channels.telegram.pacing import Pacer
from gateway.channels.telegram.place import Place
from gateway.channels.telegram.polling import REFUSED_BOT, Report
from gateway.domain.chunking import RichText
from gateway.domain.delivery import NotSent, NotSentReason, SendOutcome, Sent

log = logging.getLogger(__name__)


class _TopicGoneError(Exception):
    """Nothing was sent: the topic that it was meant for does not exist any more."""


class Sender:
    """Sends for one bot, at the pace that Telegram asks for."""

    def __init__(self, client: BotClient, *, pacer: Pacer, report: Report) -> None:
        self._client = client
        self._pacer = pacer
        self._report = report

    async def send(self, place: Place, body: RichText) -> SendOutcome:
        """Send `body` and say what became of it.

        A second request is made in one case alone, in which the first has certainly sent nothing:
        the topic is gone, so the text goes to the group with a word on where it belonged.
        """
        try:
            return await self._attempt(place, body)
        except _TopicGoneError:
            log.warning("telegram_topic_gone", extra={"thread_id": place.thread_id})
        body = body.prefixed(f"(for topic {place.thread_id}, which is gone) ")
        return await self._attempt(place.without_topic(), body)

    async def _attempt(self, place: Place, body: RichText) -> SendOutcome:
        away = await self._pacer.wait(place.chat_id)
        if away is not None:
            return NotSent(reason=NotSentReason.RATE_LIMITED, retry_after=away)
        try:
            message_id = await self._client.send(place, body)
        except (TelegramError, TimeoutError) as error:
            if place.thread_id is not None and is_topic_gone(error):
                raise _TopicGoneError from error
            if isinstance(error, InvalidToken):
                self._report(ChannelState.FAILED, REFUSED_BOT)
            return classify(error)
        except Exception as error:
            # The request went out and something came back that the library stumbled over.
            log.exception("telegram_answer_undecodable")
            return classify(error)
        return Sent(external_id=message_id)
