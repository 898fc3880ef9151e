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
from stele.spark.stream_sql.statements import ColumnWanted
from stele.spark.stream_sql.stream import DEAD, Made, Stream, stream_of
from stele.spark.stream_sql.tokens import quote

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_STREAMS: Final[WeakKeyDictionary[Any, dict[str, Stream]]] = WeakKeyDictionary()


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
class Description:
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
    columns: Sequence[ColumnWanted | tuple[str, str]] = (),
    registry: RegistryLike | None = None,
    replace: bool = False,
    if_not_exists: bool = False,
    **more: str,
) -> Stream:
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
    if not replace and (held is not None or spark.catalog.tableExists(quote(name))):
        kind = "stream" if held is not None else "table or view"
        raise AlreadyExists(f"there is a {kind} {name!r} already: CREATE OR REPLACE STREAM takes its place")
    wanted = [each if isinstance(each, ColumnWanted) else ColumnWanted(*each) for each in columns]
    stream = stream_of(name, {**(options or {}), **more}, spark.conf.getAll, wanted, registry)
    made = stream.made(spark)
    if held is not None:
        _drop_views(spark, held)
    _view(spark, name, made)
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


def list_streams(spark: SparkSession) -> list[Stream]:
    """The streams of a session by name."""
    return [stream for _, stream in sorted(_STREAMS.get(spark, {}).items())]


def stream_named(spark: SparkSession, name: str) -> Stream:
    """The stream of a name; case does not count. Raises `StreamNotFound`."""
    found = _STREAMS.get(spark, {}).get(name.lower())
    if found is None:
        raise StreamNotFound(name)
    return found


def read_stream(spark: SparkSession, name: str, *, streaming: bool = True) -> DataFrame:
    """A stream as a streaming DataFrame, or as it is now, with the columns of the newest version.

    `name$dead` are the records that could not be read. Raises `StreamNotFound`, and what `Stream.made` raises.
    """
    plain, dead = _plain(name)
    stream = stream_named(spark, plain)
    made = stream.made(spark, streaming=streaming)
    table = made.dead if dead else made.table
    if table is None:
        raise StreamNotFound(name)
    return table


def describe_stream(spark: SparkSession, name: str) -> Description:
    """What a stream is now. Raises `StreamNotFound`, and what `Stream.made` raises."""
    stream = stream_named(spark, name)
    made = stream.made(spark)
    columns = [
        DescribedColumn(field.name, field.dataType.simpleString(), field.metadata.get("comment", ""))
        for field in made.table.schema.fields
    ]
    reader = made.reader
    return Description(
        stream.name,
        tuple(columns),
        stream.subjects,
        reader.version if reader else None,
        reader.id if reader else None,
        reader.schema_type if reader else None,
        str(stream.reading.place),
        stream.reading.mode,
    )


def view_names(spark: SparkSession) -> frozenset[str]:
    """Names of streams and of their dead letters, in lower case."""
    known = _STREAMS.get(spark, {})
    return frozenset(known) | {name + DEAD for name, stream in known.items() if stream.reading.mode == "DEADLETTER"}


def refresh(spark: SparkSession, batch: Iterable[str], streaming: Iterable[str] = ()) -> None:
    """Make the views of these names anew, so that queries see the newest version and what has come since.

    streaming  names of which the streaming view is wanted. Raises what `Stream.made` raises.
    """
    for names, as_stream in ((batch, False), (streaming, True)):
        for plain in sorted({_plain(name)[0].lower() for name in names}):
            stream = stream_named(spark, plain)
            _view(spark, stream.name, stream.made(spark, streaming=as_stream), STREAMING if as_stream else "")


def _plain(name: str) -> tuple[str, bool]:
    """The stream a name is of, and whether it is that of its dead letters."""
    plain = name[: -len(DEAD)] if name.lower().endswith(DEAD) else name
    return plain, plain != name


def _view(spark: SparkSession, name: str, made: Made, suffix: str = "") -> None:
    del spark  # the DataFrames know it
    made.table.createOrReplaceTempView(quote(name + suffix))
    if made.dead is not None:
        made.dead.createOrReplaceTempView(quote(name + DEAD + suffix))


def _drop_views(spark: SparkSession, stream: Stream) -> None:
    for suffix in ("", STREAMING, DEAD, DEAD + STREAMING):
        spark.sql(f"DROP VIEW IF EXISTS {quote(stream.name + suffix)}")
