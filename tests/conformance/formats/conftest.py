"""Makes `format_cases` importable for the tests of this folder, whose verdicts do not depend on a busy machine."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.support.patient_search import let_steps_end_searches


@pytest.fixture(scope="module", autouse=True)
def patience() -> Iterator[None]:
    """See `let_steps_end_searches`."""
    with pytest.MonkeyPatch.context() as patch:
        let_steps_end_searches(patch)
        yield
