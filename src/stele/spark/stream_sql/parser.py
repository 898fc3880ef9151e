"""Statements about streams: their data classes and their parser. All other statements go to Spark unchanged.

`str` of a statement is its normal form, which parses to an equal statement.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, NoReturn, TypeAlias

from stele.spark.stream_sql.tokens import (
    SqlToken,
    SqlTokenKind,
    StatementInvalid,
    StatementText,
    line_and_column,
    parse_string,
    quote_string,
    short_name,
    split_statements,
)


@dataclass(frozen=True, slots=True)
class RequestedColumn:
    """A column of a column list: its name, its type as it is written, its comment, and its offset in the text."""

    name: str
    type: str
    comment: str | None = None
    at: int = field(default=0, compare=False)

    def __str__(self) -> str:
        comment = "" if self.comment is None else f" COMMENT {quote_string(self.comment)}"
        return f"{short_name(self.name)} {self.type}{comment}"


@dataclass(frozen=True, slots=True)
class OptionSetting:
    """An option of `WITH` as it is written, and its offset in the text."""

    name: str
    value: str
    at: int = field(default=0, compare=False)

    def __str__(self) -> str:
        return f"{quote_string(self.name)} = {quote_string(self.value)}"


@dataclass(frozen=True, slots=True)
class CreateStream:
    """`CREATE [OR REPLACE] STREAM [IF NOT EXISTS] name [(columns)] WITH (options)`; TABLE for STREAM is the same."""

    name: str
    columns: tuple[RequestedColumn, ...]
    options: tuple[OptionSetting, ...]
    replace: bool = False
    if_not_exists: bool = False

    def __str__(self) -> str:
        columns = f" ({', '.join(map(str, self.columns))})" if self.columns else ""
        return (
            f"CREATE {'OR REPLACE ' * self.replace}STREAM {'IF NOT EXISTS ' * self.if_not_exists}"
            f"{short_name(self.name)}{columns} WITH ({', '.join(map(str, self.options))})"
        )


@dataclass(frozen=True, slots=True)
class DropStream:
    """`DROP STREAM [IF EXISTS] name`.

    `says_stream` is false for `DROP TABLE` and `DROP VIEW`, which are a DropStream only if a stream has the name.
    """

    name: str
    if_exists: bool = False
    says_stream: bool = True

    def __str__(self) -> str:
        return (
            f"DROP {'STREAM' if self.says_stream else 'TABLE'} {'IF EXISTS ' * self.if_exists}{short_name(self.name)}"
        )


@dataclass(frozen=True, slots=True)
class ShowStreams:
    """The statement `SHOW STREAMS`."""

    def __str__(self) -> str:
        return "SHOW STREAMS"


@dataclass(frozen=True, slots=True)
class DescribeStream:
    """`DESCRIBE [STREAM] name`. For `says_stream` see `DropStream`."""

    name: str
    says_stream: bool = True

    def __str__(self) -> str:
        return f"DESCRIBE {'STREAM ' * self.says_stream}{short_name(self.name)}"


@dataclass(frozen=True, slots=True)
class InsertInto:
    """`INSERT INTO [STREAM] name [BY NAME | (columns)] query`.

    For `says_stream` see `DropStream`. `at` is the offset of the query in the text.
    """

    name: str
    columns: tuple[str, ...]
    query: str
    by_name: bool = False
    says_stream: bool = True
    at: int = field(default=0, compare=False)

    def __str__(self) -> str:
        columns = (
            " BY NAME" if self.by_name else f" ({', '.join(map(short_name, self.columns))})" if self.columns else ""
        )
        return f"INSERT INTO {'STREAM ' * self.says_stream}{short_name(self.name)}{columns} {self.query}"


@dataclass(frozen=True, slots=True)
class SparkStatement:
    """Any other statement, which Spark runs after the names of streams are replaced."""

    text: str

    def __str__(self) -> str:
        return self.text


Statement: TypeAlias = "CreateStream | DropStream | ShowStreams | DescribeStream | InsertInto | SparkStatement"


_END: Final = SqlToken(SqlTokenKind.MARK, "", 0, 0)
_QUERIES: Final = {"SELECT", "FROM", "WITH", "VALUES", "TABLE", "BY"}
_CLOSED_BY: Final = {"(": ")", "<": ">"}


def parse_statement(piece: StatementText) -> Statement:
    """Parse the text of one statement. Raises `StatementInvalid`."""
    parser = _Parser(piece)
    first = parser.peek_token().word
    read = _PARSERS_BY_FIRST_WORD.get("DESCRIBE" if first == "DESC" else first)
    return (read(parser) if read else None) or SparkStatement(piece.source)


def parse_text(text: str) -> Statement:
    """Parse a text that holds exactly one statement. Raises `StatementInvalid`."""
    pieces = split_statements(text)
    if len(pieces) != 1:
        at = pieces[1].tokens[0].start if pieces else len(text)
        raise StatementInvalid(
            "one statement was expected" if pieces else "there is no statement", *line_and_column(text, at)
        )
    return parse_statement(pieces[0])


class _Parser:
    """Reads the tokens of one statement."""

    def __init__(self, piece: StatementText) -> None:
        self.text = piece.text
        self.tokens: Sequence[SqlToken] = piece.tokens
        self.next = 0

    def peek_token(self, ahead: int = 0) -> SqlToken:
        """Return the next token, or a later one, without moving on; an empty mark after the last one."""
        at = self.next + ahead
        return self.tokens[at] if at < len(self.tokens) else _END

    def take_token(self) -> SqlToken:
        """Return the next token and move on."""
        token = self.peek_token()
        self.next += 1
        return token

    def take_words(self, *words: str) -> bool:
        """Move past these words if they come next. Return whether they do."""
        if any(self.peek_token(n).word != word for n, word in enumerate(words)):
            return False
        self.next += len(words)
        return True

    def require_word(self, word: str, what: str = "") -> None:
        """Move past a word or mark. Raises `StatementInvalid` if it does not come next."""
        if not self.take_words(word):
            self.fail(f"{what or word} was expected")

    def fail(self, why: str, token: SqlToken | None = None) -> NoReturn:
        """Raise `StatementInvalid` with the position of a token, by default the next one."""
        token = token or self.peek_token()
        at = self.tokens[-1].end if token is _END else token.start
        suffix = f", not {token.text[:40]}" if token is not _END else ""
        raise StatementInvalid(f"{why}{suffix}", *line_and_column(self.text, at))

    def take_name(self, what: str) -> str:
        """Return a name of one part and move past it. Raises `StatementInvalid` for any other token."""
        name = self.peek_token().name
        if not name:
            self.fail(f"{what} was expected")
        self.next += 1
        if self.peek_token().word == ".":
            self.fail(f"{what} has one part: put a name with a dot in backquotes")
        return name

    def require_end(self) -> None:
        """Raise `StatementInvalid` unless all tokens are read."""
        if self.peek_token() is not _END:
            self.fail("the end of the statement was expected")

    def read_list(self, read: Callable[[], None], what: str) -> None:
        """Read items in parentheses, separated by commas; a comma after the last one is allowed."""
        self.require_word("(", f"( and {what}")
        while not self.take_words(")"):
            read()
            if not self.take_words(",") and self.peek_token().word != ")":
                self.fail(f", or ) was expected after {what}")


def _parse_create(parser: _Parser) -> Statement | None:
    parser.take_token()
    replace = parser.take_words("OR", "REPLACE")
    sure = parser.take_words("STREAM")
    if not sure and (not parser.take_words("TABLE") or not _is_create_with_options(parser)):
        return None
    if_not_exists = parser.take_words("IF", "NOT", "EXISTS")
    if replace and if_not_exists:
        parser.fail("OR REPLACE and IF NOT EXISTS contradict each other")
    name = parser.take_name("the name of the stream")
    columns: list[RequestedColumn] = []
    if parser.peek_token().word == "(":
        parser.read_list(lambda: columns.append(_parse_column(parser)), "a column with its type")
    parser.require_word("WITH", "WITH and options")
    options: list[OptionSetting] = []
    parser.read_list(lambda: options.append(_parse_option(parser)), "an option")
    if parser.take_words("AS"):
        parser.fail("a stream is created without a query: create it, then INSERT INTO it")
    parser.require_end()
    return CreateStream(name, tuple(columns), tuple(options), replace, if_not_exists)


def _is_create_with_options(parser: _Parser) -> bool:
    """Return whether `name [(…)] WITH (` follows CREATE TABLE. No Spark statement has this form."""
    at = 3 if [parser.peek_token(n).word for n in range(3)] == ["IF", "NOT", "EXISTS"] else 0
    at += 1
    while parser.peek_token(at).word == ".":
        at += 2
    if parser.peek_token(at).word == "(":
        depth = 0
        while True:
            word = parser.peek_token(at).word
            depth += (word == "(") - (word == ")")
            at += 1
            if not depth or parser.peek_token(at) is _END:
                break
    return parser.peek_token(at).word == "WITH" and parser.peek_token(at + 1).word == "("


def _parse_column(parser: _Parser) -> RequestedColumn:
    at = parser.peek_token().start
    name = parser.take_name("the name of a column")
    kind = _parse_type(parser, name)
    if parser.peek_token().word == "NOT":
        parser.fail("NOT NULL is not allowed: the schema decides whether a column may be null")
    comment = None
    if parser.take_words("COMMENT"):
        if parser.peek_token().kind is not SqlTokenKind.STRING:
            parser.fail("a string was expected after COMMENT")
        comment = parse_string(parser.take_token().text)
    return RequestedColumn(name, kind, comment, at)


def _parse_type(parser: _Parser, column: str) -> str:
    """Return the text of a type without unnecessary spaces."""
    open_: list[str] = []
    written = ""
    before: SqlToken | None = None
    while (token := parser.peek_token()) is not _END:
        word = token.word
        if not open_ and word in {",", ")", "COMMENT", "NOT"}:
            break
        if word in _CLOSED_BY:
            open_.append(_CLOSED_BY[word])
        elif open_ and word == open_[-1]:
            open_.pop()
        parted = before is not None and before.kind is not SqlTokenKind.MARK and token.kind is not SqlTokenKind.MARK
        written += " " * parted + token.text
        before = parser.take_token()
    if not written:
        parser.fail(f"the type of column {column} was expected")
    if open_:
        parser.fail(f"{open_[-1]} was expected in the type of column {column}")
    return written


def _parse_option(parser: _Parser) -> OptionSetting:
    first = parser.peek_token()
    name = _parse_option_name(parser)
    parser.require_word("=", f"= after the option {name}")
    token = parser.peek_token()
    if token.kind is SqlTokenKind.STRING:
        return OptionSetting(name, parse_string(parser.take_token().text), first.start)
    if token.kind is not SqlTokenKind.WORD:
        parser.fail(f"a value for the option {name} was expected, in quotes")
    return OptionSetting(name, _parse_dotted_word(parser), first.start)


def _parse_option_name(parser: _Parser) -> str:
    token = parser.peek_token()
    if token.kind is SqlTokenKind.STRING:
        return parse_string(parser.take_token().text)
    if token.kind is SqlTokenKind.QUOTED:
        return parser.take_token().name or ""
    if token.kind is not SqlTokenKind.WORD:
        parser.fail("the name of an option was expected")
    return _parse_dotted_word(parser)


def _parse_dotted_word(parser: _Parser) -> str:
    """Return a word with dots and dashes up to the first space: PRAVEGA-STREAM, kafka.bootstrap.servers."""
    token = parser.take_token()
    written = token.text
    while (token_after := parser.peek_token()).start == token.end and (
        token_after.word in {"-", "."} or token_after.kind is SqlTokenKind.WORD
    ):
        token = parser.take_token()
        written += token.text
    return written


def _parse_drop(parser: _Parser) -> Statement | None:
    parser.take_token()
    sure = parser.take_words("STREAM")
    if not sure and not parser.take_words("TABLE") and not parser.take_words("VIEW"):
        return None
    if_exists = parser.take_words("IF", "EXISTS")
    if not sure and not _is_one_name_left(parser):
        return None
    name = parser.take_name("the name of the stream")
    parser.require_end()
    return DropStream(name, if_exists, sure)


def _parse_show(parser: _Parser) -> Statement | None:
    parser.take_token()
    if not parser.take_words("STREAMS"):
        return None
    parser.require_end()
    return ShowStreams()


def _parse_describe(parser: _Parser) -> Statement | None:
    parser.take_token()
    sure = parser.peek_token().word == "STREAM" and parser.peek_token(1) is not _END
    parser.next += sure
    if not sure:
        parser.take_words("TABLE")
        parser.take_words("EXTENDED")
        if not _is_one_name_left(parser):
            return None
    name = parser.take_name("the name of the stream")
    parser.require_end()
    return DescribeStream(name, sure)


def _parse_insert(parser: _Parser) -> Statement | None:
    parser.take_token()
    if not parser.take_words("INTO"):
        return None
    sure = (
        parser.peek_token().word == "STREAM"
        and parser.peek_token(1).name is not None
        and parser.peek_token(1).word not in _QUERIES
    )
    parser.next += sure
    if not sure:
        parser.take_words("TABLE")
        if not parser.peek_token().name or parser.peek_token(1).word == ".":
            return None
    name = parser.take_name("the name of the stream")
    by_name = parser.take_words("BY", "NAME")
    columns: list[str] = []
    if not by_name and parser.peek_token().word == "(" and parser.peek_token(1).word not in _QUERIES:
        parser.read_list(lambda: columns.append(parser.take_name("the name of a column")), "a column")
    first = parser.peek_token()
    if first is _END:
        parser.fail("a query was expected")
    query = parser.text[first.start : parser.tokens[-1].end]
    return InsertInto(name, tuple(columns), query, by_name, sure, first.start)


def _is_one_name_left(parser: _Parser) -> bool:
    return parser.peek_token().name is not None and parser.peek_token(1) is _END


_PARSERS_BY_FIRST_WORD: Final[dict[str, Callable[[_Parser], Statement | None]]] = {
    "CREATE": _parse_create,
    "DROP": _parse_drop,
    "SHOW": _parse_show,
    "DESCRIBE": _parse_describe,
    "INSERT": _parse_insert,
}
