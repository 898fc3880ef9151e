"""The streams of a session: their definitions, and the views through which queries see them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from weakref import WeakKeyDictionary

from stele.errors import AlreadyExists, NotFound
from stele.spark.registry.clients import RegistryLike
from stele.spark.session import require_spark
from stele.spark.stream_sql.query_rewrite import STREAMING
from stele.spark.stream_sql.statements import RequestedColumn
from stele.spark.stream_sql.stream import DEAD, RegisteredStream, StreamTables, make_stream
from stele.spark.stream_sql.tokens import quote_name

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_STREAMS: Final[WeakKeyDictionary[Any, dict[str, RegisteredStream]]] = WeakKeyDictionary()


class StreamNotFound(NotFound):
    """No stream of that name was created in this session."""

    def __init__(self, name: str) -> None:
        super().__init__(f"there is no stream {name!r} in this session")
        self.name = name

    def __reduce__(self) -> tuple[type[StreamNotFound], tuple[str]]:
        return StreamNotFound, (self.name,)


class DescribedColumn(NamedTuple):
    """A column of a stream: its type in Spark's words."""

    name: str
    type: str
    comment: str


@dataclass(frozen=True, slots=True)
class StreamDescription:
    """A stream as it is now.

    version, schema_id, language  of the schema that columns are of; None with several subjects, or none
    """

    name: str
    columns: tuple[DescribedColumn, ...]
    subjects: str
    version: int | None
    schema_id: int | None
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
    """Create a stream and the views of its name: what `CREATE STREAM name (columns) WITH (options)` does.

    options, more   see `stele.spark.stream_sql.options.OPTIONS`; `_` is `-`, so pravega_stream="scope/stream" will do
    columns         to have, with their types in Spark's words, of those there are; none: all
    registry        goes before the option; a function that opens a client, for credentials
    replace         take the place of a stream, or of a view, of that name
    if_not_exists   leave a stream that is there as it is

    Raises `AlreadyExists`, `OptionInvalid`, `ColumnInvalid`, and what `Stream.made` raises.
    """
    require_spark()
    known = _STREAMS.setdefault(spark, {})
    held = known.get(name.lower())
    if held is not None and if_not_exists:
        return held
    if not replace and (held is not None or spark.catalog.tableExists(quote_name(name))):
        kind = "stream" if held is not None else "table or view"
        raise AlreadyExists(f"there is a {kind} {name!r} already: CREATE OR REPLACE STREAM takes its place")
    wanted = [each if isinstance(each, RequestedColumn) else RequestedColumn(*each) for each in columns]
    stream = make_stream(name, {**(options or {}), **more}, spark.conf.getAll, wanted, registry)
    made = stream.make_tables(spark)
    if held is not None:
        _drop_views(spark, held)
    _create_views(spark, name, made)
    known[name.lower()] = stream
    return stream


def drop_stream(spark: SparkSession, name: str, *, if_exists: bool = False) -> bool:
    """Forget a stream and drop its views; its records stay. Whether there was one. Raises `StreamNotFound`."""
    stream = _STREAMS.get(spark, {}).pop(name.lower(), None)
    if stream is None and not if_exists:
        raise StreamNotFound(name)
    if stream is not None:
        _drop_views(spark, stream)
    return stream is not None


def list_streams(spark: SparkSession) -> list[RegisteredStream]:
    """The streams of a session by name."""
    return [stream for _, stream in sorted(_STREAMS.get(spark, {}).items())]


def get_stream(spark: SparkSession, name: str) -> RegisteredStream:
    """The stream of a name; case does not count. Raises `StreamNotFound`."""
    found = _STREAMS.get(spark, {}).get(name.lower())
    if found is None:
        raise StreamNotFound(name)
    return found


def read_stream(spark: SparkSession, name: str, *, streaming: bool = True) -> DataFrame:
    """A stream as a streaming DataFrame, or as it is now, with the columns of the newest version.

    `name$dead` are the records that could not be read. Raises `StreamNotFound`, and what `Stream.made` raises.
    """
    plain, dead = _split_dead_suffix(name)
    stream = get_stream(spark, plain)
    made = stream.make_tables(spark, streaming=streaming)
    table = made.dead if dead else made.table
    if table is None:
        raise StreamNotFound(name)
    return table


def describe_stream(spark: SparkSession, name: str) -> StreamDescription:
    """What a stream is now. Raises `StreamNotFound`, and what `Stream.made` raises."""
    stream = get_stream(spark, name)
    made = stream.make_tables(spark)
    columns = [
        DescribedColumn(field.name, field.dataType.simpleString(), field.metadata.get("comment", ""))
        for field in made.table.schema.fields
    ]
    reader = made.reader
    return StreamDescription(
        stream.name,
        tuple(columns),
        stream.subjects,
        reader.version if reader else None,
        reader.id if reader else None,
        reader.schema_type if reader else None,
        str(stream.options.connector),
        stream.options.mode,
    )


def view_names(spark: SparkSession) -> frozenset[str]:
    """Names of streams and of their dead letters, in lower case."""
    known = _STREAMS.get(spark, {})
    return frozenset(known) | {name + DEAD for name, stream in known.items() if stream.options.mode == "DEADLETTER"}


def refresh_views(spark: SparkSession, batch: Iterable[str], streaming: Iterable[str] = ()) -> None:
    """Make the views of these names anew, so that queries see the newest version and what has come since.

    streaming  names of which the streaming view is wanted. Raises what `Stream.made` raises.
    """
    for names, as_stream in ((batch, False), (streaming, True)):
        for plain in sorted({_split_dead_suffix(name)[0].lower() for name in names}):
            stream = get_stream(spark, plain)
            _create_views(
                spark, stream.name, stream.make_tables(spark, streaming=as_stream), STREAMING if as_stream else ""
            )


def _split_dead_suffix(name: str) -> tuple[str, bool]:
    """The stream a name is of, and whether it is that of its dead letters."""
    plain = name[: -len(DEAD)] if name.lower().endswith(DEAD) else name
    return plain, plain != name


def _create_views(spark: SparkSession, name: str, made: StreamTables, suffix: str = "") -> None:
    del spark  # the DataFrames know it
    made.table.createOrReplaceTempView(quote_name(name + suffix))
    if made.dead is not None:
        made.dead.createOrReplaceTempView(quote_name(name + DEAD + suffix))


def _drop_views(spark: SparkSession, stream: RegisteredStream) -> None:
    for suffix in ("", STREAMING, DEAD, DEAD + STREAMING):
        spark.sql(f"DROP VIEW IF EXISTS {quote_name(stream.name + suffix)}")
