"""The Telegram channel against a Bot API server over HTTP: receiving, losing, finding again."""

import asyncio
import logging
import sys
from collections.abc import AsyncIterator
from datetime import datetime

import pytest
from telegram import Update

from gateway.channels.base import ChannelState, Target
from gateway.channels.telegram import Pacer, TelegramChannel, Timing, polling
from gateway.channels.telegram.client import BotIdentity
from gateway.channels.telegram.parse import parse_update
from gateway.domain.button import reminder_buttons
from gateway.domain.chunking import RichText
from gateway.domain.delivery import NotSent, Sent
from gateway.domain.message import Edit, Inbound, MessageKind, Move, NewMessage, Reachability
from gateway.errors import ChannelSetupError, StoreBusyError
from gateway.logs import QUIET_LOGGERS
from tests.fakes import bot_api_updates as updates
from tests.fakes.bot_api import BotApi
from tests.fakes.bot_api_faults import Fault
from tests.fakes.inbox import Inbox, running

QUICK = Timing(poll_timeout=1, poll_slack=0.3, first_wait=0.01, longest_wait=0.05)
HELLO = RichText.literal("hello")


@pytest.fixture
async def api() -> AsyncIterator[BotApi]:
    async with BotApi() as server:
        yield server


@pytest.fixture
def inbox() -> Inbox:
    return Inbox()


@pytest.fixture
async def channel(api: BotApi, inbox: Inbox) -> AsyncIterator[TelegramChannel]:
    opened = TelegramChannel(
        api.token, base_url=api.base_url, health_changed=inbox.health_changed, timing=QUICK
    )
    yield opened
    await opened.close()


def states(inbox: Inbox) -> list[ChannelState]:
    return [health.state for health in inbox.healths]


async def test_i04_an_update_is_confirmed_only_after_it_was_stored(
    api: BotApi, channel: TelegramChannel, inbox: Inbox
) -> None:
    inbox.shut()
    api.push(updates.text("one"), updates.text("two"))

    async with running(channel, inbox):
        await inbox.until(lambda: len(inbox.tried) == 1)
        assert len(api.pending) == 2
        assert inbox.items == []

        inbox.open()
        await api.until(lambda: not api.pending)

    assert inbox.texts == ["one", "two"]


async def test_s10_an_update_that_could_not_be_stored_comes_again_and_nothing_else_does(
    api: BotApi, channel: TelegramChannel, inbox: Inbox
) -> None:
    inbox.fail_next(None, StoreBusyError("database is locked"), StoreBusyError("disk is full"))
    api.push(updates.text("one"), updates.text("two"), updates.text("three"))

    async with running(channel, inbox):
        await api.until(lambda: not api.pending)

    assert inbox.texts == ["one", "two", "three"]
    assert [item.text for item in inbox.tried if isinstance(item, NewMessage)] == [
        *("one", "two", "two", "two", "three")
    ]


async def test_an_update_that_cannot_be_decoded_is_skipped_and_named(
    api: BotApi, channel: TelegramChannel, inbox: Inbox, caplog: pytest.LogCaptureFixture
) -> None:
    broken = updates.text("my secret")
    del broken["message"]["date"]
    api.push(updates.text("before"))
    bad_id = api.push(broken)[0]
    api.push(updates.text("after"))

    async with running(channel, inbox):
        await api.until(lambda: not api.pending)

    assert inbox.texts == ["before", "after"]
    named = [record for record in caplog.records if getattr(record, "update_id", 0) == bad_id]
    assert len(named) == 1
    assert "my secret" not in caplog.text


async def test_an_update_that_fails_unforeseen_is_tried_three_times_and_then_skipped(
    api: BotApi, channel: TelegramChannel, inbox: Inbox
) -> None:
    inbox.fail_next(*(RuntimeError("a defect") for _ in range(3)))
    api.push(updates.text("poison"), updates.text("after"))

    async with running(channel, inbox):
        await api.until(lambda: not api.pending)

    assert inbox.texts == ["after"]
    assert [item.text for item in inbox.tried if isinstance(item, NewMessage)] == [
        *("poison", "poison", "poison", "after")
    ]


