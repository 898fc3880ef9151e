"""From a document and its references to a linked schema."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from typing import Final

from stele.errors import MalformedSchema, UnresolvedReference
from stele.formats.json_reader import line_and_column
from stele.formats.thrift.grammar import parse_document
from stele.formats.thrift.lexer import position_of
from stele.formats.thrift.schema import ThriftSchema, ThriftUnit
from stele.formats.thrift.syntax import Include
from stele.formats.thrift.validation import CircularDependency, ExpandedSizes, sort_by_dependencies, validate_unit

MAX_BYTES: Final = 768 << 10
"""Limit for a document together with what it includes, in bytes: a common machine reads so much in 1.5 seconds."""


def parse(text: bytes, references: Mapping[str, bytes], *, name: str = "", strict: bool = True) -> ThriftSchema:
    """Parse one document.

    references maps include paths to documents. `include "x"` finds the reference named x, or x seen from the folder of
    the including document; name is the document's own path. strict=False accepts defaults and constants whose value
    does not fit their type, and field ids beyond 16 bits.
    Raises `MalformedSchema` with line and column, `UnresolvedReference` for includes and names that lead nowhere.
    """
    units = _load_units(text, references, name)
    try:
        ordered = sort_by_dependencies(units, lambda unit: [each for group in unit.includes.values() for each in group])
    except CircularDependency as circle:
        way = circle.describe_way(lambda unit: unit.name or "the schema" if isinstance(unit, ThriftUnit) else "")
        raise MalformedSchema(f"the includes go in a circle: {way}", line=1, column=1) from None
    sizes = ExpandedSizes()
    for unit in ordered:
        try:
            validate_unit(unit, sizes, strict=strict)
        except MalformedSchema as error:
            raise _within_document(unit.name, error) from None
    return ThriftSchema(units[0])


def _load_units(text: bytes, references: Mapping[str, bytes], name: str) -> list[ThriftUnit]:
    """Return the document and all it includes, directly or not; the document comes first."""
    main = _parse_unit("", text)
    units: dict[str, ThriftUnit] = {"": main}
    todo = [(main, posixpath.dirname(name))]
    size = len(text)
    while todo:
        unit, folder = todo.pop()
        for header in unit.document.headers:
            if not isinstance(header, Include):
                continue
            path = _find_reference(unit, header, folder, references)
            found = units.get(path)
            if found is None:
                size += len(references[path])
                if size > MAX_BYTES:
                    raise _too_large_error()
                found = units[path] = _parse_unit(path, references[path])
                todo.append((found, posixpath.dirname(path)))
            group = unit.includes.setdefault(header.prefix, [])
            if found not in group:
                group.append(found)
    return list(units.values())


def _find_reference(unit: ThriftUnit, header: Include, folder: str, references: Mapping[str, bytes]) -> str:
    """Return the name of the reference an include means."""
    for path in (header.path, posixpath.normpath(posixpath.join(folder, header.path)), posixpath.normpath(header.path)):
        if path and path in references:
            return path
    line, column = position_of(unit.text, header.at)
    missing = UnresolvedReference(
        f"the included document {header.path!r} is not among the references",
        line=line,
        column=column,
        expected=f"a reference named {header.path!r}",
    )
    raise _within_document(unit.name, missing)


def _parse_unit(name: str, text: bytes) -> ThriftUnit:
    """Return one document by itself."""
    if len(text) > MAX_BYTES:
        raise _too_large_error()
    try:
        decoded = text.decode("utf-8")
        return ThriftUnit(name, decoded, parse_document(decoded))
    except UnicodeDecodeError as error:
        line, column = line_and_column(text, error.start)
        raise _within_document(
            name, MalformedSchema("the document is not UTF-8", line=line, column=column, expected="UTF-8")
        ) from None
    except MalformedSchema as error:
        raise _within_document(name, error) from None


def _within_document(name: str, error: MalformedSchema) -> MalformedSchema:
    """Return the error, saying in which included document it is."""
    if not name:
        return error
    return type(error)(
        f"in the included document {name!r}: {error.why}",
        line=error.line,
        column=error.column,
        path=error.path,
        expected=error.expected,
    )


def _too_large_error() -> MalformedSchema:
    return MalformedSchema(f"the schema and what it includes are larger than {MAX_BYTES} bytes")
