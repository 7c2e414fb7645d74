"""The moves that each state machine draws, stated here once more, and nothing else."""

import re
from collections.abc import Mapping
from datetime import timedelta
from enum import StrEnum
from itertools import product
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from sqlalchemy import CheckConstraint, create_engine

from gateway.domain.allowlist import Allowlist
from gateway.domain.delivery import (
    CHUNK_MOVES,
    DELIVERY_MOVES,
    REPEAT_MARK,
    ChunkState,
    DeliveryKind,
    DeliveryState,
    Malformed,
    Moved,
    NotSent,
    NotSentReason,
    Rejected,
    SendOutcome,
    Sent,
    Unknown,
    is_expired,
    judge,
    settled_state,
    wait_after_not_sent,
    wait_after_silence,
    wait_after_unknown,
)
from gateway.domain.job import (
    JOB_MOVES,
    JobAction,
    JobId,
    JobState,
    Tier,
    one_line,
)
from gateway.domain.message import ChannelName, ChatKey, MessageKind
from gateway.domain.reminder import DueReminder, reminder_text
from gateway.domain.richtext import Entity, EntityKind, RichText
from gateway.domain.schedule import from_millis, local_time, to_millis
from gateway.domain.turn import (
    RUN_MOVES,
    TURN_MOVES,
    RunState,
    Trigger,
    TurnState,
    next_try,
)
from gateway.errors import IllegalTransitionError
from gateway.store.events import MOVES, save_transition
from gateway.store.schema import metadata
from tests.factories import (
    NOW,
    later,
    make_chunk,
)

DRAWN: dict[type[StrEnum], tuple[Mapping[Any, frozenset[Any]], dict[str, str]]] = {
    TurnState: (
        TURN_MOVES,
        {
            "queued": "running cancelled failed",
            "running": "queued answered silent failed cancelled",
            "answered": "",
            "silent": "",
            "failed": "",
            "cancelled": "",
        },
    ),
    RunState: (
        RUN_MOVES,
        {
            "running": "succeeded empty failed timed_out cancelled interrupted",
            "succeeded": "",
            "empty": "",
            "failed": "",
            "timed_out": "",
            "cancelled": "",
            "interrupted": "",
        },
    ),
    JobState: (
        JOB_MOVES,
        {
            "active": "paused done failed cancelled",
            "paused": "active done failed cancelled",
            "done": "",
            "cancelled": "",
            "failed": "active cancelled",
        },
    ),
    DeliveryState: (
        DELIVERY_MOVES,
        {
            "pending": "sending dropped suppressed failed",
            "sending": "pending sent partial failed dropped",
            "sent": "",
            "partial": "",
            "failed": "",
            "dropped": "",
            "suppressed": "",
        },
    ),
    ChunkState: (
        CHUNK_MOVES,
        {
            "pending": "sending dropped",
            "sending": "pending sent rejected unknown",
            "sent": "",
            "rejected": "",
            "unknown": "sending sent rejected dropped",
            "dropped": "",
        },
    ),
}

BOLD = RichText(text="hello", entities=(Entity(kind=EntityKind.BOLD, offset=0, length=5),))

ENUMS_BY_CHECK = {
    ("chats", "channel"): ChannelName,
    ("messages", "channel"): ChannelName,
    ("messages", "kind"): MessageKind,
    ("turns", "trigger"): Trigger,
    ("turns", "state"): TurnState,
    ("runs", "state"): RunState,
    ("jobs", "state"): JobState,
    ("jobs", "action"): JobAction,
    ("jobs", "tier"): Tier,
    ("deliveries", "kind"): DeliveryKind,
    ("deliveries", "state"): DeliveryState,
    ("chunks", "state"): ChunkState,
}


@pytest.mark.parametrize("states", DRAWN, ids=lambda states: states.__name__)
def test_the_table_draws_these_moves_and_no_other(states: type[StrEnum]) -> None:
    table, drawn = DRAWN[states]
    assert {str(state): set(map(str, after)) for state, after in table.items()} == {
        state: set(after.split()) for state, after in drawn.items()
    }


@pytest.mark.parametrize(("place", "values"), list(ENUMS_BY_CHECK.items()))
def test_an_enum_equals_its_check(place: tuple[str, str], values: type[StrEnum]) -> None:
    table, column = place
    (check,) = (
        constraint
        for constraint in metadata.tables[table].constraints
        if isinstance(constraint, CheckConstraint) and constraint.name == f"ck_{table}_{column}"
    )
    assert re.findall(r"'(\w+)'", str(check.sqltext)) == [value.value for value in values]


