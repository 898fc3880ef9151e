"""Both engines against fastavro, against each other on damaged data, and against the rules of schema resolution."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from decimal import Decimal
from random import Random
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.support.examples import scale_examples
from tests.unit.spark.avro_cases import Cases, frame_record, read_record, schema

from stele.errors import EncodeError, Invalid, RegistryUnreachable
from stele.spark.engines import get_engine
from stele.spark.engines.base import Decoded, Engine
from stele.spark.engines.error_codes import MESSAGES, ErrorCode, describe_errors

NAMES = ("vm", "python")


@pytest.fixture(params=NAMES)
def engine(request: pytest.FixtureRequest) -> Engine:
    """Each engine in turn."""
    return get_engine(request.param)


def decode(
    engine: Engine, reader: Any, frames: list[bytes | None], writers: Mapping[int, Any] | None = None
) -> Decoded:
    """Decode frames; by default the only writer, 1, has the reader's schema."""
    known = {number: schema(document) for number, document in (writers or {1: reader}).items()}
    decoded = engine.decoder(schema(reader), known.get).decode(pa.array(frames, pa.binary()))
    decoded.values.validate(full=True)
    return decoded


def record(*fields: Any, name: str = "R") -> dict[str, Any]:
    """Return a record schema from (name, type[, default]) tuples."""
    keys = ("name", "type", "default")
    return {"type": "record", "name": name, "fields": [dict(zip(keys, field, strict=False)) for field in fields]}


# --- valid data -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(40))
def test_reads_what_fastavro_writes(engine: Engine, seed: int) -> None:
    """Random records of random schemas with all types are decoded to what was written, in row order, with nulls."""
    cases = Cases(seed)
    document, make = cases.record()
    pairs = [make(cases.random) for _ in range(30)]
    frames: list[bytes | None] = [frame_record(document, datum) for datum, _ in pairs]
    frames.insert(7, None)
    decoded = decode(engine, document, frames)
    expected = pa.array([*[p[1] for p in pairs[:7]], None, *[p[1] for p in pairs[7:]]], decoded.values.type)
    assert describe_errors(decoded).null_count == len(frames)
    assert decoded.values.to_pylist() == expected.to_pylist()
    assert decoded.schema_ids.to_pylist() == [1] * 7 + [None] + [1] * 23


@pytest.mark.parametrize("seed", range(40))
def test_writes_what_fastavro_writes(engine: Engine, seed: int) -> None:
    """Decoded values are encoded to what fastavro and the decoder read as the same, also from a slice of a column."""
    cases = Cases(seed)
    document, make = cases.record()
    frames: list[bytes | None] = [frame_record(document, make(cases.random)[0], 77) for _ in range(30)]
    frames.insert(3, None)
    decoded = decode(engine, document, frames, {77: document})
    assert describe_errors(decoded).null_count == len(frames)
    encoder = engine.encoder(schema(document), 77)
    again = encoder.encode(decoded.values).to_pylist()
    assert [read_record(document, frame) for frame in again] == [read_record(document, frame) for frame in frames]
    assert decode(engine, document, again, {77: document}).values.equals(decoded.values)
    assert encoder.encode(decoded.values.slice(5, 9)).to_pylist() == again[5:14]


def test_both_engines_show_spark_the_same() -> None:
    """With types chosen for Spark both engines agree, and every type is one that Spark, Parquet and Iceberg accept."""
    for seed in range(30):
        cases = Cases(seed)
        document, make = cases.record()
        frames = pa.array([frame_record(document, make(cases.random)[0]) for _ in range(20)], pa.binary())
        one, other = (
            get_engine(name).decoder(schema(document), {1: schema(document)}.get, for_spark=True).decode(frames)
            for name in NAMES
        )
        assert one.values.to_pylist() == other.values.to_pylist()
        assert not {"time32", "time64", "fixed_size", "ms,", "null"} & set(
            str(one.values.type).replace("[", " ").split()
        )


def test_a_schema_need_not_be_a_record(engine: Engine) -> None:
    """A bare string or array schema decodes to a plain column."""
    assert decode(engine, "string", [frame_record("string", "é"), None]).values.to_pylist() == ["é", None]
    longs = {"type": "array", "items": "long"}
    assert decode(engine, longs, [frame_record(longs, [1, 2]), frame_record(longs, [])]).values.to_pylist() == [
        [1, 2],
        [],
    ]


