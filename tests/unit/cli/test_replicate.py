"""`stele replicate`: its effects, output and exit codes."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import Result
from typer.testing import CliRunner

from stele.cli.app import app
from stele.cli.replication_ends import FileMemory
from stele.client import Schema
from stele.errors import InvalidRequest
from stele.replicate.dump_target import Carried
from stele.service.replication.documents import RegistryKind
from stele.testing import registry
from stele.testing.registry_box import RegistryBox


@pytest.fixture(scope="module")
def pair() -> Iterator[tuple[RegistryBox, RegistryBox]]:
    """Two registries on ports; the second one may send requests to this machine."""
    with (
        registry(port=0, public_url="http://a.example") as source,
        registry(port=0, public_url="http://b.example", outgoing_networks=("127.0.0.0/8",)) as target,
    ):
        yield source, target


def invoke(*words: str) -> Result:
    """Run the command."""
    return CliRunner().invoke(app, ["replicate", *words])


def test_run_and_diff(pair: tuple[RegistryBox, RegistryBox]) -> None:
    """`diff` shows what `run` does, and nothing afterwards; a conflict is reported and ends `run` with 1."""
    source, target = pair
    source.client.register("cli-x", Schema('"int"'))
    scope = ["--subjects", "cli-*", "--namespace", "west.${namespace}"]
    before = invoke("diff", source.url, target.url, *scope, "--output", "json")
    assert before.exit_code == 1
    (row,) = json.loads(before.stdout)["differences"]
    assert (row["what"], row["namespace"], row["subject"]) == ("register", "west", "cli-x")
    done = invoke("run", source.url, target.url, *scope)
    assert (done.exit_code, "1 registered" in done.stdout) == (0, True)
    assert invoke("diff", source.url, target.url, *scope).exit_code == 0
    for what, permanent in (("delete", False), ("remove (purged)", True)):
        source.client.delete_subject("cli-x", permanent=permanent)
        comparison = invoke("diff", source.url, target.url, *scope, "--output", "json")
        (row,) = json.loads(comparison.stdout)["differences"]
        assert (row["what"], row["namespace"], row["subject"], row["version"]) == (what, "west", "cli-x", 1)
    source.client.register("cli-y", Schema('"int"'))
    target.client.register("cli-y", Schema('"bytes"'))
    refused = invoke("run", source.url, target.url, "--subjects", "cli-*")
    assert refused.exit_code == 1
    assert "authority_differs" in refused.stderr


def test_a_server_is_told(pair: tuple[RegistryBox, RegistryBox]) -> None:
    """A replication of the server can be created, listed, shown, paused, resumed and deleted."""
    source, target = pair
    source.client.register("told-x", Schema('"int"'))
    to = ["--registry", target.url]
    creation = invoke("create", "told", "--pull", source.url, "--subjects", "told-*", "--other-user", "u:secret", *to)
    assert creation.exit_code == 0, creation.output
    assert "secret" not in creation.output
    until = time.monotonic() + 120
    while "told-x" not in target.client.subjects() and time.monotonic() < until:
        time.sleep(0.05)
    assert target.client.subjects(subject_prefix="told-") == ["told-x"]
    assert "told" in invoke("list", *to).stdout
    assert "pull from" in invoke("status", "told", *to).stdout
    assert "paused" in invoke("pause", "told", *to).stdout
    assert "running" in invoke("resume", "told", *to).stdout
    assert invoke("delete", "told", *to).exit_code == 0
    assert invoke("status", "told", *to).exit_code == 2


def test_a_polled_kind_is_run_compared_and_followed(pair: tuple[RegistryBox, RegistryBox]) -> None:
    """Run, diff, create and status support a polled kind of registry: the xRegistry API of the source."""
    source, target = pair
    address = f"{source.url}/xregistry"
    ends = ["--source-kind", "xregistry", "--subjects", "poll-*"]
    source.client.register("poll-x", Schema('"int"'))
    assert invoke("diff", address, target.url, *ends).exit_code == 1
    assert invoke("run", address, target.url, *ends).exit_code == 0
    assert invoke("diff", address, target.url, *ends).exit_code == 0
    to = ["--registry", target.url]
    words = ["--pull", address, "--kind", "xregistry", "--subjects", "poll-*", "--poll", "0.1"]
    assert invoke("create", "polled", *words, *to).exit_code == 0
    source.client.register("poll-y", Schema('"long"'))
    until = time.monotonic() + 120
    while "poll-y" not in target.client.subjects() and time.monotonic() < until:
        time.sleep(0.05)
    assert target.client.version("poll-y").text == '"long"'
    status = invoke("status", "polled", *to)
    assert (status.exit_code, "(xregistry)" in status.stdout) == (0, True)
    assert invoke("delete", "polled", *to).exit_code == 0


@pytest.mark.parametrize(
    "words",
    [
        ("create", "x"),
        ("create", "x", "--push", "http://a", "--kind", "apicurio"),
        ("run", "http://127.0.0.1:9", "http://127.0.0.1:9", "--source-kind", "stele", "--target-kind", "xregistry"),
        ("create", "x", "--pull", "http://a", "--push", "http://b"),
        ("create", "a b", "--pull", "http://a"),
        ("run", "http://127.0.0.1:9", "http://127.0.0.1:9", "--rename", "all"),
        ("run", "http://127.0.0.1:9", "kafka://b", "--source-kind", "confluent", "--rename", "x"),
        ("run", "http://127.0.0.1:9", "http://127.0.0.1:9", "--source-kind", "stele", "--target-kind", "cncf"),
    ],
)
def test_what_makes_no_sense(words: tuple[str, ...]) -> None:
    """Invalid arguments end with a sentence on standard error and exit code 2."""
    done = invoke(*words)
    assert done.exit_code == 2, done.output
    assert "error:" in done.stderr


def test_the_page_names_every_kind() -> None:
    """Each kind of registry has a row in the table of the documentation page."""
    page = (Path(__file__).parents[3] / "docs/how-to/replicate.md").read_text("utf-8")
    rows = re.findall(r"^\| `(\w+)` \| .+ \| .+ \|$", page, re.MULTILINE)
    assert set(RegistryKind) <= set(rows)


def test_the_state_file(tmp_path: Path) -> None:
    """The last line about a version counts; a file of another format is rejected with its line."""
    memory = FileMemory(tmp_path / "state")
    assert memory.load() == {}
    row = Carried("s", 1, "d", "http://a", "http://a/1")
    memory.save({"u": row})
    memory.save({"u": Carried("s", 1, "d", "http://a", "http://a/1", is_gone=True)})
    assert FileMemory(tmp_path / "state").load()["u"].is_gone
    (tmp_path / "other").write_text("hello\n")
    with pytest.raises(InvalidRequest, match="line 1"):
        FileMemory(tmp_path / "other").load()
