"""The declarations of one file by their names without package: what rulesets that match by name compare."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    EnumDescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
    MethodDescriptorProto,
)

from stele.formats.protobuf.buf.ranges import Ranges

_LABELS = {FieldDescriptorProto.LABEL_REPEATED: "repeated ", FieldDescriptorProto.LABEL_REQUIRED: "required "}


class MessageIndex(NamedTuple):
    """A message: its fields by name and by number, its reserved numbers and names, the map entries it declares."""

    fields: dict[str, FieldDescriptorProto]
    numbers: dict[int, FieldDescriptorProto]
    reserved: Ranges
    reserved_names: frozenset[str]
    entries: dict[str, DescriptorProto]

    def is_map(self, field: FieldDescriptorProto) -> bool:
        """Whether a field of it is a map."""
        return field.type_name.rsplit(".", 1)[-1] in self.entries and bool(field.type_name)

    def type_of(self, field: FieldDescriptorProto) -> str:
        """The type of a field of it, names in full: `int32`, `.pkg.Item`, `map<string, .pkg.Item>`."""
        if self.is_map(field):
            key, value = self.entries[field.type_name.rsplit(".", 1)[-1]].field
            return f"map<{_type_text(key)}, {_type_text(value)}>"
        return _type_text(field)

    def format_field(self, field: FieldDescriptorProto) -> str:
        """A field as a finding shows it."""
        label = "" if self.is_map(field) else _LABELS.get(field.label, "")
        return f"{label}{self.type_of(field)} {field.name} = {field.number}"


class FileIndex:
    """What a file declares, nested declarations included, each by its path of names (`Outer.Inner`)."""

    def __init__(self, file: FileDescriptorProto) -> None:
        self.package = file.package
        self.messages: dict[str, MessageIndex] = {}
        self.enums: dict[str, EnumDescriptorProto] = {enum.name: enum for enum in file.enum_type}
        for path, message in _walk_messages(file):
            entries = {nested.name: nested for nested in message.nested_type if nested.options.map_entry}
            self.messages[path] = MessageIndex(
                {field.name: field for field in message.field},
                {field.number: field for field in message.field},
                Ranges((span.start, span.end - 1) for span in message.reserved_range),
                frozenset(message.reserved_name),
                entries,
            )
            self.enums |= {f"{path}.{enum.name}": enum for enum in message.enum_type}
        self.services: dict[str, dict[str, MethodDescriptorProto]] = {
            service.name: {method.name: method for method in service.method} for service in file.service
        }

    def full_name(self, path: str) -> str:
        """A path with the package before it."""
        return f"{self.package}.{path}" if self.package else path


def format_signature(method: MethodDescriptorProto) -> str:
    """What a method takes and returns."""
    sent = "stream " if method.client_streaming else ""
    answered = "stream " if method.server_streaming else ""
    return f"({sent}{method.input_type}) returns ({answered}{method.output_type})"


def _walk_messages(file: FileDescriptorProto) -> Iterator[tuple[str, DescriptorProto]]:
    """Messages with their paths, outer before inner, in the order of the text; map entries are none."""
    todo = [(message.name, message) for message in reversed(file.message_type)]
    while todo:
        path, message = todo.pop()
        yield path, message
        todo += [(f"{path}.{n.name}", n) for n in reversed(message.nested_type) if not n.options.map_entry]


def _type_text(field: FieldDescriptorProto) -> str:
    return field.type_name or FieldDescriptorProto.Type.Name(field.type).removeprefix("TYPE_").lower()
