"""T2 and T3: a chat's turns run one at a time, in order, and each ends in one commit."""

from datetime import datetime

import pytest

from gateway.domain.delivery import DeliveryKind, Sent
from gateway.domain.message import ChannelName, ChatKey
from gateway.domain.tool import NOTHING_SET, ToolResult
from gateway.domain.turn import GIVEN_BACK, RunState, Trigger, TurnState
from gateway.errors import StaleStateError, StoreError
from gateway.store.chats import load_chat
from gateway.store.database import Change, Database, Topic, Transaction
from gateway.store.deliveries import NewDelivery, store_delivery
from gateway.store.ending import (
    RunEnd,
    answer_turn,
    fail_turn,
    give_back,
    recover_turns,
    refuse_turn,
)
from gateway.store.messages import admit_message
from gateway.store.opening import Layout, open_database
from gateway.store.schema import deliveries, events, runs, turns
from gateway.store.sending import finish_send
from gateway.store.stopping import Stopped, stop_chat
from gateway.store.turns import Claim, claim_turn, next_turn, queued_chats
from tests.factories import (
    CHAT,
    HOST_FAILED,
    NOTICE,
    NOW,
    OTHER_CHAT,
    SERVED,
    SUCCEEDED,
    Door,
    answered_turn,
    claimed,
    cut,
    fired_job,
    later,
    make_message,
    next_send,
    queued_heartbeat,
    queued_job_turn,
    queued_turn,
    row_of,
    rows_of,
    running_turn,
    send_rules,
    sending_chunk,
    states_of,
    stored_delivery,
    tool_call,
)


async def answer(
    store: Database, claim: Claim, reply: str = "done", *, now: datetime = NOW
) -> bool:
    return await store.write(answer_turn, claim, SUCCEEDED, reply, cut, now=now)


async def fail(store: Database, claim: Claim, *, now: datetime = NOW) -> bool:
    return await store.write(fail_turn, claim, HOST_FAILED, NOTICE, now=now)


async def refuse(
    store: Database, trigger: Trigger = Trigger.MESSAGE, *, now: datetime = NOW
) -> bool:
    end = RunEnd(state=RunState.FAILED, reason="host_not_ready", error="no answer")
    return await store.write(refuse_turn, (CHAT, trigger), end, NOTICE, owner="test", now=now)


async def recover(store: Database, *, now: datetime = NOW) -> int:
    return await store.write(recover_turns, SERVED, NOTICE, now=now)


async def claim(
    store: Database, trigger: Trigger = Trigger.MESSAGE, *, now: datetime = NOW
) -> Claim | None:
    """What the chat's lane gets to run on a session that was readied for such a turn."""
    return await store.write(
        claim_turn, CHAT, trigger=trigger, owner="test", admits=Door().admits, now=now
    )


async def text_of(store: Database, turn: int) -> str:
    row = await row_of(store, turns, turn)
    return str((await row_of(store, deliveries, row.delivery_id)).text)


async def sent_text(
    store: Database,
    text: str,
    *,
    kind: DeliveryKind = DeliveryKind.COMMAND,
    now: datetime = NOW,
    is_stored: bool = False,
) -> None:
    """A text that arrived, of a delivery of its own or of the one that waits already."""
    if not is_stored:
        await stored_delivery(store, text, kind=kind)
    step = await next_send(store, now=now)
    assert step.chunk.body.text == text
    await store.write(finish_send, step, Sent(external_id="1"), send_rules(), now=now)


async def test_a_claim_takes_the_oldest_queued_turn(store: Database) -> None:
    first = await queued_turn(store, "one")
    claim = await claimed(store)
    assert (claim.turn, claim.trigger, claim.was_interrupted) == (first, Trigger.MESSAGE, False)
    assert claim.chat.key == CHAT
    (run,) = await rows_of(store, runs)
    assert (run.id, run.attempt, run.owner, run.state) == (claim.run, 1, "test", "running")
    assert (await row_of(store, turns, first)).state == "running"


async def test_nothing_queued_is_nothing_to_claim(store: Database) -> None:
    assert await claim(store) is None
    await answer(store, await running_turn(store))
    assert await claim(store) is None


