"""The shell and the notebook magic: output, prompts and error messages."""

from __future__ import annotations

import csv
import io
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pytest
from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput
from pyspark.sql import Row, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from tests.spark.local_registry import LocalRegistry
from tests.spark.orders import SUBJECT, V1, V2, drop, order
from tests.support.java_machine import JavaMachine
from typer.testing import CliRunner

from stele.cli.app import app
from stele.cli.sql import RowShape, StatementRunner
from stele.cli.sql_shell import _make_completer, history_file, is_finished, read_statements
from stele.errors import NotInstalled, SteleError
from stele.spark import drop_stream, list_streams
from stele.spark.stream_sql.display import (
    FirstRows,
    format_csv,
    format_grid,
    format_html,
    format_json_lines,
    format_rows,
)


@pytest.fixture
def create(spark: SparkSession, registry: LocalRegistry, tmp_path: Path) -> Iterator[str]:
    """The statement that creates the stream `o` of three orders, the last record of it bad."""
    registry.add(SUBJECT, V1)
    drop(tmp_path / "orders", "a.parquet", [*(order(1, 1, number) for number in range(3)), b"bad"])
    yield f"CREATE STREAM o WITH (path='{tmp_path}/orders', topic=orders, registry='{registry.url}', mode=deadletter);"
    for stream in list_streams(spark):
        drop_stream(spark, stream.name)


def test_the_shell_runs_what_comes_in(create: str, tmp_path: Path, java_machine: JavaMachine) -> None:
    """The shell runs statements from a pipe, prints their rows, also streaming ones, and ends at the first error."""
    text = f"""{create}
        SELECT id, place FROM o ORDER BY id;
        SELECT STREAM count(*) AS records FROM o;
        SELECT
          nope FROM o;
        SELECT 'never'"""
    command = [sys.executable, "-m", "stele.cli", "sql", "--available-now", "-o", "json", "--conf", "my.word=x"]
    with java_machine.lend(tmp_path) as variables:
        environ = os.environ | variables
        done = subprocess.run(
            command, input=text, capture_output=True, text=True, timeout=280, check=False, env=environ
        )
    assert done.returncode == 2, done.stderr
    assert [json.loads(line) for line in done.stdout.splitlines()] == [
        {"id": 0, "place": {"city": "city 0"}},
        {"id": 1, "place": {"city": "city 1"}},
        {"id": 2, "place": {"city": "city 2"}},
        {"records": 3},
    ]
    assert "error: line 5, column 11: A column" in done.stderr
    assert "Traceback" not in done.stderr
    assert "at org." not in done.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-e", "SELECT 1; SELECT 'a"], "line 1, column 18: the string that begins here has no end"),
        (["-e", "CREATE STREAM x WITH (topc)"], "line 1, column 27: = after the option topc was expected"),
        (["-e", "SELECT 1", "--conf", "novalue"], "write NAME=VALUE"),
        (["-f", "/nowhere/x.sql"], "/nowhere/x.sql: No such file"),
    ],
)
def test_what_cannot_run_is_refused_before_spark_starts(arguments: list[str], message: str) -> None:
    """Statements with syntax errors, and wrong settings and files, end the command at once, with exit code 2."""
    done = CliRunner().invoke(app, ["sql", *arguments])
    assert done.exit_code == 2
    assert message in " ".join(done.output.split())


