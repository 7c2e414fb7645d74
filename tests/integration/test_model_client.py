"""Asking a model over real HTTP: what is tried again, what is not, and what the error says."""

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from gateway.hosts.builtin.anthropic import AnthropicDialect
from gateway.hosts.builtin.client import ModelClient, Progress, Retry
from gateway.hosts.builtin.dialect import ModelRequest, TextPiece
from gateway.hosts.builtin.failures import ModelError
from gateway.hosts.builtin.messages import AssistantMessage, UserMessage
from gateway.hosts.builtin.openai import OpenAIDialect
from tests.fakes.model_script import BadEvent, Cut, Refuse, Say, Silent
from tests.fakes.model_server import FakeModelServer

KEY = "CANARYKEY"
HELLO = ModelRequest(system="s", messages=(UserMessage(text="hello"),))


@dataclass
class Asking:
    """A client on a fake server, its waits noted instead of waited."""

    server: FakeModelServer
    client: ModelClient
    waits: list[float] = field(default_factory=list)
    progress: list[Progress] = field(default_factory=list)

    async def ask(self, request: ModelRequest = HELLO) -> AssistantMessage:
        return await self.client.ask(request, self.progress.append)

    @property
    def text(self) -> str:
        return "".join(piece.text for piece in self.progress if isinstance(piece, TextPiece))


@pytest.fixture(params=["openai", "anthropic"])
async def asking(request: pytest.FixtureRequest) -> AsyncIterator[Asking]:
    async with FakeModelServer() as server:
        waits: list[float] = []

        async def note(seconds: float) -> None:
            waits.append(seconds)

        dialect = AnthropicDialect if request.param == "anthropic" else OpenAIDialect
        client = ModelClient(
            dialect=dialect(model="m", base_url=server.url), key=KEY, silence=20, sleep=note
        )
        yield Asking(server=server, client=client, waits=waits)
        await client.close()


async def test_a_reply_comes_in_pieces_and_whole(asking: Asking) -> None:
    asking.server.queue(Say(text="Grüße ☕\u2028!", pieces=4))
    reply = await asking.ask()
    assert reply.text == asking.text == "Grüße ☕\u2028!"
    assert len(asking.progress) == 4


@pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 503, 529])
async def test_a_passing_status_is_tried_three_times(asking: Asking, status: int) -> None:
    asking.server.queue(Refuse(status=status), Refuse(status=status), Say(text="ok"))
    assert (await asking.ask()).text == "ok"
    first, second = asking.waits
    assert 0.5 <= first <= 0.625
    assert 1.0 <= second <= 1.25
    assert [type(one) for one in asking.progress] == [Retry, Retry, TextPiece]


async def test_the_third_failure_is_the_last(asking: Asking) -> None:
    asking.server.queue(*[Refuse(status=503)] * 4)
    with pytest.raises(ModelError, match=r"^503: scripted$"):
        await asking.ask()
    assert len(asking.server.requests) == 3


@pytest.mark.parametrize("status", [307, 400, 401, 403, 404, 413, 422])
async def test_a_lasting_status_is_not_tried_again(asking: Asking, status: int) -> None:
    asking.server.queue(Refuse(status=status), Say(text="ok"))
    with pytest.raises(ModelError, match=f"^{status}: scripted$"):
        await asking.ask()
    assert len(asking.server.requests) == 1


async def test_the_servers_wish_sets_the_wait(asking: Asking) -> None:
    asking.server.queue(
        Refuse(status=429, headers={"retry-after": "7.5"}),
        Refuse(
            status=429,
            headers={"retry-after": format_datetime(datetime.now(UTC) - timedelta(hours=1))},
        ),
        Say(text="ok"),
    )
    assert (await asking.ask()).text == "ok"
    assert asking.waits == [7.5, 0.0]


async def test_a_wish_longer_than_half_a_minute_ends_the_call(asking: Asking) -> None:
    asking.server.queue(Refuse(status=429, headers={"retry-after": "31"}), Say(text="ok"))
    with pytest.raises(ModelError, match=r"^429"):
        await asking.ask()
    assert asking.waits == []


async def test_an_unreadable_wish_is_ignored(asking: Asking) -> None:
    asking.server.queue(Refuse(status=429, headers={"retry-after": "soon"}), Say(text="ok"))
    assert (await asking.ask()).text == "ok"
    assert len(asking.waits) == 1


@pytest.mark.parametrize("broken", [Cut(), BadEvent(), Say(text="", finish=None, has_end=False)])
async def test_a_stream_that_breaks_before_any_text_is_tried_again(
    asking: Asking, broken: Cut | BadEvent | Say
) -> None:
    asking.server.queue(broken, Say(text="ok"))
    assert (await asking.ask()).text == "ok"
    assert asking.text == "ok"


@pytest.mark.parametrize(
    "broken",
    [Cut(text="half"), BadEvent(text="half"), Say(text="half", finish=None, has_end=False)],
)
async def test_a_stream_that_breaks_after_text_is_not_tried_again(
    asking: Asking, broken: Cut | BadEvent | Say
) -> None:
    asking.server.queue(broken, Say(text="other"))
    with pytest.raises(ModelError):
        await asking.ask()
    assert asking.text == "half"
    assert len(asking.server.requests) == 1


async def test_silence_ends_the_call(asking: Asking) -> None:
    asking.client.silence = 0.05
    asking.server.queue(Silent(text="Hm"), Say(text="other"))
    with pytest.raises(ModelError, match=r"^no data for 0\.05 s$"):
        await asking.ask()
    assert len(asking.server.requests) == 1


async def test_s11_a_refused_connection_is_told_without_key_or_address() -> None:
    async with FakeModelServer() as server:
        url = server.url
    client = ModelClient(
        dialect=OpenAIDialect(model="m", base_url=url), key=KEY, silence=20, sleep=_at_once
    )
    progress: list[Progress] = []
    with pytest.raises(ModelError, match=r"^connection: ConnectError") as caught:
        await client.ask(HELLO, progress.append)
    await client.close()
    assert len(progress) == 2
    told = str(caught.value) + repr(client)
    assert KEY not in told
    assert "127.0.0.1" not in str(caught.value)


async def test_an_address_that_is_none_is_a_plain_error() -> None:
    dialect = OpenAIDialect(model="m", base_url="http://host\x01")
    client = ModelClient(dialect=dialect, key=None, silence=20, sleep=_at_once)
    with pytest.raises(ModelError, match="base URL"):
        await client.ask(HELLO, lambda _: None)
    await client.close()


async def test_a_whole_body_instead_of_a_stream_is_a_reply() -> None:
    async with FakeModelServer() as server:
        server.queue(Say(text="whole", is_whole=True))
        client = ModelClient(
            dialect=OpenAIDialect(model="m", base_url=server.url), key=None, silence=20
        )
        reply = await client.ask(HELLO, lambda _: None)
        await client.close()
    assert reply.text == "whole"
    assert "authorization" not in server.requests[0].headers


async def test_what_utf8_cannot_hold_does_not_stop_a_request(asking: Asking) -> None:
    request = ModelRequest(system="s", messages=(UserMessage(text="a\ud83d"),))
    asking.server.queue(Say(text="ok"))
    assert (await asking.ask(request)).text == "ok"
    assert "\\ud83d" not in json.dumps(asking.server.requests[0].body)


async def _at_once(_: float) -> None:
    return
