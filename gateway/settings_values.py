"""How the text of a setting becomes a value: pure readers that raise ValueError with the fix.

Each message quotes what was given through `shown`, so that it stays on one line and never
repeats a bot token; the caller puts the variable's name in front.
"""

import json
import re
import shlex
from datetime import time, timedelta
from pathlib import Path
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

BOT_TOKEN = re.compile(r"[0-9]+:[A-Za-z0-9_-]{3,}")
TELEGRAM_ID = re.compile(r"-?[1-9][0-9]{0,15}")  # Bot API: at most 52 significant bits
PHONE_NUMBER = re.compile(r"[1-9][0-9]{6,14}")  # E.164 without its plus sign

_TOKEN_INSIDE = re.compile(r"[0-9]{5,}:[A-Za-z0-9_-]{6,}")
_DURATION = re.compile(r"([0-9]{1,9})\s*([smhd]?)")
_SECONDS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}
_LONGEST = timedelta(days=3650)
_QUOTES = "\"'`\u2018\u2019\u201a\u201c\u201d\u201e\u00ab\u00bb"
_CLOCK = re.compile(r"[0-9]{2}:[0-9]{2}")
_WHATSAPP_ID = re.compile(r"[0-9]+@lid|[0-9]+(?:-[0-9]+)?@g\.us")
_SHOWN_LENGTH = 60


def shown(text: str) -> str:
    """`text` as an error may quote it: one line, shortened, a bot token left out."""
    if _TOKEN_INSIDE.search(text):
        return "(what looks like a bot token)"
    return repr(text if len(text) <= _SHOWN_LENGTH else text[:_SHOWN_LENGTH] + "...")


def read_duration(text: str) -> timedelta:
    """Read `90` (seconds), `90s`, `10m`, `24h` or `2d`; zero is a duration."""
    match = _DURATION.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"{shown(text)} is not a duration; write 90s, 10m, 24h or 2d")
    length = timedelta(seconds=int(match[1])) * _SECONDS[match[2]]
    if length > _LONGEST:
        raise ValueError(f"{shown(text)} is too long; {_LONGEST.days}d is the most")
    return length


def read_positive_duration(text: str) -> timedelta:
    """Read a duration that is not zero."""
    length = read_duration(text)
    if not length:
        raise ValueError("0 makes no sense here; write 90s, 10m, 24h or 2d")
    return length


def read_bool(text: str) -> bool:
    """Read true, yes, 1 or false, no, 0 in any case."""
    match text.strip().lower():
        case "true" | "yes" | "1":
            return True
        case "false" | "no" | "0":
            return False
    raise ValueError(f"{shown(text)} is neither true nor false; write true or false")


def read_whole_number(text: str, *, least: int, most: int) -> int:
    """Read a whole number within `least` and `most`."""
    digits = text.strip()
    if not re.fullmatch(r"[0-9]{1,12}", digits) or not least <= int(digits) <= most:
        raise ValueError(f"{shown(text)} is not a whole number from {least} to {most}")
    return int(digits)


def read_choice(text: str, choices: tuple[str, ...]) -> str:
    """Read one of `choices`, in any case."""
    for choice in choices:
        if text.strip().casefold() == choice.casefold():
            return choice
    raise ValueError(f"{shown(text)} is not one of {', '.join(choices)}")


def read_quiet_hours(text: str) -> tuple[time, time]:
    """Read `22:00-08:00` as its start and its end; equal ends would mean never or always."""
    parts = [part.strip().zfill(5) for part in text.replace("\u2013", "-").split("-")]
    try:
        start, end = (time.fromisoformat(part) for part in parts if _CLOCK.fullmatch(part))
    except ValueError:
        raise ValueError(f"{shown(text)} is not a span of hours; write 22:00-08:00") from None
    if start == end:
        raise ValueError(f"{shown(text)} starts and ends at one time; write 22:00-08:00")
    return start, end


def read_timezone(text: str) -> str:
    """Read the name of an IANA time zone that this machine knows."""
    name = text.strip()
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError(
            f"{shown(name)} is not a known time zone; write an IANA name like Europe/Berlin"
        ) from None
    return name


def read_url(text: str, *, schemes: tuple[str, ...] = ("http", "https")) -> str:
    """Read an address with a host; a slash at its end goes. Never quoted: it may hold keys."""
    address = text.strip()
    try:
        parts = urlsplit(address)
        is_valid = parts.scheme in schemes and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_valid = False
    if not is_valid or re.search(r"[\s\x00-\x1f]", address):
        wanted = " or ".join(f"{scheme}://host" for scheme in schemes)
        raise ValueError(f"this is not an address; write {wanted}, with the port if it needs one")
    return address.rstrip("/")


def read_database_url(text: str) -> str:
    """Read the address of an SQLite file; nothing else is supported yet."""
    address = text.strip()
    path = address.removeprefix("sqlite:///")
    if path == address or not path.startswith("/"):
        raise ValueError(
            "this is not the address of an SQLite file; write sqlite:////absolute/path/to/file.db"
        )
    return address


