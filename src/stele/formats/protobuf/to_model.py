"""Converts a compiled schema to the neutral model.

| Protobuf | model |
|---|---|
| fields without presence | not nullable, may be left out, with the zero of their type as default |
| fields with presence | nullable, may be left out, null by default; a default of proto2 makes them not nullable |
| `required` | required, not nullable |
| repeated, map | arrays and maps that may be left out, empty by default |
| oneof | a group of nullable fields of which a datum has at most one |
| message, group, enum | a named type by its full name |
| google.protobuf.Timestamp, Duration | a point in time, a span of time, both with nanoseconds |
| google.protobuf.Int32Value and the other wrappers | the nullable scalar |
| google.protobuf.Struct, Value, ListValue, confluent.type.Variant | any JSON value |
| google.protobuf.NullValue | null |
| google.type.Date, TimeOfDay, DateTime, Decimal | a date, a time, a timestamp without time zone, a decimal |
| confluent.type.Decimal | a decimal, of the precision and scale that `(confluent.field_meta).params` names |

Comments become documentation. The compiler does not keep those of imported files.
"""

from __future__ import annotations

import base64
import re
from collections import deque
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from google.protobuf.descriptor import FieldDescriptor as F
from google.protobuf.descriptor_pb2 import DescriptorProto, EnumDescriptorProto

from stele.errors import CannotConvert
from stele.formats.conversion.model import (
    ABSENT,
    Array,
    Decimal,
    Duration,
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
    Time,
    Timestamp,
    TimeUnit,
    Type,
    TypeReference,
)
from stele.formats.protobuf.model import (
    DURATION,
    JSON_VALUES,
    TIMESTAMP,
    WRAPPERS,
    Path,
    SourceComments,
    default_json_name,
    enum_of,
    is_map,
    map_parts,
    type_text,
)
from stele.formats.protobuf.options import list_options, scalar_literal

if TYPE_CHECKING:
    from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor
    from google.protobuf.descriptor_pb2 import FieldDescriptorProto
    from google.protobuf.message import Message

    from stele.formats.protobuf.model import ProtobufSchema


_MODELLED_OPTIONS: Final = frozenset(
    {"map_entry", "allow_alias", "features.field_presence", "features.message_encoding"}
)
"""Options that the model expresses, or whose loss is reported elsewhere."""
_CLOSED: Final = frozenset({"features.enum_type"})
_META: Final = "(confluent.field_meta)"


