"""The rulesets: `thrift-audit`, what `thrift --audit old new` reports, and `thrift-wire`, what the protocols can read.

The audit checks whether one version of a file may replace another, for data, calls and generated code alike. It only
reads the file itself, compares types by their names and is stricter than the wire. Its old file is the writer here, its
new one the reader: BACKWARD checks (old, new), FORWARD checks (new, old), where an added field is a removed one.
Failures of the audit are findings of level ERROR, its warnings WARNING.

On the wire every struct, union and exception of the writer's document must exist in the reader's under its name, and
every enum must keep its numbers. Fields are matched by id. Their types must be equal on the wire (enums are i32, binary
is string, typedefs are resolved). A field that the reader requires must be in all written data, or have a
default. Names of fields, defaults, constants, namespaces and services may change. On the wire unions equal structs.

Source: docs/protocols/thrift.md#rulesets.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from typing import Final

from stele.core.findings import Finding, Severity
from stele.formats.thrift.constants import resolve_names
from stele.formats.thrift.printer import describe_field, format_type, format_value
from stele.formats.thrift.schema import (
    BaseType,
    Const,
    ContainerType,
    Requiredness,
    ResolvedType,
    ThriftEnum,
    ThriftField,
    ThriftFunction,
    ThriftNamespace,
    ThriftSchema,
    ThriftService,
    ThriftStruct,
    ThriftType,
    ThriftUnit,
    TypeName,
    Value,
    is_required,
)

# --- what findings say ------------------------------------------------------------------------------------------------
# Texts of compatibility findings: what breaks, and how the author can fix it.

_ERRORS: Final[Mapping[str, tuple[str, str]]] = {
    "STRUCT_REMOVED": (
        "{path} exists on the writer's side as {writer} and not on the reader's: its data has no type any more.",
        "Keep {path} under its name, even when nothing uses it any longer.",
    ),
    "FIELD_REMOVED": (
        "The field {writer} was removed.",
        "Keep the field, and mark it as deprecated in its documentation.",
    ),
    "FIELD_TYPE_CHANGED": (
        "What was written as {writer} is not read as {reader}: readers skip it, or take its bytes for something else.",
        "Keep the type {writer}, and add a field with a new id for the new type.",
    ),
    "FIELD_TYPE_NAME_CHANGED": (
        "The field was declared as {writer} and is {reader} now; the audit compares types by their names.",
        "Keep the type {writer}, and add a field with a new id for the new type.",
    ),
    "FIELD_REQUIREDNESS_CHANGED": (
        "The field was {writer} and is {reader} now: one side may leave out what the other one demands.",
        "Leave the word as it was.",
    ),
    "REQUIRED_FIELD_ADDED": (
        "Readers demand the field {reader}, which data written before does not have.",
        "Make the new field optional.",
    ),
    "REQUIRED_FIELD_MAY_BE_MISSING": (
        "Readers demand the field {reader}, which the writer may leave out: it has {writer}.",
        "Leave the field optional, or give it a default.",
    ),
    "FIELD_INSERTED": (
        "The new field {reader} has an id below ids that exist, which may have belonged to a field of the past.",
        "Give the field an id above all that were ever used.",
    ),
    "ENUM_VALUE_REMOVED": (
        "The reader's enum {reader} has no name for the value {writer}, which may have been written.",
        "Keep the value, and mark it as deprecated in its documentation.",
    ),
    "SERVICE_REMOVED": (
        "The service {writer} was removed: calls of its clients fail.",
        "Keep the service until no client calls it.",
    ),
    "SERVICE_PARENT_CHANGED": (
        "The service extended {writer} and {reader} now: the functions it inherited are removed.",
        "Let the service extend {writer} again.",
    ),
    "FUNCTION_REMOVED": (
        "The function {writer} was removed: calls of it fail.",
        "Keep the function until no client calls it.",
    ),
    "FUNCTION_ONEWAY_CHANGED": (
        "The function was {writer} and is {reader} now: one side waits for an answer that the other never sends.",
        "Leave the function as it was, and add another one.",
    ),
    "RETURN_TYPE_CHANGED": (
        "The function returned {writer} and returns {reader} now.",
        "Keep the type, and add another function for the new one.",
    ),
}

_WARNINGS: Final[Mapping[str, tuple[str, str]]] = {
    "ENUM_REMOVED": (
        "The enum {writer} was removed: its values are now numbers without names.",
        "Keep the enum as long as data with its values exists.",
    ),
    "ENUM_VALUE_RENAMED": (
        "The value was called {writer} and is {reader} now: the data is the same, its meaning perhaps not.",
        "Keep the name if the number got another meaning, and give the new meaning a new number.",
    ),
    "FIELD_RENAMED": (
        "The field was called {writer} and is {reader} now: the data is the same, its meaning perhaps not.",
        "Give the field a new id if it means something else.",
    ),
    "DEFAULT_CHANGED": (
        "The default was {writer} and is {reader} now: data without the field reads differently on the two sides.",
        "Keep the default, or make sure that no writer leaves the field out.",
    ),
    "NAMESPACE_CHANGED": (
        "The namespace was {writer} and is {reader} now: generated code moves.",
        "Keep the namespace if programs use the generated code.",
    ),
    "CONSTANT_REMOVED": (
        "The constant {writer} was removed.",
        "Keep the constant if programs use the generated code.",
    ),
    "CONSTANT_CHANGED": (
        "The constant was {writer} and is {reader} now: programs made from the two sides differ.",
        "Keep the constant, and add another one.",
    ),
    "UNION_MEMBER_REMOVED": (
        "The union has lost its member {writer}: what was written with it is read as a union without a value.",
        "Keep the member as long as data with it exists.",
    ),
    "STRUCT_READ_AS_UNION": (
        "{writer} may have several fields set where the reader's {reader} allows one.",
        "Leave it a struct.",
    ),
    "BINARY_READ_AS_STRING": (
        "Bytes written as binary are read as a string: those that are not UTF-8 cannot be.",
        "Leave the field binary.",
    ),
    "INTEGER_READ_AS_ENUM": (
        "Any number may have been written as {writer}; most are no value of {reader}.",
        "Leave the field {writer}.",
    ),
}


def make_finding(rule: str, path: str, reader: str = "", writer: str = "") -> Finding:
    """Return the finding of a rule. `path` is dotted; `reader` and `writer` show the declaration on each side."""
    level = Severity.WARNING if rule in _WARNINGS else Severity.ERROR
    why, fix = (_WARNINGS if rule in _WARNINGS else _ERRORS)[rule]
    words = {"path": path, "reader": reader, "writer": writer}
    return Finding(rule, path, reader, writer, why.format(**words), fix.format(**words), level=level)


# --- the ruleset thrift-audit -----------------------------------------------------------------------------------------
# Ruleset `thrift-audit`: what `thrift --audit old new` of the Apache compiler reports.

_NAMES = {"byte": "i8", "binary": "string", "slist": "string"}
"""Built-in types that the compiler treats as another type."""


def check_audit(reader: ThriftSchema, writer: ThriftSchema) -> list[Finding]:
    """Return the findings, in the order of the writer's document within enums, structs, services and the rest."""
    return list(_Audit(reader.unit, writer.unit).find_changes())


