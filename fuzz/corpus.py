"""First inputs of fuzzing: the documents of the conformance cases, in pairs, and some that import others."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from fuzz.parts import Parts

CASES: Final = Path(__file__).parent.parent / "tests" / "conformance" / "formats" / "cases"

_IMPORTING: Final = {
    "avro": [
        Parts(
            b'{"type":"record","name":"a.R","fields":[{"name":"x","type":"ref.T","default":"A"}]}',
            b'{"type":"record","name":"a.R","fields":[{"name":"x","type":["null","ref.T"],"aliases":["y"]}]}',
            b'{"type":"enum","name":"T","namespace":"ref","symbols":["A","B"],"default":"B"}',
            b"\x00\x02\x04",
        ),
        Parts(
            b'{"type":"record","name":"L","fields":[{"name":"v","type":{"type":"bytes","logicalType":"decimal",'
            b'"precision":4,"scale":2}},{"name":"next","type":["null","L"],"default":null},{"name":"m","type":'
            b'{"type":"map","values":{"type":"fixed","name":"F","size":3}}}]}'
        ),
    ],
    "protobuf": [
        Parts(
            b'syntax = "proto2"; package p; import "ref"; import "google/protobuf/timestamp.proto";\n'
            b"message M { required ref.T t = 1; repeated group G = 2 { optional int32 x = 1 [default = 7]; }\n"
            b"  map<string, google.protobuf.Timestamp> at = 4; extensions 100 to 199; reserved 5, 9 to 11; }\n"
            b'extend M { optional string e = 100 [default = "\\x41"]; }\nservice S { rpc C (M) returns (stream M); }\n',
            b'edition = "2023"; message M { int32 x = 1 [features.field_presence = IMPLICIT]; oneof o { M m = 2; } }',
            b'syntax = "proto3"; package ref; message T { enum E { A = 0; B = 1; } E e = 1; optional double d = 2; }',
            b"\x0a\x02\x08\x01",
        )
    ],
    "json": [
        Parts(
            b'{"$schema":"http://json-schema.org/draft-07/schema#","$id":"http://e/a","type":"object","properties":'
            b'{"r":{"$ref":"ref"},"s":{"$ref":"#/definitions/s"}},"definitions":{"s":{"type":"string","pattern":'
            b'"^(a|b)*$","maxLength":9}},"required":["r"],"additionalProperties":false}',
            b'{"$schema":"https://json-schema.org/draft/2020-12/schema","$defs":{"n":{"$dynamicAnchor":"n","type":'
            b'["object","null"],"properties":{"next":{"$dynamicRef":"#n"}}}},"$ref":"#/$defs/n",'
            b'"unevaluatedProperties":false,"if":{"minProperties":1},"then":{"oneOf":[{"const":1},{"enum":[1,"a"]}]}}',
            b'{"type":["integer","null"],"multipleOf":0.5,"minimum":-3,"not":{"const":2}}',
            b'{"r":1,"s":"ab"}',
        )
    ],
    "thrift": [
        Parts(
            b'namespace py a.b\ninclude "ref"\nconst map<string, i32> C = {"a": 1, \'b\': 0x1F}\n'
            b"typedef list<set<ref.T>> TT (k = 'v')\nunion U { 1: i64 a; 2: binary b }\n"
            b"exception X { 1: required string why = 'no' }\n/** doc */\nservice S extends ref.B {\n"
            b"  oneway void ping(), TT get(1: U u, 2: optional double d = 1e3) throws (1: X x) }\n",
            b"struct Q { -1: i32 a, i32 b = 2, 3: optional Q q, 4: map<i8, list<uuid>> m (a.b = 'c') } senum Y { 'A' }",
            b"enum T { A = 1, B, C = 0x10 }\nstruct P { 1: required T t = T.B }\nservice B { void x() }",
            b"\x08\x00\x01\x00\x00\x00\x02\x00",
        )
    ],
    "xsd": [
        Parts(
            b'<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema" xmlns="u:a" targetNamespace="u:a">'
            b'<xs:import namespace="u:r" schemaLocation="ref"/><xs:element name="r" type="T"/>'
            b'<xs:complexType name="T"><xs:choice minOccurs="0" maxOccurs="unbounded"><xs:element name="a" type="S"/>'
            b'<xs:element ref="r"/><xs:any namespace="##other" processContents="lax"/></xs:choice>'
            b'<xs:attribute name="k" use="required" type="xs:ID"/></xs:complexType><xs:simpleType name="S">'
            b'<xs:restriction base="xs:token"><xs:pattern value="[a-z]{1,3}(x|\\d)*"/><xs:maxLength value="7"/>'
            b"</xs:restriction></xs:simpleType></xs:schema>",
            b'<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema"><xs:group name="g"><xs:sequence>'
            b'<xs:element name="x" type="xs:decimal" nillable="true"/></xs:sequence></xs:group>'
            b'<xs:element name="r"><xs:complexType mixed="true"><xs:group ref="g" maxOccurs="3"/>'
            b'<xs:anyAttribute/></xs:complexType><xs:unique name="n"><xs:selector xpath="x"/><xs:field xpath="."/>'
            b"</xs:unique></xs:element></xs:schema>",
            b'<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema" targetNamespace="u:r">'
            b'<xs:attribute name="q" type="xs:date"/></xs:schema>',
            b'<r xmlns="u:a" k="i"><a>abx</a></r>',
        )
    ],
}


def seeds(format_name: str) -> list[bytes]:
    """Return unique inputs for the parser of a format, the same on every machine."""
    found: dict[bytes, None] = {parts.join(): None for parts in _IMPORTING[format_name]}
    for case in _read_cases():
        if case["format"] == format_name:
            found[_case_parts(case).join()] = None
    return list(found)


def _read_cases() -> Iterator[dict[str, Any]]:
    for file in sorted(CASES.glob("*.jsonl")):
        for line in file.read_text(encoding="ascii").splitlines():
            yield json.loads(line)


def _case_parts(case: dict[str, Any]) -> Parts:
    if "schema" in case:
        return Parts(case["schema"].encode())
    old = case["history"][-1] if "old" not in case else case["old"]
    return Parts(case["new"].encode(), old.encode(), b"", str(case.get("witness") or "").encode())
