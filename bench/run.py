"""Runs every benchmark, one after the other; `python -m bench.run NAME …` runs only those.

`bench.registrations` compares two checkouts, so it is started by itself.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).parent
NOT_RUN = {"run", "report", "http_load", "server_process", "spark_formats_java", "registrations"}


def _run(name: str) -> int:
    return subprocess.run([sys.executable, "-m", f"bench.{name}"], check=False, cwd=FOLDER.parent).returncode


def main(names: list[str]) -> int:
    """Run the benchmarks and return 0 if all of them succeeded."""
    known = sorted(path.stem for path in FOLDER.glob("*.py") if path.stem not in NOT_RUN)
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
