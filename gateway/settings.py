"""Settings: the one reader of the environment and of `.env`."""

from collections.abc import Callable, Iterator, Mapping
from datetime import time, timedelta
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from pydantic import BeforeValidator, Field, PrivateAttr, SecretStr, ValidationError
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from gateway import settings_values as read
from gateway.env_file import EnvFile, find_env_file, is_our_key, read_env_file
from gateway.errors import SettingsError
from gateway.settings_checks import contradictions, doubts

ENV_FILE_KEY = "GATEWAY_ENV_FILE"


def default_data_dir() -> Path:
    """The directory for an application's data on this platform."""
    from platformdirs import user_data_path

    return user_data_path("chat-gateway", appauthor=False)


def system_timezone() -> str | None:
    """The IANA name of this machine's time zone, or None where it cannot be told."""
    from tzlocal import get_localzone_name

    try:
        return read.read_timezone(get_localzone_name() or "")
    except (LookupError, ValueError, OSError):
        return None


def _from_text(reader: Callable[[str], object]) -> BeforeValidator:
    """Read texts; a value that already has its type passes as it is."""
    return BeforeValidator(lambda value: reader(value) if isinstance(value, str) else value)


def _one_of(literal: object) -> BeforeValidator:
    return _from_text(partial(read.read_choice, choices=get_args(literal)))


def _number(least: int, most: int) -> BeforeValidator:
    return _from_text(partial(read.read_whole_number, least=least, most=most))


def _setting(default: object, description: str, *, example: str = "", shown: str = "") -> Any:
    """Describe one setting.

    `example` stands in for an empty default in the documents; `shown` words a default that is
    computed, or that reads better than its value.
    """
    extra: dict[str, Any] = {"example": example, "shown": shown}
    if callable(default):
        return Field(default_factory=default, description=description, json_schema_extra=extra)
    return Field(default=default, description=description, json_schema_extra=extra)


LogLevel = Literal["DEBUG", "INFO", "WARNING", "ERROR"]
LogFormat = Literal["text", "json"]
HostChoice = Literal["auto", "offline", "builtin", "pi", "acp"]
ResolvedHost = Literal["offline", "builtin", "pi", "acp"]
HostTools = Literal["none", "read", "all"]
HostSandbox = Literal["none", "bubblewrap"]

Flag = Annotated[bool, _from_text(read.read_bool)]
Duration = Annotated[timedelta, _from_text(read.read_duration)]
PositiveDuration = Annotated[timedelta, _from_text(read.read_positive_duration)]


