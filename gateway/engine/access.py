"""Who may talk right now: the configured allowlist and those let in by pairing, as one answer."""

from collections.abc import Collection, Iterable

from sqlalchemy import Connection

from gateway.domain.allowlist import Allowlist
from gateway.domain.message import ChannelName, ChatKey
from gateway.store.chats import Paired, chat_addresses


class Access:
    """The one place that is asked, at intake, create, fire and send.

    Read from the store's threads as well; the list is replaced whole, never changed.
    """

    def __init__(self, configured: Allowlist, *, pairing: Collection[ChannelName] = ()) -> None:
        self._configured = configured
        self._current = configured
        self.pairing = frozenset(pairing)

    def set_paired(self, paired: Iterable[Paired]) -> None:
        """Take over who is let in by pairing."""
        entries = {channel: set(known) for channel, known in self._configured.entries.items()}
        for one in paired:
            entries.setdefault(one.channel, set()).add(one.address)
        self._current = Allowlist({channel: frozenset(known) for channel, known in entries.items()})

    def admits(
        self,
        channel: ChannelName,
        *,
        chat: Collection[str],
        sender: Collection[str],
        is_group: bool,
    ) -> bool:
        """Whether a message may come in."""
        return self._current.admits(channel, chat=chat, sender=sender, is_group=is_group)

    def admits_chat(self, connection: Connection, chat: ChatKey) -> bool:
        """Whether the chat may be written to, by any of its addresses."""
        if self._current.admits(chat.channel, chat=(chat.address,), sender=None, is_group=False):
            return True
        known = chat_addresses(connection, chat)
        return self._current.admits(chat.channel, chat=known, sender=None, is_group=False)

    def has_anybody(self, channel: ChannelName) -> bool:
        """Whether anybody at all may talk there."""
        return self._current.has_entries(channel)
