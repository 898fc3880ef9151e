"""Outlines of the built-in languages, and the declarations that paths of findings lead to."""

from __future__ import annotations

import json
from typing import Any

import pytest

from stele.formats.capabilities import TRUNCATED, HasLocator, HasOutline, OutlineLocation, OutlineNode
from stele.formats.jsonschema.outline import MAX_STEPS
from stele.formats.outline_builder import MAX_CHARACTERS, MAX_NODES, MAX_TEXT, OutlineBuilder, shorten_with_digest
from stele.formats.registry import get_format


def outline_of(format_name: str, text: str) -> dict[str, OutlineNode]:
    """The outline of a text, by path."""
    fmt = get_format(format_name)
    assert isinstance(fmt, HasOutline)
    return {node.path: node for node in fmt.outline(fmt.parse(text.encode(), {}))}


def locate_path(format_name: str, text: str, path: str) -> OutlineLocation | None:
    """Return the location that a finding's path leads to."""
    fmt = get_format(format_name)
    assert isinstance(fmt, HasLocator)
    return fmt.locator(fmt.parse(text.encode(), {}))(path)


AVRO = json.dumps(
    {
        "type": "record",
        "name": "a.Order",
        "aliases": ["a.Old"],
        "doc": "An order.",
        "owner": {"team": "x"},
        "fields": [
            {
                "name": "items",
                "type": [
                    "null",
                    {
                        "type": "array",
                        "items": {
                            "type": "record",
                            "name": "Item",
                            "fields": [{"name": "size", "type": {"type": "fixed", "name": "S", "size": 4}}],
                        },
                    },
                ],
                "default": None,
                "aliases": ["lines"],
                "order": "ignore",
                "tag": 1,
            },
            {
                "name": "price",
                "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2, "u": "€"},
            },
            {"name": "state", "type": {"type": "enum", "name": "State", "symbols": ["NEW"], "default": "NEW"}},
            {"name": "next", "type": ["null", "Order"]},
        ],
    }
)

PROTO = """edition = "2023";
package p;
import public "google/type/date.proto";
option java_package = "x";
// A message.
message M {
  reserved 4 to 6, 9;
  reserved gone;
  extensions 100 to 199;
  int32 a = 1 [default = 3, json_name = "A"];
  repeated google.type.Date days = 2 [deprecated = true];
  map<string, M> more = 3;
  oneof one { M x = 10; string y = 11; }
  enum E { option allow_alias = true; ZERO = 0; NULL = 0; ONE = 1; }
}
extend M { string note = 100; }
service S { rpc Call(stream M) returns (google.type.Date); }
"""

JSON = """{
  "$schema": "https://json-schema.org/draft/2020-12/schema", "type": ["object", "null"], "required": ["b", "a"],
  "properties": {"a/b": {"$ref": "#/$defs/d"}, "c": false}, "dependentRequired": {"a": ["b"]},
  "oneOf": [{"type": "string"}, {"title": "x", "minimum": 1.0}], "x-own": {"b": 1, "a": 2},
  "prefixItems": [true], "$defs": {"d": {"properties": {"e": {"maximum": 3}}}}
}"""

THRIFT = """namespace py shop
/** An id. */ typedef i32 Id (unit = "one")
const list<i32> K = [1, 2]
enum E { A = 1, B = 1, C = 3 }
exception X { 1: string why }
union U { 1: i32 n }
struct S { 1: required Id id = 3, 2: map<string, U> us (k = "v") }
service P { void ping() }
service V extends P { oneway void f(1: S s), i32 g() throws (1: X x) }
"""

