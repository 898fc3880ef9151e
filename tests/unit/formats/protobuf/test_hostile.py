"""Hostile Protobuf schemas: each ends soon in a clear error or an answer."""

from __future__ import annotations

import pytest

from stele.core.ports import TextForm
from stele.errors import MalformedSchema
from stele.formats.protobuf import PROTOBUF
from stele.formats.protobuf.parse import MAX_DECLARATIONS, SchemaCache


def test_comments_that_are_no_text() -> None:
    """A comment that is not UTF-8 is shown with replacement characters."""
    schema = PROTOBUF.parse(b'syntax="proto3"; message M { string o = 3; // caf\xe9\n}', {})
    assert [field.doc for field in PROTOBUF.fields(schema)] == ["caf\N{REPLACEMENT CHARACTER}"]
    for form in TextForm:
        assert PROTOBUF.canonical(schema, form)


@pytest.mark.parametrize(
    "body",
    [
        "".join(f"message M{n} {{}}" for n in range(MAX_DECLARATIONS + 1)),
        "message M { oneof o {" + "".join(f"int32 f{n} = {n + 1};" for n in range(15_000)) + "} "
        "enum E {" + "".join(f"V{n} = {n};" for n in range(MAX_DECLARATIONS - 15_000)) + "} }",
        "message M {} service S {" + "".join(f"rpc R{n}(M) returns (M);" for n in range(MAX_DECLARATIONS)) + "}",
    ],
    ids=["messages", "members", "methods"],
)
def test_too_many_declarations(body: str) -> None:
    """A file of more declarations than can be printed and compared in a second is refused with the limit."""
    with pytest.raises(MalformedSchema, match=f"more than {MAX_DECLARATIONS} declarations"):
        PROTOBUF.parse(f'syntax="proto3"; {body}'.encode(), {})


def test_many_declarations_in_imports() -> None:
    """Imports count as well, with a limit of their own."""
    messages = "".join(f"message M{n} {{}}" for n in range(MAX_DECLARATIONS - 1_000))
    texts = {f"{name}.proto": f'syntax="proto3"; package {name}; {messages}'.encode() for name in "abcd"}
    imports = "".join(f'import "{name}.proto";' for name in "abcd")
    with pytest.raises(MalformedSchema, match="and its imports"):
        PROTOBUF.parse(f'syntax="proto3"; {imports} message X {{}}'.encode(), texts)


def test_the_cache_counts_what_schemas_take() -> None:
    """The cache is limited by memory: a small schema takes tens of kilobytes."""
    cache = SchemaCache(1 << 20)
    schema = PROTOBUF.parse(b'syntax="proto3"; message M { string a = 1; }', {})
    for number in range(200):
        cache.store_schema((b"%d" % number, "", ()), schema)
    cached_count = sum(cache.find_schema((b"%d" % number, "", ())) is not None for number in range(200))
    assert 10 < cached_count < 64
    assert cache.find_schema((b"199", "", ())) is schema


@pytest.mark.parametrize(
    "body",
    ["int32 f = 1; " * 40_000, "".join(f"reserved {2 * n + 1}; " for n in range(60_000))],
    ids=["duplicates", "reserved"],
)
def test_what_keeps_the_compiler_busy(body: str) -> None:
    """Work that grows with the square of the input is ended after less than two seconds of processor time."""
    with pytest.raises(MalformedSchema):
        PROTOBUF.parse(f'syntax="proto3"; message M {{ {body} }}'.encode(), {})
    assert PROTOBUF.parse(b'syntax="proto3"; message After {}', {}).type_name == "After"


def test_reserved_names_that_are_no_text() -> None:
    """A string of a descriptor that is not UTF-8 is printed with escapes, and read again as the same bytes."""
    schema = PROTOBUF.parse(b'syntax="proto3"; message M { string e = 1; reserved "\xf6"; }', {})
    printed = PROTOBUF.canonical(schema, TextForm.PRINTED)
    assert b'reserved "\\366";' in printed
    assert PROTOBUF.canonical(PROTOBUF.parse(printed, {}), TextForm.PRINTED) == printed
