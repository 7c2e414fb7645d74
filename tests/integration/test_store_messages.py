"""T1: a message is stored once, with the turn that will answer it."""

import pytest

from gateway.domain.message import Attachment, ChannelName, ChatKey, MessageKind, NewMessage
from gateway.domain.turn import TurnId
from gateway.errors import StoreError
from gateway.store.chats import (
    chat_addresses,
    load_chat,
    move_chat,
    resolve_chat,
    set_reachable,
)
from gateway.store.database import Change, Database, Topic
from gateway.store.ending import give_back
from gateway.store.messages import (
    MAX_JOINED,
    MAX_JOINED_BYTES,
    admit_message,
    edit_message,
    is_held,
    record_message,
    turn_messages,
)
from gateway.store.opening import Layout, open_database
from gateway.store.schema import chats, events, messages, turns
from tests.factories import (
    CHAT,
    NOW,
    OTHER_CHAT,
    claimed,
    later,
    make_edit,
    make_message,
    moment_of,
    queued_turn,
    row_of,
    rows_of,
    running_turn,
    stored_delivery,
)

GROUP = ChatKey(ChannelName.TELEGRAM, "-4001")
SUPERGROUP = ChatKey(ChannelName.TELEGRAM, "-1009001")


async def admit(store: Database, message: NewMessage, *, seconds: float = 0) -> TurnId | None:
    return await store.write(admit_message, message, now=later(seconds))


async def texts_of(store: Database, turn: TurnId) -> list[str]:
    return [message.text for message in await store.read(turn_messages, turn)]


async def test_a_message_is_stored_with_all_that_it_says(store: Database) -> None:
    message = NewMessage(
        chat=CHAT,
        account="7000",
        address="42",
        external_id="5",
        sender_id="42",
        sender_name="Ada",
        chat_addresses=("42",),
        sender_addresses=("42",),
        text="look 👩‍👧",
        quoted="earlier",
        attachments=(Attachment(kind="photo", file_id="f1", size=10),),
        sent_at=later(-3),
        is_part=True,
    )
    turn = await admit(store, message)
    assert turn is not None
    (stored,) = await store.read(turn_messages, turn)
    assert (stored.chat, stored.external_id, stored.sender_name) == (CHAT, "5", "Ada")
    assert (stored.text, stored.quoted, stored.is_part) == ("look 👩‍👧", "earlier", True)
    assert stored.attachments == message.attachments
    assert stored.sent_at == later(-3)
    (event,) = await rows_of(store, events)
    assert (event.subject, event.subject_id, event.after) == ("turns", turn, "queued")


async def test_i01_the_same_message_twice_is_stored_once(store: Database) -> None:
    first = make_message("hello", external_id="1001")
    assert await admit(store, first) is not None
    assert await admit(store, first) is None
    assert await admit(store, make_message("hello", external_id="1001"), seconds=9) is None
    assert len(await rows_of(store, messages)) == 1
    assert len(await rows_of(store, turns)) == 1


async def test_i01_a_repeat_after_a_restart_and_after_the_answer_is_no_new_message(
    layout: Layout,
) -> None:
    message = make_message("hello", external_id="1001")
    before = open_database(layout)
    await admit(before, message)
    await claimed(before)
    await before.close()
    after = open_database(layout)
    assert await admit(after, message) is None
    await after.close()


async def test_i04_a_stored_message_is_still_queued_after_a_restart(layout: Layout) -> None:
    before = open_database(layout)
    turn = await queued_turn(before, "one")
    for text in ("two", "three"):
        await admit(before, make_message(text))
    await before.close()
    after = open_database(layout)
    claim = await claimed(after)
    assert claim.turn == turn
    assert [message.text for message in claim.messages] == ["one", "two", "three"]
    await after.close()


@pytest.mark.parametrize(
    "other",
    [
        {"account": "7001"},
        {"address": "-1009001"},
        {"kind": MessageKind.BUTTON},
        {"external_id": "2"},
    ],
    ids=lambda other: next(iter(other)),
)
async def test_ids_count_per_account_address_and_kind(
    store: Database, other: dict[str, str]
) -> None:
    same = {"account": "7000", "address": "42", "kind": MessageKind.MESSAGE, "external_id": "1"}
    for place in (same, same | other, same | other, same):
        message = NewMessage(
            chat=CHAT,
            account=place["account"],
            address=place["address"],
            external_id=place["external_id"],
            kind=MessageKind(place["kind"]),
            sender_id="42",
            sender_name="Ada",
            chat_addresses=("42",),
            sender_addresses=("42",),
            text="hello",
            sent_at=NOW,
        )
        await admit(store, message)
    assert len(await rows_of(store, messages)) == 2


