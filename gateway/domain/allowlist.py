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

        In a private chat one of both is enough, since they name the same person. In a group the
        group itself is no sender: who writes in its name (an anonymous admin) is nobody that was
        let in. Without a sender (for what we send) the chat alone counts.
        """
        if channel is ChannelName.CONSOLE:
            return True
        listed = self.entries.get(channel, frozenset())
        chat_is_listed = any(_without_topic(address) in listed for address in chat)
        if sender is None:
            return chat_is_listed
        if is_group:
            people = set(sender) - {_without_topic(address) for address in chat}
            return chat_is_listed and not listed.isdisjoint(people)
        return chat_is_listed or not listed.isdisjoint(sender)

    def has_entries(self, channel: ChannelName) -> bool:
        """Whether anybody at all is admitted on the channel."""
        return channel is ChannelName.CONSOLE or bool(self.entries.get(channel))


def _without_topic(address: str) -> str:
    return address.partition(":")[0]
