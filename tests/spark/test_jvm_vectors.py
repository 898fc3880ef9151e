"""The engine `jvm` against the others, fastavro and Java's Avro: the same vectors, and the same damaged records.

A Spark job takes longer than a thousand records, so cases are collected first and decoded side by side: each is a
column of frames and a function of its own.
"""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from tests.unit.spark import malformed, test_engines, test_recursion
from tests.unit.spark.avro_cases import LEAVES, Cases, frame_record, read_record, schema

from stele.errors import EncodeError
from stele.formats.avro import AvroSchema
from stele.spark.decode.jvm_expressions import decoding, encoding
from stele.spark.decode.schema_lookup_worker import WriterPrograms
from stele.spark.engines import get_engine
from stele.spark.engines.base import Decoded, Decoder, Encoder, Engine, FindWriter, error_structs
from stele.spark.engines.jvm import is_loaded
from stele.spark.engines.jvm.programs import find_unfit_column
from stele.spark.engines.resolve import Resolver

BESIDE = 40
"""Number of functions in one job."""


@pytest.fixture(scope="module")
def jvm(spark: SparkSession) -> Iterator[SparkSession]:
    """The session, with the engine and without compilers: each function runs on a few rows only."""
    assert is_loaded(spark), "build the jar: python -m stele.spark.engines.jvm.build"
    settings = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
    for name, value in settings.items():
        spark.conf.set(name, value)
    yield spark
    for name in settings:
        spark.conf.unset(name)


@dataclass(slots=True)
class Case:
    """A reader, the writers' schemas by id, and a column of frames."""

    reader: AvroSchema
    writers: FindWriter
    column: pa.Array
    recursion: int = 0

    def by(self, name: str) -> Decoded:
        """Return the result of another engine, with types for Spark."""
        engine = get_engine(name)
        decoder = engine.decoder(self.reader, self.writers, for_spark=True, recursion=self.recursion)
        return decoder.decode(self.column)


@dataclass(slots=True)
class Rows:
    """A schema, an id, and a column to write."""

    schema: AvroSchema
    number: int
    values: pa.Array
    recursion: int = 0

    def by_vm(self) -> pa.Array:
        """Return the records that the engine `vm` writes."""
        encoder = get_engine("vm").encoder(self.schema, self.number, for_spark=True, recursion=self.recursion)
        return encoder.encode(self.values)

    def resolver(self) -> Resolver:
        """Return the resolver of the schema that the jar writes with."""
        return Resolver(self.schema, for_spark=True, recursion=self.recursion)


def table(spark: SparkSession, columns: Sequence[pa.Array]) -> DataFrame:
    """Return columns c0, c1 … in one partition, with nulls below the shorter ones."""
    height = max(map(len, columns))
    padded = [pa.concat_arrays([column, pa.nulls(height - len(column), column.type)]) for column in columns]
    return spark.createDataFrame(pa.table({f"c{n}": column for n, column in enumerate(padded)})).coalesce(1)


@dataclass(frozen=True)
class DecodedByJvm:
    """The result of the engine in Spark for a column.

    The fields of error structs are arrays of their own, null where there is no error.
    """

    values: Any
    schema_ids: Any
    offsets: Any
    codes: Any
    reasons: Any


def decode_all(spark: SparkSession, cases: Sequence[Case]) -> Iterator[DecodedByJvm]:
    """Yield the result of the engine in Spark for each case."""
    for begin in range(0, len(cases), BESIDE):
        some = cases[begin : begin + BESIDE]
        calls = []
        for place, case in enumerate(some):
            resolver = Resolver(case.reader, for_spark=True, recursion=case.recursion)
            answers = WriterPrograms(resolver, case.writers)
            frames = [frame for frame in case.column.to_pylist() if frame]
            ids = {int.from_bytes(frame[1:5], "big", signed=True) for frame in frames if len(frame) > 4}
            calls.append(decoding(f.col(f"c{place}"), answers, sorted(number for number in ids if number >= 0)))
        results = table(spark, [case.column for case in some]).select(*calls).toArrow()
        for case, column in zip(some, results.columns, strict=True):
            row = column.combine_chunks().slice(0, len(case.column))
            value, ids_, error = row.flatten()  # type: ignore[attr-defined]  # an array of structs
            _, *parts = error.flatten()
            yield DecodedByJvm(value, ids_, *parts)


