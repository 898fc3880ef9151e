"""Answers of the native API, from what the service gives. Pure."""

from __future__ import annotations

import msgspec

from stele.core.findings import Finding, Level
from stele.service.check import CheckAnswer


class FindingOut(msgspec.Struct, frozen=True, omit_defaults=True):
    """One reason why data written with `writer` cannot be read with `reader`, and what to do about it.

    against counts the entries of the request's `against` from 1; level is there only when it is not an error.
    """

    rule: str
    path: str
    reader: str
    writer: str
    why: str
    fix: str
    against: int | None = None
    witness: str | None = None
    level: str | None = None


class CheckOut(msgspec.Struct, frozen=True):
    """The verdict of a check: compatible when no finding is an error."""

    compatible: bool
    findings: list[FindingOut]


def check_out(answer: CheckAnswer) -> CheckOut:
    """The verdict as the API words it."""
    return CheckOut(answer.compatible, [_finding_out(finding) for finding in answer.findings])


def _finding_out(finding: Finding) -> FindingOut:
    return FindingOut(
        rule=finding.rule,
        path=finding.path,
        reader=finding.reader,
        writer=finding.writer,
        why=finding.why,
        fix=finding.fix,
        against=finding.against,
        witness=finding.witness,
        level=None if finding.level is Level.ERROR else finding.level.value,
    )
