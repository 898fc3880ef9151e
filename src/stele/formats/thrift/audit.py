"""Ruleset `thrift-audit`: what `thrift --audit old new` of the Apache compiler reports.

The audit asks whether one version of a file may take the place of another, for data, calls and generated code alike; it
only looks at the file itself, compares types by their names and is stricter than the wire. Its old file is the writer
here, its new one the reader: BACKWARD asks it about (old, new), FORWARD about (new, old), where adding a field is
removing one. Failures of the audit are findings of level ERROR, its warnings WARNING.

Source: docs/protocols/thrift.md#rulesets.
"""

from __future__ import annotations

from collections.abc import Iterator

from stele.core.findings import Finding
from stele.formats.thrift.constants import resolve_names
from stele.formats.thrift.finding_texts import make_finding
from stele.formats.thrift.printer import describe_field, format_type, format_value
from stele.formats.thrift.schema import ThriftSchema, ThriftUnit, is_required
from stele.formats.thrift.syntax import (
    BaseType,
    Const,
    ContainerType,
    ThriftEnum,
    ThriftField,
    ThriftFunction,
    ThriftNamespace,
    ThriftService,
    ThriftStruct,
    ThriftType,
    TypeName,
    Value,
)

_NAMES = {"byte": "i8", "binary": "string", "slist": "string"}
"""Names of built-in types that the compiler takes for others."""


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
            shown = "" if new is None else new.kind if isinstance(new, ThriftStruct) else type(new).__name__.lower()
            yield make_finding("STRUCT_REMOVED", old.name, shown, f"{old.kind} {old.name}")
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
    """Return whether the audit takes two types for one: by name, whatever document it is from; None is void."""
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