def test_blocks_with_a_negative_count_carry_their_size(engine: Engine) -> None:
    """Arrays and maps that are written in several blocks with sizes are read like any other."""
    body = bytes([3, 4, 2, 4, 2, 6, 0])  # -2 items in 2 bytes: 1, 2; then 1 item: 3; end
    document = record(("a", {"type": "array", "items": "int"}))
    assert decode(engine, document, [b"\0\0\0\0\1" + body]).values.to_pylist() == [{"a": [1, 2, 3]}]


def test_slices_and_large_binary_columns(engine: Engine) -> None:
    """A sliced, a large and a view column decode like a plain one."""
    frames = [frame_record("long", number) for number in range(9)]
    decoder = engine.decoder(schema("long"), {1: schema("long")}.get)
    assert decoder.decode(pa.array(frames, pa.binary()).slice(2, 4)).values.to_pylist() == [2, 3, 4, 5]
    assert decoder.decode(pa.array(frames, pa.large_binary()).slice(1)).values.to_pylist() == list(range(1, 9))
    assert decoder.decode(pa.array([], pa.binary())).values.to_pylist() == []
    assert decoder.decode(pa.array([None, None], pa.binary())).values.to_pylist() == [None, None]


# --- resolution -----------------------------------------------------------------------------------------------------

UUID_FIXED = {"type": "fixed", "name": "U", "size": 16, "logicalType": "uuid"}
PROMOTIONS = [
    ("int", "long", 7, 7),
    ("int", "float", 7, 7.0),
    ("int", "double", -7, -7.0),
    ("long", "float", 2**40, float(2**40)),
    ("long", "double", 2**53, float(2**53)),
    ("float", "double", 0.5, 0.5),
    ("string", "bytes", "é", "é".encode()),
    ("bytes", "string", "é".encode(), "é"),
    ("int", ["null", "long"], 3, 3),
    (["null", "int"], "long", 3, 3),
    (["int", "long"], "long", 3, 3),
    ("int", ["long", "int"], 3, 3),
    (["int", "long", "null"], ["null", "long", "int"], 2**40, 2**40),
    ("string", ["null", "int", "string"], "x", {"member0": None, "member1": "x"}),
    ("null", ["null", "int", "string"], None, None),
    (["null", "string"], ["null", "int", "string"], "x", {"member0": None, "member1": "x"}),
]


@pytest.mark.parametrize(("writer", "reader", "datum", "expected"), PROMOTIONS)
def test_promotions(engine: Engine, writer: Any, reader: Any, datum: Any, expected: Any) -> None:
    """Every promotion of the specification works, with unions on either side, alone and in an array."""
    frames: list[bytes | None] = [frame_record(record(("f", writer)), {"f": datum})]
    assert decode(engine, record(("f", reader)), frames, {1: record(("f", writer))}).values.to_pylist() == [
        {"f": expected}
    ]
    writers, readers = ({"type": "array", "items": each} for each in (writer, reader))
    decoded = decode(engine, readers, [frame_record(writers, [datum, datum])], {1: writers})
    assert decoded.values.to_pylist() == [[expected, expected]]


def test_missing_fields_take_their_defaults(engine: Engine) -> None:
    """Defaults of every type, including nested ones, replace fields that the writer lacks. Extra fields are skipped."""
    inner = record(("x", "int"), ("y", "string", "why"), name="Inner")
    reader = record(
        ("kept", "int"),
        ("text", "string", "a€"),
        ("raw", "bytes", "\u00ff\u0001"),
        ("nothing", ["null", "int"], None),
        ("some", ["int", "null"], 5),
        ("inner", inner, {"x": 1}),
        ("list", {"type": "array", "items": "Inner"}, [{"x": 2}, {"x": 3, "y": "z"}]),
        ("map", {"type": "map", "values": "double"}, {"k": 1.5}),
        ("enum", {"type": "enum", "name": "E", "symbols": ["A", "B"]}, "B"),
        ("money", {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2}, "\u0001\u0000"),
    )
    extra = record(("a", {"type": "map", "values": ["null", {"type": "array", "items": "string"}]}), name="X")
    writer = record(("gone", extra), ("kept", "int"), ("also", {"type": "fixed", "name": "F", "size": 3}))
    datum = {"gone": {"a": {"k": ["x", "y"], "l": None}}, "kept": 9, "also": b"abc"}
    decoded = decode(engine, reader, [frame_record(writer, datum), None, b""], {1: writer})
    assert decoded.values.to_pylist()[0] == {
        "kept": 9,
        "text": "a€",
        "raw": b"\xff\x01",
        "nothing": None,
        "some": 5,
        "inner": {"x": 1, "y": "why"},
        "list": [{"x": 2, "y": "why"}, {"x": 3, "y": "z"}],
        "map": [("k", 1.5)],
        "enum": "B",
        "money": Decimal("2.56"),
    }
    assert decoded.values.to_pylist()[1:] == [None, None]