class LossCollector:
    """Collects losses."""

    def __init__(self, schema: ProtobufSchema) -> None:
        self._schema = schema
        self.losses: list[Loss] = []

    def add_loss(self, path: str, what: str, why: str, *, data: bool = False) -> None:
        """Add a loss."""
        self.losses.append(Loss(path, what, why, data))

    def add_message_losses(self, proto: DescriptorProto, path: str) -> None:
        """Report options, reserved numbers and names, extension ranges, and extensions declared inside."""
        at = path.rstrip(".")
        self._add_option_losses(proto.options, at, f"message {proto.name}")
        for oneof in proto.oneof_decl:
            self._add_option_losses(oneof.options, at, f"oneof {oneof.name}")
        if proto.reserved_range or proto.reserved_name:
            self.add_loss(at, "RESERVED", f"Nothing keeps the reserved numbers and names of {proto.name} from use.")
        if proto.extension_range:
            why = f"{proto.name} may hold extensions that other files declare; they have no place."
            self.add_loss(at, "EXTENSION", why, data=True)

    def add_field_losses(
        self, proto: FieldDescriptorProto, field: FieldDescriptor, path: str
    ) -> tuple[str, dict[str, str]]:
        """Report options and the JSON name; return documentation and parameters of Confluent's field metadata."""
        doc, params = "", {}
        if field.json_name != default_json_name(field.name):
            self.add_loss(path, "NAME", f"In JSON the field is {field.json_name!r}; the model knows its name only.")
        meta = self._field_meta(proto.options)
        if meta is not None:
            doc, params = meta.doc, dict(meta.params)
        known = meta is None or not (meta.tags or meta.rules or params.keys() - {"precision", "scale"})
        self._add_option_losses(proto.options, path, f"field {field.name}", but=frozenset({_META} if known else ()))
        return doc, params

    def add_enum_losses(self, proto: EnumDescriptorProto, path: str, *, is_open: bool) -> None:
        """Report options, reserved numbers and names, and numbers without a name."""
        self._add_option_losses(proto.options, path, f"enum {proto.name}", but=_CLOSED)
        for value in proto.value:
            self._add_option_losses(value.options, path, f"enum value {value.name}")
        if proto.reserved_range or proto.reserved_name:
            self.add_loss(path, "RESERVED", f"Nothing keeps the reserved numbers and names of {proto.name} from use.")
        if is_open:
            why = f"{proto.name} is open: a number that has no name here is a value, and has no place in the model."
            self.add_loss(path, "OPEN_ENUM", why, data=True)

    def add_file_losses(self, types: Mapping[str, NamedType]) -> None:
        """Report what belongs to no message: file options, services, extensions, and unreachable types."""
        file = self._schema.proto
        self._add_option_losses(file.options, "", "file", but=_CLOSED)
        for service in file.service:
            self.add_loss("", "SERVICE", f"The service {service.name} and its methods are no part of any data.")
        if file.extension:
            few = ", ".join(extension.name for extension in file.extension[:5])
            self.add_loss("", "EXTENSION", f"The extensions that the file declares ({few}) are left out.")
        start = f"{file.package}." if file.package else ""
        used = {name.removeprefix(start).partition(".")[0] for name in types if name.startswith(start)}
        names = [*(item.name for item in file.message_type), *(item.name for item in file.enum_type)]
        for name in names:
            if name not in used:
                self.add_loss("", "TYPE", f"{self._schema.full_name(name)} is not used by the chosen message.")

    def _add_option_losses(self, options: Message, path: str, owner: str, but: frozenset[str] = frozenset()) -> None:
        option_texts = list_options(options, self._schema)
        names = dict.fromkeys(
            option.name for option in option_texts if option.name not in _MODELLED_OPTIONS and option.name not in but
        )
        if names:
            self.add_loss(path, "OPTION", f"Options of the {owner} are left out: {', '.join(names)}.")

    def _field_meta(self, options: Message) -> Any:
        """Return Confluent's metadata of a field, None when there is none."""
        if not options.ByteSize():
            return None
        try:
            extension = self._schema.pool.FindExtensionByName(_META.strip("()"))
            kind = self._schema.class_of(self._schema.pool.FindMessageTypeByName(options.DESCRIPTOR.full_name))
        except KeyError:
            return None
        meta: Any = kind.FromString(options.SerializePartialToString())
        if not meta.HasExtension(extension):
            return None
        return meta.Extensions[extension]


SCALARS: Final = {
    **dict.fromkeys((F.TYPE_INT32, F.TYPE_SINT32, F.TYPE_SFIXED32), ScalarKind.INT32),
    **dict.fromkeys((F.TYPE_INT64, F.TYPE_SINT64, F.TYPE_SFIXED64), ScalarKind.INT64),
    **dict.fromkeys((F.TYPE_UINT32, F.TYPE_FIXED32), ScalarKind.UINT32),
    **dict.fromkeys((F.TYPE_UINT64, F.TYPE_FIXED64), ScalarKind.UINT64),
    F.TYPE_FLOAT: ScalarKind.FLOAT32,
    F.TYPE_DOUBLE: ScalarKind.FLOAT64,
    F.TYPE_BOOL: ScalarKind.BOOLEAN,
    F.TYPE_STRING: ScalarKind.STRING,
    F.TYPE_BYTES: ScalarKind.BYTES,
}
"""Kind of scalar of each Protobuf scalar type."""

_ENCODED: Final = frozenset(
    {F.TYPE_SINT32, F.TYPE_SINT64, F.TYPE_SFIXED32, F.TYPE_SFIXED64, F.TYPE_FIXED32, F.TYPE_FIXED64}
)
_NULL_VALUE: Final = "google.protobuf.NullValue"
_DECIMAL: Final = "confluent.type.Decimal"
_KNOWN_MESSAGES: Final[dict[str, tuple[frozenset[str], Type, Loss | None]]] = {
    "google.type.Date": (
        frozenset({"year", "month", "day"}),
        Scalar(ScalarKind.DATE),
        Loss("", "PARTIAL", "A date whose year, month or day is 0 (unknown) is not a calendar day.", data=True),
    ),
    "google.type.TimeOfDay": (
        frozenset({"hours", "minutes", "seconds", "nanos"}),
        Time(TimeUnit.NANO),
        Loss("", "PARTIAL", "24:00:00 and a leap second are no times of day.", data=True),
    ),
    "google.type.DateTime": (
        frozenset({"year", "month", "day", "hours", "minutes", "seconds", "nanos", "utc_offset", "time_zone"}),
        Timestamp(TimeUnit.NANO, utc=False),
        Loss("", "ZONE", "The offset or time zone, and a date without a year, have no place.", data=True),
    ),
    "google.type.Decimal": (
        frozenset({"value"}),
        Decimal(None),
        Loss("", "ENCODING", "The number is text on the wire; the model knows its value only."),
    ),
    _DECIMAL: (frozenset({"value", "precision", "scale"}), Decimal(None), None),
    "confluent.type.Variant": (
        frozenset({"metadata", "value"}),
        Scalar(ScalarKind.ANY),
        Loss("", "VARIANT", "Values that JSON does not have (dates, bytes) become text.", data=True),
    ),
}
_LONGEST_PATH: Final = 500


