"""Properties of conversion: every change is reported, and a conversion without loss of data keeps every datum."""

from __future__ import annotations

import json
from random import Random
from typing import Any

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from tests.property.avro_data import avro_data
from tests.property.avro_strategies import schemas
from tests.property.jsonschema_pairs import URIS, Schemas, random_document
from tests.support.examples import scale_examples

from stele.core.ports import TextForm
from stele.errors import CannotConvert, MalformedSchema
from stele.formats.avro import AVRO
from stele.formats.conversion.convert import convert_schema
from stele.formats.conversion.json_values import from_json_value as read
from stele.formats.conversion.json_values import to_json_value
from stele.formats.conversion.model import Loss, Model, RecordType
from stele.formats.jsonschema import JSON_SCHEMA
from stele.formats.protobuf import PROTOBUF

FAST = settings(max_examples=scale_examples(100), deadline=None, suppress_health_check=list(HealthCheck))
HARMLESS = {"ATTRIBUTE", "ORDER", "DEFAULT"}
"""Losses that do not change the Parsing Canonical Form."""


def loses_data(losses: list[Loss], *besides: str) -> bool:
    """Return whether data are lost, except by the given kinds of loss."""
    return any(loss.data and loss.what not in besides for loss in losses)


@FAST
@given(schemas())
def test_avro_comes_back(schema: Any) -> None:
    """Avro to Avro gives the same schema except for reported losses, and a second conversion reports none."""
    source = AVRO.parse(json.dumps(schema).encode(), {})
    conversion = convert_schema(AVRO, source, AVRO)
    again = AVRO.parse(conversion.text, {})
    if {loss.what for loss in conversion.losses} <= HARMLESS:
        assert AVRO.canonical(again, TextForm.CANONICAL) == AVRO.canonical(source, TextForm.CANONICAL)
    model, losses = AVRO.to_model(again)
    assert model == AVRO.to_model(source)[0]
    assert {loss.what for loss in losses} <= {"UNION_ORDER"}
    assert convert_schema(AVRO, again, AVRO).text == conversion.text


@FAST
@given(schemas(), st.data())
def test_avro_data_fit_the_json_schema(schema: Any, draw: st.DataObject) -> None:
    """A datum of an Avro schema, in neutral JSON, fits the converted JSON Schema, and is read back to its bytes."""
    source = AVRO.parse(json.dumps(schema).encode(), {})
    conversion = convert_schema(AVRO, source, JSON_SCHEMA)
    if loses_data(conversion.losses, "NOT_A_NUMBER"):
        return
    datum = draw.draw(avro_data(source.root))
    encoded = AVRO.codec(source).encode(datum)
    model, _ = AVRO.to_model(source)
    value = to_json_value(model, datum)
    assert JSON_SCHEMA.codec(JSON_SCHEMA.parse(conversion.text, {})).validate(value) == []
    assert to_json_value(model, AVRO.codec(source).decode(encoded)) == value
    assert AVRO.codec(source).encode(read(model, value)) == encoded


@FAST
@given(schemas(), st.data())
def test_avro_by_way_of_json_schema(schema: Any, draw: st.DataObject) -> None:
    """From Avro to JSON Schema and back, data of the first schema are data of the last."""
    source = AVRO.parse(json.dumps(schema).encode(), {})
    there = convert_schema(AVRO, source, JSON_SCHEMA)
    back = convert_schema(JSON_SCHEMA, JSON_SCHEMA.parse(there.text, {}), AVRO)
    if loses_data(there.losses + back.losses, "NOT_A_NUMBER", "FORMAT"):
        return
    value = to_json_value(AVRO.to_model(source)[0], draw.draw(avro_data(source.root)))
    last = AVRO.parse(back.text, {})
    assert AVRO.codec(last).validate(read(AVRO.to_model(last)[0], value)) == []


def count_records(model: Model) -> int:
    """Return how many types of a model have fields. Options of a union and entries of a map can add more of them."""
    return sum(isinstance(declared, RecordType) for declared in model.types.values())


@settings(FAST, max_examples=scale_examples(25))
@given(schemas(depth=2), st.data())
@example(["boolean", {"type": "fixed", "name": "F0", "size": 0}], None)
def test_avro_by_way_of_protobuf(schema: Any, draw: st.DataObject) -> None:
    """From Avro to Protobuf and back, data of the first schema fit the last, unless messages were added."""
    record = {"type": "record", "name": "Top", "fields": [{"name": "top", "type": schema}]}
    source = AVRO.parse(json.dumps(record).encode(), {})
    there = convert_schema(AVRO, source, PROTOBUF)
    between = PROTOBUF.parse(there.text, {})
    back = convert_schema(PROTOBUF, between, AVRO)
    model, _ = PROTOBUF.to_model(between)  # type: ignore[attr-defined]  # it has the ability
    if loses_data(there.losses + back.losses) or count_records(model) > count_records(AVRO.to_model(source)[0]):
        return
    value = to_json_value(AVRO.to_model(source)[0], draw.draw(avro_data(source.root)))
    last = AVRO.parse(back.text, {})
    assert AVRO.codec(last).validate(read(AVRO.to_model(last)[0], value)) == [], (there.text, back.text)


@FAST
@given(st.integers(0, 2**32), st.sampled_from(sorted(URIS)))
def test_losses_of_json_schema_are_honest(seed: int, draft: int) -> None:
    """Documents valid under a schema of any draft are valid after conversion, or a loss of data is reported."""
    chance = Random(seed)
    schema = json.dumps(Schemas(chance, draft).make_pair()[0]).encode()
    try:
        source = JSON_SCHEMA.parse(schema, {})
        conversion = convert_schema(JSON_SCHEMA, source, JSON_SCHEMA)
    except (MalformedSchema, CannotConvert):
        return
    valid = JSON_SCHEMA.codec(source)
    documents = [document for document in (random_document(chance) for _ in range(20)) if not valid.validate(document)]
    if conversion.keeps_data:
        target = JSON_SCHEMA.codec(JSON_SCHEMA.parse(conversion.text, {}))
        assert [target.validate(document) for document in documents] == [[]] * len(documents), conversion.text
    conversion = convert_schema(JSON_SCHEMA, source, AVRO)
    if conversion.keeps_data:
        avro = AVRO.parse(conversion.text, {})
        model, _ = AVRO.to_model(avro)
        for document in documents:
            AVRO.codec(avro).encode(read(model, document))
