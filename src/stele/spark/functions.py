"""`from_registry` and `to_registry`: columns of framed records to typed columns and back.

Every record is decoded with the schema it was written with, found by the id in its frame, and resolved to one reader's
schema, which is pinned when the function is called. What becomes of a bad record is the caller's choice:

    FAILFAST     the task fails and names the first one
    PERMISSIVE   the value is null, and `<into>_error` is a struct (schema_id, offset, reason); null for good records
    DEADLETTER   two DataFrames: the good records, and the bad ones with their raw bytes and the error struct

A null record (a tombstone) is null in every mode and never an error. A registry that does not answer fails the task.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple, overload

from stele.client import ResolvedSchema, Schema, SchemaSnapshot
from stele.errors import DecodeError, Invalid, SubjectNotFound
from stele.spark.session import need_spark
from stele.spark.source import Lookup, Pin, RegistryLike, opened, parsed, pin

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

    from stele.spark.engines.arrow import ArrowType, Column
    from stele.spark.engines.base import Decoded

Mode = Literal["FAILFAST", "PERMISSIVE"]


class Split(NamedTuple):
    """Good and bad records apart. Each decodes for itself; in a stream, split inside foreachBatch."""

    good: DataFrame
    dead: DataFrame


@overload
def from_registry(
    df: DataFrame,
    column: str = ...,
    *,
    subject: str,
    registry: RegistryLike,
    reader: str | int = ...,
    mode: Mode = ...,
    engine: str = ...,
    into: str = ...,
    keep: Sequence[str] | None = ...,
    id_column: str | None = ...,
) -> DataFrame: ...
@overload
def from_registry(
    df: DataFrame,
    column: str = ...,
    *,
    subject: str,
    registry: RegistryLike,
    reader: str | int = ...,
    mode: Literal["DEADLETTER"],
    engine: str = ...,
    into: str = ...,
    keep: Sequence[str] | None = ...,
    id_column: str | None = ...,
) -> Split: ...
def from_registry(
    df: DataFrame,
    column: str = "value",
    *,
    subject: str,
    registry: RegistryLike,
    reader: str | int = "latest",
    mode: Mode | Literal["DEADLETTER"] = "FAILFAST",
    engine: str = "auto",
    into: str = "value",
    keep: Sequence[str] | None = None,
    id_column: str | None = None,
) -> DataFrame | Split:
    """Decode a column of Confluent-framed Avro records, in batch and streaming DataFrames alike.

    column     a binary column
    subject    whose versions are pinned; ids outside it are looked up once per process
    reader     `latest`, a version number of the subject, or the text of an Avro schema
    mode       see the module
    engine     `vm`, `python`, or `auto`: `vm` where numba is installed
    into       the new column: a struct for a record schema (`select("value.*")` makes it columns)
    keep       other columns to keep; None keeps all but `column`. Row order is kept.
    id_column  also write the writer's schema id there

    Raises `SubjectNotFound`, `VersionNotFound`, `RegistryUnreachable`, `DataError` (the reader's schema has no table
    shape), `Invalid` (unknown mode, engine or column), `NotInstalled`.
    """
    need_spark()
    if mode not in {"FAILFAST", "PERMISSIVE", "DEADLETTER"}:
        raise Invalid(f"there is no mode {mode!r}: choose FAILFAST, PERMISSIVE or DEADLETTER")
    _check_engine(engine)
    kept = [name for name in df.columns if name != column] if keep is None else list(keep)
    for name in (column, *kept):
        if name not in df.columns:
            raise Invalid(f"there is no column {name!r}: the DataFrame has {', '.join(df.columns)}")
    if into in kept or id_column in kept:
        raise Invalid(
            f"the DataFrame has a column {into if into in kept else id_column!r} already: choose another name"
        )
    decode = _Decode(pin(registry, subject, reader), registry, engine, column, into, tuple(kept), id_column, mode)
    if mode != "DEADLETTER":
        return decode.apply(df)
    return _split(df, decode)


class _Decode:
    """Runs in the tasks: batches of rows in, batches with the decoded column out."""

    def __init__(
        self,
        pinned: Pin,
        registry: RegistryLike,
        engine: str,
        column: str,
        into: str,
        kept: tuple[str, ...],
        id_column: str | None,
        mode: str,
    ) -> None:
        self.column, self.into, self.kept, self.id_column, self.mode = column, into, kept, id_column, mode
        self._pinned, self._registry, self._engine = pinned, registry, engine

    @property
    def error_column(self) -> str:
        """Name of the column with what is wrong."""
        return f"{self.into}_error"

    def apply(self, df: DataFrame) -> DataFrame:
        """The DataFrame with the decoded column; faults of the reader's schema show here, on the driver."""
        from pyspark.sql.pandas.types import from_arrow_type
        from pyspark.sql.types import IntegerType, StructField, StructType

        source = df.select(*map(quoted, dict.fromkeys((self.column, *self.kept))))
        fields = [source.schema[name] for name in self.kept]
        fields.append(StructField(self.into, from_arrow_type(self._decoder_type())))
        if self.id_column:
            fields.append(StructField(self.id_column, IntegerType()))
        if self.mode != "FAILFAST":
            fields.append(StructField(self.error_column, from_arrow_type(error_type())))
        return source.mapInArrow(self, StructType(fields))

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The function Spark maps."""
        import pyarrow as pa

        from stele.spark.engines.base import engine_named

        reader = parsed(self._pinned.reader)
        decoder = engine_named(self._engine).decoder(reader, Lookup(self._pinned, self._registry), for_spark=True)
        for batch in batches:
            decoded = decoder.decode(batch.column(self.column))
            if self.mode == "FAILFAST":
                fail_on_bad(decoded)
            columns = {name: batch.column(name) for name in self.kept}
            columns[self.into] = decoded.values
            if self.id_column:
                columns[self.id_column] = decoded.schema_ids
            if self.mode != "FAILFAST":
                columns[self.error_column] = errors(decoded)
            yield pa.RecordBatch.from_pydict(columns)

    def _decoder_type(self) -> ArrowType:
        from stele.spark.engines.resolve import Resolver

        return Resolver(parsed(self._pinned.reader), for_spark=True).root.type


def error_type() -> ArrowType:
    """What is known about a bad record; offset is the byte of the payload where it showed."""
    import pyarrow as pa

    return pa.struct([("schema_id", pa.int32()), ("offset", pa.int32()), ("reason", pa.string())])


def errors(decoded: Decoded) -> Column:
    """The error struct of each record, null for good ones."""
    import pyarrow as pa

    parts = [decoded.schema_ids, decoded.places, decoded.reasons]
    return pa.StructArray.from_arrays(parts, fields=list(error_type()), mask=decoded.reasons.is_null())


def fail_on_bad(decoded: Decoded) -> None:
    """Raise `DecodeError` for the first bad record of a batch."""
    if decoded.reasons.null_count == len(decoded.reasons):
        return
    row = decoded.reasons.is_valid().index(True).as_py()
    number = decoded.schema_ids[row].as_py()
    where = "" if number is None else f" (schema id {number})"
    raise DecodeError(f"{decoded.reasons[row].as_py()}{where}", offset=decoded.places[row].as_py())


def quoted(name: str) -> str:
    """A column's name as Spark SQL takes any name."""
    return "`" + name.replace("`", "``") + "`"


