"""The audit trail of a real server with two workers keeps an intact chain when the server is killed."""

from __future__ import annotations

import json
import os
import signal
import threading
from pathlib import Path

from tests.support.server_process import call, serving

from stele.core.audit_chain import ChainEnd, read_entry, read_line, verify_lines

KEY = {"STELE_AUDIT_KEY": "env:AUDIT_KEY_TEXT", "AUDIT_KEY_TEXT": "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="}
SECRET = b"01234567890123456789012345678901"


def test_a_killed_server_goes_on_with_its_trail(tmp_path: Path) -> None:
    """After SIGKILL in the middle of writing, each acknowledged change is in the trail, whose chain is intact."""
    path = tmp_path / "audit.jsonl"
    flags = ("--store", f"sqlite:///{tmp_path}/log.db", "--workers", "2")
    environ = {**KEY, "STELE_AUDIT_FILE": str(path)}
    acknowledged: list[str] = []
    try:
        with serving(*flags, folder=tmp_path, environ=environ) as server:
            killing = threading.Timer(1.5, os.killpg, (server.process.pid, signal.SIGKILL))
            for number in range(100_000):
                body = {"schema": json.dumps({"type": "record", "name": f"R{number}", "fields": []})}
                if call(f"{server.url}/subjects/s{number}/versions", "POST", body).status == 200:
                    acknowledged.append(f"s{number}")
                    if len(acknowledged) == 1:  # the first answer of a slow machine may take longer than the timer
                        killing.start()
    except OSError:
        killing.join()
    with path.open("ab") as file:
        file.write(b'{"number":99,"pos')
    with serving(*flags, folder=tmp_path, environ=environ) as server:
        assert call(f"{server.url}/subjects/last/versions", "POST", {"schema": '"string"'}).status == 200
    lines = path.read_bytes().splitlines()
    chain_end = verify_lines(lines, SECRET)
    assert isinstance(chain_end, ChainEnd), chain_end
    entries = [read_entry(read_line(line)) for line in lines]
    assert "half_line_removed" in {entry.kind for entry in entries}
    registered = [entry.subject for entry in entries if entry.kind == "registered"]
    assert acknowledged
    assert set(registered) >= {*acknowledged, "last"}
    assert all(entry.address for entry in entries if entry.kind == "registered")
