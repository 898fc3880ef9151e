"""Properties of the Avro format for random schemas, with the Java library and fastavro as oracles."""

from __future__ import annotations

import io
import json
import random
from typing import Any

import fastavro
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from tests.property.avro_strategies import related_schemas, schemas
from tests.property.java_oracle import JavaError, java
from tests.support.examples import scale_examples

from stele.core.ports import TextForm
from stele.errors import DataError, Invalid, MalformedSchema
from stele.formats.avro import AVRO, AvroSchema

FAST = settings(max_examples=scale_examples(150), deadline=None, suppress_health_check=list(HealthCheck))


def parse_schema(value: Any) -> AvroSchema:
    """Parse a schema given as a JSON value."""
    return AVRO.parse(json.dumps(value).encode(), {})


def is_complete_in_canonical_form(value: Any) -> bool:
    """Return whether Parsing Canonical Form is complete.

    It cannot express a type without namespace inside a namespace.
    """
    return '"namespace": ""' not in json.dumps(value)


def breaking_rules(reader: Any, writer: Any) -> set[tuple[str, str]]:
    """Return (rule, path) of each breaking finding."""
    return {
        (finding.rule, finding.path)
        for finding in AVRO.check(parse_schema(reader), parse_schema(writer))
        if finding.breaks
    }


@FAST
@given(schemas())
def test_printing_is_stable(schema: Any) -> None:
    """A printed text is parsed to a schema that prints the same, in every form."""
    for form in TextForm if is_complete_in_canonical_form(schema) else (TextForm.PRINTED, TextForm.NORMALIZED):
        once = AVRO.canonical(parse_schema(schema), form)
        assert AVRO.canonical(AVRO.parse(once, {}, strict=False), form) == once


@FAST
@given(schemas())
def test_every_form_means_the_same(schema: Any) -> None:
    """Printing in one form does not change the other forms and compatibility."""
    original = parse_schema(schema)
    for form in (TextForm.PRINTED, TextForm.NORMALIZED):
        again = AVRO.parse(AVRO.canonical(original, form), {})
        assert AVRO.canonical(again, TextForm.CANONICAL) == AVRO.canonical(original, TextForm.CANONICAL)
        assert AVRO.canonical(again, TextForm.NORMALIZED) == AVRO.canonical(original, TextForm.NORMALIZED)
        assert AVRO.check(again, original) == AVRO.check(original, again) == AVRO.check(original, original)


def _without_docs(node: Any) -> Any:
    if isinstance(node, dict):
        members = {
            key: _without_docs(value) for key, value in node.items() if key not in ("doc", "order", "extra", "color")
        }
        return dict(reversed(members.items()))
    return [_without_docs(item) for item in node] if isinstance(node, list) else node


@FAST
@given(schemas())
def test_a_document_taken_apart_means_the_same(schema: Any) -> None:
    """Each part is a schema with the parts before it as references, and all together are the document."""
    text = json.dumps(schema).encode()
    split = AVRO.split_types(text)
    parts: dict[str, bytes] = {}
    for name, part in split.types.items():
        assert name in AVRO.list_exports(part.encode())
        AVRO.parse(part.encode(), parts)
        parts[name] = part.encode()
    again = AVRO.parse(split.text.encode(), parts)
    assert AVRO.render(again, "resolved") == AVRO.render(AVRO.parse(text, {}), "resolved")


@FAST
@given(schemas())
def test_fingerprints_ignore_style(schema: Any) -> None:
    """White space, attribute order and docs do not change a fingerprint, nor white space the NORMALIZED text."""
    plain = parse_schema(schema)
    spaced = AVRO.parse(json.dumps(schema, indent=3).encode(), {})
    assert (
        AVRO.fingerprints(plain) == AVRO.fingerprints(spaced) == AVRO.fingerprints(parse_schema(_without_docs(schema)))
    )
    assert AVRO.canonical(plain, TextForm.NORMALIZED) == AVRO.canonical(spaced, TextForm.NORMALIZED)


@FAST
@given(schemas())
def test_compatibility_is_reflexive(schema: Any) -> None:
    """A schema reads its own data, without so much as a warning, unless its own aliases confuse its fields."""
    findings = AVRO.check(parse_schema(schema), parse_schema(schema))
    ambiguous = any(finding.rule == "READER_FIELD_AMBIGUOUS" for finding in findings)
    assert findings == [] or (ambiguous and "aliases" in json.dumps(schema))


@settings(FAST, max_examples=scale_examples(300))
@given(related_schemas())
def test_verdicts_are_those_of_java(pair: tuple[Any, Any]) -> None:
    """Verdict, rules and paths equal those of Java's SchemaCompatibility, in both directions."""
    for reader, writer in (pair, pair[::-1]):
        try:
            ours = breaking_rules(reader, writer)
            theirs = java().incompatibilities(json.dumps(reader), json.dumps(writer))
        except (MalformedSchema, JavaError) as error:
            assume("matches multiple fields" in str(error))
            assert "READER_FIELD_AMBIGUOUS" in str(AVRO.check(parse_schema(reader), parse_schema(writer)))
            continue
        # Java reports a missing field of an enum type with a default as a mismatch of enum and record.
        assert bool(ours) == bool(theirs), (ours, theirs)
        assert {path for rule, path in ours if "FIELD" not in rule} <= {path for _, path in theirs}, (ours, theirs)
        fields = {path for rule, path in ours if "FIELD" in rule}
        assert fields <= {path.removesuffix("/type") for _, path in theirs}, (ours, theirs)


