"""`stele pipeline` from the first file to a replay, on one pipeline of files into Iceberg."""

from __future__ import annotations

import csv
import io
import json
import re
from base64 import b64decode
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.spark.local_registry import LocalRegistry
from tests.spark.orders import SUBJECT, V1, V2, V3, drop, order
from typer.testing import CliRunner, Result

from stele.cli.app import app
from stele.spark.pipeline import load_config, run_pipeline
from stele.spark.pipeline.status import is_running

pytestmark = pytest.mark.usefixtures("spark")
"""Commands use the session that exists."""


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run commands in a folder of their own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("STELE_URL", raising=False)


def run_command(*words: str, code: int = 0) -> Result:
    """Run a command and return its result."""
    done = CliRunner().invoke(app, ["pipeline", *words], env={"COLUMNS": "200"})
    assert done.exit_code == code, f"{done.output}\n{done.exception!r}"
    return done


def begin_pipeline(folder: Path, registry: LocalRegistry) -> str:
    """Write a pipeline file for orders in files with `init`, and return its name."""
    (folder / "incoming").mkdir()
    options = ["--path", "incoming", "--subject", SUBJECT, "--registry", registry.url, "--table", "shop.orders"]
    assert run_command("init", "deep/pipeline.toml", *options).stdout == "deep/pipeline.toml\n"
    return "deep/pipeline.toml"


def test_from_the_first_file_to_a_replay(registry: LocalRegistry, tmp_path: Path, spark: SparkSession) -> None:
    """Plan, run, status, letters, replay and report have consistent figures for thirteen records."""
    registry.add(SUBJECT, V1)
    file = begin_pipeline(tmp_path, registry)
    frames = [order(1, 1, number) for number in range(10)]
    drop(tmp_path / "incoming", "a.parquet", [*frames, order(2, 2, 10), order(2, 2, 11), b"junk", None])

    assert "no batch has finished yet" in run_command("status", file).stdout
    planned = run_command("plan", file).stdout
    assert "shop.orders, for version 1 of orders-value:" in planned
    assert "create the table: struct<id:int,place:struct<city:string>" in planned
    assert not (tmp_path / "deep" / "state").exists(), "a plan touches nothing"

    ran = run_command("run", file)
    assert re.search(
        r"batch 0: 10 rows \(id 1: 10\), 3 dead letters, orders-value v1, [\d.]+ s, [\d,.]+ records/s", ran.stderr
    )
    assert "1 batch, 10 rows, 3 dead letters, 1 tombstone; versions used: orders-value 1" in ran.stdout
    assert "shop.orders: table created" in ran.stdout
    assert "  shop.orders: table created" in ran.stderr.splitlines()

    status = json.loads(run_command("status", file, "-o", "json").stdout)
    assert (status["running"], status["totals"]["rows"], status["totals"]["dead_letters"]) == (False, 10, 3)
    assert status["ids"] == [{"id": "1", "records": 10, "subject": SUBJECT, "version": 1}]
    assert status["reasons"]["unknown schema id 2"] == 2

    listed = json.loads(run_command("dead-letters", file, "-o", "json").stdout)
    assert sorted(letter["reason"].partition(":")[0] for letter in listed) == ["no frame", *["unknown schema id 2"] * 2]
    assert sorted(letter["code"] for letter in listed) == ["NOT_FRAMED", *["UNKNOWN_SCHEMA_ID"] * 2]
    assert b"junk" in [b64decode(letter["value_base64"]) for letter in listed]
    assert all(re.fullmatch(r"20\d\d-.*Z", letter["seen_at"]) for letter in listed)
    counted = list(csv.DictReader(io.StringIO(run_command("dead-letters", file, "--by", "reason", "-o", "csv").stdout)))
    assert [counted[0]["reason"], counted[0]["letters"]] == ["unknown schema id 2", "2"]
    text = run_command("dead-letters", file, "--where", "reason LIKE 'no frame%'").stdout
    assert "6a756e6b" in text
    assert "a.parquet" in text
    assert "unknown schema id" not in text
    assert "is not understood" in run_command("dead-letters", file, "--where", "no such thing", code=2).stderr

    registry.add(SUBJECT, V2)
    again = run_command("replay", file, code=1)
    assert "2 became rows, 1 are still dead letters" in again.stdout
    left = json.loads(run_command("dead-letters", file, "--all", "--where", "replayed_at IS NULL", "-o", "json").stdout)
    assert [b64decode(letter["value_base64"]) for letter in left] == [b"junk"]

    page = run_command("report", file, "--to", "pages/orders.html")
    assert page.stdout == ""
    html = (tmp_path / "pages" / "orders.html").read_text()
    assert "orders-value" in html
    assert "Newest batches" in html
    assert (html.count("<figure"), html.count('class="stele-picture"')) == (2, 2), "one batch is a table"
    assert "batch 0" in html, "the story line says which batch used the version"
    assert re.sub("<time.*?</time>", "", run_command("report", file).stdout) == re.sub("<time.*?</time>", "", html)


