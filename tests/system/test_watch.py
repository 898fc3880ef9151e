"""Followers of a real server: `stele watch`, streams and long polls. A stop does not wait for them."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import httpx
from tests.support.server_process import serving
from tests.support.time_limit import limit_time


def register(url: str, subject: str) -> None:
    """Register a schema."""
    httpx.post(f"{url}/subjects/{subject}/versions", json={"schema": '"string"'}, timeout=60).raise_for_status()


def test_watch_prints_changes(tmp_path: Path) -> None:
    """Changes are printed as they happen, also from a given position. A filter omits others."""
    with serving("--store", "memory:", folder=tmp_path) as server:
        register(server.url, "first")
        command = [sys.executable, "-m", "stele.cli", "watch", "--registry", server.url, "-o", "json"]
        options = ["--after", "0", "--subject", "/schemagroups/default/schemas/", "--count", "2"]
        with subprocess.Popen([*command, *options], stdout=subprocess.PIPE, text=True) as watching:
            assert watching.stdout is not None
            first = json.loads(watching.stdout.readline())
            register(server.url, "second")
            second = json.loads(watching.stdout.readline())
            assert watching.wait(180) == 0
        assert [row["subject"].split("/")[4] for row in (first, second)] == ["first", "second"]
        assert first["source"] == server.url


def test_stop_does_not_wait_for_followers(tmp_path: Path) -> None:
    """A stream and a long poll end at once when the server stops."""
    with serving("--store", "memory:", folder=tmp_path) as server:
        requests = [({"accept": "text/event-stream"}, "/api/events"), ({}, "/api/events?after=99&wait=40")]
        clients = [threading.Thread(target=follow, args=(server.url + path, headers)) for headers, path in requests]
        for client in clients:
            client.start()
        time.sleep(1)
        with limit_time(5, time.monotonic):
            server.process.send_signal(signal.SIGTERM)
            server.process.wait(120)
        for client in clients:
            client.join()


def follow(url: str, headers: dict[str, str]) -> None:
    """Read an answer to its end."""
    try:
        with httpx.stream("GET", url, headers=headers, timeout=60) as answer:
            answer.read()
    except httpx.HTTPError:
        pass
