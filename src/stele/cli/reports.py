"""Reports of `check`, `lint` and `plan`: as text, as JSON, and in the formats of CI systems."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from stele.cli.files import write_text
from stele.cli.output import (
    FINDING_COLOURS,
    MOST_FINDINGS,
    console,
    format_json,
    print_reasons,
    print_rest,
    print_text,
    take_first,
)
from stele.core.findings import Severity, Verdict
from stele.review.report import FileFinding, FileReport, Outcome, format_place


class ReportOutput(StrEnum):
    """Output formats of a report on files."""

    TEXT = "text"
    JSON = "json"
    GITHUB = "github"
    SARIF = "sarif"
    JUNIT = "junit"


ReportOutputOption = Annotated[
    ReportOutput,
    typer.Option("--output", "-o", help="Format of the report; github prints annotations for GitHub Actions."),
]
ReportToOption = Annotated[
    Path | None, typer.Option("--to", help="File for the report; an existing file is overwritten.")
]


def write_reports(
    reports: Sequence[FileReport],
    output: ReportOutput,
    to: Path | None,
    headline: Callable[[FileReport], Text],
    *,
    everything: bool,
) -> None:
    """Print reports, or write them to a file. Raises `InvalidRequest` for a file that cannot be written.

    Args:
        reports: One report for each file.
        output: The output format.
        to: The file to write; None prints.
        headline: Returns the line about a file that precedes its findings in text.
        everything: Whether printed text has all findings, not only the first.
    """
    if output is not ReportOutput.TEXT:
        text = render_reports(reports, output)
        if text or to is not None:
            write_text(to, text)
    elif to is None:
        _print_reports(reports, headline, everything=everything)
    else:
        with console.capture() as captured:
            _print_reports(reports, headline, everything=True)
        write_text(to, Text.from_ansi(captured.get()).plain)


def render_reports(reports: Sequence[FileReport], output: ReportOutput) -> str:
    """Return reports in an output format other than text."""
    match output:
        case ReportOutput.GITHUB:
            from stele.review.github import render_github

            return render_github(reports)
        case ReportOutput.JUNIT:
            from stele.review.junit import render_junit

            return render_junit(reports)
        case ReportOutput.SARIF:
            from stele.review.sarif import build_sarif

            return format_json(build_sarif(reports))
        case _:
            return format_json(reports)


def _print_reports(reports: Sequence[FileReport], headline: Callable[[FileReport], Text], *, everything: bool) -> None:
    left = MOST_FINDINGS
    for report in reports:
        console.print(headline(report), soft_wrap=True)
        for finding in report.findings if everything else report.findings[: max(left, 0)]:
            _print_finding(report.file, finding)
        left -= len(report.findings)
    print_rest(MOST_FINDINGS - left, everything=everything)


def print_report_findings(reports: Sequence[FileReport], *, everything: bool) -> None:
    """Print the findings of reports without lines about the files: the first ones, or all."""
    findings = [(report.file, finding) for report in reports for finding in report.findings]
    for file, finding in take_first(findings, everything=everything):
        _print_finding(file, finding)
    print_rest(len(findings), everything=everything)


def _print_finding(file: str, finding: FileFinding) -> None:
    """Print a finding: its position, rule and path, the compared version, the reason, the fix and the witness."""
    doubt = ", undecided" if finding.level is Severity.UNKNOWN else ""
    where = f" ({finding.compared_with}{doubt})" if finding.compared_with else ""
    path = (" at ", (finding.path, "bold")) if finding.path else ()
    rule = (finding.rule, FINDING_COLOURS[finding.level])
    print_text(console, Text.assemble(f"{format_place(file, finding)}: ", rule, *path, where), indent=2)
    print_reasons(finding.why, finding.fix, finding.witness)


_OUTCOMES = {
    Outcome.PASSED: ("compatible", "green"),
    Outcome.UNCOMPARED: ("valid; nothing to compare with", "yellow"),
    Outcome.INVALID: ("invalid schema", "bold red"),
}


def check_headline(report: FileReport) -> Text:
    """Return the line about a file that was compared."""
    word, style = _OUTCOMES.get(report.outcome, ("incompatible", "red"))
    if report.outcome is Outcome.FAILED and Verdict.from_findings(report.findings) is Verdict.UNDECIDED:
        word, style = "undecided, refused unless --undecided allow", "magenta"
    rules = f" by {report.ruleset}" if report.ruleset else ""
    return Text.assemble(f"{report.file}: ", (word, style), rules)


def lint_headline(report: FileReport) -> Text:
    """Return the line about a file that was linted."""
    count = len(report.findings)
    if report.outcome is Outcome.INVALID:
        verdict = ("invalid schema", "bold red")
    else:
        verdict = (f"{count} finding{'s' * (count > 1)}", "yellow") if count else ("nothing to report", "green")
    return Text.assemble(f"{report.file}: ", verdict)


def exit_code(reports: Sequence[FileReport], *, fail_on: Severity = Severity.UNKNOWN) -> int:
    """Return 2 if a file is no valid schema, 1 if a finding has the severity `fail_on` or a higher one, else 0."""
    weights = (Severity.WARNING, Severity.UNKNOWN, Severity.ERROR)
    failing = weights[weights.index(fail_on) :]
    if any(report.outcome is Outcome.INVALID for report in reports):
        return 2
    return int(any(finding.level in failing for report in reports for finding in report.findings))
