"""Parses text to tokens and to a document: recursive descent over the grammar of the Apache compiler (0.17 to 0.22).

The parser also accepts what older compilers accepted: `senum` and `slist`, and separators after any definition. Nesting
is limited, so no document can exhaust the stack.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from enum import Enum
from textwrap import dedent
from typing import Final, NamedTuple, TypeVar

from stele.errors import MalformedSchema
from stele.formats.thrift.schema import (
    BASE_TYPES,
    Annotation,
    Annotations,
    BaseType,
    Const,
    ContainerType,
    CppInclude,
    Definition,
    EnumValue,
    Header,
    Include,
    ListValue,
    LiteralValue,
    MapValue,
    Requiredness,
    Senum,
    ThriftDocument,
    ThriftEnum,
    ThriftField,
    ThriftFunction,
    ThriftNamespace,
    ThriftService,
    ThriftStruct,
    ThriftType,
    Typedef,
    TypeName,
    Value,
    ValueName,
)

MAX_DEPTH: Final = 64
"""Most levels of nested containers, values, and xsd_attrs. The protocols have the same limit of 64."""

_NO_FIELD_NAMES: Final = frozenset(
    {"cpp_type", "xsd_all", "xsd_optional", "xsd_nillable", "xsd_attrs", "slist", "senum", "true", "false"}
)
"""Keywords that cannot be field names. All other keywords can."""

_KEYWORDS: Final = (
    BASE_TYPES
    | _NO_FIELD_NAMES
    | {"namespace", "cpp_include", "include", "void", "list", "set", "map", "oneway", "async", "typedef", "struct"}
    | {"union", "exception", "extends", "throws", "service", "enum", "const", "required", "optional"}
)

_OLD_NAMESPACES: Final = {
    **{f"{language}_namespace": language for language in ("cpp", "csharp", "delphi", "php", "ruby", "xsd")},
    "java_package": "java",
    "perl_package": "perl",
    "py_module": "py",
    "smalltalk_category": "st",
    "smalltalk_prefix": "st",
}

T = TypeVar("T")


def parse_document(text: str) -> ThriftDocument:
    """Return the document of a text. Raises `MalformedSchema` with line and column."""
    return _Parser(text).parse_document()


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.source = tokenize(text)
        self.tokens: list[ThriftToken] = []
        self.index = 0
        self.depth = 0

    # --- tokens -----------------------------------------------------------------------------------------------------

    @property
    def token(self) -> ThriftToken:
        if self.index == len(self.tokens):
            self.tokens.append(next(self.source))
        return self.tokens[self.index]

    def unexpected_token(self, expected: str) -> MalformedSchema:
        """Return the error for an unexpected token."""
        token = self.token
        description = f"{token.text[:40]!r}" if token.kind is not TokenKind.END else "end of the document"
        return make_fault(self.text, token.at, f"unexpected {description}", expected)

    def is_at_symbol(self, symbol: str) -> bool:
        return self.token.kind is TokenKind.SYMBOL and self.token.text == symbol

    def take_symbol(self, symbol: str) -> bool:
        """Consume the symbol if it is next, and return whether it was."""
        is_next = self.is_at_symbol(symbol)
        self.index += is_next
        return is_next

    def require_symbol(self, symbol: str) -> None:
        if not self.take_symbol(symbol):
            raise self.unexpected_token(f"'{symbol}'")

    def take_word(self, *words: str) -> bool:
        """Consume the next word if it is one of these, and return whether it was."""
        is_next = self.token.kind is TokenKind.NAME and self.token.text in words
        self.index += is_next
        return is_next

    def require_kind(self, kind: TokenKind) -> ThriftToken:
        token = self.token
        if token.kind is not kind:
            raise self.unexpected_token(kind.value)
        self.index += 1
        return token

    def parse_name(self, what: str) -> ThriftToken:
        """Consume a plain name, neither dotted nor a keyword, and return its token."""
        token = self.token
        if token.kind is not TokenKind.NAME or token.text in _KEYWORDS:
            raise self.unexpected_token(what)
        if "." in token.text:
            raise make_fault(self.text, token.at, f"the name {token.text!r} has a dot", what)
        self.index += 1
        return token

    def parse_dotted_name(self, what: str) -> ThriftToken:
        """Consume a name with or without dots, and return its token."""
        if self.token.kind is not TokenKind.NAME or self.token.text in _KEYWORDS:
            raise self.unexpected_token(what)
        return self.require_kind(TokenKind.NAME)

    def skip_separator(self) -> None:
        if not self.take_symbol(","):
            self.take_symbol(";")

    def parse_many(self, item: Callable[[], T], end: str) -> tuple[T, ...]:
        """Parse items up to a closing symbol and consume it. Items count as one level deeper."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise make_fault(self.text, self.token.at, f"nested deeper than {MAX_DEPTH} levels")
        items: list[T] = []
        while not self.take_symbol(end):
            items.append(item())
        self.depth -= 1
        return tuple(items)

    # --- the document -----------------------------------------------------------------------------------------------

    def parse_document(self) -> ThriftDocument:
        headers: list[Header] = []
        while (header := self.parse_header()) is not None:
            headers.append(header)
        definitions: list[Definition] = []
        while self.token.kind is not TokenKind.END:
            definitions.append(self.parse_definition())
            self.skip_separator()
        return ThriftDocument(tuple(headers), tuple(definitions))

    def parse_header(self) -> Header | None:
        token = self.token
        if self.take_word("include"):
            return Include(self.require_kind(TokenKind.TEXT).text, token.doc, token.at)
        if self.take_word("cpp_include"):
            return CppInclude(self.require_kind(TokenKind.TEXT).text, token.doc)
        if self.take_word("namespace"):
            scope = "*" if self.take_symbol("*") else self.parse_dotted_name("a language or '*'").text
            return ThriftNamespace(
                scope, self.parse_dotted_name("a namespace").text, self.parse_annotations(), token.doc
            )
        if token.kind is TokenKind.NAME and token.text in _OLD_NAMESPACES:
            better = f"namespace {_OLD_NAMESPACES[token.text]} …"
            raise make_fault(self.text, token.at, f"{token.text!r} is no longer part of the language", better)
        return None

    def parse_definition(self) -> Definition:
        token = self.token
        self.index += 1
        if token.kind is TokenKind.NAME:
            match token.text:
                case "typedef":
                    aliased = self.parse_type()
                    return Typedef(
                        self.parse_name("a name for the type").text,
                        aliased,
                        self.parse_annotations(),
                        token.doc,
                        token.at,
                    )
                case "const":
                    return self.parse_constant(token)
                case "enum":
                    return self.parse_enum(token)
                case "senum":
                    return self.parse_senum(token)
                case "struct" | "union" | "exception":
                    return self.parse_struct(token)
                case "service":
                    return self.parse_service(token)
                case "include" | "cpp_include" | "namespace":
                    raise make_fault(self.text, token.at, f"{token.text!r} comes after a definition", "it at the top")
        self.index -= 1
        raise self.unexpected_token("const, typedef, enum, struct, union, exception or service")

    def parse_constant(self, head: ThriftToken) -> Const:
        kind = self.parse_type()
        name = self.parse_name("a name for the constant").text
        self.require_symbol("=")
        return Const(name, kind, self.parse_value(), head.doc, head.at)

    def parse_enum(self, head: ThriftToken) -> ThriftEnum:
        name = self.parse_name("a name for the enum").text
        self.require_symbol("{")
        number = -1

        def one() -> EnumValue:
            nonlocal number
            token = self.parse_name("a name for the value, or '}'")
            implicit = not self.take_symbol("=")
            number = number + 1 if implicit else parse_integer(self.text, self.require_kind(TokenKind.INTEGER))
            if number not in I32:
                raise make_fault(self.text, token.at, f"the value {token.text} is {number}", "a number of 32 bits")
            value = EnumValue(token.text, number, implicit, self.parse_annotations(), token.doc, token.at)
            self.skip_separator()
            return value

        return ThriftEnum(name, self.parse_many(one, "}"), self.parse_annotations(), head.doc, head.at)

    def parse_senum(self, head: ThriftToken) -> Senum:
        name = self.parse_name("a name for the enum").text
        self.require_symbol("{")

        def one() -> str:
            text = self.require_kind(TokenKind.TEXT).text
            self.skip_separator()
            return text

        return Senum(name, self.parse_many(one, "}"), self.parse_annotations(), head.doc, head.at)

    def parse_struct(self, head: ThriftToken) -> ThriftStruct:
        name = self.parse_name(f"a name for the {head.text}").text
        xsd_all = head.text != "exception" and self.take_word("xsd_all")
        self.require_symbol("{")
        return ThriftStruct(
            head.text, name, self.parse_fields("}"), xsd_all, self.parse_annotations(), head.doc, head.at
        )

    def parse_service(self, head: ThriftToken) -> ThriftService:
        name = self.parse_name("a name for the service").text
        extends = self.parse_dotted_name("the name of a service").text if self.take_word("extends") else ""
        self.require_symbol("{")
        return ThriftService(
            name, self.parse_many(self.parse_function, "}"), extends, self.parse_annotations(), head.doc, head.at
        )

    def parse_function(self) -> ThriftFunction:
        head = self.token
        oneway = self.take_word("oneway", "async")
        returns = None if self.take_word("void") else self.parse_type()
        name = self.parse_name("a name for the function").text
        self.require_symbol("(")
        arguments = self.parse_fields(")")
        throws: tuple[ThriftField, ...] = ()
        if self.take_word("throws"):
            self.require_symbol("(")
            throws = self.parse_fields(")")
        function = ThriftFunction(name, returns, arguments, throws, oneway, self.parse_annotations(), head.doc, head.at)
        self.skip_separator()
        return function

    # --- fields -----------------------------------------------------------------------------------------------------

    def parse_fields(self, end: str) -> tuple[ThriftField, ...]:
        """Return the fields of a struct or a list of arguments, up to the closing symbol."""
        following = -1

        def one() -> ThriftField:
            nonlocal following
            head = self.token
            implicit = head.kind is not TokenKind.INTEGER
            number = following
            if not implicit:
                self.index += 1
                number = parse_integer(self.text, head)
                self.require_symbol(":")
            if number <= 0:
                following = max(number - 1, I64.start)
            return self.parse_field(head, number, implicit=implicit)

        return self.parse_many(one, end)

    def parse_field(self, head: ThriftToken, number: int, *, implicit: bool) -> ThriftField:
        word = next((word for word in ("required", "optional") if self.take_word(word)), "")
        kind = self.parse_type()
        boxed = self.take_symbol("&")
        token = self.token
        if token.kind is not TokenKind.NAME or token.text in _NO_FIELD_NAMES:
            raise self.unexpected_token("a name for the field")
        if "." in token.text:
            raise make_fault(self.text, token.at, f"the name {token.text!r} has a dot", "a name for the field")
        self.index += 1
        default = self.parse_value() if self.take_symbol("=") else None
        optional, nillable = self.take_word("xsd_optional"), self.take_word("xsd_nillable")
        attrs: tuple[ThriftField, ...] | None = None
        if self.take_word("xsd_attrs"):
            self.require_symbol("{")
            attrs = self.parse_fields("}")
        field = ThriftField(
            number,
            token.text,
            kind,
            Requiredness(word),
            default,
            implicit=implicit,
            boxed=boxed,
            xsd_optional=optional,
            xsd_nillable=nillable,
            xsd_attrs=attrs,
            annotations=self.parse_annotations(),
            doc=head.doc,
            at=head.at,
        )
        self.skip_separator()
        return field

    # --- types, annotations, values ---------------------------------------------------------------------------------

    def parse_type(self) -> ThriftType:
        token = self.token
        if token.kind is TokenKind.NAME and token.text in BASE_TYPES:
            self.index += 1
            return BaseType(token.text, self.parse_annotations())
        if token.kind is TokenKind.NAME and token.text in {"list", "set", "map"}:
            return self.parse_container()
        return TypeName(self.parse_dotted_name("a type").text, token.at)

    def parse_container(self) -> ContainerType:
        kind = self.require_kind(TokenKind.NAME).text
        cpp_type = self.parse_cpp_type()
        self.require_symbol("<")
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise make_fault(self.text, self.token.at, f"types are nested deeper than {MAX_DEPTH} levels")
        items = [self.parse_type()]
        if kind == "map":
            self.require_symbol(",")
            items.append(self.parse_type())
        self.depth -= 1
        self.require_symbol(">")
        if kind == "list":
            cpp_type = self.parse_cpp_type() or cpp_type
        return ContainerType(kind, tuple(items), cpp_type, self.parse_annotations())

    def parse_cpp_type(self) -> str | None:
        return self.require_kind(TokenKind.TEXT).text if self.take_word("cpp_type") else None

    def parse_annotations(self) -> Annotations:
        """Return annotations such as `(key = "value", other)`. Empty when there are none."""
        if not self.take_symbol("("):
            return ()

        def one() -> Annotation:
            key = self.require_kind(TokenKind.NAME).text
            annotation = Annotation(key, self.require_kind(TokenKind.TEXT).text if self.take_symbol("=") else None)
            self.skip_separator()
            return annotation

        return self.parse_many(one, ")")

    def parse_value(self) -> Value:
        token = self.token
        self.index += 1
        match token.kind:
            case TokenKind.INTEGER:
                return LiteralValue(parse_integer(self.text, token))
            case TokenKind.DOUBLE:
                return LiteralValue(parse_double(self.text, token))
            case TokenKind.TEXT:
                return LiteralValue(token.text)
            case TokenKind.SYMBOL if token.text == "[":
                return ListValue(self.parse_many(self.parse_item, "]"), token.at)
            case TokenKind.SYMBOL if token.text == "{":
                return MapValue(self.parse_many(self.parse_pair, "}"), token.at)
            case TokenKind.NAME if token.text in {"true", "false"}:
                return LiteralValue(token.text == "true")
            case TokenKind.NAME if token.text not in _KEYWORDS:
                return ValueName(token.text, token.at)
        self.index -= 1
        raise self.unexpected_token("a value")

    def parse_item(self) -> Value:
        value = self.parse_value()
        self.skip_separator()
        return value

    def parse_pair(self) -> tuple[Value, Value]:
        key = self.parse_value()
        self.require_symbol(":")
        value = self.parse_value()
        self.skip_separator()
        return key, value