XSD = """<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema" xmlns:t="urn:t" targetNamespace="urn:t">
  <xs:import namespace="http://www.w3.org/XML/1998/namespace"/>
  <xs:element name="order" type="t:Order"><xs:annotation><xs:documentation>An
    order.</xs:documentation></xs:annotation></xs:element>
  <xs:complexType name="Base"><xs:sequence><xs:element name="id" type="xs:int"/></xs:sequence></xs:complexType>
  <xs:complexType name="Order"><xs:complexContent><xs:extension base="t:Base"><xs:sequence>
    <xs:choice maxOccurs="2"><xs:element name="a"><xs:simpleType><xs:restriction base="xs:string">
      <xs:maxLength value="4"/><xs:pattern value="x+"/></xs:restriction></xs:simpleType></xs:element>
      <xs:any processContents="lax"/></xs:choice>
    <xs:group ref="t:G" minOccurs="0"/>
  </xs:sequence><xs:attribute name="k" use="required" type="t:K"/></xs:extension></xs:complexContent></xs:complexType>
  <xs:group name="G"><xs:sequence><xs:element name="g" type="t:K" nillable="true"/></xs:sequence></xs:group>
  <xs:simpleType name="K"><xs:restriction base="xs:string"><xs:enumeration value="A"/></xs:restriction></xs:simpleType>
  <xs:simpleType name="L"><xs:list itemType="t:K"/></xs:simpleType>
</xs:schema>"""

TEXTS = {"avro": AVRO, "protobuf": PROTO, "json": JSON, "thrift": THRIFT, "xsd": XSD}

SAID: list[tuple[str, str, str, dict[str, str]]] = [
    ("avro", "a.Order", "record", {"doc": "An order.", "aliases": "a.Old", "owner": '{"team":"x"}'}),
    (
        "avro",
        "a.Order.items",
        "field",
        {"type": "null | array<a.Item>", "default": "null", "order": "ignore", "aliases": "lines", "tag": "1"},
    ),
    ("avro", "a.Order.price", "field", {"type": "bytes decimal(9,2)", "type u": '"€"'}),
    ("avro", "a.State", "enum", {"default": "NEW"}),
    ("avro", "a.State.NEW", "symbol", {}),
    ("avro", "a.S", "fixed", {"size": "4"}),
    ("protobuf", "/", "file", {"package": "p", "syntax": "editions", "edition": "2023", "option java_package": '"x"'}),
    ("protobuf", "import google/type/date.proto", "import", {"modifier": "public"}),
    (
        "protobuf",
        "p.M",
        "message",
        {
            "reserved numbers": "4 to 6, 9",
            "reserved names": "gone",
            "extensions": "100 to 199",
            "comment": "A message.",
        },
    ),
    ("protobuf", "p.M.a", "field", {"type": "int32", "number": "1", "default": "3", "json_name": "A"}),
    (
        "protobuf",
        "p.M.days",
        "field",
        {"type": "google.type.Date", "label": "repeated", "number": "2", "option deprecated": "true"},
    ),
    ("protobuf", "p.M.more", "field", {"type": "map<string, M>", "number": "3"}),
    ("protobuf", "p.M.one", "oneof", {}),
    ("protobuf", "p.M.x", "field", {"type": "M", "oneof": "one", "number": "10"}),
    ("protobuf", "p.M.E", "enum", {"option allow_alias": "true"}),
    ("protobuf", "p.M.E.NULL", "enum value", {"number": "0"}),
    ("protobuf", "p.note", "extension", {"extendee": "M", "type": "string", "number": "100"}),
    ("protobuf", "p.S.Call", "method", {"request": "stream M", "response": "google.type.Date"}),
    (
        "json",
        "#",
        "schema",
        {
            "$schema": '"https://json-schema.org/draft/2020-12/schema"',
            "type": "null, object",
            "required": "a, b",
            "dependentRequired": '{"a":["b"]}',
            "x-own": '{"a":2,"b":1}',
        },
    ),
    ("json", "#/properties/a~1b", "property", {"$ref": '"#/$defs/d"'}),
    ("json", "#/properties/c", "property", {"schema": "false"}),
    ("json", "#/oneOf/1", "branch", {"title": '"x"', "minimum": "1.0"}),
    ("json", "#/prefixItems/0", "item", {"schema": "true"}),
    ("json", "#/$defs/d/properties/e", "property", {"maximum": "3"}),
    ("thrift", "namespace py", "namespace", {"name": "shop"}),
    ("thrift", "Id", "typedef", {"type": "i32", "annotation unit": "one", "doc": "An id."}),
    ("thrift", "K", "const", {"type": "list<i32>", "value": "[1, 2]"}),
    ("thrift", "E.C", "enum value", {"number": "3"}),
    ("thrift", "X", "exception", {}),
    ("thrift", "U.n", "field", {"type": "i32", "id": "1"}),
    ("thrift", "S.id", "field", {"type": "Id", "requiredness": "required", "default": "3", "id": "1"}),
    ("thrift", "S.us", "field", {"type": "map<string, U>", "id": "2", "annotation k": "v"}),
    ("thrift", "V", "service", {"extends": "P"}),
    ("thrift", "V.f", "function", {"returns": "void", "oneway": "yes"}),
    ("thrift", "V.g.x", "exception", {"type": "X", "id": "1"}),
    ("xsd", "/", "schema", {"targetNamespace": "urn:t"}),
    ("xsd", "/order", "element", {"type": "Order", "documentation": "An order."}),
    ("xsd", "/type(Order)", "complexType", {"derivation": "extension", "base": "Base", "content": "sequence"}),
    ("xsd", "/type(Order)/choice(1)", "model group", {"maxOccurs": "2"}),
    (
        "xsd",
        "/type(Order)/a",
        "element",
        {"in": "choice(1)", "derivation": "restriction", "base": "xs:string", "maxLength": "4", "pattern": "x+"},
    ),
    ("xsd", "/type(Order)/any(1)", "any", {"in": "choice(1)", "processContents": "lax"}),
    ("xsd", "/type(Order)/@k", "attribute", {"type": "K", "use": "required"}),
    ("xsd", "/type(Order)/group(G)", "group", {"ref": "G", "minOccurs": "0"}),
    ("xsd", "/group(G)/g", "element", {"type": "K", "nillable": "true"}),
    ("xsd", "/type(K)/value(A)", "enumeration", {"value": "A"}),
    ("xsd", "/type(L)", "simpleType", {"variety": "list", "itemType": "K"}),
]


