"""The one door: who comes in, what is stored before it is acknowledged, and who is told what."""

import asyncio
import logging
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from gateway.domain.delivery import NotSent, NotSentReason
from gateway.domain.message import (
    Attachment,
    ChannelName,
    ChatKey,
    MessageKind,
    Move,
    NewMessage,
    Reachability,
)
from gateway.engine import texts
from gateway.engine.owner import Episode
from gateway.errors import CorruptDatabaseError, StoreBusyError, StoreError
from gateway.store.chats import admit_pairing, find_pairing, load_chat
from gateway.store.database import Database
from gateway.store.schema import chats, deliveries, jobs, messages, pairings, turns
from tests.factories import (
    CHAT,
    OTHER_CHAT,
    active_job,
    fire,
    later,
    make_edit,
    make_message,
    moment_of,
    queued_heartbeat,
    row_of,
    rows_of,
    states_of,
)
from tests.fakes.clock import ManualClock
from tests.fakes.local_host import LocalHost, Pause, hang, said
from tests.fakes.rig import Rig, RigRules, running_rig
from tests.fakes.sessions import eventually

STRANGER = ChatKey(CHAT.channel, "666")
GROUP = ChatKey(CHAT.channel, "-4001")
SUPERGROUP = ChatKey(CHAT.channel, "-1009001")
OWNER = ChatKey(CHAT.channel, "99")
PHOTO = Attachment(kind="photo", file_id="f1")
NOBODY = RigRules(allowed=())


@pytest.fixture
def host() -> LocalHost:
    return LocalHost()


def group_message(text: str = "hi", *, sender: str = "42", chat: ChatKey = GROUP) -> NewMessage:
    return replace(
        make_message(text, chat=chat),
        sender_id=sender,
        sender_addresses=(sender,),
        is_group=True,
    )


def photo(text: str = "", *, hold: float | None = None) -> NewMessage:
    return replace(make_message(text, hold=hold), attachments=(PHOTO,))


def in_group(*senders: str) -> RigRules:
    return RigRules(allowed=(GROUP.address, *senders), owner=OWNER)


# ---- strangers -------------------------------------------------------------------------------


