"""Findings as workflow commands, which GitHub shows as annotations at the line of the file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from stele.core.findings import Severity
from stele.review.report import FileFinding, FileReport, describe_finding

_COMMANDS = {Severity.ERROR: "error", Severity.UNKNOWN: "error", Severity.WARNING: "warning"}


def render_github(reports: Sequence[FileReport]) -> str:
    """Return one line for each finding.

    Source: docs/protocols/ci-reports.md#github-workflow-commands.
    """
    return "".join(f"{line}\n" for line in _list_lines(reports))


def _list_lines(reports: Sequence[FileReport]) -> Iterator[str]:
    for report in reports:
        for finding in report.findings:
            yield _render_finding(report.file, finding)


def _render_finding(file: str, finding: FileFinding) -> str:
    places = {"file": file, "line": finding.line, "col": finding.column, "title": finding.rule}
    properties = ",".join(f"{name}={_escape_property(str(value))}" for name, value in places.items() if value)
    return f"::{_COMMANDS[finding.level]} {properties}::{_escape_data(describe_finding(finding))}"


def _escape_data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _escape_property(text: str) -> str:
    return _escape_data(text).replace(":", "%3A").replace(",", "%2C")
