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
from stele.formats.thrift.canonical import written_out
from stele.formats.thrift.explain import explain
from stele.formats.thrift.printer import type_text, value_text
from stele.formats.thrift.schema import ThriftSchema, Unit, required
from stele.formats.thrift.syntax import (
    Base,
    Const,
    Container,
    EnumType,
    Field,
    Function,
    Namespace,
    Ref,
    Service,
    Struct,
    Type,
    Value,
)

_NAMES = {"byte": "i8", "binary": "string", "slist": "string"}
"""Names of built-in types that the compiler takes for others."""


def check(reader: ThriftSchema, writer: ThriftSchema) -> list[Finding]:
    """The findings, in the order of the writer's document within enums, structs, services and the rest."""
    return list(_Audit(reader.unit, writer.unit).findings())


class _Audit:
    def __init__(self, new: Unit, old: Unit) -> None:
        self.new = new
        self.old = old

    def findings(self) -> Iterator[Finding]:
        for definition in self.old.types.values():
            if isinstance(definition, EnumType):
                yield from self._enum(definition)
        for struct in self.old.structs:
            yield from self._struct(struct)
        for service in self.old.services.values():
            yield from self._service(service)
        for constant in self.old.constants.values():
            yield from self._constant(constant)
        yield from self._namespaces()

    # --- definitions ------------------------------------------------------------------------------------------------

    def _enum(self, old: EnumType) -> Iterator[Finding]:
        new = self.new.types.get(old.name)
        if not isinstance(new, EnumType):
            yield explain("ENUM_REMOVED", old.name, writer=old.name)
            return
        names: dict[int, str] = {}
        for each in new.values:
            names.setdefault(each.number, each.name)
        for value in old.values:
            path, name = f"{old.name}.{value.name}", names.get(value.number)
            if name is None:
                yield explain("ENUM_VALUE_REMOVED", path, new.name, f"{value.name} = {value.number}")
            elif name != value.name:
                yield explain("ENUM_VALUE_RENAMED", path, name, value.name)

    def _struct(self, old: Struct) -> Iterator[Finding]:
        """Structs and unions may take each other's place, exceptions not."""
        new = self.new.types.get(old.name)
        if not isinstance(new, Struct) or (new.kind == "exception") != (old.kind == "exception"):
            shown = "" if new is None else new.kind if isinstance(new, Struct) else type(new).__name__.lower()
            yield explain("STRUCT_REMOVED", old.name, shown, f"{old.kind} {old.name}")
        else:
            yield from self._fields(old.name, new, old)

    def _constant(self, old: Const) -> Iterator[Finding]:
        new = self.new.constants.get(old.name)
        if new is None:
            yield explain("CONSTANT_REMOVED", old.name, writer=old.name)
        elif not same_name(new.type, old.type):
            yield explain("CONSTANT_CHANGED", old.name, type_text(new.type), type_text(old.type))
        elif written_out(self.new, new.value) != written_out(self.old, old.value):
            yield explain("CONSTANT_CHANGED", old.name, _short(new.value), _short(old.value))

    def _namespaces(self) -> Iterator[Finding]:
        new, old = _namespaces(self.new), _namespaces(self.old)
        for scope, name in old.items():
            if new.get(scope) != name:
                yield explain("NAMESPACE_CHANGED", scope, new.get(scope, "none"), name)

    # --- members ----------------------------------------------------------------------------------------------------

    def _fields(self, path: str, new: Struct, old: Struct) -> Iterator[Finding]:
        """Fields by id: what is gone, what changed, what came."""
        ours = {field.id: field for field in new.fields}
        theirs = {field.id: field for field in old.fields}
        for number in sorted(theirs):
            field = theirs[number]
            if number in ours:
                yield from self._field(f"{path}.{field.name}", (new, ours[number]), (old, field))
            else:
                yield explain("FIELD_REMOVED", f"{path}.{field.name}", writer=shown(field))
        last = max(theirs, default=None)
        for number in sorted(set(ours).difference(theirs)):
            field = ours[number]
            if last is not None and number < last:
                yield explain("FIELD_INSERTED", f"{path}.{field.name}", shown(field))
            elif required(new, field):
                yield explain("REQUIRED_FIELD_ADDED", f"{path}.{field.name}", shown(field))

    def _field(self, path: str, new: tuple[Struct, Field], old: tuple[Struct, Field]) -> Iterator[Finding]:
        ours, theirs = new[1], old[1]
        if not same_name(ours.type, theirs.type):
            yield explain("FIELD_TYPE_NAME_CHANGED", path, type_text(ours.type), type_text(theirs.type))
        words = ["required" if required(*side) else "not required" for side in (new, old)]
        if words[0] != words[1]:
            yield explain("FIELD_REQUIREDNESS_CHANGED", path, *words)
        if "not required" in words and not self._same_default(ours.default, theirs.default):
            yield explain("DEFAULT_CHANGED", path, _short(ours.default), _short(theirs.default))
        if ours.name != theirs.name:
            yield explain("FIELD_RENAMED", path, ours.name, theirs.name)

    def _same_default(self, new: Value | None, old: Value | None) -> bool:
        if new is None or old is None:
            return new is old
        return written_out(self.new, new) == written_out(self.old, old)

    # --- services ---------------------------------------------------------------------------------------------------

    def _service(self, old: Service) -> Iterator[Finding]:
        new = self.new.services.get(old.name)
        if new is None:
            yield explain("SERVICE_REMOVED", old.name, writer=old.name)
            return
        if old.extends and _last(new.extends) != _last(old.extends):
            yield explain("SERVICE_PARENT_CHANGED", old.name, new.extends or "nothing", old.extends)
        functions = {function.name: function for function in new.functions}
        for function in old.functions:
            path = f"{old.name}.{function.name}"
            if function.name in functions:
                yield from self._function(path, functions[function.name], function)
            else:
                yield explain("FUNCTION_REMOVED", path, writer=function.name)

    def _function(self, path: str, new: Function, old: Function) -> Iterator[Finding]:
        if new.oneway != old.oneway:
            words = ["oneway" if side.oneway else "with an answer" for side in (new, old)]
            yield explain("FUNCTION_ONEWAY_CHANGED", path, *words)
        if not same_name(new.returns, old.returns):
            returns = ["void" if side.returns is None else type_text(side.returns) for side in (new, old)]
            yield explain("RETURN_TYPE_CHANGED", path, *returns)
        yield from self._fields(path, Struct("struct", "", new.arguments), Struct("struct", "", old.arguments))
        yield from self._fields(path, Struct("struct", "", new.throws), Struct("struct", "", old.throws))


def same_name(new: Type | None, old: Type | None) -> bool:
    """Whether the audit takes two types for one: by name, whatever document it is from; None is void."""
    if new is None or old is None:
        return new is old
    if isinstance(new, Container) and isinstance(old, Container):
        return new.kind == old.kind and all(map(same_name, new.items, old.items))
    if isinstance(new, Container) or isinstance(old, Container):
        return False
    return _name(new) == _name(old)


def _name(kind: Base | Ref) -> str:
    return _last(kind.name) if isinstance(kind, Ref) else _NAMES.get(kind.name, kind.name)


def _last(name: str) -> str:
    return name.rpartition(".")[2]


def _namespaces(unit: Unit) -> dict[str, str]:
    return {header.scope: header.name for header in unit.document.headers if isinstance(header, Namespace)}


def shown(field: Field) -> str:
    """A field in a few words."""
    words = [f"{field.id}:", field.requiredness.value, type_text(field.type), field.name]
    return " ".join(word for word in words if word)


def _short(value: Value | None) -> str:
    if value is None:
        return "none"
    text = value_text(value)
    return text if len(text) <= 60 else f"{text[:59]}…"
