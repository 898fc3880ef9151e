"""`stele diff`: its output and its exit code."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Self

import pytest
from typer.testing import CliRunner, Result

from stele import client
from stele.cli.app import app
from stele.client.snapshot import ResolvedSchema
from stele.errors import VersionNotFound

RUN = CliRunner()
OLD = '{"type":"record","name":"R","fields":[{"name":"a","type":"int"},{"name":"c","type":"int"}]}'
NEW = '{"type":"record","name":"R","doc":"x","fields":[{"name":"a","type":"long"},{"name":"b","type":"string"}]}'


@pytest.fixture
def diff(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """Return a function that runs `stele diff` in a folder with two versions of a schema."""
    (tmp_path / "old.avsc").write_text(OLD)
    (tmp_path / "new.avsc").write_text(NEW)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")

    def run(*words: str) -> Result:
        return RUN.invoke(app, ["diff", *words])

    return run


def test_changes(diff: Callable[..., Result]) -> None:
    """Every change has a line with its verdict both ways, every finding its reason, and the exit code is 1."""
    result = diff("old.avsc", "new.avsc")
    assert result.exit_code == 1
    lines = [line.split() for line in result.stdout.splitlines()]
    assert ["change", "new", "reads", "old", "old", "reads", "new"] in lines
    assert ["~", "R", "doc:", "none", "→", "x", "yes", "yes"] in lines
    assert ["~", "R.a", "type:", "int", "→", "long", "yes", "no"] in lines
    assert ["-", "R.c", "field", "int", "yes", "no"] in lines
    assert ["+", "R.b", "field", "string", "no", "yes"] in lines
    assert "READER_FIELD_MISSING_DEFAULT_VALUE at /fields/1, when new reads old" in result.stdout
    assert "new can read old data: no, old can read new data: no (by avro@1)" in result.stdout
    assert "+++ new" not in result.stdout


def test_text(diff: Callable[..., Result]) -> None:
    """The unified diff of the texts is printed on request."""
    result = diff("old.avsc", "new.avsc", "--text")
    assert "+++ new" in result.stdout
    assert '-      "type": "int"' in result.stdout


def test_no_change(diff: Callable[..., Result]) -> None:
    """Two texts of the same schema have the exit code 0."""
    Path("same.avsc").write_text(json.dumps(json.loads(OLD), indent=4))
    result = diff("old.avsc", "same.avsc")
    assert (result.exit_code, result.stdout) == (0, "old.avsc and same.avsc have the same content.\n")


def test_json(diff: Callable[..., Result]) -> None:
    """`--output json` prints the whole answer."""
    result = diff("old.avsc", "new.avsc", "--output", "json")
    assert result.exit_code == 1
    body = json.loads(result.stdout)
    assert {change["kind"] for change in body["changes"]} == {"added", "removed", "changed"}
    assert (body["backward"], body["forward"], body["ruleset"]) == (False, False, "avro@1")
    assert all({"backward", "forward", "findings"} <= change.keys() for change in body["changes"])


def test_references(diff: Callable[..., Result]) -> None:
    """Both schemas may refer to a file by name."""
    Path("e.avsc").write_text('{"type":"enum","name":"E","symbols":["A"]}')
    for name, default in (("one", ""), ("two", ',"default":"A"')):
        field = f'{{"name":"e","type":"E"{default}}}'
        Path(f"{name}.avsc").write_text(f'{{"type":"record","name":"R","fields":[{field}]}}')
    result = diff("one.avsc", "two.avsc", "--reference", "E=e.avsc")
    assert result.exit_code == 1
    assert "R.e default: none → " in result.stdout


def test_opaque(diff: Callable[..., Result]) -> None:
    """For a format without comparison, the output has no verdict on readers."""
    result = diff("old.avsc", "new.avsc", "--format", "opaque")
    assert result.exit_code == 1
    assert "can read" not in result.stdout
    assert "text" in result.stdout


def test_undecided(diff: Callable[..., Result]) -> None:
    """A change that no rule can decide is distinguished from an incompatible one."""
    Path("one.json").write_text('{"type":"string","pattern":"^a.*b$"}')
    Path("two.json").write_text('{"type":"string","pattern":"^a.*(?=b)b$"}')
    assert "undecided" in diff("one.json", "two.json", "--ruleset", "containment").stdout
    allowed = diff("one.json", "two.json", "--ruleset", "containment", "--undecided", "allow")
    assert "new can read old data: yes" in allowed.stdout


@pytest.mark.parametrize(
    "words",
    [
        ("old.avsc", "gone.avsc"),
        ("old.avsc", "new.avsc", "--ruleset", "nonsense"),
        ("old.avsc", "new.avsc", "--format", "json", "--reference", "nonsense"),
        ("s@1", "s@x", "--registry", "http://127.0.0.1:1"),
        ("s", "s@1", "--registry", "http://127.0.0.1:1"),
        ("s@1", "s@2", "--registry", "http://127.0.0.1:1", "--format", "avro"),
    ],
)
def test_trouble(words: tuple[str, ...], diff: Callable[..., Result]) -> None:
    """Invalid arguments have the exit code 2 and a sentence on standard error."""
    result = diff(*words)
    assert result.exit_code == 2
    assert "error:" in result.stderr
    assert result.stdout == ""


class _Registry:
    """A client of a registry with three versions of a subject."""

    def __init__(self, urls: list[str], **settings: object) -> None:
        self.urls = urls

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def resolve_version(self, subject: str, number: int) -> ResolvedSchema:
        """Return one of two Avro schemas, or a JSON Schema."""
        known = {1: ResolvedSchema(OLD), 2: ResolvedSchema(NEW), 3: ResolvedSchema('{"type":"integer"}', "JSON")}
        if subject != "orders@home" or number not in known:
            raise VersionNotFound(number)
        return known[number]


def test_versions_of_a_registry(diff: Callable[..., Result], monkeypatch: pytest.MonkeyPatch) -> None:
    """With --registry the arguments are versions of subjects, whose names may hold an at sign."""
    monkeypatch.setattr(client, "SchemaRegistryClient", _Registry)
    result = diff("orders@home@1", "orders@home@2", "--registry", "http://registry")
    assert result.exit_code == 1
    assert "R.a type: int → long" in result.stdout
    assert diff("orders@home@2", "orders@home@2", "--registry", "http://registry").exit_code == 0


def test_versions_of_different_languages(diff: Callable[..., Result], monkeypatch: pytest.MonkeyPatch) -> None:
    """Versions of two formats cannot be compared, nor can versions that do not exist."""
    monkeypatch.setattr(client, "SchemaRegistryClient", _Registry)
    assert "nothing to compare" in diff("orders@home@1", "orders@home@3", "--registry", "http://registry").stderr
    assert diff("orders@home@1", "orders@home@9", "--registry", "http://registry").exit_code == 2
