"""`stele convert`, `infer`, `example` and `fields`: commands that work on schemas without a server."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from io import TextIOWrapper
from pathlib import Path
from typing import IO, Annotated, Any, NoReturn

import typer
from msgspec import to_builtins
from rich.text import Text

from stele.cli.files import (
    STDIN,
    ForceOption,
    FormatOption,
    ToOption,
    check_target,
    format_of,
    read_references,
    read_text,
    unreadable_file,
    write_text,
)
from stele.cli.output import Output, OutputOption, errors, exit_on_error, print_json, print_rows
from stele.core.json_depth import MAX_JSON_DEPTH, is_nested_deeper
from stele.errors import InvalidRequest
from stele.service import convert as service
from stele.service.convert import ConvertAnswer, ConvertRequest, SchemaRequest

ReferenceOption = Annotated[list[str] | None, typer.Option(help="NAME=FILE of a schema the file refers to.")]
StrictOption = Annotated[
    bool, typer.Option("--strict", help="Exit with 1 if the target cannot represent some of the data.")
]


def convert(
    file: Annotated[Path, typer.Argument(help="File with the schema; - for standard input.")],
    language: Annotated[
        str, typer.Option("--as", metavar="FORMAT", help="Format to convert to: json, avro, protobuf …")
    ],
    to: ToOption = None,
    force: ForceOption = False,
    schema_format: FormatOption = None,
    reference: ReferenceOption = None,
    strict: StrictOption = False,
    output: OutputOption = Output.TEXT,
) -> None:
    """Convert a schema file to another language, and print on standard error what that language cannot express.

    Exit code 0: converted; 1: with --strict, the result cannot hold some data of the source; 2: it cannot be converted.
    """
    with exit_on_error():
        check_target(to, force=force)
        references = read_references(reference)
        request = ConvertRequest(schema_format or format_of(file), read_text(file), language, references, file.name)
        answer = service.convert_schema(request)
        _print_document(answer, to, output)
    raise typer.Exit(1 if strict and not answer.keeps_data else 0)


def infer(
    samples: Annotated[
        str, typer.Argument(help="File of JSON lines, or one JSON array or value; - for standard input.")
    ],
    language: Annotated[
        str, typer.Option("--as", metavar="FORMAT", help="Format of the schema: avro, json, protobuf …")
    ],
    name: Annotated[str, typer.Option(help="Name of the top type.")] = "Record",
    to: ToOption = None,
    force: ForceOption = False,
    texts: Annotated[bool, typer.Option("--texts", help="Leave dates, timestamps and UUIDs in text as text.")] = False,
    enumerations: Annotated[
        int, typer.Option(help="Maximum number of symbols of an enumeration; 0 creates no enumerations.")
    ] = 0,
    strict: StrictOption = False,
    output: OutputOption = Output.TEXT,
) -> None:
    """Infer a schema that fits all samples.

    Exit code 0: inferred; 1: with --strict, the language cannot hold some of the data; 2: no schema fits the samples.
    """
    with exit_on_error(), _open_samples(samples) as source:
        check_target(to, force=force)
        values = _read_values(source, samples)
        answer = service.infer_from_samples(
            values, to=language, name=name, notations=not texts, enumerations=enumerations
        )
        _print_document(answer, to, output)
    raise typer.Exit(1 if strict and not answer.keeps_data else 0)


def example(
    file: Annotated[Path, typer.Argument(help="File with the schema; - for standard input.")],
    schema_format: FormatOption = None,
    reference: ReferenceOption = None,
    output: OutputOption = Output.TEXT,
) -> None:
    """Print a small datum that fits a schema, as JSON; with --output json also encoded, in base64.

    Exit code 0: a value was printed; 2: no value was found, or the schema file is invalid.
    """
    with exit_on_error():
        answer = service.make_example(_conversion_request(file, schema_format, reference))
    print_json(answer if output is Output.JSON else answer.example)


def fields(
    file: Annotated[Path, typer.Argument(help="File with the schema; - for standard input.")],
    schema_format: FormatOption = None,
    reference: ReferenceOption = None,
    output: OutputOption = Output.TEXT,
) -> None:
    """List all fields of a schema, at any depth.

    Exit code 0: the fields were printed; 2: the schema file is invalid.
    """
    with exit_on_error():
        answer = service.list_fields(_conversion_request(file, schema_format, reference))
    if output is Output.JSON:
        print_json(answer)
        return
    words = {True: "yes", False: "no", None: ""}
    rows = [
        to_builtins(field) | {"default": field.default or "", "optional": words[field.optional]}
        for field in answer.fields
    ]
    print_rows(output, ("path", "type", "optional", "default", "doc"), rows)


def _conversion_request(file: Path, schema_format: str | None, reference: list[str] | None) -> SchemaRequest:
    references = read_references(reference)
    return SchemaRequest(schema_format or format_of(file), read_text(file), references, file.name)


def _print_document(answer: ConvertAnswer, to: Path | None, output: Output) -> None:
    """Print a schema or write it to a file, and print its losses on standard error. Raises `InvalidRequest`."""
    if to is not None or output is Output.TEXT:
        write_text(to, answer.schema.rstrip())
    if output is Output.JSON:
        print_json(answer)
        return
    for loss in answer.losses:
        mark = ("data lost: ", "bold red") if loss.data else ("lost: ", "yellow")
        place = (loss.path or "/", "bold")
        errors.print(Text.assemble(mark, loss.what, " at ", place, f": {loss.why}"), soft_wrap=True)


# --- samples --------------------------------------------------------------------------------------------------------


def _open_samples(samples: str) -> IO[str]:
    if Path(samples) == STDIN:
        return TextIOWrapper(sys.stdin.buffer, encoding="utf-8")
    try:
        return open(samples, encoding="utf-8")
    except OSError as error:
        raise unreadable_file(samples, error) from None


def _read_values(source: IO[str], name: str) -> Iterator[Any]:
    """Yield the samples: one per line, read lazily; or the items of one array; or one value."""
    lines = ((number, line) for number, line in enumerate(source, 1) if line.strip())
    try:
        first = next(lines, None)
        if first is None:
            return
        if first[1].lstrip().startswith("[") or not _is_value(first[1]):
            yield from _build_document([first, *lines], name)
        else:
            yield _read_sample(first, name)
            yield from (_read_sample(line, name) for line in lines)
    except UnicodeDecodeError as error:
        raise unreadable_file(name, error) from None


def _build_document(lines: list[tuple[int, str]], name: str) -> Iterator[Any]:
    """Yield the items of an array, or one value, that spans several lines; or one array per line."""
    try:
        value = _parse_values("".join(line for _, line in lines))
    except ValueError:
        yield from (_read_sample(line, name) for line in lines)
    else:
        yield from value if isinstance(value, list) else [value]


def _is_value(text: str) -> bool:
    try:
        _parse_values(text)
    except ValueError:
        return False
    return True


def _read_sample(numbered: tuple[int, str], name: str) -> Any:
    number, line = numbered
    try:
        return _parse_values(line)
    except ValueError as error:
        raise InvalidRequest(f"{name}, line {number}: not JSON: {error}") from None


def _parse_values(text: str) -> Any:
    """Parse a JSON value. Raises `ValueError`, also for NaN, infinity and deep nesting."""
    if is_nested_deeper(text.encode()):
        raise ValueError(f"nested deeper than {MAX_JSON_DEPTH} levels")
    return json.loads(text, parse_constant=_print_refusal)


def _print_refusal(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not a JSON number")
