"""T4 and T5: what goes on the wire next, and what every answer of a platform makes of it."""

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from gateway.domain.button import Button, ButtonAction, reminder_buttons
from gateway.domain.delivery import (
    REPEAT_MARK,
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
from gateway.domain.job import JobId, Tier
from gateway.domain.message import ChannelName, ChatKey
from gateway.domain.richtext import Entity, EntityKind, RichText
from gateway.domain.turn import RunState
from gateway.errors import StaleStateError
from gateway.store.chats import chat_addresses, ensure_chat, set_reachable
from gateway.store.database import (
    Change,
    Database,
    Topic,
    Transaction,
)
from gateway.store.deliveries import NewDelivery, release_channel, store_delivery
from gateway.store.ending import RunEnd, answer_turn
from gateway.store.jobs import Created, cancel_job
from gateway.store.messages import admit_message
from gateway.store.opening import Layout, open_database
from gateway.store.schema import (
    chats,
    chunks,
    deliveries,
    events,
    turns,
)
from gateway.store.sending import (
    SendRules,
    Wait,
    begin_send,
    finish_send,
    mark_channel_down,
    open_delivery_chats,
    recover_sends,
)
from gateway.store.stopping import stop_chat
from gateway.store.wire import ToSend, sent_body
from tests.factories import (
    ACCOUNT,
    CHAT,
    NOW,
    OTHER_CHAT,
    SERVED,
    Door,
    active_job,
    answered_turn,
    claimed,
    created_job,
    cut,
    fire,
    fired_job,
    job_state,
    later,
    make_message,
    moment_of,
    new_job,
    next_send,
    queued_job_turn,
    row_of,
    rows_of,
    send_rules,
    sending_chunk,
    states_of,
    stored_delivery,
)

RULES = send_rules()
OK = Sent(external_id="99")
DOWN = NotSent(reason=NotSentReason.CHANNEL_DOWN)
GONE = NotSent(reason=NotSentReason.CHAT_UNREACHABLE)
REFUSED = Rejected(reason="chat not found")
TIMEOUT = Unknown(reason="no answer", answered=False)
SERVER_ERROR = Unknown(reason="500", answered=True)


def rate_limited(seconds: float) -> NotSent:
    return NotSent(reason=NotSentReason.RATE_LIMITED, retry_after=timedelta(seconds=seconds))


async def finish(
    store: Database,
    sent: ToSend,
    outcome: SendOutcome,
    *,
    now: datetime = NOW,
    rules: SendRules = RULES,
) -> None:
    await store.write(finish_send, sent, outcome, rules, now=now)


async def begin(
    store: Database, *, chat: ChatKey = CHAT, now: datetime = NOW, rules: SendRules = RULES
) -> ToSend | Wait:
    return await store.write(begin_send, chat, rules, now=now)


async def deliver(
    store: Database, *outcomes: SendOutcome, now: datetime = NOW, chat: ChatKey = CHAT
) -> list[str]:
    """Send until nothing may go out; the outcomes are used up first. Returns what went out."""
    answers = list(outcomes)
    wire = []
    while isinstance(step := await begin(store, chat=chat, now=now), ToSend):
        wire.append(step.chunk.to_send().text)
        await finish(store, step, answers.pop(0) if answers else OK, now=now)
    return wire


# ---- order ---------------------------------------------------------------------------------


async def test_chunks_go_out_in_order_and_settle_their_delivery(store: Database) -> None:
    delivery = await stored_delivery(store, "1|2|3")
    assert await deliver(store) == ["1", "2", "3"]
    row = await row_of(store, deliveries, delivery)
    assert (row.state, row.reason, row.attempts, row.owes_notice) == ("sent", None, 3, False)
    assert row.settled_at is not None
    assert {(c.state, c.external_id, c.account) for c in await rows_of(store, chunks)} == {
        ("sent", "99", ACCOUNT)
    }


async def test_one_chunk_of_a_chat_is_on_the_wire_at_a_time(store: Database) -> None:
    await sending_chunk(store, "1|2")
    await stored_delivery(store, "other")
    assert await begin(store) == Wait(until=None)
    await sending_chunk(store, "elsewhere", chat=OTHER_CHAT)


async def test_the_oldest_delivery_goes_first(store: Database) -> None:
    await stored_delivery(store, "first")
    await stored_delivery(store, "second", kind=DeliveryKind.NOTICE)
    assert await deliver(store) == ["first", "second"]


async def test_nothing_to_send_is_nothing_to_wait_for(store: Database) -> None:
    delivery = await stored_delivery(store)
    await deliver(store)
    assert await begin(store) == Wait(until=None)
    assert await store.read(open_delivery_chats, SERVED) == ()
    assert (await row_of(store, deliveries, delivery)).state == "sent"


async def test_what_waits_lets_later_ones_pass_but_its_own_chunks_never_overtake(
    store: Database,
) -> None:
    await stored_delivery(store, "1|2|3")
    await stored_delivery(store, "other")
    assert await deliver(store, OK, SERVER_ERROR) == ["1", "2", "other"]
    assert await begin(store) == Wait(until=later(2))
    assert await begin(store, now=later(1.9)) == Wait(until=later(2))
    assert await deliver(store, now=later(2)) == [f"{REPEAT_MARK}2", "3"]


async def test_d17_a_rate_limit_holds_the_whole_chat_and_no_other(store: Database) -> None:
    await stored_delivery(store, "1|2|3")
    assert await deliver(store, OK, rate_limited(5)) == ["1", "2"]
    await active_job(store, "tea", at=later(1))
    await fire(store, later(1))
    assert await begin(store, now=later(1)) == Wait(until=later(5))
    await stored_delivery(store, "elsewhere", chat=OTHER_CHAT)
    assert await deliver(store, chat=OTHER_CHAT, now=later(1)) == ["elsewhere"]
    assert await deliver(store, now=later(5)) == ["2", "3", "tea"]


async def test_d01_each_retry_waits_as_long_as_the_platform_asks(store: Database) -> None:
    await stored_delivery(store)
    await deliver(store, rate_limited(3))
    assert await begin(store, now=later(2.999)) == Wait(until=later(3))
    await deliver(store, rate_limited(3), now=later(3))
    assert await begin(store, now=later(5)) == Wait(until=later(6))
    assert await deliver(store, now=later(6)) == ["hello"]
    (delivery,) = await rows_of(store, deliveries)
    assert (delivery.state, delivery.attempts) == ("sent", 3)


# ---- one chunk fails -----------------------------------------------------------------------


async def test_d16_a_rate_limited_chunk_costs_no_repeat_and_no_loss(store: Database) -> None:
    await stored_delivery(store, "1|2|3")
    first = await deliver(store, OK, rate_limited(1))
    assert first + await deliver(store, now=later(1)) == ["1", "2", "2", "3"]
    assert await states_of(store, chunks) == ["sent"] * 3


async def test_d16_a_malformed_chunk_goes_out_as_plain_text(store: Database) -> None:
    bold = RichText(text="two", entities=(Entity(kind=EntityKind.BOLD, offset=0, length=3),))
    pieces = (RichText(text="one"), bold, RichText(text="three"))
    await stored_delivery(store)
    await deliver(store)

    def store_bold(tx: Transaction) -> None:
        new = NewDelivery(chat=CHAT, kind=DeliveryKind.REPLY, text="x", chunks=pieces)
        store_delivery(tx, new, now=NOW)

    await store.write(store_bold)
    sent = []
    for outcome in (OK, Malformed(reason="can't parse entities"), OK, OK):
        step = await next_send(store)
        sent.append(step.chunk.to_send())
        await finish(store, step, outcome)
    assert sent == [pieces[0], bold, RichText(text="two"), pieces[2]]
    assert (await rows_of(store, deliveries))[-1].state == "sent"


async def test_d16_a_rejected_chunk_does_not_keep_the_next_from_going_out(
    store: Database,
) -> None:
    delivery = await stored_delivery(store, "1|2|3")
    assert await deliver(store, OK, Rejected(reason="too long")) == ["1", "2", "3"]
    row = await row_of(store, deliveries, delivery)
    assert (row.state, row.reason, row.owes_notice) == ("partial", "too long", True)
    assert await states_of(store, chunks) == ["sent", "rejected", "sent"]


async def test_d16_an_unanswered_chunk_goes_out_once_more_marked_and_then_the_next(
    store: Database,
) -> None:
    delivery = await stored_delivery(store, "1|2|3")
    wire = await deliver(store, OK, TIMEOUT, TIMEOUT)
    assert wire == ["1", "2", f"{REPEAT_MARK}2", "3"]
    row = await row_of(store, deliveries, delivery)
    assert (row.state, row.reason) == ("partial", "no answer")
    assert await states_of(store, chunks) == ["sent", "unknown", "sent"]


async def test_an_unanswered_chunk_that_gets_through_is_sent(store: Database) -> None:
    delivery = await stored_delivery(store, "1")
    assert await deliver(store, TIMEOUT, OK) == ["1", f"{REPEAT_MARK}1"]
    assert (await row_of(store, deliveries, delivery)).state == "sent"
    assert (await rows_of(store, chunks))[0].body == RichText(text="1").to_json()


async def test_d06_what_is_refused_for_good_is_tried_once(store: Database) -> None:
    delivery = await stored_delivery(store)
    behind = await stored_delivery(store, "healthy")
    assert await deliver(store, REFUSED) == ["hello", "healthy", NAMED.format("hello")]
    row = await row_of(store, deliveries, delivery)
    assert (row.state, row.reason, row.attempts) == ("failed", "chat not found", 1)
    assert (await row_of(store, deliveries, behind)).state == "sent"
    assert await deliver(store, now=later(10**6)) == []


async def test_server_errors_end_after_ten_sends(store: Database) -> None:
    delivery = await stored_delivery(store)
    now, count = NOW, 0
    rules = send_rules(hours=1000)
    while True:
        step = await begin(store, now=now, rules=rules)
        if isinstance(step, ToSend):
            count += 1
            await finish(store, step, SERVER_ERROR, now=now, rules=rules)
        elif step.until is None:
            break
        else:
            now = step.until
    row = await row_of(store, deliveries, delivery)
    assert (count, row.state, row.reason) == (10, "failed", "500")
    assert (now - NOW) == timedelta(seconds=2 + 15 + 60 + 300 + 1200 + 4 * 3600)


# ---- expiry --------------------------------------------------------------------------------


async def test_a_delivery_expires_right_after_a_failed_attempt_only(store: Database) -> None:
    delivery = await stored_delivery(store, "1|2")
    await deliver(store, rate_limited(1))
    day = later(86400)
    assert isinstance(await begin(store, now=day), ToSend)
    assert (await row_of(store, deliveries, delivery)).state == "sending"


async def test_a_delivery_that_failed_for_a_day_expires_and_is_named(store: Database) -> None:
    delivery = await stored_delivery(store, "1|2")
    await deliver(store, rate_limited(1))
    step = await next_send(store, now=later(86400))
    await finish(store, step, SERVER_ERROR, now=later(86400))
    row = await row_of(store, deliveries, delivery)
    assert (row.state, row.reason, row.owes_notice) == ("dropped", "expired", True)
    assert await states_of(store, chunks) == ["dropped", "dropped"]


async def test_the_last_chance_of_an_expired_delivery_may_succeed(store: Database) -> None:
    delivery = await stored_delivery(store, "1|2")
    await deliver(store, rate_limited(1))
    assert await deliver(store, now=later(10**6)) == ["1", "2"]
    assert (await row_of(store, deliveries, delivery)).state == "sent"


async def test_nothing_expires_while_the_channel_is_down(store: Database) -> None:
    delivery = await stored_delivery(store)
    now = NOW
    for _ in range(12):
        step = await next_send(store, now=now)
        await finish(store, step, DOWN, now=now, rules=send_rules(hours=0))
        wait = await begin(store, now=now)
        assert isinstance(wait, Wait)
        assert wait.until is not None
        assert timedelta(seconds=2) <= wait.until - now <= timedelta(minutes=5)
        now = wait.until
    row = await row_of(store, deliveries, delivery)
    assert (row.state, row.reason, row.attempts) == ("pending", "channel_down", 0)
    assert row.answered_at is None


async def test_d05_a_channel_that_is_up_again_sends_at_once_in_order(store: Database) -> None:
    await stored_delivery(store, "finished answer")
    await deliver(store, DOWN, DOWN)
    await stored_delivery(store, "newer")
    assert await store.write(release_channel, ChannelName.CONSOLE) == 0
    assert await store.write(release_channel, ChannelName.TELEGRAM) == 1
    assert await deliver(store) == ["finished answer", "newer"]


async def test_a_channel_that_does_not_run_is_named_on_what_waits(store: Database) -> None:
    waiting = await stored_delivery(store)
    await store.write(mark_channel_down, CHAT)
    row = await row_of(store, deliveries, waiting)
    assert (row.state, row.reason) == ("pending", "channel_down")
    await deliver(store)
    assert (await row_of(store, deliveries, waiting)).reason is None


# ---- taken back ----------------------------------------------------------------------------


async def test_stop_drops_unsent_replies_and_never_reminders(store: Database) -> None:
    await fired_job(store, "tea")
    await answered_turn(store, "reply")
    await stored_delivery(store, "notice", kind=DeliveryKind.NOTICE)
    stopped = await store.write(stop_chat, CHAT, now=NOW)
    assert stopped.replies == 1
    assert await deliver(store) == ["tea", "notice"]
    (reply,) = await rows_of(store, deliveries, deliveries.c.kind == "reply")
    assert (reply.state, reply.reason, reply.owes_notice) == ("dropped", "stopped", False)


@pytest.mark.parametrize(
    ("outcome", "chunk_states"),
    [
        (OK, ["sent", "dropped", "dropped"]),
        (rate_limited(5), ["dropped", "dropped", "dropped"]),
        (SERVER_ERROR, ["dropped", "dropped", "dropped"]),
        (REFUSED, ["rejected", "dropped", "dropped"]),
    ],
)
async def test_stop_while_a_chunk_is_on_the_wire_sends_nothing_more(
    store: Database, outcome: SendOutcome, chunk_states: list[str]
) -> None:
    step = await sending_chunk(store, "1|2|3")
    await store.write(stop_chat, CHAT, now=NOW)
    await finish(store, step, outcome)
    assert await states_of(store, chunks) == chunk_states
    row = await row_of(store, deliveries, step.delivery)
    assert (row.state, row.reason, row.owes_notice) == ("dropped", "stopped", False)
    assert await deliver(store, now=later(10**6)) == []


async def test_stop_when_the_last_chunk_was_on_the_wire_leaves_it_sent(store: Database) -> None:
    step = await sending_chunk(store, "1")
    await store.write(stop_chat, CHAT, now=NOW)
    await finish(store, step, OK)
    row = await row_of(store, deliveries, step.delivery)
    assert (row.state, row.reason) == ("sent", None)


async def test_stop_between_two_chunks_drops_the_rest(store: Database) -> None:
    step = await sending_chunk(store, "1|2")
    await finish(store, step, OK)
    await store.write(stop_chat, CHAT, now=NOW)
    row = await row_of(store, deliveries, step.delivery)
    assert (row.state, row.reason) == ("dropped", "stopped")
    assert await states_of(store, chunks) == ["sent", "dropped"]


async def test_a_chat_that_is_not_allowed_any_more_gets_nothing(store: Database) -> None:
    door = Door()
    rules = send_rules(door)
    job = await fired_job(store, "tea")
    step = await sending_chunk(store, "1|2", chat=OTHER_CHAT)
    await stored_delivery(store, "notice", kind=DeliveryKind.NOTICE)
    door.out = {CHAT, OTHER_CHAT}
    assert await begin(store, rules=rules) == Wait(until=None)
    assert {row.reason for row in await rows_of(store, deliveries) if row.state == "dropped"} == {
        "not_allowed"
    }
    assert await job_state(store, job.id) == "failed"
    await finish(store, step, OK, rules=rules)
    assert await begin(store, chat=OTHER_CHAT, rules=rules) == Wait(until=None)
    assert (await row_of(store, deliveries, step.delivery)).state == "dropped"


# ---- unreachable ---------------------------------------------------------------------------


async def test_an_unreachable_chat_waits_without_attempts_and_without_expiry(
    store: Database,
) -> None:
    delivery = await stored_delivery(store)
    await deliver(store, GONE)
    assert await begin(store, now=later(10**7)) == Wait(until=None)
    row = await row_of(store, deliveries, delivery)
    assert (row.state, row.reason, row.attempts) == ("pending", "chat_unreachable", 0)
    (known,) = await rows_of(store, chats)
    assert moment_of(known.unreachable_since) == NOW


async def test_what_waited_for_a_chat_goes_out_joined_once_it_writes(store: Database) -> None:
    await fired_job(store, "tea", at=later(60))
    await deliver(store, GONE, now=later(60))
    for text, seconds in (("bread", 120), ("call mum", 500)):
        await active_job(store, text, at=later(seconds))
        await fire(store, later(seconds))
    assert await begin(store, now=later(550)) == Wait(until=None)
    await store.write(admit_message, make_message("I am back"), now=later(560))
    assert await deliver(store, now=later(560)) == [
        "• (was due Mon 2 Mar 10:01) tea\n• (was due Mon 2 Mar 10:02) bread\n• call mum"
    ]


async def test_what_waited_goes_out_when_the_platform_lifts_the_block(store: Database) -> None:
    await stored_delivery(store)
    await deliver(store, GONE)
    await store.write(set_reachable, CHAT, is_reachable=True, now=later(1))
    assert await deliver(store, now=later(1)) == ["hello"]


# ---- moved ---------------------------------------------------------------------------------


async def test_d08_a_moved_chunk_goes_to_the_new_address_once(store: Database) -> None:
    group = ChatKey(ChannelName.TELEGRAM, "-4001")
    await stored_delivery(store, "1|2", chat=group)
    first = await next_send(store, chat=group)
    assert first.address == "-4001"
    await finish(store, first, Moved(to="-1009001"))
    places = []
    while isinstance(step := await begin(store, chat=group), ToSend):
        places.append((step.address, step.chunk.to_send().text))
        await finish(store, step, OK)
    assert places == [("-1009001", "1"), ("-1009001", "2")]
    assert set(await store.read(chat_addresses, group)) == {"-4001", "-1009001"}
    (row,) = await rows_of(store, deliveries)
    assert (row.state, row.attempts) == ("sent", 2)


async def test_an_edit_becomes_a_message_where_the_ids_of_messages_begin_anew(
    store: Database,
) -> None:
    group = ChatKey(ChannelName.TELEGRAM, "-4001")
    await stored_delivery(store, "hello", chat=group)
    edit = NewDelivery(
        chat=group, kind=DeliveryKind.COMMAND, text="x", chunks=(RichText.literal("x"),), edits="7"
    )
    await store.write(store_delivery, edit, now=NOW)
    await finish(store, await next_send(store, chat=group), OK)
    step = await next_send(store, chat=group)
    assert step.edits == "7"
    await finish(store, step, Moved(to="-1009001"))
    assert (await next_send(store, chat=group)).edits is None


async def test_d08_a_topic_moves_with_its_group(store: Database) -> None:
    topic = ChatKey(ChannelName.TELEGRAM, "-4001:43")
    step = await sending_chunk(store, chat=topic)
    await finish(store, step, Moved(to="-1009001"))
    assert (await next_send(store, chat=topic)).address == "-1009001:43"


async def test_a_platform_that_moves_a_chat_in_circles_is_not_asked_without_pause(
    store: Database,
) -> None:
    await stored_delivery(store)
    await finish(store, await next_send(store), Moved(to="43"))
    await finish(store, await next_send(store), Moved(to="42"))
    assert await begin(store) == Wait(until=later(4))


# ---- crash ---------------------------------------------------------------------------------


async def test_d05_what_was_not_begun_before_a_crash_goes_out_once(layout: Layout) -> None:
    before = open_database(layout)
    await answered_turn(before, "finished answer")
    await before.close()
    after = open_database(layout)
    assert await after.write(recover_sends, SERVED, RULES, now=NOW) == 0
    assert await deliver(after) == ["finished answer"]
    await after.close()


async def test_what_was_on_the_wire_at_a_crash_goes_out_once_more_marked(layout: Layout) -> None:
    before = open_database(layout)
    await sending_chunk(before, "1|2")
    await before.close()
    after = open_database(layout)
    assert await after.write(recover_sends, (ChannelName.CONSOLE,), RULES, now=NOW) == 0
    assert await after.write(recover_sends, SERVED, RULES, now=NOW) == 1
    assert await after.write(recover_sends, SERVED, RULES, now=NOW) == 0
    assert await deliver(after) == [f"{REPEAT_MARK}1", "2"]
    await after.close()


async def test_a_second_crash_on_the_wire_leaves_the_chunk_unknown(store: Database) -> None:
    delivery = await stored_delivery(store, "1|2")
    for _ in range(2):
        await next_send(store)
        await store.write(recover_sends, SERVED, RULES, now=NOW)
    assert await deliver(store) == ["2"]
    row = await row_of(store, deliveries, delivery)
    assert (row.state, row.reason) == ("partial", "interrupted")


async def test_what_was_stopped_on_the_wire_is_not_sent_again_after_a_crash(
    store: Database,
) -> None:
    step = await sending_chunk(store, "1|2")
    await store.write(stop_chat, CHAT, now=NOW)
    await store.write(recover_sends, SERVED, RULES, now=NOW)
    assert await deliver(store) == []
    assert (await row_of(store, deliveries, step.delivery)).state == "dropped"


async def test_an_outcome_that_comes_twice_counts_once(store: Database) -> None:
    step = await sending_chunk(store, "1|2")
    await finish(store, step, OK)
    with pytest.raises(StaleStateError):
        await finish(store, step, SERVER_ERROR)
    assert await states_of(store, chunks) == ["sent", "pending"]


# ---- reminders -----------------------------------------------------------------------------


async def test_a_reminder_says_at_send_time_that_it_is_late(store: Database) -> None:
    await fired_job(store, "tea", at=later(60))
    assert await deliver(store, DOWN, now=later(60)) == ["tea"]
    assert await deliver(store, now=later(181)) == ["(was due Mon 2 Mar 10:01) tea"]
    (row,) = await rows_of(store, deliveries)
    assert row.text == "(was due Mon 2 Mar 10:01) tea"


async def test_a_reminder_that_a_rate_limit_held_back_says_that_it_is_late(
    store: Database,
) -> None:
    await fired_job(store, "tea", at=later(60))
    await deliver(store, rate_limited(300), now=later(60))
    assert await deliver(store, now=later(360)) == ["(was due Mon 2 Mar 10:01) tea"]


async def test_a_reminder_that_may_have_arrived_is_not_written_anew(store: Database) -> None:
    await fired_job(store, "tea", at=later(60))
    await deliver(store, SERVER_ERROR, now=later(60))
    assert await deliver(store, now=later(3600)) == [f"{REPEAT_MARK}tea"]


async def test_reminders_due_together_share_one_delivery(store: Database) -> None:
    for text in ("tea", "bread"):
        await active_job(store, text, at=later(60))
    await active_job(store, "elsewhere", chat=OTHER_CHAT, at=later(60))
    assert await fire(store, later(60)) == 3
    assert await deliver(store, now=later(60)) == ["• tea\n• bread"]
    carried = [row.delivery_id for row in await rows_of(store, turns)]
    assert len(set(carried)) == 2
    assert await states_of(store, turns) == ["answered"] * 3


async def test_a_cancelled_line_is_left_out_of_a_shared_reminder(store: Database) -> None:
    tea = await active_job(store, "tea", at=later(60))
    bread = await active_job(store, "bread", at=later(60))
    await fire(store, later(60))
    cancelled = await store.write(cancel_job, CHAT, tea.id, now=later(61))
    assert cancelled is not None
    assert not cancelled.is_on_its_way
    assert await deliver(store, now=later(62)) == ["bread"]
    assert await job_state(store, tea.id) == "cancelled"
    assert await job_state(store, bread.id) == "done"


async def test_a_reminder_of_which_no_line_is_left_is_dropped(store: Database) -> None:
    jobs = [await active_job(store, text, at=later(60)) for text in ("tea", "bread")]
    await fire(store, later(60))
    for job in jobs:
        await store.write(cancel_job, CHAT, job.id, now=later(61))
    (row,) = await rows_of(store, deliveries)
    assert (row.state, row.reason) == ("dropped", "cancelled")
    assert await deliver(store, now=later(62)) == []


async def test_a_reminder_held_back_by_a_rate_limit_can_still_be_cancelled(
    store: Database,
) -> None:
    job = await fired_job(store, "tea", at=later(60))
    await deliver(store, rate_limited(30), now=later(60))
    cancelled = await store.write(cancel_job, CHAT, job.id, now=later(61))
    assert cancelled is not None
    assert not cancelled.is_on_its_way
    assert await deliver(store, now=later(90)) == []


async def test_a_reminder_that_may_have_arrived_stays_whatever_came_after(
    store: Database,
) -> None:
    job = await fired_job(store, "tea", at=later(60))
    await deliver(store, SERVER_ERROR, now=later(60))
    await deliver(store, rate_limited(30), now=later(62))
    assert await states_of(store, chunks) == ["pending"]
    cancelled = await store.write(cancel_job, CHAT, job.id, now=later(63))
    assert cancelled is not None
    assert cancelled.is_on_its_way
    assert await deliver(store, now=later(92)) == [f"{REPEAT_MARK}tea"]


async def test_what_is_due_while_a_reminder_is_held_back_goes_out_with_it(
    store: Database,
) -> None:
    await fired_job(store, "tea", at=later(60))
    await deliver(store, rate_limited(30), now=later(60))
    await active_job(store, "bread", at=later(70))
    await fire(store, later(70))
    assert await begin(store, now=later(70)) == Wait(until=later(90))
    assert await deliver(store, now=later(90)) == ["• tea\n• bread"]


@pytest.mark.parametrize("outcome", [None, SERVER_ERROR])
async def test_a_reminder_on_the_wire_stays_and_cancel_says_so(
    store: Database, outcome: SendOutcome | None
) -> None:
    job = await fired_job(store, "tea", at=later(60))
    step = await next_send(store, now=later(60))
    if outcome is not None:
        await finish(store, step, outcome, now=later(60))
    cancelled = await store.write(cancel_job, CHAT, job.id, now=later(61))
    assert cancelled is not None
    assert cancelled.is_on_its_way
    if outcome is None:
        await finish(store, step, OK, now=later(61))
    assert await job_state(store, job.id) == "cancelled"


async def test_a_blank_reminder_ends_instead_of_waiting_for_ever(store: Database) -> None:
    job = await fired_job(store, " ")
    (row,) = await rows_of(store, deliveries)
    assert (row.state, row.reason) == ("suppressed", "blank")
    assert await job_state(store, job.id) == "failed"
    assert await begin(store) == Wait(until=None)


# ---- edits and buttons ---------------------------------------------------------------------


def _offer(tx: Transaction, job: JobId, text: str) -> DeliveryId:
    pieces = cut(text, is_markdown=False)
    kind = DeliveryKind.NOTICE
    new = NewDelivery(chat=CHAT, kind=kind, text=text, chunks=pieces, offers_job=job)
    return store_delivery(tx, new, now=NOW)


async def asking_job(store: Database, *, chat: ChatKey = CHAT) -> JobId:
    """A job that asks for more than it may."""
    asking = replace(new_job("tidy up", chat=chat, at=later(3600)), asked_tier=Tier.MUTATE)
    created = await created_job(store, asking)
    assert isinstance(created, Created)
    return created.job.id


async def buttons_sent(store: Database, *, now: datetime = NOW) -> list[tuple[Button, ...]]:
    """The buttons under each chunk that goes out."""
    shown = []
    while isinstance(step := await begin(store, now=now), ToSend):
        shown.append(step.buttons)
        await finish(store, step, OK, now=now)
    return shown


async def test_a_single_reminder_has_its_buttons_under_its_last_chunk(store: Database) -> None:
    await fired_job(store, "tea|and bread", at=later(60))
    (delivery,) = await rows_of(store, deliveries)
    assert await buttons_sent(store, now=later(60)) == [(), reminder_buttons(delivery.id)]


async def test_r29_joined_reminders_have_no_buttons(store: Database) -> None:
    for text in ("tea", "bread"):
        await active_job(store, text, at=later(60))
    await fire(store, later(60))
    assert await buttons_sent(store, now=later(60)) == [()]


async def test_a_reminder_that_is_alone_again_has_buttons(store: Database) -> None:
    tea = await active_job(store, "tea", at=later(60))
    await active_job(store, "bread", at=later(60))
    await fire(store, later(60))
    await store.write(cancel_job, CHAT, tea.id, now=later(61))
    (delivery,) = await rows_of(store, deliveries)
    assert await buttons_sent(store, now=later(62)) == [reminder_buttons(delivery.id)]


async def test_a_reminder_that_is_sent_once_more_keeps_its_buttons(store: Database) -> None:
    await fired_job(store, "tea", at=later(60))
    step = await next_send(store, now=later(60))
    await finish(store, step, TIMEOUT, now=later(60))
    again = await next_send(store, now=later(61))
    assert (again.body.text, again.buttons) == (f"{REPEAT_MARK}tea", step.buttons)
    assert len(again.buttons) == 4


async def test_only_reminders_and_offers_have_buttons(store: Database) -> None:
    for kind in (DeliveryKind.REPLY, DeliveryKind.NOTICE, DeliveryKind.COMMAND):
        await stored_delivery(store, kind=kind)
    assert await buttons_sent(store) == [(), (), ()]


async def test_an_offer_has_a_button_under_its_last_chunk(store: Database) -> None:
    job = await asking_job(store)
    await store.write(_offer, job, "It will be asked:|tidy up")
    assert await buttons_sent(store) == [(), (Button(action=ButtonAction.ALLOW, subject=job),)]


async def test_an_offer_that_is_void_has_no_button(store: Database) -> None:
    cancelled, allowed, foreign = (
        await asking_job(store),
        await active_job(store),
        await asking_job(store, chat=OTHER_CHAT),
    )
    await store.write(cancel_job, CHAT, cancelled, now=NOW)
    for job in (cancelled, allowed.id, foreign, JobId(99)):
        await store.write(_offer, job, "tidy up")
    assert await buttons_sent(store) == [()] * 4


def _store_edit(tx: Transaction) -> None:
    chat = ensure_chat(tx, CHAT, is_group=False, now=NOW)
    pieces = cut("tea", is_markdown=False)
    kind = DeliveryKind.COMMAND
    edit = NewDelivery(chat=chat, kind=kind, text="tea", chunks=pieces, edits="77")
    store_delivery(tx, edit, now=NOW)


async def test_an_edit_goes_out_as_one_and_is_never_marked_as_a_repeat(store: Database) -> None:
    await store.write(_store_edit)
    for outcome in (TIMEOUT, OK):
        step = await next_send(store)
        assert (step.edits, step.body.text, step.buttons) == ("77", "tea", ())
        await finish(store, step, outcome)
    assert await states_of(store, deliveries) == ["sent"]


async def test_an_edit_on_the_wire_at_a_crash_is_still_one(store: Database) -> None:
    await store.write(_store_edit)
    await next_send(store)
    assert await store.write(recover_sends, SERVED, RULES, now=NOW) == 1
    again = await next_send(store)
    assert (again.edits, again.body.text) == ("77", "tea")


async def test_the_text_of_a_message_of_ours_is_found_as_it_was_sent(store: Database) -> None:
    await stored_delivery(store, "1|2")
    for outcome in (OK, TIMEOUT, Sent(external_id="100")):
        await finish(store, await next_send(store), outcome)
    body = await store.read(sent_body, CHAT, "100")
    assert body == RichText(text=f"{REPEAT_MARK}2")
    assert await store.read(sent_body, CHAT, "101") is None
    assert await store.read(sent_body, OTHER_CHAT, "100") is None


async def test_a_late_reply_of_a_model_to_a_reminder_says_when_it_was_due(
    store: Database,
) -> None:
    await queued_job_turn(store, now=later(60))
    claim = await claimed(store, now=later(60))
    end = RunEnd(state=RunState.SUCCEEDED)
    assert await store.write(answer_turn, claim, end, "They are thirsty.", cut, now=later(61))
    step = await next_send(store, now=later(600))
    assert step.body.text == "(was due Mon 2 Mar 10:01)\n\nThey are thirsty."
    assert len(step.buttons) == 4


# ---- what did not get through --------------------------------------------------------------

NAMED = "Earlier, this may not have reached you, or not all of it:\n• {}"


async def test_a_stopped_reply_whose_end_is_unknown_is_not_named_as_lost(store: Database) -> None:
    await stored_delivery(store, "1")
    await deliver(store, TIMEOUT, DOWN)
    step = await next_send(store, now=later(2))
    await store.write(stop_chat, CHAT, now=later(3))
    await finish(store, step, TIMEOUT, now=later(4))
    row = await row_of(store, deliveries, step.delivery)
    assert (row.state, row.owes_notice) == ("failed", False)
    await stored_delivery(store, "next")
    assert await deliver(store, now=later(5)) == ["next"]


async def test_when_the_chat_is_gone_what_is_left_of_a_delivery_is_not_tried(
    store: Database,
) -> None:
    gone = await stored_delivery(store, "1|2|3")
    begun = await stored_delivery(store, "a|b|c")
    lost = Rejected(reason="chat not found", chat_gone=True)
    assert (await deliver(store, lost, OK, lost))[:3] == ["1", "a", "b"]
    row = await row_of(store, deliveries, gone)
    assert (row.state, row.reason, row.attempts) == ("failed", "chat not found", 1)
    row = await row_of(store, deliveries, begun)
    assert (row.state, row.reason, row.attempts) == ("partial", "chat not found", 2)
    states = [row.state for row in await rows_of(store, chunks, chunks.c.delivery_id == gone)]
    assert states == ["rejected"] * 3


async def test_the_end_of_a_send_wakes_no_lane(store: Database) -> None:
    step = await sending_chunk(store, "1|2")
    heard: list[frozenset[Change]] = []
    store.subscribe(heard.append)
    await finish(store, step, OK)
    assert heard == [frozenset({Change(Topic.ENDED, CHAT)})]


async def test_what_was_lost_is_named_once_with_the_next_thing_that_gets_through(
    store: Database,
) -> None:
    await stored_delivery(store, "lost one\nover two lines")
    await stored_delivery(store, "lost two")
    await stored_delivery(store, "sent")
    wire = await deliver(store, REFUSED, REFUSED)
    named = NAMED.format("lost one over two lines\n• lost two")
    assert wire == ["lost one\nover two lines", "lost two", "sent", named]
    await stored_delivery(store, "next")
    assert await deliver(store) == ["next"]
    assert not any(row.owes_notice for row in await rows_of(store, deliveries))


async def test_what_was_lost_elsewhere_is_not_named_here(store: Database) -> None:
    await stored_delivery(store, "lost", chat=OTHER_CHAT)
    await deliver(store, REFUSED, chat=OTHER_CHAT)
    await stored_delivery(store, "sent")
    assert await deliver(store) == ["sent"]


async def test_what_got_through_in_part_does_not_name_itself(store: Database) -> None:
    await stored_delivery(store, "1|2")
    assert await deliver(store, OK, REFUSED) == ["1", "2"]
    await stored_delivery(store, "next")
    assert await deliver(store) == ["next", NAMED.format("1"), "2"]


async def test_every_move_on_the_wire_is_in_the_journal(store: Database) -> None:
    await stored_delivery(store, "1")
    await deliver(store, SERVER_ERROR)
    await deliver(store, now=later(2))
    moves = [
        (event.subject, event.before, event.after, event.reason)
        for event in await rows_of(store, events)
    ]
    assert moves == [
        ("deliveries", None, "pending", None),
        ("chunks", "pending", "sending", None),
        ("deliveries", "pending", "sending", None),
        ("chunks", "sending", "unknown", "500"),
        ("deliveries", "sending", "pending", "500"),
        ("chunks", "unknown", "sending", None),
        ("deliveries", "pending", "sending", None),
        ("chunks", "sending", "sent", None),
        ("deliveries", "sending", "sent", None),
    ]
