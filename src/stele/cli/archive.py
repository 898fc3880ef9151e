"""`stele export FILE` and `stele import FILE`: the whole log of a registry in one file."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from stele.cli import transfer
from stele.cli.connect import RegistryOptions
from stele.cli.files import ForceOption, check_target
from stele.cli.options import expand_dataclass
from stele.cli.output import Output, OutputOption, console, errors, exit_on_error, print_json
from stele.cli.transfer import DryRun, Levels, ProgressPrinter, SkipModes, StoreOption, VerifyOnly
from stele.errors import InvalidRequest
from stele.migrate import archive, registry_reader, registry_writer
from stele.migrate.archive import Archive, ArchiveContents, OwnHistory, Restoration
from stele.migrate.files import STANDARD
from stele.migrate.registry_writer import Refusal
from stele.server.store_maintenance import require_store
from stele.server.store_session import open_log_session


@expand_dataclass
def export_archive(
    file: Annotated[
        Path, typer.Argument(help="File to write, - for standard output. A name in .zst gives zstd, else gzip.")
    ],
    registry: RegistryOptions,
    store: StoreOption = None,
    as_of: Annotated[
        str,
        typer.Option(
            "--as-of",
            help="With --store: the state at the number of a record, or at a time such as 2026-11-23T10:00:00Z.",
        ),
    ] = "",
    force: ForceOption = False,
    level: Levels = [],  # noqa: B006 - typer copies it
    output: OutputOption = Output.TEXT,
) -> None:
    """Write a registry into one portable file. The word `archive` may be left out.

    With --store, the file holds everything, secrets included. A server may be running on the store. With --registry,
    which may be any registry with the Confluent API, the file holds what that API shows.
    """
    with exit_on_error():
        check_target(file, force=force)
        refused: list[Refusal] = []
        if store is not None:
            contents = asyncio.run(_write_store(store, file, as_of))
        elif as_of:
            raise InvalidRequest("--as-of needs the store itself: add --store")
        else:
            with transfer.open_registry(registry, None) as client, _scratch_store() as copy:
                dump = registry_reader.read_registry(client, ProgressPrinter("source"), levels=level)
                with transfer.open_registry(RegistryOptions(), copy) as own:
                    refused = registry_writer.apply_import(dump, own, progress=ProgressPrinter("copy"))
                contents = asyncio.run(_write_store(copy, file))
            transfer.print_notes(dump)
    if output is Output.JSON and file != STANDARD:
        print_json({"written": str(file), **contents._asdict(), "refused": refused})
    else:
        transfer.print_refusals(refused)
        message = f"{contents.records} records written to {file}, SHA-256 {contents.sha256}"
        errors.print(message, highlight=False, markup=False, soft_wrap=True)
    if refused:
        raise typer.Exit(1)


@expand_dataclass
def import_archive(
    file: Annotated[Path, typer.Argument(help="Archive written by `stele export`; - for standard input.")],
    registry: RegistryOptions,
    store: StoreOption = None,
    merge: Annotated[
        bool,
        typer.Option("--merge", help="With --store: import into a registry that is not empty, as --registry does."),
    ] = False,
    dry_run: DryRun = False,
    verify: VerifyOnly = False,
    skip_modes: SkipModes = False,
    output: OutputOption = Output.TEXT,
) -> None:
    """Import a registry from an archive. The word `archive` may be left out.

    With --store, an empty store receives every record: it is the same registry afterwards, in every dialect. A server
    may be running on the store. With --registry, a running registry receives what the Confluent API carries.
    """
    with exit_on_error(), archive.open_archive(file) as source:
        if store is not None and not merge:
            if registry.is_given:
                raise InvalidRequest("--store and --registry exclude one another")
            target = transfer.find_target(store, dry_run=dry_run, verify=verify) or store
            done = asyncio.run(_restore_store(source, target, changing=not dry_run and not verify))
        else:
            with _scratch_store() as copy:
                asyncio.run(_restore_store(source, copy, changing=True))
                with transfer.open_registry(RegistryOptions(), copy) as own:
                    dump = registry_reader.read_registry(own, levels=source.levels())
            transfer.run_import(
                dump, registry, store, dry_run=dry_run, verify=verify, modes=not skip_modes, output=output
            )
            return
    _print_report(source.contents, done, output)
    if verify and (done.missing or done.erasable):
        raise typer.Exit(1)


def _print_report(contents: ArchiveContents, done: Restoration, output: Output) -> None:
    if output is Output.JSON:
        print_json({"sha256": contents.sha256, **_members(done)})
        return
    there = contents.records - done.missing
    console.print(
        f"{there} of {contents.records} records exist"
        + (f", {done.erasable} with texts purged since" if done.erasable else "")
        + (f"; the store is {done.ahead} records ahead" if done.ahead else "")
        + f"; SHA-256 {contents.sha256}",
        highlight=False,
        soft_wrap=True,
    )


def _members(done: Restoration) -> dict[str, int]:
    return {name: getattr(done, name) for name in done.__struct_fields__}


async def _write_store(store: str, file: Path, as_of: str = "") -> ArchiveContents:
    require_store(store)
    async with open_log_session(store, as_of) as log:
        return await archive.write_archive(log, file, ProgressPrinter("archive"))


async def _restore_store(archive: Archive, store: str, *, changing: bool) -> Restoration:
    """Compare a store with an archive, after restoring the archive into it if `changing` is set.

    The comparison reads the store itself. Raises `InvalidRequest` if the store has a history of its own.
    """
    async with open_log_session(store) as log:
        try:
            if changing:
                await archive.restore(log, ProgressPrinter("store"))
            return await archive.compare(log)
        except OwnHistory as error:
            raise InvalidRequest(f"{error}. Import into an empty one, or add --merge") from None


@contextmanager
def _scratch_store() -> Iterator[str]:
    """Yield the URL of a temporary store, which is deleted at the end."""
    with tempfile.TemporaryDirectory(prefix="stele-") as folder:
        yield f"sqlite:///{folder}/copy.db"
