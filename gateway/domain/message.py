"""Who wrote what where: channels, chats, senders and the messages that came in."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import NewType

MessageId = NewType("MessageId", int)


class ChannelName(StrEnum):
    """The messaging platforms."""

    TELEGRAM = "telegram"
    WHATSAPP = "whatsapp"
    CONSOLE = "console"


@dataclass(frozen=True, slots=True)
class ChatKey:
    """One conversation on one channel: the unit of identity, order and memory.

    Written `telegram:123`, `telegram:-100200:43` (a topic), `console:local`.
    """

    channel: ChannelName
    address: str

    def __str__(self) -> str:
        return f"{self.channel}:{self.address}"

    @classmethod
    def parse(cls, text: str) -> "ChatKey":
        """Read the written form; raises ValueError on any other shape."""
        channel, separator, address = text.partition(":")
        if not separator or not address or address != address.strip():
            raise ValueError(f"not a chat key: {text!r}")
        return cls(ChannelName(channel), address)


class MessageKind(StrEnum):
    """What the person did; part of a message's identity."""

    MESSAGE = "message"
    BUTTON = "button"


@dataclass(frozen=True, slots=True, kw_only=True)
class Attachment:
    """Something that came with a message; `file_id` is the channel's handle to fetch it."""

    kind: str
    file_id: str
    size: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NewMessage:
    """One inbound message as its channel parsed it, not yet stored.

    `chat_addresses` and `sender_addresses` are every id under which the channel knows the chat
    and the sender. `account` is the bot's own identity. `sent_at` is the platform's time.
    `hold` asks the router to wait for more parts of the same message. `is_part` says that the
    client probably cut a longer text after this message. `is_addressed` is false for group talk
    that is not meant for the bot. `unsupported` names media that no host can take yet.
    """

    chat: ChatKey
    account: str
    address: str
    external_id: str
    kind: MessageKind = MessageKind.MESSAGE
    sender_id: str
    sender_name: str
    chat_addresses: tuple[str, ...]
    sender_addresses: tuple[str, ...]
    is_group: bool = False
    is_addressed: bool = True
    text: str
    quoted: str | None = None
    quoted_external_id: str | None = None
    attachments: tuple[Attachment, ...] = ()
    sent_at: datetime
    hold: timedelta | None = None
    is_part: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """A stored inbound message; it changes only by an edit before its first run."""

    id: MessageId
    chat: ChatKey
    external_id: str
    sender_id: str
    sender_name: str
    text: str
    quoted: str | None
    attachments: tuple[Attachment, ...]
    sent_at: datetime
    is_part: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """A person changed a message that they sent before."""

    chat: ChatKey
    account: str
    address: str
    external_id: str
    chat_addresses: tuple[str, ...]
    sender_addresses: tuple[str, ...]
    is_group: bool
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """The platform gave a chat a new address; both name the same chat from now on."""

    channel: ChannelName
    old_address: str
    new_address: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Reachability:
    """The platform says whether the bot may write to this chat (blocked, kicked, let in again)."""

    chat: ChatKey
    is_reachable: bool


Inbound = NewMessage | Edit | Move | Reachability
