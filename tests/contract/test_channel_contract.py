"""What the engine may rely on, whichever platform a channel speaks to."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from gateway.channels.base import ChannelState, Target
from gateway.domain.button import reminder_buttons
from gateway.domain.chunking import RichText
from gateway.domain.delivery import NotSent, NotSentReason, Sent
from gateway.domain.message import NewMessage
from gateway.errors import StoreBusyError
from tests.contract.channel_implementations import IMPLEMENTATIONS, Implementation, Stage
from tests.fakes.inbox import Inbox, running

HELLO = RichText.literal("hello")
DOWN = NotSent(reason=NotSentReason.CHANNEL_DOWN)

pytestmark = pytest.mark.parametrize(
    "implementation", IMPLEMENTATIONS, ids=[one.name for one in IMPLEMENTATIONS]
)


@pytest.fixture
async def stage(implementation: Implementation) -> AsyncIterator[Stage]:
    async with implementation.open() as stage:
        yield stage


@pytest.fixture
def inbox() -> Inbox:
    return Inbox()


def state_of(stage: Stage) -> ChannelState:
    return stage.channel.health.state


async def test_a_channel_knows_who_it_is_before_it_runs(stage: Stage) -> None:
    assert stage.channel.account
    assert state_of(stage) is ChannelState.STOPPED


async def test_a_message_arrives_with_where_it_belongs(stage: Stage, inbox: Inbox) -> None:
    async with running(stage.channel, inbox):
        await stage.say("hello there")
        await inbox.until(lambda: bool(inbox.items))

    (message,) = inbox.items
    assert isinstance(message, NewMessage)
    assert message.text == "hello there"
    assert message.chat.channel is stage.channel.name
    assert message.chat.address == message.address == stage.target.address
    assert message.account == stage.channel.account
    assert message.chat_addresses
    assert message.sender_addresses
    assert message.is_addressed
    assert message.sent_at.tzinfo is not None


async def test_messages_arrive_in_order_under_ids_of_their_own(stage: Stage, inbox: Inbox) -> None:
    async with running(stage.channel, inbox):
        for number in range(5):
            await stage.say(f"message {number}")
        await inbox.until(lambda: len(inbox.items) == 5)

    assert inbox.texts == [f"message {number}" for number in range(5)]
    ids = {item.external_id for item in inbox.items if isinstance(item, NewMessage)}
    assert len(ids) == 5


async def test_i04_a_message_that_could_not_be_stored_is_handed_over_again(
    implementation: Implementation, stage: Stage, inbox: Inbox
) -> None:
    if not implementation.hands_over_again:
        pytest.skip(f"{implementation.name} keeps nothing that was not confirmed")
    inbox.fail_next(StoreBusyError("database is locked"))

    async with running(stage.channel, inbox):
        await stage.say("hello")
        await inbox.until(lambda: bool(inbox.items))

    first, second = inbox.tried
    assert first == second
    assert inbox.texts == ["hello"]


async def test_what_is_sent_is_shown_in_order_under_ids_of_their_own(stage: Stage) -> None:
    outcomes = [
        await stage.channel.send(stage.target, RichText.literal(f"text {number}"))
        for number in range(4)
    ]

    ids = {outcome.external_id for outcome in outcomes if isinstance(outcome, Sent)}
    assert len(ids) == 4
    assert stage.shown() == [f"text {number}" for number in range(4)]


async def test_buttons_add_nothing_to_the_text(stage: Stage) -> None:
    outcome = await stage.channel.send(stage.target, HELLO, buttons=reminder_buttons(12))

    assert isinstance(outcome, Sent)
    assert stage.shown() == ["hello"]


async def test_the_new_text_of_an_edited_message_is_the_last_that_is_shown(stage: Stage) -> None:
    before = await stage.channel.send(stage.target, HELLO, buttons=reminder_buttons(12))
    assert isinstance(before, Sent)
    place = Target(address=stage.target.address, edits=before.external_id)

    for _ in range(2):
        assert isinstance(await stage.channel.send(place, RichText.literal("hello: done")), Sent)

    assert stage.shown()[-1] == "hello: done"


@pytest.mark.parametrize("external_id", ["99999999", "of-another-channel:7"])
async def test_a_text_for_a_message_that_is_not_there_is_shown_as_a_new_one(
    stage: Stage, external_id: str
) -> None:
    assert isinstance(await stage.channel.send(stage.target, RichText.literal("before")), Sent)
    place = Target(address=stage.target.address, edits=external_id)

    assert isinstance(await stage.channel.send(place, HELLO), Sent)

    assert stage.shown() == ["before", "hello"]


async def test_d04_a_platform_that_is_away_has_been_sent_nothing(stage: Stage) -> None:
    await stage.break_off()
    assert await stage.channel.send(stage.target, HELLO) == DOWN

    await stage.mend()
    assert isinstance(await stage.channel.send(stage.target, HELLO), Sent)
    assert stage.shown() == ["hello"]


async def test_typing_never_fails(stage: Stage) -> None:
    await stage.channel.show_typing(stage.target)
    await stage.break_off()
    await stage.channel.show_typing(stage.target)

    assert stage.shown() == []


async def test_a_cancelled_channel_stops_at_once_and_says_so(stage: Stage, inbox: Inbox) -> None:
    async with running(stage.channel, inbox) as task:
        await stage.say("hello")
        await inbox.until(lambda: bool(inbox.items))
        assert state_of(stage) is ChannelState.CONNECTED
        assert stage.channel.health.last_ok_at is not None

        task.cancel()
        async with asyncio.timeout(5):
            await asyncio.wait([task])

    assert task.cancelled()
    assert state_of(stage) is ChannelState.STOPPED


async def test_a_channel_that_was_closed_unused_closes_again(stage: Stage) -> None:
    await stage.channel.close()
    await stage.channel.close()


@pytest.mark.parametrize("is_markdown", [True, False])
@pytest.mark.parametrize("blank", ["", " \n\t ", "\u200b"])
async def test_blank_text_gives_nothing_to_send(
    stage: Stage, blank: str, *, is_markdown: bool
) -> None:
    assert stage.channel.cut(blank, is_markdown=is_markdown) == ()


async def test_d11_literal_text_is_shown_as_it_stands(stage: Stage) -> None:
    text = "a < b && c > d, **not bold**, [not](a link), snake_case, \\, List<int>"

    (piece,) = stage.channel.cut(text, is_markdown=False)
    assert piece == RichText(text=text)
    assert isinstance(await stage.channel.send(stage.target, piece), Sent)

    assert stage.shown() == [text]


async def test_d11_markdown_is_shown_without_its_marks(stage: Stage) -> None:
    for piece in stage.channel.cut("**bold** and `code`", is_markdown=True):
        assert isinstance(await stage.channel.send(stage.target, piece), Sent)

    assert stage.shown() == ["bold and code"]


async def test_d14_a_long_text_is_accepted_piece_by_piece_with_nothing_lost(stage: Stage) -> None:
    words = [f"word{number}-👨‍👩‍👧‍👦" for number in range(1500)]

    for piece in stage.channel.cut(" ".join(words), is_markdown=False):
        assert isinstance(await stage.channel.send(stage.target, piece), Sent)

    assert " ".join(stage.shown()).split() == words
