"""`stele lint`: what it prints, and its exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from stele.cli.app import app

RUN = CliRunner()
GOOD = {"type": "record", "name": "Order", "namespace": "shop", "doc": "An order.", "fields": []}
BAD = {**GOOD, "fields": [{"name": "note", "type": ["null", "string"], "doc": "A note."}]}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a good, a bad and a broken file, and one that refers to another."""
    field = {"name": "order", "type": "shop.Order", "doc": "The order."}
    texts = {
        "good.avsc": json.dumps(GOOD),
        "bad.avsc": json.dumps(BAD),
        "broken.json": "{",
        "uses.avsc": json.dumps({**GOOD, "name": "Uses", "fields": [field]}),
        "message.proto": 'syntax = "proto3"; package shop; message bad_name {}',
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def test_nothing_to_say(folder: Path) -> None:
    """A good file ends with 0."""
    done = RUN.invoke(app, ["lint", str(folder / "good.avsc")])
    assert (done.exit_code, done.stdout.count("nothing to report")) == (0, 1)


def test_findings(folder: Path) -> None:
    """Findings end with 1 and show rule, path, reason and fix, for several files of several formats."""
    done = RUN.invoke(app, ["lint", *(str(folder / name) for name in ("good.avsc", "bad.avsc", "message.proto"))])
    assert done.exit_code == 1
    assert "NULLABLE_DEFAULT at /fields/0" in done.stdout
    assert "NAMING at shop.bad_name" in done.stdout
    assert "fix: Call it BadName." in done.stdout
    assert "bad.avsc: 1 finding\n" in done.stdout


def test_a_broken_file_hides_no_other(folder: Path) -> None:
    """A file that is no schema ends with 2, and the other files are still linted."""
    done = RUN.invoke(app, ["lint", str(folder / "broken.json"), str(folder / "bad.avsc")])
    assert done.exit_code == 2
    assert "NULLABLE_DEFAULT" in done.stdout
    assert "broken.json:1:2: MALFORMED_SCHEMA" in done.stdout


def test_choosing_rules(folder: Path) -> None:
    """--rule selects rules, --ignore leaves rules out."""
    bad = str(folder / "bad.avsc")
    assert RUN.invoke(app, ["lint", bad, "--rule", "NAMING"]).exit_code == 0
    assert RUN.invoke(app, ["lint", bad, "--rule", "NULLABLE_DEFAULT"]).exit_code == 1
    assert RUN.invoke(app, ["lint", bad, "--ignore", "NULLABLE_DEFAULT"]).exit_code == 0


def test_references(folder: Path) -> None:
    """References are given by name, or found in the files beside."""
    alone = folder / "alone"
    alone.mkdir()
    uses = (folder / "uses.avsc").rename(alone / "uses.avsc")
    assert RUN.invoke(app, ["lint", str(uses)]).exit_code == 2
    assert RUN.invoke(app, ["lint", str(uses), "--reference", f"shop.Order={folder / 'good.avsc'}"]).exit_code == 0
    (alone / "good.avsc").write_text((folder / "good.avsc").read_text())
    assert RUN.invoke(app, ["lint", str(uses)]).exit_code == 0


def test_the_version_before(folder: Path) -> None:
    """--before enables the rules about changes."""
    done = RUN.invoke(app, ["lint", str(folder / "bad.avsc"), "--before", str(folder / "good.avsc")])
    assert "FIELD_DEFAULT" in done.stdout
    done = RUN.invoke(app, ["lint", str(folder / "bad.avsc"), "--before", str(folder / "broken.json")])
    assert done.exit_code == 2
    assert "the previous version" in done.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["bad.avsc", "--rule", "NO_SUCH"],
        ["bad.avsc", "--ignore", "NO_SUCH"],
        ["bad.avsc", "good.avsc", "--before", "good.avsc"],
        ["no-such.avsc"],
        ["bad.txt"],
        ["bad.avsc", "--reference", "nothing"],
    ],
)
def test_questions_that_make_no_sense(arguments: list[str], folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Unknown rules, missing files and wrong combinations end with 2 and a sentence."""
    monkeypatch.chdir(folder)
    done = RUN.invoke(app, ["lint", *arguments])
    assert (done.exit_code, "error:" in done.stderr) == (2, True)


def test_json(folder: Path) -> None:
    """`--output json` prints one list with a report for every file."""
    done = RUN.invoke(app, ["lint", str(folder / "bad.avsc"), str(folder / "broken.json"), "-o", "json"])
    bad, broken = json.loads(done.stdout)
    assert done.exit_code == 2
    assert [finding["rule"] for finding in bad["findings"]] == ["NULLABLE_DEFAULT"]
    assert [(finding["rule"], finding["line"]) for finding in broken["findings"]] == [("MALFORMED_SCHEMA", 1)]
    assert "line 1" in broken["error"]


def test_the_rules_are_listed() -> None:
    """--rules lists every rule with its formats."""
    rows = json.loads(RUN.invoke(app, ["lint", "--rules", "-o", "json"]).stdout)
    naming = next(row for row in rows if row["rule"] == "NAMING")
    assert naming["formats"] == "avro, json, protobuf, thrift, xsd"
    assert RUN.invoke(app, ["lint", "--rules"]).exit_code == 0
