"""Readers of untrusted JSON stop at the same nesting depth on every Python version."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from stele.client.request import json_decoder
from stele.core.json_depth import MAX_JSON_DEPTH
from stele.errors import DecodeError, FrameError, InvalidRequest, MalformedSchema
from stele.formats import json_reader
from stele.formats.jsonschema import JSON_SCHEMA
from stele.migrate.reading import decode_json
from stele.wire.cloudevents import read_structured

READ_DATUM = JSON_SCHEMA.codec(JSON_SCHEMA.parse(b"{}", {})).decode
EVENT = '{"specversion":"1.0","id":"1","source":"/a","type":"t","data":%s}'


def nest_arrays(levels: int) -> bytes:
    """Return JSON text of nested arrays."""
    return b"[" * levels + b"]" * levels


@pytest.mark.parametrize(
    ("read", "limit", "error"),
    [
        (READ_DATUM, MAX_JSON_DEPTH, DecodeError),
        (json_reader.decode_json, json_reader.MAX_DEPTH, MalformedSchema),
        (json_decoder(Any), MAX_JSON_DEPTH, msgspec.DecodeError),
        (lambda text: decode_json(msgspec.json.decode, text, "line 1"), MAX_JSON_DEPTH, InvalidRequest),
        (lambda text: read_structured(EVENT.encode() % text), MAX_JSON_DEPTH - 1, FrameError),
    ],
    ids=["datum", "schema", "answer", "archive", "event"],
)
def test_the_limit_is_a_number(read: Callable[[bytes], Any], limit: int, error: type[Exception]) -> None:
    """Each reader accepts as many levels as its limit, and refuses one more and 100,000."""
    read(nest_arrays(limit))
    for levels in (limit + 1, 100_000):
        with pytest.raises(error, match=r"nested (too deeply|deeper)"):
            read(nest_arrays(levels))
