"""Runs every benchmark, one after the other; `python -m bench.run NAME …` runs only those."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).parent
HELPERS = {"run", "report", "http_load", "spark_formats_java"}


def _run(name: str) -> int:
    return subprocess.run([sys.executable, "-m", f"bench.{name}"], check=False, cwd=FOLDER.parent).returncode


def main(names: list[str]) -> int:
    """0 when all of them ended well."""
    known = sorted(path.stem for path in FOLDER.glob("*.py") if path.stem not in HELPERS)
    unknown = set(names) - set(known)
    if unknown:
        sys.stderr.write(f"no such benchmark: {', '.join(sorted(unknown))}; known: {', '.join(known)}\n")
        return 2
    failed = [name for name in names or known if _run(name)]
    if failed:
        sys.stderr.write(f"failed: {', '.join(failed)}\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
