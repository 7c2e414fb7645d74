"""Sending one text to one chat: its states, what a channel may answer, and when to try again."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import NewType, assert_never

from gateway.domain.chunking import RichText
from gateway.domain.state import check_move

DeliveryId = NewType("DeliveryId", int)
ChunkId = NewType("ChunkId", int)

REPEAT_MARK = "(may be a repeat) "
"""Starts any text that may have arrived before."""

MAX_UNKNOWN_SENDS = 10
"""How often a chunk whose outcome stays unknown is sent when the server answered each time."""

_SERVER_ERROR_WAITS = (2.0, 15.0, 60.0, 300.0, 1200.0)
_HOUR = 3600.0
_MAX_NOT_SENT_WAIT = 300.0


class DeliveryKind(StrEnum):
    """What is being sent."""

    REPLY = "reply"
    REMINDER = "reminder"
    NOTICE = "notice"
    COMMAND = "command"


class DeliveryState(StrEnum):
    """Where a delivery stands; DELIVERY_MOVES draws the moves."""

    PENDING = "pending"  # nothing is on the wire
    SENDING = "sending"  # a chunk is on the wire
    SENT = "sent"  # the transport accepted every chunk
    PARTIAL = "partial"  # it accepted some
    FAILED = "failed"  # it accepted none
    DROPPED = "dropped"  # taken back before the end
    SUPPRESSED = "suppressed"  # there is nothing to send


class ChunkState(StrEnum):
    """Where a chunk stands; CHUNK_MOVES draws the moves."""

    PENDING = "pending"  # not sent yet, or to be sent again
    SENDING = "sending"  # committed before the network call
    SENT = "sent"  # the transport accepted it
    REJECTED = "rejected"  # the transport refused it for good
    UNKNOWN = "unknown"  # it may or may not have gone out
    DROPPED = "dropped"  # taken back


_D = DeliveryState
DELIVERY_MOVES: dict[DeliveryState, frozenset[DeliveryState]] = {
    _D.PENDING: frozenset({_D.SENDING, _D.DROPPED, _D.SUPPRESSED, _D.FAILED}),
    _D.SENDING: frozenset({_D.PENDING, _D.SENT, _D.PARTIAL, _D.FAILED, _D.DROPPED}),
    _D.SENT: frozenset(),
    _D.PARTIAL: frozenset(),
    _D.FAILED: frozenset(),
    _D.DROPPED: frozenset(),
    _D.SUPPRESSED: frozenset(),
}
_C = ChunkState
CHUNK_MOVES: dict[ChunkState, frozenset[ChunkState]] = {
    _C.PENDING: frozenset({_C.SENDING, _C.DROPPED}),
    _C.SENDING: frozenset({_C.PENDING, _C.SENT, _C.REJECTED, _C.UNKNOWN}),
    _C.UNKNOWN: frozenset({_C.SENDING, _C.SENT, _C.REJECTED, _C.DROPPED}),
    _C.SENT: frozenset(),
    _C.REJECTED: frozenset(),
    _C.DROPPED: frozenset(),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """The transport accepted the chunk."""

    external_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NotSent:
    """The chunk certainly did not go out; `reason` is one of the words below.

    `retry_after` is what the platform asked for; without it the back-off decides.
    """

    reason: "NotSentReason"
    retry_after: timedelta | None = None


class NotSentReason(StrEnum):
    """Why a chunk certainly did not go out."""

    CHANNEL_DOWN = "channel_down"  # nobody was reached: no attempt is counted
    RATE_LIMITED = "rate_limited"  # 429: holds this chat alone
    CHAT_UNREACHABLE = "chat_unreachable"  # 403: waits until the chat writes again
    REFUSED_FOR_NOW = "refused_for_now"  # anything else that was certainly not sent


@dataclass(frozen=True, slots=True, kw_only=True)
class Malformed:
    """The platform refused the formatting: the same chunk may go out as plain text."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejected:
    """The platform refused the chunk for good; `chat_gone` says that no other will do better."""

    reason: str
    chat_gone: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Moved:
    """The chat has a new address; nothing was sent."""

    to: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Unknown:
    """The chunk may have gone out. `answered` says that the server gave an answer (a 5xx)."""

    reason: str
    answered: bool


