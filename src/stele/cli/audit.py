"""`stele audit`: verify and print the files of an audit trail."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from stele.cli.output import Output, OutputOption, console, exit_on_error, print_json, print_rows
from stele.core.audit_chain import AuditEntry, BrokenLine, ChainEnd, read_entry, read_line, verify_lines
from stele.errors import InvalidRequest

app = typer.Typer(help="Verify and print files of an audit trail.", no_args_is_help=True)

_COLUMNS = ("time", "kind", "actor", "address", "via", "subject", "details")

FilesArgument = Annotated[list[Path], typer.Argument(help="Files of one trail, oldest first.")]
KeyOption = Annotated[
    str, typer.Option("--key", envvar="STELE_AUDIT_KEY", help="The key of the trail: file:/path or env:NAME.")
]


@app.command("verify")
def verify(files: FilesArgument, key: KeyOption = "", output: OutputOption = Output.TEXT) -> None:
    """Verify that every line is unchanged and in its place. Ends with 1 and names the first line that is not.

    Lines that are missing at the end leave no gap: compare the last number with what syslog or a webhook received.
    """
    with exit_on_error():
        secret = _read_key(key)
        end: ChainEnd | None = None
        for file in files:
            result = verify_lines(_read_lines(file), secret, end)
            if isinstance(result, BrokenLine):
                if output is Output.JSON:
                    print_json({"file": str(file), "line": result.line, "reason": result.reason})
                else:
                    _print(f"{file}: line {result.line} {result.reason}")
                raise typer.Exit(1)
            end = result
    end = end or ChainEnd()
    if output is Output.JSON:
        print_json({"number": end.number, "position": end.position, "hash": end.hash})
    else:
        _print(f"intact up to line {end.number} of the trail, record {end.position} of the log, hash {end.hash}")


@app.command("show")
def show(
    files: FilesArgument,
    actor: Annotated[str, typer.Option("--actor", help="Print only entries of this caller.")] = "",
    kind: Annotated[str, typer.Option("--kind", help="Print only entries of this kind: refused, registered …")] = "",
    output: OutputOption = Output.TEXT,
) -> None:
    """Print the entries of files, oldest first."""
    with exit_on_error():
        entries = [read_entry(read_line(line)) for file in files for line in _read_lines(file)]
    wanted = [entry for entry in entries if (not actor or entry.actor == actor) and (not kind or entry.kind == kind)]
    if output is Output.JSON:
        print_json(wanted)
    else:
        print_rows(output, _COLUMNS, [_make_row(entry) for entry in wanted])


def _make_row(entry: AuditEntry) -> dict[str, object]:
    place = "/".join(filter(None, (entry.namespace, entry.subject)))
    return {
        "time": datetime.fromtimestamp(entry.at / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S"),
        "kind": entry.kind,
        "actor": entry.actor,
        "address": entry.address,
        "via": entry.via,
        "subject": place if entry.version is None else f"{place} {entry.version}",
        "details": msgspec.json.encode(entry.details).decode() if entry.details else "",
    }


def _read_lines(file: Path) -> list[bytes]:
    try:
        return file.read_bytes().splitlines()
    except OSError as error:
        raise InvalidRequest(f"{file}: {error.strerror}") from None


def _read_key(text: str) -> bytes:
    from stele.service.secrets import parse_source, read_key_bytes

    return read_key_bytes(parse_source("audit_key", text)) if text else b""


def _print(text: str) -> None:
    console.print(text, highlight=False, markup=False, soft_wrap=True)
