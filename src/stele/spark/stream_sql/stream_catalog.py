"""Registered streams and the catalogue of a session: definitions, columns, and the views that queries read.

A statement can list columns of the registered schema. Casts to the listed types lose no value.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast
from weakref import WeakKeyDictionary

from stele.client import ResolvedSchema
from stele.errors import AlreadyExists, Invalid, NotFound
from stele.spark.functions import DecodedSplit, from_registry
from stele.spark.registry import RegistryLike, as_picklable, pin_schemas
from stele.spark.session import require_spark
from stele.spark.stream_sql.options import StreamOptions, resolve_options
from stele.spark.stream_sql.parser import RequestedColumn
from stele.spark.stream_sql.query_rewrite import STREAMING
from stele.spark.stream_sql.tokens import iterate_tokens
from stele.spark.types.metadata import COMMENT
from stele.spark.types.names import quote_name

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import DataType, DecimalType

    from stele.spark.decode.records import Subjects

_TEXTS: Final = ("CHAR", "VARCHAR")
_TYPE_WORDS: Final = dict.fromkeys(_TEXTS, "STRING") | {
    "INT8": "TINYINT",
    "INT16": "SMALLINT",
    "INT32": "INT",
    "INT64": "BIGINT",
    "BYTES": "BINARY",
    "FLOATE": "FLOAT",
}
"""Spark's names for other type names: text types with a length, and the types of RIP-42 that Spark names differently.

Source: docs/protocols/rocketmq.md#types
"""
_DIGITS: Final = {"ByteType": 3, "ShortType": 5, "IntegerType": 10, "LongType": 19}
"""Integer types, narrow ones first, with the number of decimal digits of their greatest value."""
_EXACT: Final = {"FloatType": {"ByteType", "ShortType"}, "DoubleType": {"ByteType", "ShortType", "IntegerType"}}
"""Integer types whose every value a float or a double represents exactly."""
_AS_TEXT: Final = {"BooleanType", "DateType", "TimestampType", "TimestampNTZType", "FloatType", "DoubleType", *_DIGITS}


class ColumnInvalid(Invalid):
    """Raised when a column of a column list is invalid; `column` is its name."""

    def __init__(self, why: str, column: str) -> None:
        super().__init__(why)
        self.column = column

    def __reduce__(self) -> tuple[type[ColumnInvalid], tuple[str, str]]:
        return ColumnInvalid, (str(self), self.column)


def select_columns(df: DataFrame, wanted: Sequence[RequestedColumn], free: Sequence[str], what: str) -> list[Column]:
    """Return the requested columns of a DataFrame, in the requested order.

    Args:
        df: A DataFrame that has the columns under the same names; names are not case-sensitive.
        wanted: The requested columns.
        free: Columns without a schema, whose bytes can be read as text.
        what: The owner of the columns, for error messages.

    Raises:
        ColumnInvalid: If a column is missing, listed twice, or cannot be cast without loss.
    """
    from pyspark.sql import functions as f

    by_name = {field.name.lower(): field for field in df.schema.fields}
    taken: set[str] = set()
    selected = []
    for column in wanted:
        if column.name.lower() in taken:
            raise ColumnInvalid(f"the column {column.name!r} is listed twice", column.name)
        taken.add(column.name.lower())
        field = by_name.get(column.name.lower())
        if field is None:
            raise ColumnInvalid(
                f"{what} has no column {column.name!r}: its columns are {', '.join(df.columns)}", column.name
            )
        kind = _parse_column_type(column)
        text = field.name in free and (_class_name(field.dataType), _class_name(kind)) == ("BinaryType", "StringType")
        if not text and not can_cast_losslessly(field.dataType, kind):
            raise ColumnInvalid(
                f"the column {column.name!r} of {what} is {field.dataType.simpleString()}, which cannot become "
                f"{kind.simpleString()} without loss: declare it as it is, and cast in the query",
                column.name,
            )
        metadata = field.metadata if column.comment is None else {COMMENT: column.comment}
        selected.append(f.col(quote_name(field.name)).cast(kind).alias(column.name, metadata=metadata))
    return selected


def _parse_column_type(column: RequestedColumn) -> DataType:
    """Return the type as Spark parses it. CHAR and VARCHAR become STRING, types of RIP-42 become those of Spark.

    Raises `ColumnInvalid` for a text that is not a type.
    """
    from pyspark.errors import PySparkException
    from pyspark.sql.types import DataType

    try:
        return DataType.fromDDL(_write_spark_type(column.type))
    except PySparkException:
        raise ColumnInvalid(f"{column.type} is not a Spark type", column.name) from None


def _write_spark_type(text: str) -> str:
    """Return a type in Spark's syntax. Field names stay unchanged, even if they are also names of types."""
    tokens = list(iterate_tokens(text))
    words: list[str] = []
    open_: list[str] = []
    at = 0
    while at < len(tokens):
        word, before = tokens[at].word, tokens[at - 1].word if at else ""
        is_field_name = before in {"<", ","} and open_[-1:] == ["STRUCT"]
        words.append(tokens[at].text if is_field_name else _TYPE_WORDS.get(word, tokens[at].text))
        if word == "<":
            open_.append(before)
        elif word == ">" and open_:
            open_.pop()
        elif (
            word in _TEXTS and not is_field_name and [token.word for token in tokens[at + 1 : at + 4 : 2]] == ["(", ")"]
        ):
            at += 3  # the length
        at += 1
    return " ".join(words)


