"""The text that Confluent's registry stores and derives GUIDs from: builds a tree from a descriptor, and prints it.

The tree has full type names, like the tree that Confluent's registry makes of descriptors. A map is a repeated field
with a message for its entries in it. In a folded tree it is a map again. A folded and sorted tree is the normalized
form of a schema.

Types follow each other without blank lines, messages before enums. In a message the order is, with a blank line between
the kinds: reserved, options, fields, oneofs, groups, extension ranges, `extend` blocks, nested messages, nested enums.
Names and options are those of the source. If that layout would lose something (weak imports, options of ranges,
defaults of `bytes`, control characters), it is kept in the nearest form that compiles.

Source: docs/protocols/protobuf.md#the-text-that-confluent-stores.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    Edition,
    EnumDescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
    ServiceDescriptorProto,
    SymbolVisibility,
)
from google.protobuf.text_encoding import CUnescape

from stele.formats.protobuf.model import default_json_name, enum_of, set_fields
from stele.formats.protobuf.options import list_feature_options, list_values, number_literal, read_options
from stele.formats.protobuf.source_tree import (
    MAX_ENUM_NUMBER,
    MAX_NUMBER,
    EnumNode,
    EnumValueNode,
    ExtendNode,
    FieldNode,
    FileNode,
    ImportNode,
    MessageNode,
    MethodNode,
    OneofNode,
    OptionNode,
    Quoted,
    RangesNode,
    ServiceNode,
    TypeUse,
    Value,
    Word,
)

if TYPE_CHECKING:
    from google.protobuf.message import Message

    from stele.formats.protobuf.model import ProtobufSchema


_ESCAPES: Final = {
    **{code: f"\\{code:03o}" for code in (*range(32), 127)},
    **{0xDC00 + byte: f"\\{byte:03o}" for byte in range(128, 256)},
    **{ord(char): f"\\{letter}" for char, letter in zip("\a\b\f\n\r\t\v\\'\"", "abfnrtv\\'\"", strict=True)},
}

_Lines = list[str]


def print_tree(file: FileNode, *, extensions: bool = True) -> str:
    """Return a file as text. extensions=False leaves out everything that needs extensions.

    That is `extend` blocks, extension ranges and custom options other than Confluent's own.
    """
    return _Printer(file, extensions=extensions).print_file()


class _Printer:
    """Prints the parts of one file. Each method returns lines without the indentation of the enclosing block."""

    def __init__(self, file: FileNode, *, extensions: bool) -> None:
        self._file = file
        self._extensions = extensions

    def print_file(self) -> str:
        file = self._file
        head = [f'syntax = "{file.syntax}";'] if file.syntax else []
        head += [f'edition = "{file.edition}";'] if file.edition else []
        head += [f"package {file.package};"] if file.package else []
        imports = [
            f"import {kind} {_quote(item.path)};".replace("  ", " ")
            for kind in ("", "public", "weak", "option")
            for item in file.imports
            if item.kind == kind
        ]
        sections = [imports, self._print_statements(file.options), self._print_types(file.types)]
        sections.append([line for extend in self._kept_extends(file.extends) for line in self._print_extend(extend)])
        sections.append([line for service in file.services for line in self._print_service(service)])
        lines = head
        for section in sections:
            lines += ["", *section] if section else []
        return "\n".join([*lines, ""])

    def _print_types(self, types: Sequence[MessageNode | EnumNode]) -> _Lines:
        messages = [item for item in types if isinstance(item, MessageNode)]
        enums = [item for item in types if isinstance(item, EnumNode)]
        lines = [line for message in messages for line in self._print_message(message)]
        return lines + [line for enum in enums for line in self._print_enum(enum)]

    def _print_message(self, message: MessageNode) -> _Lines:
        head = f"{message.visibility} message {message.name}".lstrip()
        return _print_block(head, self._message_sections(message))

    def _message_sections(self, message: MessageNode) -> list[_Lines]:
        fields = [item for item in message.fields if item.body is None]
        groups = [item for item in message.fields if item.body is not None]
        ranges = message.extensions if self._extensions else []
        return [
            [self._print_reserved(item, MAX_NUMBER) for item in message.reserved],
            self._print_statements(message.options),
            [line for item in fields for line in self._print_field(item)],
            [line for item in message.oneofs for line in self._print_oneof(item)],
            [line for item in groups for line in self._print_field(item)],
            [line for item in ranges for line in self._print_extension_range(item)],
            [line for item in self._kept_extends(message.extends) for line in self._print_extend(item)],
            self._print_types(message.types),
        ]

    def _kept_extends(self, extends: Sequence[ExtendNode]) -> Sequence[ExtendNode]:
        return extends if self._extensions else ()

    def _print_oneof(self, oneof: OneofNode) -> _Lines:
        fields = [line for item in oneof.fields if item.body is None for line in self._print_field(item)]
        groups = [line for item in oneof.fields if item.body is not None for line in self._print_field(item)]
        return _print_block(f"oneof {oneof.name}", [self._print_statements(oneof.options), fields, groups])

    def _print_extend(self, extend: ExtendNode) -> _Lines:
        fields = [line for item in extend.fields for line in self._print_field(item)]
        return _print_block(f"extend {extend.extendee.name}", [fields])

    def _print_field(self, item: FieldNode) -> _Lines:
        kind = f"map<{item.key}, {item.type.name}>" if item.key else item.type.name
        options = [*item.options]
        if item.default is not None:
            options.append(OptionNode("default", item.default))
        if item.json_name is not None:
            options.append(OptionNode("json_name", Quoted(item.json_name)))
        head = f"{item.label} {kind} {item.name} = {item.number}".lstrip()
        lines = self._print_brackets(head, options)
        if item.body is None:
            return [*lines[:-1], f"{lines[-1]};"]
        body = _print_block("", self._message_sections(item.body))
        return [*lines[:-1], lines[-1] + body[0], *body[1:]]

    def _print_reserved(self, item: RangesNode, highest: int) -> str:
        return f"reserved {', '.join(self._range_text(value, highest) for value in item.values)};"

    def _print_extension_range(self, item: RangesNode) -> _Lines:
        head = f"extensions {', '.join(self._range_text(value, MAX_NUMBER) for value in item.values)}"
        lines = self._print_brackets(head, item.options)
        return [*lines[:-1], f"{lines[-1]};"]

    def _range_text(self, value: str | tuple[int, int], highest: int) -> str:
        if isinstance(value, str):
            return value if self._file.edition else _quote(value)
        first, last = value
        if first == last:
            return str(first)
        return f"{first} to {'max' if last >= highest else last}"

    # --- enums and services -----------------------------------------------------------------------------------------

    def _print_enum(self, enum: EnumNode) -> _Lines:
        lines = [self._print_reserved(item, MAX_ENUM_NUMBER) for item in enum.reserved]
        lines += self._print_statements(enum.options)
        for value in enum.values:
            printed = self._print_brackets(f"{value.name} = {value.number}", value.options)
            lines += [*printed[:-1], f"{printed[-1]};"]
        return _print_block(f"{enum.visibility} enum {enum.name}".lstrip(), [lines])

    def _print_service(self, service: ServiceNode) -> _Lines:
        methods = [line for method in service.methods for line in self._print_method(method)]
        return _print_block(f"service {service.name}", [self._print_statements(service.options), methods])

    def _print_method(self, method: MethodNode) -> _Lines:
        request_type = f"{'stream ' * method.client_streaming}{method.request.name}"
        response_type = f"{'stream ' * method.server_streaming}{method.response.name}"
        head = f"rpc {method.name} ({request_type}) returns ({response_type})"
        options = self._print_statements(method.options)
        return [f"{head} {{", *_indent(options), "};"] if options else [f"{head};"]

    # --- options ----------------------------------------------------------------------------------------------------

    def _kept_options(self, options: Iterable[OptionNode]) -> list[OptionNode]:
        return [item for item in options if self._extensions or not item.is_custom or _is_confluent(item.name)]

    def _print_statements(self, options: Iterable[OptionNode]) -> _Lines:
        lines: _Lines = []
        for option in self._kept_options(options):
            printed = _option_lines(option)
            lines += [f"option {printed[0]}", *printed[1:]]
            lines[-1] += ";"
        return lines

    def _print_brackets(self, head: str, options: Iterable[OptionNode]) -> _Lines:
        """Return a declaration with its options: one stays on the line, several get a line each."""
        option_lines = [_option_lines(option) for option in self._kept_options(options)]
        if not option_lines:
            return [head]
        if len(option_lines) == 1:
            lines = [f"{head} [{option_lines[0][0]}", *option_lines[0][1:]]
            return [*lines[:-1], f"{lines[-1]}]"]
        return [f"{head} [", *_indent(_join_with_commas(option_lines)), "]"]


def _is_confluent(name: str) -> bool:
    return name.removeprefix(".").startswith("confluent.")


def _option_lines(option: OptionNode) -> _Lines:
    name = f"({option.name})" if option.is_custom else option.name
    name += f".{option.sub}" if option.sub else ""
    first, *rest = _value_lines(option.value)
    return [f"{name} = {first}", *rest]


def _value_lines(value: Value) -> _Lines:
    if isinstance(value, Quoted):
        return [_quote(value.text)]
    if isinstance(value, Word):
        return [value.text]
    if isinstance(value, list):
        return ["[", *_indent(_join_with_commas([_value_lines(item) for item in value])), "]"]
    members = []
    for name, inner in value.items():
        first, *rest = _value_lines(inner)
        members.append([f"{name}: {first}", *rest])
    return ["{", *_indent(_join_with_commas(members)), "}"]


def _join_with_commas(items: Sequence[_Lines]) -> _Lines:
    lines: _Lines = []
    for index, item in enumerate(items):
        lines += item
        if index < len(items) - 1:
            lines[-1] += ","
    return lines


def _quote(text: str) -> str:
    return f'"{text.translate(_ESCAPES)}"'


def _print_block(head: str, sections: Iterable[_Lines]) -> _Lines:
    """Return a block of sections, with an empty line between them."""
    lines: _Lines = []
    for section in sections:
        if section:
            lines += ["", *section] if lines else section
    return [f"{head} {{", *_indent(lines), "}"] if lines else [f"{head} {{}}"]


def _indent(lines: Iterable[str]) -> _Lines:
    return [f"  {line}" if line else line for line in lines]


_F: Final = FieldDescriptorProto
_LABELS: Final[Mapping[int, str]] = {
    _F.LABEL_OPTIONAL: "optional",
    _F.LABEL_REQUIRED: "required",
    _F.LABEL_REPEATED: "repeated",
}
_FILE_OPTIONS: Final = (
    *("java_package", "java_outer_classname", "java_multiple_files", "java_generate_equals_and_hash"),
    *("java_string_check_utf8", "optimize_for", "go_package", "cc_generic_services", "java_generic_services"),
    *("py_generic_services", "php_generic_services", "deprecated", "cc_enable_arenas", "objc_class_prefix"),
    *("csharp_namespace", "swift_prefix", "php_class_prefix", "php_namespace", "php_metadata_namespace"),
    "ruby_package",
)
_FIELD_OPTIONS: Final = ("ctype", "packed", "jstype", "deprecated")
_VALUE_FIRST: Final = frozenset({"precision", "scale"})
"""Parameters of Confluent's field metadata whose value is written before the key."""


