"""Properties of the semantic diff for random pairs of schemas of four languages."""

from __future__ import annotations

import json
from collections import Counter
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.property.avro_strategies import related_schemas, schemas
from tests.property.jsonschema_pairs import random_document
from tests.support.examples import scale_examples

from stele.core.findings import Direction, Finding
from stele.errors import SteleError
from stele.formats.capabilities import HasLaxImports, HasOutline
from stele.formats.registry import get_format
from stele.service.changes import ChangeKind, DeclarationChange
from stele.service.check import Candidate
from stele.service.diff import DiffAnswer, DiffRequest, diff_schemas

_MIRRORED = {ChangeKind.ADDED: ChangeKind.REMOVED, ChangeKind.REMOVED: ChangeKind.ADDED}
_TURNED = {Direction.BACKWARD: Direction.FORWARD, Direction.FORWARD: Direction.BACKWARD}

PROTO_LINES = (
    "int32 a = 1;",
    "string a = 1;",
    "repeated string b = 2;",
    "M m = 3;",
    "map<string, N> n = 4;",
    "oneof o { int32 x = 5; string y = 6; }",
    "oneof o { int32 x = 5; }",
    "message N { int32 k = 1; }",
    "message N { string k = 1; string l = 2; }",
    "enum E { A = 0; B = 1; }",
    "enum E { A = 0; C = 1; D = 2; }",
    "reserved 8 to 9;",
)
THRIFT_LINES = (
    "1: i32 a",
    "1: i64 a",
    "1: required i32 z",
    "2: optional list<T> b",
    "2: optional set<T> b",
    "3: string c = 'x'",
    "4: E e",
)
THRIFT_ENDS = (
    "struct T {1: i32 k} enum E {A = 1, B = 2}",
    "struct T {1: required i32 k} enum E {A = 1, C = 2}",
    "union T {1: i32 k, 2: string l} enum E {A = 1}",
)
XSD_PARTS = (
    '<xs:element name="a" type="xs:string"/>',
    '<xs:element name="b" type="xs:int" minOccurs="0"/>',
    '<xs:element name="b" type="xs:long" maxOccurs="3"/>',
    '<xs:choice><xs:element name="c" type="xs:string"/><xs:element name="d" type="T"/></xs:choice>',
    '<xs:element name="d" type="T"/>',
)


def compare_texts(format_name: str, old: str, new: str) -> DiffAnswer | None:
    """The diff; None where one of the texts is no schema."""
    fmt = get_format(format_name)
    try:
        for text in (old, new):
            fmt.parse(text.encode(), {}, strict=isinstance(fmt, HasLaxImports))
    except SteleError:
        return None
    return diff_schemas(DiffRequest(format_name, Candidate(old), Candidate(new)))


def finding_without_witness(finding: Finding) -> Finding:
    """Return a finding without its witness, because another document may be found as a proof next time."""
    return Finding(**{name: getattr(finding, name) for name in Finding.__struct_fields__ if name != "witness"})


def change_facts(change: DeclarationChange) -> tuple[Any, ...]:
    """Return all facts of a change."""
    findings = Counter((reason.direction.value, finding_without_witness(reason)) for reason in change.findings)
    return (
        change.kind.value,
        change.old_path,
        change.new_path,
        change.what,
        change.before,
        change.after,
        change.annotation,
        change.backward,
        change.forward,
        frozenset(findings.items()),
    )


def mirror_facts(change: DeclarationChange) -> tuple[Any, ...]:
    """Return all facts of the mirrored change."""
    findings = Counter((_TURNED[reason.direction].value, finding_without_witness(reason)) for reason in change.findings)
    return (
        _MIRRORED.get(change.kind, change.kind).value,
        change.new_path,
        change.old_path,
        change.what,
        change.after,
        change.before,
        change.annotation,
        change.forward,
        change.backward,
        frozenset(findings.items()),
    )


def assert_diff_laws(format_name: str, old: str, new: str) -> None:
    """Assert: a schema has no diff with itself, the reverse diff is the mirror, and no finding is lost or doubled."""
    there, back = compare_texts(format_name, old, new), compare_texts(format_name, new, old)
    itself = compare_texts(format_name, old, old)
    if there is None or back is None or itself is None:
        return
    if itself.backward:
        assert [change for change in itself.changes if not change.findings] == []
    assert Counter(map(mirror_facts, there.changes)) == Counter(map(change_facts, back.changes))
    assert (there.backward, there.forward) == (back.forward, back.backward)
    fmt = get_format(format_name)
    parsed = [fmt.parse(text.encode(), {}, strict=False) for text in (old, new)]
    wanted = Counter((Direction.BACKWARD, finding_without_witness(each)) for each in fmt.check(parsed[1], parsed[0]))
    wanted += Counter((Direction.FORWARD, finding_without_witness(each)) for each in fmt.check(parsed[0], parsed[1]))
    actual = Counter(
        (each.direction, finding_without_witness(each)) for change in there.changes for each in change.findings
    )
    assert wanted == actual
    assert there.backward is all(change.backward for change in there.changes)
    assert there.forward is all(change.forward for change in there.changes)
    for change in there.changes:
        broken = {reason.direction for reason in change.findings if reason.breaks}
        assert not (change.backward and Direction.BACKWARD in broken)
        assert not (change.forward and Direction.FORWARD in broken)


