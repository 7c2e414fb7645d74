"""`gateway pair`: through the running gateway, or on the store under its lock."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime

from gateway.domain.message import ChannelName, ChatKey
from gateway.engine.admin import ask_gateway
from gateway.errors import GatewayError, SettingsError
from gateway.front import layout_of, plain_cut
from gateway.places import Places
from gateway.reports import read_store
from gateway.settings import Settings
from gateway.store.chats import (
    admit_pairing,
    find_pairing,
    list_paired,
    list_pairings,
    revoke_pairing,
)
from gateway.store.database import Database
from gateway.store.notices import welcome
from gateway.store.opening import lock_data_directory, open_database

Ask = Callable[[str], bool]
Write = Callable[[Database], Awaitable[Mapping[str, object]]]


def admit(settings: Settings, code: str, *, ask: Ask | None) -> str:
    """Let the person behind a code in, after asking; returns what was done.

    Raises GatewayError for an unknown code and for a no.
    """
    found = read_store(settings, lambda c: [find_pairing(c, code, now=datetime.now(UTC))])
    pairing = found[0] if found else None
    if pairing is None:
        raise GatewayError("There is no such open code. A code is valid for one hour.")
    who = f"{pairing.name} ({pairing.channel}:{pairing.address})"
    if ask is not None and not ask(f"Let {who} in?"):
        raise GatewayError("Nobody was let in.")

    async def write(database: Database) -> Mapping[str, object]:
        now = datetime.now(UTC)
        await database.write(admit_pairing, pairing, now=now)
        await database.write(welcome, pairing, plain_cut, now=now)
        return {"found": True}

    request = {"command": "pair", "code": pairing.code}
    if not _change(settings, request, write).get("found"):
        raise GatewayError("The code ran out meanwhile. Ask for a new one.")
    return f"Let in: {who}"


def put_out(settings: Settings, address: str) -> str:
    """Take back what pairing gave; returns what was done."""
    try:
        chat = ChatKey.parse(address)
    except ValueError as error:
        raise SettingsError([f"{address!r} is not an address like telegram:123."]) from error

    async def write(database: Database) -> Mapping[str, object]:
        return {"found": await database.write(revoke_pairing, chat.channel, chat.address)}

    request = {"command": "revoke", "channel": chat.channel, "address": chat.address}
    if not _change(settings, request, write).get("found"):
        raise GatewayError(f"{address} was not let in by pairing. See: gateway pair --list")
    return f"Put out: {address}"


def list_everybody(settings: Settings) -> str:
    """Who was let in, and which codes are open."""
    now = datetime.now(UTC)
    lines = read_store(
        settings,
        lambda connection: [
            *(f"in: {p.name} ({_key(p.channel, p.address)})" for p in list_paired(connection)),
            *(
                f"waiting: {p.name} ({_key(p.channel, p.address)}), code {p.code}"
                for p in list_pairings(connection, now=now)
            ),
        ],
    )
    return "\n".join(lines) if lines else "Nobody was let in by pairing, and no code is open."


def _key(channel: ChannelName, address: str) -> str:
    return str(ChatKey(channel, address))


def _change(
    settings: Settings,
    request: Mapping[str, object],
    write: Write,
) -> Mapping[str, object]:
    answer = ask_gateway(Places(settings.gateway_data_dir).admin_socket, request)
    if answer is not None:
        if "error" in answer:
            raise GatewayError(str(answer["error"]))
        return answer
    lock = lock_data_directory(settings.gateway_data_dir)
    try:
        return asyncio.run(_on_store(settings, write))
    finally:
        lock.release()


async def _on_store(settings: Settings, write: Write) -> Mapping[str, object]:
    database = open_database(layout_of(settings))
    try:
        return await write(database)
    finally:
        await database.close()