def can_cast_losslessly(source_type: DataType, target_type: DataType) -> bool:
    """Return whether every value of one type can be cast to the other without loss."""
    from pyspark.sql.types import ArrayType, DecimalType, MapType, StructType

    mine, theirs = _class_name(source_type), _class_name(target_type)
    match source_type, target_type:
        case ArrayType(), ArrayType():
            return can_cast_losslessly(source_type.elementType, target_type.elementType)
        case MapType(), MapType():
            return can_cast_losslessly(source_type.keyType, target_type.keyType) and can_cast_losslessly(
                source_type.valueType, target_type.valueType
            )
        case StructType(), StructType():
            return [field.name.lower() for field in source_type] == [
                field.name.lower() for field in target_type
            ] and all(
                can_cast_losslessly(one.dataType, other.dataType)
                for one, other in zip(source_type, target_type, strict=True)
            )
        case DecimalType(), DecimalType():
            return _fits_decimal(source_type.precision - source_type.scale, source_type.scale, target_type)
        case _, DecimalType() if mine in _DIGITS:
            return _fits_decimal(_DIGITS[mine], 0, target_type)
        case DecimalType(), _:
            return theirs == "StringType"
    if mine == theirs or mine in {"NullType", "VoidType"}:
        return True
    if theirs == "StringType":
        return mine in _AS_TEXT
    if mine in _DIGITS and theirs in _DIGITS:
        return _DIGITS[mine] <= _DIGITS[theirs]
    return mine in _EXACT.get(theirs, ()) or (mine, theirs) in {
        ("FloatType", "DoubleType"),
        ("DateType", "TimestampType"),
        ("DateType", "TimestampNTZType"),
    }


def _fits_decimal(digits: int, scale: int, wanted: DecimalType) -> bool:
    return wanted.scale >= scale and wanted.precision - wanted.scale >= digits


def _class_name(kind: Any) -> str:
    return type(kind).__name__


DEAD: Final = "$dead"
"""Suffix of the view with the records of a stream that could not be read, in the mode DEADLETTER."""
ID, ERROR = "_schema_id", "_error"
"""Columns beside the record: the id of the writer's schema, or the wire's substitute, and the error of the record."""

# internal names, which no source column can have: those get the prefix `_`
_VALUE, _ID, _RAW = "$value", "$id", "$raw"


@dataclass(frozen=True, slots=True)
class StreamTables:
    """The tables of a stream, with the columns of the registry's present version.

    table   one row for each record
    dead    the records that could not be read, None unless mode is DEADLETTER
    reader  the version that the columns come from; None with several subjects, or none
    """

    table: DataFrame
    dead: DataFrame | None
    reader: ResolvedSchema | None


