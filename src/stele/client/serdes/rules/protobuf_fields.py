"""The fields of Protobuf messages, for rules.

A message and its registered schema may be of different versions. Fields are matched by number; names and tags are those
of the schema. `google.protobuf.Timestamp` counts as one value, as a logical type does in Avro, and so does a decimal.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, cast

from google.protobuf.message import Message

from stele.client.serdes.rules.model import FieldLocation, FieldType, RuleContext, Visit, Walk
from stele.formats.protobuf import ProtobufSchema

if TYPE_CHECKING:
    from google.protobuf.descriptor import Descriptor, FieldDescriptor

TIMESTAMP: Final = "google.protobuf.Timestamp"
DECIMAL: Final = "confluent.type.Decimal"
_WHOLE: Final = frozenset({TIMESTAMP, DECIMAL})
_META: Final = "confluent.field_meta"


def protobuf_walk(schema: ProtobufSchema, full_name: str) -> Walk:
    """Return the walk over the fields of a message.

    It copies the message. It visits every set field that is not a message, and each such element of lists and maps.
    """
    described = schema.get_message(full_name)
    inline = _tag_reader(schema)

    def walk(context: RuleContext, visit: Visit, value: Any) -> Any:
        copy = type(value)()
        copy.CopyFrom(value)
        _Walker(context, visit, inline).walk_message(described, copy)
        return copy

    return walk


class _Walker:
    def __init__(
        self, context: RuleContext, visit: Visit, inline: Callable[[FieldDescriptor], tuple[str, ...]]
    ) -> None:
        self.context = context
        self.visit = visit
        self.inline = inline

    def walk_message(self, described: Descriptor, message: Message) -> None:
        for field in descriptor_of(message).fields:
            known = described.fields_by_number.get(field.number)
            if known is None or (field.has_presence and not message.HasField(field.name)):
                continue
            if _map_entry(field) is not None:
                self._walk_map(known, field, message)
            elif field.is_repeated:
                self._walk_repeated(known, field, message)
            elif _inner_type(field) is None:
                self._walk_scalar(known, field, message)
            elif inner := _inner_type(known):
                self.walk_message(inner, getattr(message, field.name))

    def _walk_scalar(self, known: FieldDescriptor, field: FieldDescriptor, message: Message) -> None:
        before = getattr(message, field.name)
        after = self._walk_value(known, field, message, before)
        if after is before:
            return
        if isinstance(after, Message):
            before.CopyFrom(after)
        else:
            setattr(message, field.name, after)

    def _walk_repeated(self, known: FieldDescriptor, field: FieldDescriptor, message: Message) -> None:
        items = getattr(message, field.name)
        if _inner_type(field) is not None:
            inner = _inner_type(known)
            for item in items if inner is not None else ():
                self.walk_message(cast("Descriptor", inner), item)
            return
        after = [self._walk_value(known, field, message, item) for item in items]
        message.ClearField(field.name)
        getattr(message, field.name).extend(after)

    def _walk_map(self, known: FieldDescriptor, field: FieldDescriptor, message: Message) -> None:
        entry, known_entry = _map_entry(field), _map_entry(known)
        if entry is None or known_entry is None:
            return
        own, described = entry.fields_by_name["value"], known_entry.fields_by_name["value"]
        items, inner = getattr(message, field.name), _inner_type(described)
        for key in list(items):
            if _inner_type(own) is not None and inner is not None:
                self.walk_message(inner, items[key])
            elif own.message_type is None:
                items[key] = self._walk_value(known, field, message, items[key])

    def _walk_value(self, known: FieldDescriptor, field: FieldDescriptor, message: Message, value: Any) -> Any:
        """Return the new value of one field. `known` is the schema's field, which has the name and the tags."""
        tags = self.context.tags_of(known.full_name, self.inline(known))
        if not self.context.applies_to(tags):
            return value
        return self.visit(FieldLocation(message, known.full_name, known.name, type_of(field), tags, field), value)


def descriptor_of(message: Message) -> Descriptor:
    """Return the descriptor of a message."""
    return cast("Descriptor", message.DESCRIPTOR)


def _map_entry(field: FieldDescriptor) -> Descriptor | None:
    """Return the message of a map's entries, None for other fields."""
    kind = field.message_type
    return kind if field.is_repeated and kind is not None and kind.GetOptions().map_entry else None


def _inner_type(field: FieldDescriptor) -> Descriptor | None:
    """Return the message type of a field whose own fields are visited, None if the field itself is visited."""
    kind = field.message_type
    return kind if kind is not None and kind.full_name not in _WHOLE else None


def type_of(field: FieldDescriptor) -> FieldType:
    """Return the type of a field's values. A timestamp is a LONG, as in Avro."""
    if _map_entry(field) is not None:
        return FieldType.MAP
    if field.message_type is not None:
        return FieldType.LONG if field.message_type.full_name == TIMESTAMP else FieldType.RECORD
    return _TYPES.get(field.type, FieldType.NULL)


_TYPES: Final = {
    number: kind
    for kind, numbers in {
        FieldType.DOUBLE: (1,),
        FieldType.FLOAT: (2,),
        FieldType.LONG: (3, 4, 6, 16, 18),
        FieldType.INT: (5, 7, 13, 15, 17),
        FieldType.BOOLEAN: (8,),
        FieldType.STRING: (9,),
        FieldType.BYTES: (12,),
        FieldType.ENUM: (14,),
    }.items()
    for number in numbers
}
"""Field types by their numbers in `FieldDescriptorProto.Type`."""


def _tag_reader(schema: ProtobufSchema) -> Callable[[FieldDescriptor], tuple[str, ...]]:
    """Return the function that reads the tags from a field's options.

    Only the schema's own pool knows the extension that holds them.
    """
    try:
        extension = schema.pool.FindExtensionByName(_META)
        options = schema.class_of(schema.pool.FindMessageTypeByName("google.protobuf.FieldOptions"))
    except KeyError:  # nothing imports confluent/meta.proto
        return lambda _: ()

    def read(field: FieldDescriptor) -> tuple[str, ...]:
        own = options.FromString(field.GetOptions().SerializeToString())
        return tuple(own.Extensions[extension].tags)  # type: ignore[index]  # known at run time only

    return read
