"""Conversion between the neutral model and Spark types: scalars, then builders of structs and of models."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from stele.errors import CannotConvert, TooLarge
from stele.formats.conversion.model import (
    ABSENT,
    Array,
    Decimal,
    Duration,
    Enumeration,
    Fixed,
    Loss,
    Map,
    Model,
    NamedType,
    RecordField,
    RecordType,
    Scalar,
    ScalarKind,
    Time,
    Timestamp,
    TimeUnit,
    Type,
    TypeReference,
    Union,
    UnionOption,
)
from stele.spark.types.metadata import (
    COMMENT,
    NOTES,
    enum_in,
    enum_note,
    fixed_in,
    fixed_note,
    head_in,
    metadata_of,
    note_of,
    notes_in,
    record_note,
    strings_in,
    type_in,
)

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, MapType, StructField, StructType

MAX_PRECISION: Final = 38
"""Maximum number of digits of a Spark decimal."""

_NAMES: Final = {
    ScalarKind.ANY: "VariantType",
    ScalarKind.NULL: "NullType",
    ScalarKind.BOOLEAN: "BooleanType",
    ScalarKind.INT8: "ByteType",
    ScalarKind.INT16: "ShortType",
    ScalarKind.INT32: "IntegerType",
    ScalarKind.INT64: "LongType",
    ScalarKind.UINT8: "ShortType",
    ScalarKind.UINT16: "IntegerType",
    ScalarKind.UINT32: "LongType",
    ScalarKind.FLOAT32: "FloatType",
    ScalarKind.FLOAT64: "DoubleType",
    ScalarKind.NUMBER: "DoubleType",
    ScalarKind.STRING: "StringType",
    ScalarKind.UUID: "StringType",
    ScalarKind.BYTES: "BinaryType",
    ScalarKind.DATE: "DateType",
}
_DIGITS: Final = {TimeUnit.SECOND: 0, TimeUnit.MILLI: 3, TimeUnit.MICRO: 6}
_LOST: Final = {
    ScalarKind.UINT8: ("RANGE", "Negative numbers and greater ones than 255 fit the column too.", False),
    ScalarKind.UINT16: ("RANGE", "Negative numbers and greater ones than 16 bits fit the column too.", False),
    ScalarKind.UINT32: ("RANGE", "Negative numbers and greater ones than 32 bits fit the column too.", False),
    ScalarKind.UINT64: ("RANGE", "Negative numbers and greater ones than 64 bits fit the column too.", False),
    ScalarKind.INTEGER: ("RANGE", "Integers of more than 38 digits cannot be written.", True),
    ScalarKind.NUMBER: ("PRECISION", "Numbers are doubles here: digits beyond 15 may change.", True),
    ScalarKind.UUID: ("FORMAT", "Any text fits the column where a UUID was demanded.", False),
}
_WHOLE: Final = {ScalarKind.UINT64: 20, ScalarKind.INTEGER: MAX_PRECISION}


def to_spark_scalar(kind: Type, path: str) -> tuple[DataType, list[Loss]]:
    """Return the column type for a type without parts, and the losses."""
    from pyspark.sql import types as t

    match kind:
        case Scalar():
            lost = _LOST.get(kind.kind)
            losses = [Loss(path, *lost)] if lost else []
            if kind.kind in _WHOLE:
                return t.DecimalType(_WHOLE[kind.kind], 0), losses
            data_type: DataType = getattr(t, _NAMES[kind.kind])()
            return data_type, losses
        case Decimal():
            return _decimal_type(kind, path)
        case Timestamp():
            return (t.TimestampType() if kind.utc else t.TimestampNTZType()), _below_micro(kind.unit, path)
        case Duration(calendar=True):
            return t.CalendarIntervalType(), _below_micro(kind.unit, path)
        case Duration():
            return t.DayTimeIntervalType(0, 3), _below_micro(kind.unit, path)
        case Time():
            if not hasattr(t, "TimeType"):  # Spark 4.0
                return t.StringType(), [Loss(path, "TIME", "This Spark has no times of day: the column holds text.")]
            return t.TimeType(_DIGITS.get(kind.unit, 6)), _below_micro(kind.unit, path)
    raise TypeError(type(kind).__name__)


def _decimal_type(kind: Decimal, path: str) -> tuple[DataType, list[Loss]]:
    """Return a decimal if Spark has one that is wide enough, else a string, which can hold every number."""
    from pyspark.sql import types as t

    scale = max(kind.scale, 0)
    precision = None if kind.precision is None else max(kind.precision - min(kind.scale, 0), scale, 1)
    if precision is None or precision > MAX_PRECISION:
        why = f"A decimal of Spark has {MAX_PRECISION} digits at most: the column holds text."
        return t.StringType(), [Loss(path, "DECIMAL", why)]
    return t.DecimalType(precision, scale), []


def _below_micro(unit: TimeUnit, path: str) -> list[Loss]:
    why = "Digits below a microsecond cannot be written."
    return [Loss(path, "PRECISION", why, data=True)] if unit is TimeUnit.NANO else []


def to_model_scalar(kind: DataType, path: str) -> tuple[Type, dict[str, Any], list[Loss]] | None:
    """Return the type of a column without parts, constraints for its values, and the losses.

    The result is None for other types.
    """
    from pyspark.sql import types as t

    match kind:
        case t.DecimalType():
            return Decimal(kind.precision, kind.scale), {}, []
        case t.VarcharType():
            return Scalar(ScalarKind.STRING), {"maxLength": kind.length}, [_char_type(path, f"varchar({kind.length})")]
        case t.CharType():
            bounds = {"minLength": kind.length, "maxLength": kind.length}
            return Scalar(ScalarKind.STRING), bounds, [_char_type(path, f"char({kind.length})")]
        case t.StringType():
            why = "How texts are compared and sorted (the collation) is left out."
            return Scalar(ScalarKind.STRING), {}, [] if kind == t.StringType() else [Loss(path, "COLLATION", why)]
        case t.TimestampType():
            return Timestamp(TimeUnit.MICRO), {}, []
        case t.TimestampNTZType():
            return Timestamp(TimeUnit.MICRO, utc=False), {}, []
        case t.CalendarIntervalType():
            return Duration(TimeUnit.MICRO, calendar=True), {}, []
        case t.YearMonthIntervalType():
            why = "That the span is of years and months alone is not said."
            return Duration(TimeUnit.MICRO, calendar=True), {}, [Loss(path, "INTERVAL", why)]
        case t.DayTimeIntervalType():
            why = "That only some fields of the span are kept is not said."
            whole = (kind.startField, kind.endField) == (0, 3)
            return Duration(TimeUnit.MICRO), {}, [] if whole else [Loss(path, "INTERVAL", why)]
    if type(kind).__name__ == "TimeType":
        return _time_type(kind, path)
    name = type(kind).__name__
    scalar_kind = next((scalar for scalar, word in _NAMES.items() if word == name and scalar not in _LOST), None)
    return None if scalar_kind is None else (Scalar(scalar_kind), {}, [])


def _time_type(kind: Any, path: str) -> tuple[Type, dict[str, Any], list[Loss]]:
    unit = next((unit for unit, digits in _DIGITS.items() if digits == kind.precision), None)
    if unit is not None:
        return Time(unit), {}, []
    why = f"That a second has {kind.precision} digits is not said."
    return Time(TimeUnit.MICRO), {}, [Loss(path, "PRECISION", why, data=kind.precision > 6)]


def _char_type(path: str, word: str) -> Loss:
    return Loss(path, "CHAR", f"{word} is a string whose length is bounded.")


MAX_COLUMNS: Final = 10_000
"""Maximum number of columns over all levels. A record that is used twice at each of n levels makes 2**n columns."""

MAX_DEPTH: Final = 64
"""Maximum nesting depth of structs, arrays and maps."""


def usual_name(record: str, field: str) -> str:
    """Return the default name of a struct, made from the enclosing record's name and the field's name."""
    return f"{record}.{field[:1].upper()}{field[1:]}"


class StructBuilder:
    """Makes columns from fields and collects the losses."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._left = MAX_COLUMNS
        self._depth = 0
        self.losses: list[Loss] = []

    def _add_loss(self, path: str, what: str, why: str, *, data: bool = False) -> None:
        self.losses.append(Loss(path, what, why, data))

    def build_root(self) -> StructType:
        """Return the columns of the root. A root that is not a record becomes the column `value`."""
        declared = self._model.types.get(self._model.root.name) if isinstance(self._model.root, TypeReference) else None
        if isinstance(declared, RecordType):
            if self._model.nullable:
                self._add_loss("", "NULLABLE", "A row is never null.", data=True)
            if self._model.constraints:
                self._add_loss("", "CONSTRAINT", f"Nothing checks {', '.join(sorted(self._model.constraints))}.")
            if declared.doc or declared.aliases or self._model.doc:
                self._add_loss("", "DOC", "The documentation and earlier names of the root have no place in a schema.")
            return self._build_struct(declared, "", ())
        self._add_loss("", "ROOT", "Rows have columns: the value is the only one, `value`.")
        only = RecordField("value", self._model.root, self._model.nullable, constraints=self._model.constraints)
        return self._build_struct(RecordType("Value", (only,)), "", ())

    def _build_struct(self, record: RecordType, path: str, above: tuple[str, ...]) -> StructType:
        from pyspark.sql.types import StructType

        self._left -= len(record.fields)
        if self._left < 0:
            raise TooLarge(f"the schema has more than {MAX_COLUMNS} columns")
        if record.open:
            why = f"{record.name!r} allows additional members, which a struct cannot hold."
            self._add_loss(path, "OPEN", why, data=True)
        if len({field.name for field in record.fields}) < len(record.fields):
            raise CannotConvert(f"{record.name} has two fields of one name")
        spellings: dict[str, str] = {}
        groups = {member: group for group, members in record.at_most_one.items() for member in members}
        fields: list[StructField] = []
        for field in record.fields:
            at = f"{path}.{field.name}" if path else field.name
            other = spellings.setdefault(field.name.lower(), field.name)
            if other != field.name:
                self._add_loss(
                    at, "NAME", f"Spark distinguishes {other!r} and {field.name!r} only with spark.sql.caseSensitive."
                )
            fields.append(self._build_field(field, record.name, at, (*above, record.name), groups.get(field.name, "")))
        for group in record.at_most_one:
            self._add_loss(path, "ONEOF", f"That a row has at most one of {group or 'a group'!r} is not checked.")
        return StructType(fields)

    def _build_field(
        self, field: RecordField, owner: str, path: str, above: tuple[str, ...], group: str
    ) -> StructField:
        from pyspark.sql.types import StructField

        kind, note = self._build_type(field.type, usual_name(owner, field.name), path, above)
        nullable = field.nullable or (not field.required and field.default is ABSENT)
        notes: dict[str, Any] = {}
        if field.number is not None:
            notes["number"] = field.number
        if field.default is not ABSENT:
            notes["default"] = field.default
            self._add_loss(path, "DEFAULT", "The default is kept as metadata; Spark does not fill it in.")
        if field.aliases:
            notes["aliases"] = list(field.aliases)
            self._add_loss(path, "ALIAS", "Earlier names are kept as metadata; Spark does not look for them.")
        if field.constraints:
            notes["constraints"] = dict(field.constraints)
            self._add_loss(path, "CONSTRAINT", f"Nothing checks {', '.join(sorted(field.constraints))}.")
        if not field.required:
            notes["required"] = False
        if nullable != field.nullable:
            notes["nullable"] = field.nullable
        if group:
            notes["oneof"] = group
        if note is not None:
            notes["type"] = note
        return StructField(field.name, kind, nullable, metadata_of(field.doc, notes))

    # --- types ------------------------------------------------------------------------------------------------------

    def _build_type(self, kind: Type, usual: str, path: str, above: tuple[str, ...]) -> tuple[DataType, Any]:
        """Return the type of a column, and the note that is needed to convert it back to the same type."""
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise TooLarge(f"{path[:200]}: structs, arrays and maps are nested deeper than {MAX_DEPTH} levels")
        result = self._build_unnoted_type(kind, usual, path, above)
        self._depth -= 1
        return result

    def _build_unnoted_type(self, kind: Type, usual: str, path: str, above: tuple[str, ...]) -> tuple[DataType, Any]:
        from pyspark.sql import types as t

        match kind:
            case Array():
                item, note = self._build_type(kind.items, usual, f"{path}[]", above)
                return t.ArrayType(item, kind.nullable), None if note is None else {"items": note}
            case Map():
                return self._build_map(kind, usual, path, above)
            case TypeReference():
                return self._build_named(kind.name, usual, path, above)
            case Union():
                return self._build_union(kind, usual, path, above)
        data_type, losses = to_spark_scalar(kind, path)
        self.losses += losses
        plain = to_model_scalar(data_type, path)
        return data_type, None if plain is not None and plain[0] == kind else note_of(kind)

    def _build_map(self, kind: Map, usual: str, path: str, above: tuple[str, ...]) -> tuple[DataType, Any]:
        from pyspark.sql import types as t

        value, note = self._build_type(kind.values, usual, f"{path}{{}}", above)
        key, key_note = self._build_type(kind.keys, usual, f"{path}{{}}.key", above)
        if kind.keys.kind in {ScalarKind.ANY, ScalarKind.NULL}:
            self._add_loss(path, "MAP", "No map has such keys: the column is a list of entries.")
            entry = [
                t.StructField("key", key, kind.keys.kind is ScalarKind.NULL),
                t.StructField("value", value, kind.nullable),
            ]
            return t.ArrayType(t.StructType(entry), False), None
        notes = {"keys": key_note, "values": note}
        return t.MapType(key, value, kind.nullable), {k: v for k, v in notes.items() if v is not None} or None

    def _build_named(self, name: str, usual: str, path: str, above: tuple[str, ...]) -> tuple[DataType, Any]:
        from pyspark.sql import types as t

        item = self._model.types.get(name)
        if isinstance(item, Enumeration):
            self._add_loss(path, "ENUM", "Any text fits the column where one of the symbols was demanded.")
            return t.StringType(), enum_note(item)
        if isinstance(item, Fixed):
            self._add_loss(path, "FIXED", f"Any number of bytes fits the column where {item.size} were demanded.")
            return t.BinaryType(), fixed_note(item)
        if item is None:
            raise CannotConvert(f"{path}: the model has no type named {name!r}")
        if name in above:
            why = f"Spark has no types inside themselves: another {name!r} is kept as a variant."
            self._add_loss(path, "RECURSION", why)
            return t.VariantType(), {"recursive": name}
        return self._build_struct(item, path, above), record_note(item, usual)

    def _build_union(self, kind: Union, usual: str, path: str, above: tuple[str, ...]) -> tuple[DataType, Any]:
        """Return a struct with a column for each option, of which one is not null."""
        from pyspark.sql import types as t

        self._left -= len(kind.options)
        if self._left < 0:
            raise TooLarge(f"the schema has more than {MAX_COLUMNS} columns")
        self._add_loss(path, "UNION", "That exactly one column of the struct is not null is not checked.")
        fields = []
        for index, option in enumerate(kind.options):
            inner, note = self._build_type(option.type, f"{usual}{index + 1}", path, above)
            metadata = metadata_of("", {} if note is None else {"type": note})
            fields.append(t.StructField(f"member{index}", inner, True, metadata))
        return t.StructType(fields), {"union": [option.name for option in kind.options]}