async def test_a_passing_unforeseen_failure_loses_no_message(
    api: BotApi, channel: TelegramChannel, inbox: Inbox
) -> None:
    inbox.fail_next(RuntimeError("a defect"))
    api.push(updates.text("hello"))

    async with running(channel, inbox):
        await api.until(lambda: not api.pending)

    assert inbox.texts == ["hello"]


async def test_only_the_kinds_of_update_that_are_read_are_asked_for(
    api: BotApi, channel: TelegramChannel, inbox: Inbox
) -> None:
    api.push(
        updates.channel_post(),
        updates.edited("better words"),
        updates.membership("kicked"),
        *updates.group_moved(-4001, -1009001),
        updates.text("hello"),
    )

    async with running(channel, inbox):
        await api.until(lambda: not api.pending)

    kinds: list[type[Inbound]] = [Edit, Reachability, Move, Move, NewMessage]
    assert [type(item) for item in inbox.items] == kinds
    assert api.calls_of("getUpdates")[0].params["allowed_updates"] == [
        *("message", "edited_message", "callback_query", "my_chat_member")
    ]


async def test_a_button_is_answered_after_its_press_was_stored(
    api: BotApi, channel: TelegramChannel, inbox: Inbox
) -> None:
    inbox.fail_next(StoreBusyError("database is locked"))
    inbox.shut()
    api.push(updates.button(callback_id="cb-9"))

    async with running(channel, inbox):
        await inbox.until(lambda: len(inbox.tried) == 1)
        assert api.calls_of("answerCallbackQuery") == []
        inbox.open()
        await api.until(lambda: bool(api.calls_of("answerCallbackQuery")))

    assert len(inbox.tried) == 2
    assert [call.params for call in api.calls_of("answerCallbackQuery")] == [
        {"callback_query_id": "cb-9"}
    ]


async def test_i06_a_stranger_who_presses_a_button_gets_nothing(
    api: BotApi, channel: TelegramChannel, inbox: Inbox
) -> None:
    inbox.admits = False
    api.push(updates.button(callback_id="cb-stranger"))

    async with running(channel, inbox):
        await api.until(lambda: not api.pending)
        inbox.admits = True
        api.push(updates.button(callback_id="cb-known"))
        await api.until(
            lambda: [one.status for one in api.calls_of("answerCallbackQuery")] == [200]
        )

    assert api.calls_of("answerCallbackQuery")[0].params == {"callback_query_id": "cb-known"}


async def test_a_button_that_cannot_be_answered_holds_up_nothing(
    api: BotApi, channel: TelegramChannel, inbox: Inbox
) -> None:
    api.fail("answerCallbackQuery", Fault.never(), times=None)
    api.push(updates.button(), updates.text("hello"))

    async with running(channel, inbox):
        await api.until(lambda: not api.pending)

    assert inbox.texts == ["snooze:7", "hello"]


async def test_a_press_that_is_too_old_to_be_answered_is_received_all_the_same(
    api: BotApi, channel: TelegramChannel, inbox: Inbox, caplog: pytest.LogCaptureFixture
) -> None:
    too_old = "query is too old and response timeout expired or query ID is invalid"
    api.fail("answerCallbackQuery", Fault.bad_request(too_old))
    api.push(updates.button("done:12"))

    with caplog.at_level(logging.INFO):
        async with running(channel, inbox):
            await api.until(
                lambda: [one.status for one in api.calls_of("answerCallbackQuery")] == [400]
            )
            api.push(updates.text("hello"))
            await api.until(lambda: not api.pending)

    assert inbox.texts == ["done:12", "hello"]
    assert channel.health.reason is None
    assert [record for record in caplog.records if "button" in record.getMessage()] == []


async def test_a_press_under_a_sent_message_says_which_and_a_reply_quotes_it(
    api: BotApi, channel: TelegramChannel, inbox: Inbox
) -> None:
    place = Target(address="-100200:43")
    sent = await channel.send(place, HELLO, buttons=reminder_buttons(12))
    assert isinstance(sent, Sent)
    api.push(updates.press(api.sent[0], "Snooze 1 h", sender=updates.person(9)))
    api.push(updates.reply("in an hour", api.sent[0]))

    async with running(channel, inbox):
        await api.until(lambda: not api.pending)

    press, reply = inbox.items
    assert isinstance(press, NewMessage)
    assert isinstance(reply, NewMessage)
    assert (press.kind, press.text) == (MessageKind.BUTTON, "snooze60:12")
    assert (press.sender_addresses, press.chat_addresses) == (("9",), ("-100200",))
    assert press.quoted_external_id == reply.quoted_external_id == sent.external_id
    assert press.chat == reply.chat
    assert reply.quoted == "hello"
    assert reply.is_addressed


