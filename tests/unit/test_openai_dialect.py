"""The chat-completions dialect: what is asked, and what is made of odd answers."""

import json

import pytest

from gateway.hosts.builtin.dialect import ModelRequest, TextPiece, ThinkingPiece, ToolSpec
from gateway.hosts.builtin.failures import ModelError, error_from_body, redact
from gateway.hosts.builtin.messages import (
    AssistantMessage,
    Call,
    StopReason,
    ToolOutcome,
    Usage,
    UserMessage,
)
from gateway.hosts.builtin.openai import OpenAIDialect, OpenAIReader
from gateway.hosts.builtin.recovery import recover_calls
from gateway.hosts.builtin.sse import EventParser
from tests.fakes.model_events import CallsDelta, FinishDelta, openai_events
from tests.fakes.model_script import JsonObject, Shape, ToolUse

SCHEDULE = ToolSpec(
    name="schedule",
    description="Create a reminder.",
    parameters={
        "type": "object",
        "properties": {"text": {"type": "string"}, "when": {"type": "string"}},
        "required": ["text", "when"],
    },
)
TEA = ToolUse(name="schedule", arguments={"text": "tea", "when": "in 5 minutes"})
BATH = ToolUse(name="schedule", arguments={"text": "bath ☕\u2028", "when": "tomorrow at 9"})


def read_all(*events: JsonObject | str) -> AssistantMessage:
    reader = OpenAIReader()
    for event in events:
        if isinstance(event, str):
            reader.end()
        else:
            reader.feed(event)
    return reader.reply()


def delta(fields: JsonObject, finish: str | None = None) -> JsonObject:
    return {"choices": [{"delta": fields, "finish_reason": finish}]}


@pytest.mark.parametrize(
    ("base", "url"),
    [
        (None, "https://api.openai.com/v1/chat/completions"),
        ("http://host:1234", "http://host:1234/v1/chat/completions"),
        ("http://host:1234/", "http://host:1234/v1/chat/completions"),
        ("http://host:1234/v1", "http://host:1234/v1/chat/completions"),
        ("http://host:1234/v1/", "http://host:1234/v1/chat/completions"),
        ("http://host:1234/v1/chat/completions", "http://host:1234/v1/chat/completions"),
        ("https://openrouter.ai/api/v1", "https://openrouter.ai/api/v1/chat/completions"),
        ("localhost:11434", "http://localhost:11434/v1/chat/completions"),
        ("models.example.org", "https://models.example.org/v1/chat/completions"),
    ],
)
def test_every_usual_form_of_the_base_url_leads_to_the_endpoint(base: str | None, url: str) -> None:
    assert OpenAIDialect(model="m", base_url=base).url == url


def test_a_missing_key_sends_no_authorization() -> None:
    dialect = OpenAIDialect(model="m", base_url=None)
    assert dialect.headers(None) == {}
    assert dialect.headers("k") == {"authorization": "Bearer k"}


def test_a_conversation_with_tools_is_rendered_whole() -> None:
    request = ModelRequest(
        system="be brief",
        messages=(
            UserMessage(text="tea"),
            AssistantMessage(text="", calls=(Call(id="c1", name="schedule", arguments={"a": 1}),)),
            ToolOutcome(call_id="c1", name="schedule", text="#1", ok=True),
            AssistantMessage(text="done"),
        ),
        tools=(SCHEDULE,),
    )
    body = OpenAIDialect(model="m", base_url=None).body(request)
    assert body["messages"] == [
        {"role": "system", "content": "be brief"},
        {"role": "user", "content": "tea"},
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [
                {
                    "id": "c1",
                    "type": "function",
                    "function": {"name": "schedule", "arguments": '{"a": 1}'},
                }
            ],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "#1"},
        {"role": "assistant", "content": "done"},
    ]
    assert body["model"] == "m"
    assert body["stream_options"] == {"include_usage": True}
    assert body["tools"] == [
        {
            "type": "function",
            "function": {
                "name": "schedule",
                "description": "Create a reminder.",
                "parameters": SCHEDULE.parameters,
            },
        }
    ]


def test_without_tools_on_offer_earlier_tool_traffic_is_left_out() -> None:
    request = ModelRequest(
        system="s",
        messages=(
            UserMessage(text="tea"),
            AssistantMessage(text="wait", calls=(Call(id="c", name="schedule", arguments={}),)),
            ToolOutcome(call_id="c", name="schedule", text="#1", ok=True),
            AssistantMessage(text="done"),
            UserMessage(text="thanks"),
        ),
    )
    body = OpenAIDialect(model="m", base_url=None).body(request)
    assert "tools" not in body
    messages = body["messages"]
    assert isinstance(messages, list)
    assert [message["content"] for message in messages] == ["s", "tea", "done", "thanks"]


