"""Statements about streams: tokens, parsing, and rewritten queries. No Spark runs here."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stele.spark.stream_sql.parser import (
    CreateStream,
    DescribeStream,
    DropStream,
    InsertInto,
    OptionSetting,
    RequestedColumn,
    ShowStreams,
    SparkStatement,
    Statement,
    parse_statement,
    parse_text,
)
from stele.spark.stream_sql.query_rewrite import rewrite_query
from stele.spark.stream_sql.tokens import (
    SqlTokenKind,
    StatementInvalid,
    iterate_tokens,
    parse_string,
    quote_string,
    split_statements,
)
from stele.spark.types.names import quote_name

T = TypeVar("T")

NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1) | st.sampled_from(
    ["a", "if", "Table", "stream", "with", "not", "comment", "extended", "by", "select", "exists", "x$dead"]
)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
TYPES = st.sampled_from(
    ["BIGINT", "VARCHAR", "DECIMAL(10,2)", "STRUCT<a:INT,b:ARRAY<STRING>>", "INTERVAL DAY TO SECOND"]
)
QUERIES = st.sampled_from(
    [
        "SELECT 1",
        "VALUES (1, 'a;b')",
        "FROM x SELECT *",
        "WITH a AS (SELECT 1) SELECT * FROM a",
        "(SELECT 1)",
        "TABLE x",
    ]
)
COLUMNS = st.builds(RequestedColumn, NAMES, TYPES, st.none() | TEXTS)
STATEMENTS = st.one_of(
    st.builds(
        CreateStream,
        NAMES,
        st.lists(COLUMNS, max_size=3).map(tuple),
        st.lists(st.builds(OptionSetting, TEXTS, TEXTS), max_size=3).map(tuple),
        st.booleans(),
        st.just(False),
    ),
    st.builds(CreateStream, NAMES, st.just(()), st.just(()), st.just(False), st.booleans()),
    st.builds(DropStream, NAMES, st.booleans(), st.booleans()),
    st.just(ShowStreams()),
    st.builds(DescribeStream, NAMES, st.booleans()),
    st.builds(InsertInto, NAMES, st.lists(NAMES, max_size=3).map(tuple), QUERIES, st.just(False), st.booleans()),
    st.builds(InsertInto, NAMES, st.just(()), QUERIES, st.just(True), st.booleans()),
)


def _attempt(call: Callable[[], T]) -> tuple[T | None, StatementInvalid | None]:
    """Return the result of a call, or its error."""
    try:
        return call(), None
    except StatementInvalid as error:
        return None, error


@given(STATEMENTS)
def test_a_printed_statement_reads_back(statement: Statement) -> None:
    """The normal form of a statement parses to an equal statement, for any names, options and comments."""
    assert parse_text(str(statement)) == statement


@given(st.lists(STATEMENTS, max_size=4))
def test_statements_part_at_semicolons_only(statements: list[Statement]) -> None:
    """A text of several statements is split into them, whatever strings and quoted names contain."""
    text = ";\n-- a comment; with one\n".join(map(str, statements)) + ";;"
    assert [parse_statement(piece) for piece in split_statements(text)] == statements


@given(TEXTS)
def test_any_text_is_tokens_or_an_error_with_a_place(text: str) -> None:
    """Tokens cover a text in order, with only spaces and comments between; otherwise an error has the position."""
    tokens, refused = _attempt(lambda: list(iterate_tokens(text)))
    if refused is not None:
        assert refused.line >= 1
        assert refused.column >= 1
        return
    assert tokens is not None
    assert all(text[token.start : token.end] == token.text for token in tokens)
    assert all(one.end <= other.start for one, other in pairwise(tokens))


@given(TEXTS)
def test_literals_and_names_are_one_token(text: str) -> None:
    """Any value written as a string or as a quoted name is one token with that value."""
    (string,) = iterate_tokens(quote_string(text))
    assert (string.kind, parse_string(string.text)) == (SqlTokenKind.STRING, text)
    if text:
        (name,) = iterate_tokens(quote_name(text))
        assert name.name == text


def test_the_seeds_statements_are_read() -> None:
    """Pravega's CREATE STREAM and the table of RIP-42, with its trailing comma, are parsed correctly."""
    assert parse_text("CREATE STREAM sensorData WITH (PRAVEGA-STREAM='scope/sensorDataStream'); ") == CreateStream(
        "sensorData", (), (OptionSetting("PRAVEGA-STREAM", "scope/sensorDataStream"),)
    )
    table = """create table rocketmq_table (
      timestamp BIGINT,
      user_id VARCHAR,
      user_operation VARCHAR,
    ) with (
      'connector.topic'='topic',
      'update-mode'='append',
      'format.type'='thrift',
      'format.thrift-class'='com.xiaomi.xx',
      'format.thrift-package'='com.xiaomi.xx:0.0.1-SNAPSHOT',
    );"""
    statement = parse_text(table)
    assert isinstance(statement, CreateStream)
    assert [str(column) for column in statement.columns] == [
        "timestamp BIGINT",
        "user_id VARCHAR",
        "user_operation VARCHAR",
    ]
    assert [option.name for option in statement.options][:2] == ["connector.topic", "update-mode"]
    assert statement.options[3].value == "com.xiaomi.xx"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("CREATE STREAM", r"line 1, column 14: the name of the stream was expected$"),
        ("CREATE STREAM a.b WITH (x='1')", r"column 16: the name of the stream has one part"),
        ("CREATE STREAM a", "WITH and options was expected"),
        ("CREATE STREAM a\nWITH (x)", r"line 2, column 8: = after the option x was expected, not \)"),
        ("CREATE STREAM a WITH (x='1' y='2')", r"column 29: , or \) was expected after an option, not y"),
        ("CREATE STREAM a WITH (x='1'", r"column 28: , or \) was expected"),
        ("CREATE STREAM a WITH (x='1') AS SELECT 1", "created without a query"),
        ("CREATE STREAM a WITH (x='1') b", "the end of the statement was expected, not b"),
        ("CREATE STREAM a (b) WITH (x='1')", "the type of column b was expected"),
        ("CREATE STREAM a (b ARRAY<INT) WITH (x='1')", "> was expected in the type of column b"),
        ("CREATE STREAM a (b INT NOT NULL) WITH (x='1')", "the schema decides whether a column may be null"),
        ("CREATE OR REPLACE STREAM IF NOT EXISTS a WITH (x='1')", "contradict each other"),
        ("CREATE STREAM a WITH (x=)", "a value for the option x was expected"),
        ("CREATE STREAM 'a' WITH (x='1')", "the name of the stream was expected, not 'a'"),
        ("DROP STREAM", "the name of the stream was expected"),
        ("SHOW STREAMS LIKE 'a'", "the end of the statement was expected, not LIKE"),
        ("INSERT INTO STREAM a", "a query was expected"),
        ("SELECT 'a", "column 8: the string that begins here has no end"),
        ("SELECT `a", "the quoted name that begins here has no end"),
        ("SELECT 1 /* /* */", "the comment that begins here has no end"),
        ("SELECT 1; SELECT 2", "column 11: one statement was expected"),
        (" -- nothing", "there is no statement"),
    ],
)
def test_errors_say_where_and_what(text: str, message: str) -> None:
    """A syntax error has its position, what was expected, and what is there."""
    with pytest.raises(StatementInvalid, match=message):
        parse_text(text)


