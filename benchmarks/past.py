"""Writes a long past straight into the tables: answered turns, with all that each leaves."""

import sqlite3
from collections.abc import Sequence
from pathlib import Path

# Row n of `past` stands for row n of each table; the chats take turns.
_PAST = """
    CREATE TEMP TABLE past AS
    WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < :count)
    SELECT n, :first + n % :chats AS chat, 'telegram:' || (:first + n % :chats) AS chat_key,
        :began + n * 1000 AS at
    FROM numbers
"""
_STATEMENTS = (
    """
    INSERT INTO chats (chat_key, channel, address, is_group, session_ref, seen_delivery_id,
        heartbeats, created_at)
    SELECT chat_key, 'telegram', chat, 0, 1, max(n), 0, min(at) FROM past GROUP BY chat
    """,
    """
    INSERT INTO addresses (channel, address, chat_key) SELECT channel, address, chat_key FROM chats
    """,
    """
    INSERT INTO deliveries (id, chat_key, kind, state, text, attempts, owes_notice, answered_at,
        created_at, settled_at)
    SELECT n, chat_key, 'reply', 'sent', 'They are where you left them, number ' || n, 1, 0, at, at,
        at
    FROM past
    """,
    """
    INSERT INTO turns (id, chat_key, trigger, source_key, state, reply, delivery_id, created_at,
        started_at, ended_at)
    SELECT n, chat_key, 'message', 'message:' || n, 'answered',
        'They are where you left them, number ' || n, n, at, at, at
    FROM past
    """,
    """
    INSERT INTO messages (id, chat_key, channel, account, address, kind, external_id, sender_id,
        sender_name, text, attachments, is_part, turn_id, sent_at, received_at)
    SELECT n, chat_key, 'telegram', '1', chat, 'message', n, chat, 'Ann',
        'Where did I leave the keys this time, number ' || n, '[]', 0, n, at, at
    FROM past
    """,
    """
    INSERT INTO runs (id, turn_id, attempt, owner, state, provider, model, started_at, ended_at)
    SELECT n, n, 1, 'bench', 'succeeded', 'bench', 'instant', at, at FROM past
    """,
    """
    INSERT INTO chunks (id, delivery_id, number, account, state, body, attempts, unknowns,
        unanswered, not_sent, external_id, sent_at)
    SELECT n, n, 1, '1', 'sent', '{"text": "They are where you left them", "entities": []}', 1, 0,
        0, 0, n, at
    FROM past
    """,
    """
    INSERT INTO events (at, subject, subject_id, before, after)
    WITH moves(subject, before, after) AS (VALUES
        ('turns', NULL, 'queued'), ('turns', 'queued', 'running'), ('runs', NULL, 'running'),
        ('runs', 'running', 'succeeded'), ('deliveries', NULL, 'pending'),
        ('turns', 'running', 'answered'), ('chunks', 'pending', 'sending'),
        ('deliveries', 'pending', 'sending'), ('chunks', 'sending', 'sent'),
        ('deliveries', 'sending', 'sent'))
    SELECT at, subject, n, before, after FROM past CROSS JOIN moves
    """,
)
_BEGAN = 1_700_000_000_000


def store_past(database: Path, chats: Sequence[int], messages: int) -> None:
    """Store `messages` answered messages of consecutive chat ids in a new, empty database."""
    connection = sqlite3.connect(database, isolation_level=None)
    try:
        bound = {"count": messages, "first": chats[0], "chats": len(chats), "began": _BEGAN}
        connection.execute(_PAST, bound)
        connection.execute("BEGIN")
        for statement in _STATEMENTS:
            connection.execute(statement)
        connection.execute("COMMIT")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    finally:
        connection.close()