def test_pieces_add_up_to_the_reply_and_its_usage() -> None:
    reader = OpenAIReader()
    assert reader.feed(delta({"content": "Hel"})) == (TextPiece(text="Hel"),)
    assert reader.feed(delta({"content": "lo"}, "stop")) == (TextPiece(text="lo"),)
    reader.feed({"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 2}})
    assert reader.reply() == AssistantMessage(
        text="Hello", usage=Usage(input_tokens=7, output_tokens=2)
    )


def test_d25_reasoning_content_shows_life_but_is_no_text() -> None:
    reader = OpenAIReader()
    assert reader.feed(delta({"reasoning_content": "secret"})) == (ThinkingPiece(),)
    assert reader.feed(delta({"reasoning": "plan"})) == (ThinkingPiece(),)
    reader.feed(delta({"content": "Here."}, "stop"))
    assert reader.reply().text == "Here."


@pytest.mark.parametrize(
    "shape",
    [
        Shape.PROPER,
        Shape.NO_INDEX,
        Shape.NO_ID,
        Shape.BARE,
        Shape.SAME_INDEX,
        Shape.OBJECT,
        Shape.STOP,
    ],
)
def test_two_parallel_calls_are_told_apart_in_every_shape(shape: Shape) -> None:
    finish = FinishDelta(
        reason="stop" if shape is Shape.STOP else "tool_calls", usage=None, has_end=True
    )
    calls = CallsDelta(calls=(TEA, BATH), shape=shape)
    reply = read_all(*openai_events(calls), *openai_events(finish))
    assert [(call.name, call.arguments, call.problem) for call in reply.calls] == [
        ("schedule", TEA.arguments, None),
        ("schedule", BATH.arguments, None),
    ]
    assert reply.stop is StopReason.TOOL_USE
    assert reply.usage is None
    ids = {call.id for call in reply.calls}
    assert len(ids) == 2
    assert "" not in ids


def test_calls_with_one_id_for_all_get_ids_of_their_own() -> None:
    call = {"id": "x", "function": {"name": "schedule", "arguments": "{}"}}
    reply = read_all(delta({"tool_calls": [call, call]}, "tool_calls"))
    assert len({call.id for call in reply.calls}) == 2


@pytest.mark.parametrize(
    ("given", "arguments", "has_problem"),
    [
        ("", {}, False),
        (None, {}, False),
        ('"{\\"a\\": 1}"', {"a": 1}, False),
        ('{"a": ', {}, True),
        ("[1]", {}, True),
        ("[" * 100_000, {}, True),
    ],
)
def test_arguments_are_read_or_their_problem_is_named(
    given: object, arguments: JsonObject, has_problem: bool
) -> None:
    call = {"id": "x", "function": {"name": "schedule", "arguments": given}}
    (read,) = read_all(delta({"tool_calls": [call]}, "tool_calls")).calls
    assert read.arguments == arguments
    assert (read.problem is not None) is has_problem


def test_a_whole_completion_instead_of_a_stream_is_understood() -> None:
    message = {"role": "assistant", "content": [{"type": "text", "text": "hi"}]}
    reply = read_all({"choices": [{"message": message, "finish_reason": "length"}]})
    assert (reply.text, reply.stop) == ("hi", StopReason.LENGTH)


def test_the_end_mark_replaces_a_missing_finish_reason() -> None:
    assert read_all(delta({"content": "hi"}), "[DONE]").text == "hi"


def test_a_stream_that_breaks_off_is_no_reply() -> None:
    with pytest.raises(ModelError, match="without a finish reason") as caught:
        read_all(delta({"content": "hi"}))
    assert caught.value.is_passing


def test_an_error_inside_the_stream_is_raised_with_its_status() -> None:
    with pytest.raises(ModelError, match=r"^529: overloaded") as caught:
        OpenAIReader().feed({"error": {"code": 529, "message": "overloaded"}})
    assert caught.value.is_passing


def test_a_withheld_reply_is_an_error() -> None:
    with pytest.raises(ModelError, match="content_filter"):
        read_all(delta({}, "content_filter"))


@pytest.mark.parametrize(
    "text",
    [
        json.dumps({"name": "schedule", "arguments": TEA.arguments}),
        json.dumps({"name": "schedule", "arguments": json.dumps(TEA.arguments)}),
        json.dumps({"name": "schedule", "parameters": TEA.arguments}),
        json.dumps([{"name": "schedule", "arguments": TEA.arguments}]),
        "```json\n" + json.dumps({"name": "schedule", "arguments": TEA.arguments}) + "\n```",
        "<tool_call>\n" + json.dumps({"name": "schedule", "arguments": TEA.arguments}),
        "<tool_call>"
        + json.dumps({"name": "schedule", "arguments": TEA.arguments})
        + "</tool_call>\n",
    ],
)
def test_a_reply_that_is_only_a_call_is_recovered(text: str) -> None:
    (call,) = recover_calls(text, [SCHEDULE])
    assert (call.name, call.arguments) == ("schedule", TEA.arguments)
    assert call.id


def test_two_tagged_calls_are_both_recovered() -> None:
    one = json.dumps({"name": "schedule", "arguments": TEA.arguments})
    text = f"<tool_call>{one}</tool_call>\n<tool_call>{one}</tool_call>"
    assert len(recover_calls(text, [SCHEDULE])) == 2


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Sure!",
        '{"name": "schedule"}',
        '{"name": "schedule", "arguments": {"text": "tea"}}',
        '{"name": "unknown", "arguments": {"text": "tea", "when": "now"}}',
        'Like this: {"name": "schedule", "arguments": {"text": "a", "when": "b"}}',
        'Now: <tool_call>{"name": "schedule", "arguments": {"text": "a", "when": "b"}}</tool_call>',
        '{"name": "schedule", "arguments": {"text": "a", "when": "b"}',
        "[]",
        "{}",
    ],
)
def test_text_that_is_more_or_less_than_a_call_stays_text(text: str) -> None:
    assert recover_calls(text, [SCHEDULE]) == ()


