"""From the neutral model to a proto3 file.

| model | Protobuf |
|---|---|
| boolean, integers of 32 and 64 bits | bool, int32, int64, uint32, uint64 |
| floats, string, uuid, bytes, fixed | float, double, string, string, bytes, bytes |
| shorter integers | int32, uint32 |
| integer, number of any size | int64, double |
| any, null | google.protobuf.Value, google.protobuf.NullValue |
| date, time | google.type.Date, google.type.TimeOfDay |
| timestamp, on a wall clock | google.protobuf.Timestamp (years 1 to 9999), google.type.DateTime |
| duration, of months and days too | google.protobuf.Duration, a message of three integers |
| decimal | confluent.type.Decimal, precision and scale in `(confluent.field_meta).params` |
| record, enumeration | message, enum |
| array, map | repeated, map; a message around it where neither may stand |
| union, group of which a datum has one | message with a oneof, oneof |
| nullable, or left out without a default | `optional` |

A confluent.type.Decimal keeps every digit, which no number of Protobuf does, and is read as a decimal by the tools of
that platform. proto3 can demand nothing: a required scalar becomes one without presence, which reads as zero when it is
not there.
"""

from __future__ import annotations

from collections.abc import Mapping
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
from stele.formats.protobuf.draft import Message, Slot, Target, Writer, identifier, json_names, pascal, snake
from stele.formats.protobuf.places import MAX_MEMBERS, Places
from stele.formats.protobuf.printer import usual_json_name
from stele.formats.protobuf.targets import (
    INSTANT,
    KEYS,
    KNOWN,
    NONE,
    SPAN,
    TIME,
    TYPE_WORDS,
    WALL_CLOCK,
    decimal_target,
    scalar_target,
    word_of,
)

HIGHEST_NUMBER: Final = (1 << 29) - 1
"""Greatest field number."""
RESERVED_NUMBERS: Final = range(19_000, 20_000)
"""Field numbers the implementations keep for themselves."""


