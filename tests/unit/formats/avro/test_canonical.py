"""Printed forms of Avro schemas; their agreement with Java is in the property tests."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.property.avro_strategies import schemas

from stele.core.ports import TextForm
from stele.formats.avro import AVRO
from stele.formats.avro.canonical import _write_value, format_double, rabin_fingerprint, to_java_json
from stele.formats.avro.model import AvroRecord
from stele.formats.avro.parse import make_default

TEXT = b"""{
  "fields": [
    {"order": "descending", "type": {"type": "bytes", "scale": 2, "precision": 9, "logicalType": "decimal"},
     "name": "a"},
    {"name": "b", "aliases": ["y", "x"], "default": null, "type": ["null", "R"], "pii": {"z": 1, "a": [2.50, 1e10]}}
  ],
  "aliases": ["Old", "m.Older"], "namespace": "n", "owner": "team", "doc": "A record", "name": "R", "type": "record"
}"""


PRINTED = (
    '{"type":"record","name":"R","namespace":"n","doc":"A record","fields":[{"name":"a","type":{"type":"bytes",'
    '"scale":2,"precision":9,"logicalType":"decimal"},"order":"descending"},{"name":"b","type":["null","R"],'
    '"default":null,"aliases":["y","x"],"pii":{"z":1,"a":[2.5,1.0E10]}}],"owner":"team",'
    '"aliases":["Old","m.Older"]}'
)
NORMALIZED = (
    '{"type":"record","name":"R","namespace":"n","doc":"A record","fields":[{"name":"a","type":{"type":"bytes",'
    '"logicalType":"decimal","precision":9,"scale":2},"order":"descending"},{"name":"b","type":["null","R"],'
    '"default":null,"aliases":["x","y"],"pii":{"a":[2.5,1.0E10],"z":1}}],"owner":"team",'
    '"aliases":["m.Older","Old"]}'
)
CANONICAL = '{"name":"n.R","type":"record","fields":[{"name":"a","type":"bytes"},{"name":"b","type":["null","n.R"]}]}'


@pytest.mark.parametrize(
    ("form", "expected"),
    [(TextForm.PRINTED, PRINTED), (TextForm.NORMALIZED, NORMALIZED), (TextForm.CANONICAL, CANONICAL)],
)
def test_three_forms(form: TextForm, expected: str) -> None:
    """Each form keeps, drops and sorts the attributes that it should."""
    assert AVRO.canonical(AVRO.parse(TEXT, {}), form).decode() == expected


@pytest.mark.parametrize(
    ("kind", "default", "expected"),
    [
        ("double", "1", "1.0"),
        ("float", "0.1", "0.1"),
        ("float", "3.141592653589793", "3.1415927"),
        ("float", "1e300", "1.0E300"),
        ("float", "16777216", "1.6777216E7"),
        (["double", "null"], "2", "2.0"),
        ({"type": "map", "values": "float"}, '{"b": 1, "a": 2}', '{"a":2.0,"b":1.0}'),
        ({"type": "array", "items": {"type": "map", "values": "int"}}, '[{"b": 1, "a": 2}]', '[{"a":2,"b":1}]'),
    ],
)
def test_normalized_defaults(kind: object, default: str, expected: str) -> None:
    """NORMALIZED spells numbers as their types do, and sorts members of defaults."""
    text = f'{{"type":"record","name":"R","fields":[{{"name":"a","type":{json.dumps(kind)},"default":{default}}}]}}'
    normal = AVRO.canonical(AVRO.parse(text.encode(), {}), TextForm.NORMALIZED).decode()
    assert f'"default":{expected}}}' in normal


@pytest.mark.parametrize(
    ("other", "same"),
    [
        ('{"type":"record","name":"R","namespace":"n","b":{"y":1,"x":2},"a":1,"fields":[]}', True),
        ('{"type":"error","name":"n.R","a":1,"b":{"x":2,"y":1},"fields":[]}', True),
        ('{"type":"record","name":"n.R","doc":"","a":1,"b":{"x":2,"y":1},"fields":[]}', False),
        ('{"type":"record","name":"n.R","a":1.0,"b":{"x":2,"y":1},"fields":[]}', False),
        ('{"type":"record","name":"n.R","b":{"x":2,"y":1},"fields":[]}', False),
    ],
)
def test_identity(other: str, same: bool) -> None:
    """Two schemas have the same identity if Java calls them equal and their docs agree, in any order of attributes."""
    text = b'{"type":"record","name":"n.R","a":1,"b":{"x":2,"y":1},"fields":[]}'
    mine, theirs = (AVRO.identity_text(AVRO.parse(each, {})) for each in (text, other.encode()))
    assert (mine == theirs) is same


@pytest.mark.parametrize(
    "text",
    [
        '{"type":"record","name":"n.R","doc":"d","fields":[{"name":"a","type":"int","doc":"x","default":1}]}',
        '{"type":"bytes","logicalType":"decimal","precision":9,"scale":2}',
        '{"type":"bytes","scale":2,"precision":9,"logicalType":"decimal"}',
        '{"type":"string","a":{"y":1,"x":2}}',
        '{"type":"string","a":[{"y":1,"x":2}]}',
        '{"type":"error","name":"R","fields":[]}',
        '{"type":"record","name":"R","aliases":["B","A"],"fields":[]}',
        '{"type":"enum","name":"n.R","symbols":["B","A"],"aliases":["B","n.A"]}',
        '{"type":"record","name":"R","fields":[{"name":"a","type":"int","aliases":["y","x"]}]}',
        '{"type":"record","name":"R","fields":[{"name":"a","type":"int","y":1,"x":2}]}',
        '{"type":"record","name":"R","fields":[{"name":"a","type":["M"],"default":{"y":1,"x":2}}]}'.replace(
            '"M"', '{"type":"map","values":"int"}'
        ),
    ],
)
def test_identity_of_what_was_printed(text: str) -> None:
    """Printing a schema first does not change its identity text."""
    printed, other = (AVRO.parse(text.encode(), {}) for _ in range(2))
    AVRO.canonical(printed, TextForm.PRINTED)
    assert AVRO.identity_text(printed) == AVRO.identity_text(other)


def test_digest_text_never_changes() -> None:
    """Logs hold the digest `normalized`: it is made of the same text as in the first release."""
    assert AVRO.digest_text(AVRO.parse(TEXT, {})).decode() == (
        '{"name":"n.R","type":"record","fields":[{"name":"a","type":{"type":"bytes","logicalType":"decimal",'
        '"precision":9,"scale":2},"order":"descending"},{"name":"b","type":["null","n.R"],"aliases":["x","y"],'
        '"default":null,"pii":{"a":[2.5,1.0E10],"z":1}}],"doc":"A record","aliases":["m.Older","n.Old"],'
        '"owner":"team"}'
    )


@pytest.mark.parametrize("word", ["record", "enum", "array", "map", "fixed", "union", "string"])
def test_references_to_types_with_names_of_kinds(word: str) -> None:
    """A reference stays a full name where its last part alone would be a kind of type, as in Java."""
    text = (
        f'{{"type":"record","name":"R","namespace":"n","fields":[{{"name":"a","type":{{"type":"fixed","name":"{word}",'
        f'"size":1}}}},{{"name":"b","type":"n.{word}"}}]}}'
    )
    assert AVRO.canonical(AVRO.parse(text.encode(), {}), TextForm.PRINTED).decode() == text


def test_rabin_is_big_endian() -> None:
    """The fingerprint of "null" reads as Java prints it; the empty text has the initial value of the CRC."""
    assert AVRO.fingerprints(AVRO.parse(b'"null"', {}))["rabin"].hex() == "63dd24e7cc258f8a"
    assert rabin_fingerprint(b"").hex() == "c15d213aa4d7a795"


def test_null_namespace_inside_another() -> None:
    """The canonical form respects `"namespace": ""` inside another namespace; one Python library loses it."""
    inner = b'{"type":"fixed","name":"In","namespace":"","size":1}'
    text = b'{"type":"record","name":"o.X","fields":[{"name":"a","type":%s}]}' % inner
    assert b'"name":"In"' in AVRO.canonical(AVRO.parse(text, {}), TextForm.CANONICAL)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (1.0, "1.0"),
        (1e7, "1.0E7"),
        (9999999.0, "9999999.0"),
        (0.001, "0.001"),
        (0.0001, "1.0E-4"),
        (-0.0, "-0.0"),
        (5e-324, "5.0E-324"),
    ],
)
def test_doubles_look_like_java(value: float, expected: str) -> None:
    """Doubles at the limits of Java's decimal notation are printed as in Java."""
    assert format_double(value) == expected


