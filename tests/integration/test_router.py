"""Turns: joined, run one at a time, ended once, and told to the person whatever becomes of them."""

from pathlib import Path

from gateway.store.database import Database
from gateway.store.schema import turns
from tests.fakes.clock import ManualClock
from tests.fakes.rig import running_rig


async def test_a_message_is_answered(store: Database, clock: ManualClock, tmp_path: Path) -> None:
    async with running_rig(store, clock, tmp_path) as rig:
        await rig.receive("hello")
        await rig.until_sent("echo: hello")
        await rig.until(turns, ["answered"])
