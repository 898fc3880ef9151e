"""A store from another distribution, installed next to Stele: it is found by its scheme and keeps its data."""

from __future__ import annotations

import os
from pathlib import Path

from tests.support.server_process import call, serving

SCHEMA = {"schema": '"string"'}
MODULE = """
from stele.storage.drivers import StorageDriver
from stele.storage.sqlite import SqliteLog

async def open_log(url):
    return await SqliteLog.open(url.removeprefix("thirdparty:") + "/kept.db")

DRIVER = StorageDriver(open_log, name_store=lambda url: "at a third party")
"""


def test_a_server_runs_on_it(tmp_path: Path) -> None:
    """Registered schemas survive a restart, and the node keeps the mark of the log in its state directory."""
    info = tmp_path / "site" / "third_party-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: third-party\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[stele.storage]\nthirdparty = third_party:DRIVER\n")
    (tmp_path / "site" / "third_party.py").write_text(MODULE)
    environ = {**os.environ, "PYTHONPATH": str(tmp_path / "site")}
    flags = ("--store", f"thirdparty:{tmp_path}", "--state-dir", "state")
    with serving(*flags, folder=tmp_path, environ=environ) as server:
        assert call(f"{server.url}/subjects/a/versions", "POST", SCHEMA).body["id"] == 1
    with serving(*flags, folder=tmp_path, environ=environ) as server:
        assert call(f"{server.url}/subjects/a/versions/1").body["id"] == 1
    assert [path.name.split("-")[0] for path in (tmp_path / "state").glob("*.mark")] == ["at"]
