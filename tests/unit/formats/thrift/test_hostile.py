"""Hostile Thrift schemas and data: each ends soon in a clear error or an answer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from tests.support.time_limit import limit_time

from stele.core.ports import TextForm
from stele.errors import DecodeError, EncodeError, Invalid, MalformedSchema
from stele.formats.thrift import THRIFT, ThriftSchema

SECONDS = 30.0


@pytest.fixture(autouse=True)
def _limit_time() -> Iterator[None]:
    """Limit the time of every test."""
    with limit_time(SECONDS):
        yield


def parse_schema(text: str) -> ThriftSchema:
    """Parse a schema given as text."""
    return THRIFT.parse(text.encode(), {})


def use_all(schema: ThriftSchema) -> None:
    """Call every operation that walks a schema."""
    for form in TextForm:
        THRIFT.canonical(schema, form)
    THRIFT.fields(schema)
    for ruleset in THRIFT.rulesets:
        THRIFT.check(schema, schema, ruleset)
    codec = THRIFT.codec(schema)
    try:
        THRIFT.arrow_schema(schema)
        codec.encode(codec.example())
        codec.decode(b"\x00")
    except (Invalid, DecodeError, EncodeError):
        return


@pytest.mark.parametrize(
    "text",
    [
        "struct S { 1: " + "list<" * 100_000,
        "struct S { 1: " + "list<" * 65 + "i32" + ">" * 65 + " a }",
        "const i32 X = " + "[" * 100_000,
        "const i32 X = " + "{1:" * 100_000,
        "const i32 X = " + "[" * 65 + "]" * 65,
        "struct S {" + "1: i32 a xsd_attrs {" * 100_000,
        "typedef i32 T0\n" + "\n".join(f"typedef T{n} T{n + 1}" for n in range(5_000)),
        "typedef i32 T0\n" + "\n".join(f"typedef map<T{n}, T{n}> T{n + 1}" for n in range(40)),
        "const list<i32> T0 = [1, 1]\n" + "\n".join(f"const list<i32> T{n + 1} = [T{n}, T{n}]" for n in range(40)),
        "const i32 T0 = 1\n" + "\n".join(f"const i32 T{n + 1} = T{n}" for n in range(5_000)),
        "\n".join(f"typedef T{n + 1} T{n}" for n in range(20_000)) + "\ntypedef T0 T20000",
        "/*" * 1_000_000,
        "/** " + "*" * 1_000_000,
        '"' * 1_000_001,
        "const string X = '" + "\\n" * 1_000_000,
        "const i32 X = " + "9" * 1_000_000,
        "const double X = 0." + "9" * 1_000_000,
        "a." * 1_000_000,
        "struct S { 1: i32 " + "a" * 1_000_000,
        " " * (10 << 20),
        "struct S {}\n" * 200_000,
        "(" * 200_000,
    ],
    ids=range(22),
)
def test_documents_that_are_refused(text: str) -> None:
    """Deep, endless, unterminated, exploding and huge documents are refused."""
    with pytest.raises(MalformedSchema) as caught:
        parse_schema(text)
    assert len(str(caught.value)) < 400


def test_the_deepest_that_parses() -> None:
    """Every operation works on types and values nested up to the limit."""
    use_all(parse_schema("struct S { 1: " + "list<" * 60 + "i32" + ">" * 60 + " a = " + "[" * 60 + "]" * 60 + " }"))


@pytest.mark.parametrize("kind", ["optional", "required", ""])
def test_long_chains_of_structs(kind: str) -> None:
    """Three thousand structs inside each other are compared and listed within the recursion limit."""
    use_all(parse_schema("struct S0 {}\n" + "\n".join(f"struct S{n + 1} {{ 1: {kind} S{n} s }}" for n in range(3_000))))


@pytest.mark.parametrize("kind", ["optional", "required", ""])
def test_structs_that_explode(kind: str) -> None:
    """A struct that is used twice at each of forty levels is handled within limits."""
    lines = [f"struct S{n + 1} {{ 1: {kind} S{n} a, 2: {kind} S{n} b, 3: {kind} list<S{n}> c }}" for n in range(40)]
    use_all(parse_schema("struct S0 { 1: i32 x }\n" + "\n".join(lines)))


@pytest.mark.parametrize(
    "text",
    [
        f"struct S {{ {''.join(f'{n}: i32 f{n} = {n},' for n in range(1, 10_000))} }}",
        f"enum E {{ {','.join(f'V{n}' for n in range(40_000))} }}\nstruct S {{ 1: E e }}",
        "".join(f"struct S{n} {{}}" for n in range(20_000)),
    ],
    ids=["fields", "values", "structs"],
)
def test_large_documents(text: str) -> None:
    """A large document is read and walked in a time that grows with its size only."""
    use_all(parse_schema(text))


def test_includes_that_explode() -> None:
    """Documents that include many others, and each other's neighbours, are read once each."""
    references = {
        f"d{n}.thrift": f'include "d{n + 1}.thrift"\ninclude "d{n + 2}.thrift"\ntypedef i32 T'.encode()
        for n in range(500)
    }
    references |= {f"d{n}.thrift": b"typedef i32 T" for n in (500, 501)}
    THRIFT.parse(b'include "d0.thrift"\nstruct S { 1: d0.T t }', references)


