"""A compiled Protobuf schema, and functions to inspect its descriptors, comments and number ranges."""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, cast

from google.protobuf.descriptor import FieldDescriptor as F
from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
    FileDescriptorSet,
    SourceCodeInfo,
)
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import Message
from google.protobuf.reflection import GeneratedProtocolMessageType

from stele.errors import InvalidRequest

if TYPE_CHECKING:
    from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor, FileDescriptor


class ProtobufSchema:
    """One file with all it imports, in a descriptor pool of its own. Immutable; safe to share between threads.

    files holds the file descriptors, imports before importers and the schema itself last, without source positions.
    text is the source text. It is empty when the schema came as a descriptor, which is `sent` then. If `is_partial`,
    the text contains more than the descriptors: undeclared options, missing imports, the types in `unresolved`, whose
    fields are read as `bytes`, or the fields and enum values in `rejected`, whose name or number is taken. references
    are the documents that came with the schema, by import path, whether it imports them or not.
    Raises TypeError when the run-time library refuses the descriptors.
    """

    def __init__(
        self,
        files: Sequence[FileDescriptorProto],
        text: bytes,
        *,
        sent: FileDescriptorProto | None = None,
        is_partial: bool = False,
        unresolved: Sequence[str] = (),
        rejected: Sequence[str] = (),
        references: Mapping[str, bytes] = MappingProxyType({}),
    ) -> None:
        self.text = text
        self.sent = sent
        self.is_partial = is_partial
        self.unresolved = tuple(unresolved)
        self.rejected = tuple(rejected)
        self.references = references
        self.source = SourceCodeInfo()
        self.source.CopyFrom(files[-1].source_code_info)
        for file in files:
            file.ClearField("source_code_info")
        for service in files[-1].service:
            for method in service.method:
                if not method.options.ByteSize():  # `rpc … {}` means the same as `rpc …;`
                    method.ClearField("options")
        self.files = tuple(files)
        self.proto = files[-1]
        serialized = [file.SerializeToString() for file in files]
        try:
            self.pool = _build_pool(serialized)
        except TypeError:
            allowed = [_allow_shared_json_names(file) for file in files]
            if allowed == serialized:
                raise
            self.pool = _build_pool(allowed)
        self.size = sum(map(len, serialized)) + self.source.ByteSize()
        self.file: FileDescriptor = self.pool.FindFileByName(self.proto.name)
        self.canonical_text: str | None = None
        """Cached canonical text, set when it is first printed. Every digest of a schema is made of it."""
        self._lock = threading.Lock()
        self._classes: dict[str, type[Message]] = {}

    @cached_property
    def type_name(self) -> str:
        """Full name of the first top-level message, or ''."""
        return self.full_name(self.proto.message_type[0].name) if self.proto.message_type else ""

    def full_name(self, name: str) -> str:
        """Return a top-level name with the file's package before it."""
        return f"{self.proto.package}.{name}" if self.proto.package else name

    def field_label(self, field: FieldDescriptor) -> str:
        """Return the label a field of this schema was declared with: optional, required, repeated, or '' for none."""
        if field.is_repeated:
            return "repeated"
        if field.is_required:
            return "required"
        return "optional" if field.full_name in self._optional_fields else ""

    def oneof_name(self, field: FieldDescriptor) -> str:
        """Return the name of the field's oneof, '' for none. The one that proto3 `optional` implies does not count."""
        oneof = field.containing_oneof
        return "" if oneof is None or field.full_name in self._optional_fields else oneof.name

    @cached_property
    def _optional_fields(self) -> frozenset[str]:
        """Full names of all fields that were declared with the keyword `optional`."""
        names: list[str] = []
        for file in self.files:
            todo = [(file.package, message) for message in file.message_type]
            proto2 = file.syntax in {"", "proto2"}
            while todo:
                scope, message = todo.pop()
                name = f"{scope}.{message.name}" if scope else message.name
                for field in message.field:
                    plain = proto2 and not field.HasField("oneof_index") and field.label == field.LABEL_OPTIONAL
                    if plain or field.proto3_optional:
                        names.append(f"{name}.{field.name}")
                todo += [(name, nested) for nested in message.nested_type]
        return frozenset(names)

    def list_messages(self) -> list[Descriptor]:
        """Return the file's top-level messages, in the order of the file."""
        return [self.get_message(self.full_name(message.name)) for message in self.proto.message_type]

    def get_message(self, full_name: str = "") -> Descriptor:
        """Return a message of the file or its imports; '' is the first one of the file. Raises `InvalidRequest`."""
        wanted = (full_name or self.type_name).removeprefix(".")
        if not wanted:
            raise InvalidRequest("the schema declares no message")
        try:
            return self.pool.FindMessageTypeByName(wanted)
        except KeyError:
            raise InvalidRequest(f"the schema has no message named {wanted!r}") from None

    @cached_property
    def message_positions(self) -> Mapping[str, tuple[int, ...]]:
        """Messages of the file at any depth, map entries included: descriptor index paths by full name."""
        return self._number_messages(_by_descriptor)

    @cached_property
    def frame_positions(self) -> Mapping[str, tuple[int, ...]]:
        """The same messages with the index paths of Confluent frames: see `message_by_indexes`."""
        explicit = self.sent is not None or b"map_entry" in self.text
        return self.message_positions if explicit else self._number_messages(_by_declaration)

    def _number_messages(
        self, order: Callable[[DescriptorProto], Sequence[DescriptorProto]]
    ) -> Mapping[str, tuple[int, ...]]:
        positions: dict[str, tuple[int, ...]] = {}
        todo: list[tuple[str, tuple[int, ...], DescriptorProto]]
        todo = [(self.full_name(message.name), (i,), message) for i, message in enumerate(self.proto.message_type)]
        while todo:
            name, path, message = todo.pop()
            positions[name] = path
            todo += [(f"{name}.{nested.name}", (*path, i), nested) for i, nested in enumerate(order(message))]
        return MappingProxyType(positions)

    def message_class(self, full_name: str = "") -> type[Message]:
        """Return the generated class of a message; the same class for every call. Raises `InvalidRequest`."""
        return self.class_of(self.get_message(full_name))

    def class_of(self, descriptor: Descriptor) -> type[Message]:
        """Return the generated class of a message of the schema's pool.

        The library's own factory recurses from message to message and does not keep the types of extensions. This
        method creates the classes of all reachable messages one by one.
        """
        with self._lock:
            todo = [descriptor]
            while todo:
                at = todo.pop()
                if at.full_name not in self._classes:
                    members: dict[str, object] = {"DESCRIPTOR": at, "__module__": None}
                    message_class = GeneratedProtocolMessageType(at.name, (Message,), members)
                    self._classes[at.full_name] = cast("type[Message]", message_class)
                    fields = [*at.fields, *self.pool.FindAllExtensions(at)]
                    todo += [field.message_type for field in fields if field.message_type is not None]
            return self._classes[descriptor.full_name]


