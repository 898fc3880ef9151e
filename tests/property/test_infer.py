"""Properties of inference: samples fit the inferred schema, in any order and grouping."""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.support.examples import scale_examples

from stele.formats.avro import AVRO
from stele.formats.conversion.convert import write_model
from stele.formats.conversion.infer import InferOptions, Samples, infer_model
from stele.formats.conversion.json_values import from_json_value as read
from stele.formats.conversion.json_values import to_json_value
from stele.formats.conversion.model import Model
from stele.formats.jsonschema import JSON_SCHEMA

FAST = settings(max_examples=scale_examples(150), deadline=None, suppress_health_check=list(HealthCheck))
TEXTS = st.sampled_from(
    [
        *("a", "b", "", "é", "2024-01-31", "1999-12-01", "123e4567-e89b-42d3-a456-426614174000"),
        *("2024-01-31T10:00:00Z", "2024-01-31T10:00:00.123+02:00", "2024-01-31T10:00:00"),
    ]
)
SCALARS = st.one_of(
    *(st.none(), st.booleans(), st.integers(-5, 5), st.integers(-(2**70), 2**70), TEXTS, st.binary(max_size=3)),
    *(st.floats(allow_nan=False, allow_infinity=False), st.dates(), st.uuids(), st.datetimes()),
    st.decimals(-1000, 1000, places=2),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "b", "c_d"]), inner, max_size=3),
    max_leaves=6,
)


@FAST
@given(st.lists(VALUES, min_size=1, max_size=5), st.booleans(), st.integers(0, 3))
def test_samples_fit(samples: list[Any], notations: bool, enumerations: int) -> None:
    """Every sample, in neutral JSON, is valid under the JSON Schema, and under the Avro schema if that keeps data."""
    model = infer_model(samples, options=InferOptions(notations=notations, enumerations=enumerations))
    values = [to_json_value(model, sample) for sample in samples]
    json_codec = JSON_SCHEMA.codec(JSON_SCHEMA.parse(write_model(model, JSON_SCHEMA).text, {}))
    assert [json_codec.validate(value) for value in values] == [[]] * len(values)
    conversion = write_model(model, AVRO)
    if conversion.keeps_data:
        avro = AVRO.parse(conversion.text, {})
        avro_model, _ = AVRO.to_model(avro)
        assert [AVRO.codec(avro).validate(read(avro_model, value)) for value in values] == [[]] * len(values)


@FAST
@given(st.lists(st.lists(VALUES, max_size=4), min_size=3, max_size=3), st.integers(0, 3))
def test_merging_is_associative_and_commutative(groups: list[list[Any]], enumerations: int) -> None:
    """Any grouping and order of samples has the same result."""
    options = InferOptions(enumerations=enumerations)

    def sample_parts(*parts: list[Any]) -> Samples:
        samples = Samples(options)
        for sample in (sample for part in parts for sample in part):
            samples.add_sample(sample)
        return samples

    def merge_samples(*parts: Samples) -> Samples:
        samples = Samples(options)
        for part in parts:
            samples.merge(part)
        return samples

    def model(samples: Samples) -> Model | None:
        return samples.build_model() if samples.count else None

    one, two, three = groups
    whole = model(sample_parts(one, two, three))
    assert model(sample_parts(three, two, one)) == whole
    assert model(merge_samples(merge_samples(sample_parts(one), sample_parts(two)), sample_parts(three))) == whole
    assert model(merge_samples(sample_parts(one), merge_samples(sample_parts(two), sample_parts(three)))) == whole
    assert model(merge_samples(sample_parts(three), sample_parts(one), sample_parts(two))) == whole
