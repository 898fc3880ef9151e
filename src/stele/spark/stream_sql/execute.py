"""Statements run: those about streams here, all others by Spark, with the streams they name as views."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from stele.errors import Invalid
from stele.spark.session import require_spark
from stele.spark.stream_sql import insert
from stele.spark.stream_sql.options import OptionInvalid
from stele.spark.stream_sql.parser import parse_statement
from stele.spark.stream_sql.projection import ColumnInvalid
from stele.spark.stream_sql.query_rewrite import RewrittenQuery, rewrite_query
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
    get_stream,
    list_streams,
    refresh_views,
    view_names,
)
from stele.spark.stream_sql.tokens import StatementInvalid, StatementText, line_and_column, split_statements

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
    found = split_statements(text)
    if len(found) != 1:
        at = found[1].tokens[0].start if found else len(text)
        why = f"{len(found)} statements, where one was expected: `script` runs several" if found else "no statement"
        raise StatementInvalid(why, *line_and_column(text, at))
    return run_statement(spark, found[0], args)


def script(spark: SparkSession, text: str) -> list[DataFrame]:
    """Run statements parted by `;` and give the rows of each. The first error ends it; see `sql`."""
    return [run_statement(spark, piece) for piece in split_statements(text)]


def run_statement(spark: SparkSession, piece: StatementText, args: Mapping[str, Any] | None = None) -> DataFrame:
    """Run one statement; see `sql`."""
    require_spark()
    statement = parse_statement(piece)
    try:
        match statement:
            case CreateStream():
                return _run_create(spark, piece, statement)
            case DropStream(name, if_exists, sure) if sure or _is_stream(spark, name):
                drop_stream(spark, name, if_exists=if_exists)
                return _empty_result(spark)
            case ShowStreams():
                return _run_show(spark)
            case DescribeStream(name, sure) if sure or _is_stream(spark, name):
                return _run_describe(spark, name)
            case InsertInto(name, _, _, _, sure) if sure or _is_stream(spark, name):
                return _run_insert(spark, piece, statement, args)
            case SparkStatement() | DropStream() | DescribeStream() | InsertInto():
                return _run_query(spark, rewrite_query(piece, view_names(spark)), args)
    except StreamNotFound as error:
        raise _at_name(piece, error.name, error) from None


def rewrite_for_spark(spark: SparkSession, piece: StatementText) -> RewrittenQuery:
    """The query a statement hands to Spark, with the way back from places in it: the statement, or that of INSERT."""
    statement = parse_statement(piece)
    if isinstance(statement, InsertInto) and (statement.says_stream or _is_stream(spark, statement.name)):
        piece = StatementText(piece.text, [token for token in piece.tokens if token.start >= statement.at])
    return rewrite_query(piece, view_names(spark))


def _run_query(spark: SparkSession, query: RewrittenQuery, args: Mapping[str, Any] | None) -> DataFrame:
    refresh_views(spark, query.batch, query.streaming)
    return spark.sql(query.text, args=dict(args)) if args else spark.sql(query.text)


def _is_stream(spark: SparkSession, name: str) -> bool:
    return name.lower() in view_names(spark)


def _run_create(spark: SparkSession, piece: StatementText, statement: CreateStream) -> DataFrame:
    options: dict[str, str] = {}
    for option in statement.options:
        if option.name in options:
            raise StatementInvalid(
                f"the option {option.name!r} is given twice", *line_and_column(piece.text, option.at)
            )
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
        raise _with_position(piece, places.get(error.option), error) from None
    except ColumnInvalid as error:
        places = {column.name: column.at for column in statement.columns}
        raise _with_position(piece, places.get(error.column), error) from None
    return _empty_result(spark)


def _with_position(piece: StatementText, at: int | None, error: Invalid) -> Invalid:
    return error if at is None else StatementInvalid(str(error), *line_and_column(piece.text, at))


def _at_name(piece: StatementText, name: str, error: StreamNotFound) -> StreamNotFound | StatementInvalid:
    """The error with the place of the name in the statement."""
    for token in piece.tokens:
        if token.name is not None and token.name.lower() == name.lower():
            return StatementInvalid(str(error), *line_and_column(piece.text, token.start))
    return error


def _run_show(spark: SparkSession) -> DataFrame:
    rows = [
        (stream.name, stream.subjects, str(stream.options.connector), stream.options.mode)
        for stream in list_streams(spark)
    ]
    return spark.createDataFrame(rows, _SHOWN)


def _run_describe(spark: SparkSession, name: str) -> DataFrame:
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


def _run_insert(
    spark: SparkSession, piece: StatementText, statement: InsertInto, args: Mapping[str, Any] | None
) -> DataFrame:
    stream = get_stream(spark, statement.name)
    df = _run_query(spark, rewrite_for_spark(spark, piece), args)
    insert.insert_rows(spark, stream, df, df.columns if statement.by_name else statement.columns)
    refresh_views(spark, [stream.name])
    return _empty_result(spark)


def _empty_result(spark: SparkSession) -> DataFrame:
    from pyspark.sql.types import StructType

    return spark.createDataFrame([], StructType([]))
