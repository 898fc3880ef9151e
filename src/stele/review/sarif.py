"""Findings as SARIF 2.1.0, which GitHub, GitLab, Azure DevOps and editors can show."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import PurePath
from typing import Any, Final
from urllib.parse import quote

from stele import __version__
from stele.core.findings import Severity
from stele.review.report import FileFinding, FileReport, describe_finding

SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"
_LEVELS: Final = {Severity.ERROR: "error", Severity.UNKNOWN: "error", Severity.WARNING: "warning"}
_ROOT: Final = "SRCROOT"
"""Name of the base folder of relative paths."""


def build_sarif(reports: Sequence[FileReport]) -> dict[str, Any]:
    """Return the SARIF log as JSON values: one run, with an entry for each rule that has findings.

    Source: docs/protocols/ci-reports.md#sarif.
    """
    rules = sorted({finding.rule for report in reports for finding in report.findings})
    index = {rule: number for number, rule in enumerate(rules)}
    driver = {
        "name": "stele",
        "version": __version__,
        "rules": [{"id": rule, "shortDescription": {"text": rule.replace("_", " ").capitalize()}} for rule in rules],
    }
    results = [
        _build_result(report.file, finding, index[finding.rule]) for report in reports for finding in report.findings
    ]
    run = {"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": results}
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}


def _build_result(file: str, finding: FileFinding, rule: int) -> dict[str, Any]:
    location: dict[str, Any] = {"artifactLocation": _artifact_location(file)}
    if finding.line is not None:
        region = {"startLine": finding.line, "startColumn": finding.column}
        location["region"] = {name: value for name, value in region.items() if value is not None}
    return {
        "ruleId": finding.rule,
        "ruleIndex": rule,
        "level": _LEVELS[finding.level],
        "message": {"text": describe_finding(finding)},
        "locations": [{"physicalLocation": location, **_logical_location(finding)}],
        "partialFingerprints": {"steleFinding/v1": "|".join(_list_identity(file, finding))},
    }


def _logical_location(finding: FileFinding) -> dict[str, Any]:
    return {"logicalLocations": [{"fullyQualifiedName": finding.path}]} if finding.path else {}


def _list_identity(file: str, finding: FileFinding) -> Iterable[str]:
    """Return the parts of a fingerprint that is the same in the next run, even if the finding moves to another line."""
    direction = finding.direction.value if finding.direction is not None else ""
    return (file, finding.rule, finding.path, direction, finding.compared_with)


def _artifact_location(file: str) -> dict[str, str]:
    path = PurePath(file)
    if path.is_absolute():
        return {"uri": path.as_uri()}
    return {"uri": quote(path.as_posix()), "uriBaseId": _ROOT}
