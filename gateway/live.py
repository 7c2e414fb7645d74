"""What a running gateway tells about itself, and the chores that it does now and then."""

import asyncio
import logging
import os
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from gateway.channels.base import ChannelHealth
from gateway.domain.message import ChannelName
from gateway.domain.schedule import to_millis
from gateway.engine.admin import Answer
from gateway.engine.alarm import AlarmClock
from gateway.engine.intake import Intake
from gateway.engine.owner import Episode
from gateway.errors import GatewayError
from gateway.front import Gateway, layout_of
from gateway.store.chats import admit_pairing, find_pairing, revoke_pairing
from gateway.store.listings import Counts, load_counts
from gateway.store.opening import copy_database, list_copies
from gateway.store.upkeep import purge

if TYPE_CHECKING:
    from gateway.wiring import Backstage

log = logging.getLogger(__name__)

_CHORE_PERIOD = timedelta(hours=1)
_COPY_AGE = timedelta(days=1)


class LiveAnswers:
    """What the admin socket answers."""

    def __init__(self, gateway: Gateway, backstage: "Backstage", intake: Intake) -> None:
        self._gateway = gateway
        self._backstage = backstage
        self._intake = intake

    def by_command(self) -> Mapping[str, Answer]:
        """Each request with who answers it."""
        return {"status": self._status, "pair": self._pair, "revoke": self._revoke}

    async def _status(self, request: Mapping[str, object]) -> Mapping[str, object]:
        gateway = self._gateway
        counts = await gateway.database.read(load_counts, now=gateway.clock.now())
        return status_record(
            counts,
            pid=os.getpid(),
            since=to_millis(gateway.began_at),
            channels=[
                _channel_record(name, health)
                for name, health in gateway.supervisor.states().items()
            ],
            host=self._host_record(),
        )

    def _host_record(self) -> dict[str, object]:
        host, stats = self._backstage.host, self._backstage.pool.stats()
        is_failing = self._gateway.owner.is_open(Episode.HOST_BROKEN)
        return {
            "kind": host.kind,
            "model": host.model,
            "state": "failing" if is_failing else "ready",
            "sessions": stats.live,
            "busy": stats.busy,
        }

    async def _pair(self, request: Mapping[str, object]) -> Mapping[str, object]:
        database, now = self._gateway.database, self._gateway.clock.now()
        pairing = await database.read(find_pairing, str(request.get("code", "")), now=now)
        if pairing is None:
            return {"found": False}
        await database.write(admit_pairing, pairing, now=now)
        await self._intake.reload_paired()
        return {"found": True}

    async def _revoke(self, request: Mapping[str, object]) -> Mapping[str, object]:
        channel = ChannelName(str(request.get("channel", "")))
        address = str(request.get("address", ""))
        found = await self._gateway.database.write(revoke_pairing, channel, address)
        await self._intake.reload_paired()
        return {"found": found}


def _channel_record(name: ChannelName, health: ChannelHealth) -> dict[str, object]:
    last_ok_at = None if health.last_ok_at is None else to_millis(health.last_ok_at)
    return {
        "name": name,
        "state": health.state,
        "reason": health.reason,
        "last_ok_at": last_ok_at,
    }


def status_record(
    counts: Counts,
    *,
    pid: int | None,
    since: int | None,
    channels: list[dict[str, object]],
    host: dict[str, object],
) -> dict[str, object]:
    """`gateway status --json`; its keys are a contract."""
    return {
        "running": pid is not None,
        "pid": pid,
        "since": since,
        "channels": channels,
        "host": host,
        "queue": {"queued": counts.queued, "running": counts.running},
        "jobs": {
            "active": counts.active,
            "paused": counts.paused,
            "failed": counts.failed_jobs,
            "overdue": counts.overdue,
            "next_slot_at": counts.next_slot_at,
        },
        "deliveries": {
            "pending": counts.pending,
            "unknown": counts.unknown,
            "failed": counts.failed_deliveries,
        },
    }


def start_chores(gateway: Gateway, alarm: AlarmClock) -> None:
    """Copy the database daily, and take away what ended long ago."""
    layout = layout_of(gateway.settings)
    kept = timedelta(days=gateway.settings.gateway_retention_days)

    async def copy() -> None:
        newest = next(iter(list_copies(layout)), None)
        if newest is not None:
            made = datetime.fromtimestamp(newest.stat().st_mtime, UTC)
            if datetime.now(UTC) - made < _COPY_AGE:
                return
        try:
            path = await asyncio.to_thread(copy_database, layout)
        except GatewayError as error:
            log.exception("copy_failed")
            await gateway.owner.tell(Episode.DATABASE, f"The daily copy failed: {error}")
            return
        await gateway.owner.over(Episode.DATABASE)
        log.info("database_copied", extra={"path": str(path)})

    async def clean() -> None:
        before = gateway.clock.now() - kept
        while True:
            if not await gateway.database.insist(purge, before=before):
                return

    alarm.every(_CHORE_PERIOD, copy, "copy")
    alarm.every(_CHORE_PERIOD, clean, "clean")