def _build_pool(serialized: Iterable[bytes]) -> DescriptorPool:
    pool = DescriptorPool()
    for data in serialized:
        pool.AddSerializedFile(data)
    return pool


def _allow_shared_json_names(file: FileDescriptorProto) -> bytes:
    """Return a serialized file in which fields may share a JSON name: the library is stricter than the compiler."""
    copy = FileDescriptorProto()
    copy.CopyFrom(file)
    todo = [*copy.message_type]
    while todo:
        message = todo.pop()
        if len({field.json_name for field in message.field}) < len(message.field):
            message.options.deprecated_legacy_json_field_conflicts = True
        todo += message.nested_type
    return copy.SerializeToString()


def file_descriptor_set(schema: ProtobufSchema) -> FileDescriptorSet:
    """Return a copy of the schema's file with everything it imports, imports first, without source positions."""
    return FileDescriptorSet(file=schema.files)


def message_class(schema: ProtobufSchema, full_name: str = "") -> type[Message]:
    """Return the generated class of a message of the schema; '' is the first message. Raises `InvalidRequest`."""
    return schema.message_class(full_name)


def message_by_indexes(schema: ProtobufSchema, indexes: Sequence[int]) -> str:
    """Return the full name of the message at a path of positions, as Confluent frames carry it.

    `[1, 0]` is the first message inside the second one; empty means `[0]`. As in Confluent's clients, declared nested
    messages are counted before those that fields declare by themselves: map entries and groups. A path that leads to no
    message in this way, or to a map entry (never a record), is resolved in the compiler's order. Raises
    `InvalidRequest`.
    """
    path = tuple(indexes) or (0,)
    names = {position: name for name, position in schema.frame_positions.items()}
    name = names.get(path)
    if name is None or is_map_entry(schema.get_message(name)):
        name = next((other for other, position in schema.message_positions.items() if position == path), name)
    if name is None:
        raise InvalidRequest(f"the schema has no message at the indexes {list(indexes)}")
    return name