def build_tree(file: FileDescriptorProto, schema: ProtobufSchema | None = None, *, fold: bool = False) -> FileNode:
    """Return the tree of a descriptor.

    Args:
        file: The descriptor.
        schema: Schema that declares the custom options; without it they are left out.
        fold: Whether maps are folded, and JSON names that equal the default are left out.
    """
    return _Builder(file, schema, fold=fold).build_file()


class _Builder:
    def __init__(self, file: FileDescriptorProto, schema: ProtobufSchema | None, *, fold: bool) -> None:
        self._file = file
        self._schema = schema
        self._fold = fold
        self._is_proto2 = file.syntax in {"", "proto2"}

    def build_file(self) -> FileNode:
        file = self._file
        public, weak = set(file.public_dependency), set(file.weak_dependency)
        kinds = ["public" if i in public else "weak" if i in weak else "" for i in range(len(file.dependency))]
        is_edition = file.syntax == "editions"
        inline = self._inline_messages(file.message_type, file.extension)
        return FileNode(
            "" if is_edition or (self._fold and self._is_proto2) else file.syntax,
            Edition.Name(file.edition).removeprefix("EDITION_") if is_edition else "",
            file.package,
            [
                *(ImportNode(path, kind) for path, kind in zip(file.dependency, kinds, strict=True)),
                *(ImportNode(path, "option") for path in file.option_dependency),
            ],
            self._build_options(file.options, _FILE_OPTIONS),
            [*self._build_messages(file.message_type, inline), *map(self._build_enum, file.enum_type)],
            self._build_extends(file.extension, inline),
            [self._build_service(service) for service in file.service],
        )

    # --- messages ---------------------------------------------------------------------------------------------------

    def _inline_messages(
        self, messages: Iterable[DescriptorProto], fields: Iterable[FieldDescriptorProto]
    ) -> dict[str, DescriptorProto]:
        """Return the messages that fields of a scope declare: group bodies, and with `fold` the entries of maps."""
        groups = {_local_name(item) for item in fields if item.type == _F.TYPE_GROUP}
        return {
            message.name: message
            for message in messages
            if message.name in groups or (self._fold and message.options.map_entry)
        }

    def _build_messages(
        self, messages: Iterable[DescriptorProto], inline: Mapping[str, DescriptorProto]
    ) -> list[MessageNode]:
        return [self._build_message(message) for message in messages if message.name not in inline]

    def _build_message(self, message: DescriptorProto) -> MessageNode:
        """Return the tree of a message. Descriptors nest at most 100 deep."""
        inline = self._inline_messages(message.nested_type, [*message.field, *message.extension])
        oneofs = [OneofNode(oneof.name, self._build_options(oneof.options, ())) for oneof in message.oneof_decl]
        node = MessageNode(message.name, _visibility(message))
        for item in message.field:
            in_oneof = item.HasField("oneof_index") and not item.proto3_optional
            target = oneofs[item.oneof_index].fields if in_oneof else node.fields
            target.append(self._build_field(item, inline, in_oneof=in_oneof))
        node.oneofs = [oneof for oneof in oneofs if oneof.fields]
        node.options = self._build_options(
            message.options, ("no_standard_descriptor_accessor", "deprecated", "map_entry")
        )
        node.reserved = [RangesNode([(span.start, span.end - 1)]) for span in message.reserved_range]
        node.reserved += [RangesNode([name]) for name in message.reserved_name]
        node.extensions = [
            RangesNode([(span.start, span.end - 1)], self._build_options(span.options, ()))
            for span in message.extension_range
        ]
        node.extends = self._build_extends(message.extension, inline)
        node.types = [*self._build_messages(message.nested_type, inline), *map(self._build_enum, message.enum_type)]
        return node

    def _build_field(
        self, item: FieldDescriptorProto, inline: Mapping[str, DescriptorProto], *, in_oneof: bool
    ) -> FieldNode:
        label = "" if in_oneof else self._label_text(item)
        kind = item.type_name or _F.Type.Name(item.type).removeprefix("TYPE_").lower()
        node = FieldNode(TypeUse(kind), item.name, item.number, label)
        body = inline.get(_local_name(item)) if item.type_name else None
        if body is not None and item.type == _F.TYPE_GROUP:
            node.type, node.name, node.body = TypeUse("group"), body.name, self._build_message(body)
        elif body is not None:
            key, value = body.field
            node.key = self._build_field(key, {}, in_oneof=True).type.name
            node.type = self._build_field(value, {}, in_oneof=True).type
            node.label = ""
        node.options = self._build_options(item.options, _FIELD_OPTIONS)
        if item.HasField("default_value"):
            node.default = _default_value(item)
        if item.HasField("json_name") and not (self._fold and item.json_name == default_json_name(item.name)):
            node.json_name = None if item.extendee else item.json_name
        return node

    def _label_text(self, item: FieldDescriptorProto) -> str:
        if item.label == _F.LABEL_REPEATED or item.proto3_optional or self._is_proto2:
            return _LABELS[item.label]
        return ""

    def _build_extends(
        self, extensions: Iterable[FieldDescriptorProto], inline: Mapping[str, DescriptorProto]
    ) -> list[ExtendNode]:
        nodes: dict[str, ExtendNode] = {}
        for item in extensions:
            node = nodes.setdefault(item.extendee, ExtendNode(TypeUse(item.extendee)))
            node.fields.append(self._build_field(item, inline, in_oneof=False))
        return list(nodes.values())

    # --- enums and services -----------------------------------------------------------------------------------------

    def _build_enum(self, enum: EnumDescriptorProto) -> EnumNode:
        return EnumNode(
            enum.name,
            _visibility(enum),
            self._build_options(enum.options, ("allow_alias", "deprecated")),
            [
                *(RangesNode([(span.start, span.end)]) for span in enum.reserved_range),
                *(RangesNode([name]) for name in enum.reserved_name),
            ],
            [
                EnumValueNode(value.name, value.number, self._build_options(value.options, ("deprecated",)))
                for value in enum.value
            ],
        )

    def _build_service(self, service: ServiceDescriptorProto) -> ServiceNode:
        methods = [
            MethodNode(
                method.name,
                TypeUse(method.input_type),
                TypeUse(method.output_type),
                method.client_streaming,
                method.server_streaming,
                self._build_options(method.options, ("deprecated", "idempotency_level")),
            )
            for method in service.method
        ]
        return ServiceNode(service.name, self._build_options(service.options, ("deprecated",)), methods)

    # --- options ----------------------------------------------------------------------------------------------------

    def _build_options(self, options: Message, first: Sequence[str]) -> list[OptionNode]:
        """Return the set options in this order: those named in first, other built-in ones, Confluent's, custom ones."""
        if not options.ByteSize():
            return []
        ranked_options: list[tuple[tuple[int, int], OptionNode]] = []
        for item, value in set_fields(read_options(options, self._schema)):
            if item.name == "uninterpreted_option" and not item.is_extension:
                continue
            if item.name == "features" and not item.is_extension:
                ranked_options += [
                    ((len(first), 0), OptionNode(name, Word(text))) for name, text in list_feature_options(value)
                ]
                continue
            name = item.full_name if item.is_extension else item.name
            rank = first.index(name) if name in first else len(first) + 1
            rank += item.is_extension * (1 + (not name.startswith("confluent.")))
            for each in list_values(item, value):
                ranked_options.append(
                    ((rank, item.number), OptionNode(name, _option_value(item, each), item.is_extension))
                )
        return [option for _, option in sorted(ranked_options, key=lambda pair: pair[0])]


