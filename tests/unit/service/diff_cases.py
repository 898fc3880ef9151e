"""Pairs of schemas that differ in one or a few things, with the expected changes; for `test_diff`."""

from __future__ import annotations

from typing import NamedTuple

from stele.service.changes import DeclarationChange


class Row(NamedTuple):
    """One change: its kind and element, and whether new still reads old data and old still reads new data."""

    kind: str
    path: str
    what: str
    before: str = ""
    after: str = ""
    backward: bool = True
    forward: bool = True


class Pair(NamedTuple):
    """Two schemas of a format, and the changes from the first to the second; name describes the case."""

    name: str
    format: str
    old: str
    new: str
    rows: list[Row]
    ruleset: str | None = None


def row(change: DeclarationChange) -> Row:
    """Return a change as a row."""
    return Row(
        change.kind.value, change.path, change.what, change.before, change.after, change.backward, change.forward
    )


def _record(fields: str, more: str = "") -> str:
    return f'{{"type":"record","name":"a.R"{more},"fields":[{fields}]}}'


_A = '{"name":"a","type":"int"}'
_B = '{"name":"b","type":"string"}'
_ENUM = '{"name":"e","type":{"type":"enum","name":"E","symbols":%s%s}}'
_DECIMAL = '{"name":"d","type":{"type":"bytes","logicalType":"decimal","precision":%d,"scale":2}}'

AVRO = [
    Pair("field added", "avro", _record(_A), _record(f"{_A},{_B}"), [
        Row("added", "a.R.b", "field", "", "string", backward=False),
    ]),
    Pair("field removed", "avro", _record(f"{_A},{_B}"), _record(_A), [
        Row("removed", "a.R.b", "field", "string", "", forward=False),
    ]),
    Pair("type", "avro", _record(_A), _record('{"name":"a","type":"long"}'), [
        Row("changed", "a.R.a", "type", "int", "long", forward=False),
    ]),
    Pair("default", "avro", _record(_A), _record('{"name":"a","type":"int","default":3}'), [
        Row("changed", "a.R.a", "default", "", "3"),
    ]),
    Pair("doc", "avro", _record(_A), _record(_A, ',"doc":"x"'), [Row("changed", "a.R", "doc", "", "x")]),
    Pair("property", "avro", _record(_A), _record(_A, ',"owner":"me"'), [Row("changed", "a.R", "owner", "", '"me"')]),
    Pair("order", "avro", _record(f"{_A},{_B}"), _record(f"{_B},{_A}"), [
        Row("moved", "a.R", "order", "a, b", "b, a"),
    ]),
    Pair("sort order", "avro", _record(_A), _record('{"name":"a","type":"int","order":"ignore"}'), [
        Row("changed", "a.R.a", "order", "", "ignore"),
    ]),
    Pair("renamed by alias", "avro", _record(_A), _record('{"name":"z","type":"int","aliases":["a"]}'), [
        Row("renamed", "a.R.z", "field", "a", "z", forward=False),
        Row("changed", "a.R.z", "aliases", "", "a"),
    ]),
    Pair("top type renamed", "avro", _record(_A), _record(_A).replace("a.R", "a.S"), [
        Row("renamed", "a.S", "record", "a.R", "a.S", backward=False, forward=False),
    ]),
    Pair("namespace", "avro", _record(_A), _record(_A).replace("a.R", "b.R"), [
        Row("renamed", "b.R", "record", "a.R", "b.R"),
    ]),
    Pair("symbols", "avro", _record(_ENUM % ('["X","Y","Z"]', "")), _record(_ENUM % ('["X"]', "")), [
        Row("removed", "a.E.Y", "symbol", backward=False),
        Row("removed", "a.E.Z", "symbol", backward=False),
    ]),
    Pair("enum default", "avro", _record(_ENUM % ('["X"]', "")), _record(_ENUM % ('["X"]', ',"default":"X"')), [
        Row("changed", "a.E", "default", "", "X"),
    ]),
    Pair("decimal", "avro", _record(_DECIMAL % 4), _record(_DECIMAL % 6), [
        Row("changed", "a.R.d", "type", "bytes decimal(4,2)", "bytes decimal(6,2)"),
    ]),
    Pair(
        "fixed",
        "avro",
        '{"type":"fixed","name":"F","size":4}',
        '{"type":"fixed","name":"F","size":8}',
        [Row("changed", "F", "size", "4", "8", backward=False, forward=False)],
    ),
    Pair("no name", "avro", '["null","int"]', '["null","int","string"]', [
        Row("changed", "/", "type", "null | int", "null | int | string", forward=False),
    ]),
]  # fmt: skip