class _Audit:
    def __init__(self, new: ThriftUnit, old: ThriftUnit) -> None:
        self.new = new
        self.old = old

    def find_changes(self) -> Iterator[Finding]:
        for definition in self.old.types.values():
            if isinstance(definition, ThriftEnum):
                yield from self._audit_enum(definition)
        for struct in self.old.structs:
            yield from self._audit_struct(struct)
        for service in self.old.services.values():
            yield from self._audit_service(service)
        for constant in self.old.constants.values():
            yield from self._audit_constant(constant)
        yield from self._audit_namespaces()

    # --- definitions ------------------------------------------------------------------------------------------------

    def _audit_enum(self, old: ThriftEnum) -> Iterator[Finding]:
        new = self.new.types.get(old.name)
        if not isinstance(new, ThriftEnum):
            yield make_finding("ENUM_REMOVED", old.name, writer=old.name)
            return
        names: dict[int, str] = {}
        for each in new.values:
            names.setdefault(each.number, each.name)
        for value in old.values:
            path, name = f"{old.name}.{value.name}", names.get(value.number)
            if name is None:
                yield make_finding("ENUM_VALUE_REMOVED", path, new.name, f"{value.name} = {value.number}")
            elif name != value.name:
                yield make_finding("ENUM_VALUE_RENAMED", path, name, value.name)

    def _audit_struct(self, old: ThriftStruct) -> Iterator[Finding]:
        """Yield what changed in a struct. Structs and unions may replace each other, exceptions may not."""
        new = self.new.types.get(old.name)
        if not isinstance(new, ThriftStruct) or (new.kind == "exception") != (old.kind == "exception"):
            new_kind = "" if new is None else new.kind if isinstance(new, ThriftStruct) else type(new).__name__.lower()
            yield make_finding("STRUCT_REMOVED", old.name, new_kind, f"{old.kind} {old.name}")
        else:
            yield from self._audit_fields(old.name, new, old)

    def _audit_constant(self, old: Const) -> Iterator[Finding]:
        new = self.new.constants.get(old.name)
        if new is None:
            yield make_finding("CONSTANT_REMOVED", old.name, writer=old.name)
        elif not is_same_type(new.type, old.type):
            yield make_finding("CONSTANT_CHANGED", old.name, format_type(new.type), format_type(old.type))
        elif resolve_names(self.new, new.value) != resolve_names(self.old, old.value):
            yield make_finding("CONSTANT_CHANGED", old.name, _describe_value(new.value), _describe_value(old.value))

    def _audit_namespaces(self) -> Iterator[Finding]:
        new, old = _namespaces_of(self.new), _namespaces_of(self.old)
        for scope, name in old.items():
            if new.get(scope) != name:
                yield make_finding("NAMESPACE_CHANGED", scope, new.get(scope, "none"), name)

    # --- members ----------------------------------------------------------------------------------------------------

    def _audit_fields(self, path: str, new: ThriftStruct, old: ThriftStruct) -> Iterator[Finding]:
        """Yield the findings on fields, matched by id: removed, changed, added ones."""
        ours = {field.id: field for field in new.fields}
        theirs = {field.id: field for field in old.fields}
        for number in sorted(theirs):
            field = theirs[number]
            if number in ours:
                yield from self._audit_field(f"{path}.{field.name}", (new, ours[number]), (old, field))
            else:
                yield make_finding("FIELD_REMOVED", f"{path}.{field.name}", writer=describe_field(field))
        last = max(theirs, default=None)
        for number in sorted(set(ours).difference(theirs)):
            field = ours[number]
            if last is not None and number < last:
                yield make_finding("FIELD_INSERTED", f"{path}.{field.name}", describe_field(field))
            elif is_required(new, field):
                yield make_finding("REQUIRED_FIELD_ADDED", f"{path}.{field.name}", describe_field(field))

    def _audit_field(
        self, path: str, new: tuple[ThriftStruct, ThriftField], old: tuple[ThriftStruct, ThriftField]
    ) -> Iterator[Finding]:
        ours, theirs = new[1], old[1]
        if not is_same_type(ours.type, theirs.type):
            yield make_finding("FIELD_TYPE_NAME_CHANGED", path, format_type(ours.type), format_type(theirs.type))
        words = ["required" if is_required(*side) else "not required" for side in (new, old)]
        if words[0] != words[1]:
            yield make_finding("FIELD_REQUIREDNESS_CHANGED", path, *words)
        if "not required" in words and not self._is_same_default(ours.default, theirs.default):
            yield make_finding("DEFAULT_CHANGED", path, _describe_value(ours.default), _describe_value(theirs.default))
        if ours.name != theirs.name:
            yield make_finding("FIELD_RENAMED", path, ours.name, theirs.name)

    def _is_same_default(self, new: Value | None, old: Value | None) -> bool:
        if new is None or old is None:
            return new is old
        return resolve_names(self.new, new) == resolve_names(self.old, old)

    # --- services ---------------------------------------------------------------------------------------------------

    def _audit_service(self, old: ThriftService) -> Iterator[Finding]:
        new = self.new.services.get(old.name)
        if new is None:
            yield make_finding("SERVICE_REMOVED", old.name, writer=old.name)
            return
        if old.extends and _simple_name(new.extends) != _simple_name(old.extends):
            yield make_finding("SERVICE_PARENT_CHANGED", old.name, new.extends or "nothing", old.extends)
        functions = {function.name: function for function in new.functions}
        for function in old.functions:
            path = f"{old.name}.{function.name}"
            if function.name in functions:
                yield from self._audit_function(path, functions[function.name], function)
            else:
                yield make_finding("FUNCTION_REMOVED", path, writer=function.name)

    def _audit_function(self, path: str, new: ThriftFunction, old: ThriftFunction) -> Iterator[Finding]:
        if new.oneway != old.oneway:
            words = ["oneway" if side.oneway else "with an answer" for side in (new, old)]
            yield make_finding("FUNCTION_ONEWAY_CHANGED", path, *words)
        if not is_same_type(new.returns, old.returns):
            returns = ["void" if side.returns is None else format_type(side.returns) for side in (new, old)]
            yield make_finding("RETURN_TYPE_CHANGED", path, *returns)
        yield from self._audit_fields(
            path, ThriftStruct("struct", "", new.arguments), ThriftStruct("struct", "", old.arguments)
        )
        yield from self._audit_fields(
            path, ThriftStruct("struct", "", new.throws), ThriftStruct("struct", "", old.throws)
        )