class Settings(BaseSettings):
    """Every setting, read and checked; an attribute is the lower-case name of its variable.

    Made by `load_settings`, which alone knows where values come from. `warnings` are sentences
    for the operator; `env_file` is the file that was read.
    """

    model_config = SettingsConfigDict(frozen=True, extra="forbid")

    gateway_env_file: Annotated[Path | None, _from_text(read.read_path)] = _setting(
        None,
        "File to read settings from, instead of ./.env and then .env in the data directory. Only"
        " the environment can set it.",
        example="/etc/chat-gateway.env",
    )
    gateway_data_dir: Annotated[Path, _from_text(read.read_directory)] = _setting(
        default_data_dir,
        "Directory for the database, its copies, locks and sockets.",
        shown="the platform's data directory",
    )
    gateway_database_url: Annotated[str | None, _from_text(read.read_database_url)] = _setting(
        None,
        "SQLite file to use instead of the one in the data directory.",
        example="sqlite:////var/lib/chat-gateway/gateway.db",
        shown="a file in the data directory",
    )
    gateway_timezone: Annotated[str, _from_text(read.read_timezone)] = _setting(
        lambda: system_timezone() or "UTC",
        "IANA time zone of a chat that has not named its own.",
        example="Europe/Berlin",
        shown="this machine's zone",
    )
    gateway_owner: Annotated[str | None, _from_text(read.read_owner)] = _setting(
        None,
        "Private, allowed chat that is told what only the operator can mend.",
        example="telegram:123456789",
    )
    gateway_log_level: Annotated[LogLevel, _one_of(LogLevel)] = _setting(
        "INFO",
        "Least severe level that is logged: DEBUG, INFO, WARNING or ERROR. DEBUG shows phone"
        " numbers and message texts.",
    )
    gateway_log_format: Annotated[LogFormat, _one_of(LogFormat)] = _setting(
        "text", "Form of the log on standard error: text, or json (one object a line)."
    )
    gateway_retention_days: Annotated[int, _number(1, 36500)] = _setting(
        30, "Days for which ended messages, turns, deliveries and reminders are kept."
    )
    gateway_max_message_age: PositiveDuration = _setting(
        timedelta(hours=24), "A message older than this is stored and named, but not answered."
    )

    telegram_bot_token: Annotated[SecretStr | None, _from_text(read.read_bot_token)] = _setting(
        None, "Token of the bot, from @BotFather. Without it Telegram is off."
    )
    telegram_allowlist: Annotated[tuple[str, ...], _from_text(read.read_telegram_ids)] = _setting(
        (),
        "Ids of the senders and chats that may talk to the bot, separated by commas; those of"
        " groups are negative. Empty = nobody.",
        example="123456789,-1001234567890",
    )
    telegram_pairing: Flag = _setting(
        False, "Give unknown private senders a code that `gateway pair CODE` admits."
    )
    telegram_api_base_url: Annotated[str, _from_text(read.read_url)] = _setting(
        "https://api.telegram.org", "Bot API server; a local one works."
    )

    whatsapp_enabled: Flag = _setting(False, "Connect to WhatsApp (not available yet).")
    whatsapp_allowlist: Annotated[tuple[str, ...], _from_text(read.read_whatsapp_ids)] = _setting(
        (),
        "Phone numbers with country code, LIDs (123@lid) and group ids (123@g.us) that may talk"
        " to the bot, separated by commas. Empty = nobody. (Not available yet.)",
        example="+4915112345678",
    )
    whatsapp_proxy_url: Annotated[SecretStr | None, _from_text(read.read_proxy_url)] = _setting(
        None,
        "Proxy for WhatsApp (http, https or socks5; not available yet).",
        example="socks5://127.0.0.1:1080",
    )
    whatsapp_min_interval: Duration = _setting(
        timedelta(seconds=1),
        "Shortest time between two messages to one chat on WhatsApp (not available yet).",
    )

    host_kind: Annotated[HostChoice, _one_of(HostChoice)] = _setting(
        "auto",
        "What answers: offline (no model), builtin (any OpenAI-compatible endpoint, or Anthropic),"
        " pi, acp (not available yet), or auto: builtin if MODEL_NAME is set, else offline.",
    )
    host_command: Annotated[tuple[str, ...] | None, _from_text(read.read_command)] = _setting(
        None,
        "Command that starts the host, split as a shell would; for pi and acp.",
        example="pi",
        shown="`pi` for pi",
    )
    host_max_processes: Annotated[int, _number(1, 1000)] = _setting(
        8, "Most host processes at a time; further chats wait."
    )
    host_idle_timeout: PositiveDuration = _setting(
        timedelta(minutes=10), "A host process without a turn for this long is ended."
    )
    host_silence_timeout: PositiveDuration = _setting(
        timedelta(seconds=120), "A turn whose host says nothing for this long has failed."
    )
    host_turn_timeout: PositiveDuration = _setting(
        timedelta(minutes=30), "A turn that takes longer than this has failed."
    )
    host_tools: Annotated[HostTools, _one_of(HostTools)] = _setting(
        "none",
        "The host's own tools: none, read (read, list, search), or all (write and shell, too)."
        " Others than none are not available yet.",
    )
    host_tools_unsandboxed: Flag = _setting(
        False,
        "Allow HOST_TOOLS with all the rights of the gateway's own account (not available yet).",
    )
    host_sandbox: Annotated[HostSandbox, _one_of(HostSandbox)] = _setting(
        "none", "What confines the host's tools: none or bubblewrap (not available yet)."
    )
    host_prompt_file: Annotated[Path | None, _from_text(read.read_file)] = _setting(
        None, "Text file with a persona, added to the prompt.", example="persona.md"
    )

    model_provider: Annotated[str, _from_text(read.read_provider)] = _setting(
        "openai", "openai (any compatible endpoint) or anthropic; for pi, its name of a provider."
    )
    model_name: Annotated[str | None, _from_text(str.strip)] = _setting(
        None, "Model to ask for.", example="llama3.1:8b"
    )
    model_base_url: Annotated[str | None, _from_text(read.read_url)] = _setting(
        None,
        "Address of the model's API.",
        example="http://127.0.0.1:11434/v1",
        shown="the provider's",
    )
    model_api_key: Annotated[SecretStr | None, _from_text(read.read_secret)] = _setting(
        None, "Key for the model's API; a local server needs none."
    )
    model_context_window: Annotated[int | None, _number(1024, 100_000_000)] = _setting(
        None, "Tokens that the model can take in.", example="32768", shown="the provider's"
    )

    heartbeat_interval: Duration = _setting(
        timedelta(minutes=30),
        "Silence in a private chat after which the model is asked, once, whether it has something"
        " to say; 0 = never.",
    )
    heartbeat_quiet_hours: Annotated[tuple[time, time], _from_text(read.read_quiet_hours)] = (
        _setting(
            (time(22), time(8)),
            "Hours without heartbeats, in the zone of the chat.",
            shown="22:00-08:00",
        )
    )
    heartbeat_daily_cap: Annotated[int, _number(0, 1000)] = _setting(
        3, "Most heartbeats a chat and day."
    )

    delivery_expiry: PositiveDuration = _setting(
        timedelta(hours=24), "A delivery is given up this long after its first failed try."
    )

    _warnings: tuple[str, ...] = PrivateAttr(default=())
    _env_file: Path | None = PrivateAttr(default=None)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What the operator should know of the way the settings were read."""
        return self._warnings

    @property
    def env_file(self) -> Path | None:
        """The `.env` file that was read."""
        return self._env_file

    @property
    def resolved_host_kind(self) -> ResolvedHost:
        """What HOST_KIND comes to."""
        if self.host_kind != "auto":
            return self.host_kind
        return "builtin" if self.model_name else "offline"

    @property
    def heartbeat_silence(self) -> timedelta | None:
        """The silence before a heartbeat; None = there are none, as without a model."""
        is_off = self.resolved_host_kind == "offline" or not self.heartbeat_daily_cap
        return None if is_off else self.heartbeat_interval or None

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Take values from `load_settings` only, which reports all problems at once."""
        return (init_settings,)


