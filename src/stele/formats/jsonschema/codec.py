"""JSON data of a schema: encode, decode, validate. The payload is compact UTF-8 JSON without any frame."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any, NoReturn

import jsonschema_rs

from stele.errors import DecodeError, EncodeError
from stele.formats.jsonschema.example import candidates
from stele.formats.jsonschema.parsed import ParsedJsonSchema
from stele.formats.jsonschema.text import MAX_DEPTH, Spelled, pointer, write

MAX_MESSAGES = 50
"""Faults of one datum that are told; more are counted only."""

_MESSAGE_LIMIT = 300


class JsonCodec:
    """Codec of one schema.

    writer  what is written must fit it
    reader  what is read must fit it (the writer's when None); missing members are not filled with defaults

    `format` is not asserted, in no draft. Numbers with a fraction are read as float; Decimal may be written.
    """

    def __init__(self, writer: ParsedJsonSchema, reader: ParsedJsonSchema | None = None) -> None:
        self._writer = writer
        self._reader = reader or writer

    def encode(self, datum: Any) -> bytes:
        """Compact UTF-8 JSON of a datum. Raises `EncodeError` when it is no JSON value or does not fit."""
        faults = self.validate(datum)
        if faults:
            raise EncodeError("; ".join(faults))
        try:
            return json.dumps(
                datum, allow_nan=False, ensure_ascii=False, separators=(",", ":"), default=_refuse
            ).encode()
        except TypeError:
            return write(_spelled(datum))
        except (ValueError, RecursionError) as error:
            raise EncodeError(f"the datum is no JSON value: {error}") from None

    def decode(self, data: bytes) -> Any:
        """One JSON value that fits the reader's schema. Raises `DecodeError`."""
        try:
            source = data.decode()
            datum = json.loads(source, parse_constant=_refuse_constant)
        except UnicodeDecodeError as error:
            raise DecodeError("not UTF-8", offset=error.start) from None
        except json.JSONDecodeError as error:
            raise DecodeError(f"not JSON: {error.msg}", offset=len(error.doc[: error.pos].encode())) from None
        except (ValueError, RecursionError) as error:
            raise DecodeError(f"not readable as JSON: {error}") from None
        faults = _faults(self._reader, datum)
        if faults:
            raise DecodeError("; ".join(faults))
        return datum

    def validate(self, datum: Any) -> list[str]:
        """Why a datum does not fit the writer's schema: `#/path: reason`, at most `MAX_MESSAGES` and a count."""
        return _faults(self._writer, datum)

    def example(self) -> Any:
        """A small datum that was seen to fit the writer's schema. Raises `EncodeError` when none is found."""
        for candidate in candidates(self._writer):
            if not self.validate(candidate):
                return candidate
        raise EncodeError("no small datum was found that fits the schema")


def _faults(parsed: ParsedJsonSchema, datum: Any) -> list[str]:
    validator = parsed.validator
    try:
        if validator.is_valid(datum):
            return []
        faults: list[str] = []
        for count, error in enumerate(validator.iter_errors(datum)):
            if count == MAX_MESSAGES:
                return [*faults, "and more"]
            faults.append(f"{pointer(error.instance_path)}: {_short(error.message)}")
        return faults
    except jsonschema_rs.ValidationError as error:
        return [f"#: {_short(error.message)}"]
    except (ValueError, TypeError, RecursionError) as error:
        return [f"#: {_short(str(error))}"]


def _spelled(datum: Any, depth: int = 0) -> Any:
    """The datum with its Decimals spelled out, for the printer; `validate` has passed all else."""
    if depth > MAX_DEPTH:
        raise EncodeError(f"the datum is nested deeper than {MAX_DEPTH} levels")
    if isinstance(datum, Decimal):
        return Spelled(str(datum))
    if isinstance(datum, int) and not isinstance(datum, bool):
        return Spelled(str(int(datum)))
    if isinstance(datum, dict):
        return {name: _spelled(value, depth + 1) for name, value in datum.items()}
    if isinstance(datum, list | tuple):
        return [_spelled(value, depth + 1) for value in datum]
    return datum


def _refuse(value: object) -> NoReturn:
    raise TypeError(type(value).__name__)


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _short(message: str) -> str:
    return message if len(message) <= _MESSAGE_LIMIT else message[:_MESSAGE_LIMIT] + "…"
