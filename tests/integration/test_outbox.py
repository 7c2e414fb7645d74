"""Deliveries on their way: every answer of a platform, from the first try to what the chat sees."""

import asyncio
import logging
from dataclasses import replace
from datetime import (
    datetime,
    timedelta,
)
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import (
    Row,
    event,
)

from gateway.domain.delivery import (
    DeliveryId,
    DeliveryKind,
    Malformed,
    Moved,
    NotSent,
    NotSentReason,
    Rejected,
    SendOutcome,
    Sent,
    Unknown,
)
from gateway.domain.job import JobState
from gateway.domain.message import ChannelName, ChatKey
from gateway.domain.richtext import Entity, EntityKind, RichText
from gateway.engine import outbox as outbox_module
from gateway.errors import StoreError
from gateway.store.chats import ensure_chat
from gateway.store.database import Database, Transaction
from gateway.store.deliveries import NewDelivery, store_delivery
from gateway.store.schema import chats, chunks, deliveries, jobs, runs
from gateway.store.sending import SendRules, Wait, begin_send
from gateway.store.wire import ToSend
from tests.factories import (
    CHAT,
    NOW,
    OTHER_CHAT,
    SERVED,
    active_job,
    answered_turn,
    fire,
    fired_job,
    later,
    make_message,
    rows_of,
    states_of,
    stored_delivery,
)
from tests.fakes.clock import ManualClock
from tests.fakes.local_host import LocalHost
from tests.fakes.rig import Rig, running_rig
from tests.fakes.sessions import eventually

ACCEPTED = Sent(external_id="x1")
BUSY = NotSent(reason=NotSentReason.REFUSED_FOR_NOW)
DOWN = NotSent(reason=NotSentReason.CHANNEL_DOWN)
BLOCKED = NotSent(reason=NotSentReason.CHAT_UNREACHABLE)
SERVER_ERROR = Unknown(reason="502 Bad Gateway", answered=True)
NO_ANSWER = Unknown(reason="read timeout", answered=False)


def rate_limited(seconds: float) -> NotSent:
    return NotSent(reason=NotSentReason.RATE_LIMITED, retry_after=timedelta(seconds=seconds))


async def waiting(rig: Rig) -> None:
    """Return when the chat's lane waits for a moment."""
    await eventually(lambda: rig.clock.waiting >= 1)


async def the_delivery(store: Database) -> Row[Any]:
    (row,) = await rows_of(store, deliveries)
    return row


def _store_formatted(tx: Transaction, text: str) -> DeliveryId:
    chat = ensure_chat(tx, CHAT, is_group=False, now=NOW)
    bold = Entity(kind=EntityKind.BOLD, offset=0, length=len(text))
    body = RichText(text=text, entities=(bold,))
    new = NewDelivery(chat=chat, kind=DeliveryKind.REPLY, text=text, chunks=(body,))
    return store_delivery(tx, new, now=NOW)


# ---- one outcome each ------------------------------------------------------------------------


async def test_what_the_platform_accepts_is_sent(
    store: Database, clock: ManualClock, tmp_path: Path
) -> None:
    async with running_rig(store, clock, tmp_path) as rig:
        await stored_delivery(store, "one|two")
        await rig.until_sent("one", "two")
        await rig.until(deliveries, ["sent"])

    assert [row.external_id for row in await rows_of(store, chunks)] == ["x1", "x2"]
    assert {row.account for row in await rows_of(store, chunks)} == {"7000"}


async def test_d01_a_rate_limit_is_waited_for(
    store: Database, clock: ManualClock, tmp_path: Path
) -> None:
    async with running_rig(store, clock, tmp_path) as rig:
        rig.channel.answer_next(rate_limited(3), rate_limited(3))
        await stored_delivery(store, "hello")
        for tries in (1, 2):
            await eventually(lambda: len(rig.channel.tried) == tries)  # noqa: B023
            await waiting(rig)
            rig.advance(2.9)
            await asyncio.sleep(0)
            assert len(rig.channel.tried) == tries
            rig.advance(0.1)
        await rig.until_sent("hello")


async def test_d01_a_rate_limit_holds_its_chat_alone(
    store: Database, clock: ManualClock, tmp_path: Path
) -> None:
    async with running_rig(store, clock, tmp_path) as rig:
        rig.channel.answer_next(rate_limited(30))
        await stored_delivery(store, "held")
        await waiting(rig)
        await stored_delivery(store, "held too", kind=DeliveryKind.NOTICE)
        await stored_delivery(store, "free", chat=OTHER_CHAT)
        await rig.until_sent("free", address="43")
        assert rig.channel.texts() == []
        rig.advance(30)
        await rig.until_sent("held", "held too")


