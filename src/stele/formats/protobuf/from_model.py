"""Converts the neutral model to a proto3 file.

| model | Protobuf |
|---|---|
| boolean, integers of 32 and 64 bits | bool, int32, int64, uint32, uint64 |
| floats, string, uuid, bytes, fixed | float, double, string, string, bytes, bytes |
| shorter integers | int32, uint32 |
| integer, number of any size | int64, double |
| any, null | google.protobuf.Value, google.protobuf.NullValue |
| date, time | google.type.Date, google.type.TimeOfDay |
| timestamp in UTC, without time zone | google.protobuf.Timestamp (years 1 to 9999), google.type.DateTime |
| duration, with months and days | google.protobuf.Duration, a message of three integers |
| decimal | confluent.type.Decimal, precision and scale in `(confluent.field_meta).params` |
| record, enumeration | message, enum |
| array, map | repeated, map; wrapped in a message where neither is allowed |
| union, group of which a datum has one | message with a oneof, oneof |
| nullable, or left out without a default | `optional` |

A confluent.type.Decimal keeps every digit, unlike Protobuf's numbers, and tools of that platform read it as a decimal.
proto3 has no required fields: a required scalar becomes a field without presence, and reads as zero when it is missing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Final

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
    RecordField,
    RecordType,
    Scalar,
    ScalarKind,
    Time,
    Timestamp,
    Type,
    TypeReference,
    Union,
)
from stele.formats.protobuf.model import default_json_name
from stele.formats.protobuf.parse import MAX_BYTES
from stele.formats.protobuf.proto_file import (
    MAX_MEMBERS,
    ProtoField,
    ProtoMessage,
    ProtoWriter,
    TypeNesting,
    TypeRef,
    json_names,
    to_identifier,
    to_pascal_case,
    to_snake_case,
)

SCALAR_WORDS: Final = {
    ScalarKind.BOOLEAN: "bool",
    ScalarKind.INT8: "int32",
    ScalarKind.INT16: "int32",
    ScalarKind.INT32: "int32",
    ScalarKind.INT64: "int64",
    ScalarKind.UINT8: "uint32",
    ScalarKind.UINT16: "uint32",
    ScalarKind.UINT32: "uint32",
    ScalarKind.UINT64: "uint64",
    ScalarKind.INTEGER: "int64",
    ScalarKind.NUMBER: "double",
    ScalarKind.FLOAT32: "float",
    ScalarKind.FLOAT64: "double",
    ScalarKind.STRING: "string",
    ScalarKind.UUID: "string",
    ScalarKind.BYTES: "bytes",
}
"""The scalar type for each kind that has one."""
_NARROW: Final = frozenset({ScalarKind.INT8, ScalarKind.INT16, ScalarKind.UINT8, ScalarKind.UINT16})
MAP_KEY_KINDS: Final = frozenset(SCALAR_WORDS) - {
    ScalarKind.BYTES,
    ScalarKind.FLOAT32,
    ScalarKind.FLOAT64,
    ScalarKind.NUMBER,
}
"""Kinds that are allowed as map keys."""
TYPE_WORDS: Final = frozenset({*SCALAR_WORDS.values(), *(kind.value for kind in ScalarKind)})
"""Keywords of types. A field with such a name gets a suffix."""
NO_CONSTRAINTS: Final[Mapping[str, Any]] = MappingProxyType({})
"""No constraints."""
_DECIMAL: Final = "confluent.type.Decimal"
_INT64: Final = range(-(1 << 63), 1 << 63)


def _imported_type(word: str, file: str, *more: str, is_message: bool = True) -> TypeRef:
    return TypeRef(word, imports=(file, *more), is_message=is_message)


_JSON_VALUE: Final = _imported_type("google.protobuf.Value", "google/protobuf/struct.proto")
_NULL: Final = _imported_type("google.protobuf.NullValue", "google/protobuf/struct.proto", is_message=False)
_DATE: Final = _imported_type("google.type.Date", "google/type/date.proto")
TIME: Final = _imported_type("google.type.TimeOfDay", "google/type/timeofday.proto")
"""Type for a time of day."""
INSTANT: Final = _imported_type("google.protobuf.Timestamp", "google/protobuf/timestamp.proto")
"""Type for a point in time."""
WALL_CLOCK: Final = _imported_type("google.type.DateTime", "google/type/datetime.proto")
"""Type for a date and time without time zone."""
SPAN: Final = _imported_type("google.protobuf.Duration", "google/protobuf/duration.proto")
"""Type for a time span of exact length."""
IMPORTED_MESSAGES: Final[dict[str, tuple[TypeRef, dict[str, int]]]] = {
    "google.protobuf.Any": (
        _imported_type("google.protobuf.Any", "google/protobuf/any.proto"),
        {"type_url": 1, "value": 2},
    ),
    "google.protobuf.Empty": (_imported_type("google.protobuf.Empty", "google/protobuf/empty.proto"), {}),
    "google.protobuf.FieldMask": (
        _imported_type("google.protobuf.FieldMask", "google/protobuf/field_mask.proto"),
        {"paths": 1},
    ),
}
"""Messages that are imported instead of declared, with their fields."""


def scalar_type_ref(kind: Scalar, path: str, constraints: Mapping[str, Any]) -> tuple[TypeRef, list[Loss]]:
    """Return the type for a scalar, and the losses; constraints are those of the field."""
    word = SCALAR_WORDS.get(kind.kind, "")
    match kind.kind:
        case ScalarKind.ANY:
            return _JSON_VALUE, [Loss(path, "PRECISION", "Numbers in any JSON value are doubles here.", data=True)]
        case ScalarKind.NULL:
            return _NULL, []
        case ScalarKind.DATE:
            return _DATE, []
        case ScalarKind.NUMBER:
            why = "Numbers are doubles here: digits beyond 15 may change."
            return TypeRef(word), [Loss(path, "PRECISION", why, data=True)]
        case ScalarKind.INTEGER:
            bounds = (constraints.get("minimum"), constraints.get("maximum"))
            if not all(isinstance(bound, int) and bound in _INT64 for bound in bounds):
                return TypeRef(word), [Loss(path, "RANGE", "Integers beyond 64 bits cannot be written.", data=True)]
        case ScalarKind.UUID:
            return TypeRef(word), [Loss(path, "FORMAT", "Any text is taken where a UUID was demanded.")]
        case _ if kind.kind in _NARROW:
            return TypeRef(word), [Loss(path, "RANGE", f"All of {word} is taken where {kind.kind.value} was demanded.")]
    return TypeRef(word), []


def decimal_type_ref(kind: Decimal) -> TypeRef:
    """Return a decimal, with precision and scale as an option of the field."""
    params = {"precision": kind.precision, "scale": kind.scale} if kind.precision or kind.scale else {}
    params_text = ", ".join(
        f'{{key: "{name}", value: "{value}"}}' for name, value in params.items() if value is not None
    )
    if not params_text:
        return _imported_type(_DECIMAL, "confluent/type/decimal.proto")
    decimal_type = _imported_type(_DECIMAL, "confluent/type/decimal.proto", "confluent/meta.proto")
    return replace(decimal_type, options=(("confluent.field_meta", f"{{params: [{params_text}]}}"),))


def branch_name(kind: Type) -> str:
    """Return a name for a branch of a union that has none."""
    match kind:
        case TypeReference():
            return kind.name.rpartition(".")[2]
        case Scalar():
            return kind.kind.value
        case Array():
            return f"{branch_name(kind.items)}_list"
    return type(kind).__name__.lower()


HIGHEST_NUMBER: Final = (1 << 29) - 1
"""Greatest field number."""
RESERVED_NUMBERS: Final = range(19_000, 20_000)
"""Field numbers that are reserved for Protobuf implementations."""


class ProtoFileBuilder:
    """Fills the messages that `TypeNesting` declares."""

    def __init__(self, model: Model, root: RecordType) -> None:
        self._root = root
        self._known: dict[str, TypeRef] = {}
        types = dict(model.types)
        for name, (target, members) in IMPORTED_MESSAGES.items():
            item = types.get(name)
            if item is not root and isinstance(item, RecordType) and {f.name: f.number for f in item.fields} == members:
                self._known[name] = target
                types[name] = Fixed(name, 0)  # declared nowhere, like bytes
        self._nesting = TypeNesting(types, root)
        self.losses = self._nesting.losses
        self._names: dict[str, dict[str, str]] = {}
        self._groups: dict[str, dict[str, str]] = {}
        self._calendar_message: ProtoMessage | None = None

    def build_text(self, doc: str) -> str:
        """Return the text of the file."""
        places = self._nesting
        places.declare_types(self._reserve_names)
        for name, message in places.messages.items():
            record = places.types[name]
            assert isinstance(record, RecordType)
            self._fill_message(record, message)
        if not places.messages[self._root.name].doc:
            places.messages[self._root.name].doc = doc
        return ProtoWriter(places.package, places.top).write_text()

    def _add_loss(self, path: str, what: str, why: str, *, data: bool = False) -> None:
        self.losses.append(Loss(path, what, why, data))

    # --- names and numbers ------------------------------------------------------------------------------------------

    def _reserve_names(self, record: RecordType, message: ProtoMessage) -> None:
        """Claim the names of fields and oneofs, and the names the compiler derives from them."""
        groups: dict[str, str] = {}
        for group, members in record.at_most_one.items():
            groups |= {member: group for member in members if member not in groups}
        names: dict[str, str] = {}
        for field in record.fields:
            if field.name in names:
                raise CannotConvert(f"{record.name} has two fields named {field.name!r}")
            has_entries = isinstance(field.type, Map) and field.name not in groups
            names[field.name] = message.names.claim_field(to_identifier(field.name), has_entries=has_entries)
        oneofs = {
            group: message.names.claim_name(to_identifier(group or "value"))
            for group in dict.fromkeys(groups[field.name] for field in record.fields if field.name in groups)
        }
        for field_name in names.values():
            message.names.claim_oneof(field_name)
        self._names[record.name] = names
        self._groups[record.name] = {name: oneofs[groups[name]] for name in names if name in groups}

    def _field_numbers(self, record: RecordType, path: str) -> list[int]:
        """Return the field numbers: the model's own, or the next free one in order."""
        used: set[int] = set()
        own: list[int | None] = []
        for field in record.fields:
            number = field.number
            if number is not None and (not _is_usable_number(number) or number in used):
                why = f"{number} cannot be the number of {field.name!r}, which gets another one."
                self._add_loss(path + field.name, "NUMBER", why)
                number = None
            if number is not None:
                used.add(number)
            own.append(number)
        free = (number for number in range(1, HIGHEST_NUMBER) if _is_usable_number(number) and number not in used)
        return [next(free) if number is None else number for number in own]

    # --- messages ---------------------------------------------------------------------------------------------------

    def _fill_message(self, record: RecordType, message: ProtoMessage) -> None:
        path = self._nesting.reached[record.name]
        if record.open:
            why = f"{record.name!r} takes members that it does not name; a message has no place for them."
            self._add_loss(path, "OPEN", why, data=True)
        if record.aliases:
            self._add_loss(
                path, "ALIAS", f"Earlier names of {record.name!r} are left out: {', '.join(record.aliases[:5])}."
            )
        path = f"{path}." if path else ""
        numbers = self._field_numbers(record, path)
        json_names = self._json_names(record, path)
        for field, number, json_name in zip(record.fields, numbers, json_names, strict=True):
            slot = self._build_field(field, message, path + field.name, self._groups[record.name].get(field.name, ""))
            slot.name, slot.number = self._names[record.name][field.name], number
            slot.doc, slot.json_name = field.doc, json_name
            message.slots.append(slot)
            self._add_field_losses(field, path + field.name)

    def _json_names(self, record: RecordType, path: str) -> list[str]:
        """Return the `json_name` of each field, '' where it needs none. It keeps the model's names in JSON."""
        names = self._names[record.name]
        json_keys = json_names([(names[field.name], field.name) for field in record.fields])
        for field, json_name in zip(record.fields, json_keys, strict=True):
            field_name = names[field.name]
            if field_name != field.name:
                name_in_json = json_name or default_json_name(field_name)
                self._add_loss(
                    path + field.name, "NAME", f"The field is called {field_name!r}; in JSON, {name_in_json!r}."
                )
        return json_keys

    def _add_field_losses(self, field: RecordField, path: str) -> None:
        """Report properties that no proto3 field can express."""
        if field.aliases:
            self._add_loss(path, "ALIAS", f"Earlier names of the field are left out: {', '.join(field.aliases[:5])}.")
        if field.constraints:
            self.losses.append(constraint_loss(path, field.constraints))
        if field.default is ABSENT or self._is_zero(field) or (field.nullable and field.default is None):
            return
        why = "proto3 has no defaults: a field that is not in the data reads as not set, or as zero."
        self._add_loss(path, "DEFAULT", why)

    def _is_zero(self, field: RecordField) -> bool:
        """Return whether the default is the value that a missing field without presence reads as."""
        return (
            not field.nullable
            and field.default is not ABSENT
            and _is_same_value(field.default, self._zero_value(field.type))
        )

    def _zero_value(self, kind: Type) -> Any:
        match kind:
            case Array():
                return []
            case Map():
                return {}
            case TypeReference():
                item = self._nesting.types[kind.name]
                zero = self._nesting.zeros.get(kind.name) if isinstance(item, Enumeration) else ""
                return zero or ABSENT
            case Scalar(ScalarKind.BOOLEAN):
                return False
            case Scalar(ScalarKind.STRING | ScalarKind.BYTES):
                return ""
            case Scalar(ScalarKind.UUID | ScalarKind.DATE | ScalarKind.ANY | ScalarKind.NULL):
                return ABSENT
            case Scalar():
                return 0
        return ABSENT

    # --- fields -----------------------------------------------------------------------------------------------------

    def _build_field(self, field: RecordField, message: ProtoMessage, path: str, oneof: str) -> ProtoField:
        """Return a field without its name and number."""
        if not oneof and isinstance(field.type, Array | Map):
            if field.nullable:
                self._add_loss(path, "NULLABLE", "Null cannot be distinguished from an empty list or map.", data=True)
            elif not field.required and field.default is ABSENT:
                self._add_loss(path, "PRESENCE", "Left out cannot be distinguished from an empty list or map.")
            return self._build_repeated(field.type, message, path, field.name)
        target = self._single_type(field.type, message, path, field.name, constraints=field.constraints)
        plain = not field.nullable and (field.required or self._is_zero(field))
        if plain and field.required and target.is_message and not oneof:
            self._add_loss(path, "REQUIRED", "proto3 cannot demand that a message is set.")
        return ProtoField("", 0, target, "" if oneof or plain else "optional", oneof=oneof)

    def _build_repeated(self, kind: Array | Map, message: ProtoMessage, path: str, hint: str) -> ProtoField:
        """Return a repeated or a map field."""
        if isinstance(kind, Array):
            item = self._single_type(kind.items, message, f"{path}[]", f"{hint}_item", nullable=kind.nullable)
            return ProtoField("", 0, item, "repeated")
        if kind.keys.kind in MAP_KEY_KINDS:
            key = self._scalar_type(kind.keys, f"{path}{{}}")
            value = self._single_type(kind.values, message, f"{path}{{}}", f"{hint}_value", nullable=kind.nullable)
            return ProtoField("", 0, value, key=key.word)
        self._add_loss(path, "MAP", "No map has such keys: it is a list of entries, in which a key may be there twice.")
        entry = self._add_helper_message(message, f"{hint}_pair", "A key and its value.")
        entry.slots.append(ProtoField("key", 1, self._scalar_type(kind.keys, f"{path}{{}}")))
        value = self._single_type(kind.values, message, f"{path}{{}}", f"{hint}_value")
        entry.slots.append(ProtoField("value", 2, value, "optional" if kind.nullable else ""))
        return ProtoField("", 0, entry.type_ref, "repeated")

    def _single_type(
        self,
        kind: Type,
        message: ProtoMessage,
        path: str,
        hint: str,
        *,
        nullable: bool = False,
        constraints: Mapping[str, Any] = NO_CONSTRAINTS,
    ) -> TypeRef:
        """Return the type of a single value.

        An array, a map, a union or a nullable value is wrapped in a helper message. It is declared in `message` and
        named after `hint`.
        """
        if isinstance(kind, Array | Map):
            around = self._add_helper_message(message, f"{hint}_list" if isinstance(kind, Array) else f"{hint}_map")
            slot = self._build_repeated(kind, message, path, hint)
            slot.name, slot.number = "values", 1
            around.names.claim_field("values", has_entries=True)
            around.slots.append(slot)
            if not nullable:
                return around.type_ref
            outer = self._add_helper_message(message, hint, "Null when the value is not set.")
            outer.slots.append(ProtoField("value", 1, around.type_ref))
            return outer.type_ref
        if isinstance(kind, Union):
            return self._build_union(kind, message, path, hint, nullable=nullable)
        target = self._plain_type(kind, path, constraints)
        if nullable and kind != Scalar(ScalarKind.NULL):
            around = self._add_helper_message(message, hint, "Null when the value is not set.")
            around.slots.append(ProtoField("value", 1, target, "optional"))
            return around.type_ref
        return target

    def _build_union(self, kind: Union, message: ProtoMessage, path: str, hint: str, *, nullable: bool) -> TypeRef:
        if len(kind.options) > MAX_MEMBERS:
            raise TooLarge(f"{path}: a union has more than {MAX_MEMBERS} options")
        around = self._add_helper_message(
            message, hint, f"One of these{', or null when none is set' if nullable else ''}."
        )
        oneof = around.names.claim_name("kind")
        names = []
        for option in kind.options:
            name = to_snake_case(option.name.rpartition(".")[2] or branch_name(option.type))
            names.append(around.names.claim_field(f"{name}_value" if name in TYPE_WORDS else name))
        json_keys = json_names([(name, name) for name in names])
        for number, (option, name, json_name) in enumerate(zip(kind.options, names, json_keys, strict=True), 1):
            target = self._single_type(option.type, message, path, f"{hint}_{name}")
            around.slots.append(ProtoField(name, number, target, oneof=oneof, json_name=json_name))
        return around.type_ref

    def _add_helper_message(self, message: ProtoMessage, hint: str, doc: str = "") -> ProtoMessage:
        """Return a new message inside another one."""
        name = message.names.claim_name(to_pascal_case(hint))
        helper = message.inner[name] = ProtoMessage((*message.path, name), doc)
        return helper

    # --- types ------------------------------------------------------------------------------------------------------

    def _plain_type(self, kind: Type, path: str, constraints: Mapping[str, Any]) -> TypeRef:
        """Return the type of a value that needs no helper message."""
        match kind:
            case Scalar():
                return self._scalar_type(kind, path, constraints)
            case Decimal():
                return decimal_type_ref(kind)
            case Time():
                return TIME
            case Timestamp():
                return INSTANT if kind.utc else WALL_CLOCK
            case Duration():
                return self._calendar_duration(path) if kind.calendar else SPAN
            case TypeReference():
                return self._named_type(kind.name, path)
        raise CannotConvert(f"{path}: Protobuf has no type for {type(kind).__name__}")

    def _named_type(self, name: str, path: str) -> TypeRef:
        if name in self._known:
            return self._known[name]
        item = self._nesting.types[name]
        if isinstance(item, Fixed):
            self._add_loss(path, "FIXED", f"Any number of bytes is taken where {item.size} were demanded.")
            return TypeRef("bytes")
        return TypeRef(path=self._nesting.paths[name], is_message=isinstance(item, RecordType))

    def _scalar_type(self, kind: Scalar, path: str, constraints: Mapping[str, Any] = NO_CONSTRAINTS) -> TypeRef:
        target, losses = scalar_type_ref(kind, path, constraints)
        self.losses += losses
        return target

    def _calendar_duration(self, path: str) -> TypeRef:
        """Return the message for time spans of months, days and milliseconds. It is declared on first use."""
        self._add_loss(path, "DURATION", "Spans with months are no type of Protobuf, but a message of three integers.")
        if self._calendar_message is None:
            self._calendar_message = self._add_helper_message(
                self._nesting.top, "calendar_duration", "Months, days and milliseconds."
            )
            parts = (("months", "int32"), ("days", "int32"), ("milliseconds", "int64"))
            self._calendar_message.slots += [
                ProtoField(name, number, TypeRef(word)) for number, (name, word) in enumerate(parts, 1)
            ]
        return self._calendar_message.type_ref


