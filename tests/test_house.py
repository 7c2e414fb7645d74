"""Holds the rules of the house: sizes, names, imports, and documents that match the code."""

import ast
import re
import sqlite3
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from enum import StrEnum
from importlib.util import find_spec
from pathlib import Path

import pytest
from sqlalchemy import CheckConstraint
from typer.core import TyperGroup
from typer.main import get_command

from gateway.domain.delivery import ChunkState, DeliveryState
from gateway.domain.job import JobState
from gateway.domain.turn import RunState, TurnState
from gateway.settings import Settings
from gateway.settings_reference import render_env_example, render_settings_table
from gateway.store.opening import Layout, open_database
from gateway.store.schema import metadata

ROOT = Path(__file__).parents[1]
SOURCES = sorted(
    path
    for package in ("gateway", "extensions")
    for path in (ROOT / package).rglob("*.py")
    if "__pycache__" not in path.parts
)
MOST_LINES = 400
MOST_FUNCTION_LINES = 50

# Nothing but data: their length is no measure of what a reader must hold in mind.
DATA = frozenset({"gateway/store/migrations/versions/0001_first.py"})

NO_NAMES = frozenset(
    {"util", "utils", "helper", "helpers", "manager", "managers", "processor", "processors"}
)

# Where an SDK may be imported: a module, or a package, of this name.
HOMES = {
    "telegram": "gateway/channels/telegram",
    "neonize": "gateway/channels/whatsapp",
    "acp": "gateway/hosts/acp",
    "mcp": "gateway/hosts/acp",
}