async def test_messages_join_the_turn_that_had_no_run(store: Database) -> None:
    turn = await queued_turn(store, "one")
    assert await admit(store, make_message("two")) == turn
    claim = await claimed(store)
    assert [message.text for message in claim.messages] == ["one", "two"]
    behind = await admit(store, make_message("three"))
    assert behind not in (None, turn)
    assert await admit(store, make_message("four")) == behind


async def test_chats_do_not_join_each_other(store: Database) -> None:
    assert await queued_turn(store) != await queued_turn(store, chat=OTHER_CHAT)


async def test_a_turn_that_was_given_back_is_not_joined(store: Database) -> None:
    claim = await running_turn(store, "one")
    await store.write(give_back, claim, now=NOW)
    assert await admit(store, make_message("two")) != claim.turn
    assert await texts_of(store, claim.turn) == ["one"]


async def test_fifty_messages_fill_a_turn(store: Database) -> None:
    joined = [await admit(store, make_message(f"{n}")) for n in range(MAX_JOINED + 1)]
    assert len(set(joined[:MAX_JOINED])) == 1
    assert joined[-1] != joined[0]


async def test_bytes_fill_a_turn_not_characters(store: Database) -> None:
    first = await admit(store, make_message("€" * (MAX_JOINED_BYTES // 3 - 1)))
    assert await admit(store, make_message("abcd")) == first
    assert await admit(store, make_message("€")) != first


async def test_one_message_may_be_larger_than_a_turn_takes_in(store: Database) -> None:
    turn = await admit(store, make_message("x" * (MAX_JOINED_BYTES + 1)))
    assert turn is not None
    assert await admit(store, make_message("y")) != turn


async def not_before(store: Database, turn: TurnId | None) -> float | None:
    assert turn is not None
    moment = moment_of((await row_of(store, turns, turn)).not_before)
    return None if moment is None else (moment - NOW).total_seconds()


async def test_i20_a_hold_is_extended_by_each_part_and_ended_by_a_short_one(
    store: Database,
) -> None:
    turn = await admit(store, make_message("a" * 4096, hold=1.5, is_part=True))
    assert await not_before(store, turn) == 1.5
    assert await store.read(is_held, CHAT, now=later(1.4))
    assert await admit(store, make_message("b" * 4096, hold=1.5, is_part=True), seconds=1) == turn
    assert await not_before(store, turn) == 2.5
    other = await admit(store, make_message("c", chat=OTHER_CHAT), seconds=1.1)
    assert await not_before(store, other) is None
    assert await admit(store, make_message("end"), seconds=1.2) == turn
    assert await not_before(store, turn) is None
    assert not await store.read(is_held, CHAT, now=later(1.3))
    assert turn is not None
    assert [text[:1] for text in await texts_of(store, turn)] == ["a", "b", "e"]


async def test_i20_a_full_turn_does_not_wait_while_the_next_one_overtakes_it(
    store: Database,
) -> None:
    full = await admit(store, make_message("a" * MAX_JOINED_BYTES, hold=1.5, is_part=True))
    following = await admit(store, make_message("b"), seconds=0.1)
    assert following != full
    assert await not_before(store, full) is None
    assert (await claimed(store, now=later(0.1))).turn == full


async def test_nothing_is_held_in_a_chat_without_a_queued_turn(store: Database) -> None:
    assert not await store.read(is_held, CHAT, now=NOW)
    await running_turn(store)
    assert not await store.read(is_held, CHAT, now=NOW)


async def test_i17_an_edit_counts_while_its_turn_had_no_run(store: Database) -> None:
    message = make_message("call mum at 5", external_id="9")
    turn = await admit(store, message)
    assert turn is not None
    assert await store.write(edit_message, make_edit("call mum at 6", message))
    assert await texts_of(store, turn) == ["call mum at 6"]


async def test_i17_a_later_edit_is_ignored(store: Database) -> None:
    message = make_message("call mum at 5", external_id="9")
    turn = await admit(store, message)
    assert turn is not None
    claim = await claimed(store)
    edit = make_edit("call mum at 6", message)
    assert not await store.write(edit_message, edit)
    await store.write(give_back, claim, now=NOW)
    assert not await store.write(edit_message, edit)
    assert await texts_of(store, turn) == ["call mum at 5"]


async def test_i17_an_edit_of_an_unknown_or_a_set_aside_message_changes_nothing(
    store: Database,
) -> None:
    aside = make_message("/status")
    await store.write(record_message, aside, now=NOW, reason="command")
    assert not await store.write(edit_message, make_edit("/stop", aside))
    assert not await store.write(edit_message, make_edit("hello", make_message("hi")))
    (row,) = await rows_of(store, messages)
    assert (row.text, row.reason, row.turn_id) == ("/status", "command", None)


async def test_a_message_that_no_turn_holds_is_known_when_it_comes_again(store: Database) -> None:
    command = make_message("/status")
    recorded = await store.write(record_message, command, now=NOW, reason="command")
    assert recorded is not None
    assert recorded.chat == CHAT
    assert await store.write(record_message, command, now=NOW, reason="command") is None
    assert await admit(store, command) is None
    assert await rows_of(store, turns) == []


async def test_d08_a_moved_group_stays_the_same_chat(store: Database) -> None:
    await queued_turn(store, "before", chat=GROUP)
    moved = await store.write(
        move_chat, ChannelName.TELEGRAM, GROUP.address, SUPERGROUP.address, now=NOW
    )
    assert moved == GROUP
    again = await store.write(
        move_chat, ChannelName.TELEGRAM, GROUP.address, SUPERGROUP.address, now=NOW
    )
    assert again is None
    turn = await admit(store, make_message("after", chat=SUPERGROUP))
    assert turn is not None
    assert await texts_of(store, turn) == ["before", "after"]
    assert await store.read(resolve_chat, SUPERGROUP) == GROUP
    known = await store.read(load_chat, GROUP)
    assert known is not None
    assert known.address == SUPERGROUP.address
    assert set(await store.read(chat_addresses, GROUP)) == {"-4001", "-1009001"}
    assert await store.read(load_chat, SUPERGROUP) is None


async def test_d08_message_ids_begin_again_after_a_move(store: Database) -> None:
    await admit(store, make_message("before", chat=GROUP, external_id="7"))
    await store.write(move_chat, ChannelName.TELEGRAM, "-4001", "-1009001", now=NOW)
    assert await admit(store, make_message("after", chat=SUPERGROUP, external_id="7")) is not None


async def test_d08_a_move_is_known_even_if_the_new_group_spoke_first(store: Database) -> None:
    await queued_turn(store, "old", chat=GROUP)
    first = await queued_turn(store, "too early", chat=SUPERGROUP)
    await store.write(move_chat, ChannelName.TELEGRAM, "-4001", "-1009001", now=NOW)
    assert await store.read(resolve_chat, SUPERGROUP) == GROUP
    assert (await claimed(store, chat=SUPERGROUP)).turn == first


async def test_d08_topics_move_with_their_group_and_names_alike_stay(store: Database) -> None:
    topic = ChatKey(ChannelName.TELEGRAM, "-4001:43")
    other = ChatKey(ChannelName.TELEGRAM, "-40010")
    for chat in (topic, GROUP, other):
        await queued_turn(store, chat=chat)
    moved = await store.write(move_chat, ChannelName.TELEGRAM, "-4001", "-1009001", now=NOW)
    assert moved == GROUP
    stored = {row.chat_key: row.address for row in await rows_of(store, chats)}
    assert stored == {
        "telegram:-4001": "-1009001",
        "telegram:-4001:43": "-1009001:43",
        "telegram:-40010": "-40010",
    }
    moved_topic = ChatKey(ChannelName.TELEGRAM, "-1009001:43")
    assert await store.read(resolve_chat, moved_topic) == topic


async def test_a_move_of_an_unknown_chat_is_nothing(store: Database) -> None:
    assert await store.write(move_chat, ChannelName.TELEGRAM, "1", "2", now=NOW) is None
    assert await rows_of(store, chats) == []


async def test_topics_of_one_group_are_chats_of_their_own(store: Database) -> None:
    first = ChatKey(ChannelName.TELEGRAM, "-100200:43")
    second = ChatKey(ChannelName.TELEGRAM, "-100200:44")
    assert await queued_turn(store, chat=first) != await queued_turn(store, chat=second)


async def test_a_chat_that_writes_can_be_written_to_again(store: Database) -> None:
    await queued_turn(store)
    await store.write(set_reachable, CHAT, is_reachable=False, now=NOW)
    await store.write(set_reachable, CHAT, is_reachable=False, now=later(9))
    (known,) = await rows_of(store, chats)
    assert moment_of(known.unreachable_since) == NOW
    heard: list[frozenset[Change]] = []
    store.subscribe(heard.append)
    await admit(store, make_message("I am back"), seconds=10)
    (known,) = await rows_of(store, chats)
    assert known.unreachable_since is None
    assert heard == [frozenset({Change(Topic.TURNS, CHAT), Change(Topic.DELIVERIES, CHAT)})]


async def test_a_message_wakes_nobody_who_has_nothing_to_do(store: Database) -> None:
    await stored_delivery(store)
    heard: list[frozenset[Change]] = []
    store.subscribe(heard.append)
    await admit(store, make_message())
    await store.write(record_message, make_message("/status"), now=NOW, reason="command")
    assert heard == [frozenset({Change(Topic.TURNS, CHAT)})]


async def test_a_text_that_cannot_be_stored_leaves_nothing_behind(store: Database) -> None:
    with pytest.raises(StoreError):
        await admit(store, make_message("\ud800"))
    assert await rows_of(store, messages) == []
    assert await rows_of(store, turns) == []
    assert await rows_of(store, chats) == []
