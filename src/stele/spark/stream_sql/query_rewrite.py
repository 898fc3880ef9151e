"""Find the streams that a query names, and rewrite the query for Spark.

    SELECT * FROM orders                       batch: the view `orders`
    SELECT * FROM STREAM(orders) o             streaming: the view `orders$stream`
    SELECT * FROM STREAM orders                the same
    SELECT STREAM * FROM orders                every stream of the statement is streaming

A column named stream must be in backquotes if it comes first in a SELECT. The names of common table expressions hide
streams of the same name.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from stele.spark.stream_sql.tokens import SqlToken, SqlTokenKind, StatementText, line_and_column
from stele.spark.types.names import quote_name

STREAMING: Final = "$stream"
"""Suffix of the view that reads a stream as a streaming DataFrame."""

_END: Final = SqlToken(SqlTokenKind.MARK, "", 0, 0)


def _word_set(text: str) -> frozenset[str]:
    return frozenset(text.split())


_FROM_ENDS: Final = _word_set(
    "CLUSTER DISTRIBUTE EXCEPT GROUP HAVING INTERSECT LIMIT MINUS OFFSET ORDER QUALIFY SELECT SORT UNION WHERE WINDOW"
)
_NO_ALIAS: Final = _FROM_ENDS | _word_set(
    "ANTI CROSS FROM FULL INNER INSERT JOIN LATERAL LEFT NATURAL ON OUTER PIVOT RIGHT SEMI UNPIVOT USING WHEN"
)
_BEHIND_COLUMN: Final = _word_set(
    "AND AS BETWEEN COLLATE DIV FROM ILIKE IN IS LIKE NOT OR RLIKE UNION EXCEPT INTERSECT"
)


class StreamReference(NamedTuple):
    """A stream in a FROM clause, with the range of its tokens: the first one, and the one after the last one.

    The range includes the word STREAM and its parentheses.
    """

    name: str
    first: int
    end: int
    streaming: bool


class _TextEdit(NamedTuple):
    start: int
    end: int
    text: str


@dataclass(frozen=True)
class RewrittenQuery:
    """A query for Spark, the streams that it reads, and the mapping of its positions to the original text."""

    text: str
    batch: frozenset[str]
    streaming: frozenset[str]
    piece: StatementText
    changes: Sequence[_TextEdit] = field(repr=False)

    def place(self, offset: int) -> tuple[int, int]:
        """Return line and column in the original text for an offset in the query for Spark."""
        shift = self.piece.tokens[0].start
        for start, end, text in self.changes:
            here = start - shift
            if offset < here:
                break
            if offset < here + len(text):
                return line_and_column(self.piece.text, start)
            shift += end - start - len(text)
        return line_and_column(self.piece.text, min(offset + shift, len(self.piece.text)))

    def place_of(self, line: int, position: int) -> tuple[int, int]:
        """Return line and column in the original text for a position in Spark's query.

        `line` counts from 1 and `position` from 0, as in Spark's error messages.
        """
        before = self.text.split("\n")[: line - 1]
        return self.place(sum(len(each) + 1 for each in before) + position)


def rewrite_query(piece: StatementText, known: Collection[str]) -> RewrittenQuery:
    """Return Spark's query for a statement. `known` are the names of streams, in lower case."""
    tokens = piece.tokens
    everywhere = [at for at in range(len(tokens)) if _is_select_stream(tokens, at)]
    hidden = set(_table_expression_names(tokens))
    relations = list(find_stream_references(tokens, frozenset(known) - hidden)) if known else []
    changes = [_TextEdit(tokens[at].start, tokens[at].end, "") for at in everywhere]
    streaming: set[str] = set()
    taken: set[int] = set()
    for each in relations:
        if each.streaming or everywhere:
            streaming.add(each.name.lower())
            taken.update(range(each.first, each.end))
            changes.append(_edit_to_streaming_view(tokens, each))
    batch: set[str] = set()
    for at, token in enumerate(tokens):
        name = token.name
        if at in taken or name is None or name.lower() not in known or name.lower() in hidden:
            continue
        batch.add(name.lower())
        if "$" in token.text and token.kind is SqlTokenKind.WORD:
            changes.append(_TextEdit(token.start, token.end, quote_name(name)))
    changes.sort()
    return RewrittenQuery(_apply_edits(piece, changes), frozenset(batch), frozenset(streaming), piece, changes)


def _apply_edits(piece: StatementText, changes: Sequence[_TextEdit]) -> str:
    at, end = piece.tokens[0].start, piece.tokens[-1].end
    parts = []
    for change in changes:
        parts += [piece.text[at : change.start], change.text]
        at = change.end
    return "".join([*parts, piece.text[at:end]])