def test_defaults_that_cannot_be_used_are_reasons(engine: Engine) -> None:
    """A default too large for its type, or for the limits of a record, is an error only of the records that need it."""
    nulls = record(("kept", "int"), ("a", {"type": "array", "items": "null"}, [None] * 5000))
    large = record(("kept", "int"), ("f", "float", 1e300))
    writer = record(("kept", "int"))
    for reader in (nulls, large):
        decoded = decode(engine, reader, [frame_record(writer, {"kept": 1}), None], {1: writer})
        assert decoded.values.to_pylist() == [None, None]
        assert [reason is None for reason in describe_errors(decoded).to_pylist()] == [False, True]


def test_aliases_and_order(engine: Engine) -> None:
    """Fields are found by name or by the reader's alias, in any order of the writer."""
    reader = record(("a", "int"), ("b", "string"))
    reader["fields"][1]["aliases"] = ["old"]
    writer = record(("old", "string"), ("a", "int"))
    decoded = decode(engine, reader, [frame_record(writer, {"old": "x", "a": 1})], {1: writer})
    assert decoded.values.to_pylist() == [{"a": 1, "b": "x"}]


def test_enum_symbols_resolve_by_name(engine: Engine) -> None:
    """A symbol that the reader does not know becomes its default, or the record's error if it has none."""
    writer = {"type": "enum", "name": "E", "symbols": ["NEW", "A", "B"]}
    reader = {"type": "enum", "name": "E", "symbols": ["B", "A", "OTHER"]}
    frames: list[bytes | None] = [frame_record(writer, symbol) for symbol in writer["symbols"]]
    decoded = decode(engine, reader | {"default": "OTHER"}, frames, {1: writer})
    assert decoded.values.to_pylist() == ["OTHER", "A", "B"]
    decoded = decode(engine, reader, frames, {1: writer})
    assert decoded.values.to_pylist() == [None, "A", "B"]
    assert describe_errors(decoded)[0].as_py() == "the reader's enum has neither the symbol nor a default"


def test_a_branch_without_a_place_is_an_error_of_its_records_only(engine: Engine) -> None:
    """Records that use a branch of the writer's union that the reader lacks are bad; the others are decoded."""
    decoded = decode(
        engine,
        "int",
        [frame_record(["int", "string"], 5), frame_record(["int", "string"], "x")],
        {1: ["int", "string"]},
    )
    assert decoded.values.to_pylist() == [5, None]
    assert describe_errors(decoded)[1].as_py() == "the reader cannot read this branch of the writer's union"


@pytest.mark.parametrize("reader", [record(("v", "int")), record(("w", "int", 3))])
def test_no_record_has_a_value_of_an_empty_union(engine: Engine, reader: Any) -> None:
    """All records of a writer with an empty union are bad, whether it is read or skipped."""
    frames: list[bytes | None] = [struct.pack(">bI", 0, 1) + body for body in (b"", b"\0", b"\2\0")]
    decoded = decode(engine, reader, frames, {1: record(("v", []))})
    assert decoded.values.to_pylist() == [None, None, None]
    assert decoded.codes.to_pylist() == [ErrorCode.TRUNCATED, ErrorCode.BAD_BRANCH, ErrorCode.BAD_BRANCH]


def test_units_of_time_convert(engine: Engine) -> None:
    """Milliseconds of the writer become microseconds of the reader; an overflow is that record's error."""
    millis, micros = ({"type": "long", "logicalType": f"timestamp-{unit}"} for unit in ("millis", "micros"))
    frames: list[bytes | None] = [frame_record("long", 1500), frame_record("long", 2**62)]
    decoded = decode(engine, micros, frames, {1: millis})
    assert decoded.values.cast(pa.int64()).to_pylist() == [1_500_000, None]
    assert describe_errors(decoded)[1].as_py() == "a time is out of range for its type or for the unit of its column"
    decoded = decode(engine, millis, [frame_record("long", -1)], {1: micros})
    assert decoded.values.cast(pa.int64()).to_pylist() == [-1]


