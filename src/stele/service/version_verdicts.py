"""Verdicts between registered versions, as many as time allows, for histories and matrices.

A verdict never changes, so verdicts are cached together with those of registrations, and the next answer continues from
there.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from stele.core import queries
from stele.core.compatibility_requests import CompatibilityRequest, SchemaSource
from stele.core.findings import Finding, Verdict
from stele.core.model import Reference, SettingsLevel, SubjectKey, Version
from stele.core.state import State
from stele.errors import UnresolvedReference
from stele.service.registry import Registry

SECONDS: Final = 2.0
"""Seconds of work on verdicts after which an answer ends."""


class KnownVerdicts(NamedTuple):
    """Findings by question, None for a question that cannot be answered.

    `is_complete` is False if the time was up before all questions were answered.
    """

    findings: Mapping[CompatibilityRequest, tuple[Finding, ...] | None]
    is_complete: bool = True

    def find_verdict(self, question: CompatibilityRequest | None) -> Verdict | None:
        """Return the verdict of a question; None where there is none."""
        findings = None if question is None else self.findings.get(question)
        return None if findings is None else Verdict.from_findings(findings)

    def list_breaks(self, question: CompatibilityRequest | None) -> list[Finding]:
        """Return the findings of a question that break."""
        findings = None if question is None else self.findings.get(question)
        return [finding for finding in findings or () if finding.breaks]


class VersionQuestions:
    """Creates the questions about versions of one subject: the same ones that a registration needs.

    Args:
        state: State of the registry.
        key: The subject.
        ruleset: Ruleset that replaces the one in force; None keeps that one, '' is the format's own.
    """

    def __init__(self, state: State, key: SubjectKey, ruleset: str | None = None) -> None:
        self._state = state
        in_force = queries.settings_for(state, SettingsLevel(*key)).ruleset or ""
        self._ruleset = in_force if ruleset is None else ruleset
        self._adopted: dict[str, tuple[tuple[str, int], ...]] = {}
        self._closures: dict[tuple[Reference, ...], tuple[tuple[str, bytes], ...] | None] = {(): ()}

    def ask(self, reader: Version, writer: Version) -> CompatibilityRequest | None:
        """Return the question whether a version reads data of another; None if they cannot be compared."""
        language = reader.kind.format
        if language != writer.kind.format:
            return None
        if language not in self._adopted:
            self._adopted[language] = queries.adopted_rulesets(self._state, language)
        sources = self._find_source(reader), self._find_source(writer)
        if sources[0] is None or sources[1] is None:
            return None
        return CompatibilityRequest(language, self._ruleset, sources[0], sources[1], self._adopted[language])

    def _find_source(self, version: Version) -> SchemaSource | None:
        references = version.schema.attachments.references
        if references not in self._closures:
            try:
                self._closures[references] = queries.resolve_references(self._state, references)
            except UnresolvedReference:
                self._closures[references] = None
        closure = self._closures[references]
        return None if closure is None else SchemaSource(version.content.sha, closure)


async def find_verdicts(registry: Registry, questions: Sequence[CompatibilityRequest]) -> KnownVerdicts:
    """Return the verdicts of questions. Missing ones are computed for about `SECONDS`.

    Raises `Overloaded`.
    """
    checker = registry.compatibility
    verdicts: dict[CompatibilityRequest, tuple[Finding, ...] | None] = {}
    missing: deque[CompatibilityRequest] = deque()
    for question in dict.fromkeys(questions):
        known = checker.verdicts.get(question)
        if known is None:
            missing.append(question)
        else:
            verdicts[question] = known
    until = time.monotonic() + SECONDS
    while missing:
        work = checker.take_comparisons(registry.state, missing)
        answers = await registry.run_stateless(checker.compare_until, work, until)
        checker.remember_verdicts(answers)
        verdicts |= answers
        if len(answers) < len(work):
            return KnownVerdicts(verdicts, is_complete=False)
    return KnownVerdicts(verdicts)
