"""Errors that commands report before Spark starts: a registry that does not answer, unknown subjects."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.support.time_limit import limit_time
from typer.testing import CliRunner, Result

from stele.cli.app import app
from stele.client import Schema
from stele.testing.registry_box import RegistryBox

SCHEMA = '{"type": "record", "name": "Trip", "fields": [{"name": "id", "type": "int"}]}'
AWAY = "http://127.0.0.1:1"


@pytest.fixture(scope="module")
def registry() -> Iterator[str]:
    """The address of a registry with one subject."""
    with RegistryBox(port=0) as box:
        box.client.register("trips-value", Schema(SCHEMA))
        yield box.url


@pytest.fixture(autouse=True)
def _no_spark(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Run commands in a folder of their own, and fail if they start Spark."""

    def start(*_: object, **__: object) -> None:
        raise AssertionError("Spark was started")

    monkeypatch.setattr("stele.cli.spark_start.start_spark", start)
    monkeypatch.setattr("stele.cli.pipeline.start_spark", start)
    monkeypatch.setattr("stele.cli.dead_letters.start_spark", start)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("STELE_URL", raising=False)
    pq.write_table(pa.table({"value": pa.array([b"x"], pa.binary())}), "records.parquet")
    Path("trip.avsc").write_text(SCHEMA)
    Path("incoming").mkdir()


def write_pipeline(registry: str, subject: str) -> None:
    """Write a pipeline file."""
    Path("pipeline.toml").write_text(
        f'checkpoint = "state"\n[source]\npath = "incoming"\nsubject = "{subject}"\nregistry = "{registry}"\n'
        '[table]\ncatalog = "sqlite:///warehouse/catalog.db"\nwarehouse = "warehouse"\nname = "shop.trips"\n'
    )


def run(*words: str) -> Result:
    """Run a command and return its result."""
    return CliRunner().invoke(app, list(words))


def run_at_once(*words: str) -> Result:
    """Run a command that must not wait for a registry. It takes under a second on an idle machine."""
    with limit_time(10, time.monotonic):
        return run(*words)


DATA = ("--data", "records.parquet")
AUDITS = (
    ("census", *DATA),
    ("drift", *DATA),
    ("backtest", "trip.avsc", *DATA),
    ("reencode", *DATA, "--dry-run"),
)


@pytest.mark.parametrize("words", AUDITS, ids=lambda words: words[0])
@pytest.mark.parametrize("away", [False, True], ids=["unknown subject", "unreachable"])
def test_audits_ask_the_registry_first(words: tuple[str, ...], away: bool, registry: str) -> None:
    """An unknown subject or an unreachable registry ends an audit at once, with one sentence and exit code 2."""
    done = run_at_once(*words, "--subject", "trisp-value", "--registry", AWAY if away else registry)
    assert done.exit_code == 2, done.output
    assert ("127.0.0.1:1" if away else "trisp-value") in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("command", ["run", "plan", "replay"])
@pytest.mark.parametrize("away", [False, True], ids=["unknown subject", "unreachable"])
def test_pipelines_ask_the_registry_first(command: str, away: bool, registry: str) -> None:
    """A first run with a wrong address or subject ends at once, and leaves no checkpoint."""
    write_pipeline(AWAY if away else registry, "trisp-value")
    done = run_at_once("pipeline", command, "pipeline.toml")
    assert done.exit_code == 2, done.output
    assert ("127.0.0.1:1" if away else "trisp-value") in done.stderr
    assert not Path("state").exists()


def test_statements_ask_the_registry_first(registry: str) -> None:
    """The subject of each stream must exist in the registry of its own option, or else of the command line."""
    stream = "CREATE STREAM t WITH (path='incoming', subject='trisp-value'{}); SELECT 1"
    for message, words in (
        ("trisp-value", ("-e", stream.format(""), "--registry", registry)),
        ("trisp-value", ("-e", stream.format(f", registry='{registry}'"), "--registry", AWAY)),
        ("127.0.0.1:1", ("-e", stream.format(""), "--registry", AWAY)),
    ):
        done = run_at_once("sql", *words)
        assert done.exit_code == 2, done.output
        assert message in done.stderr


def test_statements_without_streams_ask_nobody() -> None:
    """Spark's own SQL needs no registry, and streams after a SET are not checked before Spark starts."""
    for text in ("SELECT 1", "SET stele.registry = 'http://x'; CREATE STREAM t WITH (path='incoming', subject='s')"):
        done = run("sql", "-e", text, "--registry", AWAY)
        assert "Spark was started" in str(done.exception)


def test_rows_are_shown_without_spark() -> None:
    """A missing table, a table that the pipeline lacks, and a snippet do not start Spark."""
    write_pipeline(AWAY, "trips-value")
    done = run("pipeline", "show", "pipeline.toml")
    assert (done.exit_code, "no table shop.trips yet" in done.stderr) == (2, True)
    done = run("pipeline", "show", "pipeline.toml", "shop.nope")
    assert (done.exit_code, "it has shop.trips, shop.trips_dead_letters" in done.stderr) == (2, True)
    done = run("pipeline", "show", "pipeline.toml", "--snippet", "pyiceberg")
    assert 'catalog.load_table("shop.trips")' in done.stdout
    assert not Path("warehouse").exists(), "looking makes nothing"


def test_rows_and_dead_letters_are_printed() -> None:
    """Rows are printed as a grid, or as JSON with whole values; dead letters come from their own table."""
    write_pipeline(AWAY, "trips-value")
    path = Path("pipeline.toml")
    path.write_text(path.read_text().replace('catalog = "sqlite:///warehouse/catalog.db"', 'kind = "parquet"'))
    for name, table in (
        ("trips", pa.table({"id": [1, 2, 3]})),
        ("trips_dead_letters", pa.table({"value": pa.array([b"bad"], pa.binary()), "code": ["NOT_FRAMED"]})),
    ):
        folder = Path("warehouse", "shop", name)
        folder.mkdir(parents=True)
        pq.write_table(table, folder / "stele-a-0.parquet")
    done = run("pipeline", "show", "pipeline.toml", "--limit", "2")
    assert done.stdout.splitlines() == ["id", "--", "1", "2", "(2 rows, and there are more)"]
    assert "--snippet pyiceberg|duckdb|trino" in done.stderr
    done = run("pipeline", "show", "pipeline.toml", "--dead-letters", "-o", "json")
    assert json.loads(done.stdout) == [{"value": "YmFk", "code": "NOT_FRAMED"}]
    assert done.stderr == ""
