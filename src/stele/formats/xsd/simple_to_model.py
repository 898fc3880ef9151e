"""Simple types as types of the neutral model.

| XML Schema | model |
|---|---|
| boolean, float, double | boolean, float32, float64 |
| byte to unsignedLong | integers of the same width |
| integer and its kin | one of 32 or 64 bits where facets bound it on both sides, else one of any size |
| decimal | a decimal; of bounded precision when totalDigits and fractionDigits say so |
| string and its kin, anyURI, QName, the parts of dates | string |
| a text type with an enumeration | an enumeration |
| hexBinary, base64Binary | bytes; a fixed type where one length is demanded |
| date, time, dateTime | a date, a time, a wall-clock time; a point in time where a time zone is demanded |
| duration, yearMonthDuration | a span of months, days and milliseconds |
| dayTimeDuration | a span of exact length |
| list, union | an array, a union of the distinct types of its members |

Facets become constraints where JSON Schema has a word for them.
"""

from __future__ import annotations

import base64
import binascii
import math
import re
from collections.abc import Callable
from decimal import Decimal as Number
from decimal import InvalidOperation
from typing import Any, Final

from stele.formats.conversion.model import (
    ABSENT,
    Array,
    Decimal,
    Duration,
    Enumeration,
    EnumSymbol,
    Fixed,
    Loss,
    NamedType,
    Scalar,
    ScalarKind,
    Time,
    Timestamp,
    TimeUnit,
    Type,
    TypeReference,
    Union,
    UnionOption,
)
from stele.formats.xsd.simple_type import INTEGERS, TEXTUAL, SimpleTypeShape, shape_of, value_interval
from stele.formats.xsd.xmlschema_adapter import local_name

MAX_DEPTH: Final = 16
"""Lists and unions inside each other; what lies deeper is text."""

_WIDTHS: Final = {
    "byte": ScalarKind.INT8,
    "short": ScalarKind.INT16,
    "int": ScalarKind.INT32,
    "long": ScalarKind.INT64,
    "unsignedByte": ScalarKind.UINT8,
    "unsignedShort": ScalarKind.UINT16,
    "unsignedInt": ScalarKind.UINT32,
    "unsignedLong": ScalarKind.UINT64,
}
_PLAIN: Final = {
    "boolean": ScalarKind.BOOLEAN,
    "float": ScalarKind.FLOAT32,
    "double": ScalarKind.FLOAT64,
    "hexBinary": ScalarKind.BYTES,
    "base64Binary": ScalarKind.BYTES,
    "date": ScalarKind.DATE,
}
_TIMES: Final[dict[str, Type]] = {
    "time": Time(TimeUnit.MICRO),
    "dateTime": Timestamp(TimeUnit.MICRO, utc=False),
    "dateTimeStamp": Timestamp(TimeUnit.MICRO),
    "duration": Duration(TimeUnit.MILLI, calendar=True),
    "yearMonthDuration": Duration(TimeUnit.MILLI, calendar=True),
    "dayTimeDuration": Duration(TimeUnit.MICRO),
}
_BINARY: Final = frozenset({"hexBinary", "base64Binary"})
_BIGGEST: Final = 400
"""Digits of a bound that is kept as a constraint."""
_FOREIGN: Final = re.compile(r"\\[iIcCpP]|-\[|[\^$]")
"""Parts of a pattern that the regular expressions of JSON Schema lack or read otherwise."""


