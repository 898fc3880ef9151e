"""CEL expressions in rules: their inputs, their allowed results, and their limits."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, timedelta
from typing import Any
from uuid import UUID

import msgspec
import pytest
from google.protobuf.message import Message
from tests.unit.client.rules.registry import RuledRegistry

from stele.client import Metadata, ResolvedSchema, Rule, RuleSet
from stele.client.serdes import (
    AvroSerializer,
    JsonDeserializer,
    JsonSerializer,
    ProtobufDeserializer,
    ProtobufSerializer,
    RuleFailed,
    Rules,
)
from stele.client.serdes.rules import RecordContext, RuleContext, RuleMode, json_fields
from stele.expressions import cel, cel_functions, cel_values
from stele.formats.registry import get_format

PROTO = """
syntax = "proto3";
package shop;
import "confluent/meta.proto";
import "google/protobuf/timestamp.proto";
import "google/protobuf/duration.proto";
import "google/protobuf/wrappers.proto";
enum Kind { NONE = 0; SOME = 1; }
message Order {
  int64 id = 1;
  string note = 2 [(confluent.field_meta).tags = "PII"];
  optional string more = 3;
  Line first = 4;
  repeated Line lines = 5;
  map<string, int32> counts = 6;
  map<string, Line> by_name = 7;
  google.protobuf.Timestamp at = 8;
  google.protobuf.Duration took = 9;
  google.protobuf.StringValue maybe = 10;
  uint32 number = 11;
  bytes raw = 12;
  Kind kind = 13;
  repeated string words = 14;
  oneof choice { string left = 15; int32 right = 16; }
  double price = 17;
}
message Line { string text = 1 [(confluent.field_meta).tags = "PII"]; }
"""


def run(text: str, kind: str, value: Any, *rules: Rule, metadata: Metadata | None = None) -> bytes:
    """Return what a serializer writes with these domain rules."""
    registry = RuledRegistry()
    more = {"schemaType": kind, "ruleSet": msgspec.to_builtins(RuleSet(domain_rules=list(rules)))}
    if metadata is not None:
        more["metadata"] = msgspec.to_builtins(metadata)
    registry.add("t-value", text, **more)
    kinds = {"AVRO": AvroSerializer, "JSON": JsonSerializer, "PROTOBUF": ProtobufSerializer}
    data: bytes = kinds[kind](registry.client(), use_latest=True, rules=Rules())(value, topic="t")  # type: ignore[operator]
    return data[6 if kind == "PROTOBUF" else 5 :]


def write_value(value: dict[str, Any], *rules: Rule, schema: dict[str, Any] | None = None) -> Any:
    """Return a JSON value after the rules."""
    return json.loads(run(json.dumps(schema or {"type": "object"}), "JSON", value, *rules))


def transform(expr: str, kind: str = "CEL", **more: Any) -> Rule:
    """Return a rule that changes written values."""
    return Rule("r", kind="TRANSFORM", mode="WRITE", type=kind, expr=expr, **more)


def condition(expr: str, kind: str = "CEL", **more: Any) -> Rule:
    """Return a condition for written values."""
    return Rule("r", kind="CONDITION", mode="WRITE", type=kind, expr=expr, **more)


def proto(value: dict[str, Any], *rules: Rule) -> Any:
    """Return the message that rules make of a dict."""
    parsed = get_format("protobuf").parse(PROTO.encode(), {})
    message = parsed.message_class("shop.Order")()
    message.ParseFromString(run(PROTO, "PROTOBUF", value, *rules))
    return message


def holds(value: Any, expr: str) -> bool:
    """Return whether a condition accepts a JSON value."""
    try:
        write_value(value, condition(expr))
    except RuleFailed:
        return False
    return True


# --- values -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        7,
        -(2**63),
        0.5,
        "ü",
        b"\0",
        [1, "a", None],
        {"a": {"b": []}},
        datetime(2026, 2, 3, 4, 5, 6, 789, UTC),
        timedelta(days=-1, microseconds=5),
    ],
)
def test_values_survive_the_way_there_and_back(value: Any) -> None:
    """A value is unchanged, with the same plain type, after a round trip through CEL."""
    back = cel_values.from_cel(cel_values.to_cel(value))
    assert back == value
    assert type(back) is type(value)


def test_values_cel_has_no_type_for() -> None:
    """In CEL, dates are days since 1970 and UUIDs are texts."""
    assert cel_values.from_cel(cel_values.to_cel(date(1970, 1, 3))) == 2
    assert cel_values.from_cel(cel_values.to_cel(UUID(int=1))) == str(UUID(int=1))


# --- messages as a whole ----------------------------------------------------------------------------------------------


def test_conditions_and_guards() -> None:
    """A condition rejects values. It is not evaluated if its guard does not hold."""
    assert holds({"a": 1}, "message.a == 1 && size(message) == 1")
    assert not holds({"a": 1}, "message.a == 2")
    assert not holds({"a": 1}, "message.b == 2")
    assert holds({"a": 1}, "message.a == 2 ; message.b == 2")
    assert not holds({"a": 2}, "message.a == 2 ; message.a == 3")
    assert holds({"a": 1}, " ; message.a == 1")
    assert holds({}, "now > timestamp('2020-01-01T00:00:00Z')")
    assert not holds({}, "")


def test_transformations_replace_the_message() -> None:
    """A member that the result lacks is removed. The value passed to the serializer is not changed."""
    value = {"a": 1, "b": [1, 2], "c": None}
    changed = write_value(value, transform("{'a': message.a + 1, 'b': message.b.map(x, x * 10), 'c': message.c}"))
    assert changed == {"a": 2, "b": [10, 20], "c": None}
    assert value == {"a": 1, "b": [1, 2], "c": None}
    assert write_value(value, transform("message.a == 5 ; {}")) == value


def test_validation_comes_after_rules() -> None:
    """Values are validated after rules: an invalid result is refused, and a value that a rule corrects is accepted."""
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}}
    assert write_value({"a": "5"}, transform("{'a': int(message.a)}"), schema=schema) == {"a": 5}
    with pytest.raises(Exception, match="#/a"):
        write_value({"a": 5}, transform("{'a': string(message.a)}"), schema=schema)
    registry = RuledRegistry()
    rule = Rule("r", mode="READ", type="CEL", expr="{'a': string(message.a)}")
    registry.add(
        "t-value", json.dumps(schema), schemaType="JSON", ruleSet=msgspec.to_builtins(RuleSet(domain_rules=[rule]))
    )
    data = b'\0\0\0\0\1{"a":5}'
    assert JsonDeserializer(registry.client(), validate=False, rules=Rules())(data, topic="t") == {"a": "5"}
    with pytest.raises(Exception, match="#/a"):
        JsonDeserializer(registry.client(), rules=Rules())(data, topic="t")
    assert JsonDeserializer(registry.client(), rules=Rules(enabled=False))(data) == {"a": 5}


# --- fields -----------------------------------------------------------------------------------------------------------

AVRO = json.dumps(
    {
        "type": "record",
        "name": "R",
        "namespace": "n",
        "fields": [
            {"name": "s", "type": "string", "confluent:tags": ["PII"]},
            {"name": "i", "type": "int"},
            {"name": "u", "type": ["null", "string", {"type": "map", "values": "string"}]},
            {"name": "l", "type": {"type": "array", "items": {"type": "enum", "name": "E", "symbols": ["A"]}}},
            {"name": "b", "type": "bytes"},
            {"name": "r", "type": ["null", "R"], "default": None},
        ],
    }
)


def avro(*rules: Rule, metadata: Metadata | None = None, **fields: Any) -> Any:
    """Return an Avro record after the rules."""
    value = {"s": "x", "i": 1, "u": None, "l": ["A"], "b": b"b", **fields}
    data = run(AVRO, "AVRO", value, *rules, metadata=metadata)
    return get_format("avro").codec(get_format("avro").parse(AVRO.encode(), {})).decode(data)


def test_fields_of_avro_records() -> None:
    """Every primitive value in a field is visited, also in maps, unions and nested records. Enums are not."""
    rule = transform("typeName == 'STRING' ; value + '.' + fullName", "CEL_FIELD")
    inner = {"s": "y", "i": 1, "u": {"k": "v"}, "l": [], "b": b"", "r": None}
    record = avro(rule, u="z", r=inner)
    assert (record["s"], record["u"], record["l"]) == ("x.n.R.s", "z.n.R.u", ["A"])
    assert (record["r"]["s"], record["r"]["u"]) == ("y.n.R.s", {"k": "v.n.R.u"})
    assert inner["s"] == "y"
    assert avro(transform("typeName == 'INT' && name == 'i' ; value + 1", "CEL_FIELD"))["i"] == 2
    assert avro(transform("typeName == 'NULL' ; 'was null'", "CEL_FIELD"))["u"] == "was null"


def test_tags_choose_fields() -> None:
    """A rule with tags applies to fields with one of them, from the schema's text or its metadata."""
    rule = transform("value + '!'", "CEL_FIELD", tags=["PII", "OTHER"])
    assert avro(rule, u="z") == {"s": "x!", "i": 1, "u": "z", "l": ["A"], "b": b"b", "r": None}
    assert avro(rule, u="z", metadata=Metadata(tags={"n.R.u": ["OTHER"]}))["u"] == "z!"


