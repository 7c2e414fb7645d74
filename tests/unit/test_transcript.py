"""The transcript survives a restart and every kind of damage."""

from pathlib import Path

import pytest

from gateway.hosts.builtin.loose_json import parse_object
from gateway.hosts.builtin.memory import Memory
from gateway.hosts.builtin.messages import (
    AssistantMessage,
    Call,
    StopReason,
    ToolOutcome,
    Turn,
    UserMessage,
)


def turn(text: str, *, tokens: int | None = None) -> Turn:
    return Turn(
        messages=(UserMessage(text=text), AssistantMessage(text=f"re: {text}")),
        context_tokens=tokens,
    )


TOOL_TURN = Turn(
    messages=(
        UserMessage(text="tea \u2028 ☕"),
        AssistantMessage(
            text="",
            calls=(Call(id="1", name="schedule", arguments={"text": "é"}),),
            stop=StopReason.TOOL_USE,
        ),
        ToolOutcome(call_id="1", name="schedule", text="#1", ok=True),
        AssistantMessage(text="done"),
    ),
    context_tokens=42,
)


def written(directory: Path, *turns: Turn) -> Path:
    memory = Memory(directory)
    for one in turns:
        memory.add(one)
    assert memory.file is not None
    return memory.file


def damaged(directory: Path) -> list[str]:
    return [path.name for path in directory.iterdir() if ".damaged-" in path.name]


def test_a_session_is_resumed_as_it_was(tmp_path: Path) -> None:
    first = Memory(tmp_path)
    first.add(turn("a"))
    first.add(TOOL_TURN)
    second = Memory(tmp_path)
    assert second.session_id == first.session_id
    assert second.file == first.file
    assert list(second.turns) == [turn("a"), TOOL_TURN]


def test_the_file_is_private_and_appears_with_the_first_turn(tmp_path: Path) -> None:
    memory = Memory(tmp_path)
    assert list(tmp_path.iterdir()) == []
    memory.add(turn("a"))
    assert memory.file is not None
    assert memory.file.stat().st_mode & 0o777 == 0o600
    header = parse_object(memory.file.read_bytes().split(b"\n")[0])
    assert header is not None
    assert (header["version"], header["id"]) == (1, memory.session_id)


def test_without_a_directory_nothing_is_written(tmp_path: Path) -> None:
    memory = Memory(None)
    memory.add(turn("a"))
    memory.condense("s", [])
    assert memory.file is None
    assert memory.summary == "s"


def test_m12_a_torn_last_line_costs_that_turn_alone(tmp_path: Path) -> None:
    path = written(tmp_path, turn("a"), turn("b"))
    path.write_bytes(path.read_bytes()[:-20])
    memory = Memory(tmp_path)
    assert list(memory.turns) == [turn("a")]
    memory.add(turn("c"))
    assert list(Memory(tmp_path).turns) == [turn("a"), turn("c")]
    assert damaged(tmp_path) == []


def test_m12_garbage_in_the_middle_is_skipped(tmp_path: Path) -> None:
    path = written(tmp_path, turn("a"), turn("b"))
    lines = path.read_bytes().split(b"\n")
    garbage = [b"null", b"\x00\xff\xfe", b"[" * 50_000, b'{"type":"turn"}', b'{"type":"odd"}', b""]
    path.write_bytes(b"\n".join([*lines[:2], *garbage, *lines[2:]]))
    assert list(Memory(tmp_path).turns) == [turn("a"), turn("b")]


def test_m12_a_turn_with_an_orphan_call_is_skipped(tmp_path: Path) -> None:
    path = written(tmp_path, turn("a"))
    orphan = (
        '{"type":"turn","messages":[{"role":"user","content":[{"type":"text","text":"x"}]},'
        '{"role":"assistant","content":[{"type":"toolCall","id":"1","name":"n","arguments":{}}],'
        '"stopReason":"toolUse"},'
        '{"role":"assistant","content":[{"type":"text","text":"y"}],"stopReason":"stop"}]}\n'
    )
    with path.open("a", encoding="utf-8") as file:
        file.write(orphan)
    assert list(Memory(tmp_path).turns) == [turn("a")]


