"""The composition root: builds everything, starts it, stops it in order; it decides nothing."""

import asyncio
import contextlib
import logging
import os
import signal
import socket
import sys
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import StrEnum

from gateway.channels.base import Channel, ChannelHealth, ChannelState, Target
from gateway.channels.console import ConsoleChannel, ConsoleRules, open_surface
from gateway.channels.telegram import TelegramChannel
from gateway.domain.allowlist import Allowlist
from gateway.domain.chunking import TELEGRAM, RichText, split
from gateway.domain.message import ChannelName, ChatKey
from gateway.engine import texts
from gateway.engine.access import Access
from gateway.engine.clock import SystemClock
from gateway.engine.commands import Done
from gateway.engine.intake import Intake, IntakeRules
from gateway.engine.outbox import Outbox
from gateway.engine.owner import Episode, OwnerNotices
from gateway.engine.typing import Typing
from gateway.errors import (
    ChannelSetupError,
    CorruptDatabaseError,
    GatewayError,
    NoChannelError,
)
from gateway.places import Places, token_lock_path
from gateway.settings import Settings
from gateway.store.database import Change, Database
from gateway.store.deliveries import Cut
from gateway.store.listings import is_chat_settled
from gateway.store.opening import (
    FileLock,
    Layout,
    lock_data_directory,
    make_data_directory,
    open_database,
    restore_newest,
    set_aside,
)
from gateway.store.sending import SendRules, recover_sends
from gateway.store.turns import Notice, recover_turns
from gateway.wiring import Backstage, build_backstage

log = logging.getLogger(__name__)