def test_several_writers_in_one_column_keep_row_order(engine: Engine) -> None:
    """Records of three schemas, a tombstone and bad frames are decoded in their rows."""
    versions = {
        1: record(("a", "int")),
        2: record(("a", "long"), ("b", "string")),
        3: record(("b", "string"), ("c", ["null", "int"], None), ("a", "long")),
    }
    reader = record(("a", "long"), ("b", "string", "none"), ("c", ["null", "int"], None))
    frames = [
        frame_record(versions[3], {"a": 1, "b": "x", "c": 5}, 3),
        frame_record(versions[1], {"a": 2}, 1),
        None,
        frame_record(versions[2], {"a": 3, "b": "y"}, 2),
        b"\1\0\0\0\1\0",
        struct.pack(">bI", 0, 9),
        struct.pack(">bI", 0, 2**31 + 5),
        frame_record(versions[1], {"a": 4}, 1),
    ]
    decoded = decode(engine, reader, frames, versions)
    assert [row and (row["a"], row["b"], row["c"]) for row in decoded.values.to_pylist()] == [
        (1, "x", 5),
        (2, "none", None),
        None,
        (3, "y", None),
        None,
        None,
        None,
        (4, "none", None),
    ]
    assert decoded.schema_ids.to_pylist()[:6] == [3, 1, None, 2, None, 9]
    reasons = describe_errors(decoded).to_pylist()
    assert [bool(reason) for reason in reasons] == [False] * 4 + [True] * 3 + [False]
    assert reasons[4].startswith("no frame")
    assert reasons[5] == "unknown schema id 9"


def test_an_unknown_id_is_asked_for_again_and_an_outage_is_raised(engine: Engine) -> None:
    """An id registered after the first batch decodes in the second; a registry that fails stops the batch."""
    known: dict[int, Any] = {}
    decoder = engine.decoder(schema("long"), known.get)
    frames = pa.array([frame_record("long", 5)], pa.binary())
    assert describe_errors(decoder.decode(frames)).to_pylist() == ["unknown schema id 1"]
    known[1] = schema("long")
    assert decoder.decode(frames).values.to_pylist() == [5]

    def unreachable(number: int) -> None:
        raise RegistryUnreachable("nobody answers")

    with pytest.raises(RegistryUnreachable):
        engine.decoder(schema("long"), unreachable).decode(frames)


def test_an_unreadable_writer_spoils_only_its_own_records(engine: Engine) -> None:
    """A writer's schema that cannot be resolved is an error only of its own records."""
    writers = {1: record(("v", "int")), 2: record(("v", "string")), 4: record(("w", "int"))}
    frames: list[bytes | None] = [frame_record(writers[1], {"v": 1}, 1), struct.pack(">bI", 0, 2) + b"\0"]
    frames += [struct.pack(">bI", 0, 4) + b"\2"]
    decoded = decode(engine, record(("v", "int")), frames, writers)
    assert decoded.values.to_pylist() == [{"v": 1}, None, None]
    assert describe_errors(decoded).to_pylist() == [
        None,
        "schema id 2 cannot be read: v: string cannot be read as int",
        "schema id 4 cannot be read: the writer has no field 'v', and the reader no default for it",
    ]


# --- refusals -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "reader",
    [
        pytest.param(record(("next", ["null", "R"])), id="recursive"),
        pytest.param({"type": "bytes", "logicalType": "decimal", "precision": 77}, id="77 digits"),
        pytest.param(
            [record(*((f"f{i}", f"T{n - 1}" if n else "int") for i in range(4)), name=f"T{n}") for n in range(9)],
            id="exponential",
        ),
        pytest.param([], id="empty union"),
        pytest.param(record(("f", {"type": "array", "items": []})), id="empty union inside"),
    ],
)
def test_schemas_without_a_table_shape_are_refused_at_once(engine: Engine, reader: Any) -> None:
    """Recursive types, 77 digits, exponential growth and empty unions are refused before any data, without delay."""
    with pytest.raises(Invalid):
        engine.decoder(schema(reader), lambda number: None)


