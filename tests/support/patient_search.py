"""Limits of JSON Schema's containment for tests: verdicts that no slow machine changes, proofs given up soon."""

from __future__ import annotations

import pytest

from stele.formats.jsonschema.containment import search
from stele.formats.jsonschema.containment.provers import PROVER


def let_steps_end_searches(patch: pytest.MonkeyPatch) -> None:
    """Let steps alone end a search for a counter-example, and give a proof as long as it needs."""
    patch.setattr(search, "LONGEST", 60.0)
    patch.setattr(PROVER._engine, "_deadline", 60.0)


def shorten_proofs(patch: pytest.MonkeyPatch) -> None:
    """Give a proof a tenth of its time: what is left without one is given up the same way, and sooner."""
    patch.setattr(PROVER._engine, "_deadline", PROVER._engine._deadline / 10)
