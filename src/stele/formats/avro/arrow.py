"""The Arrow schema of a table of Avro data: the common type system towards tables and Spark.

    int, long, float, double, boolean, string, bytes     int32, int64, float32, float64, bool, string, binary
    fixed(n), duration                                   fixed-size binary
    enum, uuid                                           string
    decimal(p,s)                                         decimal128 up to 38 digits, decimal256 up to 76
    date, time-millis, time-micros                       date32, time32[ms], time64[us]
    timestamp-*, local-timestamp-*                       timestamp in the same unit, with UTC or without zone
    array, map, record                                   list, map, struct
    ["null", T]                                          nullable T
    any other union                                      struct of member0, member1 … (null not counted), as Spark does;
                                                         [int, long] is int64 and [float, double] float64

A record becomes columns, anything else one column `value`. Docs become field metadata `doc`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from stele.errors import Invalid, NotInstalled
from stele.formats.avro.model import (
    AvroArray,
    AvroEnum,
    AvroField,
    AvroFixed,
    AvroMap,
    AvroPrimitive,
    AvroRecord,
    AvroSchema,
    AvroType,
    AvroUnion,
    LogicalType,
    describe_type,
)

try:
    import pyarrow as pa
except ImportError as error:
    raise NotInstalled("pyarrow", "spark") from error

if TYPE_CHECKING:
    from collections.abc import Iterable

MAX_COLUMNS: Final = 10_000
"""Maximum number of fields at all depths. A type that is used twice at each of n levels has 2**n fields."""

MAX_DEPTH: Final = 100
"""Maximum nesting of types. Table engines fail at far smaller depths."""

_WIDER: Final[dict[frozenset[str], pa.DataType]] = {
    frozenset({"int", "long"}): pa.int64(),
    frozenset({"float", "double"}): pa.float64(),
}
_PLAIN: Final[dict[str, pa.DataType]] = {
    "null": pa.null(),
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "bytes": pa.binary(),
    "string": pa.string(),
}
_LOGICAL: Final[dict[str, pa.DataType]] = {
    "date": pa.date32(),
    "time-millis": pa.time32("ms"),
    "time-micros": pa.time64("us"),
    "timestamp-millis": pa.timestamp("ms", tz="UTC"),
    "timestamp-micros": pa.timestamp("us", tz="UTC"),
    "timestamp-nanos": pa.timestamp("ns", tz="UTC"),
    "local-timestamp-millis": pa.timestamp("ms"),
    "local-timestamp-micros": pa.timestamp("us"),
    "local-timestamp-nanos": pa.timestamp("ns"),
    "uuid": pa.string(),
}


def arrow_schema(schema: AvroSchema) -> pa.Schema:
    """Return the Arrow schema of a table of the data.

    Raises `Invalid` for recursive types, decimals beyond 76 digits, and schemas beyond the limits.
    """
    mapper = _Mapper()
    root = schema.root
    if isinstance(root, AvroRecord):
        struct = mapper.map_record(root, "")
        return pa.schema([struct.field(index) for index in range(struct.num_fields)], metadata=_doc_metadata(root.doc))
    kind, nullable = mapper.map_type(root, "value")
    return pa.schema([pa.field("value", kind, nullable=nullable)])


class _Mapper:
    def __init__(self) -> None:
        self.open: list[AvroRecord] = []
        self.columns = 0
        self.depth = 0

    def map_record(self, node: AvroRecord, path: str) -> pa.StructType:
        """Return the Arrow struct of a record. path is its position, for error messages."""
        if node in self.open:
            raise Invalid(f"{path}: {node.name} contains itself, and a table cannot be nested infinitely")
        self.open.append(node)
        fields = [self._map_field(field, f"{path}.{field.name}" if path else field.name) for field in node.fields]
        self.open.pop()
        return pa.struct(fields)

    def _map_field(self, field: AvroField, path: str) -> pa.Field[pa.DataType]:
        self.columns += 1
        if self.columns > MAX_COLUMNS:
            raise Invalid(f"the table would have more than {MAX_COLUMNS} fields")
        kind, nullable = self.map_type(field.type, path)
        return pa.field(field.name, kind, nullable=nullable, metadata=_doc_metadata(field.doc))

    def map_type(self, node: AvroType, path: str) -> tuple[pa.DataType, bool]:
        """Return the Arrow type, and whether null is among the values."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise Invalid(f"{path}: a table cannot be nested deeper than {MAX_DEPTH} levels")
        column_type = self._map_type(node, path)
        self.depth -= 1
        return column_type

    def _map_type(self, node: AvroType, path: str) -> tuple[pa.DataType, bool]:
        match node:
            case AvroRecord():
                return self.map_record(node, path), False
            case AvroArray():
                items, nullable = self.map_type(node.items, f"{path}[]")
                return pa.list_(pa.field("item", items, nullable=nullable)), False
            case AvroMap():
                values, nullable = self.map_type(node.values, f"{path}{{}}")
                value = pa.field("value", values, nullable=nullable)
                return pa.map_(pa.string(), value), False  # type: ignore[call-overload]  # the stubs know types only
            case AvroUnion():
                return self._map_union(node, path)
            case AvroEnum():
                return pa.string(), False
            case AvroFixed() | AvroPrimitive():
                return _map_scalar(node, node.logical, path), node.kind == "null"

    def _map_union(self, node: AvroUnion, path: str) -> tuple[pa.DataType, bool]:
        others = [branch for branch in node.branches if branch.kind != "null"]
        nullable = len(others) < len(node.branches)
        if not node.branches:
            raise Invalid(f"{path}: the type is an empty union: no value fits it, so it has no column")
        if not others:
            return pa.null(), True
        if len(others) == 1:
            return self.map_type(others[0], path)[0], nullable
        wider = _WIDER.get(frozenset(_plain_kinds(others)))
        if wider is not None:
            return wider, nullable
        self.columns += len(others)
        members = [self.map_type(branch, f"{path}.member{index}")[0] for index, branch in enumerate(others)]
        return pa.struct([pa.field(f"member{index}", kind) for index, kind in enumerate(members)]), nullable


def _doc_metadata(doc: str | None) -> dict[bytes | str, bytes | str] | None:
    return {"doc": doc} if doc else None


def _plain_kinds(branches: Iterable[AvroType]) -> Iterable[str]:
    """Return the kinds of the branches. A logical type counts as a kind of its own."""
    return (str(branch.logical) if branch.logical else branch.kind for branch in branches)


def _map_scalar(node: AvroPrimitive | AvroFixed, logical: LogicalType | None, path: str) -> pa.DataType:
    if logical is not None and logical.name == "decimal":
        if logical.precision > 76:
            raise Invalid(f"{path}: {describe_type(node)} has {logical.precision} digits; tables hold 76 at most")
        make = pa.decimal128 if logical.precision <= 38 else pa.decimal256
        return make(logical.precision, logical.scale)
    if logical is not None and logical.name in _LOGICAL:
        return _LOGICAL[logical.name]
    return pa.binary(node.size) if isinstance(node, AvroFixed) else _PLAIN[node.kind]