def _option_value(item: FieldDescriptor, value: Any) -> Value:
    """Return one value of an option's field."""
    if item.message_type is not None:
        return _message_value(value)
    if item.type == item.TYPE_ENUM:
        known = enum_of(item).values_by_number.get(value)
        return Word(known.name if known else str(value))
    if item.type == item.TYPE_STRING:
        return Quoted(value if isinstance(value, str) else value.decode("utf-8", "surrogateescape"))
    if item.type == item.TYPE_BYTES:
        return Quoted(value.decode("ascii", "surrogateescape"))
    if item.type == item.TYPE_BOOL:
        return Word("true" if value else "false")
    if item.type in {item.TYPE_FLOAT, item.TYPE_DOUBLE}:
        return Word(number_literal(value, single=item.type == item.TYPE_FLOAT))
    return Word(str(value))


def _message_value(message: Message) -> dict[str, Value]:
    """Return a message as a dict by field names. The parser limits its depth."""
    fields: dict[str, Value] = {}
    for item, value in set_fields(message):
        name = f"[{item.full_name}]" if item.is_extension else item.name
        if item.type == item.TYPE_GROUP and item.message_type is not None:
            name = item.message_type.name
        values = [_option_value(item, each) for each in list_values(item, value)]
        if item.full_name == "confluent.Meta.params":
            values = [_order_parameter(each) for each in values]
        fields[name] = values if item.is_repeated else values[0]
    return fields


