"""Decodes JSON schema documents strictly and within limits, and reports the line and column of an error."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import msgspec
import orjson

from stele.core.findings import SourcePosition
from stele.core.json_depth import is_nested_deeper
from stele.errors import MalformedSchema

MAX_BYTES = 8 * 1024 * 1024
"""Greatest length in bytes of a document that a JSON-based format parses."""

MAX_DEPTH = 400
"""Deepest nesting of objects and arrays; keeps recursive walks over a document far from the interpreter's limit."""

_EXPECTED = {
    "unexpected end of data": "the rest of the document",
    "unexpected content after document": "one document",
    "trailing comma is not allowed": "another item, or no comma before the end",
    "number with leading zero is not allowed": "a number without leading zeros",
}
"""What was expected, for those messages of orjson that do not say it. Used only in the text of errors."""

_BOM = b"\xef\xbb\xbf"


def decode_json(text: bytes, *, max_bytes: int = MAX_BYTES, max_depth: int = MAX_DEPTH) -> Any:
    """Return the value of one JSON document (RFC 8259).

    Integers are exact. Of members with the same name the last one counts.

    Raises `MalformedSchema` with line and column (of characters, from 1) for anything that is not strict JSON: empty
    text, a byte order mark, bad UTF-8, comments, NaN, numbers beyond double, nesting deeper than max_depth.
    """
    if len(text) > max_bytes:
        raise MalformedSchema(f"the document has {len(text)} bytes; at most {max_bytes} are parsed")
    if is_nested_deeper(text, max_depth):
        raise MalformedSchema(f"objects and arrays are nested deeper than {max_depth} levels")
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise _explain_malformed(text) from None


def line_and_column(text: bytes, offset: int) -> tuple[int, int]:
    """Return (line, column) of a byte offset. Both count from 1; columns count characters."""
    before = text[:offset].decode("utf-8", "replace")
    start = before.rfind("\n") + 1
    return before.count("\n") + 1, len(before) - start + 1


_TOKEN = re.compile(r'(?P<space>[ \t\r]+)|(?P<newline>\n)|(?P<string>"(?:[^"\\]|\\.)*+")|[{}\[\],:]|[^\s{}\[\],:"]+')


def locate_values(text: bytes) -> dict[str, SourcePosition]:
    """Return the position of each value of a JSON document by JSON Pointer (RFC 6901; '' is the whole document).

    The position of an object's member is where its name begins; that of an array's item is where the item begins. Of
    members with the same name the last one counts, as in `decode_json`. Raises `MalformedSchema` for a text that is not
    JSON.
    """
    decode_json(text)
    return dict(_walk_positions(text.decode("utf-8")))


def _walk_positions(text: str) -> Iterator[tuple[str, SourcePosition]]:
    """Yield (pointer, position) in the order of a text that is valid JSON."""
    line, start = 1, 0
    # For each open object or array: its pointer, and the number of the current item, None in an object.
    around: list[tuple[str, int | None]] = []
    pointer, is_next_name = "", False
    for token in _TOKEN.finditer(text):
        if token.lastgroup == "newline":
            line, start = line + 1, token.end()
            continue
        word = token[0]
        if token.lastgroup == "space" or word == ":":
            continue
        if word in "}]":
            around.pop()
            is_next_name = False
            continue
        if word == ",":
            pointer, index = around[-1]
            is_next_name = index is None
            if index is not None:
                around[-1] = pointer, index + 1
                pointer = f"{pointer}/{index + 1}"
            continue
        position = SourcePosition(line, token.start() - start + 1)
        if is_next_name:
            name = msgspec.json.decode(word, type=str)
            pointer = f"{around[-1][0]}/{name.replace('~', '~0').replace('/', '~1')}"
            yield pointer, position
            is_next_name = False
            continue
        if not around or around[-1][1] is not None:
            yield pointer, position
        if word == "{":
            around.append((pointer, None))
            is_next_name = True
        elif word == "[":
            around.append((pointer, 0))
            pointer = f"{pointer}/0"


def _explain_malformed(text: bytes) -> MalformedSchema:
    """Return an error that explains why a document is malformed.

    The document is parsed again with orjson, which reports the position. Only documents that fail have this extra cost.
    """
    if not text.strip():
        return MalformedSchema("the document is empty", line=1, column=1, expected="a JSON document")
    if text.startswith(_BOM):
        return MalformedSchema("the document starts with a byte order mark", line=1, column=1, expected="plain UTF-8")
    try:
        text.decode("utf-8")
    except UnicodeDecodeError as error:
        line, column = line_and_column(text, error.start)
        return MalformedSchema("the document is not UTF-8", line=line, column=column, expected="UTF-8")
    try:
        orjson.loads(text)
    except orjson.JSONDecodeError as error:
        why, _, expected = error.msg.partition(", expected ")
        expected = expected or _EXPECTED.get(why, "JSON")
        return MalformedSchema(f"not valid JSON: {why}", line=error.lineno, column=error.colno, expected=expected)
    return MalformedSchema("not valid JSON")