def agree(spark: SparkSession, cases: Sequence[Case], *names: str) -> tuple[int, int]:
    """Assert that the engines return the same for every record. Return how many were bad, and how many there were."""
    bad = total = 0
    for case, mine in zip(cases, decode_all(spark, cases), strict=True):
        for name in names:
            other = case.by(name)
            _, offsets, codes, reasons = error_structs(other).flatten()
            assert mine.codes.to_pylist() == codes.to_pylist()
            assert mine.reasons.to_pylist() == reasons.to_pylist()
            assert mine.offsets.to_pylist() == offsets.to_pylist()
            assert mine.schema_ids.to_pylist() == other.schema_ids.to_pylist()
            assert plain(mine.values) == plain(other.values)
        bad += len(case.column) - mine.codes.null_count
        total += len(case.column)
    return bad, total


def plain(array: Any) -> Any:
    """Return an array as lists in which NaN is equal to itself and dates beyond Python's range are numbers.

    Values below a null are left out.
    """
    if pa.types.is_struct(array.type):
        rows = zip(*(plain(child) for child in array.flatten()), strict=True) if array.type.num_fields else ()
        return [row if there else None for row, there in zip(rows, array.is_valid().to_pylist(), strict=False)]
    if pa.types.is_list(array.type) or pa.types.is_map(array.type):
        items = plain(array.values) if pa.types.is_list(array.type) else plain_entries(array)
        ends = array.offsets.to_pylist()
        there = array.is_valid().to_pylist()
        return [items[a:b] if ok else None for a, b, ok in zip(ends, ends[1:], there, strict=False)]
    if pa.types.is_temporal(array.type):
        array = array.view(pa.int32() if array.type.bit_width == 32 else pa.int64())
    return [str(value) if isinstance(value, float) else value for value in array.to_pylist()]


def plain_entries(array: Any) -> list[Any]:
    """Return keys and values of all maps."""
    return list(zip(plain(array.keys), plain(array.items), strict=True))


def sort_entries(value: Any) -> Any:
    """Return the value with map entries sorted by key, as Java's maps have an order of their own."""
    if isinstance(value, tuple):
        return tuple(map(sort_entries, value))
    if not isinstance(value, list):
        return value
    items = [sort_entries(item) for item in value]
    entries = all(isinstance(item, tuple) and len(item) == 2 and isinstance(item[0], str) for item in items)
    return sorted(items, key=lambda item: item[0]) if entries else items


# --- the vectors of the other engines -------------------------------------------------------------------------------


class Recorder:
    """An engine that records its calls, and works as the engine `python`.

    It stands for all engines of `test_engines`.
    """

    name = "python"

    def __init__(self) -> None:
        self.cases: list[Case] = []
        self.rows: list[Rows] = []
        self._inner = get_engine("python")

    def decoder(
        self, reader: AvroSchema, writers: FindWriter, *, for_spark: bool = False, recursion: int = 0
    ) -> Decoder:
        """Return a decoder that records its frames; see `Engine.decoder`."""
        inner, cases = self._inner.decoder(reader, writers, for_spark=for_spark, recursion=recursion), self.cases

        class Recording:
            type = inner.type

            def decode(self, frames: Any) -> Decoded:
                decoded = inner.decode(frames)
                known = {n: writers(n) for n in {*decoded.schema_ids.to_pylist()} - {None} if n >= 0}
                cases.append(Case(reader, known.get, frames.cast(pa.binary()), recursion))
                return decoded

        return Recording()

    def encoder(self, schema: AvroSchema, schema_id: int, *, for_spark: bool = False, recursion: int = 0) -> Encoder:
        """Return an encoder that records its values; see `Engine.encoder`."""
        inner, rows = self._inner.encoder(schema, schema_id, for_spark=for_spark, recursion=recursion), self.rows

        class Recording:
            def encode(self, values: Any) -> Any:
                rows.append(Rows(schema, schema_id, values, recursion))
                return inner.encode(values)

        return Recording()


def arguments(test: Any, engine: Engine) -> Iterator[dict[str, Any]]:
    """Yield the arguments of all calls that pytest makes of a test."""
    marks = [mark for mark in getattr(test, "pytestmark", ()) if mark.name == "parametrize"]
    for chosen in itertools.product(*(mark.args[1] for mark in marks)):
        call_arguments: dict[str, Any] = {"engine": engine}
        for mark, values in zip(marks, chosen, strict=True):
            names = mark.args[0] if isinstance(mark.args[0], tuple) else (mark.args[0],)
            values = values.values if isinstance(values, type(pytest.param())) else values  # noqa: PLW2901
            call_arguments |= dict(zip(names, values if isinstance(values, tuple) else (values,), strict=True))
        yield call_arguments