def test_later_rules_for_the_same_tags_are_left_out() -> None:
    """Of two transformations of one type for the same tags only the first runs. All conditions run."""
    rule = transform("value + '!'", "CEL_FIELD", tags=["PII"])
    assert avro(rule, rule)["s"] == "x!"
    twice = transform("value + '!'", "CEL_FIELD")
    assert avro(transform("typeName == 'STRING' ; value + '!'", "CEL_FIELD"), rule)["s"] == "x!!"
    with pytest.raises(RuleFailed):
        avro(twice)  # a number field refuses text
    with pytest.raises(RuleFailed, match=r"n\.R\.s"):
        avro(condition("true", "CEL_FIELD", tags=["PII"]), condition("value == 'y'", "CEL_FIELD", tags=["PII"]))


def test_the_branch_of_a_union_is_kept() -> None:
    """A value with a branch name keeps it while it fits, and loses it when a rule changes its type."""
    rule = transform("typeName == 'STRING' ; value + '!'", "CEL_FIELD")
    assert avro(rule, u=("string", "z"))["u"] == "z!"
    assert avro(transform("name == 'u' ; null", "CEL_FIELD"), u=("string", "z"))["u"] is None


JSON_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "a": {"type": ["string", "null"], "confluent:tags": ["PII"]},
        "b": {"type": "array", "items": {"type": "integer"}},
        "c": {"$ref": "#/definitions/C"},
        "d": {"oneOf": [{"type": "boolean"}, {"$ref": "#/definitions/C"}]},
        "e": {"anyOf": [{"type": "number"}, {"type": "string"}]},
        "f": {"allOf": [{"type": "object", "properties": {"g": {"enum": ["x", "y"]}}}]},
    },
    "definitions": {
        "C": {
            "type": "object",
            "required": ["t"],
            "properties": {"t": {"type": "string"}, "c": {"$ref": "#/definitions/C"}},
        }
    },
}


