"""Conversion of Thrift to the neutral model, feature by feature."""

from __future__ import annotations

import pytest

from stele.errors import CannotConvert, InvalidRequest, MalformedSchema, TooLarge
from stele.formats.capabilities import FromModel, ToModel
from stele.formats.conversion.model import (
    ABSENT,
    Array,
    Enumeration,
    Loss,
    Map,
    Model,
    RecordField,
    RecordType,
    Scalar,
    ScalarKind,
    TypeReference,
)
from stele.formats.thrift import THRIFT, ThriftFormat


def read_model(text: str, struct: str = "", **references: str) -> tuple[Model, list[Loss]]:
    """The model of a document; references are by include path, with `_` for the dot."""
    documents = {name.replace("_", "."): body.encode() for name, body in references.items()}
    return ThriftFormat().to_model(THRIFT.parse(text.encode(), documents), struct)


def fields_of(model: Model) -> dict[str, RecordField]:
    """The fields of the root."""
    assert isinstance(model.root, TypeReference)
    record = model.types[model.root.name]
    assert isinstance(record, RecordType)
    return {field.name: field for field in record.fields}


def test_thrift_is_read_and_not_written() -> None:
    """Thrift can be converted to the model, but not from it."""
    assert isinstance(THRIFT, ToModel)
    assert not isinstance(THRIFT, FromModel)


@pytest.mark.parametrize(
    ("word", "kind"),
    [
        *(
            ("bool", ScalarKind.BOOLEAN),
            ("byte", ScalarKind.INT8),
            ("i8", ScalarKind.INT8),
            ("i16", ScalarKind.INT16),
            ("i32", ScalarKind.INT32),
        ),
        *(
            ("i64", ScalarKind.INT64),
            ("double", ScalarKind.FLOAT64),
            ("string", ScalarKind.STRING),
            ("binary", ScalarKind.BYTES),
        ),
        *(("uuid", ScalarKind.UUID), ("slist", ScalarKind.STRING)),
    ],
)
def test_every_base_type_has_its_kind(word: str, kind: ScalarKind) -> None:
    """Built-in types keep their width, fields their number."""
    model, losses = read_model(f"struct S {{ 4: required {word} x }}")
    assert fields_of(model) == {"x": RecordField("x", Scalar(kind), number=4)}
    assert losses == []


def test_requiredness_and_defaults_decide_about_null() -> None:
    """Only `required` fields are required; fields with a default are never null; constants and enums are resolved."""
    head = "const i32 N = 5 enum K { A = 1, B = 2 }"
    body = (
        '1: required i32 a 2: optional i32 b 3: i32 c 4: i32 d = N 5: K e = K.B 6: binary f = "hi" 7: list<K> g = [1]'
    )
    fields = fields_of(read_model(f"{head} struct S {{ {body} }}")[0])
    assert [(f.required, f.nullable, f.default) for f in fields.values()] == [
        (True, False, ABSENT),
        (False, True, None),
        (False, True, None),
        (False, False, 5),
        (False, False, "B"),
        (False, False, "aGk="),
        (False, False, ["A"]),
    ]


def test_containers_have_their_counterparts() -> None:
    """Sets become unique lists; maps with keys that are not scalars become lists of entries."""
    text = """struct K { 1: i32 x } enum E { A }
      struct S { 1: set<i32> a 2: map<i64, K> b 3: map<K, i32> c 4: map<E, i32> d }"""
    model, losses = read_model(text)
    fields = fields_of(model)
    assert (fields["a"].type, fields["a"].constraints) == (Array(Scalar(ScalarKind.INT32)), {"uniqueItems": True})
    assert fields["b"].type == Map(TypeReference("K"), Scalar(ScalarKind.INT64))
    assert fields["c"].type == Array(TypeReference("S.CEntry"))
    assert fields["d"].type == Map(Scalar(ScalarKind.INT32))
    assert {"MAP", "ENUM"} <= {loss.what for loss in losses}
    assert "CONSTRAINT" in {loss.what for loss in read_model("struct S { 1: list<set<i32>> a }")[1]}


def test_unions_are_groups() -> None:
    """The members of a union become a group of which a datum has at most one."""
    model, _ = read_model("union U { 1: i32 a 2: string b }")
    record = model.types["U"]
    assert isinstance(record, RecordType)
    assert record.at_most_one == {"value": ("a", "b")}
    assert all(field.nullable and field.default is None for field in record.fields)


def test_names_have_the_namespace_and_circles_are_fine() -> None:
    """Types are named by the namespace of their document; a struct inside itself becomes a reference."""
    shared = "namespace * shared.types enum Color { RED = 1 } struct S {}"
    text = 'include "b.thrift" namespace java x.y namespace py z struct S { 1: b.Color c 2: S s 3: b.S other }'
    model, losses = read_model(text, b_thrift=shared)
    assert list(model.types) == ["shared.types.Color", "x.y.S", "shared.types.S"]
    assert fields_of(model)["s"].type == TypeReference("x.y.S")
    color = model.types["shared.types.Color"]
    assert isinstance(color, Enumeration)
    assert color.symbols[0].number == 1
    assert [(loss.what, loss.data) for loss in losses] == [("OPEN_ENUM", True), ("NAMESPACE", False)]
    assert list(read_model('include "b.thrift" struct S { 1: b.S s }', b_thrift="struct S {}")[0].types) == ["S", "b.S"]


def test_what_is_no_data_is_a_loss() -> None:
    """Services, constants, annotations, typedefs, senums and unused types are reported."""
    text = """typedef i32 Id (x = "y") senum Old { "a" } const i32 N = 1 struct Unused {}
      struct S { 1: Id id (deprecated) 2: Old old } exception E {} service V {}"""
    assert [loss.what for loss in read_model(text, "S")[1]] == [
        *("ANNOTATION", "TYPEDEF", "ANNOTATION", "ENUM", "SERVICE", "CONSTANT", "TYPE", "TYPE")
    ]
    assert [loss.what for loss in read_model("exception E {}")[1]] == ["EXCEPTION"]


def test_documentation_is_kept() -> None:
    """Comments of structs, fields and enum values are kept."""
    model, _ = read_model("enum K { /** v */ A } /** s */ struct S { /** f */ 1: K k }")
    color = model.types["K"]
    assert isinstance(color, Enumeration)
    assert (model.types["S"].doc, fields_of(model)["k"].doc, color.symbols[0].doc) == ("s", "f", "v")


def test_a_struct_is_chosen_by_name() -> None:
    """The default is the same struct as in the codec; unknown names, and documents without structs, are rejected."""
    assert read_model("struct A {} struct B {}")[0].root == TypeReference("B")
    assert read_model("struct A {} struct B {}", "A")[0].root == TypeReference("A")
    with pytest.raises(InvalidRequest):
        read_model("struct A {}", "X")
    with pytest.raises(CannotConvert):
        read_model("enum K { A }")


def test_deep_types_and_long_chains_end() -> None:
    """Deep nesting is rejected by the parser or the conversion; a chain of typedefs or structs is accepted."""
    with pytest.raises((TooLarge, MalformedSchema)):
        read_model(f"struct S {{ 1: {'list<' * 5_000}i32{'>' * 5_000} x }}")
    structs = " ".join(f"struct S{n} {{ 1: optional S{(n + 1) % 3_000} x }}" for n in range(3_000))
    assert len(read_model(structs)[0].types) == 3_000
    lists = " ".join(f"typedef list<T{n}> T{n + 1}" for n in range(200))
    with pytest.raises((TooLarge, MalformedSchema)):
        read_model(f"typedef i32 T0 {lists} struct S {{ 1: T200 x }}")
