"""From tokens to statements. What is not about streams is left to Spark as it is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NoReturn

from stele.spark.stream_sql.statements import (
    ColumnWanted,
    CreateStream,
    DescribeStream,
    DropStream,
    InsertInto,
    Option,
    ShowStreams,
    SparkStatement,
    Statement,
)
from stele.spark.stream_sql.tokens import Kind, Piece, StatementInvalid, Token, pieces, place, unquoted

_END: Final = Token(Kind.MARK, "", 0, 0)
_QUERIES: Final = {"SELECT", "FROM", "WITH", "VALUES", "TABLE", "BY"}
_CLOSED_BY: Final = {"(": ")", "<": ">"}


def parsed(piece: Piece) -> Statement:
    """The statement a piece of text is. Raises `StatementInvalid`."""
    parser = _Parser(piece)
    first = parser.peek().word
    read = _FIRST.get("DESCRIBE" if first == "DESC" else first)
    return (read(parser) if read else None) or SparkStatement(piece.source)


def parse(text: str) -> Statement:
    """The one statement of a text. Raises `StatementInvalid`, also for none and for several."""
    found = pieces(text)
    if len(found) != 1:
        at = found[1].tokens[0].start if found else len(text)
        raise StatementInvalid("one statement was expected" if found else "there is no statement", *place(text, at))
    return parsed(found[0])


class _Parser:
    """A reader of one piece's tokens."""

    def __init__(self, piece: Piece) -> None:
        self.text = piece.text
        self.tokens: Sequence[Token] = piece.tokens
        self.next = 0

    def peek(self, ahead: int = 0) -> Token:
        """A token to come; an empty mark behind the last one."""
        at = self.next + ahead
        return self.tokens[at] if at < len(self.tokens) else _END

    def take(self) -> Token:
        """The next token."""
        token = self.peek()
        self.next += 1
        return token

    def has(self, *words: str) -> bool:
        """Take these words if they come next."""
        if any(self.peek(n).word != word for n, word in enumerate(words)):
            return False
        self.next += len(words)
        return True

    def need(self, word: str, what: str = "") -> None:
        """Take a word or mark, or fail."""
        if not self.has(word):
            self.fail(f"{what or word} was expected")

    def fail(self, why: str, token: Token | None = None) -> NoReturn:
        """Raise with the place of a token, of the next one unless said."""
        token = token or self.peek()
        at = self.tokens[-1].end if token is _END else token.start
        found = f", not {token.text[:40]}" if token is not _END else ""
        raise StatementInvalid(f"{why}{found}", *place(self.text, at))

    def name(self, what: str) -> str:
        """A name of one part."""
        found = self.peek().name
        if not found:
            self.fail(f"{what} was expected")
        self.next += 1
        if self.peek().word == ".":
            self.fail(f"{what} has one part: put it in backquotes if there is a dot in it")
        return found

    def end(self) -> None:
        """Fail unless everything is read."""
        if self.peek() is not _END:
            self.fail("the end of the statement was expected")

    def listed(self, read: Callable[[], None], what: str) -> None:
        """Items in parentheses, parted by commas; one behind the last is allowed."""
        self.need("(", f"( and {what}")
        while not self.has(")"):
            read()
            if not self.has(",") and self.peek().word != ")":
                self.fail(f", or ) was expected behind {what}")


def _create(parser: _Parser) -> Statement | None:
    parser.take()
    replace = parser.has("OR", "REPLACE")
    sure = parser.has("STREAM")
    if not sure and (not parser.has("TABLE") or not _has_with(parser)):
        return None
    if_not_exists = parser.has("IF", "NOT", "EXISTS")
    if replace and if_not_exists:
        parser.fail("OR REPLACE and IF NOT EXISTS contradict each other")
    name = parser.name("the name of the stream")
    columns: list[ColumnWanted] = []
    if parser.peek().word == "(":
        parser.listed(lambda: columns.append(_column(parser)), "a column with its type")
    parser.need("WITH", "WITH and options")
    options: list[Option] = []
    parser.listed(lambda: options.append(_option(parser)), "an option")
    if parser.has("AS"):
        parser.fail("a stream is created without a query: create it, then INSERT INTO it")
    parser.end()
    return CreateStream(name, tuple(columns), tuple(options), replace, if_not_exists)


def _has_with(parser: _Parser) -> bool:
    """Whether CREATE TABLE is followed by `name [(…)] WITH (`, which no statement of Spark is."""
    at = 3 if [parser.peek(n).word for n in range(3)] == ["IF", "NOT", "EXISTS"] else 0
    at += 1
    while parser.peek(at).word == ".":
        at += 2
    if parser.peek(at).word == "(":
        depth = 0
        while True:
            word = parser.peek(at).word
            depth += (word == "(") - (word == ")")
            at += 1
            if not depth or parser.peek(at) is _END:
                break
    return parser.peek(at).word == "WITH" and parser.peek(at + 1).word == "("


