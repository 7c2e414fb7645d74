"""Writes a long past straight into the tables: answered turns, with all that each leaves."""

import sqlite3
from collections.abc import Sequence
from pathlib import Path

# Number n of each table belongs to number n of every other; the chats take turns.
_NUMBERS = """
    WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < :count)
"""
_CHAT = "'telegram:' || (:first + n % :chats)"
_AT = "(:began + n * 1000)"

_CHATS = f"""
    INSERT INTO chats (chat_key, channel, address, is_group, session_ref, seen_delivery_id,
        created_at, last_message_at)
    {_NUMBERS} SELECT {_CHAT}, 'telegram', :first + n % :chats, 0, 1, :all, :began, :began
    FROM numbers
"""
_ADDRESSES = """
    INSERT INTO addresses (channel, address, chat_key) SELECT channel, address, chat_key FROM chats
"""
_DELIVERIES = f"""
    INSERT INTO deliveries (id, chat_key, kind, state, text, attempts, owes_notice, answered_at,
        created_at, settled_at)
    {_NUMBERS} SELECT n, {_CHAT}, 'reply', 'sent', 'They are where you left them, number ' || n, 1,
        0, {_AT}, {_AT}, {_AT} FROM numbers
"""
_TURNS = f"""
    INSERT INTO turns (id, chat_key, trigger, source_key, state, reply, delivery_id, created_at,
        started_at, ended_at)
    {_NUMBERS} SELECT n, {_CHAT}, 'message', 'message:' || n, 'answered',
        'They are where you left them, number ' || n, n, {_AT}, {_AT}, {_AT} FROM numbers
"""
_MESSAGES = f"""
    INSERT INTO messages (id, chat_key, channel, account, address, kind, external_id, sender_id,
        sender_name, text, attachments, is_part, turn_id, sent_at, received_at)
    {_NUMBERS} SELECT n, {_CHAT}, 'telegram', '1', :first + n % :chats, 'message', n,
        :first + n % :chats, 'Ann', 'Where did I leave the keys this time, number ' || n, '[]', 0,
        n, {_AT}, {_AT} FROM numbers
"""
_RUNS = f"""
    INSERT INTO runs (id, turn_id, attempt, owner, state, provider, model, started_at, ended_at)
    {_NUMBERS} SELECT n, n, 1, 'bench', 'succeeded', 'bench', 'instant', {_AT}, {_AT} FROM numbers
"""
_CHUNKS = f"""
    INSERT INTO chunks (id, delivery_id, number, account, state, body, attempts, unknowns,
        unanswered, not_sent, external_id, sent_at)
    {_NUMBERS} SELECT n, n, 1, '1', 'sent',
        '{{"text": "They are where you left them", "entities": []}}', 1, 0, 0, 0, n, {_AT}
    FROM numbers
"""
_EVENTS = f"""
    INSERT INTO events (at, subject, subject_id, before, after)
    {_NUMBERS}, moves(subject, before, after) AS (VALUES
        ('turns', NULL, 'queued'), ('turns', 'queued', 'running'), ('runs', NULL, 'running'),
        ('runs', 'running', 'succeeded'), ('deliveries', NULL, 'pending'),
        ('turns', 'running', 'answered'), ('chunks', 'pending', 'sending'),
        ('deliveries', 'pending', 'sending'), ('chunks', 'sending', 'sent'),
        ('deliveries', 'sending', 'sent'))
    SELECT {_AT}, subject, n, before, after FROM numbers CROSS JOIN moves
"""
_BEGAN = 1_700_000_000_000
"""Within no retention: nothing here is ever purged while a benchmark runs, since none purges."""


def store_past(database: Path, chats: Sequence[int], messages: int) -> None:
    """Store `messages` answered messages of consecutive chat ids in a new, empty database."""
    bound = {
        "count": messages,
        "all": messages,
        "first": chats[0],
        "chats": len(chats),
        "began": _BEGAN,
    }
    connection = sqlite3.connect(database, isolation_level=None)
    try:
        connection.execute("BEGIN")
        connection.execute(_CHATS, bound | {"count": len(chats)})
        connection.execute(_ADDRESSES)
        for statement in (_DELIVERIES, _TURNS, _MESSAGES, _RUNS, _CHUNKS, _EVENTS):
            connection.execute(statement, bound)
        connection.execute("COMMIT")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    finally:
        connection.close()