def test_tables_that_are_asked_for(registry: LocalRegistry, tmp_path: Path) -> None:
    """With changes = "ask" a run stops until the plan is applied. A clash is exit code 1 and changes nothing."""
    registry.add(SUBJECT, V1)
    file = begin_pipeline(tmp_path, registry)
    path = tmp_path / file
    path.write_text(path.read_text().replace('# changes = "ask"', 'changes = "ask"'))
    drop(tmp_path / "incoming", "a.parquet", [order(1, 1, number) for number in range(4)])
    assert "--apply" in run_command("run", file, code=2).stderr
    assert "create the table" in run_command("plan", file, "--apply").stdout
    assert "nothing to do" in run_command("status", file, "--plan").stdout
    assert "4 rows" in run_command("run", file).stdout

    registry.add(SUBJECT, V3 | {"fields": [{"name": "id", "type": "string"}, *V3["fields"][1:]]})
    clash = run_command("plan", file, "--apply", code=1)
    assert "clash: column id: it is int and cannot become string" in clash.stdout
    assert "add column note string" in clash.stdout
    assert "nothing is done" in clash.stderr
    changes = json.loads(run_command("plan", file, "-o", "json", code=1).stdout)[0]["changes"]
    assert [changes[0]["kind"], changes[-1]["kind"]] == ["clash", "add"]


def test_metrics_of_a_run(registry: LocalRegistry, tmp_path: Path, spark: SparkSession) -> None:
    """A run writes the metrics file after every batch, and its status is running meanwhile."""
    registry.add(SUBJECT, V1)
    file = begin_pipeline(tmp_path, registry)
    with (tmp_path / file).open("a") as more:
        more.write('[metrics]\nfile = "metrics/orders.prom"\n')
    drop(tmp_path / "incoming", "a.parquet", [order(1, 1, 0), b"junk"])
    config = load_config(file)
    running_states = []
    run_pipeline(config, spark=spark, progress=lambda _: running_states.append(is_running(config.checkpoint)))
    assert running_states == [True]
    assert is_running(config.checkpoint) is False
    text = (tmp_path / "deep" / "metrics" / "orders.prom").read_text()
    assert re.search(r'stele_pipeline_rows_total\{pipeline=".*state/orders",table="shop.orders"\} 1.0', text)
    assert re.search(r'stele_pipeline_dead_letters_total\{kind="not_framed",.*\} 1.0', text)


def test_watching(registry: LocalRegistry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`--watch` prints the status repeatedly, one JSON document per line, until it is interrupted."""
    file = begin_pipeline(tmp_path, registry)
    pauses: list[float] = []

    def sleep(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr("stele.cli.pipeline.sleep", sleep)
    lines = run_command("status", file, "--watch", "2", "-o", "json").stdout.splitlines()
    assert [json.loads(line)["running"] for line in lines] == [False] * 3
    assert pauses == [2.0] * 3
    assert "exclude one another" in run_command("status", file, "--watch", "2", "--plan", code=2).stderr


def test_the_first_file(registry: LocalRegistry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The registry's answer about a subject is only a hint. Existing files are kept; wrong answers are refused."""
    registry.add(SUBJECT, V1)
    known = run_command("init", "--kafka", "b:1", "--topic", "orders", "--registry", registry.url)
    assert "orders-value: Avro, newest version 1" in known.stderr
    assert load_config("pipeline.toml").source.topics == ("orders",)
    assert "already exists" in run_command("init", "--path", "x", "--subject", "s", code=2).stderr
    unknown = run_command(
        "init", "--force", "--kafka", "b:1", "--topic", "x", "--registry", registry.url, "--kind", "delta"
    )
    assert "no such subject yet" in unknown.stderr
    away = run_command("init", "far.toml", "--path", "x", "--subject", "s", "--registry", "http://127.0.0.1:1")
    assert "does not answer now" in away.stderr
    assert "either the address" in run_command("init", "none.toml", code=2).stderr
    assert not (tmp_path / "none.toml").exists()


def test_questions_on_a_terminal(registry: LocalRegistry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command asks only for the missing answers."""
    monkeypatch.setattr("stele.cli.pipeline_init._is_interactive", lambda: True)
    answers = "kafka\nbroker:9092\norders, payments\nshop.orders\nparquet\n"
    done = CliRunner().invoke(app, ["pipeline", "init", "--registry", registry.url], input=answers)
    assert done.exit_code == 0, done.output
    config = load_config("pipeline.toml")
    assert [route.table for route in config.routes] == ["shop.orders", "shop.payments"]
    assert (config.source.bootstrap, config.table.kind) == ("broker:9092", "parquet")
    arguments = ["init", "more.toml", "--path", "in", "--registry", registry.url]
    done = CliRunner().invoke(app, ["pipeline", *arguments], input="orders-value\n\n\n")
    assert done.exit_code == 0, done.output
    config = load_config("more.toml")
    assert (config.source.subject, config.routes[0].table, config.table.kind) == (SUBJECT, "streams.orders", "iceberg")
    assert "Folder" not in done.output
    quiet = CliRunner().invoke(app, ["pipeline", *arguments, "--subject", "s", "--force"], input="")
    assert quiet.exit_code == 0, quiet.output
