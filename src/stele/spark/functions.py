"""`from_registry` and `to_registry`: columns of framed records to typed columns and back.

Every record is decoded with the schema that it was written with, found by the id in its frame. It is resolved to one
reader's schema, which is pinned when the function is called. The caller chooses what happens to a bad record:

    FAILFAST     the task fails and names the first one
    PERMISSIVE   the value is null, and `<into>_error` is a struct (schema_id, offset, code, reason); null for good ones
    DEADLETTER   two DataFrames: the good records, and the bad ones with their raw bytes and the error struct

A null record (a tombstone) is null in every mode and never an error. Requests to a registry that does not answer are
repeated for `patience` seconds. Then the task fails, so that no record becomes null and no checkpoint moves. Both
functions work on batch and streaming DataFrames, of Spark in this process and of Spark Connect. The executors' Python
needs this package. Their tasks are `DecodeTask` and `EncodeTask`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from inspect import signature
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, overload

from stele.client import ResolvedSchema, Schema, SchemaSnapshot
from stele.client.names import split_subject as split_name
from stele.errors import ContentNotFound, EncodeError, Invalid, NotFound
from stele.formats.avro.model import AvroRecord, AvroType, AvroUnion
from stele.spark.registry import (
    PATIENCE,
    ReaderLike,
    RegistryLike,
    as_picklable,
    get_client,
    parse_avro,
    pin_schemas,
    retry_unavailable,
)
from stele.spark.session import require_spark

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType

    from stele.spark.decode.records import ReadPlan, Subjects, WritePlan
    from stele.spark.decode.rules import RulesLike
    from stele.spark.engines.arrow import ArrowType, Column
    from stele.spark.wires import WireLike


Mode = Literal["FAILFAST", "PERMISSIVE"]


class DecodedSplit(NamedTuple):
    """Good and bad records in two DataFrames. Each decodes again; in a stream, split inside foreachBatch."""

    good: DataFrame
    dead: DataFrame


@overload
def from_registry(
    df: DataFrame,
    column: str = ...,
    *,
    subject: Subjects,
    registry: RegistryLike,
    reader: ReaderLike = ...,
    mode: Mode = ...,
    wire: WireLike = ...,
    headers: str | None = ...,
    message: str = ...,
    rules: RulesLike = ...,
    topic: str = ...,
    engine: str = ...,
    into: str = ...,
    keep: Sequence[str] | None = ...,
    id_column: str | None = ...,
    patience: float = ...,
    recursion: int = ...,
) -> DataFrame: ...
@overload
def from_registry(
    df: DataFrame,
    column: str = ...,
    *,
    subject: Subjects,
    registry: RegistryLike,
    reader: ReaderLike = ...,
    mode: Literal["DEADLETTER"],
    wire: WireLike = ...,
    headers: str | None = ...,
    message: str = ...,
    rules: RulesLike = ...,
    topic: str = ...,
    engine: str = ...,
    into: str = ...,
    keep: Sequence[str] | None = ...,
    id_column: str | None = ...,
    patience: float = ...,
    recursion: int = ...,
) -> DecodedSplit: ...
def from_registry(
    df: DataFrame,
    column: str = "value",
    *,
    subject: Subjects,
    registry: RegistryLike,
    reader: ReaderLike = "latest",
    mode: Mode | Literal["DEADLETTER"] = "FAILFAST",
    wire: WireLike = "confluent",
    headers: str | None = None,
    message: str = "",
    rules: RulesLike = "refuse",
    topic: str = "",
    engine: str = "auto",
    into: str = "value",
    keep: Sequence[str] | None = None,
    id_column: str | None = None,
    patience: float = PATIENCE,
    recursion: int = 0,
) -> DataFrame | DecodedSplit:
    """Decode a column of records of a registered schema, in batch and streaming DataFrames alike.

    column     a binary column
    registry   an address, a snapshot, or a function that opens a client (credentials); see `RegistryLike`
    subject    subject whose versions are pinned; other schema ids are looked up once per process. Several subjects, as
               a list or by column name, make a struct with a struct for each type, of which one is not null; None makes
               a struct (type, json) of every record, unless reader is a schema
    reader     `latest`, a version number of the subject, a schema (text, `Schema`), or the `Path` of a file with one
    mode       `FAILFAST`, `PERMISSIVE` or `DEADLETTER`: what happens to a bad record; see the module
    wire       how records name their schemas: `confluent`, or another of `stele.spark.wires`
    headers    the column with the headers of the records, for wires that use them
    message    the message of a Protobuf schema, or the struct of a Thrift schema; without it, the usual one
    rules      `refuse`, `run` (or `Rules`), `ignore`; see `stele.spark.decode.rules`
    topic      topic of the records, for rules that need it
    engine     for Avro: `jvm`, `vm`, `python`, or `auto`, the first of them that is available: `jvm` needs its jar in
               the session (`stele.spark.local_session`, `add_engine`), `vm` needs numba. With `python`, Protobuf is
               read without numba, too
    into       the new column: a struct for a record schema (`select("value.*")` makes it columns)
    keep       other columns to keep; None keeps all but `column`. Row order is kept.
    id_column  new column for the id of the writer's schema, or the wire's substitute; None adds no column
    patience   seconds for which requests are repeated to a registry that does not answer
    recursion  how many times a type that contains itself is nested in itself in the columns; a record that is nested
               deeper is a bad record. With 0, Avro schemas of such types are refused; in the other languages the column
               has JSON text where the type would repeat

    Raises `SubjectNotFound`, `VersionNotFound`, `RegistryUnreachable`, `DataError` (a schema without columns),
    `RulesRefused`, `Invalid` (unknown mode, wire, engine or column, names that are taken, no table shape),
    `NotInstalled`.
    """
    # Long because every choice is an argument, and all are documented here
    require_spark()
    if mode not in {"FAILFAST", "PERMISSIVE", "DEADLETTER"}:
        raise Invalid(f"there is no mode {mode!r}: choose FAILFAST, PERMISSIVE or DEADLETTER")
    from stele.spark.decode.records import plan_read

    _check_engine(engine)
    _check_binary(df, _column_position(df, column))
    reading = plan_read(
        as_picklable(registry),
        subject,
        reader,
        message=message,
        wire=wire,
        rules=rules,
        engine=engine,
        topic=topic,
        patience=patience,
        recursion=recursion,
    )
    return decode_column(df, column, reading, mode=mode, headers=headers, into=into, keep=keep, id_column=id_column)


def decode_column(
    df: DataFrame,
    column: str,
    reading: ReadPlan,
    *,
    mode: Mode | Literal["DEADLETTER"] = "PERMISSIVE",
    headers: str | None = None,
    into: str = "value",
    keep: Sequence[str] | None = None,
    id_column: str | None = None,
) -> DataFrame | DecodedSplit:
    """Decode a column by a plan that exists already; for the other arguments see `from_registry`."""
    raw = _column_position(df, column)
    kept_positions = (
        [n for n in range(len(df.columns)) if n != raw]
        if keep is None
        else [_column_position(df, name) for name in keep]
    )
    error = f"{into}_error"
    added = [name for name in (into, id_column, error if mode != "FAILFAST" else None) if name]
    names = [df.columns[place] for place in kept_positions]
    _check_names(names, added)
    taken = [raw, *_header_positions(df, headers, needed=reading.wire.needs_headers)]
    decode = DecodeTask(reading, with_headers=len(taken) > 1, with_id=bool(id_column), fail_fast=mode == "FAILFAST")
    types = to_spark_types(decode.added_types())
    if mode != "DEADLETTER":
        return _map_columns(df, taken, kept_positions, decode, types).toDF(*names, *added)
    # the dead letters have all columns
    _check_names(df.columns, [error])
    both = _map_columns(df, taken, range(len(df.columns)), decode, types)
    first = len(df.columns)
    wanted = [*kept_positions, *range(first, first + len(added) - 1)]
    bad = f"p{len(both.columns) - 1}"
    good = both.where(f"{bad} IS NULL").select(*(f"p{place}" for place in wanted)).toDF(*names, *added[:-1])
    dead = both.where(f"{bad} IS NOT NULL").select(*(f"p{place}" for place in range(first)), bad)
    return DecodedSplit(good, dead.toDF(*df.columns, error))


def to_registry(
    df: DataFrame,
    *,
    subject: str,
    registry: RegistryLike,
    schema: str | Schema | None = None,
    auto_register: bool = False,
    columns: str | Sequence[str] | None = None,
    keep: Sequence[str] = (),
    into: str = "value",
    wire: WireLike = "confluent",
    headers_into: str = "headers",
    message: str = "",
    rules: RulesLike = "refuse",
    topic: str = "",
    engine: str = "auto",
    patience: float = PATIENCE,
    recursion: int = 0,
) -> DataFrame:
    """Encode columns as records of a registered schema.

    schema         the schema to write with, a `Schema` when it has references; None is the subject's newest version
    auto_register  whether `schema` is registered if the subject does not have it; otherwise that is an error
    columns        the record's columns by field name; None takes all but `keep`. A single name, not in a list, is a
                   column that is the whole value (as `from_registry` makes it), in which null stays null
    keep           columns that stay beside the record, such as a key
    into           the binary column
    wire           how records name the schema; see `from_registry`
    headers_into   the column for headers of records, for wires that have them, in the form of Spark's Kafka sink
    message        the message of a Protobuf schema, or the struct of a Thrift schema
    rules          `refuse`, `run` (or `Rules`), `ignore`; see `stele.spark.decode.rules`
    topic          topic that the records are written to, for rules that need it
    patience       seconds for which requests are repeated to a registry that does not answer
    recursion      how many times a type that contains itself can be nested in itself in the columns; deeper values are
                   written as null, or as an empty list

    Raises `EncodeError` at once for columns that do not fit the schema. A row that does not fit fails its task with an
    `EncodeError` that names row and field. Raises `SubjectNotFound`, `ContentNotFound` (schema not registered),
    `Incompatible`, `RegistryUnreachable`, `Invalid`, `DataError`, `NotInstalled`.
    """
    # Long because every choice is an argument, and all are documented here
    require_spark()
    from pyspark.sql.types import BinaryType

    from stele.spark.decode.records import plan_write
    from stele.spark.wires.base import HEADERS

    _check_engine(engine)
    kept_positions = [_column_position(df, name) for name in keep]
    registry = as_picklable(registry)
    writer = retry_unavailable(lambda: _find_writer(registry, subject, schema, auto_register=auto_register), patience)
    writing = plan_write(
        writer, registry, wire=wire, message=message, rules=rules, topic=topic, engine=engine, recursion=recursion
    )
    added = [into, headers_into] if writing.wire.needs_headers else [into]
    _check_names(keep, added)
    if isinstance(columns, str):
        fields, chosen = None, [_column_position(df, columns)]
    else:
        named = [name for name in df.columns if name not in keep] if columns is None else list(columns)
        fields, chosen = field_names(writer, named, message, recursion), [_column_position(df, name) for name in named]
    encode = EncodeTask(writing, fields)
    encode.check_columns([_arrow_type(df.schema.fields[place].dataType) for place in chosen])
    types = [BinaryType(), *to_spark_types([HEADERS] if len(added) > 1 else [])]
    return _map_columns(df, chosen, kept_positions, encode, types).toDF(*keep, *added)


def _map_columns(
    df: DataFrame,
    taken: Sequence[int],
    kept_columns: Sequence[int],
    function: DecodeTask | EncodeTask,
    added: Sequence[DataType],
) -> DataFrame:
    """Apply a function to batches of the taken columns and the kept ones after them.

    The result has the kept columns and then the added ones. Columns are named by position, p0, p1 …, because a name can
    hold dots or backquotes, which Spark resolves in its own way, or be that of two columns.
    """
    from pyspark.sql import functions as f
    from pyspark.sql.types import StructField, StructType

    every = df.toDF(*(f"c{n}" for n in range(len(df.columns))))
    chosen = every.select(*(f.col(f"c{place}").alias(f"p{n}") for n, place in enumerate((*taken, *kept_columns))))
    expressed = function.as_expression(chosen)
    if expressed is not None:
        return expressed
    there = chosen.schema.fields[len(taken) :]
    fields = [StructField(f"p{n}", field.dataType, field.nullable, field.metadata) for n, field in enumerate(there)]
    fields += [StructField(f"p{n}", type_) for n, type_ in enumerate(added, len(fields))]
    return chosen.mapInArrow(function, StructType(fields))


def to_spark_types(types: Sequence[pa.DataType]) -> list[DataType]:
    """Return the Spark types of Arrow types."""
    from pyspark.sql.pandas.types import from_arrow_type

    # Spark 4.1 and older would convert a timestamp without a time zone to a point in time
    return [from_arrow_type(type_, prefer_timestamp_ntz=True) for type_ in types]


def _arrow_type(type_: DataType) -> pa.DataType:
    from pyspark.sql.pandas.types import to_arrow_type

    # Spark 4.3 has an argument for the time zone, earlier versions do not
    zone: dict[str, Any] = {"timezone": "UTC"} if "timezone" in signature(to_arrow_type).parameters else {}
    return to_arrow_type(type_, **zone)


def _column_position(df: DataFrame, name: str) -> int:
    positions = [place for place, other in enumerate(df.columns) if other == name]
    if not positions:
        raise Invalid(f"there is no column {name!r}: the DataFrame has {', '.join(df.columns)}")
    if len(positions) > 1:
        raise Invalid(f"the DataFrame has {len(positions)} columns {name!r}: rename them first")
    return positions[0]


def _check_binary(df: DataFrame, place: int) -> None:
    from pyspark.sql.types import BinaryType, NullType

    field = df.schema.fields[place]
    if not isinstance(field.dataType, BinaryType | NullType):
        raise Invalid(f"framed records are a binary column, {field.name!r} is {field.dataType.simpleString()}")


def _header_positions(df: DataFrame, name: str | None, *, needed: bool) -> list[int]:
    """Return the position of the column with headers, or an empty list if the wire does not need headers.

    Raises `Invalid` if the wire needs headers and no column is named.
    """
    if name is None and needed:
        raise Invalid("this wire has ids in record headers: name their column, such as headers='headers'")
    return [_column_position(df, name)] if name is not None and needed else []


def _check_names(names: Sequence[str], added: Sequence[str]) -> None:
    """Raise `Invalid` when a new column has the name of another one."""
    for name, times in Counter(added).items():
        if times > 1 or name in names:
            raise Invalid(f"the DataFrame has a column {name!r} already: choose another name")


def _check_engine(name: str) -> None:
    """Raise on the driver what every task would raise. Whether the session has the engine `jvm` is checked later."""
    from stele.spark.engines import get_engine

    if name != "jvm":
        get_engine(name)


def _find_writer(
    registry: RegistryLike, subject: str, schema: str | Schema | None, *, auto_register: bool
) -> ResolvedSchema:
    if schema is None:
        return pin_schemas(registry, subject).reader
    wanted = Schema(schema, _format_of(registry, subject)) if isinstance(schema, str) else schema
    if isinstance(registry, SchemaSnapshot):
        for known in registry.schemas:
            if known.subject == subject and known.text == wanted.text:
                return known
        raise ContentNotFound(f"of that text in the snapshot's subject {subject!r}")
    client = get_client(registry)
    call = client.register if auto_register else client.lookup
    return client.resolve(call(subject, wanted).id, context=split_name(subject).context)


def _format_of(registry: RegistryLike, subject: str) -> str:
    """Return the format of a subject's newest version; AVRO if the subject has none yet."""
    try:
        return pin_schemas(registry, subject).reader.schema_type
    except NotFound:
        return "AVRO"


