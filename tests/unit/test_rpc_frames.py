"""Reading and writing lines of the RPC dialect."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.hosts.rpc_frames import (
    OtherFrame,
    Piece,
    Response,
    RunEnded,
    RunSettled,
    read_frame,
    write_frame,
)
from tests.fakes.pi_replay import RECORDINGS, recorded_lines

KNOWN = {"turn_start", "turn_end", "message_start", "message_end", "message_update"}
KNOWN |= {"auto_retry_end", "entry_appended"}


@pytest.mark.parametrize("path", sorted(RECORDINGS.glob("*/*.jsonl")), ids=str)
def test_every_recorded_line_is_read(path: Path) -> None:
    for line in recorded_lines(path):
        if not line.startswith("> "):
            frame = read_frame(line.encode())
            assert frame is not None
            assert not isinstance(frame, OtherFrame) or frame.type in KNOWN


@given(st.binary())
def test_m04_no_bytes_make_the_reader_fail(line: bytes) -> None:
    read_frame(line)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)
TYPES = ["response", "agent_end", "message_update", "tool_execution_end", "extension_ui_request"]


@given(
    st.sampled_from(TYPES),
    st.dictionaries(
        st.sampled_from(["id", "data", "messages", "command", "success", "assistantMessageEvent"]),
        JSON,
    ),
)
def test_m04_an_object_of_any_shape_is_some_frame(kind: str, fields: dict[str, object]) -> None:
    assert read_frame(json.dumps({**fields, "type": kind}).encode()) is not None


def test_an_assistant_message_of_any_shape_is_read() -> None:
    messages = [3, {"role": "assistant", "content": [7, {"type": "text"}], "usage": "none"}]
    frame = read_frame(json.dumps({"type": "agent_end", "messages": messages}).encode())

    assert isinstance(frame, RunEnded)
    assert frame.answer is not None
    assert frame.answer.text == ""
    assert frame.answer.stop_reason == ""


def test_an_unknown_type_is_a_sign_of_life() -> None:
    assert read_frame(b'{"type":"queue_update"}') == OtherFrame(type="queue_update")


@pytest.mark.parametrize("noise", ["x", "\u001b[0m", '{"a":1}', '{"type":"q"}', "{", '{"type"'])
def test_m04_a_response_glued_behind_noise_is_recovered(noise: str) -> None:
    line = noise + '{"id":"g1","type":"response","command":"prompt","success":true}'
    frame = read_frame(line.encode())

    assert isinstance(frame, Response)
    assert frame.id == "g1"
    assert frame.error is None


def test_words_that_look_like_a_frame_inside_a_text_are_text() -> None:
    trap = '{"type":"agent_settled"}'
    update = {"type": "text_delta", "delta": f"see {trap}"}
    line = json.dumps({"type": "message_update", "assistantMessageEvent": update})

    assert read_frame(b"noise" + line.encode()) == Piece(text=f"see {trap}")


def test_a_line_cut_short_is_nothing() -> None:
    assert read_frame(b'{"type":"agent_settled","aborted":fal') is None


def test_settled_is_read() -> None:
    assert read_frame(b'{"type":"agent_settled","aborted":false}\r') == RunSettled()


@given(st.text())
def test_m07_a_frame_is_one_line_whatever_its_text(text: str) -> None:
    line = write_frame({"type": "prompt", "message": text})

    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    assert json.loads(line.decode("utf-8").removesuffix("\n"))["message"] == text


def test_m07_text_beyond_ascii_is_written_as_it_is() -> None:
    assert "ß😀\u2028".encode() in write_frame({"message": "ß😀\u2028"})
