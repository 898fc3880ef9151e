"""Laws of the Protobuf format over generated schemas, texts and data."""

from __future__ import annotations

import random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.examples import scale_examples

from stele.core.ports import TextForm
from stele.errors import DecodeError, MalformedSchema
from stele.formats.protobuf import (
    PROTOBUF,
    ProtobufCodec,
    ProtobufFormat,
    ProtobufSchema,
    indexes_of,
    message_by_indexes,
    message_class,
)
from stele.formats.protobuf.canonical import normalize_file
from stele.formats.protobuf.model import is_map_entry

SCALARS = ["int32", "sint64", "uint32", "fixed64", "float", "double", "bool", "string", "bytes"]
KEYS = ["int32", "string", "bool", "sint64"]
TYPES = [*SCALARS, "Top0", "Kind"]


@st.composite
def message_members(draw: st.DrawFn, depth: int = 0) -> list[str]:
    """The declarations inside a message: numbered fields in any order, maps, oneofs, nested types, reserved numbers."""
    count = draw(st.integers(0, 6))
    numbers = draw(st.lists(st.integers(1, 5000), min_size=count, max_size=count, unique=True))
    members: list[str] = []
    oneof: list[str] = []
    for position, number in enumerate(numbers):
        name, kind = f"f_{depth}_{position}", draw(st.sampled_from(TYPES))
        shape = draw(st.sampled_from(["", "", "repeated ", "optional ", "map", "oneof"]))
        option = draw(
            st.sampled_from(["", "", " [deprecated = true]", f' [json_name = "j{number}", deprecated = true]'])
        )
        if shape == "map":
            members.append(f"map<{draw(st.sampled_from(KEYS))}, {kind}> {name} = {number}{option};")
        elif shape == "oneof":
            oneof.append(f"{kind} {name} = {number}{option};")
        else:
            members.append(f"{shape}{kind} {name} = {number}{option};")
    if oneof:
        members.append(f"oneof o{depth} {{ {' '.join(oneof)} }}")
    if draw(st.booleans()):
        members.append(f"reserved {draw(st.integers(6000, 7000))}, 8000 to {draw(st.integers(8001, 9000))};")
    if depth < 3:
        bodies = [draw(message_members(depth + 1)) for _ in range(draw(st.integers(0, 2)))]
        members += [f"message Nested{depth}{index} {{ {' '.join(body)} }}" for index, body in enumerate(bodies)]
    return draw(st.permutations(members))


@st.composite
def proto_sources(draw: st.DrawFn) -> tuple[list[str], list[list[str]]]:
    """A proto3 file: statements that may stand in any order, and the members of its messages."""
    statements = [
        "enum Kind { ZERO = 0; ONE = 1; }",
        'option java_package = "x.y";',
        'import "google/protobuf/any.proto";',
    ]
    return statements, [draw(message_members()) for _ in range(draw(st.integers(1, 3)))]


def source_text(source: tuple[list[str], list[list[str]]]) -> bytes:
    """The file as source text."""
    statements, messages = source
    tops = [f"message Top{index} {{ {' '.join(body)} }}" for index, body in enumerate(messages)]
    return "\n".join(['syntax = "proto3"; package p.q;', *statements, *tops]).encode()


def parse_source(source: tuple[list[str], list[list[str]]]) -> ProtobufSchema:
    """The parsed file."""
    return PROTOBUF.parse(source_text(source), {})


LAW = settings(max_examples=scale_examples(60), deadline=None)


@LAW
@given(proto_sources())
def test_printing_loses_nothing(source: tuple[list[str], list[list[str]]]) -> None:
    """parse(print(x)) has the descriptor of x but for order, from source or descriptor, and printing is idempotent."""
    schema = parse_source(source)
    printed = PROTOBUF.canonical(schema, TextForm.PRINTED)
    again = PROTOBUF.parse(printed, {})
    assert normalize_file(again.proto) == normalize_file(schema.proto)
    assert PROTOBUF.canonical(again, TextForm.PRINTED) == printed
    bare = PROTOBUF.parse((PROTOBUF.render(schema, "serialized") or "").encode(), {})
    expanded = PROTOBUF.canonical(bare, TextForm.PRINTED)
    from_expanded = PROTOBUF.parse(expanded, {}, strict=False)
    assert normalize_file(from_expanded.proto) == normalize_file(schema.proto)
    assert PROTOBUF.canonical(from_expanded, TextForm.PRINTED) == expanded
    for other in (again, bare, from_expanded):
        assert ProtobufFormat().identity_text(other) == ProtobufFormat().identity_text(schema)
        assert PROTOBUF.canonical(other, TextForm.NORMALIZED) == PROTOBUF.canonical(schema, TextForm.NORMALIZED)
        assert PROTOBUF.fingerprints(other) == PROTOBUF.fingerprints(schema)


@LAW
@given(proto_sources(), st.randoms(use_true_random=False))
def test_style_does_not_change_the_normal_form(
    source: tuple[list[str], list[list[str]]], chance: random.Random
) -> None:
    """Another order of members and statements, except nested messages, gives the same normalized text and digests."""
    statements, messages = source
    shuffled = list(statements)
    chance.shuffle(shuffled)
    others = []
    for body in messages:
        nested = [member for member in body if member.startswith("message")]
        rest = [member for member in body if not member.startswith("message")]
        chance.shuffle(rest)
        others.append(nested + rest)
    one, two = parse_source(source), parse_source((shuffled, others))
    assert PROTOBUF.canonical(one, TextForm.NORMALIZED) == PROTOBUF.canonical(two, TextForm.NORMALIZED)
    assert PROTOBUF.fingerprints(one) == PROTOBUF.fingerprints(two)
    assert PROTOBUF.check(one, two) == PROTOBUF.check(two, one) == []