def _check_engine(name: str) -> None:
    """Raise on the driver what every task would."""
    from stele.spark.engines.base import engine_named

    engine_named(name)


def _split(df: DataFrame, decode: _Decode) -> Split:
    from pyspark.sql import functions as f

    wanted, into, error = decode.kept, decode.into, decode.error_column
    # a name of its own until the raw bytes are gone, whose name `into` may be
    decode.into = "_stele_value"
    decode.kept = tuple(df.columns)
    both = decode.apply(df)
    is_good = f.col(decode.error_column).isNull()
    value = f.col(decode.into).alias(into)
    number = [quoted(decode.id_column)] if decode.id_column else []
    good = both.where(is_good).select(*map(quoted, wanted), value, *number)
    dead = both.where(~is_good).select(*map(quoted, df.columns), f.col(decode.error_column).alias(error))
    return Split(good, dead)


def to_registry(
    df: DataFrame,
    *,
    subject: str,
    registry: RegistryLike,
    schema: str | None = None,
    auto_register: bool = False,
    columns: Sequence[str] | None = None,
    keep: Sequence[str] = (),
    into: str = "value",
    engine: str = "auto",
) -> DataFrame:
    """Encode columns as Confluent-framed Avro records.

    schema         text of the schema to write with; None is the subject's newest version
    auto_register  register `schema` when the subject does not have it; otherwise that is an error
    columns        the record's columns by field name; None takes all but `keep`
    keep           columns that stay beside the record (a key, say)
    into           the binary column

    A task fails with `EncodeError`, naming row and field, when a row does not fit. Raises `SubjectNotFound`,
    `ContentNotFound` (schema not registered), `Incompatible`, `RegistryUnreachable`, `Invalid`, `DataError`.
    """
    need_spark()
    from pyspark.sql.types import BinaryType, StructField, StructType

    _check_engine(engine)
    writer = _writer(registry, subject, schema, auto_register=auto_register)
    chosen = [name for name in df.columns if name not in keep] if columns is None else list(columns)
    source = df.select(*map(quoted, dict.fromkeys((*keep, *chosen))))
    encode = _Encode(writer, engine, tuple(chosen), tuple(keep), into)
    encode.check()
    fields = [source.schema[name] for name in keep]
    return source.mapInArrow(encode, StructType([*fields, StructField(into, BinaryType())]))


def _writer(registry: RegistryLike, subject: str, schema: str | None, *, auto_register: bool) -> ResolvedSchema:
    if schema is None:
        return pin(registry, subject).reader
    if isinstance(registry, SchemaSnapshot):
        for known in registry.schemas:
            if known.subject == subject and known.text == schema:
                return known
        raise SubjectNotFound(subject)
    client = opened(registry)
    call = client.register if auto_register else client.lookup
    return client.resolve(call(subject, Schema(schema)).id)


class _Encode:
    """Runs in the tasks: batches of rows in, batches with the record out."""

    def __init__(
        self, writer: ResolvedSchema, engine: str, columns: tuple[str, ...], kept: tuple[str, ...], into: str
    ) -> None:
        self._writer, self._engine = writer, engine
        self._columns, self._kept, self._into = columns, kept, into

    def check(self) -> None:
        """Raise on the driver what can be known before the first row."""
        from stele.spark.engines.resolve import Resolver

        Resolver(parsed(self._writer), for_spark=True)

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The function Spark maps."""
        import pyarrow as pa

        from stele.spark.engines.base import engine_named

        encoder = engine_named(self._engine).encoder(parsed(self._writer), self._writer.id, for_spark=True)
        for batch in batches:
            columns = {name: batch.column(name) for name in self._kept}
            columns[self._into] = encoder.encode(batch.select(self._columns).to_struct_array())
            yield pa.RecordBatch.from_pydict(columns)
