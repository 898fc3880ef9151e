"""Decoding JSON schema documents: strict, bounded, and with the line and column of what is wrong."""

from __future__ import annotations

import re
from typing import Any

import msgspec
import orjson

from stele.errors import MalformedSchema

MAX_BYTES = 8 * 1024 * 1024
"""Longest document any JSON-based format parses, in bytes."""

MAX_DEPTH = 400
"""Deepest nesting of objects and arrays; keeps recursive walks over a document far from the interpreter's limit."""

_EXPECTED = {
    "unexpected end of data": "the rest of the document",
    "unexpected content after document": "one document",
    "trailing comma is not allowed": "another item, or no comma before the end",
    "number with leading zero is not allowed": "a number without leading zeros",
}
"""Hints for sentences of the parser that have none; nothing is decided by them."""

_BOM = b"\xef\xbb\xbf"

_BRACKET_OR_STRING = re.compile(rb'[{}\[\]]|"(?:[^"\\]|\\.)*+"?', re.DOTALL)
"""A string ends with the text where its closing quote is missing."""


def decode_json(text: bytes, *, max_bytes: int = MAX_BYTES, max_depth: int = MAX_DEPTH) -> Any:
    """Return the value of one JSON document (RFC 8259); integers are exact, of duplicate members the last one wins.

    Raises `MalformedSchema` with line and column (of characters, from 1) for anything that is not strict JSON: empty
    text, a byte order mark, bad UTF-8, comments, NaN, numbers beyond double, nesting deeper than max_depth.
    """
    if len(text) > max_bytes:
        raise MalformedSchema(f"the document has {len(text)} bytes; at most {max_bytes} are parsed")
    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        raise _explain_malformed(text) from None
    # Counting brackets is cheap and can only overestimate, so nearly no document pays for the exact measurement.
    if text.count(b"{") + text.count(b"[") > max_depth and _is_deeper_than(value, max_depth):
        raise _too_deep_error(max_depth)
    return value


def line_and_column(text: bytes, offset: int) -> tuple[int, int]:
    """(line, column) of a byte offset, both from 1, columns in characters."""
    before = text[:offset].decode("utf-8", "replace")
    start = before.rfind("\n") + 1
    return before.count("\n") + 1, len(before) - start + 1


def _explain_malformed(text: bytes) -> MalformedSchema:
    """Say what is wrong; a second parser is asked because it knows the place, and only failures pay for it."""
    if not text.strip():
        return MalformedSchema("the document is empty", line=1, column=1, expected="a JSON document")
    if text.startswith(_BOM):
        return MalformedSchema("the document starts with a byte order mark", line=1, column=1, expected="plain UTF-8")
    try:
        text.decode("utf-8")
    except UnicodeDecodeError as error:
        line, column = line_and_column(text, error.start)
        return MalformedSchema("the document is not UTF-8", line=line, column=column, expected="UTF-8")
    if _count_levels(text) > MAX_DEPTH:
        return _too_deep_error(MAX_DEPTH)
    try:
        orjson.loads(text)
    except orjson.JSONDecodeError as error:
        why, _, expected = error.msg.partition(", expected ")
        expected = expected or _EXPECTED.get(why, "JSON")
        return MalformedSchema(f"not valid JSON: {why}", line=error.lineno, column=error.colno, expected=expected)
    return MalformedSchema("not valid JSON")


def _count_levels(text: bytes) -> int:
    """Return how many objects and arrays are open at once at most, in a text that need not be JSON."""
    level = deepest = 0
    for match in _BRACKET_OR_STRING.finditer(text):
        if match[0] in b"{[":
            level += 1
            deepest = max(deepest, level)
        elif match[0] in b"}]":
            level -= 1
    return deepest


def _too_deep_error(limit: int) -> MalformedSchema:
    return MalformedSchema(f"objects and arrays are nested deeper than {limit} levels")


def _is_deeper_than(value: Any, limit: int) -> bool:
    """Breadth first and without recursion, one list per level."""
    level = [value]
    for _ in range(limit + 1):
        below: list[Any] = []
        for item in level:
            if type(item) is dict:
                below.extend(item.values())
            elif type(item) is list:
                below.extend(item)
        if not below:
            return False
        level = below
    return any(type(item) in (dict, list) for item in level)
