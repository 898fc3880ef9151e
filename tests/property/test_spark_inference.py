"""Properties of inference on Spark: it equals the formats' own inference, for any distribution of records."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.support.examples import scale_examples

from stele.formats.conversion.infer import InferOptions, infer_model
from stele.spark.data_audit.infer_evidence import Evidence, evidence_of_documents, evidence_of_rows
from stele.spark.data_audit.infer_proposal import make_model, propose_fields

FAST = settings(max_examples=scale_examples(80), deadline=None, suppress_health_check=list(HealthCheck))
MOST = 8
TEXTS = st.sampled_from(
    [
        *("a", "b", "c", "", "é", "2024-01-31", "2024-02-31", "123e4567-e89b-42d3-a456-426614174000"),
        *("2024-01-31T10:00:00Z", "2024-01-31T10:00:00.123+02:00", "2024-01-31T10:00:00", "2024-01-31T25:00:00Z"),
    ]
)
SCALARS = st.one_of(
    *(st.none(), st.booleans(), st.integers(-5, 5), st.integers(-(2**70), 2**70), TEXTS),
    st.floats(allow_nan=False, allow_infinity=False, width=32),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "b", "c_d"]), inner, max_size=3),
    max_leaves=6,
)
GROUPS = st.lists(st.lists(VALUES, max_size=4), min_size=3, max_size=3)


def gather_evidence(values: list[Any]) -> Evidence:
    """The evidence of values, as documents."""
    evidence, reasons = evidence_of_documents([json.dumps(value) for value in values], MOST)
    assert reasons == {}
    return evidence


@FAST
@given(GROUPS.filter(any), st.booleans(), st.integers(0, MOST))
def test_it_is_the_inference_of_the_formats(groups: list[list[Any]], notations: bool, enumerations: int) -> None:
    """The model of documents in any distribution is the one that the formats infer from the same samples."""
    options = InferOptions(notations=notations, enumerations=enumerations)
    one, two, three = (gather_evidence(group) for group in groups)
    whole = one.merge_with(two, MOST).merge_with(three, MOST)
    # what JSON writes and reads is what is compared: 1.0 is a float to both
    samples = [json.loads(json.dumps(value)) for group in groups for value in group]
    assert make_model(whole, "R", options) == infer_model(samples, name="R", options=options)


@FAST
@given(GROUPS)
def test_merging_is_associative_and_commutative(groups: list[list[Any]]) -> None:
    """Any order of merging tasks has the same evidence."""
    one, two, three = (gather_evidence(group) for group in groups)
    whole = gather_evidence([value for group in groups for value in group])
    assert one.merge_with(two, MOST).merge_with(three, MOST) == whole
    assert one.merge_with(two.merge_with(three, MOST), MOST) == whole
    assert three.merge_with(one, MOST).merge_with(two, MOST) == whole


@FAST
@given(st.lists(st.fixed_dictionaries({"a": st.none() | st.integers(-9, 9), "b": st.none() | TEXTS}), min_size=1))
def test_columns_say_what_documents_say(rows: list[dict[str, Any]]) -> None:
    """Typed rows and the same rows as JSON have the same figures at every path."""
    rows = [{"a": row["a"], "b": row["b"]} for row in rows]
    columns: Any = {"a": pa.int64(), "b": pa.string()}
    table = pa.RecordBatch.from_pylist(rows, pa.schema(columns))
    of_columns, of_json = evidence_of_rows(table, most=MOST, parse=False), gather_evidence(rows)
    assert of_columns == of_json
    model = make_model(of_json, "R", InferOptions())
    assert all(0 <= it.confidence <= 1 and it.note for it in propose_fields(of_json, model))
