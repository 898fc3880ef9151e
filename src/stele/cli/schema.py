"""`stele schema`: register schemas, list the versions of a subject, and read schemas back."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from stele.cli.completion import complete_subject, complete_version
from stele.cli.connect import RegistryOptions, connect
from stele.cli.files import ForceOption, FormatOption, ToOption, check_target, format_of, read_text, write_text
from stele.cli.options import expand_dataclass
from stele.cli.output import (
    AllOption,
    Output,
    OutputOption,
    console,
    exit_on_error,
    print_error,
    print_findings,
    print_json,
    print_rows,
)
from stele.cli.plan import register_workspace
from stele.client import RegisteredSchema, Schema, SchemaReference, SchemaRegistryClient, Version, split_subject
from stele.core.findings import Finding, Severity
from stele.core.policy import PolicyKind, find_policy
from stele.errors import Incompatible, InvalidRequest, MalformedSchema, NotFound
from stele.formats.capabilities import CanSplit
from stele.formats.registry import get_format
from stele.review.files import SchemaFile
from stele.review.manifest import Manifest, SubjectEntry
from stele.review.workspace import Workspace, open_workspace
from stele.service.check import Candidate, CheckRequest, NamedText
from stele.service.check import check_compatibility as run_check

app = typer.Typer(help="Register schemas, list their versions, and read them back.", no_args_is_help=True)

SubjectArgument = Annotated[str, typer.Argument(help="Name of the subject.", autocompletion=complete_subject)]


@app.command("register")
@expand_dataclass
def register(
    subject: Annotated[
        str,
        typer.Argument(
            help="Name of the subject; or a folder, to register all of it.", autocompletion=complete_subject
        ),
    ],
    registry: RegistryOptions,
    file: Annotated[
        Path | None, typer.Argument(help="File with the schema; - for standard input. Not needed for a folder.")
    ] = None,
    schema_format: FormatOption = None,
    reference: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=SUBJECT:VERSION", help="NAME=SUBJECT:VERSION that the schema refers to. Repeatable."
        ),
    ] = None,
    normalize: Annotated[bool, typer.Option("--normalize", help="Register the normalised text.")] = False,
    split: Annotated[
        bool,
        typer.Option("--split", help="Register each named type of a file in a subject of its own. For Avro."),
    ] = False,
    all_findings: AllOption = False,
    output: OutputOption = Output.TEXT,
) -> None:
    """Register a schema file as the next version of a subject. A schema that is there already keeps its version.

    A folder is registered in one step, each file after those it refers to: see `stele apply` for names and references.
    With --split a file that defines several types, nested or in an array, is registered as several subjects: each type
    under its full name, with references, and the rest under the subject named here.

    Exit code 0: registered, or there already; 1: refused as incompatible; 2: an error.
    """
    with exit_on_error():
        if file is None:
            if not Path(subject).is_dir() or schema_format or reference or normalize:
                raise InvalidRequest("name a subject and a file; or a folder alone, without options about one file")
            register_workspace(open_workspace(Path(subject)), registry, output, split=split, everything=all_findings)
            return
        if split:
            if reference:
                raise InvalidRequest("--split makes the references itself: leave out --reference")
            workspace = _open_single_file(subject, file, schema_format, normalize=normalize)
            register_workspace(workspace, registry, output, split=True, everything=all_findings)
            return
    with connect(registry) as client:
        schema_type = (schema_format or format_of(file)).upper()
        references = tuple(_parse_reference(text) for text in reference or ())
        schema = Schema(read_text(file), schema_type, references)
        try:
            registered = client.register(subject, schema, normalize=normalize)
        except Incompatible as refusal:
            _print_refusal(client, subject, schema, refusal, everything=all_findings)
            raise typer.Exit(1) from refusal
        registration = _find_registered(client, subject, schema, registered, normalize=normalize)
    if output is Output.JSON:
        print_json(registration)
    else:
        typer.echo(f"{subject} version {registration.version}, id {registration.id}")


@app.command("list")
@expand_dataclass
def list_versions(
    subject: SubjectArgument,
    registry: RegistryOptions,
    deleted: Annotated[bool, typer.Option("--deleted", help="Include soft-deleted versions.")] = False,
    output: OutputOption = Output.TEXT,
) -> None:
    """List the versions of a subject with their ids."""
    with connect(registry) as client:
        versions = [
            client.version(subject, number, deleted=deleted) for number in client.versions(subject, deleted=deleted)
        ]
    rows = [{"version": row.version, "id": row.id, "type": row.schema_type} for row in versions]
    print_rows(output, ("version", "id", "type"), rows)


@app.command("get")
@expand_dataclass
def get(
    registry: RegistryOptions,
    subject: Annotated[
        str | None, typer.Argument(help="Name of the subject; not with --id.", autocompletion=complete_subject)
    ] = None,
    version: Annotated[
        str | None,
        typer.Option("--version", help="Version number, or latest. Default: latest.", autocompletion=complete_version),
    ] = None,
    schema_id: Annotated[int | None, typer.Option("--id", help="Id of a schema, in place of a subject.")] = None,
    to: ToOption = None,
    force: ForceOption = False,
    output: OutputOption = Output.TEXT,
) -> None:
    """Print the text of a schema: the newest version of a subject, another version, or the schema of an id.

    JSON is indented on a terminal. A file or pipe gets the text exactly as it was registered.
    """
    with connect(registry) as client:
        if (subject is None) == (schema_id is None):
            raise InvalidRequest("give either a subject or an --id")
        if schema_id is not None and version is not None:
            raise InvalidRequest("--version needs a subject; it cannot be combined with --id")
        check_target(to, force=force)
        if subject is None:
            assert schema_id is not None
            schema = client.schema_by_id(schema_id)
        else:
            schema = client.version(subject, parse_version(version or "latest"))
    if output is Output.JSON:
        print_json(schema)
    elif to is not None:
        write_text(to, schema.text)
    else:
        _print_schema(schema.text)


def parse_version(text: str) -> Version:
    """Return a version's number, or `latest`. Raises `InvalidRequest` for anything else."""
    if text == "latest":
        return "latest"
    if not (text.isascii() and text.isdigit() and int(text) > 0):
        raise InvalidRequest(f"a version must be a number from 1, or latest, not {text!r}")
    return int(text)