@LAW
@given(proto_sources(), proto_sources())
def test_checks_are_repeatable_and_reflexive(
    one: tuple[list[str], list[list[str]]], two: tuple[list[str], list[list[str]]]
) -> None:
    """Every schema reads its own data; equal comparisons have equal findings, each complete."""
    left, right = parse_source(one), parse_source(two)
    assert PROTOBUF.check(left, left) == []
    findings = PROTOBUF.check(left, right)
    assert findings == PROTOBUF.check(left, right)
    assert all(finding.rule and finding.path and finding.why and finding.fix for finding in findings)


@LAW
@given(proto_sources(), st.data())
def test_compatible_schemas_read_each_others_data(
    source: tuple[list[str], list[list[str]]], data: st.DataObject
) -> None:
    """An example written with one schema can be decoded with a compatible one."""
    statements, messages = source
    selections = [data.draw(st.lists(st.sampled_from(body), unique=True)) if body else [] for body in messages]
    old = parse_source(source)
    new_source = (
        statements,
        [
            [m for m in body if m in keep or m.startswith("message")]
            for body, keep in zip(messages, selections, strict=True)
        ],
    )
    new = parse_source(new_source)
    if not PROTOBUF.check(new, old):
        codec = PROTOBUF.codec(old, new)
        codec.decode(codec.encode(codec.example()))


@LAW
@given(proto_sources())
def test_message_positions_are_a_bijection(source: tuple[list[str], list[list[str]]]) -> None:
    """Every message except the entries of maps has one list of indexes, which leads back to it."""
    schema = parse_source(source)
    names = [name for name in schema.message_positions if not is_map_entry(schema.get_message(name))]
    paths = {tuple(indexes_of(schema, name)): name for name in names}
    assert len(paths) == len(names)
    assert all(message_by_indexes(schema, path) == name for path, name in paths.items())


@LAW
@given(proto_sources())
def test_examples_survive(source: tuple[list[str], list[list[str]]]) -> None:
    """decode(encode(x)) encodes to the same bytes, for each top-level message."""
    schema = parse_source(source)
    for message in schema.list_messages():
        codec = ProtobufCodec(schema, full_name=message.full_name)
        data = codec.encode(codec.example())
        assert codec.encode(codec.decode(data)) == data
        assert message_class(schema, message.full_name).FromString(data).SerializeToString(deterministic=True) == data


DATA = PROTOBUF.parse(
    b'syntax = "proto3"; message A { int64 i = 1; repeated uint32 u = 2; map<string, A> m = 3; bytes b = '
    b"4; string s = 5;"
    b" double d = 6; oneof o { bool t = 7; A a = 8; } optional fixed32 f = 9; }",
    {},
)


def message_data(children: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Data of the message A."""
    return st.fixed_dictionaries(
        {
            "i": st.integers(-(1 << 63), (1 << 63) - 1),
            "u": st.lists(st.integers(0, (1 << 32) - 1), max_size=4),
            "m": st.dictionaries(st.text(st.characters(exclude_categories=["Cs"]), max_size=5), children, max_size=2),
            "b": st.binary(max_size=9),
            "s": st.text(st.characters(exclude_categories=["Cs"]), max_size=9),
            "d": st.floats(allow_nan=False),
        },
        optional={"f": st.integers(0, (1 << 32) - 1), "a": children},
    )


LEAF = {"i": 0, "u": [], "m": {}, "b": b"", "s": "", "d": 0.0}


@LAW
@given(st.recursive(st.just(LEAF), message_data, max_leaves=6))
def test_data_survive(datum: Any) -> None:
    """decode(encode(x)) is x for data in the shape decoding gives."""
    codec = PROTOBUF.codec(DATA)
    assert codec.validate(datum) == []
    assert codec.decode(codec.encode(datum)) == datum


@settings(max_examples=scale_examples(300), deadline=None)
@given(st.binary(max_size=60))
def test_any_bytes_decode_or_are_refused(junk: bytes) -> None:
    """Decoding raises no error but DecodeError, and decoded data can be encoded."""
    codec = PROTOBUF.codec(DATA)
    try:
        datum = codec.decode(junk)
    except DecodeError:
        return
    assert codec.validate(datum) == []


WORDS = ["syntax", "=", '"proto3"', ";", "message", "A", "{", "}", "int32", "x", "1", "[", "]", "option", "(", ")", '"']
WORDS += ["/*", "import", "oneof", "map<string,", ">", "enum", "reserved", "\x00", "é", "\\", "extend", "group", "{ a:"]


@settings(max_examples=scale_examples(200), deadline=None)
@given(st.one_of(st.lists(st.sampled_from(WORDS), max_size=30).map(" ".join).map(str.encode), st.binary(max_size=80)))
def test_any_text_is_parsed_or_refused(junk: bytes) -> None:
    """Parsing raises no error but MalformedSchema; an accepted schema can be printed and parsed again."""
    try:
        schema = PROTOBUF.parse(junk, {})
    except MalformedSchema:
        return
    assert PROTOBUF.parse(PROTOBUF.canonical(schema, TextForm.PRINTED), {}).proto == schema.proto
