"""Writes docs/reference/coverage.md from a JSON report of coverage.py: the share of lines run, by part."""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

PAGE = Path(__file__).parent.parent / "docs" / "reference" / "coverage.md"

INTRODUCTION = """# Coverage

Lines of `src/stele` that the tests in `tests/unit`, `tests/property`, `tests/conformance` and `tests/system` run, by
part. `make coverage` measures it and writes this page. Lines that run only inside Spark's own processes, in server
processes or in compiled kernels are not counted, so the figures of `spark`, `server` and `cli` are too low.
"""


def count_lines(report: dict[str, Any]) -> dict[str, tuple[int, int]]:
    """Return (lines, lines run) by part, from a report of coverage.py."""
    parts: dict[str, tuple[int, int]] = defaultdict(lambda: (0, 0))
    for name, file in report["files"].items():
        part = Path(name).parts[2].removesuffix(".py")
        lines, covered = parts[part]
        summary = file["summary"]
        parts[part] = lines + summary["num_statements"], covered + summary["covered_lines"]
    return dict(parts)


def render_page(parts: dict[str, tuple[int, int]]) -> str:
    """Return the page as Markdown."""
    rows = [*sorted(parts.items()), ("all", (sum(n for n, _ in parts.values()), sum(n for _, n in parts.values())))]
    table = [f"| {part} | {lines} | {covered / (lines or 1):.0%} |" for part, (lines, covered) in rows]
    return "\n".join([INTRODUCTION, "| part | lines | run |", "|---|--:|--:|", *table]) + "\n"


if __name__ == "__main__":
    PAGE.write_text(
        render_page(count_lines(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")))), encoding="utf-8"
    )
