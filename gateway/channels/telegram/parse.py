"""Telegram's updates, read as what the engine takes in."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from telegram import (
    CallbackQuery,
    Chat,
    ChatMember,
    ChatMemberRestricted,
    ChatMemberUpdated,
    Message,
    MessageEntity,
    Update,
)
from telegram.constants import ChatType

from gateway.channels.telegram.client import BotIdentity
from gateway.channels.telegram.place import Place
from gateway.domain.chunking import sanitize, utf16_len
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

ALBUM_HOLD: Final = timedelta(seconds=0.6)
LONG_TEXT_HOLD: Final = timedelta(seconds=1.5)
# Clients cut a paste at 4096 UTF-16 units, or a little before at a line end, without any mark.
LONG_TEXT_UNITS: Final = 4000

# In this order: an animation is also shown as a document.
_FILES: Final = ("voice", "audio", "video_note", "video", "animation", "document", "sticker")
# In this order: a venue also has a location.
_FILELESS: Final = (
    *("venue", "location", "contact", "poll", "dice", "game"),
    *("story", "checklist", "paid_media", "invoice"),
)
_ABSENT: Final = frozenset({ChatMember.LEFT, ChatMember.BANNED})


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sender:
    id: str
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Mark:
    """An entity with the text that it covers."""

    entity: MessageEntity
    text: str


def parse_update(update: Update, bot: BotIdentity, *, received_at: datetime) -> Inbound | None:
    """Return what an update means to the engine, or None if it means nothing.

    `received_at` stands in where Telegram gives no time.
    """
    if update.message:
        return _move(update.message) or _message(update.message, bot)
    if update.edited_message:
        return _edit(update.edited_message, bot)
    if update.callback_query:
        return _button(update.callback_query, bot, received_at)
    if update.my_chat_member:
        return _reachability(update.my_chat_member)
    return None


def _move(message: Message) -> Move | None:
    """Both the old and the new group carry a service message; either is enough."""
    here = message.chat.id
    if message.migrate_to_chat_id:
        old, new = here, message.migrate_to_chat_id
    elif message.migrate_from_chat_id:
        old, new = message.migrate_from_chat_id, here
    else:
        return None
    return Move(channel=ChannelName.TELEGRAM, old_address=str(old), new_address=str(new))


def _message(message: Message, bot: BotIdentity) -> NewMessage | None:
    sender = _sender(message)
    attachments = tuple(_attachments(message))
    text = _text(message, bot)
    if sender is None or not (text or attachments):
        return None
    place = _place(message)
    quoted = _replied_to(message)
    is_part = utf16_len(message.text or "") >= LONG_TEXT_UNITS
    return NewMessage(
        chat=_chat_key(place),
        account=str(bot.id),
        address=str(place),
        external_id=str(message.message_id),
        sender_id=sender.id,
        sender_name=sender.name,
        chat_addresses=(str(message.chat.id),),
        sender_addresses=(sender.id,),
        is_group=_is_group(message.chat),
        is_addressed=not _is_group(message.chat) or _is_addressed(message, bot),
        text=text,
        quoted=_quote(message, quoted),
        quoted_external_id=str(quoted.message_id) if quoted else None,
        attachments=attachments,
        sent_at=message.date,
        hold=LONG_TEXT_HOLD if is_part else ALBUM_HOLD if message.media_group_id else None,
        is_part=is_part,
    )


def _edit(message: Message, bot: BotIdentity) -> Edit | None:
    sender = _sender(message)
    text = _text(message, bot)
    # A live location is "edited" at each step and has no text.
    if sender is None or not text:
        return None
    place = _place(message)
    return Edit(
        chat=_chat_key(place),
        account=str(bot.id),
        address=str(place),
        external_id=str(message.message_id),
        chat_addresses=(str(message.chat.id),),
        sender_addresses=(sender.id,),
        is_group=_is_group(message.chat),
        text=text,
    )


def _button(query: CallbackQuery, bot: BotIdentity, received_at: datetime) -> NewMessage | None:
    """A press carries no time of its own, and the message under it may be long gone."""
    if query.message is None or not query.data or query.from_user.is_bot:
        return None
    chat = query.message.chat
    if chat.type == ChatType.CHANNEL:
        return None
    place = _place(query.message) if isinstance(query.message, Message) else Place(chat_id=chat.id)
    return NewMessage(
        chat=_chat_key(place),
        account=str(bot.id),
        address=str(place),
        external_id=query.id,
        kind=MessageKind.BUTTON,
        sender_id=str(query.from_user.id),
        sender_name=sanitize(query.from_user.full_name),
        chat_addresses=(str(chat.id),),
        sender_addresses=(str(query.from_user.id),),
        is_group=_is_group(chat),
        text=sanitize(query.data),
        quoted_external_id=str(query.message.message_id),
        sent_at=received_at,
    )


def _reachability(change: ChatMemberUpdated) -> Reachability | None:
    if change.chat.type == ChatType.CHANNEL:
        return None
    member = change.new_chat_member
    is_muted = isinstance(member, ChatMemberRestricted) and not (
        member.is_member and member.can_send_messages
    )
    return Reachability(
        chat=_chat_key(Place(chat_id=change.chat.id)),
        is_reachable=member.status not in _ABSENT and not is_muted,
    )


def _chat_key(place: Place) -> ChatKey:
    return ChatKey(ChannelName.TELEGRAM, str(place))


def _place(message: Message) -> Place:
    # Replies outside forums carry a thread id too; it is no topic and cannot be written to.
    thread_id = message.message_thread_id if message.is_topic_message else None
    return Place(chat_id=message.chat.id, thread_id=thread_id)


def _is_group(chat: Chat) -> bool:
    return chat.type in (ChatType.GROUP, ChatType.SUPERGROUP)


def _sender(message: Message) -> _Sender | None:
    """Who wrote, or None for whom the bot does not listen to: other bots and channels."""
    if message.chat.type == ChatType.CHANNEL or message.is_automatic_forward:
        return None
    if message.sender_chat:
        # An anonymous admin or a channel; `from` then names one of Telegram's own bots.
        chat = message.sender_chat
        return _Sender(id=str(chat.id), name=sanitize(chat.title or chat.username or ""))
    person = message.from_user
    if person is None or person.is_bot:
        return None
    return _Sender(id=str(person.id), name=sanitize(person.full_name))


def _marks(message: Message) -> Iterator[_Mark]:
    """The entities of text or caption, by UTF-16 offsets, in Telegram's order."""
    units = _raw_text(message).encode("utf-16-le", "surrogatepass")
    entities: Sequence[MessageEntity] = (
        message.entities if message.text else message.caption_entities
    )
    for entity in entities:
        covered = units[2 * entity.offset : 2 * (entity.offset + entity.length)]
        yield _Mark(entity=entity, text=covered.decode("utf-16-le", "replace"))


