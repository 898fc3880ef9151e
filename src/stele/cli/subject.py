"""`stele subject`: list subjects and their versions, set policies, delete."""

from __future__ import annotations

from typing import Annotated

import typer

from stele.cli.connect import DEFAULT_URLS, registry
from stele.cli.output import Output, OutputOption, UrlOption, print_json, print_rows
from stele.client import ConfigUpdate

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
    with registry(url) as client:
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
    with registry(url) as client:
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
    with registry(url) as client:
        if level is not None:
            client.set_config(ConfigUpdate(compatibility=level), subject)
        config = client.config(subject, default_to_global=True)
    if output is Output.JSON:
        print_json(config)
    else:
        typer.echo(config.compatibility)


@app.command("delete")
def delete(
    subject: Subject,
    version: Annotated[str | None, typer.Option(help="Only this version.")] = None,
    permanent: Annotated[bool, typer.Option("--permanent", help="For good; soft-delete first.")] = False,
    url: UrlOption = DEFAULT_URLS,
    output: OutputOption = Output.TEXT,
) -> None:
    """Soft-delete a subject or one version of it; with --permanent remove what is soft-deleted."""
    with registry(url) as client:
        if version is None:
            gone = client.delete_subject(subject, permanent=permanent)
        else:
            number = int(version) if version.isdigit() else "latest"
            gone = [client.delete_version(subject, number, permanent=permanent)]  # type: ignore[arg-type]  # widened literal
    if output is Output.JSON:
        print_json(gone)
    else:
        typer.echo(f"deleted {subject}: versions {', '.join(map(str, gone))}")
