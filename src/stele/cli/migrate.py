"""`stele import` and `stele export`: import and export of whole registries."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import ExitStack
from itertools import chain
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from stele.cli.archive import export_archive, import_archive
from stele.cli.connect import Connection, RegistryOptions, split_addresses
from stele.cli.files import ForceOption, check_target
from stele.cli.options import expand_dataclass
from stele.cli.output import Output, OutputOption, errors, exit_on_error, print_json
from stele.cli.transfer import (
    DryRun,
    Levels,
    ProgressPrinter,
    SkipModes,
    StoreOption,
    VerifyOnly,
    open_registry,
    print_notes,
    run_import,
)
from stele.errors import InvalidRequest
from stele.migrate import broker, dump_file, files, registry_reader, topic_reader, topic_writer
from stele.migrate.model import Dump
from stele.migrate.topic_records import Flavour, Record
from stele.server.store_maintenance import require_store


class _Archives(TyperGroup):
    """A group of commands in which the word `archive` may be left out: `stele export FILE`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Insert `archive` before arguments that do not begin with a sub-command or a help option."""
        if args and args[0] not in self.commands and args[0] not in ctx.help_option_names:
            args = ["archive", *args]
        return super().parse_args(ctx, args)


imports = typer.Typer(
    cls=_Archives,
    help="Import a whole registry: from another registry, a topic, or an archive (`stele import FILE`).",
    no_args_is_help=True,
)
exports = typer.Typer(
    cls=_Archives,
    help="Export a whole registry: as an archive (`stele export FILE`) or a topic.",
    no_args_is_help=True,
)

imports.command("archive")(import_archive)
exports.command("archive")(export_archive)

BootstrapOption = Annotated[
    str | None, typer.Option("--bootstrap", help="host:port of a Kafka broker, in place of a file.")
]
TopicOption = Annotated[str, typer.Option("--topic", help="Name of the topic.")]
KafkaOption = Annotated[
    list[str], typer.Option("--kafka", help="A librdkafka setting, name=value (security.protocol …). Repeatable.")
]
KeysOption = Annotated[
    Path | None, typer.Option("--keys", help="Dump file of the topic with encryption keys (_dek_registry_keys).")
]
KeysTopicOption = Annotated[
    str | None, typer.Option("--keys-topic", help="Name of the topic with encryption keys, such as _dek_registry_keys.")
]
DumpFile = Annotated[Path | None, typer.Argument(help="Dump file; - for standard input or output.", allow_dash=True)]


# --- importing ------------------------------------------------------------------------------------------------------


@imports.command("confluent")
@expand_dataclass
def import_confluent(
    source: Annotated[
        list[str],
        typer.Option(
            "--from",
            metavar="URL",
            help="Base URL of the registry to copy, which may hold user:password@; or the name of a profile.",
        ),
    ],
    registry: RegistryOptions,
    store: StoreOption = None,
    dry_run: DryRun = False,
    verify: VerifyOnly = False,
    skip_modes: SkipModes = False,
    level: Levels = [],  # noqa: B006 - typer copies it
    output: OutputOption = Output.TEXT,
) -> None:
    """Copy a running registry that speaks the Confluent API: Confluent, Redpanda, Karapace, Apicurio, Stele.

    The registry should receive no writes meanwhile: set it to READONLY, or run the command again after the last write.
    """
    with exit_on_error():
        with _find_source(source).open_client() as client:
            dump = registry_reader.read_registry(client, ProgressPrinter("source"), levels=level)
        run_import(dump, registry, store, dry_run=dry_run, verify=verify, modes=not skip_modes, output=output)


def _find_source(texts: list[str]) -> Connection:
    """Return the registry to copy, given by addresses or by a profile. Raises `InvalidRequest`."""
    if len(texts) == 1 and "://" not in texts[0]:
        return RegistryOptions(profile=texts[0]).find_connection()
    return Connection(urls=split_addresses(texts))


@imports.command("topic")
@expand_dataclass
def import_topic(
    registry: RegistryOptions,
    file: DumpFile = None,
    bootstrap: BootstrapOption = None,
    topic_name: TopicOption = broker.TOPIC,
    keys: KeysOption = None,
    keys_topic: KeysTopicOption = None,
    kafka: KafkaOption = [],  # noqa: B006 - typer copies it
    store: StoreOption = None,
    dry_run: DryRun = False,
    verify: VerifyOnly = False,
    skip_modes: SkipModes = False,
    output: OutputOption = Output.TEXT,
) -> None:
    """Import a `_schemas` topic of Confluent, Karapace or Redpanda from a dump file or a broker."""
    with exit_on_error():
        if (file is None) == (bootstrap is None):
            raise InvalidRequest("give either a dump file, or a broker with --bootstrap")
        with ExitStack() as opened:
            records: list[Iterable[Record]] = [
                dump_file.read_records(opened.enter_context(files.open_input(path)))
                for path in (file, keys)
                if path is not None
            ]
            if bootstrap is not None:
                for name in filter(None, (topic_name, keys_topic)):
                    progress = ProgressPrinter("broker")
                    records.append(
                        broker.read_topic(bootstrap, name, settings=_parse_settings(kafka), progress=progress)
                    )
            dump = topic_reader.read_topic_records(chain.from_iterable(records))
        run_import(dump, registry, store, dry_run=dry_run, verify=verify, modes=not skip_modes, output=output)


# --- exporting ------------------------------------------------------------------------------------------------------


@exports.command("topic")
@expand_dataclass
def export_topic(
    registry: RegistryOptions,
    file: DumpFile = None,
    flavour: Annotated[Flavour, typer.Option(help="Registry whose record format to write.")] = Flavour.CONFLUENT,
    bootstrap: BootstrapOption = None,
    topic_name: TopicOption = broker.TOPIC,
    keys: KeysOption = None,
    keys_topic: KeysTopicOption = None,
    kafka: KafkaOption = [],  # noqa: B006 - typer copies it
    store: StoreOption = None,
    force: ForceOption = False,
    level: Levels = [],  # noqa: B006 - typer copies it
    output: OutputOption = Output.TEXT,
) -> None:
    """Write a registry as the records of a `_schemas` topic, into a dump file or an empty topic of a broker.

    Ends with 1 if the topic format cannot hold something, and prints on standard error what is lost.
    """
    with exit_on_error():
        if (file is None) == (bootstrap is None):
            raise InvalidRequest("give either a file to write, or a broker with --bootstrap")
        for target in (file, keys):
            check_target(target, force=force)
        if store is not None:
            require_store(store)
        with open_registry(registry, store) as client:
            dump = registry_reader.read_registry(client, ProgressPrinter("source"), levels=level)
        written = topic_writer.write_records(dump, flavour)
        losses = list(written.losses)
        if written.keys and keys is None and keys_topic is None:
            losses.append(f"{len(written.keys)} keys need a separate topic: add --keys or --keys-topic")
        if bootstrap is not None:
            broker.write_topic(bootstrap, written.records, topic_name, settings=_parse_settings(kafka))
            if keys_topic is not None:
                broker.write_topic(bootstrap, written.keys, keys_topic, settings=_parse_settings(kafka))
        else:
            assert file is not None
            files.write_file(file, dump_file.write_records(written.records))
        if keys is not None:
            files.write_file(keys, dump_file.write_records(written.keys))
    _print_written(output, str(file or topic_name), dump, losses)
    if losses:
        raise typer.Exit(1)


def _print_written(output: Output, place: str, dump: Dump, losses: list[str]) -> None:
    if output is Output.JSON and place != "-":
        print_json({"written": place, "versions": len(dump.versions), "losses": losses})
        return
    print_notes(dump)
    for loss in losses:
        errors.print(f"lost: {loss}", highlight=False, markup=False)
    errors.print(f"{len(dump.versions)} versions written to {place}", highlight=False, markup=False, soft_wrap=True)


# --- settings of the broker -----------------------------------------------------------------------------------------


def _parse_settings(words: list[str]) -> dict[str, str]:
    settings = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals:
            raise InvalidRequest(f"--kafka takes name=value, not {word!r}")
        settings[name] = value
    return settings
