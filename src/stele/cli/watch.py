"""`stele watch`: changes of a registry as they happen."""

from __future__ import annotations

import sys
from typing import Annotated, Final

import msgspec
import typer
from rich.text import Text

from stele.cli.connect import RegistryOptions
from stele.cli.options import expand_dataclass
from stele.cli.output import Output, OutputOption, console, exit_on_error
from stele.protocol.cncf import DELETED, CloudEvent

_WAIT_SECONDS: Final = 25
_NEWEST: Final = "now"
_WORDS: Final = {True: ("deleted", "red"), False: ("updated", "green")}


@expand_dataclass
def watch_changes(
    registry: RegistryOptions,
    after: Annotated[
        str,
        typer.Option(
            help="Position to start after: id of an event, number of a record, 0 for all, now for new events only."
        ),
    ] = _NEWEST,
    subject: Annotated[
        str, typer.Option(help="Print only changes below a path: /schemagroups/default/schemas/orders.", metavar="PATH")
    ] = "",
    count: Annotated[int, typer.Option(help="End after this many changes; 0: never.", min=0)] = 0,
    output: OutputOption = Output.TEXT,
) -> None:
    """Print every change of a registry as it happens; with `--output json`, one CloudEvent per line."""
    with exit_on_error(), registry.find_connection().open_client(timeout=_WAIT_SECONDS + 10) as client:
        position = str(client.journal(0, limit=0).end) if after == _NEWEST else after
        printed = 0
        try:
            while not count or printed < count:
                page = client.events(position, wait=_WAIT_SECONDS, subject=subject)
                for event in page.events[: count - printed if count else None]:
                    _print_event(event, output)
                    printed += 1
                position = page.next
        except KeyboardInterrupt:
            raise typer.Exit(0) from None


def _print_event(event: CloudEvent, output: Output) -> None:
    if output is Output.JSON:
        sys.stdout.write(msgspec.json.encode(event).decode() + "\n")
        sys.stdout.flush()
        return
    word, colour = _WORDS[event.type == DELETED]
    console.print(Text.assemble(f"{event.time}  {event.id:>10}  ", (word, colour), f"  {event.subject}"))
