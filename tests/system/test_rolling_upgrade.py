"""Nodes of two releases on one log: the older one stops where it meets what it does not know, and loses nothing."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.support.server_process import call, serving

from stele.core.events import RECORD_FORMAT
from stele.core.ports import Log
from stele.storage import open_log

_STAMP = {"uid": b"\0" * 16, "at": 1}
_NEWER = {
    "event": (
        {"stamp": _STAMP, "events": [{"event": "Archived", "name": "s"}]},
        "this release does not know the event 'Archived'",
    ),
    "member": (
        {"stamp": _STAMP, "events": [{"event": "SpaceCreated", "space": "a", "quota": 7}], "format": RECORD_FORMAT + 1},
        f"its format is {RECORD_FORMAT + 1}, and this release reads formats up to {RECORD_FORMAT}",
    ),
}
"""Records of a newer release, and what this one says: an event that is new, and a member that must not be left out."""


async def _append(log: Log, record: Any) -> None:
    async with log.turn():
        assert await log.append(await log.head(), [msgspec.msgpack.encode(record)])


def _register(url: str, name: str) -> int:
    return call(f"{url}/subjects/s/versions", "POST", {"schema": json.dumps({"type": "string", "name": name})}).status


def _run(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "stele.cli", *arguments],
        cwd=folder,
        env={**os.environ, "COLUMNS": "500"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize("kind", _NEWER)
async def test_an_older_release_stops_at_a_record_of_a_newer_one(kind: str, tmp_path: Path) -> None:
    """It is not ready, takes no write, says why in a sentence, does not start again, and repairs nothing away."""
    record, said = _NEWER[kind]
    store = f"sqlite:///{tmp_path}/log.db"
    with serving("--store", store, folder=tmp_path) as old:
        assert _register(old.url, "before") == 200
        log = await open_log(store)
        await _append(log, record)
        head = await log.head()
        assert _register(old.url, "after") == 500
        assert call(f"{old.url}/subjects").status == 500
        until = time.monotonic() + 30
        while (answer := call(f"{old.url}/health/ready")).status == 200:
            assert time.monotonic() < until
            await asyncio.sleep(0.05)
        assert answer.body["reason"] == f"Record {head} of the log is of a newer release: {said}; upgrade this node"
        assert call(f"{old.url}/health/live").status == 200
    for arguments, code in ((["serve", "--port", "0"], 2), (["log", "verify"], 2), (["log", "repair"], 2)):
        done = _run(*arguments, "--store", store, folder=tmp_path)
        assert done.returncode == code, done.stderr
        assert said in done.stderr
        assert "Traceback" not in done.stderr
    assert await log.head() == head
    assert [entry.seq for entry in await log.tail(0, 100)] == list(range(1, head + 1))
    await log.close()


async def test_nodes_of_this_release_write_the_oldest_format(tmp_path: Path) -> None:
    """Every record says no format, so a node of the release before reads all that this one writes beside it."""
    store = f"sqlite:///{tmp_path}/log.db"
    with serving("--store", store, folder=tmp_path) as server:
        assert _register(server.url, "a") == 200
        assert call(f"{server.url}/config/s", "PUT", {"compatibility": "NONE"}).status == 200
        assert call(f"{server.url}/subjects/s", "DELETE").status == 200
        assert call(f"{server.url}/subjects/s?permanent=true", "DELETE").status == 200
    log = await open_log(store)
    records = [msgspec.msgpack.decode(entry.record) for entry in await log.tail(0, 100)]
    assert len(records) >= 4
    assert all(set(record) == {"stamp", "events"} for record in records)
    await log.close()
