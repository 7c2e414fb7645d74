"""Tells the operator, once an episode, what only they can mend."""

import asyncio
import logging
from collections import defaultdict
from enum import StrEnum

from gateway.domain.delivery import DeliveryKind
from gateway.domain.message import ChatKey
from gateway.engine.clock import Clock
from gateway.store.chats import begin_episode, end_episodes, ensure_chat, open_episode_names
from gateway.store.database import Database, Transaction
from gateway.store.deliveries import Cut, store_text

log = logging.getLogger(__name__)


class Episode(StrEnum):
    """The troubles that are told."""

    MODEL_REFUSED = "model_refused"
    MODEL_FAILING = "model_failing"
    HOST_BROKEN = "host_broken"
    TELEGRAM_CONFLICT = "telegram_conflict"
    LOOP = "loop"
    DATABASE = "database"


class OwnerNotices:
    """Notices to GATEWAY_OWNER; without one, or without a way to it, they are logged only."""

    def __init__(
        self, database: Database, clock: Clock, *, owner: ChatKey | None, cut: Cut | None
    ) -> None:
        self._database = database
        self._clock = clock
        self._owner = owner
        self._cut = cut
        self._open: frozenset[str] = frozenset()
        # Whoever finds an episode's lock taken waits until it is stored, or was not.
        self._changing: defaultdict[Episode, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def load(self) -> None:
        """Remember which troubles the operator was told of before the last stop."""
        self._open = await self._database.read(open_episode_names)

    async def tell(self, episode: Episode, text: str) -> None:
        """Tell it, unless it was told and is not over yet."""
        async with self._changing[episode]:
            if episode in self._open:
                return
            log.warning("operator_needed", extra={"episode": episode, "text": text})
            await self._database.insist(self._store, episode, text)
            self._open |= {episode}

    def is_open(self, episode: Episode) -> bool:
        """Whether this trouble goes on."""
        return episode in self._open

    async def over(self, *episodes: Episode) -> None:
        """These troubles are over; the next ones are told again."""
        for episode in episodes:
            async with self._changing[episode]:
                if episode in self._open:
                    await self._database.insist(end_episodes, (episode,))
                    self._open -= {episode}

    def _store(self, tx: Transaction, episode: Episode, text: str) -> None:
        now = self._clock.now()
        if not begin_episode(tx, episode, now=now) or self._owner is None or self._cut is None:
            return
        chat = ensure_chat(tx, self._owner, is_group=False, now=now)
        store_text(tx, chat, DeliveryKind.NOTICE, text, self._cut, now=now)
