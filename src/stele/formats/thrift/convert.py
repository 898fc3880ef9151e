"""From a linked schema to the neutral model.

| Thrift | model |
|---|---|
| bool, byte, i8 to i64, double, string, slist, binary, uuid | the same, in the same width |
| enum, senum | an enumeration with its numbers; a string |
| struct, exception | a record |
| union | a record whose fields are one group of which a datum has at most one |
| list, set, map | an array, an array of unique items, a map (a list of entries where no scalar is the key) |
| typedef | what it stands for |
| required | required, not nullable |
| optional, or neither word | nullable, may be left out, null by default |
| … with a default | not nullable, may be left out, with that default |

Names of types have the namespace of the document before them: that of scope `*`, else that of Java, else none.
"""

from __future__ import annotations

import base64
from collections import deque
from typing import Any, Final

from stele.errors import CannotConvert, TooLarge
from stele.formats.conversion.model import (
    ABSENT,
    Array,
    Enumeration,
    EnumSymbol,
    Loss,
    Map,
    Model,
    NamedType,
    RecordField,
    RecordType,
    Scalar,
    ScalarKind,
    Type,
    TypeReference,
)
from stele.formats.thrift.schema import Resolved, ThriftSchema, Unit, required
from stele.formats.thrift.syntax import Annotations, Container, EnumType, Namespace, Ref, Senum, Struct, Typedef
from stele.formats.thrift.syntax import Field as Declaration
from stele.formats.thrift.syntax import Type as Written
from stele.formats.thrift.values import json_text, parts

MAX_DEPTH: Final = 64
"""Containers inside each other in one type."""

MAX_DEFAULT: Final = 10_000
"""Values in one default; constants that use each other can stand for more than anyone can write."""

_LONGEST_PATH: Final = 500
_SCALARS: Final = {
    "bool": ScalarKind.BOOLEAN,
    "i8": ScalarKind.INT8,
    "i16": ScalarKind.INT16,
    "i32": ScalarKind.INT32,
    "i64": ScalarKind.INT64,
    "double": ScalarKind.FLOAT64,
    "string": ScalarKind.STRING,
    "binary": ScalarKind.BYTES,
    "uuid": ScalarKind.UUID,
}


def to_model(schema: ThriftSchema, struct: str = "") -> tuple[Model, list[Loss]]:
    """The model of a struct, union or exception of the document ('' is the one that `type_name` names).

    Raises `InvalidRequest` when there is none of that name, `CannotConvert` when there is none at all, `TooLarge` past
    the limits.
    """
    if not (struct or schema.type_name):
        raise CannotConvert("the schema declares no struct, so it has no data")
    return _Reader(schema).model(Resolved(schema.unit, schema.struct(struct)))


