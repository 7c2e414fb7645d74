"""What only the operator can mend: told once an episode, and again after it was over."""

import asyncio
import logging

import pytest

from gateway.domain.delivery import DeliveryKind
from gateway.domain.message import ChatKey
from gateway.engine.owner import Episode, OwnerNotices
from gateway.errors import StoreError
from gateway.store.database import Database
from gateway.store.schema import deliveries, episodes
from tests.factories import CHAT, cut, rows_of
from tests.fakes.clock import ManualClock

OWNER = ChatKey(CHAT.channel, "99")


@pytest.fixture
def notices(store: Database, clock: ManualClock) -> OwnerNotices:
    return OwnerNotices(store, clock, owner=OWNER, cut=cut)


async def told(store: Database) -> list[tuple[str, str, str]]:
    return [(row.chat_key, row.kind, row.text) for row in await rows_of(store, deliveries)]


async def test_a_trouble_is_told_and_logged_once(
    store: Database, notices: OwnerNotices, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(3):
        await notices.tell(Episode.MODEL_REFUSED, "The key is refused.")

    assert await told(store) == [(str(OWNER), DeliveryKind.NOTICE, "The key is refused.")]
    assert notices.is_open(Episode.MODEL_REFUSED)
    assert [record.message for record in caplog.records] == ["operator_needed"]


async def test_a_trouble_told_from_several_places_at_once_is_told_once(
    store: Database, notices: OwnerNotices, caplog: pytest.LogCaptureFixture
) -> None:
    await asyncio.gather(*(notices.tell(Episode.HOST_BROKEN, "It is broken.") for _ in range(5)))

    assert len(await told(store)) == 1
    assert [record.message for record in caplog.records] == ["operator_needed"]


async def test_a_trouble_that_is_over_while_it_is_told_is_over(
    store: Database, notices: OwnerNotices
) -> None:
    await asyncio.gather(
        notices.tell(Episode.HOST_BROKEN, "It is broken."), notices.over(Episode.HOST_BROKEN)
    )

    assert not notices.is_open(Episode.HOST_BROKEN)
    assert await rows_of(store, episodes) == []


async def test_a_trouble_that_could_not_be_stored_is_told_when_it_is_met_again(
    store: Database, notices: OwnerNotices, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*args: object, **kwargs: object) -> bool:
        raise ValueError("damaged row")

    with monkeypatch.context() as patched:
        patched.setattr("gateway.engine.owner.begin_episode", refuse)
        with pytest.raises(StoreError):
            await notices.tell(Episode.HOST_BROKEN, "It is broken.")
    assert not notices.is_open(Episode.HOST_BROKEN)
    await notices.tell(Episode.HOST_BROKEN, "It is broken.")

    assert len(await told(store)) == 1
    assert notices.is_open(Episode.HOST_BROKEN)


async def test_a_trouble_that_could_not_be_ended_is_ended_when_it_is_over_again(
    store: Database, notices: OwnerNotices, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*args: object, **kwargs: object) -> None:
        raise ValueError("damaged row")

    await notices.tell(Episode.HOST_BROKEN, "It is broken.")
    with monkeypatch.context() as patched:
        patched.setattr("gateway.engine.owner.end_episodes", refuse)
        with pytest.raises(StoreError):
            await notices.over(Episode.HOST_BROKEN)
    await notices.over(Episode.HOST_BROKEN)

    assert await rows_of(store, episodes) == []


async def test_a_trouble_that_comes_back_is_told_again(
    store: Database, notices: OwnerNotices
) -> None:
    await notices.tell(Episode.MODEL_REFUSED, "The key is refused.")
    await notices.over(Episode.MODEL_REFUSED, Episode.HOST_BROKEN)
    assert not notices.is_open(Episode.MODEL_REFUSED)
    await notices.tell(Episode.MODEL_REFUSED, "The key is refused.")

    assert len(await told(store)) == 2


async def test_each_trouble_is_an_episode_of_its_own(
    store: Database, notices: OwnerNotices
) -> None:
    await notices.tell(Episode.MODEL_REFUSED, "one")
    await notices.tell(Episode.HOST_BROKEN, "two")
    await notices.over(Episode.HOST_BROKEN)

    assert [text for *_, text in await told(store)] == ["one", "two"]
    assert [row.name for row in await rows_of(store, episodes)] == [Episode.MODEL_REFUSED]


async def test_m24_a_restart_within_an_episode_tells_nothing_again(
    store: Database, clock: ManualClock, notices: OwnerNotices
) -> None:
    await notices.tell(Episode.MODEL_REFUSED, "The key is refused.")

    later = OwnerNotices(store, clock, owner=OWNER, cut=cut)
    await later.load()
    await later.tell(Episode.MODEL_REFUSED, "The key is refused.")
    assert len(await told(store)) == 1

    await later.over(Episode.MODEL_REFUSED)
    await later.tell(Episode.MODEL_REFUSED, "The key is refused.")
    assert len(await told(store)) == 2


async def test_without_an_owner_it_is_logged_only(
    store: Database, clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    notices = OwnerNotices(store, clock, owner=None, cut=None)

    with caplog.at_level(logging.WARNING):
        await notices.tell(Episode.LOOP, "Somebody loops.")

    assert await told(store) == []
    assert [record.message for record in caplog.records] == ["operator_needed"]
