"""A linked schema: a document, those it includes, and what its names mean."""

from __future__ import annotations

from typing import Final, NamedTuple

from stele.errors import InvalidRequest
from stele.formats.thrift.syntax import (
    BaseType,
    Const,
    ContainerType,
    EnumValue,
    Requiredness,
    Senum,
    ThriftDocument,
    ThriftEnum,
    ThriftField,
    ThriftService,
    ThriftStruct,
    ThriftType,
    Typedef,
    TypeName,
)

STRING: Final = BaseType("string")
UUID: Final = BaseType("uuid")
_ALIASES: Final = {"byte": BaseType("i8"), "slist": STRING}


class ThriftUnit:
    """One document with its tables of names; two units are equal when they are the same object.

    name is what includes call it, '' for the schema itself; includes holds the included units by prefix.
    """

    def __init__(self, name: str, text: str, document: ThriftDocument) -> None:
        self.name = name
        self.text = text
        self.document = document
        self.includes: dict[str, list[ThriftUnit]] = {}
        self.types: dict[str, Typedef | ThriftEnum | Senum | ThriftStruct] = {}
        self.constants: dict[str, Const] = {}
        self.services: dict[str, ThriftService] = {}
        for definition in document.definitions:
            match definition:
                case Const():
                    self.constants.setdefault(definition.name, definition)
                case ThriftService():
                    self.services.setdefault(definition.name, definition)
                case _:
                    self.types.setdefault(definition.name, definition)

    @property
    def structs(self) -> list[ThriftStruct]:
        """Structs, unions and exceptions in the order of the document."""
        return [each for each in self.types.values() if isinstance(each, ThriftStruct)]

    def find_type(self, name: str) -> tuple[ThriftUnit, Typedef | ThriftEnum | Senum | ThriftStruct] | None:
        """Return what a type name means here, and the unit it is defined in; None when it means nothing."""
        for unit, rest in self._lookup_places(name):
            if rest in unit.types:
                return unit, unit.types[rest]
        return None

    def find_service(self, name: str) -> tuple[ThriftUnit, ThriftService] | None:
        """Return what a service name means here."""
        for unit, rest in self._lookup_places(name):
            if rest in unit.services:
                return unit, unit.services[rest]
        return None

    def find_value(self, name: str) -> tuple[ThriftUnit, Const] | tuple[ThriftUnit, ThriftEnum, EnumValue] | None:
        """Return what the name of a constant or of an enum value means here."""
        for unit, rest in self._lookup_places(name):
            if rest in unit.constants:
                return unit, unit.constants[rest]
        owner, _, symbol = name.rpartition(".")
        found = self.find_type(owner)
        resolved = found and found[0].resolve_type(TypeName(found[1].name))
        if resolved and isinstance(resolved.node, ThriftEnum):
            for value in resolved.node.values:
                if value.name == symbol:
                    return resolved.unit, resolved.node, value
        return None

    def _lookup_places(self, name: str) -> list[tuple[ThriftUnit, str]]:
        """Return the units in which to look a name up, each with the plain name to look for."""
        prefix, _, rest = name.rpartition(".")
        return [(unit, rest) for unit in self.includes.get(prefix, ())] if prefix else [(self, rest)]

    def resolve_type(self, kind: ThriftType) -> ResolvedType:
        """Return the type behind typedefs; `byte` is i8, `slist` and senums are string.

        The unit must have been linked.
        """
        unit: ThriftUnit = self
        while isinstance(kind, TypeName):
            found = unit.find_type(kind.name)
            if found is None:
                return ResolvedType(unit, UUID)
            unit, definition = found
            match definition:
                case Typedef():
                    kind = definition.type
                case Senum():
                    return ResolvedType(unit, STRING)
                case _:
                    return ResolvedType(unit, definition)
        return ResolvedType(unit, _ALIASES.get(kind.name, kind) if isinstance(kind, BaseType) else kind)


class ResolvedType(NamedTuple):
    """A type without typedefs, and the unit in which the names inside it have their meaning."""

    unit: ThriftUnit
    node: BaseType | ContainerType | ThriftEnum | ThriftStruct

    @property
    def kind(self) -> str:
        """The word of a built-in type or container, `enum` or `struct` (unions and exceptions too)."""
        match self.node:
            case BaseType():
                return self.node.name
            case ContainerType():
                return self.node.kind
            case ThriftEnum():
                return "enum"
            case ThriftStruct():
                return "struct"

    def inner_type(self, index: int) -> ResolvedType:
        """Return a type inside a container: the element, or key and value of a map."""
        assert isinstance(self.node, ContainerType)
        return self.unit.resolve_type(self.node.items[index])


def is_required(struct: ThriftStruct, field: ThriftField) -> bool:
    """Return whether data without the field is no data of the struct; members of a union are always optional."""
    return field.requiredness is Requiredness.REQUIRED and struct.kind != "union"


class ThriftSchema:
    """A parsed schema. Immutable; safe to share between threads."""

    def __init__(self, unit: ThriftUnit) -> None:
        self.unit = unit

    @property
    def type_name(self) -> str:
        """Name of the last struct or union, since dependencies come first; else of the last exception, or ''."""
        structs = self.unit.structs
        plain = [struct.name for struct in structs if struct.kind != "exception"]
        return (plain or [struct.name for struct in structs] or [""])[-1]

    def find_struct(self, name: str = "") -> ThriftStruct:
        """Return a struct of the document by name, '' is the one `type_name` names.

        Raises `InvalidRequest` for none.
        """
        wanted = name or self.type_name
        found = self.unit.types.get(wanted)
        if not isinstance(found, ThriftStruct):
            raise InvalidRequest(f"the schema has no struct {wanted!r}" if wanted else "the schema has no struct")
        return found
