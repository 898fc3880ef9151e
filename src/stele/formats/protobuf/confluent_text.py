"""Prints a file in the layout that Confluent's registry stores and makes GUIDs of.

Types stand behind each other without blank lines, messages before enums. In a message follow, with a blank line between
the kinds: reserved, options, fields, oneofs, groups, extension ranges, `extend` blocks, nested messages, nested enums.
Names and options are the author's. Where that layout would lose something (weak imports, options of ranges, defaults of
`bytes`, control characters), it is kept in the nearest form that compiles.

Source: docs/protocols/protobuf.md#the-text-that-confluent-stores.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from stele.formats.protobuf.source_tree import (
    MAX_ENUM_NUMBER,
    MAX_NUMBER,
    EnumNode,
    ExtendNode,
    FieldNode,
    FileNode,
    MessageNode,
    MethodNode,
    OneofNode,
    OptionNode,
    Quoted,
    RangesNode,
    ServiceNode,
    Value,
    Word,
)

_ESCAPES: Final = {
    **{code: f"\\{code:03o}" for code in (*range(32), 127)},
    **{0xDC00 + byte: f"\\{byte:03o}" for byte in range(128, 256)},
    **{ord(char): f"\\{letter}" for char, letter in zip("\a\b\f\n\r\t\v\\'\"", "abfnrtv\\'\"", strict=True)},
}

_Lines = list[str]


def print_tree(file: FileNode, *, extensions: bool = True) -> str:
    """Return a file as text; extensions=False leaves out what only extensions need.

    That is `extend` blocks, extension ranges and custom options other than Confluent's own.
    """
    return _Printer(file, extensions=extensions).print_file()


class _Printer:
    """Prints the parts of one file; each method returns lines without the indentation of what surrounds them."""

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
        asked = f"{'stream ' * method.client_streaming}{method.request.name}"
        given = f"{'stream ' * method.server_streaming}{method.response.name}"
        head = f"rpc {method.name} ({asked}) returns ({given})"
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
        kept = [_option_lines(option) for option in self._kept_options(options)]
        if not kept:
            return [head]
        if len(kept) == 1:
            lines = [f"{head} [{kept[0][0]}", *kept[0][1:]]
            return [*lines[:-1], f"{lines[-1]}]"]
        return [f"{head} [", *_indent(_join_with_commas(kept)), "]"]


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
