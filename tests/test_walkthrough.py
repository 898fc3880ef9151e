"""The notebook of the walk-through runs from first to last cell in a fresh kernel and prints the expected outputs."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import nbformat
import pytest
from tests.support.java_machine import JavaMachine
from tools.run_notebook import HASH, NOTEBOOK, hash_code, run_notebook

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

MOST_BYTES = 250_000
"""Largest size of the notebook with its outputs, in bytes."""
SILENT = {"step-02", "step-38"}
"""Cells that print nothing: the imports and the end."""


@pytest.fixture(scope="module")
def cell_outputs(java_machine: JavaMachine) -> dict[str, str]:
    """Run the notebook and return the output of each code cell by its source."""
    with java_machine.lend(NOTEBOOK.parent) as variables:
        notebook = run_notebook(NOTEBOOK, variables)
    return {cell.source: _text(cell.outputs) for cell in notebook.cells if cell.cell_type == "code"}


def _text(outputs: list[Any]) -> str:
    """Return printed text and the plain, HTML and SVG forms of displayed values."""
    parts = [each.text for each in outputs if each.output_type == "stream" and each.name == "stdout"]
    for each in outputs:
        if "data" in each:
            parts += [each.data[kind] for kind in ("text/plain", "text/html", "image/svg+xml") if kind in each.data]
    return "\n".join(parts)


def _of(cell_outputs: dict[str, str], piece: str) -> str:
    (output,) = [text for source, text in cell_outputs.items() if piece in source]
    return output


def test_the_notebook_is_committed_with_the_outputs_of_its_code() -> None:
    """The committed notebook holds the outputs of its current code. `tools.run_notebook` writes it."""
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    nbformat.validate(notebook)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert notebook.metadata[HASH] == hash_code(notebook), "run python -m tools.run_notebook"
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
    assert {cell.id for cell in code if not cell.outputs} == SILENT
    assert "80,687 good, 39 dead" in _of({cell.source: _text(cell.outputs) for cell in code}, "DEADLETTER")


def test_the_outputs_are_small_and_of_no_machine() -> None:
    """The outputs name no folder of a machine, hold no errors, and are small enough for a code review."""
    text = NOTEBOOK.read_text(encoding="utf-8")
    assert len(text.encode()) < MOST_BYTES
    for place in (str(Path.home()), str(Path(__file__).parent.parent), "/tmp/", "site-packages"):
        assert place not in text
    assert '"output_type": "error"' not in text
    assert '"name": "stderr"' not in text


def test_evolution(cell_outputs: dict[str, str]) -> None:
    """Records of all versions become rows, new versions add columns, and the incompatible change is refused."""
    assert "80,687 flights" in _of(cell_outputs, "flights()")
    refused = _of(cell_outputs, "Schema(REFUSED)")
    assert "Data written as int cannot be read as string" in refused
    assert "needs the field 'gate'" in refused
    by_writer = [line.split()[1:] for line in _of(cell_outputs, "by_writer =").splitlines()[1:4]]
    assert [[int(each) for each in row[:4]] for row in by_writer] == [
        [1, 26896, 0, 0],
        [2, 26896, 26613, 0],
        [3, 26895, 26609, 26867],
    ]


def test_broken_records(cell_outputs: dict[str, str]) -> None:
    """The first broken record stops a job that allows none. Set aside, all of them are counted."""
    text = _of(cell_outputs, "DEADLETTER")
    assert "FAILFAST stops the job:" in text
    assert "80,687 good, 39 dead" in text


def test_sql(cell_outputs: dict[str, str]) -> None:
    """A stream has columns in SQL without a declaration."""
    text = _of(cell_outputs, "%%stele")
    assert re.search(r"\bflights\b.*\bwind\b", text)
    assert re.search(r"\b(EWR|JFK|LGA)\b", text)


def test_the_pipeline(cell_outputs: dict[str, str]) -> None:
    """Rows and dead letters add up to the records sent, in one batch per file, and the new version adds its column."""
    assert "3 batches, 80,687 rows, 39 dead letters" in _of(cell_outputs, '(home / "pipeline.toml")')
    assert "1 batch, 1,000 rows; nyc.flights: column gate added: string" in _of(cell_outputs, "gate = ")
    versions = re.findall(r"^\d\s+(\d)\s+(\d+)", _of(cell_outputs, "createOrReplaceTempView"), re.MULTILINE)
    assert versions == [("1", "26896"), ("2", "26896"), ("3", "26895"), ("4", "1000")]


def test_the_registry_as_tables(cell_outputs: dict[str, str]) -> None:
    """The registry's tables have one row for each version."""
    text = _of(cell_outputs, "add_source(spark)")
    assert re.findall(r"^\|flights-value\|\s+(\d)\|", text, re.MULTILINE) == ["1", "2", "3", "4"]
    assert "registered" in text


def test_governance(cell_outputs: dict[str, str]) -> None:
    """The census counts versions, the backtest finds cancelled flights, drift finds unset fields; pages show them."""
    counted = _of(cell_outputs, "counted = census")
    assert re.findall(r"^version (\d): not safe: ([\d,]+) records", counted, re.MULTILINE) == [
        ("1", "26,903"),  # includes broken copies whose schema id is intact
        ("2", "26,903"),
        ("3", "26,902"),
        ("4", "1,007"),
    ]
    assert "<iframe" in counted
    assert "[1, 2]" in _of(cell_outputs, "kept = ")
    assert "2,647 of 81,739 records could not be read, 52 nobody can read" in _of(cell_outputs, "tried =")
    assert re.search(r"^NEVER_SET\s+gate", _of(cell_outputs, "unused ="), re.MULTILINE)
