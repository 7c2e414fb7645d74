"""Telegram: the Bot API by long polling, through python-telegram-bot.

Importing this package does not import `telegram`; the first use of a channel does.
"""

from gateway.channels.telegram.adapter import TelegramChannel
from gateway.channels.telegram.pacing import Pacer, Timing

__all__ = ["Pacer", "TelegramChannel", "Timing"]
