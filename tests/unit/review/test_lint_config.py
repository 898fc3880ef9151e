"""The lint rules that apply by default, by the command line, and by the configuration of a folder."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.unit.review.folders import write_files
from typer.testing import CliRunner, Result

from stele.cli.app import app

SCHEMA = """{"type": "record", "name": "order", "namespace": "shop", "fields": [
  {"name": "note", "type": ["null", "string"]}
]}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with two schemas that have flaws."""
    monkeypatch.chdir(tmp_path)
    return write_files(tmp_path, {"a.avsc": SCHEMA, "old/b.avsc": SCHEMA})


def lint(*arguments: str) -> Result:
    """Run `stele lint`."""
    return CliRunner().invoke(app, ["lint", *arguments])


def rules(*arguments: str) -> dict[str, list[tuple[str, str]]]:
    """Return (rule, level) of the findings, by file."""
    reports = json.loads(lint(*arguments, "-o", "json").stdout)
    return {each["file"]: [(finding["rule"], finding["level"]) for finding in each["findings"]] for each in reports}


def test_documentation_is_not_demanded(folder: Path) -> None:
    """DOC_REQUIRED applies only by name, or with ALL."""
    assert rules("a.avsc") == {"a.avsc": [("NAMING", "warning"), ("NULLABLE_DEFAULT", "warning")]}
    assert [rule for rule, _ in rules("a.avsc", "--select", "DOC_REQUIRED")["a.avsc"]] == ["DOC_REQUIRED"] * 2
    assert len(rules("a.avsc", "--select", "ALL")["a.avsc"]) == 4
    assert rules("a.avsc", "--select", "NAMING,DOC_REQUIRED", "--ignore", "DOC_REQUIRED")["a.avsc"] == [
        ("NAMING", "warning")
    ]
    listed = json.loads(lint("--rules", "-o", "json").stdout)
    assert [row["rule"] for row in listed if row["on"] == "no"] == ["DOC_REQUIRED"]


@pytest.mark.parametrize("name", ["stele-lint.toml", "schemas.toml"])
def test_a_folder_says_how_it_is_linted(folder: Path, name: str) -> None:
    """Severities, patterns and exclusions come from the file in the folder or above it; findings have positions."""
    config = '[lint]\nseverity = {NAMING = "error"}\nper-file-ignores = {"old/*" = ["NULLABLE_DEFAULT"]}\n'
    write_files(folder, {name: config})
    assert rules(".") == {
        "a.avsc": [("NAMING", "error"), ("NULLABLE_DEFAULT", "warning")],
        "old/b.avsc": [("NAMING", "error")],
    }
    assert "a.avsc:2:3: NULLABLE_DEFAULT" in lint("a.avsc").stdout
    write_files(folder, {name: '[lint]\nselect = ["NULLABLE_DEFAULT"]\nexclude = ["old/*"]\n'})
    assert rules(".") == {"a.avsc": [("NULLABLE_DEFAULT", "warning")]}
    write_files(folder, {name: '[lint]\nseverity = {NULLABLE_DEFAULT = "off"}\nextend-select = ["DOC_REQUIRED"]\n'})
    assert {rule for rule, _ in rules("a.avsc")["a.avsc"]} == {"NAMING", "DOC_REQUIRED"}
    write_files(folder, {name: "[lint]\nselect = []\n"})
    assert lint(".").exit_code == 0


def test_what_fails(folder: Path) -> None:
    """Warnings make the exit code 1 unless only errors shall."""
    assert lint("a.avsc").exit_code == 1
    assert lint("a.avsc", "--fail-on", "error").exit_code == 0
    write_files(folder, {"strict.toml": '[lint]\nseverity = {NAMING = "error"}\n'})
    assert lint("a.avsc", "--fail-on", "error", "--config", "strict.toml").exit_code == 1


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ("[lint]\nselct = []", "selct"),
        ('[lint]\nselect = ["NO_SUCH"]', "NO_SUCH"),
        ('[lint]\nseverity = {NAMING = "loud"}', "loud"),
        ("[lint", "stele-lint.toml"),
    ],
)
def test_wrong_configurations(folder: Path, config: str, message: str) -> None:
    """Unknown keys, rules and severities are errors that name the file or the word."""
    write_files(folder, {"stele-lint.toml": config})
    done = lint("a.avsc")
    assert (done.exit_code, message in done.stderr) == (2, True), done.stderr
