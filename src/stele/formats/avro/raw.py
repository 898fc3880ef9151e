"""Defaults of the neutral model as Avro writes them: bytes as characters, times as numbers."""

from __future__ import annotations

import base64
import json
from typing import Any

from stele.errors import EncodeError
from stele.formats.avro.names import Names
from stele.formats.conversion import scalar_text
from stele.formats.conversion.json_values import from_json_value
from stele.formats.conversion.model import (
    Array,
    Decimal,
    Duration,
    Enumeration,
    Map,
    Model,
    RecordType,
    Scalar,
    ScalarKind,
    Time,
    Timestamp,
    TimeUnit,
    Type,
    TypeReference,
    Union,
)

_UNITS = {
    TimeUnit.SECOND: TimeUnit.MILLI,
    TimeUnit.MILLI: TimeUnit.MILLI,
    TimeUnit.MICRO: TimeUnit.MICRO,
    TimeUnit.NANO: TimeUnit.NANO,
}


class Defaults:
    """Turns JSON values of a model into default values of the Avro schema made from it."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self.wrapped: set[Union] = set()
        """Unions of which some option sits in a record of its own: defaults inside them are left out."""

    def taker(self, kind: Union, value: Any) -> int | None:
        """Index of the option that takes a value; None when none does."""
        for at, option in enumerate(kind.options):
            try:
                from_json_value(self._model, value, option.type)
            except EncodeError:
                continue
            return at
        return None

    def raw(self, kind: Type, value: Any) -> Any:
        """The default value. Raises `EncodeError` when there is none."""
        from_json_value(self._model, value, kind)
        try:
            return self._raw(kind, value)
        except (ValueError, ArithmeticError) as error:
            raise EncodeError(str(error)) from None

    def _raw(self, kind: Type, value: Any) -> Any:
        if value is None:
            return None
        match kind:
            case Scalar(scalar):
                return _scalar(scalar, value)
            case Array():
                return [self._raw(kind.items, item) for item in value]
            case Map():
                return {key: self._raw(kind.values, item) for key, item in value.items()}
            case TypeReference(name):
                return self._named(name, value)
            case Union():
                at = self.taker(kind, value)
                if at is None or kind in self.wrapped:
                    raise EncodeError("it lies in a union with no place for it")
                return self._raw(kind.options[at].type, value)
            case Decimal(None):
                return value
            case Decimal(_, scale):
                return _unscaled(int(scalar_text.parse_decimal(value, scale).scaleb(scale, scalar_text.EXACT_CONTEXT)))
            case Time(unit):
                return scalar_text.parse_time(value, TimeUnit.MICRO if unit is TimeUnit.NANO else _UNITS[unit])
            case Timestamp(unit, utc):
                return _long(scalar_text.parse_timestamp(value, _UNITS[unit], utc=utc))
            case Duration(_, True):
                return b"".join(
                    part.to_bytes(4, "little") for part in scalar_text.parse_calendar_duration(value)
                ).decode("latin-1")
            case Duration(unit):
                return _long(scalar_text.parse_duration(value, unit))

    def _named(self, name: str, value: Any) -> Any:
        match self._model.types[name]:
            case RecordType(fields=fields):
                names = Names.symbols([field.name for field in fields])
                types = {field.name: field.type for field in fields}
                return {names[member]: self._raw(types[member], item) for member, item in value.items()}
            case Enumeration(symbols=symbols):
                return Names.symbols([symbol.name for symbol in symbols])[value]
        return _characters(value)


def _scalar(kind: ScalarKind, value: Any) -> Any:
    match kind:
        case ScalarKind.ANY:
            return json.dumps(value, ensure_ascii=False)
        case ScalarKind.DATE:
            return scalar_text.parse_date(value)
        case ScalarKind.BYTES:
            return _characters(value)
        case ScalarKind.UINT64:
            return _unscaled(value)
        case ScalarKind.INTEGER:
            return _long(value)
        case ScalarKind.NUMBER:
            return float(value)
    return value


def _characters(value: str) -> str:
    return base64.b64decode(value).decode("latin-1")


def _unscaled(value: int) -> str:
    return value.to_bytes((value + (value < 0)).bit_length() // 8 + 1, "big", signed=True).decode("latin-1")


def _long(value: int) -> int:
    if not -(2**63) <= value < 2**63:
        raise ValueError(f"{value} is beyond 64 bits")
    return value