class SimpleTypeConverter:
    """Turns simple types into types; enumerations and fixed types are declared under a name that free makes unique."""

    def __init__(self, losses: list[Loss], types: dict[str, NamedType], free: Callable[[str], str]) -> None:
        self._losses = losses
        self._types = types
        self._free = free
        self._known: dict[int, str] = {}

    def convert_type(self, kind: Any, path: str, name: str, depth: int = 0) -> Type:
        """Return the type of a simple type; name is the one it wants if it has to be declared."""
        shape = shape_of(kind)
        if shape.variety == "any" or depth > MAX_DEPTH:
            self._add_loss(path, "ANY", "Any text may stand here.")
            return Scalar(ScalarKind.STRING)
        if shape.variety == "list":
            return Array(self.convert_type(shape.parts[0], f"{path}[]", f"{name}Item", depth + 1))
        if shape.variety == "union":
            return self._union_type(shape, path, name, depth)
        self._report_unchecked_facets(shape, path)
        named = self._named_type(kind, shape, name)
        return named or self._atomic_type(shape, path)

    def _add_loss(self, path: str, what: str, why: str, *, data: bool = False) -> None:
        self._losses.append(Loss(path, what, why, data))

    def _named_type(self, kind: Any, shape: SimpleTypeShape, name: str) -> Type | None:
        """Return an enumeration of texts, or bytes of one length."""
        low, high = shape.lengths
        listed = shape.enumeration if shape.base in TEXTUAL else None
        one_length = shape.base in _BINARY and low is not None and low == high
        if not listed and not one_length:
            return None
        known = self._known.get(id(kind))
        if known is None:
            known = self._known[id(kind)] = self._free(name)
            if listed:
                texts = dict.fromkeys(text if shape.white == "preserve" else " ".join(text.split()) for text in listed)
                self._types[known] = Enumeration(known, tuple(EnumSymbol(text) for text in texts))
            else:
                self._types[known] = Fixed(known, low or 0)
        return TypeReference(known)

    def _union_type(self, shape: SimpleTypeShape, path: str, name: str, depth: int) -> Type:
        options: dict[str, UnionOption] = {}
        for index, member in enumerate(shape.parts, 1):
            kind = self.convert_type(member, path, f"{name}Member{index}", depth + 1)
            word = local_name(member.name) if member.name else ""
            for option in kind.options if isinstance(kind, Union) else (UnionOption(kind, word),):
                options.setdefault(repr(option.type), option)
        self._add_loss(path, "UNION", "The first member that takes a text decides its type; a union does not say so.")
        if shape.enumeration or shape.patterns:
            self._add_loss(path, "CONSTRAINT", "Facets of a union are not checked.")
        if len(options) == 1:
            return next(iter(options.values())).type
        return Union(tuple(options.values()))

    def _atomic_type(self, shape: SimpleTypeShape, path: str) -> Type:
        base = shape.base
        if base in _WIDTHS:
            return Scalar(_WIDTHS[base])
        if shape.is_integral:
            low, high = value_interval(shape)
            for kind, least, most in (
                (ScalarKind.INT32, *INTEGERS["int"]),
                (ScalarKind.INT64, *INTEGERS["long"]),
                (ScalarKind.UINT64, *INTEGERS["unsignedLong"]),
            ):
                assert least is not None
                assert most is not None
                if low is not None and high is not None and least <= low.value and high.value <= most:
                    return Scalar(kind)
            return Scalar(ScalarKind.INTEGER)
        if base == "decimal":
            total, fraction = shape.digits
            return Decimal(None if fraction is None else total, fraction or 0)
        if base in _TIMES:
            self._report_time_losses(base, path)
            zoned = base == "dateTime" and "timezone required" in shape.tests
            return Timestamp(TimeUnit.MICRO) if zoned else _TIMES[base]
        if base == "date":
            self._add_loss(path, "ZONE", "A time zone behind the date has no place.", data=True)
        if base in {"ID", "IDREF", "ENTITY", "NOTATION"}:
            self._add_loss(path, "IDENTITY", f"That the text is an {base}, unique or referring, is not checked.")
        return Scalar(_PLAIN.get(base, ScalarKind.STRING))

    def _report_time_losses(self, base: str, path: str) -> None:
        if base in {"time", "dateTime"}:
            why = "A time zone, which may be there or not, and digits below a microsecond have no place."
            self._add_loss(path, "ZONE", why, data=True)
        elif base in {"duration", "dayTimeDuration"}:
            unit = "millisecond" if base == "duration" else "microsecond"
            self._add_loss(path, "PRECISION", f"Digits below a {unit} have no place.", data=True)

    # --- facets -----------------------------------------------------------------------------------------------------

    def _report_unchecked_facets(self, shape: SimpleTypeShape, path: str) -> None:
        """Report the facets that JSON Schema has no keyword for."""
        lost = [f"the assertion {test[:60]!r}" for test in sorted(shape.tests) if not test.startswith("timezone")]
        patterns = [text for step in shape.patterns for text in step]
        if patterns and _json_pattern(shape) is None:
            lost.append(f"the pattern {patterns[0][:60]!r}")
        total, fraction = shape.digits
        if shape.base == "decimal" and total is not None and fraction is None:
            lost.append(f"totalDigits {total}")
        if shape.base in _BINARY and shape.lengths != (None, None) and shape.lengths[0] != shape.lengths[1]:
            lost.append("the length")
        if shape.bounds and shape.base not in {"float", "double", "decimal", *INTEGERS}:
            lost.append("least and greatest value")
        if shape.enumeration is not None and shape.base not in {*TEXTUAL, "float", "double", "decimal", *INTEGERS}:
            lost.append("the list of values")
        if lost:
            self._add_loss(path, "CONSTRAINT", f"Nothing checks {', '.join(lost[:5])}.")

    def json_constraints(self, kind: Any) -> dict[str, Any]:
        """Return the facets of a simple type as keywords of JSON Schema."""
        shape = shape_of(kind)
        made: dict[str, Any] = {}
        low, high = shape.lengths
        if shape.variety == "list":
            made = {"minItems": low, "maxItems": high}
        elif shape.variety == "atomic" and shape.base in TEXTUAL and not shape.enumeration:
            made = {"minLength": low, "maxLength": high, "pattern": _json_pattern(shape)}
        elif shape.base == "anyURI":
            made = {"minLength": low, "maxLength": high, "format": "uri-reference"}
        elif shape.is_integral or shape.base in {"decimal", "float", "double"}:
            made = _bound_constraints(shape)
            listed = [self.json_value(kind, text) for text in shape.enumeration or ()]
            made["enum"] = None if ABSENT in listed else listed or None
        return {word: value for word, value in made.items() if value is not None}

    def json_value(self, kind: Any, text: str) -> Any:
        """Return a text of a simple type as a JSON value; ABSENT where it has none."""
        shape = shape_of(kind)
        text = text if shape.white == "preserve" else " ".join(text.split())
        try:
            if shape.variety == "list":
                return [self.json_value(shape.parts[0], part) for part in text.split()]
            if shape.variety == "union":
                return next((self.json_value(part, text) for part in shape.parts if part.is_valid(text)), ABSENT)
            if shape.is_integral:
                return int(text) if len(text) <= _BIGGEST else ABSENT
            if shape.base in {"float", "double"}:
                number = float(text)
                return number if math.isfinite(number) else ABSENT
            if shape.base == "boolean":
                return text in {"true", "1"}
            if shape.base == "hexBinary":
                return base64.b64encode(binascii.unhexlify(text)).decode()
        except (ValueError, TypeError, ArithmeticError):
            return ABSENT
        return text


