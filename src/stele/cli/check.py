"""`stele check`: would this schema read, and be read by, those?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from stele.cli.output import Output, OutputOption, console, failures, print_json
from stele.core.findings import Finding, Level, Verdict, WhenUndecided
from stele.errors import InvalidRequest
from stele.service.check import Candidate, CheckAnswer, CheckRequest, NamedText
from stele.service.check import check as run

_SUFFIXES = {".avsc": "avro", ".proto": "protobuf", ".json": "json", ".thrift": "thrift", ".xsd": "xsd"}

_COLOURS = {Level.ERROR: "red", Level.WARNING: "yellow", Level.UNKNOWN: "magenta"}
_WORDS = {
    Verdict.COMPATIBLE: "[green]compatible[/]",
    Verdict.INCOMPATIBLE: "[red]incompatible[/]",
    Verdict.UNDECIDED: "[magenta]undecided[/], refused unless --undecided allow",
}


def check(
    schema: Annotated[Path, typer.Argument(help="File with the new schema.")],
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
    schema_format: Annotated[str | None, typer.Option("--format", help="avro, protobuf, json …; by suffix.")] = None,
    reference: Annotated[list[str] | None, typer.Option(help="NAME=FILE of a schema the others refer to.")] = None,
    output: OutputOption = Output.TEXT,
) -> None:
    """Check a schema file against earlier versions, without a server.

    Exit code 0: compatible; 1: not; 2: a file is no schema, or the question makes no sense.
    """
    with failures():
        references = tuple(named_text(text) for text in reference or ())
        request = CheckRequest(
            format=schema_format or format_of(schema),
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
        _print(schema, answer)
    raise typer.Exit(0 if answer.compatible else 1)


def _print(schema: Path, answer: CheckAnswer) -> None:
    rules = f" by {answer.ruleset}" if answer.ruleset else ""
    console.print(f"{schema}: {_WORDS[Verdict.of(answer.findings)]}{rules}", highlight=False)
    for finding in answer.findings:
        print_finding(finding)


def print_finding(finding: Finding) -> None:
    """One finding, readable: where, why, and what to do."""
    colour = _COLOURS[finding.level]
    place = finding.path or "/"
    doubt = ", undecided" if finding.level is Level.UNKNOWN else ""
    console.print(
        f"  [{colour}]{finding.rule}[/] at [bold]{place}[/] (version {finding.against}{doubt})",
        highlight=False,
        soft_wrap=True,
    )
    for label, text in (("why", finding.why), ("fix", finding.fix), ("witness", finding.witness)):
        if text:
            console.print(f"    {label}: {text}", highlight=False, markup=False, soft_wrap=True)


def format_of(path: Path) -> str:
    """The format a file name suggests. Raises `InvalidRequest`."""
    try:
        return _SUFFIXES[path.suffix.lower()]
    except KeyError:
        raise InvalidRequest(f"{path}: the suffix tells no format; give --format") from None


def read_text(path: Path) -> str:
    """The file as text. Raises `InvalidRequest`."""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidRequest(f"{path}: {error}") from None


def named_text(text: str) -> NamedText:
    """A reference given as NAME=FILE. Raises `InvalidRequest`."""
    name, equals, path = text.partition("=")
    if not equals:
        raise InvalidRequest(f"--reference {text!r}: write NAME=FILE")
    return NamedText(name, read_text(Path(path)))