@pytest.mark.parametrize(("format_name", "path", "kind", "attributes"), SAID, ids=lambda value: str(value)[:40])
def test_declarations(format_name: str, path: str, kind: str, attributes: dict[str, str]) -> None:
    """Each kind of declaration is listed at its path with all its attributes."""
    node = outline_of(format_name, TEXTS[format_name])[path]
    assert (node.kind, dict(node.attributes)) == (kind, attributes)


@pytest.mark.parametrize("format_name", TEXTS)
def test_shape(format_name: str) -> None:
    """Parents come before their children, and the used declarations of the same schema are listed."""
    nodes = outline_of(format_name, TEXTS[format_name])
    seen: set[str] = set()
    for path, node in nodes.items():
        assert node.parent is None or node.parent in seen
        seen.add(path)
    assert any(used in nodes for node in nodes.values() for used in node.uses)


def test_aliases_of_enum_values_have_no_number_of_their_own() -> None:
    """If two enum values share a number, the number identifies neither of them."""
    for format_name, shared, single in (
        ("protobuf", "p.M.E.ZERO", "p.M.E.ONE"),
        ("thrift", "E.A", "E.C"),
    ):
        nodes = outline_of(format_name, TEXTS[format_name])
        assert nodes[shared].identity == ""
        assert nodes[single].identity.startswith("value ")


PLACES: list[tuple[str, str, OutlineLocation | None]] = [
    ("avro", "/", OutlineLocation("a.Order")),
    ("avro", "/name", OutlineLocation("a.Order", "name")),
    ("avro", "/fields/1", OutlineLocation("a.Order.price")),
    ("avro", "/fields/1/type", OutlineLocation("a.Order.price", "type")),
    ("avro", "/fields/0/type/1/items/fields/0/type/size", OutlineLocation("a.S", "size")),
    ("avro", "/fields/3/type/1/fields/2/type/symbols", OutlineLocation("a.State", "symbols")),
    ("avro", "/fields/9", OutlineLocation("a.Order")),
    ("json", "#/", OutlineLocation("#")),
    ("json", "#/required/a", OutlineLocation("#", "required")),
    ("json", "#/properties/a~1b/properties/e/maximum", OutlineLocation("#/$defs/d/properties/e", "maximum")),
    ("json", "#/properties/gone/minimum", OutlineLocation("#", "properties", partial=True)),
    ("json", "other.json#/type", None),
    ("xsd", "/order", OutlineLocation("/order")),
    ("xsd", "/order/id", OutlineLocation("/type(Base)/id")),
    ("xsd", "/order/g", OutlineLocation("/group(G)/g")),
    ("xsd", "/order/@k", OutlineLocation("/type(Order)/@k")),
    ("xsd", "/order/gone", OutlineLocation("/order", partial=True)),
    ("xsd", "/type(K)", OutlineLocation("/type(K)")),
]