def _open_single_file(subject: str, file: Path, schema_format: str | None, *, normalize: bool) -> Workspace:
    """Return a workspace of one file. Raises `InvalidRequest`, also for a format whose files cannot be split."""
    name = schema_format or format_of(file)
    if not isinstance(get_format(name), CanSplit):
        raise InvalidRequest(f"--split: schemas of the format {name} do not define types that others use by name")
    only = SchemaFile(file.name, name, read_text(file))
    manifest = Manifest({subject: SubjectEntry(file.name, name, normalize=normalize)})
    return Workspace(file.parent, {file.name: only}, manifest, is_deep=False)


def _print_schema(text: str) -> None:
    """Print a schema: JSON is indented and coloured on a terminal; everything else is printed unchanged."""
    if not console.is_terminal:
        sys.stdout.write(text if text.endswith("\n") else f"{text}\n")
        return
    try:
        value = json.loads(text)
    except ValueError:
        sys.stdout.write(text.rstrip("\n") + "\n")
        return
    console.print_json(json.dumps(value, ensure_ascii=False))


def _find_registered(
    client: SchemaRegistryClient, subject: str, schema: Schema, registered: RegisteredSchema, *, normalize: bool
) -> RegisteredSchema:
    """Return a registration with its version. It is looked up if an older registry did not return it."""
    return registered if registered.version else client.lookup(subject, schema, normalize=normalize)


def _print_refusal(
    client: SchemaRegistryClient, subject: str, schema: Schema, refusal: Incompatible, *, everything: bool
) -> None:
    """Print why a schema was refused and what to do.

    The findings come from a local check, because the API answers with one long sentence. It is printed if there are
    none.
    """
    findings = _find_reasons(client, subject, schema)
    if not findings:
        print_error("refused:", refusal)
        return
    print_error("refused:", f"the schema is incompatible with {subject}")
    print_findings(findings, describe_version, everything=everything)


def _find_reasons(client: SchemaRegistryClient, subject: str, schema: Schema) -> tuple[Finding, ...]:
    try:
        level = client.config(subject, default_to_global=True).compatibility_level or "BACKWARD"
        if find_policy(level).kind is not PolicyKind.DIRECTIONAL:
            return ()
        old = [client.resolve_version(subject, number) for number in client.versions(subject)]
        new = client.resolve_schema(schema, context=split_subject(subject).context)
        request = CheckRequest(
            format=schema.schema_type.lower(),
            schema=schema.text,
            policy=level,
            references=tuple(NamedText(name, text) for name, text in new.references.items()),
            against=tuple(
                Candidate(each.text, tuple(NamedText(name, text) for name, text in each.references.items()))
                for each in old
            ),
        )
        return run_check(request).findings
    except (NotFound, InvalidRequest, MalformedSchema):
        return ()  # the registry refused for another reason, which its message states


def _parse_reference(text: str) -> SchemaReference:
    name, equals, place = text.partition("=")
    subject, colon, version = place.rpartition(":")
    if not equals or not colon or not version.lstrip("-").isdigit():
        raise InvalidRequest(f"--reference {text!r}: write NAME=SUBJECT:VERSION")
    return SchemaReference(name, subject, int(version))


def describe_version(finding: Finding) -> str:
    """Return the text that names the version that a finding is about."""
    doubt = ", undecided" if finding.level is Severity.UNKNOWN else ""
    return f" (version {finding.against}{doubt})"
