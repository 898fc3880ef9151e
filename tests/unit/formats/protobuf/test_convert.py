"""Protobuf from and to the neutral model, feature by feature."""

from __future__ import annotations

from typing import Any

import pytest

from stele.errors import CannotConvert, InvalidRequest, TooLarge
from stele.formats.capabilities import FromModel, ToModel
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
from stele.formats.protobuf import PROTOBUF, ProtobufFormat

FORMAT = ProtobufFormat()
STRING = Scalar(ScalarKind.STRING)
INT = Scalar(ScalarKind.INT32)


def read_model(body: str, head: str = 'syntax = "proto3"; package a;', message: str = "") -> tuple[Model, list[Loss]]:
    """The model of a file."""
    return FORMAT.to_model(PROTOBUF.parse(f"{head} {body}".encode(), {}), message)


def fields_of(model: Model, name: str = "") -> dict[str, RecordField]:
    """The fields of a record, the root by default."""
    assert isinstance(model.root, TypeReference)
    record = model.types[name or model.root.name]
    assert isinstance(record, RecordType)
    return {field.name: field for field in record.fields}


def write_file(*fields: RecordField, **types: Any) -> tuple[str, set[str]]:
    """Return the text of a record `a.R` with these fields, checked by the compiler, and the kinds of its losses."""
    record = RecordType("a.R", fields)
    text, losses = FORMAT.from_model(Model(TypeReference("a.R"), {"a.R": record, **types}))
    PROTOBUF.parse(text, {})
    return text.decode(), {loss.what for loss in losses}


def test_the_format_has_both_abilities() -> None:
    """The format satisfies the protocols for both directions of conversion."""
    assert isinstance(PROTOBUF, ToModel)
    assert isinstance(PROTOBUF, FromModel)


@pytest.mark.parametrize(
    ("word", "kind"),
    [
        *(
            ("int32", ScalarKind.INT32),
            ("int64", ScalarKind.INT64),
            ("uint32", ScalarKind.UINT32),
            ("uint64", ScalarKind.UINT64),
        ),
        *(
            ("sint32", ScalarKind.INT32),
            ("fixed64", ScalarKind.UINT64),
            ("sfixed64", ScalarKind.INT64),
            ("float", ScalarKind.FLOAT32),
        ),
        *(
            ("double", ScalarKind.FLOAT64),
            ("bool", ScalarKind.BOOLEAN),
            ("string", ScalarKind.STRING),
            ("bytes", ScalarKind.BYTES),
        ),
    ],
)
def test_every_scalar_has_its_kind(word: str, kind: ScalarKind) -> None:
    """Scalars keep their width; an unusual encoding on the wire is a loss."""
    model, losses = read_model(f"message M {{ {word} x = 7; }}")
    assert fields_of(model)["x"].type == Scalar(kind)
    assert fields_of(model)["x"].number == 7
    assert [loss.what for loss in losses] == ["ENCODING"] * (word in {"sint32", "fixed64", "sfixed64"})


def test_presence_decides_about_null_and_default() -> None:
    """Without presence a field reads as zero, with presence as null."""
    fields = fields_of(
        read_model("message M { int32 a = 1; optional int32 b = 2; M c = 3; repeated M d = 4; bytes e = 5; }")[0]
    )
    assert [(f.nullable, f.required, f.default) for f in fields.values()] == [
        (False, False, 0),
        (True, False, None),
        (True, False, None),
        (False, False, []),
        (False, False, ""),
    ]


def test_proto2_requires_and_has_defaults() -> None:
    """`required` fields are required, and a field with an explicit default is never null."""
    head = 'syntax = "proto2"; package a;'
    body = (
        'message M { required int32 a = 1; optional bytes b = 2 [default = "hi"]; optional float c = 3 [default = inf];'
    )
    fields = fields_of(read_model(body + " optional K k = 4 [default = B]; } enum K { A = 1; B = 2; }", head)[0])
    assert (fields["a"].required, fields["a"].nullable, fields["a"].default) == (True, False, ABSENT)
    assert [(f.nullable, f.default) for f in list(fields.values())[1:]] == [
        (False, "aGk="),
        (False, "Infinity"),
        (False, "B"),
    ]