def _raw_text(message: Message) -> str:
    return message.text or message.caption or ""


def _text(message: Message, bot: BotIdentity) -> str:
    """What the person wrote, less the bot's name at its start: `@bot hi`, `/help@bot`."""
    text = _raw_text(message)
    first = next(_marks(message), None)
    if first is not None and first.entity.offset == 0:
        rest = text[len(first.text) :]
        if _is_mention(first, bot):
            text = rest.lstrip(" \t\n,:") or text
        elif first.entity.type == MessageEntity.BOT_COMMAND:
            command, _, addressee = first.text.partition("@")
            text = command + rest if _is_name(addressee, bot) else text
    return sanitize(text)


def _is_addressed(message: Message, bot: BotIdentity) -> bool:
    """Whether group talk is meant for the bot: a mention, a command, or a reply to it."""
    marks = tuple(_marks(message))
    if any(_is_mention(mark, bot) for mark in marks):
        return True
    commands = [m for m in marks if m.entity.type == MessageEntity.BOT_COMMAND and m.text]
    if any(_is_name(mark.text.partition("@")[2], bot) for mark in commands):
        return True
    if commands and commands[0].entity.offset == 0:
        return "@" not in commands[0].text
    replied_to = _replied_to(message)
    return bool(replied_to and replied_to.from_user and replied_to.from_user.id == bot.id)


def _is_mention(mark: _Mark, bot: BotIdentity) -> bool:
    match mark.entity.type:
        case MessageEntity.MENTION:
            return _is_name(mark.text.removeprefix("@"), bot)
        case MessageEntity.TEXT_MENTION:
            return mark.entity.user is not None and mark.entity.user.id == bot.id
        case _:
            return False


def _is_name(name: str, bot: BotIdentity) -> bool:
    return bool(name) and name.lower() == bot.username.lower()


def _replied_to(message: Message) -> Message | None:
    """The message that the person answered; not the head of a topic, which every one refers to."""
    target = message.reply_to_message
    if target is None or target.forum_topic_created:
        return None
    if message.is_topic_message and target.message_id == message.message_thread_id:
        return None
    return target


def _quote(message: Message, target: Message | None) -> str | None:
    """One line on what is answered: the marked part, else the text, else the kind of media."""
    if message.quote:
        quoted = message.quote.text
    elif target:
        kind = next(_attachments(target), None)
        quoted = _raw_text(target) or (f"[{kind.kind}]" if kind else "")
    else:
        return None
    return " ".join(sanitize(quoted).split()) or None


def _attachments(message: Message) -> Iterator[Attachment]:
    """At most one; photos come in sizes, of which the last is the largest."""
    if message.photo:
        largest = message.photo[-1]
        yield Attachment(kind="photo", file_id=largest.file_id, size=largest.file_size)
        return
    for kind in _FILES:
        file = getattr(message, kind)
        if file:
            yield Attachment(kind=kind, file_id=file.file_id, size=file.file_size)
            return
    for kind in _FILELESS:
        if getattr(message, kind):
            yield Attachment(kind=kind, file_id="")
            return
