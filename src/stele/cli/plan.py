"""`stele plan` and `stele apply`: make a registry match a folder of schemas."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from stele.cli.connect import RegistryOptions, connect
from stele.cli.files import write_text
from stele.cli.options import expand_dataclass
from stele.cli.output import (
    AllOption,
    Output,
    OutputOption,
    YesOption,
    console,
    exit_on_error,
    format_json,
    print_error,
    print_json,
)
from stele.cli.reports import (
    ReportOutput,
    ReportOutputOption,
    ReportToOption,
    print_report_findings,
    render_reports,
)
from stele.client import SchemaRegistryClient
from stele.errors import Incompatible, InvalidRequest
from stele.review.apply import apply_plan
from stele.review.plan import Action, Plan, SubjectPlan, make_plan
from stele.review.report import Outcome
from stele.review.split import split_workspace
from stele.review.workspace import Workspace, open_workspace

Folder = Annotated[Path, typer.Argument(help="Folder of schemas, with schemas.toml or without.")]
PruneOption = Annotated[
    bool, typer.Option("--prune", help="Soft-delete subjects that the folder does not have. They can be restored.")
]

_MARKS = {
    Action.NONE: ("=", "dim", "version {version}"),
    Action.CREATE: ("+", "green", "register version 1"),
    Action.REGISTER: ("+", "green", "register a version after {newest}"),
    Action.REFUSE: ("!", "bold red", "refused"),
    Action.DRIFT: ("~", "yellow", "drift: the file is version {version}, the registry's newest is {newest}"),
    Action.DELETE: ("-", "red", "delete"),
    Action.UNMANAGED: ("?", "dim", "not in the folder"),
}
_DONE = {
    Action.CREATE: "registered version {version}",
    Action.REGISTER: "registered version {version}",
    Action.DELETE: "deleted",
}


@expand_dataclass
def plan(
    folder: Folder,
    registry: RegistryOptions,
    prune: PruneOption = False,
    exit_on_difference: Annotated[
        bool, typer.Option("--exit-code", help="Exit with 1 also if the registry differs from the folder.")
    ] = False,
    all_findings: AllOption = False,
    output: ReportOutputOption = ReportOutput.TEXT,
    to: ReportToOption = None,
) -> None:
    """Show the changes that would make a registry match a folder. Nothing is changed.

    Exit code 0: it could be applied; 1: a schema would be refused, or with --exit-code the registry differs; 2: an
    error.
    """
    with exit_on_error():
        workspace = open_workspace(folder)
        with connect(registry) as client:
            change_plan = make_plan(workspace, client, prune=prune)
        _write_plan(change_plan, output, to, everything=all_findings)
    raise typer.Exit(1 if change_plan.is_refused or (exit_on_difference and change_plan.differs) else 0)


@expand_dataclass
def apply(
    folder: Folder,
    registry: RegistryOptions,
    prune: PruneOption = False,
    yes: YesOption = False,
    all_findings: AllOption = False,
    output: OutputOption = Output.TEXT,
) -> None:
    """Make a registry match a folder: first policies, then schemas. A second run changes nothing.

    If one schema would be refused, nothing is changed. Subjects are deleted with --prune only, softly.

    Exit code 0: applied; 1: a schema was refused; 2: an error.
    """
    with exit_on_error():
        _apply_folder(open_workspace(folder), registry, output, prune=prune, yes=yes, everything=all_findings)


def register_workspace(
    workspace: Workspace, registry: RegistryOptions, output: Output, *, split: bool, everything: bool
) -> None:
    """Register all schemas of a folder, each after those it refers to. Policies stay as they are.

    With `split`, each named type that a file defines becomes a subject of its own.
    Raises `InvalidRequest`, and `typer.Exit` with 1 if a schema is refused.
    """
    workspace.manifest = workspace.manifest.without_policies()
    _apply_folder(split_workspace(workspace) if split else workspace, registry, output, everything=everything)


def _apply_folder(
    workspace: Workspace,
    registry: RegistryOptions,
    output: Output,
    *,
    everything: bool,
    prune: bool = False,
    yes: bool = False,
) -> None:
    with connect(registry) as client:
        change_plan = make_plan(workspace, client, prune=prune)
        if change_plan.is_refused:
            _print_plan(change_plan.subjects, everything=everything)
            print_error("refused:", "nothing was changed")
            raise typer.Exit(1)
        doomed = [each.subject for each in change_plan.subjects if each.action is Action.DELETE]
        if doomed:
            _confirm_pruning(doomed, yes=yes)
        results = _apply(workspace, client, change_plan, output)
    if output is Output.JSON:
        print_json(results)
    elif not any(each.is_change for each in results):
        typer.echo("nothing to change")


def _confirm_pruning(subjects: Sequence[str], *, yes: bool) -> None:
    names = ", ".join(subjects[:5]) + (f" and {len(subjects) - 5} more" if len(subjects) > 5 else "")
    if yes:
        return
    if not sys.stdin.isatty():
        raise InvalidRequest(f"--prune would delete {names}: add --yes to confirm it")
    typer.confirm(f"Delete {names}?", abort=True, err=True)


def _apply(workspace: Workspace, client: SchemaRegistryClient, plan: Plan, output: Output) -> list[SubjectPlan]:
    def report(result: SubjectPlan) -> None:
        if output is Output.TEXT:
            done = _DONE.get(result.action, "").format(version=result.version)
            changes = [done, *_policy_texts(result)] if done else _policy_texts(result)
            typer.echo(f"{result.subject}: {', '.join(changes)}")

    try:
        return apply_plan(workspace, client, plan, report)
    except Incompatible as refusal:  # another writer registered a version in between
        print_error("refused:", f"{refusal}; what was done before stays, and another apply goes on from there")
        raise typer.Exit(1) from refusal


# --- what people see ------------------------------------------------------------------------------------------------


def _write_plan(plan: Plan, output: ReportOutput, to: Path | None, *, everything: bool) -> None:
    """Print a plan, or write it to a file. The formats for CI systems hold the findings only."""
    match output:
        case ReportOutput.TEXT if to is None:
            _print_plan(plan.subjects, everything=everything)
        case ReportOutput.TEXT:
            with console.capture() as captured:
                _print_plan(plan.subjects, everything=True)
            write_text(to, Text.from_ansi(captured.get()).plain)
        case ReportOutput.JSON if to is None:
            print_json(plan.subjects)
        case ReportOutput.JSON:
            write_text(to, format_json(plan.subjects))
        case _:
            write_text(to, render_reports(plan.reports, output))


def _print_plan(subjects: Sequence[SubjectPlan], *, everything: bool) -> None:
    mine = [each for each in subjects if each.action is not Action.UNMANAGED]
    for each in mine:
        mark, style, words = _MARKS[each.action]
        if each.report is not None and each.report.outcome is Outcome.INVALID:
            words = "invalid schema"
        line = [words.format(version=each.version, newest=each.newest), *_policy_texts(each)]
        file = f" ({each.file})" if each.file else ""
        console.print(
            Text.assemble((f"{mark} ", style), (each.subject, "bold"), f"{file}: {', '.join(line)}"), soft_wrap=True
        )
    print_report_findings([each.report for each in mine if each.report is not None], everything=everything)
    others = len(subjects) - len(mine)
    if others:
        console.print(f"{others:,} other subject{'s are' if others > 1 else ' is'} not in this folder", highlight=False)
    _print_counts(mine)


def _print_counts(subjects: Sequence[SubjectPlan]) -> None:
    counts = {
        "to register": sum(each.action in (Action.CREATE, Action.REGISTER) for each in subjects),
        "policies to set": sum(bool(each.steps) for each in subjects),
        "to delete": sum(each.action is Action.DELETE for each in subjects),
        "refused": sum(each.action is Action.REFUSE for each in subjects),
        "drifted": sum(each.action is Action.DRIFT for each in subjects),
    }
    parts = [f"{count:,} {word}" for word, count in counts.items() if count]
    console.print(", ".join(parts) or "nothing to change", highlight=False)


def _policy_texts(plan: SubjectPlan) -> list[str]:
    return [f"{step.what} {step.before or 'not set'} → {step.after}" for step in plan.steps]