async def test_a_chat_never_has_two_running_turns(store: Database) -> None:
    first = await running_turn(store, "one")
    second = await queued_turn(store, "two")
    with pytest.raises(StoreError):
        await claimed(store)
    assert (await row_of(store, turns, second)).state == "queued"
    assert await states_of(store, runs) == ["running"]
    await answer(store, first)
    assert (await claimed(store)).turn == second


async def test_chats_do_not_wait_for_each_other(store: Database) -> None:
    await running_turn(store)
    await running_turn(store, chat=OTHER_CHAT)
    assert await states_of(store, turns) == ["running", "running"]


async def test_a_turn_that_waits_is_not_claimed_before_its_time(store: Database) -> None:
    await store.write(admit_message, make_message(hold=1.5), now=NOW)
    assert await claim(store, now=later(1.499)) is None
    head = await store.read(next_turn, CHAT, now=NOW)
    assert head is not None
    assert (head.is_due, head.not_before) == (False, later(1.5))
    assert head.chat == await store.read(load_chat, CHAT)
    due = await store.read(next_turn, CHAT, now=later(1.5))
    assert due is not None
    assert (due.is_due, due.not_before) == (True, None)
    assert (await claimed(store, now=later(1.5))).messages


async def test_queued_chats_are_listed_for_the_served_channels_alone(store: Database) -> None:
    console = ChatKey(ChannelName.CONSOLE, "local")
    await queued_turn(store, chat=console)
    await queued_turn(store)
    await running_turn(store, chat=OTHER_CHAT)
    assert await store.read(queued_chats, SERVED) == (CHAT,)
    assert await store.read(next_turn, OTHER_CHAT, now=NOW) is None


async def test_an_answer_is_stored_with_its_delivery(store: Database) -> None:
    claim = await running_turn(store)
    heard: list[frozenset[Change]] = []
    store.subscribe(heard.append)
    assert await answer(store, claim, "one|two")
    turn = await row_of(store, turns, claim.turn)
    assert (turn.state, turn.reply, turn.reason) == ("answered", "one|two", None)
    run = await row_of(store, runs, claim.run)
    assert (run.state, run.provider, run.model) == ("succeeded", "fake", "fake-1")
    delivery = await row_of(store, deliveries, turn.delivery_id)
    assert (delivery.kind, delivery.state, delivery.text) == ("reply", "pending", "one|two")
    assert heard == [frozenset({Change(Topic.ENDED, CHAT), Change(Topic.DELIVERIES, CHAT)})]


async def test_an_answer_of_marks_alone_is_shown_as_typed(store: Database) -> None:
    claim = await running_turn(store)
    await answer(store, claim, "---")
    assert (await next_send(store)).chunk.body.text == "---"


async def test_a_blank_answer_ends_silent_and_says_why(store: Database) -> None:
    claim = await running_turn(store)
    await answer(store, claim, " ")
    turn = await row_of(store, turns, claim.turn)
    delivery = await row_of(store, deliveries, turn.delivery_id)
    assert (turn.state, turn.reason) == ("silent", "blank")
    assert (delivery.state, delivery.reason) == ("suppressed", "blank")


async def test_a_failure_is_told_at_once_with_its_reference(store: Database) -> None:
    claim = await running_turn(store)
    assert await fail(store, claim)
    turn = await row_of(store, turns, claim.turn)
    run = await row_of(store, runs, claim.run)
    assert (turn.state, turn.reason) == ("failed", "died")
    assert (run.state, run.reason, run.error) == ("failed", "died", "exit 1")
    delivery = await row_of(store, deliveries, turn.delivery_id)
    assert (delivery.kind, delivery.text) == ("notice", f"That went wrong (ref {claim.turn}).")


async def test_a_failure_may_begin_a_new_session(store: Database) -> None:
    claim = await running_turn(store)
    await store.write(fail_turn, claim, HOST_FAILED, NOTICE, now=NOW, begins_session=True)
    known = await store.read(load_chat, CHAT)
    assert known is not None
    assert known.session_ref == claim.chat.session_ref + 1


