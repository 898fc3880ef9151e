"""`stele pipeline init`: the first file of a pipeline."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from enum import StrEnum
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from rich.text import Text

from stele.cli.connect import DEFAULT_URL
from stele.cli.files import ForceOption, check_target, write_text
from stele.cli.output import errors, exit_on_error
from stele.client import Retry, SchemaRegistryClient, SchemaSnapshot
from stele.errors import NotFound, SteleError
from stele.spark.pipeline.config import TableKind
from stele.spark.pipeline.scaffold import PipelineAnswers, render_pipeline_toml


class Kind(StrEnum):
    """Kinds of tables."""

    ICEBERG = "iceberg"
    ICEBERG_SPARK = "iceberg-spark"
    DELTA = "delta"
    PARQUET = "parquet"


def init(
    file: Annotated[Path, typer.Argument(help="File to write.")] = Path("pipeline.toml"),
    kafka: Annotated[str, typer.Option("--kafka", help="Address of a Kafka broker with the records.")] = "",
    topic: Annotated[list[str] | None, typer.Option("--topic", help="Kafka topic; repeatable.")] = None,
    path: Annotated[str, typer.Option("--path", help="Folder of files with the records.")] = "",
    subject: Annotated[
        str, typer.Option("--subject", help="Subject of the records. Default for a topic: topic-value.")
    ] = "",
    registry: Annotated[
        str,
        typer.Option(
            "--registry", metavar="URL", envvar="STELE_URL", help="Base URL of the registry, or a snapshot file."
        ),
    ] = DEFAULT_URL,
    table: Annotated[str, typer.Option("--table", help="namespace.name of the table.")] = "",
    kind: Annotated[Kind, typer.Option("--kind", help="Kind of the table.")] = Kind.ICEBERG,
    force: ForceOption = False,
) -> None:
    """Write a pipeline.toml with comments, ready to run.

    On a terminal, the command asks for what is missing. Paths on the command line are relative to the current folder.
    """
    with exit_on_error():
        check_target(file, force=force)
        answers = PipelineAnswers(kafka, tuple(topic or ()), path, subject, registry, table, kind.value)
        start = _ask_for_missing(answers) if _is_interactive() else answers
        start.check_answers()
        hints = [_registry_hint(start.registry, name) for name in start.subjects]
        write_text(file, render_pipeline_toml(_relative_to(start, file.parent), file.parent, spark=_spark_version()))
    for hint in hints:
        errors.print(Text(hint), soft_wrap=True)
    typer.echo(file)


def _ask_for_missing(start: PipelineAnswers) -> PipelineAnswers:
    """Prompt for the answers that are missing, and return all of them."""
    replace = msgspec.structs.replace
    complete = (start.bootstrap and start.topics) or (start.path and start.subject)
    if complete:
        return start
    if not start.bootstrap and not start.path:
        where = _ask_choice("Where are the records", ("kafka", "files"), "kafka")
        if where == "kafka":
            start = replace(start, bootstrap=typer.prompt("Address of a broker", default="localhost:9092"))
        else:
            start = replace(start, path=typer.prompt("Folder of the files"))
    if start.bootstrap and not start.topics:
        named = typer.prompt("Topics, with commas between them")
        start = replace(start, topics=tuple(name.strip() for name in named.split(",") if name.strip()))
    if start.path and not start.subject:
        start = replace(start, subject=typer.prompt("Subject of the records"))
    start.check_answers()
    if not start.table:
        start = replace(start, table=typer.prompt("Table", default=start.tables[0]))
    kind = _ask_choice("Kind of table", tuple(Kind), start.kind)
    return replace(start, kind=msgspec.convert(kind, TableKind))


def _ask_choice(question: str, words: Sequence[str], default: str) -> str:
    """Prompt until the user enters one of the words, and return it."""
    while (answer := typer.prompt(f"{question} ({', '.join(words)})", default=default)) not in words:
        typer.echo(f"One of {', '.join(words)}.")
    return str(answer)


def _relative_to(start: PipelineAnswers, folder: Path) -> PipelineAnswers:
    """Return the answers with paths relative to the folder of the pipeline file."""

    def move_path(path: str) -> str:
        if not path or "://" in path or "$" in path or Path(path).is_absolute():
            return path
        return Path(os.path.relpath(path, folder)).as_posix()

    registry = move_path(start.registry) if start.registry.endswith(".json") else start.registry
    return msgspec.structs.replace(start, path=move_path(start.path), registry=registry)


def _registry_hint(registry: str, subject: str) -> str:
    """Return a sentence about a subject in the registry. An unreachable registry is no error: it may start later."""
    try:
        if registry.endswith(".json"):
            known = SchemaSnapshot.load(Path(registry))
        else:
            with SchemaRegistryClient(registry.split(","), timeout=3.0, retry=Retry(rounds=1)) as client:
                known = client.snapshot(subjects=[subject])
        newest = known.resolve_version(subject)
    except NotFound:
        return f"{subject}: the registry has no such subject yet; register a schema before the first run"
    except (SteleError, OSError) as error:
        return f"{subject}: the registry at {registry} does not answer now: {error}"
    return f"{subject}: {newest.schema_type.capitalize()}, newest version {newest.version}"


def _spark_version() -> str:
    try:
        return version("pyspark")
    except PackageNotFoundError:
        return ""


def _is_interactive() -> bool:
    """Return whether standard input is a terminal."""
    return sys.stdin.isatty()