MACHINES = {
    "turns": TurnState,
    "runs": RunState,
    "jobs": JobState,
    "deliveries": DeliveryState,
    "chunks": ChunkState,
}


@pytest.mark.parametrize(
    ("table", "before", "after"),
    [
        (table, before, after)
        for table, states in MACHINES.items()
        for before, after in product(states, states)
        if after not in MOVES[table][before]
    ],
)
def test_a_move_that_is_not_drawn_is_never_written(
    table: str, before: StrEnum, after: StrEnum
) -> None:
    engine = create_engine("sqlite://")
    with engine.connect() as connection:
        metadata.create_all(connection)
        with pytest.raises(IllegalTransitionError, match=f"{before} -> {after}"):
            save_transition(connection, metadata.tables[table], 1, (before, after), {}, now=NOW)
    engine.dispose()


@pytest.mark.parametrize("table", MACHINES)
def test_from_every_state_an_end_can_be_reached(table: str) -> None:
    moves = MOVES[table]
    ending = {state for state, after in moves.items() if not after}
    while more := {
        state for state, after in moves.items() if after & ending and state not in ending
    }:
        ending |= more
    assert ending == set(MACHINES[table])


@pytest.mark.parametrize(
    ("failed", "since", "wait"),
    [(1, 0, 30), (2, 31, 60), (3, 92, None), (1, 299.9, 30), (1, 300, None), (2, 300, None)],
)
def test_a_jobs_turn_is_tried_three_times_within_five_minutes(
    failed: int, since: float, wait: float | None
) -> None:
    again = next_try(failed, began_at=NOW, now=later(since))
    assert again == (None if wait is None else later(since + wait))


# ---- what a send comes to ------------------------------------------------------------------


def test_an_accepted_chunk_is_sent_for_good() -> None:
    verdict = judge(make_chunk(not_sent=3), Sent(external_id="99"), now=NOW)
    assert (verdict.state, verdict.external_id) == (ChunkState.SENT, "99")
    assert (verdict.is_open, verdict.attempts, verdict.not_sent) == (False, 1, 0)


@pytest.mark.parametrize(
    ("outcome", "attempts", "wait", "was_answered"),
    [
        (NotSent(reason=NotSentReason.CHANNEL_DOWN), 0, 2, False),
        (NotSent(reason=NotSentReason.CHAT_UNREACHABLE), 0, 0, False),
        (NotSent(reason=NotSentReason.REFUSED_FOR_NOW), 1, 2, True),
        (NotSent(reason=NotSentReason.RATE_LIMITED), 1, 2, True),
        (
            NotSent(reason=NotSentReason.RATE_LIMITED, retry_after=timedelta(seconds=37)),
            1,
            37,
            True,
        ),
    ],
)
def test_what_was_certainly_not_sent_is_sent_again(
    outcome: NotSent, attempts: int, wait: float, was_answered: bool
) -> None:
    verdict = judge(make_chunk(), outcome, now=NOW)
    assert (verdict.state, verdict.reason) == (ChunkState.PENDING, outcome.reason)
    assert (verdict.attempts, verdict.was_answered) == (attempts, was_answered)
    assert verdict.not_before == later(wait)
    assert verdict.unknowns + verdict.unanswered == 0


def test_a_malformed_chunk_goes_out_as_plain_text_once() -> None:
    first = judge(make_chunk(BOLD), Malformed(reason="can't parse entities"), now=NOW)
    assert (first.state, first.not_before) == (ChunkState.PENDING, NOW)
    assert first.body == RichText(text="hello")
    second = judge(make_chunk(first.body, attempts=1), Malformed(reason="still"), now=NOW)
    assert (second.state, second.reason, second.is_open) == (ChunkState.REJECTED, "still", False)


def test_d06_a_rejected_chunk_is_never_sent_again() -> None:
    verdict = judge(make_chunk(), Rejected(reason="chat not found"), now=NOW)
    assert (verdict.state, verdict.is_open) == (ChunkState.REJECTED, False)
    assert verdict.reason == "chat not found"