async def test_a_session_that_did_not_start_fails_the_head_turn_in_one_commit(
    store: Database,
) -> None:
    turn = await queued_turn(store)
    assert await refuse(store)
    stored = await row_of(store, turns, turn)
    assert (stored.state, stored.reason) == ("failed", "host_not_ready")
    assert await states_of(store, runs) == ["failed"]
    assert not await refuse(store)


async def test_a_result_that_comes_twice_counts_once(store: Database) -> None:
    claim = await running_turn(store)
    assert await answer(store, claim, "first")
    assert not await answer(store, claim, "second")
    assert not await fail(store, claim)
    assert not await store.write(give_back, claim, now=NOW)
    assert await text_of(store, claim.turn) == "first"
    assert len(await rows_of(store, deliveries)) == 1


async def test_the_result_of_a_stopped_run_is_thrown_away(store: Database) -> None:
    claim = await running_turn(store)
    stopped = await store.write(stop_chat, CHAT, now=NOW)
    assert stopped.runs == (claim.run,)
    assert not await answer(store, claim, "too late")
    turn = await row_of(store, turns, claim.turn)
    assert (turn.state, turn.reason, turn.reply) == ("cancelled", "stopped", None)
    assert (await row_of(store, runs, claim.run)).state == "cancelled"
    assert await states_of(store, deliveries) == ["suppressed"]


async def test_stop_cancels_what_waits_and_leaves_the_next_message_alone(store: Database) -> None:
    await running_turn(store, "one")
    await queued_turn(store, "two")
    await queued_turn(store, "three", chat=OTHER_CHAT)
    stopped = await store.write(stop_chat, CHAT, now=NOW)
    assert (len(stopped.runs), stopped.queued, stopped.replies) == (1, 1, 0)
    assert await states_of(store, turns) == ["cancelled", "cancelled", "queued"]
    assert (await running_turn(store, "four")).messages[0].text == "four"


async def test_stop_when_nothing_goes_on(store: Database) -> None:
    stopped = await store.write(stop_chat, CHAT, now=NOW)
    assert stopped == Stopped(runs=(), queued=0, replies=0, done_lines=())
    assert stopped.is_nothing


async def test_stop_says_what_tools_had_done_and_keeps_scheduled_turns(store: Database) -> None:
    claim = await running_turn(store)
    line = "#1 Mon 2 Mar 10:01 (Europe/Berlin): call mum"
    await tool_call(store, claim, ToolResult(ok=True, text="set", line=line), key="k1")
    scheduled = await queued_job_turn(store)
    stopped = await store.write(stop_chat, CHAT, now=NOW)
    assert stopped.done_lines == (line,)
    assert (await row_of(store, turns, scheduled)).state == "queued"


# ---- interruption --------------------------------------------------------------------------


async def test_an_interrupted_turn_is_tried_again_once_and_told_so(store: Database) -> None:
    first = await running_turn(store)
    assert await recover(store) == 1
    assert (await row_of(store, runs, first.run)).reason == "gateway_died"
    second = await claimed(store)
    assert (second.turn, second.was_interrupted) == (first.turn, True)
    assert await states_of(store, runs) == ["interrupted", "running"]


async def test_a_second_interruption_fails_the_turn_and_tells_the_person(store: Database) -> None:
    first = await running_turn(store)
    await recover(store)
    second = await claimed(store)
    line = "#1 Mon 2 Mar 10:01 (Europe/Berlin): call mum"
    await tool_call(store, second, ToolResult(ok=True, text="set", line=line), key="k1")
    await recover(store)
    turn = await row_of(store, turns, first.turn)
    assert (turn.state, turn.reason) == ("failed", "interrupted")
    assert await text_of(store, first.turn) == f"That went wrong (ref {second.turn}).\n\n{line}"
    assert await recover(store) == 0


async def test_s15_recovery_queues_and_starts_nothing(layout: Layout) -> None:
    before = open_database(layout)
    for number in range(5):
        chat = ChatKey(ChannelName.TELEGRAM, str(number))
        await running_turn(before, chat=chat)
    await before.close()
    after = open_database(layout)
    assert await states_of(after, turns) == ["running"] * 5
    assert await recover(after) == 5
    assert await states_of(after, turns) == ["queued"] * 5
    assert await states_of(after, runs) == ["interrupted"] * 5
    await after.close()


