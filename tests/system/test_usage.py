"""`stele subject delete` reports the usage that a census recorded, against a real server."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.support.server_process import serving
from typer.testing import CliRunner, Result

from stele.cli.app import app
from stele.client import CensusRecord, Schema, SchemaRegistryClient, VersionUsage

NOON = 1_795_305_600_000  # 2026-11-22


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Run a server and yield its URL."""
    with serving("--store", "memory:", folder=tmp_path_factory.mktemp("server")) as server:
        yield server.url


def delete_subject(url: str, *arguments: str) -> Result:
    """Run `stele subject delete` and return its result."""
    return CliRunner().invoke(app, ["subject", "delete", *arguments, "--registry", url])


def test_warned_and_refused(url: str) -> None:
    """Deleting a version in use prints a warning and fails with `--if-unused`; an unused one is deleted silently."""
    with SchemaRegistryClient(url) as client:
        first = client.register("a", Schema('"int"'))
        client.register("b", Schema('"long"'))
        usage = VersionUsage("a", first.version, first.id, 12_345, last_seen=NOON)
        client.record_usage("table shop.orders", CensusRecord(NOON, records=20_000, seen=(usage,)))
        assert [place.place for place in client.usage(subject="a")] == ["table shop.orders"]
        warning = "warning: 12,345 records with version 1 of a were seen in table shop.orders on 2026-11-22;"
        refusal = delete_subject(url, "a", "--version", "1", "--if-unused")
        assert (refusal.exit_code, client.versions("a")) == (1, [1])
        assert refusal.stderr.startswith(warning)
        assert "refused: a is in use" in refusal.stderr
        deletion = delete_subject(url, "a", "--version", "latest")
        assert (deletion.exit_code, deletion.stdout) == (
            0,
            "soft-deleted a version 1; --permanent removes what is soft-deleted for good\n",
        )
        assert deletion.stderr.startswith(warning)
        unconfirmed = delete_subject(url, "a", "--permanent")
        assert unconfirmed.exit_code == 2
        assert "add --yes" in unconfirmed.stderr
        for_good = delete_subject(url, "a", "--permanent", "--yes", "-o", "json")
        assert (for_good.exit_code, for_good.stdout.split()) == (0, ["[", "1", "]"])
        assert for_good.stderr.startswith(warning)
        unused = delete_subject(url, "b", "--if-unused")
        assert (unused.exit_code, unused.stderr) == (0, "")
        assert client.forget_usage("table shop.orders").records == 20_000
        assert client.usage() == []


def test_what_is_not_there(url: str) -> None:
    """An unknown subject and an invalid version exit with 2 and an error, without output."""
    for arguments, why in (
        (("nobody",), "not found"),
        (("nobody", "--if-unused"), "nobody"),
        (("a", "--version", "x"), "x"),
    ):
        done = delete_subject(url, *arguments)
        assert (done.exit_code, done.stdout) == (2, "")
        assert why in done.stderr
