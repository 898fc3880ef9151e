"""The ruleset `apicurio`: the verdicts of Apicurio Registry's Protobuf checker, which follows protolock.

The writer's schema is the older one, the reader's the newer one. Messages, enums and services are matched by name
below the package. Imported files are ignored.

* A reserved number or name is neither used nor released.
* A field may be removed only if its number and its name are reserved (a number that another field uses counts as kept).
* A name keeps its number, type and label, a number keeps its name; the same for enum values.
* Methods stay, and so do their signatures. In proto2 no `required` field is added.

There is one difference to the original: reserved enum values may be removed, because the original ignores what enums
reserve.

Source: docs/protocols/protobuf.md#rules-of-apicurio-and-xregistry.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    EnumDescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
    MethodDescriptorProto,
)

from stele.core.findings import Finding
from stele.formats.protobuf.model import Ranges, format_ranges

if TYPE_CHECKING:
    from stele.formats.protobuf.model import ProtobufSchema


_LABELS = {FieldDescriptorProto.LABEL_REPEATED: "repeated ", FieldDescriptorProto.LABEL_REQUIRED: "required "}


class MessageIndex(NamedTuple):
    """A message: its fields by name and by number, its reserved numbers and names, the map entries it declares."""

    fields: dict[str, FieldDescriptorProto]
    numbers: dict[int, FieldDescriptorProto]
    reserved: Ranges
    reserved_names: frozenset[str]
    entries: dict[str, DescriptorProto]

    def is_map(self, field: FieldDescriptorProto) -> bool:
        """Return whether a field of this message is a map."""
        return field.type_name.rsplit(".", 1)[-1] in self.entries and bool(field.type_name)

    def type_of(self, field: FieldDescriptorProto) -> str:
        """Return the type of a field with full names: `int32`, `.pkg.Item`, `map<string, .pkg.Item>`."""
        if self.is_map(field):
            key, value = self.entries[field.type_name.rsplit(".", 1)[-1]].field
            return f"map<{_type_text(key)}, {_type_text(value)}>"
        return _type_text(field)

    def format_field(self, field: FieldDescriptorProto) -> str:
        """Return a field as a finding shows it."""
        label = "" if self.is_map(field) else _LABELS.get(field.label, "")
        return f"{label}{self.type_of(field)} {field.name} = {field.number}"


class FileIndex:
    """Declarations of a file, nested ones included, each by its path of names (`Outer.Inner`)."""

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
        """Return a path with the package before it."""
        return f"{self.package}.{path}" if self.package else path


def format_signature(method: MethodDescriptorProto) -> str:
    """Return the request and response types of a method as text."""
    sent = "stream " if method.client_streaming else ""
    answered = "stream " if method.server_streaming else ""
    return f"({sent}{method.input_type}) returns ({answered}{method.output_type})"


def _walk_messages(file: FileDescriptorProto) -> Iterator[tuple[str, DescriptorProto]]:
    """Yield messages with their paths, outer before inner, in source order. Map entries are left out."""
    todo = [(message.name, message) for message in reversed(file.message_type)]
    while todo:
        path, message = todo.pop()
        yield path, message
        todo += [(f"{path}.{n.name}", n) for n in reversed(message.nested_type) if not n.options.map_entry]


def _type_text(field: FieldDescriptorProto) -> str:
    return field.type_name or FieldDescriptorProto.Type.Name(field.type).removeprefix("TYPE_").lower()


_HIGHEST = 536_870_911


def check(reader: ProtobufSchema, writer: ProtobufSchema) -> list[Finding]:
    """Return why the reader's schema may not follow the writer's; empty when it may."""
    new, old = FileIndex(reader.proto), FileIndex(writer.proto)
    proto2 = writer.proto.syntax in {"", "proto2"}
    return [*_check_messages(new, old, proto2=proto2), *_check_enums(new, old), *_check_services(new, old)]


def _check_messages(new: FileIndex, old: FileIndex, *, proto2: bool) -> Iterator[Finding]:
    nothing = MessageIndex({}, {}, Ranges(()), frozenset(), {})
    for path, was in old.messages.items():
        now = new.messages.get(path, nothing)
        place = old.full_name(path)
        yield from _check_reservations(place, now, was)
        yield from _check_fields(place, now, was)
        if proto2 and path in new.messages:
            yield from _check_required(place, now, was)


def _check_reservations(place: str, now: MessageIndex, was: MessageIndex) -> Iterator[Finding]:
    for field in now.fields.values():
        if field.number in was.reserved or field.name in was.reserved_names:
            yield Finding(
                "RESERVED_FIELD_USED",
                f"{place}.{field.name}",
                now.format_field(field),
                f"reserved {field.number if field.number in was.reserved else field.name}",
                "Older data may use the reserved number or name with another meaning, which the field would misread.",
                "Give the field another number and another name.",
            )
    lost = was.reserved.difference(now.reserved)
    names = sorted(was.reserved_names - now.reserved_names)
    if lost or names:
        text = ", ".join([*([format_ranges(lost, _HIGHEST)] if lost else []), *(f'"{name}"' for name in names)])
        yield Finding(
            "RESERVED_FIELD_RELEASED",
            place,
            "",
            f"reserved {text}",
            "Numbers and names that are no longer reserved can be given to fields with another meaning.",
            f"Keep them reserved: {text}.",
        )


def _check_fields(place: str, now: MessageIndex, was: MessageIndex) -> Iterator[Finding]:
    for name, field in was.fields.items():
        path, before = f"{place}.{name}", was.format_field(field)
        current = now.fields.get(name)
        renamed = now.numbers.get(field.number)
        if current is None and renamed is None:
            free = [] if field.number in now.reserved else [str(field.number)]
            free += [] if name in now.reserved_names else [f'"{name}"']
            if free:
                yield Finding(
                    "FIELD_REMOVED_WITHOUT_RESERVATION",
                    path,
                    "",
                    before,
                    f"Field {name} was removed, and {' and '.join(free)} can be given to another field.",
                    f'Add `reserved {field.number};` and `reserved "{name}";` to the message.',
                )
            continue
        if current is not None and current.number != field.number:
            yield _change_finding(
                "FIELD_NUMBER_CHANGED", path, now.format_field(current), before, "is read from another number"
            )
        if current is not None and now.type_of(current) != was.type_of(field):
            yield _change_finding(
                "FIELD_TYPE_CHANGED", path, now.format_field(current), before, "is read as another type"
            )
        if current is not None and current.label != field.label:
            yield _change_finding(
                "FIELD_LABEL_CHANGED", path, now.format_field(current), before, "is read with another label"
            )
        if renamed is not None and renamed.name != name:
            yield _change_finding(
                "FIELD_NAME_CHANGED", path, now.format_field(renamed), before, "is known by another name"
            )


def _change_finding(rule: str, path: str, reader: str, writer: str, what: str) -> Finding:
    name = path.rsplit(".", 1)[-1]
    return Finding(rule, path, reader, writer, f"Data written as {name} {what}.", f"Keep `{writer}`.")


def _check_required(place: str, now: MessageIndex, was: MessageIndex) -> Iterator[Finding]:
    for name, field in now.fields.items():
        if name not in was.fields and field.label == FieldDescriptorProto.LABEL_REQUIRED:
            yield Finding(
                "REQUIRED_FIELD_ADDED",
                f"{place}.{name}",
                now.format_field(field),
                "",
                f"Older data has no {name}, and a message without a required field cannot be read.",
                f"Make {name} optional.",
            )


def _check_enums(new: FileIndex, old: FileIndex) -> Iterator[Finding]:
    for path, was in old.enums.items():
        now = new.enums.get(path)
        if now is not None:
            yield from _check_values(old.full_name(path), now, was)


def _check_values(place: str, now: EnumDescriptorProto, was: EnumDescriptorProto) -> Iterator[Finding]:
    names = {value.name: value.number for value in now.value}
    numbers: dict[int, set[str]] = {}
    for value in now.value:
        numbers.setdefault(value.number, set()).add(value.name)
    reserved = Ranges((span.start, span.end) for span in now.reserved_range)
    for value in was.value:
        path, before = f"{place}.{value.name}", f"{value.name} = {value.number}"
        if value.name in names:
            if names[value.name] != value.number:
                after = f"{value.name} = {names[value.name]}"
                yield _change_finding("ENUM_VALUE_NUMBER_CHANGED", path, after, before, "is read from another number")
        elif value.number in numbers:
            after = f"{min(numbers[value.number])} = {value.number}"
            yield _change_finding("ENUM_VALUE_NAME_CHANGED", path, after, before, "is known by another name")
        elif value.number not in reserved and value.name not in now.reserved_name:
            yield _change_finding("ENUM_VALUE_REMOVED", path, "", before, "no longer has a meaning")


def _check_services(new: FileIndex, old: FileIndex) -> Iterator[Finding]:
    for name, methods in old.services.items():
        there = new.services.get(name, {})
        for method, was in methods.items():
            path = f"{old.full_name(name)}.{method}"
            now = there.get(method)
            if now is None:
                why, fix = "Calls of the method fail as unknown.", f"Keep rpc {method}."
                yield Finding("RPC_REMOVED", path, "", format_signature(was), why, fix)
            elif format_signature(now) != format_signature(was):
                why, fix = (
                    "Callers send and expect messages that the method no longer takes and returns.",
                    f"Keep {format_signature(was)}.",
                )
                yield Finding("RPC_SIGNATURE_CHANGED", path, format_signature(now), format_signature(was), why, fix)
