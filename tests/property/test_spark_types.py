"""Laws of the conversion between types of Spark and the neutral model; no Spark is started."""

from __future__ import annotations

import json

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import types as t
from tests.property.conversion_models import models
from tests.support.examples import scale_examples

from stele.errors import CannotConvert, TooLarge
from stele.formats.conversion.model import Model, RecordType, TypeReference
from stele.spark.types import from_spark, to_spark

GENEROUS = settings(max_examples=scale_examples(100), deadline=None, suppress_health_check=list(HealthCheck))
NAMES = st.sampled_from(["a", "b", "A", "a b", "größe", "x.y", "value", ""])
LEAVES: st.SearchStrategy[t.DataType] = st.one_of(
    st.sampled_from(
        [
            *(t.StringType(), t.BinaryType(), t.BooleanType(), t.DateType(), t.TimestampType(), t.TimestampNTZType()),
            *(t.DoubleType(), t.FloatType(), t.ByteType(), t.ShortType(), t.IntegerType(), t.LongType(), t.NullType()),
            *(t.VariantType(), t.CalendarIntervalType(), t.DayTimeIntervalType(), t.DayTimeIntervalType(0, 1)),
            *(t.YearMonthIntervalType(), t.CharType(3), t.VarcharType(9), t.StringType("UTF8_LCASE")),
        ]
    ),
    st.tuples(st.integers(1, 38), st.integers(0, 38)).map(lambda two: t.DecimalType(max(two), two[1])),
)
KEYS = st.sampled_from([t.StringType(), t.LongType(), t.BooleanType(), t.DateType(), t.TimestampType()])


def structs(kinds: st.SearchStrategy[t.DataType]) -> st.SearchStrategy[t.StructType]:
    """Structs of any columns with distinct names."""
    metadata = st.sampled_from([{}, {}, {"comment": "words"}, {"comment": 1}, {"other": "x"}, {"stele": "{"}])
    column = st.builds(t.StructField, NAMES, kinds, st.booleans(), metadata)
    return st.lists(column, max_size=4, unique_by=lambda each: each.name).map(t.StructType)


KINDS: st.SearchStrategy[t.DataType] = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.builds(t.ArrayType, inner, st.booleans()),
        st.builds(t.MapType, KEYS, inner, st.booleans()),
        structs(inner),
    ),
    max_leaves=5,
)


@given(structs(KINDS))
@GENEROUS
def test_columns_come_back_the_same_unless_a_loss_says_otherwise(struct: t.StructType) -> None:
    """StructType to model to StructType is the identity, with metadata, if the first conversion reports no loss."""
    model, losses = from_spark(struct, name="a.Row")
    again, _ = to_spark(model)
    broken = any(field.metadata.get("stele") == "{" for field in _columns(struct))
    if not losses and not broken:
        assert again == struct


@given(models())
@GENEROUS
def test_models_come_back_the_same_from_metadata(model: Model) -> None:
    """Model to StructType to model: fields keep name, number, default, aliases, constraints and type."""
    try:
        struct, _ = to_spark(model)
    except (TooLarge, CannotConvert):
        return
    json.loads(struct.json())
    root = model.types.get(model.root.name) if isinstance(model.root, TypeReference) else None
    if not isinstance(root, RecordType):
        return
    again, losses = from_spark(struct, name=root.name)
    if any(loss.what in {"NAME", "MAP"} for loss in losses):
        return
    record = again.types[root.name]
    assert isinstance(record, RecordType)
    assert [(f.name, f.number, f.aliases, f.doc, f.required) for f in record.fields] == [
        (f.name, f.number, f.aliases, f.doc, f.required) for f in root.fields
    ]
    assert [f.default for f in record.fields] == [f.default for f in root.fields]
    assert [(f.nullable, f.constraints) for f in record.fields] == [(f.nullable, f.constraints) for f in root.fields]
    if "\\ud" not in repr(model):  # half a character has no UTF-8, so no note can hold it
        assert [f.type for f in record.fields] == [f.type for f in root.fields]


def _columns(struct: t.StructType) -> list[t.StructField]:
    columns: list[t.StructField] = []
    todo: list[t.DataType] = [struct]
    while todo:
        kind = todo.pop()
        if isinstance(kind, t.StructType):
            columns += kind.fields
            todo += [field.dataType for field in kind.fields]
        elif isinstance(kind, t.ArrayType):
            todo.append(kind.elementType)
        elif isinstance(kind, t.MapType):
            todo += [kind.keyType, kind.valueType]
    return columns
