"""Expressions have the same result in confluent-kafka's rules and in Stele's, or fail in both."""

from __future__ import annotations

from copy import deepcopy
from datetime import UTC, date, datetime
from typing import Any
from uuid import UUID

import pytest
from confluent_kafka.schema_registry import Schema as TheirSchema
from confluent_kafka.schema_registry.rules.cel.cel_executor import CelExecutor as TheirExecutor
from confluent_kafka.schema_registry.schema_registry_client import Rule as TheirRule
from confluent_kafka.schema_registry.schema_registry_client import RuleKind
from confluent_kafka.schema_registry.schema_registry_client import RuleMode as TheirMode
from confluent_kafka.schema_registry.serde import RuleContext as TheirContext
from google.protobuf import json_format
from google.protobuf.message import Message

from stele.client import ResolvedSchema, Rule
from stele.client.serdes.rules import RecordContext, RuleContext, RuleMode, Tools
from stele.client.serdes.rules.cel import CelExecutor
from stele.formats.registry import get_format

VALUE = {
    "a": 1,
    "b": "txt",
    "c": [1, 2, 3],
    "d": {"e": None, "f": True},
    "g": 1.5,
    "h": b"\x00\xff",
    "t": datetime(2026, 1, 2, tzinfo=UTC),
    "day": date(2026, 1, 2),
    "u": UUID(int=5),
}
EXPRESSIONS = """
message.a · message.b + 'x' · message.c[0] · message.c.map(x, x * 2) · message.c.filter(x, x > 1)
message.c.exists(x, x == 2) · message.c.exists_one(x, x == 2) · message.c.all(x, x > 0) && message.c.size() == 3
size(message.c) · message.d.e == null · has(message.d.e) · has(message.d.z) · message.d · message · dyn(message.a)
{'a': message.t} · {'a': message.day} · {'a': message.u} · {'k': {'n': [message.a, null]}} · message['a']
message.g * 2.0 · message.a / 0 · message.a % 2 · -message.a · 9223372036854775807 + message.a · 7u · 1 == 1.0
message.a == 1 ? 'y' : 'n' · message.b in ['txt'] · 'a' in message · message.h == b'\\x00\\xff' · [1, 2] + [3]
string(message.a) · int('5') · int('x') · double('1.5') · bytes('x') · type(message.a) == int · null
message.t > timestamp('2025-01-01T00:00:00Z') · message.t.getFullYear() · message.t + duration('1h') · duration('3s')
message.b.startsWith('t') · message.b.endsWith('t') · message.b.matches('^t.t$') · message.b.contains('x')
message.d.f && message.z · message.d.f || message.z · !message.d.f · message.z · message.b.size()
message.c.map(x, {'x': x}) · isEmail(message.b) · message.b.isHostname() · '1.2.3.4'.isIpv4() · ''.isIpv6()
'http://a/b'.isUri() · 'x'.isUriRef() · 'x'.isUuid() · now > message.t · message.b.substring(1) · message.b.trim()
'%s'.format([message.b]) · '%.1f %d %x'.format([message.g, message.a, message.h]) · '%s'.format([[message.b, 1]])
message.a == 2 ; message.z · message.a == 1 ; message.b · ; message.b · message.c[7] · message.b == 1
"""
PROTO = """
syntax = "proto3";
package cel;
import "google/protobuf/timestamp.proto";
import "google/protobuf/duration.proto";
import "google/protobuf/wrappers.proto";
message Order {
  int64 id = 1; string note = 2; optional string more = 3; Line first = 4; repeated Line lines = 5;
  map<string, int32> counts = 6; google.protobuf.Timestamp at = 7; google.protobuf.Duration took = 8;
  google.protobuf.StringValue maybe = 9; uint32 number = 10; bytes raw = 11; Line second = 12;
  oneof choice { string left = 13; int32 right = 14; }
  message Line { string text = 1; }
}
"""
MESSAGE_EXPRESSIONS = """
message · {'id': message.id + 1} · {'note': null, 'lines': message.lines} · {'counts': message.counts} · {'unknown': 1}
{'at': message.at, 'took': message.took, 'raw': message.raw} · {'first': message.second}
{'at': message.at + message.took}
has(message.more) · has(message.note) · has(message.first) · has(message.second) · has(message.left)
has(message.right) · has(message.lines) · has(message.maybe) · message.more == '' · message.maybe == null
message.second.text == '' · message.number == 7u
message.lines.all(x, x.text != '') · message.counts['k'] == 1 · message.zzz == 1
{'id': 1.5} · {'id': '1'} · {'note': 1} · {'raw': 'x'} · {'first': 'x'} · {'left': 'a'} · {'number': message.number}
message.took < duration('2s') · message.at.getFullYear() == 2026 · size(message.raw) == 2 · {'maybe': 'x'}
"""


def split(text: str) -> list[str]:
    """Return the expressions of a block."""
    return [part.strip() for line in text.strip().splitlines() for part in line.split(" · ")]


def attempt(run: Any, value: Any) -> tuple[bool, Any]:
    """Return whether a call succeeded, and its result, with messages as dicts."""
    try:
        result = run(deepcopy(value))
    except Exception as error:
        return False, error
    return True, json_format.MessageToDict(result) if isinstance(result, Message) else result


def both(expression: str, kind: str, value: Any) -> tuple[tuple[bool, Any], tuple[bool, Any]]:
    """Return the results of confluent-kafka and of Stele for a value."""
    rule = TheirRule("r", None, RuleKind[kind], TheirMode.WRITE, "CEL", None, None, expression, None, None, False)
    context = TheirContext(None, None, None, TheirSchema("{}", "JSON"), "s", TheirMode.WRITE, rule, 0, [], None, None)
    theirs, ours = TheirExecutor(), CelExecutor(Tools({}, None, None, lambda: 0))
    own = RuleContext(
        Rule("r", kind=kind, mode="WRITE", type="CEL", expr=expression),
        RuleMode.WRITE,
        (),
        0,
        RecordContext("s"),
        ResolvedSchema("{}"),
    )
    return attempt(lambda datum: theirs.transform(context, datum), value), attempt(lambda v: ours.run(own, v), value)


@pytest.mark.parametrize("expression", split(EXPRESSIONS))
def test_values(expression: str) -> None:
    """An expression on an Avro or JSON value, as transformation and as condition, has the same result on both sides."""
    they, we = both(expression, "TRANSFORM", VALUE)
    assert they[0] == we[0], (they, we)
    assert not they[0] or they[1] == we[1]
    they, we = both(expression, "CONDITION", VALUE)
    assert they[0] == we[0], (they, we)
    assert not they[0] or bool(they[1]) == bool(we[1])


@pytest.mark.parametrize("expression", split(MESSAGE_EXPRESSIONS))
def test_messages(expression: str) -> None:
    """An expression on a Protobuf message, as condition or as transformation, has the same result on both sides."""
    message: Any = get_format("protobuf").parse(PROTO.encode(), {}).message_class()()
    fields = {"id": 7, "note": "n", "first": {"text": "f"}, "lines": [{"text": "a"}], "counts": {"k": 1}, "right": 3}
    times = {"at": "2026-01-02T03:04:05Z", "took": "1.5s", "number": 7, "raw": "AP8="}
    json_format.ParseDict(fields | times, message)
    kind = "TRANSFORM" if expression.startswith("{") or expression == "message" else "CONDITION"
    they, we = both(expression, kind, message)
    assert they[0] == we[0], (they, we)
    assert not they[0] or they[1] == we[1]
