"""Builds what faces people: settings turned into channels, access and the open store."""

import asyncio
import shutil
import sys
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum

from gateway.channels.base import Channel, Target
from gateway.channels.console import CHAT, ConsoleChannel, ConsoleRules, open_surface
from gateway.channels.telegram import TelegramChannel
from gateway.domain.allowlist import Allowlist
from gateway.domain.chunking import TELEGRAM, RichText, split
from gateway.domain.message import ChannelName, ChatKey
from gateway.engine.access import Access
from gateway.engine.clock import SystemClock
from gateway.engine.lanes import Patience
from gateway.engine.owner import OwnerNotices
from gateway.engine.supervisor import Supervisor, Unavailable
from gateway.engine.typing import Typing
from gateway.errors import NoChannelError, SettingsError
from gateway.places import Places
from gateway.settings import Settings
from gateway.store.chats import list_paired, load_chat
from gateway.store.database import Change, Database
from gateway.store.deliveries import Cut
from gateway.store.listings import is_chat_settled
from gateway.store.opening import Layout

NO_CHANNEL = (
    "No channel is configured. Connect Telegram: put TELEGRAM_BOT_TOKEN (from @BotFather) and "
    "TELEGRAM_ALLOWLIST (your id) into .env. Or chat here: gateway chat"
)
NOBODY_ALLOWED = (
    "nobody is allowed to talk to the bot, so it does not start. Put your Telegram id into "
    "TELEGRAM_ALLOWLIST (@userinfobot tells you your id), or set TELEGRAM_PAIRING=true, write to "
    "the bot, and let yourself in with: gateway pair CODE"
)


class Damage(StrEnum):
    """What `gateway run` is asked to do about a damaged database."""

    REFUSE = "refuse"
    RESTORE = "restore"
    START_EMPTY = "start_empty"


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How this gateway was started."""

    is_chat: bool = False
    linger: float = 0.0
    damage: Damage = Damage.REFUSE


@dataclass(frozen=True, slots=True, kw_only=True)
class Gateway:
    """What is built before anything is started."""

    settings: Settings
    places: Places
    database: Database
    access: Access
    channels: Mapping[ChannelName, Channel]
    cuts: Mapping[ChannelName, Cut]
    served: tuple[ChannelName, ...]
    clock: SystemClock
    typing: Typing
    owner: OwnerNotices
    supervisor: Supervisor
    began_at: datetime
    stop: asyncio.Event = field(default_factory=asyncio.Event)
    patience: Patience = field(default_factory=Patience)


def layout_of(settings: Settings) -> Layout:
    """Where the store of these settings is."""
    url = settings.gateway_database_url
    elsewhere = None
    if url is not None:
        from sqlalchemy.engine import make_url

        name = make_url(url).database
        elsewhere = None if name is None else settings.gateway_data_dir / name
    return Layout(directory=settings.gateway_data_dir, elsewhere=elsewhere)


def allowlist_of(settings: Settings) -> Allowlist:
    """Who the settings let in."""
    return Allowlist(
        {
            ChannelName.TELEGRAM: frozenset(settings.telegram_allowlist),
            ChannelName.WHATSAPP: frozenset(settings.whatsapp_allowlist),
        }
    )


def opens_console(settings: Settings, options: Options) -> bool:
    """Whether the conversation is here: asked for, or nothing else is configured."""
    if options.is_chat:
        return True
    is_configured = settings.telegram_bot_token is not None or settings.whatsapp_enabled
    return not is_configured and sys.stdin.isatty()


async def build_gateway(
    settings: Settings, options: Options, database: Database, token_holder: str | None
) -> Gateway:
    """Build everything that faces people; nothing is started yet.

    Raises NoChannelError when nothing is configured, SettingsError for a host that is not there.
    """
    _check_host_command(settings)
    pairing = (ChannelName.TELEGRAM,) if settings.telegram_pairing else ()
    access = Access(allowlist_of(settings), pairing=pairing)
    access.set_paired(await database.read(list_paired))
    clock = SystemClock()
    places = Places(settings.gateway_data_dir)
    places.make_private()
    health = _Health()
    seat = _Seat(
        database=database, access=access, places=places, token_holder=token_holder, health=health
    )
    channels, unavailable = _build_channels(settings, options, seat)
    cuts: dict[ChannelName, Cut] = dict.fromkeys(ChannelName, plain_cut)
    cuts |= {name: channel.cut for name, channel in channels.items()}
    owner = await _build_owner(settings, database, clock, cuts)
    supervisor = Supervisor(channels, unavailable, owner)
    health.listener = supervisor.health_changed
    return Gateway(
        settings=settings,
        places=places,
        database=database,
        access=access,
        channels=channels,
        cuts=cuts,
        served=_served(options, channels),
        clock=clock,
        typing=Typing(
            _typing_through(database, channels),
            limit=settings.host_turn_timeout.total_seconds(),
        ),
        owner=owner,
        supervisor=supervisor,
        began_at=datetime.now(UTC),
    )


def _check_host_command(settings: Settings) -> None:
    """Refuse to start with a host that is not installed, before anything is taken in."""
    if settings.resolved_host_kind != "pi":
        return
    command = settings.host_command[0] if settings.host_command else "pi"
    if shutil.which(command) is None:
        raise SettingsError(
            [f"HOST_COMMAND: {command} was not found; install it, or name it with its path"]
        )


async def _build_owner(
    settings: Settings, database: Database, clock: SystemClock, cuts: Mapping[ChannelName, Cut]
) -> OwnerNotices:
    chat = ChatKey.parse(settings.gateway_owner) if settings.gateway_owner else None
    owner = OwnerNotices(
        database, clock, owner=chat, cut=None if chat is None else cuts[chat.channel]
    )
    await owner.load()
    return owner


def _served(options: Options, channels: Mapping[ChannelName, Channel]) -> tuple[ChannelName, ...]:
    """The channels whose rows this gateway works on; those of others stay untouched."""
    console = (ChannelName.CONSOLE,) if ChannelName.CONSOLE in channels else ()
    if options.is_chat:
        return console
    return (ChannelName.TELEGRAM, ChannelName.WHATSAPP, *console)


@dataclass(slots=True)
class _Health:
    """Hands a channel's news to the supervisor, which is made after the channels."""

    listener: Callable[[Channel], None] | None = None

    def __call__(self, channel: Channel) -> None:
        if self.listener is not None:
            self.listener(channel)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Seat:
    """What channels are built from."""

    database: Database
    access: Access
    places: Places
    token_holder: str | None
    health: _Health


