"""Prints a descriptor as `.proto` text that compiles to the same descriptor.

The layout is the one Confluent's registry stores: two spaces, one blank line between kinds of members, fields before
nested types. Comments are not printed.

A descriptor keeps fields, nested messages, enums and extensions in separate lists, yet a map field or a group appends
its own message to the list of messages where it stands. Fields come before nested types as long as that keeps the list
of messages as it is; a message that must precede the entry of a map field is moved before the field.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    Edition,
    EnumDescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
    MethodDescriptorProto,
    ServiceDescriptorProto,
    SymbolVisibility,
)

from stele.formats.protobuf.layout import NO_POSITION, Path, SourceLayout
from stele.formats.protobuf.normalize import normalize_file
from stele.formats.protobuf.options import OptionText, list_options, quote_text

if TYPE_CHECKING:
    from google.protobuf.message import Message

    from stele.formats.protobuf.model import ProtobufSchema


_F = FieldDescriptorProto
_MAX_FIELD = 536870911
_MAX_ENUM = 2147483647
_SCALARS = {
    number: name.removeprefix("TYPE_").lower()
    for name, number in _F.Type.items()
    if name not in {"TYPE_MESSAGE", "TYPE_ENUM", "TYPE_GROUP"}
}
_LABELS = {_F.LABEL_OPTIONAL: "optional ", _F.LABEL_REQUIRED: "required ", _F.LABEL_REPEATED: "repeated "}

_Lines = list[str]


def print_schema(schema: ProtobufSchema, *, normal: bool = False, extensions: bool = True) -> str:
    """Return the schema as text.

    normal sorts all that may be sorted and writes full type names; otherwise order and type names are the author's.
    extensions=False leaves out custom options and `extend` blocks.
    """
    if normal and extensions:
        if schema.normal_text is None:
            schema.normal_text = _Printer(schema, None, extensions=True).print_file(normalize_file(schema.proto))
        return schema.normal_text
    if normal:
        return _Printer(schema, None, extensions=False).print_file(normalize_file(schema.proto))
    return _Printer(schema, SourceLayout(schema), extensions=extensions).print_file(schema.proto)


class _Printer:
    """Prints the parts of one file; each method returns lines without the indentation of what surrounds them."""

    def __init__(self, schema: ProtobufSchema, layout: SourceLayout | None, *, extensions: bool) -> None:
        self._schema = schema
        self._layout = layout
        self._extensions = extensions
        self._syntax = schema.proto.syntax or "proto2"

    # --- file and message -------------------------------------------------------------------------------------------

    def print_file(self, file: FileDescriptorProto) -> str:
        head = [_print_syntax(file), *([f"package {file.package};"] if file.package else [])]
        lines = _join_sections([head, _print_imports(file), self._option_statements(file.options, (8,))])
        scope = DeclarationScope((), (), file.message_type, file.enum_type, file.extension, (4, 5, 7))
        for member in order_declarations(scope, self._start_position):
            for block in self._print_declaration(member, scope):
                lines += ["", *block]
        for index, service in enumerate(file.service):
            lines += ["", *self._print_service(service, (6, index))]
        return "\n".join(lines) + "\n"

    def _print_message(self, message: DescriptorProto, path: Path, head: str) -> _Lines:
        """Return a message or, with another head, the body of a group. Messages nest at most 32 deep."""
        scope = DeclarationScope(
            path, message.field, message.nested_type, message.enum_type, message.extension, (3, 4, 6)
        )
        sections: list[tuple[str, _Lines]] = [
            ("reserved", _print_reserved(message, self._syntax, _MAX_FIELD, exclusive=True)),
            ("option", self._option_statements(message.options, (*path, 7), but=("map_entry",))),
        ]
        extensible = self._print_extension_ranges(message, path)
        for member in order_declarations(scope, self._start_position):
            if member.kind not in {"field", "oneof"}:
                sections.append(("range", extensible))
                extensible = []
            oneof = message.oneof_decl[message.field[member.indexes[0]].oneof_index] if member.kind == "oneof" else None
            blocks = (
                self._print_oneof(member, scope, oneof.name, oneof.options)
                if oneof
                else self._print_declaration(member, scope)
            )
            kind = "type" if member.kind in {"message", "enum"} else member.kind
            sections += [(kind, block) for block in blocks]
        sections.append(("range", extensible))
        return _print_block(f"{visibility_word(message)} {head}".lstrip(), _join_blocks(sections))

    def _print_declaration(self, member: Declaration, scope: DeclarationScope) -> list[_Lines]:
        """Return one declaration of a scope, as no or one block."""
        if member.kind == "field":
            return [self._print_field(scope.fields[member.indexes[0]], scope, (*scope.path, 2, member.indexes[0]))]
        if member.kind == "extend":
            return [self._print_extend(member, scope)] if self._extensions else []
        path = scope.member_path(member)
        if member.kind == "enum":
            return [self._print_enum(scope.enums[member.indexes[0]], path)]
        message = scope.messages[member.indexes[0]]
        return [self._print_message(message, path, f"message {message.name}")]

    def _print_oneof(self, member: Declaration, scope: DeclarationScope, name: str, options: Message) -> list[_Lines]:
        position = scope.fields[member.indexes[0]].oneof_index
        body = self._option_statements(options, (*scope.path, 8, position, 2))
        for index in member.indexes:
            body += self._print_field(scope.fields[index], scope, (*scope.path, 2, index))
        return [_print_block(f"oneof {name}", body)]

    def _print_extend(self, member: Declaration, scope: DeclarationScope) -> _Lines:
        body: _Lines = []
        first = (*scope.path, scope.tags[2], member.indexes[0])
        for index in member.indexes:
            body += self._print_field(scope.extensions[index], scope, (*scope.path, scope.tags[2], index))
        return _print_block(
            f"extend {self._type_name(scope.extensions[member.indexes[0]].extendee, (*first, 2))}", body
        )

    def _print_extension_ranges(self, message: DescriptorProto, path: Path) -> _Lines:
        lines: _Lines = []
        for index, item in enumerate(message.extension_range):
            options = self._list_options(item.options, (*path, 5, index, 3))
            lines += _with_options(
                f"extensions {format_range(item.start, item.end - 1, _MAX_FIELD)}", _option_pairs(options), ";"
            )
        return lines

    # --- fields -----------------------------------------------------------------------------------------------------

    def _print_field(self, field: FieldDescriptorProto, scope: DeclarationScope, path: Path) -> _Lines:
        pairs = _own_pairs(field) + _option_pairs(self._list_options(field.options, (*path, 8)))
        index = scope.own_message(field)
        if index is None:
            head = self._label_text(field) + self._type_text(field, path)
        elif field.type == _F.TYPE_GROUP:
            body = scope.messages[index]
            head = f"{self._label_text(field)}group {body.name} = {field.number}{_inline_options(pairs)}"
            return self._print_message(body, (*scope.path, scope.tags[0], index), head)
        else:
            key, value = scope.messages[index].field
            head = f"map<{self._type_text(key, ())}, {self._map_value_text(value, path)}>"
        return _with_options(f"{head} {field.name} = {field.number}", pairs, ";")

    def _label_text(self, field: FieldDescriptorProto) -> str:
        """Return what stands before the type: nothing where the syntax has no word for it."""
        if field.label == _F.LABEL_REPEATED or field.proto3_optional:
            return _LABELS[field.label]
        if self._syntax != "proto2" or field.HasField("oneof_index"):
            return ""
        return _LABELS[field.label]

    def _type_text(self, field: FieldDescriptorProto, path: Path) -> str:
        return self._type_name(field.type_name, (*path, 6)) if field.type_name else _SCALARS[field.type]

    def _map_value_text(self, value: FieldDescriptorProto, path: Path) -> str:
        spelled = self._layout.map_value_spelling(path) if self._layout and value.type_name else ""
        return spelled or self._type_text(value, ())

    def _type_name(self, full_name: str, path: Path) -> str:
        """Return a type name as the author spelled it, else in full with its leading dot."""
        return (self._layout.type_spelling(path) if self._layout else "") or full_name

    # --- enums and services -----------------------------------------------------------------------------------------

    def _print_enum(self, enum: EnumDescriptorProto, path: Path) -> _Lines:
        body = self._option_statements(enum.options, (*path, 3))
        for index, value in enumerate(enum.value):
            pairs = _option_pairs(self._list_options(value.options, (*path, 2, index, 3)))
            body += _with_options(f"{value.name} = {value.number}", pairs, ";")
        reserved = _print_reserved(enum, self._syntax, _MAX_ENUM, exclusive=False)
        return _print_block(f"{visibility_word(enum)} enum {enum.name}".lstrip(), _join_sections([reserved, body]))

    def _print_service(self, service: ServiceDescriptorProto, path: Path) -> _Lines:
        methods: _Lines = []
        for index, method in enumerate(service.method):
            methods += self._print_method(method, (*path, 2, index))
        return _print_block(
            f"service {service.name}", _join_sections([self._option_statements(service.options, (*path, 3)), methods])
        )

    def _print_method(self, method: MethodDescriptorProto, path: Path) -> _Lines:
        asked = ("stream " if method.client_streaming else "") + self._type_name(method.input_type, (*path, 2))
        given = ("stream " if method.server_streaming else "") + self._type_name(method.output_type, (*path, 3))
        head = f"rpc {method.name} ({asked}) returns ({given})"
        body = self._option_statements(method.options, (*path, 4))
        return _print_block(head, body) if body else [head + ";"]

    # --- options ----------------------------------------------------------------------------------------------------

    def _list_options(self, options: Message, path: Path) -> list[OptionText]:
        found = list_options(
            options,
            self._schema,
            by_name=self._layout is None,
            place=lambda number: self._start_position((*path, number)),
        )
        return [option for option in found if self._extensions or not option.is_custom]

    def _option_statements(self, options: Message, path: Path, but: Sequence[str] = ()) -> _Lines:
        found = self._list_options(options, path)
        return [f"option {option.name} = {option.value};" for option in found if option.name not in but]

    def _start_position(self, path: Path) -> tuple[int, ...]:
        return self._layout.start_position(path) if self._layout else NO_POSITION


def _print_syntax(file: FileDescriptorProto) -> str:
    if file.syntax == "editions":
        return f'edition = "{Edition.Name(file.edition).removeprefix("EDITION_")}";'
    return f'syntax = "{file.syntax or "proto2"}";'


def _print_imports(file: FileDescriptorProto) -> _Lines:
    public, weak = set(file.public_dependency), set(file.weak_dependency)
    lines = []
    for index, name in enumerate(file.dependency):
        kind = "public " if index in public else "weak " if index in weak else ""
        lines.append(f"import {kind}{quote_text(name)};")
    return lines + [f"import option {quote_text(name)};" for name in file.option_dependency]


def visibility_word(item: DescriptorProto | EnumDescriptorProto) -> str:
    """Return the word of edition 2024 that exports or hides a type: `export`, `local` or ''."""
    if item.visibility == SymbolVisibility.VISIBILITY_UNSET:
        return ""
    return "export" if item.visibility == SymbolVisibility.VISIBILITY_EXPORT else "local"


def _own_pairs(field: FieldDescriptorProto) -> list[str]:
    """Return what is written like an option and stored elsewhere: the default, and a JSON name of the author's."""
    pairs = []
    if field.HasField("default_value"):
        value = field.default_value
        if field.type == _F.TYPE_STRING:
            value = quote_text(value)
        elif field.type == _F.TYPE_BYTES:  # escaped already
            value = f'"{value}"'
        pairs.append(f"default = {value}")
    if field.HasField("json_name") and not field.extendee and field.json_name != default_json_name(field.name):
        pairs.append(f"json_name = {quote_text(field.json_name)}")
    return pairs


