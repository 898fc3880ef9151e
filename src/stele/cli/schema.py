"""`stele schema`: register schemas and read them back."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from stele.cli.check import describe_version
from stele.cli.connect import DEFAULT_URLS, connect
from stele.cli.files import FormatOption, format_of, read_text
from stele.cli.output import Output, OutputOption, UrlOption, print_error, print_finding, print_json
from stele.client import Schema, SchemaReference, SchemaRegistryClient
from stele.core.policy import PolicyKind, find_policy
from stele.errors import Incompatible, InvalidRequest, NotFound
from stele.service.check import Candidate, CheckRequest
from stele.service.check import check_compatibility as run_check

app = typer.Typer(help="Register schemas and read them back.", no_args_is_help=True)


@app.command("register")
def register(
    subject: Annotated[str, typer.Argument(help="Subject to register under.")],
    file: Annotated[Path, typer.Argument(help="File with the schema.")],
    schema_format: FormatOption = None,
    reference: Annotated[list[str] | None, typer.Option(help="NAME=SUBJECT:VERSION the schema refers to.")] = None,
    normalize: Annotated[bool, typer.Option("--normalize", help="Register the normalised text.")] = False,
    url: UrlOption = DEFAULT_URLS,
    output: OutputOption = Output.TEXT,
) -> None:
    """Register a schema file as the next version of a subject, or find that it is there already."""
    with connect(url) as client:
        schema_type = (schema_format or format_of(file)).upper()
        references = tuple(_parse_reference(text) for text in reference or ())
        schema = Schema(read_text(file), schema_type, references)
        try:
            registered = client.register(subject, schema, normalize=normalize)
        except Incompatible as refusal:
            print_error("refused:", refusal)
            _explain_refusal(client, subject, schema)
            raise typer.Exit(1) from refusal
    if output is Output.JSON:
        print_json(registered)
    else:
        typer.echo(f"{subject} version {registered.version}, id {registered.id}")


@app.command("get")
def get(
    schema_id: Annotated[int | None, typer.Option("--id", help="Id of the schema.")] = None,
    subject: Annotated[str | None, typer.Option(help="Subject, with --version.")] = None,
    version: Annotated[str, typer.Option(help="Version number or latest.")] = "latest",
    url: UrlOption = DEFAULT_URLS,
    output: OutputOption = Output.TEXT,
) -> None:
    """Print the text of a schema, found by id or by subject and version."""
    with connect(url) as client:
        if schema_id is not None:
            found = client.schema_by_id(schema_id)
        elif subject is not None:
            number = int(version) if version.isdigit() else "latest"
            found = client.version(subject, number)  # type: ignore[arg-type]  # mypy widens the literal
        else:
            raise InvalidRequest("say which: --id, or --subject with --version")
    if output is Output.JSON:
        print_json(found)
    else:
        typer.echo(found.text)


def _explain_refusal(client: SchemaRegistryClient, subject: str, schema: Schema) -> None:
    """Say why and what to do: the server's dialect has no room for it, the check itself has."""
    try:
        level = client.config(subject, default_to_global=True).compatibility_level or "BACKWARD"
        old = [client.version(subject, number) for number in client.versions(subject)]
    except NotFound:
        return
    if find_policy(level).kind is not PolicyKind.DIRECTIONAL or schema.references:
        return
    request = CheckRequest(
        format=schema.schema_type.lower(),
        schema=schema.text,
        policy=level,
        against=tuple(Candidate(version.text) for version in old),
    )
    for finding in run_check(request).findings:
        print_finding(finding, describe_version(finding))


def _parse_reference(text: str) -> SchemaReference:
    name, equals, place = text.partition("=")
    subject, colon, version = place.rpartition(":")
    if not equals or not colon or not version.lstrip("-").isdigit():
        raise InvalidRequest(f"--reference {text!r}: write NAME=SUBJECT:VERSION")
    return SchemaReference(name, subject, int(version))