async def test_i06_a_stranger_gets_nothing_at_all(
    store: Database, clock: ManualClock, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    words = ["secret words", "/start", "👋"]
    async with running_rig(store, clock, tmp_path) as rig:
        for text in words:
            assert not await rig.receive(text, chat=STRANGER)
        assert not await rig.receive(replace(make_message("", chat=STRANGER), attachments=(PHOTO,)))
        press = make_message("done:1", chat=STRANGER)
        assert not await rig.receive(replace(press, kind=MessageKind.BUTTON))
        assert await rig.receive("hello")
        await rig.until_sent("echo: hello")

    assert [shown.address for shown in rig.channel.tried] == ["42"]
    assert set(rig.channel.typing) <= {"42"}
    assert [row.text for row in await rows_of(store, messages)] == ["hello"]
    refusals = [record for record in caplog.records if record.message == "stranger_refused"]
    assert len(refusals) == 1
    assert not any(word in str(record.__dict__) for word in words for record in caplog.records)


async def test_i06_a_stranger_is_logged_once_an_hour(
    store: Database, clock: ManualClock, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with running_rig(store, clock, tmp_path) as rig:
        for minutes in (0, 30, 29, 1, 59):
            rig.advance(60 * minutes)
            await rig.receive("hi", chat=STRANGER)

    refusals = [record for record in caplog.records if record.message == "stranger_refused"]
    assert len(refusals) == 2


async def test_i07_with_an_empty_allowlist_nobody_comes_in(
    store: Database, clock: ManualClock, tmp_path: Path
) -> None:
    async with running_rig(store, clock, tmp_path, rules=NOBODY) as rig:
        assert not await rig.receive("hello")
        assert not await rig.intake.receive(make_edit("hello", make_message("helo")))

    assert await rows_of(store, chats) == []


async def test_a_group_needs_the_group_and_the_sender(
    store: Database, clock: ManualClock, tmp_path: Path
) -> None:
    async with running_rig(store, clock, tmp_path, rules=in_group("42")) as rig:
        assert not await rig.receive(group_message(sender="7"))
        assert not await rig.receive(group_message(chat=SUPERGROUP))
        assert await rig.receive(group_message())

    assert len(await rows_of(store, messages)) == 1


# ---- pairing ---------------------------------------------------------------------------------


async def test_a_stranger_is_given_one_code_an_hour_where_pairing_is_on(
    store: Database, clock: ManualClock, tmp_path: Path
) -> None:
    rules = RigRules(allowed=(), pairing=(ChannelName.TELEGRAM,))
    async with running_rig(store, clock, tmp_path, rules=rules) as rig:
        await rig.receive("hello")
        await rig.receive("hello?")
        await eventually(lambda: len(rig.channel.texts()) >= 1)
        (told,) = rig.channel.texts()
        (row,) = await rows_of(store, pairings, pairings.c.address == "42")
        assert f"gateway pair {row.code}" in told
        rig.advance(3600)
        await rig.receive("hello??")
        await eventually(lambda: len(rig.channel.texts()) >= 2)

    assert len(rig.channel.texts()) == 2
    assert await rows_of(store, messages) == []
    assert await rows_of(store, deliveries) == []


async def test_who_was_let_in_by_pairing_comes_in(
    store: Database, clock: ManualClock, tmp_path: Path
) -> None:
    rules = RigRules(allowed=(), pairing=(ChannelName.TELEGRAM,))
    async with running_rig(store, clock, tmp_path, rules=rules) as rig:
        await rig.receive("hello")
        (row,) = await rows_of(store, pairings, pairings.c.address == "42")
        pairing = await store.read(find_pairing, row.code, now=clock.now())
        assert pairing is not None
        await store.write(admit_pairing, pairing, now=clock.now())
        assert not await rig.receive("hello")
        await rig.intake.reload_paired()
        assert await rig.receive("hello")


async def test_a_group_is_never_offered_pairing(
    store: Database, clock: ManualClock, tmp_path: Path
) -> None:
    rules = RigRules(allowed=(), pairing=(ChannelName.TELEGRAM,))
    async with running_rig(store, clock, tmp_path, rules=rules) as rig:
        await rig.receive(group_message())

    assert rig.channel.tried == []


async def test_a_stranger_who_takes_no_answer_holds_up_nobody(
    store: Database, clock: ManualClock, tmp_path: Path
) -> None:
    rules = RigRules(allowed=("43",), pairing=(ChannelName.TELEGRAM,))
    async with running_rig(store, clock, tmp_path, rules=rules) as rig:
        rig.channel.shut("42")
        await rig.receive("hello")
        await eventually(lambda: len(rig.channel.tried) == 1)
        await rig.receive("hi", chat=OTHER_CHAT)
        await rig.until_sent("echo: hi", address="43")
        assert tasks_named("say:") == ["say:telegram:42"]

    assert tasks_named("say:") == []
    assert rig.channel.texts() == []


async def test_a_command_whose_effect_takes_long_holds_up_nobody(
    store: Database,
    clock: ManualClock,
    tmp_path: Path,
    host: LocalHost,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    host.steps.append(hang)
    reached, may_end = asyncio.Event(), asyncio.Event()

    async def stuck() -> None:
        reached.set()
        await may_end.wait()

    async with running_rig(store, clock, tmp_path, host=host) as rig:
        await rig.receive("work")
        await eventually(lambda: len(host.prompts) == 1)
        with monkeypatch.context() as patched:
            patched.setattr(host.sessions[0], "abort", stuck)
            await rig.receive("/stop")
            await reached.wait()
            await rig.receive("hi", chat=OTHER_CHAT)
            await rig.until_sent("echo: hi", address="43")
            assert tasks_named("follow:") == [f"follow:{CHAT}"]
        may_end.set()
        await eventually(lambda: tasks_named("follow:") == [])


async def test_an_effect_that_fails_is_logged(
    store: Database,
    clock: ManualClock,
    tmp_path: Path,
    host: LocalHost,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def refuse(chat: ChatKey) -> None:
        raise RuntimeError("no such process")

    async with running_rig(store, clock, tmp_path, host=host) as rig:
        monkeypatch.setattr(rig.pool, "evict", refuse)
        await rig.receive("/new")
        await eventually(lambda: bool(events(caplog, "background_failed")))

    (record,) = events(caplog, "background_failed")
    assert record.__dict__["task"] == f"follow:{CHAT}"


def events(caplog: pytest.LogCaptureFixture, event: str) -> list[logging.LogRecord]:
    return [record for record in caplog.records if record.message == event]


def tasks_named(start: str) -> list[str]:
    names = [task.get_name() for task in asyncio.all_tasks()]
    return [name for name in names if name.startswith(start)]


# ---- stored before acknowledged --------------------------------------------------------------


async def test_a_message_is_stored_when_receive_returns(
    store: Database, clock: ManualClock, tmp_path: Path, host: LocalHost
) -> None:
    host.may_start.clear()
    async with running_rig(store, clock, tmp_path, host=host) as rig:
        await rig.receive("hello")
        (message,) = await rows_of(store, messages)
        (turn,) = await rows_of(store, turns)
        assert (message.text, message.turn_id, turn.state) == ("hello", turn.id, "queued")
        host.may_start.set()


async def test_a_message_that_cannot_be_stored_is_not_acknowledged(
    store: Database, clock: ManualClock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*args: object, **kwargs: object) -> None:
        raise StoreBusyError("disk full")

    async with running_rig(store, clock, tmp_path) as rig:
        with monkeypatch.context() as patched:
            patched.setattr("gateway.engine.intake.admit_message", refuse)
            with pytest.raises(StoreBusyError):
                await rig.receive(make_message(external_id="u1"))
        await rig.receive(make_message(external_id="u1"))
        await rig.until_sent("echo: hello")


def broken(*args: object, **kwargs: object) -> None:
    raise ValueError("damaged row")


async def test_a_message_that_nothing_can_be_made_of_is_told_and_stops_nobody(
    store: Database,
    clock: ManualClock,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    bad = make_message("secret words", external_id="u1")
    async with running_rig(store, clock, tmp_path) as rig:
        with monkeypatch.context() as patched:
            patched.setattr("gateway.engine.intake.admit_message", broken)
            assert await rig.receive(bad)
            assert await rig.receive(bad)
        await rig.receive("next")
        await rig.until_sent(texts.NOT_TAKEN, "echo: next")

    first, _ = await rows_of(store, messages)
    assert (first.text, first.reason, first.turn_id) == ("secret words", "failed", None)
    assert len(await rows_of(store, deliveries)) == 2
    logged = events(caplog, "inbound_failed")
    assert [record.__dict__["external_id"] for record in logged] == ["u1", "u1"]
    assert not any("secret" in str(record.__dict__) for record in logged)


async def test_a_message_that_cannot_be_kept_at_all_stops_nobody(
    store: Database,
    clock: ManualClock,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with running_rig(store, clock, tmp_path) as rig:
        with monkeypatch.context() as patched:
            patched.setattr("gateway.engine.intake.admit_message", broken)
            patched.setattr("gateway.engine.intake.record_message", broken)
            patched.setattr("gateway.engine.intake.edit_message", broken)
            assert await rig.receive(make_message(external_id="u1"))
            assert await rig.intake.receive(make_edit("hello", make_message()))
        await rig.receive("next")
        await rig.until_sent("echo: next")

    (lost,) = events(caplog, "message_lost")
    assert lost.__dict__["external_id"] == "u1"


@pytest.mark.parametrize("error", [StoreBusyError, CorruptDatabaseError])
async def test_a_message_that_may_be_stored_later_is_not_given_up(
    error: type[StoreError],
    store: Database,
    clock: ManualClock,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(*args: object, **kwargs: object) -> None:
        raise error("not now")

    async with running_rig(store, clock, tmp_path) as rig:
        with monkeypatch.context() as patched:
            patched.setattr("gateway.engine.intake.admit_message", broken)
            patched.setattr("gateway.engine.intake.record_message", refuse)
            with pytest.raises(error):
                await rig.receive("hello")

    assert await rows_of(store, messages) == []


async def test_i06_a_stranger_is_told_nothing_of_what_goes_wrong(
    store: Database, clock: ManualClock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running_rig(store, clock, tmp_path) as rig:
        with monkeypatch.context() as patched:
            patched.setattr("gateway.engine.intake.chat_addresses", broken)
            assert not await rig.receive("hello", chat=STRANGER)

    assert await rows_of(store, messages) == []
    assert rig.channel.tried == []


async def test_the_same_update_twice_is_answered_once(
    store: Database, clock: ManualClock, tmp_path: Path
) -> None:
    message = make_message("hello")
    async with running_rig(store, clock, tmp_path) as rig:
        assert await rig.receive(message)
        assert await rig.receive(message)
        await rig.until_sent("echo: hello")
        assert await rig.receive(message)
        await rig.receive("next")
        await rig.until_sent("echo: hello", "echo: next")

    assert await states_of(store, turns) == ["answered", "answered"]
    assert await states_of(store, deliveries) == ["sent", "sent"]


async def test_what_cannot_be_stored_is_taken_out_of_a_text(
    store: Database, clock: ManualClock, tmp_path: Path
) -> None:
    odd = replace(make_message("a\0b\ud800c\u2028d"), sender_name="A\0da", quoted="q\0")
    async with running_rig(store, clock, tmp_path) as rig:
        await rig.receive(odd)
        await rig.until(turns, ["answered"])

    (row,) = await rows_of(store, messages)
    assert (row.text, row.sender_name, row.quoted) == ("ab\ufffdc\u2028d", "Ada", "q")


async def test_a_text_of_100_kb_is_taken(
    store: Database, clock: ManualClock, tmp_path: Path, host: LocalHost
) -> None:
    async with running_rig(store, clock, tmp_path, host=host) as rig:
        await rig.receive("x" * 100_000)
        await rig.until(turns, ["answered"])

    assert "x" * 100_000 in host.texts[0]


# ---- edits -----------------------------------------------------------------------------------


async def test_i17_an_edit_of_a_waiting_message_replaces_its_text(
    store: Database, clock: ManualClock, tmp_path: Path, host: LocalHost
) -> None:
    slow = Pause("done")
    host.steps.append(slow)
    waiting = make_message("helo")
    async with running_rig(store, clock, tmp_path, host=host) as rig:
        await rig.receive("first")
        await eventually(lambda: len(host.prompts) == 1)
        await rig.receive(waiting)
        await rig.intake.receive(make_edit("hello\0", waiting))
        slow.go_on.set()
        await rig.until_sent("done", "echo: hello")


async def test_i17_later_edits_are_ignored(
    store: Database, clock: ManualClock, tmp_path: Path, host: LocalHost
) -> None:
    slow = Pause("done")
    host.steps.append(slow)
    message = make_message("helo")
    async with running_rig(store, clock, tmp_path, host=host) as rig:
        await rig.receive(message)
        await eventually(lambda: len(host.prompts) == 1)
        await rig.intake.receive(make_edit("during", message))
        slow.go_on.set()
        await rig.until_sent("done")
        await rig.intake.receive(make_edit("after", message))
        await rig.receive("next")
        await rig.until_sent("done", "echo: next")

    assert [row.text for row in await rows_of(store, messages)] == ["helo", "next"]


# ---- media -----------------------------------------------------------------------------------


async def test_i18_media_alone_gets_one_line(
    store: Database, clock: ManualClock, tmp_path: Path
) -> None:
    async with running_rig(store, clock, tmp_path) as rig:
        await rig.receive(photo())
        await rig.until_sent(texts.ONLY_TEXT)

    assert await rows_of(store, turns) == []
    (row,) = await rows_of(store, messages)
    assert (row.reason, "photo" in row.attachments) == ("unsupported", True)


async def test_i18_an_album_without_words_gets_one_line(
    store: Database, clock: ManualClock, tmp_path: Path
) -> None:
    async with running_rig(store, clock, tmp_path) as rig:
        for _ in range(4):
            await rig.receive(photo(hold=0.6))
        await rig.until_sent(texts.ONLY_TEXT)
        rig.advance(11)
        await rig.receive(photo())
        await rig.until_sent(texts.ONLY_TEXT, texts.ONLY_TEXT)

    assert len(await rows_of(store, deliveries)) == 2


async def test_i18_an_album_with_a_caption_is_one_turn(
    store: Database, clock: ManualClock, tmp_path: Path, host: LocalHost
) -> None:
    host.steps.append(said("nice"))
    async with running_rig(store, clock, tmp_path, host=host) as rig:
        await rig.receive(photo("what are these?", hold=0.6))
        await rig.receive(photo(hold=0.6))
        await rig.receive(photo(hold=0.6))
        await eventually(lambda: clock.waiting == 1)
        rig.advance(0.6)
        await rig.until_sent("nice")

    (prompt,) = host.texts
    assert "what are these?" in prompt
    assert prompt.count("[With a photo attached, which cannot be read here]") == 3


async def test_a_text_without_anything_to_see_is_not_met_with_silence(
    store: Database, clock: ManualClock, tmp_path: Path
) -> None:
    async with running_rig(store, clock, tmp_path) as rig:
        await rig.receive("  \n ")
        await rig.until_sent(texts.ONLY_TEXT)


# ---- messages that waited too long -----------------------------------------------------------


async def test_i03_old_messages_are_named_in_one_line_and_new_ones_answered(
    store: Database, clock: ManualClock, tmp_path: Path, host: LocalHost
) -> None:
    async with running_rig(store, clock, tmp_path, host=host) as rig:
        rig.channel.shut("42")
        await rig.receive("/help")
        await eventually(lambda: len(rig.channel.tried) == 1)
        for text, hours in (("a", 30), ("b\nb", 29), ("/cancel 1", 25)):
            sent_at = clock.now() - timedelta(hours=hours)
            await rig.receive(replace(make_message(text), sent_at=sent_at))
        for text, minutes in (("c", 10), ("d", 1)):
            sent_at = clock.now() - timedelta(minutes=minutes)
            await rig.receive(replace(make_message(text), sent_at=sent_at))
        rig.channel.open("42")
        await eventually(lambda: len(rig.channel.texts()) >= 3)
        await rig.until(turns, ["answered"])

    named = [text for text in rig.channel.texts() if text.startswith("I was away")]
    assert len(named) == 1
    assert named[0] == (
        'I was away, and this is too old to answer now (Sun 1 Mar 04:00: "a"; '
        'Sun 1 Mar 05:00: "b b"; Sun 1 Mar 09:00: "/cancel 1"). '
        "Please send it again if it still matters."
    )
    (prompt,) = host.texts
    assert prompt.endswith("\nc\nd")


async def test_an_old_message_handed_over_twice_is_named_once(
    store: Database, clock: ManualClock, tmp_path: Path
) -> None:
    old = replace(make_message("a"), sent_at=clock.now() - timedelta(hours=30))
    async with running_rig(store, clock, tmp_path) as rig:
        await rig.receive(old)
        await rig.until(deliveries, ["sent"])
        await rig.receive(old)
        await rig.receive("new")
        await rig.until(deliveries, ["sent", "sent"])

    named, answer = rig.channel.texts()
    assert named.startswith("I was away")
    assert answer == "echo: new"
    assert await states_of(store, deliveries) == ["sent", "sent"]


# ---- groups ----------------------------------------------------------------------------------


async def test_i22_group_talk_that_is_not_for_the_bot_is_not_stored(
    store: Database, clock: ManualClock, tmp_path: Path
) -> None:
    async with running_rig(store, clock, tmp_path, rules=in_group("42")) as rig:
        assert await rig.receive(replace(group_message("among us"), is_addressed=False))
        assert await rig.receive(group_message("to the bot"))

    assert [row.text for row in await rows_of(store, messages)] == ["to the bot"]


async def test_i20_the_rest_of_a_long_text_needs_no_mention(
    store: Database, clock: ManualClock, tmp_path: Path, host: LocalHost
) -> None:
    first = replace(group_message("a"), hold=timedelta(seconds=1.5), is_part=True)
    rest = replace(group_message("b"), is_addressed=False)
    other = replace(group_message("c", sender="43"), is_addressed=False)
    async with running_rig(store, clock, tmp_path, host=host, rules=in_group("42", "43")) as rig:
        await rig.receive(first)
        await rig.receive(other)
        await rig.receive(rest)
        await rig.until_sent("echo: ab", address=GROUP.address)

    assert len(host.prompts) == 1


# ---- the breaker for loops -------------------------------------------------------------------


async def answer_fast(rig: Rig, clock: ManualClock, times: int, *, whole: bool = False) -> None:
    """Another bot answers everything of ours within a second."""
    for _ in range(times):
        before = len(rig.channel.texts(GROUP.address))
        clock.advance(timedelta(seconds=0.7))
        now = clock.now()
        sent_at = now.replace(microsecond=0) if whole else now
        known = len(await rows_of(rig.store, messages))
        await rig.receive(replace(group_message(f"auto {known}"), sent_at=sent_at))
        *_, last = await rows_of(rig.store, messages)
        if last.reason != "loop":
            await eventually(lambda: len(rig.channel.texts(GROUP.address)) > before)  # noqa: B023
            await rig.until(deliveries, ["sent"] * len(await rows_of(rig.store, deliveries)))


@pytest.mark.parametrize("whole", [False, True])
async def test_i23_a_sender_who_answers_at_once_again_and_again_is_not_answered(
    whole: bool, store: Database, clock: ManualClock, tmp_path: Path
) -> None:
    async with running_rig(store, clock, tmp_path, rules=in_group("42")) as rig:
        await answer_fast(rig, clock, 8, whole=whole)
        assert len(rig.channel.texts(GROUP.address)) == 7
        assert rig.owner.is_open(Episode.LOOP)

    assert [row.reason for row in await rows_of(store, messages)] == [None] * 7 + ["loop"]


async def test_i23_the_owner_is_told_once_and_again_after_a_pause(
    store: Database, clock: ManualClock, tmp_path: Path
) -> None:
    rules = RigRules(allowed=(GROUP.address, "42", "99"), owner=OWNER)
    async with running_rig(store, clock, tmp_path, rules=rules) as rig:
        await answer_fast(rig, clock, 8)
        await eventually(lambda: len(rig.channel.texts("99")) == 1)
        clock.advance(timedelta(minutes=5))
        await answer_fast(rig, clock, 1)
        assert not rig.owner.is_open(Episode.LOOP)
        await answer_fast(rig, clock, 7)
        await eventually(lambda: len(rig.channel.texts("99")) == 2)

    assert "telegram:-4001" in rig.channel.texts("99")[0]


async def test_i23_a_loop_that_goes_on_is_told_once(
    store: Database, clock: ManualClock, tmp_path: Path
) -> None:
    rules = RigRules(allowed=(GROUP.address, "42", "43", "99"), owner=OWNER)
    async with running_rig(store, clock, tmp_path, rules=rules) as rig:
        await answer_fast(rig, clock, 8)
        await rig.receive(replace(group_message("slow", sender="43"), sent_at=clock.now()))
        await eventually(lambda: "echo: slow" in rig.channel.texts(GROUP.address))
        await rig.until(deliveries, ["sent"] * 9)
        assert rig.owner.is_open(Episode.LOOP)
        clock.advance(timedelta(seconds=5))
        await answer_fast(rig, clock, 10)
        await eventually(lambda: len(rig.channel.texts("99")) >= 1)

    assert [row.reason for row in await rows_of(store, messages)].count("loop") == 3
    assert len([row for row in await rows_of(store, deliveries) if row.chat_key == str(OWNER)]) == 1


async def test_i23_what_was_not_stored_does_not_count(
    store: Database, clock: ManualClock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*args: object, **kwargs: object) -> None:
        raise StoreBusyError("disk full")

    async with running_rig(store, clock, tmp_path, rules=in_group("42")) as rig:
        await answer_fast(rig, clock, 5)
        message = replace(group_message("again"), sent_at=clock.now())
        with monkeypatch.context() as patched:
            patched.setattr("gateway.engine.intake.admit_message", refuse)
            for _ in range(3):
                with pytest.raises(StoreBusyError):
                    await rig.receive(message)
        for _ in range(3):
            await rig.receive(message)
        await rig.until(deliveries, ["sent"] * 6)
        assert not rig.owner.is_open(Episode.LOOP)

    assert [row.reason for row in await rows_of(store, messages)] == [None] * 6


async def test_a_person_who_writes_a_lot_is_answered(
    store: Database, clock: ManualClock, tmp_path: Path
) -> None:
    async with running_rig(store, clock, tmp_path, rules=in_group("42")) as rig:
        for number in range(12):
            clock.advance(timedelta(seconds=3))
            await rig.receive(replace(group_message(f"m{number}"), sent_at=clock.now()))
            await eventually(lambda: len(rig.channel.texts(GROUP.address)) == number + 1)  # noqa: B023
            await rig.until(deliveries, ["sent"] * (number + 1))

    assert not rig.owner.is_open(Episode.LOOP)


# ---- a person is there ---------------------------------------------------------------------


async def check_in_at(store: Database) -> datetime | None:
    """When the chat would be checked in on."""
    return moment_of((await rows_of(store, chats))[0].next_heartbeat_at)


@pytest.mark.parametrize("text", ["hello", "/help", ""])
async def test_whatever_a_person_sends_puts_off_the_check_in(
    text: str, store: Database, clock: ManualClock, tmp_path: Path
) -> None:
    async with running_rig(store, clock, tmp_path) as rig:
        for _ in range(2):
            rig.advance(60)
            await rig.receive(text)
            assert await check_in_at(store) == clock.now() + timedelta(minutes=30)
        rig.advance(60)
        await rig.receive(replace(make_message("done:1"), kind=MessageKind.BUTTON))
        assert await check_in_at(store) == clock.now() + timedelta(minutes=30)


async def test_an_old_message_and_group_talk_and_a_repeat_put_off_no_check_in(
    store: Database, clock: ManualClock, tmp_path: Path
) -> None:
    old = replace(make_message("a"), sent_at=clock.now() - timedelta(hours=30))
    async with running_rig(store, clock, tmp_path, rules=in_group("42")) as rig:
        await rig.receive(group_message())
        assert await check_in_at(store) is None
    async with running_rig(store, clock, tmp_path / "private") as rig:
        message = make_message()
        await rig.receive(message)
        rig.advance(60)
        await rig.receive(message)
        await rig.receive(old)

    private = (await rows_of(store, chats, chats.c.chat_key == str(CHAT)))[0]
    assert moment_of(private.next_heartbeat_at) == later(30 * 60)


@pytest.mark.parametrize("text", ["hello", "/help"])
async def test_a_person_who_writes_ends_a_check_in_that_is_running(
    text: str, store: Database, clock: ManualClock, tmp_path: Path, host: LocalHost
) -> None:
    host.steps.append(hang)
    async with running_rig(store, clock, tmp_path, host=host) as rig:
        beat = await queued_heartbeat(store)
        await eventually(lambda: len(host.prompts) == 1)
        await rig.receive(text)
        await eventually(lambda: len(rig.channel.texts()) == 1)
        row = await row_of(store, turns, beat)
        await rig.until(turns, ["cancelled"], turns.c.id == beat)

    assert (row.state, row.reason) == ("cancelled", "person_wrote")
    assert rig.channel.texts() == ["echo: hello" if text == "hello" else texts.HELP]


# ---- moves and reachability ------------------------------------------------------------------


async def test_d08_a_group_that_became_a_supergroup_goes_on_as_the_same_chat(
    store: Database, clock: ManualClock, tmp_path: Path, host: LocalHost
) -> None:
    move = Move(channel=GROUP.channel, old_address=GROUP.address, new_address=SUPERGROUP.address)
    async with running_rig(store, clock, tmp_path, host=host, rules=in_group("42")) as rig:
        await rig.receive(group_message("before"))
        await rig.until_sent("echo: before", address=GROUP.address)
        await rig.intake.receive(move)
        await rig.intake.receive(move)
        await rig.receive(group_message("after", chat=SUPERGROUP))
        await rig.until_sent("echo: after", address=SUPERGROUP.address)
        await rig.receive(group_message("/new", chat=SUPERGROUP))
        await eventually(lambda: not host.sessions[0].is_alive)

    assert [row.chat_key for row in await rows_of(store, chats)] == [str(GROUP)]


async def test_a_chat_that_lets_us_in_again_gets_what_waited(
    store: Database, clock: ManualClock, tmp_path: Path
) -> None:
    async with running_rig(store, clock, tmp_path) as rig:
        rig.channel.answer_next(NotSent(reason=NotSentReason.CHAT_UNREACHABLE))
        await rig.receive("hello")
        await eventually(lambda: len(rig.channel.tried) == 1)
        await rig.until(deliveries, ["pending"])
        await rig.intake.receive(Reachability(chat=CHAT, is_reachable=True))
        await rig.until_sent("echo: hello")


async def test_what_a_chat_missed_while_it_had_blocked_us_comes_in_one_message(
    store: Database, clock: ManualClock, tmp_path: Path, host: LocalHost
) -> None:
    for text, minutes in (("tea", 1), ("bread", 10), ("call mum", 60)):
        await active_job(store, text, at=later(60 * minutes))
    async with running_rig(store, clock, tmp_path, host=host) as rig:
        rig.channel.answer_next(NotSent(reason=NotSentReason.CHAT_UNREACHABLE))
        for minutes in (1, 10, 60):
            clock.set(later(60 * minutes))
            await fire(store, clock.now())
            await eventually(lambda: len(rig.channel.tried) == 1)
        rig.advance(600)
        await rig.receive(replace(make_message("/help"), sent_at=clock.now()))
        await rig.until_sent(
            "• (was due Mon 2 Mar 10:01) tea\n"
            "• (was due Mon 2 Mar 10:10) bread\n"
            "• (was due Mon 2 Mar 11:00) call mum",
            texts.HELP,
        )

    assert host.prompts == []
    assert await states_of(store, jobs) == ["done"] * 3


async def test_the_reachability_of_an_unknown_chat_is_ignored(
    store: Database, clock: ManualClock, tmp_path: Path
) -> None:
    async with running_rig(store, clock, tmp_path) as rig:
        assert await rig.intake.receive(Reachability(chat=OTHER_CHAT, is_reachable=False))

    assert await store.read(load_chat, OTHER_CHAT) is None