@pytest.fixture(scope="module")
def full_recorder() -> Recorder:
    """All that the tests of the other engines decode and encode."""
    recorder = Recorder()
    for test in (*vars(test_engines).values(), *vars(test_recursion).values()):
        if (
            inspect.isfunction(test)
            and test.__name__.startswith("test_")
            and "engine" in inspect.signature(test).parameters
        ):
            for call_arguments in arguments(test, recorder):
                test(**call_arguments)
    assert len(recorder.cases) > 200, "the tests of the engines have moved: this one proves nothing any more"
    assert len(recorder.rows) > 80
    return recorder


def test_all_vectors_decode_alike(jvm: SparkSession, full_recorder: Recorder) -> None:
    """The vectors of the other engines' tests are decoded alike, or refused for the same reason at the same byte."""
    bad, _ = agree(jvm, full_recorder.cases, "python")
    assert bad > 30


def test_all_vectors_are_written_alike(jvm: SparkSession, full_recorder: Recorder) -> None:
    """The vectors of the other engines' tests are encoded to the same bytes; the jar refuses only few columns."""
    written = 0
    for begin in range(0, len(full_recorder.rows), BESIDE):
        some = [row for row in full_recorder.rows[begin : begin + BESIDE] if takes(jvm, row)]
        calls = []
        for place, row in enumerate(some):
            whole = f.struct(f.col(f"c{place}").alias("value"))
            calls.append(encoding(whole, row.resolver(), row.number, whole=True))
        results = table(jvm, [row.values for row in some]).select(*calls).toArrow()
        for row, column in zip(some, results.columns, strict=True):
            assert column.combine_chunks().slice(0, len(row.values)).to_pylist() == row.by_vm().to_pylist()
            written += 1
    assert written > 50


def takes(spark: SparkSession, row: Rows) -> bool:
    """Return whether the rows can be a column of Spark that the jar accepts, and are good."""
    try:
        row.by_vm()
        field = spark.createDataFrame(pa.table({"c": pa.nulls(0, row.values.type)})).schema.fields[0]
    except (EncodeError, PySparkException):
        return False
    return not find_unfit_column(row.resolver().root, [field.dataType], None)


# --- damaged records ------------------------------------------------------------------------------------------------


def mutants(seeds: Sequence[int], records: int) -> list[Case]:
    """Return cases of random schemas, each with a column of damaged records."""
    mutant_cases = []
    for seed in seeds:
        cases = Cases(seed)
        document, make = cases.record()
        frames = [
            test_engines.mutate_frame(cases.random, frame_record(document, make(cases.random)[0]))
            for _ in range(records)
        ]
        mutant_cases.append(Case(schema(document), {1: schema(document)}.get, pa.array(frames, pa.binary())))
    return mutant_cases


def test_three_engines_agree_on_damaged_records(jvm: SparkSession) -> None:
    """For thousands of mutated records all three engines return the same value, or the same reason at the same byte."""
    bad, total = agree(jvm, mutants(range(100, 180), 100), "vm", "python")
    assert total == 8000
    assert 0.3 < bad / total < 0.99, "the damage must be neither harmless nor always fatal, or this proves little"


def test_three_engines_agree_on_arbitrary_bytes(jvm: SparkSession) -> None:
    """For arbitrary bytes, also long runs of one byte, all three engines return the same value or the same error."""
    random = Random(11)
    cases = []
    for seed in range(30):
        document, _ = Cases(seed).record()
        bodies = [random.randbytes(random.randrange(60)) for _ in range(60)]
        bodies += [bytes([byte]) * length for byte in (0, 1, 2, 127, 128, 255) for length in (1, 9, 10, 11, 5000)]
        frames = [b"\0\0\0\0\1" + body for body in bodies]
        cases.append(Case(schema(document), {1: schema(document)}.get, pa.array(frames, pa.binary())))
    agree(jvm, cases, "vm", "python")


def test_three_engines_agree_on_hostile_bytes(jvm: SparkSession) -> None:
    """Hostile counts and depths are limited and refused by all three engines at the same byte.

    They are counts of 2**60 items without bytes, a hundred thousand nested records, and integers without an end, in
    values that are read and in values that are skipped.
    """
    cases = []
    for _, writer, reader, levels in malformed.avro_readers():
        frames = pa.array([malformed.PREFIX + body for body in malformed.bodies(Random(3))], pa.binary())
        cases.append(Case(schema(reader), {1: schema(writer)}.get, frames, levels))
    bad, total = agree(jvm, cases, "vm")
    assert bad > total / 2