def to_model(schema: ProtobufSchema, message: str = "") -> tuple[Model, list[Loss]]:
    """Return the model of a message, by its full name ('' is the first one of the file), and the losses.

    Raises `InvalidRequest` when there is no such message, `CannotConvert` when the file has none.
    """
    if not (message or schema.type_name):
        raise CannotConvert("the schema declares no message, so it has no data")
    return _ModelBuilder(schema).build_model(schema.get_message(message))


class _ModelBuilder:
    """Turns messages into records, each once, breadth first and without recursion."""

    def __init__(self, schema: ProtobufSchema) -> None:
        self._schema = schema
        self._comments = SourceComments(schema)
        self._losses = LossCollector(schema)
        self._records: dict[str, NamedType] = {}
        self._enums: dict[str, NamedType] = {}
        self._todo: deque[tuple[Descriptor, str]] = deque()
        self._queued: set[str] = set()

    def build_model(self, root: Descriptor) -> tuple[Model, list[Loss]]:
        self._queue_message(root, "")
        while self._todo:
            message, path = self._todo.popleft()
            self._records[message.full_name] = self._build_record(message, path)
        types = self._records | self._enums
        self._losses.add_file_losses(types)
        return Model(TypeReference(root.full_name), types), self._losses.losses

    def _queue_message(self, message: Descriptor, path: str) -> TypeReference:
        if message.full_name not in self._queued:
            self._queued.add(message.full_name)
            start = path if len(path) <= _LONGEST_PATH else message.full_name
            self._todo.append((message, f"{start}." if start else ""))
        return TypeReference(message.full_name)

    def _build_record(self, message: Descriptor, path: str) -> RecordType:
        proto = DescriptorProto()
        message.CopyToProto(proto)
        place = self._message_path(message)
        self._losses.add_message_losses(proto, path)
        groups: dict[str, tuple[str, ...]] = {}
        fields = []
        for field in message.fields:
            oneof = self._schema.oneof_name(field)
            if oneof:
                groups[oneof] = (*groups.get(oneof, ()), field.name)
            doc, params = self._losses.add_field_losses(proto.field[field.index], field, path + field.name)
            written = self._comments.comment_at((*place, 2, field.index)) if place else ""
            build_field = self._build_field(field, path + field.name, params, in_oneof=bool(oneof))
            fields.append(build_field(written or doc))
        return RecordType(message.full_name, tuple(fields), self._comment_at(place), at_most_one=groups)

    def _comment_at(self, place: Path) -> str:
        return self._comments.comment_at(place) if place else ""

    def _message_path(self, message: Descriptor) -> Path:
        """Return the descriptor path of the message; () for a message of another file."""
        path = self._schema.message_positions.get(message.full_name, ())
        return (4, path[0], *(step for index in path[1:] for step in (3, index))) if path else ()

    # --- fields -----------------------------------------------------------------------------------------------------

    def _build_field(self, field: FieldDescriptor, path: str, params: dict[str, str], *, in_oneof: bool) -> Any:
        """Return a function that builds the field, given its documentation."""
        kind: Type
        default: Any = None
        nullable = required = False
        if is_map(field):
            key, value = map_parts(field)
            self._add_encoding_loss(key, f"{path}{{}}")
            kind, default = Map(self._value_type(value, f"{path}{{}}", params), Scalar(SCALARS[key.type])), {}
        elif field.is_repeated:
            kind, default = Array(self._value_type(field, f"{path}[]", params)), []
        else:
            kind = self._value_type(field, path, params)
            required = field.is_required
            if required:
                default = ABSENT
            elif field.has_default_value:
                default = self._declared_default(field)
                if in_oneof:
                    why = f"Only the member of a oneof that is set is in the data, so {default!r} has no effect."
                    self._losses.add_loss(path, "DEFAULT", why)
                    default = None
            elif not field.has_presence:
                default = self._zero_default(field)
            nullable = default is None
        if kind == Scalar(ScalarKind.NULL):
            nullable, default = True, None
        return lambda doc: RecordField(
            field.name, kind, nullable=nullable, required=required, default=default, doc=doc, number=field.number
        )

    def _add_encoding_loss(self, field: FieldDescriptor, path: str) -> None:
        if field.type in _ENCODED:
            why = f"The model knows the range of {type_text(field)}, not how it is written on the wire."
            self._losses.add_loss(path, "ENCODING", why)

    def _value_type(self, field: FieldDescriptor, path: str, params: dict[str, str]) -> Type:
        """Return the type of one value of the field."""
        if field.type == F.TYPE_ENUM:
            return self._enum_type(enum_of(field), path)
        message = field.message_type
        if message is None:
            self._add_encoding_loss(field, path)
            return Scalar(SCALARS[field.type])
        if field.type == F.TYPE_GROUP:
            self._losses.add_loss(path, "ENCODING", "A group is written between two tags, other than a message.")
        return self._message_type(message, path, params)

    def _message_type(self, message: Descriptor, path: str, params: dict[str, str]) -> Type:
        name = message.full_name
        if name in WRAPPERS:
            why = f"On the wire the value is in a message {name}; the model has only the value."
            self._losses.add_loss(path, "ENCODING", why)
            return Scalar(SCALARS[WRAPPERS[name]])
        if name == TIMESTAMP:
            return Timestamp(TimeUnit.NANO)
        if name == DURATION:
            return Duration(TimeUnit.NANO)
        if name in JSON_VALUES:
            if name != "google.protobuf.Value":
                kind = "an object" if name.endswith("Struct") else "a list"
                self._losses.add_loss(path, "CONSTRAINT", f"Only {kind} was taken; the model says any JSON value.")
            return Scalar(ScalarKind.ANY)
        if name in _KNOWN_MESSAGES:
            members, kind_of, loss = _KNOWN_MESSAGES[name]
            if {field.name for field in message.fields} == members:
                if loss:
                    self._losses.add_loss(path, loss.what, loss.why, data=loss.data)
                return _decimal_from_params(params) if name == _DECIMAL else kind_of
        return self._queue_message(message, path)

    def _enum_type(self, enum: EnumDescriptor, path: str) -> Type:
        if enum.full_name == _NULL_VALUE:
            return Scalar(ScalarKind.NULL)
        if enum.full_name not in self._enums:
            proto = EnumDescriptorProto()
            enum.CopyToProto(proto)
            self._losses.add_enum_losses(proto, path, is_open=not enum.is_closed)
            place = self._enum_path(enum)
            symbols = tuple(
                EnumSymbol(value.name, value.number, self._comment_at((*place, 2, index) if place else ()))
                for index, value in enumerate(enum.values)
            )
            self._enums[enum.full_name] = Enumeration(enum.full_name, symbols, doc=self._comment_at(place))
        return TypeReference(enum.full_name)

    def _enum_path(self, enum: EnumDescriptor) -> Path:
        """Return the descriptor path of the enum; () for one of another file."""
        if enum.file.name != self._schema.proto.name:
            return ()
        around = enum.containing_type
        if around is None:
            return (5, self._top_enums[enum.name])
        return (*self._message_path(around), 4, [each.name for each in around.enum_types].index(enum.name))

    @cached_property
    def _top_enums(self) -> dict[str, int]:
        return {each.name: index for index, each in enumerate(self._schema.proto.enum_type)}

    # --- defaults ---------------------------------------------------------------------------------------------------

    @staticmethod
    def _declared_default(field: FieldDescriptor) -> Any:
        """Return the declared default as a JSON value."""
        value = field.default_value
        if field.type == F.TYPE_ENUM:
            return enum_of(field).values_by_number[value].name
        if field.type == F.TYPE_BYTES:
            return base64.b64encode(value).decode()
        if field.type in {F.TYPE_FLOAT, F.TYPE_DOUBLE}:
            text = scalar_literal(field, value)
            return {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}.get(text) or float(text)
        return value

    @staticmethod
    def _zero_default(field: FieldDescriptor) -> Any:
        """Return the value that a missing field without presence reads as."""
        if field.type == F.TYPE_ENUM:
            return enum_of(field).values[0].name
        return "" if field.type == F.TYPE_BYTES else field.default_value


def _decimal_from_params(params: dict[str, str]) -> Decimal:
    """Return the decimal that the field's parameters describe.

    Without them, the precision is not bounded and the scale is 0.
    """
    precision, scale = (_parse_digits(params.get(name)) for name in ("precision", "scale"))
    return Decimal(precision or None, scale or 0)


def _parse_digits(text: str | None) -> int | None:
    return int(text) if text and re.fullmatch(r"-?[0-9]{1,6}", text) else None