async def test_recovery_leaves_channels_alone_that_are_not_served(store: Database) -> None:
    await running_turn(store)
    assert await store.write(recover_turns, (ChannelName.CONSOLE,), NOTICE, now=NOW) == 0
    assert await states_of(store, turns) == ["running"]


async def test_a_run_given_back_by_a_planned_stop_does_not_count(store: Database) -> None:
    await queued_turn(store)
    for _ in range(3):
        claim = await claimed(store)
        assert not claim.was_interrupted
        assert await store.write(give_back, claim, now=NOW)
    assert {row.reason for row in await rows_of(store, runs)} == {GIVEN_BACK}
    claim = await claimed(store)
    await recover(store)
    assert (await row_of(store, turns, claim.turn)).state == "queued"
    assert (await claimed(store)).was_interrupted


async def test_an_interrupted_heartbeat_is_cancelled_in_silence(store: Database) -> None:
    beat = await queued_heartbeat(store)
    await claimed(store)
    await recover(store)
    turn = await row_of(store, turns, beat)
    assert (turn.state, turn.reason) == ("cancelled", "interrupted")
    delivery = await row_of(store, deliveries, turn.delivery_id)
    assert (delivery.state, delivery.reason) == ("suppressed", "interrupted")


async def test_the_order_survives_an_interruption(store: Database) -> None:
    first = await running_turn(store, "one")
    second = await queued_turn(store, "two")
    await recover(store)
    again = await claimed(store)
    assert again.turn == first.turn
    await answer(store, again)
    assert (await claimed(store)).turn == second


# ---- what tools did ------------------------------------------------------------------------

LINE = "#1 Mon 2 Mar 10:01 (Europe/Berlin): call mum"
FAILED_CREATE = ToolResult(ok=False, text=f"{NOTHING_SET}: why", is_create=True)


async def reply_after(store: Database, results: list[ToolResult], reply: str) -> str:
    claim = await running_turn(store)
    for number, result in enumerate(results):
        await tool_call(store, claim, result, key=f"k{number}")
    await answer(store, claim, reply)
    return await text_of(store, claim.turn)


@pytest.mark.parametrize(
    ("results", "reply", "told"),
    [
        ([], "hi", "hi"),
        ([ToolResult(ok=True, text="", line=LINE)], "Will do.", f"Will do.\n\n{LINE}"),
        ([ToolResult(ok=True, text="", line=LINE)], f"Set: {LINE}!", f"Set: {LINE}!"),
        (
            [ToolResult(ok=True, text="", line=LINE), ToolResult(ok=True, text="", line="#2 x")],
            f"Set: {LINE}",
            f"Set: {LINE}\n\n#2 x",
        ),
        ([ToolResult(ok=True, text="", line=LINE)] * 2, "ok", f"ok\n\n{LINE}"),
        ([FAILED_CREATE], "I set it!", f"I set it!\n\n{NOTHING_SET}."),
        ([FAILED_CREATE], f"{NOTHING_SET}: why", f"{NOTHING_SET}: why"),
        (
            [FAILED_CREATE, ToolResult(ok=True, text="", line=LINE, is_create=True)],
            "Done.",
            f"Done.\n\n{LINE}",
        ),
        (
            [FAILED_CREATE, ToolResult(ok=True, text="", line=f"Cancelled: {LINE}")],
            "Moved it!",
            f"Moved it!\n\nCancelled: {LINE}\n{NOTHING_SET}.",
        ),
        ([ToolResult(ok=False, text="no such reminder")], "hm", "hm"),
    ],
)
async def test_the_stored_line_reaches_the_person_whatever_the_reply_says(
    store: Database, results: list[ToolResult], reply: str, told: str
) -> None:
    assert await reply_after(store, results, reply) == told


async def test_a_failed_turn_tells_what_was_set_all_the_same(store: Database) -> None:
    claim = await running_turn(store)
    await tool_call(store, claim, ToolResult(ok=True, text="", line=LINE), key="k1")
    await fail(store, claim)
    assert (await text_of(store, claim.turn)).endswith(f"\n\n{LINE}")


