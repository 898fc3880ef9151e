"""Inference: one test for each rule, and limits on samples."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal as Number
from typing import Any
from uuid import UUID

import pytest

from stele.errors import Invalid, InvalidRequest, TooLarge
from stele.formats.conversion.infer import MAX_MEMBERS, MIN_KEYS, InferOptions, Samples, infer_model
from stele.formats.conversion.model import (
    Array,
    Decimal,
    Duration,
    Enumeration,
    EnumSymbol,
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

LONG = Scalar(ScalarKind.INT64)
TEXT = Scalar(ScalarKind.STRING)
ID = "123e4567-e89b-42d3-a456-426614174000"


def infer_type(*values: Any, **options: Any) -> Type:
    """The type of values at the top."""
    return infer_model(values, options=InferOptions(**options)).root


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([True], Scalar(ScalarKind.BOOLEAN)),
        ([1, -(2**63)], LONG),
        ([1, 2**63], Scalar(ScalarKind.INTEGER)),
        ([1, 2.5], Scalar(ScalarKind.FLOAT64)),
        ([2**53 + 1, 2.5], Scalar(ScalarKind.NUMBER)),
        ([2**60, 2.5], Scalar(ScalarKind.FLOAT64)),
        ([Number("1.25"), Number("100.5"), 12], Decimal(5, 2)),
        ([Number("0.001")], Decimal(3, 3)),
        ([Number(0)], Decimal(1, 0)),
        ([Number("1.5"), 2.5], Scalar(ScalarKind.NUMBER)),
        ([Number("1E+5000")], Scalar(ScalarKind.NUMBER)),
        (["x"], TEXT),
        ([b"x"], Scalar(ScalarKind.BYTES)),
        ([UUID(ID)], Scalar(ScalarKind.UUID)),
        ([date(2024, 1, 31)], Scalar(ScalarKind.DATE)),
        ([time(1)], Time(TimeUnit.MICRO)),
        ([datetime(2024, 1, 31, tzinfo=UTC)], Timestamp(TimeUnit.MICRO)),
        ([timedelta(1)], Duration(TimeUnit.MICRO)),
        ([[]], Array(Scalar(ScalarKind.ANY), nullable=True)),
        ([[1], [None]], Array(LONG, nullable=True)),
        ([1, "x"], Union((UnionOption(TEXT), UnionOption(LONG)))),
        ([True, 1], Union((UnionOption(Scalar(ScalarKind.BOOLEAN)), UnionOption(LONG)))),
    ],
)
def test_types(values: list[Any], expected: Type) -> None:
    """Values of one kind have its type; of several kinds a union, always in the same order."""
    assert infer_type(*values) == infer_type(*reversed(values)) == expected


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["2024-01-31", "1999-12-01"], Scalar(ScalarKind.DATE)),
        (["2024-01-31", "2024-02-30"], TEXT),
        (["2024-01-31", "x"], TEXT),
        ([ID, ID.upper()], Scalar(ScalarKind.UUID)),
        ([ID, "2024-01-31"], TEXT),
        (["2024-01-31T12:00:00Z", "2024-01-31T12:00:00.5+02:00"], Timestamp(TimeUnit.MILLI)),
        (["2024-01-31T12:00:00.123456Z"], Timestamp(TimeUnit.MICRO)),
        (["2024-01-31T12:00:00.1234567Z"], Timestamp(TimeUnit.NANO)),
        (["2024-01-31T12:00:00"], Timestamp(TimeUnit.MILLI, utc=False)),
        (["2024-01-31T12:00:00", "2024-01-31T12:00:00Z"], TEXT),
        (["2024-01-31T25:00:00Z"], TEXT),
    ],
)
def test_notations(texts: list[str], expected: Type) -> None:
    """Strings get a more precise type only if every one of them has its notation, and never if that is switched off."""
    assert infer_type(*texts) == expected
    assert infer_type(*texts, notations=False) == TEXT


def test_records() -> None:
    """Members keep their order, can be missing or null, and inner records are named after their path."""
    samples = [
        {"id": 1, "ship-to": {"city": "x"}, "lines": [{"sku": "a"}, {"sku": None}]},
        {"id": 2, "note": None, "lines": []},
    ]
    assert infer_model(samples, name="com.acme.Order") == Model(
        TypeReference("com.acme.Order"),
        {
            "com.acme.Order": RecordType(
                "com.acme.Order",
                (
                    RecordField("id", LONG),
                    RecordField("note", Scalar(ScalarKind.NULL), nullable=True, required=False),
                    RecordField("ship-to", TypeReference("com.acme.OrderShipTo"), required=False),
                    RecordField("lines", Array(TypeReference("com.acme.OrderLines"))),
                ),
            ),
            "com.acme.OrderShipTo": RecordType("com.acme.OrderShipTo", (RecordField("city", TEXT),)),
            "com.acme.OrderLines": RecordType("com.acme.OrderLines", (RecordField("sku", TEXT, nullable=True),)),
        },
    )


def test_names_of_records_are_distinct() -> None:
    """Two records whose names would be equal get different names."""
    assert set(infer_model([{"a b": {}, "a-b": {}}]).types) == {"Record", "RecordAB", "RecordAB2"}


def test_maps() -> None:
    """Many objects with different names and one kind of value are a map; otherwise they are a record."""
    counts = [{f"key{at}": at} for at in range(MIN_KEYS)]
    assert infer_type(*counts) == Map(LONG)
    assert infer_type(*counts[1:]) == TypeReference("Record")
    assert infer_type(*counts, *({"key0": 1} for _ in range(MIN_KEYS))) == TypeReference("Record")
    assert infer_type(*counts, {"key": "text"}) == TypeReference("Record")


def test_more_members_than_a_record_has() -> None:
    """Past the limit of members the names are keys of a map, in any order of samples."""
    samples = [{f"k{at}": at % 7 or None for at in range(part, part + 400)} for part in range(0, MAX_MEMBERS, 300)]
    assert infer_type(*samples) == infer_type(*reversed(samples)) == Map(LONG, nullable=True)


def test_enumerations_on_request() -> None:
    """Repeated strings become an enumeration on request, up to the requested number of symbols."""
    model = infer_model([{"s": text} for text in "aba"], options=InferOptions(enumerations=2))
    assert model.types["RecordS"] == Enumeration("RecordS", (EnumSymbol("a"), EnumSymbol("b")))
    for texts, limit in (("aba", 0), ("aba", 1), ("ab", 2)):
        assert infer_type(*texts, enumerations=limit) == TEXT


def test_merging_is_adding() -> None:
    """Two merged accumulators have the same model as one that received all samples."""
    samples = [{"a": 1}, {"a": "x", "b": [1.5]}, {"b": [None]}, 5]
    parts = Samples(), Samples()
    for at, sample in enumerate(samples):
        parts[at % 2].add_sample(sample)
    parts[1].merge(parts[0])
    assert parts[1].build_model() == infer_model(samples)
    assert parts[1].count == 4


def test_no_samples() -> None:
    """Inference without samples is rejected."""
    with pytest.raises(InvalidRequest):
        infer_model([])


@pytest.mark.parametrize("sample", [object(), {1: 2}, {"a": {3}}])
def test_types_no_schema_has(sample: Any) -> None:
    """A sample of a type that no schema has is rejected."""
    with pytest.raises(Invalid):
        infer_model([sample])


def test_hostile_samples() -> None:
    """Deep samples, and samples with too many positions, are rejected; huge numbers are accepted."""
    deep: Any = 1
    for _ in range(5000):
        deep = [deep]
    with pytest.raises(TooLarge, match="deeper"):
        infer_model([deep])
    with pytest.raises(TooLarge, match="places"):
        infer_model({f"k{at}": {f"q{inner}": 1 for inner in range(900)}} for at in range(900))
    assert infer_type(10**5000, 1.5) == infer_type(10**5000, Number("1.5")) == Scalar(ScalarKind.NUMBER)
