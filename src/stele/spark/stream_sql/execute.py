"""Run SQL statements: Stele runs those about streams; Spark runs all others, with the streams they name as views.

`INSERT INTO` a stream matches columns with fields, casts them, encodes records and writes them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from stele.errors import Invalid
from stele.spark.functions import to_registry, to_spark_types
from stele.spark.session import require_spark
from stele.spark.stream_sql.options import OptionInvalid
from stele.spark.stream_sql.parser import (
    CreateStream,
    DescribeStream,
    DropStream,
    InsertInto,
    ShowStreams,
    SparkStatement,
    parse_statement,
)
from stele.spark.stream_sql.query_rewrite import RewrittenQuery, rewrite_query
from stele.spark.stream_sql.stream_catalog import (
    ColumnInvalid,
    RegisteredStream,
    StreamNotFound,
    can_cast_losslessly,
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
    from pyspark.sql.types import DataType

_RECORD: Final = "$raw"
_HEADERS: Final = "$headers"


def insert_rows(spark: SparkSession, stream: RegisteredStream, df: DataFrame, columns: Sequence[str] = ()) -> None:
    """Append the rows of a batch DataFrame to a stream, encoded with the newest version.

    Raises what `to_registry` raises, and the errors below.

    Args:
        spark: The session.
        stream: The stream to write to.
        df: The rows.
        columns: The fields that the columns of the DataFrame fill, in order; empty means all fields of the schema in
            their order. `_x` is the column x of the source beside the record, unless the schema has a field `_x`.

    Raises:
        Invalid: If a column does not exist, columns are missing, or the stream cannot be written.
        EncodeError: If a type does not fit its field.
    """
    how = stream.options
    if len(how.subjects) != 1 or how.reader != "latest":
        raise Invalid("INSERT needs a stream of one subject, read by its newest version")
    if df.isStreaming:
        raise Invalid("INSERT cannot write a streaming query: use to_registry and writeStream")
    fields = _newest_columns(stream)
    extra_columns, complete = how.connector.writable_columns(spark)
    targets = _match_targets(
        columns or list(fields), len(df.columns), fields, [f"_{name}" for name in extra_columns], stream.name
    )
    if complete and (missing := [name for name in extra_columns if f"_{name}" not in targets]):
        raise Invalid(f"{how.connector} have further columns: name _{', _'.join(missing)} in the list, too")
    written = to_registry(
        _cast_columns(df, targets, fields),
        subject=how.subjects[0],
        registry=stream.registry,
        columns=[name for name in targets if name in fields],
        keep=[name for name in targets if name not in fields],
        into=_RECORD,
        headers_into=_HEADERS,
        wire=how.wire,
        message=how.message,
        rules=how.rules,
        topic=how.topic,
        engine=how.engine,
        patience=how.patience,
        recursion=how.recursion,
    )
    names = {_RECORD: how.connector.column, _HEADERS: how.connector.headers or "headers"}
    how.connector.write(written.toDF(*(names.get(name, name[1:]) for name in written.columns)))


def _newest_columns(stream: RegisteredStream) -> dict[str, DataType]:
    """Return the columns of the newest version with their types."""
    from pyspark.sql.types import StructType

    from stele.spark.decode.records import plan_read

    how = stream.options
    plan = plan_read(
        stream.registry,
        how.subjects[0],
        message=how.message,
        wire=how.wire,
        rules="ignore",
        patience=how.patience,
        recursion=how.recursion,
    )
    kind = to_spark_types([plan.type])[0]
    return {field.name: field.dataType for field in kind} if isinstance(kind, StructType) else {"value": kind}


def _match_targets(
    columns: Sequence[str], count: int, fields: dict[str, DataType], source_columns: Sequence[str], name: str
) -> list[str]:
    """Return the name that each column fills: a field, or a column of the source with the prefix `_`."""
    if len(columns) != count:
        raise Invalid(f"the query has {count} columns, but {len(columns)} are to be filled: {', '.join(columns)}")
    known = {each.lower(): each for each in (*source_columns, *fields)}
    targets = []
    for column in columns:
        target = known.get(column.lower())
        if target is None:
            raise Invalid(f"{name} has no column {column!r} to fill: it has {', '.join([*fields, *source_columns])}")
        if target in targets:
            raise Invalid(f"the column {column!r} is listed twice")
        targets.append(target)
    return targets


def _cast_columns(df: DataFrame, targets: Sequence[str], fields: dict[str, DataType]) -> DataFrame:
    """Rename the columns and cast them to their fields' types, if both are numbers or the cast loses nothing."""
    from pyspark.sql import functions as f
    from pyspark.sql.types import NumericType

    placed = df.toDF(*(f"c{place}" for place in range(len(targets))))
    columns = []
    for place, name in enumerate(targets):
        column, source_type = f.col(f"c{place}"), placed.schema[place].dataType
        wanted = fields.get(name)
        numbers = isinstance(source_type, NumericType) and isinstance(wanted, NumericType)
        if wanted is not None and source_type != wanted and (numbers or can_cast_losslessly(source_type, wanted)):
            column = column.cast(wanted)
        columns.append(column.alias(name))
    return placed.select(*columns)


