"""Every attack and every defence that the pages name has a test that exists."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parent.parent
ATTACKS = ROOT / "docs" / "explanation" / "attacks.md"
THREAT_MODEL = ROOT / "docs" / "explanation" / "threat-model.md"
ROW = re.compile(r"^\| (\d+) \| (.+) \| (.+) \| `([^`]+)` \|$", re.MULTILINE)
TEST = re.compile(r"(?P<file>tests/[\w/]+\.py)(?:::(?P<name>\w+)(?:\[(?P<case>.+)\])?)?")
MOST_ASKED_FOR = 40


@cache
def read_tests(path: Path) -> tuple[frozenset[str], frozenset[str]]:
    """Return the test names and the strings of a file."""
    nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    names = {node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
    texts = {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    return frozenset(name for name in names if name.startswith("test_")), frozenset(texts)


def find_missing(reference: str) -> str | None:
    """Return why a reference names no existing test, or None if it does."""
    match = TEST.fullmatch(reference)
    if match is None or not (ROOT / match["file"]).is_file():
        return "no such file"
    names, texts = read_tests(ROOT / match["file"])
    if match["name"] is None:
        return None if names else "a file without tests"
    if match["name"] not in names:
        return "no such test"
    return None if match["case"] is None or match["case"] in texts else "no such case"


def test_every_attack_has_a_test() -> None:
    """The table has at least forty rows without gaps, each with a test that no other row has."""
    text = ATTACKS.read_text(encoding="utf-8")
    rows = ROW.findall(text)
    assert len(rows) == sum(line.startswith("| ") and line[2].isdigit() for line in text.splitlines())
    assert [int(number) for number, *_ in rows] == list(range(1, len(rows) + 1))
    assert len(rows) >= MOST_ASKED_FOR
    tests = [test for *_, test in rows]
    assert {test: why for test in tests if (why := find_missing(test))} == {}
    assert len(set(tests)) == len(tests)


def test_every_defence_has_a_test() -> None:
    """The tests that the threat model names exist, whether it gives their file or only their name."""
    named = re.findall(r"`(tests/[\w/.]+|test_\w+)`", THREAT_MODEL.read_text(encoding="utf-8"))
    assert len(named) > MOST_ASKED_FOR / 2
    texts = (path.read_text(encoding="utf-8") for path in ROOT.glob("tests/**/test_*.py"))
    known = {name for text in texts for name in re.findall(r"def (test_\w+)\(", text)}
    assert [
        name for name in named if not (name in known or (name.startswith("tests/") and (ROOT / name).exists()))
    ] == []
