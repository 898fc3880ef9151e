"""The table of sentences of the xRegistry specification: each has tests, or a reason why it does not apply."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from tools import xregistry_sentences
from tools.xregistry_sentences import (
    FILES,
    Sentence,
    count_rows,
    list_differences,
    list_reasons,
    list_sentences,
    read_table,
)

PAGE = Path(__file__).parents[3] / "docs" / "protocols" / "xregistry.md"
ROWS = read_table()
TEXT = "# A\nIt MUST be. It may.\nIt MUST NOT: so\n- MUST\n```\nMUST\n```\n## B\nREQUIRED or not\n# C\nmust\n"


def list_tests() -> list[str]:
    """Return the names of the tests of the dialect."""
    names: list[str] = []
    for path in Path(__file__).parent.glob("test_xregistry_*.py"):
        nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        names += [
            node.name for node in nodes if isinstance(node, ast.AsyncFunctionDef) and node.name.startswith("test_")
        ]
    return names


def test_each_sentence_has_a_number_of_its_own() -> None:
    """Sentences of each document are numbered without gaps and without duplicates."""
    for document in FILES:
        own = [row for row in ROWS if row.document == document]
        assert [row.number for row in own] == [f"{document}-{position:03}" for position in range(1, len(own) + 1)]
        assert len({row.sentence for row in own}) == len(own) > 0
    assert all(row.demand and len(row.sentence.digest) == 12 for row in ROWS)


def test_each_sentence_has_tests_that_exist_or_a_reason() -> None:
    """Each sentence names tests that exist, each once, or a reason why it has none."""
    tests = list_tests()
    assert len(set(tests)) == len(tests)
    for row in ROWS:
        assert bool(row.tests) != bool(row.why), row
        assert set(row.tests) <= set(tests), row


def test_the_page_counts_sentences() -> None:
    """The protocol's page has the counts of the table, and the reasons of sentences without tests."""
    listed = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| ")]
    text = "\n".join(listed)
    assert "\n".join(line for line in count_rows(ROWS) if line.startswith("| ")) in text
    assert "\n".join(line for line in list_reasons(ROWS) if line.startswith("| ")) in text


def test_sentences_are_found_by_section() -> None:
    """Sentences with requirement keywords are found, also in lists; those in code blocks are not."""
    sentences = list_sentences(TEXT)
    assert [(row.section, row.ordinal) for row in sentences] == [("A", 1), ("A", 2), ("A", 3), ("B", 1)]
    assert len({row.digest for row in sentences}) == 4
    assert list_sentences(TEXT.replace("It MUST be.", "It  MUST\nbe.")) == sentences


def test_other_sentences_are_differences(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A changed, a removed and a new sentence are reported by number or position."""
    for document, path in FILES.items():
        target = tmp_path / path
        target.parent.mkdir(exist_ok=True)
        target.write_text(TEXT if document == "core" else "# A\n", encoding="utf-8")
    table = tmp_path / "sentences.table"
    monkeypatch.setattr(xregistry_sentences, "TABLE", table)

    def write_table(sentences: list[Sentence]) -> None:
        rows = [
            f"core-{at:03} | {s.section} | {s.ordinal} | {s.digest} | x | n/a: y" for at, s in enumerate(sentences, 1)
        ]
        table.write_text("\n".join(rows) + "\n", encoding="utf-8")

    whole = list_sentences(TEXT)
    write_table(whole)
    assert list_differences(tmp_path) == []
    write_table(whole[1:])
    assert list_differences(tmp_path) == [f"core: A, sentence 1 ({whole[0].digest}): not in the table"]
    write_table(list_sentences(TEXT.replace("It MUST be.", "It MUST go.")))
    assert len(list_differences(tmp_path)) == 2
