"""Converts the neutral model to an Avro schema.

    int8 … int32, uint8, uint16         int
    int64, uint32, integer              long
    uint64                              decimal(20,0) on bytes: no number is too large for it
    float32; float64, number            float; double
    decimal                             decimal on bytes; string when its precision is not bounded
    uuid, date, time, timestamp         the logical types; seconds become milliseconds
    duration                            `duration` of months, days, milliseconds; long for a span of exact length
    any                                 string that holds JSON text
    nullable                            union with null: first, unless there is a default other than null
    optional                            the field has a default: its own, else null
    union                               union; an option whose Avro type is already used is wrapped in a record of
                                        one field

Names that Avro does not allow are changed. The original is kept in the attribute `stele.name` (symbols in
`stele.symbols`), and numbers of fields and symbols in `stele.number` and `stele.numbers`. `to_model` reads these back.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable
from typing import Any, Final

from stele.errors import CannotConvert, EncodeError, TooLarge
from stele.formats.avro.to_model import MAX_DEPTH, NAME, NUMBER, NUMBERS, SYMBOLS
from stele.formats.conversion import scalar_text
from stele.formats.conversion.json_values import from_json_value
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
    UniqueNames,
)

MAX_NODES: Final = 100_000
"""Maximum number of types, fields and branches in one document."""

_SCALARS: Final = {
    ScalarKind.ANY: "string",
    ScalarKind.NULL: "null",
    ScalarKind.BOOLEAN: "boolean",
    ScalarKind.INT8: "int",
    ScalarKind.INT16: "int",
    ScalarKind.INT32: "int",
    ScalarKind.UINT8: "int",
    ScalarKind.UINT16: "int",
    ScalarKind.INT64: "long",
    ScalarKind.UINT32: "long",
    ScalarKind.INTEGER: "long",
    ScalarKind.FLOAT32: "float",
    ScalarKind.FLOAT64: "double",
    ScalarKind.NUMBER: "double",
    ScalarKind.STRING: "string",
    ScalarKind.BYTES: "bytes",
}
_LOGICAL: Final = {ScalarKind.UUID: ("string", "uuid"), ScalarKind.DATE: ("int", "date")}
_NOTES: Final = {
    ScalarKind.ANY: ("ANY", "A value of any type is written as a string that holds its JSON text.", True),
    ScalarKind.INTEGER: ("RANGE", "Whole numbers beyond 64 bits have no place in a long.", True),
    ScalarKind.NUMBER: ("PRECISION", "Numbers beyond the range or precision of a double are changed.", True),
    ScalarKind.UINT64: ("UNSIGNED", "The number is stored as a decimal without places.", True),
    **{
        kind: ("WIDTH", f"Avro has no {kind.value}: a wider integer takes its values, and others.", False)
        for kind in (ScalarKind.INT8, ScalarKind.INT16, ScalarKind.UINT8, ScalarKind.UINT16, ScalarKind.UINT32)
    },
}
_UNITS: Final = {TimeUnit.SECOND: "millis", TimeUnit.MILLI: "millis", TimeUnit.MICRO: "micros", TimeUnit.NANO: "nanos"}


def from_model(model: Model) -> tuple[bytes, list[Loss]]:
    """Return a schema document and the losses. Raises `CannotConvert` and `TooLarge`."""
    writer = _SchemaWriter(model)
    try:
        root = writer.add_null(writer.write_type(model.root, "", ""), nullable=model.nullable)
    except RecursionError:  # only where the caller's own stack is deep already
        raise _too_deep_error() from None
    if model.constraints:
        writer.add_loss("", "CONSTRAINT", _describe_constraints(model.constraints))
    if model.doc and not isinstance(model.root, TypeReference):
        writer.add_loss("", "DOC", "Only types with a name have a doc.")
    return json.dumps(root, ensure_ascii=False, indent=2).encode(), writer.losses


def _too_deep_error() -> TooLarge:
    return TooLarge(f"types would be written more than {MAX_DEPTH} levels deep inside one another")


class _SchemaWriter:
    """Walks the model. A named type is written in full at its first use and by name afterwards."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.names = _AvroNames(model.types)
        self.defaults = _DefaultWriter(model)
        self.losses: list[Loss] = []
        self.written: set[str] = set()
        self.depth = 0
        self.nodes = 0

    def add_loss(self, path: str, what: str, why: str, *, data: bool = False) -> None:
        """Note a loss."""
        self.losses.append(Loss(path, what, why, data))

    def write_type(self, kind: Type, path: str, space: str) -> Any:
        """Return the JSON value of a type; space is the namespace in force."""
        self.nodes += 1
        if self.nodes > MAX_NODES:
            raise TooLarge(f"the schema would have more than {MAX_NODES} types, fields and branches")
        if self.depth >= MAX_DEPTH:
            raise _too_deep_error()
        self.depth += 1
        json_value = self._write_type(kind, path, space)
        self.depth -= 1
        return json_value

    def _write_type(self, kind: Type, path: str, space: str) -> Any:
        match kind:
            case Scalar(scalar):
                return self._write_scalar(scalar, path)
            case Decimal() | Time() | Timestamp() | Duration():
                return self._write_logical_type(kind, path, space)
            case Array(items, nullable):
                inner = self.add_null(self.write_type(items, f"{path}[]", space), nullable=nullable)
                return {"type": "array", "items": inner}
            case Map(values, keys, nullable):
                if keys.kind is not ScalarKind.STRING:
                    why = f"Keys of type {keys.kind.value} are written as text."
                    self.add_loss(path, "MAP_KEY", why, data=True)
                inner = self.add_null(self.write_type(values, f"{path}{{}}", space), nullable=nullable)
                return {"type": "map", "values": inner}
            case Union():
                return self._write_union(kind, path, space)
            case TypeReference(name):
                return self._write_named_type(name, path, space)

    def add_null(self, written: Any, *, nullable: bool, last: bool = False) -> Any:
        """Return the written type. If nullable, it becomes a union with null."""
        if not nullable or written == "null":
            return written
        branches = written if isinstance(written, list) else [written]
        return [*branches, "null"] if last else ["null", *branches]

    # --- types without a name ---------------------------------------------------------------------------------------

    def _write_scalar(self, kind: ScalarKind, path: str) -> Any:
        if kind in _NOTES:
            what, why, data = _NOTES[kind]
            self.add_loss(path, what, why, data=data)
        if kind is ScalarKind.UINT64:
            return {"type": "bytes", "logicalType": "decimal", "precision": 20, "scale": 0}
        if kind in _LOGICAL:
            plain, logical = _LOGICAL[kind]
            return {"type": plain, "logicalType": logical}
        return _SCALARS[kind]

    def _write_logical_type(self, kind: Decimal | Time | Timestamp | Duration, path: str, space: str) -> Any:
        match kind:
            case Decimal(None):
                self.add_loss(path, "DECIMAL", "Without a bound on its digits the decimal is written as text.")
                return "string"
            case Decimal(precision, scale):
                return {"type": "bytes", "logicalType": "decimal", "precision": precision, "scale": scale}
            case Duration(_, True):
                return self._write_duration(space)
            case Duration(unit):
                self.add_loss(path, "DURATION", f"The span is written as a number of units ({unit.value}).", data=True)
                return "long"
        if kind.unit is TimeUnit.SECOND:
            self.add_loss(path, "UNIT", "Seconds are written as milliseconds.")
        suffix = _UNITS[kind.unit]
        if isinstance(kind, Time):
            if kind.unit is TimeUnit.NANO:
                self.add_loss(path, "UNIT", "Times of day are cut to microseconds.", data=True)
            small = suffix == "millis"
            return {"type": "int" if small else "long", "logicalType": "time-millis" if small else "time-micros"}
        if kind.unit is TimeUnit.NANO:
            self.add_loss(path, "RANGE", "64 bits of nanoseconds reach from the year 1677 to 2262 only.", data=True)
        return {"type": "long", "logicalType": f"timestamp-{suffix}" if kind.utc else f"local-timestamp-{suffix}"}

    def _write_duration(self, space: str) -> Any:
        name = self.names.new_full_name("duration", space)
        if name in self.written:
            return self.names.reference_to(name, space)
        self.written.add(name)
        return {"type": "fixed", **self.names.name_attributes(name, space), "size": 12, "logicalType": "duration"}

    def _write_union(self, kind: Union, path: str, space: str) -> Any:
        branches: dict[str, Any] = {}
        for at, option in enumerate(_flatten_options(kind)):
            written = self.write_type(option.type, path, space)
            label = self._branch_label(option.type, written)
            if label == "null":
                raise CannotConvert(f"{path or 'the root'}: a union of the model holds null as an option")
            if option.name and option.name not in (label, getattr(option.type, "name", "")):
                self.add_loss(path, "NAME", f"The option {option.name!r} of the union has no name of its own.")
            if label not in branches:
                branches[label] = written
            elif branches[label] == written or label == "string":
                self.add_loss(path, "UNION", f"Two options of the union are written as the one {label}.")
                branches[label] = written if branches[label] == written else "string"
            else:
                self.add_loss(path, "UNION", f"A second {label} sits in a record with the field `value`.", data=True)
                name = self.names.new_full_name(
                    f"{path.rpartition('.')[2] or 'root'}_option{at + 1}", space, fresh=True
                )
                fields = [{"name": "value", "type": written}]
                self.defaults.wrapped.add(kind)
                branches[name] = {"type": "record", **self.names.name_attributes(name, space), "fields": fields}
        return list(branches.values()) if len(branches) > 1 else next(iter(branches.values()))

    def _branch_label(self, kind: Type, written: Any) -> str:
        """Return the key that Avro requires to be unique among the branches of a union: the kind, or the full name."""
        if isinstance(kind, TypeReference):
            return self.names.full_name(kind.name)
        if isinstance(written, str):
            return written
        return str(written["name"] if written["type"] == "fixed" else written["type"])

    # --- types with a name ------------------------------------------------------------------------------------------

    def _write_named_type(self, name: str, path: str, space: str) -> Any:
        full = self.names.full_name(name)
        if full in self.written:
            return self.names.reference_to(full, space)
        self.written.add(full)
        declared = self.model.types.get(name)
        if declared is None:
            raise CannotConvert(f"the model names the type {name!r} and does not declare it")
        own = full.rpartition(".")[0]
        kind = {RecordType: "record", Enumeration: "enum", Fixed: "fixed"}[type(declared)]
        out: dict[str, Any] = {"type": kind, **self.names.name_attributes(full, space)}
        doc = declared.doc or (self.model.doc if not path else "")
        if doc:
            out["doc"] = doc
        if full != name:
            self.add_loss(path, "NAME", f"{name!r} is not a valid name in Avro; it becomes {full!r} (kept in {NAME}).")
            out[NAME] = name
        aliases = self._write_aliases(declared.aliases, path)
        if aliases:
            out["aliases"] = [f".{alias}" if own and "." not in alias else alias for alias in aliases]
        match declared:
            case RecordType():
                out["fields"] = self._write_fields(declared, path, own)
            case Enumeration():
                out.update(self._write_enum(declared, path))
            case Fixed():
                out["size"] = declared.size
        return out

    def _write_aliases(self, aliases: tuple[str, ...], path: str, *, dotted: bool = True) -> list[str]:
        legal = [alias for alias in aliases if _AvroNames.is_legal(alias) and (dotted or "." not in alias)]
        if len(legal) < len(aliases):
            lost = [alias for alias in aliases if alias not in legal]
            self.add_loss(
                path,
                "ALIAS",
                f"Earlier names that are no names in Avro are left out: {', '.join(map(repr, lost))[:200]}.",
            )
        return legal

    def _write_enum(self, declared: Enumeration, path: str) -> dict[str, Any]:
        if not declared.symbols:
            raise CannotConvert(f"{path or 'the root'}: the enumeration {declared.name} has no symbols")
        symbols = self.names.legal_symbols([symbol.name for symbol in declared.symbols])
        out: dict[str, Any] = {"symbols": list(symbols.values())}
        if declared.default:
            out["default"] = symbols[declared.default]
        bent = {written: name for name, written in symbols.items() if written != name}
        if bent:
            out[SYMBOLS] = bent
            symbol_list = ", ".join(map(repr, bent.values()))[:200]
            self.add_loss(
                path, "SYMBOL", f"Symbols that are no names in Avro are written otherwise: {symbol_list}.", data=True
            )
        numbers = [symbol.number for symbol in declared.symbols]
        if None not in numbers and numbers != list(range(len(numbers))):
            out[NUMBERS] = numbers
        if any(symbol.doc for symbol in declared.symbols):
            self.add_loss(path, "DOC", "Symbols have no doc.")
        return out

    def _write_fields(self, declared: RecordType, path: str, space: str) -> list[dict[str, Any]]:
        if declared.open:
            self.add_loss(path, "OPEN", f"Members that {declared.name} does not name have no place in Avro.", data=True)
        for group, members in declared.at_most_one.items():
            self.add_loss(
                path, "ONEOF", f"Nothing says that a datum has at most one of {', '.join(members)} ({group})."
            )
        names = self.names.legal_symbols([field.name for field in declared.fields])
        return [self._write_field(field, names[field.name], path, space) for field in declared.fields]

    def _write_field(self, field: RecordField, name: str, path: str, space: str) -> dict[str, Any]:
        place = f"{path}.{field.name}" if path else field.name
        kind = self._put_default_first(field)
        written = self.write_type(kind, place, space)
        default = self._write_default(field, kind, place)
        if not field.required:
            self._add_optional_loss(field, default, place)
        if default is ABSENT and not field.required:
            default = None
        last = default is not ABSENT and default is not None
        nullable = field.nullable or (not field.required and default is None)
        written = self.add_null(written, nullable=nullable, last=last)
        out: dict[str, Any] = {"name": name, "type": written}
        if field.doc:
            out["doc"] = field.doc
        if default is not ABSENT:
            out["default"] = default
        aliases = self._write_aliases(field.aliases, place, dotted=False)
        if aliases:
            out["aliases"] = aliases
        if name != field.name:
            out[NAME] = field.name
            why = f"{field.name!r} is not a valid name in Avro; the field is called {name!r} (kept in {NAME})."
            self.add_loss(place, "NAME", why, data=True)
        if field.number is not None:
            out[NUMBER] = field.number
        if field.constraints:
            self.add_loss(place, "CONSTRAINT", _describe_constraints(field.constraints))
        return out

    def _add_optional_loss(self, field: RecordField, default: Any, path: str) -> None:
        """Note the loss for an optional field: what is written when the member is missing, its default or null."""
        if default is not ABSENT and default is not None:
            self.add_loss(path, "OPTIONAL", "A member that is missing is written as its default.")
        elif field.nullable and field.default is ABSENT:
            why = "A member that is missing is written as null, as is one that is null: the two cannot be told apart."
            self.add_loss(path, "OPTIONAL", why, data=True)
        else:
            self.add_loss(path, "OPTIONAL", "A member that is missing is written as null.")

    def _put_default_first(self, field: RecordField) -> Type:
        """Return the type with the option of the default first.

        Readers before Avro 1.12 match a default to the first option only.
        """
        kind = field.type
        if isinstance(kind, Union) and field.default is not ABSENT and field.default is not None:
            at = self.defaults.find_option(kind, field.default) or 0
            return Union((kind.options[at], *kind.options[:at], *kind.options[at + 1 :]))
        return kind

    def _write_default(self, field: RecordField, kind: Type, path: str) -> Any:
        """Return the default as Avro writes it; ABSENT when there is none or it does not fit."""
        if field.default is ABSENT:
            return ABSENT
        if field.default is None:
            if field.nullable or not field.required or kind == Scalar(ScalarKind.NULL):
                return None
            self.add_loss(path, "DEFAULT", "The default is null, which is not a value of the field.")
            return ABSENT
        if isinstance(kind, Union) and self.defaults.find_option(kind, field.default) == 0:
            kind = kind.options[0].type
        try:
            return self.defaults.write_default(kind, field.default)
        except EncodeError as error:
            self.add_loss(path, "DEFAULT", f"The default does not fit the type: {error}.")
            return ABSENT


