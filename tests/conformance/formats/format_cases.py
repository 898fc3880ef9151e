"""Reads the case files beside this one; their README says what the fields mean."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

CASES = Path(__file__).parent / "cases"

Case = dict[str, Any]


def cases(kind: str, *formats: str) -> list[Case]:
    """Uncontested cases of some formats; kind is the field that tells them: `compatible`, `valid` or `canonical`."""
    return [
        case
        for file in sorted(CASES.glob("*.jsonl"))
        for line in file.read_text(encoding="ascii").splitlines()
        for case in [json.loads(line)]
        if kind in case and case["format"] in formats and not case.get("contested")
    ]


def pairs(case: Case) -> Iterator[tuple[bytes, bytes]]:
    """(reader, writer) documents whose compatibility together is the label."""
    for old in case["history"] if case.get("transitive") else [case["old"]]:
        if case["direction"] != "forward":
            yield case["new"].encode(), old.encode()
        if case["direction"] != "backward":
            yield old.encode(), case["new"].encode()


def case_id(case: Case) -> str:
    """The stable name of a case."""
    return str(case["id"])
