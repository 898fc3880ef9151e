"""A linked schema: a document, those it includes, and what its names mean."""

from __future__ import annotations

from typing import Final, NamedTuple

from stele.errors import InvalidRequest
from stele.formats.thrift.syntax import (
    Base,
    Const,
    Container,
    Document,
    EnumType,
    EnumValue,
    Field,
    Ref,
    Requiredness,
    Senum,
    Service,
    Struct,
    Type,
    Typedef,
)

STRING: Final = Base("string")
UUID: Final = Base("uuid")
_ALIASES: Final = {"byte": Base("i8"), "slist": STRING}


class Unit:
    """One document with its tables of names; two units are equal when they are the same object.

    name is what includes call it, '' for the schema itself; includes holds the included units by prefix.
    """

    def __init__(self, name: str, text: str, document: Document) -> None:
        self.name = name
        self.text = text
        self.document = document
        self.includes: dict[str, list[Unit]] = {}
        self.types: dict[str, Typedef | EnumType | Senum | Struct] = {}
        self.constants: dict[str, Const] = {}
        self.services: dict[str, Service] = {}
        for definition in document.definitions:
            match definition:
                case Const():
                    self.constants.setdefault(definition.name, definition)
                case Service():
                    self.services.setdefault(definition.name, definition)
                case _:
                    self.types.setdefault(definition.name, definition)

    @property
    def structs(self) -> list[Struct]:
        """Structs, unions and exceptions in the order of the document."""
        return [each for each in self.types.values() if isinstance(each, Struct)]

    def type(self, name: str) -> tuple[Unit, Typedef | EnumType | Senum | Struct] | None:
        """What a type name means here, and the unit it is defined in; None when it means nothing."""
        for unit, rest in self._places(name):
            if rest in unit.types:
                return unit, unit.types[rest]
        return None

    def service(self, name: str) -> tuple[Unit, Service] | None:
        """What a service name means here."""
        for unit, rest in self._places(name):
            if rest in unit.services:
                return unit, unit.services[rest]
        return None

    def value(self, name: str) -> tuple[Unit, Const] | tuple[Unit, EnumType, EnumValue] | None:
        """What the name of a constant or of an enum value means here."""
        for unit, rest in self._places(name):
            if rest in unit.constants:
                return unit, unit.constants[rest]
        owner, _, symbol = name.rpartition(".")
        found = self.type(owner)
        resolved = found and found[0].resolve(Ref(found[1].name))
        if resolved and isinstance(resolved.node, EnumType):
            for value in resolved.node.values:
                if value.name == symbol:
                    return resolved.unit, resolved.node, value
        return None

    def _places(self, name: str) -> list[tuple[Unit, str]]:
        """Where to look, and for which plain name."""
        prefix, _, rest = name.rpartition(".")
        return [(unit, rest) for unit in self.includes.get(prefix, ())] if prefix else [(self, rest)]

    def resolve(self, kind: Type) -> Resolved:
        """The type behind typedefs; `byte` is i8, `slist` and senums are string. The unit must have been linked."""
        unit: Unit = self
        while isinstance(kind, Ref):
            found = unit.type(kind.name)
            if found is None:
                return Resolved(unit, UUID)
            unit, definition = found
            match definition:
                case Typedef():
                    kind = definition.type
                case Senum():
                    return Resolved(unit, STRING)
                case _:
                    return Resolved(unit, definition)
        return Resolved(unit, _ALIASES.get(kind.name, kind) if isinstance(kind, Base) else kind)


class Resolved(NamedTuple):
    """A type without typedefs, and the unit in which the names inside it have their meaning."""

    unit: Unit
    node: Base | Container | EnumType | Struct

    @property
    def kind(self) -> str:
        """The word of a built-in type or container, `enum` or `struct` (unions and exceptions too)."""
        match self.node:
            case Base():
                return self.node.name
            case Container():
                return self.node.kind
            case EnumType():
                return "enum"
            case Struct():
                return "struct"

    def inner(self, index: int) -> Resolved:
        """A type inside a container: the element, or key and value of a map."""
        assert isinstance(self.node, Container)
        return self.unit.resolve(self.node.items[index])


def required(struct: Struct, field: Field) -> bool:
    """Whether data without the field is no data of the struct; members of a union are always optional."""
    return field.requiredness is Requiredness.REQUIRED and struct.kind != "union"


class ThriftSchema:
    """A parsed schema. Immutable; safe to share between threads."""

    def __init__(self, unit: Unit) -> None:
        self.unit = unit

    @property
    def type_name(self) -> str:
        """Name of the last struct or union, since dependencies come first; else of the last exception, or ''."""
        structs = self.unit.structs
        plain = [struct.name for struct in structs if struct.kind != "exception"]
        return (plain or [struct.name for struct in structs] or [""])[-1]

    def struct(self, name: str = "") -> Struct:
        """A struct of the document by name, '' is the one `type_name` names. Raises `InvalidRequest` for none."""
        wanted = name or self.type_name
        found = self.unit.types.get(wanted)
        if not isinstance(found, Struct):
            raise InvalidRequest(f"the schema has no struct {wanted!r}" if wanted else "the schema has no struct")
        return found
