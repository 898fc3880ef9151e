"""The lock files and the list of ignored advisories are complete, as far as a test without a network can check it.

`make audit` queries a database of advisories. It needs a network and is a separate step.
"""

from __future__ import annotations

import datetime as dt
import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
LOCKS = sorted((ROOT / "requirements").glob("*.lock"))
IGNORED = re.compile(
    r"(?:GHSA(?:-[a-z0-9]{4}){3}|CVE-\d{4}-\d+|PYSEC-\d{4}-\d+) .+ until (?P<day>\d{4}-\d{2}-\d{2})\.?"
)
LONGEST = dt.timedelta(days=366)
PINNED = re.compile(r"[A-Za-z0-9._-]+(\[[\w,-]+\])?==[^ ;]+( ; .+)?")
HASH = re.compile(r"--hash=sha256:[0-9a-f]{64}")


def find_wrong_lines(text: str, today: dt.date) -> list[str]:
    """Return the lines without id, reason or date, and those whose date is past or too far in the future."""
    wrong = []
    for line in text.splitlines():
        if not line or line.startswith("#"):
            continue
        match = IGNORED.fullmatch(line)
        if match is None or not today <= dt.date.fromisoformat(match["day"]) <= today + LONGEST:
            wrong.append(line)
    return wrong


def test_the_supported_pythons_are_said_alike() -> None:
    """Classifiers, `requires-python`, tools, locks and pages name the same Python releases."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    prefix = "Programming Language :: Python :: 3."
    pythons = [f"3.{name.removeprefix(prefix)}" for name in project["project"]["classifiers"] if prefix in name]
    assert project["project"]["requires-python"] == f">={pythons[0]}"
    assert project["tool"]["mypy"]["python_version"] == pythons[0]
    assert project["tool"]["ruff"]["target-version"] == f"py{pythons[0].replace('.', '')}"
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert set(re.findall(r"--python-version (\S+)", makefile)) == {pythons[0]}
    listed = f"{', '.join(pythons[:-1])} {{}} {pythons[-1]}"
    pages = {"README.md": "or", "docs/how-to/install.md": "or", "CONTRIBUTING.md": "and", "tests/README.md": "and"}
    for page, word in {**pages, "Makefile": "and"}.items():
        assert listed.format(word) in (ROOT / page).read_text(encoding="utf-8").replace("**", ""), page


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.name)
def test_every_pin_has_hashes(lock: Path) -> None:
    """Each package in a lock has one version and SHA-256 hashes, so that a replaced file is not installed."""
    text = lock.read_text(encoding="utf-8").replace("\\\n", " ")
    rows = [line.partition("#")[0].strip() for line in text.splitlines() if line.strip() and line[0] not in " #"]
    assert rows
    for row in rows:
        pin, *hashes = re.split(r"\s+(?=--hash)", row)
        assert PINNED.fullmatch(pin.strip()), pin
        assert hashes, pin
        assert all(HASH.fullmatch(each.strip()) for each in hashes), pin


def test_every_lock_is_audited() -> None:
    """`make audit` checks all locks, including new ones."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    match = re.search(r"^AUDITED = .*addsuffix \.lock,([\w ]+)\)", makefile, re.MULTILINE)
    assert match is not None
    assert set(match[1].split()) == {lock.stem for lock in LOCKS}


def test_ignored_advisories_have_a_reason_and_an_end() -> None:
    """An ignored advisory has a reason and a date at most a year ahead, after which it must be reviewed again."""
    text = (ROOT / "requirements" / "audit-ignored.txt").read_text(encoding="utf-8")
    assert find_wrong_lines(text, dt.datetime.now(tz=dt.UTC).date()) == []


@pytest.mark.parametrize(
    ("line", "is_right"),
    [
        ("CVE-2026-1 only its command line is concerned, which nothing calls; until 2026-12-31", True),
        ("GHSA-aaaa-bbbb-cccc tests only, until 2026-12-31.", True),
        ("CVE-2026-1", False),
        ("CVE-2026-1 tests only", False),
        ("CVE-2026-1 tests only, until 2026-10-31", False),
        ("CVE-2026-1 tests only, until 2099-12-31", False),
        ("every one until 2026-12-31", False),
    ],
)
def test_which_lines_are_right(line: str, is_right: bool) -> None:
    """A line without an id, a reason or a date within a year is wrong."""
    assert (find_wrong_lines(line, dt.date(2026, 11, 24)) == []) is is_right