@dataclass(frozen=True)
class RegisteredStream:
    """A stream with its name. `columns` are the requested columns; empty means all. Made by `make_stream`."""

    name: str
    options: StreamOptions
    registry: RegistryLike
    columns: tuple[RequestedColumn, ...] = ()

    @property
    def subjects(self) -> str:
        """The subjects it is read by, separated by commas, `*` for any."""
        return ", ".join(self.options.subjects) or "*"

    def make_tables(self, spark: SparkSession, *, streaming: bool = False) -> StreamTables:
        """Return the tables of the stream, with the columns of the version that is newest now.

        Raises `SubjectNotFound`, `VersionNotFound`, `RegistryUnreachable`, `DataError`, `RulesRefused`, `Invalid`,
        `NotFound`, `NotInstalled`, and what Spark raises for a source that it cannot read.
        """
        how = self.options
        raw = self._rename_columns(how.connector.read(spark, streaming=streaming))
        reader = self._resolve_reader()
        several = len(how.subjects) != 1
        decoded = from_registry(
            raw,
            _RAW,
            subject=self._subject_argument(),
            registry=self.registry,
            reader=reader or "latest",
            mode=cast("Any", how.mode),
            wire=how.wire,
            headers=f"_{how.connector.headers}" if how.connector.headers else None,
            message=how.message,
            rules=how.rules,
            topic=how.topic,
            engine=how.engine,
            into=_VALUE,
            id_column=_ID,
            patience=how.patience,
            recursion=how.recursion,
        )
        split = decoded if isinstance(decoded, DecodedSplit) else None
        table = self._select_table(split.good if split else decoded, reader)
        dead = _select_dead(split.dead, how.connector.column) if split else None
        return StreamTables(table, dead, None if several else reader)

    def _rename_columns(self, df: DataFrame) -> DataFrame:
        """Return the source's columns with `_` before their names; the column with the records becomes `$raw`."""
        column = self.options.connector.column
        if column not in df.columns:
            raise Invalid(
                f"{self.options.connector} have no column {column!r}: "
                f"set the option column to one of {', '.join(df.columns)}"
            )
        return df.toDF(*(_RAW if name == column else f"_{name}" for name in df.columns))

    def _subject_argument(self) -> Subjects:
        names = self.options.subjects
        return names[0] if len(names) == 1 else list(names) or None

    def _resolve_reader(self) -> ResolvedSchema | None:
        """Return the version that the columns come from, checked against `format.type`.

        None if the stream has several subjects, or none.
        """
        how = self.options
        if len(how.subjects) != 1:
            if how.reader != "latest" or how.format_type:
                raise Invalid(
                    "reader and format.type need a single subject: several subjects are read by their newest versions"
                )
            return None
        reader = pin_schemas(self.registry, how.subjects[0], how.reader, patience=how.patience).reader
        if how.format_type and _format_name(how.format_type) != reader.schema_type:
            raise Invalid(
                f"format.type is {how.format_type}, and version {reader.version} of {how.subjects[0]!r} is "
                f"{reader.schema_type}"
            )
        return reader

    def _select_table(self, df: DataFrame, reader: ResolvedSchema | None) -> DataFrame:
        """Return the record's fields as columns, then the other columns of the source whose names are free."""
        from pyspark.sql import functions as f
        from pyspark.sql.types import StructType

        from stele.spark.types import with_comments

        kind = df.schema[_VALUE].dataType
        extras: dict[str, Column] = {}
        names: list[str] = []
        if isinstance(kind, StructType):
            names = kind.names
            documented = kind if reader is None else with_comments(kind, reader, self.options.message)
            columns = [
                f.col(f"{quote_name(_VALUE)}.{quote_name(field.name)}").alias(field.name, metadata=field.metadata)
                for field in documented.fields
            ]
        else:
            names, columns = ["value"], [f.col(quote_name(_VALUE)).alias("value")]
        taken = {name.lower() for name in names}
        sources = {ID: _ID, ERROR: f"{_VALUE}_error"} | {name: name for name in df.columns if name.startswith("_")}
        for name, source in sources.items():
            if source in df.columns and name.lower() not in taken:
                taken.add(name.lower())
                extras[name] = f.col(quote_name(source)).alias(name)
        wide = df.select(*columns, *extras.values())
        if self.columns:
            version = f", version {reader.version}," if reader else ""
            return wide.select(*select_columns(wide, self.columns, list(extras), f"{self.subjects!r}{version}"))
        return wide if self.options.extras else wide.select(*map(quote_name, [*names, *({ERROR} & extras.keys())]))


