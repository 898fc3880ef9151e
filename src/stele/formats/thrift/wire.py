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
from stele.formats.thrift.finding_texts import make_finding
from stele.formats.thrift.printer import describe_field, format_type
from stele.formats.thrift.schema import ResolvedType, ThriftSchema, ThriftUnit, is_required
from stele.formats.thrift.syntax import ContainerType, Requiredness, ThriftEnum, ThriftField, ThriftStruct, TypeName

_ON_THE_WIRE = {"enum": "i32", "binary": "string"}


def check_wire(reader: ThriftSchema, writer: ThriftSchema) -> list[Finding]:
    """Return the findings; each pair of structs and each pair of enums that meet is looked at once."""
    return list(_WireChecker(reader.unit, writer.unit).find_problems())


class _StructPair:
    """Two structs that meet, the units they are from, and the path where they met first."""

    def __init__(self, path: str, reader: ResolvedType, writer: ResolvedType) -> None:
        assert isinstance(reader.node, ThriftStruct)
        assert isinstance(writer.node, ThriftStruct)
        self.path = path
        self.reader, self.writer = reader.node, writer.node
        self.reader_unit, self.writer_unit = reader.unit, writer.unit


class _WireChecker:
    def __init__(self, reader: ThriftUnit, writer: ThriftUnit) -> None:
        self.reader = reader
        self.writer = writer
        self.met: set[tuple[int, int]] = set()
        self.todo: deque[_StructPair] = deque()

    def find_problems(self) -> Iterator[Finding]:
        for name, definition in self.writer.types.items():
            if isinstance(definition, ThriftEnum):
                found = self._find_readers_type(name)
                if found is None or not isinstance(found.node, ThriftEnum):
                    yield make_finding("ENUM_REMOVED", name, writer=name)
                else:
                    yield from self._check_enums(name, found.node, definition)
            elif isinstance(definition, ThriftStruct):
                found = self._find_readers_type(name)
                if found is None or not isinstance(found.node, ThriftStruct):
                    yield make_finding("STRUCT_REMOVED", name, writer=f"{definition.kind} {name}")
                else:
                    self._add_pair(name, found, ResolvedType(self.writer, definition))
        while self.todo:
            yield from self._check_structs(self.todo.popleft())

    def _find_readers_type(self, name: str) -> ResolvedType | None:
        return self.reader.resolve_type(TypeName(name)) if name in self.reader.types else None

    def _is_first_meeting(self, reader: ThriftStruct | ThriftEnum, writer: ThriftStruct | ThriftEnum) -> bool:
        """Return whether two definitions meet for the first time."""
        pair = (id(reader), id(writer))
        if pair in self.met:
            return False
        self.met.add(pair)
        return True

    def _add_pair(self, path: str, reader: ResolvedType, writer: ResolvedType) -> None:
        pair = _StructPair(path, reader, writer)
        if self._is_first_meeting(pair.reader, pair.writer):
            self.todo.append(pair)

    # --- enums and structs ------------------------------------------------------------------------------------------

    def _check_enums(self, path: str, reader: ThriftEnum, writer: ThriftEnum) -> Iterator[Finding]:
        if not self._is_first_meeting(reader, writer):
            return
        known = {value.number for value in reader.values}
        for value in writer.values:
            if value.number not in known:
                yield make_finding(
                    "ENUM_VALUE_REMOVED", f"{path}.{value.name}", reader.name, f"{value.name} = {value.number}"
                )

    def _check_structs(self, pair: _StructPair) -> Iterator[Finding]:
        ours = {field.id: field for field in pair.reader.fields}
        theirs = {field.id: field for field in pair.writer.fields}
        if pair.reader.kind == "union" and pair.writer.kind != "union":
            words = [f"{side.kind} {side.name}" for side in (pair.reader, pair.writer)]
            yield make_finding("STRUCT_READ_AS_UNION", pair.path, *words)
        for number in sorted(theirs):
            field, path = theirs[number], f"{pair.path}.{theirs[number].name}"
            if number not in ours:
                if pair.writer.kind == pair.reader.kind == "union":
                    yield make_finding("UNION_MEMBER_REMOVED", path, writer=describe_field(field))
                continue
            if _is_demanded(pair.reader, ours[number]) and _can_be_missing(pair.writer, field):
                yield make_finding(
                    "REQUIRED_FIELD_MAY_BE_MISSING", path, describe_field(ours[number]), describe_field(field)
                )
            yield from self._check_field(path, pair, ours[number], field)
        for number in sorted(set(ours).difference(theirs)):
            if _is_demanded(pair.reader, ours[number]):
                yield make_finding(
                    "REQUIRED_FIELD_ADDED", f"{pair.path}.{ours[number].name}", describe_field(ours[number])
                )

    # --- types ------------------------------------------------------------------------------------------------------

    def _check_field(self, path: str, pair: _StructPair, reader: ThriftField, writer: ThriftField) -> Iterator[Finding]:
        """Yield what is wrong with the types of a field: the first place where they differ, or what lies below."""
        todo = [(path, pair.reader_unit.resolve_type(reader.type), pair.writer_unit.resolve_type(writer.type))]
        while todo:
            where, ours, theirs = todo.pop()
            if _ON_THE_WIRE.get(ours.kind, ours.kind) != _ON_THE_WIRE.get(theirs.kind, theirs.kind):
                yield make_finding("FIELD_TYPE_CHANGED", where, _describe_type(ours), _describe_type(theirs))
                return
            if isinstance(theirs.node, ContainerType):
                marks = ("{}.key", "{}") if theirs.kind == "map" else ("[]",)
                inner = [(where + mark, ours.inner_type(at), theirs.inner_type(at)) for at, mark in enumerate(marks)]
                todo += reversed(inner)
            elif isinstance(theirs.node, ThriftStruct):
                self._add_pair(where, ours, theirs)
            else:
                yield from self._check_scalars(where, ours, theirs)

    def _check_scalars(self, path: str, reader: ResolvedType, writer: ResolvedType) -> Iterator[Finding]:
        if isinstance(reader.node, ThriftEnum) and isinstance(writer.node, ThriftEnum):
            yield from self._check_enums(path, reader.node, writer.node)
        elif isinstance(reader.node, ThriftEnum):
            yield make_finding("INTEGER_READ_AS_ENUM", path, reader.node.name, writer.kind)
        elif (reader.kind, writer.kind) == ("string", "binary"):
            yield make_finding("BINARY_READ_AS_STRING", path, reader.kind, writer.kind)


def _is_demanded(struct: ThriftStruct, field: ThriftField) -> bool:
    """Return whether reading fails for data without the field."""
    return is_required(struct, field) and field.default is None


def _can_be_missing(struct: ThriftStruct, field: ThriftField) -> bool:
    """Return whether data can lack the field: it is not required, and no default is written in its place."""
    if struct.kind == "union" or field.requiredness is Requiredness.OPTIONAL:
        return True
    return field.requiredness is Requiredness.DEFAULT and field.default is None


def _describe_type(kind: ResolvedType) -> str:
    match kind.node:
        case ThriftStruct() | ThriftEnum():
            return f"{kind.kind} {kind.node.name}"
        case _:
            return format_type(kind.node)