def test_fields_of_json_values() -> None:
    """Members are visited in lists, references, and the branches of combined schemas that match the value."""
    value = {
        "a": "a",
        "b": [1, 2],
        "c": {"t": "t", "c": {"t": "u"}},
        "d": {"t": "v"},
        "e": 1.5,
        "f": {"g": "x"},
        "h": "unknown",
    }
    condition_rule = condition("fullName != name", "CEL_FIELD")
    named = transform("typeName == 'STRING' ; fullName", "CEL_FIELD")
    result = write_value(value, condition_rule, named, schema=JSON_SCHEMA)
    assert result["a"] == "$.a"
    assert result["c"] == {"t": "$.c.t", "c": {"t": "$.c.c.t"}}
    assert result["d"] == {"t": "$.d.t"}
    assert result["h"] == "unknown"
    ints = transform("typeName == 'INT' ; value + 1", "CEL_FIELD")
    assert write_value(value, ints, schema=JSON_SCHEMA)["b"] == [2, 3]
    assert write_value({"a": None}, named, schema=JSON_SCHEMA) == {"a": None}
    with pytest.raises(RuleFailed, match=r"\$\.b"):  # each item is checked
        write_value(value, condition("typeName != 'INT' || value < 2", "CEL_FIELD"), schema=JSON_SCHEMA)


def test_endless_schemas_end() -> None:
    """A circular reference is followed as deep as the value. A value that is nested too deeply fails the rule."""
    rule = transform("typeName == 'STRING' ; value", "CEL_FIELD")
    loop = {"properties": {"a": {"$ref": "#/definitions/A"}}, "definitions": {"A": {"allOf": [{"$ref": "#"}]}}}
    assert write_value({"a": {"a": "x"}}, rule, schema=loop) == {"a": {"a": "x"}}
    deep: Any = "x"
    for _ in range(150):
        deep = {"t": "t", "c": deep} if isinstance(deep, dict) else {"t": "t"}
    with pytest.raises(RuleFailed, match="nested deeper"):
        write_value({"c": deep}, rule, schema=JSON_SCHEMA)


