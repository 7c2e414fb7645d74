"""The tables. Times are integer milliseconds UTC; every state column has its enum as a CHECK.

The partial indexes are written for SQLite alone: naming PostgreSQL's flavour of them would load
its whole dialect at each start. They get it together with that database.
"""

from enum import StrEnum

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    ColumnElement,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
    literal_column,
    text,
    true,
)

from gateway.domain.delivery import ChunkState, DeliveryKind, DeliveryState
from gateway.domain.job import JobAction, JobState, MissedWindow, Tier
from gateway.domain.message import ChannelName, MessageKind
from gateway.domain.turn import RunState, Trigger, TurnState

REVISIONS = ("0001",)
"""Every migration this program knows, oldest first; a test holds it equal to the chain."""

metadata = MetaData(naming_convention={"ck": "ck_%(table_name)s_%(constraint_name)s"})

_Id = BigInteger().with_variant(Integer, "sqlite")


def _one_of(column: str, values: type[StrEnum]) -> CheckConstraint:
    listed = ", ".join(f"'{value}'" for value in values)
    return CheckConstraint(f"{column} IN ({listed})", name=column)


def stands_in(column: ColumnElement[str], *states: StrEnum) -> ColumnElement[bool]:
    """`column IN (states)`, written out: with bound values no partial index can be used."""
    written: list[ColumnElement[str]] = [literal_column(f"'{state}'") for state in states]
    return column == written[0] if len(written) == 1 else column.in_(written)


def _id() -> Column[int]:
    return Column("id", _Id, primary_key=True, autoincrement=True)


def _millis(name: str, *, nullable: bool = True) -> Column[int]:
    return Column(name, BigInteger, nullable=nullable)


def _chat() -> Column[str]:
    return Column("chat_key", Text, ForeignKey("chats.chat_key"), nullable=False)


chats = Table(
    "chats",
    metadata,
    Column("chat_key", Text, primary_key=True),
    Column("channel", Text, nullable=False),
    # Where sends go now; the chat key keeps its first address when a platform moves the chat.
    Column("address", Text, nullable=False),
    Column("is_group", Boolean, nullable=False, default=False),
    Column("timezone", Text),
    Column("session_ref", Integer, nullable=False, default=1),
    Column("seen_delivery_id", _Id, nullable=False, default=0),
    _millis("unreachable_since"),
    # When the silence of a private chat has lasted long enough for a check-in; null = no more of
    # them until the chat writes. The local day that the count is of stands beside it.
    _millis("next_heartbeat_at"),
    Column("heartbeat_day", Text),
    Column("heartbeats", Integer, nullable=False, default=0),
    _millis("created_at", nullable=False),
    _one_of("channel", ChannelName),
    Index(
        "ix_chats_heartbeat",
        "next_heartbeat_at",
        sqlite_where=text("next_heartbeat_at IS NOT NULL"),
    ),
)

addresses = Table(
    "addresses",
    metadata,
    Column("channel", Text, primary_key=True),
    Column("address", Text, primary_key=True),
    _chat(),
    _one_of("channel", ChannelName),
    Index("ix_addresses_chat", "chat_key"),
)