def test_rows_are_printed_in_three_shapes(spark: SparkSession, create: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Text is a grid with a limited number of rows, JSON one object per line, CSV has a header.

    A statement without rows prints ok.
    """
    query = f"{create} SELECT id, tags FROM o ORDER BY id"
    StatementRunner(spark, RowShape.TEXT, 2, available_now=True).run(query)
    assert capsys.readouterr().out == 'ok\nid | tags\n---+------\n0  | []\n1  | ["a"]\n(2 rows, and there are more)\n'
    StatementRunner(spark, RowShape.JSON, 0, available_now=True).run("SELECT id FROM o WHERE id > 1")
    assert capsys.readouterr().out == '{"id":2}\n'
    runner = StatementRunner(spark, RowShape.CSV, 0, available_now=True)
    runner.run("SELECT id, tags FROM o WHERE id = 1")
    assert capsys.readouterr().out == 'id,tags\n1,"[""a""]"\n'
    assert {"o", "id", "place", "tags", "_schema_id"} <= set(runner.names())


def test_streams_are_printed_as_they_arrive(
    spark: SparkSession, create: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows are printed as they come, an ordered aggregate, too; Ctrl-C ends the query, and the shell goes on."""

    def interrupt_query(query: StreamingQuery, timeout: int) -> bool:
        query.processAllAvailable()
        signal.raise_signal(signal.SIGINT)
        return False

    monkeypatch.setattr(StreamingQuery, "awaitTermination", interrupt_query)
    runner = StatementRunner(spark, RowShape.JSON, 0, available_now=False)
    runner.run(f"{create} SELECT STREAM id % 2 AS odd, count(*) AS n FROM o GROUP BY odd ORDER BY odd; SELECT 1 AS x")
    assert capsys.readouterr().out == '{"odd":0,"n":2}\n{"odd":1,"n":1}\n{"x":1}\n'
    assert not spark.streams.active


def test_errors_are_sentences_with_places(spark: SparkSession, create: str) -> None:
    """Errors of Spark's parser, analysis and execution, and of records, are one sentence with the position."""
    runner = StatementRunner(spark, RowShape.TEXT, 10, available_now=True)
    runner.run(create)
    for text, message in (
        ("SELECT 1;\nSELECT * FORM o", "^line 2, column 15: Syntax error at or near 'o'"),
        ("SELECT STREAM id,\n nope FROM STREAM(o)", "^line 2, column 2: A column, .* `nope` cannot be resolved"),
        ("INSERT INTO o SELECT nope", "^line 1, column 22: A column"),
        ("SELECT 1/0", "^line 1, column 8: Division by zero"),
        ("SELECT * FROM nowhere", "^line 1, column 15: The table or view `nowhere` cannot be found"),
        ("SELECT id FROM STREAM(o) ORDER BY id", "Sorting is not supported"),
        (f"{create.replace('STREAM o', 'STREAM p').replace('deadletter', 'failfast')} SELECT * FROM p", "^no frame: "),
        ("DROP STREAM q", "^line 1, column 13: there is no stream 'q'"),
    ):
        with pytest.raises(SteleError, match=message) as raised:
            runner.run(text)
        assert "\n" not in str(raised.value)
        assert "SQLSTATE" not in str(raised.value)


VALUES = Row("n", "b", "s", "d", "t", "i", "x", "big")(
    None,
    b"\0\xff",
    "a\x1b[31m\n",
    date(2026, 1, 2),
    datetime(2026, 1, 2, tzinfo=UTC),
    timedelta(1),
    Decimal("1.50"),
    1 << 90,
)


def test_values_are_shown_for_eyes_and_programs() -> None:
    """Every kind of value has a text without control characters and a JSON value; HTML is escaped."""
    rows = FirstRows(("a", "a", "<b>"), [(VALUES, True, {1: [1.5]}), ("x" * 100, None, float("inf"))], more=True)
    drawn = format_grid(rows)
    assert "\x1b" not in drawn
    assert "…" in drawn
    assert drawn.endswith("(2 rows, and there are more)")
    first, second = map(json.loads, format_json_lines(rows))
    assert first["a"]["b"] == "AP8="
    assert first["a"]["big"] == str(1 << 90)
    assert (first["a_2"], first["<b>"], second["a_2"]) == (True, {"1": [1.5]}, None)
    table = list(csv.reader(io.StringIO(format_csv(rows, head=True))))
    assert table[0] == ["a", "a", "<b>"]
    assert (table[1][1], table[2][1]) == ("true", "")
    assert "<b>" not in format_html(rows)
    assert format_html(FirstRows((), ())) == "<p>done</p>"


def test_rows_that_are_too_wide_stand_one_below_another() -> None:
    """If a grid does not fit the terminal, each value has lines of its own, broken between words."""
    rows = FirstRows(("id", "reason"), [(1, "no frame: " + "a word " * 12), (2, None)])
    assert format_rows(rows, 100) == format_grid(rows)
    assert format_rows(rows, 40).splitlines() == [
        "row 1",
        "  id     | 1",
        "  reason | no frame: a word a word a",
        "         | word a word a word a word a",
        "         | word a word a word a word a",
        "         | word a word",
        "row 2",
        "  id     | 2",
        "  reason | NULL",
        "(2 rows)",
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT 1;", True),
        ("SELECT 1", False),
        ("SELECT ';", False),
        ("SELECT 1; SELECT 2", False),
        ("SELECT 1; -- all", True),
        ("BEGIN SELECT 1;", False),
        ("BEGIN SELECT 1; END;", True),
        ("/* ;", False),
        ("quit", True),
        ("", True),
    ],
)
def test_enter_runs_whole_statements_only(text: str, expected: bool) -> None:
    """A statement is run at its `;`, not at one in a string, a comment or a script."""
    assert is_finished(text) is expected


