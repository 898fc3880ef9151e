"""JSON data of a schema: encode, decode, validate. The payload is compact UTF-8 JSON without any frame."""

from __future__ import annotations

import json
import re
from decimal import Decimal
from math import isfinite
from typing import Any, NamedTuple, NoReturn

import jsonschema_rs

from stele.errors import DecodeError, EncodeError
from stele.formats.jsonschema.example import make_candidates
from stele.formats.jsonschema.parsed import ParsedJsonSchema
from stele.formats.jsonschema.text import MAX_DEPTH, SpelledNumber, json_pointer, write_json

MAX_MESSAGES = 50
"""Faults of one datum that are told; more are counted only."""

_MESSAGE_LIMIT = 300
_MAY_OVERFLOW = re.compile(r"[eE]\+?[0-9]{3}|[0-9]{309}")
"""Found in every text that holds a number beyond the largest float, which would be read as infinity."""


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
            return json.dumps(datum, allow_nan=False, ensure_ascii=False, separators=(",", ":")).encode()
        except TypeError:  # a Decimal
            return write_json(spell_numbers(datum))
        except ValueError as error:  # an integer of thousands of digits
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
        faults = _find_foreign_value(datum) if _MAY_OVERFLOW.search(source) else []
        faults = faults or _find_faults(self._reader, datum)
        if faults:
            raise DecodeError("; ".join(faults))
        return datum

    def validate(self, datum: Any) -> list[str]:
        """Why a datum is no JSON value, or does not fit the writer's schema: `#/path: reason`.

        At most `MAX_MESSAGES` are told. What JSON has no word for is refused even where the schema allows anything.
        """
        return _find_foreign_value(datum) or _find_faults(self._writer, datum)

    def example(self) -> Any:
        """A small datum that was seen to fit the writer's schema. Raises `EncodeError` when none is found."""
        for candidate in make_candidates(self._writer):
            if not self.validate(candidate):
                return candidate
        raise EncodeError("no small datum was found that fits the schema")


def _find_faults(parsed: ParsedJsonSchema, datum: Any) -> list[str]:
    validator = parsed.validator
    try:
        if validator.is_valid(datum):
            return []
        faults: list[str] = []
        for count, error in enumerate(validator.iter_errors(datum)):
            if count == MAX_MESSAGES:
                return [*faults, "and more"]
            faults.append(f"{json_pointer(error.instance_path)}: {_shorten(error.message)}")
        return faults
    except jsonschema_rs.ValidationError as error:
        return [f"#: {_shorten(error.message)}"]
    except (ValueError, TypeError, RecursionError) as error:
        return [f"#: {_shorten(str(error))}"]


def _find_foreign_value(datum: Any) -> list[str]:
    """The first thing in a datum that JSON has no word for, as a sentence with its path; empty when there is none."""
    found = _search_foreign(datum, 0)
    return [f"{json_pointer(reversed(found.path))}: {found.why}"] if found else []


class _Foreign(NamedTuple):
    """Something that is no JSON value; path leads to it, innermost step first."""

    why: str
    path: list[str | int]


def _search_foreign(value: Any, depth: int) -> _Foreign | None:
    kind = type(value)
    if kind is bool or kind is int or value is None:
        return None
    if isinstance(value, str):
        return None if value.isascii() or _is_encodable(value) else _Foreign("half a surrogate pair is no text", [])
    if isinstance(value, float | Decimal):
        return None if isfinite(value) else _Foreign(f"{value} is no JSON number", [])
    if depth >= MAX_DEPTH:
        return _Foreign(f"nested deeper than {MAX_DEPTH} levels", [])
    if isinstance(value, dict):
        for name, member in value.items():
            if not isinstance(name, str):
                return _Foreign(f"the member name {_shorten(repr(name))} is no string", [])
            if not name.isascii() and not _is_encodable(name):
                return _Foreign("half a surrogate pair is no text", [])
            if found := _search_foreign(member, depth + 1):
                found.path.append(name)
                return found
        return None
    if isinstance(value, list | tuple):
        for index, item in enumerate(value):
            if found := _search_foreign(item, depth + 1):
                found.path.append(index)
                return found
        return None
    return None if isinstance(value, int) else _Foreign(f"{kind.__name__} is no JSON type", [])


def _is_encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def spell_numbers(datum: Any, depth: int = 0) -> Any:
    """A datum with its Decimals and long integers spelled out, for the printer. Raises `EncodeError` when too deep."""
    if depth > MAX_DEPTH:
        raise EncodeError(f"the datum is nested deeper than {MAX_DEPTH} levels")
    if isinstance(datum, Decimal):
        return SpelledNumber(str(datum))
    if isinstance(datum, int) and not isinstance(datum, bool):
        return SpelledNumber(str(int(datum)))
    if isinstance(datum, dict):
        return {name: spell_numbers(value, depth + 1) for name, value in datum.items()}
    if isinstance(datum, list | tuple):
        return [spell_numbers(value, depth + 1) for value in datum]
    return datum


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _shorten(message: str) -> str:
    return message if len(message) <= _MESSAGE_LIMIT else message[:_MESSAGE_LIMIT] + "…"