def test_s11_an_error_text_holds_no_key_and_no_address() -> None:
    body = (
        '{"error":{"message":"Incorrect API key provided: sk-proj-CANARY123456. '
        'See https://u:CANARY@host/account CANARYKEY"}}'
    )
    error = error_from_body(body, status=401, secret="CANARYKEY")
    assert str(error).startswith("401: Incorrect API key provided")
    assert "CANARY" not in str(error)
    assert "host" not in str(error)
    assert not error.is_passing


def test_a_long_or_foreign_error_body_becomes_one_short_line() -> None:
    body = b"<html><h1>502 Bad\n gateway</h1>" + b"x" * 5000
    text = str(error_from_body(body, status=502, secret=None))
    assert text.startswith("502: 502 Bad gateway xxx")
    assert len(text) < 320
    assert "\n" not in text
    assert str(error_from_body(b"", status=500, secret=None)) == "500: no body"
    assert redact("a\nb", None) == "a b"


@pytest.mark.parametrize(
    "message",
    [
        "This model's maximum context length is 8192 tokens",
        "prompt is too long: 210000 tokens > 200000 maximum",
        "the request exceeds the available context size",
        "Please reduce the length of the messages or completion",
    ],
)
def test_m11_overflow_is_recognised_and_named(message: str) -> None:
    error = error_from_body(json.dumps({"error": {"message": message}}), status=400, secret=None)
    assert error.is_overflow
    assert "context_length_exceeded" in str(error)
    assert not error.rejects_tools


@pytest.mark.parametrize(
    ("status", "message", "rejects"),
    [
        (400, "registry/gemma3 does not support tools", True),
        (400, "unexpected field", True),
        (404, "No endpoints found that support tool use", True),
        (500, "tools param requires --jinja flag", True),
        (404, "no such model", False),
        (500, "boom", False),
        (401, "tools need a key", False),
    ],
)
def test_a_server_without_tools_is_recognised(status: int, message: str, rejects: bool) -> None:
    error = error_from_body(json.dumps({"error": message}), status=status, secret=None)
    assert error.rejects_tools is rejects


def test_events_are_cut_at_line_feeds_only_however_the_bytes_arrive() -> None:
    stream = 'event: x\r\n: note\r\ndata: {"a":"\u2028é"}\r\n\r\ndata: 1\ndata: 2\n\n'.encode()
    parser = EventParser()
    events = [e for byte in stream for e in parser.feed(bytes([byte]))]
    assert events == ['{"a":"\u2028é"}', "1\n2"]
    assert parser.feed(b"data: last") == []
    assert parser.end() == ["last"]
    assert parser.end() == []
