"""Python's dates, times and decimals as the messages that stand for them."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final

from stele.formats.conversion import scalar_text
from stele.formats.conversion.scalar_text import Nanos, decimal_to_parts, time_to_parts, timestamp_to_parts

DATE: Final = "google.type.Date"
TIME_OF_DAY: Final = "google.type.TimeOfDay"
DATE_TIME: Final = "google.type.DateTime"
DECIMAL: Final = "google.type.Decimal"
CONFLUENT_DECIMAL: Final = "confluent.type.Decimal"

EXAMPLE_VALUES: Final[Mapping[str, Mapping[str, Any]]] = {
    DECIMAL: {"value": "1.5"},
    CONFLUENT_DECIMAL: {"value": b"\x0f", "precision": 2, "scale": 1},
}
"""Data of messages whose fields by themselves make no number."""


def fields_from_value(message: str, value: Any) -> dict[str, Any] | None:
    """The fields of a message of that full name for a whole value; None when it is no such value.

    Nanoseconds count from midnight, or from 1970. Raises ValueError for what the message cannot hold.
    """
    if message == DATE and isinstance(value, dt.date) and not isinstance(value, dt.datetime):
        return {"year": value.year, "month": value.month, "day": value.day}
    if message == TIME_OF_DAY and isinstance(value, Nanos | dt.time):
        return time_to_parts(value) if isinstance(value, Nanos) else _time_fields(value)
    if message == DATE_TIME and isinstance(value, Nanos | dt.datetime):
        return timestamp_to_parts(value) if isinstance(value, Nanos) else _datetime_fields(value)
    if message == DECIMAL and isinstance(value, Decimal):
        return {"value": scalar_text.format_decimal(value, None)}
    if message == CONFLUENT_DECIMAL and isinstance(value, Decimal):
        return decimal_to_parts(value)
    return None


def _time_fields(value: dt.time | dt.datetime) -> dict[str, Any]:
    parts = {"hours": value.hour, "minutes": value.minute, "seconds": value.second}
    return parts | {"nanos": value.microsecond * 1000}


def _datetime_fields(value: dt.datetime) -> dict[str, Any]:
    parts: dict[str, Any] = {"year": value.year, "month": value.month, "day": value.day, **_time_fields(value)}
    offset = value.utcoffset()
    return parts if offset is None else {**parts, "utc_offset": offset}