def _select_dead(df: DataFrame, column: str) -> DataFrame:
    """Return the records that could not be read: the error, the bytes, and the other columns of the source."""
    from pyspark.sql import functions as f

    sources = {ERROR: f"{_VALUE}_error", f"_{column}": _RAW}
    sources |= {name: name for name in df.columns if name.startswith("_") and name not in sources}
    return df.select(*(f.col(quote_name(own)).alias(name) for name, own in sources.items()))


def make_stream(
    name: str,
    options: Mapping[str, str],
    settings: Mapping[str, str],
    columns: Sequence[RequestedColumn] = (),
    registry: RegistryLike | None = None,
) -> RegisteredStream:
    """Return a stream with this name; see `options.resolve_options`. `registry` overrides the option."""
    how = resolve_options(name, options, settings)
    if registry is None and not how.registry:
        raise Invalid("no registry given: set the option registry or stele.registry = 'http://…'")
    return RegisteredStream(name, how, as_picklable(registry if registry is not None else how.registry), tuple(columns))


def _format_name(word: str) -> str:
    """Return the registry's name of a format for the name that another system uses."""
    plain = word.partition("-")[0].removesuffix("_SR")
    return {"PROTO": "PROTOBUF", "JSONSCHEMA": "JSON"}.get(plain, plain)


_STREAMS: Final[WeakKeyDictionary[Any, dict[str, RegisteredStream]]] = WeakKeyDictionary()


class StreamNotFound(NotFound):
    """Raised when this session has no stream of that name."""

    def __init__(self, name: str) -> None:
        super().__init__(f"there is no stream {name!r} in this session")
        self.name = name

    def __reduce__(self) -> tuple[type[StreamNotFound], tuple[str]]:
        return StreamNotFound, (self.name,)


class DescribedColumn(NamedTuple):
    """A column of a stream; its type is in Spark's syntax."""

    name: str
    type: str
    comment: str


@dataclass(frozen=True, slots=True)
class StreamDescription:
    """The present state of a stream.

    Attributes:
        name: Its name.
        columns: Its columns, with the documentation of their fields as comments.
        subjects: The subjects it is read by.
        version: Version of the schema that the columns come from; None with several subjects, or none.
        schema_id: Id of that schema.
        encodings: Of a Pravega stream, the encoding ids of that version, each with its codec ("" for none).
        language: Schema language of that schema.
        place: Description of where its records are.
        mode: What happens to bad records.
    """

    name: str
    columns: tuple[DescribedColumn, ...]
    subjects: str
    version: int | None
    schema_id: int | None
    encodings: tuple[tuple[int, str], ...] | None
    language: str | None
    place: str
    mode: str


def create_stream(
    spark: SparkSession,
    name: str,
    options: Mapping[str, str] | None = None,
    *,
    columns: Sequence[RequestedColumn | tuple[str, str]] = (),
    registry: RegistryLike | None = None,
    replace: bool = False,
    if_not_exists: bool = False,
    **more: str,
) -> RegisteredStream:
    """Create a stream and the views of its name, as `CREATE STREAM name (columns) WITH (options)` does.

    options, more   see `stele.spark.stream_sql.options.OPTIONS`; `_` is `-`, as in pravega_stream="scope/stream"
    columns         the columns to keep, with their types in Spark's syntax; empty keeps all
    registry        overrides the option; it can be a function that opens a client with credentials
    replace         replace an existing stream or view of that name
    if_not_exists   leave an existing stream unchanged

    Raises `AlreadyExists`, `OptionInvalid`, `ColumnInvalid`, and what `RegisteredStream.make_tables` raises.
    """
    require_spark()
    known = _STREAMS.setdefault(spark, {})
    existing_stream = known.get(name.lower())
    if existing_stream is not None and if_not_exists:
        return existing_stream
    if not replace and (existing_stream is not None or spark.catalog.tableExists(quote_name(name))):
        kind = "stream" if existing_stream is not None else "table or view"
        raise AlreadyExists(f"there is a {kind} {name!r} already: CREATE OR REPLACE STREAM replaces it")
    wanted = [each if isinstance(each, RequestedColumn) else RequestedColumn(*each) for each in columns]
    stream = make_stream(name, {**(options or {}), **more}, spark.conf.getAll, wanted, registry)
    tables = stream.make_tables(spark)
    if existing_stream is not None:
        _drop_views(spark, existing_stream)
    _create_views(spark, name, tables)
    known[name.lower()] = stream
    return stream


