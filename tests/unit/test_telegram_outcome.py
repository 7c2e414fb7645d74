"""What became of a send, told from what a server really did to the real library over HTTP."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

import pytest

from gateway.channels.base import ChannelState, Target
from gateway.channels.telegram import TelegramChannel, Timing
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
from tests.fakes.bot_api_updates import TOKEN

CHAT = Target(address="7")
HELLO = RichText.literal("hello")
DOWN = NotSent(reason=NotSentReason.CHANNEL_DOWN)


@asynccontextmanager
async def channel_to(
    base_url: str, *, send_timeout: float = 10, connect_timeout: float = 10
) -> AsyncIterator[TelegramChannel]:
    timing = Timing(
        send_timeout=send_timeout, connect_timeout=connect_timeout, side_call_timeout=0.3
    )
    channel = TelegramChannel(TOKEN, base_url=base_url, timing=timing)
    try:
        yield channel
    finally:
        await channel.close()


async def outcome_of(fault: Fault, body: RichText = HELLO) -> SendOutcome:
    """What a send comes to that meets `fault`; the server must have seen it exactly once."""
    async with BotApi() as api, channel_to(api.base_url) as channel:
        api.fail("sendMessage", fault)
        outcome = await channel.send(CHAT, body)
        assert len(api.calls_of("sendMessage")) == 1
        return outcome


async def test_an_accepted_message_is_sent_under_the_id_it_was_given() -> None:
    async with BotApi() as api, channel_to(api.base_url) as channel:
        outcome = await channel.send(CHAT, HELLO)

        assert outcome == Sent(external_id=str(api.sent[0]["message_id"]))
        assert api.texts() == ["hello"]


async def test_d01_a_rate_limit_names_the_wait_that_was_asked_for() -> None:
    outcome = await outcome_of(Fault.too_many_requests(37))

    assert outcome == NotSent(reason=NotSentReason.RATE_LIMITED, retry_after=timedelta(seconds=37))


async def test_a_rate_limit_without_a_wait_is_still_a_rate_limit() -> None:
    outcome = await outcome_of(Fault(status=429, description="Too Many Requests"))

    assert outcome == NotSent(reason=NotSentReason.RATE_LIMITED)


async def test_d01_a_rate_limit_on_typing_delays_no_message() -> None:
    async with BotApi() as api, channel_to(api.base_url) as channel:
        api.fail("sendChatAction", Fault.too_many_requests(3600), times=None)

        await channel.show_typing(CHAT)

        assert isinstance(await channel.send(CHAT, HELLO), Sent)


async def test_typing_that_is_never_answered_is_given_up() -> None:
    async with BotApi() as api, channel_to(api.base_url) as channel:
        api.fail("sendChatAction", Fault.never())

        await channel.show_typing(CHAT)

        assert len(api.calls_of("sendChatAction")) == 1


@pytest.mark.parametrize("fault", [Fault.blocked(), Fault.kicked()])
async def test_a_chat_that_shut_the_bot_out_may_let_it_in_again(fault: Fault) -> None:
    assert await outcome_of(fault) == NotSent(reason=NotSentReason.CHAT_UNREACHABLE)


@pytest.mark.parametrize(
    "fault",
    [
        Fault.chat_not_found(),
        Fault.deactivated(),
        Fault.bad_request("group chat was deactivated"),
        Fault.bad_request("PEER_ID_INVALID"),
    ],
)
async def test_d06_a_chat_that_is_no_more_takes_no_message_ever_again(fault: Fault) -> None:
    outcome = await outcome_of(fault)

    assert isinstance(outcome, Rejected)
    assert outcome.chat_gone


async def test_d06_any_other_refusal_is_about_the_one_message() -> None:
    outcome = await outcome_of(Fault.bad_request("not enough rights to send text messages"))

    assert outcome == Rejected(reason="Not enough rights to send text messages")


async def test_d06_a_message_that_is_too_long_is_refused_for_good() -> None:
    async with BotApi() as api, channel_to(api.base_url) as channel:
        outcome = await channel.send(CHAT, RichText(text="x" * 4097))

        assert outcome == Rejected(reason="Message is too long")


async def test_a_message_that_telegram_sees_as_blank_is_refused_for_good() -> None:
    async with BotApi() as api, channel_to(api.base_url) as channel:
        outcome = await channel.send(CHAT, RichText(text=" \n "))

        assert outcome == Rejected(reason="Text must be non-empty")


@pytest.mark.parametrize(
    "entity",
    [
        Entity(kind=EntityKind.TEXT_LINK, offset=0, length=5, url="https://localhost/x"),
        Entity(kind=EntityKind.BOLD, offset=3, length=9),
        Entity(kind=EntityKind.BOLD, offset=0, length=7),
    ],
    ids=["link-without-dotted-host", "past-the-end", "inside-an-emoji"],
)
async def test_d11_entities_that_telegram_refuses_are_a_matter_of_formatting(
    entity: Entity,
) -> None:
    async with BotApi() as api, channel_to(api.base_url) as channel:
        outcome = await channel.send(CHAT, RichText(text="hello 😀", entities=(entity,)))

        assert isinstance(outcome, Malformed)
        assert api.sent == []


async def test_d11_a_parse_error_is_a_matter_of_formatting() -> None:
    outcome = await outcome_of(
        Fault.bad_request('can\'t parse entities: Unsupported start tag "x" at byte offset 0')
    )

    assert isinstance(outcome, Malformed)


async def test_d08_a_moved_group_names_its_new_address() -> None:
    assert await outcome_of(Fault.migrated(-1009001)) == Moved(to="-1009001")


@pytest.mark.parametrize(
    "fault",
    [
        Fault.server_error(),
        Fault.web_page(502),
        Fault.web_page(504, is_stored=True),
        Fault.web_page(200),
    ],
)
async def test_a_servers_own_failure_leaves_open_whether_it_took_the_message(
    fault: Fault,
) -> None:
    outcome = await outcome_of(fault)

    assert isinstance(outcome, Unknown)
    assert outcome.answered


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (302, DOWN),
        (403, NotSent(reason=NotSentReason.REFUSED_FOR_NOW)),
        (404, NotSent(reason=NotSentReason.REFUSED_FOR_NOW)),
        (407, NotSent(reason=NotSentReason.REFUSED_FOR_NOW)),
        (413, Rejected(reason="HTTP 413 without a usable answer")),
        (429, NotSent(reason=NotSentReason.RATE_LIMITED)),
    ],
)
async def test_a_web_page_with_a_refusal_is_not_telegram_speaking(
    status: int, expected: SendOutcome
) -> None:
    assert await outcome_of(Fault.web_page(status)) == expected


async def test_d03_a_slow_answer_leaves_the_outcome_open_and_one_copy_on_the_server() -> None:
    async with BotApi() as api, channel_to(api.base_url, send_timeout=0.3) as channel:
        api.fail("sendMessage", Fault.slow())

        outcome = await channel.send(CHAT, HELLO)

        assert outcome == Unknown(reason="no answer in time", answered=False)
        assert api.texts() == ["hello"]
        assert len(api.calls_of("sendMessage")) == 1


@pytest.mark.parametrize("is_stored", [True, False])
async def test_d03_a_connection_cut_after_the_request_leaves_the_outcome_open(
    *, is_stored: bool
) -> None:
    outcome = await outcome_of(Fault.reset(is_stored=is_stored))

    assert outcome == Unknown(reason="the connection broke off", answered=False)


async def test_d03_an_answer_that_cannot_be_read_is_no_reason_to_send_ten_copies() -> None:
    strange = Fault(page='{"ok": true, "result": {"message_id": "x"}}', is_stored=True)

    outcome = await outcome_of(strange)

    assert isinstance(outcome, Unknown)
    assert not outcome.answered


async def test_d04_a_refused_connection_means_that_nothing_was_sent() -> None:
    async with BotApi() as api, channel_to(api.base_url) as channel:
        await api.stop()
        assert await channel.send(CHAT, HELLO) == DOWN

        await api.start()
        assert isinstance(await channel.send(CHAT, HELLO), Sent)
        assert api.texts() == ["hello"]


async def test_d04_an_unknown_host_means_that_nothing_was_sent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def no_such_host(*_: object, **__: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", no_such_host)
    async with channel_to("http://telegram.example") as channel:
        assert await channel.send(CHAT, HELLO) == DOWN


async def test_d04_an_address_that_is_none_means_that_nothing_was_sent() -> None:
    async with channel_to("http://[::1") as channel:
        assert await channel.send(CHAT, HELLO) == DOWN


async def test_d04_a_handshake_that_breaks_off_means_that_nothing_was_sent() -> None:
    async def cut(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.transport.abort()

    async with await asyncio.start_server(cut, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        async with channel_to(f"https://127.0.0.1:{port}") as channel:
            assert await channel.send(CHAT, HELLO) == DOWN


async def test_d04_a_plain_server_where_tls_is_due_means_that_nothing_was_sent() -> None:
    async with (
        BotApi() as api,
        channel_to(api.base_url.replace("http:", "https:")) as channel,
    ):
        assert await channel.send(CHAT, HELLO) == DOWN
        assert api.calls == []


async def test_d04_a_connection_that_does_not_come_about_in_time_means_nothing_was_sent() -> None:
    with socket.create_server(("127.0.0.1", 0), backlog=0) as full:
        address = full.getsockname()
        waiting = [socket.socket() for _ in range(4)]
        try:
            for connection in waiting:
                connection.setblocking(False)
                connection.connect_ex(address)
            url = f"http://127.0.0.1:{address[1]}"
            async with channel_to(url, connect_timeout=0.3) as channel:
                assert await channel.send(CHAT, HELLO) == DOWN
        finally:
            for connection in waiting:
                connection.close()


async def test_a_token_that_is_not_accepted_any_more_stops_the_channel_not_the_message() -> None:
    async with BotApi() as api, channel_to(api.base_url) as channel:
        api.fail("sendMessage", Fault.unauthorized())

        assert await channel.send(CHAT, HELLO) == DOWN
        assert channel.health.state is ChannelState.FAILED


async def test_d10_a_text_for_a_deleted_topic_goes_to_the_group_and_says_so() -> None:
    async with BotApi() as api, channel_to(api.base_url) as channel:
        api.delete_topic(-100200, 43)
        bold = Entity(kind=EntityKind.BOLD, offset=0, length=4)

        outcome = await channel.send(
            Target(address="-100200:43"), RichText(text="call mum", entities=(bold,))
        )

        assert outcome == Sent(external_id=str(api.sent[0]["message_id"]))
        text = api.sent[0]["text"]
        assert "message_thread_id" not in api.sent[0]
        assert "topic 43" in text
        assert text.endswith("call mum")
        assert api.sent[0]["entities"] == [
            {"type": "bold", "offset": text.index("call"), "length": 4}
        ]
        assert len(api.calls_of("sendMessage")) == 2


async def test_an_address_that_is_none_on_telegram_is_refused_without_a_call() -> None:
    async with BotApi() as api, channel_to(api.base_url) as channel:
        outcome = await channel.send(Target(address="local"), HELLO)

        assert isinstance(outcome, Rejected)
        assert api.calls == []


async def test_a_send_carries_its_topic_and_no_link_preview() -> None:
    async with BotApi() as api, channel_to(api.base_url) as channel:
        await channel.send(Target(address="-100200:43"), HELLO)

        params = api.calls_of("sendMessage")[0].params
        assert params["chat_id"] == -100200
        assert params["message_thread_id"] == 43
        assert params["link_preview_options"] == {"is_disabled": True}
        assert "parse_mode" not in params
