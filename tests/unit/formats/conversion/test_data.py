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
from stele.formats.conversion import texts
from stele.formats.conversion.data import bare, datum, plain
from stele.formats.conversion.model import (
    Array,
    Decimal,
    Duration,
    Enumeration,
    Field,
    Fixed,
    Kind,
    Map,
    Model,
    Named,
    Option,
    Record,
    Scalar,
    Symbol,
    Time,
    Timestamp,
    Type,
    Union,
    Unit,
)

UUID_ = UUID("123e4567-e89b-42d3-a456-426614174000")
PAIRS: list[tuple[Type, Any, Any]] = [
    (Scalar(Kind.NULL), None, None),
    (Scalar(Kind.BOOLEAN), True, True),
    (Scalar(Kind.UINT64), 2**64 - 1, 2**64 - 1),
    (Scalar(Kind.INTEGER), 10**40, 10**40),
    (Scalar(Kind.FLOAT64), float("-inf"), "-Infinity"),
    (Scalar(Kind.STRING), "é", "é"),
    (Scalar(Kind.BYTES), b"\xff\x00", "/wA="),
    (Scalar(Kind.UUID), UUID_, str(UUID_)),
    (Scalar(Kind.DATE), date(2024, 1, 31), "2024-01-31"),
    (Scalar(Kind.DATE), 2_932_897, "+010000-01-01"),
    (Scalar(Kind.DATE), -719_529, "-000001-12-31"),
    (Time(Unit.MICRO), time(12, 30, 0, 500), "12:30:00.0005"),
    (Time(Unit.MILLI), 90_000_000, "25:00:00"),
    (Time(Unit.MILLI), -1, "-00:00:00.001"),
    (Timestamp(Unit.MILLI), datetime(2024, 1, 31, 12, tzinfo=UTC), "2024-01-31T12:00:00Z"),
    (Timestamp(Unit.MICRO, utc=False), datetime(2024, 1, 31, 12, 0, 0, 1), "2024-01-31T12:00:00.000001"),  # noqa: DTZ001 - a wall clock
    (Timestamp(Unit.NANO), 1, "1970-01-01T00:00:00.000000001Z"),
    (Timestamp(Unit.MILLI), -(2**63), "-292275055-05-16T16:47:04.192Z"),
    (Duration(Unit.MICRO), -1_500_000, "-PT1.5S"),
    (Duration(Unit.MILLI, calendar=True), bytes([1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0]), "P1M2DT0.003S"),
    (Decimal(9, 2), Number("12.50"), "12.50"),
    (Decimal(None), Number("1E+3"), "1000"),
    (Array(Scalar(Kind.BYTES)), [b"a", b""], ["YQ==", ""]),
    (Map(Scalar(Kind.DATE)), {"k": date(2024, 1, 31)}, {"k": "2024-01-31"}),
    (Map(Scalar(Kind.STRING), Scalar(Kind.INT32)), {7: "x"}, {"7": "x"}),
    (Named("R"), {"a": b"x", "e": "A", "f": b"ab"}, {"a": "eA==", "e": "A", "f": "YWI="}),
    (Union((Option(Scalar(Kind.INT64)), Option(Scalar(Kind.BYTES)))), b"a", "YQ=="),
    (Scalar(Kind.ANY), {"a": [1, None]}, {"a": [1, None]}),
]
TYPES = {
    "R": Record("R", (Field("a", Scalar(Kind.BYTES)), Field("e", Named("E")), Field("f", Named("F")))),
    "E": Enumeration("E", (Symbol("A"),)),
    "F": Fixed("F", 2),
}


@pytest.mark.parametrize(("kind", "value", "json"), PAIRS, ids=lambda value: str(value)[:30])
def test_there_and_back(kind: Type, value: Any, json: Any) -> None:
    """A datum has one JSON value, which leads back to it."""
    model = Model(kind, TYPES)
    assert plain(model, value) == json
    assert datum(model, json) == value


