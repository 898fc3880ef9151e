"""The table of requirements of the xRegistry specification: each has a test, or a reason why it does not apply."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import NamedTuple

from tools.xregistry_sections import count_demands, read_sections

ROOT = Path(__file__).parents[3]
TABLE = Path(__file__).parent / "xregistry" / "requirements.table"
PAGE = ROOT / "docs" / "protocols" / "xregistry.md"


class Requirement(NamedTuple):
    """A row of the table; `test` is '' where it does not apply, and `why` says why not."""

    number: str
    file: str
    section: str
    text: str
    test: str
    why: str


def read_requirements() -> list[Requirement]:
    """The rows of the table."""
    rows = []
    for line in TABLE.read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            number, file, section, text, proof = line.split(" | ")
            why = proof.removeprefix("n/a: ") if proof.startswith("n/a: ") else ""
            rows.append(Requirement(number, file, section, text, "" if why else proof, why))
    return rows


ROWS = read_requirements()


def test_numbers_are_given_once() -> None:
    """Numbers count without gaps in each file."""
    letters = {"core": "C", "http": "H", "schema": "S"}
    for file, letter in letters.items():
        numbers = [row.number for row in ROWS if row.file == file]
        assert numbers == [f"{letter}{position}" for position in range(1, len(numbers) + 1)]


def test_every_requirement_has_a_test_that_exists() -> None:
    """The tests that the table names are there, and every test of the dialect proves a requirement or is of our own."""
    tests: set[str] = set()
    for path in Path(__file__).parent.glob("test_xregistry_*.py"):
        nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        tests |= {
            node.name for node in nodes if isinstance(node, ast.AsyncFunctionDef) and node.name.startswith("test_")
        }
    missing = {row.test for row in ROWS if row.test} - tests
    assert not missing


def test_the_page_lists_what_does_not_apply() -> None:
    """The protocol's page names every requirement that does not apply, with its reason, and no other."""
    listed = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith(("| C", "| H", "| S"))]
    expected = [f"| {row.number} | {row.section} | {row.text} | {row.why} |" for row in ROWS if row.why]
    assert listed == expected


def test_no_section_is_forgotten() -> None:
    """Each section that demands something has requirements that are in the table, or a reason why it has none."""
    numbers = {row.number for row in ROWS}
    sections = read_sections()
    assert len({(row.file, row.name) for row in sections}) == len(sections) > 100
    for row in sections:
        assert row.sentences > 0
        assert bool(row.requirements) != bool(row.why), row
        assert set(row.requirements) <= numbers, row


def test_demands_are_counted_by_section() -> None:
    """Sentences with the words of demands count, also in lists; those in code blocks, and others, do not."""
    text = "# A\nIt MUST be. It may.\nIt MUST NOT: so\n- MUST\n```\nMUST\n```\n## B\nREQUIRED or not\n# C\nmust\n"
    assert count_demands(text) == {"A": 3, "B": 1}
