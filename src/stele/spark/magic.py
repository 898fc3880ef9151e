"""`%%stele` for notebooks: SQL over registered streams in a cell.

    %load_ext stele.spark.magic

    %%stele --registry http://localhost:8081 -o orders -n 20
    CREATE STREAM orders WITH (topic='orders', bootstrap='broker:9092');
    SELECT * FROM orders

--registry sets `stele.registry` of the session. -o names a variable for the DataFrame of the last statement. -n is the
maximum number of rows that are shown (20). `%stele SELECT …` is the same on one line. The session is the variable
`spark`, else the active session, else a new local one.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from stele.errors import InvalidRequest, NotInstalled, SteleError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_OPTION: Final = re.compile(r"\s*(--registry|-o|-n)(?:\s+|=)(\S+)")
_ROWS: Final = 20


class CellResult:
    """The result of a cell. `df` is the DataFrame; the rows that are shown are read when the result is created."""

    def __init__(self, df: DataFrame, most: int) -> None:
        from stele.spark.stream_sql.display import FirstRows, take_first_rows

        self.df = df
        self._streaming = df.isStreaming
        self._rows = (
            FirstRows(tuple(df.columns), ()) if self._streaming or not df.columns else take_first_rows(df, most)
        )

    def __repr__(self) -> str:
        from stele.spark.stream_sql.display import format_grid

        if self._streaming:
            return f"a stream with the columns {', '.join(self.df.columns)}; -o names it, .writeStream starts it"
        return format_grid(self._rows) if self.df.columns else "done"

    def _repr_html_(self) -> str | None:
        from stele.spark.stream_sql.display import format_html

        return None if self._streaming else format_html(self._rows)


def load_ipython_extension(shell: Any) -> None:
    """Register `%stele` and `%%stele`; called by `%load_ext`. Raises `NotInstalled` without IPython."""
    try:
        from IPython.core.error import UsageError
    except ImportError as missing:
        raise NotInstalled("IPython", "notebook") from missing

    def stele(line: str, cell: str | None = None) -> CellResult | None:
        """Run SQL over registered streams: %%stele [--registry URL] [-o NAME] [-n ROWS]."""
        try:
            return _run_cell(shell, line, cell)
        except SteleError as error:
            # IPython shows a UsageError as one line, without the stack
            raise UsageError(str(error)) from None

    shell.register_magic_function(stele, magic_kind="line_cell", magic_name="stele")


def _run_cell(shell: Any, line: str, cell: str | None) -> CellResult | None:
    from stele.spark.stream_sql.console import translate_failures
    from stele.spark.stream_sql.execute import run_statement
    from stele.spark.stream_sql.tokens import split_statements

    options, rest = _parse_options(line)
    if cell is not None and rest.strip():
        raise InvalidRequest(f"%%stele takes --registry, -o and -n, not {rest.strip()[:40]!r}")
    spark = _find_session(shell)
    if "--registry" in options:
        spark.conf.set("stele.registry", options["--registry"])
    result = None
    for piece in split_statements(rest if cell is None else cell):
        with translate_failures(spark, piece):
            result = CellResult(run_statement(spark, piece), int(options.get("-n", _ROWS)))
    if result is not None and "-o" in options:
        shell.user_ns[options["-o"]] = result.df
    return result


def _parse_options(line: str) -> tuple[dict[str, str], str]:
    """Return the options before the statement, and the statement. Raises `InvalidRequest` for a wrong value."""
    options: dict[str, str] = {}
    at = 0
    while match := _OPTION.match(line, at):
        options[match[1]] = match[2]
        at = match.end()
    if not options.get("-o", "x").isidentifier():
        raise InvalidRequest(f"-o takes the name of a variable, not {options['-o']!r}")
    rows = options.get("-n", "1")
    if not (rows.isascii() and rows.isdigit() and len(rows) < 10 and int(rows)):
        raise InvalidRequest(f"-n takes a number of rows, not {rows!r}")
    return options, line[at:]


def _find_session(shell: Any) -> SparkSession:
    from stele.spark.session import local_session, require_spark

    require_spark()
    from pyspark.sql import SparkSession

    named = shell.user_ns.get("spark")
    if all(hasattr(named, part) for part in ("sql", "conf", "createDataFrame")):
        session: SparkSession = named
        return session
    return SparkSession.getActiveSession() or local_session("stele notebook")
