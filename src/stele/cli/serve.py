"""`stele serve`: run a registry."""

from __future__ import annotations

import gc
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import typer

from stele.cli.options import expand_dataclass
from stele.cli.output import errors, exit_on_error, print_warning


@dataclass(frozen=True)
class ServeOptions:
    """Server settings that have an option. Each has the name of its setting, and is None if it is not given."""

    host: Annotated[str | None, typer.Option(help="Address to listen on.")] = None
    port: Annotated[int | None, typer.Option(help="TCP port; 8081 unless set elsewhere.")] = None
    listen: Annotated[
        list[str] | None, typer.Option(help="dialect=port: one more port, for that dialect alone; repeatable.")
    ] = None
    authentication: Annotated[
        list[str] | None,
        typer.Option(help="How callers prove who they are: basic, keys, oidc, mtls or dialect:method; repeatable."),
    ] = None
    password_file: Annotated[str | None, typer.Option(help="Users for basic, written by htpasswd -B.")] = None
    tls_certificate: Annotated[str | None, typer.Option(help="PEM file of the server's certificate: speak TLS.")] = None
    tls_key: Annotated[str | None, typer.Option(help="PEM file of its key, if in another file.")] = None
    tls_client_ca: Annotated[str | None, typer.Option(help="PEM file of the authorities of client certificates.")] = (
        None
    )
    insecure: Annotated[
        bool | None,
        typer.Option("--insecure", help="Let everybody in who reaches the address, from other machines, too."),
    ] = None
    store: Annotated[str | None, typer.Option(help="URL; sqlite:///.stele/stele.db unless set elsewhere.")] = None
    state_dir: Annotated[
        str | None, typer.Option(help="Folder for what this node remembers of a store on a server; .stele unless set.")
    ] = None
    as_of: Annotated[
        str | None,
        typer.Option(help="Serve it as it was, read-only: up to a record, or a time (2026-11-23T10:00:00Z)."),
    ] = None
    workers: Annotated[int | None, typer.Option(help="Processes serving the same log.")] = None
    testing: Annotated[
        bool | None, typer.Option("--testing", help="SIGUSR1 empties the registry; memory stores only.")
    ] = None
    undecided: Annotated[
        str | None, typer.Option(help="refuse or allow what no rule can decide; refused unless set.")
    ] = None
    log_level: Annotated[str | None, typer.Option(help="debug, info, warning or error.")] = None
    log_format: Annotated[str | None, typer.Option(help="console or json.")] = None
    confluent_profile: Annotated[
        str | None,
        typer.Option(help="Registry to look like: Confluent 7.9, 8.0, 8.1, 8.2, 8.3 or 8.4, redpanda or karapace."),
    ] = None


@expand_dataclass
def serve(
    options: ServeOptions,
    config: Annotated[Path | None, typer.Option(help="TOML file with a \\[server] table.")] = None,
) -> None:
    """Serve every dialect on one port until SIGTERM or Ctrl-C.

    Every other setting comes from STELE_* variables or the TOML file: see docs/reference/settings.md.
    """
    gc.disable()  # for the reason in `stele.cli.main`
    from stele.server.addresses import is_loopback
    from stele.server.run import run_server
    from stele.server.settings import load_settings

    gc.enable()
    # An empty list is an option that was not given.
    flags = {name: value if value != [] else None for name, value in asdict(options).items()}
    with exit_on_error():
        settings = load_settings(flags, config=config)
        if settings.insecure and not settings.authentication and not is_loopback(settings.host):
            print_warning(f"{settings.host} can be reached from other machines, and everybody may do everything")
        run_server(settings, lambda line: errors.print(line, highlight=False, markup=False, soft_wrap=True))
