"""One CSV record (RFC 4180) as data of a schema: a dict from column names to values, None for a missing one."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any, Final

from stele.errors import DecodeError, EncodeError
from stele_table_schema.columns import PYTHON, Column, format_cell, parse_cell
from stele_table_schema.descriptor import TableSchema

_EXAMPLES: Final[Mapping[str, Any]] = {
    "number": Decimal("1.5"),
    "integer": 1,
    "boolean": True,
    "object": {},
    "array": [],
    "date": date(2024, 1, 31),
    "time": time(12, 30),
    "datetime": datetime(2024, 1, 31, 12, 30),  # noqa: DTZ001 - the specification's datetime has no zone by default
    "year": 2024,
    "yearmonth": "2024-01",
}


class RecordCodec:
    """Codec of single records, without a line end. A reader's columns are found by name; those it lacks are null."""

    def __init__(self, writer: TableSchema, reader: TableSchema | None) -> None:
        self._writer = writer
        self._reader = reader or writer

    def header(self) -> str:
        """Return the names of the columns as a record."""
        return _format_record([column.name for column in self._writer.columns])

    def encode(self, datum: Any) -> bytes:
        """Return one record. Raises `EncodeError`."""
        faults = self.validate(datum)
        if faults:
            raise EncodeError("; ".join(faults))
        texts = [self._format_cell(column, datum.get(column.name)) for column in self._writer.columns]
        return _format_record(texts).encode()

    def _format_cell(self, column: Column, value: Any) -> str:
        return self._writer.missing[0] if value is None else format_cell(column, value)

    def decode(self, data: bytes) -> dict[str, Any]:
        """Return the record in the reader's columns. Raises `DecodeError`, also for a wrong number of cells."""
        cells = _parse_cells(data)
        if len(cells) != len(self._writer.columns):
            raise DecodeError(f"the record has {len(cells)} cells, the schema {len(self._writer.columns)} columns")
        found = {column.name: cell for column, cell in zip(self._writer.columns, cells, strict=True)}
        datum: dict[str, Any] = {}
        for column in self._reader.columns:
            cell = found.get(column.name)
            try:
                datum[column.name] = None if cell is None or cell in self._writer.missing else parse_cell(column, cell)
            except (ValueError, ArithmeticError, RecursionError):
                raise DecodeError(f"{column.name}: {cell!r:.80} is no {column.type}") from None
        faults = _find_faults(self._reader, datum)
        if faults:
            raise DecodeError("; ".join(faults))
        return datum

    def validate(self, datum: Any) -> list[str]:
        """Return the reasons why a datum is not a record of the writer's schema, each with the column."""
        if not isinstance(datum, dict):
            return ["a record is a dict of columns"]
        names = [column.name for column in self._writer.columns]
        unknown = [f"{name!r:.80}: no such column" for name in datum if name not in names]
        return unknown or _find_faults(self._writer, datum) or [*self._find_lost_values(datum)]

    def _find_lost_values(self, datum: Mapping[str, Any]) -> Iterator[str]:
        """Yield faults of values whose text would be read as null."""
        for column in self._writer.columns:
            value = datum.get(column.name)
            if value is None and not self._writer.missing:
                yield f"{column.name}: no text stands for a missing value"
            elif value is not None and format_cell(column, value) in self._writer.missing:
                yield f"{column.name}: {format_cell(column, value)!r:.80} stands for a missing value"

    def example(self) -> dict[str, Any]:
        """Return a valid record. Raises `EncodeError` if the constraints allow none of the usual values."""
        datum = {column.name: _sample_value(column) for column in self._writer.columns}
        faults = self.validate(datum)
        if faults:
            raise EncodeError("; ".join(faults))
        return datum


def _sample_value(column: Column) -> Any:
    limits = column.constraints
    if "enum" in limits:
        return parse_cell(column, str(limits["enum"][0]))
    if "minimum" in limits:
        return parse_cell(column, str(limits["minimum"]))
    usual = _EXAMPLES.get(column.type, "text" * (1 + limits.get("minLength", 0) // 4 % 10_000))
    usual = usual[: limits["maxLength"]] if isinstance(usual, str) and "maxLength" in limits else usual
    return None if "pattern" in limits and not column.required else usual


def _find_faults(schema: TableSchema, datum: Mapping[str, Any]) -> list[str]:
    found: list[str] = []
    for column in schema.columns:
        value = datum.get(column.name)
        if value is None:
            if column.required:
                found.append(f"{column.name}: is required")
            continue
        fault = _find_misfit(schema, column, value)
        if fault:
            found.append(f"{column.name}: {fault}")
    return found


def _find_misfit(schema: TableSchema, column: Column, value: Any) -> str:
    kind = PYTHON.get(column.type, str)
    wrong = isinstance(value, bool) != (kind is bool) or (column.type == "date" and isinstance(value, datetime))
    if wrong or not isinstance(value, kind):
        return f"a {type(value).__name__} is no {column.type}"
    try:
        text = format_cell(column, value)
        text.encode()
        return (
            "" if parse_cell(column, text) == value and _is_allowed(schema, column, value, text) else "is out of bounds"
        )
    except (ValueError, TypeError, ArithmeticError, RecursionError) as error:
        return f"cannot be written: {error}"[:200]


def _is_allowed(schema: TableSchema, column: Column, value: Any, text: str) -> bool:
    limits = column.constraints
    size = len(value) if isinstance(value, str | list | dict) else 0
    return (
        ("minimum" not in limits or value >= parse_cell(column, str(limits["minimum"])))
        and ("maximum" not in limits or value <= parse_cell(column, str(limits["maximum"])))
        and limits.get("minLength", 0) <= size <= limits.get("maxLength", size)
        and ("enum" not in limits or text in [str(one) for one in limits["enum"]])
        and ("pattern" not in limits or schema.patterns[column.name](text))
    )


def _format_record(texts: list[str]) -> str:
    out = io.StringIO()
    csv.writer(out, lineterminator="").writerow(texts)
    return out.getvalue()


def _parse_cells(data: bytes) -> list[str]:
    try:
        # A line end inside quotes is data; one at the end of the text closes the record.
        rows = list(csv.reader(io.StringIO(data.decode(), newline=""), strict=True))
    except (UnicodeDecodeError, csv.Error) as error:
        raise DecodeError(f"no CSV: {error}"[:200]) from None
    if len(rows) != 1:
        raise DecodeError(f"there are {len(rows)} records, not one")
    return rows[0] or [""]
