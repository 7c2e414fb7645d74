"""The loop that receives: each update is stored before Telegram is told that it arrived."""

import asyncio
import logging
import random
from collections.abc import Callable
from datetime import UTC, datetime

from telegram import Update
from telegram.error import Conflict, InvalidToken, TelegramError, TimedOut

from gateway.channels.base import ChannelState, Receive
from gateway.channels.telegram.answers import RateLimitedError
from gateway.channels.telegram.client import BotClient, BotIdentity
from gateway.channels.telegram.outcome import describe
from gateway.channels.telegram.pacing import Timing
from gateway.channels.telegram.parse import parse_update
from gateway.domain.message import Inbound, MessageKind, NewMessage
from gateway.errors import ChannelSetupError, StoreError

log = logging.getLogger(__name__)

# However long the server asks for; an absurd number must not end the reception.
_LONGEST_PAUSE = 600.0

# How often an update is tried whose reception fails in a way that nobody foresaw.
_MAX_TRIES = 3

REFUSED_BOT = (
    "Telegram does not accept the bot token. Get the current one from @BotFather and put it into "
    "the settings."
)
CONFLICT = "another program receives with the same bot token"

Report = Callable[[ChannelState, str | None], None]
"""Told after each poll where the channel stands."""


class _NotReceivedError(Exception):
    """An update could not be handed over for an unforeseen reason; it will be fetched again."""


class Poller:
    """Fetches updates one batch after the other; the next fetch confirms what was stored.

    The library's own Updater is not used: one update that it cannot decode makes it fetch the
    batch again without end or pause, and it tells nobody about timeouts.
    """

    def __init__(self, client: BotClient, *, timing: Timing, report: Report) -> None:
        self._client = client
        self._timing = timing
        self._report = report
        self._offset = 0
        self._failures = 0
        self._tries = (0, 0)  # of which update, how many
        self._is_eager = True
        self._side_calls: set[asyncio.Task[None]] = set()

    async def run(self, receive: Receive) -> None:
        """Receive until cancelled. Raises ChannelSetupError if the token is refused."""
        self._is_eager = True
        try:
            await self._receive_for_ever(receive)
        finally:
            for task in self._side_calls:
                task.cancel()

    async def _receive_for_ever(self, receive: Receive) -> None:
        bot: BotIdentity | None = None
        while True:
            try:
                if bot is None:
                    bot = await self._client.identify()
                await self._receive_batch(bot, receive)
            except InvalidToken as error:
                if bot is None:
                    raise ChannelSetupError(REFUSED_BOT) from None
                bot = None  # asked once more before the channel gives up
                await self._wait_after(error)
            except Exception as error:  # noqa: BLE001 - logged below; receiving goes on
                await self._wait_after(error)

    async def _receive_batch(self, bot: BotIdentity, receive: Receive) -> None:
        updates = await self._client.updates(offset=self._offset, is_eager=self._is_eager)
        self._report(ChannelState.CONNECTED, None)
        for update in updates:
            await self._take(update, bot, receive)
            self._offset = update.update_id + 1
        self._is_eager = False
        if self._failures:
            log.info("telegram_receiving_again", extra={"failed_polls": self._failures})
        self._failures = 0

    async def _take(self, update: Update, bot: BotIdentity, receive: Receive) -> None:
        try:
            inbound = parse_update(update, bot, received_at=datetime.now(UTC))
        except Exception:
            log.exception("telegram_update_skipped", extra={"update_id": update.update_id})
            return
        if inbound is None:
            return
        try:
            is_admitted = await receive(inbound)
        except StoreError:
            raise
        except Exception as error:
            tries = self._count_try(update.update_id)
            log.exception(
                "telegram_update_not_received",
                extra={"update_id": update.update_id, "tries": tries},
            )
            if tries < _MAX_TRIES:
                raise _NotReceivedError from error
            return
        if is_admitted:
            self._acknowledge_button(inbound)

    def _count_try(self, update_id: int) -> int:
        last_id, tries = self._tries
        self._tries = (update_id, tries + 1 if last_id == update_id else 1)
        return self._tries[1]

    def _acknowledge_button(self, inbound: Inbound) -> None:
        match inbound:
            case NewMessage(kind=MessageKind.BUTTON):
                task = asyncio.create_task(
                    self._client.answer_button(inbound.external_id), name="telegram-button"
                )
                self._side_calls.add(task)
                task.add_done_callback(self._side_calls.discard)
            case _:
                pass

    async def _wait_after(self, error: Exception) -> None:
        """Say what failed, mend what can be mended, and back off."""
        self._failures += 1
        self._is_eager = not isinstance(error, Conflict)
        match error:
            case StoreError() | _NotReceivedError():
                self._log_failure("telegram_update_kept_unconfirmed", describe(error))
            case Conflict() if "webhook" in error.message.lower():
                self._log_failure("telegram_webhook_found", "a webhook was set; it is taken away")
                await self._take_webhook_away()
            case Conflict():
                self._report(ChannelState.CONFLICT, CONFLICT)
                self._log_failure("telegram_conflict", CONFLICT)
            case TelegramError() | TimeoutError():
                reason = f"Telegram cannot be reached: {describe(error)}"
                self._report(ChannelState.DISCONNECTED, reason)
                self._log_failure("telegram_unreachable", describe(error))
            case _:
                reason = f"receiving failed: {describe(error)}"
                self._report(ChannelState.DISCONNECTED, reason)
                self._log_failure("telegram_poll_failed", reason, defect=error)
        if isinstance(error, TimedOut | TimeoutError):
            await self._reconnect()
        await asyncio.sleep(self._pause(error))

    def _pause(self, error: Exception) -> float:
        if isinstance(error, RateLimitedError) and error.retry_after is not None:
            return min(error.retry_after.total_seconds(), _LONGEST_PAUSE)
        doubled = self._timing.first_wait * 2.0 ** min(self._failures - 1, 16)
        # Jitter, so that two pollers of one token do not keep in step.
        return min(self._timing.longest_wait, doubled) * random.uniform(0.8, 1.0)

    def _log_failure(self, event: str, reason: str, *, defect: Exception | None = None) -> None:
        """Log the first, second, fourth, eighth ... failure in a row."""
        if self._failures & (self._failures - 1) == 0:
            extra = {"reason": reason, "failed_polls": self._failures}
            log.warning(event, extra=extra, exc_info=defect)

    async def _take_webhook_away(self) -> None:
        try:
            await self._client.delete_webhook()
        except (TelegramError, TimeoutError) as error:
            log.debug("telegram_webhook_stays", extra={"reason": describe(error)})

    async def _reconnect(self) -> None:
        try:
            await self._client.reconnect_polling()
        except Exception:
            # Closing what is broken may fail in many ways, none of which matters.
            log.debug("telegram_connections_not_closed", exc_info=True)
