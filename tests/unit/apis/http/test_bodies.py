"""Request bodies, shared by the dialects."""

import msgspec
import pytest

from stele.apis.http.bodies import NotJson, WrongShape, decode_body


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
