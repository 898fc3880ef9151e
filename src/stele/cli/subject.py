"""`stele subject`: list subjects and their versions, set policies, delete."""

from __future__ import annotations

from http import HTTPStatus
from typing import Annotated

import typer

from stele.cli.connect import DEFAULT_URLS, connect
from stele.cli.output import Output, OutputOption, UrlOption, print_error, print_json, print_rows, print_warning
from stele.client import ConfigUpdateRequest, DeletionWarning, ResponseError, SchemaRegistryClient
from stele.errors import InvalidRequest

app = typer.Typer(help="List subjects and their versions, set policies, delete.", no_args_is_help=True)

Subject = Annotated[str, typer.Argument(help="Name of the subject.")]


@app.command("list")
def list_subjects(
    prefix: Annotated[str | None, typer.Option(help="Only names that begin so; :*: for all contexts.")] = None,
    deleted: Annotated[bool, typer.Option("--deleted", help="Soft-deleted ones too.")] = False,
    url: UrlOption = DEFAULT_URLS,
    output: OutputOption = Output.TEXT,
) -> None:
    """Names of subjects."""
    with connect(url) as client:
        names = client.subjects(subject_prefix=prefix, deleted=deleted)
    if output is Output.JSON:
        print_json(names)
    else:
        for name in names:
            typer.echo(name)


@app.command("versions")
def versions(
    subject: Subject,
    deleted: Annotated[bool, typer.Option("--deleted", help="Soft-deleted ones too.")] = False,
    url: UrlOption = DEFAULT_URLS,
    output: OutputOption = Output.TEXT,
) -> None:
    """Versions of a subject with their ids."""
    with connect(url) as client:
        found = [
            client.version(subject, number, deleted=deleted) for number in client.versions(subject, deleted=deleted)
        ]
    rows = [{"version": row.version, "id": row.id, "type": row.schema_type} for row in found]
    print_rows(output, ("version", "id", "type"), rows)


@app.command("policy")
def policy(
    subject: Subject,
    level: Annotated[
        str | None, typer.Argument(help="New compatibility level; shows the one in force if absent.")
    ] = None,
    url: UrlOption = DEFAULT_URLS,
    output: OutputOption = Output.TEXT,
) -> None:
    """Show or set a subject's compatibility policy."""
    with connect(url) as client:
        if level is not None:
            client.set_config(ConfigUpdateRequest(compatibility=level), subject)
        config = client.config(subject, default_to_global=True)
    if output is Output.JSON:
        print_json(config)
    else:
        typer.echo(config.compatibility_level)


@app.command("delete")
def delete(
    subject: Subject,
    version: Annotated[str | None, typer.Option(help="Only this version.")] = None,
    permanent: Annotated[bool, typer.Option("--permanent", help="For good; soft-delete first.")] = False,
    unused: Annotated[
        bool, typer.Option("--if-unused", help="Refuse where a recorded census saw records of a version.")
    ] = False,
    url: UrlOption = DEFAULT_URLS,
    output: OutputOption = Output.TEXT,
) -> None:
    """Soft-delete a subject or one version of it; with --permanent remove what is soft-deleted.

    Where recorded censuses (`stele census --record`) saw records of what is deleted, that is said on standard error.
    Exit code 0: deleted; 1: refused, with --if-unused; 2: it cannot be deleted.
    """
    with connect(url) as client:
        number = None if version is None else _parse_version_number(client, subject, version)
        warnings = _find_warnings(client, subject, number, needed=unused)
        for warning in warnings:
            print_warning(warning.message)
        if unused and warnings:
            print_error("refused:", f"{subject} is in use; without --if-unused it is deleted all the same")
            raise typer.Exit(1)
        if number is None:
            gone = client.delete_subject(subject, permanent=permanent)
        else:
            gone = [client.delete_version(subject, number, permanent=permanent)]
    if output is Output.JSON:
        print_json(gone)
    else:
        typer.echo(f"deleted {subject}: versions {', '.join(map(str, gone))}")


def _parse_version_number(client: SchemaRegistryClient, subject: str, version: str) -> int:
    """A version's number: the one asked about is the one that goes. Raises `InvalidRequest`."""
    if version == "latest":
        return client.version(subject).version
    if not (version.isascii() and version.isdigit()):
        raise InvalidRequest(f"--version is a number or latest, not {version!r}")
    return int(version)


def _find_warnings(
    client: SchemaRegistryClient, subject: str, number: int | None, *, needed: bool
) -> tuple[DeletionWarning, ...]:
    """What the registry knows of records. Others than Stele know nothing; that is an error only where it is needed."""
    try:
        return client.preview_deletion(subject, number).warnings
    except ResponseError as error:
        if needed or error.failure.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            raise
        return ()  # a subject that is not there is told by the deletion itself