_PATHS = frozenset({"gateway_data_dir", "gateway_env_file", "host_prompt_file"})
_NAMES = {field.upper(): field for field in Settings.model_fields}


def load_settings(environ: Mapping[str, str], *, cwd: Path) -> Settings:
    """Read the settings from `environ` and the `.env` file in force; the environment wins.

    An empty value means unset. Relative paths are relative to `cwd`. Raises SettingsError with
    all problems at once, one line each, and never with the value of a secret.
    """
    from_environ = {key: environ[key] for key in _NAMES if environ.get(key, "").strip()}
    unknown = [key for key in environ if is_our_key(key) and key not in _NAMES]
    warnings = [f"{_unknown(key)} It is ignored." for key in unknown]
    file, passed_over = _read_file_in_force(from_environ, cwd)
    warnings.extend(passed_over)

    from_file = {key: file.values[key] for key in _NAMES if file.values.get(key, "").strip()}
    texts = {_NAMES[key]: text for key, text in (from_file | from_environ).items()}
    settings, found = _validate(texts, cwd)
    origins = {_NAMES[key]: f" (in {file.path})" for key in from_file if key not in from_environ}
    problems = [
        *file.problems,
        *_problems_of_keys(file),
        *(f"{name.upper()}{origins.get(name, '')}: {text}" for name, text in found.items()),
        *contradictions(settings, doubtful=found.keys()),
    ]
    if problems:
        raise SettingsError(problems)
    if "gateway_timezone" not in texts and system_timezone() is None:
        warnings.append("This machine's time zone is not known, UTC is used. Set GATEWAY_TIMEZONE.")
    settings._warnings = (*warnings, *doubts(settings))
    settings._env_file = file.path
    return settings


def _read_file_in_force(environ: Mapping[str, str], cwd: Path) -> tuple[EnvFile, tuple[str, ...]]:
    path: Path | None
    warnings: tuple[str, ...] = ()
    try:
        if explicit := environ.get(ENV_FILE_KEY, "").strip():
            path = cwd / read.read_path(explicit)
        else:
            path, warnings = find_env_file(cwd, _data_dir(environ, cwd))
    except ValueError as error:
        problem = f"{ENV_FILE_KEY}: {error}"
        return EnvFile(path=None, values={}, problems=(problem,)), ()
    if path is None:
        return EnvFile(path=None, values={}, problems=()), warnings
    return read_env_file(path), warnings


def _data_dir(environ: Mapping[str, str], cwd: Path) -> Path:
    text = environ.get("GATEWAY_DATA_DIR", "")
    return cwd / read.read_path(text) if text else default_data_dir()


def _problems_of_keys(file: EnvFile) -> Iterator[str]:
    for key in file.values:
        if is_our_key(key) and key not in _NAMES:
            yield f"{file.path}: {_unknown(key)} Mend its name or remove it."
    if ENV_FILE_KEY in file.values:
        yield f"{file.path}: {ENV_FILE_KEY} works in the environment only. Remove it here."


def _unknown(key: str) -> str:
    from difflib import get_close_matches

    nearest = get_close_matches(key.upper(), _NAMES, n=1)
    return f"{key} is not a setting." + (f" Is {nearest[0]} meant?" if nearest else "")


def _validate(texts: Mapping[str, str], cwd: Path) -> tuple[Settings, dict[str, str]]:
    """Make settings of what is right, and say by attribute what is wrong."""
    given = dict(texts)
    for name in _PATHS & given.keys():
        if not given[name].lstrip().startswith("~"):
            given[name] = str(cwd / given[name].strip())
    try:
        return Settings.model_validate(given), {}
    except ValidationError as error:
        found = {str(item["loc"][0]): str(item["ctx"]["error"]) for item in error.errors()}
    sound = {name: text for name, text in given.items() if name not in found}
    return Settings.model_validate(sound), found
