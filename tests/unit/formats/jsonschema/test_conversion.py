"""Conversion of JSON Schema to the neutral model and back: every keyword, and a loss for all that one side lacks."""

from __future__ import annotations

import json
from typing import Any

import pytest

from stele.errors import CannotConvert, TooLarge
from stele.formats.conversion.model import (
    ABSENT,
    Array,
    Decimal,
    Duration,
    Enumeration,
    EnumSymbol,
    Fixed,
    Loss,
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
from stele.formats.jsonschema import JSON_SCHEMA

LATEST = "https://json-schema.org/draft/2020-12/schema"
ANY = Scalar(ScalarKind.ANY)
NULL = Scalar(ScalarKind.NULL)
TEXT = Scalar(ScalarKind.STRING)
WHOLE = Scalar(ScalarKind.INTEGER)


def read_model(schema: Any, draft: str = LATEST, **references: Any) -> tuple[Model, list[Loss]]:
    """The model of a schema given as a JSON value."""
    texts = {name: json.dumps(text).encode() for name, text in references.items()}
    full = {"$schema": draft, **schema} if isinstance(schema, dict) else schema
    return JSON_SCHEMA.to_model(JSON_SCHEMA.parse(json.dumps(full).encode(), texts))


def write_schema(model: Model) -> tuple[Any, list[Loss]]:
    """The schema of a model as a JSON value without `$schema`, seen to be valid."""
    text, losses = JSON_SCHEMA.from_model(model)
    JSON_SCHEMA.parse(text, {})
    schema = json.loads(text)
    assert schema.pop("$schema") == LATEST
    return schema, losses


def read_field(schema: Any) -> RecordField:
    """Return the field that a property is converted to."""
    record = read_model({"title": "R", "type": "object", "properties": {"a": schema}})[0].types["R"]
    assert isinstance(record, RecordType)
    return record.fields[0]


def loss_keys(losses: list[Loss]) -> set[tuple[str, str, bool]]:
    """Return (path, what, data) of each loss."""
    return {(loss.path, loss.what, loss.data) for loss in losses}


SAME: list[tuple[Any, Type]] = [
    ({"type": "boolean"}, Scalar(ScalarKind.BOOLEAN)),
    ({"type": "integer"}, WHOLE),
    ({"type": "integer", "minimum": -128, "maximum": 127}, Scalar(ScalarKind.INT8)),
    ({"type": "integer", "minimum": -(2**31), "maximum": 2**31 - 1}, Scalar(ScalarKind.INT32)),
    ({"type": "integer", "minimum": -(2**63), "maximum": 2**63 - 1}, Scalar(ScalarKind.INT64)),
    ({"type": "integer", "minimum": 0, "maximum": 2**64 - 1}, Scalar(ScalarKind.UINT64)),
    ({"type": "number"}, Scalar(ScalarKind.NUMBER)),
    ({"type": "string"}, TEXT),
    ({"type": "string", "format": "decimal", "pattern": r"^-?(0|[1-9][0-9]{0,6})(\.[0-9]{1,2})?$"}, Decimal(9, 2)),
    ({"type": "string", "format": "decimal", "pattern": r"^-?(0|[1-9][0-9]{0,4})$"}, Decimal(5, 0)),
    ({"type": "string", "format": "decimal", "pattern": r"^-?0(\.[0-9]{1,3})?$"}, Decimal(3, 3)),
    ({"type": "array", "items": {"type": "string"}}, Array(TEXT)),
    ({"type": "array", "items": {"type": ["string", "null"]}}, Array(TEXT, nullable=True)),
    ({"type": "object", "additionalProperties": {"type": "boolean"}}, Map(Scalar(ScalarKind.BOOLEAN))),
    (
        {"anyOf": [{"type": "boolean"}, {"type": "string"}]},
        Union((UnionOption(Scalar(ScalarKind.BOOLEAN)), UnionOption(TEXT))),
    ),
]


@pytest.mark.parametrize(("schema", "kind"), SAME, ids=lambda value: str(value)[:50])
def test_types_there_and_back(schema: Any, kind: Type) -> None:
    """A type both sides have is that type in either direction, without a loss."""
    assert read_model(schema) == (Model(kind), [])
    assert write_schema(Model(kind)) == (schema, [])


@pytest.mark.parametrize(
    ("schema", "kind"),
    [
        ({"type": "string", "format": "date"}, Scalar(ScalarKind.DATE)),
        ({"type": "string", "format": "uuid"}, Scalar(ScalarKind.UUID)),
        ({"type": "string", "format": "date-time"}, Timestamp(TimeUnit.MICRO)),
        ({"type": "string", "format": "date-time-local"}, Timestamp(TimeUnit.MICRO, utc=False)),
        ({"type": "string", "format": "time-local"}, Time(TimeUnit.MICRO)),
        ({"type": "string", "format": "duration"}, Duration(TimeUnit.MILLI, calendar=True)),
        ({"type": "string", "contentEncoding": "base64"}, Scalar(ScalarKind.BYTES)),
    ],
)
def test_formats_assert_nothing(schema: Any, kind: Type) -> None:
    """Text with a format gets the type of the format; texts that contradict it are valid data, so data are lost."""
    model, losses = read_model(schema)
    assert model == Model(kind)
    assert loss_keys(losses) == {("", "FORMAT", True)}
    assert write_schema(model) == (schema, [])
    # The specification has contentEncoding assert nothing either; the validator in use checks it all the same.
    faults = JSON_SCHEMA.codec(JSON_SCHEMA.parse(json.dumps(schema).encode(), {})).validate("none of it")
    assert bool(faults) == ("contentEncoding" in schema)


def test_floats() -> None:
    """Floats are numbers with a format; JSON has no NaN, and a float cannot hold larger numbers."""
    schema = {"type": "number", "format": "double"}
    assert read_model(schema)[0] == Model(Scalar(ScalarKind.FLOAT64))
    assert loss_keys(read_model(schema)[1]) == {("", "FORMAT", True)}
    assert write_schema(Model(Scalar(ScalarKind.FLOAT64)))[0] == schema
    assert loss_keys(write_schema(Model(Scalar(ScalarKind.FLOAT32)))[1]) == {("", "NOT_A_NUMBER", True)}


@pytest.mark.parametrize("size", [0, 1, 2, 3, 16])
def test_fixed(size: int) -> None:
    """A fixed size becomes a pattern of the base64 text, which is read back and accepts that many bytes only."""
    model = Model(TypeReference("F"), {"F": Fixed("F", size)})
    schema, losses = write_schema(model)
    assert losses == []
    assert read_model(schema) == (model, [])
    codec = JSON_SCHEMA.codec(JSON_SCHEMA.parse(json.dumps(schema).encode(), {}))
    text = {0: "", 1: "AA==", 2: "AAA=", 3: "AAAA", 16: "A" * 22 + "=="}[size]
    assert codec.validate(text) == []
    assert codec.validate(text + "AAAA") != []


@pytest.mark.parametrize(
    ("schema", "kind", "constraints"),
    [
        ({"minimum": 0, "maximum": 100}, ScalarKind.INT32, {"minimum": 0, "maximum": 100}),
        ({"minimum": 0, "maximum": 2**40}, ScalarKind.INT64, {"minimum": 0, "maximum": 2**40}),
        ({"minimum": 0, "maximum": 2**63}, ScalarKind.UINT64, {"minimum": 0, "maximum": 2**63}),
        ({"exclusiveMinimum": -1, "exclusiveMaximum": 256}, ScalarKind.UINT8, {}),
        ({"minimum": 0}, ScalarKind.INTEGER, {"minimum": 0}),
        ({"minimum": 0.5, "maximum": 9.5}, ScalarKind.INT32, {"minimum": 0.5, "maximum": 9.5}),
        ({"minimum": 0, "maximum": 1e99}, ScalarKind.INTEGER, {"minimum": 0, "maximum": 10**99}),
        ({"multipleOf": 5}, ScalarKind.INTEGER, {"multipleOf": 5}),
    ],
)
def test_widths_of_integers(schema: Any, kind: ScalarKind, constraints: Any) -> None:
    """Bounds of an integer type select that type; other bounds select a type that holds them, and are kept."""
    field = read_field({"type": "integer", **schema})
    assert (field.type, field.constraints) == (Scalar(kind), constraints)


def test_records() -> None:
    """Properties, `required`, `default`, `description` and openness are converted; a named type is defined once."""
    schema = {
        "title": "com.acme.Order",
        "type": "object",
        "description": "An order",
        "properties": {
            "id": {"type": "string", "minLength": 1, "description": "its id", "default": "x"},
            "from": {"$ref": "#/$defs/Place"},
            "to": {"$ref": "#/$defs/Place", "description": "where to"},
            "parent": {"anyOf": [{"$ref": "#"}, {"type": "null"}]},
        },
        "required": ["id", "from"],
        "additionalProperties": False,
        "$defs": {"Place": {"type": "object", "properties": {"x": {}}, "additionalProperties": True}},
    }
    fields = (
        RecordField("id", TEXT, default="x", doc="its id", constraints={"minLength": 1}),
        RecordField("from", TypeReference("Place")),
        RecordField("to", TypeReference("Place"), required=False, doc="where to"),
        RecordField("parent", TypeReference("com.acme.Order"), nullable=True, required=False),
    )
    model, losses = read_model(schema)
    assert losses == []
    assert model.types["com.acme.Order"] == RecordType("com.acme.Order", fields, "An order", open=False)
    assert write_schema(model) == (schema, [])


@pytest.mark.parametrize(
    ("rest", "is_open"),
    [
        ({}, True),
        ({"additionalProperties": True}, True),
        ({"additionalProperties": {"type": "string"}}, True),
        ({"additionalProperties": False}, False),
        ({"additionalProperties": False, "patternProperties": {"^x": {}}}, True),
        ({"unevaluatedProperties": False}, False),
        ({"unevaluatedProperties": False, "if": {}}, True),
    ],
)
def test_openness(rest: Any, is_open: bool) -> None:
    """A record is closed only if its data can have no other members."""
    record = read_model({"title": "R", "type": "object", "properties": {"a": {}}, **rest})[0].types["R"]
    assert isinstance(record, RecordType)
    assert record.open is is_open


def test_members_that_are_required_and_not_described() -> None:
    """Required members without a schema can have any value."""
    record = read_model({"title": "R", "type": "object", "properties": {"a": {}}, "required": ["b"]})[0].types["R"]
    assert isinstance(record, RecordType)
    assert record.fields[1] == RecordField("b", ANY, nullable=True)


@pytest.mark.parametrize(
    ("schema", "kind", "losses"),
    [
        ({}, Map(ANY, nullable=True), set()),
        ({"additionalProperties": {"type": "string"}}, Map(TEXT), set()),
        ({"patternProperties": {".*": {"type": "string"}}}, Map(TEXT), set()),
        (
            {"patternProperties": {"^x": {"type": "string"}}, "additionalProperties": False},
            Map(TEXT),
            {("", "PATTERN", False)},
        ),
        ({"patternProperties": {"^x": {"type": "string"}}}, Map(TEXT), {("", "PATTERN", True)}),
    ],
)
def test_maps(schema: Any, kind: Type, losses: Any) -> None:
    """Objects without named members become maps."""
    model, lost = read_model({"type": "object", **schema})
    assert model == Model(kind)
    assert loss_keys(lost) == losses


@pytest.mark.parametrize(
    ("schema", "kind", "nullable"),
    [
        ({"type": ["string", "null"]}, TEXT, True),
        ({"type": ["string", "boolean"]}, Union((UnionOption(TEXT), UnionOption(Scalar(ScalarKind.BOOLEAN)))), False),
        ({"type": ["integer", "number"]}, Scalar(ScalarKind.NUMBER), False),
        ({"type": "null"}, NULL, True),
        ({"oneOf": [{"type": "null"}, {"type": "string"}]}, TEXT, True),
        ({"anyOf": [{"type": "null"}, {"type": "string"}, {"type": "boolean"}]}, ..., True),
        ({"anyOf": [{"type": "string"}]}, TEXT, False),
        ({"anyOf": [{"type": "string"}, {}]}, ANY, True),
        ({"anyOf": [{"anyOf": [{"type": "string"}, {"type": "boolean"}]}, {"type": "string"}]}, ..., False),
        ({"const": "x"}, TEXT, False),
        ({"enum": [1, 2]}, WHOLE, False),
        ({"enum": [1, "a", None]}, Union((UnionOption(TEXT), UnionOption(WHOLE))), True),
        ({}, ANY, True),
        (True, ANY, True),
    ],
)
def test_alternatives(schema: Any, kind: Any, nullable: bool) -> None:
    """Lists of types, `oneOf`, `anyOf`, `enum` and `const` come to one type, a union or any value."""
    field = read_field(schema)
    both = Union((UnionOption(TEXT), UnionOption(Scalar(ScalarKind.BOOLEAN))))
    assert (field.type, field.nullable) == (both if kind is ... else kind, nullable)


def test_constraints_of_values() -> None:
    """`const` and an `enum` of other things than texts stay constraints."""
    assert read_field({"const": "x"}).constraints == {"const": "x"}
    assert read_field({"enum": [1, 2.5]}).constraints == {"enum": [1, 2.5]}


@pytest.mark.parametrize(
    ("schema", "symbols", "nullable"),
    [
        ({"enum": ["a", "b"]}, (EnumSymbol("a"), EnumSymbol("b")), False),
        ({"type": ["string", "null"], "enum": ["a", None]}, (EnumSymbol("a"),), True),
        ({"type": "string", "enum": ["a", None]}, (EnumSymbol("a"),), False),
        (
            {"oneOf": [{"const": "a", "description": "first"}, {"const": "b", "title": "second"}]},
            (EnumSymbol("a", doc="first"), EnumSymbol("b", doc="second")),
            False,
        ),
    ],
)
def test_enumerations(schema: Any, symbols: Any, nullable: bool) -> None:
    """A list of strings becomes an enumeration, named after its path."""
    model, losses = read_model({"title": "R", "type": "object", "properties": {"the-kind": schema}})
    assert losses == []
    assert model.types["RTheKind"] == Enumeration("RTheKind", symbols)
    record = model.types["R"]
    assert isinstance(record, RecordType)
    assert record.fields[0].nullable is nullable


def test_all_of_adds_up() -> None:
    """Properties, requirements, types and bounds of all schemas in `allOf` apply; one closed schema closes all."""
    schema = {
        "title": "R",
        "allOf": [{"$ref": "#/$defs/Base"}, {"properties": {"b": {"minimum": 2}}, "required": ["b"]}],
        "properties": {"b": {"type": "integer", "minimum": 1, "maximum": 9}},
        "$defs": {"Base": {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}},
    }
    model, losses = read_model(schema)
    fields = (
        RecordField("b", Scalar(ScalarKind.INT32), constraints={"minimum": 2, "maximum": 9}),
        RecordField("a", TEXT),
    )
    assert model.types == {"R": RecordType("R", fields, open=True)}
    assert losses == []
    base = {"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": False}
    closed = read_model({"title": "R", "allOf": [base, {"properties": {"b": {"type": "string"}}}]})[0]
    assert closed.types == {"R": RecordType("R", (RecordField("a", TEXT, required=False),), open=False)}


def test_all_of_that_does_not_add_up() -> None:
    """If two schemas in `allOf` differ in a keyword, the first value is kept, and the loss is reported."""
    model, losses = read_model({"allOf": [{"type": "string", "pattern": "a"}, {"pattern": "b"}]})
    assert (model.root, model.constraints) == (TEXT, {"pattern": "a"})
    assert loss_keys(losses) == {("", "ALL_OF", False)}


def test_references() -> None:
    """A reference leads into the document, into reference texts, and in cycles."""
    schema = {
        "title": "R",
        "type": "object",
        "properties": {"next": {"$ref": "#"}, "who": {"$ref": "people/person.json"}, "a": {"$ref": "#/$defs/the%20a"}},
        "$defs": {"the a": {"type": "object", "properties": {"r": {"$ref": "#"}}}},
    }
    model, losses = read_model(schema, **{"people/person.json": {"type": "object", "properties": {"name": {}}}})
    assert losses == []
    assert set(model.types) == {"R", "person", "the a"}
    again, _ = write_schema(model)
    assert read_model(again) == (model, [])
    other, losses = read_model({"type": "array", "items": {"$ref": "#"}})
    assert other.root == Array(ANY, nullable=True)
    assert loss_keys(losses) == {("[]", "RECURSION", False)}


def test_a_nullable_record_is_nullable_wherever_it_is_used() -> None:
    """A type that is null or an object is nullable at each reference, also inside itself."""
    schema = {
        "title": "R",
        "type": "object",
        "properties": {"a": {"$ref": "#/$defs/N"}, "b": {"$ref": "#/$defs/N"}},
        "$defs": {"N": {"type": ["object", "null"], "properties": {"n": {"$ref": "#/$defs/N"}}}},
    }
    model, _ = read_model(schema)
    for name in ("R", "N"):
        record = model.types[name]
        assert isinstance(record, RecordType)
        assert all(inner.nullable and inner.type == TypeReference("N") for inner in record.fields)


@pytest.mark.parametrize(
    ("schema", "draft", "kind"),
    [
        (
            {"type": "integer", "minimum": 0, "maximum": 256, "exclusiveMaximum": True},
            "draft-04",
            Scalar(ScalarKind.UINT8),
        ),
        ({"type": "array", "items": [{"type": "string"}], "additionalItems": False}, "draft-04", Array(TEXT)),
        ({"type": "array", "items": [{"type": "string"}], "additionalItems": False}, "draft-06", Array(TEXT)),
        (
            {"allOf": [{"$ref": "#/definitions/t", "type": "null"}], "definitions": {"t": {"type": "string"}}},
            "draft-07",
            TEXT,
        ),
    ],
)
def test_older_drafts(schema: Any, draft: str, kind: Type) -> None:
    """Boolean exclusive bounds, lists of items, and references that hide the keywords beside them are converted."""
    assert read_model(schema, f"http://json-schema.org/{draft}/schema#")[0].root == kind


def test_tuples() -> None:
    """A tuple becomes an array of the union of its item types."""
    closed = {"type": "array", "prefixItems": [{"type": "string"}, {"type": "boolean"}], "items": False}
    model, losses = read_model(closed)
    assert model.root == Array(Union((UnionOption(TEXT), UnionOption(Scalar(ScalarKind.BOOLEAN)))))
    assert loss_keys(losses) == {("", "TUPLE", False)}
    assert read_model({**closed, "items": True})[0].root == Array(ANY, nullable=True)


@pytest.mark.parametrize(
    ("keyword", "value", "what"),
    [
        ("if", {"required": ["a"]}, "CONDITION"),
        ("not", {"required": ["z"]}, "NOT"),
        ("dependentRequired", {"a": ["b"]}, "DEPENDENT"),
        ("dependentSchemas", {"a": {}}, "DEPENDENT"),
        ("unevaluatedProperties", {"type": "string"}, "UNEVALUATED"),
        ("minProperties", 1, "CONSTRAINT"),
        ("propertyNames", {"pattern": "^a"}, "CONSTRAINT"),
        ("anyOf", [{"required": ["a"]}, {"required": ["b"]}], "CONSTRAINT"),
        ("examples", [{}], "ANNOTATION"),
        ("deprecated", True, "ANNOTATION"),
        ("x-owner", "me", "ATTRIBUTE"),
    ],
)
def test_what_is_left_out(keyword: str, value: Any, what: str) -> None:
    """Conditions and annotations without a place are reported; leaving them out loses no datum."""
    model, losses = read_model({"title": "R", "type": "object", "properties": {"a": {}}, keyword: value})
    assert "R" in model.types
    assert loss_keys(losses) == {("", what, False)}


def test_array_conditions_that_are_left_out() -> None:
    """`contains` and `unevaluatedItems` are left out; array sizes are kept."""
    model, losses = read_model(
        {"type": "array", "items": {"type": "string"}, "contains": {"const": "x"}, "minItems": 1}
    )
    assert (model.root, model.constraints) == (Array(TEXT), {"minItems": 1})
    assert loss_keys(losses) == {("", "CONTAINS", False)}


def test_types_that_are_only_implied() -> None:
    """Without `type`, values of other types are valid but have no place in a record, so data are lost."""
    model, losses = read_model({"title": "R", "properties": {"a": {"minLength": 1}}})
    assert model.root == TypeReference("R")
    assert loss_keys(losses) == {("", "IMPLIED_TYPE", True), ("a", "IMPLIED_TYPE", True)}


def test_nothing_fits() -> None:
    """`false` cannot be converted; a property with the schema `false` is left out."""
    with pytest.raises(CannotConvert):
        read_model(False)
    record = read_model({"title": "R", "type": "object", "properties": {"a": False, "b": {}}})[0].types["R"]
    assert isinstance(record, RecordType)
    assert [inner.name for inner in record.fields] == ["b"]


def test_groups_of_members() -> None:
    """A group with at most one member is written as a JSON Schema condition and read back."""
    fields = tuple(RecordField(name, TEXT, required=False) for name in "abcd")
    groups = {"oneOf1": ("a", "b"), "oneOf2": ("c", "d")}
    model = Model(TypeReference("R"), {"R": RecordType("R", fields, open=False, at_most_one=groups)})
    schema, losses = write_schema(model)
    assert losses == []
    assert read_model(schema) == (model, [])
    codec = JSON_SCHEMA.codec(JSON_SCHEMA.parse(json.dumps(schema).encode(), {}))
    assert codec.validate({}) == codec.validate({"a": "", "d": ""}) == []
    assert codec.validate({"a": "", "b": ""}) != []


def test_what_the_model_has_and_json_schema_has_not() -> None:
    """Numbers, aliases, enum defaults, docs of symbols, types of keys and resolutions are reported."""
    model = Model(
        TypeReference("R"),
        {
            "R": RecordType(
                "R",
                (
                    RecordField("a", TEXT, number=1, aliases=("b",), constraints={"unknown": 1}),
                    RecordField("e", TypeReference("E"), nullable=True, constraints={"const": "A"}),
                    RecordField("m", Map(TEXT, Scalar(ScalarKind.INT32))),
                    RecordField("t", Timestamp(TimeUnit.MILLI)),
                    RecordField("d", Duration(TimeUnit.NANO)),
                    RecordField("n", TEXT, nullable=True),
                ),
                aliases=("Q",),
                at_most_one={"g": ("a", "n")},
            ),
            "E": Enumeration("E", (EnumSymbol("A", 1, "first"),), "A"),
        },
    )
    schema, losses = write_schema(model)
    assert schema["properties"]["e"]["enum"] == ["A", None]
    assert loss_keys(losses) == {
        *(("a", what, False) for what in ("NUMBER", "ALIAS", "CONSTRAINT")),
        *(("e", what, False) for what in ("NUMBER", "DOC", "ENUM_DEFAULT")),
        ("m", "MAP_KEY", False),
        ("t", "UNIT", False),
        ("d", "DURATION", False),
        ("", "ALIAS", False),
        ("", "ONEOF", False),
    }


@pytest.mark.parametrize(
    ("one", "other", "loss"),
    [
        (TEXT, Scalar(ScalarKind.BYTES), {("", "UNION", True)}),
        (Scalar(ScalarKind.INT32), Scalar(ScalarKind.NUMBER), {("", "UNION", False)}),
        (Array(TEXT), Array(WHOLE), {("", "UNION", True)}),
        (TypeReference("A"), Map(TEXT), {("", "UNION", True)}),
        (TypeReference("A"), TypeReference("A2"), {("", "UNION", True)}),
        (TypeReference("A"), TypeReference("B"), set()),
        (TypeReference("E"), TypeReference("G"), set()),
        (TypeReference("E"), TEXT, {("", "UNION", True)}),
        (TEXT, Scalar(ScalarKind.BOOLEAN), set()),
    ],
)
def test_options_that_look_alike(one: Type, other: Type, loss: Any) -> None:
    """A union whose options have equal JSON values loses which option a value had."""
    types = {
        "A": RecordType("A", (RecordField("a", TEXT),)),
        "A2": RecordType("A2", (RecordField("a", WHOLE),)),
        "B": RecordType("B", (RecordField("a", TEXT), RecordField("b", TEXT))),
        "E": Enumeration("E", (EnumSymbol("X"),)),
        "G": Enumeration("G", (EnumSymbol("Y"),)),
    }
    assert loss_keys(write_schema(Model(Union((UnionOption(one), UnionOption(other))), types))[1]) == loss


def test_defaults_and_docs_of_fields() -> None:
    """A default can be null; a title is used if there is no description, and reported as a loss otherwise."""
    assert read_field({"type": ["string", "null"], "default": None}).default is None
    assert read_field({"type": "string"}).default is ABSENT
    assert read_field({"type": "string", "title": "The a"}).doc == "The a"
    schema = {"title": "R", "type": "object", "properties": {"a": {"type": "string", "title": "T", "description": "D"}}}
    _, losses = read_model(schema)
    assert loss_keys(losses) == {("a", "ANNOTATION", False)}
    assert read_field({"type": "string", "title": "T", "description": "D"}).doc == "D"


def test_hostile_schemas() -> None:
    """Extreme depth, products and numbers are rejected with a clear message; a long chain of records is converted."""
    deep: Any = {"type": "string"}
    for _ in range(100):
        deep = {"type": "array", "items": deep}
    wide = {
        f"A{i}": {
            "type": "object",
            "patternProperties": {"^a": {"$ref": f"#/$defs/A{i + 1}"}, "^b": {"$ref": f"#/$defs/A{i + 1}"}},
        }
        for i in range(40)
    }
    for schema in (deep, {"$ref": "#/$defs/A0", "$defs": {**wide, "A40": {"type": "string"}}}):
        with pytest.raises(TooLarge):
            read_model(schema)
    with pytest.raises(CannotConvert):
        JSON_SCHEMA.to_model(JSON_SCHEMA.parse(b'{"type":"number","minimum":1e400}', {}))
    chain = {f"A{i}": {"type": "object", "properties": {"n": {"$ref": f"#/$defs/A{i + 1}"}}} for i in range(300)}
    model, _ = read_model({"$ref": "#/$defs/A0", "$defs": {**chain, "A300": {"type": "string"}}})
    assert len(model.types) == 300
    assert read_model(write_schema(model)[0])[0] == model
    kind: Type = TEXT
    for _ in range(100):
        kind = Array(kind)
    with pytest.raises(TooLarge):
        JSON_SCHEMA.from_model(Model(kind))
    with pytest.raises(CannotConvert):
        JSON_SCHEMA.from_model(Model(TypeReference("missing")))
