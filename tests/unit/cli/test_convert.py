"""`stele convert`, `infer`, `example` and `fields`: what they print, and their exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from stele.cli.app import app

RUN = CliRunner()
ORDER = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": "string", "doc": "its id"},
        {"name": "price", "type": "double"},
        {"name": "kind", "type": "Kind", "default": "A"},
    ],
}
KIND = {"type": "enum", "name": "Kind", "symbols": ["A", "B"]}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a schema, what it refers to, and samples."""
    texts = {
        "order.avsc": json.dumps(ORDER),
        "kind.avsc": json.dumps(KIND),
        "broken.avsc": "{",
        "samples.jsonl": '{"a":1,"on":"2024-01-31"}\n\n{"a":2.5,"on":"2024-02-01"}\n',
        "samples.json": '[{"a":1},\n{"a":2}]\n',
        "arrays.jsonl": "[1]\n[2]\n",
        "broken.jsonl": '{"a":1}\n{"a":\n',
        "nan.jsonl": '{"a":NaN}\n',
        "empty.jsonl": "\n",
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "latin.jsonl").write_bytes(b'{"a":"\xff"}\n')
    return tmp_path


def order(folder: Path) -> list[str]:
    """Return the arguments that name the schema and its reference."""
    return [str(folder / "order.avsc"), "--reference", f"Kind={folder / 'kind.avsc'}"]


def test_convert(folder: Path) -> None:
    """The schema goes to standard output, the losses to standard error."""
    done = RUN.invoke(app, ["convert", *order(folder), "--as", "json"])
    assert done.exit_code == 0
    assert json.loads(done.stdout)["properties"]["price"] == {"type": "number", "format": "double"}
    assert "data lost: NOT_A_NUMBER at price" in done.stderr


def test_convert_into_a_file(folder: Path) -> None:
    """With --to, only the losses are printed; with --strict, a loss of data sets the exit code."""
    out = folder / "order.json"
    done = RUN.invoke(app, ["convert", *order(folder), "--as", "json", "--to", str(out), "--strict"])
    assert (done.exit_code, done.stdout) == (1, "")
    assert json.loads(out.read_text())["title"] == "Order"
    kind = RUN.invoke(app, ["convert", str(folder / "kind.avsc"), "--as", "json", "--strict"])
    assert (kind.exit_code, kind.stderr) == (0, "")
    nowhere = RUN.invoke(app, ["convert", *order(folder), "--as", "json", "--to", str(folder / "kind.avsc" / "where")])
    assert nowhere.exit_code == 2


def test_a_file_is_overwritten_on_request_only(folder: Path) -> None:
    """--to does not overwrite an existing file; --force does."""
    out = folder / "order.json"
    out.write_text("mine")
    words = ["convert", *order(folder), "--as", "json", "--to", str(out)]
    refused = RUN.invoke(app, words)
    assert (refused.exit_code, out.read_text()) == (2, "mine")
    assert refused.stderr == f"error: {out} already exists; --force overwrites it\n"
    assert RUN.invoke(app, [*words, "--force"]).exit_code == 0
    assert json.loads(out.read_text())["title"] == "Order"


def test_convert_for_programs(folder: Path) -> None:
    """`--output json` prints the schema and the losses in one document."""
    done = RUN.invoke(app, ["convert", *order(folder), "--as", "json", "--output", "json"])
    document = json.loads(done.stdout)
    assert (document["format"], document["keeps_data"]) == ("json", False)
    assert document["losses"][0]["path"] == "price"
    assert json.loads(document["schema"])["type"] == "object"


@pytest.mark.parametrize(
    "arguments",
    [
        ["convert", "broken.avsc", "--as", "json"],
        ["convert", "kind.avsc", "--as", "opaque"],
        ["convert", "missing.avsc", "--as", "json"],
        ["infer", "missing.jsonl", "--as", "avro"],
        ["infer", "empty.jsonl", "--as", "avro"],
        ["infer", "nan.jsonl", "--as", "avro"],
        ["infer", "latin.jsonl", "--as", "avro"],
        ["example", "broken.avsc"],
        ["fields", "broken.avsc"],
    ],
)
def test_failures(arguments: list[str], folder: Path) -> None:
    """A conversion that is impossible ends with 2 and a sentence."""
    command, file, *rest = arguments
    done = RUN.invoke(app, [command, str(folder / file), *rest])
    assert done.exit_code == 2
    assert done.stderr.startswith("error:")


def test_infer_from_lines(folder: Path) -> None:
    """Each JSON line is a sample, blank lines are not; the options for names, texts and enumerations are applied."""
    done = RUN.invoke(app, ["infer", str(folder / "samples.jsonl"), "--as", "avro", "--name", "com.acme.S"])
    assert done.exit_code == 0, done.stderr
    schema = json.loads(done.stdout)
    assert (schema["namespace"], schema["name"]) == ("com.acme", "S")
    assert [field["type"] for field in schema["fields"]] == ["double", {"type": "int", "logicalType": "date"}]
    plain = RUN.invoke(app, ["infer", str(folder / "samples.jsonl"), "--as", "avro", "--texts"])
    assert json.loads(plain.stdout)["fields"][1]["type"] == "string"


def test_infer_from_an_array(folder: Path) -> None:
    """The items of one array are samples; lines that are arrays are samples themselves; `-` is standard input."""
    array = RUN.invoke(app, ["infer", str(folder / "samples.json"), "--as", "avro"])
    assert json.loads(array.stdout)["fields"] == [{"name": "a", "type": "long"}]
    arrays = RUN.invoke(app, ["infer", str(folder / "arrays.jsonl"), "--as", "avro"])
    assert json.loads(arrays.stdout) == {"type": "array", "items": "long"}


def test_infer_says_which_line_is_wrong(folder: Path) -> None:
    """An error about a line that is not JSON names its number."""
    done = RUN.invoke(app, ["infer", str(folder / "broken.jsonl"), "--as", "avro"])
    assert done.exit_code == 2
    assert "broken.jsonl, line 2: not JSON" in done.stderr.replace("\n", "")


def test_example(folder: Path) -> None:
    """An example is plain JSON; with `--output json` its encoding is printed, too."""
    done = RUN.invoke(app, ["example", *order(folder)])
    assert json.loads(done.stdout) == {"id": "text", "price": 1.5, "kind": "A"}
    both = RUN.invoke(app, ["example", *order(folder), "--output", "json"])
    assert json.loads(both.stdout)["example"] == json.loads(done.stdout)
    assert json.loads(both.stdout)["encoded"].startswith("CHRleHQ")


def test_fields(folder: Path) -> None:
    """Fields are printed as a table; with `--output json` as a list with the name of the type."""
    done = RUN.invoke(app, ["fields", *order(folder)])
    assert done.exit_code == 0
    assert "its id" in done.stdout
    document = json.loads(RUN.invoke(app, ["fields", *order(folder), "--output", "json"]).stdout)
    assert document["type_name"] == "Order"
    assert [field["path"] for field in document["fields"]] == ["id", "price", "kind"]
