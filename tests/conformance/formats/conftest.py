"""Makes `format_cases` importable for the tests of this folder, whose verdicts do not depend on a busy machine."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from stele.formats.jsonschema.containment import search
from stele.formats.jsonschema.containment.provers import PROVER


@pytest.fixture(scope="module", autouse=True)
def patience() -> Iterator[None]:
    """Let steps alone end a search for a counter-example, and give a proof as long as it needs."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(search, "LONGEST", 60.0)
        patch.setattr(PROVER._engine, "_deadline", 60.0)
        yield