def _order_parameter(value: Value) -> Value:
    if isinstance(value, dict) and isinstance(key := value.get("key"), Quoted) and key.text in _VALUE_FIRST:
        return dict(reversed(value.items()))
    return value


def _default_value(item: FieldDescriptorProto) -> Value:
    if item.type == _F.TYPE_STRING:
        return Quoted(item.default_value)
    if item.type == _F.TYPE_BYTES:
        return Quoted(CUnescape(item.default_value).decode("ascii", "surrogateescape"))
    return Word(item.default_value)


def _local_name(item: FieldDescriptorProto) -> str:
    return item.type_name.rsplit(".", 1)[-1]


def _visibility(item: DescriptorProto | EnumDescriptorProto) -> str:
    """Return the keyword of edition 2024 that exports or hides a type: `export`, `local` or ''."""
    if item.visibility == SymbolVisibility.VISIBILITY_UNSET:
        return ""
    return "export" if item.visibility == SymbolVisibility.VISIBILITY_EXPORT else "local"


# --- sorting what has no order --------------------------------------------------------------------------------------


def sort_tree(file: FileNode) -> None:
    """Sort everything in a tree whose order has no meaning."""
    file.imports.sort(key=lambda item: item.path)
    _sort_options(file.options)
    for item in file.types:
        _sort_type(item)
    _sort_extends(file.extends)
    for service in file.services:
        _sort_options(service.options)
        for method in service.methods:
            _sort_options(method.options)