def _column(parser: _Parser) -> ColumnWanted:
    at = parser.peek().start
    name = parser.name("the name of a column")
    kind = _type(parser, name)
    if parser.peek().word == "NOT":
        parser.fail("whether a column may be null is for the schema to say")
    comment = None
    if parser.has("COMMENT"):
        if parser.peek().kind is not Kind.STRING:
            parser.fail("a string was expected behind COMMENT")
        comment = unquoted(parser.take().text)
    return ColumnWanted(name, kind, comment, at)


def _type(parser: _Parser, column: str) -> str:
    """The tokens of a type up to what ends it, written without needless spaces."""
    open_: list[str] = []
    written = ""
    before: Token | None = None
    while (token := parser.peek()) is not _END:
        word = token.word
        if not open_ and word in {",", ")", "COMMENT", "NOT"}:
            break
        if word in _CLOSED_BY:
            open_.append(_CLOSED_BY[word])
        elif open_ and word == open_[-1]:
            open_.pop()
        parted = before is not None and before.kind is not Kind.MARK and token.kind is not Kind.MARK
        written += " " * parted + token.text
        before = parser.take()
    if not written:
        parser.fail(f"the type of column {column} was expected")
    if open_:
        parser.fail(f"{open_[-1]} was expected in the type of column {column}")
    return written


def _option(parser: _Parser) -> Option:
    first = parser.peek()
    name = _option_name(parser)
    parser.need("=", f"= behind the option {name}")
    token = parser.peek()
    if token.kind is Kind.STRING:
        return Option(name, unquoted(parser.take().text), first.start)
    if token.kind is not Kind.WORD:
        parser.fail(f"a value for the option {name} was expected, in quotes")
    return Option(name, _run(parser), first.start)


def _option_name(parser: _Parser) -> str:
    token = parser.peek()
    if token.kind is Kind.STRING:
        return unquoted(parser.take().text)
    if token.kind is Kind.QUOTED:
        return parser.take().name or ""
    if token.kind is not Kind.WORD:
        parser.fail("the name of an option was expected")
    return _run(parser)


def _run(parser: _Parser) -> str:
    """A word that may hold dots and dashes, up to the first space: PRAVEGA-STREAM, kafka.bootstrap.servers."""
    token = parser.take()
    written = token.text
    while (token_after := parser.peek()).start == token.end and (
        token_after.word in {"-", "."} or token_after.kind is Kind.WORD
    ):
        token = parser.take()
        written += token.text
    return written


def _drop(parser: _Parser) -> Statement | None:
    parser.take()
    sure = parser.has("STREAM")
    if not sure and not parser.has("TABLE") and not parser.has("VIEW"):
        return None
    if_exists = parser.has("IF", "EXISTS")
    if not sure and not _one_name_left(parser):
        return None
    name = parser.name("the name of the stream")
    parser.end()
    return DropStream(name, if_exists, sure)


def _show(parser: _Parser) -> Statement | None:
    parser.take()
    if not parser.has("STREAMS"):
        return None
    parser.end()
    return ShowStreams()


def _describe(parser: _Parser) -> Statement | None:
    parser.take()
    sure = parser.peek().word == "STREAM" and parser.peek(1) is not _END
    parser.next += sure
    if not sure:
        parser.has("TABLE")
        parser.has("EXTENDED")
        if not _one_name_left(parser):
            return None
    name = parser.name("the name of the stream")
    parser.end()
    return DescribeStream(name, sure)


def _insert(parser: _Parser) -> Statement | None:
    parser.take()
    if not parser.has("INTO"):
        return None
    sure = parser.peek().word == "STREAM" and parser.peek(1).name is not None and parser.peek(1).word not in _QUERIES
    parser.next += sure
    if not sure:
        parser.has("TABLE")
        if not parser.peek().name or parser.peek(1).word == ".":
            return None
    name = parser.name("the name of the stream")
    by_name = parser.has("BY", "NAME")
    columns: list[str] = []
    if not by_name and parser.peek().word == "(" and parser.peek(1).word not in _QUERIES:
        parser.listed(lambda: columns.append(parser.name("the name of a column")), "a column")
    first = parser.peek()
    if first is _END:
        parser.fail("a query was expected")
    query = parser.text[first.start : parser.tokens[-1].end]
    return InsertInto(name, tuple(columns), query, by_name, sure, first.start)


def _one_name_left(parser: _Parser) -> bool:
    return parser.peek().name is not None and parser.peek(1) is _END


_FIRST: Final[dict[str, Callable[[_Parser], Statement | None]]] = {
    "CREATE": _create,
    "DROP": _drop,
    "SHOW": _show,
    "DESCRIBE": _describe,
    "INSERT": _insert,
}
