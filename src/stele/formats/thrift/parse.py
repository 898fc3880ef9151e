"""From a document and its references to a linked schema."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from typing import Final

from stele.errors import MalformedSchema, UnresolvedReference
from stele.formats.json_reader import line_and_column
from stele.formats.thrift.check import check
from stele.formats.thrift.graph import Circle, dependencies_first
from stele.formats.thrift.lexer import place
from stele.formats.thrift.parser import parse_document
from stele.formats.thrift.schema import ThriftSchema, Unit
from stele.formats.thrift.sizes import Sizes
from stele.formats.thrift.syntax import Include

MAX_BYTES: Final = 768 << 10
"""Limit for a document together with what it includes, in bytes: a common machine reads so much in 1.5 seconds."""


def parse(text: bytes, references: Mapping[str, bytes], *, name: str = "", strict: bool = True) -> ThriftSchema:
    """Parse one document.

    references maps include paths to documents. `include "x"` finds the reference named x, or x seen from the folder of
    the including document; name is the document's own path. strict=False accepts defaults and constants whose value
    does not fit their type, and field ids beyond 16 bits.
    Raises `MalformedSchema` with line and column, `UnresolvedReference` for includes and names that lead nowhere.
    """
    units = _load(text, references, name)
    try:
        ordered = dependencies_first(units, lambda unit: [each for group in unit.includes.values() for each in group])
    except Circle as circle:
        way = circle.shown(lambda unit: unit.name or "the schema" if isinstance(unit, Unit) else "")
        raise MalformedSchema(f"the includes go in a circle: {way}", line=1, column=1) from None
    sizes = Sizes()
    for unit in ordered:
        try:
            check(unit, sizes, strict=strict)
        except MalformedSchema as error:
            raise _in(unit.name, error) from None
    return ThriftSchema(units[0])


def _load(text: bytes, references: Mapping[str, bytes], name: str) -> list[Unit]:
    """The document and all it includes, directly or not; the document comes first."""
    main = _unit("", text)
    units: dict[str, Unit] = {"": main}
    todo = [(main, posixpath.dirname(name))]
    size = len(text)
    while todo:
        unit, folder = todo.pop()
        for header in unit.document.headers:
            if not isinstance(header, Include):
                continue
            path = _find(unit, header, folder, references)
            found = units.get(path)
            if found is None:
                size += len(references[path])
                if size > MAX_BYTES:
                    raise _too_large()
                found = units[path] = _unit(path, references[path])
                todo.append((found, posixpath.dirname(path)))
            group = unit.includes.setdefault(header.prefix, [])
            if found not in group:
                group.append(found)
    return list(units.values())


def _find(unit: Unit, header: Include, folder: str, references: Mapping[str, bytes]) -> str:
    """The name of the reference an include means."""
    for path in (header.path, posixpath.normpath(posixpath.join(folder, header.path)), posixpath.normpath(header.path)):
        if path and path in references:
            return path
    line, column = place(unit.text, header.at)
    missing = UnresolvedReference(
        f"the included document {header.path!r} is not among the references",
        line=line,
        column=column,
        expected=f"a reference named {header.path!r}",
    )
    raise _in(unit.name, missing)


def _unit(name: str, text: bytes) -> Unit:
    """One document by itself."""
    if len(text) > MAX_BYTES:
        raise _too_large()
    try:
        decoded = text.decode("utf-8")
        return Unit(name, decoded, parse_document(decoded))
    except UnicodeDecodeError as error:
        line, column = line_and_column(text, error.start)
        raise _in(
            name, MalformedSchema("the document is not UTF-8", line=line, column=column, expected="UTF-8")
        ) from None
    except MalformedSchema as error:
        raise _in(name, error) from None


def _in(name: str, error: MalformedSchema) -> MalformedSchema:
    """The error, saying in which included document it is."""
    if not name:
        return error
    return type(error)(
        f"in the included document {name!r}: {error.why}",
        line=error.line,
        column=error.column,
        path=error.path,
        expected=error.expected,
    )


def _too_large() -> MalformedSchema:
    return MalformedSchema(f"the schema and what it includes are larger than {MAX_BYTES} bytes")