def _sort_type(item: MessageNode | EnumNode) -> None:
    _sort_options(item.options)
    item.reserved.sort(key=_range_key)
    if isinstance(item, EnumNode):
        first = item.values[0].number if item.values else 0
        item.values.sort(key=lambda value: (value.number != first, value.number))
        for value in item.values:
            _sort_options(value.options)
        return
    _sort_fields(item.fields)
    for oneof in item.oneofs:
        _sort_options(oneof.options)
        _sort_fields(oneof.fields)
    item.oneofs.sort(key=lambda oneof: oneof.fields[0].number if oneof.fields else 0)
    item.extensions.sort(key=_range_key)
    for span in item.extensions:
        _sort_options(span.options)
    _sort_extends(item.extends)
    for inner in item.types:
        _sort_type(inner)


def _sort_fields(fields: list[FieldNode]) -> None:
    fields.sort(key=lambda item: item.number)
    for item in fields:
        _sort_options(item.options)
        if item.body is not None:
            _sort_type(item.body)


def _sort_extends(extends: list[ExtendNode]) -> None:
    extends.sort(key=lambda item: item.extendee.name)
    for extend in extends:
        _sort_fields(extend.fields)


def _sort_options(options: list[OptionNode]) -> None:
    options.sort(key=lambda option: option.name)
    for option in options:
        option.value = _sort_value(option.value)


def _sort_value(value: Value) -> Value:
    """Return a value with the fields of messages sorted by name. A list of one element becomes that element."""
    if isinstance(value, dict):
        return {name: _sort_value(value[name]) for name in sorted(value)}
    if isinstance(value, list):
        return _sort_value(value[0]) if len(value) == 1 else [_sort_value(item) for item in value]
    return value


def _range_key(item: RangesNode) -> tuple[bool, int, str]:
    value = item.values[0]
    return (True, 0, value) if isinstance(value, str) else (False, value[0], "")