def indexes_of(schema: ProtobufSchema, full_name: str) -> list[int]:
    """Return the path of positions that `message_by_indexes` resolves to full_name. Raises `InvalidRequest`."""
    descriptor = schema.get_message(full_name)
    path = schema.frame_positions.get(descriptor.full_name)
    if path is None:
        raise InvalidRequest(f"{full_name!r} is declared in the import {descriptor.file.name!r}, not in the schema")
    return list(path)


def _by_descriptor(message: DescriptorProto) -> Sequence[DescriptorProto]:
    return message.nested_type


def _by_declaration(message: DescriptorProto) -> Sequence[DescriptorProto]:
    """Return the nested messages; those that fields declare by themselves come last."""
    fields = [*message.field, *message.extension]
    groups = {field.type_name.rpartition(".")[2] for field in fields if field.type == FieldDescriptorProto.TYPE_GROUP}
    return sorted(message.nested_type, key=lambda nested: nested.options.map_entry or nested.name in groups)


# --- types and fields by descriptor ---------------------------------------------------------------------------------

_SCALAR_NAMES = {getattr(F, name): name.removeprefix("TYPE_").lower() for name in dir(F) if name.startswith("TYPE_")}

WRAPPERS = {
    "google.protobuf.DoubleValue": F.TYPE_DOUBLE,
    "google.protobuf.FloatValue": F.TYPE_FLOAT,
    "google.protobuf.Int64Value": F.TYPE_INT64,
    "google.protobuf.UInt64Value": F.TYPE_UINT64,
    "google.protobuf.Int32Value": F.TYPE_INT32,
    "google.protobuf.UInt32Value": F.TYPE_UINT32,
    "google.protobuf.BoolValue": F.TYPE_BOOL,
    "google.protobuf.StringValue": F.TYPE_STRING,
    "google.protobuf.BytesValue": F.TYPE_BYTES,
}
"""Well-known messages that make a scalar nullable, and the type of that scalar."""
TIMESTAMP = "google.protobuf.Timestamp"
DURATION = "google.protobuf.Duration"
JSON_VALUES = frozenset({"google.protobuf.Struct", "google.protobuf.Value", "google.protobuf.ListValue"})
"""Well-known messages that hold any JSON value."""
FIELD_MASK = "google.protobuf.FieldMask"
WELL_KNOWN = frozenset({*WRAPPERS, TIMESTAMP, DURATION, FIELD_MASK, *JSON_VALUES})
"""Messages that count as one value in data, so that their fields are not listed."""


def descriptor_of(message: Message) -> Descriptor:
    """Return the type of a message (its attribute is typed as a union of two implementations)."""
    return cast("Descriptor", message.DESCRIPTOR)


def set_fields(message: Message) -> list[tuple[FieldDescriptor, Any]]:
    """Return the fields that are set, extensions included, by number, with their values."""
    return cast("list[tuple[FieldDescriptor, Any]]", message.ListFields())


def message_of(field: FieldDescriptor) -> Descriptor:
    """Return the message type of a field that has one."""
    assert field.message_type is not None
    return field.message_type


def enum_of(field: FieldDescriptor) -> EnumDescriptor:
    """Return the enum type of a field that has one."""
    assert field.enum_type is not None
    return field.enum_type


def is_map_entry(message: Descriptor) -> bool:
    """Return whether the message is the entry type of a map field."""
    return message.has_options and bool(message.GetOptions().map_entry)