class Drafter:
    """Fills the messages that `Places` declares."""

    def __init__(self, model: Model, root: RecordType) -> None:
        self._root = root
        self._known: dict[str, Target] = {}
        types = dict(model.types)
        for name, (target, members) in KNOWN.items():
            item = types.get(name)
            if item is not root and isinstance(item, RecordType) and {f.name: f.number for f in item.fields} == members:
                self._known[name] = target
                types[name] = Fixed(name, 0)  # declared nowhere, like bytes
        self._places = Places(types, root)
        self.losses = self._places.losses
        self._names: dict[str, dict[str, str]] = {}
        self._groups: dict[str, dict[str, str]] = {}
        self._span: Message | None = None

    def text(self, doc: str) -> str:
        """The file."""
        places = self._places
        places.declare(self._reserve)
        for name, message in places.messages.items():
            record = places.types[name]
            assert isinstance(record, RecordType)
            self._fill(record, message)
        if not places.messages[self._root.name].doc:
            places.messages[self._root.name].doc = doc
        return Writer(places.package, places.top).text()

    def _lose(self, path: str, what: str, why: str, *, data: bool = False) -> None:
        self.losses.append(Loss(path, what, why, data))

    # --- names and numbers ------------------------------------------------------------------------------------------

    def _reserve(self, record: RecordType, message: Message) -> None:
        """Claim the names of fields and oneofs, and what the compiler derives from them."""
        groups: dict[str, str] = {}
        for group, members in record.at_most_one.items():
            groups |= {member: group for member in members if member not in groups}
        names: dict[str, str] = {}
        for field in record.fields:
            if field.name in names:
                raise CannotConvert(f"{record.name} has two fields named {field.name!r}")
            has_entries = isinstance(field.type, Map) and field.name not in groups
            names[field.name] = message.names.claim_field(identifier(field.name), has_entries=has_entries)
        oneofs = {
            group: message.names.claim(identifier(group or "value"))
            for group in dict.fromkeys(groups[field.name] for field in record.fields if field.name in groups)
        }
        for made in names.values():
            message.names.claim_oneof(made)
        self._names[record.name] = names
        self._groups[record.name] = {name: oneofs[groups[name]] for name in names if name in groups}

    def _numbers(self, record: RecordType, path: str) -> list[int]:
        """The numbers of the fields: their own, or the next free one in their order."""
        used: set[int] = set()
        own: list[int | None] = []
        for field in record.fields:
            number = field.number
            if number is not None and (not _usable(number) or number in used):
                why = f"{number} cannot be the number of {field.name!r}, which gets another one."
                self._lose(path + field.name, "NUMBER", why)
                number = None
            if number is not None:
                used.add(number)
            own.append(number)
        free = (number for number in range(1, HIGHEST_NUMBER) if _usable(number) and number not in used)
        return [next(free) if number is None else number for number in own]

    # --- messages ---------------------------------------------------------------------------------------------------

    def _fill(self, record: RecordType, message: Message) -> None:
        path = self._places.reached[record.name]
        if record.open:
            why = f"{record.name!r} takes members that it does not name; a message has no place for them."
            self._lose(path, "OPEN", why, data=True)
        if record.aliases:
            self._lose(
                path, "ALIAS", f"Earlier names of {record.name!r} are left out: {', '.join(record.aliases[:5])}."
            )
        path = f"{path}." if path else ""
        numbers = self._numbers(record, path)
        json_names = self._json_names(record, path)
        for field, number, json_name in zip(record.fields, numbers, json_names, strict=True):
            slot = self._slot(field, message, path + field.name, self._groups[record.name].get(field.name, ""))
            slot.name, slot.number = self._names[record.name][field.name], number
            slot.doc, slot.json_name = field.doc, json_name
            message.slots.append(slot)
            self._remark(field, path + field.name)

    def _json_names(self, record: RecordType, path: str) -> list[str]:
        """The `json_name` of each field, '' where it needs none: so JSON keeps the names of the model."""
        names = self._names[record.name]
        found = json_names([(names[field.name], field.name) for field in record.fields])
        for field, json_name in zip(record.fields, found, strict=True):
            made = names[field.name]
            if made != field.name:
                shown = json_name or usual_json_name(made)
                self._lose(path + field.name, "NAME", f"The field is called {made!r}; in JSON, {shown!r}.")
        return found

    def _remark(self, field: RecordField, path: str) -> None:
        """What no field of proto3 says."""
        if field.aliases:
            self._lose(path, "ALIAS", f"Earlier names of the field are left out: {', '.join(field.aliases[:5])}.")
        if field.constraints:
            self.losses.append(constraints_lost(path, field.constraints))
        if field.default is ABSENT or self._is_zero(field) or (field.nullable and field.default is None):
            return
        why = "proto3 has no defaults: a field that is not in the data reads as not set, or as zero."
        self._lose(path, "DEFAULT", why)

    def _is_zero(self, field: RecordField) -> bool:
        """Whether the default is what a field without presence reads as anyway."""
        return not field.nullable and field.default is not ABSENT and _same(field.default, self._zero(field.type))

    def _zero(self, kind: Type) -> Any:
        match kind:
            case Array():
                return []
            case Map():
                return {}
            case TypeReference():
                item = self._places.types[kind.name]
                found = self._places.zeros.get(kind.name) if isinstance(item, Enumeration) else ""
                return found or ABSENT
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

    def _slot(self, field: RecordField, message: Message, path: str, oneof: str) -> Slot:
        """A field without its name and number."""
        if not oneof and isinstance(field.type, Array | Map):
            if field.nullable:
                self._lose(path, "NULLABLE", "Null cannot be told from an empty list or map.", data=True)
            elif not field.required and field.default is ABSENT:
                self._lose(path, "PRESENCE", "Left out cannot be told from an empty list or map.")
            return self._many(field.type, message, path, field.name)
        target = self._one(field.type, message, path, field.name, constraints=field.constraints)
        plain = not field.nullable and (field.required or self._is_zero(field))
        if plain and field.required and target.is_message and not oneof:
            self._lose(path, "REQUIRED", "proto3 cannot demand that a message is set.")
        return Slot("", 0, target, "" if oneof or plain else "optional", oneof=oneof)

    def _many(self, kind: Array | Map, message: Message, path: str, hint: str) -> Slot:
        """A repeated or a map field."""
        if isinstance(kind, Array):
            item = self._one(kind.items, message, f"{path}[]", f"{hint}_item", nullable=kind.nullable)
            return Slot("", 0, item, "repeated")
        if kind.keys.kind in KEYS:
            key = self._scalar(kind.keys, f"{path}{{}}")
            value = self._one(kind.values, message, f"{path}{{}}", f"{hint}_value", nullable=kind.nullable)
            return Slot("", 0, value, key=key.word)
        self._lose(path, "MAP", "No map has such keys: it is a list of entries, in which a key may be there twice.")
        entry = self._helper(message, f"{hint}_pair", "A key and its value.")
        entry.slots.append(Slot("key", 1, self._scalar(kind.keys, f"{path}{{}}")))
        value = self._one(kind.values, message, f"{path}{{}}", f"{hint}_value")
        entry.slots.append(Slot("value", 2, value, "optional" if kind.nullable else ""))
        return Slot("", 0, entry.target, "repeated")

    def _one(
        self,
        kind: Type,
        message: Message,
        path: str,
        hint: str,
        *,
        nullable: bool = False,
        constraints: Mapping[str, Any] = NONE,
    ) -> Target:
        """The type of a single value: with a message around it where it is no single one, or where it can be null.

        Such messages are declared in message, and named after hint.
        """
        if isinstance(kind, Array | Map):
            around = self._helper(message, f"{hint}_list" if isinstance(kind, Array) else f"{hint}_map")
            slot = self._many(kind, message, path, hint)
            slot.name, slot.number = "values", 1
            around.names.claim_field("values", has_entries=True)
            around.slots.append(slot)
            if not nullable:
                return around.target
            outer = self._helper(message, hint, "Null when the value is not set.")
            outer.slots.append(Slot("value", 1, around.target))
            return outer.target
        if isinstance(kind, Union):
            return self._union(kind, message, path, hint, nullable=nullable)
        target = self._plain(kind, path, constraints)
        if nullable and kind != Scalar(ScalarKind.NULL):
            around = self._helper(message, hint, "Null when the value is not set.")
            around.slots.append(Slot("value", 1, target, "optional"))
            return around.target
        return target

    def _union(self, kind: Union, message: Message, path: str, hint: str, *, nullable: bool) -> Target:
        if len(kind.options) > MAX_MEMBERS:
            raise TooLarge(f"{path}: a union has more than {MAX_MEMBERS} options")
        around = self._helper(message, hint, f"One of these{', or null when none is set' if nullable else ''}.")
        oneof = around.names.claim("kind")
        names = []
        for option in kind.options:
            name = snake(option.name.rpartition(".")[2] or word_of(option.type))
            names.append(around.names.claim_field(f"{name}_value" if name in TYPE_WORDS else name))
        shown = json_names([(name, name) for name in names])
        for number, (option, name, json_name) in enumerate(zip(kind.options, names, shown, strict=True), 1):
            target = self._one(option.type, message, path, f"{hint}_{name}")
            around.slots.append(Slot(name, number, target, oneof=oneof, json_name=json_name))
        return around.target

    def _helper(self, message: Message, hint: str, doc: str = "") -> Message:
        """A new message inside another one."""
        name = message.names.claim(pascal(hint))
        made = message.inner[name] = Message((*message.path, name), doc)
        return made

    # --- types ------------------------------------------------------------------------------------------------------

    def _plain(self, kind: Type, path: str, constraints: Mapping[str, Any]) -> Target:
        """The type of a value that is single by itself."""
        match kind:
            case Scalar():
                return self._scalar(kind, path, constraints)
            case Decimal():
                return decimal_target(kind)
            case Time():
                return TIME
            case Timestamp():
                return INSTANT if kind.utc else WALL_CLOCK
            case Duration():
                return self._calendar(path) if kind.calendar else SPAN
            case TypeReference():
                return self._named(kind.name, path)
        raise CannotConvert(f"{path}: Protobuf has no type for {type(kind).__name__}")

    def _named(self, name: str, path: str) -> Target:
        if name in self._known:
            return self._known[name]
        item = self._places.types[name]
        if isinstance(item, Fixed):
            self._lose(path, "FIXED", f"Any number of bytes is taken where {item.size} were demanded.")
            return Target("bytes")
        return Target(path=self._places.paths[name], is_message=isinstance(item, RecordType))

    def _scalar(self, kind: Scalar, path: str, constraints: Mapping[str, Any] = NONE) -> Target:
        target, losses = scalar_target(kind, path, constraints)
        self.losses += losses
        return target

    def _calendar(self, path: str) -> Target:
        """One message for all spans of months, days and milliseconds, declared when it is first needed."""
        self._lose(path, "DURATION", "Spans with months are no type of Protobuf, but a message of three integers.")
        if self._span is None:
            self._span = self._helper(self._places.top, "calendar_duration", "Months, days and milliseconds.")
            parts = (("months", "int32"), ("days", "int32"), ("milliseconds", "int64"))
            self._span.slots += [Slot(name, number, Target(word)) for number, (name, word) in enumerate(parts, 1)]
        return self._span.target


def _usable(number: int) -> bool:
    return 0 < number <= HIGHEST_NUMBER and number not in RESERVED_NUMBERS


def _same(default: Any, zero: Any) -> bool:
    """Whether two JSON values are equal, false not being 0, and -0.0 not 0."""
    return default == zero and isinstance(default, bool) == isinstance(zero, bool) and not str(default).startswith("-")


def constraints_lost(path: str, constraints: Mapping[str, Any]) -> Loss:
    """No constraint is checked by Protobuf."""
    return Loss(path, "CONSTRAINT", f"Nothing checks {', '.join(sorted(constraints))}.")