@pytest.mark.parametrize(("format_name", "path", "expected"), PLACES)
def test_places(format_name: str, path: str, expected: OutlineLocation | None) -> None:
    """Paths of findings lead to declarations, through names of types, references and groups."""
    assert locate_path(format_name, TEXTS[format_name], path) == expected


# --- limits ---------------------------------------------------------------------------------------------------------


def test_long_texts_still_compare() -> None:
    """A text that is cut keeps its length and a digest, so that texts with different ends differ."""
    one, two = "x" * MAX_TEXT + "1", "x" * MAX_TEXT + "2"
    assert shorten_with_digest("x" * MAX_TEXT) == "x" * MAX_TEXT
    assert shorten_with_digest(one) != shorten_with_digest(two)
    assert len(shorten_with_digest(one * 100)) < MAX_TEXT + 50


def test_paths_are_made_unique() -> None:
    """Two declarations with the same path get different paths."""
    builder = OutlineBuilder()
    assert [builder.add_node("a", "x", {}), builder.add_node("a", "x", {}), builder.add_node("a", "x", {"k": ""})] == [
        "a",
        "a#2",
        "a#3",
    ]
    assert [node.attributes for node in builder.nodes] == [{}, {}, {}]


def test_long_names_end_an_outline() -> None:
    """The total length of paths is limited: the outline is truncated once, with a node for it."""
    builder = OutlineBuilder()
    for _ in builder.until_full(range(100)):
        builder.add_node("x" * (MAX_CHARACTERS // 10), "x", {})
    assert [node.kind for node in builder.nodes].count(TRUNCATED) == 1
    assert builder.nodes[-1].kind == TRUNCATED
    assert len(builder.nodes) < 13


_BIG: dict[str, Any] = {
    "avro": lambda: json.dumps({"type": "enum", "name": "E", "symbols": [f"S{n}" for n in range(MAX_NODES + 1)]}),
    "json": lambda: json.dumps({"properties": {f"p{n}": {} for n in range(MAX_NODES + 1)}}),
    "json, long names": lambda: json.dumps(
        {"properties": {"x" * 500_000: {"properties": {str(n): {} for n in range(999)}}}}
    ),
    "protobuf": lambda: "syntax='proto3'; enum E {" + "".join(f"V{n} = {n};" for n in range(MAX_NODES + 1)) + "}",
    "thrift": lambda: "enum E {" + "".join(f"V{n} = {n}," for n in range(MAX_NODES + 1)) + "}",
}


@pytest.mark.parametrize("name", _BIG)
def test_large_schemas(name: str) -> None:
    """The outline of a schema with too many declarations ends with a node for the truncation."""
    nodes = list(outline_of(name.partition(",")[0], _BIG[name]()).values())
    assert nodes[-1].kind == TRUNCATED
    assert len(nodes) <= MAX_NODES + 1
    assert [node.kind for node in nodes].count(TRUNCATED) == 1


def test_long_paths_lead_nowhere_in_the_end() -> None:
    """References can make paths as long as the schema: a locator stops after a total number of steps."""
    fmt = get_format("json")
    assert isinstance(fmt, HasLocator)
    locate = fmt.locator(fmt.parse(b'{"properties":{"a":{"$ref":"#"}}}', {}))
    path = "#" + "/properties/a" * (MAX_STEPS // 8)
    assert [locate(path) is None for _ in range(6)] == [False, False, False, False, True, True]


def test_deep_schemas() -> None:
    """The deepest nesting that parsers accept does not exhaust the stack."""
    nested: Any = "int"
    for number in range(90):
        nested = {"type": "record", "name": f"R{number}", "fields": [{"name": "f", "type": ["null", nested]}]}
    assert len(outline_of("avro", json.dumps(nested))) == 180
    deep: Any = {}
    for _ in range(90):
        deep = {"properties": {"p": deep}}
    assert len(outline_of("json", json.dumps(deep))) == 91