async def test_s05_a_second_poller_is_named_and_the_fight_goes_on_while_sends_work(
    api: BotApi, channel: TelegramChannel, inbox: Inbox
) -> None:
    api.fail("getUpdates", Fault.conflict(), times=None)

    async with running(channel, inbox) as task:
        await api.until(lambda: len(api.calls_of("getUpdates")) >= 5)
        assert channel.health.state is ChannelState.CONFLICT
        assert "another program" in (channel.health.reason or "")
        assert isinstance(await channel.send(Target(address="7"), HELLO), Sent)
        assert not task.done()

        api.heal()
        api.push(updates.text("hello"))
        await inbox.until(lambda: channel.health.state is ChannelState.CONNECTED)
        await api.until(lambda: not api.pending)

    assert inbox.texts == ["hello"]


async def test_s05_two_pollers_of_one_token_tell_each_other_apart(
    api: BotApi, channel: TelegramChannel, inbox: Inbox
) -> None:
    other_inbox = Inbox()
    other = TelegramChannel(
        api.token, base_url=api.base_url, health_changed=other_inbox.health_changed, timing=QUICK
    )
    async with running(channel, inbox), running(other, other_inbox):
        await inbox.until(lambda: ChannelState.CONFLICT in states(inbox))
        await other_inbox.until(lambda: ChannelState.CONFLICT in states(other_inbox))
    await other.close()


@pytest.mark.parametrize(
    "fault", [Fault.never(), Fault.reset(is_stored=False), Fault.web_page(502), Fault.web_page(200)]
)
async def test_i24_polling_that_died_is_noticed_while_sends_work_and_comes_back(
    api: BotApi, channel: TelegramChannel, inbox: Inbox, fault: Fault
) -> None:
    async with running(channel, inbox):
        await inbox.until(lambda: channel.health.state is ChannelState.CONNECTED)
        connected_at = channel.health.last_ok_at
        assert connected_at is not None

        api.fail("getUpdates", fault, times=None)
        await inbox.until(lambda: channel.health.state is ChannelState.DISCONNECTED)
        assert isinstance(await channel.send(Target(address="7"), HELLO), Sent)
        assert channel.health.state is ChannelState.DISCONNECTED

        api.push(updates.text("hello"))
        api.drop_connections()
        api.heal()
        await inbox.until(lambda: channel.health.state is ChannelState.CONNECTED)
        await api.until(lambda: not api.pending)
        assert channel.health.last_ok_at is not None
        assert channel.health.last_ok_at > connected_at

    assert inbox.texts == ["hello"]


async def test_i24_an_answer_that_trickles_in_for_ever_counts_as_none(
    api: BotApi, inbox: Inbox
) -> None:
    channel = TelegramChannel(
        api.token,
        base_url=api.base_url,
        health_changed=inbox.health_changed,
        timing=Timing(poll_timeout=0, poll_slack=0.5, first_wait=0.01),
    )
    api.fail("getUpdates", Fault.trickle())
    api.push(updates.text("hello"))

    async with running(channel, inbox):
        await inbox.until(lambda: channel.health.state is ChannelState.DISCONNECTED)
        assert "no answer in time" in (channel.health.reason or "")
        await api.until(lambda: not api.pending)
    await channel.close()

    assert inbox.texts == ["hello"]


async def test_s19_a_wrong_token_ends_the_channel_with_a_sentence_that_does_not_hold_it(
    api: BotApi, inbox: Inbox
) -> None:
    channel = TelegramChannel(
        "123456:CANARY-wrong", base_url=api.base_url, health_changed=inbox.health_changed
    )

    with pytest.raises(ChannelSetupError, match="does not accept the bot token") as caught:
        await channel.run(inbox.receive)

    await channel.close()
    assert channel.health.state is ChannelState.FAILED
    assert channel.health.reason == str(caught.value)
    assert "CANARY" not in str(caught.value)