# --- tokens ----------------------------------------------------------------------------------------------------------
# Splits text into tokens, in one pass with one regular expression and without backtracking.


class TokenKind(Enum):
    """Kind of a token."""

    NAME = "a name"
    INTEGER = "an integer"
    DOUBLE = "a number"
    TEXT = "a quoted text"
    SYMBOL = "a symbol"
    END = "the end of the document"


class ThriftToken(NamedTuple):
    """One token: text is the name, the symbol, the number as written or the content of a quoted text."""

    kind: TokenKind
    text: str
    at: int
    doc: str = ""


_TOKEN: Final = re.compile(
    r"""(?P<space>[ \t\r\n]++|//[^\n]*+|\#[^\n]*+)
      | (?P<comment>/\*)
      | (?P<name>[A-Za-z_][A-Za-z_0-9]*+(?:\.[A-Za-z_0-9]++)*+)
      | (?P<hex>[+-]?0x[0-9A-Fa-f]++)
      | (?P<double>[+-]?(?:[0-9]*+\.[0-9]++(?:[eE][+-]?[0-9]++)?|[0-9]++[eE][+-]?[0-9]++))
      | (?P<integer>[+-]?[0-9]++)
      | (?P<text>"[^"\\\n]*+(?:\\.[^"\\\n]*+)*+"|'[^'\\\n]*+(?:\\.[^'\\\n]*+)*+')
      | (?P<symbol>[:;,{}()=<>\[\]*&])
    """,
    re.VERBOSE,
)
_ESCAPE: Final = re.compile(r"\\(.)", re.DOTALL)
_ESCAPES: Final = {"r": "\r", "n": "\n", "t": "\t", '"': '"', "'": "'", "\\": "\\"}
_KINDS: Final = {
    "name": TokenKind.NAME,
    "hex": TokenKind.INTEGER,
    "integer": TokenKind.INTEGER,
    "double": TokenKind.DOUBLE,
    "symbol": TokenKind.SYMBOL,
}