def test_editions_say_presence_by_feature() -> None:
    """Editions have presence unless a feature takes it away."""
    head = 'edition = "2023"; package a;'
    fields = fields_of(
        read_model("message M { int32 a = 1; int32 b = 2 [features.field_presence = IMPLICIT]; }", head)[0]
    )
    assert (fields["a"].default, fields["b"].default) == (None, 0)


def test_groups_are_messages_of_another_encoding() -> None:
    """A group becomes a record, and the loss of its encoding is reported."""
    model, losses = read_model("message M { optional group G = 1 { optional int32 x = 2; } }", 'syntax = "proto2";')
    assert fields_of(model)["g"].type == TypeReference("M.G")
    assert [loss.what for loss in losses] == ["ENCODING"]


def test_oneofs_are_groups_and_optional_is_none() -> None:
    """Members of a oneof are nullable and in a group; the oneof that `optional` implies makes no group."""
    model, _ = read_model("message M { oneof pick { int32 a = 1; string b = 2; } optional int32 c = 3; }")
    record = model.types["a.M"]
    assert isinstance(record, RecordType)
    assert record.at_most_one == {"pick": ("a", "b")}
    assert all(field.nullable for field in record.fields)


def test_enums_keep_numbers_and_are_open() -> None:
    """Numbers and aliases of symbols stay; that unnamed numbers are values is a loss of data."""
    model, losses = read_model("enum K { option allow_alias = true; A = 0; B = 5; C = 5; } message M { K k = 1; }")
    enumeration = model.types["a.K"]
    assert isinstance(enumeration, Enumeration)
    assert [(symbol.name, symbol.number) for symbol in enumeration.symbols] == [("A", 0), ("B", 5), ("C", 5)]
    assert [(loss.what, loss.data) for loss in losses] == [("OPEN_ENUM", True)]


WELL_KNOWN: list[tuple[str, str, Type, set[str]]] = [
    ("google/protobuf/timestamp.proto", "google.protobuf.Timestamp", Timestamp(TimeUnit.NANO), set()),
    ("google/protobuf/duration.proto", "google.protobuf.Duration", Duration(TimeUnit.NANO), set()),
    ("google/protobuf/wrappers.proto", "google.protobuf.UInt64Value", Scalar(ScalarKind.UINT64), {"ENCODING"}),
    ("google/protobuf/struct.proto", "google.protobuf.Value", Scalar(ScalarKind.ANY), set()),
    ("google/protobuf/struct.proto", "google.protobuf.Struct", Scalar(ScalarKind.ANY), {"CONSTRAINT"}),
    ("google/protobuf/struct.proto", "google.protobuf.NullValue", Scalar(ScalarKind.NULL), set()),
    ("google/type/date.proto", "google.type.Date", Scalar(ScalarKind.DATE), {"PARTIAL"}),
    ("google/type/timeofday.proto", "google.type.TimeOfDay", Time(TimeUnit.NANO), {"PARTIAL"}),
    ("google/type/datetime.proto", "google.type.DateTime", Timestamp(TimeUnit.NANO, utc=False), {"ZONE"}),
    ("google/type/decimal.proto", "google.type.Decimal", Decimal(None), {"ENCODING"}),
    ("confluent/type/decimal.proto", "confluent.type.Decimal", Decimal(None), set()),
]


@pytest.mark.parametrize(("file", "name", "kind", "words"), WELL_KNOWN, ids=[name for _, name, _, _ in WELL_KNOWN])
def test_well_known_messages_are_values(file: str, name: str, kind: Type, words: set[str]) -> None:
    """A well-known message becomes the value that it stands for, and null when it is not set."""
    model, losses = read_model(f'import "{file}"; message M {{ {name} x = 1; }}')
    field = fields_of(model)["x"]
    assert (field.type, field.nullable, field.default) == (kind, True, None)
    assert {loss.what for loss in losses} == words


