"""The published results are those of today's code."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]


def test_results_are_current() -> None:
    """docs/reference/conformance.md and the README's table are what the tool writes today."""
    command = [sys.executable, "-m", "tools.conformance", "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stderr
