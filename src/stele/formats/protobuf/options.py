"""The options of a declaration as (name, value) texts, custom options included."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from google.protobuf.message import DecodeError

from stele.formats.protobuf.kinds import set_fields
from stele.formats.protobuf.values import list_values, message_literal, quote_bytes, scalar_literal

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
    def is_custom(self) -> bool:
        """Whether it is declared by an extension."""
        return "(" in self.name


def list_options(
    options: Message, schema: ProtobufSchema, *, by_name: bool, place: Callable[[int], tuple[int, ...]]
) -> list[Option]:
    """All options that are set, each element of a repeated one by itself.

    They come by name, or in the order of place (the position in the source of the option with that field number).
    """
    if not options.ByteSize():
        return []
    found = [option for field in _options_by_field(options, schema) for option in field]
    if by_name:
        return sorted(found, key=lambda option: (option.is_custom, option.name))
    return sorted(found, key=lambda option: place(option.number))


def _options_by_field(options: Message, schema: ProtobufSchema) -> list[list[Option]]:
    """The options by field; read with the schema's own declarations, which alone know its extensions."""
    options = _reparse_options(options, schema)
    found = []
    for field, value in set_fields(options):
        if field.name == "uninterpreted_option" and not field.is_extension:
            found.append([_uninterpreted_option(option) for option in value])
        elif field.name == "features" and not field.is_extension:
            found.append(_feature_options(value, "features.", field.number))
        else:
            name = f"({field.full_name})" if field.is_extension else field.name
            show = (
                message_literal
                if field.message_type is not None
                else lambda item, field=field: scalar_literal(field, item)
            )
            found.append([Option(name, show(item), field.number) for item in list_values(field, value)])
    return found


def _reparse_options(options: Message, schema: ProtobufSchema) -> Message:
    try:
        kind = schema.pool.FindMessageTypeByName(options.DESCRIPTOR.full_name)
        return schema.class_of(kind).FromString(options.SerializePartialToString())
    except (KeyError, DecodeError):  # descriptor.proto is not imported, so there is no custom option either
        return options


def _feature_options(features: Message, prefix: str, number: int) -> list[Option]:
    """Editions features, one option each: `features.field_presence`, `features.(pb.cpp).string_type`."""
    found = []
    for field, value in set_fields(features):
        if field.is_extension and field.message_type is not None:
            found += _feature_options(value, f"{prefix}({field.full_name}).", number)
        else:
            found.append(Option(prefix + field.name, scalar_literal(field, value), number))
    return found


def _uninterpreted_option(option: UninterpretedOption) -> Option:
    """An option that a descriptor carries unread."""
    name = ".".join(f"({part.name_part})" if part.is_extension else part.name_part for part in option.name)
    if option.HasField("identifier_value"):
        value = option.identifier_value
    elif option.HasField("string_value"):
        value = quote_bytes(option.string_value)
    elif option.HasField("aggregate_value"):
        value = "{ " + option.aggregate_value + " }"
    elif option.HasField("double_value"):
        value = repr(option.double_value)
    else:
        value = str(option.positive_int_value or option.negative_int_value)
    return Option(name, value, 999)