def test_the_prompt_takes_lines_keeps_history_and_leaves(tmp_path: Path) -> None:
    """Several lines make one statement; help and empty lines make none, and quit ends the shell.

    Only the owner can read the history.
    """
    history = tmp_path / "state" / "history"
    with create_pipe_input() as keys:
        keys.send_text("SELECT\r1;\rhelp\r\r\x03SELECT 2; SELECT 3;\rquit\r")
        typed = list(read_statements(lambda: ["orders"], history=history, source=keys, screen=DummyOutput()))
    assert typed == ["SELECT\n1;", "SELECT 2; SELECT 3;"]
    assert "+SELECT\n+1;" in history.read_text()
    assert history.stat().st_mode & 0o077 == 0


def test_names_are_completed() -> None:
    """Keywords and the names of streams and columns are completed, in any case."""
    completer = _make_completer(["sensorData", "SELECTED"])
    for typed, expected in (("SELECT * FROM sensord", ["sensorData"]), ("sel", ["SELECTED", "SELECT"])):
        completions = completer.get_completions(Document(typed), CompleteEvent(completion_requested=True))
        assert [each.text for each in completions] == expected


def test_the_history_is_where_state_belongs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The history is in the folder of XDG_STATE_HOME, else below the home folder."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert history_file() == tmp_path / "stele" / "sql_history"
    monkeypatch.delenv("XDG_STATE_HOME")
    monkeypatch.setenv("HOME", "/home/x")
    if os.name != "nt":
        assert history_file() == Path("/home/x/.local/state/stele/sql_history")


def test_missing_parts_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without prompt_toolkit or IPython the error says what to install."""
    monkeypatch.setitem(sys.modules, "prompt_toolkit", None)
    with pytest.raises(NotInstalled, match=r"stele-registry\[shell\]"):
        next(read_statements(list))
    from stele.spark.magic import load_ipython_extension

    monkeypatch.setitem(sys.modules, "IPython.core.error", None)
    with pytest.raises(NotInstalled, match=r"stele-registry\[notebook\]"):
        load_ipython_extension(None)


@pytest.fixture
def notebook(spark: SparkSession) -> Iterator[InteractiveShell]:
    """IPython with the extension loaded and the session as `spark`."""
    shell = InteractiveShell.instance()
    shell.user_ns["spark"] = spark
    shell.run_line_magic("load_ext", "stele.spark.magic")
    yield shell
    InteractiveShell.clear_instance()
    spark.conf.unset("stele.registry")


def test_the_magic_runs_cells(
    notebook: InteractiveShell, registry: LocalRegistry, create: str, spark: SparkSession, tmp_path: Path
) -> None:
    """A cell runs all its statements, shows the rows of the last as a table, and binds its DataFrame."""
    registry.add(SUBJECT, V2)
    cell = create.replace(f", registry='{registry.url}'", "") + " SELECT id, at IS NULL AS `<x>` FROM o ORDER BY id"
    output = notebook.run_cell_magic("stele", f"--registry {registry.url} -o found -n 2", cell)
    assert spark.conf.get("stele.registry") == registry.url
    assert notebook.user_ns["found"].count() == 3
    assert repr(output) == "id | <x>\n---+------\n0  | false\n1  | false\n(2 rows, and there are more)"
    assert "<td>1</td><td>false</td>" in output._repr_html_()
    assert "&lt;x&gt;" in output._repr_html_()
    line = notebook.run_line_magic("stele", "-o=one SELECT max(id) AS m FROM o WHERE place.city = 'city 1'")
    assert "(1 row)" in repr(line)
    stream = notebook.run_line_magic("stele", "SELECT STREAM id FROM o")
    assert repr(stream).startswith("a stream with the columns id; ")
    assert stream._repr_html_() is None
    assert repr(notebook.run_line_magic("stele", "DROP STREAM o")) == "done"


def test_the_magic_says_what_is_wrong(notebook: InteractiveShell) -> None:
    """Errors of options, statements and Spark in cells are one line."""
    for line, cell, message in (
        ("", "SELECT nope", "line 1, column 8: A column"),
        ("", "DROP STREAM x", "line 1, column 13: there is no stream 'x'"),
        ("-o 1x", "SELECT 1", "-o takes the name of a variable"),
        ("-n 0", "SELECT 1", "-n takes a number of rows"),
        ("--rows 3", "SELECT 1", "takes --registry, -o and -n, not '--rows 3'"),
    ):
        with pytest.raises(UsageError, match=message):
            notebook.run_cell_magic("stele", line, cell)
