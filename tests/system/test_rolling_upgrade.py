"""Nodes of two releases on one log: the older one stops at unknown records and loses nothing."""

from __future__ import annotations

import asyncio
import json
import subprocess
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.support.server_process import call, run_command, serving

from stele.core.events import RECORD_FORMAT
from stele.core.ports import Log
from stele.storage import open_log

_ROOT = Path(__file__).parents[2]
_OLD = "dcf7d202"
"""Commit whose tree is the old release. Since this commit, a release stops at records of a newer one."""
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
"""Records of a newer release with the error of this one: a new event, and a member that must not be ignored."""


async def _append(log: Log, record: Any) -> None:
    async with log.turn():
        assert await log.append(await log.head(), [msgspec.msgpack.encode(record)])


def _register(url: str, name: str) -> int:
    return call(f"{url}/subjects/s/versions", "POST", {"schema": json.dumps({"type": "string", "name": name})}).status


@pytest.fixture(scope="module")
def old_release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the sources of an old release."""
    archive = subprocess.run(["git", "-C", _ROOT, "archive", _OLD, "src"], capture_output=True, check=False)
    if archive.returncode:
        pytest.skip("the history of the repository is not here")
    folder = tmp_path_factory.mktemp("old")
    subprocess.run(["tar", "-x", "-C", folder], input=archive.stdout, check=True)
    return folder / "src"


def _write_everything(url: str, name: str) -> None:
    """Register versions with a reference, set a policy and a mode, and delete softly and permanently."""
    subject = f"{url}/subjects/{name}"
    for number in range(3):
        schema = {"type": "record", "name": f"R_{name}", "fields": [], "doc": str(number)}
        assert call(f"{subject}/versions", "POST", {"schema": json.dumps(schema)}).status == 200
    fields = [{"name": "r", "type": f"R_{name}"}]
    user = {"type": "record", "name": f"User_{name}", "fields": fields}
    references = [{"name": f"R_{name}", "subject": name, "version": 3}]
    body = {"schema": json.dumps(user), "references": references}
    assert call(f"{url}/subjects/{name}-user/versions", "POST", body).status == 200
    assert call(f"{url}/config/{name}", "PUT", {"compatibility": "FULL"}).status == 200
    assert call(f"{url}/mode/{name}-user", "PUT", {"mode": "READONLY"}).status == 200
    assert call(f"{subject}/versions/1", "DELETE").status == 200
    assert call(f"{subject}/versions/2", "DELETE").status == 200
    assert call(f"{subject}/versions/2?permanent=true", "DELETE").status == 200


def _read_everything(url: str) -> dict[str, Any]:
    paths = ["/subjects", "/subjects?deleted=true", "/contexts", "/schemas?deleted=true"]
    for name in ("old", "new", "again", "late"):
        paths += [f"/subjects/{name}/versions?deleted=true", f"/subjects/{name}/versions/3/referencedby"]
        paths += [f"/config/{name}", f"/mode/{name}-user", f"/subjects/{name}-user/versions/latest"]
    return {path: call(url + path) for path in paths}


def test_an_old_and_a_new_node_side_by_side(old_release: Path, tmp_path: Path) -> None:
    """Two releases write to one store and read each other's records. The answers stay the same without the old node."""
    store = f"sqlite:///{tmp_path}/log.db"
    old_path = {"PYTHONPATH": str(old_release)}
    with serving("--store", store, folder=tmp_path, environ=old_path) as old:
        _write_everything(old.url, "old")
        with serving("--store", store, folder=tmp_path) as new:
            _write_everything(new.url, "new")
            _write_everything(old.url, "again")
            answers = _read_everything(new.url)
            assert answers["/subjects"].body == ["again", "again-user", "new", "new-user", "old", "old-user"]
            assert _read_everything(old.url) == answers
    with serving("--store", store, folder=tmp_path) as new:
        assert _read_everything(new.url) == answers
    with serving("--store", store, folder=tmp_path, environ=old_path) as old:
        assert _read_everything(old.url) == answers, "a rollback"
        _write_everything(old.url, "late")


@pytest.mark.parametrize("kind", _NEWER)
async def test_an_older_release_stops_at_a_record_of_a_newer_one(kind: str, tmp_path: Path) -> None:
    """The older node is not ready, refuses writes with the reason, does not start again, and removes no record."""
    record, reason = _NEWER[kind]
    store = f"sqlite:///{tmp_path}/log.db"
    with serving("--store", store, folder=tmp_path) as old:
        assert _register(old.url, "before") == 200
        log = await open_log(store)
        await _append(log, record)
        head = await log.head()
        refused = f"Record {head} of the log was written by a newer release: {reason}; upgrade this node"
        assert _register(old.url, "after") == 503
        answer = call(f"{old.url}/subjects")
        assert (answer.status, answer.body) == (503, {"error_code": 503, "message": refused})
        until = time.monotonic() + 120
        while (answer := call(f"{old.url}/health/ready")).status == 200:
            assert time.monotonic() < until
            await asyncio.sleep(0.05)
        assert answer.body["reason"] == refused
        assert call(f"{old.url}/health/live").status == 200
    for arguments, code in ((["serve", "--port", "0"], 2), (["log", "verify"], 2), (["log", "repair"], 2)):
        done = run_command(*arguments, "--store", store, folder=tmp_path, environ={"COLUMNS": "500"})
        assert done.returncode == code, done.stderr
        assert reason in done.stderr
        assert "Traceback" not in done.stderr
    assert await log.head() == head
    assert [entry.seq for entry in await log.tail(0, 100)] == list(range(1, head + 1))
    await log.close()


async def test_nodes_of_this_release_write_the_oldest_format(tmp_path: Path) -> None:
    """Records name no format, so that nodes of the previous release can read them."""
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