DECIMAL_2 = {"type": "bytes", "logicalType": "decimal", "precision": 2}
DECIMAL_38 = DECIMAL_2 | {"precision": 38}
BAD = [
    ("int", "8080808010", ErrorCode.INT_RANGE),
    ("long", "ffffffffffffffffff02", ErrorCode.BAD_VARINT),
    ("long", "80", ErrorCode.TRUNCATED),
    ("boolean", "02", ErrorCode.BAD_BOOLEAN),
    ("float", "000000", ErrorCode.TRUNCATED),
    ("double", "00000000000000", ErrorCode.TRUNCATED),
    ("string", "01", ErrorCode.BAD_LENGTH),
    ("string", "0461", ErrorCode.BAD_LENGTH),
    ("string", "fcffffff0f61", ErrorCode.BAD_LENGTH),
    ("string", "02ff", ErrorCode.BAD_UTF8),
    ("string", "04c080", ErrorCode.BAD_UTF8),
    ("string", "06eda080", ErrorCode.BAD_UTF8),
    ("string", "08f4908080", ErrorCode.BAD_UTF8),
    ("string", "02c3", ErrorCode.BAD_UTF8),
    (["null", "int"], "04", ErrorCode.BAD_BRANCH),
    (["null", "int"], "01", ErrorCode.BAD_BRANCH),
    ({"type": "enum", "name": "E", "symbols": ["A"]}, "02", ErrorCode.BAD_SYMBOL),
    ({"type": "fixed", "name": "F", "size": 2}, "00", ErrorCode.TRUNCATED),
    ({"type": "array", "items": "int"}, "feffffff0f00", ErrorCode.BAD_BLOCK),
    ({"type": "array", "items": "int"}, "ffffffffffffffffff0100", ErrorCode.BAD_BLOCK),
    ({"type": "array", "items": "int"}, "017e0200", ErrorCode.BAD_BLOCK),
    ({"type": "array", "items": "null"}, "feffffffff7f00", ErrorCode.TOO_MANY_ITEMS),
    ({"type": "array", "items": {"type": "array", "items": "null"}}, "80808001" + "8010" * 9, ErrorCode.BAD_BLOCK),
    (DECIMAL_2, "0264", ErrorCode.DECIMAL_RANGE),
    (DECIMAL_2, "00", ErrorCode.EMPTY_DECIMAL),
    (DECIMAL_38, "22" + "7f" + "ff" * 16, ErrorCode.DECIMAL_RANGE),
    (DECIMAL_38, "20" + "80" + "00" * 15, ErrorCode.DECIMAL_RANGE),
    ({"type": "int", "logicalType": "time-millis"}, "01", ErrorCode.OUT_OF_RANGE),
    ({"type": "long", "logicalType": "time-micros"}, "8080bbdd8305", ErrorCode.OUT_OF_RANGE),
    ("null", "00", ErrorCode.TRAILING),
    ("long", "0000", ErrorCode.TRAILING),
]


@pytest.mark.parametrize(("document", "body", "reason"), BAD)
def test_damaged_records_are_errors_never_crashes(engine: Engine, document: Any, body: str, reason: ErrorCode) -> None:
    """Each kind of damage has its own reason, at the byte where the value begins. Other records are not affected."""
    good = record(("pad", "int"), ("v", document))
    frame = b"\0\0\0\0\1" + b"\2" + bytes.fromhex(body)
    decoded = decode(engine, good, [None, frame, None])
    assert describe_errors(decoded).to_pylist() == [None, MESSAGES[reason], None]
    place = len(frame) - 6 if reason is ErrorCode.TRAILING else 1
    assert decoded.codes.to_pylist() == [0, reason, 0]
    assert decoded.offsets.to_pylist() == [-1, place, -1]


def test_decimals_may_be_padded_with_their_sign(engine: Engine) -> None:
    """Decimals with more bytes than needed are read if the bytes repeat the sign, as Java's BigInteger reads them."""
    document = record(("d", DECIMAL_2))
    bodies = [bytes([40]) + b"\xff" * 20, bytes([40]) + b"\0" * 19 + b"\x05", b"\2\x9d", bytes([32]) + b"\xff" * 16]
    decoded = decode(engine, document, [b"\0\0\0\0\1" + body for body in bodies])
    assert [row["d"] for row in decoded.values.to_pylist()] == [Decimal(-1), Decimal(5), Decimal(-99), Decimal(-1)]


