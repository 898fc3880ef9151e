"""Malformed bytes do not make a worker crash, hang or use too much memory, for every language and wire."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

PATIENCE = 600
"""Timeout for the whole run in seconds, on a slow machine; alone, it takes ten."""


@pytest.fixture(scope="module")
def worker_answers() -> dict[str, Any]:
    """The figures of the process that decodes all inputs.

    A process that hangs is killed; one that crashes fails the tests.
    """
    command = [sys.executable, "-m", "tests.unit.spark.malformed", "7"]
    root = Path(__file__).parents[3]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False, cwd=root)
    assert done.returncode == 0, done.stderr[-3000:]
    answers: dict[str, Any] = json.loads(done.stdout)
    return answers


def test_everything_is_read_or_refused(worker_answers: dict[str, Any]) -> None:
    """Thousands of inputs for four languages and all wires each give a value or a reason, and most are bad."""
    records, bad = (sum(counts) for counts in zip(*worker_answers["told"].values(), strict=True))
    assert len(worker_answers["told"]) >= 30
    assert records > 10_000
    assert bad > records / 2
    assert all(wrong for _, wrong in worker_answers["told"].values())


def test_no_batch_takes_long(worker_answers: dict[str, Any]) -> None:
    """The time of the slowest batch is limited. A batch has hundreds of such inputs, some of 100 kB."""
    name, seconds = worker_answers["slowest"]
    assert seconds < 120, f"{name} took {seconds} s"


def test_memory_is_bounded(worker_answers: dict[str, Any]) -> None:
    """No memory is allocated for lengths and counts that a record only claims."""
    assert worker_answers["peak MiB"] < 2500