async def test_a_token_that_is_revoked_while_running_ends_the_channel(
    api: BotApi, channel: TelegramChannel, inbox: Inbox
) -> None:
    task = asyncio.create_task(channel.run(inbox.receive))
    await inbox.until(lambda: channel.health.state is ChannelState.CONNECTED)
    api.fail("getUpdates", Fault.unauthorized(), times=None)
    api.fail("getMe", Fault.unauthorized(), times=None)

    with pytest.raises(ChannelSetupError):
        await asyncio.wait_for(task, timeout=10)
    assert channel.health.state is ChannelState.FAILED


async def test_one_odd_401_is_asked_about_before_the_channel_gives_up(
    api: BotApi, channel: TelegramChannel, inbox: Inbox
) -> None:
    api.fail("getUpdates", Fault.unauthorized())
    api.push(updates.text("hello"))

    async with running(channel, inbox):
        await api.until(lambda: not api.pending)

    assert inbox.texts == ["hello"]
    assert len(api.calls_of("getMe")) == 2


async def test_i03_a_server_that_is_away_at_start_is_waited_for_and_nothing_is_dropped(
    api: BotApi, channel: TelegramChannel, inbox: Inbox
) -> None:
    await api.stop()
    api.push(updates.text("sent while nobody listened"))

    async with running(channel, inbox):
        await inbox.until(lambda: channel.health.state is ChannelState.DISCONNECTED)
        await api.start()
        await api.until(lambda: not api.pending)

    assert inbox.texts == ["sent while nobody listened"]
    assert api.calls_of("deleteWebhook") == []


async def test_a_webhook_that_is_in_the_way_is_removed_with_what_waits_for_it_kept(
    api: BotApi, channel: TelegramChannel, inbox: Inbox
) -> None:
    api.webhook = "https://old.example/hook"
    api.fail("deleteWebhook", Fault.server_error())
    api.push(updates.text("hello"))

    async with running(channel, inbox):
        await api.until(lambda: not api.pending)

    assert inbox.texts == ["hello"]
    assert api.webhook == ""


async def test_i14_five_lost_connections_leave_one_poller_and_no_copy(
    api: BotApi, channel: TelegramChannel, inbox: Inbox
) -> None:
    async with running(channel, inbox):
        for _ in range(5):
            await inbox.until(lambda: channel.health.state is ChannelState.CONNECTED)
            await api.stop()
            await inbox.until(lambda: channel.health.state is ChannelState.DISCONNECTED)
            await api.start()
        await inbox.until(lambda: channel.health.state is ChannelState.CONNECTED)
        api.push(updates.text("hello"))
        await api.until(lambda: not api.pending)
        open_polls = [call for call in api.calls_of("getUpdates") if call.status is None]

    assert inbox.texts == ["hello"]
    assert len(open_polls) <= 1
    assert ChannelState.CONFLICT not in states(inbox)


async def test_a_channel_that_was_stopped_runs_again_without_repeats(
    api: BotApi, channel: TelegramChannel, inbox: Inbox
) -> None:
    for number in range(3):
        api.push(updates.text(f"message {number}"))
        async with running(channel, inbox):
            await api.until(lambda: not api.pending)
        assert channel.health.state is ChannelState.STOPPED

    assert inbox.texts == ["message 0", "message 1", "message 2"]


async def test_a_stop_while_storing_leaves_the_update_for_the_next_start(
    api: BotApi, channel: TelegramChannel, inbox: Inbox
) -> None:
    inbox.shut()
    api.push(updates.text("hello"))
    async with running(channel, inbox):
        await inbox.until(lambda: len(inbox.tried) == 1)
    assert len(api.pending) == 1

    inbox.open()
    async with running(channel, inbox):
        await api.until(lambda: not api.pending)

    assert inbox.texts == ["hello"]


async def test_a_long_outage_is_logged_ever_more_rarely(
    api: BotApi, inbox: Inbox, caplog: pytest.LogCaptureFixture
) -> None:
    timing = Timing(first_wait=0.001, longest_wait=0.001)
    channel = TelegramChannel(api.token, base_url=api.base_url, timing=timing)
    api.fail("getUpdates", Fault.web_page(502), times=None)

    with caplog.at_level(logging.INFO, logger="gateway"):
        async with running(channel, inbox):
            await api.until(lambda: len(api.calls_of("getUpdates")) > 40)
        await channel.close()

    outage = [record for record in caplog.records if record.message == "telegram_unreachable"]
    assert len(outage) == 6


