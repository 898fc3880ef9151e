"""Converts an Avro schema to the neutral model.

    int, long                      int32, int64
    decimal, uuid, date, time-*, timestamp-*, local-timestamp-*, duration      the types of those names
    ["null", T], [T, "null"]       T, nullable; other unions of T beside null likewise
    union of several               a union whose options have the branch's name

What the model cannot express is reported as a loss: sort orders, unknown attributes, names of fixed types that hold a
decimal, uuid or duration. The attributes that `from_model` writes (`stele.name` …) are read back.
"""

from __future__ import annotations

from typing import Any, Final

from msgspec.structs import replace

from stele.errors import DataError, TooLarge
from stele.formats.avro import model as avro
from stele.formats.avro.parse import find_default_fault, make_default
from stele.formats.conversion import model as neutral
from stele.formats.conversion.json_values import to_json_value
from stele.formats.conversion.model import ABSENT, Loss, ScalarKind, TimeUnit

NAME: Final = "stele.name"
"""Attribute of a type or field that keeps a name Avro does not allow."""

SYMBOLS: Final = "stele.symbols"
"""Attribute of an enum that keeps symbols Avro does not allow, by the symbol written instead."""

NUMBER: Final = "stele.number"
"""Attribute of a field: its number in languages that number fields."""

NUMBERS: Final = "stele.numbers"
"""Attribute of an enum: the numbers of its symbols, in order, in languages that number symbols."""

MAX_DEPTH: Final = 90
"""Maximum nesting of types that are converted; documents that nest deeper are rejected."""

_PLAIN: Final = {
    "null": ScalarKind.NULL,
    "boolean": ScalarKind.BOOLEAN,
    "int": ScalarKind.INT32,
    "long": ScalarKind.INT64,
    "float": ScalarKind.FLOAT32,
    "double": ScalarKind.FLOAT64,
    "bytes": ScalarKind.BYTES,
    "string": ScalarKind.STRING,
}
_UNITS: Final = {"millis": TimeUnit.MILLI, "micros": TimeUnit.MICRO, "nanos": TimeUnit.NANO}
_OWN: Final = frozenset({NAME, SYMBOLS, NUMBER, NUMBERS})
_LOGICAL: Final = frozenset({"logicalType", "precision", "scale"})


def to_model(schema: avro.AvroSchema) -> tuple[neutral.Model, list[Loss]]:
    """Return the model and the losses. Raises `TooLarge` for types nested deeper than `MAX_DEPTH`."""
    reader = _SchemaReader()
    try:
        root, nullable = reader.read_type(schema.root, "")
        reader.read_pending()
    except RecursionError:  # only where the caller's own stack is deep already
        raise _too_deep_error() from None
    model = neutral.Model(root, {}, nullable)
    types = {name: declared for name, declared in reader.types.items() if declared is not None}
    return neutral.Model(root, _add_defaults(reader, types, model), nullable), reader.losses


def _too_deep_error() -> TooLarge:
    return TooLarge(f"the types of the schema are nested deeper than {MAX_DEPTH} levels")


