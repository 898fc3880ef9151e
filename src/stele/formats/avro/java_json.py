"""JSON printed the way the Java Avro library prints it, so that texts match those of registries built on it.

No white space; non-ASCII characters stand for themselves; control characters are escaped with upper-case hex; doubles
look like Java's `Double.toString` (`1.0`, `2.0E10`, `1.0E-4`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from math import isinf, isnan
from typing import Any

import msgspec

_quote = json.encoder.encode_basestring
_encode = msgspec.json.Encoder().encode
_MAYBE_DOUBLE = re.compile(r"[:,\[]-?[0-9]+[.e]")
"""What every double inside a document looks like in the library's JSON; parts of strings may look so, too."""
_LOWER_HEX = re.compile(r"(?<!\\)((?:\\\\)*)\\u00([01])([a-f])")


def to_java_json(value: Any) -> str:
    """Return one line of JSON; members keep their order. value is of a JSON document: no double in it is NaN."""
    try:
        # The library's encoder is many times as fast, and differs in hex digits and doubles only.
        printed = _encode([value]).decode()
    except (TypeError, UnicodeEncodeError):  # a mapping that is no dict; half a surrogate pair
        printed = ""
    if printed and not _MAYBE_DOUBLE.search(printed):
        return _raise_hex_digits(printed[1:-1])
    parts: list[str] = []
    _write_value(value, parts.append)
    return "".join(parts)


def quote_string(text: str) -> str:
    """Return a JSON string."""
    return _raise_hex_digits(_quote(text))


def _raise_hex_digits(printed: str) -> str:
    """Return JSON with the escapes of control characters in upper case."""
    if "\\u00" not in printed:
        return printed
    return _LOWER_HEX.sub(lambda match: f"{match[1]}\\u00{match[2]}{match[3].upper()}", printed)


def _write_value(value: Any, put: Any) -> None:
    match value:
        case str():
            put(quote_string(value))
        case None:
            put("null")
        case bool():
            put("true" if value else "false")
        case int():
            put(str(value))
        case float():
            put(format_double(value))
        case Mapping():
            opening = "{"
            for key, item in value.items():
                put(opening + quote_string(key) + ":")
                _write_value(item, put)
                opening = ","
            put("{}" if opening == "{" else "}")
        case Sequence():
            opening = "["
            for item in value:
                put(opening)
                _write_value(item, put)
                opening = ","
            put("[]" if opening == "[" else "]")
        case _:
            raise TypeError(f"{type(value).__name__} has no JSON form")


def format_double(value: float) -> str:
    """Return a double in Java's notation, with the fewest digits that read back as the same number."""
    if isnan(value) or isinf(value):
        return '"NaN"' if isnan(value) else ('"Infinity"' if value > 0 else '"-Infinity"')
    sign, digits, exponent = _decompose_double(value)
    if value == 0:
        return f"{sign}0.0"
    if -3 <= exponent < 7:
        if exponent < 0:
            return f"{sign}0.{'0' * (-exponent - 1)}{digits}"
        digits = digits.ljust(exponent + 2, "0")
        return f"{sign}{digits[: exponent + 1]}.{digits[exponent + 1 :]}"
    return f"{sign}{digits[0]}.{digits[1:] or '0'}E{exponent}"


def _decompose_double(value: float) -> tuple[str, str, int]:
    """(sign, significant digits without trailing zeros, exponent of the first digit)."""
    mantissa, _, power = f"{value!r}".lower().partition("e")
    sign = "-" if mantissa.startswith("-") else ""
    whole, _, fraction = mantissa.removeprefix("-").partition(".")
    digits = (whole + fraction).lstrip("0")
    exponent = int(power or 0) + (len(whole) - 1 if whole.strip("0") else len(digits) - len(fraction) - 1)
    return sign, digits.rstrip("0") or "0", exponent
