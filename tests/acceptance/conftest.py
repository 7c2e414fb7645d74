"""A world for each story, and the fakes that stand around it."""

import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.acceptance.harness import World, model_settings, telegram_settings
from tests.fakes.bot_api import BotApi
from tests.fakes.model_server import FakeModelServer


@pytest.fixture
def runtime(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A short path: sockets may end up in it."""
    folder = Path(tempfile.mkdtemp(prefix="gw"))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(folder))
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def world(tmp_path: Path, runtime: Path) -> Iterator[World]:
    """A gateway with nothing configured."""
    world = World(folder=tmp_path, runtime=runtime)
    yield world
    world.close()


@pytest.fixture
async def api() -> AsyncIterator[BotApi]:
    async with BotApi() as server:
        yield server


@pytest.fixture
async def model() -> AsyncIterator[FakeModelServer]:
    async with FakeModelServer() as server:
        yield server


@pytest.fixture
def connected(world: World, api: BotApi, model: FakeModelServer) -> World:
    """A gateway with Telegram and a model behind it."""
    world.settings |= telegram_settings(api) | model_settings(model)
    return world


@pytest.fixture
def offline(world: World, api: BotApi) -> World:
    """A gateway with Telegram and no model."""
    world.settings |= telegram_settings(api)
    return world