class _Reader:
    """Turns structs into records, each once, breadth first: no path through structs makes it recurse."""

    def __init__(self, schema: ThriftSchema) -> None:
        self._schema = schema
        self._losses: list[Loss] = []
        self._types: dict[str, NamedType] = {}
        self._names: dict[int, str] = {}
        self._taken: set[str] = set()
        self._todo: deque[tuple[Resolved, str]] = deque()
        self._typedefs: set[str] = set()

    def model(self, root: Resolved) -> tuple[Model, list[Loss]]:
        name = self._meet(root, "")
        while self._todo:
            kind, path = self._todo.popleft()
            record = self._record(kind, path)
            self._types[record.name] = record
        self._document()
        return Model(TypeReference(name), self._types), self._losses

    def _lose(self, path: str, what: str, why: str, *, data: bool = False) -> None:
        self._losses.append(Loss(path, what, why, data))

    # --- names ------------------------------------------------------------------------------------------------------

    def _meet(self, kind: Resolved, path: str) -> str:
        """The full name of a struct or enum; what is met for the first time is put down to be read."""
        node = kind.node
        assert isinstance(node, Struct | EnumType)
        known = self._names.get(id(node))
        if known is not None:
            return known
        name = self._free(_full_name(kind.unit, node.name), kind.unit)
        self._names[id(node)] = name
        if isinstance(node, EnumType):
            self._types[name] = self._enum(node, name, path)
        else:
            start = path if len(path) <= _LONGEST_PATH else node.name
            self._todo.append((kind, f"{start}." if start else ""))
        return name

    def _free(self, wanted: str, unit: Unit) -> str:
        """The name, unless a type of another document has it."""
        made, count = wanted, 1
        if made in self._taken and unit.name:
            made = f"{unit.name.rpartition('/')[2].partition('.')[0]}.{wanted}"
        while made in self._taken:
            count += 1
            made = f"{wanted}_{count}"
        self._taken.add(made)
        return made

    # --- declarations -----------------------------------------------------------------------------------------------

    def _record(self, kind: Resolved, path: str) -> RecordType:
        struct = kind.node
        assert isinstance(struct, Struct)
        name = self._names[id(struct)]
        at = path.rstrip(".")
        self._annotations(struct.annotations, at, f"{struct.kind} {struct.name}")
        if struct.kind == "exception":
            self._lose(at, "EXCEPTION", f"{struct.name} is a record like any other; that it is thrown is not said.")
        fields = tuple(self._field(kind.unit, struct, field, path + field.name, name) for field in struct.fields)
        group = {"value": tuple(field.name for field in fields)} if struct.kind == "union" and fields else {}
        return RecordType(name, fields, struct.doc, at_most_one=group)

    def _field(self, unit: Unit, struct: Struct, field: Declaration, path: str, owner: str) -> RecordField:
        if field.boxed or field.xsd_optional or field.xsd_nillable or field.xsd_attrs is not None:
            self._lose(path, "ANNOTATION", "`&` and the words of the XML generator are left out.")
        self._annotations(field.annotations, path, f"field {field.name}")
        kind = self._type(unit, field.type, path, f"{owner}.{field.name[:1].upper()}{field.name[1:]}", 0)
        default = self._default(unit, field, path)
        is_required = required(struct, field)
        member = struct.kind == "union"
        if member and default is not ABSENT:
            self._lose(
                path, "DEFAULT", "A default of a union's member stands for nothing: only what is set is written."
            )
            default = ABSENT
        nullable = not is_required and default is ABSENT
        return RecordField(
            field.name,
            kind,
            nullable=nullable,
            required=is_required,
            default=None if nullable else default,
            doc=field.doc,
            number=field.id,
            constraints={"uniqueItems": True} if unit.resolve(field.type).kind == "set" else {},
        )

    def _default(self, unit: Unit, field: Declaration, path: str) -> Any:
        if field.default is None:
            return ABSENT
        if parts(unit, field.default) > MAX_DEFAULT:
            self._lose(path, "DEFAULT", f"The default has more than {MAX_DEFAULT} values and is left out.")
            return ABSENT
        kind = unit.resolve(field.type)
        value = _json(kind, json_text(unit, field.default))
        if kind.kind == "map" and not _is_key(kind.inner(0)) and value:
            self._lose(path, "DEFAULT", "A default with keys that are no scalars is left out.")
            return ABSENT
        return [] if kind.kind == "map" and not _is_key(kind.inner(0)) else value

    def _enum(self, enum: EnumType, name: str, path: str) -> Enumeration:
        self._annotations(enum.annotations, path, f"enum {enum.name}")
        for value in enum.values:
            self._annotations(value.annotations, path, f"value {value.name}")
        symbols = tuple(EnumSymbol(value.name, value.number, value.doc) for value in enum.values)
        why = f"A number of {enum.name} that has no name here is a value on the wire, and has no place in the model."
        self._lose(path, "OPEN_ENUM", why, data=True)
        return Enumeration(name, symbols, doc=enum.doc)

    # --- types ------------------------------------------------------------------------------------------------------

    def _type(self, unit: Unit, written: Written, path: str, owner: str, depth: int) -> Type:
        """The type of a field or inside a container; owner names the record of entries that a map may need."""
        if depth > MAX_DEPTH:
            raise TooLarge(f"{path[:200]}: containers are nested deeper than {MAX_DEPTH} levels")
        self._aliases(unit, written, path)
        kind = unit.resolve(written)
        node = kind.node
        if isinstance(node, Struct | EnumType):
            return TypeReference(self._meet(kind, path))
        self._annotations(node.annotations, path, f"type {node.kind if isinstance(node, Container) else node.name}")
        if not isinstance(node, Container):
            return Scalar(_SCALARS[node.name])
        if node.kind == "map":
            return self._map(kind.unit, node, path, owner, depth)
        if node.kind == "set" and depth:
            self._lose(path, "CONSTRAINT", "Items of a set inside another container may repeat.")
        return Array(self._type(kind.unit, node.items[0], f"{path}[]", f"{owner}Item", depth + 1))

    def _map(self, unit: Unit, node: Container, path: str, owner: str, depth: int) -> Type:
        """A map; one whose keys are no scalars is a list of entries."""
        value = self._type(unit, node.items[1], f"{path}{{}}", f"{owner}Value", depth + 1)
        key = self._type(unit, node.items[0], f"{path}{{}}.key", f"{owner}Key", depth + 1)
        if isinstance(key, Scalar):
            return Map(value, key)
        if _is_key(unit.resolve(node.items[0])):
            self._lose(f"{path}{{}}.key", "ENUM", "Any text is taken as a key where a value of the enum was demanded.")
            return Map(value)
        self._lose(path, "MAP", "The keys are no scalars: the map is a list of entries, in which a key may repeat.")
        name = self._free(f"{owner}Entry", self._schema.unit)
        self._types[name] = RecordType(name, (RecordField("key", key, number=1), RecordField("value", value, number=2)))
        return Array(TypeReference(name))

    def _aliases(self, unit: Unit, written: Written, path: str) -> None:
        """Say which typedefs a type goes through, each once."""
        while isinstance(written, Ref):
            found = unit.type(written.name)
            if found is None:
                return
            unit, definition = found
            if isinstance(definition, Senum):
                self._lose(path, "ENUM", f"The texts of {definition.name} are not listed: any string is taken.")
            if not isinstance(definition, Typedef):
                return
            if definition.name not in self._typedefs:
                self._typedefs.add(definition.name)
                self._lose(path, "TYPEDEF", f"What {definition.name!r} stands for is said in its place.")
            self._annotations(definition.annotations, path, f"typedef {definition.name}")
            written = definition.type

    def _annotations(self, annotations: Annotations, path: str, owner: str) -> None:
        if annotations:
            names = ", ".join(dict.fromkeys(each.key for each in annotations))
            self._lose(path, "ANNOTATION", f"Annotations of the {owner} are left out: {names}.")

    def _document(self) -> None:
        """What belongs to no struct: services, constants, namespaces, and types that are not reached."""
        unit = self._schema.unit
        for service in unit.services.values():
            self._lose("", "SERVICE", f"The service {service.name} and its functions are no part of any data.")
        if unit.constants:
            few = ", ".join(list(unit.constants)[:5])
            self._lose("", "CONSTANT", f"Constants are left out, except where a default names them: {few}.")
        scopes = [each.scope for each in unit.document.headers if isinstance(each, Namespace)]
        if len(scopes) > 1:
            self._lose("", "NAMESPACE", f"One namespace is kept of those for {', '.join(scopes[:8])}.")
        for definition in unit.types.values():
            if isinstance(definition, Struct | EnumType) and id(definition) not in self._names:
                self._lose("", "TYPE", f"{definition.name} is not used by the chosen struct.")