async def test_what_was_refused_for_now_backs_off_and_lets_others_pass(
    store: Database, clock: ManualClock, tmp_path: Path
) -> None:
    async with running_rig(store, clock, tmp_path) as rig:
        rig.channel.answer_next(BUSY)
        await stored_delivery(store, "first")
        await waiting(rig)
        await stored_delivery(store, "second")
        await rig.until_sent("second")
        rig.advance(2)
        await rig.until_sent("second", "first")


async def test_refused_formatting_goes_out_plain_once(
    store: Database, clock: ManualClock, tmp_path: Path
) -> None:
    async with running_rig(store, clock, tmp_path) as rig:
        rig.channel.answer_next(Malformed(reason="can't parse entities"))
        await store.write(_store_formatted, "bold")
        await rig.until_sent("bold")
        await rig.until(deliveries, ["sent"])

    assert [shown.has_format for shown in rig.channel.tried] == [True, False]


async def test_formatting_refused_of_plain_text_is_the_end(
    store: Database, clock: ManualClock, tmp_path: Path
) -> None:
    async with running_rig(store, clock, tmp_path) as rig:
        malformed = Malformed(reason="can't parse entities")
        rig.channel.answer_next(malformed, malformed)
        await store.write(_store_formatted, "bold")
        await rig.until(deliveries, ["failed"])

    assert len(rig.channel.tried) == 2


@pytest.mark.parametrize("reason", ["chat not found", "message is too long", "bot was kicked"])
async def test_d06_what_is_refused_for_good_is_tried_once(
    reason: str, store: Database, clock: ManualClock, tmp_path: Path
) -> None:
    async with running_rig(store, clock, tmp_path) as rig:
        rig.channel.answer_next(Rejected(reason=reason))
        await stored_delivery(store, "bad")
        await rig.until(deliveries, ["failed"])
    for restart in range(2):
        async with running_rig(store, clock, tmp_path / str(restart)) as rig:
            await stored_delivery(store, "healthy", chat=OTHER_CHAT)
            await rig.until_sent("healthy", address="43")
            assert rig.channel.texts() == []

    assert (await rows_of(store, deliveries))[0].reason == reason


async def test_d08_a_moved_chat_is_sent_to_at_once_under_its_new_address(
    store: Database, clock: ManualClock, tmp_path: Path
) -> None:
    async with running_rig(store, clock, tmp_path) as rig:
        rig.channel.answer_next(Moved(to="-1009001"))
        await stored_delivery(store, "hello")
        await rig.until_sent("hello", address="-1009001")
        await rig.until(deliveries, ["sent"])
        await stored_delivery(store, "more")
        await rig.until_sent("hello", "more", address="-1009001")

    (chat,) = await rows_of(store, chats)
    assert (chat.chat_key, chat.address) == (str(CHAT), "-1009001")


async def test_what_cannot_reach_a_chat_waits_until_it_writes(
    store: Database, clock: ManualClock, tmp_path: Path
) -> None:
    async with running_rig(store, clock, tmp_path) as rig:
        rig.channel.answer_next(BLOCKED)
        await stored_delivery(store, "hello")
        await rig.until(deliveries, ["pending"])
        await eventually(lambda: len(rig.channel.tried) == 1)
        rig.advance(3 * 86400)
        await stored_delivery(store, "more")
        await stored_delivery(store, "elsewhere", chat=OTHER_CHAT)
        await rig.until_sent("elsewhere", address="43")
        assert rig.channel.texts() == []
        await rig.receive(replace(make_message("/reminders"), sent_at=clock.now()))
        await rig.until_sent("hello", "more", "You have no reminders.")

    assert (await rows_of(store, deliveries))[0].attempts == 1


async def test_what_found_no_channel_waits_and_goes_out_when_it_is_up(
    store: Database, clock: ManualClock, tmp_path: Path
) -> None:
    async with running_rig(store, clock, tmp_path) as rig:
        rig.channel.answer_next(*[DOWN] * 8)
        await stored_delivery(store, "hello")
        for tries in range(1, 9):
            await eventually(lambda: len(rig.channel.tried) == tries)  # noqa: B023
            await waiting(rig)
            if tries < 8:
                rig.advance(300)
        row = await the_delivery(store)
        assert (row.state, row.reason, row.attempts) == ("pending", "channel_down", 0)
        await rig.outbox.channel_is_up(ChannelName.TELEGRAM)
        await rig.until_sent("hello")
        await rig.until(deliveries, ["sent"])


