"""Nodes whose database server fails: a standby takes over, the server stops, or its disk is full."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest
from tests.support.postgres import PostgresServer, postgres, standby_of
from tests.support.server_process import Answer, call, serving

pytestmark = pytest.mark.servers

_ROOM = 24 << 20  # bytes


@pytest.fixture
def primary() -> Iterator[PostgresServer]:
    """Run a server that standbys can follow."""
    with postgres("packaged") as server:
        yield server


def _register(url: str, number: int, size: int = 0) -> Answer:
    schema = {"type": "enum", "name": "E", "symbols": ["A"], "doc": f"{number} {os.urandom(size // 2).hex()}"}
    return call(f"{url}/subjects/s/versions", "POST", {"schema": json.dumps(schema)})


def _until(is_true: Callable[[], bool], seconds: float = 120) -> None:
    deadline = time.monotonic() + seconds
    while not is_true():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_standby_takes_over(primary: PostgresServer, tmp_path: Path) -> None:
    """After a synchronous standby is promoted, nodes continue without a restart and have every acknowledged version."""
    database = primary.create_database()
    with standby_of(primary) as standby:
        primary.execute("ALTER SYSTEM SET synchronous_standby_names = '*'")
        primary.execute("SELECT pg_reload_conf()")
        _until(lambda: primary.execute("SELECT sync_state FROM pg_stat_replication") == [("sync",)])
        hosts = f"127.0.0.1:{standby.port},127.0.0.1:{primary.port}"
        store = f"postgresql://admin:{primary.password}@{hosts}/{database}?target_session_attrs=read-write"
        places = [tmp_path / name for name in "ab"]
        for place in places:
            place.mkdir()
        with serving("--store", store, folder=places[0]) as a, serving("--store", store, folder=places[1]) as b:
            ids = [_register((a, b)[number % 2].url, number).body["id"] for number in range(20)]
            primary.stop(signal.SIGQUIT)
            assert _register(a.url, 20).body["error_code"] == 50001
            standby.execute("SELECT pg_promote()")
            _until(lambda: _register(a.url, 20).status == 200)
            _until(lambda: _register(b.url, 21).status == 200)
            for node in (a, b):
                stored_ids = [call(f"{node.url}/subjects/s/versions/{n}").body["id"] for n in range(1, 23)]
                assert stored_ids[:20] == ids
                assert len(set(stored_ids)) == 22
                _until(lambda url=node.url: call(f"{url}/health/ready").status == 200)


def test_reads_while_the_server_is_stopped(primary: PostgresServer, tmp_path: Path) -> None:
    """Without the server, reads of every dialect succeed or get 503 with `Retry-After`. They recover with it."""
    with serving("--store", primary.url(primary.create_database()), folder=tmp_path) as node:
        first = _register(node.url, 0).body["id"]
        reads = (
            f"/schemas/ids/{first}",
            f"/schemas/ids/{first + 1}",
            "/subjects/s/versions/1",
            "/subjects/s/versions/latest",
            "/api/history/s",
            "/schemagroups",
            "/xregistry/schemagroups",
            "/openschema/subjects/s/versions/1/schema",
            "/pravega/v1/groups/s/schemas",
            "/schema-registry/v1/cluster/default/tenants",
            "/schema-repo/s/latest",
            "/ui/subjects/s",
        )
        before = [_ask(node.url + path)[0] for path in reads]
        assert before == [200, 404, *[200] * (len(reads) - 2)]
        primary.stop()
        for path, status in zip(reads, before, strict=True):
            answer, retry_after = _ask(node.url + path)
            assert answer == status or (answer == 503 and retry_after), path
        assert _ask(f"{node.url}/subjects/s/versions/latest")[0] == 503
        assert _ask(f"{node.url}/schemas/ids/{first + 1}")[0] == 503
        primary.start()
        _until(lambda: [_ask(node.url + path)[0] for path in reads] == before)


def _ask(url: str) -> tuple[int, str | None]:
    """Return status and `Retry-After` of an answer."""
    answer = httpx.get(url, timeout=30)
    return answer.status_code, answer.headers.get("retry-after")


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Mount a small file system and yield its folder."""
    folder = Path(f"/tmp/stele-disk-{os.getpid()}")
    folder.mkdir()
    options = f"size={_ROOM},mode=0777"
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", folder], capture_output=True, check=False)
    try:
        if mounted.returncode:
            pytest.skip("only root may mount a disk")
        yield folder
    finally:
        if not mounted.returncode:
            subprocess.run(["umount", "-l", folder], check=True)
        folder.rmdir()


def test_the_disk_of_the_database_is_full(small_disk: Path, tmp_path: Path) -> None:
    """With a full disk, writes are refused with the reason, the node is not ready, and reads continue.

    With free space, the node writes again without a restart.
    """
    with postgres("packaged") as server:
        place = small_disk / "tables"
        place.mkdir()
        if os.geteuid() == 0:
            shutil.chown(place, "nobody")
        server.execute(f"CREATE TABLESPACE small LOCATION '{place}'", "CREATE DATABASE crowded TABLESPACE small")
        with serving("--store", server.url("crowded"), folder=tmp_path) as node:
            first = _register(node.url, 0)
            assert first.status == 200
            ballast = small_disk / "ballast"
            with ballast.open("wb") as file:
                room = os.statvfs(small_disk)
                file.write(bytes(max(room.f_bavail * room.f_frsize - (128 << 10), 0)))
            written = [first.body["id"]]
            for number in range(1, 200):
                answer = _register(node.url, number, 20_000)
                if answer.status != 200:
                    break
                written.append(answer.body["id"])
            assert answer.body["error_code"] == 50001, answer
            assert "has no space left on its disk" in answer.body["message"]
            assert call(f"{node.url}/subjects/s/versions").body == list(range(1, len(written) + 1))
            ready = call(f"{node.url}/health/ready")
            assert ready.status == 503
            assert "has no space left on its disk" in ready.body["reason"]
            ballast.unlink()
            _until(lambda: _register(node.url, 1000, 20_000).status == 200)
            _until(lambda: call(f"{node.url}/health/ready").status == 200)
            assert call(f"{node.url}/subjects/s/versions").body == list(range(1, len(written) + 2))