async def test_an_outage_after_a_recovery_is_logged_like_the_first(
    api: BotApi, channel: TelegramChannel, inbox: Inbox, caplog: pytest.LogCaptureFixture
) -> None:
    async with running(channel, inbox):
        for _ in range(2):
            api.fail("getUpdates", Fault.web_page(502), times=3)
            api.push(updates.text("hello"))
            await api.until(lambda: not api.pending)

    outage = [record for record in caplog.records if record.message == "telegram_unreachable"]
    assert [getattr(record, "failed_polls", 0) for record in outage] == [1, 2, 1, 2]


async def test_an_answer_that_no_bot_api_gives_does_not_end_the_channel(
    api: BotApi, channel: TelegramChannel, inbox: Inbox
) -> None:
    api.fail("getUpdates", Fault(page='{"ok": true, "result": [7, null, {"message": 1}]}'))
    api.fail("getUpdates", Fault(page='{"ok": true, "result": 7}'))
    api.push(updates.text("hello"))

    async with running(channel, inbox):
        await api.until(lambda: not api.pending)

    assert inbox.texts == ["hello"]


async def test_an_update_that_is_misread_by_us_is_skipped_and_named(
    api: BotApi,
    channel: TelegramChannel,
    inbox: Inbox,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    bad_id, _ = api.push(updates.text("odd"), updates.text("plain"))

    def misread(update: Update, bot: BotIdentity, *, received_at: datetime) -> Inbound | None:
        if update.update_id == bad_id:
            raise IndexError
        return parse_update(update, bot, received_at=received_at)

    monkeypatch.setattr(polling, "parse_update", misread)
    async with running(channel, inbox):
        await api.until(lambda: not api.pending)

    assert inbox.texts == ["plain"]
    assert bad_id in [getattr(record, "update_id", 0) for record in caplog.records]


async def test_d01_a_server_that_asks_the_poller_to_wait_is_obeyed(
    api: BotApi, channel: TelegramChannel, inbox: Inbox
) -> None:
    api.fail("getUpdates", Fault.too_many_requests(1))

    async with running(channel, inbox):
        await api.until(lambda: len(api.calls_of("getUpdates")) == 2)

    first, second = api.calls_of("getUpdates")[:2]
    assert second.at - first.at >= 1


async def test_s11_the_token_is_in_no_log_no_reason_and_no_error(
    api: BotApi, inbox: Inbox, caplog: pytest.LogCaptureFixture
) -> None:
    # Libraries print whole addresses below WARNING; the program never lets them.
    for name in QUIET_LOGGERS:
        caplog.set_level(logging.WARNING, logger=name)
    channel = TelegramChannel(
        api.token,
        base_url=api.base_url,
        health_changed=inbox.health_changed,
        timing=QUICK,
        pacer=Pacer(sleep=lambda _: asyncio.sleep(0)),
    )
    outcomes = []
    faults = [
        *(Fault.unauthorized(), Fault.conflict(), Fault.too_many_requests(0)),
        *(Fault.web_page(502), Fault.web_page(200), Fault.web_page(404)),
        *(Fault.reset(is_stored=True), Fault.blocked(), Fault.bad_request("no")),
    ]
    with caplog.at_level(logging.DEBUG):
        async with running(channel, inbox):
            for fault in faults:
                api.fail("getUpdates", fault)
                api.fail("sendMessage", fault)
                outcomes.append(await channel.send(Target(address="7"), HELLO))
            await api.until(lambda: len(api.calls_of("getUpdates")) > len(faults))
            await api.stop()
            outcomes.append(await channel.send(Target(address="7"), HELLO))
            await inbox.until(lambda: channel.health.state is ChannelState.DISCONNECTED)
        await channel.close()

    assert isinstance(outcomes[-1], NotSent)
    assert "CANARY" in api.token
    told = f"{caplog.text} {outcomes} {inbox.healths} {channel!r} {vars(inbox)}"
    assert "CANARY" not in told
    assert all("CANARY" not in str(vars(record)) for record in caplog.records)


async def test_importing_the_channel_does_not_import_the_library() -> None:
    code = "import sys, gateway.channels.telegram; print('telegram' in sys.modules)"
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", code), stdout=asyncio.subprocess.PIPE
    )
    out, _ = await process.communicate()

    assert out.strip() == b"False"