_PROTO = 'syntax = "proto3"; package p; message M { %s }'

_IMPORT = 'import "google/type/date.proto";'

PROTOBUF = [
    Pair("field added", "protobuf", _PROTO % "int32 a = 1;", _PROTO % "int32 a = 1; string b = 2;", [
        Row("added", "p.M.b", "field", "", "string, number 2"),
    ]),
    Pair("field removed", "protobuf", _PROTO % "int32 a = 1; string b = 2;", _PROTO % "int32 a = 1;", [
        Row("removed", "p.M.b", "field", "string, number 2", "", backward=False),
    ], "buf:WIRE"),
    Pair("field renamed", "protobuf", _PROTO % "int32 a = 1;", _PROTO % "int32 z = 1;", [
        Row("renamed", "p.M.z", "field", "a", "z"),
    ]),
    Pair("field renumbered", "protobuf", _PROTO % "int32 a = 1;", _PROTO % "int32 a = 2;", [
        Row("removed", "p.M.a", "field", "int32, number 1", ""),
        Row("added", "p.M.a", "field", "", "int32, number 2"),
    ]),
    Pair("type", "protobuf", _PROTO % "int32 a = 1;", _PROTO % "string a = 1;", [
        Row("changed", "p.M.a", "type", "int32", "string", backward=False, forward=False),
    ]),
    Pair("label", "protobuf", _PROTO % "int32 a = 1;", _PROTO % "repeated int32 a = 1;", [
        Row("changed", "p.M.a", "label", "", "repeated", backward=False, forward=False),
    ], "buf:WIRE"),
    Pair("oneof", "protobuf", _PROTO % "int32 a = 1;", _PROTO % "oneof o { int32 a = 1; }", [
        Row("added", "p.M.o", "oneof"),
        Row("changed", "p.M.a", "oneof", "", "o"),
    ]),
    Pair("option", "protobuf", _PROTO % "int32 a = 1;", _PROTO % "int32 a = 1 [deprecated = true];", [
        Row("changed", "p.M.a", "option deprecated", "", "true"),
    ]),
    Pair("comment", "protobuf", _PROTO % "int32 a = 1;", _PROTO % "\n// x\nint32 a = 1;", [
        Row("changed", "p.M.a", "comment", "", "x"),
    ]),
    Pair("reserved", "protobuf", _PROTO % "", _PROTO % 'reserved 4, 6 to max; reserved "z";', [
        Row("changed", "p.M", "reserved numbers", "", "4, 6 to max"),
        Row("changed", "p.M", "reserved names", "", "z"),
    ]),
    Pair("enum value", "protobuf", _PROTO % "enum E { A = 0; B = 1; }", _PROTO % "enum E { A = 0; C = 1; D = 2; }", [
        Row("renamed", "p.M.E.C", "enum value", "B", "C"),
        Row("added", "p.M.E.D", "enum value", "", "number 2"),
    ]),
    Pair("package", "protobuf", _PROTO % "M m = 1;", (_PROTO % "M m = 1;").replace("package p", "package q"), [
        Row("changed", "/", "package", "p", "q", backward=False, forward=False),
    ]),
    Pair("message moved", "protobuf", _PROTO % "message N { int32 a = 1; }", _PROTO % "} message N { int32 a = 1; ", [
        Row("moved", "p.N", "message", "p.M.N", "p.N", backward=False, forward=False),
    ]),
    Pair(
        "service",
        "protobuf",
        (_PROTO % "") + "service S { rpc A(M) returns (M); rpc B(M) returns (M); }",
        (_PROTO % "") + "service S { rpc A(M) returns (stream M); }",
        [
            Row("changed", "p.S.A", "response", "M", "stream M", backward=False, forward=False),
            Row("removed", "p.S.B", "method", "request M, response M", "", backward=False),
        ],
        "buf:FILE",
    ),
    Pair("import", "protobuf", _PROTO % "", (_PROTO % "").replace("message", f"{_IMPORT} message"), [
        Row("added", "import google/type/date.proto", "import"),
    ]),
]  # fmt: skip

_OPEN = '{"type":"object","properties":{%s}}'
_CLOSED = '{"type":"object","additionalProperties":false,"properties":{%s}%s}'
_P = '"p":{"type":"integer"}'