_DESCRIBED: Final = "col_name string, data_type string, comment string"
_SHOWN: Final = "name string, subject string, records string, mode string"


def sql(spark: SparkSession, text: str, args: Mapping[str, Any] | None = None) -> DataFrame:
    """Run one SQL statement, of Stele or of Spark, and return its rows. `SELECT STREAM` returns a streaming DataFrame.

    args  values for `:names` in a Spark statement

    Raises `StatementInvalid`, with line and column, for a syntax error, a wrong option or column, and more than one
    statement. Also raises what `create_stream`, `drop_stream`, `describe_stream` and `insert_rows` raise, and Spark's
    own errors for its statements.
    """
    pieces = split_statements(text)
    if len(pieces) != 1:
        at = pieces[1].tokens[0].start if pieces else len(text)
        why = f"{len(pieces)} statements, where one was expected: `script` runs several" if pieces else "no statement"
        raise StatementInvalid(why, *line_and_column(text, at))
    return run_statement(spark, pieces[0], args)


def script(spark: SparkSession, text: str) -> list[DataFrame]:
    """Run statements separated by `;` and return the rows of each. The first error stops the script; see `sql`."""
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
    """Return the query that a statement passes to Spark, with the mapping of its positions to the original text.

    For an INSERT into a stream this is only the query after INSERT.
    """
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
    """Return the error with the position of the name in the statement."""
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
    description = describe_stream(spark, name)
    facts = {
        "Subject": description.subjects,
        "Version": description.version,
        "Schema id": description.schema_id if description.encodings is None else None,
        "Encoding ids": None if description.encodings is None else _format_encodings(description.encodings),
        "Format": description.language,
        "Records": description.place,
        "Mode": description.mode,
    }
    rows = [(column.name, column.type, column.comment) for column in description.columns]
    rows += [("", "", ""), ("# Stream", description.name, "")]
    rows += [(label, str(value), "") for label, value in facts.items() if value is not None]
    return spark.createDataFrame(rows, _DESCRIBED)


def _format_encodings(encodings: Sequence[tuple[int, str]]) -> str:
    return ", ".join(f"{number} ({codec})" if codec else str(number) for number, codec in encodings) or "none so far"


def _run_insert(
    spark: SparkSession, piece: StatementText, statement: InsertInto, args: Mapping[str, Any] | None
) -> DataFrame:
    stream = get_stream(spark, statement.name)
    df = _run_query(spark, rewrite_for_spark(spark, piece), args)
    insert_rows(spark, stream, df, df.columns if statement.by_name else statement.columns)
    refresh_views(spark, [stream.name])
    return _empty_result(spark)


def _empty_result(spark: SparkSession) -> DataFrame:
    from pyspark.sql.types import StructType

    return spark.createDataFrame([], StructType([]))
