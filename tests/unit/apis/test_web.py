"""Bodies and media types, shared by the dialects."""

import msgspec
import pytest

from stele.apis.negotiation import media_type_of, names_first, negotiated
from stele.apis.web import NotJson, WrongShape, decode_body, documented
from stele.service.check import CheckRequest

OFFERED = {"application/x.v1+json": 1.0, "application/x+json": 0.9, "application/json": 0.5}


class Shape(msgspec.Struct):
    number: int
    inner: list["Shape"] = []


@pytest.mark.parametrize(
    ("accept", "chosen"),
    [
        ("", "application/x.v1+json"),
        ("*/*", "application/x.v1+json"),
        ("text/html, *; q=.2, */*; q=.2", "application/x.v1+json"),
        ("*", "application/x.v1+json"),
        ("application/*", "application/x.v1+json"),
        ("application/json", "application/json"),
        ("APPLICATION/JSON", "application/json"),
        ("application/json, application/x+json", "application/x+json"),
        ("application/json;q=0.9, application/x+json;q=0.1", "application/json"),
        ("application/json; q=0.2, */*; q=0.1", "application/json"),
        ("application/x.v1+json;q=0, */*", "application/x+json"),
        ("text/html, application/json;q=0.1", "application/json"),
        ("text/html", None),
        ("*/*;q=0", None),
        ("application/json;q=nonsense", None),
        (",,,", "application/x.v1+json"),
        ("application/json;charset=utf-8", "application/json"),
    ],
)
def test_negotiation(accept: str, chosen: str | None) -> None:
    """The client's weights decide, then the server's, the most specific range first."""
    assert negotiated(accept, OFFERED) == chosen


def test_bare_media_type() -> None:
    """Parameters and case do not count."""
    assert media_type_of("Application/JSON; charset=utf-8") == "application/json"
    assert media_type_of("") == ""


@pytest.mark.parametrize(
    "body",
    [
        b"{",
        b"nonsense",
        b"\xff",
        b'{"number":1,"x":"\xff"}',
        b'{"x":' + b"[" * 100_000,
        b"\0",
        b'{"number":1}}',
        b'"\\ud800"',
    ],
)
def test_what_is_not_json(body: bytes) -> None:
    """Text that is no JSON, no UTF-8 even in a member nobody reads, or nested without end."""
    with pytest.raises(NotJson):
        decode_body(body, Shape)


@pytest.mark.parametrize("body", [b"", b"  ", b"[]", b"null", b"{}", b'{"number":"x"}', b'{"number":1.5}'])
def test_what_has_another_shape(body: bytes) -> None:
    """JSON that the endpoint cannot take, or no body at all."""
    with pytest.raises(WrongShape):
        decode_body(body, Shape)


def test_numbers_may_be_text() -> None:
    """Clients that quote numbers are understood, unknown members passed over."""
    assert decode_body(b'{"number":"5","later":[1]}', Shape).number == 5


def test_documented_bodies_are_whole() -> None:
    """The OpenAPI schema of a body needs nothing from outside, and names every member."""
    operation = documented(CheckRequest)()
    assert operation.request_body is not None
    content = operation.request_body.content["application/json"]  # type: ignore[union-attr]  # never a reference
    text = str(content.schema)
    assert "$ref" not in text
    assert all(name in text for name in CheckRequest.__struct_fields__)


@pytest.mark.parametrize(
    ("accept", "first"),
    [
        ("", False),
        ("*/*", False),
        ("application/*", False),
        ("a/x", True),
        ("A/X;q=0.2", True),
        ("a/x, a/y", True),
        ("a/y;q=0.9, a/x;q=0.8", False),
        ("a/y;q=0.8, a/x;q=0.9, */*;q=0.1", True),
        ("a/x;q=0", False),
        ("a/x;q=nan", False),
        ("a/x;q=nonsense", False),
        ("a/x;q=0, a/x", True),
        (", ,", False),
    ],
)
def test_what_a_client_would_like_best(accept: str, first: bool) -> None:
    """A media type comes first when it is named itself, and nothing else is worth more to the client."""
    assert names_first(accept, "a/x") is first