JSON = [
    Pair("property added", "json", _CLOSED % (_P, ""), _CLOSED % (_P + ',"q":{"type":"string"}', ""), [
        Row("added", "#/properties/q", "property", "", "string", forward=False),
    ]),
    Pair("property removed", "json", _CLOSED % (_P + ',"q":{"type":"string"}', ""), _CLOSED % (_P, ""), [
        Row("removed", "#/properties/q", "property", "string", "", backward=False),
    ]),
    Pair("type", "json", _OPEN % _P, _OPEN % '"p":{"type":["integer","null"]}', [
        Row("changed", "#/properties/p", "type", "integer", "integer, null", forward=False),
    ]),
    Pair("keyword", "json", _OPEN % _P, _OPEN % '"p":{"type":"integer","minimum":3}', [
        Row("changed", "#/properties/p", "minimum", "", "3", backward=False),
    ]),
    Pair("required", "json", _CLOSED % (_P, ""), _CLOSED % (_P, ',"required":["p"]'), [
        Row("changed", "#", "required", "", "p", backward=False),
    ]),
    Pair("closed", "json", _OPEN % _P, _CLOSED % (_P, ""), [
        Row("added", "#/additionalProperties", "additionalProperties", "", "schema false", backward=False),
    ]),
    Pair("title", "json", _OPEN % _P, _OPEN % '"p":{"type":"integer","title":"P"}', [
        Row("changed", "#/properties/p", "title", "", '"P"'),
    ]),
    Pair(
        "definition used",
        "json",
        '{"$defs":{"d":{"maximum":9}},"properties":{"p":{"$ref":"#/$defs/d"}}}',
        '{"$defs":{"d":{"maximum":5}},"properties":{"p":{"$ref":"#/$defs/d"}}}',
        [Row("changed", "#/$defs/d", "maximum", "9", "5", backward=False)],
        "containment",
    ),
    Pair(
        "definitions moved",
        "json",
        '{"definitions":{"d":{"maximum":9}},"properties":{"p":{"$ref":"#/definitions/d"}}}',
        '{"$defs":{"d":{"maximum":9}},"properties":{"p":{"$ref":"#/$defs/d"}}}',
        [
            Row("moved", "#/$defs/d", "definition", "#/definitions/d", "#/$defs/d"),
        ],
        "containment",
    ),
    Pair("branch", "json", '{"oneOf":[{"type":"string"}]}', '{"oneOf":[{"type":"integer"},{"type":"string"}]}', [
        Row("added", "#/oneOf/0", "branch", "", "integer", forward=False),
    ], "containment"),
    Pair("dependency", "json", _OPEN % _P, (_OPEN % _P)[:-1] + ',"dependencies":{"p":["q"]}}', [
        Row("changed", "#", "dependencies p", "", '["q"]', backward=False),
    ]),
]  # fmt: skip

THRIFT = [
    Pair("field added", "thrift", "struct S {1: i32 a}", "struct S {1: i32 a, 2: required string b}", [
        Row("added", "S.b", "field", "", "string, requiredness required, id 2", backward=False),
    ]),
    Pair("field removed", "thrift", "struct S {1: i32 a, 2: i32 b}", "struct S {1: i32 a}", [
        Row("removed", "S.b", "field", "i32, id 2", "", backward=False),
    ], "thrift-audit"),
    Pair("field renamed", "thrift", "struct S {1: i32 a}", "struct S {1: i32 z}", [
        Row("renamed", "S.z", "field", "a", "z"),
    ]),
    Pair("type", "thrift", "struct S {1: i32 a}", "struct S {1: i64 a}", [
        Row("changed", "S.a", "type", "i32", "i64", backward=False, forward=False),
    ]),
    Pair("requiredness", "thrift", "struct S {1: optional i32 a}", "struct S {1: required i32 a}", [
        Row("changed", "S.a", "requiredness", "optional", "required", backward=False),
    ]),
    Pair("default", "thrift", "struct S {1: i32 a = 1}", "struct S {1: i32 a = 2}", [
        Row("changed", "S.a", "default", "1", "2"),
    ]),
    Pair("annotation", "thrift", "struct S {1: i32 a}", 'struct S {1: i32 a (k = "v")}', [
        Row("changed", "S.a", "annotation k", "", "v"),
    ]),
    Pair("doc", "thrift", "struct S {1: i32 a}", "/** d */ struct S {1: i32 a}", [Row("changed", "S", "doc", "", "d")]),
    Pair("kind", "thrift", "struct S {1: optional i32 a}", "union S {1: i32 a}", [
        Row("changed", "S", "kind", "struct", "union"),
        Row("changed", "S.a", "requiredness", "optional", ""),
    ]),
    Pair("typedef", "thrift", "typedef i32 T struct S {1: T a}", "typedef i64 T struct S {1: T a}", [
        Row("changed", "T", "type", "i32", "i64", backward=False, forward=False),
    ]),
    Pair("enum value", "thrift", "enum E {A = 1, B = 2}", "enum E {A = 1, C = 3}", [
        Row("removed", "E.B", "enum value", "number 2", "", backward=False),
        Row("added", "E.C", "enum value", "", "number 3", forward=False),
    ]),
    Pair("const", "thrift", "const i32 K = 1", "const i32 K = 2", [Row("changed", "K", "value", "1", "2")]),
    Pair("namespace", "thrift", "namespace py a", "namespace py b", [
        Row("changed", "namespace py", "name", "a", "b"),
    ], "thrift-audit"),
    Pair("service", "thrift", "service V {i32 f(1: i32 x)}", "service V {i64 f(1: i32 x, 2: i32 y)}", [
        Row("changed", "V.f", "returns", "i32", "i64", backward=False, forward=False),
        Row("added", "V.f.y", "argument", "", "i32, id 2", forward=False),
    ], "thrift-audit"),
]  # fmt: skip