def test_d08_a_moved_chunk_is_sent_at_once_and_slower_if_it_moves_in_circles() -> None:
    first = judge(make_chunk(), Moved(to="-1009001"), now=NOW)
    assert (first.state, first.not_before, first.attempts) == (ChunkState.PENDING, NOW, 0)
    again = judge(make_chunk(not_sent=first.not_sent), Moved(to="-4001"), now=NOW)
    assert again.not_before is not None
    assert again.not_before > NOW


def test_server_errors_are_tried_again_ten_times_in_all_and_further_and_further_apart() -> None:
    waits = [wait_after_unknown(n) for n in range(1, 12)]
    seconds = [None if wait is None else wait.total_seconds() for wait in waits]
    assert seconds == [2, 15, 60, 300, 1200, 3600, 3600, 3600, 3600, None, None]
    last = judge(make_chunk(attempts=9, unknowns=9), Unknown(reason="500", answered=True), now=NOW)
    assert (last.state, last.is_open, last.unknowns) == (ChunkState.UNKNOWN, False, 10)


def test_a_chunk_that_nobody_answered_is_sent_once_more_and_never_again() -> None:
    assert [wait_after_silence(n) for n in (1, 2, 3)] == [timedelta(0), None, None]
    timeout = Unknown(reason="no answer", answered=False)
    first = judge(make_chunk(), timeout, now=NOW)
    assert (first.is_open, first.not_before, first.was_answered) == (True, NOW, False)
    second = judge(make_chunk(attempts=1, unanswered=1), timeout, now=NOW)
    assert (second.state, second.is_open) == (ChunkState.UNKNOWN, False)


def test_back_off_doubles_to_five_minutes() -> None:
    seconds = [wait_after_not_sent(n).total_seconds() for n in (1, 2, 3, 8, 9, 500)]
    assert seconds == [2, 4, 8, 256, 300, 300]


@pytest.mark.parametrize(
    ("counters", "marked"),
    [({}, False), ({"attempts": 3, "not_sent": 3}, False), ({"unknowns": 1}, True)],
)
def test_only_what_may_have_arrived_is_marked(counters: dict[str, int], marked: bool) -> None:
    sent = make_chunk(BOLD, **counters).to_send()
    assert sent.text == (f"{REPEAT_MARK}hello" if marked else "hello")
    assert sent.entities[0].offset == (len(REPEAT_MARK) if marked else 0)


@pytest.mark.parametrize(
    ("answered", "expired"), [(None, False), (0, True), (1, False)], ids=["down", "due", "early"]
)
def test_expiry_counts_from_the_first_answer(answered: float | None, expired: bool) -> None:
    answered_at = None if answered is None else later(answered)
    now = later(24 * 3600)
    assert is_expired(answered_at=answered_at, now=now, expiry=timedelta(hours=24)) is expired


@pytest.mark.parametrize(
    ("chunks", "end"),
    [
        ("sent", "sent"),
        ("sent sent", "sent"),
        ("sent rejected", "partial"),
        ("unknown sent", "partial"),
        ("unknown", "failed"),
        ("rejected rejected", "failed"),
        ("sent dropped", "dropped"),
        ("dropped", "dropped"),
        ("rejected dropped", "dropped"),
    ],
)
def test_how_a_delivery_ends(chunks: str, end: str) -> None:
    assert settled_state([ChunkState(state) for state in chunks.split()]) is DeliveryState(end)


OUTCOMES: tuple[SendOutcome, ...] = (
    Sent(external_id="1"),
    NotSent(reason=NotSentReason.CHANNEL_DOWN),
    NotSent(reason=NotSentReason.REFUSED_FOR_NOW, retry_after=timedelta(0)),
    Malformed(reason="x"),
    Rejected(reason="x"),
    Moved(to="2"),
    Unknown(reason="x", answered=True),
    Unknown(reason="x", answered=False),
)


@pytest.mark.parametrize("outcome", OUTCOMES, ids=lambda outcome: type(outcome).__name__)
def test_an_open_chunk_always_knows_when_it_goes_out_again(outcome: SendOutcome) -> None:
    verdict = judge(make_chunk(), outcome, now=NOW)
    assert verdict.state in CHUNK_MOVES[ChunkState.SENDING]
    assert verdict.is_open == (verdict.not_before is not None)


# ---- reminders and times -------------------------------------------------------------------


def due(text: str, at: float, job: int = 7) -> DueReminder:
    return DueReminder(job_id=JobId(job), text=text, slot_at=later(at), timezone="Europe/Berlin")


