"""What a gateway does now and then: copy, clean up, and look whether its files are still there."""

import asyncio
import logging
from datetime import UTC, datetime, timedelta

from gateway.engine.alarm import AlarmClock
from gateway.engine.owner import Episode
from gateway.errors import CorruptDatabaseError, GatewayError
from gateway.front import Gateway, layout_of
from gateway.hosts.directory import forget_old_sessions
from gateway.store.opening import copy_database, list_copies
from gateway.store.upkeep import purge

log = logging.getLogger(__name__)

_PERIOD = timedelta(hours=1)
_LOOK_PERIOD = timedelta(minutes=1)
_COPY_AGE = timedelta(days=1)


class Chores:
    """The chores of one gateway."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self._layout = layout_of(gateway.settings)
        self._inode = self._layout.database.stat().st_ino

    def start(self, alarm: AlarmClock) -> None:
        """Have the alarm clock call for each."""
        alarm.every(_PERIOD, self.copy, "copy")
        alarm.every(_PERIOD, self.clean, "clean")
        alarm.every(_LOOK_PERIOD, self.look, "look")

    async def copy(self) -> None:
        """Copy the database when the newest copy is a day old."""
        newest = next(iter(list_copies(self._layout)), None)
        if newest is not None:
            made = datetime.fromtimestamp(newest.stat().st_mtime, UTC)
            if datetime.now(UTC) - made < _COPY_AGE:
                return
        try:
            path = await asyncio.to_thread(copy_database, self._layout)
        except GatewayError as error:
            log.exception("copy_failed")
            await self._gateway.owner.tell(Episode.DATABASE, f"The daily copy failed: {error}")
            return
        await self._gateway.owner.over(Episode.DATABASE)
        log.info("database_copied", extra={"path": str(path)})

    async def clean(self) -> None:
        """Take away what ended before the retention: rows, and conversations put aside."""
        kept = timedelta(days=self._gateway.settings.gateway_retention_days)
        before = self._gateway.clock.now() - kept
        while True:
            if not await self._gateway.database.insist(purge, before=before):
                break
        gone = await asyncio.to_thread(
            forget_old_sessions, self._gateway.places.sessions, before=before
        )
        if gone:
            log.info("old_sessions_removed", extra={"count": gone})

    async def look(self) -> None:
        """Stop when the database file is not the one that was opened: what is written now would
        be gone at the next start.
        """
        path = self._layout.database
        try:
            is_ours = path.stat().st_ino == self._inode
        except OSError:
            is_ours = False
        if not is_ours and self._gateway.database.on_damage is not None:
            self._gateway.database.on_damage(
                CorruptDatabaseError(
                    f"The database {path} was removed or replaced while the gateway ran, so it "
                    "stops: what it confirms now would be lost. Put the file back, or see "
                    "`gateway run --restore`."
                )
            )
