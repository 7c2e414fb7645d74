"""What a running gateway tells about itself, and what it can be asked to do."""

import os
from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING

from gateway.channels.base import ChannelHealth
from gateway.domain.message import ChannelName
from gateway.domain.schedule import to_millis
from gateway.engine.admin import Answer
from gateway.engine.intake import Intake
from gateway.engine.owner import Episode
from gateway.front import Gateway
from gateway.store.chats import admit_pairing, find_pairing, revoke_pairing
from gateway.store.events import millis
from gateway.store.listings import Counts, load_counts
from gateway.store.notices import welcome
from gateway.store.removal import pause_not_allowed

if TYPE_CHECKING:
    from gateway.wiring import Backstage


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
            last_look_at=self._backstage.scheduler.last_look_at,
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
        cut = self._gateway.cuts[pairing.channel]
        await database.insist(welcome, pairing, cut, now=now)
        return {"found": True}

    async def _revoke(self, request: Mapping[str, object]) -> Mapping[str, object]:
        channel = ChannelName(str(request.get("channel", "")))
        address = str(request.get("address", ""))
        found = await self._gateway.database.write(revoke_pairing, channel, address)
        await self._intake.reload_paired()
        await self._gateway.database.insist(
            pause_not_allowed,
            self._gateway.served,
            self._gateway.access.admits_chat,
            now=self._gateway.clock.now(),
        )
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
    last_look_at: datetime | None,
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
        "scheduler": {"last_look_at": millis(last_look_at)},
        "deliveries": {
            "pending": counts.pending,
            "unknown": counts.unknown,
            "failed": counts.failed_deliveries,
        },
    }