def test_arrays_and_maps_of_many_blocks(jvm: SparkSession) -> None:
    """Blocks of any number and size, including nested ones, are decoded to one array in order."""
    inner = {"type": "array", "items": ["null", "string", {"type": "map", "values": "double"}]}
    document = {"type": "map", "values": {"type": "array", "items": inner}}
    texts = [b"\2" + bytes([2 * len(text)]) + text for text in (b"", b"one", b"a text longer than a word")]
    number = b"\4\2\2k" + b"\0" * 6 + b"\xf0\x3f" + b"\0"
    item = b"\2" + texts[0] + b"\4" + texts[1] + b"\0" + b"\2" + number + b"\2" + texts[2] + b"\0"
    value = b"\2" + item + b"\4" + item + b"\0" + b"\2" + item + b"\0"
    body = b"\2" + b"\2a" + value + b"\4" + b"\2b" + value + b"\2c" + b"\0" + b"\2" + b"\2d" + value + b"\0"
    frames = pa.array([b"\0\0\0\0\1" + body, b"\0\0\0\0\1" + body[:-1], b"\0\0\0\0\1" + body], pa.binary())
    bad, _ = agree(jvm, [Case(schema(document), {1: schema(document)}.get, frames)], "vm", "python")
    assert bad == 1
    longs = {"type": "array", "items": "long"}
    thousand = b"".join(b"\2\2" for _ in range(1000)) + b"\0"
    frames = pa.array([b"\0\0\0\0\1" + thousand], pa.binary())
    assert agree(jvm, [Case(schema(longs), {1: schema(longs)}.get, frames)], "python") == (0, 1)


def test_nested_blocks_take_no_longer_than_their_bytes(jvm: SparkSession) -> None:
    """The work for forty nested arrays of several blocks does not double at each level."""
    document: Any = "int"
    body = b"\2"
    for _ in range(40):
        document = {"type": "array", "items": document}
        body = b"\2" + body + b"\2" + (b"\2" if document["items"] == "int" else b"\0") + b"\0"
    frames = pa.array([b"\0\0\0\0\1" + body], pa.binary())
    assert agree(jvm, [Case(schema(document), {1: schema(document)}.get, frames)], "python") == (0, 1)


# --- oracles --------------------------------------------------------------------------------------------------------


def test_java_avro_reads_the_same(jvm: SparkSession, tmp_path: Path) -> None:
    """Random records have the values that Java's Avro reads from fastavro's container files, by Spark's own reader."""
    random_cases, oracles = [], []
    for seed in range(200, 230):
        cases = Cases(seed)
        document, make = cases.record()
        # Spark's reader has another type for times, which its Avro files refuse, and no wide decimals
        if any(each in str(document) for each in ("time-micros", "'precision': 76", "'precision': 45")):
            continue
        data = [make(cases.random)[0] for _ in range(20)]
        path = tmp_path / f"{seed}.avro"
        with path.open("wb") as out:
            fastavro.writer(out, fastavro.parse_schema(document), data)
        frames = pa.array([frame_record(document, datum) for datum in data], pa.binary())
        random_cases.append(Case(schema(document), {1: schema(document)}.get, frames))
        oracles.append(
            jvm.read.format("org.apache.spark.sql.avro.AvroFileFormat").load(str(path)).coalesce(1).toArrow()
        )
    assert len(random_cases) > 8
    for mine, oracle in zip(decode_all(jvm, random_cases), oracles, strict=True):
        rows = [column.combine_chunks() for column in oracle.columns]
        expected = list(zip(*(plain(row) if row.type != pa.null() else row.to_pylist() for row in rows), strict=True))
        assert sort_entries(plain(mine.values)) == sort_entries(expected)


def test_fastavro_reads_what_is_written(jvm: SparkSession) -> None:
    """Encoded leaves of every type, alone in a record and nullable, are read by fastavro as the same values."""
    for leaf, (kind, make) in LEAVES.items():
        if leaf in {"null", "time-millis", "time-micros"}:
            continue
        document = test_engines.record(("a", kind), ("b", ["null", kind]))
        random = Random(5)
        data = [{"a": make(random)[0], "b": make(random)[0] if n % 2 else None} for n in range(8)]
        column = pa.array([frame_record(document, datum) for datum in data], pa.binary())
        resolver = Resolver(schema(document), for_spark=True)
        answers = WriterPrograms(resolver, {1: schema(document)}.get)
        df = table(jvm, [column]).select(decoding(f.col("c0"), answers, [1]).alias("r"))
        again = df.select(encoding(f.struct("r.value.*"), resolver, 1, whole=False).alias("v")).toArrow()
        frames = again.column(0).to_pylist()
        assert frames == column.to_pylist()
        assert [read_record(document, frame) for frame in frames] == data