def test_what_is_no_data_is_a_loss() -> None:
    """Options, services, extensions, reserved numbers, JSON names and unused types are each reported with a path."""
    body = """option java_package = "x"; service S {} message Unused {}
      message M { reserved 9; N n = 1 [deprecated = true]; } message N { int32 x = 1 [json_name = "y"]; }"""
    assert [(loss.path, loss.what) for loss in read_model(body, message="a.M")[1]] == [
        ("", "RESERVED"),
        ("n", "OPTION"),
        ("n.x", "NAME"),
        ("", "OPTION"),
        ("", "SERVICE"),
        ("", "TYPE"),
    ]
    extensible = read_model("message M { extensions 100 to 200; }", 'syntax = "proto2";')[1]
    assert [(loss.what, loss.data) for loss in extensible] == [("EXTENSION", True)]


def test_a_message_is_chosen_by_name() -> None:
    """The first message is the default; a name that nothing has, and a file without messages, are refused."""
    body = "message M {} message N { message O { N n = 1; } }"
    assert read_model(body)[0].root == TypeReference("a.M")
    assert list(read_model(body, message="a.N.O")[0].types) == ["a.N.O", "a.N"]
    with pytest.raises(InvalidRequest):
        read_model(body, message="a.X")
    with pytest.raises(CannotConvert):
        read_model("enum K { A = 0; }")


def test_comments_are_documentation() -> None:
    """Comments of messages, fields, enums and their values are kept, both ways."""
    body = "\n// m\nmessage M {\n // k\n K k = 1; // not this\n}\n// e\nenum K {\n // zero\n A = 0;\n}"
    text, _ = FORMAT.from_model(read_model(body)[0])
    model = FORMAT.to_model(PROTOBUF.parse(text, {}))[0]
    assert (model.types["a.M"].doc, fields_of(model)["k"].doc, model.types["a.K"].doc) == ("m", "k", "e")
    enum = model.types["a.K"]
    assert isinstance(enum, Enumeration)
    assert enum.symbols[0].doc == "zero"


# --- from the model -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "text", "words"),
    [
        (Scalar(ScalarKind.INT8), "int32 x = 1;", {"RANGE"}),
        (Scalar(ScalarKind.UINT64), "uint64 x = 1;", set()),
        (Scalar(ScalarKind.INTEGER), "int64 x = 1;", {"RANGE"}),
        (Scalar(ScalarKind.NUMBER), "double x = 1;", {"PRECISION"}),
        (Scalar(ScalarKind.UUID), "string x = 1;", {"FORMAT"}),
        (Scalar(ScalarKind.ANY), "google.protobuf.Value x = 1;", {"PRECISION", "REQUIRED"}),
        (Scalar(ScalarKind.DATE), "google.type.Date x = 1;", {"REQUIRED"}),
        (Time(), "google.type.TimeOfDay x = 1;", {"REQUIRED"}),
        (Timestamp(), "google.protobuf.Timestamp x = 1;", {"REQUIRED"}),
        (Timestamp(utc=False), "google.type.DateTime x = 1;", {"REQUIRED"}),
        (Duration(), "google.protobuf.Duration x = 1;", {"REQUIRED"}),
        (Duration(calendar=True), "CalendarDuration x = 1;", {"DURATION", "REQUIRED"}),
        (Decimal(None), "confluent.type.Decimal x = 1;", {"REQUIRED"}),
        (Array(STRING), "repeated string x = 1;", set()),
        (Map(INT), "map<string, int32> x = 1;", set()),
        (Array(STRING, nullable=True), "repeated XItem x = 1;", set()),
        (Array(Array(INT)), "repeated XItemList x = 1;", set()),
        (Array(Map(INT)), "repeated XItemMap x = 1;", set()),
        (Map(Array(INT)), "map<string, XValueList> x = 1;", set()),
        (Map(INT, Scalar(ScalarKind.FLOAT64)), "repeated XPair x = 1;", {"MAP"}),
        (Union((UnionOption(INT), UnionOption(STRING))), "oneof kind {", {"REQUIRED"}),
    ],
    ids=str,
)
def test_every_type_has_a_place(kind: Type, text: str, words: set[str]) -> None:
    """Each type of the model becomes the documented type, with the documented losses."""
    source, lost = write_file(RecordField("x", kind))
    assert text in source
    assert lost == words