class DecodeTask:
    """Decodes batches whose first column is the raw one, followed by its headers if there are any.

    The result has the other columns, the value, and the id and error if they are wanted.
    """

    def __init__(self, reading: ReadPlan, *, with_headers: bool, with_id: bool, fail_fast: bool) -> None:
        self._reading = reading
        self._with_headers, self._with_id, self._fail_fast = with_headers, with_id, fail_fast

    def added_types(self) -> list[ArrowType]:
        """Return the types of the columns it adds. Errors in the reader's schema are raised here, on the driver."""
        from stele.spark.engines.base import error_type

        types = [self._reading.type]
        if self._with_id:
            types.append(self._reading.wire.id_type)
        if not self._fail_fast:
            types.append(error_type(self._reading.wire.id_type))
        return types

    def as_expression(self, df: DataFrame) -> DataFrame | None:
        """Return the result for a whole DataFrame by the engine `jvm`, or None if another engine is chosen."""
        from stele.spark.decode.jvm_expressions import ERROR, ID, VALUE, decode_column

        raw, *kept_columns = df.columns
        column = decode_column(df.sparkSession, df[raw], self._reading, fail_fast=self._fail_fast)
        if column is None:
            return None
        parts = [VALUE, *([ID] if self._with_id else []), *([] if self._fail_fast else [ERROR])]
        result = df.select(*kept_columns, column.alias("made")).select(
            *kept_columns, *(f"made.{part}" for part in parts)
        )
        return result.toDF(*(f"p{place}" for place in range(len(result.columns))))

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Decode the batches of one partition; Spark calls this."""
        import pyarrow as pa

        from stele.spark.engines.base import error_structs, raise_first_error

        decoder = self._reading.decoder()
        taken = 2 if self._with_headers else 1
        for batch in batches:
            decoded = decoder.decode(*batch.columns[:taken])
            columns = [*batch.columns[taken:], decoded.values]
            if self._with_id:
                columns.append(decoded.schema_ids)
            if self._fail_fast:
                raise_first_error(decoded)
            else:
                columns.append(error_structs(decoded))
            yield pa.RecordBatch.from_arrays(columns, [f"p{place}" for place in range(len(columns))])


class EncodeTask:
    """Encodes batches whose first columns are those to encode.

    The result has the other columns, the framed record, and its headers.

    fields  names of those columns in the record; None when the one column is the whole value.
    """

    def __init__(self, writing: WritePlan, fields: Sequence[str] | None) -> None:
        self._writing = writing
        self._fields = None if fields is None else tuple(fields)

    def check_columns(self, types: Sequence[ArrowType]) -> None:
        """Raise `EncodeError` on the driver for columns that do not fit the schema, before any row is encoded."""
        import pyarrow as pa

        from stele.spark.decode.formats import check_columns

        value = self._as_one_column([pa.nulls(0, type_) for type_ in types])
        if _is_avro(self._writing.writer):
            self._check_avro(value)
        else:
            check_columns(self._writing.writer, value, self._writing.message, self._writing.recursion)

    def _check_avro(self, value: Column) -> None:
        from stele.spark.engines.inputs import ColumnInputs
        from stele.spark.engines.resolve import Resolver

        schema = parse_avro(self._writing.writer)
        root = Resolver(schema, for_spark=True, recursion=self._writing.recursion).root
        if self._fields is not None and isinstance(schema.root, AvroRecord):
            there = {child.name for child in root.children}
            missing = [
                f.name
                for f in schema.root.fields
                if f.name in there and f.name not in self._fields and not _is_nullable(f.type)
            ]
            if missing:
                raise EncodeError(f"the schema's field {missing[0]!r} has no column, and may not be null")
        ColumnInputs.from_column(root, value)

    def as_expression(self, df: DataFrame) -> DataFrame | None:
        """Return the result for a whole DataFrame by the engine `jvm`, or None if another engine is chosen."""
        from stele.spark.decode.jvm_expressions import encode_columns

        taken = 1 if self._fields is None else len(self._fields)
        column = encode_columns(df, df.columns[:taken], self._writing, self._fields)
        if column is None:
            return None
        result = df.select(*df.columns[taken:], column)
        return result.toDF(*(f"p{place}" for place in range(len(result.columns))))

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Encode the batches of one partition; Spark calls this."""
        import pyarrow as pa

        from stele.spark.decode.records import RecordEncoder

        encoder = RecordEncoder(self._writing)
        taken = 1 if self._fields is None else len(self._fields)
        for batch in batches:
            columns = [*batch.columns[taken:], *encoder.encode(self._as_one_column(batch.columns[:taken]))]
            yield pa.RecordBatch.from_arrays(columns, [f"p{place}" for place in range(len(columns))])

    def _as_one_column(self, columns: Sequence[Column]) -> Column:
        import pyarrow as pa

        if self._fields is None:
            return columns[0]
        return pa.StructArray.from_arrays(columns, names=list(self._fields))


def field_names(
    writer: ResolvedSchema, columns: Sequence[str], message: str = "", recursion: int = 0
) -> Sequence[str] | None:
    """Return the columns as fields of the record, or None if the schema is not a record and one column is its value.

    Raises `Invalid` if there are several columns for such a schema, `DataError` for a schema of a format without
    columns.
    """
    if _is_avro(writer):
        root = parse_avro(writer).root
        branches = root.branches if isinstance(root, AvroUnion) else (root,)
        is_record, kind = any(isinstance(branch, AvroRecord) for branch in branches), root.kind
    else:
        import pyarrow as pa

        from stele.spark.decode.formats import type_for

        type_ = type_for(writer, message, recursion)
        is_record, kind = pa.types.is_struct(type_), str(type_)
    if is_record:
        return columns
    if len(columns) != 1:
        raise Invalid(f"the schema is not a record but {kind}: name the column that holds its value")
    return None


def _is_avro(schema: ResolvedSchema) -> bool:
    return schema.schema_type == "AVRO"


def _is_nullable(node: AvroType) -> bool:
    return node.kind == "null" or (
        isinstance(node, AvroUnion) and any(branch.kind == "null" for branch in node.branches)
    )