def is_map(field: FieldDescriptor) -> bool:
    """Return whether the field is a map."""
    return field.message_type is not None and is_map_entry(field.message_type)


def map_parts(field: FieldDescriptor) -> tuple[FieldDescriptor, FieldDescriptor]:
    """Return the key and value fields of a map field."""
    parts = message_of(field).fields_by_name
    return parts["key"], parts["value"]


def default_json_name(name: str) -> str:
    """Return the JSON name of a field that declares none: underscores removed, the letters after them in upper case."""
    characters, upper = [], False
    for char in name:
        if char == "_":
            upper = True
        else:
            characters.append(char.upper() if upper and char.isascii() else char)
            upper = False
    return "".join(characters)


def type_text(field: FieldDescriptor) -> str:
    """Return the type of a field with its label, names in full: `repeated pkg.Item`, `map<string, int32>`."""
    if is_map(field):
        key, value = map_parts(field)
        return f"map<{type_text(key)}, {type_text(value)}>"
    named = field.message_type or field.enum_type
    name = named.full_name if named is not None else _SCALAR_NAMES[field.type]
    if field.type == F.TYPE_GROUP:
        name = f"group {name}"
    return f"repeated {name}" if field.is_repeated else f"required {name}" if field.is_required else name


MAX_LOCATIONS = 400_000
"""Most source locations. A schema with more counts as one without comments, to limit the time."""

Path = tuple[int, ...]
"""Field numbers and indexes that lead to a declaration in the FileDescriptorProto."""


class SourceComments:
    """Comments by path in the FileDescriptorProto; none for a schema without source."""

    def __init__(self, schema: ProtobufSchema) -> None:
        locations = schema.source.location
        self._locations = locations if len(locations) <= MAX_LOCATIONS else ()

    @cached_property
    def _comment_by_path(self) -> dict[Path, str]:
        return {
            tuple(location.path): _decode_comment(text)
            for location in self._locations
            if (text := location.leading_comments or location.trailing_comments)
        }

    def comment_at(self, path: Path) -> str:
        """Return the comment before the element, else the one after it, without stars and surrounding white space."""
        lines = (line.strip() for line in self._comment_by_path.get(path, "").strip().splitlines())
        return "\n".join(line.removeprefix("*").strip() if line.startswith("*") else line for line in lines)


def _decode_comment(text: str | bytes) -> str:
    """Return a comment as text. The library returns bytes for invalid UTF-8, contrary to its type hints."""
    return text if isinstance(text, str) else text.decode("utf-8", "replace")


Range = tuple[int, int]
"""First and last number, both inclusive."""

_SHOWN = 5


class Ranges:
    """A set of numbers; its ranges are sorted and neither overlap nor touch."""

    def __init__(self, ranges: Iterable[Range]) -> None:
        merged: list[Range] = []
        for start, end in sorted(ranges):
            if merged and start <= merged[-1][1] + 1:
                merged[-1] = (merged[-1][0], max(merged[-1][1], end))
            else:
                merged.append((start, end))
        self.ranges: Sequence[Range] = merged
        self._ends = [end for _, end in merged]

    def __contains__(self, number: int) -> bool:
        at = bisect_left(self._ends, number)
        return at < len(self.ranges) and self.ranges[at][0] <= number

    def difference(self, other: Ranges) -> list[Range]:
        """Return the ranges of numbers in this set and not in the other, in order; linear in the number of ranges."""
        left: list[Range] = []
        at = 0
        for first, end in self.ranges:
            start = first
            while at < len(other.ranges) and other.ranges[at][0] <= end:
                taken = other.ranges[at]
                if start < taken[0]:
                    left.append((start, taken[0] - 1))
                start = max(start, taken[1] + 1)
                if taken[1] > end:  # reaches into the next range
                    break
                at += 1
            if start <= end:
                left.append((start, end))
        return left


def format_ranges(ranges: Sequence[Range], highest: int) -> str:
    """Return ranges as `.proto` text; of many, only the first few."""
    words = [str(a) if a == b else f"{a} to {'max' if b >= highest else b}" for a, b in ranges[:_SHOWN]]
    more = len(ranges) - len(words)
    return ", ".join(words) + (f" and {more} more" if more else "")
