"""Metadata of a column that keeps what its Spark type cannot express, so that the type can be converted back exactly.

The entry `comment` is the documentation, as everywhere in Spark. The entry `stele` is the JSON text of an object, as
Spark's metadata cannot hold lists of mixed types. A member is there only if the column's name, type and nullability do
not already imply it:

    number, default, aliases, constraints   as in the model
    required, nullable                      as in the model
    oneof                                   the group of which a datum has at most one
    type                                    see `note_of`

Metadata can be anything. Members that do not have the right shape are ignored.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from stele.errors import MalformedSchema
from stele.formats.conversion.model import (
    Decimal,
    Duration,
    Enumeration,
    EnumSymbol,
    Fixed,
    RecordType,
    Scalar,
    ScalarKind,
    Time,
    Timestamp,
    TimeUnit,
    Type,
)
from stele.formats.json_reader import decode_json

if TYPE_CHECKING:
    from pyspark.sql.types import StructField

COMMENT: Final = "comment"
"""Metadata entry with the documentation."""

NOTES: Final = "stele"
"""Metadata entry with the other properties of the type."""

MAX_DEPTH: Final = 200
"""Maximum nesting depth of objects and lists in the notes of one column."""


def metadata_of(doc: str, notes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the metadata of a column."""
    metadata = {COMMENT: doc} if doc else {}
    return {**metadata, NOTES: json.dumps(notes)} if notes else metadata


def comment_of(column: StructField) -> str:
    """Return the comment of a column, "" without one."""
    comment = column.metadata.get(COMMENT)
    return comment if isinstance(comment, str) else ""


def notes_in(metadata: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the notes in a column's metadata; empty when there are none, or they are no JSON object."""
    text = metadata.get(NOTES)
    if not isinstance(text, str):
        return {}
    try:
        notes = decode_json(text.encode("utf-8", "replace"), max_depth=MAX_DEPTH)
    except MalformedSchema:
        return {}
    return notes if isinstance(notes, dict) else {}


def note_of(kind: Type) -> Any:
    """Return the note for a type without parts: `uint8`, `{"timestamp": "ns", "utc": true}` …."""
    match kind:
        case Scalar():
            return kind.kind.value
        case Decimal():
            return {"decimal": [kind.precision, kind.scale]}
        case Time():
            return {"time": kind.unit.value}
        case Timestamp():
            return {"timestamp": kind.unit.value, "utc": kind.utc}
        case Duration():
            return {"duration": kind.unit.value, "calendar": kind.calendar}
    raise TypeError(type(kind).__name__)


def type_in(note: Any) -> Type | None:
    """Return the type without parts that a note names; None for anything else."""
    try:
        match note:
            case str():
                return Scalar(ScalarKind(note))
            case {"decimal": [int() | None as precision, int(scale)]}:
                return Decimal(precision, scale)
            case {"time": str(unit)}:
                return Time(TimeUnit(unit))
            case {"timestamp": str(unit), "utc": bool(utc)}:
                return Timestamp(TimeUnit(unit), utc)
            case {"duration": str(unit), "calendar": bool(calendar)}:
                return Duration(TimeUnit(unit), calendar)
    except ValueError:
        return None
    return None


def enum_note(item: Enumeration) -> dict[str, Any]:
    """Return the note for an enumeration, whose column is text."""
    symbols = [[symbol.name, symbol.number, symbol.doc] for symbol in item.symbols]
    return {"enum": {"name": item.name, "symbols": symbols, "default": item.default, **_head_note(item)}}


def enum_in(note: Any) -> Enumeration | None:
    """Return the enumeration that a note describes; None for anything else."""
    match note:
        case {"enum": {"name": str(name), "symbols": list(symbols), "default": str(default), **rest}}:
            pass
        case _:
            return None
    enum_symbols: list[EnumSymbol] = []
    for each in symbols:
        match each:
            case [str(text), int() | None as number, str(doc)]:
                enum_symbols.append(EnumSymbol(text, number, doc))
            case _:
                return None
    doc, aliases = head_in(rest)
    return Enumeration(name, tuple(enum_symbols), default, doc, aliases)


def fixed_note(item: Fixed) -> dict[str, Any]:
    """Return the note for bytes of one length."""
    return {"fixed": {"name": item.name, "size": item.size, **_head_note(item)}}


def fixed_in(note: Any) -> Fixed | None:
    """Return the fixed type that a note describes; None for anything else."""
    match note:
        case {"fixed": {"name": str(name), "size": int(size), **rest}}:
            doc, aliases = head_in(rest)
            return Fixed(name, size, doc, aliases)
    return None


def record_note(item: RecordType, usual: str) -> dict[str, Any] | None:
    """Return the note for a struct; None if the record has its usual name and no other properties."""
    note = _head_note(item)
    if item.name != usual:
        note["name"] = item.name
    if item.open is not None:
        note["open"] = item.open
    return {"record": note} if note else None


def _head_note(item: RecordType | Enumeration | Fixed) -> dict[str, Any]:
    note: dict[str, Any] = {}
    if item.doc:
        note["doc"] = item.doc
    if item.aliases:
        note["aliases"] = list(item.aliases)
    return note


def head_in(note: Mapping[Any, Any]) -> tuple[str, tuple[str, ...]]:
    """Return documentation and earlier names, ignoring those that do not have the right shape."""
    doc, aliases = note.get("doc"), note.get("aliases")
    return doc if isinstance(doc, str) else "", strings_in(aliases)


def strings_in(value: Any) -> tuple[str, ...]:
    """Return a list of texts; empty for anything else."""
    return tuple(value) if isinstance(value, list) and all(isinstance(each, str) for each in value) else ()
