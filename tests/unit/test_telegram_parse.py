"""Telegram's updates as the library decodes them, read as what the engine takes in."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from telegram import Update

from gateway.channels.telegram.client import BotIdentity
from gateway.channels.telegram.parse import parse_update
from gateway.domain.message import (
    Attachment,
    ChannelName,
    ChatKey,
    Edit,
    Inbound,
    MessageKind,
    Move,
    NewMessage,
    Reachability,
)
from tests.fakes import bot_api_updates as updates
from tests.fakes.bot_api_updates import BOT_ID, BOT_USERNAME, Json

BOT = BotIdentity(id=BOT_ID, username=BOT_USERNAME)
NOW = datetime(2026, 12, 1, 9, 0, tzinfo=UTC)


def parse(update: Json) -> Inbound | None:
    decoded = Update.de_json({"update_id": 1, **update}, None)
    return parse_update(decoded, BOT, received_at=NOW)


def parse_message(update: Json) -> NewMessage:
    found = parse(update)
    assert isinstance(found, NewMessage)
    return found


def in_group(words: str, **parts: Any) -> Json:
    return updates.text(words, chat=updates.group(), **parts)


def test_a_private_message_names_chat_sender_and_platform_time() -> None:
    found = parse_message(
        updates.text(
            "hello",
            message_id=55,
            date=1_800_000_000,
            sender=updates.person(7, "Ann", last_name="Lee"),
        )
    )

    assert found == NewMessage(
        chat=ChatKey(ChannelName.TELEGRAM, "7"),
        account=str(BOT_ID),
        address="7",
        external_id="55",
        sender_id="7",
        sender_name="Ann Lee",
        chat_addresses=("7",),
        sender_addresses=("7",),
        text="hello",
        sent_at=datetime.fromtimestamp(1_800_000_000, UTC),
    )


def test_the_sender_of_a_group_message_is_not_its_chat() -> None:
    found = parse_message(in_group("hello", sender=updates.person(8, "Bob")))

    assert found.is_group
    assert str(found.chat) == "telegram:-4001"
    assert (found.sender_id, found.sender_name) == ("8", "Bob")
    assert found.chat_addresses == ("-4001",)
    assert found.sender_addresses == ("8",)


BOT_MESSAGE = updates.message(text="earlier", chat=updates.group(), sender=updates.bot())
BOBS_MESSAGE = updates.message(
    text="earlier", chat=updates.group(), sender=updates.person(8, "Bob")
)


@pytest.mark.parametrize(
    ("update", "is_addressed"),
    [
        pytest.param(in_group("hello all"), False, id="plain"),
        pytest.param(in_group("@MyBot hi", entities=[updates.mention("@MyBot hi")]), True, id="at"),
        pytest.param(
            in_group("@mybot_two hi", entities=[updates.mention("@mybot_two hi", "@mybot_two")]),
            False,
            id="longer-name",
        ),
        pytest.param(updates.reply("yes", BOT_MESSAGE, chat=updates.group()), True, id="reply"),
        pytest.param(
            updates.reply("yes", BOBS_MESSAGE, chat=updates.group()), False, id="reply-to-bob"
        ),
        pytest.param(in_group("/help@otherbot"), False, id="other-bots-command"),
        pytest.param(
            updates.reply("/help@otherbot", BOT_MESSAGE, chat=updates.group()),
            False,
            id="other-bots-command-as-reply",
        ),
        pytest.param(
            in_group("@MYBOT hi", entities=[updates.mention("@MYBOT hi", "@MYBOT")]),
            True,
            id="capitals",
        ),
        pytest.param(in_group("/help"), True, id="command"),
        pytest.param(in_group("/help@myBOT"), True, id="own-command"),
        pytest.param(
            in_group("type /help", entities=[updates.entity("bot_command", "/help", "type /help")]),
            False,
            id="command-named-in-passing",
        ),
        pytest.param(
            in_group(
                "😀👨‍👩‍👧 hey @MyBot", entities=[updates.mention("😀👨‍👩‍👧 hey @MyBot")]
            ),
            True,
            id="after-emoji",
        ),
        pytest.param(
            in_group("Bot, hi", entities=[updates.entity("text_mention", "Bot", "Bot, hi",
                                                         user=updates.bot())]),
            True,
            id="mention-without-name",
        ),
        pytest.param(
            in_group("Bob, hi", entities=[updates.entity("text_mention", "Bob", "Bob, hi",
                                                         user=updates.person(8, "Bob"))]),
            False,
            id="mention-of-bob",
        ),
        pytest.param(
            updates.media(
                "photo",
                chat=updates.group(),
                caption="@MyBot look",
                caption_entities=[updates.mention("@MyBot look")],
            ),
            True,
            id="caption",
        ),
        pytest.param(updates.text("hello"), True, id="private"),
    ],
)  # fmt: skip
def test_i22_group_talk_counts_only_when_it_is_meant_for_the_bot(
    update: Json, *, is_addressed: bool
) -> None:
    assert parse_message(update).is_addressed is is_addressed


@pytest.mark.parametrize(
    ("words", "entities", "text"),
    [
        ("@MyBot: what is up", [updates.mention("@MyBot: what is up")], "what is up"),
        ("@MyBot /reminders", [updates.mention("@MyBot /reminders")], "/reminders"),
        ("@MyBot", [updates.mention("@MyBot")], "@MyBot"),
        ("hi @MyBot", [updates.mention("hi @MyBot")], "hi @MyBot"),
        ("/cancel@mybot 7", [updates.command("/cancel@mybot 7")], "/cancel 7"),
        ("/cancel@other 7", [updates.command("/cancel@other 7")], "/cancel@other 7"),
    ],
)
def test_the_bots_name_at_the_start_is_no_part_of_the_text(
    words: str, entities: list[Json], text: str
) -> None:
    assert parse_message(in_group(words, entities=entities)).text == text


def test_a_topic_is_a_chat_of_its_own_and_its_group_is_the_address_to_allow() -> None:
    found = parse_message(
        updates.text("hi", chat=updates.supergroup(-100200, is_forum=True), topic=43)
    )

    assert str(found.chat) == "telegram:-100200:43"
    assert found.address == "-100200:43"
    assert found.chat_addresses == ("-100200",)


def test_a_reply_outside_a_forum_opens_no_topic() -> None:
    found = parse_message(updates.text("hi", chat=updates.supergroup(), message_thread_id=12))

    assert str(found.chat) == "telegram:-100200"


def test_the_head_of_a_topic_is_neither_quoted_nor_an_address_to_the_bot() -> None:
    forum = updates.supergroup(-100200, is_forum=True)
    head = updates.message(
        chat=forum,
        sender=updates.bot(),
        message_id=43,
        topic=43,
        forum_topic_created={"name": "Trips", "icon_color": 7322096},
    )

    found = parse_message(updates.reply("anyone?", head, chat=forum, topic=43))

    assert not found.is_addressed
    assert found.quoted is None
    assert found.quoted_external_id is None


def test_a_quoted_message_becomes_one_line() -> None:
    earlier = updates.message(text="first\n\n  second\tthird", message_id=9)

    found = parse_message(updates.reply("what is this?", earlier))

    assert found.quoted == "first second third"
    assert found.quoted_external_id == "9"


@pytest.mark.parametrize("topic", [None, 43])
def test_a_reply_names_the_message_that_it_answers_by_its_id(topic: int | None) -> None:
    forum = updates.supergroup(-100200, is_forum=True)
    ours = updates.message(
        text="call mum", chat=forum, sender=updates.bot(), message_id=5001, topic=topic
    )

    found = parse_message(updates.reply("done", ours))

    assert found.quoted_external_id == "5001"
    assert found.quoted == "call mum"
    assert found.is_addressed


def test_quoted_media_are_named() -> None:
    voice = updates.message(**updates.MEDIA["voice"])

    assert parse_message(updates.reply("and this?", voice)).quoted == "[voice]"


def test_only_the_part_that_the_person_marked_is_quoted() -> None:
    earlier = updates.message(text="a long story with an end")
    marked = {"text": "an end", "position": 18}

    found = parse_message(updates.reply("really?", earlier, quote=marked))

    assert found.quoted == "an end"


@pytest.mark.parametrize(
    ("kind", "attachment"),
    [
        *(
            (kind, Attachment(kind=kind, file_id="F1", size=5120))
            for kind in ("voice", "photo", "sticker", "document", "video", "video_note", "audio")
        ),
        ("animation", Attachment(kind="animation", file_id="F1", size=5120)),
        *(
            (kind, Attachment(kind=kind, file_id=""))
            for kind in ("location", "venue", "contact", "dice")
        ),
    ],
)
def test_i18_media_without_words_arrive_as_one_attachment(
    kind: str, attachment: Attachment
) -> None:
    found = parse_message(updates.media(kind))

    assert found.text == ""
    assert found.attachments == (attachment,)


def test_i18_a_caption_is_the_text() -> None:
    found = parse_message(updates.media("photo", caption="what is this?"))

    assert found.text == "what is this?"
    assert [attachment.kind for attachment in found.attachments] == ["photo"]


@pytest.mark.parametrize(
    "content",
    [
        {"pinned_message": updates.message(text="rules")},
        {"new_chat_members": [updates.person(9, "Eve")]},
        {"left_chat_member": updates.person(9, "Eve")},
        {"new_chat_title": "New name"},
        {"group_chat_created": True},
        {"forum_topic_created": {"name": "Trips", "icon_color": 7322096}},
        {},
    ],
)
def test_i15_service_messages_mean_nothing(content: Json) -> None:
    assert parse(updates.message_update(chat=updates.group(), **content)) is None


@pytest.mark.parametrize(
    "update",
    [
        updates.from_bot("hello"),
        updates.from_bot("@MyBot hello", chat=updates.group()),
        {"edited_message": updates.message(text="hi", sender=updates.bot(999, "other_bot"))},
    ],
)
def test_i23_other_bots_are_not_listened_to(update: Json) -> None:
    assert parse(update) is None


def test_i17_a_channel_post_means_nothing() -> None:
    assert parse(updates.channel_post()) is None


def test_i17_a_post_forwarded_from_the_linked_channel_means_nothing() -> None:
    forwarded = updates.text(
        "news",
        chat=updates.supergroup(),
        sender=updates.person(777000, "Telegram"),
        sender_chat={"id": -100900, "type": "channel", "title": "News"},
        is_automatic_forward=True,
    )

    assert parse(forwarded) is None


def test_i17_an_anonymous_admin_is_known_by_the_group_that_he_writes_as() -> None:
    found = parse_message(updates.anonymous_admin("hello", updates.supergroup()))

    assert found.sender_id == "-100200"
    assert found.sender_addresses == ("-100200",)
    assert found.sender_name == "Club"


def test_i17_an_edit_names_the_message_that_it_changes() -> None:
    found = parse(updates.edited("better words", message_id=55))

    assert found == Edit(
        chat=ChatKey(ChannelName.TELEGRAM, "7"),
        account=str(BOT_ID),
        address="7",
        external_id="55",
        chat_addresses=("7",),
        sender_addresses=("7",),
        is_group=False,
        text="better words",
    )


def test_a_live_location_on_the_move_is_no_edit() -> None:
    moved = {"edited_message": updates.message(**updates.MEDIA["location"])}

    assert parse(moved) is None


def test_d08_both_service_messages_of_a_move_tell_of_the_same_move() -> None:
    moves = [parse(update) for update in updates.group_moved(-4001, -1009001)]

    move = Move(channel=ChannelName.TELEGRAM, old_address="-4001", new_address="-1009001")
    assert moves == [move, move]


def test_i20_only_a_text_near_the_limit_waits_for_the_rest_of_it() -> None:
    long = parse_message(updates.text("x" * 4000))
    emoji = parse_message(updates.text("😀" * 2000))
    short = parse_message(updates.text("x" * 3999))

    assert (long.hold, long.is_part) == (timedelta(seconds=1.5), True)
    assert (emoji.hold, emoji.is_part) == (timedelta(seconds=1.5), True)
    assert (short.hold, short.is_part) == (None, False)


def test_the_parts_of_an_album_wait_for_each_other() -> None:
    parts = [parse_message(part) for part in updates.album("album-1", ["look", None])]

    assert [part.hold for part in parts] == [timedelta(seconds=0.6)] * 2
    assert [part.text for part in parts] == ["look", ""]
    assert not any(part.is_part for part in parts)


def test_a_button_press_is_a_message_of_its_own_kind_at_the_time_it_came_in() -> None:
    reminder = updates.message(
        text="Reminder",
        chat=updates.supergroup(-100200, is_forum=True),
        sender=updates.bot(),
        message_id=99,
        date=1_700_000_000,
        topic=43,
    )

    found = parse_message(updates.button("snooze:7", callback_id="cb-9", under=reminder))

    assert found.kind is MessageKind.BUTTON
    assert found.external_id == "cb-9"
    assert found.text == "snooze:7"
    assert found.sender_id == "7"
    assert str(found.chat) == "telegram:-100200:43"
    assert found.quoted_external_id == "99"
    assert found.sent_at == NOW
    assert found.is_addressed


def test_a_button_under_a_message_that_is_long_gone_still_counts() -> None:
    gone = {"message_id": 99, "chat": updates.private(), "date": 0}

    found = parse_message(updates.button("done:7", under=gone))

    assert (found.text, found.address, found.quoted_external_id) == ("done:7", "7", "99")


def test_a_press_in_a_group_is_of_whoever_pressed_there() -> None:
    reminder = updates.message(text="Reminder", chat=updates.group(), sender=updates.bot())

    found = parse_message(updates.button("done:7", under=reminder, sender=updates.person(9)))

    assert str(found.chat) == "telegram:-4001"
    assert found.is_group
    assert found.chat_addresses == ("-4001",)
    assert (found.sender_id, found.sender_addresses) == ("9", ("9",))


def test_a_press_in_a_topic_on_a_message_that_is_long_gone_counts_in_the_group() -> None:
    """Telegram tells chat and id of such a message and nothing on its topic."""
    gone = {"message_id": 99, "chat": updates.supergroup(-100200, is_forum=True), "date": 0}

    found = parse_message(updates.button("done:7", under=gone))

    assert (str(found.chat), found.quoted_external_id) == ("telegram:-100200", "99")


def test_i17_a_press_in_a_channel_means_nothing() -> None:
    post = updates.channel_post()["channel_post"]

    assert parse(updates.button("done:7", under=post)) is None


@pytest.mark.parametrize("missing", ["message", "data"])
def test_a_button_press_without_a_chat_or_data_means_nothing(missing: str) -> None:
    press = updates.button()
    del press["callback_query"][missing]

    assert parse(press) is None


@pytest.mark.parametrize(
    ("status", "chat", "is_reachable"),
    [
        ("kicked", updates.private(), False),
        ("member", updates.private(), True),
        ("kicked", updates.group(), False),
        ("left", updates.group(), False),
        ("restricted", updates.supergroup(), False),
        ("administrator", updates.supergroup(), True),
    ],
)
def test_membership_tells_whether_the_bot_may_write(
    status: str, chat: Json, *, is_reachable: bool
) -> None:
    found = parse(updates.membership(status, chat=chat))

    key = ChatKey(ChannelName.TELEGRAM, str(chat["id"]))
    assert found == Reachability(chat=key, is_reachable=is_reachable)


def test_membership_in_a_channel_means_nothing() -> None:
    chat = {"id": -100900, "type": "channel", "title": "News"}

    assert parse(updates.membership("administrator", chat=chat)) is None


def test_text_that_cannot_be_stored_is_mended_and_the_rest_kept_as_it_was() -> None:
    found = parse_message(updates.text("a\0b \ud800c \u202edesrever"))

    assert found.text == "ab \ufffdc \u202edesrever"


@pytest.mark.parametrize(
    "entity",
    [
        {"type": "mention", "offset": 90, "length": 5},
        {"type": "mention", "offset": -3, "length": 2},
        {"type": "bot_command", "offset": 0, "length": 0},
        {"type": "text_mention", "offset": 0, "length": 2},
        {"type": "something_new", "offset": 0, "length": 2},
    ],
)
def test_odd_entities_do_no_harm(entity: Json) -> None:
    found = parse_message(in_group("hi there", entities=[entity]))

    assert found.text == "hi there"
    assert not found.is_addressed


def test_a_bot_without_a_name_is_not_mentioned_by_an_empty_one() -> None:
    update = Update.de_json(
        {"update_id": 1, **in_group("@", entities=[{"type": "mention", "offset": 0, "length": 1}])},
        None,
    )

    found = parse_update(update, BotIdentity(id=BOT_ID, username=""), received_at=NOW)

    assert isinstance(found, NewMessage)
    assert not found.is_addressed
