"""What many tests stand on: a real store in a temporary directory, and a clock that they move."""

import asyncio
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from hypothesis import settings

from gateway.store.database import Database
from gateway.store.opening import Layout, open_database
from tests.fakes.clock import ManualClock

# No test depends on speed, also not one example of a property.
settings.register_profile("gateway", deadline=None)
settings.load_profile("gateway")


@pytest.fixture(scope="session")
def migrated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database file with all its tables and nothing in them."""
    layout = Layout(directory=tmp_path_factory.mktemp("migrated"))
    asyncio.run(open_database(layout).close())
    return layout.database


@pytest.fixture
def layout(tmp_path: Path, migrated: Path) -> Layout:
    """Where the store of this test lives; an empty database is there."""
    made = Layout(directory=tmp_path)
    shutil.copyfile(migrated, made.database)
    return made


@pytest.fixture
async def store(layout: Layout) -> AsyncIterator[Database]:
    database = open_database(layout)
    yield database
    await database.close()


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()
