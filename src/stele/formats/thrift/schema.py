"""The nodes of a Thrift document, and the linked schema: a document, its includes, and the targets of its names.

A document consists of immutable nodes, one per statement, with unresolved names. Nodes are equal if their content is
equal: the position in the text (`at`, an offset in characters) is not compared.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Final, NamedTuple

from stele.errors import InvalidRequest


class Requiredness(Enum):
    """How a field is marked. DEFAULT is a field without a keyword: it is written when it is set, and never required."""

    REQUIRED = "required"
    OPTIONAL = "optional"
    DEFAULT = ""


BASE_TYPES: Final = frozenset({"bool", "byte", "i8", "i16", "i32", "i64", "double", "string", "binary", "slist"})
"""Keywords of built-in types. `uuid` is one too unless the document defines a type of that name."""


@dataclass(frozen=True, slots=True)
class Annotation:
    """`key = "value"` in parentheses; value is None where only the key is written."""

    key: str
    value: str | None = None


Annotations = tuple[Annotation, ...]

# --- types ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class BaseType:
    """A built-in type, by its keyword. `byte` is kept as written."""

    name: str
    annotations: Annotations = ()


@dataclass(frozen=True, slots=True)
class TypeName:
    """Reference to a type by name, `Order` or `shared.Order`."""

    name: str
    at: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class ContainerType:
    """list<x>, set<x> or map<k, v>. `kind` is the keyword, `items` the types inside."""

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
        """Compare by type and value: True differs from 1, and 1 from 1.0."""
        return isinstance(other, LiteralValue) and type(self.value) is type(other.value) and self.value == other.value

    def __hash__(self) -> int:
        return hash((type(self.value), self.value))


@dataclass(frozen=True, slots=True)
class ValueName:
    """Reference to a constant or an enum value by name, `LIMIT`, `Color.RED` or `shared.Color.RED`."""

    name: str
    at: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class ListValue:
    """A list of values, `[1, 2]`."""

    items: tuple[Value, ...]
    at: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class MapValue:
    """Key-value pairs, `{"a": 1}`, for maps and for structs."""

    items: tuple[tuple[Value, Value], ...]
    at: int = field(default=0, compare=False)


Value = LiteralValue | ValueName | ListValue | MapValue

# --- members --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ThriftField:
    """A member of a struct, an argument or a thrown exception.

    id is the number on the wire; implicit is True if the source has none, so that it was counted down from -1. boxed is
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
    """A named number. `implicit` is True if the number was counted up from the value before."""

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
    """A named value. It does not occur in data."""

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
    """The enum of strings of compilers before 0.10: a string on the wire."""

    name: str
    values: tuple[str, ...]
    annotations: Annotations = ()
    doc: str = ""
    at: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class ThriftStruct:
    """A struct, union or exception, by `kind`. All three are equal on the wire."""

    kind: str
    name: str
    fields: tuple[ThriftField, ...]
    xsd_all: bool = False
    annotations: Annotations = ()
    doc: str = ""
    at: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class ThriftService:
    """A set of methods. `extends` names the service whose methods it inherits."""

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
    """Another document whose names can be used with a prefix before the dot."""

    path: str
    doc: str = ""
    at: int = field(default=0, compare=False)

    @property
    def prefix(self) -> str:
        """File name without folders and without its last suffix."""
        file = self.path.rpartition("/")[2]
        return file.rpartition(".")[0] or file


@dataclass(frozen=True, slots=True)
class CppInclude:
    """A header for generated C++."""

    path: str
    doc: str = ""


@dataclass(frozen=True, slots=True)
class ThriftNamespace:
    """Target of the generated code of one language. Scope `*` means every language."""

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
# A linked schema: a document, its includes, and the targets of its names.

STRING: Final = BaseType("string")
UUID: Final = BaseType("uuid")
_ALIASES: Final = {"byte": BaseType("i8"), "slist": STRING}


class ThriftUnit:
    """One document with its tables of names. Two units are equal only if they are the same object.

    name is the path that includes use, '' for the schema itself; includes holds the included units by prefix.
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
        """Return the definition of a type name in this scope, and its unit; None for an unknown name."""
        for unit, rest in self._lookup_places(name):
            if rest in unit.types:
                return unit, unit.types[rest]
        return None

    def find_service(self, name: str) -> tuple[ThriftUnit, ThriftService] | None:
        """Return the definition of a service name in this scope, and its unit; None for an unknown name."""
        for unit, rest in self._lookup_places(name):
            if rest in unit.services:
                return unit, unit.services[rest]
        return None

    def find_value(self, name: str) -> tuple[ThriftUnit, Const] | tuple[ThriftUnit, ThriftEnum, EnumValue] | None:
        """Return the definition of the name of a constant or enum value, and its unit; None for an unknown name."""
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
        """Return the type with typedefs resolved. `byte` is i8, `slist` and senums are string.

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
    """A type with typedefs resolved, and the unit in which the names inside it are looked up."""

    unit: ThriftUnit
    node: BaseType | ContainerType | ThriftEnum | ThriftStruct

    @property
    def kind(self) -> str:
        """Keyword of a built-in type or container, `enum` or `struct` (unions and exceptions too)."""
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
        """Name of the last struct or union, because dependencies come first; else of the last exception, or ''."""
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
