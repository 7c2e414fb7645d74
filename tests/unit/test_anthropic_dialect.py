"""The Anthropic dialect: what is asked, what is cached, and how a reply is put together."""

from typing import cast

import pytest

from gateway.hosts.builtin.anthropic import AnthropicDialect, AnthropicReader
from gateway.hosts.builtin.dialect import ModelRequest, TextPiece, ThinkingPiece, ToolSpec
from gateway.hosts.builtin.failures import ModelError
from gateway.hosts.builtin.messages import (
    AssistantMessage,
    Call,
    StopReason,
    ToolOutcome,
    Usage,
    UserMessage,
)
from tests.fakes.model_events import (
    CallsDelta,
    Delta,
    FinishDelta,
    TextDelta,
    ThoughtDelta,
    make_anthropic_encoder,
)
from tests.fakes.model_script import JsonObject, Shape, ToolUse

LIST = ToolSpec(name="list", description="d", parameters={"type": "object", "properties": {}})


def read_all(*deltas: Delta) -> AssistantMessage:
    encode = make_anthropic_encoder()
    reader = AnthropicReader()
    for delta in deltas:
        for event in encode(delta):
            assert isinstance(event, dict)
            reader.feed(event)
    return reader.reply()


def rendered(*messages: UserMessage | AssistantMessage | ToolOutcome) -> list[JsonObject]:
    request = ModelRequest(system="s", messages=messages, tools=(LIST,))
    body = AnthropicDialect(model="m", base_url=None).body(request)
    return cast("list[JsonObject]", body["messages"])


@pytest.mark.parametrize(
    ("base", "url"),
    [
        (None, "https://api.anthropic.com/v1/messages"),
        ("http://host:1", "http://host:1/v1/messages"),
        ("http://host:1/v1/", "http://host:1/v1/messages"),
        ("http://host:1/v1/messages", "http://host:1/v1/messages"),
        ("https://proxy/anthropic", "https://proxy/anthropic/v1/messages"),
    ],
)
def test_every_usual_form_of_the_base_url_leads_to_the_endpoint(base: str | None, url: str) -> None:
    assert AnthropicDialect(model="m", base_url=base).url == url


def test_headers_name_the_version_and_carry_a_key_only_if_there_is_one() -> None:
    dialect = AnthropicDialect(model="m", base_url=None)
    assert dialect.headers(None) == {"anthropic-version": "2023-06-01"}
    assert dialect.headers("k")["x-api-key"] == "k"


def test_the_system_block_and_the_last_user_block_are_cached() -> None:
    request = ModelRequest(
        system="s",
        messages=(UserMessage(text="a"), AssistantMessage(text="b"), UserMessage(text="c")),
    )
    body = AnthropicDialect(model="m", base_url=None).body(request)
    cached = {"cache_control": {"type": "ephemeral"}}
    assert body["system"] == [{"type": "text", "text": "s"} | cached]
    assert body["messages"] == [
        {"role": "user", "content": [{"type": "text", "text": "a"}]},
        {"role": "assistant", "content": [{"type": "text", "text": "b"}]},
        {"role": "user", "content": [{"type": "text", "text": "c"} | cached]},
    ]
    assert body["stream"] is True
    assert isinstance(body["max_tokens"], int)


def test_outcomes_of_parallel_calls_go_back_in_one_message() -> None:
    calls = (
        Call(id="1", name="list", arguments={}),
        Call(id="2", name="list", arguments={"all": True}),
    )
    messages = rendered(
        UserMessage(text="a"),
        AssistantMessage(text="", calls=calls),
        ToolOutcome(call_id="1", name="list", text="x", ok=True),
        ToolOutcome(call_id="2", name="list", text="y", ok=False),
    )
    assert [message["role"] for message in messages] == ["user", "assistant", "user"]
    assert messages[1]["content"] == [
        {"type": "tool_use", "id": "1", "name": "list", "input": {}},
        {"type": "tool_use", "id": "2", "name": "list", "input": {"all": True}},
    ]
    results = cast("list[JsonObject]", messages[2]["content"])
    assert [(block["tool_use_id"], block["is_error"]) for block in results] == [
        ("1", False),
        ("2", True),
    ]
    assert "cache_control" in results[1]


def test_tools_are_described_in_the_dialects_own_words() -> None:
    request = ModelRequest(system="s", messages=(UserMessage(text="a"),), tools=(LIST,))
    body = AnthropicDialect(model="m", base_url=None).body(request)
    assert body["tools"] == [{"name": "list", "description": "d", "input_schema": LIST.parameters}]


def test_two_questions_in_a_row_share_a_message() -> None:
    messages = rendered(UserMessage(text="a"), UserMessage(text="b"))
    assert len(messages) == 1


def test_d25_a_reply_is_its_text_without_the_thinking() -> None:
    reader = AnthropicReader()
    encode = make_anthropic_encoder()
    pieces = [
        piece
        for delta in (ThoughtDelta(text="secret"), TextDelta(text="Hi"))
        for event in encode(delta)
        if isinstance(event, dict)
        for piece in reader.feed(event)
    ]
    assert pieces == [ThinkingPiece(), TextPiece(text="Hi")]


def test_text_calls_and_usage_are_put_together() -> None:
    reply = read_all(
        TextDelta(text="Let me"),
        TextDelta(text=" see."),
        CallsDelta(
            calls=(
                ToolUse(name="list", arguments={"a": "é"}),
                ToolUse(name="list", arguments={}),
            ),
            shape=Shape.PROPER,
        ),
        FinishDelta(reason="tool_calls", usage=(20, 8), has_end=True),
    )
    assert reply.text == "Let me see."
    assert [(call.id, call.arguments) for call in reply.calls] == [
        ("toolu_0", {"a": "é"}),
        ("toolu_1", {}),
    ]
    assert reply.stop is StopReason.TOOL_USE
    assert reply.usage == Usage(input_tokens=20, output_tokens=8)


def test_cached_tokens_count_as_input() -> None:
    reader = AnthropicReader()
    usage = {
        "input_tokens": 3,
        "cache_read_input_tokens": 100,
        "cache_creation_input_tokens": 7,
        "output_tokens": 1,
    }
    reader.feed({"type": "message_start", "message": {"usage": usage}})
    reader.feed(
        {
            "type": "message_delta",
            "delta": {"stop_reason": "max_tokens"},
            "usage": {"output_tokens": 9},
        }
    )
    reply = reader.reply()
    assert reply.usage == Usage(input_tokens=110, output_tokens=9)
    assert reply.stop is StopReason.LENGTH


def test_pings_and_unknown_events_are_passed_over() -> None:
    reader = AnthropicReader()
    assert reader.feed({"type": "ping"}) == ()
    assert reader.feed({"type": "brand_new"}) == ()
    reader.feed({"type": "message_stop"})
    assert reader.reply().text == ""


def test_an_overload_inside_the_stream_is_passing() -> None:
    event: JsonObject = {
        "type": "error",
        "error": {"type": "overloaded_error", "message": "Overloaded"},
    }
    with pytest.raises(ModelError, match=r"^529: overloaded_error Overloaded") as caught:
        AnthropicReader().feed(event)
    assert caught.value.is_passing


def test_a_stream_that_breaks_off_is_no_reply() -> None:
    with pytest.raises(ModelError, match="without a stop reason"):
        read_all(TextDelta(text="half"))


def test_a_refusal_without_text_is_an_error() -> None:
    with pytest.raises(ModelError, match="refusal"):
        read_all(FinishDelta(reason="refusal", usage=None, has_end=True))
