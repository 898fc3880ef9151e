"""Parsing of Thrift: the accepted language, and the positions of errors."""

from __future__ import annotations

import pytest

from stele.core.ports import Format
from stele.errors import MalformedSchema, UnresolvedReference
from stele.formats.thrift import THRIFT, ThriftSchema
from stele.formats.thrift.grammar import parse_document
from stele.formats.thrift.schema import (
    Annotation,
    BaseType,
    Const,
    ContainerType,
    CppInclude,
    EnumValue,
    Include,
    ListValue,
    LiteralValue,
    MapValue,
    Requiredness,
    Senum,
    ThriftEnum,
    ThriftField,
    ThriftFunction,
    ThriftNamespace,
    ThriftService,
    ThriftStruct,
    Typedef,
    TypeName,
    Value,
    ValueName,
)


def parse_schema(text: str, references: dict[str, str] | None = None, *, strict: bool = True) -> ThriftSchema:
    """Parse a schema given as text."""
    documents = {name: document.encode() for name, document in (references or {}).items()}
    return THRIFT.parse(text.encode(), documents, strict=strict)


def parse_struct(body: str) -> ThriftStruct:
    """The struct with a body."""
    (struct,) = parse_document(f"struct S {{{body}}}").definitions
    assert isinstance(struct, ThriftStruct)
    return struct


def test_it_is_a_format() -> None:
    """The object satisfies the port, and its default ruleset compares data."""
    thrift_format: Format[ThriftSchema] = THRIFT
    assert thrift_format.name == "thrift"
    assert thrift_format.rulesets[0] == "thrift-wire@1"


def test_headers() -> None:
    """Includes, C++ includes and namespaces are kept with annotations and documentation."""
    document = parse_document(
        '/** first */ include "a/shared.thrift" cpp_include "<map>"\nnamespace * a.b\nnamespace py c (x = "y", z)'
    )
    assert document.headers == (
        Include("a/shared.thrift", "first"),
        CppInclude("<map>"),
        ThriftNamespace("*", "a.b"),
        ThriftNamespace("py", "c", (Annotation("x", "y"), Annotation("z"))),
    )
    assert isinstance(document.headers[0], Include)
    assert document.headers[0].prefix == "shared"


def test_fields() -> None:
    """Fields keep ids, requiredness, defaults, references, legacy XML keywords, annotations and documentation."""
    struct = parse_struct(
        '1: required i32 a, /** doc */ 2: optional string b = "x" (k = "v");\n -7: Node & c\n'
        "bool d = true xsd_optional xsd_nillable xsd_attrs { 1: i32 z } i64 e"
    )
    assert struct.fields == (
        ThriftField(1, "a", BaseType("i32"), Requiredness.REQUIRED),
        ThriftField(
            2,
            "b",
            BaseType("string"),
            Requiredness.OPTIONAL,
            LiteralValue("x"),
            annotations=(Annotation("k", "v"),),
            doc="doc",
        ),
        ThriftField(-7, "c", TypeName("Node"), boxed=True),
        ThriftField(
            -8,
            "d",
            BaseType("bool"),
            default=LiteralValue(True),
            implicit=True,
            xsd_optional=True,
            xsd_nillable=True,
            xsd_attrs=(ThriftField(1, "z", BaseType("i32")),),
        ),
        ThriftField(-9, "e", BaseType("i64"), implicit=True),
    )


def test_keywords_name_fields() -> None:
    """A field may be called like a keyword, since 0.19."""
    assert [field.name for field in parse_struct("1: string string, 2: i32 required, 3: i32 struct").fields] == [
        "string",
        "required",
        "struct",
    ]


def test_types() -> None:
    """Nested containers, C++ types before and after, and annotations on types are parsed."""
    (field,) = parse_struct('1: map cpp_type "M" <string, list<set<byte (a = "b")>> cpp_type "L"> (c) field').fields
    inner = ContainerType("set", (BaseType("byte", (Annotation("a", "b"),)),))
    assert field.type == ContainerType(
        "map", (BaseType("string"), ContainerType("list", (inner,), "L")), "M", (Annotation("c"),)
    )


def test_enums() -> None:
    """Values count up from the one before, from 0, in decimal or hexadecimal, with either separator or none."""
    (enumeration,) = parse_document("enum E { A, B = 0x10; /** c */ C (k) D = -1 E }").definitions
    assert enumeration == ThriftEnum(
        "E",
        (
            EnumValue("A", 0, implicit=True),
            EnumValue("B", 16),
            EnumValue("C", 17, implicit=True, annotations=(Annotation("k"),), doc="c"),
            EnumValue("D", -1),
            EnumValue("E", 0, implicit=True),
        ),
    )


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("-0x1F", LiteralValue(-31)),
        ("+7", LiteralValue(7)),
        (".5", LiteralValue(0.5)),
        ("-1.5e-3", LiteralValue(-0.0015)),
        ("1E3", LiteralValue(1000.0)),
        ("9223372036854775807", LiteralValue(2**63 - 1)),
        (r'"a\"b\\c\n"', LiteralValue('a"b\\c\n')),
        ("'it\"s'", LiteralValue('it"s')),
        ("false", LiteralValue(False)),
        ("Color.RED", ValueName("Color.RED")),
        ("[1 2; 3,]", ListValue((LiteralValue(1), LiteralValue(2), LiteralValue(3)))),
        ("{1: [], 'a': {}}", MapValue(((LiteralValue(1), ListValue(())), (LiteralValue("a"), MapValue(()))))),
    ],
)
def test_values(text: str, value: Value) -> None:
    """Every form of literal is parsed."""
    (constant,) = parse_document(f"const i32 X = {text}").definitions
    assert constant == Const("X", BaseType("i32"), value)


