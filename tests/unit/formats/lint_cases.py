"""For every lint rule of every language: a schema that violates it, and a similar one that does not.

A case is (format, rule, schema that triggers it, schema that does not, the version before, path of the finding).
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple


class LintCase(NamedTuple):
    """One rule in one language."""

    format: str
    rule: str
    bad: bytes
    good: bytes
    before: bytes | None = None
    path: str = ""


def _avro_case(rule: str, bad: Any, good: Any, path: str, before: Any = None) -> LintCase:
    texts = json.dumps(bad).encode(), json.dumps(good).encode()
    return LintCase("avro", rule, *texts, None if before is None else json.dumps(before).encode(), path)


def make_record(*fields: Any, **more: Any) -> dict[str, Any]:
    """An Avro record `R` of a namespace; a field given as a pair is a name and a type."""
    shaped = [field if isinstance(field, dict) else {"name": field[0], "type": field[1]} for field in fields]
    return {"type": "record", "name": "R", "namespace": "n", "fields": shaped, **more}


def make_enum(*symbols: str, **more: Any) -> dict[str, Any]:
    """An Avro enum."""
    return {"type": "enum", "name": "E", "symbols": list(symbols), **more}


def make_logical_type(kind: str, name: str, **more: Any) -> dict[str, Any]:
    """An Avro logical type."""
    return {"type": kind, "logicalType": name, **more}


_MILLIS = make_logical_type("long", "timestamp-millis")
_MICROS = make_logical_type("long", "timestamp-micros")

AVRO = [
    _avro_case("CASE_CLASH", make_record(("a", "int"), ("A", "int")), make_record(("a", "int"), ("b", "int")), "/"),
    _avro_case(
        "DECIMAL_CHANGED",
        make_record(("d", make_logical_type("bytes", "decimal", precision=9, scale=3))),
        make_record(("d", make_logical_type("bytes", "decimal", precision=12, scale=2))),
        "/fields/0",
        make_record(("d", make_logical_type("bytes", "decimal", precision=9, scale=2))),
    ),
    _avro_case(
        "DEFAULT_BRANCH",
        make_record({"name": "a", "type": ["null", "int"], "default": 1}),
        make_record({"name": "a", "type": ["int", "null"], "default": 1}),
        "/fields/0",
    ),
    _avro_case(
        "DEFAULT_FITS",
        make_record({"name": "a", "type": "int", "default": "x"}),
        make_record({"name": "a", "type": "int", "default": 1}),
        "/fields/0",
    ),
    _avro_case("DOC_REQUIRED", make_record(doc=" "), make_record(doc="An order."), "/"),
    _avro_case(
        "DOC_REQUIRED",
        make_record(("a", "int"), doc="d"),
        make_record({"name": "a", "type": "int", "doc": "d"}, doc="d"),
        "/fields/0",
    ),
    _avro_case(
        "ENUM_DEFAULT",
        make_record(("e", make_enum("A"))),
        make_record(("e", make_enum("A", default="A"))),
        "/fields/0/type",
    ),
    _avro_case(
        "FIELD_DEFAULT",
        make_record(("a", "int"), ("b", "int")),
        make_record(
            ("a", "int"), {"name": "b", "type": "int", "aliases": ["old"]}, {"name": "c", "type": "int", "default": 1}
        ),
        "/fields/1",
        make_record(("a", "int"), ("old", "int")),
    ),
    _avro_case(
        "LOGICAL_TYPE",
        make_record(("a", make_logical_type("long", "date"))),
        make_record(("a", make_logical_type("int", "date"))),
        "/fields/0/type",
    ),
    _avro_case(
        "LOGICAL_TYPE",
        make_record(("a", make_logical_type("long", "timestamp-milis"))),
        make_record(("a", _MILLIS)),
        "/fields/0/type",
    ),
    _avro_case(
        "LOGICAL_TYPE",
        make_record(("a", make_logical_type("bytes", "decimal", precision=2, scale=4))),
        make_record(("a", make_logical_type("bytes", "decimal", precision=4, scale=2))),
        "/fields/0/type",
    ),
    _avro_case(
        "LOGICAL_TYPE",
        make_record(("a", {"type": "fixed", "name": "F", "size": 2, "logicalType": "decimal", "precision": 9})),
        make_record(("a", {"type": "fixed", "name": "F", "size": 4, "logicalType": "decimal", "precision": 9})),
        "/fields/0/type",
    ),
    _avro_case(
        "LOGICAL_TYPE",
        make_record({"name": "a", "type": "long", "logicalType": "timestamp-millis"}),
        make_record({"name": "a", "type": _MILLIS}),
        "/fields/0",
    ),
    _avro_case(
        "LOGICAL_TYPE",
        make_record(("a", {"type": "array", "items": "int", "logicalType": "date"})),
        make_record(("a", {"type": "array", "items": make_logical_type("int", "date")})),
        "/fields/0/type",
    ),
    _avro_case(
        "LOGICAL_TYPE_CHANGED",
        make_record(("a", "int")),
        make_record(("a", ["null", make_logical_type("int", "date")])),
        "/fields/0",
        make_record(("a", make_logical_type("int", "date"))),
    ),
    _avro_case("NAMESPACE_REQUIRED", make_record(namespace=""), make_record(), "/"),
    _avro_case("NAMING", make_record(name="order_line"), make_record(name="OrderLine"), "/"),
    _avro_case(
        "NAMING",
        make_record(("Order_Id", "int")),
        make_record(("order_id", "int"), ("orderId", "int")),
        "/fields/0",
    ),
    _avro_case(
        "NAMING", make_record(("e", make_enum("a"))), make_record(("e", make_enum("A"))), "/fields/0/type/symbols/0"
    ),
    _avro_case(
        "NULLABLE_DEFAULT",
        make_record(("a", ["string", "null"])),
        make_record({"name": "a", "type": ["null", "string"], "default": None}, ("b", ["string", "int"])),
        "/fields/0",
    ),
    _avro_case(
        "RECURSIVE_TYPE",
        make_record(("next", ["null", "R"])),
        make_record(("next", ["null", make_record(name="S")])),
        "/",
    ),
    _avro_case(
        "RECURSIVE_TYPE",
        make_record(("s", {"type": "array", "items": make_record(("back", {"type": "map", "values": "R"}), name="S")})),
        make_record(("s", make_record(name="S")), ("again", "S")),
        "/",
    ),
    _avro_case(
        "TIMESTAMP_UNIT",
        make_record(("t", ["null", {"type": "array", "items": _MICROS}])),
        make_record(("t", ["null", {"type": "array", "items": _MILLIS}])),
        "/fields/0",
        make_record(("t", ["null", {"type": "array", "items": _MILLIS}])),
    ),
    _avro_case(
        "UNBOUNDED_RECURSION", make_record(("next", "R")), make_record(("next", {"type": "array", "items": "R"})), "/"
    ),
    _avro_case(
        "UNKNOWN_KEYWORD",
        make_record({"name": "a", "type": "int", "defualt": 1}),
        make_record({"name": "a", "type": "int", "pii": True}),
        "/fields/0",
    ),
]


def _protobuf_case(rule: str, bad: str, good: str, path: str, before: str | None = None, head: str = "") -> LintCase:
    def text(body: str) -> bytes:
        return (body if "syntax" in body else f"{head or _HEAD}\n{body}").encode()

    return LintCase("protobuf", rule, text(bad), text(good), None if before is None else text(before), path)


_HEAD = 'syntax = "proto3"; package n;'
_PROTO2 = 'syntax = "proto2"; package n;'

PROTOBUF = [
    _protobuf_case(
        "CASE_CLASH",
        "message M { optional int32 ab = 1; optional int32 AB = 2; }",
        "message M { optional int32 ab = 1; optional int32 a_b_c = 2; }",
        "n.M",
        head=_PROTO2,
    ),
    _protobuf_case("DOC_REQUIRED", "message M {}", "// An order.\nmessage M {}", "n.M"),
    _protobuf_case(
        "DOC_REQUIRED",
        "// An order.\nmessage M { int32 a = 1; }",
        "// An order.\nmessage M {\n int32 a = 1;  // How many.\n}",
        "n.M.a",
    ),
    _protobuf_case(
        "DOC_REQUIRED", "// stele:lint-ignore NAMING\nenum E { A = 0; }", "// An enum.\nenum E { A = 0; }", "n.E"
    ),
    _protobuf_case("DOC_REQUIRED", "service S {}", "/* A service. */ service S {}", "n.S"),
    _protobuf_case("ENUM_VALUE_PREFIX", "enum MyCase { A = 0; }", "enum MyCase { MY_CASE_A = 0; }", "n.MyCase.A"),
    _protobuf_case("ENUM_VALUE_PREFIX", "enum E { A = 0; }", "message M { enum E { A = 0; } }", "n.E.A"),
    _protobuf_case("ENUM_ZERO_UNSPECIFIED", "enum E { E_RED = 0; }", "enum E { E_UNSPECIFIED = 0; }", "n.E.E_RED"),
    _protobuf_case("NAMESPACE_REQUIRED", 'syntax = "proto3"; message M {}', "message M {}", "default.proto"),
    _protobuf_case("NAMING", "message order_line {}", "message OrderLine {}", "n.order_line"),
    _protobuf_case("NAMING", "message M { int32 orderId = 1; }", "message M { int32 order_id = 1; }", "n.M.orderId"),
    _protobuf_case(
        "NAMING", "message M { oneof Kind { int32 a = 1; } }", "message M { optional int32 a = 1; }", "n.M.Kind"
    ),
    _protobuf_case("NAMING", "enum E { e_red = 0; }", "enum E { E_RED = 0; }", "n.E.e_red"),
    _protobuf_case(
        "NAMING",
        "message M {} service S { rpc get(M) returns (M); }",
        "message M {} service S { rpc Get(M) returns (M); }",
        "n.S.get",
    ),
    _protobuf_case(
        "NAMING", 'syntax = "proto3"; package Big.Name;', 'syntax = "proto3"; package big.name;', "Big.Name"
    ),
    _protobuf_case(
        "NUMBER_REUSED",
        "message M { string b = 1; }",
        "message M { int32 renamed = 1; }",
        "n.M.b",
        "message M { int32 a = 1; }",
    ),
    _protobuf_case(
        "NUMBER_REUSED",
        "message M { string b = 9; }",
        "message M { reserved 9; string b = 8; }",
        "n.M.b",
        "message M { reserved 9; }",
    ),
    _protobuf_case(
        "NUMBER_REUSED",
        "enum E { A = 0; C = 1; }",
        "enum E { option allow_alias = true; A = 0; C = 1; B = 1; }",
        "n.E.C",
        "enum E { A = 0; B = 1; }",
    ),
    _protobuf_case(
        "RECURSIVE_TYPE", "message M { repeated M m = 1; }", "message M { repeated N n = 1; } message N {}", "n.M"
    ),
    _protobuf_case(
        "RECURSIVE_TYPE",
        "message M { map<string, N> n = 1; message N { M m = 1; } }",
        "message M { map<string, N> n = 1; message N {} }",
        "n.M",
    ),
    _protobuf_case(
        "REQUIRED_FIELD",
        "message M { required int32 a = 1; }",
        "message M { optional int32 a = 1; }",
        "n.M.a",
        head=_PROTO2,
    ),
    _protobuf_case(
        "REQUIRED_FIELD",
        'edition = "2023"; package n; message M { int32 a = 1 [features.field_presence = LEGACY_REQUIRED]; } // syntax',
        'edition = "2023"; package n; message M { int32 a = 1; } // syntax',
        "n.M.a",
    ),
    _protobuf_case(
        "RESERVED_ON_DELETE",
        "message M { reserved 1; }",
        'message M { reserved 1; reserved "a"; }',
        "n.M.a",
        "message M { int32 a = 1; }",
    ),
    _protobuf_case(
        "RESERVED_ON_DELETE",
        'enum E { A = 0; reserved "B"; }',
        'enum E { A = 0; reserved 1; reserved "B"; }',
        "n.E.B",
        "enum E { A = 0; B = 1; }",
    ),
    _protobuf_case(
        "RESERVED_ON_DELETE", "message M {}", "message M { reserved 5 to 9; }", "n.M", "message M { reserved 5 to 7; }"
    ),
    _protobuf_case(
        "UNBOUNDED_RECURSION",
        "message M { required M m = 1; }",
        "message M { optional M m = 1; }",
        "n.M",
        head=_PROTO2,
    ),
    _protobuf_case(
        "UNUSED_IMPORT",
        'import "google/protobuf/timestamp.proto"; message M {}',
        'import "google/protobuf/timestamp.proto"; message M { map<string, google.protobuf.Timestamp> t = 1; }',
        "google/protobuf/timestamp.proto",
    ),
]


def _json_case(rule: str, bad: Any, good: Any, path: str, before: Any = None, draft: str | None = None) -> LintCase:
    def text(value: Any) -> bytes:
        return json.dumps(value if draft is None else {"$schema": draft, **value}).encode()

    return LintCase("json", rule, text(bad), text(good), None if before is None else text(before), path)


_NEW = "https://json-schema.org/draft/2020-12/schema"
_OLD = "http://json-schema.org/draft-07/schema#"


def make_object_schema(**properties: Any) -> dict[str, Any]:
    """A JSON Schema of an object."""
    return {"type": "object", "properties": properties}


JSON = [
    _json_case("CASE_CLASH", make_object_schema(a=True, A=True), make_object_schema(a=True, b=True), "#"),
    _json_case(
        "CONTENT_DECLARED",
        make_object_schema(a=True),
        {**make_object_schema(a=True), "additionalProperties": True},
        "#",
    ),
    _json_case(
        "CONTENT_DECLARED",
        {"items": make_object_schema()},
        {"allOf": [make_object_schema(a=True)]},
        "#/items",
        draft=_NEW,
    ),
    _json_case("DEFAULT_FITS", {"type": "integer", "default": 1.5}, {"type": "integer", "default": 2.0}, "#"),
    _json_case("DEFAULT_FITS", {"enum": ["a"], "default": "b"}, {"enum": ["a", None], "default": None}, "#"),
    _json_case("DOC_REQUIRED", make_object_schema(), {**make_object_schema(), "title": "An order"}, "#"),
    _json_case(
        "DOC_REQUIRED",
        {"title": "T", **make_object_schema(a={"type": "string"})},
        {"title": "T", "$defs": {"a": {"description": "d"}}, **make_object_schema(a={"$ref": "#/$defs/a"})},
        "#/properties/a",
    ),
    _json_case("DRAFT_DECLARED", {"type": "string"}, {"$schema": _OLD, "type": "string"}, "#"),
    _json_case("DRAFT_DECLARED", {"$schema": "urn:x", "type": "string"}, {"$schema": _NEW, "type": "string"}, "#"),
    _json_case(
        "FIELD_DEFAULT",
        {**make_object_schema(a={"type": "string"}), "required": ["a"]},
        {**make_object_schema(a={"type": "string", "default": ""}), "required": ["a"]},
        "#/properties/a",
        make_object_schema(a={"type": "string"}),
    ),
    _json_case(
        "FORMAT_KNOWN", {"type": "string", "format": "data-time"}, {"type": "string", "format": "date-time"}, "#"
    ),
    _json_case("FORMAT_KNOWN", {"format": "uuid", "$schema": _OLD}, {"format": "uuid", "$schema": _NEW}, "#"),
    _json_case(
        "NAMING",
        make_object_schema(**{"Order-Id": {}}),
        make_object_schema(orderId={}, order_id={}, _id={}),
        "#/properties/Order-Id",
    ),
    _json_case(
        "PATTERN_ANCHORED", {"type": "string", "pattern": "[a-z]+"}, {"type": "string", "pattern": "^[a-z]+$"}, "#"
    ),
    _json_case(
        "PATTERN_ANCHORED", {"type": "string", "pattern": "^a\\$"}, {"type": "string", "pattern": "^a\\\\$"}, "#"
    ),
    _json_case(
        "RECURSIVE_TYPE", make_object_schema(next={"$ref": "#"}), make_object_schema(next={"type": "string"}), "#"
    ),
    _json_case(
        "RECURSIVE_TYPE",
        {
            "$defs": {"a": make_object_schema(x={"$ref": "#/$defs/b"}), "b": {"items": {"$ref": "#/$defs/a"}}},
            "$ref": "#/$defs/a",
        },
        {"$defs": {"a": make_object_schema(x={"$ref": "#/$defs/b"}), "b": {}}, "$ref": "#/$defs/a"},
        "#/$defs/a",
        draft=_NEW,
    ),
    _json_case(
        "REF_SIBLINGS",
        {"definitions": {"a": {}}, **make_object_schema(a={"$ref": "#/definitions/a", "maxLength": 3})},
        {"definitions": {"a": {}}, **make_object_schema(a={"$ref": "#/definitions/a", "description": "d"})},
        "#/properties/a",
        draft=_OLD,
    ),
    _json_case(
        "REQUIRED_UNDEFINED",
        {**make_object_schema(userName=True), "required": ["userNam"]},
        {**make_object_schema(userName=True), "required": ["userName"]},
        "#",
    ),
    _json_case(
        "REQUIRED_UNDEFINED",
        {**make_object_schema(), "required": ["a"], "additionalProperties": False},
        {"anyOf": [{"required": ["a"]}, {"required": ["b"]}]},
        "#",
    ),
    LintCase("json", "MEMBER_REPEATED", b'{"type":"string","type":"null"}', b'{"type":"null"}', None, "#"),
    _json_case("TYPE_DECLARED", {"minLength": 3}, {"type": "string", "minLength": 3}, "#"),
    _json_case(
        "TYPE_DECLARED", make_object_schema(a={"description": "d"}), make_object_schema(a=True), "#/properties/a"
    ),
    _json_case(
        "UNBOUNDED_RECURSION",
        {**make_object_schema(next={"$ref": "#"}), "required": ["next"]},
        {**make_object_schema(next={"anyOf": [{"type": "null"}, {"$ref": "#"}]}), "required": ["next"]},
        "#",
    ),
    _json_case("UNKNOWN_KEYWORD", {"requried": []}, {"required": [], "x-mine": 1, "connect.name": "n"}, "#"),
    _json_case(
        "UNKNOWN_KEYWORD", {"dependentRequired": {}, "$schema": _OLD}, {"dependentRequired": {}, "$schema": _NEW}, "#"
    ),
    _json_case(
        "UNUSED_DEFINITION",
        {"$defs": {"a": {}, "b": {"$ref": "#/$defs/b"}}, "$ref": "#/$defs/a"},
        {"$defs": {"a": {"properties": {"c": {}}}}, "$ref": "#/$defs/a/properties/c"},
        "#/$defs/b",
        draft=_NEW,
    ),
    _json_case(
        "UNUSED_DEFINITION",
        {"$defs": {"a": {"type": "string"}}, "type": "string"},
        {"$defs": {"a": {"type": "string"}}, "title": "A library"},
        "#/$defs/a",
        draft=_NEW,
    ),
]


def _thrift_case(rule: str, bad: str, good: str, path: str, before: str | None = None) -> LintCase:
    texts = bad.encode(), good.encode()
    return LintCase("thrift", rule, *texts, None if before is None else before.encode(), path)


THRIFT = [
    _thrift_case("CASE_CLASH", "struct S { 1: i32 ab; 2: i32 aB }", "struct S { 1: i32 ab }", "S"),
    _thrift_case("DOC_REQUIRED", "struct S {}", "/** An order. */ struct S {}", "S"),
    _thrift_case("DOC_REQUIRED", "/** S */ struct S { 1: i32 a }", "/** S */ struct S { /** A. */ 1: i32 a }", "S.a"),
    _thrift_case("DOC_REQUIRED", "/** V */ service V { void f() }", "/** V */ service V { /** F. */ void f() }", "V.f"),
    _thrift_case("ENUM_VALUE_EXPLICIT", "enum E { A }", "enum E { A = 1 }", "E.A"),
    _thrift_case("ENUM_ZERO_UNSPECIFIED", "enum E { RED = 0 }", "enum E { UNKNOWN = 0, RED = 1 }", "E.RED"),
    _thrift_case("FIELD_ID_EXPLICIT", "struct S { i32 a }", "struct S { 1: i32 a }", "S.a"),
    _thrift_case("FIELD_ID_EXPLICIT", "service V { void f(i32 a) }", "service V { void f(1: i32 a) }", "V.f.a"),
    _thrift_case("NAMESPACE_REQUIRED", "struct S {}", "namespace * n\nstruct S {}", ""),
    _thrift_case("NAMING", "struct order_line {}", "struct OrderLine {}", "order_line"),
    _thrift_case("NAMING", "struct S { 1: i32 Bad }", "struct S { 1: i32 fine, 2: i32 so_is_this }", "S.Bad"),
    _thrift_case("NAMING", "enum E { red = 1 }", "enum E { RED = 1 }", "E.red"),
    _thrift_case("NAMING", "const i32 limit = 1", "const i32 LIMIT = 1", "limit"),
    _thrift_case("NAMING", "service V { void Do_It() }", "service V { void doIt() }", "V.Do_It"),
    _thrift_case("NUMBER_REUSED", "struct S { 1: string b }", "struct S { 1: i32 b }", "S.b", "struct S { 1: i32 a }"),
    _thrift_case("NUMBER_REUSED", "enum E { B = 1 }", "enum E { A = 1, B = 2 }", "E.B", "enum E { A = 1 }"),
    _thrift_case("RECURSIVE_TYPE", "struct S { 1: list<S> s }", "struct S { 1: list<i32> s }", "S"),
    _thrift_case(
        "RECURSIVE_TYPE",
        "typedef map<i32, S> Ss\nstruct S { 1: optional Ss s }",
        "typedef map<i32, T> Ts\nstruct T {}\nstruct S { 1: optional Ts s }",
        "S",
    ),
    _thrift_case(
        "REQUIREDNESS_DECLARED", "struct S { 1: i32 a }", "struct S { 1: optional i32 a } union U { 1: i32 a }", "S.a"
    ),
    _thrift_case("REQUIRED_FIELD", "struct S { 1: required i32 a }", "struct S { 1: optional i32 a }", "S.a"),
    _thrift_case("UNBOUNDED_RECURSION", "struct S { 1: required S s }", "struct S { 1: optional S s }", "S"),
    _thrift_case(
        "UNUSED_IMPORT",
        'include "shared.thrift"\n// shared.Money\nstruct S {}',
        'include "shared.thrift"\nstruct S { 1: shared.Money m }',
        "shared.thrift",
    ),
]


def _xsd_case(rule: str, bad: str, good: str, path: str, before: str | None = None, head: str = "") -> LintCase:
    def text(body: str) -> bytes:
        return (
            f'<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema" {head or _QUALIFIED}>{body}</xs:schema>'.encode()
        )

    return LintCase("xsd", rule, text(bad), text(good), None if before is None else text(before), path)


_QUALIFIED = 'targetNamespace="urn:n" xmlns="urn:n" elementFormDefault="qualified"'
_NOTE = "<xs:annotation><xs:documentation>An order.</xs:documentation></xs:annotation>"


def _make_type(content: str, name: str = "Order") -> str:
    return f'<xs:complexType name="{name}"><xs:sequence>{content}</xs:sequence></xs:complexType>'


XSD = [
    _xsd_case("DOC_REQUIRED", _make_type(""), f'<xs:complexType name="Order">{_NOTE}</xs:complexType>', "/Order"),
    _xsd_case(
        "DOC_REQUIRED",
        '<xs:element name="order" type="xs:string"/>',
        f'<xs:element name="order" type="xs:string">{_NOTE}</xs:element>',
        "/order",
    ),
    _xsd_case(
        "ELEMENT_FORM",
        _make_type('<xs:element name="a" type="xs:string"/>'),
        '<xs:element name="a" type="xs:string"/>',
        "/",
        head='targetNamespace="urn:n"',
    ),
    _xsd_case(
        "FIELD_DEFAULT",
        _make_type('<xs:element name="a" type="xs:string"/>'),
        _make_type('<xs:element name="a" type="xs:string" minOccurs="0"/>'),
        "/Order/a",
        _make_type(""),
    ),
    _xsd_case(
        "NAMESPACE_REQUIRED",
        '<xs:element name="a" type="xs:string"/>',
        '<xs:element name="a" type="xs:string"/>',
        "/",
    )._replace(bad=b'<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema"/>'),
    _xsd_case("NAMING", _make_type("", "order_type"), _make_type("", "OrderType"), "/order_type"),
    _xsd_case(
        "NAMING", '<xs:element name="a-b" type="xs:string"/>', '<xs:element name="aB" type="xs:string"/>', "/a-b"
    ),
    _xsd_case(
        "RECURSIVE_TYPE",
        _make_type('<xs:element name="a" type="Order" minOccurs="0"/>'),
        _make_type('<xs:element name="a" type="xs:string"/>'),
        "/Order",
    ),
    _xsd_case("TYPE_DECLARED", '<xs:element name="a"/>', '<xs:element name="a" type="xs:string"/>', "/a"),
    _xsd_case(
        "UNBOUNDED_RECURSION",
        _make_type('<xs:element name="a" type="Order"/>'),
        _make_type('<xs:choice><xs:element name="a" type="Order"/><xs:element name="b" type="xs:string"/></xs:choice>'),
        "/Order",
    ),
    _xsd_case(
        "WILDCARD_LIMITED",
        _make_type('<xs:any maxOccurs="unbounded" processContents="skip"/>'),
        _make_type('<xs:any maxOccurs="unbounded" namespace="##other" processContents="lax"/>'),
        "/Order",
    ),
]

CASES = [*AVRO, *PROTOBUF, *JSON, *THRIFT, *XSD]
REFERENCES = {"thrift": {"shared.thrift": b"struct Money {}"}}