def test_m12_a_file_without_a_header_still_gives_its_turns(tmp_path: Path) -> None:
    path = written(tmp_path, turn("a"))
    session_id = Memory(tmp_path).session_id
    path.write_bytes(path.read_bytes().split(b"\n", 1)[1])
    memory = Memory(tmp_path)
    assert list(memory.turns) == [turn("a")]
    assert memory.session_id == session_id


@pytest.mark.parametrize(
    "content",
    [b"", b"\n\n", b"\x00" * 4096, b"not json\n", b"null\n", b'{"type":"session","version":2}\n'],
)
def test_m12_a_file_of_no_use_is_set_aside(tmp_path: Path, content: bytes) -> None:
    path = written(tmp_path, turn("a"))
    old_id = Memory(tmp_path).session_id
    path.write_bytes(content)
    memory = Memory(tmp_path)
    assert memory.session_id != old_id
    assert memory.messages == ()
    (name,) = damaged(tmp_path)
    assert name.startswith(path.name)
    assert (tmp_path / name).read_bytes() == content
    memory.add(turn("b"))
    assert list(Memory(tmp_path).turns) == [turn("b")]


def test_m12_damage_does_not_bring_an_older_session_back(tmp_path: Path) -> None:
    memory = Memory(tmp_path)
    memory.add(turn("old"))
    memory.start_over()
    memory.add(turn("new"))
    assert memory.file is not None
    memory.file.write_bytes(b"garbage")
    fresh = Memory(tmp_path)
    assert fresh.messages == ()
    again = Memory(tmp_path)
    assert (again.messages, again.session_id) == ((), fresh.session_id)


def test_m12_a_transcript_that_is_a_directory_does_not_stop_the_start(tmp_path: Path) -> None:
    (tmp_path / "0000000000001-x.jsonl").mkdir()
    assert Memory(tmp_path).messages == ()
    assert len(damaged(tmp_path)) == 1


def test_a_failing_disk_costs_the_transcript_not_the_turn(tmp_path: Path) -> None:
    memory = Memory(tmp_path / "gone")
    memory.add(turn("a"))
    memory.condense("s", [turn("a")])
    assert list(memory.turns) == [turn("a")]


def test_a_new_session_is_the_one_resumed(tmp_path: Path) -> None:
    memory = Memory(tmp_path)
    memory.add(turn("old"))
    old_id = memory.session_id
    memory.start_over()
    assert memory.messages == ()
    assert memory.session_id != old_id
    assert Memory(tmp_path).session_id == memory.session_id
    memory.add(turn("new"))
    assert list(Memory(tmp_path).turns) == [turn("new")]


def test_a_new_session_is_resumed_although_the_clock_was_set_back(tmp_path: Path) -> None:
    path = written(tmp_path, turn("old"))
    path.rename(path.with_name("9" + path.name[1:]))
    memory = Memory(tmp_path)
    memory.start_over()
    memory.add(turn("new"))
    assert list(Memory(tmp_path).turns) == [turn("new")]


def test_a_compaction_is_resumed_with_the_turns_it_kept(tmp_path: Path) -> None:
    memory = Memory(tmp_path)
    memory.add(turn("a"))
    memory.add(turn("b", tokens=900))
    memory.condense("they spoke of a", memory.turns[1:])
    memory.add(turn("c", tokens=100))
    resumed = Memory(tmp_path)
    assert resumed.session_id == memory.session_id
    assert resumed.summary == "they spoke of a"
    assert list(resumed.turns) == [turn("b"), turn("c", tokens=100)]
    assert resumed.file is not None
    assert b"re: a" not in resumed.file.read_bytes()
    assert resumed.file.stat().st_mode & 0o777 == 0o600
