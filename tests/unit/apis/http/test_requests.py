"""Requests: names in paths, and bodies decoded into types, with all invalid kinds of bodies."""

from urllib.parse import quote

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stele.apis.http.requests import SLASH, NotJson, WrongShape, decode_body, decode_path, decode_segment
from stele.core.json_depth import MAX_JSON_DEPTH

segment_names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1)


@given(segment_names, segment_names)
def test_encoded_names_come_back(first: str, second: str) -> None:
    """Any two names, percent-encoded into one path, are decoded from its two segments."""
    path = decode_path(f"/{quote(first, safe='')}/{quote(second, safe='')}".encode())
    assert [decode_segment(segment) for segment in path[1:].split("/")] == [first, second]


@given(st.binary(max_size=60))
def test_any_bytes_make_a_path(raw: bytes) -> None:
    """Any bytes can be decoded into a path."""
    assert isinstance(decode_path(b"/" + raw), str)


def test_only_encoded_slashes_are_marked() -> None:
    """A plain slash separates, an encoded one belongs to the name, a doubly encoded one stays encoded."""
    assert decode_path(b"/a/b%2Fc%2fd/%252F") == f"/a/b{SLASH}c{SLASH}d/%2F"


def test_a_private_character_is_no_second_spelling() -> None:
    """The characters that replace slashes in routed paths are escaped if a client sends them."""
    for sent, name in (("a%EE%80%80b", "a\ue000b"), ("%EE%80%81", "\ue001"), ("%ee%80%820%2F", "\ue0020/")):
        path = decode_path(f"/{sent}".encode())
        assert path.count(SLASH) == sent.count("%2F")
        assert decode_segment(path[1:]) == name


class Shape(msgspec.Struct):
    number: int
    inner: list["Shape"] = []


@pytest.mark.parametrize(
    "body",
    [
        b"{",
        b"nonsense",
        b"\xff",
        b'{"number":1,"x":"\xff"}',
        b'{"x":' + b"[" * 90_000,
        b"\0",
        b'{"number":1}}',
        b'"\\ud800"',
    ],
)
def test_what_is_not_json(body: bytes) -> None:
    """Invalid JSON, invalid UTF-8 even in an unknown member, and too deep nesting are refused."""
    with pytest.raises(NotJson):
        decode_body(body, Shape)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_the_deepest_body(encoding: str) -> None:
    """The maximum nesting is a fixed number, and the body itself is the first level."""
    for levels in (MAX_JSON_DEPTH, MAX_JSON_DEPTH + 1):
        body = '{"number":1,"x":' + "[" * (levels - 1) + "]" * (levels - 1) + "}"
        if levels <= MAX_JSON_DEPTH:
            assert decode_body(body.encode(encoding), Shape) == Shape(1)
        else:
            with pytest.raises(NotJson, match=f"deeper than {MAX_JSON_DEPTH} levels"):
                decode_body(body.encode(encoding), Shape)


@pytest.mark.parametrize("body", [b"", b"  ", b"[]", b"null", b"{}", b'{"number":"x"}', b'{"number":1.5}'])
def test_what_has_another_shape(body: bytes) -> None:
    """JSON that the endpoint does not accept, and an absent body, are refused."""
    with pytest.raises(WrongShape):
        decode_body(body, Shape)


@pytest.mark.parametrize("rest", ["'", " {}", "}", '\n"', "\x00", "[" * 400])
def test_what_stands_behind_the_first_value_is_passed_over(rest: str) -> None:
    """With `only_first`, text after the first value is ignored; a first value that is invalid is still refused."""
    for space in ("", " \r\n"):
        assert decode_body(f'{space}{{"number":1,"x":"}}"}}{rest}'.encode(), Shape, only_first=True) == Shape(1)
    with pytest.raises(NotJson):
        decode_body(f'{{"number":!{rest}'.encode(), Shape, only_first=True)
    with pytest.raises(WrongShape):
        decode_body(f'{{"number":"x"}}{rest}'.encode(), Shape, only_first=True)
    with pytest.raises(NotJson):
        decode_body(f'{{"number":NaN}}{rest}'.encode(), Shape, only_first=True)


def test_numbers_may_be_text() -> None:
    """Numbers in strings are accepted, and unknown members are ignored."""
    assert decode_body(b'{"number":"5","later":[1]}', Shape).number == 5


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_json_in_every_unicode_encoding(encoding: str) -> None:
    """The encoding of a body is detected from its first bytes (RFC 4627, 3), as in Jackson."""
    assert decode_body('{"number": 1, "x": "ä"}'.encode(encoding), Shape) == Shape(1)
