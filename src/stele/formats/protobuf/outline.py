"""Declarations of a file: an outline with options and comments, a flat list of fields, and their source positions.

Fields and enum values are identified by number, everything else by name without the package. Messages of imports are
not listed: they belong to their own files.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Final

from google.protobuf.descriptor import FieldDescriptor as F
from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    Edition,
    EnumDescriptorProto,
    FieldDescriptorProto,
    MethodDescriptorProto,
)

from stele.core.findings import SourcePosition
from stele.core.ports import Field
from stele.formats.capabilities import OutlineNode
from stele.formats.outline_builder import OutlineBuilder
from stele.formats.protobuf.canonical import format_range, visibility_word
from stele.formats.protobuf.model import (
    MAX_LOCATIONS,
    WELL_KNOWN,
    Path,
    ProtobufSchema,
    SourceComments,
    default_json_name,
    enum_of,
    is_map,
    map_parts,
    type_text,
)
from stele.formats.protobuf.options import list_options

if TYPE_CHECKING:
    from google.protobuf.descriptor import Descriptor, FieldDescriptor
    from google.protobuf.message import Message

    from stele.formats.protobuf.model import ProtobufSchema

FILE: Final = "/"
"""Path of the file itself."""

_F = FieldDescriptorProto
_HIGHEST: Final = {True: 536870911, False: 2147483647}
"""Highest number of a message's field (True) and of an enum's value (False): ranges that end there print `max`."""


def outline(schema: ProtobufSchema) -> list[OutlineNode]:
    """Return the file, its imports, then messages with all that is inside them, enums, extensions and services."""
    return _Outliner(schema).build_outline()


class _Outliner:
    """Builds the outline. Messages nest at most 32 deep, so recursion is safe."""

    def __init__(self, schema: ProtobufSchema) -> None:
        self.schema = schema
        self.comments = SourceComments(schema)
        self.outline = OutlineBuilder()

    def build_outline(self) -> list[OutlineNode]:
        file = self.schema.proto
        edition = Edition.Name(file.edition).removeprefix("EDITION_") if file.syntax == "editions" else ""
        attributes = {"package": file.package, "syntax": file.syntax or "proto2", "edition": edition}
        self.outline.add_node(
            FILE, "file", {**attributes, **self._option_attributes(file.options), "comment": self._comment_at((2,))}
        )
        self._add_imports()
        for index, message in enumerate(self.outline.until_full(file.message_type)):
            self._add_message(message, self.schema.full_name(message.name), FILE, (4, index))
        for index, enum in enumerate(self.outline.until_full(file.enum_type)):
            self._add_enum(enum, self.schema.full_name(enum.name), FILE, (5, index))
        self._add_extensions(file.extension, file.package, FILE, (7,))
        self._add_services()
        return self.outline.nodes

    def _add_imports(self) -> None:
        file = self.schema.proto
        public, weak = set(file.public_dependency), set(file.weak_dependency)
        for index, name in enumerate(self.outline.until_full(file.dependency)):
            kind = "public" if index in public else "weak" if index in weak else ""
            self.outline.add_node(f"import {name}", "import", {"modifier": kind}, parent=FILE, name=name)
        for name in self.outline.until_full(file.option_dependency):
            self.outline.add_node(f"import option {name}", "import", {"modifier": "option"}, parent=FILE, name=name)

    # --- messages ---------------------------------------------------------------------------------------------------

    def _add_message(self, message: DescriptorProto, path: str, parent: str, place: Path) -> None:
        """Add a message and its declarations. Messages are ordered, because frames refer to them by position."""
        attributes = {
            "reserved numbers": _format_ranges(
                ((span.start, span.end - 1) for span in message.reserved_range), field=True
            ),
            "reserved names": ", ".join(sorted(message.reserved_name)),
            "extensions": self._extension_ranges(message),
            "visibility": visibility_word(message),
            **self._option_attributes(message.options),
            "comment": self._comment_at(place),
        }
        identity = f"type {message.name}"
        path = self.outline.add_node(
            path, "message", attributes, parent=parent, name=message.name, identity=identity, ordered=True
        )
        entries = {nested.name: nested for nested in message.nested_type if nested.options.map_entry}
        self._add_oneofs(message, path, place)
        for index, field in enumerate(self.outline.until_full(message.field)):
            self._add_field(field, message, entries, path, (*place, 2, index))
        for index, nested in enumerate(self.outline.until_full(message.nested_type)):
            if nested.name not in entries:
                self._add_message(nested, f"{path}.{nested.name}", path, (*place, 3, index))
        for index, enum in enumerate(self.outline.until_full(message.enum_type)):
            self._add_enum(enum, f"{path}.{enum.name}", path, (*place, 4, index))
        self._add_extensions(message.extension, path, path, (*place, 6))

    def _extension_ranges(self, message: DescriptorProto) -> str:
        spans = sorted(message.extension_range, key=lambda span: span.start)
        return ", ".join(
            format_range(span.start, span.end - 1, _HIGHEST[True])
            + "".join(f" [{name} = {value}]" for name, value in self._option_attributes(span.options).items())
            for span in spans
        )

    def _add_oneofs(self, message: DescriptorProto, path: str, place: Path) -> None:
        """Add the declared oneofs. The one that proto3 `optional` implies is left out."""
        implied = {field.oneof_index for field in message.field if field.proto3_optional}
        for index, oneof in enumerate(self.outline.until_full(message.oneof_decl)):
            if index not in implied:
                attributes = {**self._option_attributes(oneof.options), "comment": self._comment_at((*place, 8, index))}
                identity = f"oneof {oneof.name}"
                where = f"{path}.{oneof.name}"
                self.outline.add_node(where, "oneof", attributes, parent=path, name=oneof.name, identity=identity)

    def _add_field(
        self,
        field: FieldDescriptorProto,
        message: DescriptorProto,
        entries: Mapping[str, DescriptorProto],
        path: str,
        place: Path,
    ) -> None:
        entry = entries.get(field.type_name.rpartition(".")[2]) if field.type_name else None
        key, value = entry.field if entry is not None else (None, None)
        in_oneof = field.HasField("oneof_index") and not field.proto3_optional
        attributes = {
            "type": self._type_text(field)
            if key is None or value is None
            else f"map<{self._type_text(key)}, {self._type_text(value)}>",
            "label": self._label_text(field) if entry is None else "",
            "oneof": message.oneof_decl[field.oneof_index].name if in_oneof else "",
            **self._common_attributes(field, place),
        }
        used = field.type_name if value is None else value.type_name
        self.outline.add_node(
            f"{path}.{field.name}",
            "field",
            attributes,
            parent=path,
            name=field.name,
            identity=f"field {field.number}",
            uses=[used[1:]] if used else (),
        )

    def _label_text(self, field: FieldDescriptorProto) -> str:
        """Return the label as written. In proto3 and editions only a label with a meaning is returned."""
        if field.label != _F.LABEL_OPTIONAL:
            return "repeated" if field.label == _F.LABEL_REPEATED else "required"
        plain = (self.schema.proto.syntax or "proto2") == "proto2" and not field.HasField("oneof_index")
        return "optional" if field.proto3_optional or plain else ""

    def _common_attributes(self, field: FieldDescriptorProto, place: Path) -> dict[str, str]:
        """Return the attributes that fields and extensions share."""
        return {
            "number": str(field.number),
            "default": field.default_value if field.HasField("default_value") else "",
            "empty default": "yes" if field.HasField("default_value") and not field.default_value else "",
            "json_name": "" if field.json_name == default_json_name(field.name) else field.json_name,
            **self._option_attributes(field.options),
            "comment": self._comment_at(place),
        }

    def _add_extensions(self, fields: Iterable[FieldDescriptorProto], scope: str, parent: str, place: Path) -> None:
        for index, field in enumerate(self.outline.until_full(fields)):
            attributes = {
                "extendee": self._short_name(field.extendee),
                "type": self._type_text(field),
                "label": self._label_text(field),
                **self._common_attributes(field, (*place, index)),
            }
            self.outline.add_node(
                f"{scope}.{field.name}" if scope else field.name,
                "extension",
                attributes,
                parent=parent,
                name=field.name,
                identity=f"extension {self._short_name(field.extendee)} {field.number}",
                uses=[field.type_name[1:]] if field.type_name else (),
            )

    # --- enums and services -----------------------------------------------------------------------------------------

    def _add_enum(self, enum: EnumDescriptorProto, path: str, parent: str, place: Path) -> None:
        attributes = {
            "reserved numbers": _format_ranges(((span.start, span.end) for span in enum.reserved_range), field=False),
            "reserved names": ", ".join(sorted(enum.reserved_name)),
            "visibility": visibility_word(enum),
            **self._option_attributes(enum.options),
            "comment": self._comment_at(place),
        }
        path = self.outline.add_node(
            path, "enum", attributes, parent=parent, name=enum.name, identity=f"type {enum.name}"
        )
        times = Counter(value.number for value in enum.value)
        for index, value in enumerate(self.outline.until_full(enum.value)):
            alone = times[value.number] == 1
            attributes = {
                "number": str(value.number),
                "position": "first" if index == 0 else "",
                **self._option_attributes(value.options),
                "comment": self._comment_at((*place, 2, index)),
            }
            identity = f"value {value.number}" if alone else ""
            where = f"{path}.{value.name}"
            self.outline.add_node(where, "enum value", attributes, parent=path, name=value.name, identity=identity)

    def _add_services(self) -> None:
        for index, service in enumerate(self.outline.until_full(self.schema.proto.service)):
            place = (6, index)
            attributes = {**self._option_attributes(service.options), "comment": self._comment_at(place)}
            name = service.name
            path = self.schema.full_name(name)
            path = self.outline.add_node(
                path, "service", attributes, parent=FILE, name=name, identity=f"service {name}"
            )
            for number, method in enumerate(self.outline.until_full(service.method)):
                self._add_method(method, path, (*place, 2, number))

    def _add_method(self, method: MethodDescriptorProto, service: str, place: Path) -> None:
        request_type, response_type = method.input_type[1:], method.output_type[1:]
        attributes = {
            "request": "stream " * method.client_streaming + self._short_name(method.input_type),
            "response": "stream " * method.server_streaming + self._short_name(method.output_type),
            **self._option_attributes(method.options),
            "comment": self._comment_at(place),
        }
        where = f"{service}.{method.name}"
        self.outline.add_node(
            where, "method", attributes, parent=service, name=method.name, uses=[request_type, response_type]
        )

    # --- texts ------------------------------------------------------------------------------------------------------

    def _option_attributes(self, options: Message) -> dict[str, str]:
        """Return options by `option name`. The elements of a repeated one are joined."""
        attributes: dict[str, str] = {}
        for option in list_options(options, self.schema):
            word = f"option {option.name}"
            if option.name != "map_entry":
                attributes[word] = f"{attributes[word]}, {option.value}" if word in attributes else option.value
        return attributes

    def _type_text(self, field: FieldDescriptorProto) -> str:
        if not field.type_name:
            return _F.Type.Name(field.type).removeprefix("TYPE_").lower()
        return (
            f"group {self._short_name(field.type_name)}"
            if field.type == _F.TYPE_GROUP
            else self._short_name(field.type_name)
        )

    def _short_name(self, full_name: str) -> str:
        """Return the name of a type, without the file's own package, which the file node already has."""
        return full_name.removeprefix(f".{self.schema.proto.package}.").removeprefix(".")

    def _comment_at(self, place: Path) -> str:
        return self.comments.comment_at(place)


