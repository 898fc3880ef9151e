"""Limits of JSON Schema's containment for tests: verdicts that do not depend on a fast machine, and short proofs."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from stele.formats.jsonschema.containment import search
from stele.formats.jsonschema.containment.provers import PROVER
from stele.formats.jsonschema.json_text import Json


def let_steps_end_searches(patch: pytest.MonkeyPatch) -> None:
    """Let only the number of steps end a search for a counter-example, and give a proof 60 s."""
    patch.setattr(search, "LONGEST", 60.0)
    patch.setattr(PROVER._engine, "_deadline", 60.0)


def shorten_proofs(patch: pytest.MonkeyPatch) -> list[object]:
    """Give a proof a tenth of its time, and return the list to which each question to the prover is added.

    What stays without a proof still ends without one, only sooner. A caller checks the number of questions, because
    each of them may take the whole deadline.
    """
    engine = PROVER._engine
    questions: list[object] = []
    ask = engine.ask

    def note_question(question: Sequence[Json], lines: int = 1) -> list[str]:
        questions.append(question)
        return ask(question, lines)

    patch.setattr(engine, "_deadline", engine._deadline / 10)
    patch.setattr(engine, "ask", note_question)
    return questions
