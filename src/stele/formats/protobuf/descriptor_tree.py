"""From a descriptor to the tree of a source text, with full names of types, as Confluent's registry reads descriptors.

A map is a repeated field with a message for its entries there; a folded tree writes it as a map again. A folded tree
that is sorted is the normalized form of a schema.

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
        schema: Where custom options are declared; without it they are left out.
        fold: Whether maps become maps again, and JSON names stay only where they are not the usual ones.
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
        """Return the messages that fields of a scope declare: bodies of groups, and entries of maps when folding."""
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
        """Return a message; descriptors nest at most 100 deep."""
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
        found: dict[str, ExtendNode] = {}
        for item in extensions:
            node = found.setdefault(item.extendee, ExtendNode(TypeUse(item.extendee)))
            node.fields.append(self._build_field(item, inline, in_oneof=False))
        return list(found.values())

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
        """Return the options that are set: those named in first, the other built-in ones, Confluent's, custom ones."""
        if not options.ByteSize():
            return []
        found: list[tuple[tuple[int, int], OptionNode]] = []
        for item, value in set_fields(read_options(options, self._schema)):
            if item.name == "uninterpreted_option" and not item.is_extension:
                continue
            if item.name == "features" and not item.is_extension:
                found += [((len(first), 0), OptionNode(name, Word(text))) for name, text in list_feature_options(value)]
                continue
            name = item.full_name if item.is_extension else item.name
            rank = first.index(name) if name in first else len(first) + 1
            rank += item.is_extension * (1 + (not name.startswith("confluent.")))
            for each in list_values(item, value):
                found.append(((rank, item.number), OptionNode(name, _option_value(item, each), item.is_extension)))
        return [option for _, option in sorted(found, key=lambda pair: pair[0])]


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
    """Return a message by the names of its fields; the parser's limit bounds its depth."""
    found: dict[str, Value] = {}
    for item, value in set_fields(message):
        name = f"[{item.full_name}]" if item.is_extension else item.name
        if item.type == item.TYPE_GROUP and item.message_type is not None:
            name = item.message_type.name
        values = [_option_value(item, each) for each in list_values(item, value)]
        if item.full_name == "confluent.Meta.params":
            values = [_order_parameter(each) for each in values]
        found[name] = values if item.is_repeated else values[0]
    return found


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
    """Return the word of edition 2024 that exports or hides a type: `export`, `local` or ''."""
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
    """Return a value with the fields of messages by name, and a list of one element as that element."""
    if isinstance(value, dict):
        return {name: _sort_value(value[name]) for name in sorted(value)}
    if isinstance(value, list):
        return _sort_value(value[0]) if len(value) == 1 else [_sort_value(item) for item in value]
    return value


def _range_key(item: RangesNode) -> tuple[bool, int, str]:
    value = item.values[0]
    return (True, 0, value) if isinstance(value, str) else (False, value[0], "")