def mutate_frame(random: Random, frame: bytes) -> bytes:
    """Return the frame with a few bytes changed, cut, repeated or added; the header stays."""
    body = bytearray(frame[5:])
    for _ in range(random.randrange(1, 4)):
        place = random.randrange(len(body) + 1)
        match random.randrange(5):
            case 0:
                body[place : place + 1] = bytes([random.randrange(256)])
            case 1:
                del body[place:]
            case 2:
                body[place:place] = random.randbytes(random.randrange(1, 4))
            case 3:
                body[place:place] = b"\xff" * random.randrange(1, 11)
            case _:
                del body[place : place + random.randrange(1, 4)]
    return frame[:5] + bytes(body)


def print_array(array: Any) -> str:
    """Return an array as text in which NaN is equal to itself, and dates beyond Python's range are numbers."""
    nulls = array.is_null().to_pylist()
    if pa.types.is_struct(array.type):
        return f"{nulls} {[print_array(child) for child in array.flatten()]}"
    if pa.types.is_map(array.type):
        return f"{nulls} {array.offsets.to_pylist()} {print_array(array.keys)} {print_array(array.items)}"
    if pa.types.is_list(array.type):
        return f"{nulls} {array.offsets.to_pylist()} {print_array(array.values)}"
    if pa.types.is_temporal(array.type):
        array = array.view(pa.int32() if array.type.bit_width == 32 else pa.int64())
    return str(array.to_pylist())


def agree(document: Any, reader: Any, frames: list[bytes]) -> int:
    """Assert that the engines return the same for every frame. Return the number of bad frames."""
    one, other = (decode(get_engine(name), reader, [*frames], {1: document}) for name in NAMES)
    assert describe_errors(one).to_pylist() == describe_errors(other).to_pylist()
    assert one.codes.equals(other.codes)
    assert one.details.equals(other.details)
    assert one.offsets.equals(other.offsets)
    assert print_array(one.values) == print_array(other.values)
    good: int = describe_errors(one).null_count
    return len(frames) - good


def test_engines_agree_on_damaged_records() -> None:
    """For thousands of mutated records both engines return the same value, or the same reason at the same byte."""
    bad = total = 0
    for seed in range(60):
        cases = Cases(seed)
        document, make = cases.record()
        frames = [mutate_frame(cases.random, frame_record(document, make(cases.random)[0])) for _ in range(100)]
        bad += agree(document, document, frames)
        total += len(frames)
    assert 0.3 < bad / total < 0.99, "the damage must be neither harmless nor always fatal, or this proves little"