def _format_ranges(spans: Iterable[tuple[int, int]], *, field: bool) -> str:
    return ", ".join(format_range(start, end, _HIGHEST[field]) for start, end in sorted(spans))


# --- the fields as a flat list --------------------------------------------------------------------------------------

MAX_FIELDS = 10_000
"""Most fields in the list. Messages that refer to each other can be combined in exponentially many ways."""
MAX_DEPTH = 32


def list_fields(schema: ProtobufSchema) -> list[Field]:
    """Return all fields, depth first.

    Paths start in the first message of the file. Top-level messages that no earlier one uses follow; their paths begin
    with the message's name. `[]` enters the elements of a repeated field, `{}` the values of a map. A message is not
    entered again inside itself. Well-known messages such as Timestamp are not entered.
    """
    lister = _Lister(schema)
    fields: list[Field] = []
    for number, message in enumerate(schema.list_messages()):
        if message.full_name not in lister.seen:
            prefix = f"{message.name}." if number else ""
            fields += islice(lister.walk_message(message, prefix, ()), MAX_FIELDS - len(fields))
    return fields


class _Lister:
    """Walks messages. `seen` holds the full names of the messages it has entered."""

    def __init__(self, schema: ProtobufSchema) -> None:
        self._comments = SourceComments(schema)
        self._schema = schema
        self.seen: set[str] = set()

    def walk_message(self, message: Descriptor, prefix: str, above: tuple[str, ...]) -> Iterator[Field]:
        """Yield the fields of message and below, their paths after `prefix`. `above` are the enclosing messages."""
        self.seen.add(message.full_name)
        place = self._message_path(message)
        for field in message.fields:
            path = prefix + field.name
            comment = self._comments.comment_at((*place, 2, field.index)) if place else ""
            yield Field(path, type_text(field), _default_text(field), comment, not field.is_required)
            value = map_parts(field)[1] if is_map(field) else field
            inner = value.message_type
            entered = (*above, message.full_name)
            if inner is None or inner.full_name in WELL_KNOWN or inner.full_name in entered or len(above) > MAX_DEPTH:
                continue
            mark = "{}" if is_map(field) else "[]" if field.is_repeated else ""
            yield from self.walk_message(inner, f"{path}{mark}.", entered)

    def _message_path(self, message: Descriptor) -> Path:
        """Return the descriptor path of the message; () for a message of another file, which has no comments here."""
        path = self._schema.message_positions.get(message.full_name, ())
        return (4, path[0], *(step for index in path[1:] for step in (3, index))) if path else ()


def _default_text(field: FieldDescriptor) -> str | None:
    """Return the declared default as JSON text."""
    if not field.has_default_value:
        return None
    value = field.default_value
    if field.type == F.TYPE_ENUM:
        value = enum_of(field).values_by_number[value].name
    elif field.type == F.TYPE_BYTES:
        value = value.decode("latin-1")
    return json.dumps(value)


def locate_declarations(schema: ProtobufSchema) -> dict[str, SourcePosition]:
    """Return positions by the paths of findings: full names; none for a schema that came as a descriptor."""
    locations = schema.source.location
    if len(locations) > MAX_LOCATIONS:
        return {}
    starts = {tuple(each.path): SourcePosition(each.span[0] + 1, each.span[1] + 1) for each in locations}
    positions = {"/": SourcePosition(1, 1)} if starts else {}
    for name, path in _walk_file(schema):
        if path in starts:
            positions.setdefault(name, starts[path])
    return positions


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