def position_of(text: str, at: int) -> tuple[int, int]:
    """Return (line, column) of an offset, both from 1."""
    return text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)


def make_fault(text: str, at: int, why: str, expected: str | None = None) -> MalformedSchema:
    """Return an error at an offset."""
    line, column = position_of(text, at)
    return MalformedSchema(why, line=line, column=column, expected=expected)


def tokenize(text: str) -> Iterator[ThriftToken]:
    """Yield the tokens one by one, the last one of kind END. After an error the rest of the text is not read.

    A documentation comment belongs to the token right after it.

    Raises `MalformedSchema` for an invalid token.
    """
    at, doc, match = 0, "", _TOKEN.match
    while at < len(text):
        hit = match(text, at)
        if hit is None:
            raise _unexpected_character(text, at)
        name, end = hit.lastgroup or "", hit.end()
        if name == "comment":
            end = _find_comment_end(text, at)
            if text.startswith("/**", at):
                doc = clean_comment(text[at:end]) or doc
        elif name == "text":
            yield ThriftToken(TokenKind.TEXT, _unescape_text(text, at, hit.group()[1:-1]), at, doc)
            doc = ""
        elif name != "space":
            yield ThriftToken(_KINDS[name], hit.group(), at, doc)
            doc = ""
        at = end
    yield ThriftToken(TokenKind.END, "", len(text), doc)


