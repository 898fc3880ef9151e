"""Declarations of a `.proto` file as in its source: order, spelling of types, and all options, also undeclared ones.

A descriptor holds the meaning of a file; this tree holds its text and positions. `parse_source` reads text;
`confluent_text` builds the same tree from a descriptor, and prints it. Only the syntax of the text is checked: a text
that protoc refuses for its meaning has a tree nevertheless.

Source: docs/protocols/protobuf.md#the-text-that-confluent-stores.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final, NamedTuple

MAX_DEPTH: Final = 100
"""Most levels of nested messages, and of nested option values."""
MAX_TOKENS: Final = 600_000
"""Most tokens of a text that is parsed. Each takes about 3 µs."""
MAX_PACKAGE: Final = 511
"""Longest name of a package; the limit of the compiler."""
MAX_NUMBER: Final = (1 << 29) - 1
"""The number that `max` stands for in ranges of a message."""
MAX_ENUM_NUMBER: Final = (1 << 31) - 1
"""The number that `max` stands for in ranges of an enum."""

_TOKEN: Final = re.compile(
    r"""(?P<skip>[\s\ufeff]+|//[^\n]*|/\*.*?\*/)
    |(?P<open>/\*)
    |(?P<word>[^\W\d]\w*)
    |(?P<number>(?:\d|\.\d)(?:[eE][+-]?\d|[\w.])*)
    |(?P<string>"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')
    |(?P<mark>[^\w\s"'])""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPE: Final = re.compile(
    r"\\(?:[xX]([0-9a-fA-F]{1,2})|([0-7]{1,3})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(.))", re.DOTALL
)
_SIMPLE_ESCAPES: Final = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


class SourceError(ValueError):
    """Raised for a text without the syntax of a `.proto` file."""


class Span(NamedTuple):
    """Position in the text: start index, and end index (exclusive)."""

    start: int
    end: int


NOWHERE: Final = Span(0, 0)
"""Span of a node that was not read from text."""


class Quoted(NamedTuple):
    """A string. Bytes above 127 from escapes are lone surrogates (U+DC80 …)."""

    text: str


class Word(NamedTuple):
    """A number, a boolean, or the name of an enum value, as written."""

    text: str


Value = Quoted | Word | dict[str, "Value"] | list["Value"]
"""The value of an option: a message is a dict by the names of its fields, `[full.name]` for an extension."""


@dataclass(slots=True)
class OptionNode:
    """One option. sub is what follows a custom option's name: `baz` of `(foo.bar).baz`."""

    name: str
    value: Value
    is_custom: bool = False
    sub: str = ""
    span: Span = NOWHERE


@dataclass(slots=True)
class TypeUse:
    """The name of a type or scalar as written."""

    name: str
    span: Span = NOWHERE


@dataclass(slots=True)
class FieldNode:
    """A field. key is the key type of a map, type then its value type; body holds the members of a group."""

    type: TypeUse
    name: str
    number: int
    label: str = ""
    key: str = ""
    default: Value | None = None
    json_name: str | None = None
    options: list[OptionNode] = field(default_factory=list)
    body: MessageNode | None = None
    span: Span = NOWHERE
    brackets: Span = NOWHERE
    special: list[OptionNode] = field(default_factory=list)
    """`default` and `json_name`, which are written among the options."""


@dataclass(slots=True)
class OneofNode:
    """A oneof; groups are fields with a body."""

    name: str
    options: list[OptionNode] = field(default_factory=list)
    fields: list[FieldNode] = field(default_factory=list)


Range = str | tuple[int, int]
"""Item of a `reserved` or `extensions` statement: a name, or the first and last number."""


@dataclass(slots=True)
class RangesNode:
    """One statement `reserved …` or `extensions …`."""

    values: list[Range]
    options: list[OptionNode] = field(default_factory=list)
    brackets: Span = NOWHERE


@dataclass(slots=True)
class EnumValueNode:
    """One value of an enum."""

    name: str
    number: int
    options: list[OptionNode] = field(default_factory=list)
    span: Span = NOWHERE
    brackets: Span = NOWHERE


@dataclass(slots=True)
class EnumNode:
    """An enum."""

    name: str
    visibility: str = ""
    options: list[OptionNode] = field(default_factory=list)
    reserved: list[RangesNode] = field(default_factory=list)
    values: list[EnumValueNode] = field(default_factory=list)


@dataclass(slots=True)
class ExtendNode:
    """An `extend` block."""

    extendee: TypeUse
    fields: list[FieldNode] = field(default_factory=list)
    span: Span = NOWHERE


@dataclass(slots=True)
class MessageNode:
    """A message, or the body of a group."""

    name: str
    visibility: str = ""
    options: list[OptionNode] = field(default_factory=list)
    reserved: list[RangesNode] = field(default_factory=list)
    fields: list[FieldNode] = field(default_factory=list)
    oneofs: list[OneofNode] = field(default_factory=list)
    extensions: list[RangesNode] = field(default_factory=list)
    extends: list[ExtendNode] = field(default_factory=list)
    types: list[MessageNode | EnumNode] = field(default_factory=list)
    span: Span = NOWHERE

    @property
    def is_map_entry(self) -> bool:
        """Whether the message is declared as the entry of a map field."""
        return any(option.name == "map_entry" and option.value == Word("true") for option in self.options)


@dataclass(slots=True)
class MethodNode:
    """An rpc."""

    name: str
    request: TypeUse
    response: TypeUse
    client_streaming: bool = False
    server_streaming: bool = False
    options: list[OptionNode] = field(default_factory=list)
    span: Span = NOWHERE


@dataclass(slots=True)
class ServiceNode:
    """A service."""

    name: str
    options: list[OptionNode] = field(default_factory=list)
    methods: list[MethodNode] = field(default_factory=list)


@dataclass(slots=True)
class ImportNode:
    """An import; kind is '', `public`, `weak` or `option`."""

    path: str
    kind: str = ""
    span: Span = NOWHERE


@dataclass(slots=True)
class FileNode:
    """A file. syntax is '' where the text has no such statement; edition is '' except for editions."""

    syntax: str = ""
    edition: str = ""
    package: str = ""
    imports: list[ImportNode] = field(default_factory=list)
    options: list[OptionNode] = field(default_factory=list)
    types: list[MessageNode | EnumNode] = field(default_factory=list)
    extends: list[ExtendNode] = field(default_factory=list)
    services: list[ServiceNode] = field(default_factory=list)


def parse_source(text: str) -> FileNode:
    """Return the tree of a text. Raises `SourceError`."""
    return _Parser(text).read_file()


class SourceToken(NamedTuple):
    """One word, number, string or mark, and its position. The last token is the `end`."""

    kind: str
    text: str
    start: int
    end: int


def list_tokens(text: str) -> list[SourceToken]:
    """Return the tokens of a text, comments left out. Raises `SourceError`."""
    tokens: list[SourceToken] = []
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None or match.lastgroup == "open":
            raise SourceError(f"no token at {at}")
        if match.lastgroup != "skip":
            tokens.append(SourceToken(match.lastgroup or "", match[0], at, match.end()))
            if len(tokens) > MAX_TOKENS:
                raise SourceError(f"more than {MAX_TOKENS} words and marks")
        at = match.end()
    tokens.append(SourceToken("end", "", at, at))
    return tokens


class _Parser:
    """Reads statements from the list of tokens."""

    def __init__(self, text: str) -> None:
        self._tokens = list_tokens(text)
        self._at = 0

    # --- tokens -----------------------------------------------------------------------------------------------------

    @property
    def _next(self) -> SourceToken:
        return self._tokens[self._at]

    def _has(self, *texts: str) -> bool:
        return self._next.kind != "string" and self._next.text in texts

    def _take(self, text: str) -> bool:
        if self._has(text):
            self._at += 1
            return True
        return False

    def _require(self, text: str) -> None:
        if not self._take(text):
            raise SourceError(f"{text!r} expected at {self._next.start}")

    def _span_from(self, start: int) -> Span:
        return Span(self._tokens[start].start, self._tokens[self._at - 1].end)

    def _read_token(self, kind: str) -> str:
        token = self._next
        if token.kind != kind:
            raise SourceError(f"a {kind} expected at {token.start}")
        self._at += 1
        return token.text

    def _read_string(self) -> Quoted:
        parts = [_unescape(self._read_token("string")[1:-1])]
        while self._next.kind == "string":
            parts.append(_unescape(self._read_token("string")[1:-1]))
        return Quoted("".join(parts))

    def _read_name(self) -> str:
        """Read a name with dots."""
        name = "." if self._take(".") else ""
        name += self._read_token("word")
        while self._has(".") and self._tokens[self._at + 1].kind == "word":
            self._at += 1
            name += f".{self._read_token('word')}"
        return name

    def _read_type(self) -> TypeUse:
        start = self._at
        name = self._read_name()
        return TypeUse(name, self._span_from(start))

    def _read_integer(self) -> int:
        sign = -1 if self._take("-") else 1
        text = self._read_token("number").lower()
        try:
            if text.startswith("0x"):
                return sign * int(text, 16)
            return sign * int(text, 8 if len(text) > 1 and text.startswith("0") else 10)
        except ValueError:
            raise SourceError(f"{text!r} is not an integer") from None

    # --- file -------------------------------------------------------------------------------------------------------

    def read_file(self) -> FileNode:
        file = FileNode()
        while self._next.kind != "end":
            self._read_file_statement(file)
        return file

    def _read_file_statement(self, file: FileNode) -> None:
        start = self._at
        if self._take(";"):
            return
        if self._has("syntax", "edition"):
            word = self._read_token("word")
            self._require("=")
            setattr(file, word, self._read_string().text)
            self._require(";")
        elif self._take("package"):
            file.package = self._read_name()
            if len(file.package) > MAX_PACKAGE:
                raise SourceError("the name of the package is too long")
            self._require(";")
        elif self._take("import"):
            kind = self._read_token("word") if self._next.kind == "word" else ""
            path = self._read_string().text
            self._require(";")
            file.imports.append(ImportNode(path, kind, self._span_from(start)))
        elif self._has("option"):
            file.options.append(self._read_option_statement())
        elif self._take("service"):
            file.services.append(self._read_service())
        elif self._take("extend"):
            file.extends.append(self._read_extend(start, 0))
        else:
            file.types.append(self._read_type_declaration(0))

    def _read_type_declaration(self, depth: int) -> MessageNode | EnumNode:
        start = self._at
        visibility = self._read_token("word") if self._has("export", "local") else ""
        if self._take("enum"):
            return self._read_enum(visibility)
        self._require("message")
        message = MessageNode(self._read_token("word"), visibility)
        self._read_members(message, depth)
        message.span = self._span_from(start)
        return message

    # --- messages ---------------------------------------------------------------------------------------------------

    def _read_members(self, message: MessageNode, depth: int) -> None:
        if depth > MAX_DEPTH:
            raise SourceError(f"messages nest deeper than {MAX_DEPTH}")
        self._require("{")
        while not self._take("}"):
            self._read_member(message, depth)

    def _read_member(self, message: MessageNode, depth: int) -> None:
        start = self._at
        if self._take(";"):
            return
        if self._has("option"):
            message.options.append(self._read_option_statement())
        elif self._has("message", "enum") or (
            self._has("export", "local") and self._tokens[self._at + 1].text in {"message", "enum"}
        ):
            message.types.append(self._read_type_declaration(depth + 1))
        elif self._take("reserved"):
            message.reserved.append(self._read_ranges(MAX_NUMBER))
        elif self._take("extensions"):
            message.extensions.append(self._read_ranges(MAX_NUMBER))
        elif self._take("extend"):
            message.extends.append(self._read_extend(start, depth))
        elif self._take("oneof"):
            message.oneofs.append(self._read_oneof(depth))
        else:
            message.fields.append(self._read_field(depth))

    def _read_oneof(self, depth: int) -> OneofNode:
        oneof = OneofNode(self._read_token("word"))
        self._require("{")
        while not self._take("}"):
            if self._has("option"):
                oneof.options.append(self._read_option_statement())
            elif not self._take(";"):
                oneof.fields.append(self._read_field(depth))
        return oneof

    def _read_extend(self, start: int, depth: int) -> ExtendNode:
        extend = ExtendNode(self._read_type())
        self._require("{")
        while not self._take("}"):
            if not self._take(";"):
                extend.fields.append(self._read_field(depth))
        extend.span = self._span_from(start)
        return extend

    def _read_field(self, depth: int) -> FieldNode:
        start = self._at
        label = self._read_token("word") if self._has("optional", "required", "repeated") else ""
        key = ""
        if self._has("map") and self._tokens[self._at + 1].text == "<":
            self._at += 2
            key = self._read_name()
            self._require(",")
            kind = self._read_type()
            self._require(">")
        else:
            kind = self._read_type()
        name = self._read_token("word")
        self._require("=")
        item = FieldNode(kind, name, self._read_integer(), label, key)
        before = self._at
        item.options = self._read_brackets()
        item.brackets = self._span_from(before) if self._at > before else NOWHERE
        _separate_special_options(item)
        if kind.name == "group" and self._has("{"):
            item.body = MessageNode(name)
            self._read_members(item.body, depth + 1)
        else:
            self._require(";")
        item.span = self._span_from(start)
        return item

    def _read_ranges(self, highest: int) -> RangesNode:
        values: list[Range] = []
        while True:
            if self._next.kind == "string":
                values.append(self._read_string().text)
            elif self._next.kind == "word":
                values.append(self._read_token("word"))
            else:
                first = last = self._read_integer()
                if self._take("to"):
                    last = highest if self._take("max") else self._read_integer()
                values.append((first, last))
            if not self._take(","):
                break
        before = self._at
        options = self._read_brackets()
        brackets = self._span_from(before) if self._at > before else NOWHERE
        self._require(";")
        return RangesNode(values, options, brackets)

    # --- enums and services -----------------------------------------------------------------------------------------

    def _read_enum(self, visibility: str) -> EnumNode:
        enum = EnumNode(self._read_token("word"), visibility)
        self._require("{")
        while not self._take("}"):
            if self._take(";"):
                continue
            if self._has("option"):
                enum.options.append(self._read_option_statement())
            elif self._take("reserved"):
                enum.reserved.append(self._read_ranges(MAX_ENUM_NUMBER))
            else:
                start = self._at
                name = self._read_token("word")
                self._require("=")
                value = EnumValueNode(name, self._read_integer())
                before = self._at
                value.options = self._read_brackets()
                value.brackets = self._span_from(before) if self._at > before else NOWHERE
                self._require(";")
                value.span = self._span_from(start)
                enum.values.append(value)
        return enum

    def _read_service(self) -> ServiceNode:
        service = ServiceNode(self._read_token("word"))
        self._require("{")
        while not self._take("}"):
            if self._take(";"):
                continue
            if self._has("option"):
                service.options.append(self._read_option_statement())
            else:
                service.methods.append(self._read_method())
        return service

    def _read_method(self) -> MethodNode:
        start = self._at
        self._require("rpc")
        name = self._read_token("word")
        client_streaming, request = self._read_method_type()
        self._require("returns")
        server_streaming, response = self._read_method_type()
        method = MethodNode(name, request, response, client_streaming, server_streaming)
        if self._take("{"):
            while not self._take("}"):
                if not self._take(";"):
                    method.options.append(self._read_option_statement())
        else:
            self._require(";")
        method.span = self._span_from(start)
        return method

    def _read_method_type(self) -> tuple[bool, TypeUse]:
        self._require("(")
        streaming = self._has("stream") and self._tokens[self._at + 1].text != ")" and self._take("stream")
        kind = self._read_type()
        self._require(")")
        return streaming, kind

    # --- options ----------------------------------------------------------------------------------------------------

    def _read_option_statement(self) -> OptionNode:
        start = self._at
        self._require("option")
        option = self._read_option()
        self._require(";")
        option.span = self._span_from(start)
        return option

    def _read_brackets(self) -> list[OptionNode]:
        options: list[OptionNode] = []
        if self._take("["):
            options.append(self._read_option())
            while not self._take("]"):
                self._require(",")
                options.append(self._read_option())
        return options

    def _read_option(self) -> OptionNode:
        start = self._at
        is_custom = self._take("(")
        name = self._read_name()
        sub = ""
        if is_custom:
            self._require(")")
            if self._take("."):
                sub = self._read_option_path()
        elif self._take("."):
            name += f".{self._read_option_path()}"  # features.(pb.cpp).string_type
        self._require("=")
        value = self._read_value(0)
        return OptionNode(name, value, is_custom, sub, self._span_from(start))

    def _read_option_path(self) -> str:
        """Read the rest of an option name: names, and names in parentheses, separated by dots."""
        parts = [self._read_option_part()]
        while self._take("."):
            parts.append(self._read_option_part())
        return ".".join(parts)

    def _read_option_part(self) -> str:
        if not self._take("("):
            return self._read_token("word")
        name = self._read_name()
        self._require(")")
        return f"({name})"

    def _read_value(self, depth: int) -> Value:
        if depth > MAX_DEPTH:
            raise SourceError(f"values nest deeper than {MAX_DEPTH}")
        if self._next.kind == "string":
            return self._read_string()
        if self._has("{", "<"):
            return self._read_message_value(depth)
        if self._take("["):
            values: list[Value] = []
            while not self._take("]"):
                values.append(self._read_value(depth + 1))
                if not self._take(","):
                    self._require("]")
                    break
            return values
        sign = "-" if self._take("-") else ""
        self._take("+")
        kind = "number" if self._next.kind == "number" else "word"
        return Word(sign + self._read_token(kind))

    def _read_message_value(self, depth: int) -> dict[str, Value]:
        closing = "}" if self._take("{") else ">"
        if closing == ">":
            self._require("<")
        fields: dict[str, Value] = {}
        while not self._take(closing):
            if self._take("["):
                name = self._read_name()
                while self._take("/"):  # the URL of an Any
                    name += f"/{self._read_name()}"
                self._require("]")
                name = f"[{name}]"
            else:
                name = self._read_token("word")
            if not self._has("{", "<"):
                self._require(":")
            _add_value(fields, name, self._read_value(depth + 1))
            if not self._take(","):
                self._take(";")
        return fields


def _add_value(values: dict[str, Value], name: str, value: Value) -> None:
    """Set a field of a message value. A field that occurs several times becomes a list."""
    if name not in values:
        values[name] = value
        return
    first = values[name]
    if not isinstance(first, list):
        first = values[name] = [first]
    first.extend(value if isinstance(value, list) else [value])


def _separate_special_options(item: FieldNode) -> None:
    """Move `default` and `json_name`, which are not real options, out of a field's options."""
    plain_options: list[OptionNode] = []
    for option in item.options:
        if option.is_custom or option.name not in {"default", "json_name"}:
            plain_options.append(option)
            continue
        item.special.append(option)
        if option.name == "default":
            item.default = option.value
        elif isinstance(option.value, Quoted):
            item.json_name = option.value.text
    item.options = plain_options


def _unescape(text: str) -> str:
    return _ESCAPE.sub(_unescape_match, text) if "\\" in text else text


def _unescape_match(match: re.Match[str]) -> str:
    hexadecimal, octal, short, long, char = match.groups()
    if char is not None:
        return _SIMPLE_ESCAPES.get(char, char)
    if short or long:
        code = int(short or long, 16)
        return chr(code) if code < 0x110000 else "\ufffd"
    byte = (int(hexadecimal, 16) if hexadecimal else int(octal, 8)) & 0xFF
    return chr(byte) if byte < 0x80 else chr(0xDC00 + byte)