def is_same_type(new: ThriftType | None, old: ThriftType | None) -> bool:
    """Return whether the audit counts two types as equal: by name in any document. None is void."""
    if new is None or old is None:
        return new is old
    if isinstance(new, ContainerType) and isinstance(old, ContainerType):
        return new.kind == old.kind and all(map(is_same_type, new.items, old.items))
    if isinstance(new, ContainerType) or isinstance(old, ContainerType):
        return False
    return _type_name(new) == _type_name(old)


def _type_name(kind: BaseType | TypeName) -> str:
    return _simple_name(kind.name) if isinstance(kind, TypeName) else _NAMES.get(kind.name, kind.name)


def _simple_name(name: str) -> str:
    return name.rpartition(".")[2]


def _namespaces_of(unit: ThriftUnit) -> dict[str, str]:
    return {header.scope: header.name for header in unit.document.headers if isinstance(header, ThriftNamespace)}


def _describe_value(value: Value | None) -> str:
    if value is None:
        return "none"
    text = format_value(value)
    return text if len(text) <= 60 else f"{text[:59]}…"


# --- the ruleset thrift-wire ------------------------------------------------------------------------------------------
# Ruleset `thrift-wire`: whether data written with one schema can be read with another, as the protocols carry it.

_ON_THE_WIRE = {"enum": "i32", "binary": "string"}


