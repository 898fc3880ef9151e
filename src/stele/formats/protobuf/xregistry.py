"""The ruleset `xregistry`: the verdicts of the xRegistry server's Protobuf checker.

The writer's schema is the older one, the reader's the newer one. The other direction swaps the two, so that an added
field is checked as a removed one, which is the strict side.

* The package stays; so do messages, enums, services and methods, by name within their scope.
* Fields are matched by number and may be renamed. A removed field must have its number and its name reserved.
* A type stays within its family of scalars; string and bytes are one, a message may become bytes. Only strings, bytes
  and messages may change between singular and repeated.
* Enum values keep number and name. Whether a field is a map stays, and so does the type of its key.
* A field leaves a oneof only when it was alone in it, and moves to no other oneof.
* A method keeps its streaming. Its request and response messages are compared like those of fields.

Source: docs/protocols/protobuf.md#rules-of-apicurio-and-xregistry.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from google.protobuf.descriptor import FieldDescriptor as F
from google.protobuf.descriptor_pb2 import DescriptorProto

from stele.core.findings import Finding
from stele.formats.protobuf.model import enum_of, is_map, is_map_entry, map_parts, message_of, type_text

if TYPE_CHECKING:
    from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor

    from stele.formats.protobuf.model import ProtobufSchema

_FAMILIES = {
    **dict.fromkeys((F.TYPE_INT32, F.TYPE_UINT32, F.TYPE_INT64, F.TYPE_UINT64, F.TYPE_BOOL), "varint"),
    **dict.fromkeys((F.TYPE_SINT32, F.TYPE_SINT64), "zigzag"),
    **dict.fromkeys((F.TYPE_FIXED32, F.TYPE_SFIXED32), "32-bit"),
    **dict.fromkeys((F.TYPE_FIXED64, F.TYPE_SFIXED64), "64-bit"),
    **dict.fromkeys((F.TYPE_STRING, F.TYPE_BYTES), "length-delimited"),
}
_ONE_OR_MANY = {F.TYPE_STRING, F.TYPE_BYTES, F.TYPE_MESSAGE}


def check(reader: ProtobufSchema, writer: ProtobufSchema) -> list[Finding]:
    """Return why the reader's schema may not follow the writer's; empty when it may."""
    return list(_Comparison(reader, writer).compare_schemas())


class _Comparison:
    """One check. Pairs of messages wait in a list and are compared once, so deep nesting and cycles are safe."""

    def __init__(self, reader: ProtobufSchema, writer: ProtobufSchema) -> None:
        self._new, self._old = reader, writer
        self._todo: deque[tuple[Descriptor, Descriptor]] = deque()
        self._met: set[tuple[str, str]] = set()

    def compare_schemas(self) -> Iterator[Finding]:
        """Yield all findings: package, enums, messages and services of the file, then message by message."""
        new, old = self._new.proto.package, self._old.proto.package
        if new != old:
            yield _removal_finding("PACKAGE_CHANGED", old or new, new, old, "the package")
            return  # Every full name has changed with the package.
        yield from self._compare_enums(self._new.file.enum_types_by_name, self._old.file.enum_types_by_name)
        yield from self._compare_messages(self._new.file.message_types_by_name, self._old.file.message_types_by_name)
        yield from self._compare_services()
        while self._todo:
            now, was = self._todo.popleft()
            if (now.full_name, was.full_name) not in self._met:
                self._met.add((now.full_name, was.full_name))
                yield from self._compare_message(now, was)

    def _compare_messages(self, new: Mapping[str, Descriptor], old: Mapping[str, Descriptor]) -> Iterator[Finding]:
        for name, was in old.items():
            if is_map_entry(was):
                continue
            if name in new:
                self._todo.append((new[name], was))
            else:
                yield _removal_finding("MESSAGE_REMOVED", was.full_name, "", f"message {name}", f"message {name}")

    def _compare_enums(self, new: Mapping[str, EnumDescriptor], old: Mapping[str, EnumDescriptor]) -> Iterator[Finding]:
        for name, was in old.items():
            if name in new:
                yield from self._compare_values(new[name], was)
            else:
                yield _removal_finding("ENUM_REMOVED", was.full_name, "", f"enum {name}", f"enum {name}")

    def _compare_values(self, now: EnumDescriptor, was: EnumDescriptor) -> Iterator[Finding]:
        if (now.full_name, was.full_name) in self._met:
            return
        self._met.add((now.full_name, was.full_name))
        names: dict[int, set[str]] = {}
        for value in now.values:
            names.setdefault(value.number, set()).add(value.name)
        for value in was.values:
            if value.name not in names.get(value.number, ()):
                rule = "ENUM_VALUE_NAME_CHANGED" if value.number in names else "ENUM_VALUE_REMOVED"
                after = f"{min(names[value.number])} = {value.number}" if value.number in names else ""
                text = f"{value.name} = {value.number}"
                yield _removal_finding(rule, f"{was.full_name}.{value.name}", after, text, f"enum value {value.name}")

    def _compare_message(self, now: Descriptor, was: Descriptor) -> Iterator[Finding]:
        declared = DescriptorProto()
        now.CopyToProto(declared)
        there = {field.number: field for field in now.fields}
        for field in was.fields:
            if field.number in there:
                yield from self._compare_field(there[field.number], field)
                continue
            number = any(span.start <= field.number < span.end for span in declared.reserved_range)
            if not number or field.name not in declared.reserved_name:
                fix = f'Add `reserved {field.number};` and `reserved "{field.name}";` to the message.'
                why = f"Field {field.name} was removed, and its number or its name can be given to another field."
                text = f"{type_text(field)} {field.name} = {field.number}"
                yield Finding("FIELD_REMOVED_WITHOUT_RESERVATION", _field_path(was, field), "", text, why, fix)
        yield from self._compare_messages(now.nested_types_by_name, was.nested_types_by_name)
        yield from self._compare_enums(now.enum_types_by_name, was.enum_types_by_name)

    def _compare_field(self, now: FieldDescriptor, was: FieldDescriptor, *, path: str = "") -> Iterator[Finding]:
        path = path or _field_path(was.containing_type, was)
        if is_map(now) != is_map(was):
            yield _change_finding("MAP_CHANGED", path, now, was)
        elif is_map(now):
            (key, value), (old_key, old_value) = map_parts(now), map_parts(was)
            if key.type != old_key.type:
                yield _change_finding("MAP_KEY_TYPE_CHANGED", path, now, was)
            yield from self._compare_field(value, old_value, path=path)
        elif now.is_repeated != was.is_repeated and was.type not in _ONE_OR_MANY:
            yield _change_finding("FIELD_CARDINALITY_CHANGED", path, now, was)
        elif not _is_compatible_type(now, was):
            yield _change_finding("FIELD_TYPE_CHANGED", path, now, was)
        elif now.message_type is not None and was.message_type is not None:
            self._todo.append((message_of(now), message_of(was)))
        elif now.enum_type is not None and was.enum_type is not None:
            yield from self._compare_values(enum_of(now), enum_of(was))
        yield from self._compare_oneof(now, was, path)

    def _compare_oneof(self, now: FieldDescriptor, was: FieldDescriptor, path: str) -> Iterator[Finding]:
        new, old = self._new.oneof_name(now), self._old.oneof_name(was)
        if new == old or not old:
            return
        alone = was.containing_oneof is not None and len(was.containing_oneof.fields) == 1
        if new or not alone:
            yield _change_finding("FIELD_ONEOF_CHANGED", path, now, was)

    def _compare_services(self) -> Iterator[Finding]:
        for name, was in self._old.file.services_by_name.items():
            now = self._new.file.services_by_name.get(name)
            if now is None:
                yield _removal_finding("SERVICE_REMOVED", was.full_name, "", f"service {name}", f"service {name}")
                continue
            for method, before in was.methods_by_name.items():
                after = now.methods_by_name.get(method)
                if after is None:
                    yield _removal_finding("RPC_REMOVED", before.full_name, "", f"rpc {method}", f"rpc {method}")
                    continue
                streams = (after.client_streaming, after.server_streaming)
                if streams != (before.client_streaming, before.server_streaming):
                    yield _removal_finding(
                        "RPC_STREAMING_CHANGED", before.full_name, "", f"rpc {method}", "its streaming"
                    )
                self._todo.append((after.input_type, before.input_type))
                self._todo.append((after.output_type, before.output_type))


def _is_compatible_type(now: FieldDescriptor, was: FieldDescriptor) -> bool:
    if now.type == was.type:
        return True
    if was.type == F.TYPE_MESSAGE:
        return bool(now.type == F.TYPE_BYTES)
    family = _FAMILIES.get(was.type)
    return family is not None and family == _FAMILIES.get(now.type)


def _field_path(message: Descriptor | None, field: FieldDescriptor) -> str:
    return f"{message.full_name}.{field.name}" if message is not None else field.full_name


def _removal_finding(rule: str, path: str, reader: str, writer: str, what: str) -> Finding:
    why = f"Code and data that use {what} no longer find it as it was."
    return Finding(
        rule, path, reader, writer, why, f"Keep {what} as it is; mark it deprecated when it should no longer be used."
    )


def _change_finding(rule: str, path: str, now: FieldDescriptor, was: FieldDescriptor) -> Finding:
    new, old = type_text(now), type_text(was)
    if new == old:
        new, old = f"{new} {now.name}", f"{old} {was.name} in oneof"
    why = f"Data written as field {was.number} would be read with another meaning."
    return Finding(rule, path, new, old, why, f"Keep the field as {old}, and add another one for {new}.")