class _SchemaReader:
    """Walks the schema. Named types are read after the type that refers to them, defaults when every type is known."""

    def __init__(self) -> None:
        self.types: dict[str, neutral.NamedType | None] = {}
        self.losses: list[Loss] = []
        self.defaults: list[tuple[str, int, avro.AvroField, str]] = []
        self.names: dict[str, str] = {}
        self.pending: list[tuple[str, avro.AvroNamedType, str]] = []
        self.depth = 0

    def add_loss(self, path: str, what: str, why: str) -> None:
        """Note a loss that affects no datum: the model can hold all data of Avro."""
        self.losses.append(Loss(path, what, why))

    def read_type(self, node: avro.AvroType, path: str) -> tuple[neutral.Type, bool]:
        """Return the type, and whether it allows null."""
        if self.depth >= MAX_DEPTH:
            raise _too_deep_error()
        self.depth += 1
        neutral_type = self._read_type(node, path)
        self.depth -= 1
        return neutral_type

    def _read_type(self, node: avro.AvroType, path: str) -> tuple[neutral.Type, bool]:
        match node:
            case avro.AvroPrimitive():
                self._read_props(node.props, path, logical=node.logical is not None)
                return self._read_scalar(node, path), node.kind == "null"
            case avro.AvroArray():
                self._read_props(node.props, path)
                items, nullable = self.read_type(node.items, f"{path}[]")
                return neutral.Array(items, nullable), False
            case avro.AvroMap():
                self._read_props(node.props, path)
                values, nullable = self.read_type(node.values, f"{path}{{}}")
                return neutral.Map(values, nullable=nullable), False
            case avro.AvroUnion():
                return self._read_union(node, path)
            case avro.AvroFixed() if node.logical is not None:
                self._read_props(node.props, path, logical=True)
                self.add_loss(path, "FIXED", f"The {node.logical} is no longer stored in the fixed type {node.name}.")
                return self._read_scalar(node, path), False
            case _:
                return neutral.TypeReference(self._refer_to_named_type(node, path)), False

    def _read_scalar(self, node: avro.AvroPrimitive | avro.AvroFixed, path: str) -> neutral.Type:
        logical = node.logical
        if logical is None:
            return neutral.Scalar(_PLAIN[node.kind])
        family, _, unit = logical.name.rpartition("-")
        match logical.name:
            case "decimal":
                return neutral.Decimal(logical.precision, logical.scale)
            case "uuid":
                return neutral.Scalar(ScalarKind.UUID)
            case "date":
                return neutral.Scalar(ScalarKind.DATE)
            case "duration":
                return neutral.Duration(TimeUnit.MILLI, calendar=True)
        if family == "time":
            return neutral.Time(_UNITS[unit])
        if family in ("timestamp", "local-timestamp"):
            return neutral.Timestamp(_UNITS[unit], utc=family == "timestamp")
        self.add_loss(
            path, "LOGICAL_TYPE", f"The logical type {logical} is not kept: data are raw values of type {node.kind}."
        )
        return neutral.Scalar(_PLAIN[node.kind])

    def _read_union(self, node: avro.AvroUnion, path: str, *, null_last: bool = False) -> tuple[neutral.Type, bool]:
        """Return the type, and whether it allows null.

        null_last is whether null becomes the last branch when the union is written again. That happens only with a
        default.
        """
        others = [branch for branch in node.branches if branch.kind != "null"]
        nullable = len(others) < len(node.branches)
        if not node.branches:
            self.add_loss(path, "UNION", "An empty union, which no value fits, becomes null.")
        elif len(node.branches) < 2:
            self.add_loss(path, "UNION", "A union of one type becomes that type.")
        elif nullable and node.branches[-1 if null_last else 0].kind != "null":
            self.add_loss(
                path, "UNION_ORDER", f"Null becomes the {'last' if null_last else 'first'} branch of the union."
            )
        if not others:
            return neutral.Scalar(ScalarKind.NULL), True
        if len(others) == 1:
            return self.read_type(others[0], path)[0], nullable
        options = [neutral.UnionOption(self.read_type(branch, path)[0], _branch_label(branch)) for branch in others]
        return neutral.Union(tuple(options)), nullable

    # --- named types ------------------------------------------------------------------------------------------------

    def _refer_to_named_type(self, node: avro.AvroNamedType, path: str) -> str:
        name = node.props.get(NAME, node.name)
        name = name if isinstance(name, str) and name else node.name
        if node.name in self.names:
            return self.names[node.name]
        while name in self.types:  # two types that ask for one name
            name = node.name if node.name not in self.types else f"{name}_"
        self.names[node.name] = name
        self.types[name] = None
        self.pending.append((name, node, path))
        return name

    def read_pending(self) -> None:
        """Read the named types found so far, and those found while reading them."""
        while self.pending:
            name, node, path = self.pending.pop(0)
            self.types[name] = self._read_definition(name, node, path)

    def _read_definition(self, name: str, node: avro.AvroNamedType, path: str) -> neutral.NamedType:
        self._read_props(node.props, path)
        doc, aliases = node.doc or "", node.aliases
        match node:
            case avro.AvroRecord():
                if node.error:
                    self.add_loss(path, "ERROR", f"{node.name} is an error of a protocol, and becomes a record.")
                fields = tuple(self._read_field(name, at, field, path) for at, field in enumerate(node.fields))
                return neutral.RecordType(name, fields, doc, aliases)
            case avro.AvroEnum():
                return self._read_enum(name, node)
            case avro.AvroFixed():
                return neutral.Fixed(name, node.size, doc, aliases)

    def _read_enum(self, name: str, node: avro.AvroEnum) -> neutral.Enumeration:
        original_names = node.props.get(SYMBOLS)
        names = [
            original_names.get(symbol, symbol) if isinstance(original_names, dict) else symbol
            for symbol in node.symbols
        ]
        if len({name for name in names if isinstance(name, str)}) < len(names):
            names = list(node.symbols)
        numbers = node.props.get(NUMBERS)
        if not isinstance(numbers, list) or [type(number) for number in numbers] != [int] * len(names):
            numbers = [None] * len(names)
        symbols = tuple(neutral.EnumSymbol(name, number) for name, number in zip(names, numbers, strict=True))
        default = "" if node.default is None else names[node.symbols.index(node.default)]
        return neutral.Enumeration(name, symbols, default, node.doc or "", node.aliases)

    def _read_field(self, record: str, at: int, field: avro.AvroField, path: str) -> neutral.RecordField:
        original_name, number = field.props.get(NAME), field.props.get(NUMBER)
        name = original_name if isinstance(original_name, str) and original_name else field.name
        place = f"{path}.{name}" if path else name
        if isinstance(field.type, avro.AvroUnion):
            last = field.default is not avro.NO_DEFAULT and field.default is not None
            kind, nullable = self._read_union(field.type, place, null_last=last)
        else:
            kind, nullable = self.read_type(field.type, place)
        if field.order != "ascending":
            self.add_loss(place, "ORDER", f"The sort order {field.order!r} is not kept.")
        self._read_props(field.props, place)
        if field.default is not avro.NO_DEFAULT:
            self.defaults.append((record, at, field, place))
        return neutral.RecordField(
            name,
            kind,
            nullable,
            doc=field.doc or "",
            number=number if type(number) is int else None,
            aliases=field.aliases,
        )

    def _read_props(self, props: avro.Props, path: str, *, logical: bool = False) -> None:
        known = _OWN | _LOGICAL if logical else _OWN
        unknown = sorted(key for key in props if key not in known)
        if unknown:
            self.add_loss(
                path,
                "ATTRIBUTE",
                f"Attributes that Avro itself does not know are not kept: {', '.join(unknown)[:200]}.",
            )


