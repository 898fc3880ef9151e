"""Dates, times, durations and decimals of Protobuf use the neutral notation of all languages."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.examples import scale_examples

from stele.errors import EncodeError
from stele.formats.conversion.convert import convert_schema
from stele.formats.conversion.json_values import from_json_value, to_json_value
from stele.formats.conversion.model import Decimal as DecimalType
from stele.formats.conversion.model import Scalar, ScalarKind
from stele.formats.conversion.scalar_text import Nanos, date_to_parts, decimal_to_parts, text_from_parts
from stele.formats.jsonschema import JSON_SCHEMA
from stele.formats.protobuf import ProtobufFormat

FEW = settings(max_examples=scale_examples(50), deadline=None)
SOURCE = b"""
syntax = "proto3";
import "confluent/type/decimal.proto";
import "google/protobuf/duration.proto";
import "google/protobuf/field_mask.proto";
import "google/protobuf/timestamp.proto";
import "google/type/date.proto";
import "google/type/datetime.proto";
import "google/type/decimal.proto";
import "google/type/timeofday.proto";
message M {
  google.protobuf.Timestamp at = 1;
  google.protobuf.Duration span = 2;
  google.type.Date day = 3;
  google.type.TimeOfDay time = 4;
  google.type.DateTime local = 5;
  google.type.Decimal number = 6;
  confluent.type.Decimal price = 7;
  google.protobuf.FieldMask mask = 8;
}
"""
FORMAT = ProtobufFormat()
SCHEMA = FORMAT.parse(SOURCE, {})
MODEL = FORMAT.to_model(SCHEMA)[0]
CODEC = FORMAT.codec(SCHEMA)
FULL = {
    "at": "2024-02-29T12:00:00.123456789Z",
    "span": "-PT1.5S",
    "day": "2024-02-29",
    "time": "23:59:59.000000001",
    "local": "0001-01-01T00:00:00",
    "number": "-12.50",
    "price": "-0.001",
    "mask": {"paths": ["a.foo_bar", "b"]},
}


def json_round_trip(value: Any) -> Any:
    """A JSON value, written as bytes and read again."""
    return to_json_value(MODEL, CODEC.decode(CODEC.encode(from_json_value(MODEL, value))))


def test_neutral_text_there_and_back() -> None:
    """Values in the neutral notation are encoded, and decoded to the neutral notation."""
    assert json_round_trip(FULL) == FULL


def test_data_are_valid_under_the_converted_schema() -> None:
    """An independent validator accepts the data under the JSON Schema converted from the messages."""
    document = json.loads(convert_schema(FORMAT, SCHEMA, JSON_SCHEMA).text)
    validator = jsonschema.Draft202012Validator(document)
    for value in (CODEC.decode(CODEC.encode(from_json_value(MODEL, FULL))), CODEC.example()):
        assert list(validator.iter_errors(to_json_value(MODEL, value))) == []


@FEW
@given(
    st.fixed_dictionaries(
        {},
        optional={
            "at": st.datetimes(timezones=st.just(dt.UTC)),
            "span": st.timedeltas(dt.timedelta(days=-3_000_000), dt.timedelta(days=3_000_000)),
            "day": st.dates(),
            "time": st.times(),
            "local": st.datetimes(),
            "number": st.decimals(allow_nan=False, allow_infinity=False, places=3),
            "price": st.decimals(allow_nan=False, allow_infinity=False, places=5),
        },
    )
)
def test_python_types_are_taken(value: dict[str, Any]) -> None:
    """Each of Python's types is encoded like its neutral text."""
    read = to_json_value(MODEL, CODEC.decode(CODEC.encode(value)))
    assert read == json_round_trip(to_json_value(MODEL, value))
    assert set(value) == set(read)


@FEW
@given(st.decimals(allow_nan=False, allow_infinity=False))
def test_decimals_in_parts(number: Decimal) -> None:
    """A decimal in parts has the same value, in the fewest bytes, and digits enough for it."""
    parts = decimal_to_parts(number)
    text = text_from_parts(DecimalType(None), parts)
    assert text is None or Decimal(text) == number
    raw = parts["value"]
    assert len(raw) == 1 or int.from_bytes(raw[1:], "big", signed=True) != int.from_bytes(raw, "big", signed=True)
    assert len(str(abs(int.from_bytes(raw, "big", signed=True)))) <= max(parts["precision"], 1)


@pytest.mark.parametrize(
    "value",
    [
        {"at": Nanos(10**30)},
        {"span": Nanos(10**30)},
        {"at": 1_700_000_000},
        {"time": Nanos(-1)},
        {"time": Nanos(86_400 * 10**9)},
        {"local": Nanos(10**30)},
        {"local": 1_700_000_000},
        {"number": Decimal("NaN")},
        {"price": Decimal("Infinity")},
        {"day": dt.datetime(2024, 1, 1, tzinfo=dt.UTC)},
        {"day": "2024-01-01"},
    ],
)
def test_what_no_message_holds(value: dict[str, Any]) -> None:
    """Values beyond the range of a message, counts of no unit, and other types are refused with the path."""
    with pytest.raises(EncodeError, match=next(iter(value))):
        CODEC.encode(value)


def test_partial_dates_stay_in_parts() -> None:
    """A date without a day is no calendar day: it is decoded in parts."""
    value = {"day": {"year": 2024, "month": 2, "day": 0}}
    assert to_json_value(MODEL, CODEC.decode(CODEC.encode(value)))["day"] == value["day"]
    assert text_from_parts(Scalar(ScalarKind.DATE), date_to_parts(0)) == "1970-01-01"
