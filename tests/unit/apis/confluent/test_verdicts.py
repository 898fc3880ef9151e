"""Findings as the messages of the Confluent API."""

from __future__ import annotations

from stele.apis.confluent.verdicts import messages
from stele.core.findings import Finding, Level
from stele.core.model import SubjectKey
from stele.core.state import State


def test_doubt_is_told_apart_from_a_break() -> None:
    """What no rule could decide is refused with those words; a proven break goes without."""
    findings = [Finding("R", "/a", why="It may break.", level=level) for level in (Level.ERROR, Level.UNKNOWN)]
    proven, doubtful, _ = messages(State(), SubjectKey("", "s"), findings, None)
    assert "description:'It may break, at path '/a''" in proven
    assert "description:'Not decided, hence refused: It may break, at path '/a''" in doubtful
