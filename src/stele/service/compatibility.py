"""Answers the compatibility requests of `decide`: can one schema read data of another?

Verdicts never change, so they are cached.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict, deque
from collections.abc import Iterable, Mapping
from typing import Final

from stele.core.compatibility_requests import VALIDATOR_PREFIX, CompatibilityRequest, Verdicts
from stele.core.findings import Finding, WhenUndecided
from stele.core.state import State
from stele.errors import SteleError
from stele.formats import rulesets
from stele.formats.registry import get_format
from stele.service import validators
from stele.service.progress import current_progress
from stele.service.schemas import (
    SchemaParser,
    SchemaTexts,
    are_quick,
    collect_texts,
    estimate_source_memory,
    measure_texts,
)

_REMEMBERED_BYTES: Final = 32 << 20
"""Approximate limit of the memory of cached verdicts, in bytes. Beyond it, the oldest ones are dropped."""
_FINDING_BYTES: Final = 300
"""Estimated bytes of a finding besides its texts."""
_BATCH: Final = 32
"""Maximum number of comparisons whose texts are in memory together, in background work."""
_BATCH_BYTES: Final = 16 << 20
"""Length of these texts in bytes after which no further comparison is added."""
_QUICK_QUESTIONS: Final = 2
"""Number of comparisons of short texts that need no thread: both directions with one version."""

Comparison = tuple[CompatibilityRequest, SchemaTexts, SchemaTexts]
"""A question with the texts of the reader and of the writer."""


class CompatibilityChecker:
    """Compares schemas by the rules of their formats, off the event loop, and caches the verdicts."""

    def __init__(self, schemas: SchemaParser, undecided: WhenUndecided = WhenUndecided.REFUSE) -> None:
        self._schemas = schemas
        self.undecided = undecided
        self._known: OrderedDict[CompatibilityRequest, tuple[Finding, ...]] = OrderedDict()
        self._bytes = 0

    @property
    def verdicts(self) -> Verdicts:
        """Cached verdicts; old ones may be dropped."""
        return self._known

    async def answer_requests(
        self, state: State, questions: tuple[CompatibilityRequest, ...], extra: Mapping[bytes, bytes]
    ) -> dict[CompatibilityRequest, tuple[Finding, ...]]:
        """Return verdicts for the questions, in order, up to the first that refuses. The others are not needed then."""
        work = [(q, collect_texts(state, q.reader, extra), collect_texts(state, q.writer, extra)) for q in questions]
        verdicts: dict[CompatibilityRequest, tuple[Finding, ...]] = {}
        try:
            if _are_quick(work):
                self._compare_all(work, verdicts)
            else:
                await asyncio.to_thread(self._compare_all, work, verdicts)
        finally:
            # A caller that is cancelled and asks again continues from there.
            self._remember(dict(verdicts))
        return verdicts

    def take_comparisons(self, state: State, questions: deque[CompatibilityRequest]) -> list[Comparison]:
        """Take questions from the left, with the texts they need, as many as may be in memory together.

        A question about a purged text is dropped.
        """
        taken: list[Comparison] = []
        size = 0
        while questions and len(taken) < _BATCH and size < _BATCH_BYTES:
            question = questions.popleft()
            try:
                texts = collect_texts(state, question.reader), collect_texts(state, question.writer)
            except KeyError:  # purged meanwhile
                continue
            taken.append((question, *texts))
            size += sum(measure_texts(side) for side in texts)
        return taken

    def compare_until(
        self, work: Iterable[Comparison], until: float
    ) -> dict[CompatibilityRequest, tuple[Finding, ...] | None]:
        """Answer questions one by one in the calling thread, until a time of the clock `time.monotonic`.

        Unlike `answer_requests` it continues after a verdict that breaks. None stands for a question that cannot be
        answered. Pass the answers to `remember_verdicts`, which belongs to the event loop.
        """
        verdicts: dict[CompatibilityRequest, tuple[Finding, ...] | None] = {}
        for comparison in work:
            if time.monotonic() >= until:
                break
            try:
                verdicts[comparison[0]] = self._compare(comparison)
            except SteleError:
                verdicts[comparison[0]] = None
        return verdicts

    def remember_verdicts(self, verdicts: Mapping[CompatibilityRequest, tuple[Finding, ...] | None]) -> None:
        """Cache answers. Questions that could not be answered are not cached."""
        self._remember({question: findings for question, findings in verdicts.items() if findings is not None})

    def _remember(self, verdicts: Verdicts) -> None:
        for question, findings in verdicts.items():
            if question not in self._known:
                self._known[question] = findings
                self._bytes += _estimate_memory(question, findings)
        while self._bytes > _REMEMBERED_BYTES:
            self._bytes -= _estimate_memory(*self._known.popitem(last=False))

    def _compare_all(
        self,
        work: list[Comparison],
        verdicts: dict[CompatibilityRequest, tuple[Finding, ...]],
    ) -> None:
        """Add a verdict to `verdicts` for each question, up to the first that refuses."""
        progress = current_progress()
        progress.plan_comparisons(len(work))
        for comparison in work:
            verdicts[comparison[0]] = findings = self._compare(comparison)
            progress.add_findings(findings)
            progress.count_comparison()
            if any(finding.breaks for finding in findings):
                break

    def _compare(self, comparison: Comparison) -> tuple[Finding, ...]:
        question, reader_texts, writer_texts = comparison
        fmt = get_format(question.format)
        reader = self._schemas.parse_source(fmt, question.reader, reader_texts)
        adopted = dict(question.adopted)
        if question.ruleset.startswith(VALIDATOR_PREFIX):
            # Validators compare the first document of a subject with itself.
            first = question.writer == question.reader
            before = None if first else self._schemas.parse_source(fmt, question.writer, writer_texts)
            name = question.ruleset.removeprefix(VALIDATOR_PREFIX)
            findings = validators.run_validator(name, fmt, reader, before, adopted)
        else:
            writer = self._schemas.parse_source(fmt, question.writer, writer_texts)
            ruleset = rulesets.require_effective(fmt, question.ruleset, adopted)
            findings = tuple(rulesets.run_ruleset(fmt, reader, writer, ruleset))
        return self.undecided.weigh_findings(findings)


def _are_quick(work: list[Comparison]) -> bool:
    """Return whether comparisons take less time than starting a thread. The time of a validator is unknown."""
    return len(work) <= _QUICK_QUESTIONS and all(
        not question.ruleset.startswith(VALIDATOR_PREFIX) and are_quick(get_format(question.format), reader, writer)
        for question, reader, writer in work
    )


def _estimate_memory(question: CompatibilityRequest, findings: tuple[Finding, ...]) -> int:
    """Return the approximate size in bytes of a verdict with its question."""
    question_bytes = estimate_source_memory(question.reader) + estimate_source_memory(question.writer)
    texts = (text for row in findings for text in (row.path, row.reader, row.writer, row.why, row.fix, row.witness))
    return question_bytes + _FINDING_BYTES * len(findings) + sum(len(text) for text in texts if text)
