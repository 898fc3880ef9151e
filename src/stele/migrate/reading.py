"""Reads JSON from untrusted files. Every defect becomes one error that names its position."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import msgspec

from stele.core.json_depth import MAX_JSON_DEPTH, is_nested_deeper
from stele.errors import InvalidRequest

T = TypeVar("T")


def decode_json(decode: Callable[[bytes], T], data: bytes, what: str) -> T:
    """Return data decoded by a msgspec decoder. Raises `InvalidRequest`, whose message begins with `what`."""
    if is_nested_deeper(data):
        raise InvalidRequest(f"{what}: nested too deeply, more than {MAX_JSON_DEPTH} levels")
    try:
        return decode(data)
    except msgspec.MsgspecError as error:
        raise InvalidRequest(f"{what}: {error}") from None
    except UnicodeDecodeError as error:
        raise InvalidRequest(f"{what}: not UTF-8: {error.reason}") from None
