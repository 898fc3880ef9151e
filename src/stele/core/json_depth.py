"""Measures how deeply a JSON text nests, before any recursive code reads it.

Decoders stop at the recursion limit of the interpreter: at some 1,000 levels on Python 3.11, 1,500 on 3.12 and 10,000
on 3.13, less the depth of the caller's stack. So a fixed limit is defined here.
"""

from __future__ import annotations

from itertools import accumulate
from typing import Final

MAX_JSON_DEPTH: Final = 500
"""Maximum nesting of objects and arrays in JSON from clients, including the schemas inside."""

_STEPS: Final = {ord("["): 1, ord("{"): 1, ord("]"): -1, ord("}"): -1}
_ALL_BUT_MARKS: Final = bytes(code for code in range(256) if code not in b'[]{}"')


def is_nested_deeper(text: bytes, limit: int = MAX_JSON_DEPTH) -> bool:
    """Return whether more objects and arrays than limit are open at once in a UTF-8 text, which need not be valid JSON.

    Brackets in strings do not count. One linear pass, skipped for a text that has few brackets.
    """
    if text.count(b"[") + text.count(b"{") <= limit:
        return False
    marks = text.replace(rb"\\", b"").replace(rb"\"", b"").translate(None, _ALL_BUT_MARKS)
    # Two adjacent quotes enclose no brackets: a string without any, or the gap between two strings.
    brackets = b"".join(marks.replace(b'""', b"").split(b'"')[::2])
    return max(accumulate(map(_STEPS.__getitem__, brackets)), default=0) > limit
