"""Defaults of the neutral model as Avro writes them: bytes as characters, times as numbers."""

from __future__ import annotations

import base64
import json
from typing import Any

from stele.errors import EncodeError
from stele.formats.avro.names import Names
from stele.formats.conversion import texts
from stele.formats.conversion.data import datum
from stele.formats.conversion.model import (
    Array,
    Decimal,
    Duration,
    Enumeration,
    Kind,
    Map,
    Model,
    Named,
    Record,
    Scalar,
    Time,
    Timestamp,
    Type,
    Union,
    Unit,
)

_UNITS = {Unit.SECOND: Unit.MILLI, Unit.MILLI: Unit.MILLI, Unit.MICRO: Unit.MICRO, Unit.NANO: Unit.NANO}


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
                datum(self._model, value, option.type)
            except EncodeError:
                continue
            return at
        return None

    def raw(self, kind: Type, value: Any) -> Any:
        """The default value. Raises `EncodeError` when there is none."""
        datum(self._model, value, kind)
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
            case Named(name):
                return self._named(name, value)
            case Union():
                at = self.taker(kind, value)
                if at is None or kind in self.wrapped:
                    raise EncodeError("it lies in a union with no place for it")
                return self._raw(kind.options[at].type, value)
            case Decimal(None):
                return value
            case Decimal(_, scale):
                return _unscaled(int(texts.decimal_of(value, scale).scaleb(scale, texts.EXACT)))
            case Time(unit):
                return texts.time_of(value, Unit.MICRO if unit is Unit.NANO else _UNITS[unit])
            case Timestamp(unit, utc):
                return _long(texts.moment_of(value, _UNITS[unit], utc=utc))
            case Duration(_, True):
                return b"".join(part.to_bytes(4, "little") for part in texts.calendar_of(value)).decode("latin-1")
            case Duration(unit):
                return _long(texts.span_of(value, unit))

    def _named(self, name: str, value: Any) -> Any:
        match self._model.types[name]:
            case Record(fields=fields):
                names = Names.symbols([field.name for field in fields])
                types = {field.name: field.type for field in fields}
                return {names[member]: self._raw(types[member], item) for member, item in value.items()}
            case Enumeration(symbols=symbols):
                return Names.symbols([symbol.name for symbol in symbols])[value]
        return _characters(value)


def _scalar(kind: Kind, value: Any) -> Any:
    match kind:
        case Kind.ANY:
            return json.dumps(value, ensure_ascii=False)
        case Kind.DATE:
            return texts.day_of(value)
        case Kind.BYTES:
            return _characters(value)
        case Kind.UINT64:
            return _unscaled(value)
        case Kind.INTEGER:
            return _long(value)
        case Kind.NUMBER:
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
