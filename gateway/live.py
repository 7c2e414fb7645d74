"""What a running gateway tells about itself, and the chores that it does now and then."""

import asyncio
import logging
import os
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

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


def answers_of(gateway: Gateway, backstage: "Backstage", intake: Intake) -> Mapping[str, Answer]:
    """What the admin socket answers."""

    async def status(request: Mapping[str, object]) -> Mapping[str, object]:
        counts = await gateway.database.read(load_counts, now=gateway.clock.now())
        stats = backstage.pool.stats()
        return status_record(
            counts,
            pid=os.getpid(),
            since=to_millis(gateway.began_at),
            channels=[
                {
                    "name": name,
                    "state": health.state,
                    "reason": health.reason,
                    "last_ok_at": None
                    if health.last_ok_at is None
                    else to_millis(health.last_ok_at),
                }
                for name, health in gateway.supervisor.states().items()
            ],
            host={
                "kind": backstage.host.kind,
                "model": backstage.host.model,
                "state": "failing" if gateway.owner.is_open(Episode.HOST_BROKEN) else "ready",
                "sessions": stats.live,
                "busy": stats.busy,
            },
        )

    async def pair(request: Mapping[str, object]) -> Mapping[str, object]:
        now = gateway.clock.now()
        code = str(request.get("code", ""))
        pairing = await gateway.database.read(find_pairing, code, now=now)
        if pairing is None:
            return {"found": False}
        if request.get("admit") is True:
            await gateway.database.write(admit_pairing, pairing, now=now)
            await intake.reload_paired()
        return {
            "found": True,
            "channel": pairing.channel,
            "address": pairing.address,
            "name": pairing.name,
        }

    async def revoke(request: Mapping[str, object]) -> Mapping[str, object]:
        channel = ChannelName(str(request.get("channel", "")))
        address = str(request.get("address", ""))
        found = await gateway.database.write(revoke_pairing, channel, address)
        await intake.reload_paired()
        return {"found": found}

    return {"status": status, "pair": pair, "revoke": revoke}


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
