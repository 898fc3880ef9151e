"""`stele import` and `stele export` as a user runs them, against real servers and stores, with killed processes."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import httpx
import pytest
from tests.support.server_process import serving
from tests.system.migration.boxes import box
from tests.system.migration.crawl import crawl, differences
from tests.system.migration.histories import EVERYTHING, Step, play, register
from typer.testing import CliRunner

from stele.cli.app import app
from stele.client import SchemaRegistryClient
from stele.migrate import registry_reader as reading
from stele.migrate import registry_writer

RUN = CliRunner()
KILLER = Path(__file__).with_name("kill_import.py")


class Source(NamedTuple):
    """A server with at least one of everything, its archive, its topic file and the file of its keys."""

    url: str
    http: httpx.Client
    archive: Path
    topic: Path
    keys: Path


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run commands in a folder of the test."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Source]:
    """Run the registry that is moved, export it, and yield both."""
    folder = tmp_path_factory.mktemp("source")
    with serving("--store", "memory:", folder=folder) as server, httpx.Client(base_url=server.url, timeout=60) as http:
        play(http, EVERYTHING)
        source = Source(server.url, http, folder / "a.gz", folder / "a.jsonl", folder / "keys.jsonl")
        options = ["--registry", server.url, "--level", "nobody"]
        assert stele("export", str(source.archive), *options).returncode == 0
        left = stele("export", "topic", str(source.topic), "--keys", str(source.keys), *options)
        assert (left.returncode, left.stderr.count(b"lost: ")) == (1, 2), left.stderr
        yield source


class CommandResult(NamedTuple):
    """Exit code and output of a command."""

    returncode: int
    stdout: bytes
    stderr: bytes


def stele(*words: str, standard_input: bytes | None = None) -> CommandResult:
    """Run the command in the present folder."""
    result = RUN.invoke(app, words, input=standard_input)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return CommandResult(result.exit_code, result.stdout_bytes, result.stderr_bytes)


def assert_same(source: Source, url: str) -> None:
    """Assert that a server answers every GET as the source does."""
    with httpx.Client(base_url=url, timeout=60) as http:
        assert differences(crawl(source.http, unlisted=["nobody"]), crawl(http, unlisted=["nobody"])) == []


def test_a_running_registry_is_copied_into_another(source: Source, tmp_path: Path) -> None:
    """Dry run, verification, import and a second import return the right exit codes and reports."""
    with serving("--store", "sqlite:///t.db", folder=tmp_path) as server:
        words = ["import", "confluent", "--from", source.url, "--registry", server.url]
        planned = stele(*words, "--dry-run", "-o", "json")
        assert planned.returncode == 0, planned.stderr
        assert json.loads(planned.stdout)["counts"] == {
            "register": 20,
            "reserve ids": 2,
            "config": 6,
            "mode": 4,
            "beside": 11,
        }
        before = stele(*words, "--verify")
        assert (before.returncode, b"0 of 20 versions exist" in before.stdout) == (1, True)
        done = stele(*words)
        assert (done.returncode, done.stdout) == (0, b"20 of 20 versions exist; no difference\n"), done.stderr
        assert_same(source, server.url)
        again = stele(*words, "--output", "json")
        notes = [
            "kmsProps of KEKs that may be secret are not shown: set them at the target",
            "exporter e: basic.auth.user.info is not shown: set it at the target",
        ]
        report = {"versions": 20, "same": 20, "counts": {}, "differences": [], "refused": [], "notes": notes}
        assert (again.returncode, json.loads(again.stdout)) == (0, report)


@pytest.mark.parametrize("steps", [9, 21, 24])
def test_a_killed_import_is_finished_by_the_next(source: Source, tmp_path: Path, steps: int) -> None:
    """An import that is killed at any step loses nothing, and the same import again adds the rest."""
    killed = subprocess.run(
        [sys.executable, str(KILLER), source.url, "sqlite:///t.db", str(steps)],
        cwd=tmp_path,
        capture_output=True,
        timeout=300,
        check=False,
    )
    assert killed.returncode == -9, killed.stderr
    with SchemaRegistryClient(source.url) as client:
        dump = reading.read_registry(client, levels=["nobody"])
    with box(f"sqlite:///{tmp_path / 't.db'}") as there:
        half = registry_writer.plan_import(dump, there.client)
        assert min(steps, 20) <= half.same <= 20
        assert half.differences
        assert registry_writer.apply_import(dump, there.client) == []
        assert registry_writer.plan_import(dump, there.client).differences == ()
        assert differences(crawl(source.http, unlisted=["nobody"]), crawl(there.http, unlisted=["nobody"])) == []


def test_topics_by_files_and_pipes(source: Source, tmp_path: Path) -> None:
    """An exported topic can be imported; `-` is standard input or output; equal registries have equal topics."""
    written = stele("export", "topic", "-", "--registry", source.url, "--level", "nobody")
    assert (written.returncode, written.stdout) == (1, source.topic.read_bytes()), written.stderr
    assert b"lost: 6 keys need a separate topic" in written.stderr
    store = ["--store", "sqlite:///t.db"]
    keys = ["--keys", str(source.keys)]
    read = stele("import", "topic", "-", *keys, *store, standard_input=written.stdout)
    assert read.returncode == 0, read.stderr
    assert stele("export", "topic", "b.jsonl", "--keys", "k.jsonl", *store, "--level", "nobody").returncode == 0
    assert (tmp_path / "b.jsonl").read_bytes() == written.stdout
    assert (tmp_path / "k.jsonl").read_bytes() == source.keys.read_bytes()


def test_archives_of_stores(source: Source, tmp_path: Path) -> None:
    """An archive is copied record by record into an empty store, and from there into another. `--verify` finds it."""
    there, more = ["--store", "sqlite:///t.db"], ["--store", "sqlite:///u.db"]
    planned = json.loads(stele("import", str(source.archive), *there, "--dry-run", "-o", "json").stdout)
    assert planned["missing"] == planned["records"] > 20
    assert stele("import", str(source.archive), *there, "--verify").returncode == 2
    assert not (tmp_path / "t.db").exists()
    done = stele("import", "-", *there, "-o", "json", standard_input=source.archive.read_bytes())
    assert (done.returncode, json.loads(done.stdout)) == (0, {**planned, "missing": 0}), done.stderr
    assert stele("import", str(source.archive), *there, "--verify").returncode == 0
    with box(f"sqlite:///{tmp_path / 't.db'}") as registry:
        assert differences(crawl(source.http, unlisted=["nobody"]), crawl(registry.http, unlisted=["nobody"])) == []
    piped = stele("export", "-", *there)
    assert (piped.returncode, piped.stdout) == (0, source.archive.read_bytes())
    assert stele("export", "b.zst", *there).returncode == 0
    assert stele("import", "b.zst", *more).returncode == 0
    assert stele("export", "c.zst", *more).returncode == 0
    assert (tmp_path / "b.zst").read_bytes() == (tmp_path / "c.zst").read_bytes()


def test_archives_into_registries_with_a_history(source: Source, tmp_path: Path) -> None:
    """A store with its own history is refused without `--merge`. A running registry gets what its API can carry."""
    store = ["--store", "sqlite:///t.db"]
    with box(f"sqlite:///{tmp_path / 't.db'}") as registry:
        play(registry.http, [register(":.mine:own", '"string"')])
    refused = stele("import", str(source.archive), *store)
    assert (refused.returncode, b"add --merge" in refused.stderr) == (2, True)
    merged = stele("import", str(source.archive), *store, "--merge")
    assert merged.returncode == 0, merged.stderr
    with serving(*store, folder=tmp_path) as server:
        assert stele("import", str(source.archive), "--registry", server.url, "--verify").returncode == 0
        with httpx.Client(base_url=server.url, timeout=60) as http:
            assert http.get("/subjects/:.mine:own/versions").json() == [1]
            assert http.get("/config/nobody").json()["alias"] == "orders"


def test_poorer_formats_say_what_they_lose(source: Source, tmp_path: Path) -> None:
    """An export that omits something writes the file, lists the losses, and exits with 1."""
    words = ["export", "topic", "k.jsonl", "--flavour", "karapace", "--registry", source.url, "-o", "json"]
    done = stele(*words)
    assert done.returncode == 1
    assert any("modes" in loss for loss in json.loads(done.stdout)["losses"])
    assert (tmp_path / "k.jsonl").read_bytes().count(b"\n") > 5


def test_errors_and_contradictions(source: Source, tmp_path: Path) -> None:
    """Unreadable input exits with 2 and an error, contradictions with 1 and a report; neither changes anything."""
    store = ["--store", "sqlite:///t.db"]
    (tmp_path / "bad.jsonl").write_bytes(b'{"keytype":"NOOP","magic":0}\tnull\nnonsense\n')
    for words, why in (
        (["import", "topic", "bad.jsonl", *store], b"line 2"),
        (["import", "topic", *store], b"give either a dump file, or a broker"),
        (["import", "absent.gz", *store], b"absent.gz: No such file"),
        (["import", "bad.jsonl", *store], b"neither gzip nor zstd"),
        (["import", "confluent", "--from", "ftp://x", *store], b"not the address of a registry"),
        (["export", "x.gz", "--registry", "http://127.0.0.1:9"], b"no registry answered"),
    ):
        done = stele(*words)
        assert done.returncode == 2, (words, done.stderr)
        assert why in b" ".join(done.stderr.split()), (words, done.stderr)
        assert b"Traceback" not in done.stderr
    assert not (tmp_path / "x.gz").exists()
    with serving(*store, folder=tmp_path) as server:
        with httpx.Client(base_url=server.url, timeout=60) as http:
            play(http, [register("orders", '"string"'), Step("PUT", "/mode", {"mode": "READONLY"})])
        done = stele("import", str(source.archive), "--registry", server.url, "-o", "json")
        report = json.loads(done.stdout)
        assert (done.returncode, report["counts"]["number taken"]) == (1, 1)
        assert b"nothing was changed" in done.stderr
        assert httpx.get(f"{server.url}/mode", timeout=60).json() == {"mode": "READONLY"}
