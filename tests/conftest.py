"""Loads the profile of generated examples, sets how Spark starts Java, and starts what takes longest first."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest
from tests.support.examples import load_profile
from tests.support.spark_jvm import start_machines_fast

load_profile()
start_machines_fast()

LONGEST_FIRST: Final = ("test_docs.py", "test_walkthrough.py", "spark", "interop", "system", "property", "conformance")
"""Files and folders by the time of their tests; the rest, seconds each, comes last and fills the gaps."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the files that take longest in front: workers take files in this order, and so end together."""
    here = Path(__file__).parent
    ranks = {name: rank for rank, name in enumerate(LONGEST_FIRST)}
    items.sort(key=lambda item: ranks.get(item.path.relative_to(here).parts[0], len(ranks)))
