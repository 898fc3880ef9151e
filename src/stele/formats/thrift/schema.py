"""The nodes of a Thrift document, and the linked schema: a document, those it includes, and what its names mean.

A document is held statement by statement in immutable nodes, in which nothing is resolved. Nodes compare by
meaning: the place in the text (`at`, an offset in characters) does not take part.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Final, NamedTuple

from stele.errors import InvalidRequest


class Requiredness(Enum):
    """How a field is marked. DEFAULT is a field without a word: it is written when it is set, and never required."""

    REQUIRED = "required"
    OPTIONAL = "optional"
    DEFAULT = ""


BASE_TYPES: Final = frozenset({"bool", "byte", "i8", "i16", "i32", "i64", "double", "string", "binary", "slist"})
"""Words that are types by themselves. `uuid` is one too unless the document defines a type of that name."""


@dataclass(frozen=True, slots=True)
class Annotation:
    """`key = "value"` in parentheses; value is None where only the key is written."""

    key: str
    value: str | None = None


Annotations = tuple[Annotation, ...]

# --- types ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class BaseType:
    """A built-in type by its word; `byte` is kept as written."""

    name: str
    annotations: Annotations = ()


@dataclass(frozen=True, slots=True)
class TypeName:
    """A type by its name, `Order` or `shared.Order`."""

    name: str
    at: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class ContainerType:
    """list<x>, set<x> or map<k, v>; kind is the word, items the types inside."""

    kind: str
    items: tuple[ThriftType, ...]
    cpp_type: str | None = None
    annotations: Annotations = ()


ThriftType = BaseType | TypeName | ContainerType

# --- values ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class LiteralValue:
    """true, false, a number or a quoted text."""

    value: bool | int | float | str

    def __eq__(self, other: object) -> bool:
        """True is not 1, and 1 is not 1.0."""
        return isinstance(other, LiteralValue) and type(self.value) is type(other.value) and self.value == other.value

    def __hash__(self) -> int:
        return hash((type(self.value), self.value))


@dataclass(frozen=True, slots=True)
class ValueName:
    """A constant or an enum value by its name, `LIMIT`, `Color.RED` or `shared.Color.RED`."""

    name: str
    at: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class ListValue:
    """`[1, 2]`."""

    items: tuple[Value, ...]
    at: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class MapValue:
    """`{"a": 1}`, for maps and for structs."""

    items: tuple[tuple[Value, Value], ...]
    at: int = field(default=0, compare=False)


Value = LiteralValue | ValueName | ListValue | MapValue

# --- members --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ThriftField:
    """A member of a struct, an argument or a thrown exception.

    id is the number on the wire; implicit says that the author gave none, so that it was counted down from -1. boxed is
    the `&` after the type, xsd_attrs the attributes of the old XML generator (None: not written).
    """

    id: int
    name: str
    type: ThriftType
    requiredness: Requiredness = Requiredness.DEFAULT
    default: Value | None = None
    implicit: bool = False
    boxed: bool = False
    xsd_optional: bool = False
    xsd_nillable: bool = False
    xsd_attrs: tuple[ThriftField, ...] | None = None
    annotations: Annotations = ()
    doc: str = ""
    at: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class EnumValue:
    """A name for a number; implicit says that the number was counted up from the value before."""

    name: str
    number: int
    implicit: bool = False
    annotations: Annotations = ()
    doc: str = ""
    at: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class ThriftFunction:
    """A method of a service; returns is None for void."""

    name: str
    returns: ThriftType | None
    arguments: tuple[ThriftField, ...] = ()
    throws: tuple[ThriftField, ...] = ()
    oneway: bool = False
    annotations: Annotations = ()
    doc: str = ""
    at: int = field(default=0, compare=False)


# --- definitions ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Typedef:
    """Another name for a type."""

    name: str
    type: ThriftType
    annotations: Annotations = ()
    doc: str = ""
    at: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Const:
    """A named value. Data do not contain it."""

    name: str
    type: ThriftType
    value: Value
    doc: str = ""
    at: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class ThriftEnum:
    """An enum: an i32 on the wire."""

    name: str
    values: tuple[EnumValue, ...]
    annotations: Annotations = ()
    doc: str = ""
    at: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Senum:
    """The enum of texts that compilers before 0.10 knew: a string on the wire."""

    name: str
    values: tuple[str, ...]
    annotations: Annotations = ()
    doc: str = ""
    at: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class ThriftStruct:
    """kind is struct, union or exception: one thing on the wire."""

    kind: str
    name: str
    fields: tuple[ThriftField, ...]
    xsd_all: bool = False
    annotations: Annotations = ()
    doc: str = ""
    at: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class ThriftService:
    """A set of methods; extends names the service whose methods it has as well."""

    name: str
    functions: tuple[ThriftFunction, ...]
    extends: str = ""
    annotations: Annotations = ()
    doc: str = ""
    at: int = field(default=0, compare=False)


Definition = Typedef | Const | ThriftEnum | Senum | ThriftStruct | ThriftService

# --- the document ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Include:
    """Another document whose names can be used; prefix is what stands before the dot."""

    path: str
    doc: str = ""
    at: int = field(default=0, compare=False)

    @property
    def prefix(self) -> str:
        """The file name without folders and without its last suffix."""
        file = self.path.rpartition("/")[2]
        return file.rpartition(".")[0] or file


@dataclass(frozen=True, slots=True)
class CppInclude:
    """A header for generated C++."""

    path: str
    doc: str = ""


@dataclass(frozen=True, slots=True)
class ThriftNamespace:
    """Where generated code of one language goes; scope `*` means every language."""

    scope: str
    name: str
    annotations: Annotations = ()
    doc: str = ""


Header = Include | CppInclude | ThriftNamespace


@dataclass(frozen=True, slots=True)
class ThriftDocument:
    """One file."""

    headers: tuple[Header, ...]
    definitions: tuple[Definition, ...]


# --- linked schemas ---------------------------------------------------------------------------------------------------
# A linked schema: a document, those it includes, and what its names mean.

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
        owner_type = self.find_type(owner)
        resolved = owner_type and owner_type[0].resolve_type(TypeName(owner_type[1].name))
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
            target = unit.find_type(kind.name)
            if target is None:
                return ResolvedType(unit, UUID)
            unit, definition = target
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
    """Return whether data must have the field. Members of a union are always optional."""
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
        struct = self.unit.types.get(wanted)
        if not isinstance(struct, ThriftStruct):
            raise InvalidRequest(f"the schema has no struct {wanted!r}" if wanted else "the schema has no struct")
        return struct