SendOutcome = Sent | NotSent | Malformed | Rejected | Moved | Unknown


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """One transport-sized piece of a delivery, with what its sends so far came to.

    `attempts` counts sends that reached the platform, `unknowns` those of them that it answered
    with a server error, `unanswered` those that nobody answered, `not_sent` certain failures in a
    row.
    """

    id: ChunkId
    delivery_id: DeliveryId
    number: int
    state: ChunkState
    body: RichText
    attempts: int
    unknowns: int
    unanswered: int
    not_sent: int

    @property
    def may_have_arrived(self) -> bool:
        """Whether an earlier send of it may have gone out."""
        return self.unknowns + self.unanswered > 0

    def to_send(self) -> RichText:
        """What goes on the wire: marked when it may be a repeat."""
        return self.body.prefixed(REPEAT_MARK) if self.may_have_arrived else self.body


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What a send outcome makes of a chunk: its new state and counters.

    `not_before` is when it may be sent again; an unknown chunk without it is not sent again.
    `was_answered` says that the platform took part, from which the expiry counts.
    """

    state: ChunkState
    body: RichText
    attempts: int
    unknowns: int
    unanswered: int
    not_sent: int
    reason: str | None = None
    not_before: datetime | None = None
    external_id: str | None = None
    was_answered: bool = True

    @property
    def is_open(self) -> bool:
        """Whether the chunk will be sent again."""
        return self.state is ChunkState.PENDING or (
            self.state is ChunkState.UNKNOWN and self.not_before is not None
        )


def judge(chunk: Chunk, outcome: SendOutcome, *, now: datetime) -> Verdict:
    """Decide what a send outcome makes of the chunk that was on the wire."""
    same = Verdict(
        state=ChunkState.PENDING,
        body=chunk.body,
        attempts=chunk.attempts + 1,
        unknowns=chunk.unknowns,
        unanswered=chunk.unanswered,
        not_sent=0,
        not_before=now,
    )
    match outcome:
        case Sent(external_id=external_id):
            verdict = replace(same, state=ChunkState.SENT, external_id=external_id, not_before=None)
        case NotSent():
            verdict = _judge_not_sent(chunk, outcome, same, now=now)
        case Malformed(reason=reason) if chunk.body.entities:
            verdict = replace(same, body=chunk.body.plain(), reason=f"malformed: {reason}")
        case Malformed(reason=reason) | Rejected(reason=reason):
            verdict = replace(same, state=ChunkState.REJECTED, reason=reason, not_before=None)
        case Moved():
            verdict = _judge_moved(chunk, same, now=now)
        case Unknown():
            verdict = _judge_unknown(chunk, outcome, same, now=now)
        case _:
            assert_never(outcome)
    check_move(CHUNK_MOVES, ChunkState.SENDING, verdict.state)
    return verdict


def _judge_not_sent(chunk: Chunk, outcome: NotSent, same: Verdict, *, now: datetime) -> Verdict:
    failures = chunk.not_sent + 1
    wait = outcome.retry_after or wait_after_not_sent(failures)
    match outcome.reason:
        case NotSentReason.CHANNEL_DOWN:
            return replace(
                same,
                attempts=chunk.attempts,
                not_sent=failures,
                reason=outcome.reason,
                not_before=now + wait,
                was_answered=False,
            )
        case NotSentReason.CHAT_UNREACHABLE:
            # The chat itself holds it back until it can be reached, and not a moment longer.
            return replace(same, attempts=chunk.attempts, reason=outcome.reason, was_answered=False)
        case NotSentReason.RATE_LIMITED | NotSentReason.REFUSED_FOR_NOW:
            return replace(same, not_sent=failures, reason=outcome.reason, not_before=now + wait)
        case _:
            assert_never(outcome.reason)


def _judge_moved(chunk: Chunk, same: Verdict, *, now: datetime) -> Verdict:
    """At once to the new address; a platform that moves a chat in circles is slowed down."""
    moves = chunk.not_sent + 1
    wait = wait_after_not_sent(moves) if moves > 1 else timedelta(0)
    return replace(
        same, attempts=chunk.attempts, not_sent=moves, reason="moved", not_before=now + wait
    )


def _judge_unknown(chunk: Chunk, outcome: Unknown, same: Verdict, *, now: datetime) -> Verdict:
    unknowns = chunk.unknowns + outcome.answered
    unanswered = chunk.unanswered + (not outcome.answered)
    wait = wait_after_unknown(unknowns) if outcome.answered else wait_after_silence(unanswered)
    return replace(
        same,
        state=ChunkState.UNKNOWN,
        unknowns=unknowns,
        unanswered=unanswered,
        reason=outcome.reason,
        not_before=None if wait is None else now + wait,
        was_answered=outcome.answered,
    )


def wait_after_unknown(unknowns: int) -> timedelta | None:
    """How long to wait after the n-th server error of a chunk; None = do not send it again.

    2 s, 15 s, 1, 5, 20 min, then hourly, at most ten sends.
    """
    if unknowns >= MAX_UNKNOWN_SENDS:
        return None
    index = unknowns - 1
    seconds = _SERVER_ERROR_WAITS[index] if index < len(_SERVER_ERROR_WAITS) else _HOUR
    return timedelta(seconds=seconds)


def wait_after_silence(unanswered: int) -> timedelta | None:
    """How long to wait after the n-th send that nobody answered: once more, at once."""
    return timedelta(0) if unanswered <= 1 else None


def wait_after_not_sent(failures: int) -> timedelta:
    """Back-off after the n-th certain failure in a row: 2 s, 4 s ... capped at 5 minutes."""
    return timedelta(seconds=min(_MAX_NOT_SENT_WAIT, 2.0 ** min(failures, 20)))


def is_expired(*, answered_at: datetime | None, now: datetime, expiry: timedelta) -> bool:
    """Whether a delivery whose first answered attempt was then may be given up now."""
    return answered_at is not None and now - answered_at >= expiry


def settled_state(chunks: Sequence[ChunkState]) -> DeliveryState:
    """How a delivery ends whose chunks have all ended."""
    if ChunkState.DROPPED in chunks:
        return DeliveryState.DROPPED
    sent = sum(state is ChunkState.SENT for state in chunks)
    if sent == len(chunks):
        return DeliveryState.SENT
    return DeliveryState.PARTIAL if sent else DeliveryState.FAILED