def test_services() -> None:
    """Functions with arguments, exceptions, `oneway` and its old spelling, and annotations are parsed."""
    (service,) = parse_document(
        "service V extends shared.Base { oneway void a(), async void b(1: i32 x) "
        "list<i32> c() throws (1: X e) (k); } (z)"
    ).definitions
    assert service == ThriftService(
        "V",
        (
            ThriftFunction("a", None, oneway=True),
            ThriftFunction("b", None, (ThriftField(1, "x", BaseType("i32")),), oneway=True),
            ThriftFunction(
                "c",
                ContainerType("list", (BaseType("i32"),)),
                throws=(ThriftField(1, "e", TypeName("X")),),
                annotations=(Annotation("k"),),
            ),
        ),
        "shared.Base",
        (Annotation("z"),),
    )


def test_legacy() -> None:
    """Syntax of old compilers is accepted: senum and slist, and separators after definitions."""
    assert parse_document('senum E { "a", "b" }; typedef slist T;').definitions == (
        Senum("E", ("a", "b")),
        Typedef("T", BaseType("slist")),
    )


def test_comments() -> None:
    """Only documentation directly before a declaration is kept, without stars and indentation."""
    document = parse_document(
        "# unix\n// line\n/* block */ /**/ /***/\n/**\n * One.\n *\n *   two\n **/\n"
        "struct S { // x\n 1: i32 a /* y */ }"
    )
    assert document.definitions[0].doc == "One.\n\n  two"
    assert document.definitions == (
        ThriftStruct("struct", "S", (ThriftField(1, "a", BaseType("i32")),), doc="One.\n\n  two"),
    )


@pytest.mark.parametrize(
    ("text", "line", "column", "word"),
    [
        ("struct S {\n  1: i32 a\n", 3, 1, "end of the document"),
        ("struct S {\n  1 i32 a }", 2, 5, "':'"),
        ("struct S { 1: i32 }", 1, 19, "name for the field"),
        ("struct S { 1: void a }", 1, 15, "type"),
        ("struct a.b {}", 1, 8, "dot"),
        ("const i32 X = 99999999999999999999", 1, 15, "too big"),
        ("const double X = 1e999", 1, 18, "too big"),
        ('const string X = "a\nb"', 1, 18, "does not end in its line"),
        (r'const string X = "ab\qc"', 1, 21, "escape"),
        ("\n /* never", 2, 2, "never ends"),
        ("struct S {} ~", 1, 13, "'~'"),
        ("\ufeffstruct S {}", 1, 1, "byte order mark"),
        ("enum E { A = 3000000000 }", 1, 10, "32 bits"),
        ("struct S { 1: i32 a, 1: i32 b }", 1, 22, "twice"),
        ("struct S { 1: i32 a, 2: i32 a }", 1, 22, "twice"),
        ("struct S { 40000: i32 a }", 1, 12, "16 bits"),
        ("enum E { A A }", 1, 1, "twice"),
        ("service V { void a() void a() }", 1, 1, "twice"),
        ("struct S {}\nunion S {}", 2, 1, "twice"),
        ("struct S {}\ninclude 'x'", 2, 1, "at the top"),
        ("php_namespace x", 1, 1, "namespace php"),
        ("struct S {}\nservice V { void a() throws (1: S e) }", 2, 30, "exception"),
        ("typedef A B\ntypedef list<B> A", 1, 1, "circle"),
        ("const i32 A = B\nconst i32 B = A", 1, 1, "circle"),
        ("service A extends B {}\nservice B extends A {}", 1, 1, "circle"),
        ("union U { 1: i32 a = 1, 2: i32 b = 2 }", 1, 25, "more than one default"),
    ],
)
def test_malformed(text: str, line: int, column: int, word: str) -> None:
    """An error names the line, the column and what is wrong."""
    with pytest.raises(MalformedSchema) as caught:
        parse_schema(text)
    assert (caught.value.line, caught.value.column) == (line, column)
    assert word in str(caught.value)


def test_not_utf8() -> None:
    """A document that is not UTF-8 is refused with the place."""
    with pytest.raises(MalformedSchema, match="line 2, column 3: the document is not UTF-8"):
        THRIFT.parse(b"\n# \xff", {})


