"""The Bot API calls that the channel makes, through python-telegram-bot."""

import asyncio
import json
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import httpx
from telegram import (
    Bot,
    InlineKeyboardButton,
    InlineKeyboardMarkup,
    LinkPreviewOptions,
    MessageEntity,
    Update,
)
from telegram.constants import ChatAction
from telegram.error import BadRequest, TelegramError
from telegram.request import HTTPXRequest

from gateway.channels.telegram.answers import read_answer, without_undecodable
from gateway.channels.telegram.outcome import describe, is_unchanged
from gateway.channels.telegram.pacing import Timing
from gateway.channels.telegram.place import Place
from gateway.domain.button import Button
from gateway.domain.chunking import Entity, RichText

log = logging.getLogger(__name__)

ALLOWED_UPDATES = ("message", "edited_message", "callback_query", "my_chat_member")

# Two labels of a reminder are readable side by side on a phone; four are cut off.
_BUTTONS_A_ROW = 2
_NO_PREVIEW = LinkPreviewOptions(is_disabled=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class BotIdentity:
    """Who the bot is: what others mention and reply to."""

    id: int
    username: str


class _Request(HTTPXRequest):
    """Sorts out the answers that the library would log in full, or take for something else."""

    async def do_request(self, *args: Any, **kwargs: Any) -> tuple[int, bytes]:
        status, payload = await super().do_request(*args, **kwargs)
        read_answer(status, payload)
        return status, payload


class _PollRequest(HTTPXRequest):
    """The same for getUpdates, where one update that cannot be decoded must not stop the rest."""

    async def do_request(self, *args: Any, **kwargs: Any) -> tuple[int, bytes]:
        status, payload = await super().do_request(*args, **kwargs)
        repaired = without_undecodable(read_answer(status, payload))
        return status, payload if repaired is None else json.dumps(repaired).encode()


class BotClient:
    """One bot's calls. Errors come as the library's; `outcome` tells what they mean."""

    def __init__(self, token: str, *, base_url: str, timing: Timing) -> None:
        self._timing = timing
        # Loading the certificates is the dearest part of a client: once for both.
        certificates = httpx.create_ssl_context()
        self._sends = _Request(
            read_timeout=timing.send_timeout,
            write_timeout=timing.send_timeout,
            connect_timeout=timing.connect_timeout,
            httpx_kwargs={"verify": certificates},
        )
        self._polls = _PollRequest(
            connection_pool_size=2,
            read_timeout=timing.poll_slack,  # the library adds the poll's own timeout
            write_timeout=timing.poll_slack,
            connect_timeout=timing.connect_timeout,
            httpx_kwargs={"verify": certificates},
        )
        self._bot = Bot(
            token,
            base_url=f"{base_url.rstrip('/')}/bot",
            request=self._sends,
            get_updates_request=self._polls,
        )

    async def identify(self) -> BotIdentity:
        """Ask who the bot is; the first proof that token and server are right."""
        async with asyncio.timeout(self._timing.poll_deadline):
            me = await self._bot.get_me(read_timeout=self._timing.poll_slack)
        return BotIdentity(id=me.id, username=me.username or "")

    async def updates(self, *, offset: int, is_eager: bool) -> Sequence[Update]:
        """Confirm every update below `offset` and return those from it on.

        Waits for news unless `is_eager`. Raises TimeoutError past the poll deadline.
        """
        async with asyncio.timeout(self._timing.poll_deadline):
            return await self._bot.get_updates(
                offset=offset or None,
                timeout=0 if is_eager else self._timing.poll_timeout,
                allowed_updates=ALLOWED_UPDATES,
            )

    async def reconnect_polling(self) -> None:
        """Throw the polling connections away: what hangs once hangs on."""
        async with asyncio.timeout(self._timing.side_call_timeout):
            await self._polls.shutdown()
        await self._polls.initialize()

    async def delete_webhook(self) -> None:
        """Turn the webhook off, keeping what waits for it."""
        async with asyncio.timeout(self._timing.poll_deadline):
            await self._bot.delete_webhook(drop_pending_updates=False)

    async def send(self, place: Place, body: RichText, buttons: tuple[Button, ...]) -> str:
        """Send one message and return its id. Raises TimeoutError past the send deadline."""
        async with asyncio.timeout(self._timing.send_deadline):
            message = await self._bot.send_message(
                place.chat_id,
                body.text,
                entities=[_message_entity(entity) for entity in body.entities],
                message_thread_id=place.thread_id,
                link_preview_options=_NO_PREVIEW,
                reply_markup=_keyboard(buttons),
            )
        return str(message.message_id)

    async def edit(
        self, place: Place, message_id: int, body: RichText, buttons: tuple[Button, ...]
    ) -> str:
        """Have a message of the bot's say `body` under these buttons alone; return its id.

        Succeeds when it says that already. Raises TimeoutError past the send deadline.
        """
        try:
            async with asyncio.timeout(self._timing.send_deadline):
                await self._bot.edit_message_text(
                    body.text,
                    place.chat_id,
                    message_id,
                    entities=[_message_entity(entity) for entity in body.entities],
                    link_preview_options=_NO_PREVIEW,
                    reply_markup=_keyboard(buttons),
                )
        except BadRequest as error:
            if not is_unchanged(error):
                raise
        return str(message_id)

    async def show_typing(self, place: Place) -> None:
        """Show the typing indicator; a failure is logged at DEBUG only."""
        try:
            async with asyncio.timeout(self._timing.side_call_timeout):
                await self._bot.send_chat_action(
                    place.chat_id, ChatAction.TYPING, message_thread_id=place.thread_id
                )
        except (TelegramError, TimeoutError) as error:
            log.debug("telegram_typing_failed", extra={"reason": describe(error)})

    async def answer_button(self, callback_id: str) -> None:
        """Stop the spinner on a pressed button; a failure is logged at DEBUG only."""
        try:
            async with asyncio.timeout(self._timing.side_call_timeout):
                await self._bot.answer_callback_query(callback_id)
        except (TelegramError, TimeoutError) as error:
            log.debug("telegram_button_not_answered", extra={"reason": describe(error)})

    async def close(self) -> None:
        """Give back all connections."""
        await self._polls.shutdown()
        await self._sends.shutdown()


def _keyboard(buttons: tuple[Button, ...]) -> InlineKeyboardMarkup | None:
    if not buttons:
        return None
    keys = [InlineKeyboardButton(one.label, callback_data=one.data) for one in buttons]
    starts = range(0, len(keys), _BUTTONS_A_ROW)
    return InlineKeyboardMarkup([keys[start : start + _BUTTONS_A_ROW] for start in starts])


def _message_entity(entity: Entity) -> MessageEntity:
    return MessageEntity(
        type=entity.kind,
        offset=entity.offset,
        length=entity.length,
        url=entity.url,
        language=entity.language,
    )
