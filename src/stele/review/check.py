"""Compares schema files with earlier versions of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from stele.core.findings import Direction, Finding, Severity, WhenUndecided
from stele.core.policy import BACKWARD, Policy
from stele.errors import InvalidRequest, MalformedSchema, UnknownRuleset
from stele.formats.registry import get_format
from stele.review.report import FileFinding, FileReport, FindingLocator, Outcome, report_malformed
from stele.service.check import Adopted, Candidate, ParsedVersion, compare_versions, parse_candidate, select_ruleset
from stele.service.limits import Limits
from stele.service.validators import run_validator


class Baseline(msgspec.Struct, frozen=True):
    """An earlier version: its number, its text with references, and its name in reports."""

    number: int
    schema: Candidate
    label: str


class CheckRules(msgspec.Struct, frozen=True):
    """Rules for the check of a file.

    policy     which versions it is compared with, in which direction
    ruleset    name of the ruleset, '' for the format's default
    adopted    versions of rulesets that the registry has adopted; None without a registry
    undecided  whether a change is refused if no rule can decide
    """

    policy: Policy = BACKWARD
    ruleset: str = ""
    adopted: Adopted | None = None
    undecided: WhenUndecided = WhenUndecided.REFUSE


def check_file(
    file: str, format_name: str, schema: Candidate, baselines: Sequence[Baseline], rules: CheckRules
) -> FileReport:
    """Compare a file with earlier versions, oldest first. A file that is not a schema results in a report, too.

    Raises `UnknownRuleset`, `TooLarge`, and `InvalidRequest` for an earlier version that is not a schema.
    """
    fmt, limits = get_format(format_name), Limits()
    ruleset = select_ruleset(fmt, rules.ruleset, rules.adopted)
    try:
        new = parse_candidate(fmt, schema, limits, strict=not baselines)
    except MalformedSchema as error:
        return report_malformed(file, schema.schema, error)
    labels = {baseline.number: baseline.label for baseline in baselines}
    newest_first = [ParsedVersion(each.number, _parse_baseline(fmt, each, limits)) for each in reversed(baselines)]
    locator = FindingLocator(fmt, new, schema.schema)
    findings: list[FileFinding] = []
    parsed = {version.version_number: version.parsed for version in newest_first}
    for compared in compare_versions(fmt, new, newest_first, rules.policy, ruleset):
        numbered = msgspec.structs.replace(compared.finding, against=compared.version_number)
        (finding,) = rules.undecided.weigh_findings([numbered])
        reader = new if compared.direction is Direction.BACKWARD else parsed[compared.version_number]
        position = locator.locate(finding.path, reader)
        findings.append(
            FileFinding.from_finding(
                finding,
                position,
                compared_with=labels[compared.version_number],
                direction=compared.direction,
            )
        )
    before = newest_first[0].parsed if newest_first else None
    findings += (
        FileFinding.from_finding(finding, locator.locate(finding.path))
        for finding in _run_validators(fmt, new, before, rules)
    )
    used = [labels[version.version_number] for version, _, _ in rules.policy.list_comparisons(newest_first)]
    if any(finding.breaks for finding in findings):
        outcome = Outcome.FAILED
    else:
        outcome = Outcome.PASSED if baselines else Outcome.UNCOMPARED
    return FileReport(file, outcome, tuple(findings), ruleset if used else "", tuple(used))


def _parse_baseline(fmt: Any, baseline: Baseline, limits: Limits) -> Any:
    try:
        return parse_candidate(fmt, baseline.schema, limits, strict=False)
    except MalformedSchema as error:
        raise InvalidRequest(f"{baseline.label} is not a valid {fmt.name} schema: {error}") from None


def _run_validators(fmt: Any, new: Any, before: Any, rules: CheckRules) -> Sequence[Finding]:
    """Return the findings of the policy's validators. A validator that is not installed here is a warning."""
    adopted = {name: version for (of, name), version in (rules.adopted or {}).items() if of == fmt.name}
    findings: list[Finding] = []
    for name in rules.policy.validators:
        try:
            findings += run_validator(name, fmt, new, before, adopted)
        except UnknownRuleset as error:
            why = f"The policy names the validator {name}, which is not available here: {error}."
            findings.append(
                Finding("VALIDATOR_NOT_INSTALLED", "", why=why, fix="Install it here, too.", level=Severity.WARNING)
            )
    return findings


def broken_import_report(file: str, needed: str) -> FileReport:
    """Return the report of a file that refers to a file which is not a schema."""
    why = f"It refers to {needed}, which is not a schema."
    finding = FileFinding("IMPORT_INVALID", "", why=why, fix=f"Mend {needed}.", line=1, column=1)
    return FileReport(file, Outcome.INVALID, (finding,), error=why)


def removed_file_report(file: str, label: str) -> FileReport:
    """Return the report of a removed file: a warning, because the removal breaks nothing by itself."""
    why = f"The file is in {label} and no longer here: its subject gets no more versions from this folder."
    finding = FileFinding(
        "SCHEMA_REMOVED",
        "",
        why=why,
        fix="Bring the file back if it only moved: a moved file is compared with nothing.",
        level=Severity.WARNING,
        compared_with=label,
    )
    return FileReport(file, Outcome.PASSED, (finding,), compared_with=(label,))


def count_compared(reports: Sequence[FileReport]) -> int:
    """Return how many files were compared with something."""
    return sum(1 for report in reports if report.compared_with)