@pytest.mark.parametrize(
    "text",
    [
        "struct S { 1: i32 a = 'x' }",
        "struct S { 1: i8 a = 300 }",
        "struct S { 1: i32 a = 1.5 }",
        "struct S { 1: list<i32> a = ['x'] }",
        "struct S { 1: map<i32, i32> a = {1: 'x'} }",
        "const string X = 1",
        "const uuid X = '1234'",
        "enum E { A }\nconst E X = 1",
        "enum E { A }\nenum F { A }\nconst E X = F.A",
        "struct S { 1: i32 a }\nconst S X = {'b': 1}",
        "const i64 A = 3000000000\nstruct S { 1: i32 a = A }",
        "const list<string> A = ['x']\nstruct S { 1: list<i32> a = A }",
    ],
)
def test_values_must_fit(text: str) -> None:
    """A value that does not fit its type is rejected with its position, but accepted by lenient parsing."""
    with pytest.raises(MalformedSchema) as caught:
        parse_schema(text)
    assert caught.value.line is not None
    assert caught.value.expected
    parse_schema(text, strict=False)


@pytest.mark.parametrize(
    "text",
    [
        "const bool X = 1",
        "const i32 X = true",
        "const double X = 1",
        "const map<i32, i32> X = []",
        "const list<i32> X = {}",
        "const binary X = 'x'",
        "struct S { 1: E e = E.A, 2: E f = 0 }\nenum E { A }",
        "struct S { 1: i32 e = E.A }\nenum E { A }\ntypedef E F\nconst F X = F.A",
        "struct S { 1: T t = {'a': 1} }\nstruct T { 1: i32 a }",
    ],
)
def test_values_that_fit(text: str) -> None:
    """Values that the Apache compiler accepts for a type are accepted, in any order of definitions."""
    parse_schema(text)


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        ("struct S { 1: T a }", 1, 15),
        ("typedef list<T> A", 1, 14),
        ("struct S {\n 1: shared.T a }", 2, 5),
        ("const i32 A = B", 1, 15),
        ("enum E { A }\nconst E X = E.B", 2, 13),
        ("service V extends W {}", 1, 1),
        ('\ninclude "x.thrift"', 2, 1),
    ],
)
def test_unresolved(text: str, line: int, column: int) -> None:
    """A name that leads nowhere is an unresolved reference with its place, strict or not."""
    for strict in (True, False):
        with pytest.raises(UnresolvedReference) as caught:
            parse_schema(text, strict=strict)
        assert (caught.value.line, caught.value.column) == (line, column)


def test_includes() -> None:
    """Types, constants, enum values and services of included documents are found by the prefix of the file."""
    references = {
        "shared.thrift": 'include "sub/base.thrift"\ntypedef base.Id Id\nenum E { A = 3 }\nservice B {}',
        "sub/base.thrift": 'include "deep.thrift"\ntypedef deep.Number Id',
        "sub/deep.thrift": "typedef i64 Number\nconst i32 LIMIT = 9",
        "unused.thrift": "this is not Thrift",
    }
    text = (
        'include "shared.thrift"\nservice V extends shared.B {}\n'
        "struct S { 1: shared.Id id, 2: shared.E e = shared.E.A }"
    )
    schema = parse_schema(text, references)
    assert schema.unit.resolve_type(schema.find_struct().fields[0].type).kind == "i64"
    assert THRIFT.codec(schema).decode(b"\x00") == {"e": "A"}


def test_only_direct_includes_are_seen() -> None:
    """A name of a document that only an included one includes is not found."""
    references = {"a.thrift": 'include "b.thrift"', "b.thrift": "struct T {}"}
    with pytest.raises(UnresolvedReference, match=r"b\.T"):
        parse_schema('include "a.thrift"\nstruct S { 1: b.T t }', references)


def test_circle_of_includes() -> None:
    """Documents that include each other are refused."""
    references = {"a.thrift": 'include "b.thrift"', "b.thrift": 'include "a.thrift"'}
    with pytest.raises(MalformedSchema, match=r"circle: .*a\.thrift > b\.thrift > a\.thrift|b\.thrift > a\.thrift"):
        parse_schema('include "a.thrift"', references)


def test_errors_in_included_documents() -> None:
    """An error in an included document names the document, with the position there."""
    with pytest.raises(MalformedSchema, match=r"line 2, column 1: in the included document 'a\.thrift'"):
        parse_schema('include "a.thrift"', {"a.thrift": "\n~"})
    with pytest.raises(UnresolvedReference, match=r"in the included document 'a\.thrift': there is no type 'T'"):
        parse_schema('include "a.thrift"', {"a.thrift": "struct S { 1: T t }"})


def test_uuid() -> None:
    """`uuid` is a built-in type, unless the document defines a type of that name, as older ones could."""
    new, old = parse_schema("struct S { 1: uuid a }"), parse_schema("typedef string uuid\nstruct S { 1: uuid a }")
    kinds = [schema.unit.resolve_type(schema.find_struct().fields[0].type).kind for schema in (new, old)]
    assert kinds == ["uuid", "string"]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("struct A {}\nstruct B {}\nexception X {}", "B"),
        ("union A {}\nenum E {}", "A"),
        ("exception X {}", "X"),
        ("const i32 X = 1", ""),
        ("", ""),
    ],
)
def test_type_name(text: str, name: str) -> None:
    """The top type is the last struct or union; an exception only where there is nothing else."""
    assert parse_schema(text).type_name == name
