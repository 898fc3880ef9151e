"""`stele subject delete` tells what a recorded census saw, against a real server."""

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
    """A server."""
    with serving("--store", "memory:", folder=tmp_path_factory.mktemp("server")) as server:
        yield server.url


def delete_subject(url: str, *arguments: str) -> Result:
    """What the command says."""
    return CliRunner().invoke(app, ["subject", "delete", *arguments, "--registry", url])


def test_warned_and_refused(url: str) -> None:
    """Records that were seen are told of, and keep the version where that is asked for; others go in silence."""
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
    """A subject nobody has, and a version that is none, end with a sentence and nothing else."""
    for arguments, why in (
        (("nobody",), "not found"),
        (("nobody", "--if-unused"), "nobody"),
        (("a", "--version", "x"), "x"),
    ):
        done = delete_subject(url, *arguments)
        assert (done.exit_code, done.stdout) == (2, "")
        assert why in done.stderr