STATES = {
    "turns": TurnState,
    "runs": RunState,
    "jobs": JobState,
    "deliveries": DeliveryState,
    "chunks": ChunkState,
}
BY_TABLE = pytest.mark.parametrize(("table", "states"), STATES.items(), ids=STATES.keys())


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def words_of(name: str) -> set[str]:
    """The words of a name in camel or snake case, in lower case."""
    return {word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", name)}


def tracked_files() -> list[Path]:
    """What is, or is going to be, in the repository."""
    listing = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if listing.returncode:
        pytest.skip("this copy of the project is no git repository")
    paths = [ROOT / name for name in listing.stdout.split("\0") if name]
    return [path for path in paths if path.is_file()]


def tracked_texts() -> Iterator[tuple[str, str]]:
    for path in tracked_files():
        try:
            yield name_of(path), path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue


def lines_with(pattern: str, names: str = "") -> list[str]:
    """Where the pattern stands in tracked files whose name begins with one of `names`."""
    wanted = re.compile(pattern)
    starts = tuple(names.split())
    return [
        f"{name}:{number}: {line.strip()[:120]}"
        for name, text in tracked_texts()
        if not starts or name.startswith(starts)
        for number, line in enumerate(text.splitlines(), start=1)
        if wanted.search(line)
    ]


# ---- sizes and names -----------------------------------------------------------------------


def test_the_rules_look_at_real_code() -> None:
    assert len(SOURCES) > 10


def test_no_module_is_longer_than_a_person_can_hold() -> None:
    lengths = {name_of(path): len(path.read_text("utf-8").splitlines()) for path in SOURCES}
    too_long = {name: length for name, length in lengths.items() if length > MOST_LINES}
    assert too_long.keys() <= DATA, too_long


def test_no_function_is_longer_than_a_screen() -> None:
    too_long = [
        f"{name_of(path)}:{node.lineno} {node.name}"
        for path in SOURCES
        if name_of(path) not in DATA
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (node.end_lineno or node.lineno) - node.lineno >= MOST_FUNCTION_LINES
    ]
    assert too_long == []


def test_the_list_of_data_modules_names_only_what_is_there() -> None:
    assert {name_of(path) for path in SOURCES} >= DATA


def test_nothing_is_named_after_no_purpose() -> None:
    named = [(name_of(path), path.stem) for path in SOURCES]
    named += [
        (f"{name_of(path)}:{node.lineno}", node.name)
        for path in SOURCES
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    assert [(place, name) for place, name in named if words_of(name) & NO_NAMES] == []


def test_every_open_end_has_a_number() -> None:
    marks = "TO" + "DO|FIX" + "ME|XX" + "X"
    assert (
        lines_with(rf"\b({marks})\b(?!\s*\(?#\d)", "gateway/ extensions/ tests/ benchmarks/") == []
    )


# ---- imports -------------------------------------------------------------------------------


def imported_by(path: Path) -> Iterator[str]:
    """The top-level names of all that a module imports, wherever it does."""
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.partition(".")[0]


@pytest.mark.parametrize(("sdk", "home"), HOMES.items())
def test_an_sdk_is_imported_in_its_adapter_alone(sdk: str, home: str) -> None:
    at_home = re.compile(rf"{home}(/|\.py$)")
    strays = [name_of(path) for path in SOURCES if sdk in imported_by(path)]
    assert [name for name in strays if not at_home.match(name)] == []


def test_starting_the_command_loads_no_sdk() -> None:
    assert find_spec("gateway.cli") is not None, "gateway.cli is not there"
    code = "import sys, gateway.cli; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert set(done.stdout.split()) & {*HOMES, "alembic"} == set()


# ---- states --------------------------------------------------------------------------------


def values_of(states: type[StrEnum]) -> list[str]:
    return [state.value for state in states]


@BY_TABLE
def test_states_equal_the_check_of_their_table(table: str, states: type[StrEnum]) -> None:
    (check,) = (
        constraint
        for constraint in metadata.tables[table].constraints
        if isinstance(constraint, CheckConstraint) and constraint.name == f"ck_{table}_state"
    )
    assert re.findall(r"'(\w+)'", str(check.sqltext)) == values_of(states)


async def test_states_equal_the_checks_that_the_migrations_make(tmp_path: Path) -> None:
    layout = Layout(directory=tmp_path)
    await open_database(layout).close()
    connection = sqlite3.connect(layout.database)
    made = "\n".join(
        text for (text,) in connection.execute("SELECT sql FROM sqlite_master") if text
    )
    connection.close()
    for table, states in STATES.items():
        (check,) = re.findall(rf"ck_{table}_state\W+CHECK \((.*)\)", made)
        assert re.findall(r"'(\w+)'", check) == values_of(states)


@BY_TABLE
def test_states_equal_the_glossary(table: str, states: type[StrEnum]) -> None:
    pages = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8").splitlines()
    start = re.compile(rf"\|\s*`?{states.__name__}`?\s*\|")
    (row,) = (line for line in pages if start.match(line))
    assert re.findall(r"[a-z_]+", row.split("|")[2]) == values_of(states), table


# ---- documents -----------------------------------------------------------------------------


def documents() -> str:
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return "\n".join(page.read_text(encoding="utf-8") for page in pages)


def test_the_example_file_is_what_settings_say() -> None:
    assert (ROOT / ".env.example").read_text(encoding="utf-8") == render_env_example()


def test_the_settings_page_is_what_settings_say() -> None:
    written = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")
    assert written == render_settings_table()


def test_every_setting_is_documented() -> None:
    text = documents()
    assert [name for name in Settings.model_fields if f"`{name.upper()}`" not in text] == []


def test_every_command_is_documented() -> None:
    from gateway.cli import app

    command = get_command(app)
    assert isinstance(command, TyperGroup)
    text = documents()
    names = list(command.commands)
    assert names
    assert [name for name in names if f"gateway {name}" not in text] == []


# ---- the repository ------------------------------------------------------------------------


def test_no_path_of_one_machine_is_in_the_repository() -> None:
    places = "home|Users|root|work|workspace|builds"
    assert lines_with(rf"(?<![\w.~}}])/(?:{places})/\w") == []


def test_no_address_of_a_package_index_is_in_the_repository() -> None:
    options = r"(?<!emit-)\b(?:extra-)?(?:index-url|find-links|trusted-host)\b"
    index = r"https?://\S+/simple\b|pypi\.org|pythonhosted\.org|registry\.npmjs"
    files = "requirements pyproject.toml Makefile .ci gateway extensions benchmarks docs README"
    assert lines_with(f"{options}|{index}", files) == []


@pytest.mark.parametrize("pins", ["requirements.txt", "requirements-dev.txt"])
def test_every_dependency_is_pinned_with_hashes(pins: str) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = list(project["dependencies"])
    if "dev" in pins:
        wanted += project["optional-dependencies"]["dev"]
    blocks = re.split(r"\n(?=[a-z0-9])", (ROOT / pins).read_text(encoding="utf-8"))
    pinned = {block.partition("==")[0] for block in blocks if "--hash=sha256:" in block}
    names = {re.split(r"[<>=\[ ]", line, maxsplit=1)[0].lower() for line in wanted}
    assert names <= pinned, f"run make requirements: {names - pinned}"
