"""What a Thrift document says, statement by statement: immutable nodes, nothing resolved.

Nodes compare by meaning: the place in the text (`at`, an offset in characters) does not take part.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Final


class Requiredness(Enum):
    """How a field is marked; DEFAULT is no word at all: written when set, never demanded."""

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
    """A named value; it is no part of any data."""

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