def test_decimals_keep_precision_and_scale_as_an_option() -> None:
    """A decimal is read back with its precision and scale."""
    text, _ = write_file(RecordField("x", Decimal(10, 2)))
    assert fields_of(FORMAT.to_model(PROTOBUF.parse(text.encode(), {}))[0])["x"].type == Decimal(10, 2)


def test_null_absence_and_defaults_choose_the_label() -> None:
    """Only what is always there or reads as zero goes without `optional`."""
    text, lost = write_file(
        RecordField("a", INT),
        RecordField("b", INT, nullable=True),
        RecordField("c", INT, required=False),
        RecordField("d", INT, required=False, default=0),
        RecordField("e", INT, required=False, default=5),
        RecordField("f", Scalar(ScalarKind.BOOLEAN), required=False, default=0),
    )
    lines = [line.strip() for line in text.splitlines() if " = " in line and ";" in line][1:]
    assert [line.startswith("optional") for line in lines] == [False, True, True, False, True, True]
    assert lost == {"DEFAULT"}


def test_lists_that_may_be_null_lose_data() -> None:
    """Null and empty lists cannot be distinguished, which loses data; absent lists cannot either, which does not."""
    assert write_file(RecordField("x", Array(INT), nullable=True))[1] == {"NULLABLE"}
    assert write_file(RecordField("x", Array(INT), required=False))[1] == {"PRESENCE"}


def test_numbers_are_kept_when_they_can_be() -> None:
    """Given numbers stay, others get the next free one, and none is in the range that implementations keep."""
    text, lost = write_file(
        *(RecordField(f"f{at}", INT, number=n) for at, n in enumerate((3, -1, 19_500, 3))), RecordField("free", INT)
    )
    assert [line.split(" = ")[1] for line in text.splitlines() if line.startswith("  int32")] == [
        *("3;", "1;", "2;", "4;", "5;")
    ]
    assert lost == {"NUMBER"}


def test_enums_get_a_zero_and_names_nobody_has() -> None:
    """A missing zero is added, symbols that clash carry the name of their enum."""
    first = Enumeration("a.Suit", (EnumSymbol("SPADES"), EnumSymbol("HEARTS")))
    second = Enumeration("a.Tool", (EnumSymbol("SPADES", 4), EnumSymbol("option", 0)))
    text, lost = write_file(
        RecordField("x", TypeReference("a.Suit")),
        RecordField("y", TypeReference("a.Tool")),
        **{"a.Suit": first, "a.Tool": second},
    )
    assert "SUIT_UNSPECIFIED = 0;\n  SPADES = 1;\n  HEARTS = 2;" in text
    assert "TOOL_option_ = 0;\n  TOOL_SPADES = 4;" in text
    assert lost == {"NAME"}


def test_odd_names_keep_themselves_in_json() -> None:
    """A name that no field may have is replaced, and stays as the JSON name."""
    text, lost = write_file(RecordField("first-name", STRING), RecordField("aB", STRING), RecordField("a_b", STRING))
    assert 'string first_name = 1 [json_name = "first-name"];' in text
    assert 'string a_b_2 = 3 [json_name = "a_b"];' in text
    assert lost == {"NAME"}


def test_types_of_other_packages_move_in() -> None:
    """A file has one package: a type of another one is declared beside the root, and reported."""
    other = {"b.c.X": RecordType("b.c.X", ()), "a.R.In": Fixed("a.R.In", 4), "a.R.Deep": RecordType("a.R.Deep", ())}
    text, lost = write_file(
        RecordField("x", TypeReference("b.c.X")),
        RecordField("y", TypeReference("a.R.In")),
        RecordField("z", TypeReference("a.R.Deep")),
        **other,
    )
    assert "message X {}" in text.splitlines()
    assert "  message Deep {}" in text.splitlines()
    assert lost >= {"NAMESPACE", "FIXED"}


def test_a_root_that_is_no_record_is_wrapped() -> None:
    """A root that is not a record becomes the field of a message."""
    text, losses = FORMAT.from_model(Model(Array(STRING), nullable=False))
    assert "message Value {\n  repeated string value = 1;\n}" in text.decode()
    assert [loss.what for loss in losses] == ["ROOT"]


