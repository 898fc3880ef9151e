"""The blocks of documentation pages that need a Kafka broker run, and print the documented output."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.doc_pages import list_steps, run_page
from tests.support.java_machine import JavaMachine
from tests.support.server_process import serving

ROOT = Path(__file__).parent.parent.parent
PAGES = [
    page
    for page in sorted(ROOT.glob("docs/**/*.md"))
    if any(step.needs_broker for step in list_steps(page.read_text(encoding="utf-8")))
]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_pages_run_with_a_broker(page: Path, broker: str, tmp_path: Path, java_machine: JavaMachine) -> None:
    """All blocks of the page run, including those for Kafka."""
    with serving("--store", "memory:", folder=tmp_path) as server:
        run_page(page, tmp_path, server.url, broker, java_machine)
