"""`stele lint`: find weak spots in schema files."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from msgspec.structs import replace

from stele.cli.files import FormatOption, read_references, read_text
from stele.cli.output import AllOption, Output, exit_on_error, print_rows
from stele.cli.reports import (
    ReportOutput,
    ReportOutputOption,
    ReportToOption,
    exit_code,
    lint_headline,
    write_reports,
)
from stele.core.findings import Severity
from stele.errors import InvalidRequest
from stele.formats.lint import OFF_BY_DEFAULT
from stele.review.lint import LintConfig
from stele.review.manifest import load_lint_config, read_lint_config
from stele.review.workspace import ReviewTarget, lint_targets, open_targets
from stele.service.check import Candidate
from stele.service.lint import list_rules


class FailOn(StrEnum):
    """Severities of findings that make the exit code 1."""

    WARNING = "warning"
    ERROR = "error"


_LEAST = {FailOn.WARNING: Severity.WARNING, FailOn.ERROR: Severity.UNKNOWN}


def lint(
    files: Annotated[
        list[Path] | None, typer.Argument(help="Schema files, or folders of them; - for standard input.")
    ] = None,
    before: Annotated[
        Path | None, typer.Option(help="File with the previous version (of a single file), for rules about changes.")
    ] = None,
    select: Annotated[
        list[str] | None,
        typer.Option(
            "--select", "--rule", metavar="RULES", help="Rules to apply, separated by commas; ALL for all rules."
        ),
    ] = None,
    ignore: Annotated[
        list[str] | None, typer.Option(metavar="RULES", help="Rules to leave out, separated by commas.")
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(
            help="File with a table [lint]. Default: stele-lint.toml or schemas.toml in the"
            " folder of the files or above it."
        ),
    ] = None,
    fail_on: Annotated[FailOn, typer.Option(help="Exit with 1 for findings of this severity or higher.")] = (
        FailOn.WARNING
    ),
    schema_format: FormatOption = None,
    reference: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=FILE", help="NAME=FILE of a schema that others refer to. Repeatable."),
    ] = None,
    rules: Annotated[bool, typer.Option("--rules", help="List the rules and exit.")] = False,
    all_findings: AllOption = False,
    output: ReportOutputOption = ReportOutput.TEXT,
    to: ReportToOption = None,
) -> None:
    """Find weak spots in schema files, without a server.

    Exit code 0: nothing to report; 1: findings; 2: invalid schema file or invalid arguments.
    """
    with exit_on_error():
        if rules:
            _list_rules(output)
            return
        if not files:
            raise InvalidRequest("name a schema file or a folder, or ask for --rules")
        targets = open_targets(files, schema_format)
        if before is not None and len(targets) > 1:
            raise InvalidRequest("--before is the previous version of one file; there are several")
        references = read_references(reference)
        earlier = None if before is None else Candidate(read_text(before), references, before.name)
        chosen = _choose_config(config, _split_names(select), _split_names(ignore), targets)
        reports = lint_targets(targets, chosen, references, earlier)
        write_reports(reports, output, to, lint_headline, everything=all_findings)
    raise typer.Exit(exit_code(reports, fail_on=_LEAST[fail_on]))


def _split_names(texts: list[str] | None) -> tuple[str, ...]:
    """Return all names of rules; one text may hold several, separated by commas."""
    return tuple(name.strip() for text in texts or () for name in text.split(",") if name.strip())


def _choose_config(
    file: Path | None, select: tuple[str, ...], ignore: tuple[str, ...], targets: list[ReviewTarget]
) -> LintConfig | None:
    """Return one configuration for all files, or None to use that of each folder. The command line takes precedence."""
    if file is None and not select and not ignore:
        return None
    config = load_lint_config(targets[0].workspace.root) if file is None else read_lint_config(file)
    if select:
        config = replace(config, select=select, extend_select=())
    return replace(config, ignore=(*config.ignore, *ignore))


def _list_rules(output: ReportOutput) -> None:
    """Print the rules. Raises `InvalidRequest` for an output format other than text and JSON."""
    if output not in (ReportOutput.TEXT, ReportOutput.JSON):
        raise InvalidRequest("--rules can be printed as text or json only")
    rows = [
        {
            "rule": info.rule,
            "on": "no" if info.rule in OFF_BY_DEFAULT else "yes",
            "formats": ", ".join(info.formats),
            "asks": info.asks,
        }
        for info in list_rules()
    ]
    print_rows(Output(output.value), ["rule", "on", "formats", "asks"], rows)
