"""`stele check`: would this schema read, and be read by, those?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from stele.cli.files import FormatOption, format_of, read_references, read_text
from stele.cli.output import Output, OutputOption, console, exit_on_error, print_finding, print_json
from stele.core.findings import Finding, Severity, Verdict, WhenUndecided
from stele.service.check import Candidate, CheckAnswer, CheckRequest
from stele.service.check import check_compatibility as run

_WORDS = {
    Verdict.COMPATIBLE: (("compatible", "green"), ""),
    Verdict.INCOMPATIBLE: (("incompatible", "red"), ""),
    Verdict.UNDECIDED: (("undecided", "magenta"), ", refused unless --undecided allow"),
}


def check(
    schema: Annotated[Path, typer.Argument(help="File with the new schema; - for standard input.")],
    against: Annotated[
        list[Path] | None, typer.Option(help="File with an earlier version; repeat it, oldest first.")
    ] = None,
    policy: Annotated[
        str, typer.Option(help="BACKWARD, FORWARD, FULL, their _TRANSITIVE forms, or NONE.")
    ] = "BACKWARD",
    ruleset: Annotated[
        str | None,
        typer.Option(help="Ruleset of the format, its default unless given; NAME@VERSION for one that never changes."),
    ] = None,
    undecided: Annotated[
        WhenUndecided, typer.Option(help="What to do where no rule can decide; allowed, it is a warning.")
    ] = WhenUndecided.REFUSE,
    schema_format: FormatOption = None,
    reference: Annotated[list[str] | None, typer.Option(help="NAME=FILE of a schema the others refer to.")] = None,
    output: OutputOption = Output.TEXT,
) -> None:
    """Check a schema file against earlier versions, without a server.

    Exit code 0: compatible; 1: not; 2: a file is no schema, or the question makes no sense.
    """
    with exit_on_error():
        references = read_references(reference)
        request = CheckRequest(
            format=schema_format or format_of(schema, *against or ()),
            schema=read_text(schema),
            policy=policy,
            ruleset=ruleset,
            references=references,
            against=tuple(Candidate(read_text(path), references, path.name) for path in against or ()),
            name=schema.name,
            undecided=undecided,
        )
        answer = run(request)
    if output is Output.JSON:
        print_json(answer)
    else:
        _print_answer(schema, answer)
    raise typer.Exit(0 if answer.compatible else 1)


def _print_answer(schema: Path, answer: CheckAnswer) -> None:
    rules = f" by {answer.ruleset}" if answer.ruleset else ""
    console.print(Text.assemble(f"{schema}: ", *_WORDS[Verdict.from_findings(answer.findings)], rules), soft_wrap=True)
    for finding in answer.findings:
        print_finding(finding, describe_version(finding))


def describe_version(finding: Finding) -> str:
    """Which version a finding of a check is about."""
    doubt = ", undecided" if finding.level is Severity.UNKNOWN else ""
    return f" (version {finding.against}{doubt})"
