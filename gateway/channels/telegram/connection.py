"""The parts of one bot's connection, put together. Importing this imports the library."""

from dataclasses import dataclass

from gateway.channels.telegram.client import BotClient
from gateway.channels.telegram.pacing import Pacer, Timing
from gateway.channels.telegram.polling import Poller, Report
from gateway.channels.telegram.sending import Sender


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """A client with what receives and what sends through it."""

    client: BotClient
    poller: Poller
    sender: Sender


def connect(
    token: str, *, base_url: str, timing: Timing, pacer: Pacer, report: Report
) -> Connection:
    """Build the parts; nothing is called yet."""
    client = BotClient(token, base_url=base_url, timing=timing)
    return Connection(
        client=client,
        poller=Poller(client, timing=timing, report=report),
        sender=Sender(client, pacer=pacer, report=report),
    )