async def test_r18_without_a_channel_for_the_chat_it_waits_with_the_reason(
    store: Database, clock: ManualClock, tmp_path: Path
) -> None:
    elsewhere = ChatKey(ChannelName.WHATSAPP, "15551234567")
    async with running_rig(store, clock, tmp_path) as rig:
        await stored_delivery(store, "hello", chat=elsewhere)

        await rig.until(deliveries, ["pending"], deliveries.c.reason == "channel_down")

    assert rig.channel.tried == []


async def test_a_server_error_is_tried_again_with_a_mark(
    store: Database, clock: ManualClock, tmp_path: Path
) -> None:
    async with running_rig(store, clock, tmp_path) as rig:
        rig.channel.answer_next(SERVER_ERROR, SERVER_ERROR)
        await stored_delivery(store, "hello")
        await waiting(rig)
        rig.advance(2)
        await eventually(lambda: len(rig.channel.tried) == 2)
        await waiting(rig)
        rig.advance(15)
        await rig.until_sent("(may be a repeat) hello")
        await rig.until(deliveries, ["sent"])


async def test_silence_is_tried_again_once_with_a_mark(
    store: Database, clock: ManualClock, tmp_path: Path
) -> None:
    async with running_rig(store, clock, tmp_path) as rig:
        rig.channel.answer_next(NO_ANSWER)
        await stored_delivery(store, "hello")
        await rig.until_sent("(may be a repeat) hello")
        await rig.until(deliveries, ["sent"])


async def test_silence_that_lasts_is_tried_again_once_only(
    store: Database, clock: ManualClock, tmp_path: Path
) -> None:
    async with running_rig(store, clock, tmp_path) as rig:
        rig.channel.answer_next(NO_ANSWER, NO_ANSWER)
        await stored_delivery(store, "hello")
        await rig.until(deliveries, ["failed"])
        rig.advance(3600)
        await rig.outbox.look(SERVED)
        await stored_delivery(store, "fence", chat=OTHER_CHAT, now=clock.now())
        await rig.until_sent("fence", address="43")

    texts = [shown.text for shown in rig.channel.tried if shown.address == "42"]
    assert texts == ["hello", "(may be a repeat) hello"]
    assert await states_of(store, deliveries) == ["failed", "sent"]


