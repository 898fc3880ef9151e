"""Neutral words as an Avro schema.

    int8 … int32, uint8, uint16         int
    int64, uint32, integer              long
    uint64                              decimal(20,0) on bytes: no number is too large for it
    float32; float64, number            float; double
    decimal                             decimal on bytes; string when its precision is not bounded
    uuid, date, time, timestamp         the logical types; seconds become milliseconds
    duration                            `duration` of months, days, milliseconds; long for a span of exact length
    any                                 string that holds JSON text
    nullable                            union with null: first, unless there is a default other than null
    not always there                    the field has a default: its own, else null
    union                               union; an option whose Avro type is taken already sits in a record of one field

Names Avro does not allow are bent and kept in the attribute `stele.name` (symbols in `stele.symbols`); numbers of
fields and symbols are kept in `stele.number` and `stele.numbers`. `to_model` reads these back.
"""

from __future__ import annotations

import json
from typing import Any, Final

from stele.errors import CannotConvert, EncodeError, TooLarge
from stele.formats.avro.names import Names
from stele.formats.avro.raw import Defaults
from stele.formats.avro.to_model import MAX_DEPTH, NAME, NUMBER, NUMBERS, SYMBOLS
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
)

MAX_NODES: Final = 100_000
"""Types, fields and branches in one document."""

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
    """A schema document and what it does not say. Raises `CannotConvert` and `TooLarge`."""
    writer = _Writer(model)
    try:
        root = writer.nullable(writer.type(model.root, "", ""), nullable=model.nullable)
    except RecursionError:  # only where the caller's own stack is deep already
        raise _too_deep() from None
    if model.constraints:
        writer.lose("", "CONSTRAINT", _constraints(model.constraints))
    if model.doc and not isinstance(model.root, TypeReference):
        writer.lose("", "DOC", "Only types with a name have a doc.")
    return json.dumps(root, ensure_ascii=False, indent=2).encode(), writer.losses


def _too_deep() -> TooLarge:
    return TooLarge(f"types would be written more than {MAX_DEPTH} levels deep inside one another")


