"""The stable texts of a schema: printed as Confluent's registry does, normalized, and canonical.

Fingerprints are made of the canonical text. It is printed from a normalized descriptor, in which everything is sorted
whose order has no meaning. It compiles to the same descriptor. Its layout never changes: two spaces, one blank line
between kinds of members, fields before nested types.

A descriptor keeps fields, nested messages, enums and extensions in separate lists. But a map field or a group appends
its own message to the list of messages at its position. Fields are printed before nested types as long as that keeps
the order of the list of messages. A message that must precede the entry of a map field is printed before the field.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    Edition,
    EnumDescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
    FileDescriptorSet,
    MethodDescriptorProto,
    OneofDescriptorProto,
    ServiceDescriptorProto,
    SymbolVisibility,
)

from stele.formats.protobuf.confluent_text import build_tree, print_tree, sort_tree
from stele.formats.protobuf.lenient import resolve_names
from stele.formats.protobuf.model import default_json_name
from stele.formats.protobuf.options import list_options, quote_text
from stele.formats.protobuf.source_tree import FileNode, SourceError, parse_source

if TYPE_CHECKING:
    from google.protobuf.message import Message

    from stele.formats.protobuf.model import ProtobufSchema


def print_schema(schema: ProtobufSchema, *, extensions: bool = True) -> str:
    """Return the schema as text with the members of each kind in source order; see `confluent_text.print_tree`."""
    return print_tree(_read_tree(schema), extensions=extensions)


def resolve_schema(schema: ProtobufSchema) -> str:
    """Return the schema as text with full names and folded maps, the members of each kind in source order."""
    return print_tree(_resolve_tree(schema))


def normalize_schema(schema: ProtobufSchema) -> str:
    """Return the schema as text with full names and with everything sorted whose order has no meaning."""
    tree = _resolve_tree(schema)
    sort_tree(tree)
    return print_tree(tree)


def _resolve_tree(schema: ProtobufSchema) -> FileNode:
    if not schema.is_partial:
        return build_tree(schema.proto, schema, fold=True)
    tree = _read_tree(schema)
    resolve_names(tree, schema.files)
    return tree


def canonicalize_schema(schema: ProtobufSchema) -> str:
    """Return the text for fingerprints: canonical, or normalized if the descriptors are incomplete."""
    return normalize_schema(schema) if schema.is_partial else print_canonical(schema)


def _read_tree(schema: ProtobufSchema) -> FileNode:
    if schema.text:
        try:
            return parse_source(schema.text.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "surrogateescape"))
        except SourceError:  # the compiler takes more than the standard allows
            return build_tree(schema.proto, schema)
    return build_tree(schema.sent or schema.proto, schema)


def normalize_file(file: FileDescriptorProto) -> FileDescriptorProto:
    """Return a copy of file with members sorted.

    Imports, enums and services are sorted by name, methods by name, fields by number (the members of a oneof stay
    together, at the place of the lowest), extensions by extended message and number, reserved and extension ranges.
    Messages keep their order, because frames refer to them by position; bodies of extensions that are groups come last.
    Enum values are sorted by number, except that the first keeps its place (it is the default of closed enums), and
    aliases keep their order (the first is the name in JSON). Options are sorted when they are printed.
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

    Options are first read with the schema's own extensions, because one option can be encoded in several ways. The
    file's own name is left out, because it does not belong to the content.
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
    """Sort a message and its nested messages. They nest at most 32 deep, so recursion is safe."""
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
    """Sort fields by number, with oneofs kept together.

    Oneofs are in the order of their first field, synthetic ones last.
    """
    lowest: dict[int, int] = {}
    for member in message.field:
        if member.HasField("oneof_index"):
            lowest[member.oneof_index] = min(member.number, lowest.get(member.oneof_index, member.number))
    synthetic = {field.oneof_index for field in message.field if field.proto3_optional}
    order = sorted(range(len(message.oneof_decl)), key=lambda index: (index in synthetic, lowest.get(index, 0)))
    oneofs = [message.oneof_decl[index] for index in order]
    message.field.sort(
        key=lambda field: (lowest[field.oneof_index] if field.HasField("oneof_index") else field.number, field.number)
    )
    position = {old: new for new, old in enumerate(order)}
    for member in message.field:
        if member.HasField("oneof_index"):
            member.oneof_index = position[member.oneof_index]
    _replace_oneofs(message, oneofs)


def _replace_oneofs(message: DescriptorProto, oneofs: Sequence[object]) -> None:
    copies = [type(message.oneof_decl[0]).FromString(oneof.SerializeToString()) for oneof in oneofs]  # type: ignore[attr-defined]  # generated type
    message.ClearField("oneof_decl")
    message.oneof_decl.extend(copies)