def default_json_name(name: str) -> str:
    """Return the JSON name of a field that declares none: underscores removed, the letters after them in upper case."""
    made, upper = [], False
    for char in name:
        if char == "_":
            upper = True
        else:
            made.append(char.upper() if upper and char.isascii() else char)
            upper = False
    return "".join(made)


def _print_reserved(
    item: DescriptorProto | EnumDescriptorProto, syntax: str, highest: int, *, exclusive: bool
) -> _Lines:
    """Reserved numbers, then names; the ends of a message's ranges are exclusive in a descriptor, an enum's are not."""
    ranges = [format_range(span.start, span.end - exclusive, highest) for span in item.reserved_range]
    names = [name if syntax == "editions" else quote_text(name) for name in item.reserved_name]
    return [f"reserved {', '.join(words)};" for words in (ranges, names) if words]


def format_range(start: int, end: int, highest: int) -> str:
    """Return `5` or `5 to 9`; an end equal to highest is written `max`."""
    if start == end:
        return str(start)
    return f"{start} to {'max' if end == highest else end}"


# --- lines ----------------------------------------------------------------------------------------------------------


def _option_pairs(options: Iterable[OptionText]) -> list[str]:
    return [f"{option.name} = {option.value}" for option in options]


def _inline_options(pairs: Sequence[str]) -> str:
    return f" [{', '.join(pairs)}]" if pairs else ""


