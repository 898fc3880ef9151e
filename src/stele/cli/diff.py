"""`stele diff`: the changes between two schemas, and whether each can read the data of the other."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Final, NamedTuple

import typer
from rich.markup import escape
from rich.syntax import Syntax
from rich.table import Table

from stele.cli.completion import complete_subject
from stele.cli.connect import RegistryOptions, connect
from stele.cli.files import FormatOption, format_of, read_references, read_text
from stele.cli.options import expand_dataclass
from stele.cli.output import Output, OutputOption, console, exit_on_error, print_finding, print_json
from stele.core.findings import Direction, Verdict, WhenUndecided
from stele.errors import InvalidRequest
from stele.review.check import Baseline
from stele.review.workspace import ReviewTarget, find_earlier, open_sources, open_targets
from stele.service.changes import ChangeKind, DeclarationChange
from stele.service.check import Candidate, NamedText
from stele.service.diff import DiffAnswer, DiffRequest
from stele.service.diff import diff_schemas as run

_COLOURS: Final = {
    ChangeKind.ADDED: "green",
    ChangeKind.REMOVED: "red",
    ChangeKind.CHANGED: "yellow",
    ChangeKind.RENAMED: "cyan",
    ChangeKind.MOVED: "cyan",
}
_SIGNS: Final = {
    ChangeKind.ADDED: "+",
    ChangeKind.REMOVED: "-",
    ChangeKind.CHANGED: "~",
    ChangeKind.RENAMED: "=",
    ChangeKind.MOVED: ">",
}
_CELLS: Final = {
    Verdict.COMPATIBLE: "[green]yes[/]",
    Verdict.INCOMPATIBLE: "[bold red]no[/]",
    Verdict.UNDECIDED: "[magenta]undecided[/]",
}
_MAX_TEXT: Final = 70
"""Maximum number of characters of a value in a line."""


@expand_dataclass
def diff(
    old: Annotated[
        str,
        typer.Argument(
            help="File with the old schema; with --registry: SUBJECT@VERSION. With --against or"
            " --subject: the new schema."
        ),
    ],
    registry: RegistryOptions,
    new: Annotated[
        str | None, typer.Argument(help="File with the new schema; with --registry: SUBJECT@VERSION.")
    ] = None,
    against: Annotated[
        str | None,
        typer.Option(
            metavar="FILE|FOLDER|FOLDER#REF",
            help="Location of the old version: a file, a folder, or a git commit such as .git#main.",
        ),
    ] = None,
    subject: Annotated[
        str | None,
        typer.Option(
            help="Compare with the newest version of this subject in the registry.", autocompletion=complete_subject
        ),
    ] = None,
    ruleset: Annotated[
        str | None, typer.Option(help="Ruleset of the format. Default: the default ruleset of the format.")
    ] = None,
    undecided: Annotated[
        WhenUndecided, typer.Option(help="What to do if no rule can decide. If allowed, it is a warning.")
    ] = WhenUndecided.REFUSE,
    schema_format: FormatOption = None,
    reference: Annotated[list[str] | None, typer.Option(help="NAME=FILE of a schema that both refer to.")] = None,
    text: Annotated[
        bool, typer.Option("--text", help="Print the unified diff of the normalised texts as well.")
    ] = False,
    output: OutputOption = Output.TEXT,
) -> None:
    """List the changes between two schemas, and whether new can read old data and old can read new data.

    Exit code 0: nothing changed; 1: something changed; 2: invalid schema file or invalid arguments.
    """
    with exit_on_error():
        pairs = _find_pairs(old, new, against, subject, registry, schema_format, reference)
        answers = [
            run(DiffRequest(pair.request.format, pair.request.old, pair.request.new, ruleset, undecided))
            for pair in pairs
        ]
    if output is Output.JSON:
        print_json(answers[0] if new is not None else answers)
    else:
        for pair, answer in zip(pairs, answers, strict=True):
            _print_answer(pair.old, pair.new, answer, text=text)
    raise typer.Exit(1 if any(answer.changes for answer in answers) else 0)


class _Pair(NamedTuple):
    """Two versions to compare, with the names that the output gives them."""

    old: str
    new: str
    request: DiffRequest


def _find_pairs(
    old: str,
    new: str | None,
    against: str | None,
    subject: str | None,
    registry: RegistryOptions,
    schema_format: str | None,
    reference: list[str] | None,
) -> list[_Pair]:
    """Return the pairs of versions to compare. Raises `InvalidRequest`."""
    if sum(each is not None for each in (new, against, subject)) != 1:
        raise InvalidRequest("name two schemas; or one, with --against or --subject")
    if new is None:
        references = read_references(reference)
        targets = open_targets([Path(old)], schema_format)
        if subject is not None:
            return [_pair_with_subject(targets, subject, registry, references)]
        pairs = find_earlier(targets, open_sources([against or ""], targets, schema_format), references)
        if not pairs:
            raise InvalidRequest(f"{old} has no earlier version in {against}: there is nothing to compare with")
        return [_make_pair(target, baseline, references) for target, baseline in pairs]
    if registry.is_given:
        return [_Pair(old, new, _request_from_registry(old, new, registry, schema_format, reference))]
    references = read_references(reference)
    request = DiffRequest(
        schema_format or format_of(Path(new), Path(old)),
        Candidate(read_text(Path(old)), references, Path(old).name),
        Candidate(read_text(Path(new)), references, Path(new).name),
    )
    return [_Pair(old, new, request)]


def _pair_with_subject(
    targets: Sequence[ReviewTarget], subject: str, registry: RegistryOptions, references: Sequence[NamedText]
) -> _Pair:
    if len(targets) != 1:
        raise InvalidRequest("--subject compares one file with a registry")
    with connect(registry) as client:
        newest = client.resolve_version(subject)
    texts = tuple(NamedText(name, text) for name, text in newest.references.items())
    label = f"{subject} version {newest.version}"
    baseline = Baseline(newest.version or 1, Candidate(newest.text, texts), label)
    return _make_pair(targets[0], baseline, [*texts, *references])


def _make_pair(target: ReviewTarget, baseline: Baseline, references: Sequence[NamedText]) -> _Pair:
    new = target.workspace.candidate(target.path, references)
    return _Pair(baseline.label, target.label, DiffRequest(target.file.format, baseline.schema, new))


def _request_from_registry(
    old: str, new: str, registry: RegistryOptions, schema_format: str | None, reference: list[str] | None
) -> DiffRequest:
    """Return the request for two registered versions, with all schemas that they refer to. Raises `InvalidRequest`."""
    if reference or schema_format:
        raise InvalidRequest("a registry knows format and references: --format and --reference are for files")
    versions = [_parse_version(each) for each in (old, new)]
    with connect(registry) as client:
        schemas = [client.resolve_version(subject, number) for subject, number in versions]
    if schemas[0].schema_type != schemas[1].schema_type:
        raise InvalidRequest(
            f"{old} is {schemas[0].schema_type}, {new} is {schemas[1].schema_type}: nothing to compare"
        )
    candidates = [
        Candidate(each.text, tuple(NamedText(name, text) for name, text in each.references.items())) for each in schemas
    ]
    return DiffRequest(schemas[0].schema_type.lower(), candidates[0], candidates[1])


def _parse_version(text: str) -> tuple[str, int]:
    subject, at, version = text.rpartition("@")
    if not at or not subject or not (version.isascii() and version.isdigit()):
        raise InvalidRequest(f"{text!r}: write SUBJECT@VERSION, as orders-value@2")
    return subject, int(version)


# --- what people see ------------------------------------------------------------------------------------------------


def _print_answer(old: str, new: str, answer: DiffAnswer, *, text: bool) -> None:
    if not answer.changes:
        console.print(f"{escape(old)} and {escape(new)} have the same content.", highlight=False)
    else:
        table = Table("change", "new reads old", "old reads new", box=None, pad_edge=False)
        table.columns[0].overflow = "fold"
        for change in answer.changes:
            table.add_row(_change_line(change), *(_verdict_cell(change, direction, answer) for direction in Direction))
        console.print(table)
    if not answer.complete:
        console.print("[yellow]A schema is too large: only a part of it was compared.[/]")
    for change in answer.changes:
        _print_findings(change)
    if answer.ruleset and answer.changes:
        readers = {"new can read old data": answer.backward, "old can read new data": answer.forward}
        verdicts = [f"{who}: {'[green]yes[/]' if fits else '[bold red]no[/]'}" for who, fits in readers.items()]
        console.print(f"{', '.join(verdicts)} (by {answer.ruleset})", highlight=False)
    if text and answer.text:
        console.print(Syntax(answer.text, "diff", background_color="default"))


def _change_line(change: DeclarationChange) -> str:
    """Return a change as one line of console markup."""
    kind = change.kind
    what = escape(change.what)
    before, after = (escape(_shorten(each)) for each in (change.before, change.after))
    match kind:
        case ChangeKind.ADDED | ChangeKind.REMOVED:
            tail = f" {what} {after or before}"
        case ChangeKind.RENAMED:
            tail = f" {what} was {before}"
        case ChangeKind.CHANGED:
            tail = f" {what}: {before or 'none'} → {after or 'none'}"
        case ChangeKind.MOVED:
            tail = f" {what}: {before} → {after}"
    style = "dim" if change.annotation else _COLOURS[kind]
    return f"[{style}]{_SIGNS[kind]} [bold]{escape(change.path)}[/]{tail}[/]"


def _verdict_cell(change: DeclarationChange, direction: Direction, answer: DiffAnswer) -> str:
    if not answer.ruleset:
        return ""
    fits = change.backward if direction is Direction.BACKWARD else change.forward
    if fits:
        return _CELLS[Verdict.COMPATIBLE]
    own = Verdict.from_findings(reason for reason in change.findings if reason.direction is direction)
    return _CELLS[Verdict.UNDECIDED if own is Verdict.UNDECIDED else Verdict.INCOMPATIBLE]


def _print_findings(change: DeclarationChange) -> None:
    """Print why some readers cannot read the data after a change."""
    for reason in change.findings:
        reader = "new reads old" if reason.direction is Direction.BACKWARD else "old reads new"
        print_finding(reason, f", when {reader}")


def _shorten(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _MAX_TEXT else text[: _MAX_TEXT - 1] + "…"