messages = Table(
    "messages",
    metadata,
    _id(),
    _chat(),
    Column("channel", Text, nullable=False),
    Column("account", Text, nullable=False),
    Column("address", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("external_id", Text, nullable=False),
    Column("sender_id", Text, nullable=False),
    Column("sender_name", Text, nullable=False),
    Column("text", Text, nullable=False),
    Column("quoted", Text),
    Column("attachments", Text, nullable=False, default="[]"),
    Column("is_part", Boolean, nullable=False, default=False),
    Column("turn_id", _Id, ForeignKey("turns.id")),
    # Why no turn holds it: command, too_old, unsupported.
    Column("reason", Text),
    _millis("sent_at", nullable=False),
    _millis("received_at", nullable=False),
    UniqueConstraint("channel", "account", "address", "kind", "external_id"),
    _one_of("channel", ChannelName),
    _one_of("kind", MessageKind),
    Index("ix_messages_turn", "turn_id"),
    Index("ix_messages_received", "received_at"),
    sqlite_autoincrement=True,
)

turns = Table(
    "turns",
    metadata,
    _id(),
    _chat(),
    Column("trigger", Text, nullable=False),
    Column("source_key", Text, nullable=False, unique=True),
    Column("state", Text, nullable=False),
    Column("reason", Text),
    Column("text", Text),
    Column("reply", Text),
    Column("job_id", _Id, ForeignKey("jobs.id")),
    Column("delivery_id", _Id, ForeignKey("deliveries.id")),
    _millis("slot_at"),
    _millis("not_before"),
    _millis("created_at", nullable=False),
    _millis("started_at"),
    _millis("ended_at"),
    _one_of("trigger", Trigger),
    _one_of("state", TurnState),
    Index(
        "ux_turns_running",
        "chat_key",
        unique=True,
        sqlite_where=text("state = 'running'"),
    ),
    Index(
        "ix_turns_open",
        "chat_key",
        "id",
        sqlite_where=text("state IN ('queued', 'running')"),
    ),
    Index("ix_turns_job", "job_id"),
    Index("ix_turns_delivery", "delivery_id"),
    Index("ix_turns_ended", "ended_at"),
    sqlite_autoincrement=True,
)

runs = Table(
    "runs",
    metadata,
    _id(),
    Column("turn_id", _Id, ForeignKey("turns.id"), nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("owner", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("reason", Text),
    Column("error", Text),
    Column("provider", Text),
    Column("model", Text),
    Column("input_tokens", Integer),
    Column("output_tokens", Integer),
    _millis("started_at", nullable=False),
    _millis("ended_at"),
    UniqueConstraint("turn_id", "attempt"),
    _one_of("state", RunState),
    sqlite_autoincrement=True,
)

tool_calls = Table(
    "tool_calls",
    metadata,
    _id(),
    Column("call_key", Text, nullable=False, unique=True),
    Column("turn_id", _Id, ForeignKey("turns.id"), nullable=False),
    Column("run_id", _Id, ForeignKey("runs.id"), nullable=False),
    Column("tool", Text, nullable=False),
    Column("ok", Boolean, nullable=False),
    Column("text", Text, nullable=False),
    Column("line", Text),
    Column("is_create", Boolean, nullable=False, default=False),
    _millis("created_at", nullable=False),
    Index("ix_tool_calls_turn", "turn_id"),
    Index("ix_tool_calls_run", "run_id"),
    sqlite_autoincrement=True,
)

jobs = Table(
    "jobs",
    metadata,
    _id(),
    _chat(),
    Column("state", Text, nullable=False),
    Column("reason", Text),
    Column("action", Text, nullable=False),
    Column("text", Text, nullable=False),
    Column("schedule", Text, nullable=False),
    Column("timezone", Text, nullable=False),
    Column("missed", Text, nullable=False),
    # What it may do, and what a person may allow it to do.
    Column("tier", Text, nullable=False),
    Column("asked_tier", Text, nullable=False),
    Column("fired", Integer, nullable=False, default=0),
    Column("failed_slots", Integer, nullable=False, default=0),
    Column("created_by_turn", _Id),
    # The message that asked for it, kept with it: messages are purged before a long series ends.
    Column("origin_text", Text),
    _millis("origin_at"),
    # The turn of the slot that was put off.
    Column("snoozed_from", _Id),
    _millis("next_slot_at"),
    _millis("last_slot_at"),
    _millis("created_at", nullable=False),
    _millis("ended_at"),
    _one_of("state", JobState),
    _one_of("action", JobAction),
    _one_of("missed", MissedWindow),
    _one_of("tier", Tier),
    _one_of("asked_tier", Tier),
    Index(
        "ix_jobs_snoozed",
        "snoozed_from",
        sqlite_where=text("snoozed_from IS NOT NULL"),
    ),
    Index(
        "ix_jobs_due",
        "next_slot_at",
        sqlite_where=text("state = 'active'"),
    ),
    Index(
        "ix_jobs_listed",
        "state",
        sqlite_where=text("state IN ('active', 'paused', 'failed')"),
    ),
    Index("ix_jobs_chat", "chat_key", "id"),
    Index("ix_jobs_ended", "ended_at"),
    sqlite_autoincrement=True,
)

deliveries = Table(
    "deliveries",
    metadata,
    _id(),
    _chat(),
    Column("kind", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("reason", Text),
    Column("text", Text, nullable=False),
    # Sends that reached the platform.
    Column("attempts", Integer, nullable=False, default=0),
    # It did not get through whole, and the chat was not told so yet.
    Column("owes_notice", Boolean, nullable=False, default=False),
    # The platform's id of the message of ours that it replaces, and the job that its button allows.
    Column("edits", Text),
    Column("offers_job_id", _Id),
    _millis("answered_at"),
    _millis("created_at", nullable=False),
    _millis("settled_at"),
    _one_of("kind", DeliveryKind),
    _one_of("state", DeliveryState),
    Index(
        "ix_deliveries_open",
        "chat_key",
        "id",
        sqlite_where=text("state IN ('pending', 'sending')"),
    ),
    Index(
        "ix_deliveries_owing",
        "chat_key",
        sqlite_where=text("owes_notice = 1"),
    ),
    Index(
        "ix_deliveries_failed",
        "id",
        sqlite_where=text("state = 'failed'"),
    ),
    Index("ix_deliveries_chat", "chat_key", "id"),
    Index("ix_deliveries_settled", "settled_at"),
    sqlite_autoincrement=True,
)

chunks = Table(
    "chunks",
    metadata,
    _id(),
    Column("delivery_id", _Id, ForeignKey("deliveries.id"), nullable=False),
    Column("number", Integer, nullable=False),
    Column("account", Text),
    Column("state", Text, nullable=False),
    Column("reason", Text),
    Column("body", Text, nullable=False),
    # Sends that reached the platform; those that it answered with a server error; those that
    # nobody answered; certain failures in a row. Each has a rule of its own for the next try.
    Column("attempts", Integer, nullable=False, default=0),
    Column("unknowns", Integer, nullable=False, default=0),
    Column("unanswered", Integer, nullable=False, default=0),
    Column("not_sent", Integer, nullable=False, default=0),
    Column("external_id", Text),
    _millis("not_before"),
    _millis("sent_at"),
    UniqueConstraint("delivery_id", "number"),
    _one_of("state", ChunkState),
    Index("ix_chunks_external", "external_id"),
    Index(
        "ix_chunks_unsure",
        "state",
        sqlite_where=text("state IN ('sending', 'unknown')"),
    ),
    sqlite_autoincrement=True,
)

allowed = Table(
    "allowed",
    metadata,
    Column("channel", Text, primary_key=True),
    Column("address", Text, primary_key=True),
    Column("name", Text, nullable=False),
    _millis("created_at", nullable=False),
    _one_of("channel", ChannelName),
)

pairings = Table(
    "pairings",
    metadata,
    Column("channel", Text, primary_key=True),
    Column("address", Text, primary_key=True),
    Column("code", Text, nullable=False, unique=True),
    Column("name", Text, nullable=False),
    _millis("created_at", nullable=False),
    _one_of("channel", ChannelName),
)

episodes = Table(
    "episodes",
    metadata,
    Column("name", Text, primary_key=True),
    _millis("began_at", nullable=False),
)

events = Table(
    "events",
    metadata,
    _id(),
    _millis("at", nullable=False),
    Column("subject", Text, nullable=False),
    Column("subject_id", _Id, nullable=False),
    Column("before", Text),
    Column("after", Text, nullable=False),
    Column("reason", Text),
    Index("ix_events_at", "at"),
    sqlite_autoincrement=True,
)

# The conditions of the partial indexes, as queries have to repeat them to be served by one.
TURN_IS_OPEN = stands_in(turns.c.state, TurnState.QUEUED, TurnState.RUNNING)
TURN_IS_QUEUED = TURN_IS_OPEN & stands_in(turns.c.state, TurnState.QUEUED)
TURN_IS_RUNNING = stands_in(turns.c.state, TurnState.RUNNING)
JOB_IS_ACTIVE = stands_in(jobs.c.state, JobState.ACTIVE)
DELIVERY_IS_OPEN = stands_in(deliveries.c.state, DeliveryState.PENDING, DeliveryState.SENDING)
DELIVERY_IS_PENDING = DELIVERY_IS_OPEN & stands_in(deliveries.c.state, DeliveryState.PENDING)
JOB_IS_LISTED = stands_in(jobs.c.state, JobState.ACTIVE, JobState.PAUSED, JobState.FAILED)
DELIVERY_HAS_FAILED = stands_in(deliveries.c.state, DeliveryState.FAILED)
CHUNK_IS_UNSURE = stands_in(chunks.c.state, ChunkState.SENDING, ChunkState.UNKNOWN)
CHUNK_IS_UNKNOWN = CHUNK_IS_UNSURE & stands_in(chunks.c.state, ChunkState.UNKNOWN)
CHUNK_IS_SENDING = CHUNK_IS_UNSURE & stands_in(chunks.c.state, ChunkState.SENDING)
DELIVERY_OWES_NOTICE = deliveries.c.owes_notice == true()
