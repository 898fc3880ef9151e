"""Secrets of a server: they are sealed when it gets a key, and a wrong key is reported."""

from __future__ import annotations

import re
import time
from pathlib import Path

import httpx
import pytest
from typer.testing import CliRunner

from stele.cli.app import app
from stele.errors import InvalidRequest
from stele.server.in_process import InProcessServer, InProcessTransport
from stele.server.settings import ServerSettings, load_settings
from stele.service.secrets import COLLECTION, HISTORY

KEKS = "/dek-registry/v1/keks"
KEK = {"name": "k", "kmsType": "local-kms", "kmsKeyId": "1", "kmsProps": {"secret": "open-sesame"}, "shared": True}


def read_files(folder: Path) -> bytes:
    """Return all bytes of a store's files."""
    return b"".join(path.read_bytes() for path in folder.glob("log.db*"))


def read_metric(client: httpx.Client, name: str) -> float:
    """Return the value of a gauge."""
    match = re.search(rf"^{name} (\S+)$", client.get("/metrics").text, re.MULTILINE)
    assert match is not None
    return float(match[1])


def has_sealed_past(server: InProcessServer) -> bool:
    """Return whether the server's log records that all secrets are sealed."""
    collection = server.registry.state.collections.get(COLLECTION)
    return collection is not None and HISTORY in collection.items


def test_a_server_seals_what_it_finds_and_tells_a_wrong_key(tmp_path: Path) -> None:
    """A plain secret is counted, is removed from the files once there is a key, and cannot be read with another key."""
    keys = []
    for name in ("one", "two"):
        result = CliRunner().invoke(app, ["secrets", "create-key", str(tmp_path / name)])
        assert result.exit_code == 0, result.output
        keys.append(f"file:{tmp_path / name}")
    store = f"sqlite:///{tmp_path}/log.db"
    for number, (sources, plain, locked) in enumerate(
        [((), 1, 0), (keys[:1], 0, 0), (keys[1:], 0, 1), (keys[::-1], 0, 0)]
    ):
        server = InProcessServer(ServerSettings(store=store, secrets_key=tuple(sources)))
        try:
            with httpx.Client(transport=InProcessTransport(server), base_url="http://stele") as client:
                if number == 0:
                    assert client.post(KEKS, json=KEK).status_code == 200
                    assert client.post(f"{KEKS}/k/deks", json={"subject": "s"}).status_code == 200
                deadline = time.monotonic() + 120
                while read_metric(client, "stele_plain_secrets") != plain and time.monotonic() < deadline:
                    time.sleep(0.01)
                assert read_metric(client, "stele_plain_secrets") == plain
                assert read_metric(client, "stele_locked_secrets") == locked
                answer = client.get(f"{KEKS}/k/deks/s")
                assert answer.status_code == (500 if locked else 200), answer.text
                assert ("sealed with the key" in answer.text) == bool(locked)
                assert ("keyMaterial" in answer.json()) == (not locked)
                client.post("/subjects/a/versions", json={"schema": '"string"'})
                # The documents are sealed before the records of the past are.
                while sources and not has_sealed_past(server) and time.monotonic() < deadline:
                    time.sleep(0.01)
                assert has_sealed_past(server) == bool(sources)
        finally:
            server.stop()
        assert (b"open-sesame" in read_files(tmp_path)) == (number == 0)


@pytest.mark.parametrize("source", ["key", "kms:aws-kms", "vault:x"])
def test_a_source_that_is_none_is_refused_at_the_start(source: str) -> None:
    """The error for an invalid key source names the setting."""
    with pytest.raises(InvalidRequest, match="secrets_key"):
        load_settings({"secrets_key": source})
