"""How deciding asks for what it cannot know: whether one schema reads another's data.

`decide` is pure and knows no schema language. Where a verdict is missing it raises `VerdictsRequired` with the
questions. The service answers them off the event loop, remembers the answers (they never change) and decides again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from stele.core.findings import Finding


class SchemaSource(NamedTuple):
    """A schema by the SHA-256 of its text, with the names and texts of all it refers to, dependencies first."""

    sha: bytes
    references: tuple[tuple[str, bytes], ...] = ()


VALIDATOR_PREFIX = "checker:"
"""Prefix of the ruleset of a question that goes to a named validator of a policy instead of a format's ruleset."""


class CompatibilityRequest(NamedTuple):
    """Can `reader` read what `writer` wrote?

    ruleset is what the settings name, '' for the format's default; a name the format does not have means the default,
    too. adopted are the versions of the format's rulesets that the registry has taken over: with both, the question
    has one answer for ever, whatever is installed where it is asked.
    """

    format: str
    ruleset: str
    reader: SchemaSource
    writer: SchemaSource
    adopted: tuple[tuple[str, int], ...] = ()


Verdicts = Mapping[CompatibilityRequest, tuple[Finding, ...]]


class VerdictsRequired(Exception):
    """Verdicts are missing; the most urgent question first."""

    def __init__(self, requests: tuple[CompatibilityRequest, ...]) -> None:
        super().__init__(f"{len(requests)} verdicts missing")
        self.questions = requests