@settings(max_examples=scale_examples(150), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(body=st.binary(max_size=60), seed=st.integers(0, 15))
def test_engines_agree_on_arbitrary_bytes(body: bytes, seed: int) -> None:
    """For arbitrary bytes both engines return the same value or the same error."""
    document, _ = Cases(seed).record()
    agree(document, document, [b"\0\0\0\0\1" + body])


# --- encoding -------------------------------------------------------------------------------------------------------


def encoding_fails(engine: Engine, document: Any, rows: Any) -> str:
    """Return the message of the encoding error."""
    with pytest.raises(EncodeError) as caught:
        engine.encoder(schema(document), 1).encode(rows)
    return str(caught.value)


def test_rows_that_do_not_fit_are_named(engine: Engine) -> None:
    """A null that is not allowed, an unknown symbol, or a wrong size or type is an error that names row and field."""
    inner = record(("x", {"type": "array", "items": "int"}), name="I")
    rows = pa.array(
        [{"i": {"x": [1]}}, {"i": {"x": [None]}}], pa.struct([("i", pa.struct([("x", pa.list_(pa.int32()))]))])
    )
    assert "i.x[]: null where the schema does not allow it" in encoding_fails(engine, record(("i", inner)), rows)
    enum = record(("e", {"type": "enum", "name": "E", "symbols": ["A"]}))
    assert (
        encoding_fails(engine, enum, pa.array([{"e": "A"}, {"e": "B"}]))
        == "row 1, e: the enum does not have this symbol"
    )
    assert "missing: null where" in encoding_fails(
        engine, record(("a", "int"), ("missing", "int")), pa.array([{"a": 1}])
    )
    assert "b is not in the schema" in encoding_fails(engine, record(("a", "int")), pa.array([{"a": 1, "b": 2}]))
    assert "does not fit int32" in encoding_fails(engine, record(("a", "int")), pa.array([{"a": 2**40}]))
    assert "wants a record" in encoding_fails(engine, record(("a", "int")), pa.array([1]))


def test_wider_columns_are_narrowed_when_their_values_fit(engine: Engine) -> None:
    """Columns of another width, dictionaries and missing nullable columns are accepted if no value changes."""
    document = record(("a", "int"), ("e", {"type": "enum", "name": "E", "symbols": ["A"]}), ("n", ["null", "long"]))
    rows = pa.StructArray.from_arrays([pa.array([1, 2]), pa.array(["A", "A"]).dictionary_encode()], ["a", "e"])
    frames = engine.encoder(schema(document), 1).encode(rows).to_pylist()
    assert frames == [frame_record(document, {"a": number, "e": "A", "n": None}) for number in (1, 2)]


def test_one_number_of_two_widths_is_written_as_the_wider(engine: Engine) -> None:
    """A union of int and long is one column, and all its values are written as long."""
    document = ["null", "int", "long"]
    frames = engine.encoder(schema(document), 1).encode(pa.array([1, 2**40, None])).to_pylist()
    assert [read_record(document, frame) for frame in frames] == [1, 2**40, None]


def test_null_rows_are_tombstones(engine: Engine) -> None:
    """A null row stays null, as in the vendor's clients. If the schema allows null, it becomes a record of null."""
    inner = record(("x", "int"))
    rows = pa.array([{"x": 1}, None], pa.struct([("x", pa.int32())]))
    assert engine.encoder(schema(inner), 1).encode(rows).to_pylist() == [frame_record(inner, {"x": 1}), None]
    union = ["null", inner]
    assert engine.encoder(schema(union), 1).encode(rows).to_pylist() == [
        frame_record(union, {"x": 1}),
        frame_record(union, None),
    ]
    assert engine.encoder(schema("int"), 1).encode(pa.array([1, None], pa.int32())).to_pylist() == [
        frame_record("int", 1),
        None,
    ]


def test_a_schema_that_is_just_bytes_is_bare(engine: Engine) -> None:
    """Top-level bytes have no length prefix, as in the vendor's clients; inside other types they have one."""
    frame = b"\0\0\0\0\1"
    for reader, expected in (("bytes", b"\4ab"), (["null", "bytes"], b"\4ab"), ("string", "\4ab")):
        decoded = decode(engine, reader, [frame + b"\4ab", None], {1: "bytes"})
        assert decoded.values.to_pylist() == [expected, None]
    assert decode(engine, "bytes", [frame], {1: "bytes"}).values.to_pylist() == [b""]
    assert decode(engine, "bytes", [frame + b"\4ab"], {1: "string"}).values.to_pylist() == [b"ab"]
    money = {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2}
    decoded = decode(engine, money, [frame + b"\1\0", frame])
    assert decoded.values.to_pylist() == [Decimal("2.56"), None]
    assert describe_errors(decoded).to_pylist() == [None, MESSAGES[ErrorCode.EMPTY_DECIMAL]]
    assert engine.encoder(schema("bytes"), 1).encode(pa.array([b"ab", b"", None])).to_pylist() == [
        frame + b"ab",
        frame,
        None,
    ]
    values = pa.array([Decimal("2.56")], pa.decimal128(4, 2))
    assert engine.encoder(schema(money), 1).encode(values).to_pylist() == [frame + b"\1\0"]


def test_uuids_on_fixed_are_written_from_their_text(engine: Engine) -> None:
    """The text of a UUID is written as its 16 bytes; other text is refused."""
    rows = pa.array([str(UUID(int=9)), None])
    frames = engine.encoder(schema(["null", UUID_FIXED]), 1).encode(rows).to_pylist()
    assert [frame[5:] for frame in frames] == [b"\2" + UUID(int=9).bytes, b"\0"]
    assert decode(engine, ["null", UUID_FIXED], frames).values.equals(rows)
    assert "is not a UUID" in encoding_fails(engine, UUID_FIXED, pa.array(["x"]))


def test_engines_are_found_by_name() -> None:
    """`auto` is the compiled engine if numba is installed; unknown names are refused."""
    assert get_engine("auto").name == "vm"
    assert get_engine("python").name == "python"
    with pytest.raises(Invalid, match="no engine 'java'"):
        get_engine("java")
