"""`stele lint`: what would a careful reviewer object to in these schema files?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import msgspec
import typer
from msgspec.structs import replace
from rich.text import Text

from stele.cli.files import FormatOption, format_of, read_references, read_text
from stele.cli.output import Output, OutputOption, console, errors, exit_on_error, print_finding, print_json, print_rows
from stele.core.findings import Finding
from stele.errors import InvalidRequest, MalformedSchema
from stele.service.check import Candidate
from stele.service.lint import LintRequest, list_rules
from stele.service.lint import lint_schema as run


class Report(msgspec.Struct, frozen=True):
    """What was found in one file; error says why it is no schema, else None."""

    file: str
    findings: tuple[Finding, ...]
    error: str | None = None


def lint(
    files: Annotated[list[Path] | None, typer.Argument(help="Schema files; the suffix tells the format.")] = None,
    before: Annotated[
        Path | None, typer.Option(help="File with the previous version (of a single file), for rules about changes.")
    ] = None,
    rule: Annotated[list[str] | None, typer.Option(help="A rule to look for, instead of all; repeat it.")] = None,
    ignore: Annotated[list[str] | None, typer.Option(help="A rule to leave out; repeat it.")] = None,
    schema_format: FormatOption = None,
    reference: Annotated[list[str] | None, typer.Option(help="NAME=FILE of a schema the others refer to.")] = None,
    rules: Annotated[bool, typer.Option("--rules", help="List the rules and exit.")] = False,
    output: OutputOption = Output.TEXT,
) -> None:
    """Give advice on schema files, without a server.

    Exit code 0: nothing to say; 1: findings; 2: a file is no schema, or the question makes no sense.
    """
    with exit_on_error():
        if rules:
            _list_rules(output)
            return
        if not files:
            raise InvalidRequest("name at least one schema file, or ask for --rules")
        if before is not None and len(files) > 1:
            raise InvalidRequest("--before is the previous version of one file; there are several")
        references = read_references(reference)
        names = tuple(rule) if rule else None
        earlier = None if before is None else Candidate(read_text(before), references, before.name)
        asked = LintRequest("", "", earlier, names, tuple(ignore or ()), references)
        reports = [_lint_file(path, schema_format or format_of(path), asked) for path in files]
    if output is Output.JSON:
        print_json(reports)
    else:
        _print_reports(reports)
    raise typer.Exit(2 if any(report.error for report in reports) else int(any(r.findings for r in reports)))


def _lint_file(path: Path, format_name: str, asked: LintRequest) -> Report:
    """One file; one that is no schema does not hide what is in the others. Raises any other `SteleError`."""
    text = read_text(path)
    # Files that refer to each other can be named at once: none is its own reference.
    references = tuple(ref for ref in asked.references if ref.schema != text)
    request = replace(asked, format=format_name, schema=text, references=references, name=path.name)
    try:
        return Report(str(path), run(request).findings)
    except MalformedSchema as error:
        return Report(str(path), (), str(error))


def _list_rules(output: Output) -> None:
    rows = [{"rule": info.rule, "formats": ", ".join(info.formats), "asks": info.asks} for info in list_rules()]
    print_rows(output, ["rule", "formats", "asks"], rows)


def _print_reports(reports: list[Report]) -> None:
    for report in reports:
        if report.error:
            errors.print(Text.assemble(f"{report.file}: ", ("no schema: ", "bold red"), report.error), soft_wrap=True)
            continue
        count = len(report.findings)
        verdict = (f"{count} finding{'s' * (count > 1)}", "yellow") if count else ("nothing to say", "green")
        console.print(Text.assemble(f"{report.file}: ", verdict), soft_wrap=True)
        for finding in report.findings:
            print_finding(finding)
