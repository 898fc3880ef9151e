"""Request bodies: JSON read into the type an endpoint takes."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec
from litestar import Request
from litestar.exceptions import InternalServerException

from stele.errors import InvalidRequest

T = TypeVar("T")


class NotJson(InvalidRequest):
    """The body is no JSON document at all."""


class WrongShape(InvalidRequest):
    """The body is JSON, but not of the shape the endpoint takes."""


async def read_body(request: Request[Any, Any, Any], shape: type[T]) -> T:
    """The body as a value of a type, numbers in strings taken as numbers. Raises `NotJson`, `WrongShape`.

    The framework's own decoding is not used: it fails with a server error on bad UTF-8 and on deep nesting.
    """
    return decode_body(await read_bytes(request), shape)


async def read_bytes(request: Request[Any, Any, Any]) -> bytes:
    """The body as it is. Raises `NotJson` when the client leaves in the middle of it: a defect to the framework."""
    try:
        return await request.body()
    except InternalServerException:
        raise NotJson("the request ended before its body did") from None


def decode_body(body: bytes, shape: type[T]) -> T:
    """See `read_body`."""
    if not body.strip():
        raise WrongShape("the request has no body")
    try:
        # The decoder looks into strings it needs only; a body is one text, so all of it must be.
        value: T = _get_decoder(shape).decode(body.decode("utf-8"))
    except msgspec.ValidationError as error:
        raise WrongShape(str(error)) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise NotJson(f"the body is not JSON: {error}") from None
    except RecursionError:
        raise NotJson("the body is nested too deeply") from None
    return value


_decoders: dict[type, msgspec.json.Decoder[Any]] = {}


def _get_decoder(shape: type) -> msgspec.json.Decoder[Any]:
    known = _decoders.get(shape)
    if known is None:
        known = _decoders[shape] = msgspec.json.Decoder(shape, strict=False)
    return known
