"""Those who are not let in: they get nothing at all, or a pairing code where that is on."""

import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import datetime, timedelta

from gateway.domain.job import one_line
from gateway.domain.message import ChatKey, NewMessage
from gateway.engine import texts
from gateway.engine.access import Access
from gateway.engine.background import Background
from gateway.engine.clock import Clock
from gateway.store.chats import request_pairing
from gateway.store.database import Database

log = logging.getLogger(__name__)

_LOG_EVERY = timedelta(hours=1)
_REMEMBERED = 1000


class Strangers:
    """Refuses. The operator gets one line an hour of each."""

    def __init__(
        self,
        database: Database,
        access: Access,
        clock: Clock,
        background: Background,
        say: Callable[[ChatKey, str], Awaitable[None]],
    ) -> None:
        self._database = database
        self._access = access
        self._clock = clock
        self._background = background
        self._say = say
        self._logged: OrderedDict[str, datetime] = OrderedDict()

    async def refuse(self, message: NewMessage) -> None:
        """Store nothing of the message."""
        now = self._clock.now()
        key = f"{message.chat}/{message.sender_id}"
        last = self._logged.get(key)
        if last is None or now - last >= _LOG_EVERY:
            self._logged[key] = now
            self._logged.move_to_end(key)
            while len(self._logged) > _REMEMBERED:
                self._logged.popitem(last=False)
            log.warning("stranger_refused", extra={"sender": message.sender_id})
        if message.chat.channel in self._access.pairing and not message.is_group:
            await self._offer_pairing(message, now=now)

    async def _offer_pairing(self, message: NewMessage, *, now: datetime) -> None:
        code = await self._database.write(
            request_pairing,
            message.chat.channel,
            message.sender_id,
            one_line(message.sender_name, limit=64),
            now=now,
        )
        if code is not None:
            chat = replace(message.chat, address=message.address)
            text = texts.PAIRING.format(code=code)
            self._background.start(f"say:{chat}", lambda: self._say(chat, text))