def drop_stream(spark: SparkSession, name: str, *, if_exists: bool = False) -> bool:
    """Delete a stream's definition and its views, and return whether there was one. Its records stay.

    Raises `StreamNotFound`, unless `if_exists` is set.
    """
    stream = _STREAMS.get(spark, {}).pop(name.lower(), None)
    if stream is None and not if_exists:
        raise StreamNotFound(name)
    if stream is not None:
        _drop_views(spark, stream)
    return stream is not None


def list_streams(spark: SparkSession) -> list[RegisteredStream]:
    """Return the streams of a session, sorted by name."""
    return [stream for _, stream in sorted(_STREAMS.get(spark, {}).items())]


def get_stream(spark: SparkSession, name: str) -> RegisteredStream:
    """Return the stream of a name, which is not case-sensitive. Raises `StreamNotFound`."""
    stream = _STREAMS.get(spark, {}).get(name.lower())
    if stream is None:
        raise StreamNotFound(name)
    return stream


def read_stream(spark: SparkSession, name: str, *, streaming: bool = True) -> DataFrame:
    """Return a stream as a DataFrame with the columns of the newest version.

    streaming  whether the DataFrame is streaming, or holds the records that are there now

    `name$dead` reads the records that could not be decoded. Raises `StreamNotFound`, and what
    `RegisteredStream.make_tables` raises.
    """
    plain, dead = _split_dead_suffix(name)
    stream = get_stream(spark, plain)
    tables = stream.make_tables(spark, streaming=streaming)
    table = tables.dead if dead else tables.table
    if table is None:
        raise StreamNotFound(name)
    return table


def describe_stream(spark: SparkSession, name: str) -> StreamDescription:
    """Return the present state of a stream. Raises `StreamNotFound`, and what `RegisteredStream.make_tables` raises."""
    from stele.spark.wires import Pravega, get_wire

    stream = get_stream(spark, name)
    tables = stream.make_tables(spark)
    columns = [
        DescribedColumn(field.name, field.dataType.simpleString(), field.metadata.get(COMMENT, ""))
        for field in tables.table.schema.fields
    ]
    reader, wire = tables.reader, get_wire(stream.options.wire)
    encodings = None
    if reader is not None and isinstance(wire, Pravega):
        encodings = tuple(wire.list_encodings(stream.registry, reader.subject, reader.version))
    return StreamDescription(
        stream.name,
        tuple(columns),
        stream.subjects,
        reader.version if reader else None,
        reader.id if reader else None,
        encodings,
        reader.schema_type if reader else None,
        str(stream.options.connector),
        stream.options.mode,
    )


def view_names(spark: SparkSession) -> frozenset[str]:
    """Return the names of streams and of their dead-letter views, in lower case."""
    known = _STREAMS.get(spark, {})
    return frozenset(known) | {name + DEAD for name, stream in known.items() if stream.options.mode == "DEADLETTER"}


def refresh_views(spark: SparkSession, batch: Iterable[str], streaming: Iterable[str] = ()) -> None:
    """Create the views of these names again, so that queries see the newest version and new records.

    streaming  names whose streaming view is needed. Raises what `RegisteredStream.make_tables` raises.
    """
    for names, as_stream in ((batch, False), (streaming, True)):
        for plain in sorted({_split_dead_suffix(name)[0].lower() for name in names}):
            stream = get_stream(spark, plain)
            _create_views(
                spark, stream.name, stream.make_tables(spark, streaming=as_stream), STREAMING if as_stream else ""
            )


def _split_dead_suffix(name: str) -> tuple[str, bool]:
    """Return the stream's name, and whether the name has the suffix of its dead letters."""
    plain = name[: -len(DEAD)] if name.lower().endswith(DEAD) else name
    return plain, plain != name


def _create_views(spark: SparkSession, name: str, tables: StreamTables, suffix: str = "") -> None:
    del spark  # the DataFrames have the session
    tables.table.createOrReplaceTempView(quote_name(name + suffix))
    if tables.dead is not None:
        tables.dead.createOrReplaceTempView(quote_name(name + DEAD + suffix))


def _drop_views(spark: SparkSession, stream: RegisteredStream) -> None:
    for suffix in ("", STREAMING, DEAD, DEAD + STREAMING):
        spark.sql(f"DROP VIEW IF EXISTS {quote_name(stream.name + suffix)}")
