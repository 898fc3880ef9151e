"""Proposals made from evidence: kinds, notes, confidence, maps, enumerations; and the offer to a local registry."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import types as t

from stele.cli.offline import StoreTransport
from stele.client import ConfigUpdateRequest, ResolvedSchema, Schema, SchemaRegistryClient, SchemaSnapshot
from stele.errors import Invalid, TooLarge
from stele.formats.avro import AVRO
from stele.formats.conversion.convert import write_model
from stele.formats.conversion.infer import InferOptions
from stele.formats.conversion.model import Enumeration, Map, RecordType, TypeReference
from stele.spark.data_audit.infer import Inference, register_inferred
from stele.spark.data_audit.infer_evidence import Evidence, check_size, evidence_of_documents, evidence_of_rows
from stele.spark.data_audit.infer_proposal import ProposedField, make_model, propose_fields, refine_model, with_notes
from stele.spark.data_audit.report import ReportState
from stele.spark.types import from_spark

MOST = 32


def of(*values: Any) -> Evidence:
    """Return the evidence of values, as documents."""
    return evidence_of_documents([json.dumps(value) for value in values], MOST)[0]


def propose_all(evidence: Evidence, **options: Any) -> dict[str, ProposedField]:
    """Return the proposals for all places, by path."""
    return {it.path: it for it in propose_fields(evidence, make_model(evidence, "R", InferOptions(**options)))}


def test_what_is_no_document_is_told_by_reason() -> None:
    """Broken, too deep and undecodable documents are counted by reason and add no evidence."""
    deep = "[" * 60 + "]" * 60
    documents: list[bytes | str] = ['{"a": 1}', "{", b"\xff", deep, "[" * 100_000, '{"a": "\\ud800"}']
    evidence, reasons = evidence_of_documents(documents, MOST)
    assert evidence == of({"a": 1})
    assert sum(reasons.values()) == 5
    assert reasons["it is nested deeper than 50 levels"] == 2
    flat = json.dumps([[]] * 200)
    assert evidence_of_documents([flat], MOST)[1] == {}, "many brackets side by side are not deep"


def test_notes_say_what_was_seen() -> None:
    """Notes have the counts of presence, nulls, mixed kinds, bounds, notations and few values."""
    rows = [
        {
            "n": n or "zero",
            "at": "2026-01-31T10:00:00Z" if n else "soon",
            "state": "PAID" if n % 2 else "NEW",
            **({"opt": None if n % 4 else "x"} if n % 2 == 0 else {}),
        }
        for n in range(1000)
    ]
    proposals = propose_all(of(*rows))
    assert proposals["n"].type == "integer | text"
    assert "integer in 99.90 %, text in 1: any of them" in proposals["n"].note
    assert "99.90 % are of the notation timestamp, 1 text not: a text" in proposals["at"].note
    assert "2 different values in 1,000 texts: an enumeration? (NEW, PAID)" in proposals["state"].note
    assert proposals["opt"].note.startswith("there in 500 of 1,000 (50.00 %): may be left out; null in 250 of 500")
    assert (proposals["opt"].required, proposals["opt"].nullable) == (False, True)
    assert (proposals["state"].confidence, proposals["opt"].confidence) == (0.997, 0.988)
    chosen = propose_all(of(*rows), enumerations=4)["state"]
    assert (chosen.type, chosen.note) == ("enumeration", "always there, in 1,000 records; 2 values in 1,000 texts")


def test_enumerations_are_as_sure_as_their_rare_values() -> None:
    """Values that occur once lower the confidence of an enumeration (Good-Turing estimate)."""
    rows = [{"s": f"rare {n}" if n < 10 else "usual"} for n in range(100)]
    assert propose_all(of(*rows), enumerations=20)["s"].confidence == 0.9
    assert propose_all(of(*rows))["s"].confidence == 0.97


def test_names_that_are_keys_become_a_map() -> None:
    """Objects with too many names become a map in any order of merging, and the number of places is limited."""
    halves = [of({f"k{n}": n for n in range(start, start + 700)}) for start in (0, 700)]
    merged = halves[0].merge_with(halves[1], MOST)
    assert merged == halves[1].merge_with(halves[0], MOST)
    assert merged.members is None
    model = make_model(merged, "R", InferOptions())
    assert isinstance(model.root, Map)
    nested = of(*({"home": {f"k{n}-{m}": "x" for m in range(40)}} for n in range(40)))
    proposals = propose_fields(nested, make_model(nested, "R", InferOptions()))
    assert [(it.path, it.type) for it in proposals] == [("home", "map"), ("home{}", "text")]
    wide = of([{f"a{n}": {f"b{m}": 1 for m in range(200)} for n in range(600)}])
    with pytest.raises(TooLarge):
        check_size(wide)


def test_texts_of_csv_are_what_they_look_like() -> None:
    """Numbers, booleans and dates are detected in texts.

    A number with a leading zero is text. A single other text makes all of them texts. An empty text is null.
    """
    table = {
        "id": ["1", "2", "-3"],
        "zip": ["01", "2", ""],
        "price": ["1.5", "2", "1e3"],
        "on": ["true", "FALSE", ""],
        "day": ["2024-01-01", "2024-01-02", ""],
        "big": ["123456789012345678901", "1", "2"],
    }
    evidence = evidence_of_rows(pa.record_batch(table), most=MOST, parse=True)
    model = make_model(evidence, "R", InferOptions(), parsed=True)
    text = write_model(model, AVRO).text.decode()
    types = {field["name"]: field["type"] for field in json.loads(text)["fields"]}
    assert types == {
        "id": "long",
        "zip": ["null", "string"],
        "price": "double",
        "on": ["null", "boolean"],
        "day": ["null", {"type": "int", "logicalType": "date"}],
        "big": "double",
    }
    notes = {it.path: it.note for it in propose_fields(evidence, model, parsed=True)}
    assert "integer in 50.00 %, text in 1: all are texts" in notes["zip"]


def test_typed_columns_keep_their_types() -> None:
    """Typed columns keep their widths. Fields that are never null are required at any depth.

    Texts with few values become symbols only if that is requested.
    """
    inner = t.StructType([t.StructField("city", t.StringType()), t.StructField("zip", t.StringType())])
    struct = t.StructType(
        [
            t.StructField("id", t.IntegerType()),
            t.StructField("place", inner),
            t.StructField("tags", t.ArrayType(t.StringType())),
            t.StructField("more", t.MapType(t.StringType(), t.LongType())),
        ]
    )
    rows = [
        {"id": n, "place": {"city": "Oslo", "zip": None}, "tags": ["a", "b"], "more": [("x", None if n else 1)]}
        for n in range(30)
    ]
    place = pa.struct([("city", pa.string()), ("zip", pa.string())])
    schema = pa.schema(
        {"id": pa.int32(), "place": place, "tags": pa.list_(pa.string()), "more": pa.map_(pa.string(), pa.int64())}
    )
    evidence = evidence_of_rows(pa.RecordBatch.from_pylist(rows, schema), most=MOST, parse=False)
    model = refine_model(from_spark(struct, name="R")[0], evidence, 3)
    record = model.types["R"]
    assert isinstance(record, RecordType)
    fields = {field.name: field for field in record.fields}
    assert {name: field.nullable for name, field in fields.items()} == dict.fromkeys(schema.names, False)
    assert isinstance(fields["tags"].type.items, TypeReference)  # type: ignore[union-attr]  # the model says it is an array
    assert fields["more"].type.nullable  # type: ignore[union-attr]  # likewise a map
    names = [kind.name for kind in model.types.values() if isinstance(kind, Enumeration)]
    assert len(names) == 2
    noted = with_notes(model, {it.path: it.note for it in propose_fields(evidence, model)})
    text = write_model(noted, AVRO).text.decode()
    assert '"type": "int",\n      "doc": "always there, in 30 records; whole numbers 0 to 29"' in text
    assert "always null" in text


# --- the offer ------------------------------------------------------------------------------------------------------


@pytest.fixture
def client() -> Iterator[SchemaRegistryClient]:
    """A client of an empty registry in this process."""
    transport = StoreTransport("memory:")
    with SchemaRegistryClient("http://registry", transport=transport) as opened:
        yield opened
    transport.close()


def inference(*rows: Any) -> Inference:
    """An inference over documents, without Spark."""
    evidence = of(*rows)
    model = make_model(evidence, "R", InferOptions())
    fields = propose_fields(evidence, model)
    text = write_model(with_notes(model, {it.path: it.note for it in fields}), AVRO).text.decode()
    return Inference("avro", text, len(rows), 0, {}, 1.0, (), fields)


def test_registered_with_notes_once(client: SchemaRegistryClient) -> None:
    """The schema is registered with its confidence as properties. The same schema with other counts changes nothing."""
    outcome = register_inferred(inference(*({"a": n} for n in range(100))), "s", lambda: client)
    assert outcome.offer is not None
    assert (outcome.offer.version, outcome.offer.there, outcome.report().state) == (1, False, ReportState.GOOD)
    metadata = client.version("s").metadata
    assert metadata is not None
    assert metadata.properties["stele.inferred.records"] == "100"
    assert metadata.properties["stele.inferred.field.a"] == "0.97: always there, in 100 records; whole numbers 0 to 99"
    again = register_inferred(inference(*({"a": n} for n in range(500))), "s", lambda: client)
    assert again.offer is not None
    assert (again.offer.version, again.offer.there) == (1, True)
    assert client.versions("s") == [1]


def test_what_the_policy_refuses_is_told_and_not_registered(client: SchemaRegistryClient) -> None:
    """A schema that the subject's policy refuses is not registered, and the report has the reason."""
    client.register("s", Schema('{"type":"record","name":"R","fields":[{"name":"a","type":"string"}]}'))
    client.set_config(ConfigUpdateRequest(compatibility="FULL"), "s")
    outcome = register_inferred(inference({"a": 1}), "s", lambda: client)
    assert outcome.offer is not None
    assert not outcome.offer.is_registered
    assert any("TYPE_MISMATCH" in why for why in outcome.offer.against)
    assert client.versions("s") == [1]
    report = outcome.report()
    assert report.state == ReportState.ATTENTION
    assert "s refuses it" in report.verdict
    assert any(section.rows for section in report.sections if section.title == "Why the subject refuses it")


def test_a_snapshot_takes_nothing() -> None:
    """Offering a schema to a snapshot raises an error."""
    with pytest.raises(Invalid, match="cannot be registered in a snapshot"):
        register_inferred(inference({"a": 1}), "s", SchemaSnapshot((ResolvedSchema('"int"'),)))
