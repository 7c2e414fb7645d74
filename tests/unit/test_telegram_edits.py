"""Buttons under a message and edits of it, told from what a server does to the real library."""

from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from gateway.channels.base import Target
from gateway.channels.telegram import TelegramChannel, Timing
from gateway.domain.button import Button, ButtonAction, reminder_buttons
from gateway.domain.chunking import Entity, EntityKind, RichText
from gateway.domain.delivery import (
    Malformed,
    Moved,
    NotSent,
    NotSentReason,
    Rejected,
    SendOutcome,
    Sent,
    Unknown,
)
from tests.fakes.bot_api import BotApi
from tests.fakes.bot_api_faults import Fault
from tests.fakes.bot_api_updates import buttons_of, labels_of

CHAT = "7"
TOPIC = "-100200:43"
REMINDER = RichText.literal("call mum")
DONE = RichText.literal("call mum (done)")
ROWS = [["Done", "Snooze 10 min"], ["Snooze 1 h", "Tomorrow"]]


@pytest.fixture
async def api() -> AsyncIterator[BotApi]:
    async with BotApi() as server:
        yield server


@pytest.fixture
async def channel(api: BotApi) -> AsyncIterator[TelegramChannel]:
    timing = Timing(send_timeout=10, connect_timeout=10)
    opened = TelegramChannel(api.token, base_url=api.base_url, timing=timing)
    yield opened
    await opened.close()


async def reminded(channel: TelegramChannel, address: str = CHAT) -> str:
    """Send a reminder with its buttons; returns its external id."""
    target = Target(address=address)
    outcome = await channel.send(target, REMINDER, buttons=reminder_buttons(12))
    assert isinstance(outcome, Sent)
    return outcome.external_id


async def test_a_reminder_has_its_buttons_in_two_rows_that_a_phone_can_show(
    api: BotApi, channel: TelegramChannel
) -> None:
    await reminded(channel)

    (message,) = api.sent
    assert labels_of(message) == ROWS
    found = [Button.parse(one["callback_data"]) for row in buttons_of(message) for one in row]
    assert tuple(found) == reminder_buttons(12)


async def test_a_button_alone_stands_alone_and_a_text_without_has_none(
    api: BotApi, channel: TelegramChannel
) -> None:
    allow = Button(action=ButtonAction.ALLOW, subject=2**63 - 1)

    await channel.send(Target(address=CHAT), REMINDER, buttons=(allow,))
    await channel.send(Target(address=CHAT), REMINDER)

    offered, plain = api.sent
    assert labels_of(offered) == [["Allow"]]
    assert "reply_markup" not in plain
    assert "reply_markup" not in api.calls_of("sendMessage")[1].params


async def test_buttons_go_along_with_a_text_whose_topic_is_gone(
    api: BotApi, channel: TelegramChannel
) -> None:
    api.delete_topic(-100200, 43)

    await reminded(channel, TOPIC)

    (message,) = api.sent
    assert labels_of(message) == ROWS


async def test_d11_the_plain_repeat_of_a_malformed_text_keeps_its_buttons(
    api: BotApi, channel: TelegramChannel
) -> None:
    bold = Entity(kind=EntityKind.BOLD, offset=0, length=4)
    body = RichText(text="call mum", entities=(bold,))
    api.fail("sendMessage", Fault.bad_request("can't parse entities: Unsupported start tag"))

    refused = await channel.send(Target(address=CHAT), body, buttons=reminder_buttons(12))
    assert isinstance(refused, Malformed)
    await channel.send(Target(address=CHAT), body.plain(), buttons=reminder_buttons(12))

    (message,) = api.sent
    assert "entities" not in message
    assert labels_of(message) == ROWS


async def test_an_edit_changes_the_text_takes_the_buttons_away_and_keeps_the_id(
    api: BotApi, channel: TelegramChannel
) -> None:
    message_id = await reminded(channel)
    bold = Entity(kind=EntityKind.BOLD, offset=0, length=4)
    body = RichText(text=DONE.text, entities=(bold,))

    outcome = await channel.send(Target(address=CHAT, edits=message_id), body)

    assert outcome == Sent(external_id=message_id)
    (message,) = api.sent
    assert message["text"] == DONE.text
    assert message["entities"] == [{"type": "bold", "offset": 0, "length": 4}]
    assert "reply_markup" not in message
    assert len(api.calls_of("sendMessage")) == 1
    (edit,) = api.calls_of("editMessageText")
    assert edit.params["link_preview_options"] == {"is_disabled": True}


