"""When a conversation is condensed, and what is kept of it."""

from gateway.hosts.builtin.compaction import (
    is_nearly_full,
    split_for_summary,
    summary_messages,
    summary_request,
    tidy_summary,
)
from gateway.hosts.builtin.messages import (
    AssistantMessage,
    Call,
    StopReason,
    ToolOutcome,
    Turn,
    UserMessage,
    message_size,
)


def turn(name: str, size: int = 100, *, tokens: int | None = None) -> Turn:
    return Turn(
        messages=(
            UserMessage(text=name.ljust(size // 2)),
            AssistantMessage(text="x" * (size // 2)),
        ),
        context_tokens=tokens,
    )


def test_the_servers_own_count_decides_where_there_is_one() -> None:
    assert not is_nearly_full([turn("a", tokens=690)], fresh=0, fixed=9_999, window=1000)
    assert is_nearly_full([turn("a", tokens=701)], fresh=0, fixed=0, window=1000)
    assert is_nearly_full([turn("a", tokens=690)], fresh=44, fixed=0, window=1000)


def test_without_a_count_four_characters_are_a_token() -> None:
    turns = [turn("a", 1200), turn("b", 1200)]
    assert not is_nearly_full(turns, fresh=300, fixed=100, window=1000)
    assert is_nearly_full(turns, fresh=300, fixed=104, window=1000)
    assert not is_nearly_full([], fresh=0, fixed=0, window=1000)


def test_the_older_half_is_condensed_and_the_newer_kept_whole() -> None:
    turns = [turn("a"), turn("b"), turn("c"), turn("d")]
    older, kept = split_for_summary(turns)
    assert (list(older), list(kept)) == (turns[:2], turns[2:])


def test_halves_are_measured_by_length() -> None:
    turns = [turn("a", 10), turn("b", 10), turn("c", 2000), turn("d", 10)]
    older, kept = split_for_summary(turns)
    assert (list(older), list(kept)) == (turns[:3], turns[3:])


def test_something_is_always_condensed() -> None:
    only = [turn("a")]
    assert split_for_summary(only) == (only, [])
    giant = [turn("a", 10), turn("b", 5000)]
    older, kept = split_for_summary(giant)
    assert (list(older), list(kept)) == (giant, [])


def test_a_call_and_its_outcome_stay_on_one_side() -> None:
    busy = Turn(
        messages=(
            UserMessage(text="tea"),
            AssistantMessage(
                text="",
                calls=(Call(id="1", name="schedule", arguments={}),),
                stop=StopReason.TOOL_USE,
            ),
            ToolOutcome(call_id="1", name="schedule", text="#1 " * 500, ok=True),
            AssistantMessage(text="done"),
        )
    )
    older, kept = split_for_summary([turn("a"), busy, turn("b")])
    for side in (older, kept):
        asked = {
            c.id
            for t in side
            for m in t.messages
            if isinstance(m, AssistantMessage)
            for c in m.calls
        }
        answered = {m.call_id for t in side for m in t.messages if isinstance(m, ToolOutcome)}
        assert asked == answered


def test_the_request_tells_the_whole_older_part_as_material() -> None:
    request = summary_request([turn("Anna likes tea")], "Her cat is Tom.", window=1000)
    (message,) = request.messages
    assert isinstance(message, UserMessage)
    assert "Her cat is Tom." in message.text
    assert "Person: Anna likes tea" in message.text
    assert request.tools == ()


def test_m11_condensing_an_overfull_conversation_does_not_overflow_itself() -> None:
    turns = [turn("a", 50), turn("b", 400_000), turn("c", 50)] + [turn("d", 50)] * 3000
    request = summary_request(turns, None, window=1000)
    assert sum(message_size(message) for message in request.messages) <= 1000 // 2 * 4
    (message,) = summary_request([turn("keep me"), turn("b", 400_000)], None, 1000).messages
    assert isinstance(message, UserMessage)
    assert "keep me" in message.text
    assert len(message.text) <= 2000


def test_a_summary_opens_the_conversation_with_alternating_roles() -> None:
    first, second = summary_messages("Anna likes tea.")
    assert isinstance(first, UserMessage)
    assert isinstance(second, AssistantMessage)
    assert "Anna likes tea." in first.text


def test_a_summary_is_bounded() -> None:
    assert tidy_summary("  a  ") == "a"
    assert len(tidy_summary("x" * 100_000)) == 8000
