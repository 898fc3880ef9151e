"""What importing and exporting commands share: their options, the two registries, the report."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import msgspec
import typer
from rich.markup import escape

from stele.cli.connect import RegistryOptions
from stele.cli.output import Output, console, errors, print_json, print_rows
from stele.client import SchemaRegistryClient
from stele.errors import InvalidRequest
from stele.migrate import registry_writer
from stele.migrate.compare import Comparison, Difference
from stele.migrate.model import Dump
from stele.migrate.registry_writer import Refusal
from stele.server.store_maintenance import require_store

_OFFLINE = "http://store"
_ROWS = 50
"""Maximum number of differences in text output; JSON output has all."""
_STEPS = 20
"""Approximate maximum number of progress lines of one phase."""
_STRIDE = 100
"""Minimum number of steps between two progress lines."""

StoreOption = Annotated[
    str | None,
    typer.Option(
        "--store",
        metavar="URL",
        help="Store to open directly, without a server, in place of --registry: sqlite:///file.db",
    ),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Print the changes without making them.")]
VerifyOnly = Annotated[bool, typer.Option("--verify", help="Only compare: exit with 1 if anything differs.")]
SkipModes = Annotated[
    bool, typer.Option("--skip-modes", help="Set every mode to READWRITE, in place of the modes of the source.")
]
Levels = Annotated[
    list[str],
    typer.Option("--level", help="Subject with settings but without versions, which no list contains. Repeatable."),
]


def run_import(
    dump: Dump,
    registry: RegistryOptions,
    store: str | None,
    *,
    dry_run: bool,
    verify: bool,
    modes: bool,
    output: Output,
) -> None:
    """Import a dump unless `dry_run` or `verify` is set, then compare the target with it and print the differences.

    Ends the command with 1 for conflicts and refusals, and for any difference unless `dry_run` is set.
    """
    refusals: list[Refusal] = []
    with open_registry(registry, find_target(store, dry_run=dry_run, verify=verify)) as client:
        try:
            if not dry_run and not verify:
                refusals = registry_writer.apply_import(dump, client, modes=modes, progress=ProgressPrinter("target"))
            left = registry_writer.plan_import(dump, client, modes=modes, progress=ProgressPrinter("target"))
        except registry_writer.ImportConflict as error:
            errors.print(f"[bold red]error:[/] {escape(str(error))}", highlight=False, soft_wrap=True)
            left = error.comparison
    _print_report(dump, left, refusals, planned=dry_run, output=output)
    if left.conflicts or refusals or (left.differences and not dry_run):
        raise typer.Exit(1)


class _Report(msgspec.Struct, rename="camel"):
    """JSON output of an import."""

    versions: int
    same: int
    counts: dict[str, int]
    differences: tuple[Difference, ...]
    refused: list[Refusal]
    notes: tuple[str, ...]


def _print_report(dump: Dump, left: Comparison, refusals: list[Refusal], *, planned: bool, output: Output) -> None:
    if output is Output.JSON:
        print_json(_Report(len(dump.versions), left.same, left.counts, left.differences, refusals, dump.notes))
        return
    print_notes(dump)
    rows = [
        {
            "what": row.kind.value,
            "name": row.name or "(default context)",
            "version": "" if row.version is None else row.version,
            "id": "" if row.id is None else row.id,
            "why": row.why,
        }
        for row in left.differences[:_ROWS]
    ]
    if rows:
        print_rows(output, ("what", "name", "version", "id", "why"), rows)
    if len(left.differences) > _ROWS:
        console.print(f"… and {len(left.differences) - _ROWS} more", highlight=False)
    print_refusals(refusals)
    counts = ", ".join(f"{kind}: {count}" for kind, count in left.counts.items()) if planned else ""
    summary = f"{len(left.differences)} differences" if left.differences else "no difference"
    console.print(f"{left.same} of {len(dump.versions)} versions exist; {counts or summary}", highlight=False)


def print_notes(dump: Dump) -> None:
    """Print on standard error what the source has and the dump lacks."""
    for note in dump.notes:
        errors.print(f"note: {note}", highlight=False, markup=False, soft_wrap=True)


def print_refusals(refusals: list[Refusal]) -> None:
    """Print on standard error what the target refused."""
    for refusal in refusals:
        number = "" if refusal.version is None else f" version {refusal.version}"
        errors.print(f"refused: {refusal.name}{number}: {refusal.why}", highlight=False, markup=False, soft_wrap=True)


@contextmanager
def open_registry(registry: RegistryOptions, store: str | None) -> Iterator[SchemaRegistryClient]:
    """Yield a client of a running registry, or of a store opened for it. Raises `InvalidRequest` if both are given."""
    if store is None:
        with registry.find_connection().open_client() as client:
            yield client
        return
    if registry.is_given:
        raise InvalidRequest("--store and --registry exclude one another")
    from stele.cli.offline import open_offline  # imports the server, which a URL does not need

    with open_offline(store) as transport, SchemaRegistryClient(_OFFLINE, transport=transport) as client:
        yield client


def find_target(store: str | None, *, dry_run: bool, verify: bool) -> str | None:
    """Return the store to compare with or to fill. Raises `InvalidRequest`.

    A comparison creates no store: without one, a dry run compares with an empty registry in memory, and `verify`
    raises.
    """
    if store is None or not (dry_run or verify):
        return store
    try:
        require_store(store)
    except InvalidRequest:
        if verify:
            raise
        return "memory:"
    return store


class ProgressPrinter:
    """Prints progress on standard error: at the beginning, at the end, and from time to time between."""

    def __init__(self, where: str) -> None:
        self._where = where
        self._next: dict[str, int] = {}

    def __call__(self, verb: str, done: int, total: int | None) -> None:
        """Print how far the work is, unless too few steps were done since the last line."""
        if done < self._next.get(verb, 0) and done != total:
            return
        self._next[verb] = done + max((total or 10 * done) // _STEPS, _STRIDE)
        of = "" if total is None else f" of {total:,}"
        errors.print(f"{self._where}: {verb} {done:,}{of}", highlight=False, markup=False)