def _branch_label(branch: avro.AvroType) -> str:
    return branch.name if isinstance(branch, avro.AvroNamedType) else branch.kind


def _add_defaults(
    reader: _SchemaReader, types: dict[str, neutral.NamedType], model: neutral.Model
) -> dict[str, neutral.NamedType]:
    """Return the types with the defaults of their fields, as JSON values of the model."""
    model = neutral.Model(model.root, types)
    defaults: dict[str, dict[int, Any]] = {}
    for name, at, field, path in reader.defaults:
        declared = types[name]
        assert isinstance(declared, neutral.RecordType)
        if find_default_fault(field.type, field.default) is not None:
            reader.add_loss(path, "DEFAULT", "The default is not a value of the field's type.")
            continue
        if (
            isinstance(field.type, avro.AvroUnion)
            and field.type.branches
            and find_default_fault(field.type.branches[0], field.default) is not None
        ):
            reader.add_loss(path, "UNION_ORDER", "The branch of the default becomes the first of the union.")
        try:
            value = to_json_value(model, make_default(field.type, field.default), declared.fields[at].type)
        except DataError as error:
            reader.add_loss(path, "DEFAULT", f"The default has no JSON form: {error}.")
            continue
        defaults.setdefault(name, {})[at] = value
    return {name: _set_defaults(declared, defaults.get(name, {})) for name, declared in types.items()}


def _set_defaults(declared: neutral.NamedType, defaults: dict[int, Any]) -> neutral.NamedType:
    if not isinstance(declared, neutral.RecordType) or not defaults:
        return declared
    fields = (replace(field, default=defaults.get(at, ABSENT)) for at, field in enumerate(declared.fields))
    return replace(declared, fields=tuple(fields))
