"""Makes `format_cases` importable in this folder, and keeps verdicts independent of the machine's load."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.support.patient_search import let_steps_end_searches


@pytest.fixture(scope="module", autouse=True)
def patience() -> Iterator[None]:
    """Let steps, not time, end searches; see `let_steps_end_searches`."""
    with pytest.MonkeyPatch.context() as patch:
        let_steps_end_searches(patch)
        yield
