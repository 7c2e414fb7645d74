"""The first tables.

Revision ID: 0001
"""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Apply."""
    op.create_table(
        "allowed",
        sa.Column("channel", sa.Text(), nullable=False),
        sa.Column("address", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.CheckConstraint(
            "channel IN ('telegram', 'whatsapp', 'console')", name=op.f("ck_allowed_channel")
        ),
        sa.PrimaryKeyConstraint("channel", "address"),
    )
    op.create_table(
        "chats",
        sa.Column("chat_key", sa.Text(), nullable=False),
        sa.Column("channel", sa.Text(), nullable=False),
        sa.Column("address", sa.Text(), nullable=False),
        sa.Column("is_group", sa.Boolean(), nullable=False),
        sa.Column("timezone", sa.Text(), nullable=True),
        sa.Column("session_ref", sa.Integer(), nullable=False),
        sa.Column(
            "seen_delivery_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False
        ),
        sa.Column("unreachable_since", sa.BigInteger(), nullable=True),
        sa.Column("next_heartbeat_at", sa.BigInteger(), nullable=True),
        sa.Column("heartbeat_day", sa.Text(), nullable=True),
        sa.Column("heartbeats", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.CheckConstraint(
            "channel IN ('telegram', 'whatsapp', 'console')", name=op.f("ck_chats_channel")
        ),
        sa.PrimaryKeyConstraint("chat_key"),
    )
    op.create_index(
        "ix_chats_heartbeat",
        "chats",
        ["next_heartbeat_at"],
        unique=False,
        sqlite_where=sa.text("next_heartbeat_at IS NOT NULL"),
    )
    op.create_table(
        "episodes",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("began_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("name"),
    )
    op.create_table(
        "events",
        sa.Column(
            "id",
            sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
            autoincrement=True,
            nullable=False,
        ),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("subject", sa.Text(), nullable=False),
        sa.Column(
            "subject_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False
        ),
        sa.Column("before", sa.Text(), nullable=True),
        sa.Column("after", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("id"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_events_at", "events", ["at"], unique=False)
    op.create_table(
        "pairings",
        sa.Column("channel", sa.Text(), nullable=False),
        sa.Column("address", sa.Text(), nullable=False),
        sa.Column("code", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.CheckConstraint(
            "channel IN ('telegram', 'whatsapp', 'console')", name=op.f("ck_pairings_channel")
        ),
        sa.PrimaryKeyConstraint("channel", "address"),
        sa.UniqueConstraint("code"),
    )
    op.create_table(
        "addresses",
        sa.Column("channel", sa.Text(), nullable=False),
        sa.Column("address", sa.Text(), nullable=False),
        sa.Column("chat_key", sa.Text(), nullable=False),
        sa.CheckConstraint(
            "channel IN ('telegram', 'whatsapp', 'console')", name=op.f("ck_addresses_channel")
        ),
        sa.ForeignKeyConstraint(
            ["chat_key"],
            ["chats.chat_key"],
        ),
        sa.PrimaryKeyConstraint("channel", "address"),
    )
    op.create_index("ix_addresses_chat", "addresses", ["chat_key"], unique=False)
    op.create_table(
        "deliveries",
        sa.Column(
            "id",
            sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
            autoincrement=True,
            nullable=False,
        ),
        sa.Column("chat_key", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("owes_notice", sa.Boolean(), nullable=False),
        sa.Column("edits", sa.Text(), nullable=True),
        sa.Column(
            "offers_job_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True
        ),
        sa.Column("answered_at", sa.BigInteger(), nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("settled_at", sa.BigInteger(), nullable=True),
        sa.CheckConstraint(
            "kind IN ('reply', 'reminder', 'notice', 'command')", name=op.f("ck_deliveries_kind")
        ),
        sa.CheckConstraint(
            "state IN ('pending', 'sending', 'sent', 'partial', 'failed', 'dropped', 'suppressed')",
            name=op.f("ck_deliveries_state"),
        ),
        sa.ForeignKeyConstraint(
            ["chat_key"],
            ["chats.chat_key"],
        ),
        sa.PrimaryKeyConstraint("id"),
        sqlite_autoincrement=True,
    )
    op.create_index(
        "ix_deliveries_failed",
        "deliveries",
        ["id"],
        unique=False,
        sqlite_where=sa.text("state = 'failed'"),
    )
    op.create_index("ix_deliveries_chat", "deliveries", ["chat_key", "id"], unique=False)
    op.create_index(
        "ix_deliveries_open",
        "deliveries",
        ["chat_key", "id"],
        unique=False,
        sqlite_where=sa.text("state IN ('pending', 'sending')"),
    )
    op.create_index(
        "ix_deliveries_owing",
        "deliveries",
        ["chat_key"],
        unique=False,
        sqlite_where=sa.text("owes_notice = 1"),
    )
    op.create_index("ix_deliveries_settled", "deliveries", ["settled_at"], unique=False)
    op.create_table(
        "jobs",
        sa.Column(
            "id",
            sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
            autoincrement=True,
            nullable=False,
        ),
        sa.Column("chat_key", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("action", sa.Text(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("schedule", sa.Text(), nullable=False),
        sa.Column("timezone", sa.Text(), nullable=False),
        sa.Column("missed", sa.Text(), nullable=False),
        sa.Column("tier", sa.Text(), nullable=False),
        sa.Column("asked_tier", sa.Text(), nullable=False),
        sa.Column("fired", sa.Integer(), nullable=False),
        sa.Column("failed_slots", sa.Integer(), nullable=False),
        sa.Column(
            "created_by_turn", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True
        ),
        sa.Column("origin_text", sa.Text(), nullable=True),
        sa.Column("origin_at", sa.BigInteger(), nullable=True),
        sa.Column(
            "snoozed_from", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True
        ),
        sa.Column("next_slot_at", sa.BigInteger(), nullable=True),
        sa.Column("last_slot_at", sa.BigInteger(), nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("ended_at", sa.BigInteger(), nullable=True),
        sa.CheckConstraint("action IN ('message', 'prompt')", name=op.f("ck_jobs_action")),
        sa.CheckConstraint(
            "state IN ('active', 'paused', 'done', 'cancelled', 'failed')",
            name=op.f("ck_jobs_state"),
        ),
        sa.CheckConstraint("missed IN ('catch_up_one', 'skip')", name=op.f("ck_jobs_missed")),
        sa.CheckConstraint("tier IN ('read_only', 'suggest', 'mutate')", name=op.f("ck_jobs_tier")),
        sa.CheckConstraint(
            "asked_tier IN ('read_only', 'suggest', 'mutate')", name=op.f("ck_jobs_asked_tier")
        ),
        sa.ForeignKeyConstraint(
            ["chat_key"],
            ["chats.chat_key"],
        ),
        sa.PrimaryKeyConstraint("id"),
        sqlite_autoincrement=True,
    )
    op.create_index(
        "ix_jobs_listed",
        "jobs",
        ["state"],
        unique=False,
        sqlite_where=sa.text("state IN ('active', 'paused', 'failed')"),
    )
    op.create_index("ix_jobs_chat", "jobs", ["chat_key", "id"], unique=False)
    op.create_index(
        "ix_jobs_due",
        "jobs",
        ["next_slot_at"],
        unique=False,
        sqlite_where=sa.text("state = 'active'"),
    )
    op.create_index("ix_jobs_ended", "jobs", ["ended_at"], unique=False)
    op.create_index(
        "ix_jobs_snoozed",
        "jobs",
        ["snoozed_from"],
        unique=False,
        sqlite_where=sa.text("snoozed_from IS NOT NULL"),
    )
    op.create_table(
        "chunks",
        sa.Column(
            "id",
            sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
            autoincrement=True,
            nullable=False,
        ),
        sa.Column(
            "delivery_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False
        ),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("account", sa.Text(), nullable=True),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("unknowns", sa.Integer(), nullable=False),
        sa.Column("unanswered", sa.Integer(), nullable=False),
        sa.Column("not_sent", sa.Integer(), nullable=False),
        sa.Column("external_id", sa.Text(), nullable=True),
        sa.Column("not_before", sa.BigInteger(), nullable=True),
        sa.Column("sent_at", sa.BigInteger(), nullable=True),
        sa.CheckConstraint(
            "state IN ('pending', 'sending', 'sent', 'rejected', 'unknown', 'dropped')",
            name=op.f("ck_chunks_state"),
        ),
        sa.ForeignKeyConstraint(
            ["delivery_id"],
            ["deliveries.id"],
        ),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("delivery_id", "number"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_chunks_external", "chunks", ["external_id"], unique=False)
    op.create_index(
        "ix_chunks_unsure",
        "chunks",
        ["state"],
        unique=False,
        sqlite_where=sa.text("state IN ('sending', 'unknown')"),
    )
    op.create_table(
        "turns",
        sa.Column(
            "id",
            sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
            autoincrement=True,
            nullable=False,
        ),
        sa.Column("chat_key", sa.Text(), nullable=False),
        sa.Column("trigger", sa.Text(), nullable=False),
        sa.Column("source_key", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("text", sa.Text(), nullable=True),
        sa.Column("reply", sa.Text(), nullable=True),
        sa.Column("job_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.Column(
            "delivery_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True
        ),
        sa.Column("slot_at", sa.BigInteger(), nullable=True),
        sa.Column("not_before", sa.BigInteger(), nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("started_at", sa.BigInteger(), nullable=True),
        sa.Column("ended_at", sa.BigInteger(), nullable=True),
        sa.CheckConstraint(
            "state IN ('queued', 'running', 'answered', 'silent', 'failed', 'cancelled')",
            name=op.f("ck_turns_state"),
        ),
        sa.CheckConstraint(
            "trigger IN ('message', 'job', 'heartbeat')", name=op.f("ck_turns_trigger")
        ),
        sa.ForeignKeyConstraint(
            ["chat_key"],
            ["chats.chat_key"],
        ),
        sa.ForeignKeyConstraint(
            ["delivery_id"],
            ["deliveries.id"],
        ),
        sa.ForeignKeyConstraint(
            ["job_id"],
            ["jobs.id"],
        ),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("source_key"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_turns_delivery", "turns", ["delivery_id"], unique=False)
    op.create_index("ix_turns_ended", "turns", ["ended_at"], unique=False)
    op.create_index("ix_turns_job", "turns", ["job_id"], unique=False)
    op.create_index(
        "ix_turns_open",
        "turns",
        ["chat_key", "id"],
        unique=False,
        sqlite_where=sa.text("state IN ('queued', 'running')"),
    )
    op.create_index(
        "ux_turns_running",
        "turns",
        ["chat_key"],
        unique=True,
        sqlite_where=sa.text("state = 'running'"),
    )
    op.create_table(
        "messages",
        sa.Column(
            "id",
            sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
            autoincrement=True,
            nullable=False,
        ),
        sa.Column("chat_key", sa.Text(), nullable=False),
        sa.Column("channel", sa.Text(), nullable=False),
        sa.Column("account", sa.Text(), nullable=False),
        sa.Column("address", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("external_id", sa.Text(), nullable=False),
        sa.Column("sender_id", sa.Text(), nullable=False),
        sa.Column("sender_name", sa.Text(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("quoted", sa.Text(), nullable=True),
        sa.Column("attachments", sa.Text(), nullable=False),
        sa.Column("is_part", sa.Boolean(), nullable=False),
        sa.Column("turn_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("sent_at", sa.BigInteger(), nullable=False),
        sa.Column("received_at", sa.BigInteger(), nullable=False),
        sa.CheckConstraint(
            "channel IN ('telegram', 'whatsapp', 'console')", name=op.f("ck_messages_channel")
        ),
        sa.CheckConstraint("kind IN ('message', 'button')", name=op.f("ck_messages_kind")),
        sa.ForeignKeyConstraint(
            ["chat_key"],
            ["chats.chat_key"],
        ),
        sa.ForeignKeyConstraint(
            ["turn_id"],
            ["turns.id"],
        ),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("channel", "account", "address", "kind", "external_id"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_messages_received", "messages", ["received_at"], unique=False)
    op.create_index("ix_messages_turn", "messages", ["turn_id"], unique=False)
    op.create_table(
        "runs",
        sa.Column(
            "id",
            sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
            autoincrement=True,
            nullable=False,
        ),
        sa.Column("turn_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("owner", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column("provider", sa.Text(), nullable=True),
        sa.Column("model", sa.Text(), nullable=True),
        sa.Column("input_tokens", sa.Integer(), nullable=True),
        sa.Column("output_tokens", sa.Integer(), nullable=True),
        sa.Column("started_at", sa.BigInteger(), nullable=False),
        sa.Column("ended_at", sa.BigInteger(), nullable=True),
        sa.CheckConstraint(
            "state IN ('running', 'succeeded', 'empty', 'failed', 'timed_out', 'cancelled', "
            "'interrupted')",
            name=op.f("ck_runs_state"),
        ),
        sa.ForeignKeyConstraint(
            ["turn_id"],
            ["turns.id"],
        ),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("turn_id", "attempt"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "tool_calls",
        sa.Column(
            "id",
            sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
            autoincrement=True,
            nullable=False,
        ),
        sa.Column("call_key", sa.Text(), nullable=False),
        sa.Column("turn_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("run_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("tool", sa.Text(), nullable=False),
        sa.Column("ok", sa.Boolean(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("line", sa.Text(), nullable=True),
        sa.Column("is_create", sa.Boolean(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["run_id"],
            ["runs.id"],
        ),
        sa.ForeignKeyConstraint(
            ["turn_id"],
            ["turns.id"],
        ),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("call_key"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_tool_calls_run", "tool_calls", ["run_id"], unique=False)
    op.create_index("ix_tool_calls_turn", "tool_calls", ["turn_id"], unique=False)
