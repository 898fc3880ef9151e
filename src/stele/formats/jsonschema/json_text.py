"""Reads and writes JSON text without losing anything that a schema author wrote.

Numbers keep their exact spelling (`1.0` is not `1`, `1e400` is not infinity), members keep their order, and every error
has its position. Reading is bounded: the depth is measured before any recursive function reads the text.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable
from decimal import Decimal, InvalidOperation
from typing import Any, Literal, NoReturn, Self, TypeAlias

import msgspec

from stele.errors import MalformedSchema

Json: TypeAlias = Any
"""A JSON value: dict, list, str, bool, None, int (at most 19 characters) or `SpelledNumber`."""

RepeatedMembers: TypeAlias = dict[int, tuple[Json, list[str]]]
"""Objects with repeated member names, by identity: the object and these names."""

MAX_DEPTH = 200
"""Deepest nesting of braces and brackets in one document; the validator's own limit is 255."""

_SHORT_INT = 19
_LEAST_SHARED_HASH = 10 ** (_SHORT_INT - 2)
"""Smaller whole numbers have different hashes."""
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*+(?:"|\Z)|[\[\]{}]|NaN|-?Infinity', re.DOTALL)
_BOMS = {b"\xef\xbb\xbf": "UTF-8", b"\xff\xfe": "UTF-16", b"\xfe\xff": "UTF-16"}


class SpelledNumber(Decimal):
    """A number and its original text; compares and hashes by value."""

    __slots__ = ("text",)

    text: str

    def __new__(cls, text: str) -> Self:
        """Read a JSON number. Raises `MalformedSchema` when its exponent is not between -100,000 and 100,000."""
        try:
            number = super().__new__(cls, text)
        except InvalidOperation:
            raise MalformedSchema(f"the number {_quote_short(text)} is out of range") from None
        if not -100_000 < number.adjusted() < 100_000:
            raise MalformedSchema(f"the number {_quote_short(text)} is out of range")
        number.text = text
        return number

    def __reduce__(self) -> tuple[type[SpelledNumber], tuple[str]]:
        return SpelledNumber, (self.text,)


def parse_json(text: bytes, *, strict: bool = True, repeated: RepeatedMembers | None = None) -> Json:
    """Return one JSON document from UTF-8 bytes. Of members with the same name the last one counts, as in Jackson.

    strict rejects a byte order mark, which older registries accepted. repeated is filled with the names that an object
    has several times, by the identity of the object. Raises `MalformedSchema` with line and column.
    """

    def join_members(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
        members = dict(pairs)
        if len(members) < len(pairs) and repeated is not None:
            counts = Counter(name for name, _ in pairs)
            repeated[id(members)] = members, [name for name, count in counts.items() if count > 1]
        return members

    source = _decode_utf8(text, strict=strict)
    _check_depth(source)
    try:
        value = json.loads(
            source,
            parse_int=_parse_integer,
            parse_float=SpelledNumber,
            parse_constant=lambda name: _refuse_constant(source, name),
            object_pairs_hook=join_members,
        )
    except json.JSONDecodeError as error:
        raise _explain_syntax_error(error) from None
    except RecursionError:
        raise MalformedSchema(f"nested deeper than {MAX_DEPTH} levels") from None
    if "\\ud" in source or "\\uD" in source:
        _refuse_lone_surrogates(value)
    return value


_SYNTAX = {
    "Expecting value": ("no value", "a value"),
    "Expecting ',' delimiter": ("a comma or the end is missing", "',' or the closing bracket"),
    "Expecting ':' delimiter": ("a colon is missing", "':' and a value"),
    "Expecting property name enclosed in double quotes": ("no member name", 'a member name between "quotes"'),
    "Invalid control character at": ("a control character inside a string", r"an escape such as \n or \t"),
    "Extra data": ("something follows the document", "one document"),
    "Unterminated string starting at": ("a string without an end", 'a closing "'),
    "Invalid \\escape": ("an unknown escape", r"one of \" \\ \/ \b \f \n \r \t \u"),
    "Invalid \\uXXXX escape": ("a bad escape", "four hexadecimal digits"),
}
"""For each message of Python's parser, a clearer one, and what was expected."""

_TRAILING_COMMAS = {
    "Illegal trailing comma before end of object": "Expecting property name enclosed in double quotes",
    "Illegal trailing comma before end of array": "Expecting value",
}
"""Messages of Python 3.13 at a trailing comma, each with the one that older versions report at the bracket after it."""

_PAST_COMMA = re.compile(r",[ \t\r\n]*")


def _explain_syntax_error(error: json.JSONDecodeError) -> MalformedSchema:
    """Return the error with its position, the same for all versions of Python."""
    message, offset = error.msg, error.pos
    if message in _TRAILING_COMMAS:
        message = _TRAILING_COMMAS[message]
        comma = _PAST_COMMA.match(error.doc, offset)
        offset = comma.end() if comma else offset
    why, expected = _SYNTAX.get(message, (message, "JSON"))
    line, column = _line_and_column(error.doc, offset)
    return MalformedSchema(f"not valid JSON: {why}", line=line, column=column, expected=expected)


def write_json(value: Json, *, order: Literal["sorted"] | None = None) -> bytes:
    """Return compact UTF-8 JSON. Numbers are as spelled; members are in their order, or sorted by name."""
    return msgspec.json.encode(value, enc_hook=_encode_number, order=order)


def to_builtin(value: Json) -> Json:
    """Return the value in builtin types for the validator; numbers other than short integers become Decimal."""
    return _PLAIN.decode(write_json(value).decode())


def json_pointer(parts: Iterable[str | int]) -> str:
    """Return an RFC 6901 JSON Pointer as a URI fragment: `#` is the whole document, `#/properties/a` a member."""
    return "#" + "".join(f"/{escape_token(str(part))}" for part in parts)


def escape_token(part: str) -> str:
    """Return one reference token of a JSON Pointer."""
    return part.replace("~", "~0").replace("/", "~1")


def is_equal(left: Json, right: Json) -> bool:
    """Return whether two JSON values are equal: numbers by value, booleans unlike numbers, members in any order."""
    return bool(to_hashable(left) == to_hashable(right))


def to_hashable(value: Json) -> Any:
    """Return a hashable substitute for a JSON value. Substitutes are equal exactly when the values are."""
    if isinstance(value, bool) or value is None:
        return (type(value).__name__, value)
    if isinstance(value, dict):
        return ("object", frozenset((name, to_hashable(member)) for name, member in value.items()))
    if isinstance(value, list):
        return ("array", tuple(to_hashable(item) for item in value))
    if isinstance(value, Decimal) or (isinstance(value, int) and abs(value) >= _LEAST_SHARED_HASH):
        return _number_to_hashable(Decimal(value))
    return value


def _number_to_hashable(number: Decimal) -> Any:
    """Return a short whole number as it is, and any other number as a text.

    The hash of a number is its remainder, so an attacker could write thousands of numbers with the same hash. The hash
    of a text is different in each process.
    """
    if not number:
        return 0
    if number.adjusted() < _SHORT_INT - 2 and number == number.to_integral_value():
        return int(number)
    sign, digits, exponent = number.as_tuple()
    written = "".join(map(str, digits))
    short = written.rstrip("0")
    assert isinstance(exponent, int)  # JSON has no infinity
    return ("number", f"{sign} {short} {exponent + len(written) - len(short)}")


def _encode_number(value: object) -> msgspec.Raw:
    if isinstance(value, SpelledNumber):
        return msgspec.Raw(value.text.encode())
    raise NotImplementedError(f"{type(value).__name__} is not a JSON value")


def _decode_utf8(text: bytes, *, strict: bool) -> str:
    for mark, name in _BOMS.items():
        if text.startswith(mark):
            if strict or name != "UTF-8":
                raise MalformedSchema(
                    f"the text starts with a {name} byte order mark", line=1, column=1, expected="UTF-8 without a mark"
                )
            text = text[len(mark) :]
    try:
        return text.decode()
    except UnicodeDecodeError as error:
        line, column = _line_and_column(text[: error.start].decode(), error.start)
        raise MalformedSchema(
            f"byte 0x{text[error.start]:02x} is not UTF-8", line=line, column=column, expected="UTF-8"
        ) from None


def _check_depth(source: str) -> None:
    """Raise `MalformedSchema` for documents nested deeper than `MAX_DEPTH`.

    It is one linear pass, which is skipped when there are only few brackets.
    """
    if source.count("{") + source.count("[") <= MAX_DEPTH:
        return
    depth = 0
    for token in _TOKEN.finditer(source):
        mark = token.group()
        if mark in "{[":
            depth += 1
            if depth > MAX_DEPTH:
                line, column = _line_and_column(source, token.start())
                raise MalformedSchema(f"nested deeper than {MAX_DEPTH} levels", line=line, column=column)
        elif mark in "}]":
            depth -= 1


def _line_and_column(source: str, offset: int) -> tuple[int, int]:
    offset = min(offset, len(source))
    return source.count("\n", 0, offset) + 1, offset - source.rfind("\n", 0, offset)


def _parse_integer(text: str) -> int | SpelledNumber:
    return int(text) if len(text) <= _SHORT_INT and text != "-0" else SpelledNumber(text)


def _plain_integer(text: str) -> int | Decimal:
    return int(text) if len(text) <= _SHORT_INT else Decimal(text)


_PLAIN = json.JSONDecoder(parse_float=Decimal, parse_int=_plain_integer)


def _refuse_constant(source: str, name: str) -> NoReturn:
    offset = next((token.start() for token in _TOKEN.finditer(source) if token.group() == name), 0)
    line, column = _line_and_column(source, offset)
    raise MalformedSchema(f"{name} is not JSON", line=line, column=column, expected="a number")


def shorten_message(message: str, limit: int = 300) -> str:
    """Return the first characters of a message of the validator, with an ellipsis where it was longer."""
    return message if len(message) <= limit else message[:limit] + "…"


def _refuse_lone_surrogates(value: Json) -> None:
    try:
        write_json(value)
    except UnicodeEncodeError:
        raise MalformedSchema("a string holds half a surrogate pair", expected="Unicode text") from None


def _quote_short(text: str) -> str:
    return repr(text if len(text) <= 40 else text[:37] + "…")
