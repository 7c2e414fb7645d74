"""One row that cannot be read any more: it ends by itself, and its chat goes on."""

import logging

import pytest

from gateway.domain.delivery import DeliveryKind
from gateway.domain.message import Attachment
from gateway.store.database import Database, Transaction
from gateway.store.messages import admit_message
from gateway.store.schema import chunks, deliveries, messages
from gateway.store.sending import Wait, begin_send, recover_sends
from gateway.store.stopping import stop_chat
from tests.factories import (
    CHAT,
    NOW,
    SERVED,
    claimed,
    make_message,
    next_send,
    queued_turn,
    row_of,
    rows_of,
    send_rules,
    sending_chunk,
    states_of,
    stored_delivery,
)


async def damage_chunk(store: Database, number: int, **values: object) -> None:
    def change(tx: Transaction) -> None:
        tx.connection.execute(chunks.update().where(chunks.c.number == number).values(**values))

    await store.write(change)


async def damage_messages(store: Database, **values: object) -> None:
    def change(tx: Transaction) -> None:
        tx.connection.execute(messages.update().values(**values))

    await store.write(change)


@pytest.mark.parametrize("values", [{"body": "{"}, {"body": "[]"}, {"attempts": "many"}])
async def test_r26_a_damaged_chunk_is_refused_and_what_is_behind_it_goes_out(
    store: Database, caplog: pytest.LogCaptureFixture, values: dict[str, object]
) -> None:
    broken = await stored_delivery(store, "broken")
    await damage_chunk(store, 1, **values)
    await stored_delivery(store, "healthy")
    assert (await next_send(store)).chunk.body.text == "healthy"
    row = await row_of(store, deliveries, broken)
    assert (row.state, row.reason, row.owes_notice) == ("failed", "damaged", True)
    assert row.settled_at is not None
    (chunk,) = await rows_of(store, chunks, chunks.c.delivery_id == broken)
    assert (chunk.state, chunk.reason) == ("rejected", "damaged")
    assert [r.levelno for r in caplog.records if r.message == "chunk_damaged"] == [logging.WARNING]


@pytest.mark.parametrize("not_before", ["soon", 10**18])
async def test_r26_a_chunk_whose_moment_cannot_be_read_goes_out_at_once(
    store: Database, not_before: object
) -> None:
    await stored_delivery(store, "hello")
    await damage_chunk(store, 1, not_before=not_before)
    assert (await next_send(store)).chunk.body.text == "hello"


async def test_r26_the_rest_of_a_delivery_with_a_damaged_chunk_goes_out(store: Database) -> None:
    await stored_delivery(store, "1|2")
    await damage_chunk(store, 1, body="{")
    assert (await next_send(store)).chunk.body.text == "2"
    assert await states_of(store, chunks) == ["rejected", "sending"]


async def test_r26_a_chat_with_nothing_but_a_damaged_chunk_has_nothing_to_do(
    store: Database,
) -> None:
    await stored_delivery(store, "broken")
    await damage_chunk(store, 1, body="{")
    assert await store.write(begin_send, CHAT, send_rules(), now=NOW) == Wait(until=None)
    assert await states_of(store, deliveries) == ["failed"]


async def test_r26_a_damaged_chunk_on_the_wire_does_not_keep_a_gateway_from_starting(
    store: Database,
) -> None:
    await sending_chunk(store, "broken")
    await damage_chunk(store, 1, body="{")
    assert await store.write(recover_sends, SERVED, send_rules(), now=NOW) == 1
    assert await states_of(store, chunks) == ["rejected"]
    assert await states_of(store, deliveries) == ["failed"]


async def test_a_stopped_reply_with_a_damaged_chunk_on_the_wire_is_not_told_as_lost(
    store: Database,
) -> None:
    await sending_chunk(store, "1|2", kind=DeliveryKind.REPLY)
    await store.write(stop_chat, CHAT, now=NOW)
    await damage_chunk(store, 1, body="{")
    await store.write(recover_sends, SERVED, send_rules(), now=NOW)
    (row,) = await rows_of(store, deliveries)
    assert (row.state, row.reason, row.owes_notice) == ("dropped", "stopped", False)


@pytest.mark.parametrize("stored", ["{", "3", '[{"kind": "photo"}]', '["photo"]', "null"])
async def test_r26_attachments_that_cannot_be_read_leave_the_message_to_be_answered(
    store: Database, caplog: pytest.LogCaptureFixture, stored: str
) -> None:
    await queued_turn(store, "look")
    await damage_messages(store, attachments=stored)
    (message,) = (await claimed(store)).messages
    assert (message.text, message.attachments) == ("look", ())
    assert [record.message for record in caplog.records] == ["message_damaged"]


async def test_r26_a_message_that_cannot_be_read_does_not_hold_the_next_one_back(
    store: Database,
) -> None:
    await queued_turn(store, "broken")
    await damage_messages(store, text=b"\xff", sender_name=b"\xff", sent_at=10**18)
    await store.write(admit_message, make_message("healthy"), now=NOW)
    assert [message.text for message in (await claimed(store)).messages] == ["", "healthy"]


async def test_attachments_that_can_be_read_are_handed_over(store: Database) -> None:
    photo = Attachment(kind="photo", file_id="f1", size=10)
    await queued_turn(store, "look")
    await damage_messages(store, attachments='[{"kind": "photo", "file_id": "f1", "size": 10}]')
    (message,) = (await claimed(store)).messages
    assert message.attachments == (photo,)