@pytest.mark.parametrize("error", [RuntimeError("broken"), OSError("reset"), ValueError("odd")])
async def test_a_channel_that_raises_leaves_the_chunk_unknown(
    error: Exception,
    store: Database,
    clock: ManualClock,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with running_rig(store, clock, tmp_path) as rig:
        rig.channel.answer_next(error, error)
        await stored_delivery(store, "hello|world")
        await rig.until(deliveries, ["partial"])

    assert rig.channel.texts() == ["world"]
    assert await states_of(store, chunks) == ["unknown", "sent"]
    assert [r.levelno for r in caplog.records if r.message == "send_failed"] == [logging.ERROR] * 2


async def test_a_channel_that_does_not_return_is_not_waited_for_for_ever(
    store: Database, clock: ManualClock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outbox_module, "SEND_DEADLINE", 0.02)
    async with running_rig(store, clock, tmp_path) as rig:
        rig.channel.shut("42")
        await stored_delivery(store, "hello")
        await rig.until(deliveries, ["failed"])

    assert len(rig.channel.tried) == 2
    assert (await the_delivery(store)).reason == "no answer"


async def test_the_channel_is_told_what_to_replace_and_which_buttons_to_show(
    store: Database, clock: ManualClock, tmp_path: Path
) -> None:
    def store_edit(tx: Transaction) -> None:
        body = RichText(text="more")
        kind = DeliveryKind.COMMAND
        edit = NewDelivery(chat=CHAT, kind=kind, text="more", chunks=(body,), edits="x1")
        store_delivery(tx, edit, now=NOW)

    async with running_rig(store, clock, tmp_path) as rig:
        clock.set(later(60))
        await fired_job(store, "call mum")
        await rig.until_sent("call mum")
        rig.channel.answer_next(NO_ANSWER)
        await store.write(store_edit)
        await rig.until_sent("call mum", "more")

    shown = [(one.text, one.edits, len(one.buttons)) for one in rig.channel.tried]
    assert shown == [("call mum", None, 4), ("more", "x1", 0), ("more", "x1", 0)]


# ---- several chunks, several chats -----------------------------------------------------------


@pytest.mark.parametrize(
    ("outcomes", "seconds", "sent", "end"),
    [
        ([rate_limited(5)], 5, ["one", "two", "three"], "sent"),
        ([BUSY], 2, ["one", "two", "three"], "sent"),
        ([Rejected(reason="too long")], 0, ["one", "three"], "partial"),
        ([NO_ANSWER], 0, ["one", "(may be a repeat) two", "three"], "sent"),
        ([NO_ANSWER, NO_ANSWER], 0, ["one", "three"], "partial"),
    ],
)
async def test_d16_a_chunk_that_fails_neither_repeats_the_head_nor_loses_the_tail(
    outcomes: list[SendOutcome],
    seconds: float,
    sent: list[str],
    end: str,
    store: Database,
    clock: ManualClock,
    tmp_path: Path,
) -> None:
    async with running_rig(store, clock, tmp_path) as rig:
        rig.channel.shut("42")
        await stored_delivery(store, "one|two|three")
        await eventually(lambda: len(rig.channel.tried) == 1)
        rig.channel.answer_next(ACCEPTED, *outcomes)
        rig.channel.open("42")
        if seconds:
            await waiting(rig)
            assert rig.channel.texts() == ["one"]
            rig.advance(seconds)
        await rig.until(deliveries, [end])

    assert rig.channel.texts() == sent


async def test_d17_a_reminder_does_not_split_an_answer_that_is_held(
    store: Database, clock: ManualClock, tmp_path: Path
) -> None:
    async with running_rig(store, clock, tmp_path) as rig:
        rig.channel.answer_next(ACCEPTED, rate_limited(5))
        await stored_delivery(store, "one|two|three")
        await waiting(rig)
        await active_job(store, "call mum", at=later(1))
        rig.advance(1)
        await fire(store, clock.now())
        await stored_delivery(store, "free", chat=OTHER_CHAT)
        await rig.until_sent("free", address="43")
        assert rig.channel.texts() == ["one"]
        rig.advance(4)
        await rig.until_sent("one", "two", "three", "call mum")


async def test_one_slow_chat_delays_no_other(
    store: Database, clock: ManualClock, tmp_path: Path
) -> None:
    async with running_rig(store, clock, tmp_path) as rig:
        rig.channel.shut("42")
        await stored_delivery(store, "slow")
        await eventually(lambda: len(rig.channel.tried) == 1)
        await stored_delivery(store, "fast", chat=OTHER_CHAT)
        await rig.until_sent("fast", address="43")
        rig.channel.open("42")
        await rig.until_sent("slow")


async def test_what_did_not_get_through_is_named_with_the_next_thing_that_does(
    store: Database, clock: ManualClock, tmp_path: Path
) -> None:
    async with running_rig(store, clock, tmp_path) as rig:
        rig.channel.answer_next(Rejected(reason="too long"))
        await stored_delivery(store, "lost words")
        await rig.until(deliveries, ["failed"])
        await stored_delivery(store, "hello")
        await eventually(lambda: len(rig.channel.texts()) == 2)

    assert rig.channel.texts()[0] == "hello"
    assert "lost words" in rig.channel.texts()[1]


# ---- what the outcome means elsewhere --------------------------------------------------------


async def test_r19_a_failed_send_runs_no_turn_again(
    store: Database, clock: ManualClock, tmp_path: Path
) -> None:
    host = LocalHost()
    async with running_rig(store, clock, tmp_path, host=host) as rig:
        rig.channel.answer_next(SERVER_ERROR, SERVER_ERROR)
        await rig.receive("hello")
        for tries, seconds in ((1, 2), (2, 15)):
            await eventually(lambda: len(rig.channel.tried) == tries)  # noqa: B023
            await waiting(rig)
            rig.advance(seconds)
        await rig.until_sent("(may be a repeat) echo: hello")

    assert len(host.prompts) == 1
    assert len(rig.channel.tried) == 3
    assert await states_of(store, runs) == ["succeeded"]


async def test_r18_run_and_delivery_are_two_records(
    store: Database, clock: ManualClock, tmp_path: Path
) -> None:
    async with running_rig(store, clock, tmp_path) as rig:
        rig.channel.answer_next(Rejected(reason="chat not found", chat_gone=True))
        await rig.receive("hello")
        await rig.until(deliveries, ["failed"])

    assert await states_of(store, runs) == ["succeeded"]
    assert (await the_delivery(store)).reason == "chat not found"


@pytest.mark.parametrize(
    ("outcomes", "end"),
    [([], JobState.DONE), ([Rejected(reason="chat not found")], JobState.FAILED)],
)
async def test_a_reminder_is_done_only_when_its_text_was_accepted(
    outcomes: list[SendOutcome], end: JobState, store: Database, clock: ManualClock, tmp_path: Path
) -> None:
    clock.set(later(60))
    await fired_job(store)
    async with running_rig(store, clock, tmp_path) as rig:
        rig.channel.answer_next(*outcomes)
        await rig.until(jobs, [end])


async def test_a_late_reminder_says_when_it_was_due(
    store: Database, clock: ManualClock, tmp_path: Path
) -> None:
    async with running_rig(store, clock, tmp_path) as rig:
        rig.channel.answer_next(rate_limited(600))
        clock.set(later(60))
        await fired_job(store)
        await waiting(rig)
        rig.advance(600)
        await rig.until_sent("(was due Mon 2 Mar 10:01) call mum")


async def test_a_chat_that_was_put_out_gets_nothing_more(
    store: Database, clock: ManualClock, tmp_path: Path
) -> None:
    async with running_rig(store, clock, tmp_path) as rig:
        stranger = ChatKey(CHAT.channel, "666")
        await stored_delivery(store, "secret", chat=stranger)
        await rig.until(deliveries, ["dropped"])

    assert rig.channel.tried == []
    assert (await the_delivery(store)).reason == "not_allowed"


async def test_what_waits_at_the_start_goes_out(
    store: Database, clock: ManualClock, tmp_path: Path
) -> None:
    await answered_turn(store, "late")
    async with running_rig(store, clock, tmp_path) as rig:
        await rig.until_sent("late")


async def test_typing_is_shown_while_a_reply_is_sent_and_for_nothing_else(
    store: Database, clock: ManualClock, tmp_path: Path
) -> None:
    async with running_rig(store, clock, tmp_path) as rig:
        rig.channel.shut("42")
        rig.channel.shut("43")
        await stored_delivery(store, "a notice", kind=DeliveryKind.NOTICE)
        await stored_delivery(store, "a reply", chat=OTHER_CHAT)
        await eventually(lambda: rig.channel.typing.count("43") >= 3)
        rig.channel.open("42")
        rig.channel.open("43")
        await rig.until(deliveries, ["sent", "sent"])

    assert "42" not in rig.channel.typing


async def test_a_send_on_the_wire_may_end_during_the_stop(
    store: Database, clock: ManualClock, tmp_path: Path
) -> None:
    async with running_rig(store, clock, tmp_path) as rig:
        rig.channel.shut("42")
        await stored_delivery(store, "one|two")
        await eventually(lambda: len(rig.channel.tried) == 1)
        closing = asyncio.create_task(rig.outbox.close(rig.stop_patience, grace=20))
        await asyncio.sleep(0)
        rig.channel.open("42")
        await closing

    assert await states_of(store, chunks) == ["sent", "pending"]


async def test_each_chunk_after_the_first_costs_one_commit(
    store: Database, clock: ManualClock, tmp_path: Path
) -> None:
    async with running_rig(store, clock, tmp_path) as rig:
        commits: list[str] = []
        event.listen(store._writer_engine, "commit", lambda _: commits.append("commit"))
        await stored_delivery(store, "one|two|three")
        await rig.until(deliveries, ["sent"])

    assert len(commits) == len(["stored", "one begun", "one and two", "two and three", "three"])


async def test_a_chunk_that_cannot_begin_does_not_hide_what_became_of_the_one_before(
    store: Database, clock: ManualClock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begins = 0

    def begin(tx: Transaction, chat: ChatKey, rules: SendRules, *, now: datetime) -> ToSend | Wait:
        nonlocal begins
        begins += 1
        if begins in (2, 3):
            raise StoreError("not now")
        return begin_send(tx, chat, rules, now=now)

    monkeypatch.setattr(outbox_module, "begin_send", begin)
    async with running_rig(store, clock, tmp_path) as rig:
        await stored_delivery(store, "one|two")
        await waiting(rig)
        assert await states_of(store, chunks) == ["sent", "pending"]
        rig.advance(5)
        await rig.until(deliveries, ["sent"])

    assert rig.channel.texts() == ["one", "two"]
