"""Requests for compatibility verdicts: whether one schema reads another's data.

`decide` is pure and knows no schema language. If a verdict is missing, it raises `VerdictsRequired` with the questions.
The service answers them off the event loop, caches the answers (they never change), and decides again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from stele.core.findings import Finding


class SchemaSource(NamedTuple):
    """A schema by the SHA-256 of its text, with names and SHA-256 of all its references, dependencies first."""

    sha: bytes
    references: tuple[tuple[str, bytes], ...] = ()


VALIDATOR_PREFIX = "checker:"
"""Ruleset prefix of a question for a named validator of a policy instead of a ruleset of the format."""


class CompatibilityRequest(NamedTuple):
    """The question whether `reader` can read data of `writer`.

    ruleset is the name in the settings, '' for the format's default. A name that the format does not have means the
    default, too. adopted are the versions of the format's rulesets that the registry adopted. With both, the answer to
    a question never changes, whatever is installed where it is answered.
    """

    format: str
    ruleset: str
    reader: SchemaSource
    writer: SchemaSource
    adopted: tuple[tuple[str, int], ...] = ()


Verdicts = Mapping[CompatibilityRequest, tuple[Finding, ...]]


class VerdictsRequired(Exception):
    """Raised when verdicts are missing, with the most urgent question first."""

    def __init__(self, requests: tuple[CompatibilityRequest, ...]) -> None:
        super().__init__(f"{len(requests)} verdicts missing")
        self.questions = requests
