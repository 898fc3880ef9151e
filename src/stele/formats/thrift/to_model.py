"""Converts a linked schema to the neutral model.

| Thrift | model |
|---|---|
| bool, byte, i8 to i64, double, string, slist, binary, uuid | the same, in the same width |
| enum, senum | an enumeration with its numbers; a string |
| struct, exception | a record |
| union | a record whose fields are one group of which a datum has at most one |
| list, set, map | an array, an array of unique items, a map (a list of entries if the key is not a scalar) |
| typedef | its target type |
| required | required, not nullable |
| optional, or neither word | nullable, may be left out, null by default |
| … with a default | not nullable, may be left out, with that default |

Names of types begin with the namespace of the document: that of scope `*`, else that of Java, else none.
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
from stele.formats.thrift.constants import count_parts, to_json_value
from stele.formats.thrift.schema import (
    Annotations,
    ContainerType,
    ResolvedType,
    Senum,
    ThriftEnum,
    ThriftField,
    ThriftNamespace,
    ThriftSchema,
    ThriftStruct,
    ThriftType,
    ThriftUnit,
    Typedef,
    TypeName,
    is_required,
)

MAX_DEPTH: Final = 64
"""Most levels of nested containers in one type."""

MAX_DEFAULT: Final = 10_000
"""Most values in one default. Nested constants can expand to very large values."""

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
    """Return the model of a struct, union or exception of the document ('' is the one that `type_name` names).

    Raises `InvalidRequest` when there is none of that name, `CannotConvert` when there is none at all, `TooLarge` past
    the limits.
    """
    if not (struct or schema.type_name):
        raise CannotConvert("the schema declares no struct, so it has no data")
    return _SchemaReader(schema).read_model(ResolvedType(schema.unit, schema.find_struct(struct)))


class _SchemaReader:
    """Turns structs into records, each once, breadth first and without recursion."""

    def __init__(self, schema: ThriftSchema) -> None:
        self._schema = schema
        self._losses: list[Loss] = []
        self._types: dict[str, NamedType] = {}
        self._names: dict[int, str] = {}
        self._taken: set[str] = set()
        self._todo: deque[tuple[ResolvedType, str]] = deque()
        self._typedefs: set[str] = set()

    def read_model(self, root: ResolvedType) -> tuple[Model, list[Loss]]:
        name = self._refer_to_named_type(root, "")
        while self._todo:
            kind, path = self._todo.popleft()
            record = self._read_record(kind, path)
            self._types[record.name] = record
        self._add_document_losses()
        return Model(TypeReference(name), self._types), self._losses

    def _add_loss(self, path: str, what: str, why: str, *, data: bool = False) -> None:
        self._losses.append(Loss(path, what, why, data))

    # --- names ------------------------------------------------------------------------------------------------------

    def _refer_to_named_type(self, kind: ResolvedType, path: str) -> str:
        """Return the full name of a struct or enum. At its first use, queue it for conversion."""
        node = kind.node
        assert isinstance(node, ThriftStruct | ThriftEnum)
        known = self._names.get(id(node))
        if known is not None:
            return known
        name = self._claim_name(_full_name(kind.unit, node.name), kind.unit)
        self._names[id(node)] = name
        if isinstance(node, ThriftEnum):
            self._types[name] = self._read_enum(node, name, path)
        else:
            start = path if len(path) <= _LONGEST_PATH else node.name
            self._todo.append((kind, f"{start}." if start else ""))
        return name

    def _claim_name(self, wanted: str, unit: ThriftUnit) -> str:
        """Return the name, with a number appended if a type of another document has it."""
        name, count = wanted, 1
        if name in self._taken and unit.name:
            name = f"{unit.name.rpartition('/')[2].partition('.')[0]}.{wanted}"
        while name in self._taken:
            count += 1
            name = f"{wanted}_{count}"
        self._taken.add(name)
        return name

    # --- declarations -----------------------------------------------------------------------------------------------

    def _read_record(self, kind: ResolvedType, path: str) -> RecordType:
        struct = kind.node
        assert isinstance(struct, ThriftStruct)
        name = self._names[id(struct)]
        at = path.rstrip(".")
        self._add_annotation_losses(struct.annotations, at, f"{struct.kind} {struct.name}")
        if struct.kind == "exception":
            self._add_loss(at, "EXCEPTION", f"{struct.name} is a record like any other; that it is thrown is not said.")
        fields = tuple(self._read_field(kind.unit, struct, field, path + field.name, name) for field in struct.fields)
        group = {"value": tuple(field.name for field in fields)} if struct.kind == "union" and fields else {}
        return RecordType(name, fields, struct.doc, at_most_one=group)

    def _read_field(
        self, unit: ThriftUnit, struct: ThriftStruct, field: ThriftField, path: str, owner: str
    ) -> RecordField:
        if field.boxed or field.xsd_optional or field.xsd_nillable or field.xsd_attrs is not None:
            self._add_loss(path, "ANNOTATION", "`&` and the words of the XML generator are left out.")
        self._add_annotation_losses(field.annotations, path, f"field {field.name}")
        kind = self._read_type(unit, field.type, path, f"{owner}.{field.name[:1].upper()}{field.name[1:]}", 0)
        default = self._read_default(unit, field, path)
        required = is_required(struct, field)
        member = struct.kind == "union"
        if member and default is not ABSENT:
            self._add_loss(
                path, "DEFAULT", "A default of a union's member has no effect: only the member that is set is written."
            )
            default = ABSENT
        nullable = not required and default is ABSENT
        return RecordField(
            field.name,
            kind,
            nullable=nullable,
            required=required,
            default=None if nullable else default,
            doc=field.doc,
            number=field.id,
            constraints={"uniqueItems": True} if unit.resolve_type(field.type).kind == "set" else {},
        )

    def _read_default(self, unit: ThriftUnit, field: ThriftField, path: str) -> Any:
        if field.default is None:
            return ABSENT
        if count_parts(unit, field.default) > MAX_DEFAULT:
            self._add_loss(path, "DEFAULT", f"The default has more than {MAX_DEFAULT} values and is left out.")
            return ABSENT
        kind = unit.resolve_type(field.type)
        value = _to_json_value(kind, to_json_value(unit, field.default))
        if kind.kind == "map" and not _is_key(kind.inner_type(0)) and value:
            self._add_loss(path, "DEFAULT", "A default with keys that are no scalars is left out.")
            return ABSENT
        return [] if kind.kind == "map" and not _is_key(kind.inner_type(0)) else value

    def _read_enum(self, enum: ThriftEnum, name: str, path: str) -> Enumeration:
        self._add_annotation_losses(enum.annotations, path, f"enum {enum.name}")
        for value in enum.values:
            self._add_annotation_losses(value.annotations, path, f"value {value.name}")
        symbols = tuple(EnumSymbol(value.name, value.number, value.doc) for value in enum.values)
        why = f"A number of {enum.name} that has no name here is a value on the wire, and has no place in the model."
        self._add_loss(path, "OPEN_ENUM", why, data=True)
        return Enumeration(name, symbols, doc=enum.doc)

    # --- types ------------------------------------------------------------------------------------------------------

    def _read_type(self, unit: ThriftUnit, written: ThriftType, path: str, owner: str, depth: int) -> Type:
        """Return the type of a field or of a container's items. `owner` names the entry record that a map may need."""
        if depth > MAX_DEPTH:
            raise TooLarge(f"{path[:200]}: containers are nested deeper than {MAX_DEPTH} levels")
        self._add_alias_losses(unit, written, path)
        kind = unit.resolve_type(written)
        node = kind.node
        if isinstance(node, ThriftStruct | ThriftEnum):
            return TypeReference(self._refer_to_named_type(kind, path))
        self._add_annotation_losses(
            node.annotations, path, f"type {node.kind if isinstance(node, ContainerType) else node.name}"
        )
        if not isinstance(node, ContainerType):
            return Scalar(_SCALARS[node.name])
        if node.kind == "map":
            return self._read_map(kind.unit, node, path, owner, depth)
        if node.kind == "set" and depth:
            self._add_loss(path, "CONSTRAINT", "Items of a set inside another container may repeat.")
        return Array(self._read_type(kind.unit, node.items[0], f"{path}[]", f"{owner}Item", depth + 1))

    def _read_map(self, unit: ThriftUnit, node: ContainerType, path: str, owner: str, depth: int) -> Type:
        """Return a map, or a list of entries if the keys are not scalars."""
        value = self._read_type(unit, node.items[1], f"{path}{{}}", f"{owner}Value", depth + 1)
        key = self._read_type(unit, node.items[0], f"{path}{{}}.key", f"{owner}Key", depth + 1)
        if isinstance(key, Scalar):
            return Map(value, key)
        if _is_key(unit.resolve_type(node.items[0])):
            self._add_loss(
                f"{path}{{}}.key", "ENUM", "Any text is taken as a key where a value of the enum was demanded."
            )
            return Map(value)
        self._add_loss(path, "MAP", "The keys are no scalars: the map is a list of entries, in which a key may repeat.")
        name = self._claim_name(f"{owner}Entry", self._schema.unit)
        self._types[name] = RecordType(name, (RecordField("key", key, number=1), RecordField("value", value, number=2)))
        return Array(TypeReference(name))

    def _add_alias_losses(self, unit: ThriftUnit, written: ThriftType, path: str) -> None:
        """Report each typedef that a type refers to, once."""
        while isinstance(written, TypeName):
            target = unit.find_type(written.name)
            if target is None:
                return
            unit, definition = target
            if isinstance(definition, Senum):
                self._add_loss(path, "ENUM", f"The texts of {definition.name} are not listed: any string is taken.")
            if not isinstance(definition, Typedef):
                return
            if definition.name not in self._typedefs:
                self._typedefs.add(definition.name)
                self._add_loss(path, "TYPEDEF", f"{definition.name!r} is replaced by its type.")
            self._add_annotation_losses(definition.annotations, path, f"typedef {definition.name}")
            written = definition.type

    def _add_annotation_losses(self, annotations: Annotations, path: str, owner: str) -> None:
        if annotations:
            names = ", ".join(dict.fromkeys(each.key for each in annotations))
            self._add_loss(path, "ANNOTATION", f"Annotations of the {owner} are left out: {names}.")

    def _add_document_losses(self) -> None:
        """Report what belongs to no struct: services, constants, namespaces, and unreachable types."""
        unit = self._schema.unit
        for service in unit.services.values():
            self._add_loss("", "SERVICE", f"The service {service.name} and its functions are no part of any data.")
        if unit.constants:
            few = ", ".join(list(unit.constants)[:5])
            self._add_loss("", "CONSTANT", f"Constants are left out, except where a default names them: {few}.")
        scopes = [each.scope for each in unit.document.headers if isinstance(each, ThriftNamespace)]
        if len(scopes) > 1:
            self._add_loss("", "NAMESPACE", f"One namespace is kept of those for {', '.join(scopes[:8])}.")
        for definition in unit.types.values():
            if isinstance(definition, ThriftStruct | ThriftEnum) and id(definition) not in self._names:
                self._add_loss("", "TYPE", f"{definition.name} is not used by the chosen struct.")