def _is_usable_number(number: int) -> bool:
    return 0 < number <= HIGHEST_NUMBER and number not in RESERVED_NUMBERS


def _is_same_value(default: Any, zero: Any) -> bool:
    """Return whether two JSON values are equal. false differs from 0, and -0.0 from 0."""
    return default == zero and isinstance(default, bool) == isinstance(zero, bool) and not str(default).startswith("-")


def constraint_loss(path: str, constraints: Mapping[str, Any]) -> Loss:
    """Return the loss of constraints, which Protobuf never checks."""
    return Loss(path, "CONSTRAINT", f"Nothing checks {', '.join(sorted(constraints))}.")


def from_model(model: Model) -> tuple[bytes, list[Loss]]:
    """Return a proto3 file whose first message is the root, and the losses.

    A root that is not a record becomes the field `value` of a message `Value`. Raises `TooLarge` past the limits of
    `proto_file` and `parse`, `CannotConvert` for a model that refers to a missing type.
    """
    losses: list[Loss] = []
    declared = model.types.get(model.root.name) if isinstance(model.root, TypeReference) else None
    if isinstance(declared, RecordType):
        root = declared
        if model.nullable:
            losses.append(Loss("", "NULLABLE", "A datum is a message and never null.", data=True))
        if model.constraints:
            losses.append(constraint_loss("", model.constraints))
    else:
        space = model.root.name.rpartition(".")[0] if isinstance(model.root, TypeReference) else ""
        name = f"{space}.Value" if space else "Value"
        while name in model.types:
            name += "_"
        only = RecordField("value", model.root, nullable=model.nullable, constraints=model.constraints)
        root = RecordType(name, (only,))
        losses.append(Loss("", "ROOT", "A datum is a message: the value is its only field, `value`."))
    drafter = ProtoFileBuilder(model, root)
    text = drafter.build_text(model.doc).encode("utf-8", "replace")
    if len(text) > MAX_BYTES:
        raise TooLarge(f"the schema would have {len(text)} bytes; the limit is {MAX_BYTES}")
    return text, losses + drafter.losses