def _flatten_options(kind: Union) -> list[UnionOption]:
    """Return the options of a union. Unions among them are replaced by their own options."""
    options: list[UnionOption] = []
    stack = list(reversed(kind.options))
    while stack:
        option = stack.pop()
        if isinstance(option.type, Union):
            stack.extend(reversed(option.type.options))
        else:
            options.append(option)
    return options


def _describe_constraints(constraints: Any) -> str:
    return f"Nothing checks {', '.join(sorted(constraints))[:200]}."


# --- defaults ---------------------------------------------------------------------------------------------------------


_DEFAULT_UNITS = {
    TimeUnit.SECOND: TimeUnit.MILLI,
    TimeUnit.MILLI: TimeUnit.MILLI,
    TimeUnit.MICRO: TimeUnit.MICRO,
    TimeUnit.NANO: TimeUnit.NANO,
}


class _DefaultWriter:
    """Turns JSON values of a model into default values of the Avro schema made from it."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self.wrapped: set[Union] = set()
        """Unions with an option that is wrapped in a record. Defaults of these unions are left out."""

    def find_option(self, kind: Union, value: Any) -> int | None:
        """Return the index of the first option that a value fits; None when it fits none."""
        for at, option in enumerate(kind.options):
            try:
                from_json_value(self._model, value, option.type)
            except EncodeError:
                continue
            return at
        return None

    def write_default(self, kind: Type, value: Any) -> Any:
        """Return the Avro default for a JSON value of the model. Raises `EncodeError` when there is none."""
        from_json_value(self._model, value, kind)
        try:
            return self._write_value(kind, value)
        except (ValueError, ArithmeticError) as error:
            raise EncodeError(str(error)) from None

    def _write_value(self, kind: Type, value: Any) -> Any:
        if value is None:
            return None
        match kind:
            case Scalar(scalar):
                return _write_scalar_default(scalar, value)
            case Array():
                return [self._write_value(kind.items, item) for item in value]
            case Map():
                return {key: self._write_value(kind.values, item) for key, item in value.items()}
            case TypeReference(name):
                return self._write_named_value(name, value)
            case Union():
                at = self.find_option(kind, value)
                if at is None or kind in self.wrapped:
                    raise EncodeError("no option of the union takes it")
                return self._write_value(kind.options[at].type, value)
            case Decimal(None):
                return value
            case Decimal(_, scale):
                return _unscaled_to_characters(
                    int(scalar_text.parse_decimal(value, scale).scaleb(scale, scalar_text.EXACT_CONTEXT))
                )
            case Time(unit):
                return scalar_text.parse_time(value, TimeUnit.MICRO if unit is TimeUnit.NANO else _DEFAULT_UNITS[unit])
            case Timestamp(unit, utc):
                return _require_long(scalar_text.parse_timestamp(value, _DEFAULT_UNITS[unit], utc=utc))
            case Duration(_, True):
                return b"".join(
                    part.to_bytes(4, "little") for part in scalar_text.parse_calendar_duration(value)
                ).decode("latin-1")
            case Duration(unit):
                return _require_long(scalar_text.parse_duration(value, unit))

    def _write_named_value(self, name: str, value: Any) -> Any:
        match self._model.types[name]:
            case RecordType(fields=fields):
                names = _AvroNames.legal_symbols([field.name for field in fields])
                types = {field.name: field.type for field in fields}
                return {names[member]: self._write_value(types[member], item) for member, item in value.items()}
            case Enumeration(symbols=symbols):
                return _AvroNames.legal_symbols([symbol.name for symbol in symbols])[value]
        return _base64_to_characters(value)


def _write_scalar_default(kind: ScalarKind, value: Any) -> Any:
    match kind:
        case ScalarKind.ANY:
            return json.dumps(value, ensure_ascii=False)
        case ScalarKind.DATE:
            return scalar_text.parse_date(value)
        case ScalarKind.BYTES:
            return _base64_to_characters(value)
        case ScalarKind.UINT64:
            return _unscaled_to_characters(value)
        case ScalarKind.INTEGER:
            return _require_long(value)
        case ScalarKind.NUMBER:
            return float(value)
    return value


def _base64_to_characters(value: str) -> str:
    return base64.b64decode(value).decode("latin-1")


def _unscaled_to_characters(value: int) -> str:
    return value.to_bytes((value + (value < 0)).bit_length() // 8 + 1, "big", signed=True).decode("latin-1")


def _require_long(value: int) -> int:
    if not -(2**63) <= value < 2**63:
        raise ValueError(f"{value} is beyond 64 bits")
    return value


# --- names ------------------------------------------------------------------------------------------------------------


RESERVED: Final = frozenset(
    [
        *("null", "boolean", "int", "long", "float", "double", "bytes", "string"),
        *("record", "error", "enum", "fixed", "array", "map", "union", "request", "error_union"),
    ]
)
"""Words that are not allowed as names of types."""

_DOTTED: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*")
_WRONG: Final = re.compile(r"[^A-Za-z0-9_]")


class _AvroNames:
    """The Avro names of a model's types. Legal names stay as they are; the others are changed until they are unique."""

    def __init__(self, names: Iterable[str]) -> None:
        wanted = list(names)
        self._full = {name: name for name in wanted if self.is_legal(name) and name not in RESERVED}
        self._distinct = UniqueNames((*RESERVED, *self._full))
        self._made: dict[str, str] = {}
        for name in wanted:
            if name not in self._full:
                self._full[name] = self._distinct.claim_name(_make_legal(name), "_")

    @staticmethod
    def is_legal(name: str) -> bool:
        """Return whether Avro allows a dotted name."""
        return _DOTTED.fullmatch(name) is not None

    def full_name(self, name: str) -> str:
        """Return the full name of a type of the model."""
        return self._full.get(name, name)

    def new_full_name(self, name: str, space: str, *, fresh: bool = False) -> str:
        """Return a unique full name for a type that the model does not have.

        The same name returns the same result each time, unless fresh.
        """
        if fresh or name not in self._made:
            self._made[name] = self._distinct.claim_name(
                f"{space}.{_make_legal(name)}" if space else _make_legal(name), "_"
            )
        return self._made[name]

    def name_attributes(self, full: str, space: str) -> dict[str, str]:
        """Return the attributes that name a type where it is defined."""
        own, _, simple = full.rpartition(".")
        return {"name": simple} if own == space else {"name": simple, "namespace": own}

    def reference_to(self, full: str, space: str) -> str:
        """Return a reference to a defined type.

        A leading dot marks a name without a namespace where the name alone would be ambiguous.
        """
        own, _, simple = full.rpartition(".")
        if own == space:
            return simple
        return full if own or f"{space}.{simple}" not in self._distinct.taken else f".{simple}"

    @staticmethod
    def legal_symbols(names: Iterable[str]) -> dict[str, str]:
        """Return a legal, distinct name for each field or symbol."""
        wanted = list(dict.fromkeys(names))
        legal_names = {name: name for name in wanted if _is_simple_name(name)}
        distinct = UniqueNames(legal_names)
        for name in wanted:
            if name not in legal_names:
                legal_names[name] = distinct.claim_name(_make_part_legal(name), "_")
        return {name: legal_names[name] for name in wanted}


def _is_simple_name(name: str) -> bool:
    return name.isascii() and name.isidentifier()


def _make_legal(name: str) -> str:
    return ".".join(_make_part_legal(part) for part in name.split("."))


def _make_part_legal(part: str) -> str:
    legal_part = _WRONG.sub("_", part)
    return f"_{legal_part}" if not legal_part or legal_part[0].isdigit() else legal_part
