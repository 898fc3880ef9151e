"""Counts the demands of the xRegistry specification by section, and holds the table of sections to them.

    python -m tools.xregistry_sections FOLDER

FOLDER has the specification's files (`core/spec.md`, …), which are no part of this repository. The table
`tests/conformance/apis/xregistry/sections.table` keeps the names of sections, how many sentences of each demand
something, and the requirements that stand for them. This ends with 1 if a release of the specification demands
something else.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from pathlib import Path
from typing import Final, NamedTuple

TABLE: Final = Path(__file__).parents[1] / "tests" / "conformance" / "apis" / "xregistry" / "sections.table"
FILES: Final = {"core": "core/spec.md", "http": "core/http.md", "schema": "schema/spec.md"}
_DEMAND: Final = re.compile(r"\b(MUST|SHALL|REQUIRED)\b")
_HEADING: Final = re.compile(r"#+\s+(.*)")
_FENCE: Final = re.compile(r"\s*(?:[-*]\s+)?```")
_SENTENCE_END: Final = re.compile(r"(?<=[.:;])\s+(?=[A-Z`\-<(])")


class Section(NamedTuple):
    """A row: file, name, sentences that demand something, numbers of requirements, or why there are none."""

    file: str
    name: str
    sentences: int
    requirements: tuple[str, ...]
    why: str


def count_demands(text: str) -> Counter[str]:
    """Return how many sentences of each section demand something; examples in code blocks do not count."""
    found: Counter[str] = Counter()
    section, is_code = "", False
    paragraph: list[str] = []

    def close_paragraph() -> None:
        sentences = _SENTENCE_END.split(" ".join(paragraph))
        demands = sum(_DEMAND.search(sentence) is not None for sentence in sentences)
        if demands:
            found[section] += demands
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
    return found


def read_sections() -> list[Section]:
    """Return the rows of the table."""
    rows = []
    for line in TABLE.read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            file, name, sentences, proof = line.split(" | ")
            why = proof.removeprefix("n/a: ") if proof.startswith("n/a: ") else ""
            rows.append(Section(file, name, int(sentences), () if why else tuple(proof.split()), why))
    return rows


def list_differences(folder: Path) -> list[str]:
    """Return what the table says otherwise than the specification in a folder."""
    told = {(row.file, row.name): row.sentences for row in read_sections()}
    found = {
        (file, name): count
        for file, path in FILES.items()
        for name, count in count_demands((folder / path).read_text(encoding="utf-8")).items()
    }
    return [
        f"{file}: {name}: {told.get((file, name), 0)} sentences in the table, {found.get((file, name), 0)} in the text"
        for file, name in sorted(told.keys() | found.keys())
        if told.get((file, name)) != found.get((file, name))
    ]


def main(folder: str) -> int:
    """Print the differences; return 1 where there are any."""
    differences = list_differences(Path(folder))
    print("\n".join(differences) or f"{len(read_sections())} sections are as the table says")
    return bool(differences)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:2]))