def _sort_nested(message: DescriptorProto) -> None:
    """Sort nested messages: map entries and groups in the order of their fields, then the others unchanged."""
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


def print_canonical(schema: ProtobufSchema) -> str:
    """Return the normalized schema as text. All digests are made of it, so its layout must never change."""
    if schema.canonical_text is None:
        schema.canonical_text = _Printer(schema).print_file(normalize_file(schema.proto))
    return schema.canonical_text


class _Printer:
    """Prints the parts of one file. Each method returns lines without the indentation of the enclosing block."""

    def __init__(self, schema: ProtobufSchema) -> None:
        self._schema = schema
        self._syntax = schema.proto.syntax or "proto2"

    # --- file and message -------------------------------------------------------------------------------------------

    def print_file(self, file: FileDescriptorProto) -> str:
        head = [_print_syntax(file), *([f"package {file.package};"] if file.package else [])]
        lines = _join_sections([head, _print_imports(file), self._option_statements(file.options)])
        scope = DeclarationScope((), file.message_type, file.enum_type, file.extension)
        for member in order_declarations(scope):
            lines += ["", *self._print_declaration(member, scope)]
        for service in file.service:
            lines += ["", *self._print_service(service)]
        return "\n".join(lines) + "\n"

    def _print_message(self, message: DescriptorProto, head: str) -> _Lines:
        """Return a message or, with another head, the body of a group. Messages nest at most 32 deep."""
        scope = DeclarationScope(message.field, message.nested_type, message.enum_type, message.extension)
        sections: list[tuple[str, _Lines]] = [
            ("reserved", _print_reserved(message, self._syntax, _MAX_FIELD, exclusive=True)),
            ("option", self._option_statements(message.options, but=("map_entry",))),
        ]
        extensible = self._print_extension_ranges(message)
        for member in order_declarations(scope):
            if member.kind not in {"field", "oneof"}:
                sections.append(("range", extensible))
                extensible = []
            kind = "type" if member.kind in {"message", "enum"} else member.kind
            oneof = message.oneof_decl[message.field[member.indexes[0]].oneof_index] if member.kind == "oneof" else None
            block = self._print_oneof(member, scope, oneof) if oneof else self._print_declaration(member, scope)
            sections.append((kind, block))
        sections.append(("range", extensible))
        return _print_block(f"{visibility_word(message)} {head}".lstrip(), _join_blocks(sections))

    def _print_declaration(self, member: Declaration, scope: DeclarationScope) -> _Lines:
        first = member.indexes[0]
        if member.kind == "field":
            return self._print_field(scope.fields[first], scope)
        if member.kind == "extend":
            body = [line for index in member.indexes for line in self._print_field(scope.extensions[index], scope)]
            return _print_block(f"extend {scope.extensions[first].extendee}", body)
        if member.kind == "enum":
            return self._print_enum(scope.enums[first])
        return self._print_message(scope.messages[first], f"message {scope.messages[first].name}")

    def _print_oneof(self, member: Declaration, scope: DeclarationScope, oneof: OneofDescriptorProto) -> _Lines:
        body = self._option_statements(oneof.options)
        for index in member.indexes:
            body += self._print_field(scope.fields[index], scope)
        return _print_block(f"oneof {oneof.name}", body)

    def _print_extension_ranges(self, message: DescriptorProto) -> _Lines:
        lines: _Lines = []
        for item in message.extension_range:
            head = f"extensions {format_range(item.start, item.end - 1, _MAX_FIELD)}"
            lines += _with_options(head, self._option_pairs(item.options), ";")
        return lines

    # --- fields -----------------------------------------------------------------------------------------------------

    def _print_field(self, field: FieldDescriptorProto, scope: DeclarationScope) -> _Lines:
        pairs = _own_pairs(field) + self._option_pairs(field.options)
        index = scope.own_message(field)
        if index is None:
            head = self._label_text(field) + _type_text(field)
        elif field.type == _F.TYPE_GROUP:
            body = scope.messages[index]
            head = f"{self._label_text(field)}group {body.name} = {field.number}{_inline_options(pairs)}"
            return self._print_message(body, head)
        else:
            key, value = scope.messages[index].field
            head = f"map<{_type_text(key)}, {_type_text(value)}>"
        return _with_options(f"{head} {field.name} = {field.number}", pairs, ";")

    def _label_text(self, field: FieldDescriptorProto) -> str:
        """Return the label before the type: '' where the syntax has no keyword for it."""
        if field.label == _F.LABEL_REPEATED or field.proto3_optional:
            return _LABELS[field.label]
        if self._syntax != "proto2" or field.HasField("oneof_index"):
            return ""
        return _LABELS[field.label]

    # --- enums and services -----------------------------------------------------------------------------------------

    def _print_enum(self, enum: EnumDescriptorProto) -> _Lines:
        body = self._option_statements(enum.options)
        for value in enum.value:
            body += _with_options(f"{value.name} = {value.number}", self._option_pairs(value.options), ";")
        reserved = _print_reserved(enum, self._syntax, _MAX_ENUM, exclusive=False)
        return _print_block(f"{visibility_word(enum)} enum {enum.name}".lstrip(), _join_sections([reserved, body]))

    def _print_service(self, service: ServiceDescriptorProto) -> _Lines:
        methods = [line for method in service.method for line in self._print_method(method)]
        return _print_block(
            f"service {service.name}", _join_sections([self._option_statements(service.options), methods])
        )

    def _print_method(self, method: MethodDescriptorProto) -> _Lines:
        request_type = ("stream " if method.client_streaming else "") + method.input_type
        response_type = ("stream " if method.server_streaming else "") + method.output_type
        head = f"rpc {method.name} ({request_type}) returns ({response_type})"
        body = self._option_statements(method.options)
        return _print_block(head, body) if body else [head + ";"]

    # --- options ----------------------------------------------------------------------------------------------------

    def _option_pairs(self, options: Message) -> list[str]:
        return [f"{option.name} = {option.value}" for option in list_options(options, self._schema)]

    def _option_statements(self, options: Message, but: Sequence[str] = ()) -> _Lines:
        option_texts = list_options(options, self._schema)
        return [f"option {option.name} = {option.value};" for option in option_texts if option.name not in but]


