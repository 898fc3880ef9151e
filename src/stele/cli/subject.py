"""`stele subject`: list subjects and delete them."""

from __future__ import annotations

from http import HTTPStatus
from typing import Annotated

import typer

from stele.cli.completion import complete_version
from stele.cli.connect import RegistryOptions, connect
from stele.cli.options import expand_dataclass
from stele.cli.output import (
    Output,
    OutputOption,
    YesOption,
    print_error,
    print_json,
    print_warning,
    require_confirmation,
)
from stele.cli.schema import SubjectArgument, parse_version
from stele.client import DeletionWarning, ResponseError, SchemaRegistryClient

app = typer.Typer(help="List subjects, and delete them or single versions.", no_args_is_help=True)


@app.command("list")
@expand_dataclass
def list_subjects(
    registry: RegistryOptions,
    prefix: Annotated[
        str | None, typer.Option(help="List only names that begin with this; :*: lists all contexts.")
    ] = None,
    deleted: Annotated[bool, typer.Option("--deleted", help="Include soft-deleted subjects.")] = False,
    output: OutputOption = Output.TEXT,
) -> None:
    """List the names of subjects."""
    with connect(registry) as client:
        names = client.subjects(subject_prefix=prefix, deleted=deleted)
    if output is Output.JSON:
        print_json(names)
    else:
        for name in names:
            typer.echo(name)


@app.command("delete")
@expand_dataclass
def delete(
    subject: SubjectArgument,
    registry: RegistryOptions,
    version: Annotated[
        str | None, typer.Option(help="Delete this version only.", autocompletion=complete_version)
    ] = None,
    permanent: Annotated[
        bool, typer.Option("--permanent", help="Delete for good what is soft-deleted. This cannot be undone.")
    ] = False,
    unused: Annotated[
        bool, typer.Option("--if-unused", help="Refuse if a recorded census found records of a version.")
    ] = False,
    yes: YesOption = False,
    output: OutputOption = Output.TEXT,
) -> None:
    """Soft-delete a subject or one version of it. With --permanent, remove what is soft-deleted for good.

    The command prints a warning if a recorded census (`stele census --record`) found records of what is deleted.
    --permanent asks for confirmation on a terminal and needs --yes elsewhere.

    Exit code 0: deleted; 1: refused because of --if-unused; 2: an error.
    """
    with connect(registry) as client:
        number = None if version is None else _find_version_number(client, subject, version)
        warnings = _find_warnings(client, subject, number, needed=unused)
        for warning in warnings:
            print_warning(warning.message)
        if unused and warnings:
            print_error("refused:", f"{subject} is in use. Without --if-unused it is deleted all the same")
            raise typer.Exit(1)
        if permanent:
            what = subject if number is None else f"version {number} of {subject}"
            require_confirmation(f"Remove {what} and the text of its schemas for good?", yes=yes)
        if number is None:
            deleted_versions = client.delete_subject(subject, permanent=permanent)
        else:
            deleted_versions = [client.delete_version(subject, number, permanent=permanent)]
    if output is Output.JSON:
        print_json(deleted_versions)
        return
    versions = f"version{'s' * (len(deleted_versions) != 1)} {', '.join(map(str, deleted_versions))}"
    if permanent:
        typer.echo(f"removed {subject} {versions} for good")
    else:
        typer.echo(f"soft-deleted {subject} {versions}; --permanent removes what is soft-deleted for good")


def _find_version_number(client: SchemaRegistryClient, subject: str, version: str) -> int:
    """Return the number of a version, so that the checked version is the deleted one. Raises `InvalidRequest`."""
    number = parse_version(version)
    return client.version(subject).version if number == "latest" else number


def _find_warnings(
    client: SchemaRegistryClient, subject: str, number: int | None, *, needed: bool
) -> tuple[DeletionWarning, ...]:
    """Return the registry's warnings about stored records of a version or of a whole subject.

    Only Stele registries have such data. A failed request raises only if `needed` is set, or for a status from 500.
    """
    try:
        return client.preview_deletion(subject, number).warnings
    except ResponseError as error:
        if needed or error.failure.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            raise
        return ()  # the deletion itself reports a missing subject
