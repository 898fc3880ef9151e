"""The options of a declaration as (name, value) texts, custom options included."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from google.protobuf.message import DecodeError

from stele.formats.protobuf.kinds import set_fields
from stele.formats.protobuf.values import aggregate, items, quoted_bytes, scalar

if TYPE_CHECKING:
    from google.protobuf.descriptor_pb2 import UninterpretedOption
    from google.protobuf.message import Message

    from stele.formats.protobuf.model import ProtobufSchema


class Option(NamedTuple):
    """One option: its name as written (`(pkg.ext)` when custom), its value, and the number of its top field."""

    name: str
    value: str
    number: int

    @property
    def custom(self) -> bool:
        """Whether it is declared by an extension."""
        return "(" in self.name


def options_of(
    options: Message, schema: ProtobufSchema, *, by_name: bool, place: Callable[[int], tuple[int, ...]]
) -> list[Option]:
    """All options that are set, each element of a repeated one by itself.

    They come by name, or in the order of place (the position in the source of the option with that field number).
    """
    if not options.ByteSize():
        return []
    found = [option for field in _known(options, schema) for option in field]
    if by_name:
        return sorted(found, key=lambda option: (option.custom, option.name))
    return sorted(found, key=lambda option: place(option.number))


def _known(options: Message, schema: ProtobufSchema) -> list[list[Option]]:
    """The options by field; read with the schema's own declarations, which alone know its extensions."""
    options = _reread(options, schema)
    found = []
    for field, value in set_fields(options):
        if field.name == "uninterpreted_option" and not field.is_extension:
            found.append([_uninterpreted(option) for option in value])
        elif field.name == "features" and not field.is_extension:
            found.append(_features(value, "features.", field.number))
        else:
            name = f"({field.full_name})" if field.is_extension else field.name
            show = aggregate if field.message_type is not None else lambda item, field=field: scalar(field, item)
            found.append([Option(name, show(item), field.number) for item in items(field, value)])
    return found


def _reread(options: Message, schema: ProtobufSchema) -> Message:
    try:
        kind = schema.pool.FindMessageTypeByName(options.DESCRIPTOR.full_name)
        return schema.class_of(kind).FromString(options.SerializePartialToString())
    except (KeyError, DecodeError):  # descriptor.proto is not imported, so there is no custom option either
        return options


def _features(features: Message, prefix: str, number: int) -> list[Option]:
    """Editions features, one option each: `features.field_presence`, `features.(pb.cpp).string_type`."""
    found = []
    for field, value in set_fields(features):
        if field.is_extension and field.message_type is not None:
            found += _features(value, f"{prefix}({field.full_name}).", number)
        else:
            found.append(Option(prefix + field.name, scalar(field, value), number))
    return found


def _uninterpreted(option: UninterpretedOption) -> Option:
    """An option that a descriptor carries unread."""
    name = ".".join(f"({part.name_part})" if part.is_extension else part.name_part for part in option.name)
    if option.HasField("identifier_value"):
        value = option.identifier_value
    elif option.HasField("string_value"):
        value = quoted_bytes(option.string_value)
    elif option.HasField("aggregate_value"):
        value = "{ " + option.aggregate_value + " }"
    elif option.HasField("double_value"):
        value = repr(option.double_value)
    else:
        value = str(option.positive_int_value or option.negative_int_value)
    return Option(name, value, 999)
