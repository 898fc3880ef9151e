"""Folders of schemas, on disk or in a git commit: which files are schemas, and of which format."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path, PurePosixPath
from typing import Final

import msgspec

from stele.core.json_depth import is_nested_deeper
from stele.errors import InvalidRequest

SUFFIXES: Final = {".avsc": "avro", ".proto": "protobuf", ".json": "json", ".thrift": "thrift", ".xsd": "xsd"}
"""Format by suffix, in lower case."""


class SchemaFile(msgspec.Struct, frozen=True):
    """A schema file of a folder.

    path        relative to the folder, with slashes
    format      Stele's name of its format
    text        its content, with line feeds only
    is_derived  whether the text was derived from the file, so that line numbers in it are not those of the file
    """

    path: str
    format: str
    text: str
    is_derived: bool = False


Tree = Mapping[str, SchemaFile]
"""The schemas of a folder by path."""


def find_format(path: str | Path) -> str | None:
    """Return the format that the suffix of a file name stands for, or None."""
    return SUFFIXES.get(PurePosixPath(path).suffix.lower())


def decode_text(data: bytes, path: str | Path) -> str:
    """Return the text of a file, with line feeds only. Raises `InvalidRequest` for what is not UTF-8."""
    try:
        return data.decode("utf-8").replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError as error:
        raise InvalidRequest(f"{path}: not UTF-8 text: {error.reason} (byte {error.start})") from None


def read_file(path: Path) -> str:
    """Return the text of a file. Raises `InvalidRequest`."""
    try:
        return decode_text(path.read_bytes(), path)
    except OSError as error:
        raise InvalidRequest(f"{path}: {error.strerror or error}") from None


def read_folder(folder: Path, *, is_deep: bool = True) -> dict[str, SchemaFile]:
    """Return the schemas of a folder by path; with `is_deep`, also those of the folders in it.

    Skips hidden files and folders, and `.json` files without `$schema`, because many are no schemas. Raises
    `InvalidRequest` for a file that is not UTF-8; without `is_deep` such a file is skipped.
    """
    if not folder.is_dir():
        raise InvalidRequest(f"{folder}: not a folder")
    paths = sorted(path for path in folder.glob("**/*" if is_deep else "*") if find_format(path) and path.is_file())
    named = ((path.relative_to(folder).as_posix(), path) for path in paths)
    files = ((name, path.read_bytes()) for name, path in named if not _is_hidden(name))
    return select_schemas(files, is_lenient=not is_deep)


def select_schemas(files: Iterable[tuple[str, bytes]], *, is_lenient: bool = False) -> dict[str, SchemaFile]:
    """Return the schemas among some files (path, content) by path, in their order.

    Raises `InvalidRequest` for a file that is not UTF-8; with `is_lenient` such a file is skipped.
    """
    schemas: dict[str, SchemaFile] = {}
    for path, data in files:
        name = find_format(path)
        if name is None or _is_hidden(path) or (name == "json" and not _names_its_schema(data)):
            continue
        try:
            schemas[path] = SchemaFile(path, name, decode_text(data, path))
        except InvalidRequest:
            if not is_lenient:
                raise
    return schemas


def _is_hidden(path: str) -> bool:
    return any(part.startswith(".") for part in PurePosixPath(path).parts)


def _names_its_schema(data: bytes) -> bool:
    """Return whether a JSON document has a `$schema`. A document that is not valid JSON only has to contain it."""
    if is_nested_deeper(data):
        return b'"$schema"' in data
    try:
        document = msgspec.json.decode(data)
    except msgspec.DecodeError:
        return b'"$schema"' in data
    return isinstance(document, dict) and isinstance(document.get("$schema"), str)