def read_path(text: str) -> Path:
    """Read a path; `~` is the home directory."""
    try:
        return Path(text.strip()).expanduser()
    except RuntimeError:
        raise ValueError(f"{shown(text)} names a home directory that does not exist") from None


def read_directory(text: str) -> Path:
    """Read the path of a directory, which need not exist yet."""
    path = read_path(text)
    if path.exists() and not path.is_dir():
        raise ValueError(f"{shown(str(path))} is not a directory; name one, or leave it out")
    return path


def read_file(text: str) -> Path:
    """Read the path of a file that exists and opens."""
    path = read_path(text)
    try:
        path.open("rb").close()
    except OSError as error:
        raise ValueError(
            f"{shown(str(path))} cannot be read ({error.strerror}); mend the path or its rights"
        ) from None
    return path


def read_command(text: str) -> tuple[str, ...]:
    """Split a command line as a shell would."""
    try:
        words = tuple(shlex.split(text))
    except ValueError:
        raise ValueError(
            "this cannot be split into words: a quote or backslash is left open"
        ) from None
    if not words or not words[0]:
        raise ValueError("this names no program; write the program and its arguments")
    return words


def read_secret(text: str) -> str:
    """Read a key: blanks and quotes around it go, blanks inside are refused. Never quoted."""
    secret = strip_quotes(text)
    if not secret or not secret.isascii() or not secret.isprintable() or " " in secret:
        raise ValueError("this holds blanks or characters that no key has; copy it again")
    return secret


def read_bot_token(text: str) -> str:
    """Read the token of a bot: blanks and quotes around it go. Never quoted."""
    token = strip_quotes(text)
    if BOT_TOKEN.fullmatch(token) is None:
        raise ValueError(
            "this is not a bot token; copy the whole of it from @BotFather (123456:AAE...)"
        )
    return token


def strip_quotes(text: str) -> str:
    """`text` without the blanks and the straight or curly quotes around it."""
    return text.strip().strip(_QUOTES).strip()


def read_provider(text: str) -> str:
    """Read the name of a provider, which is lower-case everywhere."""
    return text.strip().lower()


def read_proxy_url(text: str) -> str:
    """Read the address of a proxy. Never quoted: it may hold a password."""
    return read_url(text, schemes=("http", "https", "socks5"))


def read_owner(text: str) -> str:
    """Read the key of a private chat, `telegram:<id>` or `whatsapp:<number>`."""
    channel, _, address = text.strip().partition(":")
    address = address.removeprefix("+")
    pattern = {"telegram": TELEGRAM_ID, "whatsapp": PHONE_NUMBER}.get(channel)
    if pattern is None or pattern.fullmatch(address) is None:
        raise ValueError(
            f"{shown(text)} is not the key of a private chat; write telegram:<your id>"
        )
    if address.startswith("-"):
        raise ValueError(f"{shown(text)} is a group; write telegram:<your id>, a private chat")
    return f"{channel}:{address}"


def read_telegram_ids(text: str) -> tuple[str, ...]:
    """Read ids of senders and chats, separated by commas or blanks, or as a JSON list."""
    entries = _json_entries(text)
    if entries is None:
        entries = text.replace(",", " ").split()
    wrong = [shown(entry) for entry in entries if TELEGRAM_ID.fullmatch(entry) is None]
    if wrong:
        raise ValueError(
            f"not a numeric id: {', '.join(wrong)}; write ids like 123456789, groups with their"
            " minus sign, separated by commas"
        )
    return tuple(dict.fromkeys(entries))


def read_whatsapp_ids(text: str) -> tuple[str, ...]:
    """Read phone numbers, LIDs and group ids, separated by commas, or as a JSON list.

    A phone number becomes its digits with the country code, whatever its spelling.
    """
    entries = _json_entries(text)
    if entries is None:
        entries = [entry for part in text.split(",") if (entry := part.strip())]
    ids = {entry: _whatsapp_id(entry) for entry in entries}
    wrong = [shown(entry) for entry, found in ids.items() if found is None]
    if wrong:
        raise ValueError(
            f"neither a phone number with country code nor 123@lid or 123@g.us: {', '.join(wrong)};"
            " write +4915112345678, entries separated by commas"
        )
    return tuple(dict.fromkeys(found for found in ids.values() if found))


def _whatsapp_id(entry: str) -> str | None:
    if _WHATSAPP_ID.fullmatch(entry):
        return entry
    number = re.sub(r"[\s().-]", "", entry.removesuffix("@s.whatsapp.net")).removeprefix("+")
    return number if PHONE_NUMBER.fullmatch(number) else None


def _json_entries(text: str) -> list[str] | None:
    """The entries of a JSON list, or None if the text does not start one."""
    if not text.lstrip().startswith("["):
        return None
    try:
        items = json.loads(text)
    except ValueError:
        raise ValueError(
            f"{shown(text)} is a broken JSON list; write 1,2 or mend the list"
        ) from None
    words = [item.strip() if isinstance(item, str) else json.dumps(item) for item in items]
    return [word for word in words if word]
