"""Requests: names in paths, and bodies read into types, with every way a body can be wrong."""

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
    """Any two names, percent-encoded into one path, are two segments that spell them."""
    path = decode_path(f"/{quote(first, safe='')}/{quote(second, safe='')}".encode())
    assert [decode_segment(segment) for segment in path[1:].split("/")] == [first, second]


@given(st.binary(max_size=60))
def test_any_bytes_make_a_path(raw: bytes) -> None:
    """No byte sequence is too strange to route."""
    assert isinstance(decode_path(b"/" + raw), str)


def test_only_encoded_slashes_are_marked() -> None:
    """A plain slash separates, an encoded one belongs to the name, a doubly encoded one stays encoded."""
    assert decode_path(b"/a/b%2Fc%2fd/%252F") == f"/a/b{SLASH}c{SLASH}d/%2F"


def test_a_private_character_is_no_second_spelling() -> None:
    """Characters that stand for something in routed paths mean themselves when a client sends them."""
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
    """Text that is no JSON, no UTF-8 even in a member nobody reads, or nested without end."""
    with pytest.raises(NotJson):
        decode_body(body, Shape)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_the_deepest_body(encoding: str) -> None:
    """Nesting ends at a number, whatever the interpreter could read; the body itself is the first level."""
    for levels in (MAX_JSON_DEPTH, MAX_JSON_DEPTH + 1):
        body = '{"number":1,"x":' + "[" * (levels - 1) + "]" * (levels - 1) + "}"
        if levels <= MAX_JSON_DEPTH:
            assert decode_body(body.encode(encoding), Shape) == Shape(1)
        else:
            with pytest.raises(NotJson, match=f"deeper than {MAX_JSON_DEPTH} levels"):
                decode_body(body.encode(encoding), Shape)


@pytest.mark.parametrize("body", [b"", b"  ", b"[]", b"null", b"{}", b'{"number":"x"}', b'{"number":1.5}'])
def test_what_has_another_shape(body: bytes) -> None:
    """JSON that the endpoint cannot take, or no body at all."""
    with pytest.raises(WrongShape):
        decode_body(body, Shape)


@pytest.mark.parametrize("rest", ["'", " {}", "}", '\n"', "\x00", "[" * 400])
def test_what_stands_behind_the_first_value_is_passed_over(rest: str) -> None:
    """Where a dialect asks for the first value only; one that is broken, or of another shape, stays refused."""
    for space in ("", " \r\n"):
        assert decode_body(f'{space}{{"number":1,"x":"}}"}}{rest}'.encode(), Shape, only_first=True) == Shape(1)
    with pytest.raises(NotJson):
        decode_body(f'{{"number":!{rest}'.encode(), Shape, only_first=True)
    with pytest.raises(WrongShape):
        decode_body(f'{{"number":"x"}}{rest}'.encode(), Shape, only_first=True)
    with pytest.raises(NotJson):
        decode_body(f'{{"number":NaN}}{rest}'.encode(), Shape, only_first=True)


def test_numbers_may_be_text() -> None:
    """Clients that quote numbers are understood, unknown members passed over."""
    assert decode_body(b'{"number":"5","later":[1]}', Shape).number == 5


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_json_in_every_unicode_encoding(encoding: str) -> None:
    """The encoding of a body is found from its first bytes (RFC 4627, 3), as Jackson finds it."""
    assert decode_body('{"number": 1, "x": "ä"}'.encode(encoding), Shape) == Shape(1)
