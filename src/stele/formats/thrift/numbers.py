"""Numbers as they are written, within the ranges that data can hold."""

from __future__ import annotations

import math
from typing import Final

from stele.formats.thrift.lexer import Token, fault

I8: Final = range(-(2**7), 2**7)
I16: Final = range(-(2**15), 2**15)
I32: Final = range(-(2**31), 2**31)
I64: Final = range(-(2**63), 2**63)

_LONGEST: Final = 400
"""Characters of a double that are looked at."""


def integer(text: str, token: Token) -> int:
    """The integer of a token of the document text, decimal or hexadecimal. Raises `MalformedSchema` beyond 64 bits."""
    body = token.text.lstrip("+-")
    base = 16 if body.startswith("0x") else 10
    digits = body.removeprefix("0x").lstrip("0") or "0"
    if len(digits) <= len(str(2**63)):
        value = int(digits, base) * (-1 if token.text[0] == "-" else 1)
        if value in I64:
            return value
    raise fault(text, token.at, "the integer is too big", "a number of 64 bits")


def double(text: str, token: Token) -> float:
    """The double of a token of the document text. Raises `MalformedSchema` beyond what a double holds."""
    value = float(token.text) if len(token.text) <= _LONGEST else math.inf
    if math.isinf(value):
        raise fault(text, token.at, "the number is too big or too long", "a double")
    return value
