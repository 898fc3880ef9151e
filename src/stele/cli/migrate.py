"""`stele import` and `stele export`: whole registries in and out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer
from rich.markup import escape
from typer.core import TyperGroup

from stele.cli.connect import DEFAULT_URLS
from stele.cli.offline import offline
from stele.cli.output import Output, OutputOption, console, errors, failures, print_json, print_rows
from stele.client import SchemaRegistryClient
from stele.errors import InvalidRequest
from stele.migrate import archive, broker, files, lines, source, target, topic, unfold
from stele.migrate.compare import Comparison, Difference
from stele.migrate.model import Dump
from stele.migrate.records import Flavour, Record
from stele.migrate.target import Refusal

_OFFLINE = "http://store"
_ROWS = 50
"""Differences people are shown; programs get all."""
_STEPS = 20
"""How often, at most, a long phase says where it is."""
_STRIDE = 100
"""Steps it says nothing for, at least."""


class _Archives(TyperGroup):
    """Sub-commands, of which `archive` need not be said: `stele export FILE`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put `archive` before anything that names no sub-command."""
        if args and args[0] not in self.commands and args[0] not in ctx.help_option_names:
            args = ["archive", *args]
        return super().parse_args(ctx, args)


imports = typer.Typer(
    cls=_Archives,
    help="Bring a whole registry here: from another one, a topic, or an archive (`stele import FILE`).",
    no_args_is_help=True,
)
exports = typer.Typer(
    cls=_Archives,
    help="Write a whole registry out: as an archive (`stele export FILE`) or a topic.",
    no_args_is_help=True,
)

ToOption = Annotated[
    list[str],
    typer.Option("--to", envvar="STELE_URL", help="Base URL of the registry to fill; repeat it for several servers."),
]
FromOption = Annotated[
    list[str],
    typer.Option("--url", envvar="STELE_URL", help="Base URL of the registry to read; repeat it for several."),
]
StoreOption = Annotated[
    str | None, typer.Option("--store", help="A store to open directly instead, with no server: sqlite:///file.db")
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show what would be done, and do nothing.")]
VerifyOnly = Annotated[bool, typer.Option("--verify", help="Only compare: exit 1 when anything differs.")]
SkipModes = Annotated[
    bool, typer.Option("--skip-modes", help="Leave everything READWRITE instead of the source's modes.")
]
Levels = Annotated[
    list[str], typer.Option("--level", help="A subject that has settings and no version: no list names it. Repeatable.")
]
BootstrapOption = Annotated[str | None, typer.Option("--bootstrap", help="host:port of a broker, instead of a file.")]
TopicOption = Annotated[str, typer.Option("--topic", help="Name of the topic at the broker.")]
KafkaOption = Annotated[
    list[str], typer.Option("--kafka", help="A librdkafka setting, name=value (security.protocol …). Repeatable.")
]
DumpFile = Annotated[Path | None, typer.Argument(help="A dump file; - is standard input or output.", allow_dash=True)]


# --- importing ------------------------------------------------------------------------------------------------------


@imports.command("confluent")
def import_confluent(
    url: Annotated[
        list[str], typer.Option("--url", help="Base URL of the registry to copy; user:password@ may be in it.")
    ],
    to: ToOption = DEFAULT_URLS,
    store: StoreOption = None,
    dry_run: DryRun = False,
    verify: VerifyOnly = False,
    skip_modes: SkipModes = False,
    level: Levels = [],  # noqa: B006 - typer copies it
    output: OutputOption = Output.TEXT,
) -> None:
    """Copy a running registry that speaks the Confluent API: Confluent, Redpanda, Karapace, Apicurio, Stele.

    Nobody should write to it meanwhile: set it READONLY, or run this again at the end, when nobody does any more.
    """
    with failures():
        with SchemaRegistryClient(url) as client:
            dump = source.read(client, _Shown("source"), levels=level)
        _import(dump, to, store, dry_run=dry_run, verify=verify, modes=not skip_modes, output=output)


@imports.command("topic")
def import_topic(
    file: DumpFile = None,
    bootstrap: BootstrapOption = None,
    topic_name: TopicOption = broker.TOPIC,
    kafka: KafkaOption = [],  # noqa: B006 - typer copies it
    to: ToOption = DEFAULT_URLS,
    store: StoreOption = None,
    dry_run: DryRun = False,
    verify: VerifyOnly = False,
    skip_modes: SkipModes = False,
    output: OutputOption = Output.TEXT,
) -> None:
    """Fold the `_schemas` topic of Confluent, Karapace or Redpanda, from a dump file or a broker, and import that."""
    with failures():
        if (file is None) == (bootstrap is None):
            raise InvalidRequest("name a dump file or a broker with --bootstrap, one of the two")
        if bootstrap is not None:
            records: Iterable[Record] = broker.read(
                bootstrap, topic_name, settings=_settings(kafka), progress=_Shown("broker")
            )
            dump = topic.read(records)
        else:
            assert file is not None
            dump = _read_lines(file)
        _import(dump, to, store, dry_run=dry_run, verify=verify, modes=not skip_modes, output=output)


@imports.command("archive")
def import_archive(
    file: Annotated[Path, typer.Argument(help="An archive that `stele export` wrote.")],
    to: ToOption = DEFAULT_URLS,
    store: StoreOption = None,
    dry_run: DryRun = False,
    verify: VerifyOnly = False,
    skip_modes: SkipModes = False,
    output: OutputOption = Output.TEXT,
) -> None:
    """Bring the registry in an archive here. The word `archive` may be left out."""
    with failures():
        dump = archive.read(file)
        _import(dump, to, store, dry_run=dry_run, verify=verify, modes=not skip_modes, output=output)


def _import(
    dump: Dump, to: list[str], store: str | None, *, dry_run: bool, verify: bool, modes: bool, output: Output
) -> None:
    """Plan, do, prove; ends the command with 1 when the target is not what the source is."""
    refusals: list[Refusal] = []
    with _registry(to, store) as client:
        try:
            if not dry_run and not verify:
                refusals = target.apply(dump, client, modes=modes, progress=_Shown("target"))
            left = target.plan(dump, client, modes=modes, progress=_Shown("target"))
        except target.Contradicted as error:
            errors.print(f"[bold red]error:[/] {escape(str(error))}", highlight=False, soft_wrap=True)
            left = error.comparison
    _report(dump, left, refusals, planned=dry_run, output=output)
    if left.conflicts or refusals or (left.differences and not dry_run):
        raise typer.Exit(1)


class _Report(msgspec.Struct, rename="camel"):
    """What programs are told."""

    versions: int
    same: int
    counts: dict[str, int]
    differences: tuple[Difference, ...]
    refused: list[Refusal]
    notes: tuple[str, ...]


def _report(dump: Dump, left: Comparison, refusals: list[Refusal], *, planned: bool, output: Output) -> None:
    if output is Output.JSON:
        print_json(_Report(len(dump.versions), left.same, left.counts, left.differences, refusals, dump.notes))
        return
    for note in dump.notes:
        errors.print(f"note: {note}", highlight=False, markup=False)
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
    for refusal in refusals:
        number = "" if refusal.version is None else f" version {refusal.version}"
        errors.print(f"refused: {refusal.name}{number}: {refusal.why}", highlight=False, markup=False, soft_wrap=True)
    counts = ", ".join(f"{kind}: {count}" for kind, count in left.counts.items()) if planned else ""
    said = f"{len(left.differences)} differences" if left.differences else "no difference"
    console.print(f"{left.same} of {len(dump.versions)} versions are there; {counts or said}", highlight=False)


# --- exporting ------------------------------------------------------------------------------------------------------


@exports.command("archive")
def export_archive(
    file: Annotated[Path, typer.Argument(help="File to write; .zst at its end for zstd, else gzip.")],
    url: FromOption = DEFAULT_URLS,
    store: StoreOption = None,
    level: Levels = [],  # noqa: B006 - typer copies it
    output: OutputOption = Output.TEXT,
) -> None:
    """Write a registry into one portable file. The word `archive` may be left out."""
    with failures(), _registry(url, store) as client:
        dump = source.read(client, _Shown("source"), levels=level)
        archive.write(dump, file)
    _told(output, str(file), dump, [])


@exports.command("topic")
def export_topic(
    file: DumpFile = None,
    flavour: Annotated[Flavour, typer.Option(help="Whose records to write.")] = Flavour.CONFLUENT,
    bootstrap: BootstrapOption = None,
    topic_name: TopicOption = broker.TOPIC,
    kafka: KafkaOption = [],  # noqa: B006 - typer copies it
    url: FromOption = DEFAULT_URLS,
    store: StoreOption = None,
    level: Levels = [],  # noqa: B006 - typer copies it
    output: OutputOption = Output.TEXT,
) -> None:
    """Write a registry as the records of a `_schemas` topic, into a dump file or an empty topic of a broker.

    Ends with 1 when that format has no place for something; what it is goes to standard error.
    """
    with failures():
        if (file is None) == (bootstrap is None):
            raise InvalidRequest("name a file to write or a broker with --bootstrap, one of the two")
        with _registry(url, store) as client:
            dump = source.read(client, _Shown("source"), levels=level)
        written = unfold.write(dump, flavour)
        if bootstrap is not None:
            broker.write(bootstrap, written.records, topic_name, settings=_settings(kafka))
        else:
            assert file is not None
            files.write(file, lines.write(written.records))
    _told(output, str(file or topic_name), dump, written.losses)
    if written.losses:
        raise typer.Exit(1)


def _told(output: Output, place: str, dump: Dump, losses: list[str]) -> None:
    if output is Output.JSON and place != "-":
        print_json({"written": place, "versions": len(dump.versions), "losses": losses})
        return
    for loss in losses:
        errors.print(f"lost: {loss}", highlight=False, markup=False)
    errors.print(f"{len(dump.versions)} versions written to {place}", highlight=False, markup=False, soft_wrap=True)


# --- files, brokers, registries -------------------------------------------------------------------------------------


@contextmanager
def _registry(urls: list[str], store: str | None) -> Iterator[SchemaRegistryClient]:
    """A client of a running registry, or of a store opened for it."""
    if store is None:
        with SchemaRegistryClient(urls) as client:
            yield client
        return
    with offline(store) as transport, SchemaRegistryClient(_OFFLINE, transport=transport) as client:
        yield client


def _read_lines(file: Path) -> Dump:
    with files.reading(file) as opened:
        return topic.read(lines.read(opened))


def _settings(words: list[str]) -> dict[str, str]:
    found = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals:
            raise InvalidRequest(f"--kafka takes name=value, not {word!r}")
        found[name] = value
    return found


class _Shown:
    """Progress on standard error: at the beginning, the end, and now and then between."""

    def __init__(self, where: str) -> None:
        self._where = where
        self._next: dict[str, int] = {}

    def __call__(self, verb: str, done: int, total: int | None) -> None:
        """Say where the work is, unless it was said lately."""
        if done < self._next.get(verb, 0) and done != total:
            return
        self._next[verb] = done + max((total or 10 * done) // _STEPS, _STRIDE)
        of = "" if total is None else f" of {total}"
        errors.print(f"{self._where}: {verb} {done}{of}", highlight=False, markup=False)