@pytest.mark.parametrize(
    ("kind", "value", "json"),
    [
        (Scalar(Kind.DATE), 1, "1970-01-02"),
        (Scalar(Kind.UUID), UUID_.bytes, str(UUID_)),
        (Scalar(Kind.NUMBER), Number("1.50"), 1.5),
        (Decimal(9, 2), b"\x04\xd2", "12.34"),
        (Decimal(9, 2), Number("12.5"), "12.50"),
        (Decimal(9, 2), Number("-0"), "0.00"),
        (Union((Option(Scalar(Kind.STRING), "string"), Option(Named("E"), "E"))), ("E", "A"), "A"),
        (Union((Option(Timestamp(Unit.NANO)), Option(Scalar(Kind.BOOLEAN)))), 1, "1970-01-01T00:00:00.000000001Z"),
        (Union((Option(Scalar(Kind.BOOLEAN)), Option(Scalar(Kind.INT32)))), True, True),
    ],
)
def test_raw_values_and_named_options(kind: Type, value: Any, json: Any) -> None:
    """What codecs take besides a type's own Python values is read as they read it."""
    assert plain(Model(kind, TYPES), value) == json


def test_offsets_are_read() -> None:
    """A timestamp may be written with any offset, a wall clock with none."""
    noon = datetime(2024, 1, 31, 10, tzinfo=UTC)
    assert datum(Model(Timestamp()), "2024-01-31T12:00:00+02:00") == noon
    for kind, text in ((Timestamp(), "2024-01-31T12:00:00"), (Timestamp(utc=False), "2024-01-31T12:00:00Z")):
        with pytest.raises(EncodeError):
            datum(Model(kind), text)


@pytest.mark.parametrize(
    ("kind", "json"),
    [
        (Scalar(Kind.INT8), 128),
        (Scalar(Kind.UINT8), -1),
        (Scalar(Kind.INT32), True),
        (Scalar(Kind.INT32), 1.5),
        (Scalar(Kind.STRING), 1),
        (Scalar(Kind.BYTES), "a"),
        (Scalar(Kind.DATE), "2024-02-30"),
        (Scalar(Kind.UUID), "x"),
        (Time(Unit.MILLI), "12:00:00.0001"),
        (Decimal(3, 1), "1.23"),
        (Decimal(3, 1), "123.4"),
        (Decimal(3, 1), "1e1"),
        (Named("E"), "Z"),
        (Named("F"), "YQ=="),
        (Named("R"), {"a": ""}),
        (Named("R"), {"a": "", "e": "A", "f": "YWI=", "z": 1}),
        (Union((Option(Scalar(Kind.INT8)), Option(Scalar(Kind.DATE)))), "x"),
    ],
)
def test_what_does_not_fit(kind: Type, json: Any) -> None:
    """A JSON value that is none of the type is refused."""
    with pytest.raises(EncodeError):
        datum(Model(kind, TYPES), json)


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
    assert bare(value) == json
    with pytest.raises(DataError, match="object"):
        bare(object())


def test_hostile_data() -> None:
    """Data nested without end and decimals of a million digits are refused, not written out."""
    endless: list[Any] = []
    endless.append(endless)
    for value in (endless, Number("1E+1000000")):
        with pytest.raises(DataError):
            bare(value)
    with pytest.raises(DataError):
        plain(Model(Decimal(10**9, 10**8)), b"\x01")


@given(st.integers(-(2**63), 2**63), st.sampled_from(Unit))
def test_moments_of_any_year(count: int, unit: Unit) -> None:
    """Every count of every unit is a text that leads back to it: moments, times and spans."""
    assert texts.moment_of(texts.moment_text(count, unit, utc=True), unit, utc=True) == count
    assert texts.time_of(texts.time_text(count, unit), unit) == count
    assert texts.span_of(texts.span_text(count, unit), unit) == count


@given(st.datetimes())
def test_moments_as_python_writes_them(moment: datetime) -> None:
    """In the years Python knows, a moment reads as its own isoformat does."""
    assert datetime.fromisoformat(bare(moment)) == moment
    assert texts.day_text((moment.date() - date(1970, 1, 1)).days) == moment.date().isoformat()
