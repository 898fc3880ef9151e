"""How commands read schema files: their text, their format, and what they refer to."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Final

import typer

from stele.errors import InvalidRequest
from stele.service.check import NamedText

FormatOption = Annotated[
    str | None,
    typer.Option("--format", metavar="NAME", help="avro, protobuf, json … Default: from the suffix of the file."),
]
ToOption = Annotated[
    Path | None, typer.Option("--to", help="File to write instead of printing; - for standard output.")
]
ForceOption = Annotated[bool, typer.Option("--force", help="Overwrite an existing file.")]

STDIN: Final = Path("-")
"""The file name that stands for standard input, or for standard output."""

_SUFFIXES: Final = {".avsc": "avro", ".proto": "protobuf", ".json": "json", ".thrift": "thrift", ".xsd": "xsd"}


def format_of(path: Path, *others: Path) -> str:
    """Return the format that the suffix of a file name stands for.

    Raises `InvalidRequest` for an unknown suffix, and if the suffix of another file stands for another format.
    """
    schema_format = _SUFFIXES.get(path.suffix.lower())
    if schema_format is None:
        raise InvalidRequest(f"{path}: unknown suffix; give --format")
    for other in others:
        theirs = _SUFFIXES.get(other.suffix.lower(), schema_format)
        if theirs != schema_format:
            raise InvalidRequest(f"{path} is {schema_format} and {other} is {theirs} by their suffixes; give --format")
    return schema_format


def read_text(path: Path) -> str:
    """Read a text file, or standard input for `-`; line ends become line feeds. Raises `InvalidRequest`."""
    try:
        data = sys.stdin.buffer.read() if path == STDIN else path.read_bytes()
        return data.decode("utf-8").replace("\r\n", "\n").replace("\r", "\n")
    except (OSError, ValueError) as error:
        raise unreadable_file(path, error) from None


def check_target(path: Path | None, *, force: bool) -> None:
    """Raise `InvalidRequest` when a file to be written is there already and may not be overwritten."""
    if path is not None and path != STDIN and not force and path.exists():
        raise InvalidRequest(f"{path} already exists; --force overwrites it")


def write_text(path: Path | None, text: str) -> None:
    """Write a text with a line feed at its end to a file; None and `-` print it. Raises `InvalidRequest`."""
    text = text if text.endswith("\n") else f"{text}\n"
    if path is None or path == STDIN:
        sys.stdout.write(text)
        return
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise unreadable_file(path, error) from None


def unreadable_file(path: Path | str, error: OSError | ValueError) -> InvalidRequest:
    """Return the error for a file that cannot be read or written, or is not text."""
    if isinstance(error, UnicodeDecodeError):
        return InvalidRequest(f"{path}: not UTF-8 text: {error.reason} (byte {error.start})")
    return InvalidRequest(f"{path}: {error.strerror if isinstance(error, OSError) and error.strerror else error}")


def read_references(texts: list[str] | None) -> tuple[NamedText, ...]:
    """Read the references given as NAME=FILE. Raises `InvalidRequest`."""
    return tuple(_read_reference(text) for text in texts or ())


def _read_reference(text: str) -> NamedText:
    name, equals, path = text.partition("=")
    if not name or not equals or not path:
        raise InvalidRequest(f"--reference {text!r}: write NAME=FILE")
    return NamedText(name, read_text(Path(path)))
