"""Who was let in once and is not allowed any more: nothing of theirs runs, fires or is sent."""

import pytest

from gateway.domain.message import ChannelName, ChatKey
from gateway.domain.turn import Trigger
from gateway.store.database import Change, Database, Topic
from gateway.store.messages import admit_message
from gateway.store.removal import pause_not_allowed
from gateway.store.schema import deliveries, jobs, runs, turns
from gateway.store.turns import Claim, claim_turn
from tests.factories import (
    CHAT,
    NOW,
    OTHER_CHAT,
    SERVED,
    Door,
    active_job,
    claimed,
    fire,
    later,
    make_message,
    moment_of,
    queued_turn,
    row_of,
    rows_of,
    sending_chunk,
    states_of,
    stored_delivery,
)


@pytest.fixture
def door() -> Door:
    closed = Door()
    closed.out = {CHAT}
    return closed


async def remove(store: Database, door: Door) -> int:
    return await store.write(pause_not_allowed, SERVED, door.admits, now=NOW)


async def claim_of(store: Database, door: Door) -> Claim | None:
    message = Trigger.MESSAGE
    return await store.write(
        claim_turn, CHAT, trigger=message, owner="test", admits=door.admits, now=NOW
    )


async def test_a_queued_turn_of_a_chat_that_was_removed_is_not_run(
    store: Database, door: Door
) -> None:
    turn = await queued_turn(store)
    other = await queued_turn(store, chat=OTHER_CHAT)
    claim = await claim_of(store, door)
    assert claim is None
    assert await rows_of(store, runs) == []
    row = await row_of(store, turns, turn)
    assert (row.state, row.reason) == ("cancelled", "not_allowed")
    silence = await row_of(store, deliveries, row.delivery_id)
    assert (silence.state, silence.reason) == ("suppressed", "not_allowed")
    assert (await claimed(store, chat=OTHER_CHAT)).turn == other


async def test_a_turn_that_waits_for_more_parts_is_not_run_later_either(
    store: Database, door: Door
) -> None:
    await store.write(admit_message, make_message(hold=5), now=NOW)
    await claim_of(store, door)
    assert await states_of(store, turns) == ["cancelled"]


async def test_removal_pauses_jobs_and_keeps_their_time(store: Database, door: Door) -> None:
    job = await active_job(store, at=later(60))
    other = await active_job(store, chat=OTHER_CHAT, at=later(60))
    heard: list[frozenset[Change]] = []
    store.subscribe(heard.append)
    assert await remove(store, door) == 1
    row = await row_of(store, jobs, job.id)
    assert (row.state, row.reason) == ("paused", "not_allowed")
    assert moment_of(row.next_slot_at) == later(60)
    assert (await row_of(store, jobs, other.id)).state == "active"
    assert Change(Topic.JOBS, CHAT) in heard[0]
    assert await fire(store, later(60)) == 1


async def test_removal_drops_what_was_not_sent(store: Database, door: Door) -> None:
    await sending_chunk(store, "1|2")
    await stored_delivery(store, "waiting")
    await stored_delivery(store, "elsewhere", chat=OTHER_CHAT)
    assert await remove(store, door) == 1
    assert await states_of(store, deliveries) == ["sending", "dropped", "pending"]
    assert {row.reason for row in await rows_of(store, deliveries)} == {"not_allowed", None}


async def test_a_fired_one_shot_of_a_removed_chat_ends_with_its_delivery(
    store: Database, door: Door
) -> None:
    job = await active_job(store, at=later(60))
    await fire(store, later(60))
    await remove(store, door)
    row = await row_of(store, jobs, job.id)
    assert (row.state, row.reason) == ("failed", "not_delivered")


async def test_removal_leaves_the_chats_of_other_channels_alone(store: Database) -> None:
    console = ChatKey(ChannelName.CONSOLE, "local")
    job = await active_job(store, chat=console)
    door = Door()
    door.out = {console}
    assert await remove(store, door) == 0
    assert (await row_of(store, jobs, job.id)).state == "active"


async def test_nobody_removed_is_nothing_changed(store: Database) -> None:
    await active_job(store)
    await stored_delivery(store)
    assert await remove(store, Door()) == 0
    assert await states_of(store, jobs) == ["active"]