def _build_channels(
    settings: Settings, options: Options, seat: _Seat
) -> tuple[dict[ChannelName, Channel], tuple[Unavailable, ...]]:
    channels: dict[ChannelName, Channel] = {}
    unavailable: list[Unavailable] = []
    token = None if options.is_chat else settings.telegram_bot_token
    if token is not None:
        reason = _why_no_telegram(seat)
        if reason is None:
            channels[ChannelName.TELEGRAM] = TelegramChannel(
                token.get_secret_value(),
                base_url=settings.telegram_api_base_url,
                health_changed=seat.health,
            )
        else:
            unavailable.append(Unavailable(name=ChannelName.TELEGRAM, reason=reason))
    if settings.whatsapp_enabled and not options.is_chat:
        reason = "not available yet in this version; unset WHATSAPP_ENABLED."
        unavailable.append(Unavailable(name=ChannelName.WHATSAPP, reason=reason))
    if opens_console(settings, options):
        channels[ChannelName.CONSOLE] = _build_console(options, seat)
    if not channels and not unavailable:
        raise NoChannelError(NO_CHANNEL)
    return channels, tuple(unavailable)


def _why_no_telegram(seat: _Seat) -> str | None:
    if seat.token_holder is not None:
        return (
            f"another gateway ({seat.token_holder}) runs with the same bot token. "
            "Stop it, or use another token."
        )
    is_open = seat.access.has_anybody(ChannelName.TELEGRAM)
    if not is_open and ChannelName.TELEGRAM not in seat.access.pairing:
        return NOBODY_ALLOWED
    return None


def _build_console(options: Options, seat: _Seat) -> ConsoleChannel:
    surface = open_surface(seat.places.console_history)
    rules = ConsoleRules(settled=_settling(seat.database), linger=options.linger)
    return ConsoleChannel(surface, rules)


def _settling(database: Database) -> Callable[[], Awaitable[None]]:
    """Returns when the console's chat has no open turn and no open delivery."""
    changed = asyncio.Event()

    def on_commit(changes: frozenset[Change]) -> None:
        if any(change.chat == CHAT for change in changes):
            changed.set()

    database.subscribe(on_commit)

    async def settled() -> None:
        while True:
            changed.clear()
            if await database.read(is_chat_settled, CHAT):
                return
            await changed.wait()

    return settled


def _typing_through(
    database: Database, channels: Mapping[ChannelName, Channel]
) -> Callable[[ChatKey], Awaitable[None]]:
    async def show(chat: ChatKey) -> None:
        channel = channels.get(chat.channel)
        known = await database.read(load_chat, chat)
        if channel is not None and known is not None:
            await channel.show_typing(Target(address=known.address))

    return show


def plain_cut(text: str, *, is_markdown: bool) -> tuple[RichText, ...]:
    """For chats whose channel does not run here: what they are told waits as plain text."""
    return split(RichText.literal(text), TELEGRAM)
