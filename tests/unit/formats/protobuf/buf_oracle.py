"""Asks the `buf` program, many pairs of modules in one call."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

BUF = Path(sys.executable).parent / "buf"
CATEGORIES = ("FILE", "PACKAGE", "WIRE_JSON", "WIRE", "CSR")

_PAIR = re.compile(r'\bp(\d+)[/."]')

Files = Mapping[str, str]


def rules_by_category() -> dict[str, set[str]]:
    """Return the rules of each category."""
    lines = _run_buf("config", "ls-breaking-rules", "--format", "json").stdout.splitlines()
    rules = [json.loads(line) for line in lines]
    return {name: {rule["id"] for rule in rules if name in rule["categories"]} for name in CATEGORIES}


def broken_rules(
    pairs: Mapping[int, tuple[Files, Files]], folder: Path, use: str = ", ".join(CATEGORIES)
) -> dict[int, set[str]]:
    """The ids of the rules each pair breaks; pairs are (new, old) files, all below a folder `p<number>`.

    Built-in files do not count. Raises RuntimeError when some file does not compile.
    """
    for side, name in enumerate(("new", "old")):
        (folder / name).mkdir(parents=True)
        (folder / name / "buf.yaml").write_text(f"version: v2\nbreaking:\n  use: [{use}]\n")
        for files in pairs.values():
            for path, text in files[side].items():
                target = folder / name / path
                target.parent.mkdir(exist_ok=True, parents=True)
                target.write_text(text)
    answer = _run_buf(
        "breaking", str(folder / "new"), "--against", str(folder / "old"), "--error-format", "json", "--exclude-imports"
    )
    if answer.returncode not in {0, 100} or '"type":"COMPILE"' in answer.stdout:
        raise RuntimeError(f"{answer.stderr}\n{answer.stdout}")
    broken: dict[int, set[str]] = {number: set() for number in pairs}
    for line in answer.stdout.splitlines():
        finding = json.loads(line)
        broken[_find_pair(finding, pairs, folder)].add(finding["type"])
    return broken


def _find_pair(finding: Mapping[str, str], pairs: Mapping[int, object], folder: Path) -> int:
    """Return the number of the pair that a finding is about: by its file, else by the names in its message.

    With only one pair, its number is returned.
    """
    if len(pairs) == 1:
        return next(iter(pairs))
    match = _PAIR.search(finding.get("path", "").removeprefix(str(folder))) or _PAIR.search(finding["message"])
    if match is None:
        raise RuntimeError(f"which pair is this about: {finding}")
    return int(match[1])


def _run_buf(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([BUF, *arguments], capture_output=True, text=True, check=False)