async def test_an_edit_that_is_repeated_has_been_made(
    api: BotApi, channel: TelegramChannel
) -> None:
    message_id = await reminded(channel)
    target = Target(address=CHAT, edits=message_id)

    for _ in range(2):
        assert await channel.send(target, DONE) == Sent(external_id=message_id)

    assert [call.status for call in api.calls_of("editMessageText")] == [200, 400]
    assert api.texts() == [DONE.text]


async def test_an_edit_in_a_topic_finds_the_message_by_its_group(
    api: BotApi, channel: TelegramChannel
) -> None:
    message_id = await reminded(channel, TOPIC)

    outcome = await channel.send(Target(address=TOPIC, edits=message_id), DONE)

    assert outcome == Sent(external_id=message_id)
    assert api.texts(-100200) == [DONE.text]


async def test_a_message_that_was_deleted_is_sent_anew_to_where_it_stood(
    api: BotApi, channel: TelegramChannel
) -> None:
    message_id = await reminded(channel, TOPIC)
    api.delete_message(int(message_id))

    outcome = await channel.send(Target(address=TOPIC, edits=message_id), DONE)

    (message,) = api.sent
    assert outcome == Sent(external_id=str(message["message_id"]))
    assert message["text"] == DONE.text
    assert message["message_thread_id"] == 43
    assert "reply_markup" not in message


@pytest.mark.parametrize(
    "reason",
    ["message can't be edited", "MESSAGE_ID_INVALID", "there is no text in the message to edit"],
)
async def test_a_message_that_cannot_be_edited_is_sent_anew(
    api: BotApi, channel: TelegramChannel, reason: str
) -> None:
    message_id = await reminded(channel)
    api.fail("editMessageText", Fault.bad_request(reason))

    outcome = await channel.send(Target(address=CHAT, edits=message_id), DONE)

    assert api.texts() == [REMINDER.text, DONE.text]
    assert outcome == Sent(external_id=str(api.sent[1]["message_id"]))


async def test_an_id_that_another_channel_issued_is_not_edited(
    api: BotApi, channel: TelegramChannel
) -> None:
    target = Target(address=CHAT, edits="20261201T090000-77:3")

    assert isinstance(await channel.send(target, DONE), Sent)

    assert api.texts() == [DONE.text]
    assert api.calls_of("editMessageText") == []


@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        pytest.param(
            Fault.too_many_requests(5),
            NotSent(reason=NotSentReason.RATE_LIMITED, retry_after=timedelta(seconds=5)),
            id="429",
        ),
        pytest.param(Fault.blocked(), NotSent(reason=NotSentReason.CHAT_UNREACHABLE), id="blocked"),
        pytest.param(
            Fault.chat_not_found(), Rejected(reason="Chat not found", chat_gone=True), id="no-chat"
        ),
        pytest.param(Fault.migrated(-100300), Moved(to="-100300"), id="moved"),
        pytest.param(
            Fault.bad_request("message is too long"),
            Rejected(reason="Message is too long"),
            id="too-long",
        ),
        pytest.param(
            Fault.bad_request("can't parse entities"),
            Malformed(reason="Can't parse entities"),
            id="malformed",
        ),
        pytest.param(
            Fault.web_page(502, is_stored=True),
            Unknown(reason="HTTP 502 without a usable answer", answered=True),
            id="502",
        ),
        pytest.param(
            Fault.reset(is_stored=True),
            Unknown(reason="the connection broke off", answered=False),
            id="reset",
        ),
    ],
)
async def test_any_other_failure_of_an_edit_means_what_it_means_of_a_send(
    api: BotApi, channel: TelegramChannel, fault: Fault, expected: SendOutcome
) -> None:
    message_id = await reminded(channel)
    api.fail("editMessageText", fault)

    assert await channel.send(Target(address=CHAT, edits=message_id), DONE) == expected

    assert len(api.calls_of("editMessageText")) == 1
    assert len(api.calls_of("sendMessage")) == 1


async def test_an_edit_that_nobody_answers_in_time_may_have_been_made(api: BotApi) -> None:
    timing = Timing(send_timeout=0.2, connect_timeout=10)
    channel = TelegramChannel(api.token, base_url=api.base_url, timing=timing)
    api.fail("editMessageText", Fault.never())

    outcome = await channel.send(Target(address=CHAT, edits="5001"), DONE)
    await channel.close()

    assert isinstance(outcome, Unknown)
    assert not outcome.answered
    assert api.calls_of("sendMessage") == []


async def test_an_edit_without_a_connection_was_not_made(
    api: BotApi, channel: TelegramChannel
) -> None:
    message_id = await reminded(channel)
    target = Target(address=CHAT, edits=message_id)

    await api.stop()
    assert await channel.send(target, DONE) == NotSent(reason=NotSentReason.CHANNEL_DOWN)

    await api.start()
    assert await channel.send(target, DONE) == Sent(external_id=message_id)
