"""`stele export FILE` and `stele import FILE`: the whole log of a registry in one file."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from stele.cli import moving
from stele.cli.connect import DEFAULT_URLS
from stele.cli.moving import DryRun, FromOption, Levels, Shown, SkipModes, StoreOption, ToOption, VerifyOnly
from stele.cli.output import Output, OutputOption, console, errors, failures, print_json
from stele.errors import InvalidRequest
from stele.migrate import archive, source, target
from stele.migrate.archive import Archive, Contents, OwnHistory, Restoration
from stele.migrate.files import STANDARD
from stele.migrate.target import Refusal
from stele.server.store_session import open_log_session


def export_archive(
    file: Annotated[Path, typer.Argument(help="File to write; .zst at its end for zstd, else gzip.")],
    url: FromOption = DEFAULT_URLS,
    store: StoreOption = None,
    level: Levels = [],  # noqa: B006 - typer copies it
    output: OutputOption = Output.TEXT,
) -> None:
    """Write a registry into one portable file. The word `archive` may be left out.

    From a store (--store) everything is taken, secrets included; a server may be running on it. From a URL, of any
    registry with the Confluent API, what that API shows.
    """
    with failures():
        refused: list[Refusal] = []
        if store is not None:
            contents = asyncio.run(_write(store, file))
        else:
            with moving.registry(url, None) as client, _scratch() as copy:
                dump = source.read(client, Shown("source"), levels=level)
                with moving.registry([], copy) as own:
                    refused = target.apply(dump, own, progress=Shown("copy"))
                contents = asyncio.run(_write(copy, file))
            moving.tell_notes(dump)
    if output is Output.JSON and file != STANDARD:
        print_json({"written": str(file), **contents._asdict(), "refused": refused})
    else:
        moving.tell_refusals(refused)
        said = f"{contents.records} records written to {file}, SHA-256 {contents.sha256}"
        errors.print(said, highlight=False, markup=False, soft_wrap=True)
    if refused:
        raise typer.Exit(1)


def import_archive(
    file: Annotated[Path, typer.Argument(help="An archive that `stele export` wrote.")],
    to: ToOption = DEFAULT_URLS,
    store: StoreOption = None,
    merge: Annotated[
        bool, typer.Option("--merge", help="With --store: into a registry that has a history of its own, as --to does.")
    ] = False,
    dry_run: DryRun = False,
    verify: VerifyOnly = False,
    skip_modes: SkipModes = False,
    output: OutputOption = Output.TEXT,
) -> None:
    """Bring the registry in an archive here. The word `archive` may be left out.

    Into an empty store (--store) it goes record by record and is the same registry afterwards, in every dialect; a
    server may be running on the store. Into a running registry (--to) goes what the Confluent API carries.
    """
    with failures(), archive.opened(file) as found:
        if store is not None and not merge:
            done = asyncio.run(_restore(found, store, changing=not dry_run and not verify))
        else:
            with _scratch() as copy:
                asyncio.run(_restore(found, copy, changing=True))
                with moving.registry([], copy) as own:
                    dump = source.read(own, levels=found.levels())
            moving.bring(dump, to, store, dry_run=dry_run, verify=verify, modes=not skip_modes, output=output)
            return
    _report(found.contents, done, output)
    if verify and (done.missing or done.erasable):
        raise typer.Exit(1)


def _report(contents: Contents, done: Restoration, output: Output) -> None:
    if output is Output.JSON:
        print_json({"sha256": contents.sha256, **_members(done)})
        return
    there = contents.records - done.missing
    console.print(
        f"{there} of {contents.records} records are there"
        + (f", {done.erasable} with texts purged since" if done.erasable else "")
        + (f"; the store is {done.ahead} records ahead" if done.ahead else "")
        + f"; SHA-256 {contents.sha256}",
        highlight=False,
        soft_wrap=True,
    )


def _members(done: Restoration) -> dict[str, int]:
    return {name: getattr(done, name) for name in done.__struct_fields__}


async def _write(store: str, file: Path) -> Contents:
    async with open_log_session(store) as log:
        return await archive.write(log, file, Shown("archive"))


async def _restore(found: Archive, store: str, *, changing: bool) -> Restoration:
    """Compare, or restore and compare again: what a store says it has is read from it."""
    async with open_log_session(store) as log:
        try:
            if changing:
                await found.restore(log, Shown("store"))
            return await found.compare(log)
        except OwnHistory as error:
            raise InvalidRequest(f"{error}. Import into an empty one, or add --merge") from None


@contextmanager
def _scratch() -> Iterator[str]:
    """A store for the time of a command."""
    with tempfile.TemporaryDirectory(prefix="stele-") as folder:
        yield f"sqlite:///{folder}/copy.db"
