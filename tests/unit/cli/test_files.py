"""What all commands that read schema files share: names, standard input, and errors about files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from stele.cli.app import app

RUN = CliRunner()
HOSTILE = {"type": "object", "properties": {"[/b]": {"type": "string"}, "a[red]b": {"type": "string"}}}
CHANGED = {"type": "object", "properties": {"[/b]": {"type": "integer"}, "a[red]b": {"type": "integer"}}}
RECORD = '{"type": "record", "name": "R", "fields": [{"name": "id", "type": "long"}]}'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with names that look like markup, valid schemas, and files that are not text."""
    (tmp_path / "old.json").write_text(json.dumps(HOSTILE))
    (tmp_path / "new.json").write_text(json.dumps(CHANGED))
    (tmp_path / "wrong.json").write_text('{"type": "[/b]"}')
    (tmp_path / "good.avsc").write_text(RECORD)
    (tmp_path / "broken.avsc").write_text("{")
    (tmp_path / "binary.avsc").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "message.proto").write_text('syntax = "proto3"; message M {}')
    return tmp_path


def test_names_are_no_markup(folder: Path) -> None:
    """Every command prints names of a schema that look like console markup unchanged."""
    old, new = str(folder / "old.json"), str(folder / "new.json")
    for command in (["check", new, "--against", old], ["diff", old, new], ["lint", old], ["fields", old]):
        done = RUN.invoke(app, command)
        assert not isinstance(done.exception, ValueError), command
        assert "a[red]b" in done.stdout, command
        assert "[~1b]" in done.stdout or "[/b]" in done.stdout, command


def test_messages_are_no_markup(folder: Path) -> None:
    """An error that quotes a schema prints the quotation unchanged, in one line."""
    done = RUN.invoke(app, ["fields", str(folder / "wrong.json")])
    assert done.exit_code == 2
    assert "[/b]" in done.stderr
    assert done.stderr.count("\n") == 1


def test_standard_input() -> None:
    """`-` reads the schema from standard input; its format must be given."""
    done = RUN.invoke(app, ["fields", "-", "--format", "avro", "--output", "json"], input=RECORD)
    assert json.loads(done.stdout)["fields"] == [
        {"path": "id", "type": "long", "default": None, "doc": "", "optional": False}
    ]
    done = RUN.invoke(app, ["fields", "-", "--format", "avro"], input=RECORD)
    assert [line.split() for line in done.stdout.splitlines()][1:] == [["id", "long", "no"]]
    done = RUN.invoke(app, ["fields", "-"], input=RECORD)
    assert (done.exit_code, "give --format" in done.stderr) == (2, True)


@pytest.mark.parametrize(
    ("name", "message"),
    [("binary.avsc", "not UTF-8"), (".", "unknown suffix"), ("nothing.avsc", "No such file or directory")],
)
def test_wrong_files(folder: Path, name: str, message: str) -> None:
    """An error about a file that cannot be read as text names the file once, with the reason."""
    done = RUN.invoke(app, ["fields", str(folder / name)])
    assert done.exit_code == 2
    assert message in done.stderr
    assert done.stderr.count(str(folder)) == 1


def test_which_of_several(folder: Path) -> None:
    """An error of a command that reads several schemas names the one that it is about."""
    good, broken = str(folder / "good.avsc"), str(folder / "broken.avsc")
    assert (
        f"{broken} is not a valid avro schema: line 1" in RUN.invoke(app, ["check", good, "--against", broken]).stderr
    )
    assert f"{broken}:1:2: MALFORMED_SCHEMA" in RUN.invoke(app, ["check", broken, "--against", good]).stdout
    assert "the old schema (broken.avsc)" in RUN.invoke(app, ["diff", broken, good]).stderr
    assert "the new schema (broken.avsc)" in RUN.invoke(app, ["diff", good, broken]).stderr


def test_files_of_two_languages(folder: Path) -> None:
    """Suffixes of different formats end with 2, not with a syntax error."""
    avro, proto = str(folder / "good.avsc"), str(folder / "message.proto")
    for command in (["diff", avro, proto], ["check", proto, "--against", avro]):
        done = RUN.invoke(app, command)
        assert done.exit_code == 2
        assert "by their suffixes" in done.stderr
    assert RUN.invoke(app, ["diff", avro, avro, "--format", "json"]).exit_code == 0


@pytest.mark.parametrize("text", ['{\n  "id": 1\n}\n', '[\n  {"id": 1}\n]', '{"id": 1}\n\n{"id": 2}\n'])
def test_samples_in_several_shapes(text: str) -> None:
    """Samples are lines, one array, or one value over several lines."""
    done = RUN.invoke(app, ["infer", "-", "--as", "json"], input=text)
    assert done.exit_code == 0
    assert json.loads(done.stdout)["properties"].keys() == {"id"}


def test_a_sample_that_is_none() -> None:
    """The line that is not JSON is named, also when it is the first of many."""
    for text, line in (('{"id": 1\n{"id": 2}', 1), ('{"id": 1}\nid 2', 2)):
        done = RUN.invoke(app, ["infer", "-", "--as", "avro"], input=text)
        assert (done.exit_code, f"-, line {line}: not JSON" in done.stderr) == (2, True)
