"""Which URL opens which log, and the errors for wrong URLs."""

import os
from pathlib import Path

import pytest

from stele.errors import InvalidRequest
from stele.storage import open_log
from stele.storage.chained_log import ChainedLog
from stele.storage.drivers import list_schemes
from stele.storage.memory import MemoryLog
from stele.storage.sqlite import SqliteLog


@pytest.mark.parametrize("url", ["memory:", "memory://", "MEMORY:"])
async def test_memory(url: str) -> None:
    """Each memory: URL opens a new, empty log of its own."""
    one, two = await open_log(url), await open_log(url)
    assert isinstance(one, ChainedLog)
    assert isinstance(one.driver, MemoryLog)
    assert await one.append(0, [b"a"])
    assert await two.head() == 0


async def test_relative_sqlite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three slashes name a file below the current working directory; missing folders are created."""
    monkeypatch.chdir(tmp_path)
    log = await open_log("sqlite:///data/deep/my.db")
    monkeypatch.chdir("/")
    assert isinstance(log, ChainedLog)
    assert isinstance(log.driver, SqliteLog)
    assert await log.append(0, [b"a"])
    async with log.turn():
        assert (tmp_path / "data/deep/my.db").is_file()
    await log.close()
    assert sorted(path.name for path in (tmp_path / "data/deep").iterdir()) == ["my.db", "my.db.lock", "my.db.mark"]


async def test_absolute_sqlite(tmp_path: Path) -> None:
    """Four slashes name a file by its absolute path; percent escapes stand for any character."""
    log = await open_log(f"sqlite:///{tmp_path}/odd%20%3F%23%25name.db")
    await log.close()
    assert (tmp_path / "odd ?#%name.db").is_file()


@pytest.mark.parametrize(
    "url",
    [
        "sqlite:",
        "sqlite://",
        "sqlite:///",
        "sqlite:/abs.db",
        "sqlite://host/file.db",
        "sqlite:///folder/",
        "sqlite:///a.db?mode=ro",
        "sqlite:///a.db#x",
        "sqlite:///a%00.db",
        "sqlite:///:memory:",
        "memory:name",
        "memory://host",
    ],
)
async def test_malformed(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error for a malformed URL shows the right form, and no file is created."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidRequest, match=r"memory:|sqlite:///"):
        await open_log(url)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    "url", ["etcd://user:sesame@host/x", "file:///a.db", "", "plain.db", "://", "sqlite+x:///a.db"]
)
async def test_unknown_scheme(url: str) -> None:
    """The error for an unknown scheme lists the known ones, without the password."""
    with pytest.raises(InvalidRequest, match=r"memory:, .*sqlite:") as caught:
        await open_log(url)
    assert "sesame" not in str(caught.value)
    assert all(scheme in str(caught.value) for scheme in list_schemes())
