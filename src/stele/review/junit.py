"""Findings as JUnit XML, which GitLab, Jenkins and others show as test results: a test case for each file."""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree import ElementTree as ET

from stele.review.report import FileFinding, FileReport, Outcome, describe_finding, format_place


def render_junit(reports: Sequence[FileReport]) -> str:
    """Return the document. A file with breaking findings is a failed test case; warnings are in its output.

    Source: docs/protocols/ci-reports.md#junit.
    """
    failed = sum(1 for report in reports if _breaking(report))
    root = ET.Element("testsuites", tests=str(len(reports)), failures=str(failed), errors="0")
    suite = ET.SubElement(root, "testsuite", name="stele", tests=str(len(reports)), failures=str(failed), errors="0")
    for report in reports:
        case = ET.SubElement(suite, "testcase", classname="stele", name=report.file, file=report.file)
        for finding in _breaking(report):
            failure = ET.SubElement(case, "failure", type=finding.rule, message=_clean(_title(report, finding)))
            failure.text = _clean(describe_finding(finding))
        warnings = [finding for finding in report.findings if not finding.breaks]
        if report.outcome is Outcome.UNCOMPARED:
            ET.SubElement(case, "skipped", message=report.outcome.value)
        if warnings:
            lines = [f"{_title(report, finding)}\n{describe_finding(finding)}" for finding in warnings]
            ET.SubElement(case, "system-out").text = _clean("\n".join(lines))
    ET.indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ET.tostring(root, encoding="unicode")}\n'


def _breaking(report: FileReport) -> list[FileFinding]:
    return [finding for finding in report.findings if finding.breaks]


def _title(report: FileReport, finding: FileFinding) -> str:
    return f"{format_place(report.file, finding)}: {finding.rule}"


def _clean(text: str) -> str:
    """Return a text without the control characters that XML cannot hold."""
    return "".join(character if character >= " " or character in "\t\n" else "\ufffd" for character in text)
