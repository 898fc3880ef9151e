"""From tokens to a document: recursive descent over the grammar of the Apache compiler (0.17 to 0.22).

Beyond that grammar the parser takes what older compilers took: `senum` and `slist`, and separators after any
definition. Nesting is counted, so no document can exhaust the stack.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

from stele.errors import MalformedSchema
from stele.formats.thrift.lexer import Kind, Token, fault, tokens
from stele.formats.thrift.numbers import I32, I64, double, integer
from stele.formats.thrift.syntax import (
    BASE_TYPES,
    Annotation,
    Annotations,
    Base,
    Const,
    Container,
    CppInclude,
    Definition,
    Document,
    EnumType,
    EnumValue,
    Field,
    Function,
    Header,
    Include,
    ListValue,
    Literal,
    MapValue,
    Name,
    Namespace,
    Ref,
    Requiredness,
    Senum,
    Service,
    Struct,
    Type,
    Typedef,
    Value,
)

MAX_DEPTH: Final = 64
"""Deepest nesting of containers, of values, and of xsd_attrs; the protocols stop at 64 levels as well."""

_NO_FIELD_NAMES: Final = frozenset(
    {"cpp_type", "xsd_all", "xsd_optional", "xsd_nillable", "xsd_attrs", "slist", "senum", "true", "false"}
)
"""Keywords that cannot name a field; all the others can."""

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


def parse_document(text: str) -> Document:
    """The document that a text is. Raises `MalformedSchema` with line and column."""
    return _Parser(text).document()


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.source = tokens(text)
        self.tokens: list[Token] = []
        self.index = 0
        self.depth = 0

    # --- tokens -----------------------------------------------------------------------------------------------------

    @property
    def now(self) -> Token:
        if self.index == len(self.tokens):
            self.tokens.append(next(self.source))
        return self.tokens[self.index]

    def wrong(self, expected: str) -> MalformedSchema:
        """The error that something else should stand here."""
        token = self.now
        shown = f"{token.text[:40]!r}" if token.kind is not Kind.END else "end of the document"
        return fault(self.text, token.at, f"unexpected {shown}", expected)

    def at_symbol(self, symbol: str) -> bool:
        return self.now.kind is Kind.SYMBOL and self.now.text == symbol

    def take_symbol(self, symbol: str) -> bool:
        """Whether the symbol is next; it is consumed."""
        found = self.at_symbol(symbol)
        self.index += found
        return found

    def need_symbol(self, symbol: str) -> None:
        if not self.take_symbol(symbol):
            raise self.wrong(f"'{symbol}'")

    def take_word(self, *words: str) -> bool:
        """Whether one of the words is next; it is consumed."""
        found = self.now.kind is Kind.NAME and self.now.text in words
        self.index += found
        return found

    def need(self, kind: Kind) -> Token:
        token = self.now
        if token.kind is not kind:
            raise self.wrong(kind.value)
        self.index += 1
        return token

    def name(self, what: str) -> Token:
        """A plain name: no dot, no keyword."""
        token = self.now
        if token.kind is not Kind.NAME or token.text in _KEYWORDS:
            raise self.wrong(what)
        if "." in token.text:
            raise fault(self.text, token.at, f"the name {token.text!r} has a dot", what)
        self.index += 1
        return token

    def dotted(self, what: str) -> Token:
        """A name, with dots or without."""
        if self.now.kind is not Kind.NAME or self.now.text in _KEYWORDS:
            raise self.wrong(what)
        return self.need(Kind.NAME)

    def separator(self) -> None:
        if not self.take_symbol(","):
            self.take_symbol(";")

    def many(self, item: Callable[[], T], end: str) -> tuple[T, ...]:
        """Items up to a closing symbol, which is consumed; they are nested one level deeper than what is around."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise fault(self.text, self.now.at, f"nested deeper than {MAX_DEPTH} levels")
        found: list[T] = []
        while not self.take_symbol(end):
            found.append(item())
        self.depth -= 1
        return tuple(found)

    # --- the document -----------------------------------------------------------------------------------------------

    def document(self) -> Document:
        headers: list[Header] = []
        while (header := self.header()) is not None:
            headers.append(header)
        definitions: list[Definition] = []
        while self.now.kind is not Kind.END:
            definitions.append(self.definition())
            self.separator()
        return Document(tuple(headers), tuple(definitions))

    def header(self) -> Header | None:
        token = self.now
        if self.take_word("include"):
            return Include(self.need(Kind.TEXT).text, token.doc, token.at)
        if self.take_word("cpp_include"):
            return CppInclude(self.need(Kind.TEXT).text, token.doc)
        if self.take_word("namespace"):
            scope = "*" if self.take_symbol("*") else self.dotted("a language or '*'").text
            return Namespace(scope, self.dotted("a namespace").text, self.annotations(), token.doc)
        if token.kind is Kind.NAME and token.text in _OLD_NAMESPACES:
            better = f"namespace {_OLD_NAMESPACES[token.text]} …"
            raise fault(self.text, token.at, f"{token.text!r} is no longer part of the language", better)
        return None

    def definition(self) -> Definition:
        token = self.now
        self.index += 1
        if token.kind is Kind.NAME:
            match token.text:
                case "typedef":
                    aliased = self.type()
                    return Typedef(
                        self.name("a name for the type").text, aliased, self.annotations(), token.doc, token.at
                    )
                case "const":
                    return self.constant(token)
                case "enum":
                    return self.enum(token)
                case "senum":
                    return self.senum(token)
                case "struct" | "union" | "exception":
                    return self.struct(token)
                case "service":
                    return self.service(token)
                case "include" | "cpp_include" | "namespace":
                    raise fault(self.text, token.at, f"{token.text!r} comes after a definition", "it at the top")
        self.index -= 1
        raise self.wrong("const, typedef, enum, struct, union, exception or service")

    def constant(self, head: Token) -> Const:
        kind = self.type()
        name = self.name("a name for the constant").text
        self.need_symbol("=")
        return Const(name, kind, self.value(), head.doc, head.at)

    def enum(self, head: Token) -> EnumType:
        name = self.name("a name for the enum").text
        self.need_symbol("{")
        number = -1

        def one() -> EnumValue:
            nonlocal number
            token = self.name("a name for the value, or '}'")
            implicit = not self.take_symbol("=")
            number = number + 1 if implicit else integer(self.text, self.need(Kind.INTEGER))
            if number not in I32:
                raise fault(self.text, token.at, f"the value {token.text} is {number}", "a number of 32 bits")
            value = EnumValue(token.text, number, implicit, self.annotations(), token.doc)
            self.separator()
            return value

        return EnumType(name, self.many(one, "}"), self.annotations(), head.doc, head.at)

    def senum(self, head: Token) -> Senum:
        name = self.name("a name for the enum").text
        self.need_symbol("{")

        def one() -> str:
            text = self.need(Kind.TEXT).text
            self.separator()
            return text

        return Senum(name, self.many(one, "}"), self.annotations(), head.doc, head.at)

    def struct(self, head: Token) -> Struct:
        name = self.name(f"a name for the {head.text}").text
        xsd_all = head.text != "exception" and self.take_word("xsd_all")
        self.need_symbol("{")
        return Struct(head.text, name, self.fields("}"), xsd_all, self.annotations(), head.doc, head.at)

    def service(self, head: Token) -> Service:
        name = self.name("a name for the service").text
        extends = self.dotted("the name of a service").text if self.take_word("extends") else ""
        self.need_symbol("{")
        return Service(name, self.many(self.function, "}"), extends, self.annotations(), head.doc, head.at)

    def function(self) -> Function:
        doc = self.now.doc
        oneway = self.take_word("oneway", "async")
        returns = None if self.take_word("void") else self.type()
        name = self.name("a name for the function").text
        self.need_symbol("(")
        arguments = self.fields(")")
        throws: tuple[Field, ...] = ()
        if self.take_word("throws"):
            self.need_symbol("(")
            throws = self.fields(")")
        function = Function(name, returns, arguments, throws, oneway, self.annotations(), doc)
        self.separator()
        return function

    # --- fields -----------------------------------------------------------------------------------------------------

    def fields(self, end: str) -> tuple[Field, ...]:
        """The fields of a struct or a list of arguments, up to the closing symbol."""
        following = -1

        def one() -> Field:
            nonlocal following
            head = self.now
            implicit = head.kind is not Kind.INTEGER
            number = following
            if not implicit:
                self.index += 1
                number = integer(self.text, head)
                self.need_symbol(":")
            if number <= 0:
                following = max(number - 1, I64.start)
            return self.field(head, number, implicit=implicit)

        return self.many(one, end)

    def field(self, head: Token, number: int, *, implicit: bool) -> Field:
        word = next((word for word in ("required", "optional") if self.take_word(word)), "")
        kind = self.type()
        boxed = self.take_symbol("&")
        token = self.now
        if token.kind is not Kind.NAME or token.text in _NO_FIELD_NAMES:
            raise self.wrong("a name for the field")
        if "." in token.text:
            raise fault(self.text, token.at, f"the name {token.text!r} has a dot", "a name for the field")
        self.index += 1
        default = self.value() if self.take_symbol("=") else None
        optional, nillable = self.take_word("xsd_optional"), self.take_word("xsd_nillable")
        attrs: tuple[Field, ...] | None = None
        if self.take_word("xsd_attrs"):
            self.need_symbol("{")
            attrs = self.fields("}")
        found = Field(
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
            annotations=self.annotations(),
            doc=head.doc,
            at=head.at,
        )
        self.separator()
        return found

    # --- types, annotations, values ---------------------------------------------------------------------------------

    def type(self) -> Type:
        token = self.now
        if token.kind is Kind.NAME and token.text in BASE_TYPES:
            self.index += 1
            return Base(token.text, self.annotations())
        if token.kind is Kind.NAME and token.text in {"list", "set", "map"}:
            return self.container()
        return Ref(self.dotted("a type").text, token.at)

    def container(self) -> Container:
        kind = self.need(Kind.NAME).text
        cpp_type = self.cpp_type()
        self.need_symbol("<")
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise fault(self.text, self.now.at, f"types are nested deeper than {MAX_DEPTH} levels")
        items = [self.type()]
        if kind == "map":
            self.need_symbol(",")
            items.append(self.type())
        self.depth -= 1
        self.need_symbol(">")
        if kind == "list":
            cpp_type = self.cpp_type() or cpp_type
        return Container(kind, tuple(items), cpp_type, self.annotations())

    def cpp_type(self) -> str | None:
        return self.need(Kind.TEXT).text if self.take_word("cpp_type") else None

    def annotations(self) -> Annotations:
        """`(key = "value", other)`, or nothing."""
        if not self.take_symbol("("):
            return ()

        def one() -> Annotation:
            key = self.need(Kind.NAME).text
            found = Annotation(key, self.need(Kind.TEXT).text if self.take_symbol("=") else None)
            self.separator()
            return found

        return self.many(one, ")")

    def value(self) -> Value:
        token = self.now
        self.index += 1
        match token.kind:
            case Kind.INTEGER:
                return Literal(integer(self.text, token))
            case Kind.DOUBLE:
                return Literal(double(self.text, token))
            case Kind.TEXT:
                return Literal(token.text)
            case Kind.SYMBOL if token.text == "[":
                return ListValue(self.many(self.item, "]"), token.at)
            case Kind.SYMBOL if token.text == "{":
                return MapValue(self.many(self.pair, "}"), token.at)
            case Kind.NAME if token.text in {"true", "false"}:
                return Literal(token.text == "true")
            case Kind.NAME if token.text not in _KEYWORDS:
                return Name(token.text, token.at)
        self.index -= 1
        raise self.wrong("a value")

    def item(self) -> Value:
        found = self.value()
        self.separator()
        return found

    def pair(self) -> tuple[Value, Value]:
        key = self.value()
        self.need_symbol(":")
        value = self.value()
        self.separator()
        return key, value
