"""Statements run: those about streams here, all others by Spark, with the streams they name as views."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from stele.errors import Invalid
from stele.spark.session import require_spark
from stele.spark.stream_sql import insert
from stele.spark.stream_sql.options import OptionInvalid
from stele.spark.stream_sql.parser import parsed
from stele.spark.stream_sql.projection import ColumnInvalid
from stele.spark.stream_sql.query_rewrite import Query, rewritten
from stele.spark.stream_sql.statements import (
    CreateStream,
    DescribeStream,
    DropStream,
    InsertInto,
    ShowStreams,
    SparkStatement,
)
from stele.spark.stream_sql.stream_catalog import (
    StreamNotFound,
    create_stream,
    describe_stream,
    drop_stream,
    list_streams,
    refresh,
    stream_named,
    view_names,
)
from stele.spark.stream_sql.tokens import Piece, StatementInvalid, pieces, place

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_DESCRIBED: Final = "col_name string, data_type string, comment string"
_SHOWN: Final = "name string, subject string, records string, mode string"


def sql(spark: SparkSession, text: str, args: Mapping[str, Any] | None = None) -> DataFrame:
    """Run one statement, about streams or any of Spark's, and give its rows; streaming ones for `SELECT STREAM`.

    args  values for `:names` in a statement of Spark's

    Raises `StatementInvalid` for what cannot be read, and for several statements; `OptionInvalid` and `ColumnInvalid`
    become one, with the place. Else what `create_stream` and its kin raise, and Spark's own errors for its statements.
    """
    found = pieces(text)
    if len(found) != 1:
        at = found[1].tokens[0].start if found else len(text)
        why = f"{len(found)} statements, where one was expected: `script` runs several" if found else "no statement"
        raise StatementInvalid(why, *place(text, at))
    return run(spark, found[0], args)


def script(spark: SparkSession, text: str) -> list[DataFrame]:
    """Run statements parted by `;` and give the rows of each. The first error ends it; see `sql`."""
    return [run(spark, piece) for piece in pieces(text)]


def run(spark: SparkSession, piece: Piece, args: Mapping[str, Any] | None = None) -> DataFrame:
    """Run one statement; see `sql`."""
    require_spark()
    statement = parsed(piece)
    try:
        match statement:
            case CreateStream():
                return _create(spark, piece, statement)
            case DropStream(name, if_exists, sure) if sure or _known(spark, name):
                drop_stream(spark, name, if_exists=if_exists)
                return _nothing(spark)
            case ShowStreams():
                return _show(spark)
            case DescribeStream(name, sure) if sure or _known(spark, name):
                return _describe(spark, name)
            case InsertInto(name, _, _, _, sure) if sure or _known(spark, name):
                return _insert(spark, piece, statement, args)
            case SparkStatement() | DropStream() | DescribeStream() | InsertInto():
                return _spark(spark, rewritten(piece, view_names(spark)), args)
    except StreamNotFound as error:
        raise _here(piece, error.name, error) from None


def query_of(spark: SparkSession, piece: Piece) -> Query:
    """The query a statement hands to Spark, with the way back from places in it: the statement, or that of INSERT."""
    statement = parsed(piece)
    if isinstance(statement, InsertInto) and (statement.sure or _known(spark, statement.name)):
        piece = Piece(piece.text, [token for token in piece.tokens if token.start >= statement.at])
    return rewritten(piece, view_names(spark))


def _spark(spark: SparkSession, query: Query, args: Mapping[str, Any] | None) -> DataFrame:
    refresh(spark, query.batch, query.streaming)
    return spark.sql(query.text, args=dict(args)) if args else spark.sql(query.text)


def _known(spark: SparkSession, name: str) -> bool:
    return name.lower() in view_names(spark)


def _create(spark: SparkSession, piece: Piece, statement: CreateStream) -> DataFrame:
    options: dict[str, str] = {}
    for option in statement.options:
        if option.name in options:
            raise StatementInvalid(f"the option {option.name!r} is given twice", *place(piece.text, option.at))
        options[option.name] = option.value
    try:
        create_stream(
            spark,
            statement.name,
            options,
            columns=statement.columns,
            replace=statement.replace,
            if_not_exists=statement.if_not_exists,
        )
    except OptionInvalid as error:
        places = {option.name: option.at for option in statement.options}
        raise _placed(piece, places.get(error.option), error) from None
    except ColumnInvalid as error:
        places = {column.name: column.at for column in statement.columns}
        raise _placed(piece, places.get(error.column), error) from None
    return _nothing(spark)


def _placed(piece: Piece, at: int | None, error: Invalid) -> Invalid:
    return error if at is None else StatementInvalid(str(error), *place(piece.text, at))


def _here(piece: Piece, name: str, error: StreamNotFound) -> StreamNotFound | StatementInvalid:
    """The error with the place of the name in the statement."""
    for token in piece.tokens:
        if token.name is not None and token.name.lower() == name.lower():
            return StatementInvalid(str(error), *place(piece.text, token.start))
    return error


def _show(spark: SparkSession) -> DataFrame:
    rows = [
        (stream.name, stream.subjects, str(stream.reading.place), stream.reading.mode) for stream in list_streams(spark)
    ]
    return spark.createDataFrame(rows, _SHOWN)


def _describe(spark: SparkSession, name: str) -> DataFrame:
    found = describe_stream(spark, name)
    facts = {
        "Subject": found.subjects,
        "Version": found.version,
        "Schema id": found.schema_id,
        "Format": found.language,
        "Records": found.place,
        "Mode": found.mode,
    }
    rows = [(column.name, column.type, column.comment) for column in found.columns]
    rows += [("", "", ""), ("# Stream", found.name, "")]
    rows += [(label, str(said), "") for label, said in facts.items() if said is not None]
    return spark.createDataFrame(rows, _DESCRIBED)


def _insert(spark: SparkSession, piece: Piece, statement: InsertInto, args: Mapping[str, Any] | None) -> DataFrame:
    stream = stream_named(spark, statement.name)
    df = _spark(spark, query_of(spark, piece), args)
    insert.insert(spark, stream, df, df.columns if statement.by_name else statement.columns)
    refresh(spark, [stream.name])
    return _nothing(spark)


def _nothing(spark: SparkSession) -> DataFrame:
    from pyspark.sql.types import StructType

    return spark.createDataFrame([], StructType([]))
