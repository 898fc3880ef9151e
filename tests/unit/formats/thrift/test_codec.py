"""Data in the binary protocol: exact bytes, rejected data, and resolution to a reader."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from stele.errors import DecodeError, EncodeError, Invalid, InvalidRequest
from stele.formats.thrift import THRIFT, ThriftCodec, ThriftSchema

ALL = """
enum Color { RED = 1, GREEN }
struct Point { 1: required i32 x, 2: i32 y = 7 }
union Shape { 1: Point point, 2: string name }
struct All {
  1: bool a, 2: i8 b, 3: i16 c, 4: i32 d, 5: i64 e, 6: double f, 7: string g, 8: binary h, 9: uuid i, 10: Color j,
  11: list<i32> k, 12: set<string> l, 13: map<string, Point> m, 14: map<Point, i32> n, 15: Shape o
}
"""
FULL: dict[str, Any] = {
    "a": True,
    "b": -1,
    "c": -300,
    "d": 2**31 - 1,
    "e": -(2**63),
    "f": -0.5,
    "g": "é",
    "h": b"\xff\x00",
    "i": "123e4567-e89b-42d3-a456-426614174000",
    "j": "GREEN",
    "k": [1, 2],
    "l": ["a", "b"],
    "m": {"p": {"x": 1, "y": 2}},
    "n": [({"x": 1, "y": 2}, 3)],
    "o": {"name": "n"},
}


def parse_schema(text: str) -> ThriftSchema:
    """Parse a schema given as text."""
    return THRIFT.parse(text.encode(), {})


def make_codec(text: str, reader: str | None = None) -> ThriftCodec:
    """A codec for the last struct."""
    return ThriftCodec(parse_schema(text), None if reader is None else parse_schema(reader))


def test_every_type_comes_back() -> None:
    """A datum with every type decodes to itself."""
    both = make_codec(ALL)
    assert both.decode(both.encode(FULL)) == FULL
    assert both.validate(FULL) == []


@pytest.mark.parametrize(
    ("kind", "value", "data"),
    [
        ("bool", True, "02 0001 01"),
        ("i8", -2, "03 0001 fe"),
        ("double", 1.0, "04 0001 3ff0000000000000"),
        ("i16", 258, "06 0001 0102"),
        ("i32", 1, "08 0001 00000001"),
        ("i64", 1, "0a 0001 0000000000000001"),
        ("string", "é", "0b 0001 00000002 c3a9"),
        ("binary", b"\xff", "0b 0001 00000001 ff"),
        ("list<i8>", [1], "0f 0001 03 00000001 01"),
        ("set<i8>", {2, 1}, "0e 0001 03 00000002 01 02"),
        ("map<i8, bool>", {5: False}, "0d 0001 03 02 00000001 05 00"),
        ("E", "A", "08 0001 00000004"),
        ("E", 9, "08 0001 00000009"),
        ("N", {}, "0c 0001 00"),
        ("uuid", uuid.UUID(int=1), "10 0001 00000000000000000000000000000001"),
    ],
)
def test_bytes(kind: str, value: Any, data: str) -> None:
    """The bytes are those of the binary protocol."""
    written = make_codec(f"enum E {{ A = 4 }}\nstruct N {{}}\nstruct S {{ 1: {kind} a }}").encode({"a": value})
    assert written == bytes.fromhex(data + "00")


def test_fields_are_written_by_id() -> None:
    """The order of the dict and of the declaration does not show in the bytes."""
    both = make_codec("struct S { 2: i8 b, 1: i8 a, i8 c }")
    assert both.encode({"b": 2, "c": 3, "a": 1}) == bytes.fromhex("03ffff03 03000101 03000202 00")


def test_unset_fields_and_defaults() -> None:
    """An unset field is written with its default unless it is optional; readers fill in defaults."""
    both = make_codec("struct S { 1: i32 a, 2: i32 b = 5, 3: optional i32 c = 6, 4: required i32 d = 7 }")
    data = both.encode({"a": None})
    assert data == bytes.fromhex("08 0002 00000005 08 0004 00000007 00")
    assert both.decode(data) == {"b": 5, "c": 6, "d": 7}


def test_defaults_are_the_callers_own() -> None:
    """Two data never share a default that could be changed."""
    both = make_codec(
        'const i32 K = 2\nstruct P { 1: i32 x }\nstruct S { 1: map<string, list<i32>> a = {"k": [1, K]} }'
    )
    one, two = both.decode(b"\0"), both.decode(b"\0")
    assert one == two == {"a": {"k": [1, 2]}}
    one["a"]["k"].append(3)
    assert two == {"a": {"k": [1, 2]}}


def test_defaults_of_sets_and_uuids() -> None:
    """A default set has each item once, and a default uuid its plain spelling, in every notation."""
    both = make_codec("struct S { 1: set<i32> a = [5, 5, 3], 2: uuid b = '{00112233-4455-6677-8899-aaBBccDDeeFF}' }")
    expected = {"a": [5, 3], "b": "00112233-4455-6677-8899-aabbccddeeff"}
    assert both.decode(b"\0") == both.decode(both.encode({})) == expected


def test_required_fields() -> None:
    """A missing required field raises an error when writing and when reading, at any depth."""
    both = make_codec("struct P { 1: required i32 x }\nstruct S { 1: list<P> ps }")
    with pytest.raises(EncodeError, match=r"ps\[1\]: the required field 'x' of P is not set"):
        both.encode({"ps": [{"x": 1}, {}]})
    with pytest.raises(DecodeError, match=r"ps\[\]: the required field 'x' of P is missing at byte 8"):
        both.decode(bytes.fromhex("0f 0001 0c 00000001 00 00"))


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"a": 1}, "a: 1 is not of type bool"),
        ({"b": 128}, "b: 128 is out of the range of i8"),
        ({"d": True}, "d: True is not of type i32"),
        ({"d": 1.0}, "d: 1.0 is not of type i32"),
        ({"f": 2**53 + 1}, "f: "),
        ({"f": 10**400}, "f: "),
        ({"g": b"x"}, "g: b'x' is not of type string"),
        ({"g": "\ud800"}, "g: "),
        ({"h": "x"}, "h: 'x' is not of type binary"),
        ({"i": "x"}, "i: 'x' is not of type uuid"),
        ({"j": "BLUE"}, "j: 'BLUE' is not a value of the enum Color"),
        ({"k": {1}}, "k: a set is not of type list"),
        ({"k": [1, "2"]}, "k[1]: '2' is not of type i32"),
        ({"l": ["a", "a"]}, "l: an item of the set occurs twice"),
        ({"m": {"p": {"x": "1"}}}, "m{'p'}.x: '1' is not of type i32"),
        ({"m": {1: {"x": 1}}}, "m{}.key: 1 is not of type string"),
        ({"n": [1]}, "n: "),
        ({"n": [({"x": 1}, 1), ({"x": 1}, 2)]}, "n: a key of the map occurs twice"),
        ({"o": {}}, "o: the union Shape has 0 members set"),
        ({"o": {"point": {"x": 1}, "name": "n"}}, "o: the union Shape has 2 members set"),
        ({"zzz": 1}, "All has no field 'zzz'"),
        ({3: 1}, "All has no field 3"),
    ],
)
def test_what_does_not_fit(change: dict[Any, Any], path: str) -> None:
    """A datum that does not fit is refused with its path; validate says the same."""
    both = make_codec(ALL)
    problems = both.validate({**FULL, **change})
    assert len(problems) == 1
    assert problems[0].startswith(path)
    with pytest.raises(EncodeError) as caught:
        both.encode({**FULL, **change})
    assert str(caught.value) == problems[0]


def test_problems_are_all_listed() -> None:
    """Every problem is listed, up to a hundred."""
    both = make_codec("struct S { 1: list<i32> a }")
    assert len(both.validate({"a": ["x"] * 3})) == 3
    assert len(both.validate({"a": ["x"] * 1000})) == 100
    assert both.validate([]) == ["a list is not a dict for the struct S"]


@pytest.mark.parametrize(
    ("data", "why"),
    [
        ("", "end in the middle of a value at byte 0"),
        ("08 0004 000000", "d: the data end"),
        ("00 00", "1 bytes are left over after the datum at byte 1"),
        ("0a 0004 0000000000000001 00", "d: there is a i64 where the schema has i32 at byte 0"),
        ("08 0004 00000001 08 0004 00000001 00", "d: the field occurs twice"),
        ("02 0001 02 00", "a: a bool is 0 or 1, not 2"),
        ("0b 0007 00000001 ff 00", "g: the string is not UTF-8 at byte 7"),
        ("0b 0007 ffffffff 00", "g: a size of -1"),
        ("0b 0007 7fffffff 00", "g: a size of 2147483647"),
        ("0f 000b 08 7fffffff 00", "k: a size of 2147483647"),
        ("0f 000b 0a 00000001 0000000000000001 00", "k: there are values of type i64"),
        ("0d 000d 0b 0c 00000002 00000000 080001 00000001 00 00000000 080001 00000001 00 00", "m: a key of the map"),
        ("0c 000f 00 00", "o: the union Shape has 0 members"),
        ("0c 000f 0b0002 00000000 0c0001 080001 00000001 00 00 00", "o: the union Shape has 2 members"),
        ("05 0063 00", "5 is not the number of a type"),
    ],
)
def test_what_is_no_data(data: str, why: str) -> None:
    """Bytes that contradict the schema are refused with path and offset, never bent into something else."""
    with pytest.raises(DecodeError) as caught:
        make_codec(ALL).decode(bytes.fromhex(data))
    assert why in str(caught.value)
    assert caught.value.offset is not None


def test_unknown_fields_are_passed_over() -> None:
    """A reader skips fields of every type that it does not know, and reads the others under its own names."""
    reading = make_codec(ALL, "struct All { 4: i32 number, 99: string other = 'none' }")
    assert reading.decode(reading.encode(FULL)) == {"number": 2**31 - 1, "other": "none"}


def test_enum_numbers_without_names() -> None:
    """A number that the enum does not have stays a number, and can be written again."""
    old, new = "enum E { A }\nstruct S { 1: E e }", "enum E { A, B }\nstruct S { 1: E e }"
    assert make_codec(new, old).decode(make_codec(new).encode({"e": "B"})) == {"e": 1}
    assert make_codec(old).encode({"e": 1}) == make_codec(new).encode({"e": "B"})


def test_empty_containers_may_say_any_type() -> None:
    """An empty list is accepted with any item type."""
    assert make_codec(ALL).decode(bytes.fromhex("0f 000b 00 00000000 00")) == {"k": []}


def test_other_structs() -> None:
    """A codec can be made for any struct; the reader's is the one of the same name, else its last one."""
    point = ThriftCodec(parse_schema(ALL), name="Point")
    assert point.decode(point.encode({"x": 1})) == {"x": 1, "y": 7}
    renamed = ThriftCodec(parse_schema(ALL), parse_schema("struct Q { 1: i32 a }"), "Point")
    assert renamed.decode(point.encode({"x": 1})) == {"a": 1}
    with pytest.raises(InvalidRequest, match="'Nope'"):
        ThriftCodec(parse_schema(ALL), name="Nope")
    with pytest.raises(InvalidRequest, match="no struct"):
        ThriftCodec(parse_schema("enum E {}"))


def test_example() -> None:
    """The example sets every field and fits."""
    both = make_codec(ALL)
    example = both.example()
    assert set(example) == set(FULL)
    assert both.decode(both.encode(example)) == example


def test_examples_of_recursive_structs() -> None:
    """An example ends where the types allow it; a struct that always contains itself has none."""
    both = make_codec("struct N { 1: i32 x, 2: list<N> children, 3: optional N next }")
    assert both.example() == {"x": 1, "children": []}
    with pytest.raises(Invalid, match="infinitely"):
        make_codec("struct N { 1: required N next }").example()
    with pytest.raises(Invalid, match="no members"):
        make_codec("union U {}").example()
