"""What ended long ago is taken away; what is open, or belongs to something open, stays."""

from gateway.domain.delivery import DeliveryKind, Sent
from gateway.domain.message import ChannelName, ChatKey
from gateway.domain.tool import ToolResult
from gateway.store.database import Database, Transaction
from gateway.store.jobs import cancel_job
from gateway.store.messages import record_message
from gateway.store.schema import (
    chats,
    chunks,
    deliveries,
    events,
    jobs,
    messages,
    runs,
    tool_calls,
    turns,
)
from gateway.store.sending import finish_send
from gateway.store.stopping import stop_chat
from gateway.store.upkeep import purge
from tests.factories import (
    CHAT,
    NOW,
    OTHER_CHAT,
    active_job,
    answered_turn,
    fire,
    fired_job,
    later,
    make_message,
    next_send,
    queued_turn,
    rows_of,
    running_turn,
    send_rules,
    stored_delivery,
    tool_call,
)

TABLES = (messages, turns, runs, tool_calls, jobs, deliveries, chunks, events)


async def send_all(store: Database, count: int) -> None:
    for _ in range(count):
        step = await next_send(store)
        await store.write(finish_send, step, Sent(external_id="1"), send_rules(), now=NOW)


async def purge_all(store: Database, *, seconds: float) -> int:
    removed = 0
    while count := await store.write(purge, before=later(seconds)):
        removed += count
    return removed


async def counts(store: Database) -> list[int]:
    return [len(await rows_of(store, table)) for table in TABLES]


async def test_everything_that_ended_goes(store: Database) -> None:
    claim = await running_turn(store)
    await tool_call(store, claim, ToolResult(ok=True, text="x", line="#1"), key="k")
    await store.write(cancel_job, CHAT, (await active_job(store)).id, now=NOW)
    await store.write(record_message, make_message("/status"), now=NOW, reason="command")
    await store.write(stop_chat, CHAT, now=NOW)
    await answered_turn(store)
    await stored_delivery(store, "1|2", kind=DeliveryKind.COMMAND)
    await send_all(store, 3)
    assert min(await counts(store)) > 0
    assert await purge_all(store, seconds=0) == 0
    assert await purge_all(store, seconds=1) > 0
    assert await counts(store) == [0] * len(TABLES)
    assert len(await rows_of(store, chats)) == 1


async def test_what_is_open_stays_with_all_that_belongs_to_it(store: Database) -> None:
    await queued_turn(store)
    await running_turn(store, chat=OTHER_CHAT)
    await active_job(store, "tea", at=later(10**6))
    fired = await fired_job(store, "bread")
    unsent = await answered_turn(store, chat=ChatKey(ChannelName.TELEGRAM, "44"))
    before = await counts(store)
    await purge_all(store, seconds=10**5)
    after = await counts(store)
    assert after[:-1] == before[:-1]
    assert {fired.id} < {row.id for row in await rows_of(store, jobs)}
    assert unsent in {row.id for row in await rows_of(store, turns)}


async def test_a_shared_reminder_goes_with_the_last_of_its_turns(store: Database) -> None:
    first = await active_job(store, "tea", at=later(60))
    await active_job(store, "bread", at=later(60))
    await fire(store, later(60))
    await store.write(cancel_job, CHAT, first.id, now=later(60))
    await purge_all(store, seconds=61)
    assert len(await rows_of(store, turns)) == 2
    step = await next_send(store, now=later(60))
    await store.write(finish_send, step, Sent(external_id="1"), send_rules(), now=later(60))
    await purge_all(store, seconds=61)
    assert await counts(store) == [0] * len(TABLES)


async def test_many_rows_go_in_bounded_steps(store: Database) -> None:
    def many(tx: Transaction) -> None:
        for number in range(1200):
            record_message(tx, make_message(f"{number}"), now=NOW, reason="command")

    await store.write(many)
    steps = []
    while count := await store.write(purge, before=later(1)):
        steps.append(count)
    assert steps == [200] * 6


async def test_the_oldest_unsettled_rows_do_not_keep_newer_ones_from_going(
    store: Database,
) -> None:
    def many(tx: Transaction) -> None:
        for number in range(260):
            tx.connection.execute(
                turns.insert().values(
                    chat_key=str(CHAT),
                    trigger="message",
                    source_key=f"{number}",
                    state="answered",
                    delivery_id=open_delivery if number < 230 else None,
                    created_at=number,
                    ended_at=number,
                )
            )

    open_delivery = await stored_delivery(store)
    await store.write(many)
    await purge_all(store, seconds=1)
    assert len(await rows_of(store, turns)) == 230