def assert_sound_outline(format_name: str, text: str) -> None:
    """Paths are unique, parents come first, and an outline says the same every time."""
    fmt = get_format(format_name)
    assert isinstance(fmt, HasOutline)
    try:
        parsed = fmt.parse(text.encode(), {}, strict=False)
    except SteleError:
        return
    nodes = fmt.outline(parsed)
    seen: set[str] = set()
    for node in nodes:
        assert node.path not in seen
        assert node.parent is None or node.parent in seen
        assert all(node.attributes.values())
        seen.add(node.path)
    assert nodes == fmt.outline(fmt.parse(text.encode(), {}, strict=False))


def proto_file(lines: list[str]) -> str:
    """A file with a message of these members; most of them are well formed."""
    return f'syntax = "proto3"; package p; message M {{ {" ".join(lines)} }}'


def xsd_document(parts: list[str], most: int) -> str:
    """A document with an element of these children."""
    return (
        '<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema"><xs:element name="r"><xs:complexType><xs:sequence>'
        f"{''.join(parts)}</xs:sequence></xs:complexType></xs:element>"
        f'<xs:simpleType name="T"><xs:restriction base="xs:int"><xs:maxInclusive value="{most}"/></xs:restriction>'
        "</xs:simpleType></xs:schema>"
    )


@given(pair=related_schemas())
def test_avro(pair: tuple[Any, Any]) -> None:
    """The laws hold for Avro schemas that are edits of each other."""
    old, new = map(json.dumps, pair)
    assert_sound_outline("avro", old)
    assert_diff_laws("avro", old, new)


@given(old=schemas(), new=schemas())
def test_avro_strangers(old: Any, new: Any) -> None:
    """The properties hold for unrelated Avro schemas."""
    assert_diff_laws("avro", json.dumps(old), json.dumps(new))


def json_schema(chance: Random) -> Any:
    """A random document that is a JSON Schema, which about a quarter of them are."""
    while True:
        drawn = random_document(chance)
        if isinstance(drawn, dict) and compare_texts("json", json.dumps(drawn), json.dumps(drawn)) is not None:
            return drawn


def edit_value(value: Any, chance: Random) -> Any:
    """Return a copy with some members removed or added."""
    if not isinstance(value, dict):
        return value
    members = {name: edit_value(inner, chance) for name, inner in value.items() if chance.random() > 0.15}
    return {**members, **({"maximum": chance.randint(1, 9)} if chance.random() < 0.2 else {})}


@given(seed=st.integers(0, 2**32))
def test_json(seed: int) -> None:
    """The laws hold for JSON Schemas, edits of each other and strangers."""
    chance = Random(seed)
    old = json_schema(chance)
    new = edit_value(old, chance) if chance.random() < 0.8 else json_schema(chance)
    assert_sound_outline("json", json.dumps(old))
    assert_diff_laws("json", json.dumps(old), json.dumps(new))


@given(old=st.lists(st.sampled_from(PROTO_LINES), max_size=7), new=st.lists(st.sampled_from(PROTO_LINES), max_size=7))
def test_protobuf(old: list[str], new: list[str]) -> None:
    """The laws hold for Protobuf files."""
    unique_lines = [list({line.rpartition("=")[2]: line for line in lines}.values()) for lines in (old, new)]
    assert_sound_outline("protobuf", proto_file(unique_lines[0]))
    assert_diff_laws("protobuf", proto_file(unique_lines[0]), proto_file(unique_lines[1]))


@given(
    old=st.lists(st.sampled_from(THRIFT_LINES), max_size=4, unique_by=lambda line: line[0]),
    new=st.lists(st.sampled_from(THRIFT_LINES), max_size=4, unique_by=lambda line: line[0]),
    ends=st.tuples(st.sampled_from(THRIFT_ENDS), st.sampled_from(THRIFT_ENDS)),
)
def test_thrift(old: list[str], new: list[str], ends: tuple[str, str]) -> None:
    """The laws hold for Thrift documents."""
    texts = [f"{end} struct S {{{', '.join(lines)}}}" for end, lines in zip(ends, (old, new), strict=True)]
    assert_sound_outline("thrift", texts[0])
    assert_diff_laws("thrift", *texts)


@settings(max_examples=scale_examples(25))
@given(
    old=st.lists(st.sampled_from(XSD_PARTS), max_size=3, unique=True),
    new=st.lists(st.sampled_from(XSD_PARTS), max_size=3, unique=True),
    most=st.tuples(st.integers(5, 6), st.integers(5, 6)),
)
def test_xsd(old: list[str], new: list[str], most: tuple[int, int]) -> None:
    """The laws hold for XML Schemas."""
    assert_sound_outline("xsd", xsd_document(old, most[0]))
    assert_diff_laws("xsd", xsd_document(old, most[0]), xsd_document(new, most[1]))


@pytest.mark.parametrize("format_name", ["avro", "json", "protobuf", "thrift", "xsd"])
def test_every_language_is_outlined(format_name: str) -> None:
    """All built-in languages have outlines, which the other tests rely on."""
    assert isinstance(get_format(format_name), HasOutline)