def check_wire(reader: ThriftSchema, writer: ThriftSchema) -> list[Finding]:
    """Return the findings. Each pair of structs and each pair of enums is compared once."""
    return list(_WireChecker(reader.unit, writer.unit).find_problems())


class _StructPair:
    """Two structs to compare, the units they are from, and the path of their first comparison."""

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
                reader_type = self._find_readers_type(name)
                if reader_type is None or not isinstance(reader_type.node, ThriftEnum):
                    yield make_finding("ENUM_REMOVED", name, writer=name)
                else:
                    yield from self._check_enums(name, reader_type.node, definition)
            elif isinstance(definition, ThriftStruct):
                reader_type = self._find_readers_type(name)
                if reader_type is None or not isinstance(reader_type.node, ThriftStruct):
                    yield make_finding("STRUCT_REMOVED", name, writer=f"{definition.kind} {name}")
                else:
                    self._add_pair(name, reader_type, ResolvedType(self.writer, definition))
        while self.todo:
            yield from self._check_structs(self.todo.popleft())

    def _find_readers_type(self, name: str) -> ResolvedType | None:
        return self.reader.resolve_type(TypeName(name)) if name in self.reader.types else None

    def _is_first_meeting(self, reader: ThriftStruct | ThriftEnum, writer: ThriftStruct | ThriftEnum) -> bool:
        """Return whether two definitions are compared for the first time."""
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
        """Yield the differences between the types of a field: the first difference, or differences in nested types."""
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
    """Return whether data can lack the field: it is not required, and the writer does not write a default for it."""
    if struct.kind == "union" or field.requiredness is Requiredness.OPTIONAL:
        return True
    return field.requiredness is Requiredness.DEFAULT and field.default is None


def _describe_type(kind: ResolvedType) -> str:
    match kind.node:
        case ThriftStruct() | ThriftEnum():
            return f"{kind.kind} {kind.node.name}"
        case _:
            return format_type(kind.node)