def test_schemas_that_multiply_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forty schemas that each refer twice to the next one exceed the limit of steps, and the rule fails."""
    monkeypatch.setattr(json_fields, "MAX_STEPS", 20_000)
    twice = {f"S{at}": {"allOf": [{"$ref": f"#/definitions/S{at + 1}"}] * 2} for at in range(40)}
    definitions = {**twice, "S40": {"type": "object", "properties": {"a": {"type": "string"}}}}
    text = json.dumps({"$ref": "#/definitions/S0", "definitions": definitions})
    parsed = get_format("json").parse(text.encode(), {}, strict=False)  # as serdes parse registered schemas
    context = RuleContext(Rule("r"), RuleMode.WRITE, (), 0, RecordContext("s"), ResolvedSchema("{}"))
    with pytest.raises(RuleFailed, match="more than 20000 steps"):
        json_fields.json_walk(parsed)(context, lambda _, value: value, {"a": "x"})


# --- Protobuf ---------------------------------------------------------------------------------------------------------

ORDER: dict[str, Any] = {
    "id": 7,
    "note": "n",
    "first": {"text": "f"},
    "lines": [{"text": "a"}, {"text": "b"}],
    "counts": {"k": 1},
    "by_name": {"k": {"text": "m"}},
    "at": "2026-01-02T03:04:05.000006Z",
    "took": "1.500s",
    "number": 4000000000,
    "raw": "AP8=",
    "kind": "SOME",
    "words": ["u", "v"],
    "right": 3,
    "price": 0.5,
}


def test_messages_in_expressions() -> None:
    """Fields have their CEL types. Unset fields read as defaults, and `has` distinguishes them."""
    for expr in (
        "message.id == 7 && message.number == 4000000000u && message.kind == 1 && message.price == 0.5",
        "message.at == timestamp('2026-01-02T03:04:05.000006Z') && message.took == duration('1.5s')",
        "message.lines.all(x, size(x.text) == 1) && message.counts['k'] == 1 && message.by_name['k'].text == 'm'",
        "!has(message.more) && has(message.note) && !has(message.left) && has(message.right)",
        "message.more == '' && message.maybe == null && message.raw == b'\\x00\\xff'",
        "has(message.first) && message.first.text == 'f' && has(message.lines)",
    ):
        proto(ORDER, condition(expr))
    with pytest.raises(RuleFailed):
        proto(ORDER, condition("message.unknown == 1"))


def test_transformations_of_messages() -> None:
    """A map becomes the message. Null and missing fields are not set, and values of another type are refused."""
    expr = """{'id': message.id + 1, 'at': message.at + message.took, 'took': message.took, 'lines': message.lines,
               'raw': message.raw, 'number': message.number, 'note': null, 'unknown': 1, 'kind': 1,
               'counts': message.counts}"""
    message = proto(ORDER, transform(expr))
    assert (message.id, message.note, message.number, message.kind) == (8, "", 4000000000, 1)
    assert message.at.ToJsonString() == "2026-01-02T03:04:06.500006Z"
    assert message.took.ToJsonString() == "1.500s"
    assert message.raw == b"\0\xff"
    assert [line.text for line in message.lines] == ["a", "b"]
    assert not message.HasField("first")
    assert proto(ORDER, transform("message")) == proto(ORDER)
    for wrong in (
        "{'id': 1.5}",
        "{'id': '1'}",
        "{'note': 1}",
        "{'first': 'x'}",
        "{'raw': 'x'}",
        "{'lines': ['x']}",
        "1",
    ):
        with pytest.raises(RuleFailed):
            proto(ORDER, transform(wrong))


def test_fields_of_messages() -> None:
    """Set fields are visited, also each element of lists and maps. A timestamp is one value."""
    message = proto(ORDER, transform("typeName == 'STRING' ; value + '/' + fullName", "CEL_FIELD"))
    assert message.note == "n/shop.Order.note"
    assert message.first.text == "f/shop.Line.text"
    assert [line.text for line in message.lines] == ["a/shop.Line.text", "b/shop.Line.text"]
    assert list(message.words) == ["u/shop.Order.words", "v/shop.Order.words"]
    assert message.by_name["k"].text == "m/shop.Line.text"
    assert not message.HasField("more")
    later = proto(ORDER, transform("name == 'at' ; value + duration('1s')", "CEL_FIELD"))
    assert later.at.ToJsonString() == "2026-01-02T03:04:06.000006Z"
    tagged = proto(ORDER, transform("'*'", "CEL_FIELD", tags=["PII"]))
    assert (tagged.note, tagged.first.text, list(tagged.words)) == ("*", "*", ["u", "v"])


def test_messages_handed_in_are_not_changed() -> None:
    """Rules work on a copy of the message."""
    message: Message = proto(ORDER)
    before = message.SerializeToString(deterministic=True)
    proto(message, transform("'*'", "CEL_FIELD", tags=["PII"]))  # type: ignore[arg-type]
    assert message.SerializeToString(deterministic=True) == before


def test_messages_read() -> None:
    """Rules for reading are applied to the fields of a message that was read."""
    registry = RuledRegistry()
    rule = Rule("r", mode="READ", type="CEL_FIELD", tags=["PII"], expr="'*'")
    registry.add("t-value", PROTO, schemaType="PROTOBUF", ruleSet=msgspec.to_builtins(RuleSet(domain_rules=[rule])))
    data = ProtobufSerializer(registry.client(), use_latest=True)({"note": "n"}, topic="t")
    assert ProtobufDeserializer(registry.client(), rules=Rules())(data, topic="t").note == "*"


# --- functions and bounds ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("function", "good", "bad"),
    [
        ("isEmail", ["a@b.example", "a.b+c@x-y.example"], ["a", "@b.c", "A <a@b.example>", "a@b@c", "a@-b.example"]),
        ("isHostname", ["a", "a-b.example", "example.org."], ["", "-a", "a..b", "1.2.3.4", "a" * 64, "ä"]),
        ("isIpv4", ["127.0.0.1"], ["127.0.0", "::1", "256.0.0.1"]),
        ("isIpv6", ["::1", "fe80::1"], ["127.0.0.1", ":::"]),
        ("isUri", ["https://a.example/b"], ["a/b", "https://", "http://[x"]),
        ("isUriRef", ["https://a.example/b", "a/b"], ["#x"]),
        ("isUuid", ["00000000-0000-0000-0000-000000000001"], ["x", ""]),
    ],
)
def test_functions(function: str, good: list[str], bad: list[str]) -> None:
    """The additional functions work as methods and as functions."""
    for text in good:
        assert holds({"x": text}, f"message.x.{function}() && {function}(message.x)"), text
    for text in bad:
        assert holds({"x": text}, f"!message.x.{function}()"), text
    assert not holds({"x": 1}, f"message.x.{function}()")
    assert function in cel_functions.FUNCTIONS


@pytest.mark.parametrize(
    ("expr", "text"),
    [
        ("'%s-%d%%'.format([message.t, 5])", "ü-5%"),
        ("'%.2f %e %f'.format([1.005, 1.5, 2])", "1.00 1.500000e+00 2"),
        ("'%x %X %x %x'.format([255, 255u, 'a', b'b'])", "ff FF 61 62"),
        ("'%o %b %b'.format([8, 5, true])", "10 101 1"),
        ("'%s %s'.format([[1, 'a', [b'b']], 1.5])", '[1, "a", [62]] 1.5'),
    ],
)
def test_format(expr: str, text: str) -> None:
    """`format` writes values by the letters of printf."""
    assert write_value({"t": "ü"}, transform(f"{{'t': {expr}}}")) == {"t": text}


@pytest.mark.parametrize(
    "expr", ["'%s'.format([])", "'%'.format([])", "'%q'.format([1])", "'%d'.format(['1'])", "''.format([1])"]
)
def test_format_refuses(expr: str) -> None:
    """`format` refuses too few or too many values, unknown letters, and letters that do not fit the value."""
    assert not holds({}, f"{expr} == ''")


@pytest.mark.parametrize(
    "expr",
    [
        "message.a +",
        "(" * 5000 + "1" + ")" * 5000,
        "!" * 15000 + "true",
        "1" + " + 1" * 4000,
        "x" * (cel.MAX_EXPRESSION + 1),
        "message.a.matches('(a+)+$') && message.a.matches('[')",
        "9223372036854775807 + 1 > 0",
        "undefined(1)",
    ],
)
def test_hostile_expressions_fail(expr: str) -> None:
    """A hostile expression fails its rule in time and has no other effect."""
    with pytest.raises(RuleFailed):
        write_value({"a": "a" * 200 + "!"}, condition(expr))
