"""Sorts everything whose order has no meaning."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    EnumDescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
    FileDescriptorSet,
    ServiceDescriptorProto,
)

if TYPE_CHECKING:
    from stele.formats.protobuf.model import ProtobufSchema


def normalize_file(file: FileDescriptorProto) -> FileDescriptorProto:
    """Return a copy of file with members sorted.

    Sorted are imports, enums and services by name, methods by name, fields by number (the members of a oneof stay
    together, at the place of the lowest), extensions by what they extend and number, reserved and extension ranges.
    Messages keep their order, since frames refer to them by position; bodies of extensions that are groups come last.
    Enum values are sorted by number, except that the first keeps its place (it is the default of closed enums), and
    aliases keep their order (the first is the name JSON shows). Options are sorted when they are printed.
    """
    copy = FileDescriptorProto()
    copy.CopyFrom(file)
    copy.ClearField("source_code_info")
    _sort_imports(copy)
    for message in copy.message_type:
        _sort_message(message)
    groups = {_local_name(field) for field in copy.extension if field.type == FieldDescriptorProto.TYPE_GROUP}
    copy.message_type.sort(key=lambda message: message.name in groups)
    _sort_enums(copy.enum_type)
    copy.enum_type.sort(key=_name_key)
    copy.extension.sort(key=_extendee_key)
    for service in copy.service:
        service.method.sort(key=lambda method: method.name)
    copy.service.sort(key=_name_key)
    return copy


def descriptor_bytes(schema: ProtobufSchema) -> bytes:
    """Return the schema's file and its imports, normalized, as one serialized FileDescriptorSet that is stable.

    Options are read with the schema's own extensions first, since one option can be written in several ways. The file's
    own name is left out: it says where the schema is kept, not what it is.
    """
    files = sorted((normalize_file(file) for file in schema.files[:-1]), key=lambda file: file.name)
    own = normalize_file(schema.proto)
    own.ClearField("name")
    serialized = FileDescriptorSet(file=[own, *files]).SerializeToString(deterministic=True)
    try:
        known = schema.pool.FindMessageTypeByName(FileDescriptorSet.DESCRIPTOR.full_name)
    except KeyError:  # descriptor.proto is not imported, so there is no custom option
        return serialized
    return schema.class_of(known).FromString(serialized).SerializePartialToString(deterministic=True)


def _name_key(item: EnumDescriptorProto | ServiceDescriptorProto) -> str:
    return item.name


def _extendee_key(field: FieldDescriptorProto) -> tuple[str, int]:
    return field.extendee, field.number


def _sort_imports(file: FileDescriptorProto) -> None:
    names = list(file.dependency)
    public = {names[index] for index in file.public_dependency}
    weak = {names[index] for index in file.weak_dependency}
    names.sort()
    file.dependency[:] = names
    file.public_dependency[:] = [index for index, name in enumerate(names) if name in public]
    file.weak_dependency[:] = [index for index, name in enumerate(names) if name in weak]
    file.option_dependency.sort()


def _sort_message(message: DescriptorProto) -> None:
    """Messages nest at most 32 deep, so recursion is safe."""
    _sort_fields(message)
    _sort_nested(message)
    for nested in message.nested_type:
        _sort_message(nested)
    _sort_enums(message.enum_type)
    message.enum_type.sort(key=_name_key)
    message.extension.sort(key=_extendee_key)
    message.extension_range.sort(key=lambda span: span.start)
    message.reserved_range.sort(key=lambda span: span.start)
    message.reserved_name.sort()


def _sort_fields(message: DescriptorProto) -> None:
    """Fields by number, oneofs kept together; oneofs in the order of their first field, synthetic ones last."""
    lowest: dict[int, int] = {}
    for field in message.field:
        if field.HasField("oneof_index"):
            lowest[field.oneof_index] = min(field.number, lowest.get(field.oneof_index, field.number))
    synthetic = {field.oneof_index for field in message.field if field.proto3_optional}
    order = sorted(range(len(message.oneof_decl)), key=lambda index: (index in synthetic, lowest.get(index, 0)))
    oneofs = [message.oneof_decl[index] for index in order]
    message.field.sort(
        key=lambda field: (lowest[field.oneof_index] if field.HasField("oneof_index") else field.number, field.number)
    )
    position = {old: new for new, old in enumerate(order)}
    for field in message.field:
        if field.HasField("oneof_index"):
            field.oneof_index = position[field.oneof_index]
    _replace_oneofs(message, oneofs)


def _replace_oneofs(message: DescriptorProto, oneofs: Sequence[object]) -> None:
    copies = [type(message.oneof_decl[0]).FromString(oneof.SerializeToString()) for oneof in oneofs]  # type: ignore[attr-defined]  # generated type
    message.ClearField("oneof_decl")
    message.oneof_decl.extend(copies)


def _sort_nested(message: DescriptorProto) -> None:
    """Map entries and groups in the order of their fields first, then real messages in their own order."""
    fields = [*message.field, *sorted(message.extension, key=_extendee_key)]
    inline = {nested.name for nested in message.nested_type if nested.options.map_entry}
    inline |= {_local_name(field) for field in fields if field.type == FieldDescriptorProto.TYPE_GROUP}
    wanted = [name for name in map(_local_name, fields) if name in inline]
    rank = {name: index for index, name in enumerate(wanted)}
    # Sorting is stable, so that real messages keep their order.
    message.nested_type.sort(key=lambda nested: rank.get(nested.name, len(rank)))


def _local_name(field: FieldDescriptorProto) -> str:
    return field.type_name.rsplit(".", 1)[-1]


def _sort_enums(enums: Sequence[EnumDescriptorProto]) -> None:
    for enum in enums:
        first = enum.value[0].number if enum.value else 0
        enum.value.sort(key=lambda value, first=first: (value.number != first, value.number))  # type: ignore[misc]  # default binds the loop variable
        enum.reserved_range.sort(key=lambda span: span.start)
        enum.reserved_name.sort()
