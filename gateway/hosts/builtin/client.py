"""Asking a model over HTTP: streaming, retries, and failures put into words."""

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING

from gateway.hosts.builtin.dialect import (
    Dialect,
    ModelRequest,
    Piece,
    ReplyReader,
    TextPiece,
    is_loopback,
)
from gateway.hosts.builtin.failures import ModelError, error_from_body, redact
from gateway.hosts.builtin.loose_json import JsonObject, dump_line, parse_object
from gateway.hosts.builtin.messages import AssistantMessage
from gateway.hosts.builtin.sse import EventParser

if TYPE_CHECKING:
    import httpx

_TRIES = 3
_FIRST_DELAY_SECONDS = 0.5
_LONGEST_WAIT_SECONDS = 30.0
_CONNECT_SECONDS = 10.0
_DRAIN_SECONDS = 0.25
_LONGEST_ERROR_BODY = 1 << 16
_END_MARK = "[DONE]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Retry:
    """Another try is coming, after `delay` seconds."""

    attempt: int
    delay: float
    reason: str


Progress = Piece | Retry
OnProgress = Callable[[Progress], None]


@dataclass(slots=True)
class ModelClient:
    """One process's connection to its model. `silence` is the longest wait for a byte, seconds.

    httpx is loaded at the first use, not before: a warm session's memory is budgeted.
    """

    dialect: Dialect
    key: str | None = field(repr=False)
    silence: float
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep
    _http: "httpx.AsyncClient | None" = field(default=None, init=False)

    async def ask(self, request: ModelRequest, on_progress: OnProgress) -> AssistantMessage:
        """Return the reply; raises ModelError.

        What may pass (408, 409, 429, 5xx, a lost connection) is tried three times in all, but
        never again once a piece of text has gone out.
        """
        content = dump_line(self.dialect.body(request))
        for attempt in range(1, _TRIES + 1):
            has_text = False

            def note(piece: Piece) -> None:
                nonlocal has_text
                has_text = has_text or isinstance(piece, TextPiece)
                on_progress(piece)

            try:
                return await self._ask_once(content, note)
            except ModelError as error:
                delay = _delay(attempt, error)
                if has_text or delay is None:
                    raise
                on_progress(Retry(attempt=attempt, delay=delay, reason=str(error)))
            await self.sleep(delay)
        raise AssertionError("the last try returns or raises")

    def open(self) -> "httpx.AsyncClient":
        """Return the HTTP client, made at the first call; costs 0.1 s then."""
        if self._http is None:
            import httpx

            is_plain = self.dialect.url.startswith("http:")
            self._http = httpx.AsyncClient(
                # Certificates are not even read for plain HTTP: that saves time and memory.
                # Redirects are not followed, so nothing goes on to an unverified address.
                verify=not is_plain,
                # A proxy from the environment has no business with this machine's own servers.
                trust_env=not is_loopback(self.dialect.url),
                timeout=httpx.Timeout(self.silence, connect=_CONNECT_SECONDS),
            )
        return self._http

    async def close(self) -> None:
        """Close the connections."""
        if self._http is not None:
            await self._http.aclose()

    async def _ask_once(self, content: bytes, note: Callable[[Piece], None]) -> AssistantMessage:
        reader = self.dialect.reader()
        async with self._translated(), self._stream(content) as response:
            if not response.is_success:
                raise await self._refusal(response)
            await _read(response, reader, note)
        return reader.reply()

    @asynccontextmanager
    async def _stream(self, content: bytes) -> "AsyncIterator[httpx.Response]":
        headers = {"content-type": "application/json", "accept": "text/event-stream"}
        headers |= self.dialect.headers(self.key)
        async with self.open().stream(
            "POST", self.dialect.url, content=content, headers=headers
        ) as response:
            yield response

    async def _refusal(self, response: "httpx.Response") -> ModelError:
        body = bytearray()
        async for chunk in response.aiter_bytes():
            body += chunk
            if len(body) > _LONGEST_ERROR_BODY:
                break
        return error_from_body(
            bytes(body),
            status=response.status_code,
            secret=self.key,
            retry_after=_retry_after(response),
        )

    @asynccontextmanager
    async def _translated(self) -> AsyncIterator[None]:
        """Turn what httpx raises into ModelError; the one place where that is decided."""
        import httpx

        try:
            yield
        except (httpx.ReadTimeout, httpx.WriteTimeout) as error:
            raise ModelError(f"no data for {self.silence:g} s") from error
        except (httpx.UnsupportedProtocol, httpx.InvalidURL) as error:
            raise ModelError("the base URL cannot be used") from error
        except httpx.HTTPError as error:
            detail = redact(f"{type(error).__name__}: {error}", self.key)
            raise ModelError(f"connection: {detail}", is_passing=True) from error


async def _read(
    response: "httpx.Response", reader: ReplyReader, note: Callable[[Piece], None]
) -> None:
    """Read the stream to its end, or the one object that a server sends instead of a stream."""

    def take(event: str | bytes) -> None:
        for piece in reader.feed(_read_event(event)):
            note(piece)

    if response.headers.get("content-type", "").startswith("application/json"):
        take(await response.aread())
        reader.end()
        return
    parser = EventParser()
    chunks = response.aiter_bytes()
    async for chunk in chunks:
        for event in _take(parser, chunk):
            if event == _END_MARK:
                reader.end()
                await _drain(chunks)
                return
            take(event)
    for event in parser.end():
        if event == _END_MARK:
            reader.end()
        else:
            take(event)


async def _drain(chunks: AsyncIterator[bytes]) -> None:
    """Read what follows the end mark, so that the connection can serve the next call.

    The reply is whole by now: whatever goes wrong here costs only that connection.
    """
    import httpx

    with suppress(httpx.HTTPError, TimeoutError):
        async with asyncio.timeout(_DRAIN_SECONDS):
            async for _ in chunks:
                pass


def _take(parser: EventParser, chunk: bytes) -> list[str]:
    try:
        return parser.feed(chunk)
    except ValueError as error:
        raise ModelError(str(error)) from error


def _read_event(event: str | bytes) -> JsonObject:
    data = parse_object(event)
    if data is None:
        raise ModelError("an event of the stream is not JSON", is_passing=True)
    return data


def _delay(attempt: int, error: ModelError) -> float | None:
    """Return the seconds until the next try, or None if there is to be none.

    A server that wants to be left alone for longer than a person would wait is not asked again.
    """
    if not error.is_passing or attempt >= _TRIES:
        return None
    if error.retry_after is not None:
        return error.retry_after if error.retry_after <= _LONGEST_WAIT_SECONDS else None
    return _FIRST_DELAY_SECONDS * 2.0 ** (attempt - 1) * random.uniform(1.0, 1.25)


def _retry_after(response: "httpx.Response") -> float | None:
    """Return the header's wish in seconds; it is a number or a date."""
    value = str(response.headers.get("retry-after", "")).strip()
    if not value:
        return None
    if value.replace(".", "", 1).isdecimal():
        return float(value)
    try:
        moment = parsedate_to_datetime(value)
    except ValueError:
        return None
    if moment.tzinfo is None:
        return None
    return max((moment - datetime.now(UTC)).total_seconds(), 0.0)
