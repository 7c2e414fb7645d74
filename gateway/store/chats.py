"""Chats, the addresses that name them, and who was let in by pairing."""

import secrets
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection, Row, bindparam, delete, insert, select, update

from gateway.domain.message import ChannelName, ChatKey
from gateway.domain.schedule import to_millis
from gateway.domain.wallclock import zone_or_none
from gateway.store.database import Topic, Transaction, upsert
from gateway.store.schema import addresses, allowed, chats, episodes, pairings

Admits = Callable[[Connection, ChatKey], bool]
"""Whether a chat is (still) allowed."""

PAIRING_LIFE = timedelta(hours=1)
MAX_OPEN_PAIRINGS = 5
_CODE_ALPHABET = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"
_CODE_LENGTH = 8

_FIND_CHAT = select(addresses.c.chat_key).where(
    addresses.c.channel == bindparam("channel"), addresses.c.address == bindparam("address")
)
_LOAD_CHAT = select(chats).where(chats.c.chat_key == bindparam("chat"))
_UNREACHABLE_SINCE = select(chats.c.unreachable_since).where(chats.c.chat_key == bindparam("chat"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Chat:
    """What is known of a chat. `session_ref` counts its sessions: `/new` begins another."""

    key: ChatKey
    address: str
    is_group: bool
    timezone: str | None
    session_ref: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Paired:
    """An address that was let in by pairing."""

    channel: ChannelName
    address: str
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairing:
    """An open request to be let in."""

    channel: ChannelName
    address: str
    name: str
    code: str


def resolve_chat(connection: Connection, chat: ChatKey) -> ChatKey:
    """The key under which a chat is stored, which a move of its address does not change."""
    return _find_chat(connection, chat) or chat


def _find_chat(connection: Connection, chat: ChatKey) -> ChatKey | None:
    named = {"channel": chat.channel, "address": chat.address}
    stored = connection.execute(_FIND_CHAT, named).scalar_one_or_none()
    return None if stored is None else ChatKey.parse(stored)


def ensure_chat(tx: Transaction, chat: ChatKey, *, is_group: bool, now: datetime) -> ChatKey:
    """Store the chat if it is new; returns the key under which it is stored."""
    known = _find_chat(tx.connection, chat)
    if known is not None:
        return known
    tx.connection.execute(
        upsert(chats)
        .values(
            chat_key=str(chat),
            channel=chat.channel,
            address=chat.address,
            is_group=is_group,
            created_at=to_millis(now),
        )
        .on_conflict_do_nothing()
    )
    tx.connection.execute(
        upsert(addresses)
        .values(channel=chat.channel, address=chat.address, chat_key=str(chat))
        .on_conflict_do_nothing()
    )
    return chat


def note_message(tx: Transaction, chat: ChatKey, *, now: datetime) -> None:
    """A chat that writes can be written to."""
    if tx.connection.execute(_UNREACHABLE_SINCE, {"chat": str(chat)}).scalar_one() is not None:
        set_reachable(tx, chat, is_reachable=True, now=now)


def load_chat(connection: Connection, chat: ChatKey) -> Chat | None:
    """The chat's row, or None when nothing is known of it."""
    row = connection.execute(_LOAD_CHAT, {"chat": str(chat)}).one_or_none()
    return None if row is None else chat_of(row)


def chat_of(row: Row[Any]) -> Chat:
    """A chat from its row."""
    return Chat(
        key=ChatKey.parse(row.chat_key),
        address=row.address,
        is_group=row.is_group,
        timezone=row.timezone if zone_or_none(row.timezone) else None,
        session_ref=row.session_ref,
    )


def chat_addresses(connection: Connection, chat: ChatKey) -> tuple[str, ...]:
    """Every address under which the chat is known."""
    rows = connection.execute(
        select(addresses.c.address).where(addresses.c.chat_key == str(chat))
    ).scalars()
    return tuple(rows)


def move_chat(
    tx: Transaction, channel: ChannelName, old: str, new: str, *, now: datetime
) -> ChatKey | None:
    """Add the new address of a chat and send there from now on; None = the chat is not known.

    Topics of the old address move with it.
    """
    connection = tx.connection
    rows = connection.execute(
        select(chats.c.chat_key, chats.c.address)
        .where(
            chats.c.channel == channel,
            (chats.c.address == old) | chats.c.address.startswith(f"{old}:", autoescape=True),
        )
        .order_by(chats.c.address)
    ).all()
    moved: ChatKey | None = None
    for row in rows:
        target = new + row.address[len(old) :]
        connection.execute(
            upsert(addresses)
            .values(channel=channel, address=target, chat_key=row.chat_key)
            .on_conflict_do_update(
                index_elements=["channel", "address"], set_={"chat_key": row.chat_key}
            )
        )
        connection.execute(
            update(chats).where(chats.c.chat_key == row.chat_key).values(address=target)
        )
        key = ChatKey.parse(row.chat_key)
        tx.touch(Topic.DELIVERIES, key)
        moved = moved or key
    return moved


def set_reachable(tx: Transaction, chat: ChatKey, *, is_reachable: bool, now: datetime) -> None:
    """Note whether the platform lets us write to a chat and all its topics."""
    base = chat.address.partition(":")[0]
    rows = tx.connection.execute(
        select(addresses.c.chat_key)
        .distinct()
        .where(
            addresses.c.channel == chat.channel,
            (addresses.c.address == base)
            | addresses.c.address.startswith(f"{base}:", autoescape=True),
        )
    ).scalars()
    for key in list(rows):
        condition = chats.c.chat_key == key
        if not is_reachable:
            condition &= chats.c.unreachable_since.is_(None)
        since = None if is_reachable else to_millis(now)
        tx.connection.execute(update(chats).where(condition).values(unreachable_since=since))
        tx.touch(Topic.DELIVERIES, ChatKey.parse(key))


def set_chat_timezone(tx: Transaction, chat: ChatKey, zone: str) -> None:
    """Give a chat a time zone of its own; jobs that are there keep theirs."""
    tx.connection.execute(update(chats).where(chats.c.chat_key == str(chat)).values(timezone=zone))


def new_session(tx: Transaction, chat: ChatKey) -> None:
    """Begin another session: the next turn starts with an empty transcript."""
    tx.connection.execute(
        update(chats)
        .where(chats.c.chat_key == str(chat))
        .values(session_ref=chats.c.session_ref + 1)
    )


def list_paired(connection: Connection) -> tuple[Paired, ...]:
    """Everybody who was let in by pairing."""
    rows = connection.execute(select(allowed).order_by(allowed.c.created_at)).all()
    return tuple(
        Paired(channel=ChannelName(row.channel), address=row.address, name=row.name) for row in rows
    )


def request_pairing(
    tx: Transaction, channel: ChannelName, address: str, name: str, *, now: datetime
) -> str | None:
    """A code for a stranger; None when one was given within the hour or too many are open."""
    connection = tx.connection
    connection.execute(
        delete(pairings).where(pairings.c.created_at <= to_millis(now - PAIRING_LIFE))
    )
    open_codes = connection.execute(select(pairings.c.channel, pairings.c.address)).all()
    is_known = any(row.channel == channel and row.address == address for row in open_codes)
    if is_known or len(open_codes) >= MAX_OPEN_PAIRINGS:
        return None
    code = "".join(secrets.choice(_CODE_ALPHABET) for _ in range(_CODE_LENGTH))
    connection.execute(
        insert(pairings).values(
            channel=channel, address=address, code=code, name=name, created_at=to_millis(now)
        )
    )
    return code


def find_pairing(connection: Connection, code: str, *, now: datetime) -> Pairing | None:
    """The open request behind a code, in any case and spacing."""
    wanted = "".join(code.split()).replace("-", "").upper()
    row = connection.execute(
        select(pairings).where(
            pairings.c.code == wanted, pairings.c.created_at > to_millis(now - PAIRING_LIFE)
        )
    ).one_or_none()
    if row is None:
        return None
    return Pairing(
        channel=ChannelName(row.channel), address=row.address, name=row.name, code=row.code
    )


def list_pairings(connection: Connection, *, now: datetime) -> tuple[Pairing, ...]:
    """The open requests, oldest first."""
    rows = connection.execute(
        select(pairings)
        .where(pairings.c.created_at > to_millis(now - PAIRING_LIFE))
        .order_by(pairings.c.created_at)
    ).all()
    return tuple(
        Pairing(channel=ChannelName(row.channel), address=row.address, name=row.name, code=row.code)
        for row in rows
    )


def admit_pairing(tx: Transaction, pairing: Pairing, *, now: datetime) -> None:
    """Let the person behind an open request in."""
    tx.connection.execute(delete(pairings).where(pairings.c.code == pairing.code))
    tx.connection.execute(
        upsert(allowed)
        .values(
            channel=pairing.channel,
            address=pairing.address,
            name=pairing.name,
            created_at=to_millis(now),
        )
        .on_conflict_do_nothing()
    )


def revoke_pairing(tx: Transaction, channel: ChannelName, address: str) -> bool:
    """Take back what pairing gave; false = there was nothing."""
    result = tx.connection.execute(
        delete(allowed).where(allowed.c.channel == channel, allowed.c.address == address)
    )
    return result.rowcount > 0


def begin_episode(tx: Transaction, name: str, *, now: datetime) -> bool:
    """Open a trouble that the operator must mend; false = it is open already, they know."""
    result = tx.connection.execute(
        upsert(episodes).values(name=name, began_at=to_millis(now)).on_conflict_do_nothing()
    )
    return result.rowcount > 0


def end_episodes(tx: Transaction, names: Iterable[str]) -> bool:
    """Close troubles that are over; false = none was open."""
    result = tx.connection.execute(delete(episodes).where(episodes.c.name.in_(list(names))))
    return result.rowcount > 0


def open_episode_names(connection: Connection) -> frozenset[str]:
    """The troubles that are open."""
    return frozenset(connection.execute(select(episodes.c.name)).scalars())
