"""Verdicts of JSON Schema's containment that do not depend on how fast the machine is."""

from __future__ import annotations

import pytest

from stele.formats.jsonschema.containment import search
from stele.formats.jsonschema.containment.provers import PROVER


def let_steps_end_searches(patch: pytest.MonkeyPatch) -> None:
    """Let steps alone end a search for a counter-example, and give a proof as long as it needs."""
    patch.setattr(search, "LONGEST", 60.0)
    patch.setattr(PROVER._engine, "_deadline", 60.0)
