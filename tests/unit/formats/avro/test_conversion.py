"""Conversion of Avro to the neutral model and back: every type, and a loss for everything that one side lacks."""

from __future__ import annotations

import json
from typing import Any

import pytest

from stele.core.ports import TextForm
from stele.errors import CannotConvert, TooLarge
from stele.formats.avro import AVRO
from stele.formats.conversion.model import (
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

LONG = Scalar(ScalarKind.INT64)
TEXT = Scalar(ScalarKind.STRING)


def read_model(schema: Any) -> tuple[Model, list[Loss]]:
    """The model of a schema given as a JSON value."""
    return AVRO.to_model(AVRO.parse(json.dumps(schema).encode(), {}))


def write_schema(model: Model) -> tuple[Any, list[Loss]]:
    """Return the schema of a model as a JSON value. It is checked to be valid."""
    text, losses = AVRO.from_model(model)
    AVRO.parse(text, {})
    return json.loads(text), losses


def make_model(*fields: RecordField, **rest: Any) -> Model:
    """A model that is one record R."""
    return Model(TypeReference("R"), {"R": RecordType("R", fields, **rest)})


def write_field(schema: Any, default: Any = ..., **rest: Any) -> tuple[RecordField, list[Loss]]:
    """The only field of a record, and the losses."""
    default_attribute = {} if default is ... else {"default": default}
    model, losses = read_model(
        {"type": "record", "name": "R", "fields": [{"name": "a", "type": schema, **default_attribute, **rest}]}
    )
    record = model.types["R"]
    assert isinstance(record, RecordType)
    return record.fields[0], losses


def summarize_losses(losses: list[Loss]) -> set[tuple[str, str, bool]]:
    """Return (path, what, data) of each loss."""
    return {(loss.path, loss.what, loss.data) for loss in losses}


SAME: list[tuple[Any, Type]] = [
    ("boolean", Scalar(ScalarKind.BOOLEAN)),
    ("int", Scalar(ScalarKind.INT32)),
    ("long", LONG),
    ("float", Scalar(ScalarKind.FLOAT32)),
    ("double", Scalar(ScalarKind.FLOAT64)),
    ("bytes", Scalar(ScalarKind.BYTES)),
    ("string", TEXT),
    ({"type": "string", "logicalType": "uuid"}, Scalar(ScalarKind.UUID)),
    ({"type": "int", "logicalType": "date"}, Scalar(ScalarKind.DATE)),
    ({"type": "int", "logicalType": "time-millis"}, Time(TimeUnit.MILLI)),
    ({"type": "long", "logicalType": "time-micros"}, Time(TimeUnit.MICRO)),
    ({"type": "long", "logicalType": "timestamp-millis"}, Timestamp(TimeUnit.MILLI)),
    ({"type": "long", "logicalType": "timestamp-micros"}, Timestamp(TimeUnit.MICRO)),
    ({"type": "long", "logicalType": "local-timestamp-millis"}, Timestamp(TimeUnit.MILLI, utc=False)),
    ({"type": "long", "logicalType": "local-timestamp-micros"}, Timestamp(TimeUnit.MICRO, utc=False)),
    ({"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}, Decimal(9, 2)),
    ({"type": "array", "items": "long"}, Array(LONG)),
    ({"type": "map", "values": ["null", "string"]}, Map(TEXT, nullable=True)),
    (["long", "string"], Union((UnionOption(LONG, "long"), UnionOption(TEXT, "string")))),
]


@pytest.mark.parametrize(("schema", "kind"), SAME, ids=lambda value: str(value)[:40])
def test_types_there_and_back(schema: Any, kind: Type) -> None:
    """A type both sides have is that type in either direction, without a loss."""
    assert read_model(schema) == (Model(kind), [])
    assert write_schema(Model(kind)) == (schema, [])


@pytest.mark.parametrize("name", ["timestamp-nanos", "local-timestamp-nanos"])
def test_nanoseconds(name: str) -> None:
    """Nanoseconds are kept. Their limited range in 64 bits is reported, because other languages have a greater one."""
    schema = {"type": "long", "logicalType": name}
    model, losses = read_model(schema)
    assert (model.root, losses) == (Timestamp(TimeUnit.NANO, utc=name[0] == "t"), [])
    again, losses = write_schema(model)
    assert again == schema
    assert summarize_losses(losses) == {("", "RANGE", True)}


def test_duration() -> None:
    """A duration on a fixed type of any name becomes a duration; the name is lost."""
    model, losses = read_model({"type": "fixed", "name": "Span", "size": 12, "logicalType": "duration"})
    assert model == Model(Duration(TimeUnit.MILLI, calendar=True))
    assert summarize_losses(losses) == {("", "FIXED", False)}
    again = {"type": "fixed", "name": "duration", "size": 12, "logicalType": "duration"}
    assert write_schema(model) == (again, [])
    twice = make_model(RecordField("a", model.root), RecordField("b", model.root))
    assert write_schema(twice)[0]["fields"][1]["type"] == "duration"


@pytest.mark.parametrize("size", [16, 4])
def test_logical_types_on_fixed(size: int) -> None:
    """A uuid or decimal on a fixed type becomes a uuid or decimal; the loss of the fixed type is reported."""
    logical = {"logicalType": "uuid"} if size == 16 else {"logicalType": "decimal", "precision": 5}
    model, losses = read_model({"type": "fixed", "name": "F", "size": size, **logical})
    assert model.root == (Scalar(ScalarKind.UUID) if size == 16 else Decimal(5, 0))
    assert summarize_losses(losses) == {("", "FIXED", False)}


def test_logical_types_without_a_place() -> None:
    """A logical type the model does not have is carried as its raw value."""
    model, losses = read_model({"type": "bytes", "logicalType": "big-decimal"})
    assert model.root == Scalar(ScalarKind.BYTES)
    assert summarize_losses(losses) == {("", "LOGICAL_TYPE", False)}


@pytest.mark.parametrize(
    ("schema", "default", "again"),
    [
        (["null", "string"], None, ["null", "string"]),
        (["string", "null"], "x", ["string", "null"]),
        (["null", "string"], ..., ["null", "string"]),
        (["null", "long", "string"], None, ["null", "long", "string"]),
        (["long", "string", "null"], 7, ["long", "string", "null"]),
    ],
)
def test_nullable_fields(schema: Any, default: Any, again: Any) -> None:
    """A union with null is nullable, and null is written at the position that the default requires."""
    field, losses = write_field(schema, default)
    assert field.nullable
    assert losses == []
    out, losses = write_schema(make_model(field))
    assert out["fields"][0] == {"name": "a", "type": again, **({} if default is ... else {"default": default})}
    assert losses == []


@pytest.mark.parametrize("schema", [["string", "null"], ["long", "null", "string"]])
def test_order_of_null(schema: Any) -> None:
    """Null becomes the first branch if no default requires it to be last, and the change is reported."""
    field, losses = write_field(schema)
    assert summarize_losses(losses) == {("a", "UNION_ORDER", False)}
    assert write_schema(make_model(field))[0]["fields"][0]["type"][0] == "null"


def test_odd_unions() -> None:
    """A union of one type is that type, one of null alone is null."""
    assert summarize_losses(read_model(["int"])[1]) == {("", "UNION", False)}
    assert read_model(["null"])[0] == Model(Scalar(ScalarKind.NULL), nullable=True)
    assert write_schema(Model(Scalar(ScalarKind.NULL), nullable=True)) == ("null", [])


def test_named_types_docs_and_aliases() -> None:
    """Names, namespaces, docs, aliases, symbols, defaults of enums, sizes and recursion come back as they were."""
    schema = {
        "type": "record",
        "name": "Node",
        "namespace": "com.acme",
        "doc": "A node",
        "aliases": ["Knot"],
        "fields": [
            {"name": "next", "type": ["null", "Node"], "doc": "the next one", "default": None, "aliases": ["nxt"]},
            {"name": "kind", "type": {"type": "enum", "name": "K", "symbols": ["A", "B"], "default": "B"}},
            {"name": "sum", "type": {"type": "fixed", "name": "Md5", "namespace": "", "size": 16}},
            {"name": "other", "type": "Md5"},
        ],
    }
    parsed = AVRO.parse(json.dumps(schema).encode(), {})
    model, losses = AVRO.to_model(parsed)
    assert losses == []
    assert model.types["com.acme.K"] == Enumeration("com.acme.K", (EnumSymbol("A"), EnumSymbol("B")), "B")
    assert model.types["Md5"] == Fixed("Md5", 16)
    text, losses = AVRO.from_model(model)
    assert losses == []
    assert AVRO.canonical(AVRO.parse(text, {}), TextForm.NORMALIZED) == AVRO.canonical(parsed, TextForm.NORMALIZED)


def test_names_without_namespace_are_found() -> None:
    """A type without namespace is named so that one of the same name in the namespace in force does not hide it."""
    types = {
        "a.R": RecordType(
            "a.R",
            (
                RecordField("x", TypeReference("a.T")),
                RecordField("y", TypeReference("T")),
                RecordField("z", TypeReference("T")),
            ),
        ),
        "a.T": Fixed("a.T", 1),
        "T": Fixed("T", 2),
    }
    text, _ = AVRO.from_model(Model(TypeReference("a.R"), types))
    assert AVRO.to_model(AVRO.parse(text, {}))[0].types == types


@pytest.mark.parametrize(
    ("schema", "raw", "plain"),
    [
        ("bytes", "\u00ff\u0000", "/wA="),
        ({"type": "fixed", "name": "F", "size": 2}, "ab", "YWI="),
        ({"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}, "\u0004\u00d2", "12.34"),
        ({"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}, "\u00ff", "-0.01"),
        ({"type": "int", "logicalType": "date"}, 1, "1970-01-02"),
        ({"type": "int", "logicalType": "date"}, -1_000_000, "-000768-02-04"),
        ({"type": "int", "logicalType": "time-millis"}, 1500, "00:00:01.5"),
        ({"type": "long", "logicalType": "timestamp-micros"}, 1, "1970-01-01T00:00:00.000001Z"),
        ({"type": "long", "logicalType": "local-timestamp-millis"}, -1, "1969-12-31T23:59:59.999"),
        ({"type": "array", "items": "int"}, [1, 2], [1, 2]),
        ({"type": "map", "values": "bytes"}, {"k": "a"}, {"k": "YQ=="}),
        ({"type": "enum", "name": "E", "symbols": ["A", "B"]}, "B", "B"),
        ({"type": "record", "name": "I", "fields": [{"name": "b", "type": "bytes"}]}, {"b": "a"}, {"b": "YQ=="}),
        (["bytes", "null"], "a", "YQ=="),
    ],
)
def test_defaults_there_and_back(schema: Any, raw: Any, plain: Any) -> None:
    """A default is in neutral JSON in the model, and in Avro's own notation in the schema."""
    field, losses = write_field(schema, raw)
    assert (field.default, losses) == (plain, [])
    model, _ = read_model({"type": "record", "name": "R", "fields": [{"name": "a", "type": schema, "default": raw}]})
    assert write_schema(model)[0]["fields"][0]["default"] == raw


def test_the_branch_of_the_default_leads() -> None:
    """The option that a default belongs to is written first, because old readers expect it there."""
    kind = Union((UnionOption(LONG), UnionOption(TEXT)))
    assert write_schema(make_model(RecordField("a", kind, default="x")))[0]["fields"][0]["type"] == ["string", "long"]
    field, losses = write_field(["long", "string"], "x")
    assert field.default == "x"
    assert summarize_losses(losses) == {("a", "UNION_ORDER", False)}


@pytest.mark.parametrize(
    ("field", "path"),
    [
        (RecordField("a", LONG, default="x"), "a"),
        (RecordField("a", LONG, default=None), "a"),
        (RecordField("a", LONG, default=2**63), "a"),
    ],
)
def test_defaults_that_do_not_fit(field: RecordField, path: str) -> None:
    """A default that does not fit its type is left out."""
    out, losses = write_schema(make_model(field))
    assert "default" not in out["fields"][0]
    assert summarize_losses(losses) == {(path, "DEFAULT", False)}


def test_what_avro_has_and_the_model_has_not() -> None:
    """Sort orders, unknown attributes and protocol errors, which the model does not have, are reported."""
    schema = {"type": "error", "name": "R", "owner": "me", "fields": [{"name": "a", "type": "int", "order": "ignore"}]}
    _, losses = read_model(schema)
    assert summarize_losses(losses) == {("", "ERROR", False), ("", "ATTRIBUTE", False), ("a", "ORDER", False)}


@pytest.mark.parametrize(
    ("kind", "schema", "loss"),
    [
        (Scalar(ScalarKind.INT8), "int", ("", "WIDTH", False)),
        (Scalar(ScalarKind.UINT16), "int", ("", "WIDTH", False)),
        (Scalar(ScalarKind.UINT32), "long", ("", "WIDTH", False)),
        (Scalar(ScalarKind.INTEGER), "long", ("", "RANGE", True)),
        (Scalar(ScalarKind.NUMBER), "double", ("", "PRECISION", True)),
        (Scalar(ScalarKind.ANY), "string", ("", "ANY", True)),
        (Decimal(None), "string", ("", "DECIMAL", False)),
        (Duration(TimeUnit.NANO), "long", ("", "DURATION", True)),
        (Time(TimeUnit.SECOND), {"type": "int", "logicalType": "time-millis"}, ("", "UNIT", False)),
        (Time(TimeUnit.NANO), {"type": "long", "logicalType": "time-micros"}, ("", "UNIT", True)),
        (Timestamp(TimeUnit.SECOND), {"type": "long", "logicalType": "timestamp-millis"}, ("", "UNIT", False)),
        (Map(LONG, Scalar(ScalarKind.INT32)), {"type": "map", "values": "long"}, ("", "MAP_KEY", True)),
        (
            Scalar(ScalarKind.UINT64),
            {"type": "bytes", "logicalType": "decimal", "precision": 20, "scale": 0},
            ("", "UNSIGNED", True),
        ),
    ],
)
def test_types_avro_does_not_have(kind: Type, schema: Any, loss: tuple[str, str, bool]) -> None:
    """The nearest Avro type is written, and the loss reports whether data are affected."""
    out, losses = write_schema(Model(kind))
    assert out == schema
    assert summarize_losses(losses) == {loss}


def test_names_avro_does_not_allow() -> None:
    """Changed names are unique and read back; a changed field or symbol is a loss of data, a changed type is not."""
    model = Model(
        TypeReference("1st thing"),
        {
            "1st thing": RecordType(
                "1st thing",
                (RecordField("a-b", LONG), RecordField("a_b", LONG), RecordField("e", TypeReference("int"))),
            ),
            "int": Enumeration("int", (EnumSymbol("ü"), EnumSymbol("_"), EnumSymbol("")), "ü"),
        },
    )
    out, losses = write_schema(model)
    assert out["name"] == "_1st_thing"
    assert [inner["name"] for inner in out["fields"]] == ["a_b_2", "a_b", "e"]
    assert out["fields"][2]["type"]["symbols"] == ["__2", "_", "__3"]
    assert summarize_losses(losses) == {
        ("", "NAME", False),
        ("a-b", "NAME", True),
        ("e", "NAME", False),
        ("e", "SYMBOL", True),
    }
    assert read_model(out) == (model, [])


def test_numbers_are_kept() -> None:
    """Numbers of fields and symbols are attributes, and come back."""
    model = Model(
        TypeReference("R"),
        {
            "R": RecordType("R", (RecordField("a", LONG, number=4), RecordField("e", TypeReference("E"), number=2))),
            "E": Enumeration("E", (EnumSymbol("A", 1), EnumSymbol("B", 5))),
        },
    )
    assert read_model(write_schema(model)[0]) == (model, [])


def test_members_that_may_be_missing() -> None:
    """A missing member is written as its default, else as null; if null has a meaning of its own, data are lost."""
    out, losses = write_schema(
        make_model(
            RecordField("a", LONG, required=False),
            RecordField("b", LONG, required=False, default=3),
            RecordField("c", LONG, nullable=True, required=False),
            RecordField("d", LONG, nullable=True, required=False, default=None),
            RecordField("e", LONG, required=False, default="no number"),
        )
    )
    assert out["fields"] == [
        {"name": "a", "type": ["null", "long"], "default": None},
        {"name": "b", "type": "long", "default": 3},
        {"name": "c", "type": ["null", "long"], "default": None},
        {"name": "d", "type": ["null", "long"], "default": None},
        {"name": "e", "type": ["null", "long"], "default": None},
    ]
    assert summarize_losses(losses) == {
        *((name, "OPTIONAL", name == "c") for name in "abcde"),
        ("e", "DEFAULT", False),
    }


def test_what_the_model_has_and_avro_has_not() -> None:
    """Open records, groups, constraints, docs of symbols and names of options are reported as losses."""
    model = Model(
        TypeReference("R"),
        {
            "R": RecordType(
                "R",
                (
                    RecordField("a", TEXT, required=False, constraints={"maxLength": 3}, aliases=("x.y",)),
                    RecordField("e", TypeReference("E")),
                    RecordField("u", Union((UnionOption(LONG, "left"), UnionOption(TEXT, "string")))),
                ),
                open=True,
                at_most_one={"g": ("a",)},
            ),
            "E": Enumeration("E", (EnumSymbol("A", doc="the first"),)),
        },
    )
    assert summarize_losses(write_schema(model)[1]) == {
        ("", "OPEN", True),
        ("", "ONEOF", False),
        ("a", "CONSTRAINT", False),
        ("a", "ALIAS", False),
        ("a", "OPTIONAL", False),
        ("e", "DOC", False),
        ("u", "NAME", False),
    }


def test_unions_avro_does_not_allow() -> None:
    """Options of one Avro type become one branch if they are equal; otherwise they are wrapped in records."""
    text = Union((UnionOption(TEXT), UnionOption(Scalar(ScalarKind.UUID))))
    out, losses = write_schema(Model(text))
    assert out == "string"
    assert summarize_losses(losses) == {("", "UNION", False)}
    lists = Union(
        (UnionOption(Array(LONG)), UnionOption(Array(TEXT)), UnionOption(Union((UnionOption(LONG), UnionOption(TEXT)))))
    )
    out, losses = write_schema(Model(lists))
    assert [branch if isinstance(branch, str) else branch["type"] for branch in out] == [
        *("array", "record", "long", "string")
    ]
    assert summarize_losses(losses) == {("", "UNION", True)}


def test_models_without_a_schema() -> None:
    """An enumeration without symbols, a type that is not declared and null inside a union have no schema."""
    for model in (
        Model(TypeReference("E"), {"E": Enumeration("E", ())}),
        Model(TypeReference("E")),
        Model(Union((UnionOption(Scalar(ScalarKind.NULL)), UnionOption(LONG)))),
    ):
        with pytest.raises(CannotConvert):
            AVRO.from_model(model)


def test_hostile_nesting() -> None:
    """Deep types, and deep chains of named types, are rejected with a clear message."""
    deep: Any = "long"
    for _ in range(150):
        deep = {"type": "array", "items": deep}
    with pytest.raises(TooLarge, match="deeper"):
        read_model(deep)
    kind: Type = LONG
    for _ in range(5000):
        kind = Array(kind)
    with pytest.raises(TooLarge, match="levels deep"):
        AVRO.from_model(Model(kind))
    chain = {f"R{i}": RecordType(f"R{i}", (RecordField("next", TypeReference(f"R{i + 1}")),)) for i in range(500)}
    with pytest.raises(TooLarge, match="levels deep"):
        AVRO.from_model(Model(TypeReference("R0"), {**chain, "R500": RecordType("R500", ())}))
