"""`stele log` and `stele backup`: verify, repair, copy, compact and back up the log of a store."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from stele.cli.output import Output, OutputOption, console, exit_on_error, print_json, print_rows
from stele.cli.transfer import ProgressPrinter
from stele.server.settings import STATE_DIR
from stele.server.store_maintenance import (
    Damage,
    Examination,
    LostVersion,
    back_up_store,
    repair_store,
    verify_store,
)
from stele.server.store_session import CopiedLog, compact_log, copy_log

app = typer.Typer(help="Verify, repair and copy the log of a store.", no_args_is_help=True)

_ROWS = 20
"""Maximum number of damages and of lost versions in text output; JSON output has all."""

StoreOption = Annotated[
    str, typer.Option("--store", envvar="STELE_STORE", help="URL of the store, such as sqlite:///file.db")
]
StateDirOption = Annotated[
    Path,
    typer.Option("--state-dir", envvar="STELE_STATE_DIR", help="Folder with the state of the server on this node."),
]


class _Report(msgspec.Struct, rename="camel"):
    """JSON output of `stele log verify`."""

    records: int
    acknowledged: int
    intact: int
    damages: list[dict[str, object]]
    lost: list[dict[str, object]]


class _RepairReport(msgspec.Struct, rename="camel"):
    """JSON output of `stele log repair`."""

    kept: int
    skipped_schema_ids: int
    moved_to: str
    lost: list[dict[str, object]]


@app.command("verify")
def verify(store: StoreOption, state_dir: StateDirOption = STATE_DIR, output: OutputOption = Output.TEXT) -> None:
    """Read every record of a store and verify its checksum, its texts and its place. Ends with 1 if anything is wrong.

    Nothing is changed. A server may be running on the store.
    """
    with exit_on_error():
        examination = verify_store(store, state_dir)
    if output is Output.JSON:
        lost = [row._asdict() for row in examination.lost]
        damages = [row._asdict() for row in examination.damages]
        print_json(_Report(examination.records, examination.acknowledged, examination.intact, damages, lost))
    else:
        _print_examination(examination)
    if not examination.is_whole:
        raise typer.Exit(1)


@app.command("repair")
def repair(
    store: StoreOption,
    last_id: Annotated[
        int, typer.Option("--last-id", min=0, help="Highest schema id that occurs anywhere, in data or in clients.")
    ] = 0,
    state_dir: StateDirOption = STATE_DIR,
    output: OutputOption = Output.TEXT,
) -> None:
    """Keep the records before the first damage. Schema ids that lost records may have used are never assigned again.

    If there is a newer backup, restore it instead. Stop the servers first. The damaged files are kept beside the new
    ones.
    """
    with exit_on_error():
        examination = verify_store(store, state_dir)
        if examination.is_whole:
            console.print(f"{examination.records} records are whole: there is nothing to repair", highlight=False)
            return
        done = repair_store(store, state_dir, last_id)
    if output is Output.JSON:
        print_json(_RepairReport(done.kept, done.skipped, done.moved_to, [row._asdict() for row in examination.lost]))
        return
    _print_examination(examination)
    console.print(
        f"{done.kept} records are kept; the next {done.skipped} schema ids of every namespace are skipped. The damaged"
        f" files are {done.moved_to}*",
        highlight=False,
        markup=False,
        soft_wrap=True,
    )


@app.command("copy")
def copy(
    source: Annotated[str, typer.Argument(metavar="FROM", help="Store to copy from. Its servers may keep running.")],
    target: Annotated[str, typer.Argument(metavar="TO", help="Store to copy to: empty, or an earlier copy.")],
    follow: Annotated[
        bool, typer.Option("--follow", help="Keep copying new records until Ctrl-C, then compare both logs and end.")
    ] = False,
    output: OutputOption = Output.TEXT,
) -> None:
    """Copy a registry from one store to another, of any kind. Ids, version numbers and times stay as they are.

    To move without a gap: copy with --follow, stop the servers of the old store, press Ctrl-C, and start servers on the
    new one. At the end both logs are compared record by record; exit code 0 means that they are the same.
    """
    with exit_on_error():
        done = asyncio.run(_copy_log(source, target, follow=follow))
    if output is Output.JSON:
        print_json(done._asdict())
        return
    console.print(
        f"{done.records} records are the same in both stores; {done.copied} were copied"
        + (f", {done.erased} texts purged since were erased" if done.erased else ""),
        highlight=False,
        soft_wrap=True,
    )


async def _copy_log(source: str, target: str, *, follow: bool) -> CopiedLog:
    until = asyncio.Event() if follow else None
    if until is not None:
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, until.set)
    progress = ProgressPrinter("target")
    return await copy_log(source, target, until=until, progress=lambda seq: progress("records", seq, None))


@app.command("compact")
def compact(store: StoreOption, output: OutputOption = Output.TEXT) -> None:
    """Save a snapshot, so that servers start quickly, and erase purged texts that a node left when it died.

    A server may be running on the store.
    """
    with exit_on_error():
        done = asyncio.run(compact_log(store))
    if output is Output.JSON:
        print_json(done._asdict())
        return
    console.print(
        f"snapshot of {done.snapshot_bytes} bytes after record {done.records}; {done.erased} purged texts erased",
        highlight=False,
        soft_wrap=True,
    )


def back_up(
    file: Annotated[Path, typer.Argument(help="File to write. It must not exist.")],
    store: StoreOption,
    output: OutputOption = Output.TEXT,
) -> None:
    """Copy a store into one file while servers use it, and verify the copy.

    A copy of the database file alone lacks what is still in the write-ahead log.
    """
    with exit_on_error():
        examination = back_up_store(store, file)
    if output is Output.JSON:
        print_json({"written": str(file), "records": examination.records, "whole": examination.is_whole})
    elif examination.is_whole:
        console.print(f"{examination.records} records copied to {file}", highlight=False, markup=False, soft_wrap=True)
    else:
        _print_examination(examination)
    if not examination.is_whole:
        raise typer.Exit(1)


def _print_examination(examination: Examination) -> None:
    if examination.is_whole:
        console.print(f"{examination.records} records are whole", highlight=False)
        return
    _print_some(Damage._fields, examination.damages)
    if examination.lost:
        console.print("Versions that a repair would lose, as far as they can be read:", highlight=False)
        _print_some(LostVersion._fields, examination.lost)
    console.print(
        f"{examination.intact} of {max(examination.records, examination.acknowledged)} records precede the first"
        " damage",
        highlight=False,
    )


def _print_some(columns: tuple[str, ...], rows: list[Damage] | list[LostVersion]) -> None:
    print_rows(Output.TEXT, columns, [row._asdict() for row in rows[:_ROWS]])
    if len(rows) > _ROWS:
        console.print(f"… and {len(rows) - _ROWS} more", highlight=False)