async def test_the_same_call_of_a_repeated_run_does_nothing_again(store: Database) -> None:
    first = await running_turn(store)
    done = await tool_call(store, first, ToolResult(ok=True, text="set", line=LINE), key="k1")
    await recover(store)
    second = await claimed(store)
    again = await tool_call(store, second, ToolResult(ok=True, text="again", line="x"), key="k1")
    assert again == done
    await answer(store, second, "ok")
    assert await text_of(store, second.turn) == f"ok\n\n{LINE}"


async def test_a_run_that_is_over_can_do_nothing_any_more(store: Database) -> None:
    claim = await running_turn(store)
    await store.write(stop_chat, CHAT, now=NOW)
    with pytest.raises(StaleStateError):
        await tool_call(store, claim, ToolResult(ok=True, text="set", line=LINE), key="k1")


# ---- what the prompt is told ---------------------------------------------------------------


async def test_a_claim_tells_what_went_out_since_the_last_turn(store: Database) -> None:
    job = await fired_job(store, "tea")
    await sent_text(store, "tea", now=later(60), is_stored=True)
    await sent_text(store, "Nothing was going on.")
    await sent_text(store, "some reply", kind=DeliveryKind.REPLY)
    claim = await running_turn(store)
    assert [(sight.kind, sight.text, sight.job_ids) for sight in claim.recent] == [
        (DeliveryKind.REMINDER, "tea", (job.id,)),
        (DeliveryKind.COMMAND, "Nothing was going on.", ()),
    ]
    await answer(store, claim)
    following = await running_turn(store)
    assert following.recent == ()


async def test_what_a_failed_turn_was_told_is_told_again(store: Database) -> None:
    await sent_text(store, "Cancelled: #1")
    claim = await running_turn(store)
    await fail(store, claim)
    assert [sight.text for sight in (await running_turn(store)).recent] == ["Cancelled: #1"]


async def test_what_is_still_on_its_way_is_told_once_it_arrived(store: Database) -> None:
    await sent_text(store, "before")
    held = await sending_chunk(store, "held", kind=DeliveryKind.COMMAND)
    claim = await running_turn(store)
    assert [sight.text for sight in claim.recent] == ["before"]
    await answer(store, claim)
    await store.write(finish_send, held, Sent(external_id="1"), send_rules(), now=later(5))
    following = await running_turn(store)
    assert [sight.text for sight in following.recent] == ["held"]
    await answer(store, following)
    assert (await running_turn(store)).recent == ()


async def test_what_never_went_out_is_not_told(store: Database) -> None:
    def silent(tx: Transaction) -> None:
        new = NewDelivery(chat=CHAT, kind=DeliveryKind.COMMAND, text="x", chunks=(), reason="why")
        store_delivery(tx, new, now=NOW)

    await queued_turn(store)
    await store.write(silent)
    assert (await claimed(store)).recent == ()


async def test_only_the_newest_ten_are_told_oldest_first(store: Database) -> None:
    for number in range(12):
        await sent_text(store, f"{number}")
    claim = await running_turn(store)
    assert [sight.text for sight in claim.recent] == [f"{number}" for number in range(2, 12)]


async def test_a_sight_says_when_it_was_sent(store: Database) -> None:
    sent = await sending_chunk(store, "tea", kind=DeliveryKind.COMMAND)
    await store.write(finish_send, sent, Sent(external_id="1"), send_rules(), now=later(5))
    (sight,) = (await running_turn(store)).recent
    assert sight.sent_at == later(5)


async def test_every_change_of_state_is_in_the_journal(store: Database) -> None:
    turn = await answered_turn(store)
    moves = [
        (event.subject, event.before, event.after)
        for event in await rows_of(store, events)
        if event.subject in ("turns", "runs")
    ]
    assert moves == [
        ("turns", None, "queued"),
        ("turns", "queued", "running"),
        ("runs", None, "running"),
        ("runs", "running", "succeeded"),
        ("turns", "running", "answered"),
    ]
    assert (await row_of(store, turns, turn)).state == TurnState.ANSWERED
