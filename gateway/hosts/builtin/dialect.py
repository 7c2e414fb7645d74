"""What the two provider dialects have in common, free of any network."""

from dataclasses import dataclass
from ipaddress import ip_address
from typing import Protocol
from urllib.parse import urlsplit
from uuid import uuid4

from gateway.hosts.builtin.loose_json import JsonObject, parse_json
from gateway.hosts.builtin.messages import AssistantMessage, Message


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSpec:
    """A tool on offer; `parameters` is a JSON Schema of an object."""

    name: str
    description: str
    parameters: JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRequest:
    """One model call: all that was said, newest last."""

    system: str
    messages: tuple[Message, ...]
    tools: tuple[ToolSpec, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TextPiece:
    """A further piece of the reply's text."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ThinkingPiece:
    """The model is at work without saying anything yet."""


Piece = TextPiece | ThinkingPiece


class ReplyReader(Protocol):
    """Puts one streamed reply together."""

    def feed(self, data: JsonObject) -> tuple[Piece, ...]:
        """Take one event; raises ModelError if it reports a failure."""
        ...

    def end(self) -> None:
        """Take the stream's own end mark."""
        ...

    def reply(self) -> AssistantMessage:
        """Return the whole reply; raises ModelError if the stream broke off."""
        ...


class Dialect(Protocol):
    """One provider's way to be asked."""

    @property
    def url(self) -> str:
        """Where requests go."""
        ...

    def headers(self, key: str | None) -> dict[str, str]:
        """Return what authorises and versions a request."""
        ...

    def body(self, request: ModelRequest) -> JsonObject:
        """Return the request's JSON."""
        ...

    def reader(self) -> ReplyReader:
        """Return a reader for one reply."""
        ...

    def adapt(self, refusal: str) -> bool:
        """Do without what a server refuses by name; True if that makes another call worth it."""
        ...


def with_scheme(base: str) -> str:
    """Return the base URL without trailing slashes, with a scheme if it had none."""
    base = base.strip().rstrip("/")
    if "://" in base:
        return base
    return f"http://{base}" if is_loopback(f"http://{base}") else f"https://{base}"


def is_loopback(url: str) -> bool:
    """Tell whether the URL's host is this machine."""
    host = urlsplit(url).hostname or ""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def new_call_id() -> str:
    """Return an id for a call whose server gave none.

    Nine letters and digits: the only form that Mistral takes back, and all others do too.
    """
    return uuid4().hex[:9]


def read_arguments(given: object) -> tuple[JsonObject, str | None]:
    """Return a call's arguments, and what is wrong with them if anything is.

    Servers send JSON text, an object, nothing at all, or JSON text within JSON text.
    """
    value = given
    for _ in range(2):
        if not isinstance(value, str):
            break
        try:
            value = parse_json(value) if value.strip() else {}
        except ValueError:
            return {}, "The arguments are not valid JSON. Call the tool again with a JSON object."
    if value is None:
        return {}, None
    if not isinstance(value, dict):
        return {}, "The arguments must be a JSON object. Call the tool again."
    return value, None