def _bound_constraints(shape: SimpleTypeShape) -> dict[str, Any]:
    """Return least and greatest value, beyond what the width of the type says."""
    made: dict[str, Any] = {}
    own = INTEGERS.get(shape.base, (None, None))
    ends = value_interval(shape._replace(digits=(None, None)) if shape.base == "decimal" else shape)
    for end, word, width in zip(ends, ("Minimum", "Maximum"), own, strict=True):
        if end is None or abs(end.value) >= Number(10) ** _BIGGEST:
            continue
        value = _json_number(end.value)
        if value is None or (shape.base in _WIDTHS and not end.exclusive and value == width):
            continue
        made[f"exclusive{word}" if end.exclusive else word.lower()] = value
    return made


def _json_number(value: Number) -> int | float | None:
    """Return a bound as a JSON number; None when none is equal to it."""
    try:
        if value == value.to_integral_value():
            return int(value)
        number = float(value)
    except (InvalidOperation, OverflowError, ValueError):
        return None
    return number if math.isfinite(number) else None


def _json_pattern(shape: SimpleTypeShape) -> str | None:
    """Return the pattern in the dialect of JSON Schema; None without one, or where the dialects differ."""
    if len(shape.patterns) != 1 or any(_FOREIGN.search(text) for text in shape.patterns[0]):
        return None
    return f"^(?:{'|'.join(shape.patterns[0])})$"
