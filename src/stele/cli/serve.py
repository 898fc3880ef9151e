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
    port: Annotated[int | None, typer.Option(help="TCP port. Default: 8081, or that of the settings.")] = None
    listen: Annotated[
        list[str] | None, typer.Option(help="dialect=port: an additional port for one dialect; repeatable.")
    ] = None
    authentication: Annotated[
        list[str] | None,
        typer.Option(help="Authentication methods: basic, keys, oidc, mtls or dialect:method; repeatable."),
    ] = None
    password_file: Annotated[str | None, typer.Option(help="File of users for basic, created by htpasswd -B.")] = None
    tls_certificate: Annotated[
        str | None, typer.Option(help="PEM file with the certificate of the server; turns on TLS.")
    ] = None
    tls_key: Annotated[
        str | None, typer.Option(help="PEM file with the key of the server, if it is in another file.")
    ] = None
    tls_client_ca: Annotated[
        str | None, typer.Option(help="PEM file with the authorities for client certificates.")
    ] = None
    insecure: Annotated[
        bool | None,
        typer.Option("--insecure", help="Allow access from other machines without authentication."),
    ] = None
    store: Annotated[
        str | None, typer.Option(help="URL of the store. Default: sqlite:///.stele/stele.db, or that of the settings.")
    ] = None
    state_dir: Annotated[
        str | None, typer.Option(help="Folder for the state of this node if the store is on a server. Default: .stele.")
    ] = None
    as_of: Annotated[
        str | None,
        typer.Option(
            help="Serve an earlier state, read-only: at the number of a record, or at a time (2026-11-23T10:00:00Z)."
        ),
    ] = None
    workers: Annotated[int | None, typer.Option(help="Number of worker processes.")] = None
    testing: Annotated[
        bool | None, typer.Option("--testing", help="Empty the registry on SIGUSR1; for memory stores only.")
    ] = None
    undecided: Annotated[
        str | None, typer.Option(help="refuse or allow changes that no rule can decide. Default: refuse.")
    ] = None
    log_level: Annotated[str | None, typer.Option(help="debug, info, warning or error.")] = None
    log_format: Annotated[str | None, typer.Option(help="console or json.")] = None
    confluent_profile: Annotated[
        str | None,
        typer.Option(help="Registry to imitate: Confluent 7.9, 8.0, 8.1, 8.2, 8.3 or 8.4, redpanda or karapace."),
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
            print_warning(f"{settings.host} can be reached from other machines, and every caller has every right")
        run_server(settings, lambda line: errors.print(line, highlight=False, markup=False, soft_wrap=True))
