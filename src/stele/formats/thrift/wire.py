"""Ruleset `thrift-wire`: whether data written with one schema can be read with another, as the protocols carry it.

Every struct, union and exception of the writer's document must exist in the reader's under its name, and every enum
must keep its numbers. Fields meet by id: their types must be one type on the wire (enums are i32, binary is string,
typedefs are what they name), and a field the reader demands must be there in whatever was written, or have a default.
Names of fields, defaults, constants, namespaces and services are free. Protocols do not tell unions from structs.

Source: docs/protocols/thrift.md#rulesets.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from stele.core.findings import Finding
from stele.formats.thrift.audit import shown
from stele.formats.thrift.explain import explain
from stele.formats.thrift.printer import type_text
from stele.formats.thrift.schema import Resolved, ThriftSchema, Unit, required
from stele.formats.thrift.syntax import Container, EnumType, Field, Ref, Requiredness, Struct

_ON_THE_WIRE = {"enum": "i32", "binary": "string"}


def check(reader: ThriftSchema, writer: ThriftSchema) -> list[Finding]:
    """The findings; each pair of structs and each pair of enums that meet is looked at once."""
    return list(_Check(reader.unit, writer.unit).findings())


class _Pair:
    """Two structs that meet, the units they are from, and the path where they met first."""

    def __init__(self, path: str, reader: Resolved, writer: Resolved) -> None:
        assert isinstance(reader.node, Struct)
        assert isinstance(writer.node, Struct)
        self.path = path
        self.reader, self.writer = reader.node, writer.node
        self.reader_unit, self.writer_unit = reader.unit, writer.unit


class _Check:
    def __init__(self, reader: Unit, writer: Unit) -> None:
        self.reader = reader
        self.writer = writer
        self.met: set[tuple[int, int]] = set()
        self.todo: deque[_Pair] = deque()

    def findings(self) -> Iterator[Finding]:
        for name, definition in self.writer.types.items():
            if isinstance(definition, EnumType):
                found = self._named(name)
                if found is None or not isinstance(found.node, EnumType):
                    yield explain("ENUM_REMOVED", name, writer=name)
                else:
                    yield from self._enums(name, found.node, definition)
            elif isinstance(definition, Struct):
                found = self._named(name)
                if found is None or not isinstance(found.node, Struct):
                    yield explain("STRUCT_REMOVED", name, writer=f"{definition.kind} {name}")
                else:
                    self._meet(name, found, Resolved(self.writer, definition))
        while self.todo:
            yield from self._structs(self.todo.popleft())

    def _named(self, name: str) -> Resolved | None:
        return self.reader.resolve(Ref(name)) if name in self.reader.types else None

    def _first(self, reader: Struct | EnumType, writer: Struct | EnumType) -> bool:
        """Whether two definitions meet for the first time."""
        pair = (id(reader), id(writer))
        if pair in self.met:
            return False
        self.met.add(pair)
        return True

    def _meet(self, path: str, reader: Resolved, writer: Resolved) -> None:
        pair = _Pair(path, reader, writer)
        if self._first(pair.reader, pair.writer):
            self.todo.append(pair)

    # --- enums and structs ------------------------------------------------------------------------------------------

    def _enums(self, path: str, reader: EnumType, writer: EnumType) -> Iterator[Finding]:
        if not self._first(reader, writer):
            return
        known = {value.number for value in reader.values}
        for value in writer.values:
            if value.number not in known:
                yield explain(
                    "ENUM_VALUE_REMOVED", f"{path}.{value.name}", reader.name, f"{value.name} = {value.number}"
                )

    def _structs(self, pair: _Pair) -> Iterator[Finding]:
        ours = {field.id: field for field in pair.reader.fields}
        theirs = {field.id: field for field in pair.writer.fields}
        if pair.reader.kind == "union" and pair.writer.kind != "union":
            words = [f"{side.kind} {side.name}" for side in (pair.reader, pair.writer)]
            yield explain("STRUCT_READ_AS_UNION", pair.path, *words)
        for number in sorted(theirs):
            field, path = theirs[number], f"{pair.path}.{theirs[number].name}"
            if number not in ours:
                if pair.writer.kind == pair.reader.kind == "union":
                    yield explain("UNION_MEMBER_REMOVED", path, writer=shown(field))
                continue
            if _demanded(pair.reader, ours[number]) and _may_be_missing(pair.writer, field):
                yield explain("REQUIRED_FIELD_MAY_BE_MISSING", path, shown(ours[number]), shown(field))
            yield from self._field(path, pair, ours[number], field)
        for number in sorted(set(ours).difference(theirs)):
            if _demanded(pair.reader, ours[number]):
                yield explain("REQUIRED_FIELD_ADDED", f"{pair.path}.{ours[number].name}", shown(ours[number]))

    # --- types ------------------------------------------------------------------------------------------------------

    def _field(self, path: str, pair: _Pair, reader: Field, writer: Field) -> Iterator[Finding]:
        """What is wrong with the types of a field: the first place where they differ, or what lies below."""
        todo = [(path, pair.reader_unit.resolve(reader.type), pair.writer_unit.resolve(writer.type))]
        while todo:
            where, ours, theirs = todo.pop()
            if _ON_THE_WIRE.get(ours.kind, ours.kind) != _ON_THE_WIRE.get(theirs.kind, theirs.kind):
                yield explain("FIELD_TYPE_CHANGED", where, _words(ours), _words(theirs))
                return
            if isinstance(theirs.node, Container):
                marks = ("{}.key", "{}") if theirs.kind == "map" else ("[]",)
                inner = [(where + mark, ours.inner(at), theirs.inner(at)) for at, mark in enumerate(marks)]
                todo += reversed(inner)
            elif isinstance(theirs.node, Struct):
                self._meet(where, ours, theirs)
            else:
                yield from self._scalars(where, ours, theirs)

    def _scalars(self, path: str, reader: Resolved, writer: Resolved) -> Iterator[Finding]:
        if isinstance(reader.node, EnumType) and isinstance(writer.node, EnumType):
            yield from self._enums(path, reader.node, writer.node)
        elif isinstance(reader.node, EnumType):
            yield explain("INTEGER_READ_AS_ENUM", path, reader.node.name, writer.kind)
        elif (reader.kind, writer.kind) == ("string", "binary"):
            yield explain("BINARY_READ_AS_STRING", path, reader.kind, writer.kind)


def _demanded(struct: Struct, field: Field) -> bool:
    """Whether reading fails for data without the field."""
    return required(struct, field) and field.default is None


def _may_be_missing(struct: Struct, field: Field) -> bool:
    """Whether data can lack the field: it is not required, and no default is written in its place."""
    if struct.kind == "union" or field.requiredness is Requiredness.OPTIONAL:
        return True
    return field.requiredness is Requiredness.DEFAULT and field.default is None


def _words(kind: Resolved) -> str:
    match kind.node:
        case Struct() | EnumType():
            return f"{kind.kind} {kind.node.name}"
        case _:
            return type_text(kind.node)