@pytest.mark.parametrize(
    "data",
    [
        "0f 0001 0c 7fffffff",
        "0f 0001 02 000fffff",
        "0b 0063 7fffffff",
        "0b 0063 ffffffff",
        "0f 0063 02 7fffffff",
        "0f 0063 0c 7fffffff",
        "0d 0063 0202 7fffffff",
        "0c 0063" * 100_000,
        "0f 0063" + "0f 00000001" * 100_000,
        "0f 0063" + "0f 00000000" * 100_000,
        "0f 0001 0c 00000001" * 1_000,
    ],
)
def test_bytes_that_claim_more_than_there_is(data: str) -> None:
    """Sizes beyond the data, and nesting beyond the limit, are refused before anything is allocated."""
    codec = THRIFT.codec(parse_schema("struct S { 1: list<S> a, 2: i32 b }"))
    with pytest.raises(DecodeError):
        codec.decode(bytes.fromhex(data))


def test_defaults_that_multiply() -> None:
    """Many absent fields with large defaults are refused, not built."""
    values = ",".join("1" * 1_000)
    codec = THRIFT.codec(parse_schema(f"struct P {{ 1: list<i32> a = [{values}] }}\nstruct S {{ 1: list<P> p }}"))
    count = 200_000
    with pytest.raises(DecodeError, match="defaults of missing fields"):
        codec.decode(bytes.fromhex("0f 0001 0c") + count.to_bytes(4, "big") + bytes(count + 1))


def test_wide_structs_in_long_lists() -> None:
    """The time to read a struct depends on the fields in the data, not on the declared ones."""
    body = "".join(f"{n}: i32 f{n}," for n in range(1, 10_000))
    codec = THRIFT.codec(parse_schema(f"struct P {{ {body} }}\nstruct S {{ 1: list<P> p }}"))
    count = 200_000
    data = bytes.fromhex("0f 0001 0c") + count.to_bytes(4, "big") + bytes(count + 1)
    assert codec.decode(data) == {"p": [{}] * count}


def test_data_in_a_circle() -> None:
    """A Python value that contains itself is refused at the limit of depth."""
    endless: dict[str, Any] = {}
    endless["a"] = [endless, endless]
    codec = THRIFT.codec(parse_schema("struct S { 1: list<S> a }"))
    with pytest.raises(EncodeError, match="deeper than 64 levels"):
        codec.encode(endless)


def test_ids_that_no_data_can_hold() -> None:
    """A field id beyond 16 bits, read leniently, is left out of examples and refused when it is written."""
    codec = THRIFT.codec(THRIFT.parse(b"struct S { 71992: i32 z, 1: i32 a, 50912: i32 y = 2 }", {}, strict=False))
    assert codec.example() == {"a": 1}
    with pytest.raises(EncodeError, match="16 bits"):
        codec.encode({"z": 1})
    required = THRIFT.codec(THRIFT.parse(b"struct S { 71992: required i32 z }", {}, strict=False))
    with pytest.raises(Invalid, match="71992"):
        required.example()
    union = THRIFT.codec(THRIFT.parse(b"union U { 71992: i32 z, 1: i32 a }", {}, strict=False))
    assert union.example() == {"a": 1}


def test_no_id_below_the_smallest() -> None:
    """A field without an id is rejected after the smallest 64-bit integer, because no id is left."""
    with pytest.raises(MalformedSchema, match="-9223372036854775808"):
        THRIFT.parse(b"struct S { -9223372036854775808: required i32 r, i32 a }", {}, strict=False)


def test_defaults_that_are_none() -> None:
    """A default that does not fit its type, read leniently, counts as no default."""
    codec = THRIFT.codec(THRIFT.parse(b"struct T { 1: i32 x = 'no' } struct S { 1: T t = 2 }", {}, strict=False))
    assert codec.validate(codec.example()) == []
    assert codec.decode(codec.encode({"t": {}})) == {"t": {}}
