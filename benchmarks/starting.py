"""How long a start takes, and the first turn after it."""

from collections.abc import Mapping
from pathlib import Path

from benchmarks.figures import (
    FIRST_CALL,
    FIRST_TURN_BUILTIN,
    FIRST_TURN_OFFLINE,
    Budget,
    Measurement,
    median_of,
)
from benchmarks.real_gateway import (
    TimedBotApi,
    first_call_at,
    gateway_running,
    make_database,
    until_idle,
)
from tests.fakes.model_script import Say, Script
from tests.fakes.model_server import FakeModelServer

_STARTS = 7
_FIRST_TURNS = 5
_CHAT = 7


async def measure(folder: Path, *, is_full: bool) -> list[Measurement]:
    """Time real starts with an existing database and warm caches."""
    async with TimedBotApi() as api, FakeModelServer(_script()) as model:
        await make_database(folder, api)
        builtin = {
            "HOST_KIND": "builtin",
            "MODEL_NAME": "fake",
            "MODEL_BASE_URL": f"{model.url}/v1",
        }
        return [
            await _time_starts(folder, api),
            await _time_first_turns(folder, api, FIRST_TURN_OFFLINE, {"HOST_KIND": "offline"}),
            await _time_first_turns(folder, api, FIRST_TURN_BUILTIN, builtin),
        ]


def _script() -> Script:
    script = Script()
    script.queue.extend(Say(text="Good morning.") for _ in range(_FIRST_TURNS))
    return script


async def _time_starts(folder: Path, api: TimedBotApi) -> Measurement:
    samples = []
    for _ in range(_STARTS):
        calls = len(api.calls)
        async with gateway_running(folder, api, [_CHAT], {"HOST_KIND": "offline"}) as running:
            samples.append(await first_call_at(api, since=calls) - running.spawned_at)
            await until_idle(folder, api)
    return median_of(FIRST_CALL, samples)


async def _time_first_turns(
    folder: Path, api: TimedBotApi, budget: Budget, settings: Mapping[str, str]
) -> Measurement:
    samples = []
    for _ in range(_FIRST_TURNS):
        async with gateway_running(folder, api, [_CHAT], settings):
            await until_idle(folder, api)
            answers = len(api.sent)
            update = api.write(_CHAT, "help")
            await api.until_sent(answers + 1)
            samples.append(api.calls_of("sendMessage")[answers].at - api.handed_out[update])
    return median_of(budget, samples)