def _full_name(unit: ThriftUnit, name: str) -> str:
    spaces = {each.scope: each.name for each in unit.document.headers if isinstance(each, ThriftNamespace)}
    space = spaces.get("*") or spaces.get("java") or ""
    return f"{space}.{name}" if space else name


def _is_key(kind: ResolvedType) -> bool:
    """Return whether a type can be the key of a map in the model."""
    return kind.kind in _SCALARS or kind.kind == "enum"


def _to_json_value(kind: ResolvedType, value: Any) -> Any:
    """Return a value as JSON: enums as symbols, bytes as base64, maps without scalar keys as a list of entries."""
    node = kind.node
    if isinstance(node, ThriftEnum) and not isinstance(value, str):
        return next((each.name for each in node.values if each.number == value), value)
    if isinstance(node, ThriftStruct) and isinstance(value, dict):
        types = {field.name: field.type for field in node.fields}
        return {
            name: _to_json_value(kind.unit.resolve_type(types[name]), item)
            for name, item in value.items()
            if name in types
        }
    match kind.kind:
        case "list" | "set":
            return [_to_json_value(kind.inner_type(0), item) for item in value] if isinstance(value, list) else []
        case "map":
            if not isinstance(value, dict):
                return {}
            return {key: _to_json_value(kind.inner_type(1), item) for key, item in value.items()}
        case "binary":
            return base64.b64encode(str(value).encode()).decode()
        case "bool":
            return bool(value)
        case "double":
            return float(value) if isinstance(value, int | float) else value
    return value