def _type_text(field: FieldDescriptorProto) -> str:
    return field.type_name or _SCALARS[field.type]


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
    """Return the keyword of edition 2024 that exports or hides a type: `export`, `local` or ''."""
    if item.visibility == SymbolVisibility.VISIBILITY_UNSET:
        return ""
    return "export" if item.visibility == SymbolVisibility.VISIBILITY_EXPORT else "local"


def _own_pairs(field: FieldDescriptorProto) -> list[str]:
    """Return what is written like an option and stored elsewhere: the default, and an explicit JSON name."""
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


def _print_reserved(
    item: DescriptorProto | EnumDescriptorProto, syntax: str, highest: int, *, exclusive: bool
) -> _Lines:
    """Return the lines of reserved numbers, then of names.

    In a descriptor the ends of a message's ranges are exclusive, those of an enum's inclusive.
    """
    ranges = [format_range(span.start, span.end - exclusive, highest) for span in item.reserved_range]
    names = [name if syntax == "editions" else quote_text(name) for name in item.reserved_name]
    return [f"reserved {', '.join(words)};" for words in (ranges, names) if words]


def format_range(start: int, end: int, highest: int) -> str:
    """Return `5` or `5 to 9`; an end equal to highest is written `max`."""
    if start == end:
        return str(start)
    return f"{start} to {'max' if end == highest else end}"


# --- lines ----------------------------------------------------------------------------------------------------------


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
    """Return the non-empty sections, with an empty line between them."""
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
    """One declaration: its kind (`field`, `oneof`, `message`, `enum`, `extend`) and the indexes of its members.

    indexes count in the descriptor's list of that kind (fields for a oneof, extensions for an `extend` block); messages
    are the indexes of the nested messages that it declares itself.
    """

    kind: str
    indexes: list[int]
    messages: list[int] = field(default_factory=list)


@dataclass(frozen=True)
class DeclarationScope:
    """The lists of declarations of one scope."""

    fields: Sequence[FieldDescriptorProto]
    messages: Sequence[DescriptorProto]
    enums: Sequence[EnumDescriptorProto]
    extensions: Sequence[FieldDescriptorProto]

    @cached_property
    def _index_by_name(self) -> dict[str, int]:
        return {message.name: index for index, message in enumerate(self.messages)}

    def own_message(self, item: FieldDescriptorProto) -> int | None:
        """Return the index of the map entry or group body that a field or extension of this scope declares, or None."""
        if item.type not in {FieldDescriptorProto.TYPE_MESSAGE, FieldDescriptorProto.TYPE_GROUP}:
            return None
        index = self._index_by_name.get(item.type_name.rsplit(".", 1)[-1])
        if index is None or item.type == FieldDescriptorProto.TYPE_GROUP:
            return index
        return index if self.messages[index].options.map_entry else None


def order_declarations(scope: DeclarationScope) -> list[Declaration]:
    """Return all declarations of the scope in print order: fields, messages, enums, extensions."""
    fields = _field_declarations(scope)
    extends = _extension_declarations(scope)
    owned = {index for member in (*fields, *extends) for index in member.messages}
    types = [Declaration("message", [index], [index]) for index in range(len(scope.messages)) if index not in owned]
    types += [Declaration("enum", [index]) for index in range(len(scope.enums))]
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