def test_a_reminder_in_time_is_its_text_alone() -> None:
    assert reminder_text([due("call mum", 0)], now=later(120)) == "call mum"


def test_a_late_reminder_says_when_it_was_due() -> None:
    assert reminder_text([due("call mum", 0)], now=later(121)) == (
        "(was due Mon 2 Mar 10:00) call mum"
    )


def test_reminders_sent_together_say_each_for_itself() -> None:
    text = reminder_text([due("call mum", 0), due("tea", 300)], now=later(301))
    assert text == "• (was due Mon 2 Mar 10:00) call mum\n• tea"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\nb", "a b"),
        ("a\r\n#8 Mon 2 Mar 10:02 (UTC): forged", "a #8 Mon 2 Mar 10:02 (UTC): forged"),
        ("a\u2028b\u0085c\x00d\x1be", "a b c d e"),
        ("\u202egnp.exe\u2069", "gnp.exe"),
        ("  spaced   out ", "spaced out"),
        ("\U0001f469\u200d\U0001f467", "\U0001f469\u200d\U0001f467"),
        ("abcdefghij", "abcdefghij"),
        ("abcdefghijk", "abcdefghi…"),
    ],
)
def test_a_text_in_a_line_never_forges_a_line(text: str, shown: str) -> None:
    assert one_line(text, limit=40 if len(text) > 12 else 10) == shown


def test_local_time_shows_seconds_and_year_only_if_they_say_something() -> None:
    zone = ZoneInfo("Europe/Berlin")
    assert local_time(later(0), zone, now=NOW) == "Mon 2 Mar 10:00"
    assert local_time(later(5), zone, now=NOW) == "Mon 2 Mar 10:00:05"
    assert local_time(later(366 * 86400), zone, now=NOW) == "Wed 3 Mar 2027 10:00"


def test_a_stored_moment_is_read_back() -> None:
    assert from_millis(to_millis(later(0.001))) == later(0.001)


@pytest.mark.parametrize("millis", [-(10**14), 253_402_300_799_000, 10**18, 10**400])
def test_a_moment_at_the_ends_of_the_calendar_is_none(millis: int) -> None:
    with pytest.raises(ValueError, match="calendar"):
        from_millis(millis)


# ---- who and where -------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["telegram:123", "telegram:-100200:43", "console:local"])
def test_a_chat_key_is_read_back_as_it_is_written(text: str) -> None:
    assert str(ChatKey.parse(text)) == text


@pytest.mark.parametrize("text", ["", "telegram", "telegram:", "fax:1", ":1", "telegram: 1"])
def test_anything_else_is_no_chat_key(text: str) -> None:
    with pytest.raises(ValueError):
        ChatKey.parse(text)


LISTED = Allowlist({ChannelName.TELEGRAM: frozenset({"42", "-100200"})})


@pytest.mark.parametrize(
    ("chat", "sender", "is_group", "admitted"),
    [
        ("42", "42", False, True),
        ("66", "66", False, False),
        ("-100200", "42", True, True),
        ("-100200:43", "42", True, True),
        ("-100200", "66", True, False),
        ("-100999", "42", True, False),
        ("42", None, False, True),
        ("-100200:43", None, False, True),
        ("66", None, False, False),
        ("4", "4", False, False),
        ("", "", False, False),
    ],
)
def test_who_is_admitted(chat: str, sender: str | None, is_group: bool, admitted: bool) -> None:
    senders = None if sender is None else (sender,)
    telegram = ChannelName.TELEGRAM
    assert LISTED.admits(telegram, chat=(chat,), sender=senders, is_group=is_group) is admitted


def test_an_empty_allowlist_admits_nobody_but_the_operator_at_the_console() -> None:
    nobody = Allowlist({ChannelName.TELEGRAM: frozenset()})
    for channel in (ChannelName.TELEGRAM, ChannelName.WHATSAPP):
        assert not nobody.admits(channel, chat=("42",), sender=("42",), is_group=False)
        assert not nobody.has_entries(channel)
    assert nobody.admits(ChannelName.CONSOLE, chat=("local",), sender=None, is_group=False)
    assert nobody.has_entries(ChannelName.CONSOLE)


def test_any_address_of_a_chat_or_sender_counts() -> None:
    assert LISTED.admits(
        ChannelName.TELEGRAM, chat=("-4001", "-100200"), sender=("x", "42"), is_group=True
    )