class _Writer:
    """Walks the model; a named type is written out where it is first met and by name afterwards."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.names = Names(model.types)
        self.defaults = Defaults(model)
        self.losses: list[Loss] = []
        self.written: set[str] = set()
        self.depth = 0
        self.nodes = 0

    def lose(self, path: str, what: str, why: str, *, data: bool = False) -> None:
        """Note a loss."""
        self.losses.append(Loss(path, what, why, data))

    def type(self, kind: Type, path: str, space: str) -> Any:
        """The JSON value of a type; space is the namespace in force."""
        self.nodes += 1
        if self.nodes > MAX_NODES:
            raise TooLarge(f"the schema would have more than {MAX_NODES} types, fields and branches")
        if self.depth >= MAX_DEPTH:
            raise _too_deep()
        self.depth += 1
        found = self._type(kind, path, space)
        self.depth -= 1
        return found

    def _type(self, kind: Type, path: str, space: str) -> Any:
        match kind:
            case Scalar(scalar):
                return self._scalar(scalar, path)
            case Decimal() | Time() | Timestamp() | Duration():
                return self._logical(kind, path, space)
            case Array(items, nullable):
                inner = self.nullable(self.type(items, f"{path}[]", space), nullable=nullable)
                return {"type": "array", "items": inner}
            case Map(values, keys, nullable):
                if keys.kind is not ScalarKind.STRING:
                    why = f"Keys of type {keys.kind.value} are written as text."
                    self.lose(path, "MAP_KEY", why, data=True)
                inner = self.nullable(self.type(values, f"{path}{{}}", space), nullable=nullable)
                return {"type": "map", "values": inner}
            case Union():
                return self._union(kind, path, space)
            case TypeReference(name):
                return self._named(name, path, space)

    def nullable(self, written: Any, *, nullable: bool, last: bool = False) -> Any:
        """A type with null among its values, if nullable."""
        if not nullable or written == "null":
            return written
        branches = written if isinstance(written, list) else [written]
        return [*branches, "null"] if last else ["null", *branches]

    # --- types without a name ---------------------------------------------------------------------------------------

    def _scalar(self, kind: ScalarKind, path: str) -> Any:
        if kind in _NOTES:
            what, why, data = _NOTES[kind]
            self.lose(path, what, why, data=data)
        if kind is ScalarKind.UINT64:
            return {"type": "bytes", "logicalType": "decimal", "precision": 20, "scale": 0}
        if kind in _LOGICAL:
            plain, logical = _LOGICAL[kind]
            return {"type": plain, "logicalType": logical}
        return _SCALARS[kind]

    def _logical(self, kind: Decimal | Time | Timestamp | Duration, path: str, space: str) -> Any:
        match kind:
            case Decimal(None):
                self.lose(path, "DECIMAL", "Without a bound on its digits the decimal is written as text.")
                return "string"
            case Decimal(precision, scale):
                return {"type": "bytes", "logicalType": "decimal", "precision": precision, "scale": scale}
            case Duration(_, True):
                return self._duration(space)
            case Duration(unit):
                self.lose(path, "DURATION", f"The span is written as a number of units ({unit.value}).", data=True)
                return "long"
        if kind.unit is TimeUnit.SECOND:
            self.lose(path, "UNIT", "Seconds are written as milliseconds.")
        suffix = _UNITS[kind.unit]
        if isinstance(kind, Time):
            if kind.unit is TimeUnit.NANO:
                self.lose(path, "UNIT", "Times of day are cut to microseconds.", data=True)
            small = suffix == "millis"
            return {"type": "int" if small else "long", "logicalType": "time-millis" if small else "time-micros"}
        if kind.unit is TimeUnit.NANO:
            self.lose(path, "RANGE", "64 bits of nanoseconds reach from the year 1677 to 2262 only.", data=True)
        return {"type": "long", "logicalType": f"timestamp-{suffix}" if kind.utc else f"local-timestamp-{suffix}"}

    def _duration(self, space: str) -> Any:
        name = self.names.made("duration", space)
        if name in self.written:
            return self.names.reference(name, space)
        self.written.add(name)
        return {"type": "fixed", **self.names.heading(name, space), "size": 12, "logicalType": "duration"}

    def _union(self, kind: Union, path: str, space: str) -> Any:
        branches: dict[str, Any] = {}
        for at, option in enumerate(_flat(kind)):
            written = self.type(option.type, path, space)
            label = self._label(option.type, written)
            if label == "null":
                raise CannotConvert(f"{path or 'the root'}: a union of the model holds null as an option")
            if option.name and option.name not in (label, getattr(option.type, "name", "")):
                self.lose(path, "NAME", f"The option {option.name!r} of the union has no name of its own.")
            if label not in branches:
                branches[label] = written
            elif branches[label] == written or label == "string":
                self.lose(path, "UNION", f"Two options of the union are written as the one {label}.")
                branches[label] = written if branches[label] == written else "string"
            else:
                self.lose(path, "UNION", f"A second {label} sits in a record with the field `value`.", data=True)
                name = self.names.made(f"{path.rpartition('.')[2] or 'root'}_option{at + 1}", space, fresh=True)
                fields = [{"name": "value", "type": written}]
                self.defaults.wrapped.add(kind)
                branches[name] = {"type": "record", **self.names.heading(name, space), "fields": fields}
        return list(branches.values()) if len(branches) > 1 else next(iter(branches.values()))

    def _label(self, kind: Type, written: Any) -> str:
        """What makes two branches of a union the same to Avro: the kind, or the full name."""
        if isinstance(kind, TypeReference):
            return self.names.full(kind.name)
        if isinstance(written, str):
            return written
        return str(written["name"] if written["type"] == "fixed" else written["type"])

    # --- types with a name ------------------------------------------------------------------------------------------

    def _named(self, name: str, path: str, space: str) -> Any:
        full = self.names.full(name)
        if full in self.written:
            return self.names.reference(full, space)
        self.written.add(full)
        declared = self.model.types.get(name)
        if declared is None:
            raise CannotConvert(f"the model names the type {name!r} and does not declare it")
        own = full.rpartition(".")[0]
        kind = {RecordType: "record", Enumeration: "enum", Fixed: "fixed"}[type(declared)]
        out: dict[str, Any] = {"type": kind, **self.names.heading(full, space)}
        doc = declared.doc or (self.model.doc if not path else "")
        if doc:
            out["doc"] = doc
        if full != name:
            self.lose(path, "NAME", f"{name!r} is no name in Avro; it becomes {full!r} (kept in {NAME}).")
            out[NAME] = name
        aliases = self._aliases(declared.aliases, path)
        if aliases:
            out["aliases"] = [f".{alias}" if own and "." not in alias else alias for alias in aliases]
        match declared:
            case RecordType():
                out["fields"] = self._fields(declared, path, own)
            case Enumeration():
                out.update(self._enum(declared, path))
            case Fixed():
                out["size"] = declared.size
        return out

    def _aliases(self, aliases: tuple[str, ...], path: str, *, dotted: bool = True) -> list[str]:
        legal = [alias for alias in aliases if Names.legal(alias) and (dotted or "." not in alias)]
        if len(legal) < len(aliases):
            lost = [alias for alias in aliases if alias not in legal]
            self.lose(
                path,
                "ALIAS",
                f"Earlier names that are no names in Avro are left out: {', '.join(map(repr, lost))[:200]}.",
            )
        return legal

    def _enum(self, declared: Enumeration, path: str) -> dict[str, Any]:
        if not declared.symbols:
            raise CannotConvert(f"{path or 'the root'}: the enumeration {declared.name} has no symbols")
        symbols = self.names.symbols([symbol.name for symbol in declared.symbols])
        out: dict[str, Any] = {"symbols": list(symbols.values())}
        if declared.default:
            out["default"] = symbols[declared.default]
        bent = {written: name for name, written in symbols.items() if written != name}
        if bent:
            out[SYMBOLS] = bent
            shown = ", ".join(map(repr, bent.values()))[:200]
            self.lose(path, "SYMBOL", f"Symbols that are no names in Avro are written otherwise: {shown}.", data=True)
        numbers = [symbol.number for symbol in declared.symbols]
        if None not in numbers and numbers != list(range(len(numbers))):
            out[NUMBERS] = numbers
        if any(symbol.doc for symbol in declared.symbols):
            self.lose(path, "DOC", "Symbols have no doc.")
        return out

    def _fields(self, declared: RecordType, path: str, space: str) -> list[dict[str, Any]]:
        if declared.open:
            self.lose(path, "OPEN", f"Members that {declared.name} does not name have no place in Avro.", data=True)
        for group, members in declared.at_most_one.items():
            self.lose(path, "ONEOF", f"Nothing says that a datum has at most one of {', '.join(members)} ({group}).")
        names = self.names.symbols([field.name for field in declared.fields])
        return [self._field(field, names[field.name], path, space) for field in declared.fields]

    def _field(self, field: RecordField, name: str, path: str, space: str) -> dict[str, Any]:
        place = f"{path}.{field.name}" if path else field.name
        kind = self._led_by_default(field)
        written = self.type(kind, place, space)
        default = self._default(field, kind, place)
        if not field.required:
            self._optional(field, default, place)
        if default is ABSENT and not field.required:
            default = None
        last = default is not ABSENT and default is not None
        nullable = field.nullable or (not field.required and default is None)
        written = self.nullable(written, nullable=nullable, last=last)
        out: dict[str, Any] = {"name": name, "type": written}
        if field.doc:
            out["doc"] = field.doc
        if default is not ABSENT:
            out["default"] = default
        aliases = self._aliases(field.aliases, place, dotted=False)
        if aliases:
            out["aliases"] = aliases
        if name != field.name:
            out[NAME] = field.name
            why = f"{field.name!r} is no name in Avro; the field is called {name!r} (kept in {NAME})."
            self.lose(place, "NAME", why, data=True)
        if field.number is not None:
            out[NUMBER] = field.number
        if field.constraints:
            self.lose(place, "CONSTRAINT", _constraints(field.constraints))
        return out

    def _optional(self, field: RecordField, default: Any, path: str) -> None:
        """Say what is written for a member that is missing: what a reader takes for it, else null."""
        if default is not ABSENT and default is not None:
            self.lose(path, "OPTIONAL", "A member that is missing is written as its default.")
        elif field.nullable and field.default is ABSENT:
            why = "A member that is missing is written as null, as is one that is null: the two cannot be told apart."
            self.lose(path, "OPTIONAL", why, data=True)
        else:
            self.lose(path, "OPTIONAL", "A member that is missing is written as null.")

    def _led_by_default(self, field: RecordField) -> Type:
        """The type with the option of the default in front: readers before Avro 1.12 look for it there only."""
        kind = field.type
        if isinstance(kind, Union) and field.default is not ABSENT and field.default is not None:
            at = self.defaults.taker(kind, field.default) or 0
            return Union((kind.options[at], *kind.options[:at], *kind.options[at + 1 :]))
        return kind

    def _default(self, field: RecordField, kind: Type, path: str) -> Any:
        """The default as Avro writes it; ABSENT where there is none, or none that fits."""
        if field.default is ABSENT:
            return ABSENT
        if field.default is None:
            if field.nullable or not field.required or kind == Scalar(ScalarKind.NULL):
                return None
            self.lose(path, "DEFAULT", "The default is null, which is no value of the field.")
            return ABSENT
        if isinstance(kind, Union) and self.defaults.taker(kind, field.default) == 0:
            kind = kind.options[0].type
        try:
            return self.defaults.raw(kind, field.default)
        except EncodeError as error:
            self.lose(path, "DEFAULT", f"The default does not fit the type: {error}.")
            return ABSENT


def _flat(kind: Union) -> list[UnionOption]:
    """The options, those of unions inside unions among them."""
    found: list[UnionOption] = []
    stack = list(reversed(kind.options))
    while stack:
        option = stack.pop()
        if isinstance(option.type, Union):
            stack.extend(reversed(option.type.options))
        else:
            found.append(option)
    return found


def _constraints(constraints: Any) -> str:
    return f"Nothing checks {', '.join(sorted(constraints))[:200]}."
