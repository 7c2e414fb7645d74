"""Updates as the Bot API sends them; `update_id` is added by the server that queues them."""

import itertools
import time
from collections.abc import Sequence
from typing import Any

Json = dict[str, Any]

BOT_ID = 123456
BOT_USERNAME = "MyBot"
TOKEN = f"{BOT_ID}:CANARY-token-of-the-tests-only"

_message_ids = itertools.count(1000)
_callback_ids = itertools.count(1)


def person(user_id: int = 7, name: str = "Ann", **more: Any) -> Json:
    return {"id": user_id, "is_bot": False, "first_name": name, **more}


def bot(user_id: int = BOT_ID, username: str = BOT_USERNAME) -> Json:
    return {"id": user_id, "is_bot": True, "first_name": "Bot", "username": username}


def private(chat_id: int = 7) -> Json:
    return {"id": chat_id, "type": "private", "first_name": "Ann"}


def group(chat_id: int = -4001) -> Json:
    return {"id": chat_id, "type": "group", "title": "Family"}


def supergroup(chat_id: int = -100200, *, is_forum: bool = False) -> Json:
    chat = {"id": chat_id, "type": "supergroup", "title": "Club"}
    return {**chat, "is_forum": True} if is_forum else chat


def units(text: str) -> int:
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def entity(kind: str, covered: str, text: str, **more: Any) -> Json:
    """An entity over the first occurrence of `covered` in `text`."""
    before = text[: text.index(covered)]
    return {"type": kind, "offset": units(before), "length": units(covered), **more}


def mention(text: str, name: str = f"@{BOT_USERNAME}") -> Json:
    return entity("mention", name, text)


def command(text: str) -> Json:
    """An entity over the command that `text` starts with."""
    return entity("bot_command", text.split()[0], text)


def message(
    *,
    chat: Json | None = None,
    sender: Json | None = None,
    message_id: int | None = None,
    date: int | None = None,
    topic: int | None = None,
    **content: Any,
) -> Json:
    """A message with any content: `text="hi"`, `photo=[...]`, `migrate_to_chat_id=...`."""
    body: Json = {
        "message_id": next(_message_ids) if message_id is None else message_id,
        "date": int(time.time()) if date is None else date,
        "chat": chat or private(),
        "from": sender or person(),
        **content,
    }
    if topic is not None:
        body |= {"message_thread_id": topic, "is_topic_message": True}
    return body


def message_update(**parts: Any) -> Json:
    return {"message": message(**parts)}


def text(words: str, **parts: Any) -> Json:
    """A text message; a leading command gets its entity as on the real server."""
    if words.startswith("/") and "entities" not in parts:
        parts["entities"] = [command(words)]
    return message_update(text=words, **parts)


def edited(words: str, **parts: Any) -> Json:
    return {"edited_message": message(text=words, edit_date=int(time.time()), **parts)}


def channel_post(words: str = "news") -> Json:
    chat = {"id": -100900, "type": "channel", "title": "News"}
    post = message(text=words, chat=chat, sender_chat=chat)
    del post["from"]
    return {"channel_post": post}


def from_bot(words: str, **parts: Any) -> Json:
    return text(words, sender=bot(999, "other_bot"), **parts)


def anonymous_admin(words: str, chat: Json) -> Json:
    admin = bot(1087968824, "GroupAnonymousBot")
    return text(words, chat=chat, sender=admin, sender_chat=chat)


def reply(words: str, to: Json, **parts: Any) -> Json:
    """A text that answers the message `to`, where that stands."""
    topic = to["message_thread_id"] if to.get("is_topic_message") else None
    place: Json = {"chat": to["chat"], "topic": topic, "sender": _writer(to["chat"])}
    return text(words, reply_to_message=to, **(place | parts))


def _writer(chat: Json) -> Json:
    """Who writes or presses unless it is said: in a private chat, the person it is with."""
    return person(chat["id"]) if chat["type"] == "private" else person()


def _file(**more: Any) -> Json:
    return {"file_id": "F1", "file_unique_id": "U1", "file_size": 5120, **more}


