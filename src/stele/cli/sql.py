"""`stele sql`: SQL over registered streams, in a shell or from files, in a Spark session of the command."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final
from urllib.parse import quote

import typer

from stele.cli.connect import Connection, RegistryOptions
from stele.cli.files import STDIN, read_text
from stele.cli.options import expand_dataclass
from stele.cli.output import console, exit_on_error, print_error
from stele.cli.progress import show_job_progress
from stele.errors import Invalid, InvalidRequest, SteleError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from stele.spark.stream_sql.display import FirstRows

_ROWS: Final = 100


class RowShape(StrEnum):
    """Output formats of rows."""

    TEXT = "text"
    JSON = "json"
    CSV = "csv"


@expand_dataclass
def sql(
    registry: RegistryOptions,
    conf: Annotated[
        list[str] | None, typer.Option("--conf", help="Setting of the Spark session, NAME=VALUE; repeatable.")
    ] = None,
    execute: Annotated[
        list[str] | None, typer.Option("--execute", "-e", help="Statements to run, separated by ;. Repeatable.")
    ] = None,
    file: Annotated[
        list[Path] | None, typer.Option("--file", "-f", help="File of statements; - for standard input. Repeatable.")
    ] = None,
    output: Annotated[
        RowShape, typer.Option("--output", "-o", help="Format of rows; JSON prints one object per line.")
    ] = (RowShape.TEXT),
    rows: Annotated[
        int | None, typer.Option("--rows", min=0, help="Maximum number of rows; 0: all. Default for text: 100.")
    ] = None,
    available_now: Annotated[
        bool, typer.Option("--available-now", help="End a streaming SELECT when all available records are read.")
    ] = False,
) -> None:
    """Run SQL over registered streams: CREATE STREAM … WITH (…), SELECT, SELECT STREAM, INSERT, and all of Spark's SQL.

    Without -e and -f, the command is a shell on a terminal, and elsewhere runs the statements from standard input. A
    streaming SELECT prints rows as they arrive, until Ctrl-C. Exit code 2 if a statement fails.
    """
    with exit_on_error():
        settings = dict(_parse_setting(setting) for setting in conf or ())
        texts = [*(read_text(path) for path in file or ()), *(execute or ())]
        shell = not texts and sys.stdin.isatty()
        if not texts and not shell:
            texts = [read_text(STDIN)]
        _check_statements(texts)
        if shell:
            from stele.cli.sql_shell import need_prompt

            need_prompt()
        settings = {"stele.registry": _as_setting(registry.find_connection()), **settings}
        _check_registry(texts, settings)
        spark = _start_session(settings)
        try:
            most = rows if rows is not None else _ROWS if output is RowShape.TEXT else 0
            runner = StatementRunner(spark, output, most, available_now=available_now)
            if shell:
                _run_shell(runner)
            for text in texts:
                runner.run(text)
        finally:
            spark.stop()


def _parse_setting(setting: str) -> tuple[str, str]:
    name, equals, value = setting.partition("=")
    if not name.strip() or not equals:
        raise InvalidRequest(f"--conf {setting!r}: write NAME=VALUE")
    return name.strip(), value


def _as_setting(connection: Connection) -> str:
    """Return a registry as the setting `stele.registry`. Raises `InvalidRequest` for what the setting cannot hold."""
    if connection.token or connection.token_url or connection.ca or connection.client_cert:
        raise InvalidRequest("stele sql can pass a user and a password on to Spark, but no token and no certificates")
    if not connection.user:
        return ",".join(connection.urls)
    own = f"{quote(connection.user, safe='')}:{quote(connection.password, safe='')}@"
    return ",".join(url.replace("://", f"://{own}", 1) for url in connection.urls)


def _check_statements(texts: Iterable[str]) -> None:
    """Raise an error for statements that cannot be parsed, before Spark starts and any statement runs."""
    from stele.spark.stream_sql.parser import parse_statement
    from stele.spark.stream_sql.tokens import split_statements

    for text in texts:
        for piece in split_statements(text):
            parse_statement(piece)


def _check_registry(texts: Iterable[str], settings: Mapping[str, str]) -> None:
    """Check, before Spark starts, that the registry has the subjects of streams that the statements create.

    Statements after a `SET` are not checked, because it may choose another registry. Streams with invalid options are
    skipped: Spark reports them with their position.
    Raises `SubjectNotFound`, `RegistryUnreachable`, `Unauthenticated` and similar errors.
    """
    from stele.cli.records import check_registry
    from stele.spark.stream_sql.options import resolve_options
    from stele.spark.stream_sql.parser import CreateStream, SparkStatement, parse_statement
    from stele.spark.stream_sql.tokens import split_statements

    for statement in (parse_statement(piece) for text in texts for piece in split_statements(text)):
        if isinstance(statement, SparkStatement) and statement.text.lstrip().upper().startswith("SET"):
            return
        if not isinstance(statement, CreateStream):
            continue
        try:
            how = resolve_options(statement.name, {each.name: each.value for each in statement.options}, settings)
        except Invalid:
            continue
        if how.registry:
            check_registry(how.registry, how.subjects)


def _start_session(settings: Mapping[str, str]) -> SparkSession:
    """Start a Spark session for this command.

    Settings whose names do not begin with `spark.` are set after the start, because Spark's launcher drops them.
    """
    from stele.cli.spark_start import start_spark

    own = {name: value for name, value in settings.items() if name.startswith("spark.")}
    spark = start_spark("stele sql", 2, **own)
    for name in settings.keys() - own.keys():
        spark.conf.set(name, settings[name])
    return spark


class StatementRunner:
    """Runs statements and prints their rows: at most `most` of an answer or of a micro-batch; 0 means all."""

    def __init__(self, spark: SparkSession, shape: RowShape, most: int, *, available_now: bool) -> None:
        self._spark = spark
        self._shape = shape
        self._most = most
        self._available_now = available_now

    def run(self, text: str) -> None:
        """Run statements in turn. Raises the `SteleError` of the first that fails."""
        from stele.spark.stream_sql.console import translate_failures
        from stele.spark.stream_sql.execute import run_statement
        from stele.spark.stream_sql.tokens import split_statements

        for piece in split_statements(text):
            with translate_failures(self._spark, piece):
                df = run_statement(self._spark, piece)
                if df.isStreaming:
                    self._follow_stream(df)
                elif df.columns:
                    with show_job_progress(self._spark, "running the query"):
                        rows = self._take_rows(df)
                    self._print_rows(rows, head=True)
                elif self._shape is RowShape.TEXT:
                    _write_lines(["ok"])

    def names(self) -> Iterable[str]:
        """Yield the names of streams and of their columns, as their views have them."""
        from stele.spark.stream_sql.stream_catalog import list_streams
        from stele.spark.stream_sql.tokens import short_name
        from stele.spark.types.names import quote_name

        for stream in list_streams(self._spark):
            yield short_name(stream.name)
            yield from map(short_name, self._spark.table(quote_name(stream.name)).columns)

    def _take_rows(self, df: DataFrame) -> FirstRows:
        from stele.spark.stream_sql.display import take_first_rows

        return take_first_rows(df, self._most)

    def _print_rows(self, rows: FirstRows, *, head: bool) -> None:
        from stele.spark.stream_sql.display import format_csv, format_json_lines, format_rows

        if self._shape is RowShape.JSON:
            _write_lines(format_json_lines(rows))
        elif self._shape is RowShape.CSV:
            _write_lines([format_csv(rows, head=head).removesuffix("\n")] if head or rows.rows else [])
        elif head or rows.rows:
            _write_lines([format_rows(rows, console.width)])

    def _follow_stream(self, df: DataFrame) -> None:
        """Print the rows of a stream as they arrive, until there are no more or Ctrl-C."""
        from stele.spark.stream_sql.console import follow_stream

        def show(batch: DataFrame, number: int) -> None:
            self._print_rows(self._take_rows(batch), head=number == 0)

        if sys.stderr.isatty():
            sys.stderr.write("rows are printed as they arrive; Ctrl-C ends it\n")
        follow_stream(df, show, available_now=self._available_now)


def _write_lines(lines: Iterable[str]) -> None:
    for line in lines:
        sys.stdout.write(line + "\n")
    sys.stdout.flush()


def _run_shell(runner: StatementRunner) -> None:
    """Read statements from the prompt and run them until the user leaves. Errors are printed, and the shell goes on."""
    from stele.cli.sql_shell import read_statements

    for text in read_statements(runner.names):
        try:
            runner.run(text)
        except SteleError as error:
            print_error("error:", error)
        except KeyboardInterrupt:
            print_error("stopped:", "the statement was interrupted")
