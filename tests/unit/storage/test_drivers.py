"""Storage drivers of other packages, and the errors for unusable ones."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from stele.errors import InvalidRequest
from stele.storage import drivers
from stele.storage.drivers import find_driver, find_mark, hide_credentials, list_schemes

ENTRY_POINTS = """
[stele.storage]
sqlite = thief:DRIVER
Absent = no_such_module:DRIVER
nameless = json:no_such_name
wrong = json:dumps
remote = remote_store:DRIVER
"""
REMOTE = """
from stele.storage.drivers import StorageDriver, hide_credentials
async def open_log(url): raise NotImplementedError
DRIVER = StorageDriver(open_log, hide_credentials)
"""


@pytest.fixture
def install_drivers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Install a distribution with drivers on the path."""
    info = tmp_path / "others-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: others\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(ENTRY_POINTS)
    (tmp_path / "remote_store.py").write_text(REMOTE)
    monkeypatch.syspath_prepend(str(tmp_path))
    for cached in (drivers._find_entry_points, drivers._load_driver):
        cached.cache_clear()
    yield tmp_path
    for cached in (drivers._find_entry_points, drivers._load_driver):
        cached.cache_clear()
    sys.modules.pop("remote_store", None)


@pytest.mark.usefixtures("install_drivers")
def test_packages_bring_drivers() -> None:
    """A scheme is found in any case; the schemes of Stele itself cannot be replaced."""
    assert {"memory", "sqlite", "remote", "absent", "nameless", "wrong"} <= set(list_schemes())
    assert find_driver("REMOTE://host/x").name_store("remote://me:sesame@host/x?token=y") == "remote://host/x"
    assert find_driver("sqlite:///x").open_files is not None


@pytest.mark.usefixtures("install_drivers")
@pytest.mark.parametrize("scheme", ["absent", "nameless", "wrong"])
def test_a_driver_that_cannot_be_loaded(scheme: str) -> None:
    """The error for a driver that cannot be loaded names the scheme and the entry point, not the rest of the URL."""
    with pytest.raises(
        InvalidRequest, match=f"the driver of '{scheme}:' .*(cannot be loaded|is not a StorageDriver)"
    ) as caught:
        find_driver(f"{scheme}://me:sesame@host")
    assert "sesame" not in str(caught.value)


@pytest.mark.usefixtures("install_drivers")
def test_where_marks_are(tmp_path: Path) -> None:
    """The mark is beside files, in the state directory for a store on a server, and absent for a temporary store."""
    assert find_mark("memory:", tmp_path) is None
    assert find_mark("remote://host/x", None) is None
    file_mark = find_mark("sqlite:////data/log.db", tmp_path)
    assert file_mark is not None
    assert (str(file_mark.path), file_mark.is_of_node) == ("/data/log.db.mark", False)
    one, same, other = (
        find_mark(url, tmp_path) for url in ("remote://me:a@host/x", "remote://host/x?b=c", "remote://host/y")
    )
    assert one is not None
    assert same is not None
    assert other is not None
    assert one.path == same.path != other.path
    assert one.is_of_node
    assert one.path.parent == tmp_path
    assert one.path.name.startswith("remote-host-x-")


@pytest.mark.parametrize(
    ("url", "bare_url"),
    [
        ("postgresql://me:p@ss@host:5432/db?password=x", "postgresql://host:5432/db"),
        ("sqlite:///a@b.db", "sqlite:///a@b.db"),
        ("memory:", "memory:"),
    ],
)
def test_credentials_are_hidden(url: str, bare_url: str) -> None:
    """A URL in messages has no credentials and no parameters."""
    assert hide_credentials(url) == bare_url
