"""Where sockets go, and whose folder they may go into."""

from pathlib import Path

import pytest

from gateway.errors import SettingsError
from gateway.places import Places, runtime_directory


@pytest.fixture
def runtime(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    return tmp_path


def test_sockets_lie_in_the_data_directory(tmp_path: Path) -> None:
    assert Places(tmp_path).tool_socket == tmp_path / "tools.sock"


def test_a_path_too_long_for_a_socket_is_replaced_by_a_short_private_one(runtime: Path) -> None:
    deep = runtime / ("d" * 120)
    places = Places(deep)
    assert len(str(places.admin_socket)) < 104 + len(str(runtime))
    assert deep not in places.admin_socket.parents
    assert places.admin_socket != Places(runtime / ("e" * 120)).admin_socket
    places.make_private()
    assert places.admin_socket.parent.stat().st_mode & 0o777 == 0o700


def test_a_runtime_folder_that_others_can_enter_is_refused_with_its_fix(runtime: Path) -> None:
    runtime_directory().chmod(0o755)
    with pytest.raises(SettingsError, match="open to others; remove it or set another folder"):
        runtime_directory()


def test_a_link_in_place_of_the_runtime_folder_is_refused(runtime: Path) -> None:
    directory = runtime_directory()
    directory.rmdir()
    (runtime / "elsewhere").mkdir(mode=0o700)
    directory.symlink_to(runtime / "elsewhere")
    with pytest.raises(SettingsError, match="open to others"):
        runtime_directory()
