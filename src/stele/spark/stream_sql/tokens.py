"""SQL tokens: the part of Spark's lexical rules that finds statements, names and strings, with their positions.

Strings are `'…'` and `"…"` with backslash escapes and doubled quotes, or raw as `r'…'`. Names are words, or stand in
backquotes, which are doubled inside. Comments are `-- …` and `/* … */`, which nest. A word can contain `$`, which is
used in the names of views beside a stream. Time and memory grow linearly with the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from enum import Enum, auto
from typing import Final, NamedTuple

from stele.errors import Invalid
from stele.spark.types.names import quote_name


class StatementInvalid(Invalid):
    """Raised when a statement is wrong; `line` and `column` count from 1 in the text that was given."""

    def __init__(self, why: str, line: int, column: int) -> None:
        super().__init__(f"line {line}, column {column}: {why}")
        self.why = why
        self.line = line
        self.column = column

    def __reduce__(self) -> tuple[type[StatementInvalid], tuple[str, int, int]]:
        return StatementInvalid, (self.why, self.line, self.column)


class UnfinishedText(StatementInvalid):
    """Raised when the text ends inside a string, a quoted name or a comment. More text can complete it."""


class SqlTokenKind(Enum):
    """The kinds of tokens."""

    WORD = auto()
    QUOTED = auto()
    STRING = auto()
    MARK = auto()


class SqlToken(NamedTuple):
    """A token as it is written, with its start and end offsets in the text."""

    kind: SqlTokenKind
    text: str
    start: int
    end: int

    @property
    def word(self) -> str:
        """The word in upper case, or the mark as it is; '' for quoted tokens."""
        return (
            self.text.upper() if self.kind is SqlTokenKind.WORD else self.text if self.kind is SqlTokenKind.MARK else ""
        )

    @property
    def name(self) -> str | None:
        """The token as a name without backquotes, or None if it cannot be a name."""
        if self.kind is SqlTokenKind.QUOTED:
            return self.text[1:-1].replace("``", "`")
        return self.text if self.kind is SqlTokenKind.WORD and not self.text[0].isdigit() else None


_TOKEN: Final = re.compile(
    r"""(?P<space>\s++|--[^\n]*+)
      | (?P<comment>/\*)
      | (?P<string>[rR]'[^']*+'|[rR]"[^"]*+"|'(?:[^'\\]|\\.|'')*+'|"(?:[^"\\]|\\.|"")*+")
      | (?P<quoted>`(?:[^`]|``)*+`)
      | (?P<word>[\w$]++)
      | (?P<open>['"`])
      | (?P<mark>.)""",
    re.VERBOSE | re.DOTALL,
)
_COMMENT: Final = re.compile(r"/\*|\*/")
_OPENERS: Final = {"'": "the string", '"': "the string", "`": "the quoted name"}
_ESCAPED: Final = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "0": "\0"}
_ESCAPE: Final = re.compile(r"\\u([0-9A-Fa-f]{4})|\\(.)", re.DOTALL)
_PLAIN: Final = re.compile(r"[^\W\d]\w*", re.ASCII)
_SPECIAL: Final = frozenset(
    {"BY", "COMMENT", "EXISTS", "EXTENDED", "FROM", "IF", "NOT", "SELECT", "STREAM", "TABLE", "VALUES", "WITH"}
)
"""Keywords that must be in backquotes when they are used as names."""


def iterate_tokens(text: str) -> Iterator[SqlToken]:
    """Yield the tokens of a text. Raises `UnfinishedText`."""
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        assert match is not None
        match match.lastgroup:
            case "comment":
                at = _find_comment_end(text, at)
                continue
            case "open":
                raise UnfinishedText(f"{_OPENERS[match[0]]} that begins here has no end", *line_and_column(text, at))
            case "word" | "quoted" | "string" | "mark" as kind:
                yield SqlToken(SqlTokenKind[kind.upper()], match[0], at, match.end())
        at = match.end()


def _find_comment_end(text: str, start: int) -> int:
    depth = 0
    for mark in _COMMENT.finditer(text, start):
        depth += 1 if mark[0] == "/*" else -1
        if not depth:
            return mark.end()
    raise UnfinishedText("the comment that begins here has no end", *line_and_column(text, start))


def line_and_column(text: str, offset: int) -> tuple[int, int]:
    """Return line and column of an offset, both from 1."""
    before = text[:offset]
    return before.count("\n") + 1, offset - (before.rfind("\n") + 1) + 1


def short_name(name: str) -> str:
    """Return a name as it is written in SQL, in backquotes only if necessary."""
    return name if _PLAIN.fullmatch(name) and name.upper() not in _SPECIAL else quote_name(name)


def quote_string(value: str) -> str:
    """Return the text as a quoted string literal of SQL."""
    return "'" + value.replace("\\", "\\\\").replace("'", "''") + "'"


def parse_string(token: str) -> str:
    """Return the value of a string token."""
    if token[0] in "rR":
        return token[2:-1]
    mark, inside = token[0], token[1:-1]
    if "\\" not in inside:
        return inside.replace(mark * 2, mark)
    parts = re.split(r"(\\u[0-9A-Fa-f]{4}|\\.)", inside, flags=re.DOTALL)
    return "".join(
        _ESCAPE.sub(_unescape_match, part) if part.startswith("\\") else part.replace(mark * 2, mark) for part in parts
    )


def _unescape_match(match: re.Match[str]) -> str:
    return chr(int(match[1], 16)) if match[1] else _ESCAPED.get(match[2], match[2])


class StatementText(NamedTuple):
    """The tokens of one statement, and the text that contains them."""

    text: str
    tokens: Sequence[SqlToken]

    @property
    def source(self) -> str:
        """The statement as it is written, without the text around it."""
        return self.text[self.tokens[0].start : self.tokens[-1].end]


def split_statements(text: str) -> list[StatementText]:
    """Return the statements of a text, separated by `;`. A Spark script `BEGIN … END` is one statement.

    Raises `UnfinishedText`.
    """
    pieces, rest = split_finished(text)
    return [*pieces, rest] if rest.tokens else pieces


def split_finished(text: str) -> tuple[list[StatementText], StatementText]:
    """Return the statements that end in `;`, and the tokens after the last `;`. Raises `UnfinishedText`."""
    pieces: list[StatementText] = []
    current: list[SqlToken] = []
    depth = 0
    for token in iterate_tokens(text):
        if token.word == ";" and not depth:
            if current:
                pieces.append(StatementText(text, current))
            current = []
            continue
        depth += _depth_change(token, current)
        current.append(token)
    return pieces, StatementText(text, current)


_BLOCKS: Final = {"IF", "WHILE", "LOOP", "REPEAT", "FOR"}


def _depth_change(token: SqlToken, before: Sequence[SqlToken]) -> int:
    """Return the change of depth within a Spark script: BEGIN and CASE open a level, their END closes it."""
    first = [each.word for each in before[:3]]
    if first[:1] != ["BEGIN"] and first[1:] != [":", "BEGIN"]:
        return 1 if token.word == "BEGIN" and (not first or first[1:] == [":"]) else 0
    after_end = before[-1].word == "END"
    if token.word == "END":
        return -1
    if after_end:
        # END IF, END LOOP … close blocks whose beginning was not counted
        return 1 if token.word in _BLOCKS else 0
    return 1 if token.word in {"BEGIN", "CASE"} else 0
