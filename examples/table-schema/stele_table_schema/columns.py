"""Columns and the values of their cells."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any, Final, NamedTuple

TYPES: Final = (
    *("string", "number", "integer", "boolean", "object", "array", "date", "time", "datetime"),
    *("year", "yearmonth", "duration", "geopoint", "geojson", "any"),
)
"""The types of the specification."""

PYTHON: Final[Mapping[str, type | tuple[type, ...]]] = {
    "number": (int, Decimal),
    "integer": int,
    "boolean": bool,
    "object": dict,
    "array": list,
    "date": date,
    "time": time,
    "datetime": datetime,
    "year": int,
}
"""Python type of the values of each type. Types that are not listed have strings."""
_READ: Final[Mapping[str, Callable[[str], Any]]] = {
    "integer": int,
    "year": int,
    "number": Decimal,
    "object": json.loads,
    "array": json.loads,
    "date": date.fromisoformat,
    "time": time.fromisoformat,
    "datetime": datetime.fromisoformat,
}


class Column(NamedTuple):
    """One field of the descriptor."""

    name: str
    type: str
    format: str
    constraints: Mapping[str, Any]
    doc: str
    words: tuple[tuple[str, ...], tuple[str, ...]]

    @property
    def required(self) -> bool:
        """Whether null is refused."""
        return self.constraints.get("required") is True


def parse_cell(column: Column, text: str) -> Any:
    """Return the value of a cell. Raises `ValueError` or `ArithmeticError`."""
    if column.type == "boolean":
        if text not in (*column.words[0], *column.words[1]):
            raise ValueError("no word for true or false")
        return text in column.words[0]
    if "%" in column.format and column.type in ("date", "time", "datetime"):
        moment = datetime.strptime(text, column.format)  # noqa: DTZ007 - zones are the format's business
        return {"date": moment.date, "time": moment.time}.get(column.type, lambda: moment)()
    value = _READ.get(column.type, str)(text)
    if not isinstance(value, PYTHON.get(column.type, str)) or (isinstance(value, Decimal) and not value.is_finite()):
        raise ValueError("of another type")
    return value


def format_cell(column: Column, value: Any) -> str:
    """Return the text of a value. Raises `ValueError` for a value without one."""
    if isinstance(value, bool):
        return column.words[0 if value else 1][0]
    if isinstance(value, dict | list):
        return json.dumps(value, separators=(",", ":"), allow_nan=False)
    if isinstance(value, date | time):
        return value.strftime(column.format) if "%" in column.format else value.isoformat()
    return str(value)
