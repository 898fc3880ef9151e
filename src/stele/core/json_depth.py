"""How deeply a JSON text nests, asked before anything recursive reads it.

Decoders stop where their interpreter does: at some 1,000 levels on Python 3.11, 1,500 on 3.12 and 10,000 on 3.13, less
what the caller's stack has taken. A limit that callers meet is therefore a number of ours.
"""

from __future__ import annotations

from itertools import accumulate
from typing import Final

MAX_JSON_DEPTH: Final = 500
"""Deepest nesting of objects and arrays in JSON that strangers send, around and with the schemas inside."""

_STEPS: Final = {ord("["): 1, ord("{"): 1, ord("]"): -1, ord("}"): -1}
_ALL_BUT_MARKS: Final = bytes(code for code in range(256) if code not in b'[]{}"')


def is_nested_deeper(text: bytes, limit: int = MAX_JSON_DEPTH) -> bool:
    """Whether more objects and arrays than limit are open at once in a text in UTF-8, which need not be JSON.

    Brackets in strings do not count. One linear pass, skipped for a text that has few brackets at all.
    """
    if text.count(b"[") + text.count(b"{") <= limit:
        return False
    marks = text.replace(rb"\\", b"").replace(rb"\"", b"").translate(None, _ALL_BUT_MARKS)
    # Two quotes in a row are a string without brackets, or the gap between two strings: none of them is missed.
    brackets = b"".join(marks.replace(b'""', b"").split(b'"')[::2])
    return max(accumulate(map(_STEPS.__getitem__, brackets)), default=0) > limit