def _edit_to_streaming_view(tokens: Sequence[SqlToken], reference: StreamReference) -> _TextEdit:
    """Return the edit that puts the streaming view in place, with the stream's name as alias if the query has none."""
    after = tokens[reference.end] if reference.end < len(tokens) else _END
    named = after.kind is SqlTokenKind.QUOTED or (after.kind is SqlTokenKind.WORD and after.word not in _NO_ALIAS)
    alias = "" if named else f" AS {quote_name(reference.name)}"
    view = quote_name(reference.name + STREAMING)
    return _TextEdit(tokens[reference.first].start, tokens[reference.end - 1].end, view + alias)


def _is_select_stream(tokens: Sequence[SqlToken], at: int) -> bool:
    """Return whether this is the STREAM of `SELECT STREAM`, not a column of that name."""
    if tokens[at].word != "STREAM" or not at or tokens[at - 1].word != "SELECT" or at + 1 == len(tokens):
        return False
    after = tokens[at + 1]
    if after.word == "*":
        behind = tokens[at + 2].word if at + 2 < len(tokens) else ""
        return behind in {"FROM", ",", "EXCEPT", ""}
    if after.kind is SqlTokenKind.MARK:
        return after.word == "("
    return after.word not in _BEHIND_COLUMN


def _table_expression_names(tokens: Sequence[SqlToken]) -> Iterator[str]:
    """Yield the names of common table expressions, in lower case."""
    for at, token in enumerate(tokens):
        if not at or tokens[at - 1].word not in {"WITH", "RECURSIVE", ","} or token.name is None:
            continue
        behind = at + 1
        if behind < len(tokens) and tokens[behind].word == "(":
            behind += 1
            while behind < len(tokens) and tokens[behind].word not in {"(", ")"}:
                behind += 1
            behind += 1
        if [each.word for each in tokens[behind : behind + 2]] == ["AS", "("]:
            yield token.name.lower()


@dataclass(slots=True)
class _ParenthesisLevel:
    """State of the search within one pair of parentheses."""

    fresh: bool = True
    selecting: bool = False
    listing: bool = False
    expecting: bool = False


def find_stream_references(tokens: Sequence[SqlToken], known: Collection[str]) -> Iterator[StreamReference]:
    """Yield the streams that a query reads: names of known streams at positions where a relation can be."""
    levels = [_ParenthesisLevel()]
    merging = bool(tokens) and tokens[0].word == "MERGE"
    at = 0
    while at < len(tokens):
        level = levels[-1]
        if level.expecting:
            reference = _reference_at(tokens, at, known)
            if reference is not None:
                yield reference
                level.expecting, at = False, reference.end
                continue
        _track_token(levels, tokens, at, merging=merging)
        level.fresh = False
        at += 1


def _track_token(levels: list[_ParenthesisLevel], tokens: Sequence[SqlToken], at: int, *, merging: bool) -> None:
    """Update the levels for one token."""
    level, word = levels[-1], tokens[at].word
    if word == "(":
        levels.append(_ParenthesisLevel(listing=level.expecting, expecting=level.expecting))
        level.expecting = False
    elif word == ")":
        if len(levels) > 1:
            levels.pop()
        levels[-1].expecting = False
    elif word == "FROM":
        distinct = at > 1 and tokens[at - 1].word == "DISTINCT" and tokens[at - 2].word in {"IS", "NOT"}
        if (level.selecting or level.fresh) and not distinct:
            level.selecting = level.listing = level.expecting = True
    elif word in _FROM_ENDS or (word == "|" and at + 1 < len(tokens) and tokens[at + 1].word == ">"):
        level.listing = level.expecting = False
        level.selecting = level.selecting or word == "SELECT"
    elif word in {"JOIN", "TABLE"} or (word == "USING" and merging):
        level.expecting = True
    elif word == ",":
        level.expecting = level.listing
    elif word != "LATERAL":
        level.expecting = False


def _reference_at(tokens: Sequence[SqlToken], at: int, known: Collection[str]) -> StreamReference | None:
    """Return the stream named at this position, perhaps after STREAM or in STREAM(…), or None."""

    def find_name(place: int) -> str | None:
        name = tokens[place].name if place < len(tokens) else None
        after = tokens[place + 1].word if place + 1 < len(tokens) else ""
        return name if name is not None and name.lower() in known and after not in {".", "("} else None

    if tokens[at].word == "STREAM" and at + 1 < len(tokens):
        if (name := find_name(at + 1)) is not None:
            return StreamReference(name, at, at + 2, streaming=True)
        closed = at + 3 < len(tokens) and tokens[at + 1].word == "(" and tokens[at + 3].word == ")"
        if closed and (name := find_name(at + 2)) is not None:
            return StreamReference(name, at, at + 4, streaming=True)
    name = find_name(at)
    return None if name is None else StreamReference(name, at, at + 1, streaming=False)