@pytest.mark.parametrize(
    "text",
    [
        "CREATE TABLE t (a INT) USING parquet",
        "CREATE TABLE t AS WITH a AS (SELECT 1) SELECT * FROM a",
        "CREATE TABLE db.t (a STRUCT<b: INT>) USING csv OPTIONS (header 'true')",
        "CREATE TEMP VIEW v AS SELECT 1",
        "CREATE OR REPLACE TEMP VIEW v AS SELECT 1",
        "DROP TABLE db.t",
        "DROP FUNCTION f",
        "SHOW TABLES",
        "DESCRIBE db.t",
        "DESCRIBE QUERY SELECT 1",
        "DESCRIBE TABLE EXTENDED t PARTITION (a = 1)",
        "INSERT OVERWRITE t SELECT 1",
        "INSERT INTO db.t SELECT 1",
        "BEGIN DECLARE x INT; IF 1 = 1 THEN SELECT 1; END IF; SELECT CASE WHEN true THEN 1 END; END",
        "l: BEGIN WHILE false DO SELECT 1; END WHILE; CASE 1 WHEN 1 THEN SELECT 2; END CASE; END",
    ],
)
def test_statements_of_spark_are_left_alone(text: str) -> None:
    """Statements that are not about streams go to Spark unchanged; a script with semicolons inside is one statement."""
    assert parse_text(text + ";") == SparkStatement(text)
    assert len(split_statements(f"{text}; SELECT 1")) == 2


