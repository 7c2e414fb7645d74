"""Who may talk: closed by default, and open only to those who are listed or paired."""

import pytest

from gateway.domain.allowlist import Allowlist
from gateway.domain.message import ChannelName, ChatKey
from gateway.engine.access import Access
from gateway.store.chats import Paired, ensure_chat, move_chat
from gateway.store.database import Database, Transaction
from tests.factories import CHAT, NOW

TELEGRAM, WHATSAPP = ChannelName.TELEGRAM, ChannelName.WHATSAPP
GROUP = ChatKey(TELEGRAM, "-1009001")


def access(*listed: str, channel: ChannelName = TELEGRAM) -> Access:
    return Access(Allowlist({channel: frozenset(listed)} if listed else {}))


def admits(
    door: Access, chat: str, sender: str, *, is_group: bool = False, channel: ChannelName = TELEGRAM
) -> bool:
    return door.admits(channel, chat=(chat,), sender=(sender,), is_group=is_group)


@pytest.mark.parametrize("is_group", [False, True])
def test_i07_an_empty_allowlist_admits_nobody(is_group: bool) -> None:
    assert not admits(access(), "42", "42", is_group=is_group)
    assert not access().has_anybody(TELEGRAM)


def test_i07_an_empty_entry_is_no_wildcard() -> None:
    assert not admits(access(""), "42", "42")
    assert not admits(access("*"), "42", "42")


def test_a_private_chat_is_admitted_by_its_id() -> None:
    assert admits(access("42"), "42", "42")
    assert not admits(access("42"), "43", "43")


def test_a_group_needs_the_group_and_the_sender() -> None:
    assert admits(access("-5", "42"), "-5", "42", is_group=True)
    assert not admits(access("-5"), "-5", "42", is_group=True)
    assert not admits(access("42"), "-5", "42", is_group=True)


def test_an_entry_counts_on_its_own_channel_only() -> None:
    assert not admits(access("42", channel=WHATSAPP), "42", "42", channel=TELEGRAM)


def test_a_topic_is_admitted_with_its_group() -> None:
    assert admits(access("-5", "42"), "-5:7", "42", is_group=True)


def test_who_is_paired_is_admitted_until_that_is_taken_back() -> None:
    door = access()

    door.set_paired([Paired(channel=TELEGRAM, address="42", name="Ada")])
    assert admits(door, "42", "42")
    assert door.has_anybody(TELEGRAM)

    door.set_paired([])
    assert not admits(door, "42", "42")


def test_pairing_takes_nothing_from_who_is_listed() -> None:
    door = access("43")

    door.set_paired([Paired(channel=TELEGRAM, address="42", name="Ada")])
    door.set_paired([])

    assert admits(door, "43", "43")


async def test_the_console_is_its_operators_own() -> None:
    assert admits(access(), "local", "local", channel=ChannelName.CONSOLE)


async def test_only_a_listed_chat_may_be_written_to(store: Database) -> None:
    assert await store.read(access("42").admits_chat, CHAT)
    assert not await store.read(access("43").admits_chat, CHAT)


async def test_d08_a_moved_group_stays_allowed_under_either_address(store: Database) -> None:
    def become_supergroup(tx: Transaction) -> None:
        ensure_chat(tx, ChatKey(TELEGRAM, "-4001"), is_group=True, now=NOW)
        move_chat(tx, TELEGRAM, "-4001", GROUP.address, now=NOW)

    await store.write(become_supergroup)

    stored = ChatKey(TELEGRAM, "-4001")
    assert await store.read(access("-4001").admits_chat, stored)
    assert await store.read(access(GROUP.address).admits_chat, stored)
    assert not await store.read(access("-4002").admits_chat, stored)


def test_who_writes_in_a_groups_own_name_was_not_let_in_by_its_entry() -> None:
    allowlist = Allowlist({ChannelName.TELEGRAM: frozenset({"-100200", "7"})})

    def admits(sender: str) -> bool:
        return allowlist.admits(
            ChannelName.TELEGRAM, chat=("-100200:43",), sender=(sender,), is_group=True
        )

    assert not admits("-100200")
    assert admits("7")