_XSD = '<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema">%s</xs:schema>'
_R = _XSD % '<xs:element name="r"><xs:complexType><xs:%s>%s</xs:%s>%s</xs:complexType></xs:element>'
_EL = '<xs:element name="%s" type="xs:string"%s/>'
_T = _XSD % (
    '<xs:element name="r" type="T"/>'
    '<xs:simpleType name="T"><xs:restriction base="xs:%s">%s</xs:restriction></xs:simpleType>'
)
_MAX = '<xs:maxInclusive value="%d"/>'
_VALUE = '<xs:enumeration value="%s"/>'
_NOTE = "<xs:annotation><xs:documentation>x</xs:documentation></xs:annotation>"


def _r(inside: str, more: str = "", group: str = "sequence") -> str:
    return _R % (group, inside, group, more)


XSD = [
    Pair("element added", "xsd", _r(_EL % ("a", "")), _r(_EL % ("a", "") + _EL % ("b", "")), [
        Row("added", "/r/b", "element", "", "xs:string", backward=False, forward=False),
    ]),
    Pair("occurrence", "xsd", _r(_EL % ("a", "")), _r(_EL % ("a", ' minOccurs="0"')), [
        Row("changed", "/r/a", "minOccurs", "", "0", forward=False),
    ]),
    Pair("order", "xsd", _r(_EL % ("a", "") + _EL % ("b", "")), _r(_EL % ("b", "") + _EL % ("a", "")), [
        Row("moved", "/r", "order", "a, b", "b, a", backward=False, forward=False),
    ]),
    Pair("group", "xsd", _r(_EL % ("a", "")), _r(_EL % ("a", ""), group="choice"), [
        Row("changed", "/r", "content", "sequence", "choice"),
    ]),
    Pair("attribute", "xsd", _r(""), _r("", '<xs:attribute name="k" type="xs:int" use="required"/>'), [
        Row("added", "/r/@k", "attribute", "", "xs:int, use required", backward=False, forward=False),
    ]),
    Pair("facet of a named type", "xsd", _T % ("int", _MAX % 9), _T % ("int", _MAX % 5), [
        Row("changed", "/type(T)", "maxInclusive", "9", "5", backward=False),
    ]),
    Pair("base", "xsd", _T % ("int", ""), _T % ("string", ""), [
        Row("changed", "/type(T)", "base", "xs:int", "xs:string", forward=False),
    ]),
    Pair("enumeration", "xsd", _T % ("string", _VALUE % "A"), _T % ("string", _VALUE % "A" + _VALUE % "B"), [
        Row("added", "/type(T)/value(B)", "enumeration", "", "value B", forward=False),
    ]),
    Pair("documentation", "xsd", _T % ("string", ""), _T % ("string", _NOTE), [
        Row("changed", "/type(T)", "documentation", "", "x"),
    ]),
    Pair("model group", "xsd", _r(_EL % ("a", "")), _r(f'<xs:choice minOccurs="0">{_EL % ("a", "")}</xs:choice>'), [
        Row("added", "/r/choice(1)", "model group", "", "minOccurs 0"),
        Row("changed", "/r/a", "in", "", "choice(1)", forward=False),
    ]),
    Pair("global element", "xsd", _r(""), _r("").replace("</xs:schema>", _EL % ("q", "") + "</xs:schema>"), [
        Row("added", "/q", "element", "", "xs:string", forward=False),
    ]),
]  # fmt: skip

PAIRS = [*AVRO, *PROTOBUF, *JSON, *THRIFT, *XSD]
