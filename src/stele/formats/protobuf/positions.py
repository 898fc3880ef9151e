"""Where declarations stand in the source text of a file."""

from __future__ import annotations

from collections.abc import Iterator

from google.protobuf.descriptor_pb2 import DescriptorProto, EnumDescriptorProto

from stele.core.findings import SourcePosition
from stele.formats.protobuf.comments import MAX_LOCATIONS, Path
from stele.formats.protobuf.model import ProtobufSchema


def locate_declarations(schema: ProtobufSchema) -> dict[str, SourcePosition]:
    """Return positions by the paths of findings: full names; none for a schema that came as a descriptor."""
    locations = schema.source.location
    if len(locations) > MAX_LOCATIONS:
        return {}
    starts = {tuple(each.path): SourcePosition(each.span[0] + 1, each.span[1] + 1) for each in locations}
    found = {"/": SourcePosition(1, 1)} if starts else {}
    for name, path in _walk_file(schema):
        if path in starts:
            found.setdefault(name, starts[path])
    return found


def _walk_file(schema: ProtobufSchema) -> Iterator[tuple[str, Path]]:
    """Yield (full name, path in the descriptor) of each declaration."""
    file = schema.proto
    yield from ((f"import {name}", (3, index)) for index, name in enumerate(file.dependency))
    for index, message in enumerate(file.message_type):
        yield from _walk_message(message, schema.full_name(message.name), (4, index))
    for index, enum in enumerate(file.enum_type):
        yield from _walk_enum(enum, schema.full_name(enum.name), (5, index))
    yield from ((schema.full_name(field.name), (7, index)) for index, field in enumerate(file.extension))
    for index, service in enumerate(file.service):
        name = schema.full_name(service.name)
        yield name, (6, index)
        yield from ((f"{name}.{method.name}", (6, index, 2, at)) for at, method in enumerate(service.method))


def _walk_message(message: DescriptorProto, name: str, path: Path) -> Iterator[tuple[str, Path]]:
    yield name, path
    yield from ((f"{name}.{field.name}", (*path, 2, index)) for index, field in enumerate(message.field))
    yield from ((f"{name}.{field.name}", (*path, 6, index)) for index, field in enumerate(message.extension))
    yield from ((f"{name}.{oneof.name}", (*path, 8, index)) for index, oneof in enumerate(message.oneof_decl))
    for index, nested in enumerate(message.nested_type):
        yield from _walk_message(nested, f"{name}.{nested.name}", (*path, 3, index))
    for index, enum in enumerate(message.enum_type):
        yield from _walk_enum(enum, f"{name}.{enum.name}", (*path, 4, index))


def _walk_enum(enum: EnumDescriptorProto, name: str, path: Path) -> Iterator[tuple[str, Path]]:
    yield name, path
    yield from ((f"{name}.{value.name}", (*path, 2, index)) for index, value in enumerate(enum.value))