def _find_comment_end(text: str, at: int) -> int:
    end = text.find("*/", at + 2)
    if end < 0:
        raise make_fault(text, at, "the comment never ends", "*/")
    return end + 2


def _unescape_text(text: str, at: int, inside: str) -> str:
    """Return the content of a quoted text."""
    if "\0" in inside:
        raise make_fault(text, at, "a quoted text cannot hold the character 0")
    if "\\" not in inside:
        return inside

    def plain(escape: re.Match[str]) -> str:
        character = _ESCAPES.get(escape.group(1))
        if character is None:
            raise make_fault(
                text, at + 1 + escape.start(), f"unknown escape {escape.group()!r}", r"\r \n \t \" \' or \\"
            )
        return character

    return _ESCAPE.sub(plain, inside)


def _unexpected_character(text: str, at: int) -> MalformedSchema:
    character = text[at]
    if character in {'"', "'"}:
        return make_fault(text, at, "the quoted text does not end in its line", f"a closing {character}")
    if character == "\ufeff":
        return make_fault(text, at, "there is a byte order mark", "plain UTF-8")
    return make_fault(text, at, f"unexpected character {character!r}")


# --- numbers ----------------------------------------------------------------------------------------------------------


I8: Final = range(-(2**7), 2**7)
I16: Final = range(-(2**15), 2**15)
I32: Final = range(-(2**31), 2**31)
I64: Final = range(-(2**63), 2**63)

