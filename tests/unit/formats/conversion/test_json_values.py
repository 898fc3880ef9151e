"""The mapping between Python data and neutral JSON: exact, total where it must be, and reversible."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal as Number
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stele.errors import DataError, EncodeError
from stele.formats.conversion import scalar_text
from stele.formats.conversion.json_values import from_json_value, to_json_value, to_untyped_json
from stele.formats.conversion.model import (
    Array,
    Decimal,
    Duration,
    Enumeration,
    EnumSymbol,
    Fixed,
    Map,
    Model,
    RecordField,
    RecordType,
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

UUID_ = UUID("123e4567-e89b-42d3-a456-426614174000")
PAIRS: list[tuple[Type, Any, Any]] = [
    (Scalar(ScalarKind.NULL), None, None),
    (Scalar(ScalarKind.BOOLEAN), True, True),
    (Scalar(ScalarKind.UINT64), 2**64 - 1, 2**64 - 1),
    (Scalar(ScalarKind.INTEGER), 10**40, 10**40),
    (Scalar(ScalarKind.FLOAT64), float("-inf"), "-Infinity"),
    (Scalar(ScalarKind.STRING), "é", "é"),
    (Scalar(ScalarKind.BYTES), b"\xff\x00", "/wA="),
    (Scalar(ScalarKind.UUID), UUID_, str(UUID_)),
    (Scalar(ScalarKind.DATE), date(2024, 1, 31), "2024-01-31"),
    (Scalar(ScalarKind.DATE), 2_932_897, "+010000-01-01"),
    (Scalar(ScalarKind.DATE), -719_529, "-000001-12-31"),
    (Time(TimeUnit.MICRO), time(12, 30, 0, 500), "12:30:00.0005"),
    (Time(TimeUnit.MILLI), 90_000_000, "25:00:00"),
    (Time(TimeUnit.MILLI), -1, "-00:00:00.001"),
    (Timestamp(TimeUnit.MILLI), datetime(2024, 1, 31, 12, tzinfo=UTC), "2024-01-31T12:00:00Z"),
    (Timestamp(TimeUnit.MICRO, utc=False), datetime(2024, 1, 31, 12, 0, 0, 1), "2024-01-31T12:00:00.000001"),  # noqa: DTZ001 - a wall clock
    (Timestamp(TimeUnit.NANO), 1, "1970-01-01T00:00:00.000000001Z"),
    (Timestamp(TimeUnit.MILLI), -(2**63), "-292275055-05-16T16:47:04.192Z"),
    (Duration(TimeUnit.MICRO), -1_500_000, "-PT1.5S"),
    (Duration(TimeUnit.MILLI, calendar=True), bytes([1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0]), "P1M2DT0.003S"),
    (Decimal(9, 2), Number("12.50"), "12.50"),
    (Decimal(None), Number("1E+3"), "1000"),
    (Array(Scalar(ScalarKind.BYTES)), [b"a", b""], ["YQ==", ""]),
    (Map(Scalar(ScalarKind.DATE)), {"k": date(2024, 1, 31)}, {"k": "2024-01-31"}),
    (Map(Scalar(ScalarKind.STRING), Scalar(ScalarKind.INT32)), {7: "x"}, {"7": "x"}),
    (TypeReference("R"), {"a": b"x", "e": "A", "f": b"ab"}, {"a": "eA==", "e": "A", "f": "YWI="}),
    (Union((UnionOption(Scalar(ScalarKind.INT64)), UnionOption(Scalar(ScalarKind.BYTES)))), b"a", "YQ=="),
    (Scalar(ScalarKind.ANY), {"a": [1, None]}, {"a": [1, None]}),
]
TYPES = {
    "R": RecordType(
        "R",
        (
            RecordField("a", Scalar(ScalarKind.BYTES)),
            RecordField("e", TypeReference("E")),
            RecordField("f", TypeReference("F")),
        ),
    ),
    "E": Enumeration("E", (EnumSymbol("A"),)),
    "F": Fixed("F", 2),
}


@pytest.mark.parametrize(("kind", "value", "json"), PAIRS, ids=lambda value: str(value)[:30])
def test_there_and_back(kind: Type, value: Any, json: Any) -> None:
    """A datum has one JSON value, which leads back to it."""
    model = Model(kind, TYPES)
    assert to_json_value(model, value) == json
    assert from_json_value(model, json) == value


@pytest.mark.parametrize(
    ("kind", "value", "json"),
    [
        (Scalar(ScalarKind.DATE), 1, "1970-01-02"),
        (Scalar(ScalarKind.UUID), UUID_.bytes, str(UUID_)),
        (Scalar(ScalarKind.NUMBER), Number("1.50"), 1.5),
        (Decimal(9, 2), b"\x04\xd2", "12.34"),
        (Decimal(9, 2), Number("12.5"), "12.50"),
        (Decimal(9, 2), Number("-0"), "0.00"),
        (
            Union((UnionOption(Scalar(ScalarKind.STRING), "string"), UnionOption(TypeReference("E"), "E"))),
            ("E", "A"),
            "A",
        ),
        (
            Union((UnionOption(Timestamp(TimeUnit.NANO)), UnionOption(Scalar(ScalarKind.BOOLEAN)))),
            1,
            "1970-01-01T00:00:00.000000001Z",
        ),
        (Union((UnionOption(Scalar(ScalarKind.BOOLEAN)), UnionOption(Scalar(ScalarKind.INT32)))), True, True),
    ],
)
def test_raw_values_and_named_options(kind: Type, value: Any, json: Any) -> None:
    """Raw values and named options that codecs accept are converted as the codecs read them."""
    assert to_json_value(Model(kind, TYPES), value) == json


def test_offsets_are_read() -> None:
    """A timestamp can have any offset; a local timestamp must have none."""
    noon = datetime(2024, 1, 31, 10, tzinfo=UTC)
    assert from_json_value(Model(Timestamp()), "2024-01-31T12:00:00+02:00") == noon
    for kind, text in ((Timestamp(), "2024-01-31T12:00:00"), (Timestamp(utc=False), "2024-01-31T12:00:00Z")):
        with pytest.raises(EncodeError):
            from_json_value(Model(kind), text)


@pytest.mark.parametrize(
    ("kind", "json"),
    [
        (Scalar(ScalarKind.INT8), 128),
        (Scalar(ScalarKind.UINT8), -1),
        (Scalar(ScalarKind.INT32), True),
        (Scalar(ScalarKind.INT32), 1.5),
        (Scalar(ScalarKind.STRING), 1),
        (Scalar(ScalarKind.BYTES), "a"),
        (Scalar(ScalarKind.DATE), "2024-02-30"),
        (Scalar(ScalarKind.UUID), "x"),
        (Time(TimeUnit.MILLI), "12:00:00.0001"),
        (Decimal(3, 1), "1.23"),
        (Decimal(3, 1), "123.4"),
        (Decimal(3, 1), "1e1"),
        (TypeReference("E"), "Z"),
        (TypeReference("F"), "YQ=="),
        (TypeReference("R"), {"a": ""}),
        (TypeReference("R"), {"a": "", "e": "A", "f": "YWI=", "z": 1}),
        (Union((UnionOption(Scalar(ScalarKind.INT8)), UnionOption(Scalar(ScalarKind.DATE)))), "x"),
    ],
)
def test_what_does_not_fit(kind: Type, json: Any) -> None:
    """A JSON value that does not fit the type is rejected."""
    with pytest.raises(EncodeError):
        from_json_value(Model(kind, TYPES), json)


def test_values_without_a_model() -> None:
    """Without a model, a value is written as its Python type says."""
    value = {
        "d": date(2024, 1, 31),
        "t": time(1),
        "s": timedelta(seconds=1),
        "n": Number("1.50"),
        5: (b"a", float("nan")),
    }
    json = {"d": "2024-01-31", "t": "01:00:00", "s": "PT1S", "n": "1.50", "5": ["YQ==", "NaN"]}
    assert to_untyped_json(value) == json
    with pytest.raises(DataError, match="object"):
        to_untyped_json(object())


def test_hostile_data() -> None:
    """Endlessly nested data and decimals of a million digits are rejected, not written."""
    endless: list[Any] = []
    endless.append(endless)
    for value in (endless, Number("1E+1000000")):
        with pytest.raises(DataError):
            to_untyped_json(value)
    with pytest.raises(DataError):
        to_json_value(Model(Decimal(10**9, 10**8)), b"\x01")


@given(st.integers(-(2**63), 2**63), st.sampled_from(TimeUnit))
def test_moments_of_any_year(count: int, unit: TimeUnit) -> None:
    """Every count in every unit has a text that is read back to it: points in time, times of day and durations."""
    assert scalar_text.parse_timestamp(scalar_text.format_timestamp(count, unit, utc=True), unit, utc=True) == count
    assert scalar_text.parse_time(scalar_text.format_time(count, unit), unit) == count
    assert scalar_text.parse_duration(scalar_text.format_duration(count, unit), unit) == count


@given(st.datetimes())
def test_moments_as_python_writes_them(moment: datetime) -> None:
    """In the years that Python supports, a point in time is written as in its isoformat."""
    assert datetime.fromisoformat(to_untyped_json(moment)) == moment
    assert scalar_text.format_date((moment.date() - date(1970, 1, 1)).days) == moment.date().isoformat()
