"""Who may talk: closed by default, and for groups both the group and the sender."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from gateway.domain.message import ChannelName


@dataclass(frozen=True, slots=True)
class Allowlist:
    """The addresses that may talk, per channel. A channel without entries admits nobody.

    The console is its operator's own terminal and admits always.
    """

    entries: Mapping[ChannelName, frozenset[str]]

    def admits(
        self,
        channel: ChannelName,
        *,
        chat: Collection[str],
        sender: Collection[str] | None,
        is_group: bool,
    ) -> bool:
        """Whether any address of the chat and of the sender is listed.

        In a private chat one of both is enough, since they name the same person. Without a
        sender (for what we send) the chat alone counts.
        """
        if channel is ChannelName.CONSOLE:
            return True
        listed = self.entries.get(channel, frozenset())
        chat_is_listed = any(_without_topic(address) in listed for address in chat)
        if sender is None:
            return chat_is_listed
        sender_is_listed = any(address in listed for address in sender)
        if is_group:
            return chat_is_listed and sender_is_listed
        return chat_is_listed or sender_is_listed

    def has_entries(self, channel: ChannelName) -> bool:
        """Whether anybody at all is admitted on the channel."""
        return channel is ChannelName.CONSOLE or bool(self.entries.get(channel))


def _without_topic(address: str) -> str:
    return address.partition(":")[0]