_LONGEST_DOUBLE: Final = 400
"""Most characters of a double that are parsed."""


def parse_integer(text: str, token: ThriftToken) -> int:
    """Return the integer of a token of the document text, decimal or hexadecimal.

    Raises `MalformedSchema` beyond 64 bits.
    """
    body = token.text.lstrip("+-")
    base = 16 if body.startswith("0x") else 10
    digits = body.removeprefix("0x").lstrip("0") or "0"
    if len(digits) <= len(str(2**63)):
        value = int(digits, base) * (-1 if token.text[0] == "-" else 1)
        if value in I64:
            return value
    raise make_fault(text, token.at, "the integer is too big", "a number of 64 bits")


def parse_double(text: str, token: ThriftToken) -> float:
    """Return the double of a token of the document text. Raises `MalformedSchema` beyond what a double holds."""
    value = float(token.text) if len(token.text) <= _LONGEST_DOUBLE else math.inf
    if math.isinf(value):
        raise make_fault(text, token.at, "the number is too big or too long", "a double")
    return value


# --- documentation comments -------------------------------------------------------------------------------------------


def clean_comment(comment: str) -> str:
    """Return the text of a `/** … */` comment without stars, common indentation and surrounding blank lines."""
    inside = comment.replace("\r\n", "\n").replace("\r", "\n")[3:-2].strip("*")
    first, *rest = inside.split("\n")
    if rest and all(line.lstrip(" \t").startswith("*") for line in rest if line.strip(" \t")):
        rest = [line.lstrip(" \t").removeprefix("*").removeprefix(" ") for line in rest]
    else:
        rest = dedent("\n".join(rest)).split("\n")
    lines = [first.strip(" \t"), *(line.rstrip(" \t") for line in rest)]
    while lines and not lines[0]:
        del lines[0]
    while lines and not lines[-1]:
        del lines[-1]
    return "\n".join(lines)


def format_comment(doc: str, indent: str) -> list[str]:
    """Return the lines of a documentation comment; none for an empty text."""
    if not doc:
        return []
    lines = doc.split("\n")
    if len(lines) == 1 and doc == doc.strip(" \t*"):
        return [f"{indent}/** {doc} */"]
    return [f"{indent}/**", *(f"{indent} * {line}".rstrip(" \t") for line in lines), f"{indent} */"]