@pytest.mark.parametrize(
    ("given_", "expected", "batch", "streaming"),
    [
        ("SELECT * FROM s", "SELECT * FROM s", {"s"}, set()),
        ("SELECT * FROM STREAM(S)", "SELECT * FROM `S$stream` AS `S`", set(), {"s"}),
        ("SELECT * FROM STREAM s x", "SELECT * FROM `s$stream` x", set(), {"s"}),
        ("SELECT * FROM stream (`s`) AS x", "SELECT * FROM `s$stream` AS x", set(), {"s"}),
        ("SELECT STREAM * FROM s WHERE a", "SELECT  * FROM `s$stream` AS `s` WHERE a", set(), {"s"}),
        ("SELECT STREAM a, b FROM u, s", "SELECT  a, b FROM u, `s$stream` AS `s`", set(), {"s"}),
        ("SELECT STREAM * FROM u JOIN s ON a=s.b", "SELECT  * FROM u JOIN `s$stream` AS `s` ON a=s.b", {"s"}, {"s"}),
        ("SELECT STREAM * FROM (SELECT * FROM s)", "SELECT  * FROM (SELECT * FROM `s$stream` AS `s`)", set(), {"s"}),
        ("SELECT STREAM f(TABLE(s)) FROM t", "SELECT  f(TABLE(`s$stream` AS `s`)) FROM t", set(), {"s"}),
        ("FROM STREAM s |> SELECT a, s", "FROM `s$stream` AS `s` |> SELECT a, s", {"s"}, {"s"}),
        ("SELECT stream FROM s", "SELECT stream FROM s", {"s"}, set()),
        ("SELECT stream * 2 FROM s", "SELECT stream * 2 FROM s", {"s"}, set()),
        ("SELECT stream, a FROM s", "SELECT stream, a FROM s", {"s"}, set()),
        ("SELECT stream AS a FROM s", "SELECT stream AS a FROM s", {"s"}, set()),
        ("SELECT * FROM s$dead", "SELECT * FROM `s$dead`", {"s$dead"}, set()),
        (
            "SELECT s$dead.a FROM STREAM(s$dead)",
            "SELECT `s$dead`.a FROM `s$dead$stream` AS `s$dead`",
            {"s$dead"},
            {"s$dead"},
        ),
        (
            "WITH s AS (SELECT 1) SELECT STREAM * FROM s, r",
            "WITH s AS (SELECT 1) SELECT  * FROM s, `r$stream` AS `r`",
            set(),
            {"r"},
        ),
        (
            "SELECT STREAM extract(day FROM s) FROM r",
            "SELECT  extract(day FROM s) FROM `r$stream` AS `r`",
            {"s"},
            {"r"},
        ),
        (
            "SELECT STREAM a IS DISTINCT FROM s FROM r",
            "SELECT  a IS DISTINCT FROM s FROM `r$stream` AS `r`",
            {"s"},
            {"r"},
        ),
        ("SELECT STREAM * FROM r JOIN u USING (s)", "SELECT  * FROM `r$stream` AS `r` JOIN u USING (s)", {"s"}, {"r"}),
        ("SELECT STREAM * FROM db.s, s.t, s(1)", "SELECT  * FROM db.s, s.t, s(1)", {"s"}, set()),
        ("SELECT 'FROM STREAM(s)' -- FROM STREAM(s)", "SELECT 'FROM STREAM(s)'", set(), set()),
    ],
)
def test_queries_read_the_views_of_streams(given_: str, expected: str, batch: set[str], streaming: set[str]) -> None:
    """Streams are found where relations can be; names in strings, functions, columns and CTEs stay unchanged."""
    (piece,) = split_statements(given_)
    query = rewrite_query(piece, {"s", "r", "s$dead"})
    assert (query.text, query.batch, query.streaming) == (expected, batch, streaming)


def test_places_lead_back_to_the_original() -> None:
    """An offset in Spark's query is mapped to line and column of the original text, before and after an edit."""
    text = "SELECT 1;\n  SELECT STREAM a\n FROM STREAM(s) WHERE nope"
    query = rewrite_query(split_statements(text)[1], {"s"})
    assert query.place(query.text.index("SELECT")) == (2, 3)
    assert query.place(query.text.index("a\n")) == (2, 17)
    assert query.place(query.text.index("$stream")) == (3, 7)
    assert query.place(query.text.index("nope")) == (3, 23)


@pytest.mark.parametrize(
    "part",
    [
        "'",
        '"',
        "`",
        "/*",
        "(",
        "BEGIN ",
        "CASE ",
        "s,",
        "WITH s(",
        ", s(",
        "ARRAY<",
        "STREAM(",
        "SELECT STREAM * FROM s ",
    ],
)
@pytest.mark.parametrize("start", ["", "SELECT STREAM * FROM ", "CREATE STREAM a (b ", "CREATE STREAM a WITH (x="])
def test_hostile_texts_end(start: str, part: str) -> None:
    """Long and unbalanced texts are read or refused with a short sentence, without recursion and in linear time."""
    text = start + part * 10_001
    statements, refused = _attempt(lambda: split_statements(text))
    for piece in statements or ():
        _, wrong = _attempt(lambda piece=piece: parse_statement(piece))
        rewrite_query(piece, {"s"})
        refused = refused or wrong
    assert len(str(refused)) < 500
