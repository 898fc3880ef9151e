"""Laws of the conversion between Protobuf and the neutral model."""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.property.conversion_models import models
from tests.property.test_protobuf import parse_source, proto_sources
from tests.support.examples import scale_examples

from stele.formats.conversion.model import Array, Map, Model, RecordField, RecordType, Type, TypeReference
from stele.formats.protobuf import PROTOBUF, ProtobufFormat, ProtobufSchema

FORMAT = ProtobufFormat()
GENEROUS = settings(max_examples=scale_examples(60), deadline=None, suppress_health_check=list(HealthCheck))
BESIDES = {"OPEN_ENUM", "RESERVED", "TYPE", "SERVICE", "EXTENSION", "OPTION"}
"""Losses that leave every field as it is."""


def message_shapes(schema: ProtobufSchema, message: str, *, kinds: bool) -> dict[str, set[tuple[Any, ...]]]:
    """Return the fields of every message that one leads to, by full name. kinds is whether scalar types count."""
    shapes: dict[str, set[tuple[Any, ...]]] = {}
    todo = [schema.get_message(message)]
    while todo:
        at = todo.pop()
        if at.full_name not in shapes:
            shapes[at.full_name] = {
                (
                    *(field.name, field.number, field.is_repeated, field.has_presence, schema.oneof_name(field)),
                    getattr(field.message_type or field.enum_type, "full_name", ""),
                    field.type if kinds else None,
                )
                for field in at.fields
            }
            todo += [field.message_type for field in at.fields if field.message_type is not None]
    return shapes


@given(models())
@GENEROUS
def test_every_model_becomes_a_schema_that_compiles(model: Model) -> None:
    """Whatever the names, numbers, types and cycles of a model, its file compiles, with the root first."""
    text, _ = FORMAT.from_model(model)
    schema = PROTOBUF.parse(text, {})
    again, _ = FORMAT.to_model(schema)
    assert again.root == TypeReference(schema.type_name)
    declared = model.types.get(model.root.name) if isinstance(model.root, TypeReference) else None
    root = again.types[schema.type_name]
    assert isinstance(root, RecordType)
    assert len(root.fields) == (len(declared.fields) if isinstance(declared, RecordType) else 1)


@given(models())
@GENEROUS
def test_a_schema_that_was_made_here_is_read_back_the_same(model: Model) -> None:
    """A file from one conversion does not change in two more conversions."""
    first, _ = FORMAT.to_model(PROTOBUF.parse(FORMAT.from_model(model)[0], {}))
    second, _ = FORMAT.to_model(PROTOBUF.parse(FORMAT.from_model(first)[0], {}))
    assert {len(t.fields) for t in first.types.values() if isinstance(t, RecordType)} == {
        len(t.fields) for t in second.types.values() if isinstance(t, RecordType)
    }


@given(proto_sources())
@GENEROUS
def test_fields_keep_name_number_and_kind(
    source: tuple[list[str], list[list[str]]],
) -> None:
    """Protobuf to model to Protobuf keeps fields with name and number, and their kind except for encodings."""
    schema = parse_source(source)
    model, losses = FORMAT.to_model(schema)
    text, more = FORMAT.from_model(model)
    assert {loss.what for loss in (*losses, *more)} <= BESIDES | {"ENCODING", "NAME"}
    encoded = any(loss.what == "ENCODING" for loss in losses)
    before, after = (
        message_shapes(each, schema.type_name, kinds=not encoded) for each in (schema, PROTOBUF.parse(text, {}))
    )
    assert after == before


@given(st.lists(st.sampled_from(["[]", "{}"]), max_size=20))
@GENEROUS
def test_lists_and_maps_inside_each_other_stay_as_deep(steps: list[str]) -> None:
    """Each level of nested lists and maps is kept, in a message of its own if Protobuf cannot nest it."""
    kind: Type = TypeReference("a.Leaf")
    for step in steps:
        kind = Array(kind) if step == "[]" else Map(kind)
    types = {"a.Root": RecordType("a.Root", (RecordField("x", kind),)), "a.Leaf": RecordType("a.Leaf", ())}
    text, losses = FORMAT.from_model(Model(TypeReference("a.Root"), types))
    assert not [loss for loss in losses if loss.data]
    assert text.count(b"repeated ") == steps.count("[]")
    assert text.count(b"map<") == steps.count("{}")
