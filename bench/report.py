"""Shows and saves the results of a bench: a table on the terminal and `bench/results/<name>.json`."""

from __future__ import annotations

import json
import os
import platform
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console
from rich.table import Table

from stele import __version__

__all__ = ["Row", "machine", "report"]

Row = Mapping[str, str | int | float]
"""One line of a result: column → value. Rows may have different columns."""

RESULTS = Path(__file__).parent / "results"
_ROOT = f"{Path(__file__).parent.parent}/"


def machine() -> dict[str, str | int | float]:
    """Return the machine, system and versions of the measurement."""
    cpuinfo = Path("/proc/cpuinfo")
    models = [
        line.partition(":")[2].strip()
        for line in (cpuinfo.read_text().splitlines() if cpuinfo.exists() else [])
        if line.startswith("model name")
    ]
    return {
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": " ".join(["python", *(word.removeprefix(_ROOT) for word in sys.orig_argv[1:])]),
        "stele": __version__,
        "python": platform.python_version(),
        "system": platform.platform(),
        "cpu": models[0] if models else platform.processor() or "unknown",
        "cpus": os.cpu_count() or 0,
        "load": round(os.getloadavg()[0], 2),
    }


def report(
    name: str, rows: Sequence[Row], notes: Sequence[str] = (), versions: Mapping[str, str] | None = None
) -> Path:
    """Print rows as a table and save them as JSON, with the machine and the versions of the measured packages.

    Returns the path of the JSON file. A bench compares things timed in one run: put the ratios in a column.
    """
    where = {**machine(), **(versions or {})}
    columns = list(dict.fromkeys(column for row in rows for column in row))
    table = Table(*columns, title=name)
    for row in rows:
        table.add_row(*(_print_cell(row.get(column, "")) for column in columns))
    console = Console(width=max(Console().width, 120))
    console.print(table)
    for note in notes:
        console.print(f"- {note}", highlight=False)
    console.print(", ".join(f"{key} {value}" for key, value in where.items()), style="dim", highlight=False)
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{name}.json"
    path.write_text(json.dumps({"name": name, "machine": where, "rows": rows, "notes": notes}, indent=2) + "\n")
    return path


def _print_cell(value: str | float) -> str:
    if isinstance(value, str):
        return value
    return f"{value:,.0f}" if isinstance(value, int) or abs(value) >= 1000 else f"{value:.3g}"
