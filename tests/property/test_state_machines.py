"""Random walks over the state machines: only drawn moves, and every walk comes to an end."""

from dataclasses import replace
from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from gateway.domain.delivery import (
    CHUNK_MOVES,
    DELIVERY_MOVES,
    MAX_UNKNOWN_SENDS,
    Chunk,
    ChunkState,
    DeliveryState,
    Malformed,
    Moved,
    NotSent,
    NotSentReason,
    Rejected,
    SendOutcome,
    Sent,
    Unknown,
    judge,
    settled_state,
    wait_after_not_sent,
    wait_after_unknown,
)
from gateway.domain.richtext import Entity, EntityKind, RichText
from tests.factories import (
    NOW,
    later,
    make_chunk,
)

OUTCOMES: st.SearchStrategy[SendOutcome] = st.one_of(
    st.builds(Sent, external_id=st.text(max_size=3)),
    st.builds(
        NotSent,
        reason=st.sampled_from(NotSentReason),
        retry_after=st.none() | st.timedeltas(timedelta(0), timedelta(hours=1)),
    ),
    st.builds(Malformed, reason=st.just("bad entities")),
    st.builds(Rejected, reason=st.just("chat not found"), chat_gone=st.booleans()),
    st.builds(Moved, to=st.sampled_from(["-1009001", "-4001"])),
    st.builds(Unknown, reason=st.just("500"), answered=st.booleans()),
)
BODIES = st.sampled_from(
    [
        RichText(text="hello"),
        RichText(text="hello", entities=(Entity(kind=EntityKind.BOLD, offset=0, length=5),)),
    ]
)
COUNTERS = st.fixed_dictionaries(
    {
        "attempts": st.integers(0, 30),
        "unknowns": st.integers(0, 12),
        "unanswered": st.integers(0, 3),
        "not_sent": st.integers(0, 3000),
    }
)


@given(body=BODIES, counters=COUNTERS, outcome=OUTCOMES)
def test_a_verdict_is_always_a_drawn_move(
    body: RichText, counters: dict[str, int], outcome: SendOutcome
) -> None:
    chunk = make_chunk(body, **counters)
    verdict = judge(chunk, outcome, now=NOW)
    assert verdict.state in CHUNK_MOVES[ChunkState.SENDING]
    assert verdict.is_open == (verdict.not_before is not None)
    assert verdict.not_before is None or NOW <= verdict.not_before <= later(3600)
    assert verdict.attempts - chunk.attempts in (0, 1)
    assert verdict.unknowns >= chunk.unknowns
    assert verdict.unanswered >= chunk.unanswered
    assert verdict.body.text == body.text
    assert (verdict.external_id is not None) == (verdict.state is ChunkState.SENT)


def sent_again(chunk: Chunk, outcome: SendOutcome) -> Chunk | None:
    """The chunk as it goes on the wire the next time; None = it does not."""
    verdict = judge(chunk, outcome, now=NOW)
    if not verdict.is_open:
        return None
    return replace(
        chunk,
        body=verdict.body,
        attempts=verdict.attempts,
        unknowns=verdict.unknowns,
        unanswered=verdict.unanswered,
        not_sent=verdict.not_sent,
    )


@given(outcomes=st.lists(OUTCOMES, max_size=60))
def test_a_text_that_may_have_arrived_goes_out_marked_and_not_for_ever(
    outcomes: list[SendOutcome],
) -> None:
    chunk = make_chunk()
    may_have_arrived = 0
    for outcome in outcomes:
        assert chunk.to_send().text.startswith("(may be a repeat) ") == bool(may_have_arrived)
        following = sent_again(chunk, outcome)
        if following is None:
            return
        may_have_arrived += isinstance(outcome, Unknown)
        chunk = following
    assert may_have_arrived <= MAX_UNKNOWN_SENDS


@given(st.integers(1, 5000))
def test_waits_never_shrink_and_stay_bounded(failures: int) -> None:
    shorter, longer = wait_after_not_sent(failures), wait_after_not_sent(failures + 1)
    assert timedelta(seconds=2) <= shorter <= longer <= timedelta(minutes=5)
    wait = wait_after_unknown(failures)
    assert (wait is None) == (failures >= MAX_UNKNOWN_SENDS)
    assert wait is None or timedelta(seconds=2) <= wait <= timedelta(hours=1)


ENDED = st.sampled_from(
    [ChunkState.SENT, ChunkState.REJECTED, ChunkState.UNKNOWN, ChunkState.DROPPED]
)


@given(st.lists(ENDED, min_size=1, max_size=8))
def test_how_a_delivery_ends_does_not_depend_on_the_order(chunks: list[ChunkState]) -> None:
    end = settled_state(chunks)
    assert end in DELIVERY_MOVES[DeliveryState.SENDING]
    assert settled_state(list(reversed(chunks))) is end
    assert (end is DeliveryState.SENT) == (set(chunks) == {ChunkState.SENT})
    assert (end is DeliveryState.DROPPED) == (ChunkState.DROPPED in chunks)
    assert (end is DeliveryState.PARTIAL) == (
        ChunkState.SENT in chunks
        and ChunkState.DROPPED not in chunks
        and set(chunks) != {ChunkState.SENT}
    )
