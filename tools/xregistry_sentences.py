"""Lists the requirements of the xRegistry specification and compares them with the table of requirements.

    python -m tools.xregistry_sentences FOLDER

FOLDER has the specification's files (`core/spec.md`, …), which are not part of this repository. The table
`tests/conformance/apis/xregistry/sentences.table` has a row for each of their sentences with MUST, SHALL or REQUIRED. A
row holds a number, the section, the position in the section, a digest of the words, and a short summary. It ends with
the tests of the requirement, or the reason why there are none. The tool exits with 1 if a release of the specification
has other sentences.
"""

from __future__ import annotations

import hashlib
import re
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Final, NamedTuple

TABLE: Final = Path(__file__).parents[1] / "tests" / "conformance" / "apis" / "xregistry" / "sentences.table"
FILES: Final = {"core": "core/spec.md", "http": "core/http.md", "schema": "schema/spec.md"}
_DEMAND: Final = re.compile(r"\b(MUST|SHALL|REQUIRED)\b")
_HEADING: Final = re.compile(r"#+\s+(.*)")
_FENCE: Final = re.compile(r"\s*(?:[-*]\s+)?```")
_SENTENCE_END: Final = re.compile(r"(?<=[.:;])\s+(?=[A-Z`\-<(])")
_DIGEST_LENGTH: Final = 12


class Sentence(NamedTuple):
    """A requirement: its section, its position among those of the section from 1, and a digest."""

    section: str
    ordinal: int
    digest: str


class Row(NamedTuple):
    """A row of the table: number, document, sentence, summary, and names of tests or the reason why there are none."""

    number: str
    document: str
    sentence: Sentence
    demand: str
    tests: tuple[str, ...]
    why: str


def list_sentences(text: str) -> list[Sentence]:
    """Return the requirements of a document. Examples in code blocks do not count."""
    sentences: list[Sentence] = []
    counts: Counter[str] = Counter()
    section, is_code = "", False
    paragraph: list[str] = []

    def close_paragraph() -> None:
        for sentence in _SENTENCE_END.split(" ".join(paragraph)):
            if _DEMAND.search(sentence):
                counts[section] += 1
                digest = hashlib.sha256(" ".join(sentence.split()).encode()).hexdigest()[:_DIGEST_LENGTH]
                sentences.append(Sentence(section, counts[section], digest))
        paragraph.clear()

    for line in text.splitlines():
        heading = _HEADING.match(line)
        if _FENCE.match(line):
            close_paragraph()
            is_code = not is_code
        elif is_code:
            continue
        elif heading is not None:
            close_paragraph()
            section = heading[1].strip()
        elif not line.strip() or re.match(r"\s*[-*] ", line):
            close_paragraph()
            paragraph += [line.strip()] if line.strip() else []
        else:
            paragraph.append(line.strip())
    close_paragraph()
    return sentences


def read_table() -> list[Row]:
    """Return the rows of the table."""
    rows = []
    for line in TABLE.read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            number, section, ordinal, digest, demand, proof = line.split(" | ")
            why = proof.removeprefix("n/a: ") if proof.startswith("n/a: ") else ""
            tests = () if why else tuple(proof.split())
            sentence = Sentence(section, int(ordinal), digest)
            rows.append(Row(number, number.partition("-")[0], sentence, demand, tests, why))
    return rows


def list_differences(folder: Path) -> list[str]:
    """Return the differences between the table and the specification in a folder."""
    differences = []
    for document, path in FILES.items():
        known = {row.sentence: row.number for row in read_table() if row.document == document}
        sentences = list_sentences((folder / path).read_text(encoding="utf-8"))
        differences += [f"{known[sentence]}: not in the text" for sentence in known if sentence not in sentences]
        differences += [
            f"{document}: {sentence.section}, sentence {sentence.ordinal} ({sentence.digest}): not in the table"
            for sentence in sentences
            if sentence not in known
        ]
    return differences


def count_rows(rows: Iterable[Row]) -> list[str]:
    """Return lines of Markdown: the number of requirements in each document, and how many have tests."""
    all_rows = list(rows)
    lines = ["| document | sentences | with tests | do not apply |", "|---|---|---|---|"]
    for document, path in FILES.items():
        own = [row for row in all_rows if row.document == document]
        tested = sum(bool(row.tests) for row in own)
        lines.append(f"| `{path}` | {len(own)} | {tested} | {len(own) - tested} |")
    return lines


def list_reasons(rows: Iterable[Row]) -> list[str]:
    """Return lines of Markdown: the reasons for requirements without tests, the most frequent first.

    Each line has the number of these requirements and their numbers in the table.
    """
    numbers: dict[str, list[str]] = {}
    for row in rows:
        if row.why:
            numbers.setdefault(row.why, []).append(row.number)
    ordered = sorted(numbers.items(), key=lambda pair: -len(pair[1]))
    lines = ["| why | sentences | numbers |", "|---|---|---|"]
    return lines + [f"| {why} | {len(row_numbers)} | {', '.join(row_numbers)} |" for why, row_numbers in ordered]


def main(folder: str) -> int:
    """Print the differences; return 1 where there are any."""
    differences = list_differences(Path(folder))
    print("\n".join(differences) or f"{len(read_table())} sentences are as the table says")
    return bool(differences)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:2]))