def _with_options(head: str, pairs: Sequence[str], end: str) -> _Lines:
    """Return a declaration with its options in brackets: one stays on the line, several get a line each."""
    if len(pairs) < 2:
        return [head + _inline_options(pairs) + end]
    return [head + " [", *(f"  {pair}," for pair in pairs[:-1]), f"  {pairs[-1]}", "]" + end]


def _print_block(head: str, body: Sequence[str]) -> _Lines:
    if not body:
        return [head + " {}"]
    return [head + " {", *("  " + line if line else "" for line in body), "}"]


def _join_sections(sections: Iterable[Sequence[str]]) -> _Lines:
    """Return the sections that have lines, with an empty line between them."""
    return _join_blocks((str(number), section) for number, section in enumerate(sections))


def _join_blocks(sections: Iterable[tuple[str, Sequence[str]]]) -> _Lines:
    """Return blocks of lines by kind, with an empty line where the kind changes."""
    lines: _Lines = []
    last = ""
    for kind, section in sections:
        if section:
            lines += ["", *section] if lines and kind != last else section
            last = kind
    return lines


# --- the order of declarations --------------------------------------------------------------------------------------


@dataclass
class Declaration:
    """One declaration: its kind (`field`, `oneof`, `message`, `enum`, `extend`) and the indexes of what it holds.

    indexes count in the descriptor's list of that kind (fields for a oneof, extensions for an `extend` block); messages
    are the indexes of the nested messages that it declares itself.
    """

    kind: str
    indexes: list[int]
    messages: list[int] = field(default_factory=list)