@FAST
@given(schemas())
def test_texts_are_those_of_java(schema: Any) -> None:
    """PRINTED, CANONICAL and the Rabin fingerprint equal those of the Java library, character for character."""
    text = json.dumps(schema)
    try:
        printed = java().print_schema(text)
    except JavaError:
        assume(False)
    ours = parse_schema(schema)
    assert AVRO.canonical(ours, TextForm.PRINTED).decode() == printed
    assert AVRO.canonical(ours, TextForm.CANONICAL).decode() == java().canonical(text)
    assert AVRO.fingerprints(ours)["rabin"] == java().rabin(text)
    normal = AVRO.canonical(ours, TextForm.NORMALIZED).decode()
    assert java().print_schema(normal) == normal


@FAST
@given(schemas(), st.randoms(use_true_random=False))
def test_identity_is_that_of_java(schema: Any, chance: random.Random) -> None:
    """A schema with its attributes in another order is equal, here and in Java; one without them is not."""
    shuffled, bare = (_rewrite(schema, chance, keep=keep) for keep in (True, False))
    ours, mine, other = (AVRO.identity_text(parse_schema(each)) for each in (schema, shuffled, bare))
    assert ours == mine
    printed = parse_schema(schema)
    AVRO.canonical(printed, TextForm.PRINTED)
    assert AVRO.identity_text(printed) == ours
    try:
        theirs = [java().parse(json.dumps(each)) for each in (schema, shuffled, bare)]
    except JavaError:
        assume(False)
    assert theirs[0].equals(theirs[1])
    assert theirs[0].equals(theirs[2]) == (ours == other)


def _rewrite(node: Any, chance: random.Random, *, keep: bool) -> Any:
    """Return a schema with its members in any order, if keep is set, or without attributes unknown to Avro."""
    if isinstance(node, list):
        return [_rewrite(item, chance, keep=keep) for item in node]
    if not isinstance(node, dict):
        return node
    names = [name for name in node if keep or name not in ("color", "weights", "extra")]
    if keep:
        chance.shuffle(names)
    return {name: _rewrite(node[name], chance, keep=keep) for name in names}


@FAST
@given(schemas())
def test_examples_fit_and_come_back(schema: Any) -> None:
    """The example of a schema validates, encodes, decodes to itself, and reads the same through fastavro."""
    parsed = parse_schema(schema)
    codec = AVRO.codec(parsed)
    try:
        datum = codec.example()
    except Invalid:
        return
    assert codec.validate(datum) == []
    data = codec.encode(datum)
    assert codec.decode(data) == datum
    if not is_complete_in_canonical_form(schema):
        return
    try:
        known = fastavro.parse_schema(json.loads(AVRO.canonical(parsed, TextForm.CANONICAL)), named_schemas={})
    except fastavro.schema.UnknownType:
        return  # from inside a namespace fastavro does not find types without one
    raw = fastavro.schemaless_reader(io.BytesIO(data), known, None)
    out = io.BytesIO()
    fastavro.schemaless_writer(out, known, raw)
    assert AVRO.codec(AVRO.parse(AVRO.canonical(parsed, TextForm.CANONICAL), {})).decode(data) == raw


@FAST
@given(schemas(), st.binary(max_size=60))
def test_damaged_data_are_errors(schema: Any, noise: bytes) -> None:
    """Any bytes either decode to a datum that encodes to the same value again, or raise a DataError."""
    codec = AVRO.codec(parse_schema(schema))
    try:
        datum = codec.decode(noise)
    except DataError:
        return
    if codec.validate(datum) == []:
        assert repr(codec.decode(codec.encode(datum))) == repr(datum)


@settings(FAST, max_examples=scale_examples(300))
@given(related_schemas())
def test_compatible_means_readable(pair: tuple[Any, Any]) -> None:
    """Where the check finds nothing, the writer's example decodes with the reader's schema."""
    old, new = pair
    try:
        writer, reader = parse_schema(old), parse_schema(new)
        datum = AVRO.codec(writer).example()
    except (MalformedSchema, Invalid):
        return
    if not AVRO.check(reader, writer):
        AVRO.codec(writer, reader).decode(AVRO.codec(writer).encode(datum))


@given(st.binary(max_size=80))
@settings(max_examples=scale_examples(500), deadline=None)
def test_any_bytes_parse_or_say_why(text: bytes) -> None:
    """Arbitrary bytes give a schema or a MalformedSchema, nothing else."""
    try:
        AVRO.parse(text, {})
    except MalformedSchema:
        return


@given(st.floats(allow_nan=False, allow_infinity=False))
@settings(max_examples=scale_examples(200), deadline=None)
def test_numbers_survive_printing(value: float) -> None:
    """A double printed in Java's notation reads back as the same double."""
    text = json.dumps({"type": "int", "x": value}).encode()
    printed = AVRO.canonical(AVRO.parse(text, {}), TextForm.PRINTED)
    assert json.loads(printed)["x"] == value
