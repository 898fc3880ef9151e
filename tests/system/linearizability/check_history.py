"""Checks the history of a run: `python -m tests.system.linearizability.check_history FILE [SECONDS]`.

SECONDS is the lag that answers to ids and exact versions may have (`Store.lag`). The default is that of a local store.
"""

from __future__ import annotations

import sys
from pathlib import Path

from tests.system.linearizability.history import allow_lag, read_history
from tests.system.linearizability.invariants import find_violations
from tests.system.linearizability.stores import LOCAL_LAG_SECONDS


def main(file: str, lag: float | str = LOCAL_LAG_SECONDS) -> int:
    """Print the violations in a history and return their number."""
    violations = find_violations(allow_lag(read_history(Path(file)), float(lag)))
    print("\n".join(violations) or "nothing is wrong")  # noqa: T201 - what the command is for
    return len(violations)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]) != 0)
