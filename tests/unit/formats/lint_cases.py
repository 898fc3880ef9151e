"""For every lint rule of every language: a schema that it objects to, and a twin it has nothing to say about.

A case is (format, rule, schema that triggers it, schema that does not, the version before, path of the finding).
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple


class Case(NamedTuple):
    """One rule in one language."""

    format: str
    rule: str
    bad: bytes
    good: bytes
    before: bytes | None = None
    path: str = ""


def _avro(rule: str, bad: Any, good: Any, path: str, before: Any = None) -> Case:
    texts = [json.dumps(value).encode() for value in (bad, good)]
    return Case("avro", rule, *texts, None if before is None else json.dumps(before).encode(), path)


def record(*fields: Any, **more: Any) -> dict[str, Any]:
    """An Avro record `R` of a namespace; a field given as a pair is a name and a type."""
    shaped = [field if isinstance(field, dict) else {"name": field[0], "type": field[1]} for field in fields]
    return {"type": "record", "name": "R", "namespace": "n", "fields": shaped, **more}


def enum(*symbols: str, **more: Any) -> dict[str, Any]:
    """An Avro enum."""
    return {"type": "enum", "name": "E", "symbols": list(symbols), **more}


def logical(kind: str, name: str, **more: Any) -> dict[str, Any]:
    """An Avro logical type."""
    return {"type": kind, "logicalType": name, **more}


_MILLIS = logical("long", "timestamp-millis")
_MICROS = logical("long", "timestamp-micros")

AVRO = [
    _avro("CASE_CLASH", record(("a", "int"), ("A", "int")), record(("a", "int"), ("b", "int")), "/"),
    _avro(
        "DECIMAL_CHANGED",
        record(("d", logical("bytes", "decimal", precision=9, scale=3))),
        record(("d", logical("bytes", "decimal", precision=12, scale=2))),
        "/fields/0",
        record(("d", logical("bytes", "decimal", precision=9, scale=2))),
    ),
    _avro(
        "DEFAULT_BRANCH",
        record({"name": "a", "type": ["null", "int"], "default": 1}),
        record({"name": "a", "type": ["int", "null"], "default": 1}),
        "/fields/0",
    ),
    _avro(
        "DEFAULT_FITS",
        record({"name": "a", "type": "int", "default": "x"}),
        record({"name": "a", "type": "int", "default": 1}),
        "/fields/0",
    ),
    _avro("DOC_REQUIRED", record(doc=" "), record(doc="An order."), "/"),
    _avro(
        "DOC_REQUIRED",
        record(("a", "int"), doc="d"),
        record({"name": "a", "type": "int", "doc": "d"}, doc="d"),
        "/fields/0",
    ),
    _avro("ENUM_DEFAULT", record(("e", enum("A"))), record(("e", enum("A", default="A"))), "/fields/0/type"),
    _avro(
        "FIELD_DEFAULT",
        record(("a", "int"), ("b", "int")),
        record(
            ("a", "int"), {"name": "b", "type": "int", "aliases": ["old"]}, {"name": "c", "type": "int", "default": 1}
        ),
        "/fields/1",
        record(("a", "int"), ("old", "int")),
    ),
    _avro(
        "LOGICAL_TYPE", record(("a", logical("long", "date"))), record(("a", logical("int", "date"))), "/fields/0/type"
    ),
    _avro("LOGICAL_TYPE", record(("a", logical("long", "timestamp-milis"))), record(("a", _MILLIS)), "/fields/0/type"),
    _avro(
        "LOGICAL_TYPE",
        record(("a", logical("bytes", "decimal", precision=2, scale=4))),
        record(("a", logical("bytes", "decimal", precision=4, scale=2))),
        "/fields/0/type",
    ),
    _avro(
        "LOGICAL_TYPE",
        record(("a", {"type": "fixed", "name": "F", "size": 2, "logicalType": "decimal", "precision": 9})),
        record(("a", {"type": "fixed", "name": "F", "size": 4, "logicalType": "decimal", "precision": 9})),
        "/fields/0/type",
    ),
    _avro(
        "LOGICAL_TYPE",
        record({"name": "a", "type": "long", "logicalType": "timestamp-millis"}),
        record({"name": "a", "type": _MILLIS}),
        "/fields/0",
    ),
    _avro(
        "LOGICAL_TYPE",
        record(("a", {"type": "array", "items": "int", "logicalType": "date"})),
        record(("a", {"type": "array", "items": logical("int", "date")})),
        "/fields/0/type",
    ),
    _avro(
        "LOGICAL_TYPE_CHANGED",
        record(("a", "int")),
        record(("a", ["null", logical("int", "date")])),
        "/fields/0",
        record(("a", logical("int", "date"))),
    ),
    _avro("NAMESPACE_REQUIRED", record(namespace=""), record(), "/"),
    _avro("NAMING", record(name="order_line"), record(name="OrderLine"), "/"),
    _avro(
        "NAMING",
        record(("Order_Id", "int")),
        record(("order_id", "int"), ("orderId", "int")),
        "/fields/0",
    ),
    _avro("NAMING", record(("e", enum("a"))), record(("e", enum("A"))), "/fields/0/type/symbols/0"),
    _avro(
        "NULLABLE_DEFAULT",
        record(("a", ["string", "null"])),
        record({"name": "a", "type": ["null", "string"], "default": None}, ("b", ["string", "int"])),
        "/fields/0",
    ),
    _avro("RECURSIVE_TYPE", record(("next", ["null", "R"])), record(("next", ["null", record(name="S")])), "/"),
    _avro(
        "RECURSIVE_TYPE",
        record(("s", {"type": "array", "items": record(("back", {"type": "map", "values": "R"}), name="S")})),
        record(("s", record(name="S")), ("again", "S")),
        "/",
    ),
    _avro(
        "TIMESTAMP_UNIT",
        record(("t", ["null", {"type": "array", "items": _MICROS}])),
        record(("t", ["null", {"type": "array", "items": _MILLIS}])),
        "/fields/0",
        record(("t", ["null", {"type": "array", "items": _MILLIS}])),
    ),
    _avro("UNBOUNDED_RECURSION", record(("next", "R")), record(("next", {"type": "array", "items": "R"})), "/"),
    _avro(
        "UNKNOWN_KEYWORD",
        record({"name": "a", "type": "int", "defualt": 1}),
        record({"name": "a", "type": "int", "pii": True}),
        "/fields/0",
    ),
]


def _proto(rule: str, bad: str, good: str, path: str, before: str | None = None, head: str = "") -> Case:
    def text(body: str) -> bytes:
        return (body if "syntax" in body else f"{head or _HEAD}\n{body}").encode()

    return Case("protobuf", rule, text(bad), text(good), None if before is None else text(before), path)


_HEAD = 'syntax = "proto3"; package n;'
_PROTO2 = 'syntax = "proto2"; package n;'

PROTOBUF = [
    _proto(
        "CASE_CLASH",
        "message M { optional int32 ab = 1; optional int32 AB = 2; }",
        "message M { optional int32 ab = 1; optional int32 a_b_c = 2; }",
        "n.M",
        head=_PROTO2,
    ),
    _proto("DOC_REQUIRED", "message M {}", "// An order.\nmessage M {}", "n.M"),
    _proto(
        "DOC_REQUIRED",
        "// An order.\nmessage M { int32 a = 1; }",
        "// An order.\nmessage M {\n int32 a = 1;  // How many.\n}",
        "n.M.a",
    ),
    _proto("DOC_REQUIRED", "// stele:lint-ignore NAMING\nenum E { A = 0; }", "// An enum.\nenum E { A = 0; }", "n.E"),
    _proto("DOC_REQUIRED", "service S {}", "/* A service. */ service S {}", "n.S"),
    _proto("ENUM_VALUE_PREFIX", "enum MyCase { A = 0; }", "enum MyCase { MY_CASE_A = 0; }", "n.MyCase.A"),
    _proto("ENUM_VALUE_PREFIX", "enum E { A = 0; }", "message M { enum E { A = 0; } }", "n.E.A"),
    _proto("ENUM_ZERO_UNSPECIFIED", "enum E { E_RED = 0; }", "enum E { E_UNSPECIFIED = 0; }", "n.E.E_RED"),
    _proto("NAMESPACE_REQUIRED", 'syntax = "proto3"; message M {}', "message M {}", "default.proto"),
    _proto("NAMING", "message order_line {}", "message OrderLine {}", "n.order_line"),
    _proto("NAMING", "message M { int32 orderId = 1; }", "message M { int32 order_id = 1; }", "n.M.orderId"),
    _proto("NAMING", "message M { oneof Kind { int32 a = 1; } }", "message M { optional int32 a = 1; }", "n.M.Kind"),
    _proto("NAMING", "enum E { e_red = 0; }", "enum E { E_RED = 0; }", "n.E.e_red"),
    _proto(
        "NAMING",
        "message M {} service S { rpc get(M) returns (M); }",
        "message M {} service S { rpc Get(M) returns (M); }",
        "n.S.get",
    ),
    _proto("NAMING", 'syntax = "proto3"; package Big.Name;', 'syntax = "proto3"; package big.name;', "Big.Name"),
    _proto(
        "NUMBER_REUSED",
        "message M { string b = 1; }",
        "message M { int32 renamed = 1; }",
        "n.M.b",
        "message M { int32 a = 1; }",
    ),
    _proto(
        "NUMBER_REUSED",
        "message M { string b = 9; }",
        "message M { reserved 9; string b = 8; }",
        "n.M.b",
        "message M { reserved 9; }",
    ),
    _proto(
        "NUMBER_REUSED",
        "enum E { A = 0; C = 1; }",
        "enum E { option allow_alias = true; A = 0; C = 1; B = 1; }",
        "n.E.C",
        "enum E { A = 0; B = 1; }",
    ),
    _proto("RECURSIVE_TYPE", "message M { repeated M m = 1; }", "message M { repeated N n = 1; } message N {}", "n.M"),
    _proto(
        "RECURSIVE_TYPE",
        "message M { map<string, N> n = 1; message N { M m = 1; } }",
        "message M { map<string, N> n = 1; message N {} }",
        "n.M",
    ),
    _proto(
        "REQUIRED_FIELD",
        "message M { required int32 a = 1; }",
        "message M { optional int32 a = 1; }",
        "n.M.a",
        head=_PROTO2,
    ),
    _proto(
        "REQUIRED_FIELD",
        'edition = "2023"; package n; message M { int32 a = 1 [features.field_presence = LEGACY_REQUIRED]; } // syntax',
        'edition = "2023"; package n; message M { int32 a = 1; } // syntax',
        "n.M.a",
    ),
    _proto(
        "RESERVED_ON_DELETE",
        "message M { reserved 1; }",
        'message M { reserved 1; reserved "a"; }',
        "n.M.a",
        "message M { int32 a = 1; }",
    ),
    _proto(
        "RESERVED_ON_DELETE",
        'enum E { A = 0; reserved "B"; }',
        'enum E { A = 0; reserved 1; reserved "B"; }',
        "n.E.B",
        "enum E { A = 0; B = 1; }",
    ),
    _proto(
        "RESERVED_ON_DELETE", "message M {}", "message M { reserved 5 to 9; }", "n.M", "message M { reserved 5 to 7; }"
    ),
    _proto(
        "UNBOUNDED_RECURSION",
        "message M { required M m = 1; }",
        "message M { optional M m = 1; }",
        "n.M",
        head=_PROTO2,
    ),
    _proto(
        "UNUSED_IMPORT",
        'import "google/protobuf/timestamp.proto"; message M {}',
        'import "google/protobuf/timestamp.proto"; message M { map<string, google.protobuf.Timestamp> t = 1; }',
        "google/protobuf/timestamp.proto",
    ),
]


def _json(rule: str, bad: Any, good: Any, path: str, before: Any = None, draft: str | None = None) -> Case:
    def text(value: Any) -> bytes:
        return json.dumps(value if draft is None else {"$schema": draft, **value}).encode()

    return Case("json", rule, text(bad), text(good), None if before is None else text(before), path)


_NEW = "https://json-schema.org/draft/2020-12/schema"
_OLD = "http://json-schema.org/draft-07/schema#"


def obj(**properties: Any) -> dict[str, Any]:
    """A JSON Schema of an object."""
    return {"type": "object", "properties": properties}


JSON = [
    _json("CASE_CLASH", obj(a=True, A=True), obj(a=True, b=True), "#"),
    _json("CONTENT_DECLARED", obj(a=True), {**obj(a=True), "additionalProperties": True}, "#"),
    _json("CONTENT_DECLARED", {"items": obj()}, {"allOf": [obj(a=True)]}, "#/items", draft=_NEW),
    _json("DEFAULT_FITS", {"type": "integer", "default": 1.5}, {"type": "integer", "default": 2.0}, "#"),
    _json("DEFAULT_FITS", {"enum": ["a"], "default": "b"}, {"enum": ["a", None], "default": None}, "#"),
    _json("DOC_REQUIRED", obj(), {**obj(), "title": "An order"}, "#"),
    _json(
        "DOC_REQUIRED",
        {"title": "T", **obj(a={"type": "string"})},
        {"title": "T", "$defs": {"a": {"description": "d"}}, **obj(a={"$ref": "#/$defs/a"})},
        "#/properties/a",
    ),
    _json("DRAFT_DECLARED", {"type": "string"}, {"$schema": _OLD, "type": "string"}, "#"),
    _json("DRAFT_DECLARED", {"$schema": "urn:x", "type": "string"}, {"$schema": _NEW, "type": "string"}, "#"),
    _json(
        "FIELD_DEFAULT",
        {**obj(a={"type": "string"}), "required": ["a"]},
        {**obj(a={"type": "string", "default": ""}), "required": ["a"]},
        "#/properties/a",
        obj(a={"type": "string"}),
    ),
    _json("FORMAT_KNOWN", {"type": "string", "format": "data-time"}, {"type": "string", "format": "date-time"}, "#"),
    _json("FORMAT_KNOWN", {"format": "uuid", "$schema": _OLD}, {"format": "uuid", "$schema": _NEW}, "#"),
    _json("NAMING", obj(**{"Order-Id": {}}), obj(orderId={}, order_id={}, _id={}), "#/properties/Order-Id"),
    _json("PATTERN_ANCHORED", {"type": "string", "pattern": "[a-z]+"}, {"type": "string", "pattern": "^[a-z]+$"}, "#"),
    _json("PATTERN_ANCHORED", {"type": "string", "pattern": "^a\\$"}, {"type": "string", "pattern": "^a\\\\$"}, "#"),
    _json("RECURSIVE_TYPE", obj(next={"$ref": "#"}), obj(next={"type": "string"}), "#"),
    _json(
        "RECURSIVE_TYPE",
        {"$defs": {"a": obj(x={"$ref": "#/$defs/b"}), "b": {"items": {"$ref": "#/$defs/a"}}}, "$ref": "#/$defs/a"},
        {"$defs": {"a": obj(x={"$ref": "#/$defs/b"}), "b": {}}, "$ref": "#/$defs/a"},
        "#/$defs/a",
        draft=_NEW,
    ),
    _json(
        "REF_SIBLINGS",
        {"definitions": {"a": {}}, **obj(a={"$ref": "#/definitions/a", "maxLength": 3})},
        {"definitions": {"a": {}}, **obj(a={"$ref": "#/definitions/a", "description": "d"})},
        "#/properties/a",
        draft=_OLD,
    ),
    _json(
        "REQUIRED_UNDEFINED",
        {**obj(userName=True), "required": ["userNam"]},
        {**obj(userName=True), "required": ["userName"]},
        "#",
    ),
    _json(
        "REQUIRED_UNDEFINED",
        {**obj(), "required": ["a"], "additionalProperties": False},
        {"anyOf": [{"required": ["a"]}, {"required": ["b"]}]},
        "#",
    ),
    _json("TYPE_DECLARED", {"minLength": 3}, {"type": "string", "minLength": 3}, "#"),
    _json("TYPE_DECLARED", obj(a={"description": "d"}), obj(a=True), "#/properties/a"),
    _json(
        "UNBOUNDED_RECURSION",
        {**obj(next={"$ref": "#"}), "required": ["next"]},
        {**obj(next={"anyOf": [{"type": "null"}, {"$ref": "#"}]}), "required": ["next"]},
        "#",
    ),
    _json("UNKNOWN_KEYWORD", {"requried": []}, {"required": [], "x-mine": 1, "connect.name": "n"}, "#"),
    _json(
        "UNKNOWN_KEYWORD", {"dependentRequired": {}, "$schema": _OLD}, {"dependentRequired": {}, "$schema": _NEW}, "#"
    ),
    _json(
        "UNUSED_DEFINITION",
        {"$defs": {"a": {}, "b": {"$ref": "#/$defs/b"}}, "$ref": "#/$defs/a"},
        {"$defs": {"a": {"properties": {"c": {}}}}, "$ref": "#/$defs/a/properties/c"},
        "#/$defs/b",
        draft=_NEW,
    ),
    _json(
        "UNUSED_DEFINITION",
        {"$defs": {"a": {"type": "string"}}, "type": "string"},
        {"$defs": {"a": {"type": "string"}}, "title": "A library"},
        "#/$defs/a",
        draft=_NEW,
    ),
]


def _thrift(rule: str, bad: str, good: str, path: str, before: str | None = None) -> Case:
    texts = [text.encode() for text in (bad, good)]
    return Case("thrift", rule, *texts, None if before is None else before.encode(), path)


THRIFT = [
    _thrift("CASE_CLASH", "struct S { 1: i32 ab; 2: i32 aB }", "struct S { 1: i32 ab }", "S"),
    _thrift("DOC_REQUIRED", "struct S {}", "/** An order. */ struct S {}", "S"),
    _thrift("DOC_REQUIRED", "/** S */ struct S { 1: i32 a }", "/** S */ struct S { /** A. */ 1: i32 a }", "S.a"),
    _thrift("DOC_REQUIRED", "/** V */ service V { void f() }", "/** V */ service V { /** F. */ void f() }", "V.f"),
    _thrift("ENUM_VALUE_EXPLICIT", "enum E { A }", "enum E { A = 1 }", "E.A"),
    _thrift("ENUM_ZERO_UNSPECIFIED", "enum E { RED = 0 }", "enum E { UNKNOWN = 0, RED = 1 }", "E.RED"),
    _thrift("FIELD_ID_EXPLICIT", "struct S { i32 a }", "struct S { 1: i32 a }", "S.a"),
    _thrift("FIELD_ID_EXPLICIT", "service V { void f(i32 a) }", "service V { void f(1: i32 a) }", "V.f.a"),
    _thrift("NAMESPACE_REQUIRED", "struct S {}", "namespace * n\nstruct S {}", ""),
    _thrift("NAMING", "struct order_line {}", "struct OrderLine {}", "order_line"),
    _thrift("NAMING", "struct S { 1: i32 Bad }", "struct S { 1: i32 fine, 2: i32 so_is_this }", "S.Bad"),
    _thrift("NAMING", "enum E { red = 1 }", "enum E { RED = 1 }", "E.red"),
    _thrift("NAMING", "const i32 limit = 1", "const i32 LIMIT = 1", "limit"),
    _thrift("NAMING", "service V { void Do_It() }", "service V { void doIt() }", "V.Do_It"),
    _thrift("NUMBER_REUSED", "struct S { 1: string b }", "struct S { 1: i32 b }", "S.b", "struct S { 1: i32 a }"),
    _thrift("NUMBER_REUSED", "enum E { B = 1 }", "enum E { A = 1, B = 2 }", "E.B", "enum E { A = 1 }"),
    _thrift("RECURSIVE_TYPE", "struct S { 1: list<S> s }", "struct S { 1: list<i32> s }", "S"),
    _thrift(
        "RECURSIVE_TYPE",
        "typedef map<i32, S> Ss\nstruct S { 1: optional Ss s }",
        "typedef map<i32, T> Ts\nstruct T {}\nstruct S { 1: optional Ts s }",
        "S",
    ),
    _thrift(
        "REQUIREDNESS_DECLARED", "struct S { 1: i32 a }", "struct S { 1: optional i32 a } union U { 1: i32 a }", "S.a"
    ),
    _thrift("REQUIRED_FIELD", "struct S { 1: required i32 a }", "struct S { 1: optional i32 a }", "S.a"),
    _thrift("UNBOUNDED_RECURSION", "struct S { 1: required S s }", "struct S { 1: optional S s }", "S"),
    _thrift(
        "UNUSED_IMPORT",
        'include "shared.thrift"\n// shared.Money\nstruct S {}',
        'include "shared.thrift"\nstruct S { 1: shared.Money m }',
        "shared.thrift",
    ),
]


def _xsd(rule: str, bad: str, good: str, path: str, before: str | None = None, head: str = "") -> Case:
    def text(body: str) -> bytes:
        return (
            f'<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema" {head or _QUALIFIED}>{body}</xs:schema>'.encode()
        )

    return Case("xsd", rule, text(bad), text(good), None if before is None else text(before), path)


_QUALIFIED = 'targetNamespace="urn:n" xmlns="urn:n" elementFormDefault="qualified"'
_NOTE = "<xs:annotation><xs:documentation>An order.</xs:documentation></xs:annotation>"


def _type(content: str, name: str = "Order") -> str:
    return f'<xs:complexType name="{name}"><xs:sequence>{content}</xs:sequence></xs:complexType>'


XSD = [
    _xsd("DOC_REQUIRED", _type(""), f'<xs:complexType name="Order">{_NOTE}</xs:complexType>', "/Order"),
    _xsd(
        "DOC_REQUIRED",
        '<xs:element name="order" type="xs:string"/>',
        f'<xs:element name="order" type="xs:string">{_NOTE}</xs:element>',
        "/order",
    ),
    _xsd(
        "ELEMENT_FORM",
        _type('<xs:element name="a" type="xs:string"/>'),
        '<xs:element name="a" type="xs:string"/>',
        "/",
        head='targetNamespace="urn:n"',
    ),
    _xsd(
        "FIELD_DEFAULT",
        _type('<xs:element name="a" type="xs:string"/>'),
        _type('<xs:element name="a" type="xs:string" minOccurs="0"/>'),
        "/Order/a",
        _type(""),
    ),
    _xsd(
        "NAMESPACE_REQUIRED",
        '<xs:element name="a" type="xs:string"/>',
        '<xs:element name="a" type="xs:string"/>',
        "/",
    )._replace(bad=b'<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema"/>'),
    _xsd("NAMING", _type("", "order_type"), _type("", "OrderType"), "/order_type"),
    _xsd("NAMING", '<xs:element name="a-b" type="xs:string"/>', '<xs:element name="aB" type="xs:string"/>', "/a-b"),
    _xsd(
        "RECURSIVE_TYPE",
        _type('<xs:element name="a" type="Order" minOccurs="0"/>'),
        _type('<xs:element name="a" type="xs:string"/>'),
        "/Order",
    ),
    _xsd("TYPE_DECLARED", '<xs:element name="a"/>', '<xs:element name="a" type="xs:string"/>', "/a"),
    _xsd(
        "UNBOUNDED_RECURSION",
        _type('<xs:element name="a" type="Order"/>'),
        _type('<xs:choice><xs:element name="a" type="Order"/><xs:element name="b" type="xs:string"/></xs:choice>'),
        "/Order",
    ),
    _xsd(
        "WILDCARD_LIMITED",
        _type('<xs:any maxOccurs="unbounded" processContents="skip"/>'),
        _type('<xs:any maxOccurs="unbounded" namespace="##other" processContents="lax"/>'),
        "/Order",
    ),
]

CASES = [*AVRO, *PROTOBUF, *JSON, *THRIFT, *XSD]
REFERENCES = {"thrift": {"shared.thrift": b"struct Money {}"}}