_INT32: Final = range(-(1 << 31), 1 << 31)


class ModelBuilder:
    """Makes fields from columns and collects the losses."""

    def __init__(self) -> None:
        self.losses: list[Loss] = []
        self._types: dict[str, NamedType] = {}
        self._left = MAX_COLUMNS
        self._depth = 0

    def model(self, struct: StructType, name: str) -> Model:
        """Return a model whose root is a record with that name, and all types that it uses."""
        self._types[name] = RecordType(name, ())  # reserves the name, as a column can claim it
        self._types[name] = self._read_record(struct, name, {}, "")
        return Model(TypeReference(name), self._types)

    def _add_loss(self, path: str, what: str, why: str, *, data: bool = False) -> None:
        self.losses.append(Loss(path, what, why, data))

    def _read_record(self, struct: StructType, name: str, note: Mapping[str, Any], path: str) -> RecordType:
        self._left -= len(struct.fields)
        if self._left < 0:
            raise TooLarge(f"the schema has more than {MAX_COLUMNS} columns")
        double = [each for each, count in Counter(field.name for field in struct.fields).items() if count > 1]
        if double:
            raise CannotConvert(f"{path or name} has two columns named {double[0]!r}: rename one of them")
        fields: list[RecordField] = []
        groups: dict[str, tuple[str, ...]] = {}
        for column in struct.fields:
            notes = notes_in(column.metadata or {})
            fields.append(self._read_field(column, notes, name, f"{path}.{column.name}" if path else column.name))
            group = notes.get("oneof")
            if isinstance(group, str):
                groups[group] = (*groups.get(group, ()), column.name)
        doc, aliases = head_in(note)
        is_open = note.get("open")
        return RecordType(
            name, tuple(fields), doc, aliases, is_open if isinstance(is_open, bool) else None, at_most_one=groups
        )

    def _read_field(self, column: StructField, notes: Mapping[str, Any], owner: str, path: str) -> RecordField:
        metadata = column.metadata or {}
        comment = metadata.get(COMMENT)
        other = [key for key in metadata if key != NOTES and not (key == COMMENT and isinstance(comment, str))]
        if other:
            self._add_loss(path, "METADATA", f"Metadata of the column is left out: {', '.join(map(str, other[:5]))}.")
        kind, bounds = self._read_type(column.dataType, notes.get("type"), usual_name(owner, column.name), path)
        constraints = notes.get("constraints")
        number = notes.get("number")
        nullable = notes.get("nullable")
        return RecordField(
            column.name,
            kind,
            nullable=nullable if isinstance(nullable, bool) and column.nullable else column.nullable,
            required=notes.get("required") is not False,
            default=notes.get("default", ABSENT),
            doc=comment if isinstance(comment, str) else "",
            number=number if isinstance(number, int) and not isinstance(number, bool) and number in _INT32 else None,
            aliases=strings_in(notes.get("aliases")),
            constraints={**bounds, **(constraints if isinstance(constraints, dict) else {})},
        )

    # --- types ------------------------------------------------------------------------------------------------------

    def _read_type(self, kind: DataType, note: Any, usual: str, path: str) -> tuple[Type, Mapping[str, Any]]:
        """Return the type of a column, and constraints for its values."""
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise TooLarge(f"{path[:200]}: structs, arrays and maps are nested deeper than {MAX_DEPTH} levels")
        result = self._read_unnoted_type(kind, note, usual, path)
        self._depth -= 1
        return result

    def _read_unnoted_type(self, kind: DataType, note: Any, usual: str, path: str) -> tuple[Type, Mapping[str, Any]]:
        from pyspark.sql import types as t

        inner = note if isinstance(note, dict) else {}
        match kind:
            case t.StructType():
                return self._read_struct(kind, inner, usual, path), {}
            case t.ArrayType():
                items = self._read_inner_type(kind.elementType, inner.get("items"), usual, f"{path}[]")
                return Array(items, kind.containsNull), {}
            case t.MapType():
                return self._read_map(kind, inner, usual, path), {}
            case t.UserDefinedType():
                self._add_loss(path, "UDT", f"The column is what {kind.typeName()} is stored as.")
                return self._read_type(kind.sqlType(), note, usual, path)
        noted = self._read_noted_type(kind, note)
        if noted is not None:
            return noted, {}
        result = to_model_scalar(kind, path)
        if result is None:
            raise CannotConvert(f"{path}: the model has no type for {kind.simpleString()}")
        self.losses += result[2]
        return result[0], result[1]

    def _read_inner_type(self, kind: DataType, note: Any, usual: str, path: str) -> Type:
        """Return the type of items, keys or values, for which constraints cannot be kept."""
        inner_type, constraints = self._read_type(kind, note, usual, path)
        if constraints:
            self._add_loss(path, "CONSTRAINT", f"Nothing checks {', '.join(constraints)} of what is inside.")
        return inner_type

    def _read_map(self, kind: MapType, note: Mapping[str, Any], usual: str, path: str) -> Type:
        key = self._read_inner_type(kind.keyType, note.get("keys"), f"{usual}Key", f"{path}{{}}.key")
        value = self._read_inner_type(kind.valueType, note.get("values"), usual, f"{path}{{}}")
        if isinstance(key, Scalar):
            return Map(value, key, kind.valueContainsNull)
        self._add_loss(path, "MAP", "The keys are no scalars: the map is a list of entries, in which a key may repeat.")
        entries = (RecordField("key", key), RecordField("value", value, nullable=kind.valueContainsNull))
        return Array(self._declare_type(RecordType(f"{usual}Entry", entries)))

    def _read_noted_type(self, kind: DataType, note: Any) -> Type | None:
        """Return the type that the note names, if converting it makes exactly this column."""
        from pyspark.sql import types as t

        item = enum_in(note) if kind == t.StringType() else fixed_in(note) if kind == t.BinaryType() else None
        if item is not None:
            return self._declare_type(item)
        match note:
            case {"recursive": str(name)} if kind == t.VariantType() and isinstance(self._types.get(name), RecordType):
                return TypeReference(name)
        named = type_in(note)
        return named if named is not None and to_spark_scalar(named, "")[0] == kind else None

    def _read_struct(self, kind: StructType, note: Mapping[str, Any], usual: str, path: str) -> Type:
        match note.get("union"):
            case list(names) if len(names) == len(kind.fields) and all(isinstance(each, str) for each in names):
                return self._read_union(kind, names, usual, path)
        record_note = note.get("record")
        record_note = record_note if isinstance(record_note, dict) else {}
        wanted = record_note.get("name")
        wanted = wanted if isinstance(wanted, str) else usual
        reserved = wanted not in self._types
        if reserved:
            self._types[wanted] = RecordType(wanted, ())
        record = self._read_record(kind, wanted, record_note, path)
        if reserved:
            self._types[wanted] = record
            return TypeReference(wanted)
        return self._declare_type(record, path)

    def _read_union(self, kind: StructType, names: list[str], usual: str, path: str) -> Type:
        options = []
        for index, (name, column) in enumerate(zip(names, kind.fields, strict=True), 1):
            note = notes_in(column.metadata or {}).get("type")
            options.append(UnionOption(self._read_inner_type(column.dataType, note, f"{usual}{index}", path), name))
        return Union(tuple(options))

    def _declare_type(self, item: Enumeration | Fixed | RecordType, path: str = "") -> TypeReference:
        """Return the name of a type: its own, or a new one when another type has it."""
        known = self._types.get(item.name)
        if known == item:
            return TypeReference(item.name)
        name, count = item.name, 1
        while name in self._types:
            count += 1
            name = f"{item.name}_{count}"
        if name != item.name:
            self._add_loss(path, "NAME", f"There are two types {item.name!r}; one is called {name!r}.")
        values = {each: getattr(item, each) for each in item.__struct_fields__}
        self._types[name] = type(item)(**(values | {"name": name}))
        return TypeReference(name)