@dataclass(frozen=True)
class DeclarationScope:
    """The lists of one scope, its path, and the field numbers of its messages, enums and extensions."""

    path: Path
    fields: Sequence[FieldDescriptorProto]
    messages: Sequence[DescriptorProto]
    enums: Sequence[EnumDescriptorProto]
    extensions: Sequence[FieldDescriptorProto]
    tags: tuple[int, int, int]

    @cached_property
    def _index_by_name(self) -> dict[str, int]:
        return {message.name: index for index, message in enumerate(self.messages)}

    def own_message(self, item: FieldDescriptorProto) -> int | None:
        """Return index of the map entry or group body that a field or extension of this scope declares by itself."""
        if item.type not in {FieldDescriptorProto.TYPE_MESSAGE, FieldDescriptorProto.TYPE_GROUP}:
            return None
        index = self._index_by_name.get(item.type_name.rsplit(".", 1)[-1])
        if index is None or item.type == FieldDescriptorProto.TYPE_GROUP:
            return index
        return index if self.messages[index].options.map_entry else None

    def member_path(self, member: Declaration) -> Path:
        """Return where a nested message or enum is."""
        return (*self.path, self.tags[0 if member.kind == "message" else 1], member.indexes[0])


def order_declarations(scope: DeclarationScope, place: Callable[[Path], tuple[int, ...]]) -> list[Declaration]:
    """Return all declarations of the scope; place tells where the author put a nested type."""
    fields = _field_declarations(scope)
    extends = _extension_declarations(scope)
    owned = {index for member in (*fields, *extends) for index in member.messages}
    types = [Declaration("message", [index], [index]) for index in range(len(scope.messages)) if index not in owned]
    types += [Declaration("enum", [index]) for index in range(len(scope.enums))]
    types.sort(key=lambda member: (*place(scope.member_path(member)), member.kind == "enum", *member.indexes))
    return list(_merge_declarations([fields, types, extends]))


def _field_declarations(scope: DeclarationScope) -> list[Declaration]:
    members: list[Declaration] = []
    oneofs: dict[int, Declaration] = {}
    for index, item in enumerate(scope.fields):
        if item.HasField("oneof_index") and not item.proto3_optional:
            member = oneofs.get(item.oneof_index)
            if member is None:
                member = oneofs[item.oneof_index] = Declaration("oneof", [])
                members.append(member)
            member.indexes.append(index)
        else:
            member = Declaration("field", [index])
            members.append(member)
        member.messages += _own_messages(scope, item)
    return members


def _extension_declarations(scope: DeclarationScope) -> list[Declaration]:
    """Return one member for each run of extensions of the same message that no other message interrupts."""
    members: list[Declaration] = []
    for index, item in enumerate(scope.extensions):
        own = _own_messages(scope, item)
        joins = (
            members
            and scope.extensions[members[-1].indexes[0]].extendee == item.extendee
            and (not own or not members[-1].messages or own[0] == members[-1].messages[-1] + 1)
        )
        if not joins:
            members.append(Declaration("extend", []))
        members[-1].indexes.append(index)
        members[-1].messages += own
    return members


def _own_messages(scope: DeclarationScope, item: FieldDescriptorProto) -> list[int]:
    index = scope.own_message(item)
    return [] if index is None else [index]


def _merge_declarations(sequences: Sequence[Sequence[Declaration]]) -> Iterator[Declaration]:
    """Yield the sequences in order, except where a message has to come earlier to keep the order of messages."""
    queue_of = {index: number for number, members in enumerate(sequences) for m in members for index in m.messages}
    heads = [0] * len(sequences)
    emitted: set[int] = set()
    following = 0
    for number, members in enumerate(sequences):
        while heads[number] < len(members):
            source = number
            # Follow the messages that are due before this member to the sequence that declares them.
            while True:
                member = sequences[source][heads[source]]
                while following in emitted:
                    following += 1
                if not member.messages or following >= min(member.messages) or queue_of[following] == source:
                    break
                source = queue_of[following]
            heads[source] += 1
            emitted.update(member.messages)
            yield member