def test_checks_names_and_openness_are_losses() -> None:
    """Features that proto3 does not have are reported."""
    record = RecordType(
        "R", (RecordField("x", INT, aliases=("y",), constraints={"minimum": 1}),), aliases=("Q",), open=True
    )
    losses = FORMAT.from_model(Model(TypeReference("R"), {"R": record}, nullable=True))[1]
    assert {(loss.what, loss.data) for loss in losses} == {
        *(("ALIAS", False), ("CONSTRAINT", False), ("OPEN", True), ("NULLABLE", True))
    }


# --- hostile input --------------------------------------------------------------------------------------------------


def test_types_nested_without_end_are_refused() -> None:
    """Ten thousand lists inside each other are rejected, without recursion."""
    kind: Type = INT
    for _ in range(10_000):
        kind = Array(kind)
    with pytest.raises(TooLarge, match="nested"):
        FORMAT.from_model(Model(TypeReference("R"), {"R": RecordType("R", (RecordField("x", kind),))}))
    with pytest.raises(TooLarge, match="nested"):
        FORMAT.from_model(Model(kind))


def test_long_chains_and_wide_messages_are_no_problem() -> None:
    """Two thousand fields, and two thousand messages in a chain that ends where it began, compile."""
    wide = {"R": RecordType("R", tuple(RecordField(f"f {n}", INT) for n in range(2_000)))}
    chain = {
        f"C{n}": RecordType(f"C{n}", (RecordField("x", TypeReference(f"C{(n + 1) % 2_000}"), nullable=True),))
        for n in range(2_000)
    }
    for model in (Model(TypeReference("R"), wide), Model(TypeReference("C0"), chain)):
        schema = PROTOBUF.parse(FORMAT.from_model(model)[0], {})
        again, _ = FORMAT.to_model(schema)
        assert len(again.types) == len(model.types)


def test_names_inside_names_do_not_nest_without_end() -> None:
    """A type whose name has hundreds of parts, each a type, is declared flat beyond the depth compilers take."""
    names = [".".join(["A"] * n) for n in range(1, 200)]
    types = {
        name: RecordType(name, (RecordField("x", TypeReference(f"{name}.A"), nullable=True),)) for name in names[:-1]
    }
    types[names[-1]] = RecordType(names[-1], ())
    PROTOBUF.parse(FORMAT.from_model(Model(TypeReference("A"), types))[0], {})


@pytest.mark.parametrize(
    "model",
    [
        Model(TypeReference("X")),
        Model(TypeReference("R"), {"R": RecordType("R", (RecordField("x", INT), RecordField("x", INT)))}),
        Model(TypeReference("a" * 600), {"a" * 600: RecordType("a" * 600, ())}),
    ],
)
def test_unsound_models_are_refused(model: Model) -> None:
    """Missing types, fields with equal names, and very long names raise an error with a clear message."""
    with pytest.raises(CannotConvert):
        FORMAT.from_model(model)


@pytest.mark.parametrize(("records", "fields"), [(1, 3_001), (20, 2_600)])
def test_too_many_fields_are_refused(records: int, fields: int) -> None:
    """One message has a limit of fields, and all messages together have another."""
    types = {
        f"R{at}": RecordType(
            f"R{at}",
            tuple(RecordField(f"f{n}", TypeReference(f"R{(at + 1) % records}"), nullable=True) for n in range(fields)),
        )
        for at in range(records)
    }
    with pytest.raises(TooLarge):
        FORMAT.from_model(Model(TypeReference("R0"), types))


def test_the_widest_message_compiles() -> None:
    """The greatest number of fields in one message compiles, each in its own oneof, which takes the most memory."""
    fields = tuple(RecordField(f"f{n}", STRING, nullable=True) for n in range(3_000))
    groups = {f"g{n}": (f"f{n}",) for n in range(3_000)}
    text, _ = FORMAT.from_model(Model(TypeReference("R"), {"R": RecordType("R", fields, at_most_one=groups)}))
    assert len(PROTOBUF.parse(text, {}).get_message("R").fields) == 3_000