def _full_name(unit: Unit, name: str) -> str:
    spaces = {each.scope: each.name for each in unit.document.headers if isinstance(each, Namespace)}
    space = spaces.get("*") or spaces.get("java") or ""
    return f"{space}.{name}" if space else name


def _is_key(kind: Resolved) -> bool:
    """Whether a type can be the key of a map in the model."""
    return kind.kind in _SCALARS or kind.kind == "enum"


def _json(kind: Resolved, value: Any) -> Any:
    """A value of a type as JSON: symbols of enums, bytes as base64, entries of maps without scalar keys as a list."""
    node = kind.node
    if isinstance(node, EnumType) and not isinstance(value, str):
        return next((each.name for each in node.values if each.number == value), value)
    if isinstance(node, Struct) and isinstance(value, dict):
        types = {field.name: field.type for field in node.fields}
        return {name: _json(kind.unit.resolve(types[name]), item) for name, item in value.items() if name in types}
    match kind.kind:
        case "list" | "set":
            return [_json(kind.inner(0), item) for item in value] if isinstance(value, list) else []
        case "map":
            if not isinstance(value, dict):
                return {}
            return {key: _json(kind.inner(1), item) for key, item in value.items()}
        case "binary":
            return base64.b64encode(str(value).encode()).decode()
        case "bool":
            return bool(value)
        case "double":
            return float(value) if isinstance(value, int | float) else value
    return value