@pytest.mark.parametrize("kind", ["float", "double"])
def test_integers_beyond_doubles_stay_as_they_are(kind: str) -> None:
    """A default of 400 digits is printed in both forms, and becomes an infinity as a value."""
    number = 10**400
    field = {"name": "x", "type": kind, "default": number}
    schema = AVRO.parse(json.dumps({"type": "record", "name": "A", "fields": [field]}).encode(), {})
    for form in (TextForm.PRINTED, TextForm.NORMALIZED):
        assert f'"default":{number}' in AVRO.canonical(schema, form).decode()
    assert isinstance(schema.root, AvroRecord)
    assert make_default(schema.root.fields[0].type, -number) == -math.inf


def test_strings_look_like_java() -> None:
    """Control characters are escaped in upper-case hex, other characters stay, and backslashes are escaped."""
    assert to_java_json('\x1f\x7fé/\U0001f600"\\u001f') == '"\\u001F\x7fé/\U0001f600\\"\\\\u001f"'


_PARTS = ["", "a", "\x01", "\\", "\\u001f", "\x1f", "é", "1.5", ":1.5", "[-2e5", "NaN", '"', "\u2028", "\x7f"]
_DOUBLES = st.floats(allow_nan=False, allow_infinity=False)  # as in every JSON document
_SCALARS = st.one_of(
    st.lists(st.sampled_from(_PARTS), max_size=3).map("".join), st.none(), st.booleans(), st.integers(), _DOUBLES
)


@given(st.recursive(_SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(_PARTS), inner)))
def test_the_quick_encoder_writes_the_same(value: Any) -> None:
    """The fast encoder writes the same as the slow one, also for texts that look like doubles or escapes."""
    parts: list[str] = []
    _write_value(value, parts.append)
    assert to_java_json(value) == "".join(parts)


@given(schemas())
def test_what_is_printed_is_read_as_it_was(value: Any) -> None:
    """`prints_faithfully`: a schema and the one parsed from its printed text have equal forms and verdicts."""
    first = AVRO.parse(json.dumps(value).encode(), {})
    again = AVRO.parse(AVRO.canonical(first, TextForm.PRINTED), {}, strict=False)
    for form in TextForm:
        assert AVRO.canonical(again, form) == AVRO.canonical(first, form)
    assert AVRO.identity_text(again) == AVRO.identity_text(first)
    assert AVRO.digest_text(again) == AVRO.digest_text(first)
    assert AVRO.outline(again) == AVRO.outline(first)
    assert AVRO.check(again, first) == AVRO.check(first, again) == AVRO.check(first, first)