MEDIA: dict[str, Json] = {
    "voice": {"voice": _file(duration=3, mime_type="audio/ogg")},
    "photo": {
        "photo": [
            {**_file(width=90, height=90), "file_id": "small", "file_size": 900},
            _file(width=800, height=800),
        ]
    },
    "sticker": {
        "sticker": _file(
            width=512, height=512, type="regular", is_animated=False, is_video=False, emoji="👍"
        )
    },
    "document": {"document": _file(file_name="report.pdf", mime_type="application/pdf")},
    "video": {"video": _file(width=10, height=10, duration=3)},
    "video_note": {"video_note": _file(length=240, duration=3)},
    "audio": {"audio": _file(duration=3)},
    "animation": {
        "animation": _file(width=10, height=10, duration=3),
        "document": _file(file_name="wave.mp4"),
    },
    "location": {"location": {"latitude": 52.5, "longitude": 13.4}},
    "venue": {
        "location": {"latitude": 52.5, "longitude": 13.4},
        "venue": {
            "location": {"latitude": 52.5, "longitude": 13.4},
            "title": "Cafe",
            "address": "Street 1",
        },
    },
    "contact": {"contact": {"phone_number": "+15550001111", "first_name": "Bob"}},
    "dice": {"dice": {"emoji": "🎲", "value": 4}},
}


def media(kind: str, **parts: Any) -> Json:
    return message_update(**MEDIA[kind], **parts)


def album(group_id: str, captions: Sequence[str | None], **parts: Any) -> list[Json]:
    """The parts of a media group, each its own update."""
    found = []
    for caption in captions:
        extra = {} if caption is None else {"caption": caption}
        found.append(media("photo", media_group_id=group_id, **extra, **parts))
    return found


def button(
    data: str = "snooze:7",
    *,
    callback_id: str = "cb-1",
    sender: Json | None = None,
    under: Json | None = None,
) -> Json:
    """A press on a button under one of the bot's messages."""
    return {
        "callback_query": {
            "id": callback_id,
            "from": sender or person(),
            "chat_instance": "1",
            "data": data,
            "message": under or message(text="Reminder", sender=bot()),
        }
    }


def buttons_of(message: Json) -> list[list[Json]]:
    """The rows of buttons under a message that the bot sent."""
    rows: list[list[Json]] = message.get("reply_markup", {}).get("inline_keyboard", [])
    return rows


def labels_of(message: Json) -> list[list[str]]:
    return [[str(one["text"]) for one in row] for row in buttons_of(message)]


def press(message: Json, label: str, *, sender: Json | None = None) -> Json:
    """A press on a button of a message that the bot sent; raises LookupError without that button.

    A message that was looked at before it was edited still has its old buttons, as on a second
    device that has not heard of the edit.
    """
    found = [one for row in buttons_of(message) for one in row if one["text"] == label]
    if not found:
        raise LookupError(f"no button {label!r} in {labels_of(message)}")
    return button(
        found[0]["callback_data"],
        callback_id=f"press-{next(_callback_ids)}",
        sender=sender or _writer(message["chat"]),
        under=message,
    )


def membership(status: str, *, chat: Json | None = None, before: str = "member") -> Json:
    """The bot was blocked (`kicked` in a private chat), removed, or let in again."""

    def member(state: str) -> Json:
        extra: Json = {"until_date": 0} if state == "kicked" else {}
        if state == "restricted":
            extra = {"until_date": 0, "is_member": True} | dict.fromkeys(_RIGHTS, False)
        if state == "administrator":
            extra = {"can_be_edited": False, "is_anonymous": False} | dict.fromkeys(_POWERS, True)
        return {"status": state, "user": bot(), **extra}

    return {
        "my_chat_member": {
            "chat": chat or private(),
            "from": person(),
            "date": int(time.time()),
            "old_chat_member": member(before),
            "new_chat_member": member(status),
        }
    }


_RIGHTS = (
    *("can_send_messages", "can_send_audios", "can_send_documents", "can_send_photos"),
    *("can_send_videos", "can_send_video_notes", "can_send_voice_notes", "can_send_polls"),
    *("can_send_other_messages", "can_add_web_page_previews", "can_change_info"),
    *("can_invite_users", "can_pin_messages", "can_manage_topics", "can_edit_tag"),
    "can_react_to_messages",
)
_POWERS = (
    *("can_manage_chat", "can_delete_messages", "can_manage_video_chats", "can_post_stories"),
    *("can_restrict_members", "can_promote_members", "can_change_info", "can_invite_users"),
    *("can_edit_stories", "can_delete_stories"),
)


def group_moved(old_id: int, new_id: int) -> list[Json]:
    """The two service messages of a group that became a supergroup."""
    return [
        message_update(chat=group(old_id), migrate_to_chat_id=new_id),
        message_update(chat=supergroup(new_id), migrate_from_chat_id=old_id),
    ]
